"""Tap tables: which source pixels contribute to an output pixel, and their weights.

Operations build their tables once on the host (``engines/sampling/taps.py``). The compositor and
the rasterizer need new tables whenever a scaled image moves, and build them in native code: a table
of 960 columns takes 3 us there, and 190 us on the host, while a whole frame may take 60 us. They
have the fixed-point layout that ``fixed_rows.py`` reads.
"""

from __future__ import annotations

from typing import Final

from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    ceil,
    f32,
    f64,
    floor,
    hinted,
    i16,
    i32,
    i64,
    independent,
    local,
    splat,
    store,
)

#: The most taps of a fixed-point sum.
FIXED_TAPS: Final = 8
#: Source pixels that a line holds, and how many of them are left free for the last taps.
LINE: Final = 4096
LINE_MARGIN: Final = 260
#: The sum of a pixel's fixed-point weights.
FIXED_ONE: Final = 32768
#: Which of eight pixels share a vector of 32 products: with two taps each, and with four.
PAIRS_OF_TAPS: Final = ((0, 2, 4, 6), (1, 3, 5, 7))
FOURS_OF_TAPS: Final = ((0, 2), (1, 3), (4, 6), (5, 7))


@native
def clamp_to_centers(position: f64, low: f64, high: f64) -> f64:
    """Clamp a position to the texel centers in [low, high); return it relative to a center."""
    first = low + f64(0.5)
    return max(min(position, max(first, high - f64(0.5))), first) - f64(0.5)


@native
def linear_tap(position: f64, low: f64, high: f64, size: i64) -> tuple[i64, f32]:
    """Return the first of two texels around a position, and the weight of the second.

    Positions are clamped to the texel centers in [low, high).
    """
    s = clamp_to_centers(position, max(low, f64(0)), min(high, f64(size)))
    whole = max(min(floor(s), f64(size - 2)), f64(0))
    return i64(whole), f32(min(s - whole, f64(1)))


@native
def linear_taps(
    first: Array[i32], weights: Array[f32], count: i64, padded: i64, start: f64, scale: f64,
    low: f64, high: f64, size: i64,
) -> None:  # fmt: skip
    """Fill a table as ``fill_taps`` does, with two taps per pixel.

    A loop that vectorizes: four times as fast as that of ``fill_taps``, with equal results.
    """
    for k in independent(range(padded)):
        position = start + f64(min(k, count - 1)) * scale
        at, part = linear_tap(position, low, high, size)
        first[k] = i32(at)
        weights[2 * k] = f32(1) - part
        weights[2 * k + 1] = part


@native(inline=False)
def fill_taps(
    first: Array[i32],
    weights: Array[f32],
    count: i64,
    padded: i64,
    sums: i64,
    start: f64,
    scale: f64,
    low: f64,
    high: f64,
    size: i64,
    samples: i64,
) -> None:
    """Fill a table: the first texel of each pixel, and the weights of ``sums`` texels.

    A pixel is the mean of ``samples`` bilinear samples. ``start`` is the position of the first
    pixel's center in texels. The last pixel is repeated up to ``padded``.
    """
    if sums == 2:
        linear_taps(first, weights, count, padded, start, scale, low, high, size)
        return
    share = f32(1) / f32(samples)
    for k in hinted(range(padded), scalar=True):
        middle = start + f64(min(k, count - 1)) * scale
        begin = middle + (f64(0.5) / f64(samples) - f64(0.5)) * scale
        a = clamp_to_centers(begin, low, high)
        b = clamp_to_centers(begin + f64(samples - 1) / f64(samples) * scale, low, high)
        base = max(min(i64(floor(min(a, b))), size - sums), 0)
        first[k] = i32(base)
        for j in hinted(range(sums), scalar=True):
            weights[k * sums + j] = f32(0)
        for n in hinted(range(samples), scalar=True):
            s = clamp_to_centers(begin + f64(n) / f64(samples) * scale, low, high)
            whole = floor(s)
            part = f32(s - whole) * share
            x = i64(whole)
            p = min(max(x, 0), size - 1) - base
            q = min(max(x + 1, 0), size - 1) - base
            weights[k * sums + p] += share - part
            if part > f32(0):
                weights[k * sums + q] += part


