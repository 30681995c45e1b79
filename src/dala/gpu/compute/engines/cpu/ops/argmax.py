"""Argmax on the CPU.

Along rows the maximum is found first, block by block and as fast as ``reduce_max``, and then
located in its block. Columns are processed side by side, each with its maximum so far. A long axis
is split into pieces, and a second pass chooses among their indexes.
"""

from __future__ import annotations

import numpy as np

from dala.gpu.compute.engines.cpu.loops.axis import BLOCK, MAX, Schedule, part_of, row_block
from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.ops.shared import *
from dala.gpu.compute.engines.cpu.vector.types import BY_NAME, I64

#: Columns of a tile.
TILE: Final = 512


@native
def better(x: Vector, y: Vector, *, floating: bool) -> Vector:
    """Return whether x is larger than y; NaN is the largest."""
    if floating:
        found = (x > y) | (isnan(x) & (y == y))
    else:
        found = x > y
    return found


@native
def find(a: Array[T], at: i64, value: T, *, lanes: int, floating: bool) -> i64:
    """Return the first index, from ``at`` on, of a value that is present; NaN matches any NaN."""
    k = at
    nan = False
    if floating:
        nan = isnan(value)
    if not nan:
        while k + lanes <= len(a) and not any_of(load(a, k, lanes) == value):
            k += lanes
        while a[k] != value:
            k += 1
    elif floating:
        while not isnan(a[k]):
            k += 1
    return k


@native
def row_argmax(a: Array[T], *, T: type, lanes: int, floating: bool) -> Vector:  # noqa: N803
    """Return the first index of the maximum of a row."""
    best = a[0]
    at = i64(0)
    i = i64(0)
    while i < len(a):
        last = min(i + BLOCK, len(a))
        m = row_block(a[i:last], narrow=T, kind=MAX)
        if better(m, best):
            best = m
            at = i
            if floating and isnan(m):
                break
        i = last
    return find(a, at, best)


@native
def find_parts(
    a: Array[T], out: Array[S], n: i64, inner: i64, step: i64, length: i64, splits: i64, tiles: i64,
    start: i64, end: i64,
    *, T: type, S: type, index_type: type, lanes: int, floating: bool,  # noqa: N803
    rows: bool, tile: int,
) -> None:  # fmt: skip
    """Find the maxima of pieces of rows, or of tiles of columns; indexes count from the start."""
    best, at = local(T, tile), local(index_type, tile)
    for job in range(start, end):
        base, column, width, first, last, to = part_of(job, n, inner, step, length, splits, tiles)
        if rows:
            out[to] = S(first + row_argmax(a[base + first : base + last]))
        else:
            here = a[base + column :]
            row = here[first * inner :]
            for c in independent(range(width)):
                best[c] = row[c]
                at[c] = index_type(first)
            for k in range(first + 1, last):
                row = here[k * inner :]
                for c in independent(range(width)):
                    x = row[c]
                    y = best[c]
                    more = better(x, y)
                    best[c] = select(more, x, y)
                    at[c] = select(more, index_type(k), at[c])
            for c in independent(range(width)):
                out[to + c] = S(at[c])


@native
def choose_best(
    a: Array[T], places: Array[i64], out: Array[S], n: i64, inner: i64, splits: i64, start: i64,
    end: i64,
    *, S: type, floating: bool,  # noqa: N803
) -> None:  # fmt: skip
    """Choose the index of the maximum among those of the pieces."""
    for i in range(start, end):
        outer, c = i // inner, i % inner
        here = a[outer * n * inner + c :]
        at = places[outer * splits * inner + c]
        for s in range(1, splits):
            other = places[(outer * splits + s) * inner + c]
            if better(here[other * inner], here[at * inner]):
                at = other
        out[i] = S(at)


@implements("argmax")
def make_argmax(engine: Engine, task: Task) -> Runner:
    """Return the runner of an argmax."""
    outer, n, inner = task["passes"][0]
    t, out = native_type(task.inputs[0].dtype), native_type(task.output.dtype)
    schedule = Schedule.of(task["passes"][0], TILE)
    splits = schedule.splits
    statics: Statics = {"T": t, "floating": t.floating}
    first = schedule.compile(
        find_parts,
        S=out if splits == 1 else I64,
        index_type=BY_NAME["i32" if n < 1 << 31 else "i64"],
        lanes=64 // t.size,
        **statics,
    )
    if splits == 1:
        return array_runner(first)
    second = compile_native(choose_best, S=out, **statics).parallel(outer * inner, 1 << 12)

    def run(a: Memory, target: Memory) -> None:
        places = np.empty(outer * splits * inner, np.int64)
        first(a, places)
        second(a, places, target, n, inner, splits)

    return array_runner(run)
