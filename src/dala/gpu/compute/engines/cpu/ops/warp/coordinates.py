"""Where pixels of a warped picture come from, a stretch of them at a time."""

from __future__ import annotations

from typing import Any

from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    bits,
    f32,
    f64,
    floor,
    i32,
    i64,
    in_range,
    independent,
    isnan,
    select,
    u32,
)
from dala.gpu.compute.engines.sampling.coordinates import FAR


@native
def place(v: Any, *, F: type) -> Any:  # noqa: N803
    """A coordinate within reach; what is no number lies far outside."""
    return min(max(select(isnan(v), F(-FAR), v), -FAR), FAR)


@native
def add_places(
    column: Array[u32], row: Array[u32], whole: Array[i32], part: Array[f32], count: i64
) -> None:
    """Coordinates that are sums of a table's words for the column and for the row."""
    row_whole, row_part = i32(row[0]), bits(f32, row[1])
    for i in independent(range(count)):
        sum = bits(f32, column[i * 4 + 1]) + row_part
        over = sum >= 1.0
        whole[i] = i32(column[i * 4]) + row_whole + select(over, i32(1), i32(0))
        part[i] = select(over, sum - 1.0, sum)


@native
def map_places(places: Array[f32], whole: Array[i32], part: Array[f32], count: i64) -> None:
    """Coordinates that are given, every second number."""
    for i in independent(range(count)):
        v = place(places[i * 2], F=f32)
        low = floor(v)
        whole[i] = in_range(i32, low)
        part[i] = v - low


@native
def seen_places(
    top: Array[f64], bottom: Array[f64], x: i64, y: f64, whole: Array[i32], part: Array[f32],
    count: i64,
) -> None:  # fmt: skip
    """Coordinates in perspective: a row of the matrix over its last row."""
    for i in independent(range(count)):
        at = f64(x + i)
        w = bottom[0] * at + bottom[1] * y + bottom[2]
        back = select(w == 0.0, f64(0), 1.0 / w)
        v = place((top[0] * at + top[1] * y + top[2]) * back, F=f64)
        low = floor(v)
        fraction = f32(v - low)
        over = fraction >= 1.0
        whole[i] = in_range(i32, low) + select(over, i32(1), i32(0))
        part[i] = select(over, f32(0), fraction)
