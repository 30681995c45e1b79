"""Source coordinates of warped pixels, a batch of pixels at a time.

``engines/sampling/coordinates.py`` defines them. A fraction is stored as f32, or for bytes in units
of 2**-15; ``rounding`` is half of that unit in units of 2**-24, or 0.
"""

from __future__ import annotations

from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.sampling.coordinates import AWAY, BITS, DROPPED, FAR

_MASK: Final = (1 << BITS) - 1
_UNITS: Final = float(1 << BITS)


@native
def stored_part(part: Vector, *, S: type) -> Vector:  # noqa: N803
    """Return a fraction as it is stored."""
    if i32 == S:
        return (part & _MASK) >> (BITS - 15)
    return f32(part & _MASK) * static(1.0 / _UNITS)


@native
def affine(
    wholes: Array[u32], parts: Array[u32], begin: i64, row: i64, whole: Array[i32],
    part: Array[S], count: i64, *, rounding: int,
) -> None:  # fmt: skip
    """Write coordinates that are sums of a table's entries for the column and for the row."""
    row_whole, row_part = i32(wholes[row]), i32(parts[row]) + rounding
    for i in independent(range(count)):
        sum = i32(parts[begin + i]) + row_part
        whole[i] = i32(wholes[begin + i]) + row_whole + (sum >> BITS)
        part[i] = stored_part(sum)


@native
def mapped(
    given: Array[f32], whole: Array[i32], part: Array[S], count: i64,
    *, S: type, rounding: int,  # noqa: N803
) -> None:  # fmt: skip
    """Write coordinates from a map: every second number of an array."""
    for i in independent(range(count)):
        number = given[i * 2]
        v = min(max(select(isnan(number), f32(-FAR), number), -FAR), FAR)
        near = f32(in_range(i32, min(max(v, -1.0), 1.0) * _UNITS)) * static(1.0 / _UNITS)
        v = select(abs(v) < 1.0, near, v)
        low = floor(v)
        if i32 == S:
            sum = in_range(i32, (v - low) * _UNITS) + rounding
            whole[i] = in_range(i32, low) + (sum >> BITS)
            part[i] = stored_part(sum)
        else:
            whole[i] = in_range(i32, low)
            part[i] = v - low


@native
def product(high: Array[f64], low: Array[f64], x: f64, y: f64) -> Vector:
    """Return a row of the integer matrix times (x, y, 1), without the lowest bits; exact."""
    rest = floor((low[0] * x + low[1] * y + low[2]) * static(1.0 / (1 << DROPPED)))
    return high[0] * x + high[1] * y + high[2] + rest


@native
def divided(u: f64, w: f64, back: f64) -> Vector:
    """Return the quotient u / w, rounded down, and the remainder, exactly; ``back`` is 1 / w."""
    q = floor(u * back)
    r = u - q * w
    step = select(r < 0.0, f64(-1), select(r >= w, f64(1), f64(0)))
    return q + step, r - step * w


@native
def placed(
    u: f64, w: f64, back: f64, i: i64, whole: Array[i32], part: Array[S], *, rounding: int
) -> None:
    """Write one perspective coordinate."""
    q, r = divided(u, w, back)
    p, _ = divided(r * 65536.0, w, back)
    inside = abs(u) < w * AWAY
    away = select(w > 0.0, select(u < 0.0, f64(-AWAY), f64(AWAY)), f64(0))
    sum = (in_range(i32, select(inside, p, f64(0))) << (BITS - 16)) + rounding
    whole[i] = in_range(i32, select(inside, q, away)) + (sum >> BITS)
    part[i] = stored_part(sum)


@native
def perspective(
    high: Array[f64], low: Array[f64], x: i64, y: f64, whole_x: Array[i32], part_x: Array[S],
    whole_y: Array[i32], part_y: Array[S], count: i64, *, rounding: int,
) -> None:  # fmt: skip
    """Write perspective coordinates: rows of the matrix divided by the last row."""
    for i in independent(range(count)):
        u = product(high, low, f64(x + i), y)
        v = product(high[3:], low[3:], f64(x + i), y)
        w = product(high[6:], low[6:], f64(x + i), y)
        sign = select(w < 0.0, f64(-1), f64(1))
        w = w * sign
        back = 1.0 / w
        placed(u * sign, w, back, i, whole_x, part_x)
        placed(v * sign, w, back, i, whole_y, part_y)


@native
def perspective_near(matrix: Array[f64], row: i64, x: f64, y: f64) -> Vector:
    """Return about where a perspective coordinate is, for prefetches."""
    w = matrix[6] * x + matrix[7] * y + matrix[8]
    v = (matrix[row * 3] * x + matrix[row * 3 + 1] * y + matrix[row * 3 + 2]) / w
    return min(max(select(isnan(v), f64(-FAR), v), -FAR), FAR)


@native
def distance(across: f64, down: f64, width: i64, height: i64) -> i64:
    """Return how many pixels a position is further in memory; 0 where it leaves the picture."""
    if abs(across) >= f64(width) or abs(down) >= f64(height):
        return 0
    return i64(floor(down + 0.5)) * width + i64(floor(across + 0.5))
