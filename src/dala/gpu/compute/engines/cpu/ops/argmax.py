"""Where the largest number is, on the CPU.

Along rows the largest is found first, block by block and as fast as ``reduce_max``, and then looked
for in the block that had it. Columns go side by side, each with its best so far. Pieces of a long
axis give a place each; which of those is best is seen in a second pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dala.gpu.compute.engines.base import Engine, Runner, Storage, Task
from dala.gpu.compute.engines.cpu.native import compile_native, native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    S,
    T,
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
    memories,
    native_type,
    pieces_for,
    row_extreme,
)

#: Columns side by side.
TILE: Final = 512


@native
def better(x: Any, y: Any, *, floating: bool) -> Any:
    """True where x counts as larger than y."""
    if floating:
        found = (x > y) | (isnan(x) & (y == y))
    else:
        found = x > y
    return found


@native
def find(a: Array[T], at: i64, value: T, *, T: type, lanes: int, floating: bool) -> i64:  # noqa: N803
    """The first place from ``at`` on that holds a value (any NaN for NaN), which one does."""
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
def row_argmax(a: Array[T], *, T: type, lanes: int, floating: bool) -> Any:  # noqa: N803
    """The first place of the largest number of a row."""
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
    """Pieces of rows; places count from the row's beginning."""
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
    place: Any,
    floating: bool,
) -> None:
    """Tiles of columns over pieces of ``length`` rows."""
    best = local(T, TILE)
    at = local(place, TILE)
    for job in range(start, end):
        c0 = (job % tiles) * TILE
        outer, piece = job // (tiles * splits), (job // tiles) % splits
        width = min(inner - c0, i64(TILE))
        first = piece * length
        here = a[outer * n * inner + c0 :]
        row = here[first * inner :]
        for c in independent(range(width)):
            best[c] = row[c]
            at[c] = place(first)
        for k in range(first + 1, min(first + length, n)):
            row = here[k * inner :]
            for c in independent(range(width)):
                x = row[c]
                y = best[c]
                more = better(x, y, floating=floating)
                best[c] = select(more, x, y)
                at[c] = select(more, place(k), at[c])
        for c in independent(range(width)):
            out[(job // tiles) * inner + c0 + c] = S(at[c])


@native
def choose(
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
    """The best of the places that pieces gave."""
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
    """Code for a task; it has one pass."""
    outer, n, inner = task["passes"][0]
    t, out = native_type(task.inputs[0].dtype), native_type(task.output.dtype)
    tiles = -(-inner // TILE)
    splits = pieces_for(outer * tiles, n * min(inner, TILE))
    length = -(-n // splits)
    splits = -(-n // length)
    target = out if splits == 1 else I64
    statics: dict[str, Any] = {"T": t, "floating": t.floating}
    chunk = max(1, PIECE // (length * min(inner, TILE)))
    numbers: tuple[int, ...]
    if inner == 1:
        code = compile_native(rows, S=target, lanes=64 // t.size, **statics)
        numbers = (n, length, splits)
    else:
        place = BY_NAME["i32" if n < 1 << 31 else "i64"]
        code = compile_native(columns, S=target, place=place, **statics)
        numbers = (n, inner, length, splits, tiles)
    first = code.parallel(outer * splits * tiles, chunk)
    second = None
    if splits > 1:
        second = compile_native(choose, S=out, **statics).parallel(outer * inner, 1 << 12)

    def run(inputs: Sequence[Storage], output: Storage, params: tuple[Any, ...]) -> None:
        (a,), target = memories(inputs, output)
        if second is None:
            first(a, target, *numbers)
        else:
            places = np.empty(outer * splits * inner, np.int64)
            first(a, places, *numbers)
            second(a, places, target, n, inner, splits)

    return run
