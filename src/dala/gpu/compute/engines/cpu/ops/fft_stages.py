"""Native stages of Fourier transforms whose length is a power of two.

Radix-4 Stockham stages, whose results are in order without a reordering pass. Between stages, real
and imaginary parts are separate vectors; the first stage splits them and the last joins them.
"""

from __future__ import annotations

from typing import TypeAlias

from dala.gpu.compute.engines.cpu.native import *

Shuffles: TypeAlias = tuple[tuple[int, ...], ...]

#: Forms of complex numbers in memory: (re, im) pairs, (im, re) pairs, real only, separate arrays.
PAIRS: Final = 0
EXCHANGED: Final = 1
REAL: Final = 2
SEPARATE: Final = 3

#: Indexes into the result of ``shuffles_for``.
EVENS: Final = 0
ODDS: Final = 1
JOINED: Final = 2
INTERLEAVED: Final = 3


def shuffles_for(lanes: int, step: int) -> Shuffles:
    """Return the shuffles that split pairs, join them, and interleave four results.

    Results of a radix-4 step are ``step`` apart: [block][which of the four][position].
    """
    return (
        tuple(range(0, 2 * lanes, 2)),
        tuple(range(1, 2 * lanes, 2)),
        tuple(i // 2 + i % 2 * lanes for i in range(2 * lanes)),
        tuple(i // step % 4 * lanes + i // (4 * step) * step + i % step for i in range(4 * lanes)),
    )


@native
def parts_at(
    a: Array[T], b: Array[T], at: i64,
    *, T: type, lanes: int, form: int, shuffles: Shuffles,  # noqa: N803
) -> Vector:  # fmt: skip
    """Load real and imaginary parts, these from ``b`` if they are separate."""
    if form == SEPARATE:
        return load(a, at, lanes), load(b, at, lanes)
    elif form == REAL:
        return load(a, at, lanes), splat(T(0), lanes)
    v = load(a, 2 * at, static(2 * lanes))
    evens, odds = shuffle(v, v, shuffles[EVENS]), shuffle(v, v, shuffles[ODDS])
    if form == PAIRS:
        return evens, odds
    return odds, evens


@native
def butterfly(
    r0: Vector, i0: Vector, r1: Vector, i1: Vector, r2: Vector, i2: Vector, r3: Vector, i3: Vector
) -> Vector:
    """Return the transform of four numbers, as real and imaginary parts."""
    sr0, si0, dr0, di0 = r0 + r2, i0 + i2, r0 - r2, i0 - i2
    sr1, si1, dr1, di1 = r1 + r3, i1 + i3, r1 - r3, i1 - i3
    ar, ai, br, bi = dr0 + di1, di0 - dr1, sr0 - sr1, si0 - si1
    return sr0 + sr1, si0 + si1, ar, ai, br, bi, dr0 - di1, di0 + dr1


@native
def four_at(
    a: Array[T], b: Array[T], at: i64, step: i64,
    *, T: type, lanes: int, form: int, shuffles: Shuffles,  # noqa: N803
) -> Vector:  # fmt: skip
    """Return the transforms of numbers that are ``step`` apart."""
    r0, i0 = parts_at(a, b, at)
    r1, i1 = parts_at(a, b, at + step)
    r2, i2 = parts_at(a, b, at + 2 * step)
    r3, i3 = parts_at(a, b, at + 3 * step)
    return butterfly(r0, i0, r1, i1, r2, i2, r3, i3)


@native(fast=True)
def turned(re: Vector, im: Vector, wr: Vector, wi: Vector) -> Vector:
    """Return the products with twiddle factors."""
    return re * wr - im * wi, re * wi + im * wr


@native
def put_four(
    out: Array[T], at: i64, a: Vector, b: Vector, c: Vector, d: Vector, *, shuffles: Shuffles
) -> None:
    """Interleave and store four vectors of results."""
    store(out, at, shuffle(join(a, b), join(c, d), shuffles[INTERLEAVED]))


@native
def short_stage(
    a: Array[T], b: Array[T], re: Array[T], im: Array[T], twiddles: Array[T], length: i64,
    *, lanes: int, form: int, shuffles: Shuffles,
) -> None:  # fmt: skip
    """Run a stage whose results are less than a vector apart, with a twiddle for each result."""
    quarter = length // 4
    for u in range(0, quarter, lanes):
        r0, i0, r1, i1, r2, i2, r3, i3 = four_at(a, b, u, quarter)
        r1, i1 = turned(r1, i1, load(twiddles, u, lanes), load(twiddles, u + quarter, lanes))
        w2r, w2i = load(twiddles, u + 2 * quarter, lanes), load(twiddles, u + 3 * quarter, lanes)
        w3r, w3i = load(twiddles, u + 4 * quarter, lanes), load(twiddles, u + 5 * quarter, lanes)
        r2, i2 = turned(r2, i2, w2r, w2i)
        r3, i3 = turned(r3, i3, w3r, w3i)
        put_four(re, 4 * u, r0, r1, r2, r3)
        put_four(im, 4 * u, i0, i1, i2, i3)


@native
def long_stage(
    xr: Array[T], xi: Array[T], yr: Array[T], yi: Array[T], twiddles: Array[T], length: i64,
    step: i64, turn: i64, *, lanes: int, shuffles: Shuffles,
) -> None:  # fmt: skip
    """Run a stage whose results are ``step`` apart, a multiple of a vector; factors are pairs."""
    quarter = length // 4
    for p in range(quarter // step):
        turns = static((
            (splat(twiddles[2 * p * turn], lanes), splat(twiddles[2 * p * turn + 1], lanes)),
            (splat(twiddles[4 * p * turn], lanes), splat(twiddles[4 * p * turn + 1], lanes)),
            (splat(twiddles[6 * p * turn], lanes), splat(twiddles[6 * p * turn + 1], lanes)),
        ))  # fmt: skip
        for q in range(0, step, lanes):
            to = q + step * 4 * p
            found = static(four_at(xr, xi, q + step * p, quarter, form=SEPARATE))
            store_parts(yr, yi, to, found[0], found[1])
            for k in static((1, 2, 3)):
                wr, wi = turns[k - 1]
                re, im = turned(found[2 * k], found[2 * k + 1], wr, wi)
                store_parts(yr, yi, to + k * step, re, im)


@native
def store_parts(re: Array[T], im: Array[T], at: i64, r: Vector, i: Vector) -> None:
    """Store real and imaginary parts."""
    store(re, at, r)
    store(im, at, i)


@native
def put(
    out: Array[T], at: i64, re: Vector, im: Vector, scale: T, *, form: int, shuffles: Shuffles
) -> None:
    """Store numbers in the form of the output; exchanging the parts inverts the transform."""
    if form == PAIRS:
        store(out, 2 * at, shuffle(re, im, shuffles[JOINED]))
    elif form == EXCHANGED:
        store(out, 2 * at, shuffle(im * scale, re * scale, shuffles[JOINED]))
    else:
        store(out, at, im * scale)


@native(fast=True)
def last_stage(
    xr: Array[T], xi: Array[T], out: Array[T], step: i64, strip: i64, pitch: i64, scale: T,
    *, lanes: int, radix: int, form: int, shuffles: Shuffles,
) -> None:  # fmt: skip
    """Run the last stage, of radix 2 or 4; rows of ``strip`` positions are ``pitch`` apart."""
    rows = step // strip
    apart = rows * pitch
    for row in range(rows):
        for c in range(0, strip, lanes):
            q, at = row * strip + c, row * pitch + c
            if radix == 2:
                r0, i0 = parts_at(xr, xi, q, form=SEPARATE)
                r1, i1 = parts_at(xr, xi, q + step, form=SEPARATE)
                put(out, at, r0 + r1, i0 + i1, scale)
                put(out, at + apart, r0 - r1, i0 - i1, scale)
            else:
                found = static(four_at(xr, xi, q, step, form=SEPARATE))
                for k in static(range(4)):
                    put(out, at + k * apart, found[2 * k], found[2 * k + 1], scale)


@native
def finish(
    xr: Array[T], xi: Array[T], yr: Array[T], yi: Array[T], out: Array[T], twiddles: Array[T],
    count: i64, first: i64, strip: i64, pitch: i64, scale: T,
    *, lanes: int, form: int, shuffles: Shuffles,
) -> None:  # fmt: skip
    """Run the stages from step ``first`` to the last, over ``count`` positions."""
    step = first
    beside = count // (len(twiddles) // 2)
    while count // step > 4:
        long_stage(xr, xi, yr, yi, twiddles, count, step, step // beside)
        xr, xi, yr, yi = yr, yi, xr, xi
        step *= 4
    across = min(strip, step)
    row = pitch if strip <= step else step
    if count // step == 4:
        last_stage(xr, xi, out, step, across, row, scale, radix=4)  # fmt: skip
    else:
        last_stage(xr, xi, out, step, across, row, scale, radix=2)  # fmt: skip


@native
def transform_lines(
    a: Array[T], out: Array[T], scratch: Array[T], short: Array[T], twiddles: Array[T],
    length: i64, tile: i64, scale: T, start: i64, end: i64,
    *, lanes: int, source: int, target: int, one: Shuffles, four: Shuffles,
) -> None:  # fmt: skip
    """Transform lines of at least four vectors; ``short`` are the twiddles of the short stages."""
    spare = scratch[start // tile * 4 * length :]
    xr, xi = spare[0:length], spare[length : 2 * length]
    yr, yi = spare[2 * length : 3 * length], spare[3 * length : 4 * length]
    short_four = short[length // 4 * 6 :]
    for line in range(start, end):
        taken = a[line * length * (1 if source == REAL else 2) :]
        made = out[line * length * (1 if target == REAL else 2) :]
        short_stage(taken, taken, xr, xi, short, length, form=source, shuffles=one)
        if lanes > 4:
            short_stage(xr, xi, yr, yi, short_four, length, form=SEPARATE, shuffles=four)
            xr, xi, yr, yi = yr, yi, xr, xi
        finish(xr, xi, yr, yi, made, twiddles, length, 16 if lanes > 4 else 4, length, length,
               scale, form=target, shuffles=one)  # fmt: skip


@native
def transform_columns(
    a: Array[T], out: Array[T], scratch: Array[T], twiddles: Array[T], length: i64, width: i64,
    strip: i64, tile: i64, scale: T, start: i64, end: i64,
    *, lanes: int, target: int, shuffles: Shuffles,
) -> None:  # fmt: skip
    """Transform columns of pairs, one strip of columns at a time, over all matrices."""
    count = length * strip
    spare = scratch[start // tile * 4 * count :]
    xr, xi = spare[0:count], spare[count : 2 * count]
    yr, yi = spare[2 * count : 3 * count], spare[3 * count : 4 * count]
    strips = width // strip
    for number in range(start, end):
        first = number // strips * length * width + number % strips * strip
        for y in range(length):
            for c in range(0, strip, lanes):
                at = first + y * width + c
                re, im = parts_at(a, a, at, form=PAIRS)
                store_parts(xr, xi, y * strip + c, re, im)
        made = out[first * (1 if target == REAL else 2) :]
        finish(xr, xi, yr, yi, made, twiddles, count, strip, strip, width, scale,
               form=target)  # fmt: skip
