"""Source-over on RGBA8 pixels in sRGB.

A pixel is a 32-bit word, red in its low byte and alpha in its high byte, not premultiplied. Vectors
hold sixteen pixels.

There are two kinds of source. Pixels over pixels are exactly rounded: in 16-bit integers over
opaque pixels, otherwise in f32 (numerator and denominator stay below 2**24, so the division is
exact enough to round correctly). Colors with fractional coverage are computed in f32.
"""

from __future__ import annotations

from typing import Final

from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    Vector,
    all_of,
    f32,
    hinted,
    i32,
    i64,
    in_range,
    load,
    local,
    select,
    shuffle,
    splat,
    static,
    store,
    table,
    u16,
    u32,
    view,
)

#: Pixels from this value on are opaque.
OPAQUE: Final = 0xFF000000
#: Pixels below this value are transparent.
VISIBLE: Final = 0x01000000
#: Mask of every other channel, and one half in each of those channels for rounding.
CHANNEL_PAIR: Final = 0x00FF00FF
PAIR_HALF: Final = 0x00800080
#: The factor from a byte to 0..1.
INVERSE: Final = 1 / 255
#: Lanes that repeat the alpha of sixteen pixels, seen as 32 numbers of 16 bits.
_ALPHA_LANES: Final = tuple(2 * (k // 2) + 1 for k in range(32))
#: Full alpha in the high bytes of pixels seen as 16-bit numbers.
_FULL_ALPHA: Final = (0, 255) * 16


# one pixel ------------------------------------------------------------------------------------
@native
def over_opaque_pixel(d: u32, s: u32, a: u32) -> u32:
    """Return ``s`` over opaque ``d`` with the alpha ``a``, two channels at a time."""
    even = (d & CHANNEL_PAIR) * (255 - a) + ((s & CHANNEL_PAIR) * a + PAIR_HALF)
    full = ((s >> 8) | 0x00FF0000) & CHANNEL_PAIR
    odd = ((d >> 8) & CHANNEL_PAIR) * (255 - a) + (full * a + PAIR_HALF)
    # (t + (t >> 8)) >> 8 with t = x + 128 is x / 255 rounded, for x up to 255 * 255.
    even = ((even + ((even >> 8) & CHANNEL_PAIR)) >> 8) & CHANNEL_PAIR
    odd = (odd + ((odd >> 8) & CHANNEL_PAIR)) & ~u32(CHANNEL_PAIR)
    return even | odd


@native(inline=False)
def over_translucent_pixel(d: u32, s: u32) -> u32:
    """Return ``s`` over ``d``, for any alpha of ``d`` and an alpha of ``s`` above 0."""
    a = s >> 24
    back = (d >> 24) * (255 - a)
    total = a * 255 + back
    out = ((total + 127) // 255) << 24
    for shift in static((0, 8, 16)):
        part = ((s >> shift) & 255) * (a * 255) + ((d >> shift) & 255) * back
        out |= ((2 * part + total) // (2 * total)) << shift
    return out


@native(inline=False)
def over_pixel(d: u32, s: u32) -> u32:
    """Return ``s``, neither opaque nor transparent, over ``d``."""
    mixed = s
    if d >= OPAQUE:
        mixed = over_opaque_pixel(d, s, s >> 24)
    elif d >= VISIBLE:
        mixed = over_translucent_pixel(d, s)
    return mixed


# sixteen pixels -------------------------------------------------------------------------------
@native
def as_halves(words: Vector) -> Vector:
    """Reinterpret sixteen words as 32 numbers of 16 bits."""
    room = local(u32, 16)
    store(room, 0, words)
    return load(view(room, u16, 0), 0, 32)


@native
def as_words(halves: Vector) -> Vector:
    """Reinterpret 32 numbers of 16 bits as sixteen words."""
    room = local(u16, 32)
    store(room, 0, halves)
    return load(view(room, u32, 0), 0, 16)


@native
def divide_255(even: Vector, odd: Vector) -> Vector:
    """Divide sums of products plus 128 by 255, and pack even and odd channels as bytes."""
    low = u16((u32(even) * 257) >> 16)
    high = u16((u32(odd) * 257) >> 16)
    return low | (high << 8)


@native
def over_opaque(d: Vector, s: Vector) -> Vector:
    """Return sixteen pixels over sixteen opaque ones."""
    back, front = as_halves(d), as_halves(s)
    a = shuffle(front, front, _ALPHA_LANES) >> 8
    rest = 255 - a
    full = load(table(u16, _FULL_ALPHA), 0, 32)
    # The second summands are constant in loops over one color.
    even = (back & 255) * rest + ((front & 255) * a + 128)
    odd = (back >> 8) * rest + (((front >> 8) | full) * a + 128)
    return as_words(divide_255(even, odd))


@native
def over_any(d: Vector, s: Vector) -> Vector:
    """Return sixteen pixels over sixteen pixels, with any alphas.

    A pixel under a transparent one keeps its color, even if it is transparent too.
    """
    a = s >> 24
    front = a * 255
    back = (d >> 24) * (255 - a)
    total = front + back
    share = f32(i32(max(total, splat(u32(1), 16))))
    t = total + 128
    out = ((t + (t >> 8)) >> 8) << 24
    for shift in static((0, 8, 16)):
        part = ((s >> shift) & 255) * front + ((d >> shift) & 255) * back
        out |= round_bytes(f32(i32(part)) / share) << shift
    return select(a == 0, d, out)


# rows -----------------------------------------------------------------------------------------
@native
def copy_row(pixels: Array[u32], at: i64, source: Array[u32], first: i64, count: i64) -> None:
    """Copy pixels from another row."""
    for k in hinted(range(0, count - 15, 16), unroll=4):
        store(pixels, at + k, load(source, first + k, 16))
    rest = count & 15
    if rest != 0:
        k = count - rest
        store(pixels, at + k, load(source, first + k, 16, rest), rest)


@native
def fill_row(pixels: Array[u32], at: i64, count: i64, color: u32) -> None:
    """Fill pixels with one color."""
    v = splat(color, 16)
    for k in hinted(range(at, at + count - 15, 16), scalar=True):
        store(pixels, k, v)
    if count & 15 != 0:
        store(pixels, at + (count & ~15), v, count & 15)


@native(inline=False)
def over_row(pixels: Array[u32], at: i64, source: Array[u32], first: i64, count: i64) -> None:
    """Composite a row of pixels over another."""
    for k in hinted(range(0, count - 15, 16), scalar=True):
        s = load(source, first + k, 16)
        if all_of(s < VISIBLE):
            continue
        if all_of(s >= OPAQUE):
            store(pixels, at + k, s)
            continue
        d = load(pixels, at + k, 16)
        if all_of(d >= OPAQUE):
            store(pixels, at + k, over_opaque(d, s))
        else:
            over_some(pixels, at + k, source, first + k, 16)
    if count & 15 != 0:
        k = count & ~15
        over_some(pixels, at + k, source, first + k, count & 15)


@native(inline=False)
def over_some(pixels: Array[u32], at: i64, source: Array[u32], first: i64, count: i64) -> None:
    """Composite up to sixteen pixels over others."""
    d, s = load(pixels, at, 16, count), load(source, first, 16, count)
    store(pixels, at, over_any(d, s), count)


# colors with coverage -------------------------------------------------------------------------
@native
def round_bytes(values: Vector) -> Vector:
    """Round numbers of 0..255, halves up."""
    return u32(in_range(i32, values + f32(0.5)))


@native
def channels_of(words: Vector) -> Vector:
    """Return red, green and blue of sixteen pixels, 0..255."""
    r, g, b = words & 255, (words >> 8) & 255, (words >> 16) & 255
    return f32(i32(r)), f32(i32(g)), f32(i32(b))


@native(fast=True)
def cover_opaque(d: Vector, r: Vector, g: Vector, b: Vector, alpha: Vector) -> Vector:
    """Return colors of 0..255 with alphas of 0..1 over sixteen opaque pixels."""
    dr, dg, db = channels_of(d)
    red = round_bytes(dr + (r - dr) * alpha)
    green = round_bytes(dg + (g - dg) * alpha)
    blue = round_bytes(db + (b - db) * alpha)
    return red | (green << 8) | (blue << 16) | OPAQUE


@native(inline=False, fast=True)
def cover_any(d: Vector, r: Vector, g: Vector, b: Vector, alpha: Vector) -> Vector:
    """Return colors of 0..255 with alphas of 0..1 over sixteen pixels.

    The result for a pixel does not depend on its neighbors: opaque pixels are rounded as
    ``cover_opaque`` rounds them, and pixels under an alpha of 0 stay as they are.
    """
    dr, dg, db = channels_of(d)
    below = f32(i32(d >> 24)) * f32(INVERSE) * (f32(1) - alpha)
    total = alpha + below
    share = select(total > f32(0), alpha / max(total, splat(f32(1e-12), 16)), splat(f32(0), 16))
    rest = select(total > f32(0), f32(1) - share, splat(f32(0), 16))
    red = round_bytes(r * share + dr * rest)
    green = round_bytes(g * share + dg * rest)
    blue = round_bytes(b * share + db * rest)
    made = red | (green << 8) | (blue << 16) | (round_bytes(total * f32(255)) << 24)
    made = select(alpha > f32(0), made, d)
    return select(d >= OPAQUE, cover_opaque(d, r, g, b, alpha), made)


@native
def cover(d: Vector, r: Vector, g: Vector, b: Vector, alpha: Vector) -> Vector:
    """Return colors over sixteen pixels, with ``cover_opaque`` if all of them are opaque."""
    if all_of(d >= OPAQUE):
        return cover_opaque(d, r, g, b, alpha)
    return cover_any(d, r, g, b, alpha)
