"""Rows of pixels with a coverage for each pixel, composited over rows of a target.

Coverage is a fraction of 0..1 that multiplies the source's alpha.
"""

from __future__ import annotations

from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    f32,
    hinted,
    i32,
    i64,
    load,
    splat,
    store,
    u32,
)
from dala.gpu.compute.engines.cpu.pixels.over import INVERSE, channels_of, cover


@native(inline=False)
def cover_row(
    pixels: Array[u32], at: i64, source: Array[u32], first: i64, coverage: Array[f32], count: i64
) -> None:
    """Composite a row of pixels over a row of the target, with a coverage for each."""
    for k in hinted(range(0, count, 16), scalar=True):
        n = min(count - k, 16)
        s = load(source, first + k, 16, n)
        d = load(pixels, at + k, 16, n)
        a = f32(i32(s >> 24)) * f32(INVERSE) * load(coverage, k, 16)
        r, g, b = channels_of(s)
        store(pixels, at + k, cover(d, r, g, b, a), n)


@native(inline=False)
def cover_color(pixels: Array[u32], at: i64, color: u32, coverage: Array[f32], count: i64) -> None:
    """Composite one color over a row of the target, with a coverage for each pixel."""
    alpha = f32(color >> 24) * f32(INVERSE)
    r, g, b = channels_of(splat(color, 16))
    for k in hinted(range(0, count, 16), scalar=True):
        n = min(count - k, 16)
        d = load(pixels, at + k, 16, n)
        store(pixels, at + k, cover(d, r, g, b, load(coverage, k, 16) * alpha), n)


@native(inline=False)
def cover_planes(
    pixels: Array[u32], at: i64, red: Array[f32], green: Array[f32], blue: Array[f32],
    alphas: Array[f32], count: i64,
) -> None:  # fmt: skip
    """Composite colors of 0..255 with alphas of 0..1 over a row of the target."""
    for k in hinted(range(0, count, 16), scalar=True):
        n = min(count - k, 16)
        d = load(pixels, at + k, 16, n)
        r, g, b = load(red, k, 16), load(green, k, 16), load(blue, k, 16)
        store(pixels, at + k, cover(d, r, g, b, load(alphas, k, 16)), n)


@native(inline=False)
def tint_row(source: Array[u32], first: i64, out: Array[u32], count: i64, color: u32) -> None:
    """Write one color with the alphas of a row times its own; ``out`` may be the source."""
    alpha, rest = color >> 24, color & 0x00FFFFFF
    for k in hinted(range(0, count, 16), scalar=True):
        n = min(count - k, 16)
        product = (load(source, first + k, 16, n) >> 24) * alpha + 128
        store(out, k, (((product + (product >> 8)) >> 8) << 24) | rest, n)
