"""Convert vectors of 64 bytes between planes and interleaved pixels of three or four bytes."""

from __future__ import annotations

from dala.gpu.compute.engines.cpu.native import *

#: Pixels of a vector.
LANES: Final = 64
#: The shuffle that interleaves the halves of a vector.
INTERLEAVE_HALVES: Final = tuple(k // 2 + LANES // 2 * (k % 2) for k in range(LANES))
#: Every other lane.
EVENS: Final = tuple(range(0, LANES, 2))

#: Shuffles that interleave the lower and the upper halves of two vectors, by bytes and by pairs.
_BYTES_1: Final = tuple(k // 2 + LANES * (k % 2) for k in range(LANES))
_BYTES_2: Final = tuple(LANES // 2 + lane for lane in _BYTES_1)
_PAIRS_1: Final = tuple(k // 4 * 2 + k % 2 + LANES * (k // 2 % 2) for k in range(LANES))
_PAIRS_2: Final = tuple(LANES // 2 + lane for lane in _PAIRS_1)


def _interleave_three(first: int, *, third: bool) -> tuple[int, ...]:
    """Return the shuffle of RGB bytes from ``first`` on: of red and green, or of those and blue."""
    lanes = []
    for k in range(first, first + LANES):
        pixel, channel = divmod(k, 3)
        if third:
            lanes.append(LANES + pixel if channel == 2 else k - first)
        else:
            lanes.append(pixel + LANES * min(channel, 1))
    return tuple(lanes)


_RG_1, _RG_2, _RG_3 = (_interleave_three(n * LANES, third=False) for n in range(3))
_RGB_1, _RGB_2, _RGB_3 = (_interleave_three(n * LANES, third=True) for n in range(3))


def _separate_three(channel: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the two shuffles that extract a channel from three vectors of RGB bytes."""
    where = [3 * k + channel for k in range(LANES)]
    first = tuple(w if w < 2 * LANES else 0 for w in where)
    second = tuple(k if w < 2 * LANES else w - LANES for k, w in enumerate(where))
    return first, second


(_R_1, _R_2), (_G_1, _G_2), (_B_1, _B_2) = (_separate_three(c) for c in range(3))
#: Shuffles that extract a channel from two vectors of four-byte pixels.
_WORD_R, _WORD_G, _WORD_B = (tuple(4 * k + c for k in range(LANES // 2)) for c in range(3))


@native
def byte_around_middle(x: Vector) -> Vector:
    """Convert 16-bit numbers relative to 128, in units of 1/128, to bytes."""
    return bits(u8, saturate(i8, x >> 7)) ^ 128


@native
def load_some(a: Array[u8], at: i64, count: i64, *, number: int) -> Vector:
    """Load one of several vectors, of which the first ``count`` bytes are wanted."""
    return load(a, at + min(count, number * LANES), LANES, count - number * LANES)


@native
def store_rgb(
    out: Array[u8], at: i64, r: Vector, g: Vector, b: Vector, count: i64, *, stored: int
) -> None:
    """Store the first ``count`` of 64 pixels of three or four bytes."""
    if stored == 3:
        parts = static((
            shuffle(shuffle(r, g, _RG_1), b, _RGB_1), shuffle(shuffle(r, g, _RG_2), b, _RGB_2),
            shuffle(shuffle(r, g, _RG_3), b, _RGB_3),
        ))  # fmt: skip
    else:
        full = splat(u8(255), LANES)
        rg, ba = shuffle(r, g, _BYTES_1), shuffle(b, full, _BYTES_1)
        more_rg, more_ba = shuffle(r, g, _BYTES_2), shuffle(b, full, _BYTES_2)
        parts = static((
            shuffle(rg, ba, _PAIRS_1), shuffle(rg, ba, _PAIRS_2),
            shuffle(more_rg, more_ba, _PAIRS_1), shuffle(more_rg, more_ba, _PAIRS_2),
        ))  # fmt: skip
    if count == LANES:
        for k in static(range(stored)):
            store(out, at + k * LANES, parts[k])
    else:
        for k in static(range(stored)):
            left = stored * count - k * LANES
            store(out, at + min(stored * count, k * LANES), parts[k], left)


@native
def load_rgb(rgb: Array[u8], at: i64, count: i64, *, channels: int) -> Vector:
    """Return red, green and blue of the first ``count`` of 64 pixels."""
    if count == LANES:
        a, b = load(rgb, at, LANES), load(rgb, at + LANES, LANES)
        c = load(rgb, at + 2 * LANES, LANES)
        d = load(rgb, at + 3 * LANES, LANES) if channels == 4 else c
    else:
        n = channels * count
        a, b = load_some(rgb, at, n, number=0), load_some(rgb, at, n, number=1)
        c = load_some(rgb, at, n, number=2)
        d = load_some(rgb, at, n, number=3) if channels == 4 else c
    if channels == 3:
        r = shuffle(shuffle(a, b, _R_1), c, _R_2)
        g = shuffle(shuffle(a, b, _G_1), c, _G_2)
        return r, g, shuffle(shuffle(a, b, _B_1), c, _B_2)
    r = join(shuffle(a, b, _WORD_R), shuffle(c, d, _WORD_R))
    g = join(shuffle(a, b, _WORD_G), shuffle(c, d, _WORD_G))
    return r, g, join(shuffle(a, b, _WORD_B), shuffle(c, d, _WORD_B))
