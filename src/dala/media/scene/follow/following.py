"""The methods ``follow`` and ``follow_each`` of scenes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Unpack

from dala.errors import DalaError, ParameterError
from dala.media.scene.builder import NodeBuilder
from dala.media.scene.follow.follower import (
    CALL,
    Follow,
    FollowTarget,
    FollowTargets,
    TargetDescription,
    checked_options,
    is_real_time,
)
from dala.media.scene.nodes import property_types as t
from dala.media.scene.nodes.node import Node
from dala.media.scene.nodes.video import VideoNode
from dala.media.scene.options import FollowOptions
from dala.options import takes

if TYPE_CHECKING:
    from dala.media.scene.keywords import FollowKeywords
    from dala.media.scene.scene import Scene
    from dala.media.sources.seconds import Moment

_EACH: Final = "Scene.follow_each"


class Following(NodeBuilder):
    """The methods ``follow`` and ``follow_each`` of scenes."""

    @takes(FollowOptions)
    def follow(
        self,
        node: Node | str,
        target: FollowTarget | TargetDescription,
        *,
        video: VideoNode | str | None = None,
        **given: Unpack[FollowKeywords],
    ) -> Follow:
        """Let a node follow a person or thing that a model finds in a video of the scene.

        Before each frame is drawn, the model runs on the frame that the video shows, once for all
        nodes that follow it, and the node's position, angle and scale are set. The result is
        mapped through position, size, fit, crop, scale and rotation of the video and its groups.
        In ``play`` the model runs on a thread and nothing waits for it: nodes then use its last
        result, which may be some frames old. Following again replaces what the node followed.

        Args:
            node: any node, or its id.
            target: a point, bone or box: ``dala.ml.face.point("nose")``, or one of
                ``dala.ml.watch(video, model)``, which chooses the model and its options.
            video: the video node, or its id, if the target does not say; by default the only one.

        Returns:
            What ends it: ``follow.cancel()``. ``follow.found`` says whether the target is there.

        Raises:
            ParameterError: an argument is invalid, or the node lacks a property that is to be set.

        Example::

            scene.add_video("talk.mp4")
            glasses = scene.add_image("glasses.png")
            scene.follow(glasses, dala.ml.face.bone("right_eye", "left_eye"), scale=2.2)
        """
        scene = self.scene_of()._check_open(CALL)
        found = scene._find(node, CALL)
        if isinstance(target, TargetDescription) and not isinstance(target, type):
            target = target.on(_video_of(scene, video))
        elif video is not None:
            raise ParameterError(
                f"{CALL}: leave video out, as the target is on a video.",
                argument="video",
            )
        if not isinstance(target, FollowTarget) or isinstance(target, type):
            raise ParameterError.invalid(
                CALL, "target", "a point, bone or box, such as dala.ml.face.point('nose')", target
            )
        _check_video(scene, target.video, CALL)
        options = checked_options(found, target, given)
        return scene.followers.add(found, target, options)

    def follow_each(
        self,
        targets: FollowTargets,
        make: Callable[[int], Node],
        *,
        forget: float = 5.0,
        **options: t.NodeArgument,
    ) -> FollowEach:
        """Add a node for each person or thing that a model finds, and let it follow that one.

        Args:
            targets: ``dala.ml.watch(video, model).boxes()`` or another group of targets.
            make: called with the id of each new one; adds a node to the scene and returns it.
            forget: seconds after which the node of one that is gone is removed.
            **options: of :meth:`follow`, such as ``offset`` or ``lost``.

        Returns:
            What ends it: ``cancel()`` also removes the nodes. ``nodes`` has them by id.

        Example::

            people = dala.ml.watch(scene["street"], "nanodet", label="person")
            tags = scene.follow_each(
                people.boxes(at="top"), lambda id: scene.add_text(f"#{id}"), anchor="bottom"
            )
        """
        scene = self.scene_of()._check_open(_EACH)
        if not isinstance(targets, FollowTargets) or isinstance(targets, type):
            raise ParameterError.invalid(
                _EACH, "targets", "a group such as dala.ml.watch(video, model).boxes()", targets
            )
        if not callable(make):
            raise ParameterError.invalid(_EACH, "make", "a function of the id", make)
        _check_video(scene, targets.video, _EACH)
        seconds = t.NumberType(0.0).check(_EACH, "forget", forget)
        made = FollowEach(scene, targets, make, seconds, options)
        scene.followers.groups.append(made)
        return made


@dataclass(eq=False, repr=False)
class FollowEach:
    """A node for each of several targets, as ``scene.follow_each`` returns it.

    Attributes:
        nodes: the nodes by id.
    """

    _scene: Scene
    targets: FollowTargets
    _make: Callable[[int], Node]
    _forget: float
    _options: dict[str, t.Value]
    #: The nodes by the ids of what they follow.
    nodes: dict[int, Node] = field(default_factory=dict)
    _seen: dict[int, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<FollowEach of {len(self.nodes)} nodes on {self.targets.video.id!r}>"

    def cancel(self) -> None:
        """Stop, and remove the nodes."""
        self._scene.followers.groups[:] = [g for g in self._scene.followers.groups if g is not self]
        for id in list(self.nodes):
            self._remove(id)

    def advance(self, moment: Moment, wait: bool) -> None:
        """Add nodes for new targets, and remove those of targets that are long gone."""
        video, now = self.targets.video, moment.seconds
        shown = video.shown(moment)
        try:
            ids = () if shown is None else self.targets.ids(shown, wait)
        except DalaError as error:
            raise error.within(f"Scene.render: nodes follow {video.id!r}") from error
        for id in ids:
            self._seen[id] = now
            if id not in self.nodes:
                self._add(id)
        for id, seen in list(self._seen.items()):
            if abs(now - seen) > self._forget and id not in ids:
                self._remove(id)

    def _add(self, id: int) -> None:
        node = self._make(id)
        if not isinstance(node, Node) or self._scene.nodes.get(node.id) is not node:
            raise ParameterError.invalid(
                _EACH, "make", "a function that returns a node of the scene", node
            )
        self.nodes[id] = node
        self._scene.follow(node, self.targets.one(id), **self._options)

    def _remove(self, id: int) -> None:
        node = self.nodes.pop(id, None)
        self._seen.pop(id, None)
        if node is not None and self._scene.nodes.get(node.id) is node:
            self._scene.remove_node(node)


class Followers:
    """The nodes of a scene that follow targets."""

    def __init__(self) -> None:
        #: What follows, by the id of the node.
        self.links: dict[str, Follow] = {}
        self.groups: list[FollowEach] = []

    def __bool__(self) -> bool:
        return bool(self.links or self.groups)

    def __iter__(self) -> Iterator[Follow]:
        return iter(list(self.links.values()))

    def add(self, node: Node, target: FollowTarget, options: FollowOptions) -> Follow:
        """Let a node follow; it stops following anything else."""
        if (old := self.links.pop(node.id, None)) is not None:
            old.cancel()
        made = Follow(node, target, options)
        if options.anchor is not None and not options.crop and "anchor" in node.PROPERTIES:
            node.set("anchor", options.anchor)
        self.links[node.id] = made
        return made

    def advance(self, moment: Moment) -> None:
        """Set the properties of all nodes that follow, for a frame."""
        wait = not is_real_time()
        for group in list(self.groups):
            group.advance(moment, wait)
        for id, link in list(self.links.items()):
            if link.cancelled:
                self.links.pop(id, None)
            else:
                link.advance(moment, wait)

    def drop(self, node: Node) -> None:
        """Forget a removed node, and end everything that follows in its picture."""
        self.links.pop(node.id, None)
        for id, link in list(self.links.items()):
            if link.target.video is node:
                del self.links[id]
                link.cancel()
        for group in list(self.groups):
            if group.targets.video is node:
                group.cancel()

    def clear(self) -> None:
        """Forget everything."""
        self.links.clear()
        self.groups.clear()


def _video_of(scene: Scene, video: VideoNode | str | None) -> VideoNode:
    """Return a video node of a scene by node or id; None is the only one."""
    if video is None:
        found = [node for node in scene.nodes.values() if isinstance(node, VideoNode)]
        if len(found) != 1:
            raise ParameterError(
                f"{CALL}: video is required, as the scene has {len(found)} videos.",
                argument="video",
            )
        return found[0]
    node = scene._find(video, CALL)
    if not isinstance(node, VideoNode):
        raise ParameterError.invalid(CALL, "video", "a video node", node)
    return node


def _check_video(scene: Scene, video: VideoNode, call: str) -> None:
    if not isinstance(video, VideoNode):
        raise ParameterError.invalid(call, "target", "a target on a video node", video)
    if scene.nodes.get(video.id) is not video:
        raise ParameterError(
            f"{call}: the target is on {video!r}, which is not in this scene (any more).",
            argument="target",
        )