@native(inline=False)
def nearest_taps(
    first: Array[i32], count: i64, padded: i64, start: f64, scale: f64, low: f64, high: f64,
    size: i64,
) -> None:  # fmt: skip
    """Fill a table with the texel that contains the center of each pixel."""
    for k in hinted(range(padded), scalar=True):
        x = i64(floor(start + f64(min(k, count - 1)) * scale))
        x = max(min(x, i64(ceil(high)) - 1), i64(floor(low)))
        first[k] = i32(min(max(x, 0), size - 1))


@native
def round_weights(weights: Array[f32], at: i64, sums: i64, out: Array[i32]) -> None:
    """Round a pixel's weights to integers that add up to FIXED_ONE."""
    total, most, best = i32(0), i32(-1), 0
    for j in hinted(range(sums), scalar=True):
        w = i32(weights[at + j] * f32(FIXED_ONE) + f32(0.5))
        out[j] = w
        total += w
        if w > most:
            most, best = w, j
    out[best] = out[best] + FIXED_ONE - total


@native
def pack_linear_columns(weights: Array[f32], padded: i64, out: Array[i16]) -> None:
    """Pack weights of two taps for each column, as ``fixed_rows.py`` reads them."""
    for k in hinted(range(padded), scalar=True):
        part = i32(weights[2 * k + 1] * f32(FIXED_ONE) + f32(0.5))
        at = (k >> 3) * 64 + (k & 1) * 32 + ((k >> 1) & 3) * 8
        store(out, at, splat(i16(min(FIXED_ONE - part, 32767)), 4))
        store(out, at + 4, splat(i16(min(part, 32767)), 4))


@native(inline=False)
def pack_columns(weights: Array[f32], sums: i64, padded: i64, out: Array[i16]) -> None:
    """Pack weights of two, four or eight taps for each column."""
    if sums == 2:
        pack_linear_columns(weights, padded, out)
        return
    found = local(i32, FIXED_TAPS)
    chunks = sums >> 2
    for k in hinted(range(padded), scalar=True):
        round_weights(weights, k * sums, sums, found)
        # FOURS_OF_TAPS in arithmetic: the vector of a pixel, and its side of it.
        p = k & 7
        vector, side = (p >> 2) * 2 + (p & 1), (p >> 1) & 1
        base = ((k >> 3) * 4 + vector) * 32 * chunks + side * 16
        for j in hinted(range(sums), scalar=True):
            w = i16(min(found[j], 32767))
            store(out, base + (j >> 2) * 32 + (j & 3) * 4, splat(w, 4))


@native(inline=False)
def pack_rows(weights: Array[f32], sums: i64, count: i64, out: Array[i16]) -> None:
    """Write the fixed-point weights of rows, FIXED_TAPS elements apart."""
    found = local(i32, FIXED_TAPS)
    for k in hinted(range(count), scalar=True):
        round_weights(weights, k * sums, sums, found)
        for j in hinted(range(sums), scalar=True):
            out[k * FIXED_TAPS + j] = i16(min(found[j], 32767))


@native
def line_block(
    first: Array[i32], begin: i64, stop: i64, taps: i64, channels: i64, places: Array[i32]
) -> tuple[i64, i64, i64]:
    """Find how many columns, starting at ``begin``, have all their taps in one line.

    Returns their number and the range of texels that they read. Writes to ``places`` where in the
    line the taps of each column begin.
    """
    count = stop - begin
    low = min(i64(first[begin]), i64(first[begin + count - 1]))
    high = max(i64(first[begin]), i64(first[begin + count - 1])) + max(taps, 2)
    while high - low > LINE - LINE_MARGIN:
        count = max((count >> 1) & ~7, 8)
        low = min(i64(first[begin]), i64(first[begin + count - 1]))
        high = max(i64(first[begin]), i64(first[begin + count - 1])) + max(taps, 2)
    for k in hinted(range((count + 7) & ~7), scalar=True):
        at = max(min(first[begin + k], i32(high - taps)), i32(low)) - i32(low)
        places[k] = at * i32(channels)
    return count, low, high
