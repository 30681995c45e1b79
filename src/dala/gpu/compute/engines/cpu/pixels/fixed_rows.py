"""Resample rows of opaque RGBA8 in 16-bit fixed point, with two taps per axis.

Source rows are first summed down into a line, then the line's pixels are summed across. A byte is
held as value * 128, and weights in units of 1/32768; a product keeps the upper half of its 32 bits.
About 6 bits of fraction remain after the first sum and 5 after the second; a last product removes
the scale. Sums across process eight pixels at a time: the taps of a pixel are adjacent in memory,
so one load reads them, and folding vectors adds them.
"""

from __future__ import annotations

from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.pixels.over import OPAQUE
from dala.gpu.compute.engines.cpu.pixels.taps import LINE, PAIRS_OF_TAPS

#: Elements of a line's buffer.
LINE_CAPACITY: Final = LINE * 4 + 64
#: The unit of a sum's fraction, and the factor that converts a sum to a byte.
UNIT: Final = 32
FACTOR: Final = 65536 // UNIT

_LOW: Final = tuple(k + s for g in (0, 8, 16, 24) for s in (0, 32) for k in range(g, g + 4))
_HIGH: Final = tuple(k + 4 for k in _LOW)


@native
def upper(a: Vector, b: Vector) -> Vector:
    """Return the upper half of a product, which is one instruction on most CPUs."""
    return i16((i32(a) * i32(b)) >> 16)


# down -----------------------------------------------------------------------------------------
@native
def add_rows(
    source: Array[u8], line: Array[i16], weights: Array[i16], pitch: i64, count: i64
) -> None:
    """Sum two rows into a line."""
    for e in independent(range(count)):
        below = upper(i16(source[pitch + e]) << 7, weights[1])
        line[e] = upper(i16(source[e]) << 7, weights[0]) + below


@native(inline=False)
def add_rest(
    source: Array[u8], line: Array[i16], weights: Array[i16], pitch: i64, count: i64
) -> None:
    """Sum the elements that do not fill a vector.

    Out of line, or the compiler would vectorize the weights of both loops and no longer find the
    multiply-high instruction.
    """
    add_rows(source, line, weights, pitch, count)


@native
def sum_down(
    source: Array[u8], line: Array[i16], weights: Array[i16], pitch: i64, count: i64
) -> None:
    """Sum two rows into a line of any length, and zero the elements behind it."""
    whole = count & ~31
    add_rows(source, line, weights, pitch, whole)
    if whole < count:
        add_rest(source[whole:], line[whole:], weights, pitch, count - whole)
    store(line, count, splat(i16(0), 32))


# across ---------------------------------------------------------------------------------------
@native
def products(line: Array[i16], first: Array[i32], weights: Array[i16], x: i64, *, n: int) -> Vector:
    """Return the products of every second of eight pixels."""
    order = static(PAIRS_OF_TAPS[n])
    p = load(line, first[x + order[0]], 8)
    q = load(line, first[x + order[1]], 8)
    r = load(line, first[x + order[2]], 8)
    s = load(line, first[x + order[3]], 8)
    taken = join(p, q, r, s)
    return upper(taken, load(weights, x * 8 + n * 32, 32))


@native(inline=False)
def sum_across(
    line: Array[i16], first: Array[i32], weights: Array[i16], out: Array[u8], count: i64
) -> None:
    """Sum a line across and write opaque RGBA8 pixels; weights must add up to FIXED_ONE.

    Writes whole groups of eight pixels: up to seven more than ``count``.
    """
    half = i16(UNIT // 2 + 1)
    for x in serial(0, count, 8):
        even = products(line, first, weights, x, n=0)
        odd = products(line, first, weights, x, n=1)
        values = shuffle(even, odd, _LOW) + shuffle(even, odd, _HIGH)
        pixels = bits(u32, saturate(u8, upper(values + half, i16(FACTOR))))
        store(out, 4 * x, bits(u8, pixels | OPAQUE))
