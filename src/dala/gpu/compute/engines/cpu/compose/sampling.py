"""Sample pictures at any angle and size, sixteen pixels at a time, in integers."""

from __future__ import annotations

from typing import NamedTuple

from dala.gpu.compute.engines.compositing import OPAQUE
from dala.gpu.compute.engines.cpu.compose.records import DrawRecord
from dala.gpu.compute.engines.cpu.compose.steps import *
from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.pixels.byte_sums import divide_255, straight
from dala.gpu.compute.engines.sampling.draws import TEXEL, TEXEL_BITS


@native
def byte_of(texel: Vector, *, channel: int) -> Vector:
    """Return one channel of packed pixels."""
    return i32((texel >> static(8 * channel)) & 255)


@native
def rounded(total: Vector, opaque: bool) -> Vector:
    """Return sums down with 7 bits of fraction."""
    found = (total + 64) >> 7
    if not opaque:
        found = divide_255((total + 16320) >> 7)
    return found


class PictureAxis(NamedTuple):
    """An axis of a picture: its step, its samples as a power of two, its crop and its size."""

    step: i64
    bits: i64
    low: i64
    high: i64
    size: i64


@native
def tap(axis: PictureAxis, place: Vector, number: i64, nearest: bool) -> Vector:
    """Return the texel and the weight of the next one, for a sample along one axis."""
    at = place + i32(tap_offset(axis.step, axis.bits, number))
    found = clamp(at, axis.low, axis.high) + i32((1 << axis.bits >> 1) - TEXEL // 2)
    whole, part = found >> TEXEL_BITS, (found & (TEXEL - 1)) >> i32(axis.bits)
    if nearest:
        whole, part = clamp(at >> TEXEL_BITS, axis.low, axis.high), part * 0
    return whole, part


@native
def samples(
    texels: Array[u32], s: Vector, t: Vector, across: PictureAxis, down: PictureAxis,
    nearest: bool, opaque: bool,
) -> Vector:  # fmt: skip
    """Return sixteen pixels, the means of the samples around their places."""
    zero = splat(i32(0), 16)
    r, g, b, a = zero, zero, zero, zero
    for i in serial(1 << across.bits):
        number, part_x = tap(across, s, i, nearest)
        for east in static((False, True)):
            column = clamp(number + i32(east), 0, across.size - 1)
            red, green, blue, alpha = zero, zero, zero, zero
            for j in serial(1 << down.bits):
                row, part_y = tap(down, t, j, nearest)
                for below in static((False, True)):
                    line = clamp(row + i32(below), 0, down.size - 1) * i32(across.size)
                    texel = gather(texels, line + column)
                    weight = part_y if below else i32(TEXEL >> down.bits) - part_y
                    if not opaque:
                        weight = weight * byte_of(texel, channel=3)
                        alpha += weight
                    red += weight * byte_of(texel, channel=0)
                    green += weight * byte_of(texel, channel=1)
                    blue += weight * byte_of(texel, channel=2)
            weight_x = part_x if east else i32(TEXEL >> across.bits) - part_x
            r += rounded(red, opaque) * weight_x
            g += rounded(green, opaque) * weight_x
            b += rounded(blue, opaque) * weight_x
            a += ((alpha + 64) >> 7) * weight_x
    word = splat(u32(0xFF000000), 16)
    if opaque:
        word |= u32(((r + (1 << 20)) >> 21) | (((g + (1 << 20)) >> 21) << 8))
        word |= u32(((b + (1 << 20)) >> 21) << 16)
    else:
        word = straight(r >> 13, g >> 13, b >> 13, a >> 13)
    return word


@native(inline=False)
def sample_row(
    draw: DrawRecord, texels: Array[u32], width: i64, height: i64, x: i64, y: i64, count: i64,
    out: Array[u32],
) -> None:  # fmt: skip
    """Write the pixels of a row starting at x, not premultiplied."""
    sa, sb, sc, ta, tb, tc = picture_steps(draw)
    bits_x, bits_y = tap_bits(draw.taps_x), tap_bits(draw.taps_y)
    nearest, opaque = is_nearest(draw), draw.flags & OPAQUE != 0
    left, right = crop_limits(f64(draw.u0), f64(draw.u1), nearest)
    top, bottom = crop_limits(f64(draw.v0), f64(draw.v1), nearest)
    across = PictureAxis(texel_step(f64(draw.sx)), bits_x, left, right, width)
    down = PictureAxis(texel_step(f64(draw.sy)), bits_y, top, bottom, height)
    for k in serial(0, count, 16):
        s = places(sa, sa * (x + k) + sb * y + sc)
        t = places(ta, ta * (x + k) + tb * y + tc)
        if bits_x > 0 or bits_y > 0:
            store(out, k, samples(texels, s, t, across, down, nearest, opaque))
        elif nearest:
            column = clamp(clamp(s >> TEXEL_BITS, left, right), 0, width - 1)
            row = clamp(clamp(t >> TEXEL_BITS, top, bottom), 0, height - 1)
            store(out, k, gather(texels, row * i32(width) + column))
        else:  # compiled for one sample
            one = PictureAxis(0, 0, left, right, width)
            single = PictureAxis(0, 0, top, bottom, height)
            store(out, k, samples(texels, s, t, one, single, False, opaque))
