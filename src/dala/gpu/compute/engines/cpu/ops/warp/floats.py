"""Samples of f32 pictures between pixels. A pixel of four channels is one vector."""

from __future__ import annotations

from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    Vector,
    f32,
    i32,
    i64,
    independent,
    load,
    static,
    store,
)
from dala.gpu.compute.engines.cpu.ops.warp.groups import BILINEAR, CONSTANT, fold
from dala.gpu.compute.engines.cpu.pixels.gather import (
    bicubic,
    bicubic_gray,
    bilinear,
    cubic_weights,
    mix_corners,
    pixel,
)


@native(inline=False)
def tap(
    source: Array[f32], x: i64, y: i64, width: i64, height: i64, fill: Vector,
    *, channels: int, border: int,
) -> Vector:  # fmt: skip
    """Return the pixel at any position, inside or outside of the picture."""
    at = (fold(y, height, border=border) * width + fold(x, width, border=border)) * channels
    value = pixel(source, at, channels=channels)
    if border == CONSTANT:
        inside = x >= 0 and x < width and y >= 0 and y < height
        value = value if inside else fill
    return value


@native(fast=True)
def sample(
    source: Array[f32], x: i64, part_x: f32, y: i64, part_y: f32, width: i64, height: i64,
    fill: Vector, *, channels: int, method: int, border: int,
) -> Vector:  # fmt: skip
    """Return a bilinear or bicubic sample at any position."""
    if method == BILINEAR:
        value = fill
        if border == CONSTANT and (x < -1 or x >= width or y < -1 or y >= height):
            return fill
        if x >= 0 and x < width - 1 and y >= 0 and y < height - 1:
            at = (y * width + x) * channels
            value = bilinear(source, at, width * channels, part_x, part_y, channels=channels)
        else:
            nw = tap(source, x, y, width, height, fill, channels=channels, border=border)
            ne = tap(source, x + 1, y, width, height, fill, channels=channels, border=border)
            sw = tap(source, x, y + 1, width, height, fill, channels=channels, border=border)
            se = tap(source, x + 1, y + 1, width, height, fill, channels=channels, border=border)
            value = mix_corners(nw, ne, sw, se, part_x, part_y)
        return value
    else:
        value = fill
        if border == CONSTANT and (x < -2 or x > width or y < -2 or y > height):
            return fill
        if x >= 1 and x < width - 2 and y >= 1 and y < height - 2:
            at = ((y - 1) * width + x - 1) * channels
            value = bicubic(source, at, width * channels, part_x, part_y, channels=channels)
        else:
            wx, wy = cubic_weights(part_x), cubic_weights(part_y)
            value = fill * 0.0
            for j in static(range(4)):
                for k in static(range(4)):
                    one = tap(
                        source, x + k - 1, y + j - 1, width, height, fill,
                        channels=channels, border=border,
                    )  # fmt: skip
                    value += (wy[j] * wx[k]) * one
        return value


@native(fast=True)
def sample_gray_floats(
    source: Array[f32], whole_x: Array[i32], part_x: Array[f32], whole_y: Array[i32],
    part_y: Array[f32], width: i64, out: Array[f32], count: i64,
) -> None:  # fmt: skip
    """Sample a batch of one channel bicubically; its pixels are all inside the picture."""
    for i in independent(range(count)):
        at = i64(whole_y[i]) * width + i64(whole_x[i])
        value = bicubic_gray(source, at - width - 1, width, part_x[i], part_y[i])
        store_pixel(out, i, value, channels=1)


@native(fast=True)
def mix_float_rows(
    source: Array[f32], at: i64, pitch: i64, part_y: f32, mixed: Array[f32], count: i64,
) -> None:  # fmt: skip
    """Interpolate between a row and the one below it."""
    for i in independent(range(count)):
        above, below = source[at + i], source[at + pitch + i]
        mixed[i] = above + (below - above) * part_y


@native(fast=True)
def sample_floats_across(
    mixed: Array[f32], first: i64, whole_x: Array[i32], part_x: Array[f32], out: Array[f32],
    at: i64, count: i64, *, channels: int,
) -> None:  # fmt: skip
    """Sample a row of pixels that begins at a column."""
    for i in range(count):
        x = (i64(whole_x[i]) - first) * channels
        left, right = load(mixed, x, 4), load(mixed, x + channels, 4)
        store_pixel(out, at + i * channels, left + (right - left) * part_x[i], channels=channels)


@native
def sample_floats(
    source: Array[f32], whole_x: Array[i32], part_x: Array[f32], whole_y: Array[i32],
    part_y: Array[f32], width: i64, height: i64, fill: Vector, out: Array[f32],
    begin: i64, end: i64, *, channels: int, method: int, border: int,
) -> None:  # fmt: skip
    """Sample pixels [begin, end) of a batch, at any position."""
    for i in range(begin, end):
        v = sample(
            source, i64(whole_x[i]), part_x[i], i64(whole_y[i]), part_y[i],
            width, height, fill, channels=channels, method=method, border=border,
        )  # fmt: skip
        store_pixel(out, i * channels, v, channels=channels)


@native
def store_pixel(out: Array[f32], at: i64, value: Vector, *, channels: int) -> None:
    """Store a pixel."""
    if channels == 1:
        out[at] = value
    elif channels == 4:
        store(out, at, value)
    else:
        for c in static(range(3)):
            out[at + c] = value[c]
