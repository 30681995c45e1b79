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
    wholes: Array[u32], parts: Array[u32], begin: i64, row: i64, whole: Array[i32],
    part: Array[f32], count: i64,
) -> None:  # fmt: skip
    """Write coordinates that are sums of a table's entries for the column and for the row."""
    row_whole, row_part = i32(wholes[row]), bits(f32, parts[row])
    for i in independent(range(count)):
        sum = bits(f32, parts[begin + i]) + row_part
        over = sum >= 1.0
        whole[i] = i32(wholes[begin + i]) + row_whole + select(over, i32(1), i32(0))
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
def perspective_at(top: Array[f64], bottom: Array[f64], x: f64, y: f64) -> Vector:
    """Return one perspective coordinate: one row of the matrix divided by the last row."""
    w = bottom[0] * x + bottom[1] * y + bottom[2]
    back = select(w == 0.0, f64(0), 1.0 / w)
    return clamp_coordinate((top[0] * x + top[1] * y + top[2]) * back, F=f64)


@native
def perspective(
    top: Array[f64], bottom: Array[f64], x: i64, y: f64, whole: Array[i32], part: Array[f32],
    count: i64,
) -> None:  # fmt: skip
    """Write perspective coordinates."""
    for i in independent(range(count)):
        v = perspective_at(top, bottom, f64(x + i), y)
        low = floor(v)
        fraction = f32(v - low)
        over = fraction >= 1.0
        whole[i] = in_range(i32, low) + select(over, i32(1), i32(0))
        part[i] = select(over, f32(0), fraction)


@native
def distance(across: f64, down: f64, width: i64, height: i64) -> i64:
    """Return how many pixels a position is further in memory; 0 where it leaves the picture."""
    if abs(across) >= f64(width) or abs(down) >= f64(height):
        return 0
    return i64(floor(down + 0.5)) * width + i64(floor(across + 0.5))
