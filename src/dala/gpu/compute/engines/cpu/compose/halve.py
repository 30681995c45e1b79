"""Draw opaque pictures at half their size: each pixel is the mean of four texels."""

from __future__ import annotations

from typing import Final

from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    Vector,
    hinted,
    i16,
    i64,
    load,
    prefetch,
    shuffle,
    splat,
    store,
    table,
    u8,
    u32,
    view,
)
from dala.gpu.compute.engines.cpu.pixels.over import CHANNEL_PAIR as PAIR
from dala.gpu.compute.engines.cpu.pixels.over import OPAQUE

#: Rounding of a sum of four: 2 in every other channel.
ROUND_UP: Final = 0x00020002
#: Lanes of every other pixel of two vectors.
_EVENS: Final = tuple(range(0, 32, 2))
_ODDS: Final = tuple(range(1, 32, 2))
#: Full alpha for eight pixels of bytes.
_FULL_ALPHA: Final = (0, 0, 0, 255) * 8
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
    for k in hinted(range(0, count - 15, 16), scalar=True):
        prefetch(texels, upper_at + 2 * k + PREFETCH_BYTES // 4)
        prefetch(texels, upper_at + 2 * k + PREFETCH_BYTES // 4 + 16)
        prefetch(texels, lower_at + 2 * k + PREFETCH_BYTES // 4)
        prefetch(texels, lower_at + 2 * k + PREFETCH_BYTES // 4 + 16)
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
    full = load(table(u8, _FULL_ALPHA), 0, 32)
    made = view(out, u8, 4 * at)
    # 64 bytes are read from each row, and 48 are used.
    end = min(count - 7, (len(source) - 64 - 3 * lower_at) // 6 + 1)
    done = 0
    while done < end:
        prefetch(source, 3 * upper_at + 6 * done + PREFETCH_BYTES)
        prefetch(source, 3 * lower_at + 6 * done + PREFETCH_BYTES)
        upper_row = load(source, 3 * upper_at + 6 * done, 64)
        both = i16(upper_row) + i16(load(source, 3 * lower_at + 6 * done, 64))
        total = shuffle(both, both, _LEFTS) + shuffle(both, both, _RIGHTS) + i16(2)
        store(made, 4 * done, u8(total >> 2) | full)
        done += 8
    return done
