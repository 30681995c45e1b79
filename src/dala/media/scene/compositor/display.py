"""The display list: what every visible node becomes, flat, back to front, kept from frame to frame.

A node is an *item* of a layer; an item has *draws*, each a record of the compositor with the
picture it reads. The records of a layer lie in one array. Nodes say when they change, and nobody
asks the others: one that only moved has its place written into its record, any other has its
records made again and put where the old ones were; only adding, removing and reordering make a new
list. What looks different then is noted, with where, until the layer is painted.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dala.gpu.compute.composite import BLENDS, DRAW, NEAREST, Picture, Rect
from dala.media.scene.boxes import Placed
from dala.media.scene.compositor.damage import Change, Key, rearranged
from dala.media.scene.nodes.effect import EffectNode
from dala.media.scene.nodes.group import GroupNode

if TYPE_CHECKING:
    from dala.media.scene.compositor.drawing import Drawer
    from dala.media.scene.compositor.pictures import Shown
    from dala.media.scene.nodes.node import Content, Node

RECORD: Final = struct.Struct("<8i16f2i4Bf4i")
assert RECORD.size == DRAW.itemsize
BLEND: Final = {name: number for number, name in enumerate(BLENDS)}
_RECT: Final = struct.Struct("<4i").unpack_from
#: Samples of a pixel across or down, at most.
_MOST_TAPS: Final = 64


class Draw:
    """One record, which part of its node it is, where it is seen, and which pixels it reads."""

    __slots__ = ("part", "record", "rect", "version")

    def __init__(self, part: str, record: bytes, version: int = 0) -> None:
        self.part = part
        #: Its bytes; in a layer, their place in the layer's array.
        self.record: bytes | memoryview = record
        #: The bounds in the record.
        self.rect: Rect = _RECT(record, 16)
        #: Of the picture that is read: changes with its pixels.
        self.version = version


class Spot:
    """How the only draw of a node lies about the node's position, wherever that is, seen or not."""

    __slots__ = ("dx", "dy", "fits", "flags", "hh", "hw", "number", "opaque", "picture", "x", "y")

    def __init__(self, flags: int, place: Placed, content: Content, x: float, y: float) -> None:
        #: From the node's position to the middle, and from there to the bounds.
        self.dx, self.dy = place.cx - x, place.cy - y
        self.hw, self.hh = reach(place)
        #: The middle now.
        self.x, self.y = place.cx, place.cy
        self.picture = content.picture
        self.number = 0 if content.picture is None else content.picture.number
        self.opaque = content.opaque
        #: Whether each pixel is a texel where the box begins with whole pixels: then nothing has to
        #: be mixed, which a flag tells besides those it has anyway.
        self.fits = content.picture is not None and texels_fit(place)
        self.flags = flags & ~NEAREST


def texels_fit(place: Placed) -> bool:
    """Whether an upright box has as many pixels as it shows texels, which are whole ones."""
    _, _, hw, hh, cos, sin, (u0, v0, u1, v1) = place
    same = u1 - u0 == 2 * hw and v1 - v0 == 2 * hh
    return same and cos == 1.0 and not sin and u0 % 1 == 0 and v0 % 1 == 0


def reach(place: Placed, grow: float = 0.0) -> tuple[float, float]:
    """How far a box reaches from its middle, across and down, turned as it is."""
    hw, hh = place.hw + grow, place.hh + grow
    if place.sin or place.cos < 0:
        c, s = abs(place.cos), abs(place.sin)
        edge = 0.0 if s in (0.0, 1.0) else 0.5
        hw, hh = hw * c + hh * s + edge, hw * s + hh * c + edge
    return hw, hh


def bounds(place: Placed, clip: Rect, grow: float = 0.0) -> Rect | None:
    """The pixels a box can touch, inside a rectangle; None where there are none."""
    hw, hh = reach(place, grow)
    x0 = max(clip[0], math.floor(place.cx - hw))
    y0 = max(clip[1], math.floor(place.cy - hh))
    x1 = min(clip[2], math.ceil(place.cx + hw))
    y1 = min(clip[3], math.ceil(place.cy + hh))
    return (x0, y0, x1, y1) if x0 < x1 and y0 < y1 else None


