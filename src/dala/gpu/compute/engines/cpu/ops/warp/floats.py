"""Samples of f32 pictures between pixels. A pixel of four channels is one vector."""

from __future__ import annotations

from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.ops.resize.byte_rows import store_pixel
from dala.gpu.compute.engines.cpu.ops.warp.groups import (
    BILINEAR,
    CONSTANT,
    Batch,
    bilinear_any,
    tap,
)
from dala.gpu.compute.engines.cpu.pixels.gather import *


@native(fast=True)
def sample(
    source: Array[f32], x: i64, part_x: f32, y: i64, part_y: f32, width: i64, height: i64,
    fill: Vector, *, channels: int, method: int, border: int,
) -> Vector:  # fmt: skip
    """Return a bilinear or bicubic sample at any position."""
    if method == BILINEAR:
        value = fill
        if x >= 0 and x < width - 1 and y >= 0 and y < height - 1:
            at = (y * width + x) * channels
            value = bilinear(source, at, width * channels, part_x, part_y)
        else:
            value = bilinear_any(
                source, x, y, part_x, part_y, width, height, fill, pixel=pixel, mix=mix_corners
            )
        return value
    else:
        value = fill
        if border == CONSTANT and (x < -2 or x > width or y < -2 or y > height):
            return fill
        if x >= 1 and x < width - 2 and y >= 1 and y < height - 2:
            at = ((y - 1) * width + x - 1) * channels
            value = bicubic(source, at, width * channels, part_x, part_y)
        else:
            wx, wy = cubic_weights(part_x), cubic_weights(part_y)
            value = fill * 0.0
            for j in static(range(4)):
                for k in static(range(4)):
                    one = tap(source, x + k - 1, y + j - 1, width, height, fill, pixel=pixel)
                    value += (wy[j] * wx[k]) * one
        return value


@native
def sample_floats(
    source: Array[f32], of: Batch, fill: Vector, out: Array[f32], begin: i64, end: i64,
    *, channels: int, method: int, border: int,
) -> None:  # fmt: skip
    """Sample pixels [begin, end) of a batch, at any position."""
    for i in range(begin, end):
        x, y = i64(of.whole_x[i]), i64(of.whole_y[i])
        v = sample(source, x, of.part_x[i], y, of.part_y[i], of.width, of.height, fill)
        store_pixel(out, i * channels, v)
