"""Scenes: video, images, text and effects composed into frames.

>>> import numpy as np
>>> from dala.media.scene import Scene
>>> with Scene(8, 4, background="navy", device="cpu") as scene:
...     badge = scene.add_overlay(color="white", position=(2, 1), size=(2, 2), opacity=0.5)
...     frame = scene.render()
...     np.asarray(frame)[1, 2].tolist(), np.asarray(frame)[0, 0].tolist()
([128, 128, 192, 255], [0, 0, 128, 255])
"""

from __future__ import annotations

import itertools
from contextlib import suppress
from fractions import Fraction
from time import perf_counter
from typing import Self, TypeVar
from weakref import WeakKeyDictionary, WeakSet

from dala import forks
from dala.arguments import Integer
from dala.budget import Charging, check_deadline
from dala.errors import FreedError, ParameterError, did_you_mean
from dala.gpu.compute.call.instant import Instant
from dala.gpu.compute.composite import Compositor
from dala.media.frame import Frame
from dala.media.scene.animation.animation import Animation, Animator
from dala.media.scene.animation.presence import Presence
from dala.media.scene.compositor.base_layer import BaseLayer
from dala.media.scene.compositor.display_list import DisplayList
from dala.media.scene.compositor.drawing import NodeDrawer
from dala.media.scene.compositor.framebuffers import FramebufferPool
from dala.media.scene.compositor.painting import due_effects, paint
from dala.media.scene.compositor.pictures import LivePicture
from dala.media.scene.follow.follower import is_real_time
from dala.media.scene.follow.following import Followers, Following
from dala.media.scene.layouts import Layouts
from dala.media.scene.nodes import builtin  # noqa: F401
from dala.media.scene.nodes.effect import EffectNode, is_backdrop, join_chain
from dala.media.scene.nodes.group import GroupNode
from dala.media.scene.nodes.image import ImageNode
from dala.media.scene.nodes.nested import SceneNode
from dala.media.scene.nodes.node import Node
from dala.media.scene.nodes.property_types import ChoiceType, ColorType, Rgba
from dala.media.scene.nodes.timeline import TimelineClip
from dala.media.scene.options import Clock, FrameRateMeter
from dala.media.scene.output import SceneOutput
from dala.media.scene.report import SceneReport
from dala.media.scene.sound.ducking import Duck
from dala.media.scene.sound.methods import SceneSounds
from dala.media.sources.seconds import Moment
from dala.media.texture import Texture, TexturePool
from dala.memory import new_accounts
from dala.resources import Closing, track, untrack
from dala.trace.recorder import Holding, traced, tracer
from dala.typing import ColorLike

AnyNode = TypeVar("AnyNode", bound=Node)

#: Budget of a scene's own texture pool, in bytes.
TEXTURE_BYTES = 1 << 30
_SIDE = Integer(1, 16384)
#: The color space that colors are blended in.
BLEND_SPACE = ChoiceType(("srgb", "linear"))


