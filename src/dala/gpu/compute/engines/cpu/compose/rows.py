"""Rows of pixels: composited with a coverage for each, tinted, expanded to RGBA, and halved.

Coverage has 16 fractional bits and multiplies the source's alpha.
"""

from __future__ import annotations

from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.pixels.over import CHANNEL_PAIR as PAIR
from dala.gpu.compute.engines.cpu.pixels.over import OPAQUE, cover

#: Indexes of lanes.
_LANES: Final = tuple(range(16))


@native(inline=False)
def cover_row(
    pixels: Array[u32], at: i64, source: Array[u32], first: i64, coverage: Array[u32], count: i64
) -> None:
    """Composite a row of pixels over a row of the target."""
    for k in serial(0, count, 16):
        n = min(count - k, 16)
        s = load(source, first + k, 16, n)
        d = load(pixels, at + k, 16, n)
        store(pixels, at + k, cover(d, s, load(coverage, k, 16)), n)


@native(inline=False)
def tint_row(source: Array[u32], first: i64, out: Array[u32], count: i64, color: u32) -> None:
    """Write one color, its alpha multiplied by those of a row; ``out`` may be the source."""
    alpha, rest = color >> 24, color & 0x00FFFFFF
    for k in serial(0, count, 16):
        n = min(count - k, 16)
        product = (load(source, first + k, 16, n) >> 24) * alpha + 128
        store(out, k, (((product + (product >> 8)) >> 8) << 24) | rest, n)


@native(inline=False)
def all_opaque(texels: Array[u32], at: i64, count: i64) -> bool:
    """Return whether ``count`` pixels starting at ``at`` are all opaque."""
    for k in serial(0, count, 16):
        n = min(count - k, 16)
        v = load(texels, at + k, 16, n)
        if not all_of((v >= OPAQUE) | (load(table(i32, _LANES), 0, 16) >= i32(n))):
            return False
    return True


# gray and RGB as RGBA ---------------------------------------------------------------------------
#: A shuffle of sixteen pixels from three bytes to four.
SPREAD = tuple(3 * (k // 4) + min(k % 4, 2) for k in range(64))


@native
def expand_gray(source: Array[u8], out: Array[u32], start: i64, end: i64) -> None:
    """Expand pixels [start, end) of one byte each."""
    for k in range(start, end):
        out[k] = u32(source[k]) * 0x010101 | 0xFF000000


@native
def expand_row(source: Array[u8], first: i64, out: Array[u32], at: i64, count: i64) -> None:
    """Expand ``count`` pixels of three bytes each, starting at ``first``."""
    # Sixteen pixels are 48 bytes; 64 are read where there are enough.
    safe = min(count, (len(source) - 64) // 3 - first + 1)
    k = 0
    while k + 16 <= count and k < safe:
        v = load(source, 3 * (first + k), 64)
        store(out, at + k, bits(u32, shuffle(v, v, SPREAD)) | OPAQUE)
        k += 16
    for i in serial(k, count):
        j = 3 * (first + i)
        r, g, b = u32(source[j]), u32(source[j + 1]), u32(source[j + 2])
        out[at + i] = r | (g << 8) | (b << 16) | 0xFF000000


@native
def expand_rgb(source: Array[u8], out: Array[u32], start: i64, end: i64) -> None:
    """Expand pixels [start, end) of three bytes each."""
    expand_row(source, start, out, start, end - start)


# opaque pictures at half their size -------------------------------------------------------------
#: Rounding of a sum of four: 2 in every other channel.
ROUND_UP: Final = 0x00020002
#: Lanes of every other pixel of two vectors.
_EVENS: Final = tuple(range(0, 32, 2))
_ODDS: Final = tuple(range(1, 32, 2))
#: Distance of prefetches, in bytes.
PREFETCH_BYTES: Final = 8192


@native
def quarter(a: Vector, b: Vector) -> Vector:
    """Return the means of neighbors in two vectors of row sums, two channels per word."""
    total = shuffle(a, b, _EVENS) + shuffle(a, b, _ODDS) + ROUND_UP
    return (total >> 2) & PAIR


@native
def four_to_one(a: Vector, b: Vector, c: Vector, d: Vector) -> Vector:
    """Return sixteen opaque pixels from two vectors of the upper row and two of the lower."""
    low = quarter((a & PAIR) + (c & PAIR), (b & PAIR) + (d & PAIR))
    high = quarter(((a >> 8) & PAIR) + ((c >> 8) & PAIR), ((b >> 8) & PAIR) + ((d >> 8) & PAIR))
    return low | (high << 8) | OPAQUE


@native
def halve_row(
    texels: Array[u32], upper_at: i64, lower_at: i64, out: Array[u32], at: i64, count: i64
) -> None:
    """Write opaque pixels, each the mean of four texels."""
    for k in serial(0, count - 15, 16):
        for ahead in static((PREFETCH_BYTES // 4, PREFETCH_BYTES // 4 + 16)):
            prefetch(texels, upper_at + 2 * k + ahead)
            prefetch(texels, lower_at + 2 * k + ahead)
        a, b = load(texels, upper_at + 2 * k, 16), load(texels, upper_at + 2 * k + 16, 16)
        c, d = load(texels, lower_at + 2 * k, 16), load(texels, lower_at + 2 * k + 16, 16)
        store(out, at + k, four_to_one(a, b, c, d))
    n = count & 15
    if n != 0:
        first, second = upper_at + 2 * (count - n), lower_at + 2 * (count - n)
        a, b = load(texels, first, 16, 2 * n), splat(u32(0), 16)
        c, d = load(texels, second, 16, 2 * n), splat(u32(0), 16)
        if n > 8:
            b = load(texels, first + 16, 16, 2 * n - 16)
            d = load(texels, second + 16, 16, 2 * n - 16)
        store(out, at + count - n, four_to_one(a, b, c, d), n)


#: Bytes of the left and of the right texel of eight pixels, three bytes expanded to four.
_LEFTS: Final = tuple(6 * (k // 4) + min(k % 4, 2) for k in range(32))
_RIGHTS: Final = tuple(3 + k for k in _LEFTS)


@native
def halve_rgb(
    source: Array[u8], upper_at: i64, lower_at: i64, out: Array[u32], at: i64, count: i64
) -> i64:
    """Halve texels of three bytes in groups of eight pixels; return how many were written."""
    # 64 bytes are read from each row, and 48 are used.
    end = min(count - 7, (len(source) - 64 - 3 * lower_at) // 6 + 1)
    done = 0
    while done < end:
        prefetch(source, 3 * upper_at + 6 * done + PREFETCH_BYTES)
        prefetch(source, 3 * lower_at + 6 * done + PREFETCH_BYTES)
        upper_row = load(source, 3 * upper_at + 6 * done, 64)
        both = i16(upper_row) + i16(load(source, 3 * lower_at + 6 * done, 64))
        total = shuffle(both, both, _LEFTS) + shuffle(both, both, _RIGHTS) + 2
        store(out, at + done, bits(u32, u8(total >> 2)) | OPAQUE)
        done += 8
    return done
