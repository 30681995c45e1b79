"""Tables of the texels and weights of scaled pictures, made for each frame in which one moves.

A table of 960 columns takes 190 us on the host, while a whole frame may take 60 us.
Weights are laid out as ``byte_rows.py`` of resizing reads them.
"""

from __future__ import annotations

from dala.gpu.compute.engines.cpu.compose.steps import tap_offset
from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.sampling.draws import DROPPED, TEXEL, TEXEL_BITS

#: The most taps of a pixel whose sums across are unrolled.
UNROLLED: Final = 8
#: Numbers of a row before its weights: the negative one of two rows that are mixed.
ROW_HEAD: Final = 2


@native(inline=False)
def fill_taps(
    first: Array[i32], weights: Array[i32], count: i64, padded: i64, sums: i64, step: i64,
    start: i64, scale: i64, bits: i64, low: i64, high: i64, size: i64,
) -> None:  # fmt: skip
    """Fill a table: the first texel of each pixel, and the weights of ``sums`` texels.

    ``start`` is the sum of the terms of the first pixel's position, ``step`` what the next one
    adds, and ``scale`` that distance in texels. The last pixel is repeated up to ``padded``.
    """
    half = (1 << bits >> 1) - TEXEL // 2
    for k in serial(padded):
        middle = i64(i32((start + min(k, count - 1) * step) >> DROPPED))
        base = size
        for n in serial(1 << bits):
            s = max(min(middle + tap_offset(scale, bits, n), high), low) + half
            base = min(base, s >> TEXEL_BITS)
        base = max(min(base, size - sums), 0)
        first[k] = i32(base)
        for j in serial(sums):
            weights[k * sums + j] = 0
        for n in serial(1 << bits):
            s = max(min(middle + tap_offset(scale, bits, n), high), low) + half
            whole, part = s >> TEXEL_BITS, i32((s & (TEXEL - 1)) >> bits)
            p = min(max(whole, 0), size - 1) - base
            q = min(max(whole + 1, 0), size - 1) - base
            weights[k * sums + p] += i32(TEXEL >> bits) - part
            if part > 0:
                weights[k * sums + q] += part


@native(inline=False)
def nearest_taps(
    first: Array[i32], count: i64, padded: i64, step: i64, start: i64, low: i64, high: i64,
    size: i64,
) -> None:  # fmt: skip
    """Fill a table with the texel of each pixel."""
    for k in serial(padded):
        s = i64(i32((start + min(k, count - 1) * step) >> DROPPED)) >> TEXEL_BITS
        first[k] = i32(min(max(max(min(s, high), low), 0), size - 1))


@native
def packed_size(sums: i64) -> i64:
    """Return the numbers of a column in a packed table."""
    if sums > UNROLLED:
        return (sums + 3) & ~3
    return 8 if sums <= 2 else 16 * ((sums + 3) >> 2)


@native(inline=False)
def pack_columns(weights: Array[i32], sums: i64, padded: i64, out: Array[i16]) -> None:
    """Pack the weights of columns, in pairs, each four times for four channels.

    Pixels 0, 2, 4, 6 of eight come before 1, 3, 5, 7; with more than two taps, two pixels share a
    vector of four taps each. More than eight taps follow one another.
    """
    if sums > UNROLLED:
        each = packed_size(sums)
        for k in serial(padded):
            for j in serial(each):
                out[k * each + j] = i16(weights[k * sums + j]) if j < sums else i16(0)
        return
    chunks = (sums + 3) >> 2
    for k in serial(padded):
        n, place = k & 1, (k >> 1) & 3
        base = (k >> 3) * 64 + n * 32 + place * 8
        if sums > 2:
            base = ((k >> 3) * 128 + n * 64 + (place >> 1) * 32) * chunks + (place & 1) * 16
        for j in serial(0, 2 if sums <= 2 else 4 * chunks, 2):
            a = i16(weights[k * sums + j]) if j < sums else i16(0)
            b = i16(weights[k * sums + j + 1]) if j + 1 < sums else i16(0)
            store(out, base + (j >> 2) * 32 + ((j >> 1) & 1) * 8, vec(a, b, a, b, a, b, a, b))


@native(inline=False)
def pack_rows(weights: Array[i32], sums: i64, count: i64, each: i64, out: Array[i16]) -> None:
    """Pack the weights of rows: that of the second of two for mixing, then all."""
    for k in serial(count):
        out[k * each] = i16(-2 * weights[k * sums + 1]) if sums == 2 else i16(0)
        for j in serial(ROW_HEAD, each):
            at = j - ROW_HEAD
            out[k * each + j] = i16(weights[k * sums + at]) if at < sums else i16(0)
