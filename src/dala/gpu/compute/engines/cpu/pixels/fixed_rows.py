"""Resample rows of bytes in 16-bit fixed point, with up to eight taps per axis.

Source rows are first summed down into a line, then the line's pixels are summed across. A byte is
held as value * 128, and weights in units of 1/32768 (or larger ones, where a weight is above 1); a
product keeps the upper half of its 32 bits. About 6 bits of fraction remain after the first sum and
5 after the second; a last product removes the scale. Sums across process eight pixels at a time:
the taps of a pixel are adjacent in memory, so one load reads them, and folding vectors adds them.
For that, three channels are expanded to four.
"""

from __future__ import annotations

from typing import Final

from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    Vector,
    hinted,
    i16,
    i32,
    i64,
    independent,
    load,
    saturate,
    shuffle,
    splat,
    static,
    store,
    table,
    u8,
)
from dala.gpu.compute.engines.cpu.pixels.taps import FOURS_OF_TAPS, LINE, PAIRS_OF_TAPS

#: Elements of a line's buffer.
LINE_CAPACITY: Final = LINE * 4 + 64
#: The unit of a sum's fraction, and the factor that converts a sum to a byte.
UNIT: Final = 32
FACTOR: Final = 65536 // UNIT

_SIXTEEN: Final = tuple(range(16))
_ALL: Final = tuple(range(32))
_LOW: Final = tuple(k + s for g in (0, 8, 16, 24) for s in (0, 32) for k in range(g, g + 4))
_HIGH: Final = tuple(k + 4 for k in _LOW)
_EVEN: Final = tuple(k + s for s in (0, 32) for g in (0, 16) for k in range(g, g + 8))
_ODD: Final = tuple(k + 8 for k in _EVEN)
#: Shuffles from three channels to four: of two taps in eight elements, of four taps in sixteen.
_SPREAD: Final = (0, 1, 2, 2, 3, 4, 5, 5, 6, 7, 8, 8, 9, 10, 11, 11)
_EIGHTS: Final = tuple(g + k for g in (0, 8, 16, 24) for k in _SPREAD[:8])
_SIXTEENS: Final = tuple(g + k for g in (0, 16) for k in _SPREAD)
#: Full alpha for eight pixels.
_FULL_ALPHA: Final = (0, 0, 0, 255) * 8


@native
def upper(a: Vector, b: Vector) -> Vector:
    """Return the upper half of a product, which is one instruction on most CPUs."""
    return i16((i32(a) * i32(b)) >> 16)


# down -----------------------------------------------------------------------------------------
@native
def add_rows(
    source: Array[u8], line: Array[i16], weights: Array[i16], step: i64, pitch: i64, count: i64,
    *, taps: int,
) -> None:  # fmt: skip
    """Sum ``taps`` rows into a line; weights are ``step`` apart."""
    for e in independent(range(count)):
        total = upper(i16(source[e]) << 7, weights[0])
        for k in static(range(1, taps)):
            total += upper(i16(source[pitch * k + e]) << 7, weights[step * k])
        line[e] = total


@native(inline=False)
def add_rest(
    source: Array[u8], line: Array[i16], weights: Array[i16], step: i64, pitch: i64, count: i64,
    *, taps: int,
) -> None:  # fmt: skip
    """Sum the elements that do not fill a vector.

    Out of line, or the compiler would vectorize the weights of both loops and no longer find the
    multiply-high instruction.
    """
    add_rows(source, line, weights, step, pitch, count, taps=taps)


@native
def sum_down(
    source: Array[u8], line: Array[i16], weights: Array[i16], step: i64, pitch: i64, count: i64,
    *, taps: int,
) -> None:  # fmt: skip
    """Sum ``taps`` rows into a line of any length, and zero the elements behind it."""
    whole = count & ~31
    add_rows(source, line, weights, step, pitch, whole, taps=taps)
    if whole < count:
        add_rest(source[whole:], line[whole:], weights, step, pitch, count - whole, taps=taps)
    store(line, count, splat(i16(0), 32))


@native(inline=False)
def sum_down_any(
    source: Array[u8], line: Array[i16], weights: Array[i16], pitch: i64, count: i64, taps: i64
) -> None:
    """Sum any number of rows into a line, as ``sum_down`` does."""
    if taps == 2:
        sum_down(source, line, weights, 1, pitch, count, taps=2)
        return
    for e in hinted(range(0, count, 32), scalar=True):
        n = min(count - e, 32)
        total = splat(i16(0), 32)
        for k in hinted(range(taps), scalar=True):
            if weights[k] != 0:
                value = i16(load(source, pitch * k + e, 32, n)) << 7
                total += upper(value, splat(weights[k], 32))
        store(line, e, total)
    store(line, count, splat(i16(0), 32))


