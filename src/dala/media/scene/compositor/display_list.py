"""The display list: the draws of all visible nodes, back to front, kept from frame to frame.

Each visible node has an *item* in a display list, and an item has *draws*. A draw is one record of
the compositor and the picture it reads; the records of a list are in one array. Nodes report their
changes. If a node only moved, its position is written into its record. After any other change its
records are made again and replace the old ones. Only adding, removing and reordering nodes rebuild
the list. The changed rectangles are collected until the list is painted.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dala.budget import check_deadline
from dala.gpu.compute.composite import BLENDS, DRAW, GRID, NEAREST, Picture, Rect
from dala.media.scene.boxes import PlacedBox
from dala.media.scene.compositor.damage import Change, Key, common, rearranged
from dala.media.scene.compositor.framebuffers import MOST_TAPS
from dala.media.scene.nodes.effect import EffectNode
from dala.media.scene.nodes.group import GroupNode
from dala.trace.recorder import OFF, tracer

if TYPE_CHECKING:
    from dala.media.scene.compositor.drawing import NodeDrawer
    from dala.media.scene.compositor.pictures import LivePicture
    from dala.media.scene.nodes.node import Content, Node

RECORD: Final = struct.Struct("<8i16f2i4Bf4i")
assert RECORD.size == DRAW.itemsize
BLEND: Final = {name: number for number, name in enumerate(BLENDS)}
_RECT: Final = struct.Struct("<4i").unpack_from


class Draw:
    """One record of the compositor, which is one part (shadow, content, border) of a node."""

    __slots__ = ("part", "record", "rect", "version")

    def __init__(self, part: str, record: bytes, version: int = 0) -> None:
        self.part = part
        #: Its bytes; in a display list, a view of the list's array.
        self.record: bytes | memoryview = record
        #: The bounds in the record.
        self.rect: Rect = _RECT(record, 16)
        #: Version of the picture's pixels.
        self.version = version


class MovableDraw:
    """The single draw of a node relative to the node's position, so that moving it is cheap."""

    __slots__ = ("dx", "dy", "fits", "flags", "hh", "hw", "number", "opaque", "picture", "x", "y")

    def __init__(self, flags: int, place: PlacedBox, content: Content, x: float, y: float) -> None:
        #: Offset from the node's position to the center, and from there to the bounds.
        self.dx, self.dy = place.cx - x, place.cy - y
        self.hw, self.hh = reach(place)
        #: The current center.
        self.x, self.y = place.cx, place.cy
        self.picture = content.picture
        self.number = 0 if content.picture is None else content.picture.number
        self.opaque = content.opaque
        #: Whether texels map one to one to pixels if the box is on pixel boundaries; the draw then
        #: has the flag NEAREST besides ``flags``.
        self.fits = content.picture is not None and texels_fit(place)
        self.flags = flags & ~NEAREST


def texels_fit(place: PlacedBox) -> bool:
    """Return True if texels map one to one to pixels, as far as the size is concerned."""
    _, _, hw, hh, cos, sin, (u0, v0, u1, v1) = place
    same = u1 - u0 == 2 * hw and v1 - v0 == 2 * hh
    return same and cos == 1.0 and not sin and u0 % 1 == 0 and v0 % 1 == 0


def reach(place: PlacedBox, grow: float = 0.0) -> tuple[float, float]:
    """Return half the width and height of the bounds of a rotated box."""
    hw, hh = place.hw + grow, place.hh + grow
    if place.sin or place.cos < 0:
        c, s = abs(place.cos), abs(place.sin)
        edge = 0.0 if s in (0.0, 1.0) else 0.5
        hw, hh = hw * c + hh * s + edge, hw * s + hh * c + edge
    return hw, hh


def bounds(place: PlacedBox, clip: Rect, grow: float = 0.0) -> Rect | None:
    """Return the pixels that a box can touch inside a rectangle; None if there are none."""
    hw, hh = reach(place, grow)
    x0, y0 = math.floor(place.cx - hw), math.floor(place.cy - hh)
    x1, y1 = math.ceil(place.cx + hw), math.ceil(place.cy + hh)
    x0, y0, x1, y1 = common((x0, y0, x1, y1), clip)
    return (x0, y0, x1, y1) if x0 < x1 and y0 < y1 else None


def on_grid(x: float) -> float:
    """Round a position or size to a multiple of 1/256, as the compositor takes them."""
    return math.floor(x * GRID + 0.5) / GRID


