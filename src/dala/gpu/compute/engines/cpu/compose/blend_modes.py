"""Blend modes, in sRGB and in linear light, for sixteen pixels at a time.

Colors are numbers of 16 bits: 257 times a byte, or linear light.
"""

from __future__ import annotations

import numpy as np

from dala.gpu.compute.engines.blending import LEAST, SOFT, VALUES, WHITE
from dala.gpu.compute.engines.compositing import BLENDS
from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.pixels.over import divide_near, quotient, shared_alpha

OVER, ADD, MULTIPLY, SCREEN, OVERLAY, DARKEN, LIGHTEN, DODGE, BURN, HARD, SOFT_LIGHT, DIFFERENCE = (
    range(12)
)
EXCLUSION, HUE, SATURATION, COLOR, LUMINOSITY = range(12, len(BLENDS))

_LIGHT: Final = tuple(VALUES[1].tolist())
_SOFT: Final = tuple(SOFT[0].tolist())
_SOFT_OF_LIGHT: Final = tuple(SOFT[1].tolist())
#: The least linear light of each byte but 0, and the byte of the first of each sixteen numbers; at
#: most one byte begins in them.
_LEAST: Final = (*LEAST.tolist(), 1 << 16)
_BYTES: Final = tuple(np.searchsorted(LEAST, np.arange(4096) * 16, side="right").tolist())


@native
def byte_of_light(x: Vector) -> Vector:
    """Convert linear light to sRGB bytes."""
    byte = gather(table(u32, _BYTES), i32(x >> 4))
    return byte + select(x >= gather(table(u32, _LEAST), i32(byte)), u32(1), u32(0))


@native
def ratio(a: Vector, b: Vector) -> Vector:
    """Return a * 65536 / b, rounded, for a up to b up to 2**24."""
    return divide_near((a << 16) + (b >> 1), b, f32(i32(a)) * 65536 / f32(i32(b)))


@native
def overlay(b: Vector, s: Vector) -> Vector:
    """Multiply where ``b`` is dark, screen where it is light."""
    light = WHITE - quotient(2 * (WHITE - b) * (WHITE - s))
    return select(2 * b <= WHITE, quotient(2 * b * s), light)


@native
def dodge(b: Vector, s: Vector) -> Vector:
    """Lighten ``b`` by ``s``."""
    rest = max(WHITE - s, 1)
    guess = f32(i32(b)) * WHITE / f32(i32(rest))
    made = divide_near(b * WHITE + (rest >> 1), rest, min(guess, WHITE))
    made = select(b >= WHITE - s, WHITE, made)
    return select(b == 0, b, made)


@native(inline=False)
def blend_channel(mode: i32, b: Vector, s: Vector, soft: Vector) -> Vector:
    """Blend one channel of the backdrop and the source."""
    found = s
    if mode == MULTIPLY:
        found = quotient(b * s)
    elif mode == SCREEN:
        found = b + s - quotient(b * s)
    elif mode == OVERLAY:
        found = overlay(b, s)
    elif mode == DARKEN:
        found = min(b, s)
    elif mode == LIGHTEN:
        found = max(b, s)
    elif mode == DODGE:
        found = dodge(b, s)
    elif mode == BURN:
        found = WHITE - dodge(WHITE - b, WHITE - s)
    elif mode == HARD:
        found = overlay(s, b)
    elif mode == SOFT_LIGHT:
        less = b - quotient((WHITE - 2 * s) * quotient(b * (WHITE - b)))
        found = select(2 * s <= WHITE, less, b + quotient((2 * s - WHITE) * (soft - b)))
    elif mode == DIFFERENCE:
        found = max(b, s) - min(b, s)
    elif mode == EXCLUSION:
        found = b + s - 2 * quotient(b * s)
    return found


@native
def level(pixels: Vector, *, shift: int, linear: bool) -> Vector:
    """Return one channel of pixels as numbers of 16 bits."""
    byte = (pixels >> shift) & 255
    if linear:
        return gather(table(u32, _LIGHT), i32(byte))
    else:
        return byte * 257


@native
def luminance(r: Vector, g: Vector, b: Vector) -> Vector:
    """Return 0.3, 0.59 and 0.11 of three channels."""
    return (r * 19661 + g * 38666 + b * 7209 + 32768) >> 16


@native
def saturated(x: Vector, low: Vector, spread: Vector, wanted: Vector) -> Vector:
    """Return a channel of a color whose channels are to spread over ``wanted`` from 0 on."""
    return (ratio(x - low, max(spread, 1)) * wanted + 32768) >> 16