# across ---------------------------------------------------------------------------------------
@native
def two_tap_products(
    line: Array[i16], first: Array[i32], weights: Array[i16], x: i64, *, n: int, channels: int
) -> Vector:
    """Return the products of four pixels with two taps each."""
    order = static(PAIRS_OF_TAPS[n])
    p = load(line, first[x + static(order[0])], 8)
    q = load(line, first[x + static(order[1])], 8)
    r = load(line, first[x + static(order[2])], 8)
    s = load(line, first[x + static(order[3])], 8)
    left, right = shuffle(p, q, _SIXTEEN), shuffle(r, s, _SIXTEEN)
    taken = shuffle(left, right, _ALL)
    if channels == 3:
        taken = shuffle(taken, taken, _EIGHTS)
    return upper(taken, load(weights, x * 8 + n * 32, 32))


@native
def four_tap_products(
    line: Array[i16], first: Array[i32], weights: Array[i16], x: i64,
    *, chunks: int, n: int, channels: int,
) -> Vector:  # fmt: skip
    """Return the products of two pixels with four taps each, or their sums over two chunks."""
    order = static(FOURS_OF_TAPS[n])
    p = i64(first[x + static(order[0])])
    q = i64(first[x + static(order[1])])
    at = x * 16 * chunks + n * 32 * chunks
    total = upper(four_taps(line, p, q, channels=channels), load(weights, at, 32))
    if chunks > 1:
        step = static(4 * channels)
        more = four_taps(line, p + step, q + step, channels=channels)
        total += upper(more, load(weights, at + 32, 32))
    return total


@native
def four_taps(line: Array[i16], p: i64, q: i64, *, channels: int) -> Vector:
    """Load four taps of two pixels."""
    taken = shuffle(load(line, p, 16), load(line, q, 16), _ALL)
    return shuffle(taken, taken, _SIXTEENS) if channels == 3 else taken


@native
def sum_eight(
    line: Array[i16], first: Array[i32], weights: Array[i16], x: i64, *, taps: int, channels: int
) -> Vector:
    """Return the sums of eight output pixels starting at x, four channels each."""
    if taps <= 2:
        even = two_tap_products(line, first, weights, x, n=0, channels=channels)
        odd = two_tap_products(line, first, weights, x, n=1, channels=channels)
        return shuffle(even, odd, _LOW) + shuffle(even, odd, _HIGH)
    else:
        chunks = static((taps + 3) // 4)
        a = four_tap_products(line, first, weights, x, chunks=chunks, n=0, channels=channels)
        b = four_tap_products(line, first, weights, x, chunks=chunks, n=1, channels=channels)
        c = four_tap_products(line, first, weights, x, chunks=chunks, n=2, channels=channels)
        d = four_tap_products(line, first, weights, x, chunks=chunks, n=3, channels=channels)
        ab = shuffle(a, b, _LOW) + shuffle(a, b, _HIGH)
        cd = shuffle(c, d, _LOW) + shuffle(c, d, _HIGH)
        return shuffle(ab, cd, _EVEN) + shuffle(ab, cd, _ODD)


@native(inline=False)
def sum_across_opaque(
    line: Array[i16], first: Array[i32], weights: Array[i16], out: Array[u8], count: i64,
    half: i16, *, taps: int, channels: int,
) -> None:  # fmt: skip
    """Sum a line across and write opaque RGBA8 pixels; weights must add up to FIXED_ONE.

    Writes whole groups of eight pixels: up to seven more than ``count``.
    """
    full = load(table(u8, _FULL_ALPHA), 0, 32)
    for x in hinted(range(0, count, 8), scalar=True):
        values = sum_eight(line, first, weights, x, taps=taps, channels=channels)
        store(out, 4 * x, saturate(u8, upper(values + half, i16(FACTOR))) | full)


@native
def fixed_row(
    source: Array[u8],
    pitch: i64,
    rows: Array[i16],
    taps_y: i64,
    line: Array[i16],
    length: i64,
    first: Array[i32],
    weights: Array[i16],
    taps_x: i64,
    out: Array[u8],
    count: i64,
    *,
    channels: int,
) -> None:
    """Resample a row of opaque pixels, from ``length`` bytes of each source row."""
    sum_down_any(source, line, rows, pitch, length, taps_y)
    half = i16(UNIT // 2 + taps_y // 4 + taps_x // 2)
    if taps_x == 2:
        sum_across_opaque(line, first, weights, out, count, half, taps=2, channels=channels)
    elif taps_x == 4:
        sum_across_opaque(line, first, weights, out, count, half, taps=4, channels=channels)
    else:
        sum_across_opaque(line, first, weights, out, count, half, taps=8, channels=channels)