def record(
    kind: int,
    place: PlacedBox,
    rect: Rect,
    flags: int = 0,
    blend: int = 0,
    opacity: float = 1.0,
    radius: float = 0.0,
    width: float = 0.0,
    color: tuple[int, int, int, int] = (0, 0, 0, 0),
    picture: Picture | None = None,
) -> bytes:
    """Return the record of a draw, as the compositor reads it."""
    u0, v0, u1, v1 = place.crop
    sx, sy, number, across, down = 0.0, 0.0, 0, 1, 1
    if picture is not None:
        sx, sy = (u1 - u0) / (2 * place.hw), (v1 - v0) / (2 * place.hh)
        number = picture.number
        if sx > 2 or sy > 2:
            across = min(max(1, math.ceil(sx / 2 - 1e-6)), MOST_TAPS)
            down = min(max(1, math.ceil(sy / 2 - 1e-6)), MOST_TAPS)
    return RECORD.pack(
        kind, blend, flags, number, *rect,
        on_grid(place.cx), on_grid(place.cy), place.cos, place.sin, on_grid(place.hw),
        on_grid(place.hh), on_grid(radius), on_grid(width),
        sx, sy, u0, v0, u0, v0, u1, v1, across, down, *color, opacity, 0, 0, 0, 0,
    )  # fmt: skip


@dataclass(eq=False, repr=False, slots=True)
class DisplayItem:
    """The entry of a node in a display list: its draws and their intermediate pictures."""

    node: Node
    layer: DisplayList
    #: Offset and clip of the flattened groups around the node.
    dx: float = 0.0
    dy: float = 0.0
    clip: Rect = (0, 0, 0, 0)
    draws: list[Draw] = field(default_factory=list)
    #: Index of the first draw in the list.
    start: int = 0
    stale: bool = False
    #: Whether only the position, or the pixels of the picture, changed; and that picture.
    moved: bool = False
    repainted: LivePicture | None = None
    #: The draw, if it is the only one and can be moved without being made again.
    movable: MovableDraw | None = None
    #: For an effect on everything below: its nodes, first to last.
    below: list[EffectNode] = field(default_factory=list)
    #: For a group that is drawn into a picture of its own: its display list; in a transition of a
    #: timeline, that of the node that comes in too.
    inner: list[DisplayList] = field(default_factory=list)
    #: Surfaces, filters, pictures and keys of the item; the name decides the type.
    work: dict[str, Any] = field(default_factory=dict)

    def touch(self, moved: bool = False) -> None:
        """Mark the item's draws, and those of the groups around it, as out of date."""
        if not moved:
            self.moved = False
        if not self.stale:
            self.stale = True
            self.moved = moved
            self.layer.stale.append(self)
            if self.layer.owner is not None:
                self.layer.owner.touch()

    def repaint(self, picture: LivePicture) -> None:
        """Mark the pixels of the node's picture as changed, and nothing else."""
        self.touch(moved=True)
        self.repainted = picture

    def drop(self) -> None:
        """Free the resources of the item."""
        for node in (self.node, *self.below):
            if node.display_item is self:
                node.display_item = None
        for thing in self.work.values():
            if hasattr(thing, "close"):
                thing.close()
        self.work.clear()
        for layer in self.inner:
            layer.drop()
        self.inner.clear()


