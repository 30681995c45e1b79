"""Rows of pixels over rows of pixels, mode "over" in sRGB.

A pixel is a word, red in its low byte. ``lay`` takes the source's own alpha, in whole numbers and
exactly rounded over opaque pixels; ``lay_part`` lets only so much of each pixel through, in f32.
"""

from __future__ import annotations

from typing import Any, Final

from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.words import (
    Array,
    all_of,
    f32,
    hinted,
    i32,
    i64,
    in_range,
    load,
    select,
    shuffle,
    splat,
    store,
    table,
    u16,
    u32,
    view,
)

#: Words from here on are opaque pixels, words below the other are clear ones.
OPAQUE: Final = 0xFF000000
FAINT: Final = 0x01000000
#: Where the alphas of sixteen pixels are among their halves, twice each.
ALPHAS: Final = tuple(2 * (k // 2) + 1 for k in range(32))
#: Full alpha where it lies in the high bytes of halves.
FULL: Final = (0, 255) * 16
INVERSE: Final = 1 / 255


@native
def copy_row(pixels: Array[u32], at: i64, source: Array[u32], first: i64, count: i64) -> None:
    """Replaces pixels."""
    for k in hinted(range(0, count - 15, 16), unroll=4):
        store(pixels, at + k, load(source, first + k, 16))
    rest = count & 15
    if rest != 0:
        k = count - rest
        store(pixels, at + k, load(source, first + k, 16, rest), rest)


@native
def fill_row(pixels: Array[u32], at: i64, count: i64, color: u32) -> None:
    """Replaces pixels by one colour."""
    v = splat(color, 16)
    for k in hinted(range(at, at + count - 15, 16), scalar=True):
        store(pixels, k, v)
    if count & 15 != 0:
        store(pixels, at + (count & ~15), v, count & 15)


@native
def bytes_of(values: Any) -> Any:
    """Numbers of 0..255 to the nearest whole one, halves up."""
    return u32(in_range(i32, values + f32(0.5)))


@native(fast=True)
def over_opaque(d: Any, r: Any, g: Any, b: Any, alpha: Any) -> Any:
    """Sixteen opaque words with colours of 0..255 over them."""
    dr, dg, db = f32(i32(d & 255)), f32(i32((d >> 8) & 255)), f32(i32((d >> 16) & 255))
    red = bytes_of(dr + (r - dr) * alpha)
    green = bytes_of(dg + (g - dg) * alpha)
    blue = bytes_of(db + (b - db) * alpha)
    return red | (green << 8) | (blue << 16) | OPAQUE


@native(inline=False, fast=True)
def over_any(d: Any, r: Any, g: Any, b: Any, alpha: Any) -> Any:
    """Sixteen words with colours of 0..255 over them.

    What becomes of a pixel does not depend on its neighbours: an opaque one is rounded here as it
    is among opaque ones, and one that nothing is laid on stays as it is, colours that nobody sees
    included, as it does among such.
    """
    dr, dg, db = f32(i32(d & 255)), f32(i32((d >> 8) & 255)), f32(i32((d >> 16) & 255))
    below = f32(i32(d >> 24)) * f32(INVERSE) * (f32(1) - alpha)
    total = alpha + below
    share = select(total > f32(0), alpha / max(total, splat(f32(1e-12), 16)), splat(f32(0), 16))
    rest = select(total > f32(0), f32(1) - share, splat(f32(0), 16))
    red = bytes_of(r * share + dr * rest)
    green = bytes_of(g * share + dg * rest)
    blue = bytes_of(b * share + db * rest)
    made = red | (green << 8) | (blue << 16) | (bytes_of(total * f32(255)) << 24)
    made = select(alpha > f32(0), made, d)
    return select(d >= OPAQUE, over_opaque(d, r, g, b, alpha), made)


@native
def over_words(d: Any, r: Any, g: Any, b: Any, alpha: Any) -> Any:
    """Sixteen words with colours over them; the shorter way where all are opaque."""
    if all_of(d >= OPAQUE):
        return over_opaque(d, r, g, b, alpha)
    return over_any(d, r, g, b, alpha)


@native
def mingle(back: Any, front: Any) -> Any:
    """Sixteen pixels over sixteen opaque ones, both as halves; exactly rounded."""
    a = shuffle(front, front, ALPHAS) >> 8
    rest = 255 - a
    full = load(table(u16, FULL), 0, 32)
    even = (back & 255) * rest + (front & 255) * a + 128
    odd = (back >> 8) * rest + ((front >> 8) | full) * a + 128
    low = u16((u32(even) * 257) >> 16)
    high = u16((u32(odd) * 257) >> 16)
    return low | (high << 8)


@native(inline=False)
def lay(pixels: Array[u32], at: i64, source: Array[u32], first: i64, count: i64) -> None:
    """A row of pixels over a row of pixels."""
    for k in hinted(range(0, count - 15, 16), scalar=True):
        s = load(source, first + k, 16)
        if all_of(s < FAINT):
            continue
        if all_of(s >= OPAQUE):
            store(pixels, at + k, s)
            continue
        if all_of(load(pixels, at + k, 16) >= OPAQUE):
            back = load(view(pixels, u16, 4 * (at + k)), 0, 32)
            front = load(view(source, u16, 4 * (first + k)), 0, 32)
            store(view(pixels, u16, 4 * (at + k)), 0, mingle(back, front))
        else:
            lay_some(pixels, at + k, source, first + k, 16)
    if count & 15 != 0:
        k = count & ~15
        lay_some(pixels, at + k, source, first + k, count & 15)


@native(inline=False)
def lay_some(pixels: Array[u32], at: i64, source: Array[u32], first: i64, count: i64) -> None:
    """Up to sixteen pixels over any pixels."""
    s = load(source, first, 16, count)
    d = load(pixels, at, 16, count)
    a = f32(i32(s >> 24)) * f32(INVERSE)
    r, g, b = f32(i32(s & 255)), f32(i32((s >> 8) & 255)), f32(i32((s >> 16) & 255))
    store(pixels, at, over_any(d, r, g, b, a), count)


@native(inline=False)
def lay_part(
    pixels: Array[u32], at: i64, source: Array[u32], first: i64, part: Array[f32], count: i64
) -> None:
    """A row of pixels over a row of pixels, ``part`` of each."""
    for k in hinted(range(0, count, 16), scalar=True):
        n = min(count - k, 16)
        s = load(source, first + k, 16, n)
        d = load(pixels, at + k, 16, n)
        a = f32(i32(s >> 24)) * f32(INVERSE) * load(part, k, 16)
        r, g, b = f32(i32(s & 255)), f32(i32((s >> 8) & 255)), f32(i32((s >> 16) & 255))
        store(pixels, at + k, over_words(d, r, g, b, a), n)


@native(inline=False)
def wash_part(pixels: Array[u32], at: i64, color: u32, part: Array[f32], count: i64) -> None:
    """One colour over a row of pixels, ``part`` of it at each."""
    alpha = f32(color >> 24) * f32(INVERSE)
    r = splat(f32(color & 255), 16)
    g = splat(f32((color >> 8) & 255), 16)
    b = splat(f32((color >> 16) & 255), 16)
    for k in hinted(range(0, count, 16), scalar=True):
        n = min(count - k, 16)
        d = load(pixels, at + k, 16, n)
        store(pixels, at + k, over_words(d, r, g, b, load(part, k, 16) * alpha), n)


@native(inline=False)
def lay_planes(
    pixels: Array[u32], at: i64, red: Array[f32], green: Array[f32], blue: Array[f32],
    alphas: Array[f32], count: i64,
) -> None:  # fmt: skip
    """Colours of 0..255 with alphas of 0..1 over a row of pixels."""
    for k in hinted(range(0, count, 16), scalar=True):
        n = min(count - k, 16)
        d = load(pixels, at + k, 16, n)
        r, g, b = load(red, k, 16), load(green, k, 16), load(blue, k, 16)
        store(pixels, at + k, over_words(d, r, g, b, load(alphas, k, 16)), n)


@native(inline=False)
def tint_row(source: Array[u32], first: i64, made: Array[u32], count: i64, color: u32) -> None:
    """The alphas of a row times that of a colour, in that colour; may be done in place."""
    alpha, rest = color >> 24, color & 0x00FFFFFF
    for k in hinted(range(0, count, 16), scalar=True):
        n = min(count - k, 16)
        product = (load(source, first + k, 16, n) >> 24) * alpha + 128
        store(made, k, (((product + (product >> 8)) >> 8) << 24) | rest, n)
