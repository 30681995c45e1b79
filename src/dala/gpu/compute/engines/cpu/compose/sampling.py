"""Sample pictures at any angle and size, sixteen pixels at a time."""

from __future__ import annotations

from dala.gpu.compute.engines.compositing import NEAREST
from dala.gpu.compute.engines.cpu.compose.coverage import field, offset_y, offsets_x
from dala.gpu.compute.engines.cpu.compose.records import (
    COS,
    FLAGS,
    HH,
    HW,
    OX,
    OY,
    SIN,
    SX,
    SY,
    TAPS_X,
    TAPS_Y,
    U0,
    U1,
    V0,
    V1,
)
from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    Vector,
    ceil,
    f32,
    floor,
    gather,
    hinted,
    i32,
    i64,
    in_range,
    select,
    splat,
    store,
    u32,
)
from dala.gpu.compute.engines.cpu.pixels.gather import byte_of, weigh_corners
from dala.gpu.compute.engines.cpu.pixels.over import round_bytes


@native
def clamp(x: Vector, low: f32, high: f32) -> Vector:
    """Clamp sixteen numbers."""
    return max(min(x, splat(high, 16)), splat(low, 16))


@native
def texel(texels: Array[u32], x: Vector, y: Vector, width: i64) -> Vector:
    """Return sixteen texels at integer positions inside the picture."""
    return gather(texels, in_range(i32, y) * i32(width) + in_range(i32, x))


@native(inline=False, fast=True)
def sample_row(
    draw: Array[i32],
    texels: Array[u32],
    width: i64,
    height: i64,
    x: i64,
    y: i64,
    count: i64,
    out: Array[u32],
) -> None:
    """Write the pixels of a row starting at x, not premultiplied."""
    dy, cos, sin = offset_y(draw, y), field(draw, COS), field(draw, SIN)
    hw, hh = field(draw, HW), field(draw, HH)
    sx, sy, ox, oy = field(draw, SX), field(draw, SY), field(draw, OX), field(draw, OY)
    u0, v0, u1, v1 = field(draw, U0), field(draw, V0), field(draw, U1), field(draw, V1)
    across, down = max(i64(draw[TAPS_X]), 1), max(i64(draw[TAPS_Y]), 1)
    right, bottom = f32(width - 1), f32(height - 1)
    nearest = draw[FLAGS] & NEAREST != 0
    zero = splat(f32(0), 16)
    for k in hinted(range(0, count, 16), scalar=True):
        dx = offsets_x(draw, x + k)
        u, v = dx * cos + dy * sin, dy * cos - dx * sin
        r, g, b, a = zero, zero, zero, zero
        for tap in hinted(range(across * down), scalar=True):
            i, j = tap % across, tap // across
            to_u = (f32(i) + f32(0.5)) / f32(across) - f32(0.5)
            to_v = (f32(j) + f32(0.5)) / f32(down) - f32(0.5)
            s = (u + to_u + hw) * sx + ox
            t = (v + to_v + hh) * sy + oy
            if nearest:
                s = clamp(clamp(floor(s), floor(u0), ceil(u1) - f32(1)), f32(0), right)
                t = clamp(clamp(floor(t), floor(v0), ceil(v1) - f32(1)), f32(0), bottom)
                one = texel(texels, s, t, width)
                weight = byte_of(one, channel=3)
                a += weight
                r += weight * byte_of(one, channel=0)
                g += weight * byte_of(one, channel=1)
                b += weight * byte_of(one, channel=2)
            else:
                low_u, low_v = u0 + f32(0.5), v0 + f32(0.5)
                s = clamp(s, low_u, max(low_u, u1 - f32(0.5))) - f32(0.5)
                t = clamp(t, low_v, max(low_v, v1 - f32(0.5))) - f32(0.5)
                fx, fy = s - floor(s), t - floor(t)
                left, top = floor(s), floor(t)
                x0, x1 = clamp(left, f32(0), right), clamp(left + f32(1), f32(0), right)
                y0, y1 = clamp(top, f32(0), bottom), clamp(top + f32(1), f32(0), bottom)
                nw, ne = texel(texels, x0, y0, width), texel(texels, x1, y0, width)
                sw, se = texel(texels, x0, y1, width), texel(texels, x1, y1, width)
                # Corners are weighted by alpha, which makes the sums premultiplied.
                wa = (f32(1) - fx) * (f32(1) - fy) * byte_of(nw, channel=3)
                wb = fx * (f32(1) - fy) * byte_of(ne, channel=3)
                wc = (f32(1) - fx) * fy * byte_of(sw, channel=3)
                wd = fx * fy * byte_of(se, channel=3)
                a += (wa + wb) + (wc + wd)
                r += weigh_corners(nw, ne, sw, se, wa, wb, wc, wd, channel=0)
                g += weigh_corners(nw, ne, sw, se, wa, wb, wc, wd, channel=1)
                b += weigh_corners(nw, ne, sw, se, wa, wb, wc, wd, channel=2)
        scale = select(a > zero, f32(1) / max(a, splat(f32(1e-9), 16)), zero)
        most = splat(f32(255), 16)
        word = round_bytes(min(r * scale, most)) | (round_bytes(min(g * scale, most)) << 8)
        word |= round_bytes(min(b * scale, most)) << 16
        alpha = min(a * (f32(1) / f32(across * down)), most)
        store(out, k, word | (round_bytes(alpha) << 24))
