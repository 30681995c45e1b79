"""Resize f32 pictures of one or four channels to half of both sides, with weights 1, 3, 3, 1.

Sums stay in registers: two rows of the output read six of the source once.
"""

from __future__ import annotations

from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.pixels.float_rows import sum_down, sum_gray, sum_pixel

#: The least output columns; narrower pictures are resized as any.
LEAST_COLUMNS: Final = 32
#: Every second element of 32, then the others; the same for pixels of four channels.
_HALVES: Final = tuple(
    tuple(tuple(k for k in range(32) if k // each % 2 == odd) for each in (1, 4)) for odd in (0, 1)
)
#: Sixteen elements from the third pixel on, of 32.
_NEXT: Final = tuple(tuple(range(2 * each, 2 * each + 16)) for each in (1, 4))


@native(fast=True)
def down(source: Array[T], at: i64, pitch: i64, weights: Array[f32], *, T: type) -> Vector:  # noqa: N803
    """Return sums of 16 elements of four rows."""
    total = weights[0] * f32(load(source, at, 16))
    for k in static(range(1, 4)):
        total += weights[k] * f32(load(source, at + pitch * k, 16))
    return total


@native(fast=True)
def across(a: Vector, b: Vector, c: Vector, *, channels: int) -> Vector:
    """Return sums of four adjacent pixels, for every second pixel of 40 elements."""
    even, odd = static(_HALVES[0][channels // 4]), static(_HALVES[1][channels // 4])
    d, e = shuffle(a, b, static(_NEXT[channels // 4])), shuffle(b, c, static(_NEXT[channels // 4]))
    total = 0.125 * shuffle(a, b, even)
    total += 0.375 * shuffle(a, b, odd)
    total += 0.375 * shuffle(d, e, even)
    total += 0.125 * shuffle(d, e, odd)
    return total


@native(fast=True)
def halve_inner(
    above: Array[T], row: Array[f32], pitch: i64, columns: i64, w: Array[f32], high: i64,
    *, T: type, channels: int, rows: int,  # noqa: N803
) -> None:  # fmt: skip
    """Write columns [1, high) of one or two rows."""
    pixels, second = static(16 // channels), w[4:]
    a = down(above, channels, pitch, w)
    if rows == 2:
        d = down(above, channels + 2 * pitch, pitch, second)
    for x in serial(1, high, pixels):
        at = (2 * x - 1) * channels
        b, c = down(above, at + 16, pitch, w), down(above, at + 32, pitch, w)
        store(row, x * channels, across(a, b, c))
        a = c
        if rows == 2:
            e = down(above, at + 2 * pitch + 16, pitch, second)
            f = down(above, at + 2 * pitch + 32, pitch, second)
            store(row, (columns + x) * channels, across(d, e, f))
            d = f


@native(fast=True)
def halve_border(
    above: Array[T], row: Array[f32], pitch: i64, w: Array[f32], first_x: Array[i32],
    weights_x: Array[f32], begin: i64, stop: i64, *, T: type, channels: int,  # noqa: N803
) -> None:  # fmt: skip
    """Write columns [begin, stop) at an end of a row."""
    sums = local(f32, 256)
    base = i64(first_x[begin])
    many = (i64(first_x[stop - 1]) + 4 - base) * channels
    sum_down(above, sums, base * channels, pitch, w[:4], many, taps=4)
    if channels == 1:
        sum_gray(sums, base, first_x, weights_x, row, 0, begin, stop, taps=4)
    else:
        for x in range(begin, stop):
            own = weights_x[x * 4 : (x + 1) * 4]
            v = sum_pixel(sums, (i64(first_x[x]) - base) * channels, own, taps=4)
            store(row, x * channels, v)


@native(fast=True)
def halve_floats(
    source: Array[T], out: Array[f32], first_y: Array[i32], weights_y: Array[f32],
    first_x: Array[i32], weights_x: Array[f32], width: i64, start: i64, end: i64,
    *, T: type, channels: int,  # noqa: N803
) -> None:  # fmt: skip
    """Write rows [start, end) of a picture of half the size, with weights 1, 3, 3, 1."""
    pitch, columns, pixels = width * channels, len(first_x), static(16 // channels)
    high = 1 + (columns - 1 - static(8 // channels)) // pixels * pixels
    y = start
    while y < end:
        rows = 2 if y + 1 < end and first_y[y + 1] == first_y[y] + 2 else 1
        above, row = source[i64(first_y[y]) * pitch :], out[y * columns * channels :]
        w = weights_y[y * 4 : (y + rows) * 4]
        if rows == 2:
            halve_inner(above, row, pitch, columns, w, high, rows=2)
        else:
            halve_inner(above, row, pitch, columns, w, high, rows=1)
        for k in serial(rows):
            top, line, own = above[2 * k * pitch :], row[k * columns * channels :], w[k * 4 :]
            halve_border(top, line, pitch, own, first_x, weights_x, 0, 1)
            halve_border(top, line, pitch, own, first_x, weights_x, high, columns)
        y += rows