def record(
    kind: int,
    place: Placed,
    rect: Rect,
    flags: int = 0,
    blend: int = 0,
    opacity: float = 1.0,
    radius: float = 0.0,
    width: float = 0.0,
    color: tuple[int, int, int, int] = (0, 0, 0, 0),
    picture: Picture | None = None,
) -> bytes:
    """The bytes of a draw of the compositor."""
    u0, v0, u1, v1 = place.crop
    sx, sy, number, across, down = 0.0, 0.0, 0, 1, 1
    if picture is not None:
        sx, sy = (u1 - u0) / (2 * place.hw), (v1 - v0) / (2 * place.hh)
        number = picture.number
        if sx > 2 or sy > 2:
            across = min(max(1, math.ceil(sx / 2 - 1e-6)), _MOST_TAPS)
            down = min(max(1, math.ceil(sy / 2 - 1e-6)), _MOST_TAPS)
    return RECORD.pack(
        kind, blend, flags, number, *rect,
        place.cx, place.cy, place.cos, place.sin, place.hw, place.hh, radius, width,
        sx, sy, u0, v0, u0, v0, u1, v1, across, down, *color, opacity, 0, 0, 0, 0,
    )  # fmt: skip


class Item:
    """A node in a layer: where that lies, its draws, and what had to be made for them."""

    __slots__ = (
        "below", "clip", "draws", "dx", "dy", "inner", "layer", "moved", "node", "repainted",
        "spot", "stale", "start", "work",
    )  # fmt: skip

    def __init__(self, node: Node, layer: Layer) -> None:
        self.node = node
        self.layer = layer
        #: Offset of the flattened groups around the node, and what they leave to be seen.
        self.dx = self.dy = 0.0
        self.clip: Rect = (0, 0, 0, 0)
        self.draws: list[Draw] = []
        #: Number of the first draw in the layer.
        self.start = 0
        self.stale = False
        #: True when nothing but the node's position and the pixels of its picture changed since its
        #: draws were made, and the picture if its pixels did.
        self.moved = False
        self.repainted: Shown | None = None
        #: How its draw follows the node; None where it may have others than the node's content.
        self.spot: Spot | None = None
        #: The nodes of an effect on everything below, first to last.
        self.below: list[EffectNode] = []
        #: The layer of a group that is drawn into a picture of its own.
        self.inner: Layer | None = None
        #: Surfaces and filters that stay while the item does, by name.
        self.work: dict[str, Any] = {}

    def touch(self, moved: bool = False) -> None:
        """The item's draws are to be made again, and those of the groups around it."""
        if not moved:
            self.moved = False
        if not self.stale:
            self.stale = True
            self.moved = moved
            self.layer.stale.append(self)
            if self.layer.owner is not None:
                self.layer.owner.touch()

    def repaint(self, shown: Shown) -> None:
        """The picture of the node has other pixels, and nothing else of it changed."""
        self.touch(moved=True)
        self.repainted = shown

    def drop(self) -> None:
        """Gives back what was made for the item."""
        if self.node._item is self:
            self.node._item = None
        for node in self.below:
            if node._item is self:
                node._item = None
        for thing in self.work.values():
            if hasattr(thing, "close"):
                thing.close()
        self.work.clear()
        if self.inner is not None:
            self.inner.drop()
            self.inner = None