class DisplayList:
    """The draws onto one picture: that of the scene, or of a group."""

    def __init__(self, width: int, height: int, owner: DisplayItem | None = None) -> None:
        self.width = width
        self.height = height
        #: The whole picture.
        self.rect: Rect = (0, 0, width, height)
        self.owner = owner
        self.items: list[DisplayItem] = []
        self.stale: list[DisplayItem] = []
        #: Items that are effects on everything below.
        self.effects: list[DisplayItem] = []
        #: All draws, back to front, and their records in one array.
        self.draws: list[Draw] = []
        self.array = np.zeros(0, DRAW)
        self.keys: list[Key] = []
        #: Changes since the list was painted last.
        self.changes: list[Change] = []
        #: The keys at that time, if they are different now.
        self.before: list[Key] | None = None
        #: Changes whenever draws are added, removed or reordered.
        self.serial = 0
        self._memory = memoryview(bytearray())
        #: Whether the array has to be built again.
        self.order_changed = True

    # order ------------------------------------------------------------------------------------
    def build(self, nodes: list[Node]) -> None:
        """List nodes again, back to front; items of nodes still there are kept."""
        old = {item.node: item for item in self.items}
        self.items, self.effects = [], []
        self._walk(nodes, 0.0, 0.0, self.rect, old)
        for gone in old.values():
            gone.drop()
        self.stale = [item for item in self.items if item.stale]
        self.order_changed = True

    def _walk(
        self, nodes: list[Node], dx: float, dy: float, clip: Rect, old: dict[Node, DisplayItem]
    ) -> None:
        for node in nodes:
            effect = node if isinstance(node, EffectNode) else None
            if (
                not node.present
                or not node.property_values["visible"]
                or (effect is not None and effect.input is not None)
            ):
                continue
            if isinstance(node, GroupNode) and node.flat:
                left, top, w, h = node.box
                x, y = left + dx, top + dy
                inner = common(clip, (round(x), round(y), round(x + w), round(y + h)))
                self._walk(node.ordered(), x, y, inner, old)
                continue
            if effect is not None and self._joins(effect):
                continue
            item = old.pop(node, None) or DisplayItem(node, self)
            if (item.dx, item.dy, item.clip) != (dx, dy, clip) or node.display_item is not item:
                item.dx, item.dy, item.clip = dx, dy, clip
                item.stale, item.moved = True, False
            node.display_item = item
            if effect is not None:
                item.below = [effect]
                item.stale, item.moved = True, False
                self.effects.append(item)
            elif isinstance(node, GroupNode):
                width, height = map(int, node.canvas)
                layers = node.layers()
                while len(item.inner) < len(layers):
                    item.inner.append(DisplayList(width, height, item))
                while len(item.inner) > len(layers):
                    item.inner.pop().drop()
                for inner_list, inside in zip(item.inner, layers, strict=True):
                    inner_list.build(inside)
                item.stale, item.moved = True, False
            self.items.append(item)

    def _joins(self, node: EffectNode) -> bool:
        """Return True if an effect was added to the filter list of the effect just below it."""
        last = self.items[-1] if self.items else None
        if last is None or not last.below or not last.below[-1].joins(node):
            return False
        last.below.append(node)
        node.display_item = last
        last.stale = True
        return True

    def drop(self) -> None:
        """Free the resources of all items."""
        for item in self.items:
            item.drop()
        self.items, self.effects, self.stale = [], [], []

    # records ----------------------------------------------------------------------------------
    def refresh(self, drawer: NodeDrawer) -> None:
        """Update the draws of stale items and record the changes."""
        stale, self.stale = self.stale, []
        for number, item in enumerate(stale):
            try:
                check_deadline("Scene.render")
                if not item.moved or self.order_changed or not drawer.move(item):
                    with tracer.span("compose", item.node.id) if tracer.on else OFF:
                        self._take(item, drawer.draws(item))
            except BaseException:
                self.stale = stale[number:]  # they are still stale if the frame fails
                raise
            item.stale, item.repainted = False, None
        if self.order_changed:
            self._lay_out()

    def _take(self, item: DisplayItem, made: list[Draw]) -> None:
        """Replace the draws of an item, in place if there are as many of the same parts."""
        before = item.draws
        item.draws = made
        if self.order_changed or [d.part for d in made] != [d.part for d in before]:
            self.order_changed = True
            return
        size = RECORD.size
        for number, (draw, old) in enumerate(zip(made, before, strict=True), item.start):
            if draw.version != old.version or draw.record != old.record:
                self.changes.append((number, draw.rect))
                if old.rect != draw.rect:
                    self.changes.append((number, old.rect))
            place = self._memory[number * size : (number + 1) * size]
            place[:] = draw.record
            self.draws[number], draw.record = draw, place

    def _lay_out(self) -> None:
        """Build the list of all draws and their array."""
        before, keys = self.draws, self.keys
        self.draws, self.keys = [], []
        for item in self.items:
            item.start = len(self.draws)
            self.draws += item.draws
            self.keys += [(item.node.serial, d.part) for d in item.draws]
        memory = bytearray(b"".join(d.record for d in self.draws))
        # Earlier changes have the indices of the old list.
        places = {key: number for number, key in enumerate(self.keys)}
        self.changes = [
            (places.get(keys[number], -1) if number >= 0 else -1, rect)
            for number, rect in self.changes
        ]
        self.changes += rearranged(keys, before, self.keys, self.draws)
        self.before = keys if self.before is None else self.before
        self._memory = memoryview(memory)
        self.array = np.frombuffer(memory, DRAW)
        size = RECORD.size
        for number, draw in enumerate(self.draws):
            draw.record = self._memory[number * size : (number + 1) * size]
        self.serial += 1
        self.order_changed = False

    def invalidate(self) -> None:
        """Mark the whole picture as changed."""
        self.changes.append((-1, self.rect))

    def painted(self) -> None:
        """Clear the changes after painting."""
        self.changes, self.before = [], None
