"""Composite rows of pixels over rows of a target, with a coverage for each pixel.

Coverage is in 0..1 and multiplies the source's alpha.
"""

from __future__ import annotations

from typing import Final

from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    all_of,
    f32,
    hinted,
    i32,
    i64,
    load,
    splat,
    store,
    table,
    u32,
)
from dala.gpu.compute.engines.cpu.pixels.float_rows import channel_of, straight_colors
from dala.gpu.compute.engines.cpu.pixels.over import INVERSE, OPAQUE, channels_of, cover

#: Indexes of lanes.
_LANES: Final = tuple(range(16))


@native(inline=False)
def cover_row(
    pixels: Array[u32], at: i64, source: Array[u32], first: i64, coverage: Array[f32], count: i64
) -> None:
    """Composite a row of pixels over a row of the target."""
    for k in hinted(range(0, count, 16), scalar=True):
        n = min(count - k, 16)
        s = load(source, first + k, 16, n)
        d = load(pixels, at + k, 16, n)
        a = f32(i32(s >> 24)) * f32(INVERSE) * load(coverage, k, 16)
        r, g, b = channels_of(s)
        store(pixels, at + k, cover(d, r, g, b, a), n)


@native(inline=False)
def cover_color(pixels: Array[u32], at: i64, color: u32, coverage: Array[f32], count: i64) -> None:
    """Composite one color over a row of the target."""
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
    """Composite colors in 0..255 with alphas in 0..1 over a row of the target."""
    for k in hinted(range(0, count, 16), scalar=True):
        n = min(count - k, 16)
        d = load(pixels, at + k, 16, n)
        r, g, b = load(red, k, 16), load(green, k, 16), load(blue, k, 16)
        store(pixels, at + k, cover(d, r, g, b, load(alphas, k, 16)), n)


@native(inline=False)
def tint_row(source: Array[u32], first: i64, out: Array[u32], count: i64, color: u32) -> None:
    """Write one color, its alpha multiplied by those of a row; ``out`` may be the source."""
    alpha, rest = color >> 24, color & 0x00FFFFFF
    for k in hinted(range(0, count, 16), scalar=True):
        n = min(count - k, 16)
        product = (load(source, first + k, 16, n) >> 24) * alpha + 128
        store(out, k, (((product + (product >> 8)) >> 8) << 24) | rest, n)


@native(inline=False, fast=True)
def cover_sums(
    pixels: Array[u32], at: i64, sums: Array[f32], first: i64, coverage: Array[f32], count: i64,
    tinted: bool, color: u32,
) -> None:  # fmt: skip
    """Composite premultiplied sums over a row of the target.

    With ``tinted``, only their alphas are used, with the color ``color``.
    """
    inverse = f32(1 / 65025)
    if tinted:
        inverse = f32(color >> 24) * f32(1 / 65025 / 255)
    for k in hinted(range(0, count, 16), scalar=True):
        n = min(count - k, 16)
        base = 4 * (first + k)
        alpha = channel_of(sums, base, channel=3)
        if all_of(alpha <= f32(0)):
            continue
        r, g, b = channels_of(splat(color, 16))
        if not tinted:
            r, g, b = straight_colors(sums, base, alpha)
        d = load(pixels, at + k, 16, n)
        a = min(alpha * inverse, splat(f32(1), 16)) * load(coverage, k, 16)
        store(pixels, at + k, cover(d, r, g, b, a), n)


@native(inline=False)
def all_opaque(texels: Array[u32], at: i64, count: i64) -> bool:
    """Return whether ``count`` pixels starting at ``at`` are all opaque."""
    for k in hinted(range(0, count, 16), scalar=True):
        n = min(count - k, 16)
        v = load(texels, at + k, 16, n)
        if not all_of((v >= OPAQUE) | (load(table(i32, _LANES), 0, 16) >= i32(n))):
            return False
    return True
