"""Resample rows in f32, for any dtype and any number of taps.

Source rows are first summed down into a line, then the line's pixels are summed across. RGBA8 with
alpha is weighted by it, which makes the sums premultiplied.
"""

from __future__ import annotations

from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.pixels.over import round_bytes

#: Lanes that repeat the alphas of four pixels, and which lanes are colors.
_ALPHA_LANES: Final = tuple(4 * (k // 4) + 3 for k in range(16))
_COLORS: Final = (1, 1, 1, 0) * 4
#: Lanes of each channel in eight pixels of four channels.
_CHANNEL_LANES: Final = tuple(tuple(range(channel, 32, 4)) for channel in range(4))


# down -----------------------------------------------------------------------------------------
@native(fast=True)
def add_rows(
    source: Array[T], line: Array[f32], at: i64, pitch: i64, weights: Array[f32], count: i64,
    *, taps: int, more: bool,
) -> None:  # fmt: skip
    """Sum ``taps`` rows; store the sums in the line, or with ``more`` add them to it."""
    for e in independent(range(count)):
        total = line[e] if more else weights[0] * f32(source[at + e])
        for k in static(range(0 if more else 1, taps)):
            total += weights[k] * f32(source[at + pitch * k + e])
        line[e] = total


@native(fast=True)
def sum_down(
    source: Array[T], line: Array[f32], at: i64, pitch: i64, weights: Array[f32], count: i64,
    *, taps: int,
) -> None:  # fmt: skip
    """Sum ``taps`` rows into a line; with ``taps`` 0, as many as there are weights."""
    if taps > 0:
        add_rows(source, line, at, pitch, weights, count, taps=taps, more=False)
    else:
        add_rows(source, line, at, pitch, weights, count, taps=4, more=False)
        k = 4
        while k + 4 <= len(weights):
            add_rows(source, line, at + pitch * k, pitch, weights[k:], count, taps=4, more=True)
            k += 4
        while k < len(weights):
            add_rows(source, line, at + pitch * k, pitch, weights[k:], count, taps=1, more=True)
            k += 1


# across ---------------------------------------------------------------------------------------
@native(fast=True)
def sum_pixel(
    line: Array[f32], at: i64, weights: Array[f32], *, channels: int, taps: int
) -> Vector:
    """Return the weighted sum of adjacent pixels; lanes beyond ``channels`` are undefined."""
    if channels == 1:
        # Eight sums on every processor, so that their order is the same.
        eight, whole = splat(f32(0), 8), len(weights) & ~7
        for k in serial(0, whole, 8):
            eight += load(weights, k, 8) * load(line, at + k, 8)
        rest = len(weights) - whole
        eight += load(weights, whole, 8, rest) * load(line, at + whole, 8, rest)
        return splat(hsum(eight), 4)
    total = weights[0] * load(line, at, 4)
    if taps > 0:
        for k in static(range(1, taps)):
            total += weights[k] * load(line, at + k * channels, 4)
    else:
        for k in range(1, len(weights)):
            total += weights[k] * load(line, at + k * channels, 4)
    return total


@native(fast=True)
def sum_gray(
    line: Array[f32], base: i64, first: Array[i32], weights: Array[f32], out: Array[f32],
    row: i64, begin: i64, stop: i64, *, taps: int,
) -> None:  # fmt: skip
    """Write columns [begin, stop) of one channel; weights are ordered by tap, then by pixel."""
    for x in independent(range(begin, stop)):
        at = i64(first[x]) - base
        total = weights[x] * line[at]
        for k in static(range(1, taps)):
            total += weights[k * len(first) + x] * line[at + k]
        out[row + x] = total


# premultiplied --------------------------------------------------------------------------------
@native(inline=False, fast=True)
def premultiplied_row(
    source: Array[u8], line: Array[f32], length: i64, first: Array[i32], weights: Array[f32],
    sums: Array[f32], count: i64,
) -> None:  # fmt: skip
    """Resample a row of RGBA8 with two taps: colors times alpha, and alpha times 255."""
    is_color = load(table(u8, _COLORS), 0, 16) != 0
    for e in serial(0, length, 16):
        v = f32(i32(load(source, e, 16, min(length - e, 16))))
        store(line, e, v * select(is_color, shuffle(v, v, _ALPHA_LANES), 255))
    store(line, length, splat(f32(0), 8))
    for k in serial(count):
        pixel = sum_pixel(line, i64(first[k]), weights[2 * k :], channels=4, taps=2)
        store(sums, 4 * k, pixel)


@native
def channel_of(sums: Array[T], at: i64, *, channel: int) -> Vector:
    """Return one channel of sixteen pixels."""
    lanes = static(_CHANNEL_LANES[channel])
    left = shuffle(load(sums, at, 16), load(sums, at + 16, 16), lanes)
    right = shuffle(load(sums, at + 32, 16), load(sums, at + 48, 16), lanes)
    return join(left, right)


@native
def straight_row(sums: Array[f32], out: Array[u32], count: i64) -> None:
    """Write premultiplied sums as RGBA8 pixels, in whole groups of sixteen."""
    for k in serial(0, count, 16):
        alpha = channel_of(sums, 4 * k, channel=3)
        scale, word = 255 / max(alpha, 0.5), round_bytes(alpha * (1 / 255)) << 24
        for c in static((0, 1, 2)):
            word |= round_bytes(channel_of(sums, 4 * k, channel=c) * scale) << (8 * c)
        store(out, k, word)
