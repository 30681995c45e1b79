"""Tap tables: which source pixels contribute to an output pixel, and their weights.

Operations build their tables once on the host (``engines/sampling/taps.py``). The rasterizer needs
new tables whenever a scaled image moves, and builds them in native code, in the fixed-point layout
that ``fixed_rows.py`` reads; the compositor has its own in ``compose/tables.py``.
"""

from __future__ import annotations

from dala.gpu.compute.engines.cpu.native import *

#: Source pixels that a line holds, and how many of them are left free for the last taps.
LINE: Final = 4096
LINE_MARGIN: Final = 260
#: The sum of a pixel's fixed-point weights.
FIXED_ONE: Final = 32768
#: Which of eight pixels share a vector of 32 products, with two taps each.
PAIRS_OF_TAPS: Final = ((0, 2, 4, 6), (1, 3, 5, 7))


@native
def linear_tap(position: f64, size: i64) -> tuple[i64, f32]:
    """Return the first of two texels around a position, and the weight of the second.

    Positions are clamped to the centers of texels.
    """
    s = max(min(position, f64(size) - 0.5), 0.5) - 0.5
    whole = max(min(floor(s), f64(size - 2)), 0)
    return i64(whole), f32(min(s - whole, 1))


@native
def linear_taps(
    first: Array[i32], weights: Array[f32], count: i64, padded: i64, start: f64, scale: f64,
    size: i64,
) -> None:  # fmt: skip
    """Fill a table: the first of two texels of each pixel, and their weights."""
    for k in independent(range(padded)):
        at, part = linear_tap(start + f64(min(k, count - 1)) * scale, size)
        first[k] = i32(at)
        weights[2 * k] = 1 - part
        weights[2 * k + 1] = part


@native
def pack_linear_columns(weights: Array[f32], padded: i64, out: Array[i16]) -> None:
    """Pack weights of two taps for each column, as ``fixed_rows.py`` reads them."""
    for k in serial(padded):
        part = i32(weights[2 * k + 1] * FIXED_ONE + 0.5)
        at = (k >> 3) * 64 + (k & 1) * 32 + ((k >> 1) & 3) * 8
        store(out, at, splat(i16(min(FIXED_ONE - part, 32767)), 4))
        store(out, at + 4, splat(i16(min(part, 32767)), 4))


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
    for k in serial((count + 7) & ~7):
        at = max(min(first[begin + k], i32(high - taps)), i32(low)) - i32(low)
        places[k] = at * i32(channels)
    return count, low, high
