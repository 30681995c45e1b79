"""Resize to exactly half of both sides: the mean of four pixels, or the weighted sum of sixteen.

The weights of the default method are 1, 3, 3, 1 along both axes: sums fit 16 bits. Pixels at the
picture's border have other weights, and are computed as those of any size.
"""

from __future__ import annotations

import numpy as np

from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.ops.resize.byte_rows import *
from dala.gpu.compute.engines.sampling.taps import Taps

#: Output pixels computed at a time by channels; narrower pictures are resized as any.
PIXELS: Final = {1: 32, 3: 8, 4: 8}


def is_halving(taps: Taps, source: int) -> bool:
    """Return whether every pixel is the mean of its own two neighbors along an axis."""
    size = len(taps.first)
    return (
        taps.count == 2
        and source == 2 * size
        and bool((taps.weights == 0.5).all())
        and bool((taps.first == np.arange(size) * 2).all())
    )


def neighbors(channels: int, which: int) -> tuple[int, ...]:
    """Return the places of the left (0) or right (1) pixels of pairs in a row.

    >>> neighbors(1, 0)[:3], neighbors(3, 1)[:4]
    ((0, 2, 4), (3, 4, 5, 9))
    """
    return tuple(
        (2 * pixel + which) * channels + c
        for pixel in range(PIXELS[channels])
        for c in range(channels)
    )


@native
def halve(
    source: Array[T], out: Array[T], width: i64, start: i64, end: i64,
    *, T: type, channels: int, pixels: int,  # noqa: N803
    left: tuple[int, ...], right: tuple[int, ...],
) -> None:  # fmt: skip
    """Write rows [start, end) of the output; the last pixels of a row may be written twice."""
    line = width * channels
    for y in range(start, end):
        above, row = source[y * line * 4 :], out[y * line :]
        below = source[y * line * 4 + line * 2 :]
        for n in range((width + pixels - 1) // pixels):
            x = min(n * pixels, width - pixels) * channels
            a = load(above, x * 2, static(2 * pixels * channels))
            b = load(below, x * 2, static(2 * pixels * channels))
            s = u16(a) + u16(b) if u8 == T else a + b
            total = shuffle(s, s, left) + shuffle(s, s, right)
            if u8 == T:
                store(row, x, u8((total + u16(2)) >> 2))
            else:
                store(row, x, total * f32(0.25))


#: Shuffles of four adjacent pixels to pairs of one channel, for three and four channels.
_PAIR: Final = (0, 3, 1, 4, 2, 5, 2, 5, 6, 9, 7, 10, 8, 11, 8, 11), (
    0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15
)  # fmt: skip
_PAIRS: Final = tuple(tuple(g + k for g in (0, 16, 32, 48) for k in own) for own in _PAIR)


def is_smooth(taps: Taps) -> bool:
    """Return whether weights are 1, 3, 3, 1 along an axis, except at its ends."""
    size = len(taps.first)
    return (
        taps.count == 4
        and bool((taps.weights[1:-1] == (0.125, 0.375, 0.375, 0.125)).all())
        and bool((taps.first == np.clip(np.arange(size) * 2 - 1, 0, 2 * size - 4)).all())
    )


@native
def weighed(pixels: Vector, *, first: int, second: int) -> Vector:
    """Return weighted sums of pairs."""
    return multiply_pairs(pixels, bits(i8, splat(i16(static(first + 256 * second)), 32)))


@native
def pairs_of(row: Array[u8], at: i64, *, channels: int) -> Vector:
    """Return 64 bytes: pairs of adjacent pixels of each channel."""
    if channels == 1:
        return load(row, at, 64)
    step = static(4 * channels)
    a, b = load(row, at, 16), load(row, at + step, 16)
    v = join(a, b, load(row, at + 2 * step, 16), load(row, at + 3 * step, 16))
    return shuffle(v, v, static(_PAIRS[channels - 3]))


@native
def across(row: Array[u8], at: i64, *, channels: int) -> Vector:
    """Return sums of four adjacent pixels, for every second pixel."""
    left = weighed(pairs_of(row, at), first=1, second=3)
    return left + weighed(pairs_of(row, at + 2 * channels), first=3, second=1)


@native
def put(
    out: Array[u8], at: i64, a: Vector, b: Vector, c: Vector, d: Vector, *, channels: int
) -> None:
    """Store pixels of the sums of four rows."""
    values = saturate(u8, u16((a + d) + (b + c) * 3 + 32) >> 6)
    if channels == 3:
        store(out, at, shuffle(values, values, PACKED))
        store(out, at + 16, shuffle(values, values, PACKED_REST))
    else:
        store(out, at, values)


@native
def border_pixel(
    above: Array[u8], out: Array[u8], at: i64, to: i64, pitch: i64, weights: Array[i16],
    *, channels: int,
) -> None:  # fmt: skip
    """Write the first or the last pixel of a row."""
    total = splat(i32(0), 4)
    for k in static(range(1 if channels == 1 else 4)):
        p = at + k * channels
        middle = i32(load(above, p + pitch, 4)) + i32(load(above, p + 2 * pitch, 4))
        down = i32(load(above, p, 4)) + i32(load(above, p + 3 * pitch, 4)) + middle * 3
        total += down * i32(load(weights, 0, 4) if channels == 1 else splat(weights[k], 4))
    value = hsum(total) if channels == 1 else total
    store_pixel(out, to, u8((value + 262144) >> 19))


@native
def halve_rows(
    source: Array[u8], out: Array[u8], y: i64, rows: i64, width: i64, borders: Array[i16],
    *, channels: int, pixels: int,
) -> None:  # fmt: skip
    """Write one or two rows of the output."""
    pitch, line = width * channels * 2, width * channels
    above, row = source[(2 * y - 1) * pitch :], out[y * line :]
    for n in range((width - 3 + pixels) // pixels):
        x = 1 + min(n * pixels, width - 2 - pixels)
        at = (2 * x - 1) * channels
        a, b = across(above, at), across(above, at + pitch)
        c, d = across(above, at + 2 * pitch), across(above, at + 3 * pitch)
        put(row, x * channels, a, b, c, d)
        if rows == 2:
            e, f = across(above, at + 4 * pitch), across(above, at + 5 * pitch)
            put(row, line + x * channels, c, d, e, f)
    for k in serial(2 * rows):
        last, top, to = k % 2, above[k // 2 * 2 * pitch :], row[k // 2 * line :]
        at, x = last * (pitch - 4 * channels), last * (line - channels)
        border_pixel(top, to, at, x, pitch, borders[last * 4 :])


@native
def halve_smooth(
    source: Array[u8], out: Array[u8], first_y: Array[i32], weights_y: Array[i16],
    first_x: Array[i32], weights_x: Array[i16], blocks: Array[i32], width: i64, out_width: i64,
    count_y: i64, each_x: i64, down: i32, over: i32, borders: Array[i16], height: i64,
    start: i64, end: i64,
    *, taps_x: int, taps_y: int, fraction: int, channels: int, pixels: int, wide: bool,
) -> None:  # fmt: skip
    """Write rows [start, end); ``resize_bytes`` writes the first and the last of all."""
    first, last = max(start, 1), min(end, height - 1)
    for y in hinted(range(first, last, 2), scalar=True):
        halve_rows(source, out, y, min(last - y, 2), out_width, borders)
    for y in range(start, end):
        if y == 0 or y == height - 1:
            resize_bytes(
                source, out, first_y, weights_y, first_x, weights_x, blocks, width, out_width,
                count_y, each_x, down, over, y, y + 1,
            )  # fmt: skip
