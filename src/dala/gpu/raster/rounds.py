"""Circles and round rectangles: four quarter circles around the corners of a core rectangle.

The outline is the midpoint circle with ``d = 1 - r`` in closed form: at the column ``x`` from the
center, while ``x <= y``, its row is the largest ``y`` with ``y * (y - 1) < r * r - x * x``. So the
cost of a circle depends on its visible part only. A filled circle is as wide on each row as its
outline.
"""

from __future__ import annotations

from math import isqrt

import numpy as np
import numpy.typing as npt

from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.pixels.over import OPAQUE, VISIBLE, over_pixel
from dala.gpu.raster.blend import SPANS, Spans, add_span, over_pixels, over_span, over_spans
from dala.gpu.raster.frame import DrawTarget, damaged
from dala.gpu.raster.shapes import is_inside

#: The half-widths of circles up to this radius are read from a table.
MAX_TABLE_RADIUS: Final = 64
#: Single pixels that are collected before they are blended.
MAX_PLACES: Final = 512


def half_widths() -> npt.NDArray[np.uint8]:
    """Return the half-widths of filled circles by row; radius r begins at r * (r + 1) / 2."""
    made: list[int] = []
    for r in range(MAX_TABLE_RADIUS + 1):
        rows = []
        for x in range(r):
            y = isqrt(r * r - x * x)
            rows.append(y + ((y + 1) * y < r * r - x * x))
        knee = max((x for x, y in enumerate(rows) if x <= y), default=0)
        steep = [min(knee, isqrt(r * r - y * (y - 1) - 1)) for y in range(knee + 1, r + 1)]
        made += rows[: knee + 1] + steep if r else [0]
    return np.array(made, np.uint8)


@native(inline=False)
def isqrt_u64(n: u64) -> u64:
    """Return the integer square root."""
    s = min(u64(sqrt(f64(n))), 0xFFFFFFFF)
    while s * s > n:
        s -= 1
    while s < 0xFFFFFFFF and (s + 1) * (s + 1) <= n:
        s += 1
    return s


@native
def row_of(r: u64, x: u64) -> u64:
    """Return the largest y with y * (y - 1) < r * r - x * x, for x < r."""
    left = r * r - x * x
    y: u64 = isqrt_u64(left)
    return y + u64((y + 1) * y < left)


@native(inline=False)
def diagonal(r: u64) -> u64:
    """Return the x of the diagonal: the largest with x * (x - 1) < r * r - x * x."""
    x = u64(f64(r) * 0.7071067811865476) + 2
    x = min(x, r)
    while x > 0 and x * (x - 1) >= r * r - x * x:
        x -= 1
    return x


@native(inline=False)
def half_width(r: i64, knee: i64, row: i64) -> i64:
    """Return the half-width of a large circle on a row; ``knee`` is the x of its diagonal."""
    if row <= knee:
        return i64(row_of(u64(r), u64(row)))
    rest = u64(r) * u64(r) - u64(row) * u64(row - 1) - 1
    return min(knee, i64(isqrt_u64(rest)))


@native(inline=False)
def fill_round(
    on: DrawTarget, left: i64, top: i64, right: i64, bottom: i64, r: i64, color: u32
) -> None:
    """Fill all pixels within r of the core rectangle."""
    end_x, end_y, drawn = right + r + 1, bottom + r + 1, color >= VISIBLE
    _, y0, _, y1 = damaged(on.frame, on.damage, left - r, top - r, end_x, end_y, drawn)
    low, high, width = on.frame.x0, on.frame.x1, on.frame.width
    n, knee = 0, 0
    if r > MAX_TABLE_RADIUS and y0 < y1:
        knee = i64(diagonal(u64(r)))
    spans = Spans(on.pixels, local(i32, SPANS), local(i32, SPANS), color)
    for y in serial(y0, y1):
        away = max(max(top - y, y - bottom), 0)
        half = r
        if away > 0:
            if r <= MAX_TABLE_RADIUS:
                half = i64(on.widths[((r * (r + 1)) >> 1) + away])
            else:
                half = half_width(r, knee, away)
        first = max(left - half, low)
        count = min(right + half + 1, high) - first
        n = add_span(spans, n, y * width + first, count)
    over_spans(spans, n)


