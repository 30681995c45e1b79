"""Operations along an axis: how the work is divided, and folds of rows and of columns.

An axis is the middle one of three, (outer, n, inner). With an inner extent of 1 its lines are rows,
which are processed as vectors with several accumulators; otherwise they are columns, processed side
by side, a tile of them at a time. A long axis is split into pieces where there are few lines. What
is computed does not depend on the number of threads: sums of floats have the same order everywhere.
Sums are computed in short blocks of a narrow type, which are added in a wider one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.vector.types import BY_NAME, U8, Type

SUM: Final = 0
MAX: Final = 1
MIN: Final = 2

#: Elements of a row, and rows of a tile of columns, summed in the narrow type.
BLOCK: Final = 4096
ROWS: Final = 64
#: Elements per piece of work.
PIECE: Final = 1 << 16
#: Pieces that keep all threads busy.
MANY: Final = 64
#: The index of each lane.
LANE_NUMBERS: Final = tuple(range(64))

Layout: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Schedule:
    """How the work along an axis is divided into jobs: a piece of the axis for a tile of columns.

    ``step`` is the distance between outer items: n lines, and possibly some more elements, which
    form a last, shorter line.
    """

    layout: Layout
    step: int
    tile: int
    length: int
    splits: int

    @classmethod
    def of(
        cls, layout: Layout, tile: int, *, pieces: int | None = None, step: int | None = None
    ) -> Schedule:
        """Return the schedule with a number of pieces, by default enough for all threads."""
        outer, n, inner = layout
        if pieces is None:
            pieces = pieces_for(outer * -(-inner // tile), n * min(inner, tile))
        length = -(-n // pieces)
        return cls(layout, step or n * inner, tile, length, -(-n // length))

    @property
    def lines(self) -> Layout:
        """The axis of results: one line for each piece."""
        return self.layout[0], self.splits, self.layout[2]

    def compile(
        self, function: NativeFunction, *, piece: int = PIECE, **statics: Any
    ) -> Callable[..., None]:
        """Compile a function of arrays and :func:`part_of`'s arguments; return its runner."""
        outer, n, inner = self.layout
        tiles = -(-inner // self.tile)
        code = compile_native(function, rows=inner == 1, tile=self.tile, **statics)
        chunk = max(1, piece // (self.length * min(inner, self.tile)))
        run = code.parallel(outer * self.splits * tiles, chunk)
        numbers = n, inner, self.step, self.length, self.splits, tiles
        return lambda *arrays: run(*arrays, *numbers)


def pieces_for(items: int, size: int) -> int:
    """Return the number of pieces into which each of ``items`` runs of ``size`` is split."""
    return 1 if items >= MANY else max(1, min(size // PIECE, MANY))


def sum_types(t: Type) -> tuple[Type, Type]:
    """Return the narrow type for sums of a few elements, and the wide type for sums of all."""
    if t.floating:
        return t, BY_NAME["f64"]
    return BY_NAME["u32" if t == U8 else "i64"], BY_NAME["i64"]


# native code ----------------------------------------------------------------------------------
@native
def part_of(
    job: i64, n: i64, inner: i64, step: i64, length: i64, splits: i64, tiles: i64,
    *, rows: bool, tile: int,
) -> Vector:  # fmt: skip
    """Return a job's part of the work.

    Where its outer item begins, its first column and the number of columns, its first line and the
    last, and where its results begin.
    """
    item, column = job, i64(0)
    if not rows:
        item, column = job // tiles, job % tiles * tile
    outer, first = item, i64(0)
    if splits > 1:
        outer, first = item // splits, item % splits * length
    width = min(inner - column, i64(tile))
    return outer * step, column, width, first, min(first + length, n), item * inner + column


@native
def first_lanes(count: i64, *, lanes: int) -> Vector:
    """Return a mask of the first ``count`` lanes."""
    return load(table(i32, LANE_NUMBERS), 0, lanes) < i32(count)


@native
def combine(x: Vector, y: Vector, *, kind: int) -> Vector:
    """Return the sum, or the maximum or the minimum, which is NaN if either is NaN."""
    if kind == SUM:
        return x + y
    return maximum(x, y) if kind == MAX else minimum(x, y)


@native
def across(v: Vector, *, kind: int) -> Vector:
    """Combine the lanes of a vector."""
    if kind == SUM:
        return hsum(v)
    return hmax(v) if kind == MAX else hmin(v)


@native
def row_block(a: Array[T], *, narrow: type, kind: int, lanes: int) -> Vector:
    """Combine the elements of a row in the narrow type, with several accumulators."""
    n = len(a)
    if kind == SUM:
        s0 = splat(narrow(0), lanes)
    else:
        if n < lanes:
            return across(select(first_lanes(n), load(a, 0, lanes, n), splat(a[0], lanes)))
        s0 = load(a, n - lanes, lanes)  # overlapping the vectors below is harmless
    s1 = s0
    s2 = s0
    s3 = s0
    i = i64(0)
    while i + 4 * lanes <= n:
        s0 = combine(s0, narrow(load(a, i, lanes)))
        s1 = combine(s1, narrow(load(a, i + lanes, lanes)))
        s2 = combine(s2, narrow(load(a, i + 2 * lanes, lanes)))
        s3 = combine(s3, narrow(load(a, i + 3 * lanes, lanes)))
        i += 4 * lanes
    while i + lanes <= n:
        s0 = combine(s0, narrow(load(a, i, lanes)))
        i += lanes
    if kind == SUM and i < n:
        s1 += narrow(load(a, i, lanes, n - i))
    return across(combine(combine(s0, s1), combine(s2, s3)))


@native
def row_fold(a: Array[T], *, narrow: type, wide: type, kind: int, lanes: int) -> Vector:
    """Combine the elements of a row: blocks in the narrow type, added in the wide one."""
    if kind != SUM:
        return row_block(a)
    total = wide(0)
    for i in range(0, len(a), BLOCK):
        total += wide(row_block(a[i : min(i + BLOCK, len(a))]))
    return total


@native
def lines_at(a: Array[T], at: i64, inner: i64, *, S: type, kind: int, count: int) -> Vector:  # noqa: N803
    """Combine an element of a column with those of the next lines, in pairs."""
    if count == 1:
        return S(a[at])
    half = static(count // 2)
    upper = lines_at(a, at, inner, count=half)
    return combine(upper, lines_at(a, at + half * inner, inner, count=half))


@native
def fold_lines(
    a: Array[T], inner: i64, first: i64, last: i64, width: i64, out: Array[S],
    *, S: type, kind: int, count: int,  # noqa: N803
) -> None:  # fmt: skip
    """Combine columns with their elements from a line to another, ``count`` lines at a time."""
    k = first
    while k + count <= last:
        for c in independent(range(width)):
            out[c] = combine(out[c], lines_at(a, k * inner + c, inner))
        k += count
    for i in range(k, last):
        line = a[i * inner :]
        for c in independent(range(width)):
            out[c] = combine(out[c], S(line[c]))


@native
def column_fold(
    a: Array[T], inner: i64, first: i64, last: i64, width: i64, some: Array[S], out: Array[F],
    *, S: type, F: type, kind: int,  # noqa: N803
) -> None:  # fmt: skip
    """Combine the elements of columns from a line to another; ``some`` holds those of a block."""
    begin = a[first * inner :]
    for c in independent(range(width)):
        out[c] = F(0) if kind == SUM else F(begin[c])
    if kind == SUM:
        for block in range(first, last, ROWS):
            for c in independent(range(width)):
                some[c] = S(0)
            fold_lines(a, inner, block, min(block + ROWS, last), width, some, count=8)
            for c in independent(range(width)):
                out[c] += F(some[c])
    else:
        fold_lines(a, inner, first + 1, last, width, out, count=4)