class Layer:
    """The draws onto one picture: the scene's, or that of a group."""

    def __init__(self, width: int, height: int, owner: Item | None = None) -> None:
        self.width = width
        self.height = height
        #: All of it.
        self.rect: Rect = (0, 0, width, height)
        self.owner = owner
        self.items: list[Item] = []
        self.stale: list[Item] = []
        #: Items that are effects on everything below.
        self.effects: list[Item] = []
        #: All draws, back to front, and their records one after the other.
        self.draws: list[Draw] = []
        self.array = np.zeros(0, DRAW)
        self.keys: list[Key] = []
        #: What looks different since the layer was painted last.
        self.changes: list[Change] = []
        #: The keys as they were then, if they are others now.
        self.before: list[Key] | None = None
        #: Changes whenever draws come, go or move in the list.
        self.serial = 0
        self._memory = memoryview(bytearray())
        self._scattered = True

    # order ------------------------------------------------------------------------------------
    def build(self, group: GroupNode) -> None:
        """Lists the nodes of a group anew; what was made for those that stay is kept."""
        old = {item.node: item for item in self.items}
        self.items, self.effects = [], []
        self._walk(group, 0.0, 0.0, self.rect, old)
        for gone in old.values():
            gone.drop()
        self.stale = [item for item in self.items if item.stale]
        self._scattered = True

    def _walk(
        self, group: GroupNode, dx: float, dy: float, clip: Rect, old: dict[Node, Item]
    ) -> None:
        for node in group.ordered():
            effect = node if isinstance(node, EffectNode) else None
            if not node._values["visible"] or (effect is not None and effect.input is not None):
                continue
            if isinstance(node, GroupNode) and node.flat:
                left, top, w, h = node.box
                x, y = left + dx, top + dy
                inner = (
                    max(clip[0], round(x)), max(clip[1], round(y)),
                    min(clip[2], round(x + w)), min(clip[3], round(y + h)),
                )  # fmt: skip
                self._walk(node, x, y, inner, old)
                continue
            if effect is not None and self._joins(effect):
                continue
            item = old.pop(node, None) or Item(node, self)
            if (item.dx, item.dy, item.clip) != (dx, dy, clip) or node._item is not item:
                item.dx, item.dy, item.clip = dx, dy, clip
                item.stale, item.moved = True, False
            node._item = item
            if effect is not None:
                item.below = [effect]
                item.stale, item.moved = True, False
                self.effects.append(item)
            elif isinstance(node, GroupNode):
                width, height = (int(n) for n in node.canvas)
                if item.inner is None:
                    item.inner = Layer(width, height, item)
                item.inner.build(node)
                item.stale, item.moved = True, False
            self.items.append(item)

    def _joins(self, node: EffectNode) -> bool:
        """True where an effect goes on with what the one just below it made."""
        last = self.items[-1] if self.items else None
        if last is None or not last.below or not last.below[-1].joins(node):
            return False
        last.below.append(node)
        node._item = last
        last.stale = True
        return True

    def drop(self) -> None:
        """Gives back what was made for all items."""
        for item in self.items:
            item.drop()
        self.items, self.effects, self.stale = [], [], []

    # records ----------------------------------------------------------------------------------
    def refresh(self, drawer: Drawer) -> None:
        """Brings the draws of stale items up to date, in their places, and notes what changed."""
        stale, self.stale = self.stale, []
        for number, item in enumerate(stale):
            try:
                if not item.moved or self._scattered or not drawer.move(item):
                    self._take(item, drawer.draws(item))
            except BaseException:
                self.stale = stale[number:]  # they still are, whatever becomes of the frame
                raise
            item.stale, item.repainted = False, None
        if self._scattered:
            self._lay_out()

    def _take(self, item: Item, made: list[Draw]) -> None:
        """Puts an item's new draws where its old ones are, if they are alike."""
        before = item.draws
        item.draws = made
        if self._scattered or [d.part for d in made] != [d.part for d in before]:
            self._scattered = True
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
        """Lists all draws anew."""
        before, keys = self.draws, self.keys
        self.draws, self.keys = [], []
        for item in self.items:
            item.start = len(self.draws)
            self.draws += item.draws
            self.keys += [(item.node.serial, d.part) for d in item.draws]
        memory = bytearray(b"".join(d.record for d in self.draws))
        # Numbers of what changed before are those of the old list.
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
        self._scattered = False

    def repicture(self, item: Item, version: int) -> None:
        """The picture of an item's first draw has other pixels."""
        draw = item.draws[0]
        draw.version = version
        self.changes.append((item.start, draw.rect))

    def lose(self) -> None:
        """What was painted last is not known any more: all of it looks different."""
        self.changes.append((-1, self.rect))

    def painted(self) -> None:
        """All that changed has been seen to."""
        self.changes, self.before = [], None
