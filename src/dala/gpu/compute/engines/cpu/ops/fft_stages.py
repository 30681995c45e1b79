"""Native stages of Fourier transforms whose length is a power of two.

Radix-4 Stockham stages, whose results are in order without a reordering pass. Between stages, real
and imaginary parts are separate vectors; the first stage splits them and the last joins them.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    T,
    Vector,
    i64,
    load,
    shuffle,
    splat,
    static,
    store,
)

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
HALVES: Final = 3
INTERLEAVED: Final = 4


def shuffles_for(lanes: int, step: int) -> Shuffles:
    """Return the shuffles that split pairs, join them, and interleave four results.

    Results of a radix-4 step are ``step`` apart: [block][which of the four][position].
    """
    return (
        tuple(range(0, 2 * lanes, 2)),
        tuple(range(1, 2 * lanes, 2)),
        tuple(i // 2 + i % 2 * lanes for i in range(2 * lanes)),
        tuple(range(2 * lanes)),
        tuple(i // step % 4 * lanes + i // (4 * step) * step + i % step for i in range(4 * lanes)),
    )


@native
def real_part(
    a: Array[T],
    at: i64,
    *,
    T: type,  # noqa: N803
    lanes: int,
    form: int,
    shuffles: Shuffles,
) -> Vector:
    """Load real parts, or imaginary ones if the pairs are exchanged."""
    if form == REAL or form == SEPARATE:  # noqa: SIM109 - native code has no `in`
        return load(a, at, lanes)
    elif form == PAIRS:
        v = load(a, 2 * at, static(2 * lanes))
        return shuffle(v, v, shuffles[EVENS])
    else:
        v = load(a, 2 * at, static(2 * lanes))
        return shuffle(v, v, shuffles[ODDS])


@native
def imaginary_part(
    a: Array[T],
    b: Array[T],
    at: i64,
    *,
    T: type,  # noqa: N803
    lanes: int,
    form: int,
    shuffles: Shuffles,
) -> Vector:
    """Load imaginary parts, from ``b`` if they are separate."""
    if form == REAL:
        return splat(T(0), lanes)
    elif form == SEPARATE:
        return load(b, at, lanes)
    elif form == PAIRS:
        v = load(a, 2 * at, static(2 * lanes))
        return shuffle(v, v, shuffles[ODDS])
    else:
        v = load(a, 2 * at, static(2 * lanes))
        return shuffle(v, v, shuffles[EVENS])


@native
def put_four(
    out: Array[T],
    at: i64,
    a: Vector,
    b: Vector,
    c: Vector,
    d: Vector,
    *,
    T: type,  # noqa: N803
    shuffles: Shuffles,
) -> None:
    """Interleave and store four vectors of results."""
    low, high = shuffle(a, b, shuffles[HALVES]), shuffle(c, d, shuffles[HALVES])
    store(out, at, shuffle(low, high, shuffles[INTERLEAVED]))


@native(fast=True)
def short_stage(
    a: Array[T],
    b: Array[T],
    re: Array[T],
    im: Array[T],
    twiddles: Array[T],
    length: i64,
    *,
    T: type,  # noqa: N803
    lanes: int,
    form: int,
    shuffles: Shuffles,
) -> None:
    """Run a stage whose results are less than a vector apart, with a twiddle for each result."""
    quarter = length // 4
    for u in range(0, quarter, lanes):
        r0 = real_part(a, u, lanes=lanes, form=form, shuffles=shuffles)
        r1 = real_part(a, u + quarter, lanes=lanes, form=form, shuffles=shuffles)
        r2 = real_part(a, u + 2 * quarter, lanes=lanes, form=form, shuffles=shuffles)
        r3 = real_part(a, u + 3 * quarter, lanes=lanes, form=form, shuffles=shuffles)
        i0 = imaginary_part(a, b, u, lanes=lanes, form=form, shuffles=shuffles)
        i1 = imaginary_part(a, b, u + quarter, lanes=lanes, form=form, shuffles=shuffles)
        i2 = imaginary_part(a, b, u + 2 * quarter, lanes=lanes, form=form, shuffles=shuffles)
        i3 = imaginary_part(a, b, u + 3 * quarter, lanes=lanes, form=form, shuffles=shuffles)
        sr0, si0, dr0, di0 = r0 + r2, i0 + i2, r0 - r2, i0 - i2
        sr1, si1, dr1, di1 = r1 + r3, i1 + i3, r1 - r3, i1 - i3
        ar, ai, br, bi = dr0 + di1, di0 - dr1, sr0 - sr1, si0 - si1
        cr, ci = dr0 - di1, di0 + dr1
        w1r, w1i = load(twiddles, u, lanes), load(twiddles, u + quarter, lanes)
        w2r, w2i = load(twiddles, u + 2 * quarter, lanes), load(twiddles, u + 3 * quarter, lanes)
        w3r, w3i = load(twiddles, u + 4 * quarter, lanes), load(twiddles, u + 5 * quarter, lanes)
        put_four(
            re,
            4 * u,
            sr0 + sr1,
            ar * w1r - ai * w1i,
            br * w2r - bi * w2i,
            cr * w3r - ci * w3i,
            shuffles=shuffles,
        )
        put_four(
            im,
            4 * u,
            si0 + si1,
            ar * w1i + ai * w1r,
            br * w2i + bi * w2r,
            cr * w3i + ci * w3r,
            shuffles=shuffles,
        )


@native(fast=True)
def long_stage(
    xr: Array[T],
    xi: Array[T],
    yr: Array[T],
    yi: Array[T],
    twiddles: Array[T],
    length: i64,
    step: i64,
    turn: i64,
    *,
    T: type,  # noqa: N803
    lanes: int,
) -> None:
    """Run a stage whose results are ``step`` apart, a multiple of a vector; factors are pairs."""
    quarter = length // 4
    for p in range(quarter // step):
        w1r, w1i = splat(twiddles[2 * p * turn], lanes), splat(twiddles[2 * p * turn + 1], lanes)
        w2r, w2i = splat(twiddles[4 * p * turn], lanes), splat(twiddles[4 * p * turn + 1], lanes)
        w3r, w3i = splat(twiddles[6 * p * turn], lanes), splat(twiddles[6 * p * turn + 1], lanes)
        for q in range(0, step, lanes):
            u, to = q + step * p, q + step * 4 * p
            r0, r1 = load(xr, u, lanes), load(xr, u + quarter, lanes)
            r2, r3 = load(xr, u + 2 * quarter, lanes), load(xr, u + 3 * quarter, lanes)
            i0, i1 = load(xi, u, lanes), load(xi, u + quarter, lanes)
            i2, i3 = load(xi, u + 2 * quarter, lanes), load(xi, u + 3 * quarter, lanes)
            sr0, si0, dr0, di0 = r0 + r2, i0 + i2, r0 - r2, i0 - i2
            sr1, si1, dr1, di1 = r1 + r3, i1 + i3, r1 - r3, i1 - i3
            ar, ai, br, bi = dr0 + di1, di0 - dr1, sr0 - sr1, si0 - si1
            cr, ci = dr0 - di1, di0 + dr1
            store(yr, to, sr0 + sr1)
            store(yi, to, si0 + si1)
            store(yr, to + step, ar * w1r - ai * w1i)
            store(yi, to + step, ar * w1i + ai * w1r)
            store(yr, to + 2 * step, br * w2r - bi * w2i)
            store(yi, to + 2 * step, br * w2i + bi * w2r)
            store(yr, to + 3 * step, cr * w3r - ci * w3i)
            store(yi, to + 3 * step, cr * w3i + ci * w3r)


@native
def put(
    out: Array[T],
    at: i64,
    re: Vector,
    im: Vector,
    scale: T,
    *,
    T: type,  # noqa: N803
    form: int,
    shuffles: Shuffles,
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
    xr: Array[T],
    xi: Array[T],
    out: Array[T],
    step: i64,
    strip: i64,
    pitch: i64,
    scale: T,
    *,
    T: type,  # noqa: N803
    lanes: int,
    radix: int,
    form: int,
    shuffles: Shuffles,
) -> None:
    """Run the last stage, of radix 2 or 4; rows of ``strip`` positions are ``pitch`` apart."""
    rows = step // strip
    for row in range(rows):
        for c in range(0, strip, lanes):
            q, at = row * strip + c, row * pitch + c
            r0, r1 = load(xr, q, lanes), load(xr, q + step, lanes)
            i0, i1 = load(xi, q, lanes), load(xi, q + step, lanes)
            if radix == 2:
                put(out, at, r0 + r1, i0 + i1, scale, form=form, shuffles=shuffles)
                put(out, at + rows * pitch, r0 - r1, i0 - i1, scale, form=form, shuffles=shuffles)
            else:
                r2, r3 = load(xr, q + 2 * step, lanes), load(xr, q + 3 * step, lanes)
                i2, i3 = load(xi, q + 2 * step, lanes), load(xi, q + 3 * step, lanes)
                sr0, si0, dr0, di0 = r0 + r2, i0 + i2, r0 - r2, i0 - i2
                sr1, si1, dr1, di1 = r1 + r3, i1 + i3, r1 - r3, i1 - i3
                apart = rows * pitch
                put(out, at, sr0 + sr1, si0 + si1, scale, form=form, shuffles=shuffles)
                put(out, at + apart, dr0 + di1, di0 - dr1, scale, form=form, shuffles=shuffles)
                put(out, at + 2 * apart, sr0 - sr1, si0 - si1, scale, form=form, shuffles=shuffles)
                put(out, at + 3 * apart, dr0 - di1, di0 + dr1, scale, form=form, shuffles=shuffles)


@native
def finish(
    xr: Array[T],
    xi: Array[T],
    yr: Array[T],
    yi: Array[T],
    out: Array[T],
    twiddles: Array[T],
    count: i64,
    first: i64,
    strip: i64,
    pitch: i64,
    scale: T,
    *,
    T: type,  # noqa: N803
    lanes: int,
    form: int,
    shuffles: Shuffles,
) -> None:
    """Run the stages from step ``first`` to the last, over ``count`` positions."""
    step = first
    beside = count // (len(twiddles) // 2)
    while count // step > 4:
        long_stage(xr, xi, yr, yi, twiddles, count, step, step // beside, lanes=lanes)
        xr, xi, yr, yi = yr, yi, xr, xi
        step *= 4
    across = min(strip, step)
    row = pitch if strip <= step else step
    if count // step == 4:
        last_stage(xr, xi, out, step, across, row, scale,
                   lanes=lanes, radix=4, form=form, shuffles=shuffles)  # fmt: skip
    else:
        last_stage(xr, xi, out, step, across, row, scale,
                   lanes=lanes, radix=2, form=form, shuffles=shuffles)  # fmt: skip


@native
def transform_lines(
    a: Array[T],
    out: Array[T],
    scratch: Array[T],
    short: Array[T],
    twiddles: Array[T],
    length: i64,
    tile: i64,
    scale: T,
    start: i64,
    end: i64,
    *,
    T: type,  # noqa: N803
    lanes: int,
    source: int,
    target: int,
    one: Shuffles,
    four: Shuffles,
) -> None:
    """Transform lines of at least four vectors; ``short`` are the twiddles of the short stages."""
    spare = scratch[start // tile * 4 * length :]
    xr, xi = spare[0:length], spare[length : 2 * length]
    yr, yi = spare[2 * length : 3 * length], spare[3 * length : 4 * length]
    short_four = short[length // 4 * 6 :]
    for line in range(start, end):
        taken = a[line * length * (1 if source == REAL else 2) :]
        made = out[line * length * (1 if target == REAL else 2) :]
        short_stage(taken, taken, xr, xi, short, length, lanes=lanes, form=source, shuffles=one)
        if lanes > 4:
            short_stage(
                xr, xi, yr, yi, short_four, length, lanes=lanes, form=SEPARATE, shuffles=four
            )
            finish(yr, yi, xr, xi, made, twiddles, length, 16, length, length, scale,
                   lanes=lanes, form=target, shuffles=one)  # fmt: skip
        else:
            finish(xr, xi, yr, yi, made, twiddles, length, 4, length, length, scale,
                   lanes=lanes, form=target, shuffles=one)  # fmt: skip


@native
def transform_columns(
    a: Array[T],
    out: Array[T],
    scratch: Array[T],
    twiddles: Array[T],
    length: i64,
    width: i64,
    strip: i64,
    tile: i64,
    scale: T,
    start: i64,
    end: i64,
    *,
    T: type,  # noqa: N803
    lanes: int,
    target: int,
    shuffles: Shuffles,
) -> None:
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
                re = real_part(a, at, lanes=lanes, form=PAIRS, shuffles=shuffles)
                im = imaginary_part(a, a, at, lanes=lanes, form=PAIRS, shuffles=shuffles)
                store(xr, y * strip + c, re)
                store(xi, y * strip + c, im)
        made = out[first * (1 if target == REAL else 2) :]
        finish(xr, xi, yr, yi, made, twiddles, count, strip, strip, width, scale,
               lanes=lanes, form=target, shuffles=shuffles)  # fmt: skip
