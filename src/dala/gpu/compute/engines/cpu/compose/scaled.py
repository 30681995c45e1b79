"""Pictures at another size, not turned: rows made from tables of texels and weights.

The rows of the picture that a row is made of are summed into a line first, then the line's texels
into pixels. Opaque rows are computed in 16-bit whole numbers (see ``cpu/ops/resize/fixed.py``),
others in f32, weighted by alpha.
"""

from __future__ import annotations

from typing import Any, Final

from dala.gpu.compute.engines.cpu.compose.words import LINE
from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    all_of,
    ceil,
    f32,
    f64,
    floor,
    hinted,
    i16,
    i32,
    i64,
    independent,
    load,
    local,
    prefetch,
    saturate,
    select,
    shuffle,
    splat,
    static,
    store,
    table,
    u8,
    u32,
    view,
)
from dala.gpu.compute.engines.cpu.ops.resize.fixed import add_rest, add_rows, sum_across, upper
from dala.gpu.compute.engines.cpu.pixels.over import OPAQUE, cover

#: What the definition's weights add up to in whole numbers.
ONE: Final = 32768
#: A second sum is of bytes times this, which cuts half a unit off each product.
UNIT: Final = 32
#: Alphas of four pixels spread over their channels, and which of those are colours.
ALPHAS: Final = tuple(4 * (k // 4) + 3 for k in range(16))
COLOURS: Final = (1, 1, 1, 0) * 4
#: Full alpha for eight pixels of bytes.
FULL: Final = (0, 0, 0, 255) * 8


# tables ---------------------------------------------------------------------------------------
@native
def kept(s: f64, low: f64, high: f64) -> f64:
    """A place in texels between the centres of those at the edges, counted from a centre."""
    return max(min(s, max(low + f64(0.5), high - f64(0.5))), low + f64(0.5)) - f64(0.5)


@native(inline=False)
def axis(
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
    taps: i64,
) -> None:
    """The first texel of each pixel, and the weights of ``sums`` of them; ``start`` is the place
    in texels of the middle of the first pixel. Behind ``count`` pixels the last stands again.
    """
    if sums == 2 and size > 1:
        two_axis(first, weights, count, padded, start, scale, low, high, size)
        return
    share = f32(1) / f32(taps)
    for k in hinted(range(padded), scalar=True):
        middle = start + f64(min(k, count - 1)) * scale
        begin = middle + (f64(0.5) / f64(taps) - f64(0.5)) * scale
        a = kept(begin, low, high)
        b = kept(begin + f64(taps - 1) / f64(taps) * scale, low, high)
        base = max(min(i64(floor(min(a, b))), size - sums), 0)
        first[k] = i32(base)
        for j in hinted(range(sums), scalar=True):
            weights[k * sums + j] = f32(0)
        for tap in hinted(range(taps), scalar=True):
            s = kept(begin + f64(tap) / f64(taps) * scale, low, high)
            whole = floor(s)
            part = f32(s - whole) * share
            x = i64(whole)
            p = min(max(x, 0), size - 1) - base
            q = min(max(x + 1, 0), size - 1) - base
            weights[k * sums + p] += share - part
            if part > f32(0):
                weights[k * sums + q] += part


@native
def two_axis(
    first: Array[i32], weights: Array[f32], count: i64, padded: i64, start: f64, scale: f64,
    low: f64, high: f64, size: i64,
) -> None:  # fmt: skip
    """As axis, for one tap a pixel."""
    low = max(low + f64(0.5), f64(0.5))
    high = max(min(high - f64(0.5), f64(size) - f64(0.5)), low)
    last = f64(size - 2)
    for k in independent(range(padded)):
        s = start + f64(min(k, count - 1)) * scale
        s = max(min(s, high), low) - f64(0.5)
        whole = min(floor(s), last)
        first[k] = i32(whole)
        part = f32(min(s - whole, f64(1)))
        weights[2 * k] = f32(1) - part
        weights[2 * k + 1] = part


@native(inline=False)
def near_axis(
    first: Array[i32], count: i64, padded: i64, start: f64, scale: f64, low: f64, high: f64,
    size: i64,
) -> None:  # fmt: skip
    """The texel that the middle of each pixel falls in."""
    for k in hinted(range(padded), scalar=True):
        x = i64(floor(start + f64(min(k, count - 1)) * scale))
        x = max(min(x, i64(ceil(high)) - 1), i64(floor(low)))
        first[k] = i32(min(max(x, 0), size - 1))


@native
def whole_weights(weights: Array[f32], at: i64, sums: i64, out: Array[i32]) -> None:
    """A pixel's weights in whole numbers that add up to ONE."""
    total, most, best = i32(0), i32(-1), 0
    for j in hinted(range(sums), scalar=True):
        w = i32(weights[at + j] * f32(ONE) + f32(0.5))
        out[j] = w
        total += w
        if w > most:
            most, best = w, j
    out[best] = out[best] + ONE - total


@native(inline=False)
def fix_columns(weights: Array[f32], sums: i64, padded: i64, out: Array[i16]) -> None:
    """Weights of columns as ``sum_across`` reads them: eight pixels a group."""
    if sums == 2:
        for k in hinted(range(padded), scalar=True):
            part = i32(weights[2 * k + 1] * f32(ONE) + f32(0.5))
            at = (k >> 3) * 64 + (k & 1) * 32 + ((k >> 1) & 3) * 8
            store(out, at, splat(i16(min(ONE - part, 32767)), 4))
            store(out, at + 4, splat(i16(min(part, 32767)), 4))
        return
    found = local(i32, 8)
    chunks = sums >> 2
    for k in hinted(range(padded), scalar=True):
        whole_weights(weights, k * sums, sums, found)
        # Pixels 0 and 2, 1 and 3, 4 and 6, 5 and 7 stand side by side.
        p = k & 7
        vector, side = (p >> 2) * 2 + (p & 1), (p >> 1) & 1
        base = ((k >> 3) * 4 + vector) * 32 * chunks + side * 16
        for j in hinted(range(sums), scalar=True):
            w = i16(min(found[j], 32767))
            store(out, base + (j >> 2) * 32 + (j & 3) * 4, splat(w, 4))


@native(inline=False)
def fix_rows(weights: Array[f32], sums: i64, count: i64, out: Array[i16]) -> None:
    """Weights of rows, eight places each."""
    found = local(i32, 8)
    for k in hinted(range(count), scalar=True):
        whole_weights(weights, k * sums, sums, found)
        for j in hinted(range(sums), scalar=True):
            out[k * 8 + j] = i16(min(found[j], 32767))


# half the size --------------------------------------------------------------------------------
#: Every other channel, and lanes of every other pixel of two vectors.
PAIR: Final = 0x00FF00FF
TWOS: Final = 0x00020002
EVENS: Final = tuple(range(0, 32, 2))
ODDS: Final = tuple(range(1, 32, 2))


#: Bytes ahead of which memory is asked for: rows of a picture are read once, page after page.
AHEAD: Final = 8192


@native
def quarter(a: Any, b: Any) -> Any:
    """The means of neighbours in two vectors of sums of rows, two channels a word."""
    total = shuffle(a, b, EVENS) + shuffle(a, b, ODDS) + TWOS
    return (total >> 2) & PAIR


@native
def four_to_one(a: Any, b: Any, c: Any, d: Any) -> Any:
    """Sixteen opaque pixels from two vectors of the upper and two of the lower row."""
    low = quarter((a & PAIR) + (c & PAIR), (b & PAIR) + (d & PAIR))
    high = quarter(((a >> 8) & PAIR) + ((c >> 8) & PAIR), ((b >> 8) & PAIR) + ((d >> 8) & PAIR))
    return low | (high << 8) | OPAQUE


@native
def halve_row(
    texels: Array[u32], upper_at: i64, lower_at: i64, out: Array[u32], at: i64, count: i64
) -> None:
    """Opaque pixels, each the mean of four texels."""
    for k in hinted(range(0, count - 15, 16), scalar=True):
        prefetch(texels, upper_at + 2 * k + AHEAD // 4)
        prefetch(texels, upper_at + 2 * k + AHEAD // 4 + 16)
        prefetch(texels, lower_at + 2 * k + AHEAD // 4)
        prefetch(texels, lower_at + 2 * k + AHEAD // 4 + 16)
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


#: The left and the right texel of three bytes of each of eight pixels of four.
LEFTS: Final = tuple(6 * (k // 4) + min(k % 4, 2) for k in range(32))
RIGHTS: Final = tuple(3 + k for k in LEFTS)


@native
def halve_narrow(
    source: Array[u8], upper_at: i64, lower_at: i64, out: Array[u32], at: i64, count: i64
) -> i64:
    """As halve_row, of three bytes a texel, eight pixels at a time; how many it made."""
    full = load(table(u8, FULL), 0, 32)
    made = view(out, u8, 4 * at)
    # Of 64 bytes that are read from each row, 48 are used.
    end = min(count - 7, (len(source) - 64 - 3 * lower_at) // 6 + 1)
    done = 0
    while done < end:
        prefetch(source, 3 * upper_at + 6 * done + AHEAD)
        prefetch(source, 3 * lower_at + 6 * done + AHEAD)
        upper_row = load(source, 3 * upper_at + 6 * done, 64)
        both = i16(upper_row) + i16(load(source, 3 * lower_at + 6 * done, 64))
        total = shuffle(both, both, LEFTS) + shuffle(both, both, RIGHTS) + i16(2)
        store(made, 4 * done, u8(total >> 2) | full)
        done += 8
    return done


# opaque rows ----------------------------------------------------------------------------------
@native(inline=False)
def down_two(source: Array[u8], line: Array[i16], rows: Array[i16], pitch: i64, many: i64) -> None:
    """The sums of two rows."""
    whole = many & ~31
    add_rows(source, line, rows, 1, pitch, whole, taps=2)
    if whole < many:
        add_rest(source[whole:], line[whole:], rows, 1, pitch, many - whole, taps=2)


@native(inline=False)
def down_more(
    source: Array[u8], line: Array[i16], rows: Array[i16], pitch: i64, many: i64, sums: i64
) -> None:
    """The sums of up to eight rows."""
    for e in hinted(range(0, many, 32), scalar=True):
        n = min(many - e, 32)
        total = splat(i16(0), 32)
        for k in hinted(range(sums), scalar=True):
            if rows[k] != 0:
                value = i16(load(source, pitch * k + e, 32, n)) << 7
                total += upper(value, splat(rows[k], 32))
        store(line, e, total)


@native(inline=False)
def across(
    line: Array[i16], places: Array[i32], weights: Array[i16], made: Array[u8], count: i64,
    half: i16, *, taps: int, channels: int,
) -> None:  # fmt: skip
    """Pixels from a line."""
    full = load(table(u8, FULL), 0, 32)
    for x in hinted(range(0, count, 8), scalar=True):
        values = sum_across(line, places, weights, x, taps=taps, channels=channels)
        pixels = saturate(u8, upper(values + half, i16(65536 // UNIT)))
        store(made, 4 * x, pixels | full)


@native
def fixed_row(
    source: Array[u8],
    pitch: i64,
    rows: Array[i16],
    sums_y: i64,
    line: Array[i16],
    many: i64,
    places: Array[i32],
    weights: Array[i16],
    sums_x: i64,
    made: Array[u8],
    count: i64,
    *,
    channels: int,
) -> None:
    """A row of opaque pixels: rows of bytes from ``source`` on, as far as the picture goes."""
    if sums_y == 2:
        down_two(source, line, rows, pitch, many)
    else:
        down_more(source, line, rows, pitch, many, sums_y)
    store(line, many, splat(i16(0), 32))
    half = i16(UNIT // 2 + sums_y // 4 + sums_x // 2)
    if sums_x == 2:
        across(line, places, weights, made, count, half, taps=2, channels=channels)
    elif sums_x == 4:
        across(line, places, weights, made, count, half, taps=4, channels=channels)
    else:
        across(line, places, weights, made, count, half, taps=8, channels=channels)


@native(inline=False)
def all_opaque(texels: Array[u32], at: i64, many: i64) -> bool:
    """Whether a part of a row lets nothing through."""
    for k in hinted(range(0, many, 16), scalar=True):
        n = min(many - k, 16)
        v = load(texels, at + k, 16, n)
        if not all_of((v >= OPAQUE) | (load(table(i32, NUMBERS), 0, 16) >= i32(n))):
            return False
    return True


NUMBERS: Final = tuple(range(16))


# rows with alpha ------------------------------------------------------------------------------
@native(inline=False, fast=True)
def down_weighted(
    source: Array[u8], line: Array[f32], rows: Array[f32], pitch: i64, many: i64, sums: i64
) -> None:
    """The sums of rows, colours times alpha and alpha times 255."""
    colour = load(table(u8, COLOURS), 0, 16) != 0
    for e in hinted(range(0, many, 16), scalar=True):
        n = min(many - e, 16)
        total = splat(f32(0), 16)
        for k in hinted(range(sums), scalar=True):
            if rows[k] != f32(0):
                v = f32(i32(load(source, pitch * k + e, 16, n)))
                factor = select(colour, shuffle(v, v, ALPHAS), splat(f32(255), 16))
                total += v * factor * rows[k]
        store(line, e, total)


@native(inline=False, fast=True)
def weighted_row(
    source: Array[u8],
    pitch: i64,
    rows: Array[f32],
    sums_y: i64,
    line: Array[f32],
    many: i64,
    places: Array[i32],
    weights: Array[f32],
    sums_x: i64,
    sums: Array[f32],
    count: i64,
) -> None:
    """A row of pixels with alpha: colours times alpha, and alpha times 255, of 0..65025."""
    down_weighted(source, line, rows, pitch, many, sums_y)
    for beyond in hinted(range(sums_x), scalar=True):
        store(line, many + 4 * beyond, splat(f32(0), 4))
    if sums_x == 2:
        for k in hinted(range(count), scalar=True):
            both = load(line, places[k], 8)
            p, q = shuffle(both, both, (0, 1, 2, 3)), shuffle(both, both, (4, 5, 6, 7))
            store(sums, 4 * k, p * weights[2 * k] + q * weights[2 * k + 1])
    else:
        for k in hinted(range(count), scalar=True):
            total = splat(f32(0), 4)
            for j in hinted(range(sums_x), scalar=True):
                total += load(line, i64(places[k]) + 4 * j, 4) * weights[k * sums_x + j]
            store(sums, 4 * k, total)


@native
def every(a: Any, b: Any, c: Any, d: Any, *, channel: int) -> Any:
    """One channel of sixteen pixels, four in each vector."""
    lanes = static(EVERY[channel])
    return shuffle(shuffle(a, b, lanes), shuffle(c, d, lanes), SIXTEEN)


@native(inline=False, fast=True)
def lay_sums(
    pixels: Array[u32], at: i64, sums: Array[f32], first: i64, part: Array[f32], count: i64,
    tinted: bool, color: u32,
) -> None:  # fmt: skip
    """Over a row of pixels ``part`` of what weighted_row made, or of a colour with its alphas."""
    inverse = f32(1 / 65025)
    if tinted:
        inverse = f32(color >> 24) * f32(1 / 65025 / 255)
    for k in hinted(range(0, count, 16), scalar=True):
        n = min(count - k, 16)
        base = 4 * (first + k)
        p, q = load(sums, base, 16), load(sums, base + 16, 16)
        s, t = load(sums, base + 32, 16), load(sums, base + 48, 16)
        alpha = every(p, q, s, t, channel=3)
        if all_of(alpha <= f32(0)):
            continue
        r = splat(f32(color & 255), 16)
        g, b = splat(f32((color >> 8) & 255), 16), splat(f32((color >> 16) & 255), 16)
        if not tinted:
            scale = f32(255) / max(alpha, splat(f32(0.5), 16))
            r = every(p, q, s, t, channel=0) * scale
            g = every(p, q, s, t, channel=1) * scale
            b = every(p, q, s, t, channel=2) * scale
        d = load(pixels, at + k, 16, n)
        a = min(alpha * inverse, splat(f32(1), 16)) * load(part, k, 16)
        store(pixels, at + k, cover(d, r, g, b, a), n)


SIXTEEN: Final = tuple(range(16))
#: Lanes of each channel among two times four pixels.
EVERY: Final = tuple(tuple(range(channel, 32, 4)) for channel in range(4))


#: Bytes that a line of texels needs.
LINE_ROOM: Final = LINE * 4 + 64
