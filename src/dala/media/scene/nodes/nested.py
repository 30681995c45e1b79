"""Scenes inside scenes."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Final

from dala.errors import LimitExceeded, ParameterError
from dala.media.scene.boxes import place_content
from dala.media.scene.compositor.pictures import LivePicture
from dala.media.scene.nodes import property_types as t
from dala.media.scene.nodes.audio import VOLUME
from dala.media.scene.nodes.json_types import JsonType
from dala.media.scene.nodes.node import Content, Node
from dala.media.scene.nodes.properties import REQUIRED, Argument, Property
from dala.media.scene.nodes.times import PLAY_ARGUMENTS
from dala.media.sources.seconds import to_fraction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dala.media.frame import Frame
    from dala.media.scene.scene import Scene
    from dala.media.sources.seconds import Moment

#: Scenes inside each other, the outermost included.
MAX_DEPTH: Final = 32
#: Scenes that a frame may render; one that is shown twice counts twice, with all inside it.
MAX_SCENES: Final = 1024
#: How many times smaller than it is an inner scene may be drawn.
MOST_REDUCED: Final = 64

_ADVICE: Final = "Render inner ones to pictures or videos first."


class SceneNode(Node):
    """A scene inside a scene, rendered at the outer scene's time; its alpha is kept.

    It is drawn about as large as it is shown: at half its width and height, a quarter and so on
    where all nodes that show it need no more, unless it has effects on everything below, or is
    rendered by itself as well.

    Its time counts from the node's start, and runs with its ``trim``, ``speed`` and ``loop``.

    The inner scene stays open when the node is removed; closing it is up to the caller.

    >>> import dala
    >>> with dala.media.Scene(64, 36, device="cpu") as scene, dala.media.Scene(8, 8) as inner:
    ...     scene.add_scene(inner, position="center").position
    (28.0, 14.0)
    """

    type = "scene"
    OWN_ARGUMENTS: ClassVar[dict[str, Argument]] = {
        "scene": Argument(
            t.PropertyType(JsonType(), "Scene"), "The inner scene.", default=REQUIRED, key=""
        ),
        **PLAY_ARGUMENTS,
    }
    POSITIONAL = ("scene",)
    HOLDS = "scene"
    __slots__ = ("_frame", "_hidden", "_live", "_seen", "_shown", "child", "owned")

    volume = Property(1.0, VOLUME, "Factor of the sound of the inner scene.", drawn=False)

    def prepare(self, given: t.Values) -> None:
        """Take the arguments that are not properties."""
        child: Scene = given.pop("scene", None)
        if not isinstance(child, type(self.scene)):
            advice = "Add nodes to a group itself: group = scene.add_group(); group.add_text('A')."
            raise ParameterError.invalid("add_scene", "scene", "a Scene", child, advice)
        child._check_open("add_scene")
        _check_nesting(self.scene, child)
        self.child = child
        #: Whether the node closes the inner scene; True for scenes loaded from a file.
        self.owned = False
        self._live = LivePicture(self.scene._compositor)
        self._frame: Frame | None = None
        self._seen, self._shown = 0, 1
        self._hidden = False

    def ready(self) -> None:
        """Refuse times that need a length."""
        if self.clip.needs_length and self.child.duration is None:
            raise ParameterError(
                "add_scene: to loop or run backwards the inner scene needs a length. Set its "
                "duration, or give trim=(0, seconds)."
            )
        self.child._shown_by.add(self)

    def length(self) -> Fraction | None:
        """Return the duration of the inner scene."""
        found = self.child.duration
        return None if found is None else to_fraction("duration", found)

    def advance(self, moment: Moment) -> None:
        """Render the inner scene at a time, if it is shown."""
        if not all(at.property_values["visible"] for at in (self, *self.around())):
            return  # the frame in which it is visible again renders it first
        local = self.local_time(moment)
        if (local is None) != self._hidden:
            self._hidden = local is None
            self.changed()
        if local is None:
            return
        frame = self.child._reduced_frame(
            local.exact, min(node.reduction() for node in self.child._shown_by)
        )
        drawn = self.child.frame_count - self.child.frames_skipped
        if drawn != self._seen:  # other nodes, or the user, may have rendered it as well
            self._live.show(frame, opaque=self.child.background[3] == 255)
            self._frame, self._seen, self._shown = frame, drawn, self.child._pool.reduction
            if self.display_item is None:
                self.changed()
            else:
                self.display_item.repaint(self._live)
        for error in self.child.errors.values():
            self.scene._report(self, error)

    def reduction(self) -> int:
        """Return the power of two by which the inner scene may be smaller than it is."""
        if not all(at.property_values["visible"] for at in (self, *self.around())):
            return MOST_REDUCED
        place = place_content(self, Content(*self.natural()))
        if place is None:
            return MOST_REDUCED
        u0, v0, u1, v1 = place.crop
        scale = min((u1 - u0) / place.hw, (v1 - v0) / place.hh) / 2 * self.scene._pool.reduction
        return 1 << min(max(int(scale), 1).bit_length() - 1, MOST_REDUCED.bit_length() - 1)

    def content(self) -> Content | None:
        """Return the inner scene's last frame."""
        picture, child = self._live.picture, self.child
        if self._hidden or picture is None:
            return None
        live = self._live
        return Content(
            child.width, child.height, picture, live.version, opaque=live.opaque,
            reduction=self._shown,
        )  # fmt: skip

    def natural(self) -> tuple[float, float]:
        """Return the inner scene's size."""
        return float(self.child.width), float(self.child.height)

    def release(self) -> None:
        """Release the frame, and close the inner scene if the node owns it."""
        self._frame = None
        self.child._shown_by.discard(self)
        if self.owned:
            self.child.close()


def _check_nesting(outer: Scene, child: Scene) -> None:
    """Refuse a scene inside itself, and nesting beyond the limits, before anything is added."""
    found: dict[Scene, tuple[int, int]] = {}

    def measure(scene: Scene) -> tuple[int, int]:
        """Return how deep a scene is, and the scenes that a frame of it renders, itself too."""
        if scene not in found:
            nodes = [node for node in scene._nodes.values() if isinstance(node, SceneNode)]
            inside = [measure(node.child) for node in nodes]
            inside += [found[child]] if scene is outer and child in found else []
            found[scene] = nesting(inside)
        return found[scene]

    measure(child)
    if outer in found:
        raise ParameterError("add_scene: a scene cannot contain itself.")
    around = {outer}
    for scene in (waiting := [outer]):  # the list grows
        above = {node.scene for node in scene._shown_by} - around
        around |= above
        waiting.extend(above)
    for scene in around:
        problem = too_nested(measure(scene))
        if problem:
            raise LimitExceeded(f"add_scene: {problem}", argument="scene")


def nesting(inside: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return how deep a scene is and how many a frame of it renders, by those of its inner scenes.

    >>> nesting([]), nesting([(1, 1), (2, 2)])
    ((1, 1), (3, 4))
    """
    return 1 + max((depth for depth, _ in inside), default=0), 1 + sum(n for _, n in inside)


def too_nested(found: tuple[int, int]) -> str:
    """Return the limit that is exceeded, as text; an empty text if none is.

    >>> too_nested((3, 4))
    ''
    """
    depth, scenes = found
    if depth > MAX_DEPTH:
        return f"at most {MAX_DEPTH} scenes can be inside each other, got {depth}. {_ADVICE}"
    if scenes > MAX_SCENES:
        return (
            f"a frame can show at most {MAX_SCENES} scenes, each as often as it is there, got "
            f"{scenes}. {_ADVICE}"
        )
    return ""
