"""Decode 4:2:0 bytes to RGB, as bytes in 16-bit fixed point or as f32.

A row is decoded in blocks that stay in the L1 cache: chroma is first interpolated between two
rows, then between columns. In fixed point, as ``kernels/yuv.py`` defines it, a step of 255 is 128
units. RGB values are held around the middle of the range, so that they fit 16 bits with chroma
added; sums saturate at its ends, which are beyond 0 and 255.
"""

from __future__ import annotations

from collections.abc import Sequence

from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.ops.yuv.lanes import *

#: Chroma samples of a block, and the elements of its buffer.
BLOCK: Final = 512
_ROOM: Final = BLOCK + LANES


@native
def interpolate_rows(
    plane: Array[u8], near: i64, far: i64, into: Array[T], before: i64, count: i64, after: i64,
    middle: Vector, *, T: type, step: int, bilinear: bool,  # noqa: N803
) -> None:  # fmt: skip
    """Write chroma samples minus the middle, three quarters of each from the nearer row.

    Samples are ``step`` bytes apart. In fixed point they are multiplied by 64. One on either side
    is written too, that at the edge where there is none ``before`` or ``after``.
    """
    near, far, out = (near - before) * step, (far - before) * step, into[1 - before :]
    for k in independent(range(before + count + after)):
        if i16 == T and bilinear:
            a, b = i16(plane[near + k * step]), i16(plane[far + k * step])
            out[k] = (a * 3 + b - (middle << 2)) << 4
        elif i16 == T:
            out[k] = (i16(plane[near + k * step]) - middle) << 6
        elif bilinear:
            out[k] = f32(plane[near + k * step]) * 0.75 + f32(plane[far + k * step]) * 0.25 - middle
        else:
            out[k] = f32(plane[near + k * step]) - middle
    if before == 0:
        into[0] = into[1]
    if after == 0:
        into[count + 1] = into[count]


# bytes ----------------------------------------------------------------------------------------
@native
def interpolate_columns(c: Array[i16], k: i64, *, bilinear: bool, centered: bool) -> Vector:
    """Return the chroma of 64 pixels from sample k on, times 256; c[0] precedes the block."""
    near = load(c, k + 1, LANES // 2)
    even, odd = near << 2, near << 2
    if bilinear and centered:
        even, odd = near * 3 + load(c, k, LANES // 2), near * 3 + load(c, k + 2, LANES // 2)
    elif bilinear:
        odd = (near + load(c, k + 2, LANES // 2)) << 1
    return shuffle(even, odd, INTERLEAVE_HALVES)


@native
def to_rgb(
    luma: Vector, u: Vector, v: Vector, gain: i16, bias: i16, rv: i16, gu: i16, gv: i16, bu: i16
) -> Vector:
    """Return red, green and blue of 64 pixels."""
    wide = i16(luma) << 7
    y = wide + multiply_q15(wide, splat(gain, LANES)) + bias
    r = add_saturate(y, multiply_q15(v, splat(rv, LANES)))
    g = add_saturate(y, multiply_q15(u, splat(gu, LANES)) + multiply_q15(v, splat(gv, LANES)))
    half = multiply_q15(u, splat(bu, LANES))  # the whole coefficient may exceed 16 bits
    b = add_saturate(add_saturate(y, half), half)
    return byte_around_middle(r), byte_around_middle(g), byte_around_middle(b)


@native
def write_bytes(
    luma: Array[u8], cu: Array[i16], cv: Array[i16], out: Array[u8], count: i64, gain: i16,
    bias: i16, rv: i16, gu: i16, gv: i16, bu: i16, *, stored: int, bilinear: bool, centered: bool,
) -> None:  # fmt: skip
    """Write the pixels of ``count`` chroma samples as bytes, 64 pixels at a time."""
    for k in range(0, count, LANES // 2):
        n = min(2 * (count - k), LANES)
        u = interpolate_columns(cu, k)
        v = interpolate_columns(cv, k)
        own = load(luma, 2 * k, LANES) if n == LANES else load(luma, 2 * k, LANES, n)
        r, g, b = to_rgb(own, u, v, gain, bias, rv, gu, gv, bu)
        store_rgb(out, 2 * k * stored, r, g, b, n)


# floats ---------------------------------------------------------------------------------------
@native(fast=True)
def pair(c: Array[f32], k: i64, *, bilinear: bool, centered: bool) -> tuple[f32, f32]:
    """Return the chroma of the two pixels of sample k; c[0] precedes the block."""
    near = c[k + 1]
    if bilinear and centered:
        return near * 0.75 + c[k] * 0.25, near * 0.75 + c[k + 2] * 0.25
    elif bilinear:
        return near, (near + c[k + 2]) * 0.5
    else:
        return near, near


@native(fast=True)
def write_floats(
    luma: Array[u8], cu: Array[f32], cv: Array[f32], out: Array[f32], count: i64, gain: f32,
    bias: f32, rv: f32, gu: f32, gv: f32, bu: f32, *, stored: int, bilinear: bool, centered: bool,
) -> None:  # fmt: skip
    """Write the pixels of ``count`` chroma samples as f32."""
    for k in independent(range(count)):
        y0, y1 = f32(luma[2 * k]) * gain + bias, f32(luma[2 * k + 1]) * gain + bias
        u0, u1 = pair(cu, k)
        v0, v1 = pair(cv, k)
        at = 2 * k * stored
        out[at], out[at + 1], out[at + 2] = y0 + v0 * rv, y0 + u0 * gu + v0 * gv, y0 + u0 * bu
        at += stored
        out[at], out[at + 1], out[at + 2] = y1 + v1 * rv, y1 + u1 * gu + v1 * gv, y1 + u1 * bu
        if stored == 4:
            out[at - 1], out[at + 3] = f32(1), f32(1)


# rows -----------------------------------------------------------------------------------------
@native
def decode(
    luma: Array[u8], u: Array[u8], v: Array[u8], out: Array[S], width: i64, height: i64, gain: T,
    bias: T, middle: T, rv: T, gu: T, gv: T, bu: T, start: i64, end: i64,
    *, T: type, step: int, stored: int, bilinear: bool, centered: bool,  # noqa: N803
) -> None:  # fmt: skip
    """Decode rows [start, end).

    Arithmetic is in ``T``: i16 for bytes, f32 for floats.
    """
    cu, cv = local(T, _ROOM), local(T, _ROOM)
    half = width // 2
    for y in range(start, end):
        j = y // 2
        other = max(min(j + y % 2 * 2 - 1, height // 2 - 1), 0)
        for at in range(0, half, BLOCK):
            count = min(half - at, BLOCK)
            before, after = min(at, 1), min(half - at - count, 1)
            near, far = j * half + at, other * half + at
            interpolate_rows(u, near, far, cu, before, count, after, middle)
            interpolate_rows(v, near, far, cv, before, count, after, middle)
            row, target = luma[y * width + 2 * at :], out[(y * width + 2 * at) * stored :]
            if i16 == T:
                write_bytes(row, cu, cv, target, count, gain, bias, rv, gu, gv, bu)
            else:
                write_floats(row, cu, cv, target, count, gain, bias, rv, gu, gv, bu)
            at += count


# coefficients ---------------------------------------------------------------------------------
def float_coefficients(numbers: Sequence[float]) -> tuple[float, ...]:
    """Return gain, bias, middle, and the coefficients of Cb and Cr, for floats."""
    black, gain, middle, *coefficients = numbers
    return (gain / 255.0, -black * gain, middle * 255.0, *(s / 255.0 for s in coefficients))
