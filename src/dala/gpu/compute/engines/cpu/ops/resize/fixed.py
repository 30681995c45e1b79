"""Resizing pictures of three or four bytes a pixel in 16-bit whole numbers, for few taps.

A byte is held as value * 128, weights as parts of 32768 (or of less, where some are above 1), and a
product keeps the upper half of its 32 bits: about 6 bits of fraction are left after the first sum
and 5 after the second; a last product takes what is left of the scale away. Sums across work on
eight pixels at a time: the taps of a pixel lie side by side in memory, one load each, and are added
up by folding vectors into each other. Three channels are spread to four there, and packed again.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    i16,
    i32,
    i64,
    independent,
    load,
    local,
    saturate,
    shuffle,
    static,
    store,
    u8,
)
from dala.gpu.compute.engines.sampling.taps import Taps

#: Taps along an axis at most.
TAPS: Final = 8
#: Source pixels that a line holds, and output pixels of a block.
LINE: Final = 4096
COLUMNS: Final = 512
_ROOM: Final = LINE * 4 + 64
_SLOTS: Final = 8
_ROW: Final = COLUMNS * 4
#: Which of eight pixels lie side by side in the vectors that are folded: with two taps, with four.
_FOURS: Final = ((0, 2, 4, 6), (1, 3, 5, 7))
_TWOS: Final = ((0, 2), (1, 3), (4, 6), (5, 7))

_SIXTEEN: Final = tuple(range(16))
_ALL: Final = tuple(range(32))
_LOW: Final = tuple(k + s for g in (0, 8, 16, 24) for s in (0, 32) for k in range(g, g + 4))
_HIGH: Final = tuple(k + 4 for k in _LOW)
_EVEN: Final = tuple(k + s for s in (0, 32) for g in (0, 16) for k in range(g, g + 8))
_ODD: Final = tuple(k + 8 for k in _EVEN)
#: Pixels of three numbers spread to four: those of two taps in each eight, of four in each sixteen.
_SPREAD: Final = (0, 1, 2, 2, 3, 4, 5, 5, 6, 7, 8, 8, 9, 10, 11, 11)
_EIGHTS: Final = tuple(g + k for g in (0, 8, 16, 24) for k in _SPREAD[:8])
_SIXTEENS: Final = tuple(g + k for g in (0, 16) for k in _SPREAD)
#: And back: eight pixels are twenty-four numbers.
_PACKED: Final = tuple(4 * (k // 3) + k % 3 for k in range(16))
_PACKED_REST: Final = tuple(4 * (k // 3) + k % 3 for k in range(16, 24))


def fixed_fits(taps_y: Taps, taps_x: Taps) -> bool:
    """Whether there are few enough taps, and the line holds what eight pixels are made of."""
    starts = np.arange(0, len(taps_x.first), 8)
    ends = np.minimum(starts + 7, len(taps_x.first) - 1)
    most = int((taps_x.first[ends] - taps_x.first[starts]).max()) + taps_x.count
    return max(taps_x.count, taps_y.count) <= TAPS and most <= LINE


def fixed_weights(taps: Taps) -> tuple[npt.NDArray[np.int16], int]:
    """Weights, a row for each output position, and what they add up to: 32768 or less."""
    most = float(np.abs(taps.weights).max())
    scale = 32768 if most <= 1.0 else int(32767 / most) - taps.count
    whole = np.floor(taps.weights * scale + 0.5).astype(np.int64)
    at = np.abs(whole).argmax(axis=1)
    whole[np.arange(len(whole)), at] += scale - whole.sum(axis=1)
    return np.minimum(whole, 32767).astype(np.int16), scale


def finish(scale: int, taps_first: int, taps_last: int) -> tuple[int, int]:
    """What is added to a second sum, and the factor that makes it a byte; ``scale`` is of both.

    Cutting off has cost each product half a unit on average, which is given back.
    """
    unit = scale / 2**25
    return round(unit / 2 + taps_first / 4 + taps_last / 2), round(65536 / unit)


def across_tables(
    taps: Taps, fixed: npt.NDArray[np.int16], blocks: npt.NDArray[np.int32], channels: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int16]]:
    """Where in the line of its block each pixel's taps begin, and the weights, as
    :func:`sum_across` reads them: whole groups of eight.
    """
    count, width = len(taps.first), 2 if taps.count <= 2 else 4
    groups, chunks = -(-count // 8), -(-taps.count // width)
    first = np.zeros(groups * 8, np.int32)
    for begin, stop, base, _ in blocks.reshape(-1, 4):
        first[begin:stop] = (taps.first[begin:stop] - base) * channels
    weights = np.zeros((groups * 8, chunks * width), np.int16)
    weights[:count, : taps.count] = fixed
    each = weights.reshape(groups, 8, chunks, width)
    order = np.array(_FOURS if width == 2 else _TWOS)
    # group, vector, chunk, pixel of the vector, tap, channel
    laid = each[:, order].transpose(0, 1, 3, 2, 4)
    return first, np.ascontiguousarray(np.repeat(laid, 4, axis=-1)).reshape(-1)


@native
def upper(a: Any, b: Any) -> Any:
    """The upper half of a product: one instruction on most machines."""
    return i16((i32(a) * i32(b)) >> 16)


@native
def sum_across(
    line: Array[i16], first: Array[i32], weights: Array[i16], x: i64, *, taps: int, channels: int
) -> Any:
    """Eight output pixels from x on: thirty-two sums."""
    if taps <= 2:
        even = four_across(line, first, weights, x, n=0, channels=channels)
        odd = four_across(line, first, weights, x, n=1, channels=channels)
        return shuffle(even, odd, _LOW) + shuffle(even, odd, _HIGH)
    else:
        chunks = static((taps + 3) // 4)
        a = pair_across(line, first, weights, x, chunks=chunks, n=0, channels=channels)
        b = pair_across(line, first, weights, x, chunks=chunks, n=1, channels=channels)
        c = pair_across(line, first, weights, x, chunks=chunks, n=2, channels=channels)
        d = pair_across(line, first, weights, x, chunks=chunks, n=3, channels=channels)
        ab = shuffle(a, b, _LOW) + shuffle(a, b, _HIGH)
        cd = shuffle(c, d, _LOW) + shuffle(c, d, _HIGH)
        return shuffle(ab, cd, _EVEN) + shuffle(ab, cd, _ODD)


@native
def four_across(
    line: Array[i16], first: Array[i32], weights: Array[i16], x: i64, *, n: int, channels: int
) -> Any:
    """Products of four pixels with two taps each."""
    order = static(_FOURS[n])
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
def pair_across(
    line: Array[i16], first: Array[i32], weights: Array[i16], x: i64,
    *, chunks: int, n: int, channels: int,
) -> Any:  # fmt: skip
    """Products of two pixels with four taps each, or the sums of two times four."""
    order = static(_TWOS[n])
    p = i64(first[x + static(order[0])])
    q = i64(first[x + static(order[1])])
    at = x * 16 * chunks + n * 32 * chunks
    total = upper(two_pixels(line, p, q, channels=channels), load(weights, at, 32))
    if chunks > 1:
        step = static(4 * channels)
        more = two_pixels(line, p + step, q + step, channels=channels)
        total += upper(more, load(weights, at + 32, 32))
    return total


@native
def two_pixels(line: Array[i16], p: i64, q: i64, *, channels: int) -> Any:
    """Four taps of two pixels."""
    taken = shuffle(load(line, p, 16), load(line, q, 16), _ALL)
    return shuffle(taken, taken, _SIXTEENS) if channels == 3 else taken


@native
def put_pixels(out: Array[u8], at: i64, pixels: Any, count: i64, *, channels: int) -> None:
    """Up to eight pixels of four bytes each as pixels of the output."""
    if count >= 8 and channels == 4:
        store(out, at, pixels)
    elif count >= 8:
        store(out, at, shuffle(pixels, pixels, _PACKED))
        store(out, at + 16, shuffle(pixels, pixels, _PACKED_REST))
    else:
        rest = local(u8, 32)
        store(rest, 0, pixels)
        for k in range(count):
            for c in static(range(channels)):
                out[at + k * channels + c] = rest[k * 4 + c]


@native
def add_rows(
    source: Array[u8], line: Array[i16], weights: Array[i16], step: i64, pitch: i64, count: i64,
    *, taps: int,
) -> None:  # fmt: skip
    """Sums down the columns of ``taps`` rows."""
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
    """The same for what fills no vector. Kept apart: in one loop with the rest, the compiler would
    put the weights into a vector, and find no multiply-high any more.
    """
    add_rows(source, line, weights, step, pitch, count, taps=taps)


@native
def resize_down(
    source: Array[u8], out: Array[u8], first_y: Array[i32], weights_y: Array[i16],
    first_x: Array[i32], weights_x: Array[i16], blocks: Array[i32], width: i64, out_width: i64,
    half: i16, factor: i16, start: i64, end: i64, *, taps_x: int, taps_y: int, channels: int,
) -> None:  # fmt: skip
    """Rows [start, end): each is first summed down the columns, then across."""
    line = local(i16, _ROOM)
    pitch, step = width * channels, len(first_y)
    for b in range(len(blocks) // 4):
        begin, stop = i64(blocks[b * 4]), i64(blocks[b * 4 + 1])
        base, many = i64(blocks[b * 4 + 2]), i64(blocks[b * 4 + 3]) * channels
        for beyond in range(64):
            line[many + beyond] = i16(0)
        for y in range(start, end):
            at = i64(first_y[y]) * pitch + base * channels
            whole, rows = many // 32 * 32, weights_y[y:]
            add_rows(source[at:], line, rows, step, pitch, whole, taps=taps_y)
            if whole < many:
                add_rest(
                    source[at + whole :], line[whole:], rows, step, pitch, many - whole,
                    taps=taps_y,
                )  # fmt: skip
            x = begin
            while x < stop:
                values = sum_across(line, first_x, weights_x, x, taps=taps_x, channels=channels)
                pixels = saturate(u8, upper(values + half, factor))
                put_pixels(out, (y * out_width + x) * channels, pixels, stop - x, channels=channels)
                x += 8


@native
def resize_up(
    source: Array[u8], out: Array[u8], first_y: Array[i32], weights_y: Array[i16],
    first_x: Array[i32], weights_x: Array[i16], blocks: Array[i32], width: i64, out_width: i64,
    half: i16, factor: i16, start: i64, end: i64, *, taps_x: int, taps_y: int, channels: int,
) -> None:  # fmt: skip
    """Rows [start, end): source rows are summed across when they are first needed, and kept."""
    line, ring = local(i16, _ROOM), local(i16, static(_SLOTS * _ROW))
    row, step = local(u8, _ROW), len(first_y)
    for b in range(len(blocks) // 4):
        begin, stop = i64(blocks[b * 4]), i64(blocks[b * 4 + 1])
        base, many = i64(blocks[b * 4 + 2]), i64(blocks[b * 4 + 3]) * channels
        for beyond in range(64):
            line[many + beyond] = i16(0)
        known = i64(first_y[start])
        for y in range(start, end):
            top = i64(first_y[y])
            known = max(known, top)
            while known < top + taps_y:
                at = (known * width + base) * channels
                for e in independent(range(many)):
                    line[e] = i16(source[at + e]) << 7
                x, slot = begin, (known % _SLOTS) * _ROW
                while x < stop:
                    values = sum_across(line, first_x, weights_x, x, taps=taps_x, channels=channels)
                    store(ring, slot + (x - begin) * 4, values)
                    x += 8
                known += 1
            # The ring has whole groups of eight pixels; the last may be more than the output has.
            count, at = (stop - begin + 7) // 8 * 32, (y * out_width + begin) * channels
            if channels == 4 and count == (stop - begin) * 4:
                sum_down(ring, top, weights_y[y:], step, out[at:], count, half, factor, taps=taps_y)
            else:
                sum_down(ring, top, weights_y[y:], step, row, count, half, factor, taps=taps_y)
                x = 0
                while x < stop - begin:
                    pixels = load(row, x * 4, 32)
                    put_pixels(
                        out, at + x * channels, pixels, stop - begin - x, channels=channels
                    )  # fmt: skip
                    x += 8


@native(inline=False)
def sum_down(
    ring: Array[i16], top: i64, weights: Array[i16], step: i64, out: Array[u8], count: i64,
    half: i16, factor: i16, *, taps: int,
) -> None:  # fmt: skip
    """One output row of a block, of rows that the ring holds; ``count`` is of whole groups."""
    for e in independent(range(count // 32 * 32)):
        total = half
        for k in static(range(taps)):
            total += upper(ring[((top + k) % _SLOTS) * _ROW + e], weights[k * step])
        out[e] = saturate(u8, upper(total, factor))
