"""Composite rows of pixels over rows of a target, with a coverage for each pixel.

Coverage has 16 fractional bits and multiplies the source's alpha.
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
from dala.gpu.compute.engines.cpu.pixels.over import OPAQUE, cover, round_bytes

#: Indexes of lanes.
_LANES: Final = tuple(range(16))


@native(inline=False)
def cover_row(
    pixels: Array[u32], at: i64, source: Array[u32], first: i64, coverage: Array[u32], count: i64
) -> None:
    """Composite a row of pixels over a row of the target."""
    for k in hinted(range(0, count, 16), scalar=True):
        n = min(count - k, 16)
        s = load(source, first + k, 16, n)
        d = load(pixels, at + k, 16, n)
        store(pixels, at + k, cover(d, s, load(coverage, k, 16)), n)


@native(inline=False)
def cover_color(pixels: Array[u32], at: i64, color: u32, coverage: Array[u32], count: i64) -> None:
    """Composite one color over a row of the target."""
    s = splat(color, 16)
    for k in hinted(range(0, count, 16), scalar=True):
        n = min(count - k, 16)
        d = load(pixels, at + k, 16, n)
        store(pixels, at + k, cover(d, s, load(coverage, k, 16)), n)


@native(inline=False)
def tint_row(source: Array[u32], first: i64, out: Array[u32], count: i64, color: u32) -> None:
    """Write one color, its alpha multiplied by those of a row; ``out`` may be the source."""
    alpha, rest = color >> 24, color & 0x00FFFFFF
    for k in hinted(range(0, count, 16), scalar=True):
        n = min(count - k, 16)
        product = (load(source, first + k, 16, n) >> 24) * alpha + 128
        store(out, k, (((product + (product >> 8)) >> 8) << 24) | rest, n)


@native(inline=False, fast=True)
def pack_sums(sums: Array[f32], out: Array[u32], count: i64) -> None:
    """Write premultiplied sums as pixels."""
    most = splat(f32(255), 16)
    for k in hinted(range(0, count, 16), scalar=True):
        alpha = channel_of(sums, 4 * k, channel=3)
        r, g, b = straight_colors(sums, 4 * k, alpha)
        word = round_bytes(min(r, most)) | (round_bytes(min(g, most)) << 8)
        word |= round_bytes(min(b, most)) << 16
        word |= round_bytes(min(alpha * f32(1 / 255), most)) << 24
        store(out, k, word, min(count - k, 16))


@native(inline=False)
def all_opaque(texels: Array[u32], at: i64, count: i64) -> bool:
    """Return whether ``count`` pixels starting at ``at`` are all opaque."""
    for k in hinted(range(0, count, 16), scalar=True):
        n = min(count - k, 16)
        v = load(texels, at + k, 16, n)
        if not all_of((v >= OPAQUE) | (load(table(i32, _LANES), 0, 16) >= i32(n))):
            return False
    return True
