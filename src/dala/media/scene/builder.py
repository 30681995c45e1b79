"""The calls that add nodes, which scenes and groups share."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from dala.arguments import Selection
from dala.media.scene.builder_methods import BuilderMethods
from dala.media.scene.nodes.registry import NODE_TYPES

if TYPE_CHECKING:
    from dala.media.scene.animation.animation import Animation, Followed
    from dala.media.scene.animation.keyframes import AnimatedValue, Keyframe
    from dala.media.scene.nodes.group import GroupNode
    from dala.media.scene.nodes.node import Node
    from dala.media.scene.nodes.property_types import NodeArgument
    from dala.media.scene.nodes.video import VideoNode
    from dala.media.scene.scene import Scene
    from dala.media.sources import Source
    from dala.media.sources.easing import EasingLike
    from dala.media.sources.open import VideoInput


class NodeBuilder(BuilderMethods, ABC):
    """``add_video``, ``add_image``, ...: one method per node type, and animations.

    Every method takes the properties of its node by name. Without ``position`` a node is at the
    top left; without ``size`` it has the size of its content. ``position`` may be a corner
    ("top-right"), an edge ("bottom") or "center", ``margin`` pixels from the edges.
    """

    __slots__: tuple[str, ...] = ()

    @abstractmethod
    def container(self) -> GroupNode:
        """Return the group that new nodes are added to."""

    @abstractmethod
    def scene_of(self) -> Scene:
        """Return the scene."""

    def add_animation(
        self,
        node: Node | str,
        property: str,
        from_: AnimatedValue | None = None,
        to: AnimatedValue | None = None,
        duration: float | None = None,
        easing: EasingLike = "linear",
        *,
        delay: float = 0.0,
        repeat: int = 0,
        yoyo: bool = False,
        on_end: Callable[..., object] | None = None,
        keyframes: Sequence[Keyframe] | None = None,
        start: float | None = None,
        by: Followed | None = None,
    ) -> Animation:
        """Animate a property of a node from one value to another, or through ``keyframes``.

        See ``Animation`` for the arguments. With ``by=scene.level(music)`` the value follows the
        level of a sound.

        >>> import dala
        >>> with dala.media.Scene(64, 32, device="cpu") as scene:
        ...     dot = scene.add_overlay(color="red", size=(4, 4))
        ...     move = scene.add_animation(dot, "x", 0, 60, duration=2, easing="ease-out")
        ...     frame = scene.render(2)
        ...     dot.x
        60.0
        """
        from dala.media.scene.animation.animation import Animation

        scene = self.scene_of()._check_open("add_animation")
        target = scene._find(node, "add_animation")
        target.check_animatable(property)
        made = Animation(
            target, property, from_, to, duration, easing, delay=delay, repeat=repeat, yoyo=yoyo,
            on_end=on_end, keyframes=keyframes, start=start, by=by,
        )  # fmt: skip
        return scene.animator.add(made)

    async def add_video_async(self, stream: VideoInput, /, **properties: NodeArgument) -> VideoNode:
        """Add a video as ``add_video`` does, without blocking the event loop.

        A thread opens the file, URL or camera; the node is made on the loop's thread.

        >>> import asyncio
        >>> import dala
        >>> async def main():
        ...     with dala.media.Scene(64, 36, device="cpu") as scene:
        ...         return (await scene.add_video_async(dala.samples.video("bars"))).natural()
        >>> asyncio.run(main())
        (320.0, 240.0)
        """
        from dala.media.scene.nodes.video import SOURCE_ARGUMENTS, OpenedStream
        from dala.media.sources.open import open_source
        from dala.offload import LoopWorker

        scene = self.scene_of()._check_open("add_video_async")
        names = (*SOURCE_ARGUMENTS, "start", "end", "duration")
        options = {name: properties[name] for name in names if name in properties}

        def opened() -> Source:
            source = open_source(stream, device=scene.device, **options)  # type: ignore[arg-type]
            with contextlib.suppress(Exception):  # the first render reports it
                _ = source.size  # may wait for the first frame
            return source

        source = await LoopWorker("dala source").opened(opened)
        try:
            made = self.add_video(OpenedStream(stream, source), **properties)  # type: ignore[arg-type]
        except BaseException:
            source.close()
            raise
        return made

    def add_node(
        self, node_type: str | None = None, /, *args: NodeArgument, **properties: NodeArgument
    ) -> Node | Animation:
        """Add a node by its type: ``add_node("image", picture)`` is ``add_image(picture)``.

        >>> import dala
        >>> with dala.media.Scene(64, 32, device="cpu") as scene:
        ...     scene.add_node("effect", type="blur", radius=2)
        <EffectNode effect-1 at (0, 0)>
        """
        if node_type is None:
            node_type = cast("str | None", properties.pop("type", None))
        Selection(*sorted((*NODE_TYPES, "animation"))).check("add_node", "type", node_type)
        made: Node | Animation = getattr(self, f"add_{node_type}")(*args, **properties)
        return made
