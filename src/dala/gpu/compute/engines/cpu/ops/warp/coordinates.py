"""Source coordinates of warped pixels, a batch of pixels at a time."""

from __future__ import annotations

from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    Vector,
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
def clamp_coordinate(v: Vector, *, F: type) -> Vector:  # noqa: N803
    """Clamp a coordinate to the supported range; NaN becomes far outside."""
    return min(max(select(isnan(v), F(-FAR), v), -FAR), FAR)


@native
def affine(
    column: Array[u32], row: Array[u32], whole: Array[i32], part: Array[f32], count: i64
) -> None:
    """Write coordinates that are sums of a table entry for the column and one for the row."""
    row_whole, row_part = i32(row[0]), bits(f32, row[1])
    for i in independent(range(count)):
        sum = bits(f32, column[i * 4 + 1]) + row_part
        over = sum >= 1.0
        whole[i] = i32(column[i * 4]) + row_whole + select(over, i32(1), i32(0))
        part[i] = select(over, sum - 1.0, sum)


@native
def mapped(given: Array[f32], whole: Array[i32], part: Array[f32], count: i64) -> None:
    """Write coordinates from a map: every second number of an array."""
    for i in independent(range(count)):
        v = clamp_coordinate(given[i * 2], F=f32)
        low = floor(v)
        whole[i] = in_range(i32, low)
        part[i] = v - low


@native
def perspective(
    top: Array[f64], bottom: Array[f64], x: i64, y: f64, whole: Array[i32], part: Array[f32],
    count: i64,
) -> None:  # fmt: skip
    """Write perspective coordinates: one row of the matrix divided by the last row."""
    for i in independent(range(count)):
        at = f64(x + i)
        w = bottom[0] * at + bottom[1] * y + bottom[2]
        back = select(w == 0.0, f64(0), 1.0 / w)
        v = clamp_coordinate((top[0] * at + top[1] * y + top[2]) * back, F=f64)
        low = floor(v)
        fraction = f32(v - low)
        over = fraction >= 1.0
        whole[i] = in_range(i32, low) + select(over, i32(1), i32(0))
        part[i] = select(over, f32(0), fraction)
