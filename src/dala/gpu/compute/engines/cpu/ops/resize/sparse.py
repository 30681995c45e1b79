"""Resize to a tensor much smaller than the picture: only pixels with a weight are read.

With bilinear weights on bytes, sixteen output pixels are computed at a time: a gather of eight
bytes from each of two rows reads both neighbors.
"""

from __future__ import annotations

from typing import Final

from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    T,
    Vector,
    f32,
    gather,
    i32,
    i64,
    load,
    shuffle,
    splat,
    static,
    store,
    u8,
    u32,
    u64,
)
from dala.gpu.compute.engines.cpu.ops.resize.float import store_picked
from dala.gpu.compute.engines.cpu.pixels.gather import weigh_corners

#: Output pixels computed at a time; shorter rows are computed pixel by pixel.
LANES: Final = 16
_HALF: Final = LANES // 2
_BOTH: Final = tuple(range(LANES))
#: Shuffles that interleave three planes of sixteen pixels.
_MIXED: Final = tuple(
    tuple(n % 3 * LANES + n // 3 for n in range(k * LANES, (k + 1) * LANES)) for k in range(3)
)
_FIRST_TWO: Final = tuple(range(2 * LANES))
_TWICE: Final = (*range(LANES), *range(LANES))


@native(fast=True)
def one_pixel(
    source: Array[T], at: i64, pitch: i64, down: Array[f32], across: Array[f32], step: i64,
    *, T: type, channels: int, taps_x: int, taps_y: int, last: bool,  # noqa: N803
) -> Vector:  # fmt: skip
    """Return an output pixel; lanes beyond ``channels`` are undefined.

    With ``last``, nothing beyond the end of the picture is read.
    """
    total = splat(f32(0), 4)
    for j in static(range(taps_y)):
        for i in static(range(taps_x)):
            place = at + j * pitch + i * channels
            weight = down[j] * across[i * step]
            if last:
                total += weight * f32(load(source, place, 4, channels))
            else:
                total += weight * f32(load(source, place, 4))
    return total


@native(fast=True)
def row_of_pixels(
    source: Array[T], out: Array[f32], at: i64, pitch: i64, row: i64, plane: i64,
    down: Array[f32], places: Array[i32], weights_x: Array[f32], finish: Array[f32],
    *, T: type, channels: int, taps_x: int, taps_y: int, pick: tuple[int, ...],  # noqa: N803
) -> None:  # fmt: skip
    """Write a row of the tensor, pixel by pixel."""
    reach = (taps_y - 1) * pitch + (taps_x - 1) * channels + 4
    step = 1 if plane > 1 else 3
    for x in range(len(places)):
        here = at + i64(places[x])
        across = weights_x[x:]
        v = splat(f32(0), 4)
        if here + reach <= len(source):
            v = one_pixel(source, here, pitch, down, across, len(places), last=False)
        else:
            v = one_pixel(source, here, pitch, down, across, len(places), last=True)
        store_picked(out, row + x * step, plane, v, finish)


@native
def pixel_words(row: Array[u8], places: Array[i32], x: i64, *, channels: int) -> Vector:
    """Return sixteen pixels of a source row at the given places, and those beside them."""
    a = gather(row, load(places, x, _HALF), u64)
    b = gather(row, load(places, x + _HALF, _HALF), u64)
    beside = shuffle(u32(a >> static(8 * channels)), u32(b >> static(8 * channels)), _BOTH)
    return shuffle(u32(a), u32(b), _BOTH), beside


@native(fast=True)
def finished(
    a: Vector, b: Vector, c: Vector, d: Vector, wa: Vector, wb: Vector, wc: Vector, wd: Vector,
    finish: Array[f32], *, pick: tuple[int, ...], number: int,
) -> Vector:  # fmt: skip
    """Return one channel of sixteen pixels of the tensor."""
    found = weigh_corners(a, b, c, d, wa, wb, wc, wd, channel=static(pick[number]))
    return found * finish[number] + finish[number + 3]


@native(fast=True)
def row_of_pairs(
    source: Array[u8], out: Array[f32], at: i64, pitch: i64, row: i64, plane: i64,
    down: Array[f32], places: Array[i32], weights_x: Array[f32], finish: Array[f32],
    *, channels: int, pick: tuple[int, ...], planes: bool,
) -> None:  # fmt: skip
    """Write a row of the tensor, sixteen pixels at a time; the last ones may be written twice."""
    width = len(places)
    above, below = source[at:], source[at + pitch :]
    for n in range((width + LANES - 1) // LANES):
        x = min(n * LANES, width - LANES)
        a, b = pixel_words(above, places, x)
        c, d = pixel_words(below, places, x)
        left, right = load(weights_x, x, LANES), load(weights_x, width + x, LANES)
        wa, wb, wc, wd = left * down[0], right * down[0], left * down[1], right * down[1]
        red = finished(a, b, c, d, wa, wb, wc, wd, finish, number=0)
        green = finished(a, b, c, d, wa, wb, wc, wd, finish, number=1)
        blue = finished(a, b, c, d, wa, wb, wc, wd, finish, number=2)
        if planes:
            store(out, row + x, red)
            store(out, row + plane + x, green)
            store(out, row + plane * 2 + x, blue)
        else:
            two = shuffle(red, green, _FIRST_TWO)
            third = shuffle(blue, blue, _TWICE)
            for k in static(range(3)):
                store(out, row + x * 3 + k * LANES, shuffle(two, third, static(_MIXED[k])))


@native(fast=True)
def tensor_sparse(
    source: Array[T], out: Array[f32],
    first_y: Array[i32], weights_y: Array[f32], places: Array[i32], weights_x: Array[f32],
    finish: Array[f32], pitch: i64, out_begin: i64, out_pitch: i64, plane: i64,
    start: i64, end: i64,
    *, T: type, channels: int, taps_x: int, taps_y: int, pick: tuple[int, ...], pairs: bool,  # noqa: N803
    planes: bool,
) -> None:  # fmt: skip
    """Write rows [start, end) of a tensor.

    ``places`` are the offsets of pixels in a source row; weights are ordered by tap, then by pixel.
    """
    for y in range(start, end):
        at = i64(first_y[y]) * pitch
        down = weights_y[y * taps_y : (y + 1) * taps_y]
        row = out_begin + y * out_pitch
        if pairs and at + pitch + i64(places[len(places) - 1]) + 8 <= len(source):
            row_of_pairs(source, out, at, pitch, row, plane, down, places, weights_x, finish)
        else:
            row_of_pixels(source, out, at, pitch, row, plane, down, places, weights_x, finish)
