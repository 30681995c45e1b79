"""Scale rows of RGB8 and RGBA8 in integers, as ``engines/sampling/draws.py`` defines it.

Source rows are summed down into a line of i16, colors times alpha, then the line's pixels across.
Rows whose pixels are all opaque need no alpha. Weights are those of ``compose/tables.py``.
"""

from __future__ import annotations

from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.ops.resize.byte_rows import *
from dala.gpu.compute.engines.cpu.pixels.float_rows import channel_of
from dala.gpu.compute.engines.cpu.pixels.over import OPAQUE, round_bytes

#: Which lanes of eight pixels are colors.
_COLORS: Final = (1, 1, 1, 0) * 8
_ALPHA_LANES: Final = tuple(4 * (k // 4) + 3 for k in range(32))
#: What a sum of products begins with: they are 32768 too small, and the sum is rounded.
_BEGIN: Final = (1 << 29) + 16320
#: Lanes of eight pixels from vectors of every second one.
_FIRST: Final = tuple(k + s for g in (0, 4) for s in (0, 16) for k in range(g, g + 4))
_LAST: Final = tuple(k + 8 for k in _FIRST)
_WEIGHTS: Final = (0, 1) * 4 + (2, 3) * 4
_LEFT: Final = (0, 1, 2, 3)
_RIGHT: Final = (4, 5, 6, 7)
#: The numbers of taps for which sums are unrolled.
UNROLLED: Final = (2, 4, 8)


# down -----------------------------------------------------------------------------------------
@native
def divide_255(t: Vector) -> Vector:
    """Return t // 255, for t up to 2**23."""
    return (t + 1 + ((t + 1 + (t >> 8)) >> 8)) >> 8


@native
def with_alpha(v: Vector) -> Vector:
    """Return colors times alpha, and alpha times 255, less 32768, of eight pixels."""
    wide = i16(v)
    is_color = load(table(u8, _COLORS), 0, 32) != 0
    factor = select(is_color, shuffle(wide, wide, _ALPHA_LANES), 255)
    return wide * factor + -32768


@native
def alpha_sums(
    source: Array[u8], e: i64, n: i64, weights: Array[i16], pitch: i64, rows: i64, *, rest: bool
) -> Vector:
    """Return the sums of rows of eight pixels; with ``rest``, of the first ``n`` elements only."""
    low, high = splat(i32(_BEGIN), 16), splat(i32(_BEGIN), 16)
    for k in serial(0, rows, 2):
        above, below = with_alpha(row_of(source, pitch * k + e, n, rest=rest)), splat(i16(0), 32)
        if k + 1 < rows:
            below = with_alpha(row_of(source, pitch * (k + 1) + e, n, rest=rest))
        a, b = products(above, below, weights, k)
        low, high = low + a, high + b
    return narrow_fours(divide_255(low >> 7), divide_255(high >> 7))


@native(inline=False)
def alpha_down(
    source: Array[u8], line: Array[i16], weights: Array[i16], pitch: i64, rows: i64, count: i64
) -> None:
    """Sum rows of RGBA8 into a line, colors times alpha, and zero some more."""
    if count >= LANES:
        for n in serial((count + LANES - 1) // LANES):
            e = min(n * LANES, count - LANES)  # the last vectors may overlap
            store(line, e, alpha_sums(source, e, 0, weights, pitch, rows, rest=False))
    else:
        store(line, 0, alpha_sums(source, 0, count, weights, pitch, rows, rest=True))
    store(line, count, splat(i16(0), 32))


@native(inline=False)
def opaque_down(
    source: Array[u8], line: Array[i16], weights: Array[i16], pitch: i64, rows: i64, count: i64
) -> None:
    """Sum rows of opaque pixels into a line; ``weights`` begin with that of mixing two rows."""
    if rows == 2:
        sum_down(source, line, weights, pitch, 2, count, i32(64), i32(7), taps=MIXED, fraction=7)
    else:
        sum_down(source, line, weights[2:], pitch, rows, count, i32(64), i32(7), taps=0, fraction=7)


# across ---------------------------------------------------------------------------------------
@native
def sums_of_one(
    line: Array[i16], at: i64, weights: Array[i16], taps: i64, *, channels: int
) -> Vector:
    """Return the sums of one pixel over any number of taps, a multiple of four."""
    total = splat(i32(0), 8)
    for k in serial(0, taps, 4):
        four = load(weights, k, 4)
        v = four_taps(line, at + k * channels, channels=channels)
        total += multiply_pairs(v, shuffle(four, four, _WEIGHTS))
    return shuffle(total, total, _LEFT) + shuffle(total, total, _RIGHT)


@native(inline=False)
def opaque_across(
    line: Array[i16], first: Array[i32], weights: Array[i16], taps: i64, out: Array[u32],
    count: i64, *, channels: int,
) -> None:  # fmt: skip
    """Sum a line across and write opaque RGBA8; up to seven pixels more than ``count``."""
    for most in static(UNROLLED):
        if taps <= most:
            for x in serial(0, count, 8):
                even = four_pixels(line, first, weights, x, taps=most, n=0, channels=channels)
                odd = four_pixels(line, first, weights, x, taps=most, n=1, channels=channels)
                values = narrow_fours((even + (1 << 20)) >> 21, (odd + (1 << 20)) >> 21)
                store(out, x, bits(u32, saturate(u8, values)) | OPAQUE)
            break
    if taps > UNROLLED[-1]:
        each = (taps + 3) & ~3
        for x in serial(count):
            sums = sums_of_one(line, i64(first[x]), weights[x * each :], each, channels=channels)
            out[x] = bits(u32, saturate(u8, (sums + (1 << 20)) >> 21)) | OPAQUE


@native(inline=False)
def alpha_across(
    line: Array[i16], first: Array[i32], weights: Array[i16], taps: i64, sums: Array[i32],
    out: Array[u32], count: i64,
) -> None:  # fmt: skip
    """Sum a line across and write RGBA8; up to fifteen pixels more than ``count``.

    ``sums`` is memory for what is between.
    """
    for most in static(UNROLLED):
        if taps <= most:
            for x in serial(0, count, 8):
                even = four_pixels(line, first, weights, x, taps=most, n=0, channels=4) >> 13
                odd = four_pixels(line, first, weights, x, taps=most, n=1, channels=4) >> 13
                store(sums, 4 * x, shuffle(even, odd, _FIRST))
                store(sums, 4 * x + 16, shuffle(even, odd, _LAST))
            break
    if taps > UNROLLED[-1]:
        each = (taps + 3) & ~3
        for x in serial(count):
            own = weights[x * each :]
            store(sums, 4 * x, sums_of_one(line, i64(first[x]), own, each, channels=4) >> 13)
    for k in serial(0, count, 16):
        alpha = channel_of(sums, 4 * k, channel=3)
        red, green = channel_of(sums, 4 * k, channel=0), channel_of(sums, 4 * k, channel=1)
        word = straight(red, green, channel_of(sums, 4 * k, channel=2), alpha)
        store(out, k, word)


@native
def straight(red: Vector, green: Vector, blue: Vector, alpha: Vector) -> Vector:
    """Return sixteen RGBA8 pixels of sums, colors times alpha.

    255 times a sum and alpha are below 2**24, so a quotient is exact enough to round correctly.
    """
    q = f32(max(alpha, 1))
    word = round_bytes(f32(red * 255) / q) | (round_bytes(f32(green * 255) / q) << 8)
    word |= round_bytes(f32(blue * 255) / q) << 16
    return word | (u32((alpha + 128) >> 8) << 24)
