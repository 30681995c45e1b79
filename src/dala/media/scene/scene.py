"""Scenes: video, pictures, text and effects composed into frames.

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
import operator
from contextlib import suppress
from fractions import Fraction
from time import perf_counter
from typing import Any, Self, TypeVar
from weakref import WeakKeyDictionary

from dala.errors import FreedError, ParameterError, did_you_mean
from dala.gpu.compute.composite import Compositor
from dala.media.frame import Frame
from dala.media.scene.animation.animation import Animation, Animator
from dala.media.scene.builder import Adding
from dala.media.scene.clock import Clock, Rate
from dala.media.scene.compositor.base import Base
from dala.media.scene.compositor.canvas import Pool
from dala.media.scene.compositor.damage import area
from dala.media.scene.compositor.display import Layer
from dala.media.scene.compositor.drawing import Drawer
from dala.media.scene.compositor.painting import due_effects, paint
from dala.media.scene.compositor.pictures import Shown
from dala.media.scene.layouts import Arranging
from dala.media.scene.nodes.effect import EffectNode
from dala.media.scene.nodes.group import GroupNode
from dala.media.scene.nodes.image import ImageNode
from dala.media.scene.nodes.node import Node
from dala.media.scene.nodes.properties import color, one_of
from dala.media.scene.nodes.video import SceneNode
from dala.media.scene.output import Output
from dala.media.texture import Texture, TexturePool
from dala.resources import Closing, track, untrack

AnyNode = TypeVar("AnyNode", bound=Node)

#: Bytes of textures that a scene keeps, unless it is given a pool.
TEXTURES = 1 << 30


class Scene(Closing, Adding, Arranging, Output):
    """Nodes on a picture of a size, drawn at a time. Not thread-safe: one user at a time.

    Args:
        width: of the picture.
        height: of the picture.
        background: a colour; "transparent" keeps alpha.
        fps: frames a second of ``render()`` without a time.
        device: where to draw; the current device where left out.
        blend_space: "srgb", as the web does, or "linear" light.

    ``render()`` gives frames one after another, ``render(time)`` the one of a time. Nothing is
    drawn where nothing changed, and only rectangles that did. See ``docs/design/scenes.md``.
    """

    def __init__(
        self,
        width: int,
        height: int,
        *,
        background: Any = "black",
        fps: Any = 30,
        device: str | None = None,
        blend_space: str = "srgb",
    ) -> None:
        self._closed = True
        self.width, self.height = _side("width", width), _side("height", height)
        self._background = color(background, "Scene: background")
        self._blend_space = one_of(("srgb", "linear"))(blend_space, "Scene: blend_space")
        self._clock = Clock(fps)
        self.fps = fps
        self._compositor = Compositor(device)
        linear = self._blend_space == "linear"
        self._drawer = Drawer(self._compositor, linear)
        self._base = Base(self._compositor, self._background, self._drawer.flags)
        self._pool = Pool(self._compositor, self.width, self.height)
        self._layer = Layer(self.width, self.height)
        #: Seconds that ``render_to`` makes where it is not told.
        self.duration: float | None = None
        self._serials = itertools.count()
        self._nodes: dict[str, Node] = {}
        self._movers: list[Any] = []
        self._ordered = False
        self._rate = Rate()
        self._shown: WeakKeyDictionary[Texture, Shown] = WeakKeyDictionary()
        self._textured = False
        self._textures: TexturePool | None = None
        self._own_textures: TexturePool | None = None
        self._root = GroupNode(self, None, None, {"id": "scene"})
        #: Sets animated properties when the scene's time moves.
        self.animator = Animator()
        #: What went wrong last in the source of a node, by the node's id; in an animation, by
        #: "animation".
        self.errors: dict[str, Exception] = {}
        #: Frames handed out, drawn or not.
        self.frame_count = 0
        #: Frames for which nothing had to be drawn.
        self.frames_skipped = 0
        #: Frames that ``play`` left out because it was late.
        self.frames_dropped = 0
        self._facts: dict[str, Any] = {"draws": 0, "dirty_pixels": 0, "ms": 0.0}
        self._closed = False
        track("scene", self.device, 0)

    # facts ------------------------------------------------------------------------------------
    @property
    def device(self) -> str:
        """Id of the device it is drawn on."""
        return self._compositor.device

    @property
    def time(self) -> float:
        """Seconds of the last frame; 0 before the first."""
        return 0.0 if self._clock.time is None else self._clock.time

    @property
    def nodes(self) -> dict[str, Node]:
        """All nodes by their ids, in the order they were added."""
        return dict(self._nodes)

    @property
    def background(self) -> tuple[int, int, int, int]:
        """The colour below everything, (r, g, b, a); it can be set."""
        return self._background

    @background.setter
    def background(self, value: Any) -> None:
        self._background = color(value, "Scene: background")
        self._base.close()
        self._base = Base(self._compositor, self._background, self._drawer.flags)
        self._layer.lose()

    @property
    def textures(self) -> TexturePool:
        """The scene's TexturePool, of its own; another can be set, which scenes may share."""
        if self._textures is None:
            self._textures = self._own_textures = TexturePool(TEXTURES, device=self.device)
        return self._textures

    @textures.setter
    def textures(self, pool: TexturePool) -> None:
        if not isinstance(pool, TexturePool):
            raise ParameterError(f"Scene.textures: a TexturePool is expected, {pool!r} came.")
        self._textures = pool

    @property
    def stats(self) -> dict[str, Any]:
        """Of the last frame: draws in the list, pixels drawn again, milliseconds. And in all."""
        return {
            **self._facts,
            "ms": round(self._facts["ms"], 4),
            "skipped": self.frames_skipped,
            "dropped": self.frames_dropped,
            "cached": self._base.count,
            "frames": self.frame_count,
            "fps": round(self._rate.fps, 2),
            "framebuffers": len(self._pool.canvases),
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
        """The picture at a time, in seconds; left out, one frame after the last, the first at 0.

        The frame stays as it is for as long as you hold it or an array over it, and can only be
        read: copy it to draw on it. Where nothing has changed it is the last picture again, with
        the new time.
        """
        begin = perf_counter()
        if self._closed:
            self._check_open("Scene.render")
        moment = self._clock.moment(time)
        with self._compositor.together():
            self.animator.advance(moment.seconds)
            if self.animator.error is not None:
                self.errors["animation"] = self.animator.error
            for node in list(self._movers):
                node.advance(moment)
            if self._textured and any(t.version != s.seen for t, s in self._shown.items()):
                self._see_textures()
            self._draw()
        self._clock.move(moment)
        self.frame_count += 1
        front = self._pool.front
        assert front is not None
        frame = Frame._of(front.lend(), self.width, self.height, moment.pts, moment.time_base)
        now = perf_counter()
        self._rate.tick(now)
        self._facts["ms"] = (now - begin) * 1000
        return frame

    def _draw(self) -> None:
        """Brings a framebuffer to the present, unless the last one is."""
        layer, drawer, facts = self._layer, self._drawer, self._facts
        drawer.passes = drawer.filtered = 0
        if not self._ordered:
            layer.build(self._root)
            self._ordered = True
        if layer.stale or layer._scattered:
            layer.refresh(drawer)
        pool, base = self._pool, self._base
        if not layer.changes and pool.front is not None:
            self.frames_skipped += 1
            facts.update(
                draws=len(layer.draws), passes=drawer.passes, filtered=drawer.filtered,
                dirty_pixels=0,
            )  # fmt: skip
            return
        due = due_effects(layer, self._background[3] < 255) if layer.effects else []
        rects = [rect for _, rect in layer.changes]
        pool.miss(rects)
        if base.made and pool.full:
            base.close()  # a framebuffer more takes its place: there are two, whatever they are for
        surface = pool.take().surface
        if len(pool.canvases) == 1:
            base.see(layer)
            base.consider(layer, rects)
        facts["dirty_pixels"] = paint(drawer, layer, surface, due, self._background, base)
        facts["draws"], facts["passes"] = len(layer.draws), drawer.passes
        facts["filtered"] = drawer.filtered
        layer.painted()
        if self.frame_count % 32 == 31:
            pool.trim()

    def explain(self) -> str:
        """What the last frame was made of: draws back to front, and what was done for them."""
        self._check_open("Scene.explain")
        facts = self.stats
        whole = area(self._layer.rect)
        lines = [
            f"scene {self.width}x{self.height} on {self.device}: {facts['nodes']} nodes, "
            f"{facts['draws']} draws, {len(self._pool.canvases)} framebuffers",
            f"last frame: {facts['ms']:.3f} ms, {facts['dirty_pixels']} of {whole} pixels drawn, "
            f"{facts.get('passes', 0)} own pictures, {facts.get('filtered', 0)} filter lists",
        ]
        if self._base.count:
            lines.append(f"kept as one picture: the lowest {self._base.count} draws")
        lines += _described(self._layer, "  ")
        return "\n".join(lines)

    # nodes ------------------------------------------------------------------------------------
    def remove_node(self, node: Node | Animation | str) -> None:
        """Takes a node out, with its effects and animations, and what is in it if it is a group."""
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
            found._touch()
        self.animator.cancel_all(found)
        assert found.parent is not None
        found.parent.children.remove(found)
        del self._nodes[found.id]
        self._movers = [m for m in self._movers if m is not found]
        self.errors.pop(found.id, None)
        self._ordered = False
        found.release()

    # for nodes --------------------------------------------------------------------------------
    def _into(self) -> GroupNode:
        return self._root

    def _scene_of(self) -> Self:
        return self

    def _enter(self, node: AnyNode) -> AnyNode:
        """A node that was made is part of the scene from now on."""
        assert node.parent is not None
        node.parent.children.append(node)
        self._nodes[node.id] = node
        if isinstance(node, EffectNode) and node.input is not None:
            node.input.effects.append(node)
            node.input.effects.sort(key=lambda e: (e._values["z_index"], e.serial))
        if hasattr(node, "advance"):
            self._movers.append(node)
        self._ordered = False
        if isinstance(node, EffectNode):
            node._touch()
        return node

    def _next_serial(self) -> int:
        return next(self._serials)

    def _checked_id(self, id: Any, type: str, serial: int) -> str:
        if id is None:
            made = f"{type}-{serial}"
            while made in self._nodes:
                made += "+"
            return made
        if not isinstance(id, str) or not id:
            raise ParameterError(f"add_{type}: id is a text, {id!r} came.")
        if id in self._nodes:
            raise ParameterError(f"add_{type}: there is a node {id!r} already. Choose another id.")
        return id

    def _find(self, node: Any, call: str) -> Node:
        if isinstance(node, str):
            found = self._nodes.get(node)
            if found is None:
                hint = did_you_mean(node, self._nodes) or f"There are {len(self._nodes)} nodes."
                raise ParameterError(f"{call}: there is no node {node!r}. {hint}")
            return found
        if not isinstance(node, Node):
            raise ParameterError(f"{call}: a node or its id is expected, {node!r} came.")
        if self._nodes.get(node.id) is not node:
            raise ParameterError(f"{call}: {node!r} is not in this scene, or was removed.")
        return node

    def _reorder(self) -> None:
        self._ordered = False

    def _report(self, node: Node, error: Exception) -> None:
        self.errors[node.id] = error

    def _shown_of(self, texture: Texture) -> Shown:
        """The one picture of a texture, however many nodes show it."""
        found = self._shown.get(texture)
        if found is None:
            found = self._shown[texture] = Shown(self._compositor)
            self._textured = True
        return found

    def _see_textures(self) -> None:
        """Textures got other pixels: the nodes that show them are to be drawn again."""
        old = [texture for texture, shown in self._shown.items() if texture.version != shown.seen]
        images = [node for node in self._nodes.values() if isinstance(node, ImageNode)]
        for texture in old:
            showing = [node for node in images if node.texture is texture]
            if not showing:
                del self._shown[texture]
            for node in showing:
                node.content()
                node._changed()

    def _holds(self, scene: Scene) -> bool:
        """Whether a scene is inside this one, however deep."""
        inside = [n.child for n in self._nodes.values() if isinstance(n, SceneNode)]
        return any(child is scene or child._holds(scene) for child in inside)

    # end --------------------------------------------------------------------------------------
    def _check_open(self, call: str) -> None:
        if self._closed:
            raise FreedError(f"{call}: the scene was closed. Make a new one.")

    def close(self) -> None:
        """Closes sources and frees everything; frames that were handed out stay."""
        if self._closed:
            return
        self._closed = True
        untrack("scene", self.device, 0)
        self.animator.cancel_all()
        for node in self._nodes.values():
            with suppress(Exception):  # one source that cannot be closed keeps no other open
                node.release()
        self._layer.drop()
        self._base.close()
        self._pool.close()
        if self._own_textures is not None:
            self._own_textures.close()
        self._shown.clear()
        self._nodes.clear()
        self._movers.clear()
        self._compositor.close()

    def __del__(self) -> None:
        # All that it holds frees itself; here nothing may wait, wherever the collector runs.
        with suppress(Exception):  # one whose __init__ failed has little; at exit modules are gone
            if not self._closed:
                self._closed = True
                untrack("scene", self.device, 0)


def _described(layer: Layer, indent: str) -> list[str]:
    lines = []
    for item in layer.items:
        name = " + ".join(e.name for e in item.below) if item.below else item.node.type
        parts = ", ".join(d.part for d in item.draws) or "nothing to see"
        lines.append(f"{indent}{item.node.id} ({name}): {parts}")
        if item.node.effects:
            lines.append(f"{indent}  effects: {' + '.join(e.name for e in item.node.effects)}")
        if item.inner is not None:
            lines += _described(item.inner, indent + "  ")
    return lines


def _side(name: str, value: Any) -> int:
    try:
        side = -1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        side = -1
    if not 1 <= side <= 16384:
        raise ParameterError(f"Scene: {name} is a whole number of 1 to 16384, {value!r} came.")
    return side
