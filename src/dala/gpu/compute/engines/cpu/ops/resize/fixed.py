"""Resize RGB8 and RGBA8 pictures in fixed point."""

from __future__ import annotations

from typing import Final

import numpy as np

from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.names import Array, i16, i32, i64, local, static, u8
from dala.gpu.compute.engines.cpu.pixels.fixed_rows import LINE_CAPACITY, sum_across, sum_down
from dala.gpu.compute.engines.cpu.pixels.taps import FIXED_TAPS, LINE
from dala.gpu.compute.engines.sampling.taps import Taps

#: The most output columns of a block.
FIXED_COLUMNS: Final = 512


def fixed_fits(taps_y: Taps, taps_x: Taps) -> bool:
    """Return whether the taps are few enough, and a line holds those of eight pixels."""
    starts = np.arange(0, len(taps_x.first), 8)
    ends = np.minimum(starts + 7, len(taps_x.first) - 1)
    most = int((taps_x.first[ends] - taps_x.first[starts]).max()) + taps_x.count
    return max(taps_x.count, taps_y.count) <= FIXED_TAPS and most <= LINE


@native
def resize_fixed(
    source: Array[u8], out: Array[u8], first_y: Array[i32], weights_y: Array[i16],
    first_x: Array[i32], weights_x: Array[i16], blocks: Array[i32], width: i64, out_width: i64,
    half: i16, factor: i16, start: i64, end: i64, *, taps_x: int, taps_y: int, channels: int,
) -> None:  # fmt: skip
    """Resize rows [start, end): each is summed down, then across."""
    line = local(i16, LINE_CAPACITY)
    pitch, step = width * channels, len(first_y)
    packed = static(8 if taps_x <= 2 else (taps_x + 3) // 4 * 16)
    for b in range(len(blocks) // 4):
        begin, stop = i64(blocks[b * 4]), i64(blocks[b * 4 + 1])
        base, many = i64(blocks[b * 4 + 2]), i64(blocks[b * 4 + 3]) * channels
        for y in range(start, end):
            at = i64(first_y[y]) * pitch + base * channels
            sum_down(source[at:], line, weights_y[y:], step, pitch, many, taps=taps_y)
            sum_across(
                line, first_x[begin:], weights_x[begin * packed :],
                out[(y * out_width + begin) * channels :], stop - begin, half, factor,
                taps=taps_x, channels=channels,
            )  # fmt: skip