class Scene(Closing, Layouts, Following, SceneOutput, SceneReport, SceneSounds):
    """A composition of nodes, rendered to frames.

    ``render()`` returns one frame after another, ``render(time)`` the frame of a time. Only the
    rectangles that changed are drawn again, and nothing if nothing changed. A scene is not
    thread-safe: use it from one thread at a time.

    Args:
        width: width of the frames, in pixels.
        height: height of the frames, in pixels.
        background: background color; "transparent" keeps alpha.
        fps: frame rate of ``render()`` without a time: 30, 29.97 or "30000/1001".
        device: the device to draw on; by default the current one.
        blend_space: "srgb", as browsers blend, or "linear".
        memory: the memory that the scene may use for its pictures, groups and effects: bytes, or
            text such as "2 GiB"; by default a quarter of the machine's, or 1 GiB. What would exceed
            it is refused with MemoryLimitExceeded. Frames that you keep do not count.

    >>> with Scene(64, 36, background="navy", device="cpu") as scene:
    ...     title = scene.add_overlay(color="white", position="center", size=(16, 8))
    ...     scene.render().shape
    (36, 64, 4)
    """

    _instead = "Save it with scene.save(path), and use load_scene(path) there."

    def __init__(
        self,
        width: int,
        height: int,
        *,
        background: ColorLike = "black",
        fps: float | str | Fraction = 30,
        device: str | None = None,
        blend_space: str = "srgb",
        memory: int | str | None = None,
    ) -> None:
        self._closed = True
        self.width = _SIDE.check("Scene", "width", width)
        self.height = _SIDE.check("Scene", "height", height)
        self._background: Rgba = ColorType().check("Scene", "background", background)
        self._blend_space: str = BLEND_SPACE.check("Scene", "blend_space", blend_space)
        self._clock = Clock(fps)
        self.fps = fps
        self._compositor = Compositor(device)
        #: The memory budgets that the scene counts against, its own first.
        self.accounts = self._compositor.accounts = new_accounts("Scene", "the scene", memory)
        linear = self._blend_space == "linear"
        self._drawer = NodeDrawer(self._compositor, linear)
        self._base = BaseLayer(self._compositor, self._background, self._drawer.flags)
        self._pool = FramebufferPool(self._compositor, self.width, self.height)
        self._layer = DisplayList(self.width, self.height)
        #: Seconds that ``render_to`` writes by default.
        self.duration: float | None = None
        #: Rules by which music becomes quieter under voices; ``duck`` adds one.
        self.ducks: list[Duck] = []
        #: What ``render_to`` did to the sound, for ``explain``.
        self.sound_report = ""
        self._serials = itertools.count()
        self._nodes: dict[str, Node] = {}
        #: The nodes of other scenes that show this one.
        self._shown_by: WeakSet[SceneNode] = WeakSet()
        self._ordered = False
        #: Whether frames were asked for: then all are of the scene's size.
        self._whole = False
        self._rate = FrameRateMeter()
        self._pictures: WeakKeyDictionary[Texture, LivePicture] = WeakKeyDictionary()
        self._textured = False
        self._textures: TexturePool | None = None
        self._own_textures: TexturePool | None = None
        self._lock = forks.rlock()
        self._root = GroupNode(self, None, {"id": "scene"})
        #: Sets animated properties when the scene's time changes.
        self.animator = Animator()
        #: Effects whose kernels are given the time, the frame's number or the date.
        self.timed: list[EffectNode] = []
        #: The number of the last frame, of the scene's frame rate; -1 before the first.
        self.number = -1
        self._presence = Presence(self)
        #: The nodes that follow targets.
        self.followers = Followers()
        #: The last error of each node's source by node id, and of animations under "animation".
        self.errors: dict[str, Exception] = {}
        #: Number of frames returned.
        self.frame_count = 0
        #: Number of frames for which nothing had to be drawn.
        self.frames_skipped = 0
        #: Number of frames that ``play`` dropped because they were late.
        self.frames_dropped = 0
        self._frame_stats: dict[str, float] = {"draws": 0, "dirty_pixels": 0, "ms": 0.0}
        self._closed = False
        track("scene", self.device, 0)

    # state ------------------------------------------------------------------------------------
    @property
    def device(self) -> str:
        """Id of the device that the scene is drawn on."""
        return self._compositor.device

    @property
    def time(self) -> float:
        """Time of the last frame in seconds; 0 before the first."""
        return 0.0 if self._clock.time is None else self._clock.time

    @property
    def nodes(self) -> dict[str, Node]:
        """All nodes by id, in the order they were added."""
        return dict(self._nodes)

    @property
    def background(self) -> tuple[int, int, int, int]:
        """The background color as (r, g, b, a). Any color can be assigned."""
        return self._background

    @background.setter
    def background(self, value: ColorLike) -> None:
        self._background = ColorType().check("Scene", "background", value)
        self._base.close()
        self._base = BaseLayer(self._compositor, self._background, self._drawer.flags)
        self._layer.invalidate()

    @property
    def blend_space(self) -> str:
        """The color space that colors are blended in: "srgb" or "linear"."""
        return self._blend_space

    @property
    def frame_rate(self) -> Fraction:
        """The exact frame rate."""
        return self._clock.rate

    @property
    def textures(self) -> TexturePool:
        """The scene's TexturePool. Another one can be assigned, so that scenes share it."""
        if self._textures is None:
            self._textures = self._own_textures = TexturePool(TEXTURE_BYTES, device=self.device)
        return self._textures

    @textures.setter
    def textures(self, pool: TexturePool) -> None:
        if not isinstance(pool, TexturePool):
            raise ParameterError.invalid("Scene", "textures", "a TexturePool", pool)
        self._textures = pool

    @property
    def stats(self) -> dict[str, float]:
        """Counts of the last frame (draws, pixels drawn, milliseconds) and of all frames."""
        return {
            **self._frame_stats,
            "ms": round(self._frame_stats["ms"], 4),
            "skipped": self.frames_skipped,
            "dropped": self.frames_dropped,
            "cached": self._base.count,
            "frames": self.frame_count,
            "fps": round(self._rate.fps, 2),
            "framebuffers": len(self._pool.framebuffers),
            "nodes": len(self._nodes),
        }

    def __getitem__(self, id: str) -> Node:
        return self._find(id, "Scene")

    def __repr__(self) -> str:
        state = " closed" if self._closed else ""
        size = f"{self.width}x{self.height}"
        return f"<Scene {size}, {len(self._nodes)} nodes, on {self.device}{state}>"

    # frames -----------------------------------------------------------------------------------
    def render(self, time: float | Fraction | None = None) -> Frame:
        """Return the frame of a time in seconds; by default the next one, the first at 0.

        The frame is read-only, and keeps its pixels for as long as it or an array over it exists.
        If nothing changed it is the last picture with the new time.

        >>> with Scene(8, 8, fps=10, device="cpu") as scene:
        ...     [float(scene.render().time) for _ in range(3)]
        [0.0, 0.1, 0.2]
        """
        self._whole = True
        return self._reduced_frame(time, 1)

    def _reduced_frame(self, time: float | Fraction | None, reduction: int) -> Frame:
        """Return the frame of a time, that many times smaller if nothing needs all its pixels."""
        # One frame at a time, and no changes meanwhile.
        with Holding(self._lock, "scene") if tracer.on else self._lock:
            reduction = 1 if self._whole else reduction
            if any(node.remembers for node in self.timed) and not is_real_time():
                wanted, known = self._number(self._clock.moment(time)), self.number
                first = 0 if wanted < known else known + 1
                for number in range(first, wanted):
                    self._render(number / self._clock.rate, reduction)
            return self._render(time, reduction)

    def _number(self, moment: Moment) -> int:
        return round(moment.seconds * self._clock.rate)

    @traced("compose", "scene", new=True)
    def _render(self, time: float | Fraction | None, reduction: int) -> Frame:
        begin = perf_counter()
        self._check_open("Scene.render")
        check_deadline("Scene.render")
        moment = self._clock.moment(time)
        with Charging(self.accounts), self._compositor.batched():
            self._reduce(reduction)
            self._presence.advance(moment)
            if self.animator.error is not None:
                self.errors["animation"] = self.animator.error
            if self.followers:
                self.followers.advance(moment)
            self.timed = [node for node in self.timed if self._nodes.get(node.id) is node]
            number = self._number(moment)
            for node in self.timed:
                node.at_moment(Instant(moment.seconds, number))
            self.number = number  # after they have compared it
            if self._textured and any(t.version != s.seen for t, s in self._pictures.items()):
                self._update_textures()
            self._draw()
        self._clock.move(moment)
        self.frame_count += 1
        front = self._pool.front
        assert front is not None
        frame = Frame(front.lend(), pts=moment.pts, time_base=moment.time_base)
        now = perf_counter()
        self._rate.tick(now)
        self._frame_stats["ms"] = (now - begin) * 1000
        return frame

    def _reduce(self, reduction: int) -> None:
        """Draw that many times smaller from now on; inner scenes read it before they are drawn."""
        if reduction > 1 and any(map(is_backdrop, self._nodes.values())):
            reduction = 1  # effects on everything below are measured in pixels
        if self._pool.reduce(reduction):
            self._base.close()
            self._layer.invalidate()

    def _draw(self) -> None:
        """Update a framebuffer, unless nothing changed since the last frame."""
        layer, drawer, stats = self._layer, self._drawer, self._frame_stats
        drawer.passes = drawer.filtered = 0
        if not self._ordered:
            layer.build(self._root.ordered())
            self._ordered = True
        if layer.stale or layer.order_changed:
            layer.refresh(drawer)
        if not layer.changes and self._pool.front is not None:
            self.frames_skipped += 1
            stats["dirty_pixels"] = 0
        else:
            stats["dirty_pixels"] = self._paint()
        stats["draws"], stats["passes"] = len(layer.draws), drawer.passes
        stats["filtered"] = drawer.filtered

    def _paint(self) -> int:
        """Paint the changes onto a framebuffer; return the number of pixels drawn."""
        layer, pool, base = self._layer, self._pool, self._base
        due = due_effects(layer, self._background[3] < 255) if layer.effects else []
        rects = [rect for _, rect in layer.changes]
        pool.add_damage(rects)
        if base.made and pool.full:
            base.close()  # its memory is better spent on the second framebuffer
        surface = pool.take().surface
        if len(pool.framebuffers) == 1 and pool.reduction == 1:
            base.note_changes(layer)
            base.consider(layer, rects)
        drawn = paint(self._drawer, layer, surface, due, self._background, base)
        layer.painted()
        if self.frame_count % 32 == 31:
            pool.trim()
        return drawn

    # nodes ------------------------------------------------------------------------------------
    def remove_node(self, node: Node | Animation | str) -> None:
        """Remove a node with its effects and animations, and a group with its nodes.

        >>> with Scene(64, 36, device="cpu") as scene:
        ...     badge = scene.add_overlay(color="white", size=(8, 8))
        ...     scene.remove_node(badge)
        ...     len(scene.nodes)
        0
        """
        self._check_open("remove_node")
        if isinstance(node, Animation):
            node.cancel()
            return
        found = self._find(node, "remove_node")
        if isinstance(found, GroupNode):
            for child in list(found.children):
                if child.id in self._nodes:
                    self.remove_node(child)
        for effect in list(found.effects):
            self.remove_node(effect)
        if isinstance(found, EffectNode) and found.input is not None:
            found.input.effects.remove(found)
            found.touch()
        self.animator.cancel_all(found)
        self.followers.drop(found)
        assert found.parent is not None
        found.parent.disown(found)
        del self._nodes[found.id]
        self.ducks = [d for d in self.ducks if found is not d.music and found not in d.under]
        self.errors.pop(found.id, None)
        self._retime()
        found.release()

    def container(self) -> GroupNode:
        """Return the group of the scene's own nodes."""
        return self._root

    def scene_of(self) -> Self:
        """Return this scene."""
        return self

    # for nodes --------------------------------------------------------------------------------

    def _enter(self, node: AnyNode, clip: TimelineClip | None = None) -> AnyNode:
        """Add a new node to the scene; ``clip`` is its entry in its timeline."""
        assert node.parent is not None
        try:
            node.parent.adopt(node, clip)
        except BaseException:
            node.release()
            raise
        self._nodes[node.id] = node
        if isinstance(node, EffectNode) and node.input is not None:
            join_chain(node, node.input.effects)
        self._retime()
        if isinstance(node, EffectNode):
            node.touch()
        try:
            node.entered()
        except BaseException:
            self.remove_node(node)
            raise
        return node

    def _checked_id(self, id: str | None, type: str, serial: int) -> str:
        if id is None:
            made = f"{type}-{serial}"
            while made in self._nodes:
                made += "+"
            return made
        if not isinstance(id, str) or not id:
            raise ParameterError.invalid(
                f"add_{type}", "id", "a string of at least one character", id
            )
        if id in self._nodes:
            raise ParameterError(f"add_{type}: there is already a node {id!r}. Choose another id.")
        return id

    def _find(self, node: Node | str, call: str) -> Node:
        if isinstance(node, str):
            found = self._nodes.get(node)
            if found is None:
                hint = did_you_mean(node, self._nodes) or f"There are {len(self._nodes)} nodes."
                raise ParameterError(f"{call}: there is no node {node!r}. {hint}")
            return found
        if not isinstance(node, Node):
            raise ParameterError.invalid(call, "node", "a node or its id", node)
        if self._nodes.get(node.id) is not node:
            raise ParameterError(f"{call}: {node!r} is not in this scene (any more).")
        return node

    def _reorder(self) -> None:
        self._ordered = False

    def _retime(self) -> None:
        self._ordered = False
        self._presence.refresh()

    def _report(self, node: Node, error: Exception) -> None:
        self.errors[node.id] = error

    def _picture_of(self, texture: Texture) -> LivePicture:
        """Return the one picture of a texture, which all nodes that show it share."""
        found = self._pictures.get(texture)
        if found is None:
            found = self._pictures[texture] = LivePicture(self._compositor)
            self._textured = True
        return found

    def _update_textures(self) -> None:
        """Draw the nodes again whose textures have new pixels."""
        old = [texture for texture, live in self._pictures.items() if texture.version != live.seen]
        images = [node for node in self._nodes.values() if isinstance(node, ImageNode)]
        for texture in old:
            showing = [node for node in images if node.texture is texture]
            if not showing:
                del self._pictures[texture]
            for node in showing:
                node.content()
                node.changed()

    # closing ----------------------------------------------------------------------------------
    def _check_open(self, call: str) -> Self:
        """Return the scene; raise if it is closed."""
        if self._closed:
            raise FreedError(f"{call}: the scene is closed. Create a new one.")
        return self

    def close(self) -> None:
        """Close all sources and free all memory. Frames that were returned stay valid.

        >>> scene = Scene(64, 36, device="cpu")
        >>> scene.close()
        """
        with self._lock:  # after the frame that a thread renders
            if not self._closed:
                self._close()

    def _close(self) -> None:
        self._closed = True
        untrack("scene", self.device, 0)
        self.animator.cancel_all()
        self.followers.clear()
        for node in self._nodes.values():
            with suppress(Exception):  # close the others even if one fails
                node.release()
        self._layer.drop()
        self._base.close()
        self._pool.close()
        if self._own_textures is not None:
            self._own_textures.close()
        self._pictures.clear()
        self._nodes.clear()
        self._presence.refresh()
        self._compositor.close()

    def __del__(self) -> None:
        # The parts free themselves. Finalizers must not block, so this only updates the count.
        with suppress(Exception):  # __init__ may have failed, or the interpreter is exiting
            if not self._closed:
                self._closed = True
                untrack("scene", self.device, 0)