@native(inline=False)
def draw_round(
    on: DrawTarget, left: i64, top: i64, right: i64, bottom: i64, r: i64, color: u32
) -> None:
    """Draw four quarter circles and the lines between them, each pixel once."""
    pixels, width = on.pixels, on.frame.width
    x0, y0, x1, y1 = on.frame.x0, on.frame.y0, on.frame.x1, on.frame.y1
    end_x, end_y, drawn = right + r + 1, bottom + r + 1, color >= VISIBLE
    _, _, end, _ = damaged(on.frame, on.damage, left - r, top - r, end_x, end_y, drawn)
    if end == 0:
        return
    first = max(left, x0)
    count = min(right + 1, x1) - first
    if count > 0:
        if y0 <= top - r:
            over_span(pixels, (top - r) * width + first, count, color)
        if bottom + r < y1 and (bottom != top or r > 0):
            over_span(pixels, (bottom + r) * width + first, count, color)
    inner = i64(r == 0)  # with radius 0 the corners are already drawn
    first = max(top + inner, y0)
    count = min(bottom + 1 - inner, y1) - first
    if count > 0:
        if left - r >= x0:
            column(pixels, first * width + left - r, width, count, color)
        if right + r < x1 and (right != left or r > 0):
            column(pixels, first * width + right + r, width, count, color)
    inside = is_inside(on.frame, left - r, top - r, right + r, bottom + r)
    if inside and color >= OPAQUE and r <= MAX_TABLE_RADIUS:
        visible_arcs(on, left, top, right, bottom, r, color)
    elif r > 0:
        knee = i64(diagonal(u64(r)))
        for sign in static((-1, 1)):
            x = left if sign < 0 else right
            y = top if sign < 0 else bottom
            arcs(on, x, sign, x0, x1, 1, top, bottom, y0, y1, width, r, knee, 0, color)
            arcs(on, y, sign, y0, y1, width, left, right, x0, x1, 1, r, knee, 1, color)


@native(inline=False)
def column(pixels: Array[u32], at: i64, width: i64, count: i64, color: u32) -> None:
    """Draw a vertical line."""
    for i in serial(at, at + count * width, width):
        if color >= OPAQUE:
            pixels[i] = color
        else:
            pixels[i] = over_pixel(pixels[i], color)


@native(inline=False)
def visible_arcs(
    on: DrawTarget, left: i64, top: i64, right: i64, bottom: i64, r: i64, color: u32
) -> None:
    """Draw opaque arcs that lie inside the clip, which is the common case."""
    pixels, width = on.pixels, on.frame.width
    rows = on.widths[(r * (r + 1)) >> 1 :]
    for x in serial(1, r + 1):
        y = i64(rows[x])
        if x > y:
            break
        for flip in static((False, True)):
            a = y if flip else x
            b = x if flip else y
            for line in static((False, True)):
                at = (bottom + b if line else top - b) * width
                pixels[at + left - a] = color
                pixels[at + right + a] = color


@native(inline=False)
def arcs(
    on: DrawTarget, center: i64, sign: i64, low: i64, high: i64, step: i64, near: i64, far: i64,
    least: i64, most: i64, stride: i64, r: i64, knee: i64, skip_diagonal: i64, color: u32,
) -> None:  # fmt: skip
    """Draw the visible part of the flat eighths on one side of a circle.

    They run along one axis from ``center`` in the direction of ``sign``, between low and high.
    Across it they are at their distance before ``near`` and behind ``far``, between least and most.
    ``skip_diagonal`` leaves the pixels on the diagonal to the other call.
    """
    first = max(1, low - center if sign > 0 else center - high + 1)
    last = min(knee, high - 1 - center if sign > 0 else center - low)
    rows = on.widths[(min(r, MAX_TABLE_RADIUS) * (min(r, MAX_TABLE_RADIUS) + 1)) >> 1 :]
    places = local(i32, MAX_PLACES)
    n = 0
    for x in serial(first, last + 1):
        y = i64(rows[x]) if r <= MAX_TABLE_RADIUS else i64(row_of(u64(r), u64(x)))
        if x < y or skip_diagonal == 0:
            at = (center + sign * x) * step
            places[n] = i32(at + (near - y) * stride)
            n += i64(least <= near - y < most)
            places[n] = i32(at + (far + y) * stride)
            n += i64(least <= far + y < most)
            if n > MAX_PLACES - 3:
                over_pixels(on.pixels, places, n, color)
                n = 0
    over_pixels(on.pixels, places, n, color)
