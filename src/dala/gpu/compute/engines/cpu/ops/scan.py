"""Cumulative sums on the CPU.

A row is processed a vector at a time: the running sums inside the vector take a few shuffles, and
only the carry depends on the previous vector. Columns are processed side by side. A long axis is
split into pieces: one pass sums each piece, and a second scans each, starting at the sum of those
before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

import numpy as np

from dala.gpu.compute.engines.base import Engine, Runner, Storage, Task, Values
from dala.gpu.compute.engines.cpu.native import compile_native, native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    S,
    T,
    Vector,
    i64,
    independent,
    load,
    local,
    shuffle,
    splat,
    static,
    store,
)
from dala.gpu.compute.engines.cpu.native.types import I64, U8, U32, Type
from dala.gpu.compute.engines.cpu.ops import implements
from dala.gpu.compute.engines.cpu.ops.reduce import pieces_of_columns, pieces_of_rows
from dala.gpu.compute.engines.cpu.ops.shared import (
    PIECE,
    SUM,
    Statics,
    memories,
    native_type,
    numpy_type,
    pieces_for,
    sum_types,
)

#: Columns of a tile.
TILE: Final = 1024

F = TypeVar("F")


@native
def as_stored(sums: Vector, carry: Vector, *, narrow: Type, out: Type) -> Vector:
    """Return running sums plus the carry, converted to the output's dtype."""
    if out == U8:
        found = U8(min(sums + narrow(min(carry, 255)), 255))
    else:
        found = out(sums + narrow(carry))
    return found


@native
def rows(
    a: Array[T],
    before: Array[F],
    out: Array[S],
    n: i64,
    length: i64,
    splits: i64,
    start: i64,
    end: i64,
    *,
    T: type,  # noqa: N803
    S: type,  # noqa: N803
    F: type,  # noqa: N803
    narrow: type,
    lanes: int,
    shifts: tuple[int, ...],
) -> None:
    """Scan pieces of rows, each starting at the sum of those before it."""
    nothing = splat(narrow(0), lanes)
    for job in range(start, end):
        first = (job // splits) * n + (job % splits) * length
        last = min(first + length, (job // splits + 1) * n)
        carry = before[job] if splits > 1 else F(0)
        i = first
        while i + lanes <= last:
            v = narrow(load(a, i, lanes))
            for shift in static(shifts):
                v = v + shuffle(nothing, v, shift)
            store(out, i, as_stored(v, carry, narrow=narrow, out=S))
            carry += F(v[lanes - 1])
            i += lanes
        while i < last:
            out[i] = as_stored(narrow(a[i]), carry, narrow=narrow, out=S)
            carry += F(narrow(a[i]))
            i += 1


@native
def columns(
    a: Array[T],
    before: Array[F],
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
    F: type,  # noqa: N803
) -> None:
    """Scan tiles of columns over pieces of ``length`` rows."""
    carry = local(F, TILE)
    for job in range(start, end):
        c0 = (job % tiles) * TILE
        outer, piece = job // (tiles * splits), (job // tiles) % splits
        width = min(inner - c0, i64(TILE))
        for c in independent(range(width)):
            carry[c] = F(0)
        if splits > 1:
            sums = before[(job // tiles) * inner + c0 :]
            for c in independent(range(width)):
                carry[c] = sums[c]
        first = piece * length
        for k in range(first, min(first + length, n)):
            at = (outer * n + k) * inner + c0
            x, y = a[at:], out[at:]
            for c in independent(range(width)):
                total = carry[c] + F(x[c])
                carry[c] = total
                y[c] = as_stored(F(0), total, narrow=F, out=S)


@native
def sums_before(sums: Array[F], splits: i64, inner: i64, outer: i64, *, F: type) -> None:  # noqa: N803
    """Replace the sum of each piece by the sum of all pieces before it."""
    for o in range(outer):
        for c in range(inner):
            total = F(0)
            for s in range(splits):
                at = (o * splits + s) * inner + c
                own = sums[at]
                sums[at] = total
                total += own


@implements("cumsum")
def make_cumsum(engine: Engine, task: Task) -> Runner:
    """Return the runner of a cumulative sum; few rows or columns are split into pieces."""
    outer, n, inner = task["layout"]
    t, out = native_type(task.inputs[0].dtype), native_type(task.output.dtype)
    narrow, wide = sum_types(t)
    if not t.floating:
        narrow = U32 if out in (U32, U8) or out.name == "i32" else I64
    tiles = -(-inner // TILE)
    width = min(inner, TILE)
    splits = pieces_for(outer * tiles, n * width)
    length = -(-n // splits)
    splits = -(-n // length)
    statics: Statics = {"T": t, "S": out, "F": wide}
    numbers: tuple[int, ...]
    if inner == 1:
        lanes = 64 // narrow.size
        shifts = tuple(
            tuple(0 if i < k else lanes + i - k for i in range(lanes))
            for k in (1, 2, 4, 8)
            if k < lanes
        )
        code = compile_native(rows, narrow=narrow, lanes=lanes, shifts=shifts, **statics)
        numbers = (n, length, splits)
    else:
        code = compile_native(columns, **statics)
        numbers = (n, inner, length, splits, tiles)
    go = code.parallel(outer * splits * tiles, max(1, PIECE // (length * width)))
    pieces = pieces_of_rows if inner == 1 else pieces_of_columns
    layout = (outer, n, inner)
    sums = pieces(SUM, t, wide, layout, n * inner, length, splits) if splits > 1 else None
    add = compile_native(sums_before, F=wide)
    dtype = numpy_type(wide)

    def run(inputs: Sequence[Storage], output: Storage, params: Values) -> None:
        (a,), target = memories(inputs, output)
        if sums is None:
            go(a, (0, 0), target, *numbers)
        else:
            before = np.empty(outer * splits * inner, dtype)
            sums(a, before)
            add(before, splits, inner, outer)
            go(a, before, target, *numbers)

    return run
