"""Reductions on the CPU: rows as vectors with many accumulators, columns side by side.

A pass reduces the middle of three axes (outer, n, inner). If there are few results, a long axis is
split into pieces for the threads, and a second pass reduces the pieces. Sums of f32 are computed in
short blocks, which are added in f64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import numpy as np

from dala.gpu.compute.engines.base import Engine, Runner, Storage, Task, Values
from dala.gpu.compute.engines.cpu.memory import Memory
from dala.gpu.compute.engines.cpu.native import compile_native, native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    S,
    T,
    Vector,
    i64,
    independent,
    local,
    static,
)
from dala.gpu.compute.engines.cpu.native.types import U8, Type
from dala.gpu.compute.engines.cpu.ops import implements
from dala.gpu.compute.engines.cpu.ops.shared import (
    MAX,
    MIN,
    PIECE,
    SUM,
    Statics,
    extreme,
    memories,
    native_type,
    numpy_type,
    pieces_for,
    row_extreme,
    row_total,
    sum_types,
)
from dala.gpu.compute.engines.scratch import scratch_memory
from dala.typing import NDArray

#: Columns of a tile, and rows summed in the narrow type before the sums go to a wider one.
TILE: Final = 1024
ROWS: Final = 64
#: Rows up to this length are unrolled, with vectors across rows.
SHORT: Final = 16

Layout: TypeAlias = tuple[int, int, int]
#: Reduces one array into another.
Pass: TypeAlias = Callable[[Memory | NDArray, Memory | NDArray], None]


# native code ----------------------------------------------------------------------------------
@native
def put(out: Array[S], at: i64, total: Vector, *, S: type, saturate: bool) -> None:  # noqa: N803
    """Store a result; sums of u8 saturate."""
    if saturate:
        out[at] = S(min(total, 255))
    else:
        out[at] = S(total)


@native
def rows(
    a: Array[T],
    out: Array[S],
    n: i64,
    length: i64,
    splits: i64,
    start: i64,
    end: i64,
    *,
    T: type,  # noqa: N803
    S: type,  # noqa: N803
    narrow: type,
    wide: type,
    kind: int,
    saturate: bool,
    lanes: int,
) -> None:
    """Reduce pieces of rows: ``splits`` per row, each of ``length`` elements."""
    for job in range(start, end):
        row, piece = job, i64(0)
        if splits > 1:
            row, piece = job // splits, job % splits
        first = row * n + piece * length
        last = min(first + length, (row + 1) * n)
        if kind == SUM:
            put(
                out,
                job,
                row_total(a[first:last], narrow=narrow, wide=wide, lanes=lanes),
                saturate=saturate,
            )
        else:
            out[job] = row_extreme(a[first:last], kind=kind, lanes=lanes)


@native
def short_rows(
    a: Array[T],
    out: Array[S],
    start: i64,
    end: i64,
    *,
    T: type,  # noqa: N803
    S: type,  # noqa: N803
    narrow: type,
    wide: type,
    kind: int,
    saturate: bool,
    n: int,
) -> None:
    """Reduce short rows, many of them side by side."""
    for row in independent(range(start, end)):
        total = narrow(a[row * n])
        for k in static(range(1, n)):
            x = narrow(a[row * n + k])
            total = total + x if kind == SUM else extreme(total, x, kind=kind)
        put(out, row, wide(total), saturate=saturate)


@native
def columns(
    a: Array[T],
    out: Array[S],
    n: i64,
    inner: i64,
    step: i64,
    length: i64,
    splits: i64,
    tiles: i64,
    start: i64,
    end: i64,
    *,
    T: type,  # noqa: N803
    S: type,  # noqa: N803
    narrow: type,
    wide: type,
    kind: int,
    saturate: bool,
) -> None:
    """Reduce tiles of columns over pieces of ``length`` rows.

    ``step`` is the distance between outer items: n rows, and possibly some more elements, which
    form a last, shorter row.
    """
    narrow_sums = local(narrow, TILE)
    wide_sums = local(wide, TILE)
    for job in range(start, end):
        tile, piece, outer = job % tiles, (job // tiles) % splits, job // (tiles * splits)
        c0 = tile * TILE
        width = min(inner - c0, i64(TILE))
        k = piece * length
        last = min(k + length, n)
        here = a[outer * step + c0 :]
        rest = i64(0)
        if piece == splits - 1:
            rest = min(max(step - n * inner - c0, 0), width)
        if kind == SUM:
            for c in independent(range(width)):
                wide_sums[c] = wide(0)
            while k < last:
                stop = min(k + ROWS, last)
                for c in independent(range(width)):
                    narrow_sums[c] = narrow(0)
                while k + 8 <= stop:
                    r0, r1 = here[k * inner :], here[(k + 1) * inner :]
                    r2, r3 = here[(k + 2) * inner :], here[(k + 3) * inner :]
                    r4, r5 = here[(k + 4) * inner :], here[(k + 5) * inner :]
                    r6, r7 = here[(k + 6) * inner :], here[(k + 7) * inner :]
                    for c in independent(range(width)):
                        one = (narrow(r0[c]) + narrow(r1[c])) + (narrow(r2[c]) + narrow(r3[c]))
                        two = (narrow(r4[c]) + narrow(r5[c])) + (narrow(r6[c]) + narrow(r7[c]))
                        narrow_sums[c] += one + two
                    k += 8
                while k < stop:
                    r0 = here[k * inner :]
                    for c in independent(range(width)):
                        narrow_sums[c] += narrow(r0[c])
                    k += 1
                for c in independent(range(width)):
                    wide_sums[c] += wide(narrow_sums[c])
            if rest > 0:
                over = here[n * inner :]
                for c in independent(range(rest)):
                    wide_sums[c] += wide(over[c])
            for c in independent(range(width)):
                put(out, (job // tiles) * inner + c0 + c, wide_sums[c], saturate=saturate)
        else:
            first = here[k * inner :]
            for c in independent(range(width)):
                wide_sums[c] = first[c]
            k += 1
            while k + 4 <= last:
                r0, r1 = here[k * inner :], here[(k + 1) * inner :]
                r2, r3 = here[(k + 2) * inner :], here[(k + 3) * inner :]
                for c in independent(range(width)):
                    one = extreme(r0[c], r1[c], kind=kind)
                    two = extreme(r2[c], r3[c], kind=kind)
                    wide_sums[c] = extreme(wide_sums[c], extreme(one, two, kind=kind), kind=kind)
                k += 4
            while k < last:
                r0 = here[k * inner :]
                for c in independent(range(width)):
                    wide_sums[c] = extreme(wide_sums[c], r0[c], kind=kind)
                k += 1
            if rest > 0:
                over = here[n * inner :]
                for c in independent(range(rest)):
                    wide_sums[c] = extreme(wide_sums[c], over[c], kind=kind)
            for c in independent(range(width)):
                out[(job // tiles) * inner + c0 + c] = wide_sums[c]


# passes ---------------------------------------------------------------------------------------
def make_pass(kind: int, t: Type, out: Type, layout: Layout) -> Pass:
    """Return the pass that reduces the middle axis of an array."""
    outer, n, inner = layout
    wide = sum_types(t)[1] if kind == SUM else t
    if inner == 1:
        splits = pieces_for(outer, n)
    else:
        # Short rows are joined, so that loops over columns fill vectors.
        together = TILE // inner if inner <= TILE // 16 else 1
        if together > 1 and n >= 4 * together:
            return _joined_pass(kind, t, out, layout, together)
        tiles = -(-inner // TILE)
        splits = pieces_for(outer * tiles, n * min(inner, TILE))
    length = -(-n // splits)
    splits = -(-n // length)
    target = out if splits == 1 else wide
    pieces = pieces_of_rows if inner == 1 else pieces_of_columns
    first = pieces(kind, t, target, layout, n * inner, length, splits)
    return _followed_by_rest(first, kind, wide, out, (outer, splits, inner))


def _joined_pass(kind: int, t: Type, out: Type, layout: Layout, together: int) -> Pass:
    outer, n, inner = layout
    wide = sum_types(t)[1] if kind == SUM else t
    joined = (outer, n // together, inner * together)
    splits = pieces_for(outer, n * inner)
    length = -(-joined[1] // splits)
    splits = -(-joined[1] // length)
    first = pieces_of_columns(kind, t, wide, joined, n * inner, length, splits)
    return _followed_by_rest(first, kind, wide, out, (outer, splits * together, inner))


def _statics(kind: int, t: Type, out: Type) -> Statics:
    narrow, wide = sum_types(t) if kind == SUM else (t, t)
    saturate = kind == SUM and out == U8
    return {"T": t, "S": out, "narrow": narrow, "wide": wide, "kind": kind, "saturate": saturate}


def pieces_of_rows(
    kind: int, t: Type, out: Type, layout: Layout, step: int, length: int, splits: int
) -> Pass:
    """Return the pass that reduces each piece of ``length`` elements, ``splits`` per row."""
    outer, n, _ = layout
    statics = _statics(kind, t, out)
    if n <= SHORT and splits == 1:
        short = compile_native(short_rows, n=n, **statics).parallel(outer, max(1, PIECE // n))
        return lambda a, b: short(a, b)
    narrow = sum_types(t)[0] if kind == SUM else t
    code = compile_native(rows, lanes=64 // narrow.size, **statics)
    run = code.parallel(outer * splits, max(1, PIECE // length))
    return lambda a, b: run(a, b, n, length, splits)


def pieces_of_columns(
    kind: int, t: Type, out: Type, layout: Layout, step: int, length: int, splits: int
) -> Pass:
    """Return the pass that reduces each piece of ``length`` rows to one row."""
    outer, n, inner = layout
    tiles = -(-inner // TILE)
    code = compile_native(columns, **_statics(kind, t, out))
    run = code.parallel(outer * splits * tiles, max(1, PIECE // (length * min(inner, TILE))))
    return lambda a, b: run(a, b, n, inner, step, length, splits, tiles)


def _followed_by_rest(first: Pass, kind: int, middle: Type, out: Type, left: Layout) -> Pass:
    """Return a pass followed by those that reduce its pieces, if there are several."""
    if left[1] == 1:
        return first
    second = make_pass(kind, middle, out, left)
    count = left[0] * left[1] * left[2]
    dtype = numpy_type(middle)

    def run(a: Memory | NDArray, b: Memory | NDArray) -> None:
        between = np.empty(count, dtype)
        first(a, between)
        second(between, b)

    return run


_KINDS: Final = {"reduce_max": MAX, "reduce_min": MIN, "reduce_sum": SUM}


@implements("reduce_max", "reduce_min", "reduce_sum")
def make_reduction(engine: Engine, task: Task) -> Runner:
    """Return the runner of a reduction, with at most one pass per axis."""
    kind = _KINDS[task.op]
    out = native_type(task.output.dtype)
    t = native_type(task.inputs[0].dtype)
    middle = sum_types(t)[1] if kind == SUM else t
    layouts = task["passes"]
    steps: list[tuple[Pass, int]] = []
    for i, layout in enumerate(layouts):
        target = out if i == len(layouts) - 1 else middle
        steps.append((make_pass(kind, t, target, layout), layout[0] * layout[2]))
        t = middle
    sizes = [count * middle.size for _, count in steps[:-1]]

    def run(inputs: Sequence[Storage], output: Storage, params: Values) -> None:
        (source,), target = memories(inputs, output)
        if not sizes:
            steps[0][0](source, target)
            return
        with scratch_memory(engine, task.op, *sizes) as storages:
            for (do, _), between in zip(steps, [*storages, output], strict=True):
                do(source, between.handle)
                source = between.handle

    return run
