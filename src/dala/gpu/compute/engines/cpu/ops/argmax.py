"""Argmax on the CPU.

Along rows the maximum is found first, block by block and as fast as ``reduce_max``, and then
located in its block. Columns are processed side by side, each with its maximum so far. A long axis
is split into pieces, and a second pass chooses among their indexes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from dala.gpu.compute.engines.base import Engine, Runner, Storage, Task, Values
from dala.gpu.compute.engines.cpu.native import compile_native, native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    S,
    T,
    Vector,
    any_of,
    i64,
    independent,
    isnan,
    load,
    local,
    select,
)
from dala.gpu.compute.engines.cpu.native.types import BY_NAME, I64
from dala.gpu.compute.engines.cpu.ops import implements
from dala.gpu.compute.engines.cpu.ops.shared import (
    BLOCK,
    MAX,
    PIECE,
    Statics,
    memories,
    native_type,
    pieces_for,
    row_extreme,
)

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
def find(a: Array[T], at: i64, value: T, *, T: type, lanes: int, floating: bool) -> i64:  # noqa: N803
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
        m = row_extreme(a[i:last], kind=MAX, lanes=lanes)
        if better(m, best, floating=floating):
            best = m
            at = i
            if floating and isnan(m):
                break
        i = last
    return find(a, at, best, lanes=lanes, floating=floating)


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
    lanes: int,
    floating: bool,
) -> None:
    """Find the maximum of pieces of rows; indexes count from the row's start."""
    for job in range(start, end):
        row, k = job // splits, (job % splits) * length
        piece = a[row * n + k : row * n + min(k + length, n)]
        out[job] = S(k + row_argmax(piece, lanes=lanes, floating=floating))


@native
def columns(
    a: Array[T],
    out: Array[S],
    n: i64,
    inner: i64,
    length: i64,
    splits: i64,
    tiles: i64,
    start: i64,
    end: i64,
    *,
    T: type,  # noqa: N803
    S: type,  # noqa: N803
    index_type: type,
    floating: bool,
) -> None:
    """Find the maxima of tiles of columns over pieces of ``length`` rows."""
    best = local(T, TILE)
    at = local(index_type, TILE)
    for job in range(start, end):
        c0 = (job % tiles) * TILE
        outer, piece = job // (tiles * splits), (job // tiles) % splits
        width = min(inner - c0, i64(TILE))
        first = piece * length
        here = a[outer * n * inner + c0 :]
        row = here[first * inner :]
        for c in independent(range(width)):
            best[c] = row[c]
            at[c] = index_type(first)
        for k in range(first + 1, min(first + length, n)):
            row = here[k * inner :]
            for c in independent(range(width)):
                x = row[c]
                y = best[c]
                more = better(x, y, floating=floating)
                best[c] = select(more, x, y)
                at[c] = select(more, index_type(k), at[c])
        for c in independent(range(width)):
            out[(job // tiles) * inner + c0 + c] = S(at[c])


@native
def choose_best(
    a: Array[T],
    places: Array[i64],
    out: Array[S],
    n: i64,
    inner: i64,
    splits: i64,
    start: i64,
    end: i64,
    *,
    T: type,  # noqa: N803
    S: type,  # noqa: N803
    floating: bool,
) -> None:
    """Choose the index of the maximum among those of the pieces."""
    for i in range(start, end):
        outer, c = i // inner, i % inner
        here = a[outer * n * inner + c :]
        at = places[outer * splits * inner + c]
        for s in range(1, splits):
            other = places[(outer * splits + s) * inner + c]
            if better(here[other * inner], here[at * inner], floating=floating):
                at = other
        out[i] = S(at)


@implements("argmax")
def make_argmax(engine: Engine, task: Task) -> Runner:
    """Return the runner of an argmax."""
    outer, n, inner = task["passes"][0]
    t, out = native_type(task.inputs[0].dtype), native_type(task.output.dtype)
    tiles = -(-inner // TILE)
    splits = pieces_for(outer * tiles, n * min(inner, TILE))
    length = -(-n // splits)
    splits = -(-n // length)
    target = out if splits == 1 else I64
    statics: Statics = {"T": t, "floating": t.floating}
    chunk = max(1, PIECE // (length * min(inner, TILE)))
    numbers: tuple[int, ...]
    if inner == 1:
        code = compile_native(rows, S=target, lanes=64 // t.size, **statics)
        numbers = (n, length, splits)
    else:
        index_type = BY_NAME["i32" if n < 1 << 31 else "i64"]
        code = compile_native(columns, S=target, index_type=index_type, **statics)
        numbers = (n, inner, length, splits, tiles)
    first = code.parallel(outer * splits * tiles, chunk)
    second = None
    if splits > 1:
        second = compile_native(choose_best, S=out, **statics).parallel(outer * inner, 1 << 12)

    def run(inputs: Sequence[Storage], output: Storage, params: Values) -> None:
        (a,), target = memories(inputs, output)
        if second is None:
            first(a, target, *numbers)
        else:
            places = np.empty(outer * splits * inner, np.int64)
            first(a, places, *numbers)
            second(a, places, target, n, inner, splits)

    return run
