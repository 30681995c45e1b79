"""Colours onto pixels: rows of one colour, and rows of pixels with an alpha of their own.

A pixel is a word, red in its low byte, alpha in its high one. All results are the exactly rounded
ones. Over an opaque pixel two channels are computed at a time, in the halves of a word, since
``t + (t >> 8) >> 8`` with ``t = x + 128`` is ``x / 255`` rounded for all x up to 255 * 255. Where a
pixel is transparent the colour simply replaces it; only half transparent pixels need divisions.
"""

from __future__ import annotations

from typing import Any, Final

from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.words import (
    Array,
    all_of,
    any_of,
    hinted,
    i32,
    i64,
    load,
    local,
    prefetch,
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

#: Every other channel, and their halves for rounding.
PAIR: Final = 0x00FF00FF
HALVES: Final = 0x00800080
#: Words from here on are opaque pixels, words below the other are transparent ones.
OPAQUE: Final = 0xFF000000
FAINT: Final = 0x01000000
#: Where the alphas of sixteen pixels are among their halves, twice each.
ALPHAS: Final = tuple(2 * (k // 2) + 1 for k in range(32))
#: Rows of one colour that are collected before they are drawn.
ROWS: Final = 64
#: Full alpha where it lies in the high bytes of halves.
FULL: Final = (0, 255) * 16


@native(inline=False)
def mix(d: u32, s: u32) -> u32:
    """A colour over a pixel, whatever their alphas (the colour's is not 0)."""
    a = s >> 24
    back = (d >> 24) * (255 - a)
    total = a * 255 + back
    out = ((total + 127) // 255) << 24
    for shift in static((0, 8, 16)):
        part = ((s >> shift) & 255) * (a * 255) + ((d >> shift) & 255) * back
        out |= ((2 * part + total) // (2 * total)) << shift
    return out


@native
def lerp(d: u32, s: u32, a: u32) -> u32:
    """``s`` over opaque ``d``, with the alpha ``a``: two channels at a time in halves of a word."""
    even = (d & PAIR) * (255 - a) + (s & PAIR) * a + HALVES
    odd = ((d >> 8) & PAIR) * (255 - a) + (((s >> 8) | 0x00FF0000) & PAIR) * a + HALVES
    even = ((even + ((even >> 8) & PAIR)) >> 8) & PAIR
    odd = (odd + ((odd >> 8) & PAIR)) & ~u32(PAIR)
    return even | odd


@native
def halves(words: Any) -> Any:
    """Sixteen words as 32 numbers of 16 bits: the same bits."""
    room = local(u32, 16)
    store(room, 0, words)
    return load(view(room, u16, 0), 0, 32)


@native
def whole(numbers: Any) -> Any:
    """32 numbers of 16 bits as sixteen words: the same bits."""
    room = local(u16, 32)
    store(room, 0, numbers)
    return load(view(room, u32, 0), 0, 16)


@native
def narrow(even: Any, odd: Any) -> Any:
    """Sums of products plus 128, divided by 255, as bytes beside each other."""
    low = u16((u32(even) * 257) >> 16)
    high = u16((u32(odd) * 257) >> 16)
    return low | (high << 8)


@native(inline=False)
def over(d: u32, s: u32) -> u32:
    """A colour, neither opaque nor transparent, over a pixel."""
    mixed = s
    if d >= OPAQUE:
        mixed = lerp(d, s, s >> 24)
    elif d >= FAINT:
        mixed = mix(d, s)
    return mixed


@native
def paint(pixels: Array[u32], at: i64, count: i64, color: u32) -> None:
    """A row of one colour, which replaces."""
    v = splat(color, 16)
    for i in hinted(range(at, at + count - 15, 16), scalar=True):
        store(pixels, i, v)
    if count & 15 != 0:
        store(pixels, at + (count & ~15), v, count & 15)


@native(inline=False)
def wash(
    pixels: Array[u32], places: Array[i32], counts: Array[i32], first: i64, last: i64, color: u32
) -> tuple[i64, i64]:
    """Rows of one colour that is neither opaque nor transparent, from one to before another.

    Gives the row and the pixel that it came to where some are half transparent, or the last row.
    Calls nothing, so that its constants stay in registers.
    """
    a = color >> 24
    rest = u16(255 - a)
    even = halves(splat((color & PAIR) * a + HALVES, 16))
    odd = halves(splat((((color >> 8) | 0x00FF0000) & PAIR) * a + HALVES, 16))
    plain = splat(color, 16)
    for k in hinted(range(first, last), scalar=True):
        at = i64(places[k])
        end = at + i64(counts[k])
        for i in hinted(range(at, end, 16), scalar=True):
            n = min(end - i, 16)
            d = load(pixels, i, 16, n)
            if any_of((d < OPAQUE) & (d >= FAINT)):
                return k, i
            v = halves(d)
            mixed = whole(narrow((v & 255) * rest + even, (v >> 8) * rest + odd))
            store(pixels, i, select(d < FAINT, plain, mixed), n)
    return last, 0


@native(inline=False)
def washes(
    pixels: Array[u32], places: Array[i32], counts: Array[i32], count: i64, color: u32
) -> None:
    """Rows of one colour that is neither opaque nor transparent, over any pixels."""
    k = 0
    while k < count:
        k, at = wash(pixels, places, counts, k, count, color)
        if k < count:
            wash_mixed(pixels, at, i64(places[k]) + i64(counts[k]), color)
            k += 1


@native(inline=False)
def wash_mixed(pixels: Array[u32], first: i64, end: i64, color: u32) -> None:
    """As wash, over pixels of which some are half transparent."""
    for i in hinted(range(first, end), scalar=True):
        pixels[i] = over(pixels[i], color)


@native(inline=False)
def row(pixels: Array[u32], at: i64, count: i64, color: u32) -> None:
    """A row of one colour, for those that need few of them."""
    if color >= OPAQUE:
        paint(pixels, at, count, color)
    else:
        places, counts = local(i32, 1), local(i32, 1)
        places[0], counts[0] = i32(at), i32(count)
        washes(pixels, places, counts, 1, color)


@native(inline=False)
def dots(pixels: Array[u32], places: Array[i32], count: i64, color: u32) -> None:
    """Single pixels of one colour."""
    if color >= OPAQUE:
        for k in hinted(range(count), scalar=True):
            pixels[places[k]] = color
        return
    a = color >> 24
    even = (color & PAIR) * a + HALVES
    odd = (((color >> 8) | 0x00FF0000) & PAIR) * a + HALVES
    for k in hinted(range(count), scalar=True):
        d = pixels[places[k]]
        mixed = color
        if d >= OPAQUE:  # as lerp does
            low = (d & PAIR) * (255 - a) + even
            high = ((d >> 8) & PAIR) * (255 - a) + odd
            low = ((low + ((low >> 8) & PAIR)) >> 8) & PAIR
            mixed = low | ((high + ((high >> 8) & PAIR)) & ~u32(PAIR))
        elif d >= FAINT:
            mixed = mix(d, color)
        pixels[places[k]] = mixed


@native
def mingle(d: Any, s: Any) -> Any:
    """Sixteen pixels over sixteen opaque ones."""
    back, front = halves(d), halves(s)
    a = shuffle(front, front, ALPHAS) >> 8
    rest = 255 - a
    full = load(table(u16, FULL), 0, 32)
    even = (back & 255) * rest + (front & 255) * a + 128
    odd = (back >> 8) * rest + ((front >> 8) | full) * a + 128
    return whole(narrow(even, odd))


@native
def lay(pixels: Array[u32], at: i64, source: Array[u32], first: i64, count: i64) -> None:
    """A row of pixels over a row of pixels."""
    for k in hinted(range(0, count - 15, 16), scalar=True):
        d = load(pixels, at + k, 16)
        if all_of(d >= OPAQUE):
            store(pixels, at + k, mingle(d, load(source, first + k, 16)))
        else:
            lay_some(pixels, at + k, source, first + k, 16)
    if count & 15 != 0:
        k = count & ~15
        lay_some(pixels, at + k, source, first + k, count & 15)


@native(inline=False)
def lay_block(
    pixels: Array[u32],
    at: i64,
    width: i64,
    source: Array[u32],
    first: i64,
    stride: i64,
    count: i64,
    rows: i64,
    ahead: i64,
) -> i64:
    """Rows of whole vectors over opaque pixels: how many pixels of them could be done so.

    Calls nothing, so that its constants stay in registers. Meanwhile memory is asked for from the
    pixel ``ahead`` on, where the next block will be.
    """
    for row in hinted(range(rows), scalar=True):
        for part in static((0, 16, 31)):
            prefetch(pixels, ahead + row * width + part)
        for k in hinted(range(0, count, 16), scalar=True):
            d = load(pixels, at + row * width + k, 16)
            if any_of(d < OPAQUE):
                return row * count + k
            s = load(source, first + row * stride + k, 16)
            store(pixels, at + row * width + k, mingle(d, s))
    return rows * count


@native(inline=False)
def lay_some(pixels: Array[u32], at: i64, source: Array[u32], first: i64, count: i64) -> None:
    """Up to sixteen pixels over any pixels."""
    s = load(source, first, 16, count)
    d = load(pixels, at, 16, count)
    a = s >> 24
    opaque = d >= OPAQUE
    if all_of(opaque | (d < FAINT) | (a == 0) | (a == 255)):
        mixed = select(opaque, mingle(d, s), select(a == 0, d, s))
        store(pixels, at, mixed, count)
        return
    for i in hinted(range(count), scalar=True):
        lay_one(pixels, at + i, source[first + i])


@native
def lay_one(pixels: Array[u32], at: i64, s: u32) -> None:
    """One pixel over another."""
    if s >= OPAQUE:
        pixels[at] = s
    elif s >= FAINT:
        pixels[at] = over(pixels[at], s)
