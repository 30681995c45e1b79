"""Reductions on the CPU; ``loops/axis.py`` describes how an axis is divided.

If there are few results, a long axis is split into pieces for the threads, and a second pass
reduces the pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from dala.gpu.compute.engines.cpu.loops.axis import *
from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.ops.shared import *
from dala.gpu.compute.engines.cpu.vector.types import U8, Type

#: Columns of a tile.
TILE: Final = 1024
#: Rows up to this length are unrolled, with vectors across rows.
SHORT: Final = 16

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
def short_rows(
    a: Array[T], out: Array[S], start: i64, end: i64,
    *, narrow: type, wide: type, kind: int, saturate: bool, n: int,
) -> None:  # fmt: skip
    """Reduce short rows, many of them side by side."""
    for row in independent(range(start, end)):
        total = narrow(a[row * n])
        for k in static(range(1, n)):
            x = narrow(a[row * n + k])
            total = combine(total, x)
        put(out, row, wide(total))


@native
def reduce_parts(
    a: Array[T], out: Array[S], n: i64, inner: i64, step: i64, length: i64, splits: i64, tiles: i64,
    start: i64, end: i64,
    *, T: type, S: type, narrow: type, wide: type, kind: int, saturate: bool,  # noqa: N803
    lanes: int, rows: bool, tile: int,
) -> None:  # fmt: skip
    """Reduce pieces of rows, or of tiles of columns."""
    some, sums = local(narrow, tile), local(wide, tile)
    for job in range(start, end):
        at, column, width, first, last, to = part_of(job, n, inner, step, length, splits, tiles)
        if rows:
            put(out, to, row_fold(a[at + first : at + last]))
        else:
            here = a[at + column :]
            column_fold(here, inner, first, last, width, some, sums)
            if last == n and step > n * inner + column:
                over = here[n * inner :]
                for c in independent(range(min(step - n * inner - column, width))):
                    sums[c] = combine(sums[c], wide(over[c]))
            for c in independent(range(width)):
                put(out, to + c, sums[c])


# passes ---------------------------------------------------------------------------------------
def make_pass(kind: int, t: Type, out: Type, layout: Layout) -> Pass:
    """Return the pass that reduces the middle axis of an array, followed by those of its pieces.

    Short rows are joined, so that loops over columns fill vectors.
    """
    outer, n, inner = layout
    wide = sum_types(t)[1] if kind == SUM else t
    together = TILE // inner if 1 < inner <= TILE // 16 and n >= 4 * (TILE // inner) else 1
    schedule = Schedule.of(layout, TILE)
    if together > 1:
        joined, pieces = (outer, n // together, inner * together), pieces_for(outer, n * inner)
        schedule = Schedule.of(joined, TILE, pieces=pieces, step=n * inner)
    left = outer, schedule.splits * together, inner
    first = reduce_pieces(kind, t, out if left[1] == 1 else wide, schedule)
    if left[1] == 1:
        return first
    second = make_pass(kind, wide, out, left)
    count, dtype = outer * left[1] * inner, numpy_type(wide)

    def run(a: Memory | NDArray, b: Memory | NDArray) -> None:
        between = np.empty(count, dtype)
        first(a, between)
        second(between, b)

    return run


def reduce_pieces(kind: int, t: Type, out: Type, schedule: Schedule) -> Pass:
    """Return the pass that reduces each piece of an axis."""
    narrow, wide = sum_types(t) if kind == SUM else (t, t)
    statics: Statics = {"T": t, "S": out, "narrow": narrow, "wide": wide, "kind": kind}
    statics["saturate"] = kind == SUM and out == U8
    outer, n, inner = schedule.layout
    if inner == 1 and n <= SHORT and schedule.splits == 1:
        return compile_native(short_rows, n=n, **statics).parallel(outer, max(1, PIECE // n))
    return schedule.compile(reduce_parts, lanes=64 // narrow.size, **statics)


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
