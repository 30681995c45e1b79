"""Resizing in f32, any dtype and number of taps: rows first become one line, that becomes pixels.

A tile is a run of output rows. It goes through the picture in blocks of columns, so that the line
of sums down the columns stays in the nearest cache.
"""

from __future__ import annotations

from typing import Any, Final

from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    S,
    T,
    f32,
    i32,
    i64,
    in_range,
    independent,
    load,
    local,
    splat,
    static,
    u8,
)

#: Numbers that the line of sums holds; it lies on the stack, with some room to read beyond.
LINE: Final = 32768
_ROOM: Final = LINE + 8


@native(fast=True)
def add_rows(
    source: Array[T], line: Array[f32], at: i64, pitch: i64, weights: Array[f32], count: i64,
    *, T: type, taps: int, more: bool,  # noqa: N803
) -> None:  # fmt: skip
    """Weighted sums down ``taps`` rows, stored to the line or added to it."""
    for e in independent(range(count)):
        total = line[e] if more else weights[0] * f32(source[at + e])
        for k in static(range(0 if more else 1, taps)):
            total += weights[k] * f32(source[at + pitch * k + e])
        line[e] = total


@native(fast=True)
def sum_rows(
    source: Array[T], line: Array[f32], at: i64, pitch: i64, weights: Array[f32], count: i64,
    *, T: type, taps: int,  # noqa: N803
) -> None:  # fmt: skip
    """Weighted sums down any number of rows (``taps`` 0: as many as there are weights)."""
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


@native(fast=True)
def sum_pixel(line: Array[f32], at: i64, weights: Array[f32], *, channels: int, taps: int) -> Any:
    """The weighted sum of neighbouring pixels: four lanes, of which ``channels`` count."""
    if channels == 1:
        one = f32(0)
        for k in range(len(weights)):
            one += weights[k] * line[at + k]
        return splat(one, 4)
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
    line: Array[f32], base: i64, first: Array[i32], weights: Array[f32], out: Array[S], row: i64,
    begin: i64, stop: i64, *, S: type, taps: int,  # noqa: N803
) -> None:  # fmt: skip
    """A row of one channel; here the weights of all pixels' first taps come first, and so on."""
    for x in independent(range(begin, stop)):
        at = i64(first[x]) - base
        total = weights[x] * line[at]
        for k in static(range(1, taps)):
            total += weights[k * len(first) + x] * line[at + k]
        if u8 == S:
            out[row + x] = u8(in_range(i32, min(max(total + 0.5, 0.0), 255.0)))
        else:
            out[row + x] = total


@native
def pick_pixels(
    source: Array[T], out: Array[T], first_y: Array[i32], first_x: Array[i32],
    width: i64, out_width: i64, start: i64, end: i64, *, T: type, channels: int,  # noqa: N803
) -> None:  # fmt: skip
    """Rows [start, end), each pixel as it is in the source."""
    for y in range(start, end):
        row = source[i64(first_y[y]) * width * channels :]
        for x in independent(range(out_width)):
            for c in static(range(channels)):
                out[(y * out_width + x) * channels + c] = row[i64(first_x[x]) * channels + c]


@native(fast=True)
def resize_float(
    source: Array[T], out: Array[S],
    first_y: Array[i32], weights_y: Array[f32], first_x: Array[i32], weights_x: Array[f32],
    blocks: Array[i32], finish: Array[f32],
    taps_x: i64, taps_y: i64, width: i64, out_begin: i64, out_pitch: i64, plane: i64,
    start: i64, end: i64,
    *, T: type, S: type, channels: int, few_x: int, few_y: int, pick: tuple[int, ...],  # noqa: N803
) -> None:  # fmt: skip
    """Rows [start, end) of a picture, or of a tensor (then ``pick`` says which channels it has).

    Each block is four numbers: output columns from, to; source pixels from, how many. ``finish``
    holds gains and then biases; ``plane`` is the distance of a tensor's channels.
    """
    line = local(f32, _ROOM)
    for b in range(len(blocks) // 4):
        begin, stop = i64(blocks[b * 4]), i64(blocks[b * 4 + 1])
        base, many = i64(blocks[b * 4 + 2]), i64(blocks[b * 4 + 3])
        for y in range(start, end):
            at = (i64(first_y[y]) * width + base) * channels
            w = weights_y[y * taps_y : (y + 1) * taps_y]
            sum_rows(source, line, at, width * channels, w, many * channels, taps=few_y)
            row = out_begin + y * out_pitch
            if channels == 1 and few_x > 0 and len(pick) == 0:
                sum_gray(line, base, first_x, weights_x, out, row, begin, stop, taps=few_x)
                continue
            for x in range(begin, stop):
                w = weights_x[x * taps_x : (x + 1) * taps_x]
                at = (i64(first_x[x]) - base) * channels
                v = sum_pixel(line, at, w, channels=channels, taps=few_x)
                if len(pick) > 0:
                    step = 1 if plane > 1 else 3
                    for c in static(range(len(pick))):
                        k = static(pick[c])
                        out[row + x * step + c * plane] = v[k] * finish[c] + finish[c + 3]
                elif u8 == S:
                    whole = in_range(i32, min(max(v + 0.5, 0.0), 255.0))
                    for c in static(range(channels)):
                        out[row + x * channels + c] = u8(whole[c])
                else:
                    for c in static(range(channels)):
                        out[row + x * channels + c] = v[c]
