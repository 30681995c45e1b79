"""Resize rows of bytes in integers, as ``engines/sampling/byte_taps.py`` defines it.

Source rows are summed down into a line of i16, then the line's pixels are summed across. Products
are exact and added in pairs; two rows are mixed with one rounded product, which is the same. Sums
across process eight pixels at a time: the taps of a pixel are adjacent in memory, so that a load
reads two or four of them. Three channels are expanded to four.
"""

from __future__ import annotations

from dala.gpu.compute.engines.cpu.native import *

#: Elements of a row that are summed down at a time.
LANES: Final = 32
#: In place of the number of rows: two rows whose weights are 0 to 1.
MIXED: Final = -2
#: In place of the number of rows: three rows whose weights are given in digits.
DIGITS: Final = -3
#: Output pixels of one channel that are summed at a time.
GRAYS: Final = 16
#: Elements of a line; its buffer is larger, since vectors are loaded beyond its end.
LINE: Final = 32768
LINE_CAPACITY: Final = LINE + 128

#: Shuffles of two rows to pairs: of the first four elements of each eight, and of the others.
_LOW: Final = tuple(k + s for g in range(0, LANES, 8) for k in range(g, g + 4) for s in (0, LANES))
_HIGH: Final = tuple(k + 4 for k in _LOW)
#: The same for bytes: of the first eight of each sixteen, and of the others; and their results.
_LOW_BYTES: Final = tuple(k + s for g in (0, 16) for k in range(g, g + 8) for s in (0, LANES))
_HIGH_BYTES: Final = tuple(k + 8 for k in _LOW_BYTES)
_EIGHTS: Final = tuple(k + s for g in (0, 8) for s in (0, 16) for k in range(g, g + 8))
_EACH_PAIR: Final = (0, 1) * (LANES // 2)
#: Shuffles of two adjacent pixels to pairs of one channel, for three and four channels.
_PAIR: Final = (0, 3, 1, 4, 2, 5, 2, 5), (0, 4, 1, 5, 2, 6, 3, 7)
_PAIRS: Final = tuple(tuple(g + k for g in (0, 8, 16, 24) for k in own) for own in _PAIR)
_TWO_PAIRS: Final = tuple(own[:16] for own in _PAIRS)
#: Sums of two pairs of taps, of two pixels a vector: those of one pair, then of the other. The
#: pixels' first pairs are not all in one, so that many CPUs need no permutation for it.
_FIRST: Final = tuple(k + s for s in (0, 16) for g in (0, 12) for k in range(g, g + 4))
_SECOND: Final = tuple(k + s for s in (0, 16) for g in (4, 8) for k in range(g, g + 4))
_LEFT: Final = (0, 1, 2, 3)
_RIGHT: Final = (4, 5, 6, 7)
_WEIGHTS: Final = (0, 1) * 4 + (2, 3) * 4
#: From pixels of four bytes to three, for eight pixels.
PACKED: Final = tuple(4 * (k // 3) + k % 3 for k in range(16))
PACKED_REST: Final = tuple(4 * (k // 3) + k % 3 for k in range(16, 24))


# down -----------------------------------------------------------------------------------------
@native
def down_at(
    source: Array[u8], e: i64, n: i64, pitch: i64, weights: Array[i16], count: i64, half: i32,
    shift: i32, *, taps: int, fraction: int, rest: bool,
) -> Vector:  # fmt: skip
    """Return sums of ``taps`` rows, or of ``count`` if ``taps`` is 0.

    With ``rest``, of the first ``n`` elements only.
    """
    if taps == 1:
        return i16(row_of(source, e, n)) << fraction
    elif taps == MIXED:
        # One product. The weight of the second row is given negative, so that it may be 1.
        above = i16(row_of(source, e, n)) << fraction
        below = i16(row_of(source, e + pitch, n)) << fraction
        return above + multiply_q15(above - below, splat(weights[0], LANES))
    elif taps == DIGITS:
        p, q = i64(weights[4]), i64(weights[5])
        above, below = row_of(source, e + pitch * p, n), row_of(source, e + pitch * q, n)
        most = row_of(source, e + pitch * (3 - p - q), n)
        low = sum_digits(above, below, most, weights, order=_LOW_BYTES)
        return shuffle(low, sum_digits(above, below, most, weights, order=_HIGH_BYTES), _EIGHTS)
    low, high = splat(half, LANES // 2), splat(half, LANES // 2)
    if taps % 2 == 1:
        # Of an odd number, all others differ from the one in the middle, whose weight is the rest.
        middle = i16(row_of(source, e + pitch * static(taps // 2), n))
        for k in static(range(0, taps - 1, 2)):
            p, q = static(k + k // (taps // 2)), static(k + 1 + (k + 1) // (taps // 2))
            above = i16(row_of(source, e + pitch * p, n)) - middle
            below = i16(row_of(source, e + pitch * q, n)) - middle
            a, b = products(above, below, weights, k)
            low, high = low + a, high + b
        return (middle << fraction) + narrow_fours(low >> shift, high >> shift)
    elif taps > 0:
        for k in static(range(0, taps, 2)):
            a, b = pair_of_rows(source, e + pitch * k, n, pitch, weights, k, one=False)
            low, high = low + a, high + b
    else:
        for k in hinted(range(0, count - 1, 2), scalar=True):
            a, b = pair_of_rows(source, e + pitch * k, n, pitch, weights, k, one=False)
            low, high = low + a, high + b
        if count % 2 == 1:
            k = count - 1
            a, b = pair_of_rows(source, e + pitch * k, n, pitch, weights, k, one=True)
            low, high = low + a, high + b
    return narrow_fours(low >> shift, high >> shift)


@native
def sum_digits(
    above: Vector, below: Vector, most: Vector, weights: Array[i16], *, order: tuple[int, ...]
) -> Vector:
    """Return the sums of half of three rows, in 16 bits; ``byte_tables.py`` has the digits.

    Sums include half a byte, which rounds those across: their weights add up to one.
    """
    x, y = shuffle(above, most, order), shuffle(below, most, order)
    upper = multiply_pairs(x, digits(weights[0])) + multiply_pairs(y, digits(weights[1]))
    lower = multiply_pairs(x, digits(weights[2])) + multiply_pairs(y, digits(weights[3]))
    total = bits(u16, upper) + (bits(u16, lower) >> 7)
    return i16((u32(total) + 129) >> 1)


@native
def digits(pair: i16) -> Vector:
    """Return a pair of digits for each element."""
    return bits(i8, splat(pair, LANES // 2))


@native
def row_of(source: Array[u8], e: i64, n: i64, *, rest: bool) -> Vector:
    """Return the elements of a row."""
    if rest:
        return load(source, e, LANES, n)
    return load(source, e, LANES)


@native
def pair_of_rows(
    source: Array[u8], e: i64, n: i64, pitch: i64, weights: Array[i16], k: i64,
    *, one: bool, rest: bool,
) -> Vector:  # fmt: skip
    """Return the weighted sums of two rows, or of one."""
    above = i16(row_of(source, e, n))
    below = splat(i16(0), LANES) if one else i16(row_of(source, e + pitch, n))
    return products(above, below, weights, k)


@native
def products(above: Vector, below: Vector, weights: Array[i16], k: i64) -> Vector:
    """Return the weighted sums of two rows, in two vectors as ``narrow_fours`` takes them."""
    pair = load(weights, k, 2)
    each = shuffle(pair, pair, _EACH_PAIR)
    low, high = shuffle(above, below, _LOW), shuffle(above, below, _HIGH)
    return multiply_pairs(low, each), multiply_pairs(high, each)


@native
def sum_down(
    source: Array[u8], line: Array[i16], weights: Array[i16], pitch: i64, rows: i64, count: i64,
    half: i32, shift: i32, *, taps: int, fraction: int,
) -> None:  # fmt: skip
    """Sum ``taps`` rows (if 0: ``rows``) into a line of ``count`` elements, and zero some more."""
    if count >= LANES:
        for n in hinted(range((count + LANES - 1) // LANES), scalar=True):
            e = min(n * LANES, count - LANES)  # the last vectors may overlap
            store(line, e, down_at(source, e, 0, pitch, weights, rows, half, shift, rest=False))
    else:
        store(line, 0, down_at(source, 0, count, pitch, weights, rows, half, shift, rest=True))
    store(line, count, splat(i16(0), LANES))


# across, colors ---------------------------------------------------------------------------------
@native
def four_by_two(
    line: Array[i16], first: Array[i32], weights: Array[i16], x: i64, *, n: int, channels: int
) -> Vector:
    """Return the sums of every second of eight pixels, with two taps each."""
    p, q = load(line, first[x + n], 8), load(line, first[x + n + 2], 8)
    r, s = load(line, first[x + n + 4], 8), load(line, first[x + n + 6], 8)
    taken = join(p, q, r, s)
    taken = shuffle(taken, taken, static(_PAIRS[channels - 3]))
    return multiply_pairs(taken, load(weights, x * 8 + n * 32, 32))


@native
def four_taps(line: Array[i16], at: i64, *, channels: int) -> Vector:
    """Load four taps of a pixel, as pairs of taps of each channel."""
    if channels == 4:
        taken = load(line, at, 16)
        return shuffle(taken, taken, static(_TWO_PAIRS[1]))
    both = join(load(line, at, 8), load(line, at + 6, 8))
    return shuffle(both, both, static(_TWO_PAIRS[0]))


@native
def two_by_four(
    line: Array[i16], p: i64, q: i64, weights: Array[i16], *, chunks: int, channels: int
) -> Vector:
    """Return the sums of two pixels with four or eight taps each, not yet added over pairs."""
    taken = join(four_taps(line, p), four_taps(line, q))
    total = multiply_pairs(taken, load(weights, 0, 32))
    for k in static(range(1, chunks)):
        step = static(4 * channels * k)
        more = join(four_taps(line, p + step), four_taps(line, q + step))
        total += multiply_pairs(more, load(weights, 32 * k, 32))
    return total


@native
def four_pixels(
    line: Array[i16], first: Array[i32], weights: Array[i16], x: i64,
    *, taps: int, n: int, channels: int,
) -> Vector:  # fmt: skip
    """Return the sums of every second of eight pixels, four channels each."""
    if taps <= 2:
        return four_by_two(line, first, weights, x)
    chunks = static((taps + 3) // 4)
    own = weights[(x * 16 + n * 64) * chunks :]
    p, q = i64(first[x + n]), i64(first[x + n + 2])
    r, s = i64(first[x + n + 4]), i64(first[x + n + 6])
    a = two_by_four(line, p, q, own, chunks=chunks)
    b = two_by_four(line, r, s, own[32 * chunks :], chunks=chunks)
    return shuffle(a, b, _FIRST) + shuffle(a, b, _SECOND)


@native
def store_pixels(out: Array[u8], at: i64, pixels: Vector, count: i64, *, channels: int) -> None:
    """Store up to eight pixels of four bytes as pixels of three or four."""
    if count >= 8 and channels == 4:
        store(out, at, pixels)
    elif count >= 8:
        store(out, at, shuffle(pixels, pixels, PACKED))
        store(out, at + 16, shuffle(pixels, pixels, PACKED_REST))
    else:
        rest = local(u8, 32)
        store(rest, 0, pixels)
        for k in range(count):
            for c in static(range(channels)):
                out[at + k * channels + c] = rest[k * 4 + c]


@native
def colors_across(
    line: Array[i16], first: Array[i32], weights: Array[i16], out: Array[u8], count: i64,
    half: i32, shift: i32, *, taps: int, channels: int,
) -> None:  # fmt: skip
    """Sum a line across and write ``count`` pixels of three or four channels."""
    for x in hinted(range(0, count, 8), scalar=True):
        even = four_pixels(line, first, weights, x, n=0)
        odd = four_pixels(line, first, weights, x, n=1)
        values = saturate(u8, narrow_fours((even + half) >> shift, (odd + half) >> shift))
        store_pixels(out, channels * x, values, count - x)


# across, one channel ----------------------------------------------------------------------------
@native
def gray_across(
    line: Array[i16], first: Array[i32], weights: Array[i16], out: Array[u8], count: i64,
    half: i32, shift: i32, *, taps: int,
) -> None:  # fmt: skip
    """Sum a line of one channel across; weights are ordered by groups of pixels, then by pairs."""
    memory = view(line, u8)
    pairs = static((taps + 1) // 2)
    for x in hinted(range(0, count, GRAYS), scalar=True):
        at, total = load(first, x, GRAYS) * 2, splat(half, GRAYS)
        for k in static(range(pairs)):
            taken = bits(i16, gather(memory, at + 4 * k, u32))
            total += multiply_pairs(taken, load(weights, (x * pairs + k * GRAYS) * 2, 2 * GRAYS))
        pixels = saturate(u8, total >> shift)
        if count - x >= GRAYS:
            store(out, x, pixels)
        else:
            for k in range(count - x):
                out[x + k] = pixels[k]


# across, any number of taps ---------------------------------------------------------------------
@native
def pixel_of(sums: Vector, *, channels: int) -> Vector:
    """Add the sums over pairs of taps of one pixel."""
    if channels == 1:
        return hsum(sums)
    return shuffle(sums, sums, _LEFT) + shuffle(sums, sums, _RIGHT)


@native
def store_pixel(out: Array[T], at: i64, value: Vector, *, channels: int) -> None:
    """Store a pixel."""
    if channels == 1:
        out[at] = value
    elif channels == 4:
        store(out, at, value)
    else:
        for c in static(range(3)):
            out[at + c] = value[c]


@native
def across_many(
    line: Array[i16], first: Array[i32], weights: Array[i16], out: Array[u8], count: i64,
    taps: i64, half: i32, shift: i32, *, wide: bool, channels: int,
) -> None:  # fmt: skip
    """Sum a line across any number of taps, padded to a multiple of four, or of eight for gray."""
    step = static(8 if channels == 1 else 4)
    for x in hinted(range(count), scalar=True):
        at, low = i64(first[x]), splat(i32(0), static(4 if channels == 1 else 8))
        high = low
        for k in hinted(range(0, taps, step), scalar=True):
            given = load(weights, x * taps + k, step)
            if channels == 1:
                v, each = load(line, at + k, 8), given
            else:
                v, each = four_taps(line, at + k * channels), shuffle(given, given, _WEIGHTS)
            if wide:
                high += multiply_pairs(v >> 8, each)
                v = v & 255
            low += multiply_pairs(v, each)
        total = pixel_of(low) + half
        if wide:
            total = (total >> 8) + pixel_of(high)
        store_pixel(out, x * channels, saturate(u8, total >> (shift - 8 if wide else shift)))


@native
def resize_bytes(
    source: Array[u8], out: Array[u8], first_y: Array[i32], weights_y: Array[i16],
    first_x: Array[i32], weights_x: Array[i16], blocks: Array[i32], width: i64, out_width: i64,
    count_y: i64, each_x: i64, down: i32, across: i32, start: i64, end: i64,
    *, taps_x: int, taps_y: int, fraction: int, channels: int, wide: bool,
) -> None:  # fmt: skip
    """Resize rows [start, end): each is summed down, then across.

    A block is four numbers: output columns [begin, stop), the first source pixel and the number of
    source pixels. An output pixel has ``each_x`` numbers in ``weights_x``, a row an even number.
    """
    line = local(i16, LINE_CAPACITY)
    pitch, each_y = width * channels, i64(6) if taps_y == DIGITS else (count_y + 1) & ~1
    half_y = (i32(1) << down) >> 1
    half_x = i32(0) if taps_y == DIGITS else (i32(1) << across) >> 1
    for b in range(len(blocks) // 4):
        begin, stop = i64(blocks[b * 4]), i64(blocks[b * 4 + 1])
        base, many = i64(blocks[b * 4 + 2]), i64(blocks[b * 4 + 3]) * channels
        columns, weights = first_x[begin:], weights_x[begin * each_x :]
        for y in range(start, end):
            at = i64(first_y[y]) * pitch + base * channels
            sum_down(
                source[at:], line, weights_y[y * each_y :], pitch, count_y, many, half_y, down,
                taps=taps_y,
            )  # fmt: skip
            to = out[(y * out_width + begin) * channels :]
            if channels == 1 and taps_x > 0:
                gray_across(line, columns, weights, to, stop - begin, half_x, across, taps=taps_x)
            elif taps_x > 0:
                colors_across(line, columns, weights, to, stop - begin, half_x, across, taps=taps_x)
            else:
                across_many(line, columns, weights, to, stop - begin, each_x, half_x, across)
