"""Helpers for operations: dtypes, the memory of buffers, and sums and extremes of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from dala.gpu.compute.engines.base import Storage
from dala.gpu.compute.engines.cpu.job import freed_error
from dala.gpu.compute.engines.cpu.memory import Memory
from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    T,
    Vector,
    hmax,
    hmin,
    hsum,
    i32,
    i64,
    load,
    maximum,
    minimum,
    select,
    splat,
    table,
)
from dala.gpu.compute.engines.cpu.native.types import BY_NAME, U8, Type

SUM: Final = 0
MAX: Final = 1
MIN: Final = 2

#: Elements summed in the narrow type before the sum goes to a wider one.
BLOCK: Final = 4096
#: Elements per piece of work.
PIECE: Final = 1 << 16
#: Pieces that keep all threads busy.
MANY: Final = 64
#: The index of each lane.
LANE_NUMBERS: Final = tuple(range(64))

_NATIVE: Final = {"s32": "i32", "s64": "i64"}


#: Keyword arguments of ``compile_native``: values of type Static. With that type, ``**`` would be
#: checked against the other parameters too.
Statics: TypeAlias = dict[str, Any]


def native_type(dtype: str) -> Type:
    """Return the native type for a dtype."""
    return BY_NAME[_NATIVE.get(dtype, dtype)]


def numpy_type(t: Type) -> np.dtype[np.generic]:
    """Return the NumPy dtype for a native type."""
    kind = "f" if t.floating else "i" if t.signed else "u"
    return np.dtype(f"{kind}{t.size}")


def memories(inputs: Sequence[Storage], output: Storage) -> tuple[list[Memory], Memory]:
    """Return the memory of a call's buffers; hold it while native code uses it."""
    found, target = [s.handle for s in inputs], output.handle
    if target is None or None in found:
        raise freed_error()
    return found, target


def sum_types(t: Type) -> tuple[Type, Type]:
    """Return the narrow type for sums of a few elements, and the wide type for sums of all."""
    if t.floating:
        return t, BY_NAME["f64"]
    return BY_NAME["u32" if t == U8 else "i64"], BY_NAME["i64"]


def pieces_for(items: int, size: int) -> int:
    """Return the number of pieces into which each of ``items`` runs of ``size`` is split.

    It does not depend on the number of threads: sums of floats have the same order everywhere.
    """
    return 1 if items >= MANY else max(1, min(size // PIECE, MANY))


# native code ----------------------------------------------------------------------------------
@native
def first_lanes(count: i64, *, lanes: int) -> Vector:
    """Return a mask of the first ``count`` lanes."""
    return load(table(i32, LANE_NUMBERS), 0, lanes) < i32(count)


@native
def row_sum(a: Array[T], *, T: type, narrow: type, lanes: int) -> Vector:  # noqa: N803
    """Return the sum of a row in the narrow type, with several accumulators."""
    s0 = splat(narrow(0), lanes)
    s1 = s0
    s2 = s0
    s3 = s0
    i = i64(0)
    while i + 4 * lanes <= len(a):
        s0 += narrow(load(a, i, lanes))
        s1 += narrow(load(a, i + lanes, lanes))
        s2 += narrow(load(a, i + 2 * lanes, lanes))
        s3 += narrow(load(a, i + 3 * lanes, lanes))
        i += 4 * lanes
    while i + lanes <= len(a):
        s0 += narrow(load(a, i, lanes))
        i += lanes
    if i < len(a):
        s1 += narrow(load(a, i, lanes, len(a) - i))
    return hsum((s0 + s1) + (s2 + s3))


@native
def row_total(a: Array[T], *, T: type, narrow: type, wide: type, lanes: int) -> Vector:  # noqa: N803
    """Return the sum of a row: blocks in the narrow type, added in the wide one."""
    total = wide(0)
    i = i64(0)
    while i < len(a):
        last = min(i + BLOCK, len(a))
        total += wide(row_sum(a[i:last], narrow=narrow, lanes=lanes))
        i = last
    return total


@native
def extreme(x: Vector, y: Vector, *, kind: int) -> Vector:
    """Return the maximum or the minimum of two values; NaN if either is NaN."""
    return maximum(x, y) if kind == MAX else minimum(x, y)


@native
def row_extreme(a: Array[T], *, T: type, kind: int, lanes: int) -> Vector:  # noqa: N803
    """Return the maximum or the minimum of a row."""
    n = len(a)
    if n < lanes:
        m0 = select(first_lanes(n, lanes=lanes), load(a, 0, lanes, n), splat(a[0], lanes))
    else:
        m0 = load(a, n - lanes, lanes)  # overlapping the vectors below is harmless
        m1 = m0
        m2 = m0
        m3 = m0
        i = i64(0)
        while i + 4 * lanes <= n:
            m0 = extreme(m0, load(a, i, lanes), kind=kind)
            m1 = extreme(m1, load(a, i + lanes, lanes), kind=kind)
            m2 = extreme(m2, load(a, i + 2 * lanes, lanes), kind=kind)
            m3 = extreme(m3, load(a, i + 3 * lanes, lanes), kind=kind)
            i += 4 * lanes
        while i + lanes <= n:
            m0 = extreme(m0, load(a, i, lanes), kind=kind)
            i += lanes
        m0 = extreme(extreme(m0, m1, kind=kind), extreme(m2, m3, kind=kind), kind=kind)
    return hmax(m0) if kind == MAX else hmin(m0)