@native
def lit(x: Vector, change: Vector, light: Vector, part: Vector) -> Vector:
    """Return a channel that is changed, and then a part of 65536 as far from the luminance."""
    far = i32(x) + change - i32(light)
    near = i32((u32(max(far, 0 - far)) * part + 32768) >> 16)
    return u32(min(max(i32(light) + select(far < 0, 0 - near, near), 0), i32(WHITE)))


@native(inline=False)
def mix_colors(mode: i32, d: Vector, s: Vector, mixes: Array[u32], *, linear: bool) -> None:
    """Write the three channels of the modes that blend whole colors."""
    dr, dg, db = level(d, shift=0), level(d, shift=8), level(d, shift=16)
    sr, sg, sb = level(s, shift=0), level(s, shift=8), level(s, shift=16)
    light = luminance(dr, dg, db)
    r, g, b, wanted = sr, sg, sb, max(max(dr, dg), db) - min(min(dr, dg), db)
    if mode == SATURATION:
        r, g, b, wanted = dr, dg, db, max(max(sr, sg), sb) - min(min(sr, sg), sb)
    if mode == LUMINOSITY:
        r, g, b, light = dr, dg, db, luminance(sr, sg, sb)
    if HUE <= mode <= SATURATION:
        low = min(min(r, g), b)
        spread = max(max(r, g), b) - low
        r, g = saturated(r, low, spread, wanted), saturated(g, low, spread, wanted)
        b = saturated(b, low, spread, wanted)
    change = i32(light) - i32(luminance(r, g, b))
    least, most = i32(min(min(r, g), b)) + change, i32(max(max(r, g), b)) + change
    below, above = least < 0, most > i32(WHITE)
    part = select(below, light, select(above, WHITE - light, u32(1)))
    whole = select(below, i32(light) - least, select(above, most - i32(light), 1))
    part = select(below | above, ratio(part, u32(whole)), u32(65536))
    store(mixes, 0, lit(r, change, light, part))
    store(mixes, 16, lit(g, change, light, part))
    store(mixes, 32, lit(b, change, light, part))


@native
def composite(
    d: Vector, s: Vector, over: Vector, under: Vector, weight: Vector, mode: i32,
    mixes: Array[u32], *, shift: int, linear: bool,
) -> Vector:  # fmt: skip
    """Return one channel of the result, shifted to its byte.

    ``weight`` is that of the source in the result; "add" has weights ``over`` and ``under``.
    ``mixes`` are the channels of modes of whole colors.
    """
    back = (d >> shift) & 255
    b, f = level(d, shift=shift), level(s, shift=shift)
    m = f
    if mode != ADD:
        soft = b
        if mode == SOFT_LIGHT:
            if linear:
                soft = gather(table(u32, _SOFT_OF_LIGHT), i32(back))
            else:
                soft = gather(table(u32, _SOFT), i32(back))
        below = d >> 24
        blended = load(mixes, 2 * shift, 16)
        if mode < HUE:
            blended = blend_channel(mode, b, f, soft)
        m = quotient(((255 - below) * f + below * blended) * 257)
    found = (m * weight + b * (65536 - weight) + 32768) >> 16
    if mode == ADD:
        total = min(((f * over) >> 16) + ((b * under + 32768) >> 16), WHITE)
        found = select(over + under > 65536, total, found)
    if linear:
        return byte_of_light(found) << shift
    else:
        return quotient(found * 255) << shift


@native(inline=False)
def blend_row(
    pixels: Array[u32], at: i64, source: Array[u32], first: i64, coverage: Array[u32], count: i64,
    mode: i32,
    *, linear: bool,
) -> None:  # fmt: skip
    """Blend a row of pixels with a row of the target."""
    mixes = local(u32, 48)
    for k in serial(0, count, 16):
        n = min(count - k, 16)
        d, s = load(pixels, at + k, 16, n), load(source, first + k, 16, n)
        share = load(coverage, k, 16)
        full = share > 65535
        below = d >> 24
        over = shared_alpha(s >> 24, share)
        above = select(full, s >> 24, over)
        total = above * 255 + below * select(full, 255 - above, 65536 - above)
        byte = total + 128
        alpha = select(full, (byte + (byte >> 8)) >> 8, (total + 32768) >> 16)
        under = below * 257 + (below >> 7)
        part, whole = above * 255, total
        if mode == ADD:
            alpha = (min(over + under, 65536) * 255 + 32768) >> 16
            part, whole = over, over + under
        # A weight of "add" is used where the sum is at most 1.
        weight = ratio(part, max(whole, 1))
        out = alpha << 24
        if mode >= HUE:
            mix_colors(mode, d, s, mixes)
        for shift in static((0, 8, 16)):
            out |= composite(d, s, over, under, weight, mode, mixes, shift=shift)
        store(pixels, at + k, select(above == 0, d, out), n)
