"""Source-over on RGBA8 pixels in sRGB.

A pixel is a 32-bit word, red in its low byte and alpha in its high byte, not premultiplied. Vectors
hold sixteen pixels.

Pixels over pixels are exactly rounded: in 16-bit integers over opaque pixels, otherwise in f32
(numerator and denominator stay below 2**24, so the division is exact enough to round correctly).
Coverage times opacity is a *share* of 65536; with one, alphas have 16 fractional bits.
"""

from __future__ import annotations

from dala.gpu.compute.engines.cpu.native import *

#: Pixels from this value on are opaque.
OPAQUE: Final = 0xFF000000
#: Pixels below this value are transparent.
VISIBLE: Final = 0x01000000
#: Mask of every other channel, and one half in each of those channels for rounding.
CHANNEL_PAIR: Final = 0x00FF00FF
PAIR_HALF: Final = 0x00800080
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


@native
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
def divide_255(even: Vector, odd: Vector) -> Vector:
    """Divide sums of products plus 128 by 255, and pack even and odd channels as bytes."""
    low = u16((u32(even) * 257) >> 16)
    high = u16((u32(odd) * 257) >> 16)
    return low | (high << 8)


@native
def over_opaque(d: Vector, s: Vector) -> Vector:
    """Return sixteen pixels over sixteen opaque ones."""
    back, front = bits(u16, d), bits(u16, s)
    a = shuffle(front, front, _ALPHA_LANES) >> 8
    rest = 255 - a
    full = load(table(u16, _FULL_ALPHA), 0, 32)
    # The second summands are constant in loops over one color.
    even = (back & 255) * rest + ((front & 255) * a + 128)
    odd = (back >> 8) * rest + (((front >> 8) | full) * a + 128)
    return bits(u32, divide_255(even, odd))


@native
def over_any(d: Vector, s: Vector) -> Vector:
    """Return sixteen pixels over sixteen pixels, with any alphas.

    A pixel under a transparent one keeps its color, even if it is transparent too.
    """
    a = s >> 24
    front = a * 255
    back = (d >> 24) * (255 - a)
    total = front + back
    share = f32(i32(max(total, 1)))
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
    for k in serial(at, at + count - 15, 16):
        store(pixels, k, v)
    if count & 15 != 0:
        store(pixels, at + (count & ~15), v, count & 15)


@native(inline=False)
def over_row(pixels: Array[u32], at: i64, source: Array[u32], first: i64, count: i64) -> None:
    """Composite a row of pixels over another."""
    for k in serial(0, count - 15, 16):
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


# pixels with coverage -------------------------------------------------------------------------
@native
def round_bytes(values: Vector) -> Vector:
    """Round numbers of 0..255, halves up."""
    return u32(in_range(i32, values + 0.5))


@native
def quotient(x: Vector) -> Vector:
    """Return x / 65535, rounded, for x up to 65535 * 65535."""
    t = x + 32768
    return (t + (t >> 16)) >> 16


@native
def divide_near(x: Vector, y: Vector, guess: Vector) -> Vector:
    """Return x // y of u32, given a number that is less than one off; y is below 2**30."""
    q = u32(in_range(i32, guess))
    r = i32(x - q * y)
    return select(r < 0, q - 1, select(r >= i32(y), q + 1, q))


@native
def shared_alpha(a: Vector, share: Vector) -> Vector:
    """Return alphas times shares of 65536, rounded, with 16 fractional bits."""
    return select(share > 65535, a * 257 + (a >> 7), quotient(a * share * 257))


@native
def cover_opaque(d: Vector, s: Vector, share: Vector) -> Vector:
    """Return sixteen pixels, with a share of their alphas, over sixteen opaque ones.

    A full share gives what ``over_opaque`` gives: 16 bits are enough for it.
    """
    a = shared_alpha(s >> 24, share)
    out = splat(u32(OPAQUE), 16)
    for shift in static((0, 8, 16)):
        b = (d >> shift) & 255
        out |= (((b << 16) + (((s >> shift) & 255) - b) * a + 32768) >> 16) << shift
    return out


@native(inline=False)
def cover_any(d: Vector, s: Vector, share: Vector) -> Vector:
    """Return sixteen pixels, with a share of their alphas, over sixteen pixels.

    A full share gives what ``over_any`` gives.
    """
    full = share > 65535
    above = select(full, s >> 24, shared_alpha(s >> 24, share))
    rest = select(full, 255 - above, 65536 - above)
    front, back = above * 255, (d >> 24) * rest
    total = max(front + back, 1)
    byte = total + 128
    out = select(full, (byte + (byte >> 8)) >> 8, (total + 32768) >> 16) << 24
    inverse = 2 / f32(i32(total))
    for shift in static((0, 8, 16)):
        part = ((s >> shift) & 255) * front + ((d >> shift) & 255) * back + (total >> 1)
        out |= divide_near(part, total, f32(i32(part >> 1)) * inverse) << shift
    return select(above == 0, d, out)


@native
def cover(d: Vector, s: Vector, share: Vector) -> Vector:
    """Return pixels over sixteen pixels, with ``cover_opaque`` if all of those are opaque."""
    if all_of(d >= OPAQUE):
        return cover_opaque(d, s, share)
    return cover_any(d, s, share)
