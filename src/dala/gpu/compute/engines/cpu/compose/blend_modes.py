"""Blend modes, in sRGB and in linear light, for sixteen pixels at a time."""

from __future__ import annotations

from typing import Final

from dala.gpu.compute.engines.compositing import BLENDS
from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    Vector,
    f32,
    gather,
    hinted,
    i32,
    i64,
    load,
    select,
    splat,
    sqrt,
    static,
    store,
    table,
    u32,
)
from dala.gpu.compute.engines.cpu.pixels.over import INVERSE, round_bytes

OVER, ADD, MULTIPLY, SCREEN, OVERLAY, DARKEN, LIGHTEN, DODGE, BURN, HARD, SOFT, DIFFERENCE = range(
    12
)
EXCLUSION: Final = BLENDS.index("exclusion")


def _linear(value: int) -> float:
    x = value / 255
    return x / 12.92 if x <= 0.04045 else float(((x + 0.055) / 1.055) ** 2.4)


#: Linear light of each sRGB byte.
LINEAR_OF_BYTE: Final = tuple(_linear(value) for value in range(256))


#: Polynomials fitted at Chebyshev nodes: linear light from sRGB values above 0.04045 (within 1e-5),
#: and sRGB values from the fourth root of linear light above 0.0031308 (within 5e-5).
TO_LINEAR: Final = (
    0.00091976, 0.03294894, 0.51325446, 0.7100482, -0.42192918, 0.21590616, -0.0511523,
)  # fmt: skip
TO_SRGB: Final = (-0.06484378, 0.19804078, 1.117347, -0.32937187, 0.0788558)


@native(fast=True)
def to_linear(x: Vector) -> Vector:
    """Convert sRGB values to linear light."""
    curve = splat(f32(TO_LINEAR[6]), 16)
    for k in static((5, 4, 3, 2, 1, 0)):
        curve = curve * x + f32(static(TO_LINEAR[k]))
    return select(x <= f32(0.04045), x * f32(1 / 12.92), curve)


@native(fast=True)
def to_srgb(x: Vector) -> Vector:
    """Convert linear light to sRGB values."""
    root = sqrt(sqrt(x))
    curve = splat(f32(TO_SRGB[4]), 16)
    for k in static((3, 2, 1, 0)):
        curve = curve * root + f32(static(TO_SRGB[k]))
    return min(select(x <= f32(0.0031308), x * f32(12.92), curve), splat(f32(1), 16))


@native
def overlay(b: Vector, s: Vector) -> Vector:
    """Multiply where ``b`` is dark, screen where it is light."""
    dark = f32(2) * b * s
    return select(b <= f32(0.5), dark, f32(1) - f32(2) * (f32(1) - b) * (f32(1) - s))


@native(inline=False)
def blend_channel(mode: i32, b: Vector, s: Vector) -> Vector:
    """Blend one channel of the backdrop and the source, both in 0..1."""
    zero, one = splat(f32(0), 16), splat(f32(1), 16)
    found = s
    if mode == MULTIPLY:
        found = b * s
    elif mode == SCREEN:
        found = b + s - b * s
    elif mode == OVERLAY:
        found = overlay(b, s)
    elif mode == DARKEN:
        found = min(b, s)
    elif mode == LIGHTEN:
        found = max(b, s)
    elif mode == DODGE:
        quotient = min(b / max(one - s, splat(f32(1e-9), 16)), one)
        found = select(b <= zero, zero, select(s >= one, one, quotient))
    elif mode == BURN:
        quotient = min((one - b) / max(s, splat(f32(1e-9), 16)), one)
        found = select(b >= one, one, select(s <= zero, zero, one - quotient))
    elif mode == HARD:
        found = overlay(s, b)
    elif mode == SOFT:
        near = ((f32(16) * b - f32(12)) * b + f32(4)) * b
        d = select(b <= f32(0.25), near, sqrt(max(b, zero)))
        twice = f32(2) * s - f32(1)
        found = select(s <= f32(0.5), b + twice * b * (one - b), b + twice * (d - b))
    elif mode == DIFFERENCE:
        found = abs(b - s)
    elif mode == EXCLUSION:
        found = b + s - f32(2) * b * s
    return found


@native
def composite(
    d: Vector,
    s: Vector,
    alpha: Vector,
    under: Vector,
    scale: Vector,
    mode: i32,
    *,
    shift: int,
    linear: bool,
) -> Vector:
    """Return one channel of the result, shifted to its byte; ``s`` is in 0..255."""
    byte = (d >> shift) & 255
    s = s * f32(INVERSE)
    b = f32(i32(byte)) * f32(INVERSE)
    if linear:
        s = to_linear(s)
        b = gather(table(f32, LINEAR_OF_BYTE), i32(byte))
    one = splat(f32(1), 16)
    total = alpha * s + under * b
    if mode == ADD:
        total = min(total, one)
    else:
        blend = (one - under) * s + under * blend_channel(mode, b, s)
        total = alpha * blend + (one - alpha) * under * b
    total = max(min(total * scale, one), splat(f32(0), 16))
    if linear:
        total = to_srgb(total)
    return round_bytes(total * f32(255)) << shift


@native
def blend_planes(
    pixels: Array[u32],
    at: i64,
    red: Array[f32],
    green: Array[f32],
    blue: Array[f32],
    alphas: Array[f32],
    count: i64,
    mode: i32,
    *,
    linear: bool,
) -> None:
    """Blend colors in 0..255 with alphas in 0..1 onto a row of pixels."""
    one = splat(f32(1), 16)
    for k in hinted(range(0, count, 16), scalar=True):
        n = min(count - k, 16)
        d = load(pixels, at + k, 16, n)
        alpha = load(alphas, k, 16)
        under = f32(i32(d >> 24)) * f32(INVERSE)
        result = alpha + under * (one - alpha)
        if mode == ADD:
            result = min(alpha + under, one)
        scale = select(result > f32(0), one / max(result, splat(f32(1e-9), 16)), one - one)
        out = round_bytes(result * f32(255)) << 24
        out |= composite(d, load(red, k, 16), alpha, under, scale, mode, shift=0, linear=linear)
        out |= composite(d, load(green, k, 16), alpha, under, scale, mode, shift=8, linear=linear)
        out |= composite(d, load(blue, k, 16), alpha, under, scale, mode, shift=16, linear=linear)
        store(pixels, at + k, out, n)


@native(inline=False)
def blend_srgb(
    pixels: Array[u32], at: i64, red: Array[f32], green: Array[f32], blue: Array[f32],
    alphas: Array[f32], count: i64, mode: i32,
) -> None:  # fmt: skip
    """Blend in sRGB."""
    blend_planes(pixels, at, red, green, blue, alphas, count, mode, linear=False)


@native(inline=False)
def blend_linear(
    pixels: Array[u32], at: i64, red: Array[f32], green: Array[f32], blue: Array[f32],
    alphas: Array[f32], count: i64, mode: i32,
) -> None:  # fmt: skip
    """Blend in linear light."""
    blend_planes(pixels, at, red, green, blue, alphas, count, mode, linear=True)
