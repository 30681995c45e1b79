"""Encode RGB bytes to 4:2:0 bytes in 16-bit fixed point; see ``decode.py`` for the units."""

from __future__ import annotations

from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.ops.yuv.decode import BLOCK
from dala.gpu.compute.engines.cpu.ops.yuv.lanes import *

_ROOM: Final = 2 * BLOCK + 2 * LANES


@native
def weighted(
    r: Vector, g: Vector, b: Vector, kr: i16, kg: i16, kb: i16, bias: i16, *, lanes: int
) -> Vector:
    """Return a weighted sum of red, green and blue."""
    a, c = multiply_q15(r, splat(kr, lanes)), multiply_q15(g, splat(kg, lanes))
    return a + c + multiply_q15(b, splat(kb, lanes)) + bias


@native
def encode_luma(
    rgb: Array[u8], luma: Array[u8], sr: Array[i16], sg: Array[i16], sb: Array[i16], black: i16,
    yr: i16, yg: i16, yb: i16, count: i64,
    *, channels: int, second: bool,
) -> None:  # fmt: skip
    """Write the luma of a row, and store its colors in the sums; a ``second`` row is added."""
    for k in range(0, count, LANES):
        n = min(count - k, LANES)
        r, g, b = load_rgb(rgb, k * channels, n)
        wr, wg, wb = i16(r) << 7, i16(g) << 7, i16(b) << 7
        y = u8(weighted(wr, wg, wb, yr, yg, yb, black, lanes=LANES) >> 7)
        if n == LANES:
            store(luma, k, y)
        else:
            store(luma, k, y, n)
        # Sixteenths: chroma is the sum of eight of them.
        for pair in static(((sr, wr), (sg, wg), (sb, wb))):
            sums, wide = pair
            store(sums, k + 1, (wide >> 3) + load(sums, k + 1, LANES) if second else wide >> 3)


@native
def mean_around(s: Array[i16], k: i64, *, centered: bool) -> Vector:
    """Return the mean colors of 32 chroma samples over two rows, times 128."""
    here, after = load(s, 2 * k + 1, LANES), load(s, 2 * k + 2, LANES)
    if centered:
        total = (here + after) << 1
    else:
        total = load(s, 2 * k, LANES) + (here << 1) + after
    return shuffle(total, total, EVENS)


@native
def encode(
    upper: Array[u8], lower: Array[u8], luma: Array[u8], u: Array[u8], v: Array[u8], width: i64,
    black: i16, yr: i16, yg: i16, yb: i16, ur: i16, ug: i16, ub: i16, vr: i16, vg: i16, vb: i16,
    start: i64, end: i64,
    *, step: int, channels: int, centered: bool,
) -> None:  # fmt: skip
    """Encode pairs of rows [start, end)."""
    sr, sg, sb = local(i16, _ROOM), local(i16, _ROOM), local(i16, _ROOM)
    half = width // 2
    for j in range(start, end):
        for at in range(0, half, BLOCK):
            count = min(half - at, BLOCK)
            above = (2 * j * width + 2 * at) * channels
            place = 2 * j * width + 2 * at
            # The last column of the previous block precedes this one.
            left_r, left_g, left_b = sr[2 * BLOCK], sg[2 * BLOCK], sb[2 * BLOCK]
            encode_luma(
                upper[above:], luma[place:], sr, sg, sb, black, yr, yg, yb, 2 * count, second=False
            )  # fmt: skip
            encode_luma(
                lower[above:], luma[place + width :], sr, sg, sb, black, yr, yg, yb, 2 * count,
                second=True,
            )  # fmt: skip
            if at > 0:
                sr[0], sg[0], sb[0] = left_r, left_g, left_b
            else:
                sr[0], sg[0], sb[0] = sr[1], sg[1], sb[1]
            for k in range(0, count, LANES // 2):
                r = mean_around(sr, k)
                g = mean_around(sg, k)
                b = mean_around(sb, k)
                wu = weighted(r, g, b, ur, ug, ub, i16(64), lanes=LANES // 2)
                wv = weighted(r, g, b, vr, vg, vb, i16(64), lanes=LANES // 2)
                cu, cv = byte_around_middle(wu), byte_around_middle(wv)
                n = min(count - k, LANES // 2)
                to = j * half + at + k
                if step == 2:
                    store(u, 2 * to, shuffle(cu, cv, INTERLEAVE_HALVES), 2 * n)
                else:
                    store(u, to, cu, n)
                    store(v, to, cv, n)
