"""Positions of pixels in boxes and pictures, as ``engines/sampling/draws.py`` defines them."""

from __future__ import annotations

from dala.gpu.compute.engines.compositing import NEAREST, PICTURE, TINT
from dala.gpu.compute.engines.cpu.compose.records import DrawRecord
from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.sampling.draws import *

#: Factors of fixed-point coefficients, and half of a position's unit.
_BOX: Final = float(1 << (BOX_BITS + DROPPED))
_PICTURE: Final = float(1 << (TEXEL_BITS + DROPPED))
_HALF: Final = 1 << (DROPPED - 1)
_STEEP: Final = 65536.0
_FAR: Final = float(1 << 31)
_LANES: Final = tuple(range(16))


@native
def fixed(value: f64, factor: f64, limit: f64) -> i64:
    """Return a number in fixed point."""
    return i64(floor(max(min(value, limit), -limit) * factor + 0.5))


@native
def turned(draw: DrawRecord) -> tuple[f64, f64, f64, f64]:
    """Return the cosine and the sine of a draw, and the place of the first pixel in its box."""
    cos, sin = f64(draw.cos), f64(draw.sin)
    dx, dy = 0.5 - f64(draw.cx), 0.5 - f64(draw.cy)
    return cos, sin, dx * cos + dy * sin, dy * cos - dx * sin


@native
def box_steps(draw: DrawRecord) -> tuple[i64, i64, i64, i64, i64, i64]:
    """Return the coefficients of u and of v."""
    cos, sin, u, v = turned(draw)
    one, far = f64(_BOX), f64(_FAR)
    a, b = fixed(cos, one, f64(_STEEP)), fixed(sin, one, f64(_STEEP))
    c = fixed(-sin, one, f64(_STEEP))
    return a, b, fixed(u, one, far) + _HALF, c, a, fixed(v, one, far) + _HALF


@native
def picture_steps(draw: DrawRecord) -> tuple[i64, i64, i64, i64, i64, i64]:
    """Return the coefficients of s and of t."""
    cos, sin, u, v = turned(draw)
    sx, sy, one, steep = f64(draw.sx), f64(draw.sy), f64(_PICTURE), f64(_STEEP)
    s = (u + f64(draw.hw)) * sx + f64(draw.ox)
    t = (v + f64(draw.hh)) * sy + f64(draw.oy)
    return (
        fixed(sx * cos, one, steep), fixed(sx * sin, one, steep), fixed(s, one, f64(_FAR)) + _HALF,
        fixed(-(sy * sin), one, steep), fixed(sy * cos, one, steep),
        fixed(t, one, f64(_FAR)) + _HALF,
    )  # fmt: skip


@native
def places(step: i64, start: i64) -> Vector:
    """Return the positions of sixteen pixels from the sum of the first one's terms."""
    lanes = load(table(i32, _LANES), 0, 16)
    low = lanes * i32(step & 0xFFFF) + i32(start & 0xFFFF)
    return lanes * i32(step >> DROPPED) + i32(start >> DROPPED) + (low >> DROPPED)


@native
def tap_bits(taps: i32) -> i64:
    """Return the number of samples along an axis as a power of two."""
    bits = 0
    while bits < static(MOST_TAPS) and i64(taps) > 1 << bits:
        bits += 1
    return bits


@native
def texel_step(scale: f64) -> i64:
    """Return the distance of two pixels in a picture, with 14 bits of fraction."""
    return i64(fixed(scale, f64(TEXEL), f64(MOST_SCALE)))


@native
def tap_offset(step: i64, bits: i64, number: i64) -> i64:
    """Return the distance of a sample from the middle of its pixel."""
    off = (((2 * number + 1) * abs(step)) >> (bits + 1)) - (abs(step) >> 1)
    return -off if step < 0 else off


@native
def crop_limits(low: f64, high: f64, nearest: bool) -> tuple[i64, i64]:
    """Return the first and last position of a crop: of centers of texels, or texels if nearest."""
    low = max(min(low, _STEEP), -_STEEP)
    high = max(min(high, _STEEP), -_STEEP)
    first, last = i64(floor(low)), i64(ceil(high)) - 1
    if not nearest:
        first = i64(floor(low * TEXEL + 0.5)) + TEXEL // 2
        last = i64(floor(high * TEXEL + 0.5)) - TEXEL // 2
    return first, max(first, last)


@native
def is_nearest(draw: DrawRecord) -> bool:
    """Return whether a draw has the flag NEAREST."""
    return bool(draw.flags & NEAREST != 0)


@native
def is_sampled(draw: DrawRecord) -> bool:
    """Return whether a draw reads a picture."""
    return bool(draw.kind == PICTURE or draw.kind == TINT)


@native
def clamp(x: Vector, low: i64, high: i64) -> Vector:
    """Clamp i32 numbers."""
    return max(min(x, i32(high)), i32(low))
