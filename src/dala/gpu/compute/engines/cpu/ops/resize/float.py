"""Resize to f32, with any number of taps.

A tile is a range of output rows. It is computed in blocks of columns, so that the line of sums
stays in the L1 cache.
"""

from __future__ import annotations

from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.pixels.float_rows import sum_down, sum_gray, sum_pixel
from dala.gpu.compute.engines.cpu.pixels.gather import nearest_row

#: Elements of the line of sums; its buffer is larger, since vectors are loaded beyond its end.
LINE: Final = 32768
LINE_CAPACITY: Final = LINE + 8


@native
def resize_nearest(
    source: Array[T], out: Array[T], first_y: Array[i32], first_x: Array[i32],
    width: i64, out_width: i64, start: i64, end: i64, *, T: type, channels: int,  # noqa: N803
) -> None:  # fmt: skip
    """Resize rows [start, end) with nearest sampling."""
    for y in range(start, end):
        row = source[i64(first_y[y]) * width * channels :]
        nearest_row(row, first_x, out[y * out_width * channels :], out_width)


@native(fast=True)
def store_picked(
    out: Array[f32], at: i64, plane: i64, pixel: Vector, finish: Array[f32],
    *, pick: tuple[int, ...],
) -> None:  # fmt: skip
    """Store a pixel of a tensor; ``finish`` holds gains and then biases."""
    for c in static(range(3)):
        k = static(pick[c])
        out[at + c * plane] = pixel[k] * finish[c] + finish[c + 3]


@native(fast=True)
def resize_float(
    source: Array[T], out: Array[f32],
    first_y: Array[i32], weights_y: Array[f32], first_x: Array[i32], weights_x: Array[f32],
    blocks: Array[i32], finish: Array[f32],
    taps_x: i64, taps_y: i64, width: i64, out_begin: i64, out_pitch: i64, plane: i64,
    start: i64, end: i64,
    *, T: type, channels: int, unrolled_x: int, unrolled_y: int, pick: tuple[int, ...],  # noqa: N803
) -> None:  # fmt: skip
    """Resize rows [start, end) of a picture, or of a tensor with the channels ``pick``.

    A block is four numbers: output columns [begin, stop), the first source pixel and the number of
    source pixels. ``finish`` holds a tensor's gains and then its biases; ``plane`` is the distance
    between its channels.
    """
    line = local(f32, LINE_CAPACITY)
    for b in range(len(blocks) // 4):
        begin, stop = i64(blocks[b * 4]), i64(blocks[b * 4 + 1])
        base, many = i64(blocks[b * 4 + 2]), i64(blocks[b * 4 + 3])
        for y in range(start, end):
            at = (i64(first_y[y]) * width + base) * channels
            w = weights_y[y * taps_y : (y + 1) * taps_y]
            sum_down(source, line, at, width * channels, w, many * channels, taps=unrolled_y)
            row = out_begin + y * out_pitch
            if channels == 1 and unrolled_x > 0 and len(pick) == 0:
                sum_gray(line, base, first_x, weights_x, out, row, begin, stop, taps=unrolled_x)
                continue
            for x in range(begin, stop):
                w = weights_x[x * taps_x : (x + 1) * taps_x]
                at = (i64(first_x[x]) - base) * channels
                v = sum_pixel(line, at, w, taps=unrolled_x)
                if len(pick) > 0:
                    store_picked(out, row + x * (1 if plane > 1 else 3), plane, v, finish)
                else:
                    for c in static(range(channels)):
                        out[row + x * channels + c] = v[c]
