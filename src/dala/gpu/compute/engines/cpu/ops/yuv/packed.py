"""Convert 4:4:4 bytes to and from RGB bytes, as ``kernels/yuv.py`` defines it."""

from __future__ import annotations

from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.ops.yuv.lanes import LANES, load_rgb, store_rgb


@native
def around_middle(x: Vector) -> Vector:
    """Convert numbers relative to 128 to bytes."""
    return bits(u8, saturate(i8, x)) ^ 128


@native
def decode_pixels(
    yuv: Array[u8], out: Array[u8], gain: i32, bias: i32, rv: i32, gu: i32, gv: i32, bu: i32,
    start: i64, end: i64, *, stored: int,
) -> None:  # fmt: skip
    """Decode pixels, 64 at a time."""
    for k in range(start, end, LANES):
        n = min(end - k, LANES)
        y, u, v = load_rgb(yuv, k * 3, n, channels=3)
        luma, cu, cv = (i32(y) - 128) * gain + bias, i32(u) - 128, i32(v) - 128
        r = around_middle((luma + cv * rv) >> 15)
        g = around_middle((luma + cu * gu + cv * gv) >> 15)
        b = around_middle((luma + cu * bu) >> 15)
        store_rgb(out, k * stored, r, g, b, n)


@native
def encode_pixels(
    rgb: Array[u8], out: Array[u8], black: i32, yr: i32, yg: i32, yb: i32, ur: i32, ug: i32,
    ub: i32, vr: i32, vg: i32, vb: i32, start: i64, end: i64, *, channels: int,
) -> None:  # fmt: skip
    """Encode pixels, 64 at a time."""
    for k in range(start, end, LANES):
        n = min(end - k, LANES)
        p, q, s = load_rgb(rgb, k * channels, n)
        r, g, b = i32(p), i32(q), i32(s)
        y = around_middle(((r * yr + g * yg + b * yb + black) >> 16) - 128)
        u = around_middle((r * ur + g * ug + b * ub + 32768) >> 16)
        v = around_middle((r * vr + g * vg + b * vb + 32768) >> 16)
        store_rgb(out, k * 3, y, u, v, n, stored=3)
