"""Nodes that move by themselves: video, and a scene inside a scene."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dala.errors import ParameterError
from dala.media.scene.compositor.pictures import Shown
from dala.media.scene.nodes.node import Content, Node

if TYPE_CHECKING:
    from dala.media.moment import Moment
    from dala.media.scene.nodes.group import GroupNode
    from dala.media.scene.scene import Scene
    from dala.media.sources.source import Source


class VideoNode(Node):
    """A video: the newest frame of its source that is not later than the scene's time."""

    type = "video"
    __slots__ = ("_hidden", "_seen", "_shown", "options", "source", "stream")

    def __init__(
        self, scene: Scene, parent: GroupNode, source: Source, given: dict[str, Any]
    ) -> None:
        self.source = source
        #: What the source was opened from, and how.
        self.stream: Any = None
        self.options: dict[str, Any] = {}
        self._shown = Shown(scene._compositor)
        self._seen: int | None = None
        self._hidden = True
        super().__init__(scene, parent, given)

    def advance(self, moment: Moment) -> None:
        """Brings in the frame of a time. What goes wrong in the source is kept by the scene."""
        source = self.source
        frame = source.at(moment)
        if source.error is not None:
            self.scene._report(self, source.error)
        if frame is None:
            if not self._hidden:
                self._hidden = True
                self._changed()
            return
        if self._hidden or source.version != self._seen:
            try:
                self._shown.show(frame)
            except Exception as error:  # a frame that cannot be shown stops no scene
                self.scene._report(self, error)
                self._seen = source.version
                return
            self._seen = source.version
            if self._hidden or self._item is None:
                self._hidden = False
                self._changed()
            else:
                self._item.repaint(self._shown)

    def content(self) -> Content | None:
        """The frame that was brought in last."""
        shown = self._shown
        if self._hidden or shown.picture is None:
            return None
        picture = shown.picture
        return Content(picture.width, picture.height, picture, shown.version, opaque=shown.opaque)

    def natural(self) -> tuple[float, float]:
        """The video's own size; (0, 0) before the first frame where the source does not know."""
        if self._shown.picture is not None:
            return self._shown.picture.width, self._shown.picture.height
        size = self.source.size
        return (0.0, 0.0) if size is None else (float(size[0]), float(size[1]))

    def release(self) -> None:
        """Closes the source."""
        self.source.close()


class SceneNode(Node):
    """A scene inside a scene, drawn at the outer one's time; its alpha is kept."""

    type = "scene"
    __slots__ = ("_frame", "_seen", "_shown", "child", "owned")

    def __init__(
        self, scene: Scene, parent: GroupNode, child: Scene, given: dict[str, Any]
    ) -> None:
        if child is scene or child._holds(scene):
            raise ParameterError("add_scene: a scene cannot be inside itself.")
        child._check_open("add_scene")
        self.child = child
        #: Whether the inner scene is closed with this node: one that a file described.
        self.owned = False
        self._shown = Shown(scene._compositor)
        self._frame: Any = None
        self._seen = 0
        super().__init__(scene, parent, given)

    def advance(self, moment: Moment) -> None:
        """Draws the inner scene at a time."""
        frame = self.child.render(moment.exact)
        drawn = self.child.frame_count - self.child.frames_skipped
        if drawn != self._seen:  # it may have been drawn for another node, or for nobody
            self._shown.show(frame, opaque=self.child._background[3] == 255)
            self._frame, self._seen = frame, drawn
            if self._item is None:
                self._changed()
            else:
                self._item.repaint(self._shown)
        for error in self.child.errors.values():
            self.scene._report(self, error)

    def content(self) -> Content | None:
        """The inner scene's last frame."""
        shown = self._shown
        if shown.picture is None:
            return None
        return Content(
            self.child.width, self.child.height, shown.picture, shown.version, opaque=shown.opaque
        )

    def natural(self) -> tuple[float, float]:
        """The inner scene's size."""
        return float(self.child.width), float(self.child.height)

    def release(self) -> None:
        """Lets go of the inner scene, which stays open unless it is the node's own."""
        self._frame = None
        if self.owned:
            self.child.close()
