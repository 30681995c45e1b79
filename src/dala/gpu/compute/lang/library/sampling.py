"""Filtered reads of an image: ``img.sample(x, y)`` in pixels and ``img.sample_uv(u, v)``.

Whole numbers of pixels are the centers of pixels, as positions are; (0, 0) to (1, 1) of ``u`` and
``v`` are the outer edges. A sample is a weighted sum of reads, so engines need nothing for it. A
coordinate that is the position plus an offset is read at that offset: where the offset is the same
at all positions, engines read whole rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from dala.gpu.compute.lang.builder import (
    Builder,
    Scalar,
    Term,
    Vec,
    components,
    refuse,
    scalar,
    type_of,
)
from dala.gpu.compute.lang.ir import LOADED, Arg, Value
from dala.gpu.compute.lang.scalars import as_float

FILTERS: Final = ("nearest", "linear", "cubic")
EDGES: Final = ("clamp", "repeat", "mirror")

#: Coordinates are limited to so many pixels around the image, where all taps read the edge.
_AROUND: Final = 4.0
#: The parameter of the cubic, as in OpenCV and the warps.
_CUBIC: Final = -0.75


@dataclass(frozen=True)
class _Tap:
    """One read along an axis: the index, whether it is inside, and its weight."""

    index: Scalar
    inside: Value | None
    weight: Scalar


@dataclass(frozen=True)
class Sampler:
    """Reads one image. ``read(channel, dx, dy)`` emits a read at an offset from the position."""

    b: Builder
    arg: Arg
    index: int
    filter: str
    edge: str | Term

    def sample(self, x: Scalar, y: Scalar) -> Term:
        """Return the pixel at a place, in pixels."""
        across, down = self._taps(x, 1), self._taps(y, 0)
        channels = self.arg.channels
        border = self._border() if not isinstance(self.edge, str) else [None] * channels
        found = [self._channel(c, across, down, border[c]) for c in range(channels)]
        if channels == 1:
            return found[0]
        return Vec(tuple([*found, 1.0][:4]))

    def sample_uv(self, u: Scalar, v: Scalar) -> Term:
        """Return the pixel at a place, where the image is 1 wide and 1 high."""
        x, y = (
            self.b.binary("sub", self.b.binary("mul", at, self._size(axis)), 0.5)
            for at, axis in ((u, 1), (v, 0))
        )
        return self.sample(x, y)

    def place(self, method: str, x: Scalar, y: Scalar) -> tuple[Scalar, Scalar]:
        """Return a place with the image 1 wide and 1 high."""
        if method == "sample_uv":
            return x, y
        u, v = (
            self.b.binary("div", self.b.binary("add", at, 0.5), self._size(axis))
            for at, axis in ((x, 1), (y, 0))
        )
        return u, v

    def codes(self) -> tuple[int, bool]:
        """Return edge and filter as ``levels.kernel`` takes them; refuse those it has not."""
        if not isinstance(self.edge, str) or self.filter == "cubic":
            advice = "Use filter='linear' or 'nearest', and edge='clamp', 'repeat' or 'mirror'."
            refuse("lod= goes with no cubic filter and no color beyond the edge", advice)
        return EDGES.index(self.edge), self.filter == "nearest"

    def _size(self, axis: int) -> Value:
        return self.b.emit("dim", "s32", attr=(self.index, axis))

    # taps -------------------------------------------------------------------------------------
    def _taps(self, at: Scalar, axis: int) -> list[_Tap]:
        b = self.b
        scalar(at)
        offset = offset_of(b, at, axis) if self.edge == "clamp" else None
        near = offset is not None and self.arg.kind == "image"
        place = offset if near else at
        assert place is not None
        if not isinstance(place, Value):
            place = float(place)
        else:
            place = b.convert(place, as_float(place.type))
        if self.filter == "nearest":
            place = b.binary("add", place, 0.5)
        if not near:
            place = self._folded(place, axis)
        whole = self._floor(place)
        part = b.binary("sub", place, whole)
        first = int(whole) if not isinstance(whole, Value) else self._index(whole, near)
        taps = []
        for step, weight in self._weights(part):
            if isinstance(weight, Value) or weight:
                taps.append(self._tap(b.binary("add", first, step), weight, axis, near))
        return taps

    def _folded(self, place: Scalar, axis: int) -> Scalar:
        """Bring a coordinate near the image: NaN too, so that it is safely an index."""
        b, size = self.b, self._size(axis)
        real = type_of(place)
        if self.edge in ("repeat", "mirror"):
            period = b.convert(b.binary("mul", size, 2) if self.edge == "mirror" else size, real)
            turns = self._floor(b.binary("div", place, period))
            place = b.binary("sub", place, b.binary("mul", period, turns))
            low, high = b.convert(0.0, real), b.value(period)
        else:
            low = b.convert(-_AROUND, real)
            high = b.value(b.binary("add", b.convert(size, real), _AROUND))
        place = b.convert(place, real)
        place = b.emit("select", real, b.emit("gt", "bool", place, low), place, low)
        return b.emit("select", real, b.emit("lt", "bool", place, high), place, high)

    def _floor(self, place: Scalar) -> Scalar:
        if isinstance(place, Value):
            return self.b.emit("floor", place.type, place)
        return float(place // 1)

    def _index(self, whole: Value, near: bool) -> Value:
        return self.b.emit("cast", "s32", whole, attr=None if near else "in_range")

    def _weights(self, t: Scalar) -> list[tuple[int, Scalar]]:
        """Return the offsets of the taps and their weights, given the part of a pixel."""
        b = self.b
        if self.filter == "nearest":
            return [(0, 1.0)]
        if self.filter == "linear":
            return [(0, b.binary("sub", 1.0, t)), (1, t)]
        a = _CUBIC

        def far(d: Scalar) -> Scalar:
            inner = b.binary("add", b.binary("mul", b.binary("sub", d, 5.0), d), 8.0)
            return b.binary("mul", b.binary("sub", b.binary("mul", inner, d), 4.0), a)

        def near(d: Scalar) -> Scalar:
            inner = b.binary("sub", b.binary("mul", d, a + 2.0), a + 3.0)
            return b.binary("add", b.binary("mul", b.binary("mul", inner, d), d), 1.0)

        rest = b.binary("sub", 1.0, t)
        return [
            (-1, far(b.binary("add", t, 1.0))), (0, near(t)), (1, near(rest)),
            (2, far(b.binary("add", rest, 1.0))),
        ]  # fmt: skip

    def _tap(self, index: Scalar, weight: Scalar, axis: int, near: bool) -> _Tap:
        b, inside = self.b, None
        if not near:
            index, inside = self._edge(b.value(index), axis)
            if self.arg.kind == "image":
                position = b.emit("position", "s32", attr=axis)
                index = b.emit("sub", "s32", b.value(index), position, attr="place")
        return _Tap(index, inside, weight)

    def _edge(self, i: Value, axis: int) -> tuple[Scalar, Value | None]:
        """Return the index that is read for one beyond an edge, and whether it is inside."""
        b, size = self.b, self._size(axis)
        if self.edge == "clamp":
            return i, None
        if not isinstance(self.edge, str):
            unsigned = b.convert(i, "u32")
            return i, b.emit("lt", "bool", unsigned, b.convert(size, "u32"))
        period = b.value(b.binary("mul", size, 2) if self.edge == "mirror" else size)
        below = b.truth(b.binary("lt", i, 0))
        i = b.value(scalar(b.select(below, b.binary("add", i, period), i)))
        beyond = b.truth(b.binary("ge", i, period))
        i = b.value(scalar(b.select(beyond, b.binary("sub", i, period), i)))
        if self.edge == "mirror":
            back = b.binary("sub", b.binary("sub", period, 1), i)
            i = b.value(scalar(b.select(b.truth(b.binary("ge", i, size)), back, i)))
        return i, None

    # values -----------------------------------------------------------------------------------
    def _border(self) -> list[Scalar | None]:
        """Return the color outside, as it is stored."""
        items = components([self.edge]) if not isinstance(self.edge, str) else []
        channels = self.arg.channels
        if len(items) == 1:
            items = [*items * 3, 1.0] if channels > 1 else items
        if len(items) == 3 and channels == 4:
            items = [*items, 1.0]
        if len(items) < channels:
            refuse(f"the edge of {self.arg.name!r} must be a color of {channels} numbers")
        if self.arg.dtype == "u8":
            items = [self.b.binary("mul", item, 255.0) for item in items]
        return [*items]

    def _channel(
        self, channel: int, across: list[_Tap], down: list[_Tap], border: Scalar | None
    ) -> Scalar:
        b, real = self.b, as_float(LOADED[self.arg.dtype])

        def read(x: _Tap, y: _Tap) -> Scalar:
            raw = b.convert(self._raw(channel, x.index, y.index), real)
            if border is None or x.inside is None or y.inside is None:
                return raw
            both = b.logical("and", x.inside, y.inside)
            return scalar(b.select(both, raw, border))

        rows = [self._blend([read(x, y) for x in across], across) for y in down]
        total = self._blend(rows, down)
        return b.binary("mul", total, 1 / 255) if self.arg.dtype == "u8" else total

    def _raw(self, channel: int, x: Scalar, y: Scalar) -> Value:
        b, stored = self.b, LOADED[self.arg.dtype]
        places = b.index(x), b.index(y)
        if self.arg.kind == "image":
            return b.emit("image", stored, *places, attr=(self.index, channel))
        last = (b.convert(channel, "s32"),) if self.arg.rank == 3 else ()
        return b.emit("array", stored, places[1], places[0], *last, attr=self.index)

    def _blend(self, values: list[Scalar], taps: list[_Tap]) -> Scalar:
        """Return the weighted sum; of two as a mix, which keeps equal values."""
        b = self.b
        if len(values) == 1:
            return values[0]
        if len(values) == 2:
            rise = b.binary("mul", b.binary("sub", values[1], values[0]), taps[1].weight)
            return b.binary("add", values[0], rise)
        total = b.binary("mul", values[0], taps[0].weight)
        for value, tap in zip(values[1:], taps[1:], strict=True):
            total = b.binary("add", total, b.binary("mul", value, tap.weight))
        return total


def offset_of(b: Builder, at: Scalar, axis: int) -> Scalar | None:
    """Return the summand of the position along an axis, or None if it cannot be recognized."""
    if not isinstance(at, Value):
        return None
    if at.op == "position":
        return 0.0 if at.attr == axis else None
    if at.op == "cast" and at.args[0].type == "s32":
        return offset_of(b, at.args[0], axis)
    if at.op == "add":
        for this, other in (at.args, at.args[::-1]):
            found = offset_of(b, this, axis)
            if found is not None:
                return b.binary("add", found, _number(other))
    if at.op == "sub":
        found = offset_of(b, at.args[0], axis)
        return None if found is None else b.binary("sub", found, _number(at.args[1]))
    return None


def _number(v: Value) -> Scalar:
    return v.attr if v.op == "const" else v


def check(filter: str | Term, edge: str | Term) -> None:
    """Refuse names of filters and edges that there are not."""
    if filter not in FILTERS:
        refuse(f"filter must be one of {', '.join(FILTERS)}, got {filter!r}")
    if isinstance(edge, str) and edge not in EDGES:
        refuse(f"edge must be one of {', '.join(EDGES)}, or a color, got {edge!r}")


#: Names of the methods of an image.
METHODS: Final[dict[str, Callable[[Sampler, Scalar, Scalar], Term]]] = {
    "sample": Sampler.sample,
    "sample_uv": Sampler.sample_uv,
}
