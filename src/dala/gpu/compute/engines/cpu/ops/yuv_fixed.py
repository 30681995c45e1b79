"""4:2:0 bytes to and from RGB bytes in 16-bit fixed point: a step of 255 is 128 units.

Sums of bytes, which chroma is made of, are exact; every product is rounded to a unit, so a result
is at most 0.52 steps from the exact one. Numbers of RGB lie around the middle of the range, so
that they and what chroma adds fit 16 bits; sums that leave it stay at its end, beyond 0 and 255.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    add_within,
    bits,
    i8,
    i16,
    i64,
    independent,
    load,
    local,
    portion,
    saturate,
    shuffle,
    splat,
    store,
    u8,
)

#: Pixels of a vector, and chroma samples of a block.
LANES: Final = 64
BLOCK: Final = 512
_ROOM: Final = BLOCK + LANES

_PIXELS: Final = 2 * BLOCK + 2 * LANES

_EVENS: Final = tuple(range(0, LANES, 2))
#: Lanes of two vectors by turns: all of both where they have half the lanes, else the lower and the
#: upper halves; then pairs of lanes.
_BY_TURNS: Final = tuple(k // 2 + LANES // 2 * (k % 2) for k in range(LANES))
_TURNS_1: Final = tuple(k // 2 + LANES * (k % 2) for k in range(LANES))
_TURNS_2: Final = tuple(LANES // 2 + lane for lane in _TURNS_1)
_WORDS_1: Final = tuple(k // 4 * 2 + k % 2 + LANES * (k // 2 % 2) for k in range(LANES))
_WORDS_2: Final = tuple(LANES // 2 + lane for lane in _WORDS_1)


def _three(first: int, *, third: bool) -> tuple[int, ...]:
    """Bytes of 64 pixels from one on: red and green from two vectors, blue from the second."""
    lanes = []
    for k in range(first, first + LANES):
        pixel, channel = divmod(k, 3)
        if third:
            lanes.append(LANES + pixel if channel == 2 else k - first)
        else:
            lanes.append(pixel + LANES * min(channel, 1))
    return tuple(lanes)


_RG: Final = tuple(_three(n * LANES, third=False) for n in range(3))
_RGB: Final = tuple(_three(n * LANES, third=True) for n in range(3))
_RG_1, _RG_2, _RG_3 = _RG
_RGB_1, _RGB_2, _RGB_3 = _RGB


def _apart(channel: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """A channel out of three vectors: out of the first two, then with the third."""
    where = [3 * k + channel for k in range(LANES)]
    first = tuple(w if w < 2 * LANES else 0 for w in where)
    second = tuple(k if w < 2 * LANES else w - LANES for k, w in enumerate(where))
    return first, second


(_R_1, _R_2), (_G_1, _G_2), (_B_1, _B_2) = (_apart(c) for c in range(3))
#: A channel out of four vectors of words: out of two and two, then of both.
_WORD: Final = tuple(tuple(4 * k + c for k in range(LANES // 2)) for c in range(3))
_WORD_R, _WORD_G, _WORD_B = _WORD
_BOTH: Final = tuple(range(LANES))


# to RGB -------------------------------------------------------------------------------------------
@native
def chroma(
    plane: Array[u8], near: i64, far: i64, out: Array[i16], count: i64, *, step: int, bilinear: bool
) -> None:
    """Samples less their middle, three quarters of each from the nearer row, times 64."""
    if bilinear:
        for k in independent(range(count)):
            a, b = i16(plane[near + k * step]), i16(plane[far + k * step])
            out[k] = (a * 3 + b - 512) << 4
    else:
        for k in independent(range(count)):
            out[k] = (i16(plane[near + k * step]) - 128) << 6


@native
def spread(c: Array[i16], k: i64, *, bilinear: bool, centered: bool) -> Any:
    """What 64 pixels get of the samples from k on (one stands before the block's), times 256."""
    near = load(c, k + 1, LANES // 2)
    even, odd = near << 2, near << 2
    if bilinear and centered:
        even, odd = near * 3 + load(c, k, LANES // 2), near * 3 + load(c, k + 2, LANES // 2)
    elif bilinear:
        odd = (near + load(c, k + 2, LANES // 2)) << 1
    return shuffle(even, odd, _BY_TURNS)


@native
def shade(
    luma: Any, u: Any, v: Any, gain: i16, bias: i16, rv: i16, gu: i16, gv: i16, bu: i16
) -> Any:
    """Red, green and blue of 64 pixels."""
    wide = i16(luma) << 7
    y = wide + portion(wide, splat(gain, LANES)) + bias
    r = add_within(y, portion(v, splat(rv, LANES)))
    g = add_within(y, portion(u, splat(gu, LANES)) + portion(v, splat(gv, LANES)))
    half = portion(u, splat(bu, LANES))  # all of blue's share may be more than 16 bits hold
    b = add_within(add_within(y, half), half)
    return byte(r), byte(g), byte(b)


@native
def byte(x: Any) -> Any:
    """A number around the middle as a byte."""
    return bits(u8, saturate(i8, x >> 7)) ^ 128


@native
def line(
    luma: Array[u8],
    u: Array[u8],
    v: Array[u8],
    out: Array[u8],
    y: i64,
    width: i64,
    height: i64,
    gain: i16,
    bias: i16,
    rv: i16,
    gu: i16,
    gv: i16,
    bu: i16,
    *,
    step: int,
    stored: int,
    bilinear: bool,
    centered: bool,
) -> None:
    """A row of 4:2:0 as RGB; samples of chroma are ``step`` bytes apart."""
    cu, cv = local(i16, _ROOM), local(i16, _ROOM)
    half, rows = width // 2, height // 2
    j = y // 2
    other = max(min(j + y % 2 * 2 - 1, rows - 1), 0)
    at = 0
    while at < half:
        count = min(half - at, BLOCK)
        # With a sample on either side, where there is one.
        before, after = min(at, 1), min(half - at - count, 1)
        near, far = (j * half + at - before) * step, (other * half + at - before) * step
        first, total = 1 - before, count + before + after
        chroma(u, near, far, cu[first:], total, step=step, bilinear=bilinear)
        chroma(v, near, far, cv[first:], total, step=step, bilinear=bilinear)
        if before == 0:
            cu[0], cv[0] = cu[1], cv[1]
        if after == 0:
            cu[count + 1], cv[count + 1] = cu[count], cv[count]
        k = 0
        while k < count:
            n = min(2 * (count - k), LANES)
            p = 2 * (at + k)
            x = spread(cu, k, bilinear=bilinear, centered=centered)
            z = spread(cv, k, bilinear=bilinear, centered=centered)
            if n == LANES:
                r, g, b = shade(load(luma, y * width + p, LANES), x, z, gain, bias, rv, gu, gv, bu)
                put(out, p * stored, r, g, b, LANES, stored=stored, whole=True)
            else:
                part = load(luma, y * width + p, LANES, n)
                r, g, b = shade(part, x, z, gain, bias, rv, gu, gv, bu)
                put(out, p * stored, r, g, b, n, stored=stored, whole=False)
            k += LANES // 2
        at += count


@native
def put(
    out: Array[u8], at: i64, r: Any, g: Any, b: Any, count: i64, *, stored: int, whole: bool
) -> None:
    """Pixels of three or four bytes, all 64 or the first of them."""
    if stored == 3:
        one = shuffle(shuffle(r, g, _RG_1), b, _RGB_1)
        two = shuffle(shuffle(r, g, _RG_2), b, _RGB_2)
        three = shuffle(shuffle(r, g, _RG_3), b, _RGB_3)
        if whole:
            store(out, at, one)
            store(out, at + LANES, two)
            store(out, at + 2 * LANES, three)
        else:
            store(out, at, one, 3 * count)
            store(out, at + min(3 * count, LANES), two, 3 * count - LANES)
            store(out, at + min(3 * count, 2 * LANES), three, 3 * count - 2 * LANES)
    else:
        full = splat(u8(255), LANES)
        rg, ba = shuffle(r, g, _TURNS_1), shuffle(b, full, _TURNS_1)
        more_rg, more_ba = shuffle(r, g, _TURNS_2), shuffle(b, full, _TURNS_2)
        one, two = shuffle(rg, ba, _WORDS_1), shuffle(rg, ba, _WORDS_2)
        three, four = shuffle(more_rg, more_ba, _WORDS_1), shuffle(more_rg, more_ba, _WORDS_2)
        if whole:
            store(out, at, one)
            store(out, at + LANES, two)
            store(out, at + 2 * LANES, three)
            store(out, at + 3 * LANES, four)
        else:
            store(out, at, one, 4 * count)
            store(out, at + min(4 * count, LANES), two, 4 * count - LANES)
            store(out, at + min(4 * count, 2 * LANES), three, 4 * count - 2 * LANES)
            store(out, at + min(4 * count, 3 * LANES), four, 4 * count - 3 * LANES)


@native
def decode(
    luma: Array[u8],
    u: Array[u8],
    v: Array[u8],
    out: Array[u8],
    width: i64,
    height: i64,
    gain: i16,
    bias: i16,
    rv: i16,
    gu: i16,
    gv: i16,
    bu: i16,
    start: i64,
    end: i64,
    *,
    step: int,
    stored: int,
    bilinear: bool,
    centered: bool,
    rows: bool,
) -> None:
    """Rows of 4:2:0 as RGB; with ``rows`` the output begins at the first that is asked for."""
    first = start if rows else 0
    for y in range(start, end):
        line(
            luma, u, v, out[(y - first) * width * stored :], y, width, height,
            gain, bias, rv, gu, gv, bu,
            step=step, stored=stored, bilinear=bilinear, centered=centered,
        )  # fmt: skip


# from RGB -----------------------------------------------------------------------------------------
@native
def take(rgb: Array[u8], at: i64, count: i64, *, channels: int, whole: bool) -> Any:
    """Red, green and blue of 64 pixels, or of the first of them, times 128."""
    if channels == 3:
        if whole:
            a, b = load(rgb, at, LANES), load(rgb, at + LANES, LANES)
            c = load(rgb, at + 2 * LANES, LANES)
        else:
            n = 3 * count
            a, b = load(rgb, at, LANES, n), load(rgb, at + min(n, LANES), LANES, n - LANES)
            c = load(rgb, at + min(n, 2 * LANES), LANES, n - 2 * LANES)
        r = shuffle(shuffle(a, b, _R_1), c, _R_2)
        g = shuffle(shuffle(a, b, _G_1), c, _G_2)
        blue = shuffle(shuffle(a, b, _B_1), c, _B_2)
        return i16(r) << 7, i16(g) << 7, i16(blue) << 7
    else:
        if whole:
            a, b = load(rgb, at, LANES), load(rgb, at + LANES, LANES)
            c, d = load(rgb, at + 2 * LANES, LANES), load(rgb, at + 3 * LANES, LANES)
        else:
            n = 4 * count
            a, b = load(rgb, at, LANES, n), load(rgb, at + min(n, LANES), LANES, n - LANES)
            c = load(rgb, at + min(n, 2 * LANES), LANES, n - 2 * LANES)
            d = load(rgb, at + min(n, 3 * LANES), LANES, n - 3 * LANES)
        r = shuffle(shuffle(a, b, _WORD_R), shuffle(c, d, _WORD_R), _BOTH)
        g = shuffle(shuffle(a, b, _WORD_G), shuffle(c, d, _WORD_G), _BOTH)
        blue = shuffle(shuffle(a, b, _WORD_B), shuffle(c, d, _WORD_B), _BOTH)
        return i16(r) << 7, i16(g) << 7, i16(blue) << 7


@native
def mixed(r: Any, g: Any, b: Any, kr: i16, kg: i16, kb: i16, bias: i16, *, lanes: int) -> Any:
    """A share of each."""
    a, c = portion(r, splat(kr, lanes)), portion(g, splat(kg, lanes))
    return a + c + portion(b, splat(kb, lanes)) + bias


@native
def row(
    rgb: Array[u8],
    luma: Array[u8],
    sr: Array[i16],
    sg: Array[i16],
    sb: Array[i16],
    black: i16,
    yr: i16,
    yg: i16,
    yb: i16,
    count: i64,
    *,
    channels: int,
    second: bool,
) -> None:
    """Luma of a row, and its colours: kept, or (the second of two) added to those of the first."""
    k = 0
    while k < count:
        n = min(count - k, LANES)
        if n == LANES:
            r, g, b = take(rgb, k * channels, LANES, channels=channels, whole=True)
            store(luma, k, u8(mixed(r, g, b, yr, yg, yb, black, lanes=LANES) >> 7))
        else:
            r, g, b = take(rgb, k * channels, n, channels=channels, whole=False)
            store(luma, k, u8(mixed(r, g, b, yr, yg, yb, black, lanes=LANES) >> 7), n)
        # Sixteenths of the whole: eight of them are added up.
        r, g, b = r >> 3, g >> 3, b >> 3
        if second:
            r += load(sr, k + 1, LANES)
            g += load(sg, k + 1, LANES)
            b += load(sb, k + 1, LANES)
        store(sr, k + 1, r)
        store(sg, k + 1, g)
        store(sb, k + 1, b)
        k += LANES


@native
def around(s: Array[i16], k: i64, *, centered: bool) -> Any:
    """Means of two rows over the pixels of 32 samples, times 128."""
    here, after = load(s, 2 * k + 1, LANES), load(s, 2 * k + 2, LANES)
    if centered:
        total = (here + after) << 1
    else:
        total = load(s, 2 * k, LANES) + (here << 1) + after
    return shuffle(total, total, _EVENS)


@native
def encode(
    upper: Array[u8],
    lower: Array[u8],
    luma: Array[u8],
    u: Array[u8],
    v: Array[u8],
    width: i64,
    black: i16,
    yr: i16,
    yg: i16,
    yb: i16,
    ur: i16,
    ug: i16,
    ub: i16,
    vr: i16,
    vg: i16,
    vb: i16,
    start: i64,
    end: i64,
    *,
    step: int,
    channels: int,
    centered: bool,
    rows: bool,
) -> None:
    """Pairs of rows of RGB as 4:2:0; with ``rows`` the first pair is that which is asked for."""
    sr, sg, sb = local(i16, _PIXELS), local(i16, _PIXELS), local(i16, _PIXELS)
    half = width // 2
    first = start if rows else 0
    for j in range(start, end):
        at = 0
        while at < half:
            count = min(half - at, BLOCK)
            above = (2 * (j - first) * width + 2 * at) * channels
            place = 2 * j * width + 2 * at
            # The last column of the block before this one stands before it.
            left_r, left_g, left_b = sr[2 * BLOCK], sg[2 * BLOCK], sb[2 * BLOCK]
            row(
                upper[above:], luma[place:], sr, sg, sb, black, yr, yg, yb, 2 * count,
                channels=channels, second=False,
            )  # fmt: skip
            row(
                lower[above:], luma[place + width :], sr, sg, sb, black, yr, yg, yb, 2 * count,
                channels=channels, second=True,
            )  # fmt: skip
            if at > 0:
                sr[0], sg[0], sb[0] = left_r, left_g, left_b
            else:
                sr[0], sg[0], sb[0] = sr[1], sg[1], sb[1]
            k = 0
            while k < count:
                r = around(sr, k, centered=centered)
                g = around(sg, k, centered=centered)
                b = around(sb, k, centered=centered)
                cu = byte(mixed(r, g, b, ur, ug, ub, i16(64), lanes=LANES // 2))
                cv = byte(mixed(r, g, b, vr, vg, vb, i16(64), lanes=LANES // 2))
                n = min(count - k, LANES // 2)
                to = j * half + at + k
                if step == 2:
                    store(u, 2 * to, shuffle(cu, cv, _BY_TURNS), 2 * n)
                else:
                    store(u, to, cu, n)
                    store(v, to, cv, n)
                k += LANES // 2
            at += count


# numbers ------------------------------------------------------------------------------------------
def _fraction(x: float) -> int:
    """A share of 1 as 16 bits have it."""
    return min(max(round(x * 32768.0), -32768), 32767)


def decoding(numbers: Sequence[float]) -> tuple[int, ...]:
    """Gain beyond 1, bias and shares, of black, gain, middle and the shares of Cb and Cr."""
    black, gain, _, rv, gu, gv, bu = numbers
    bias = round((0.5 - black * gain * 255.0 - 128.0) * 128.0)
    return (_fraction(gain - 1.0), bias, *(_fraction(k / 2.0) for k in (rv, gu, gv, bu / 2.0)))


def encoding(numbers: Sequence[float]) -> tuple[int, ...]:
    """Black and shares."""
    black, _, *shares = numbers
    return (round((black * 255.0 + 0.5) * 128.0), *(_fraction(k) for k in shares))
