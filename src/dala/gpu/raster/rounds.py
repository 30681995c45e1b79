"""Circles, discs and round rectangles: four quarters of a circle around the corners of a core.

The outline is the midpoint circle with ``d = 1 - r``, in a closed form: in the column ``x`` away
from the centre, while ``x <= y``, its row is the largest ``y`` with
``y * (y - 1) < r * r - x * x``. So a circle of any size costs what is seen of it. A disc is as
wide on a row as the outline is.
"""

from __future__ import annotations

from math import isqrt
from typing import Any, Final

import numpy as np

from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    f64,
    hinted,
    i32,
    i64,
    local,
    sqrt,
    static,
    u8,
    u32,
    u64,
)
from dala.gpu.compute.engines.cpu.pixels.over import OPAQUE, VISIBLE, fill_row, over_pixel
from dala.gpu.raster.blend import SPANS, over_pixels, over_span, over_spans
from dala.gpu.raster.frame import WIDTH, X0, X1, Y0, Y1, mark

#: Radii up to this one have their half-widths in a table.
TABLED: Final = 64
#: Single pixels that are collected before they are drawn.
PLACES: Final = 512


def half_widths() -> np.ndarray[Any, Any]:
    """Half-widths of discs by row: those of radius r begin at r * (r + 1) / 2."""
    made: list[int] = []
    for r in range(TABLED + 1):
        rows = []
        for x in range(r):
            y = isqrt(r * r - x * x)
            rows.append(y + ((y + 1) * y < r * r - x * x))
        knee = max((x for x, y in enumerate(rows) if x <= y), default=0)
        steep = [min(knee, isqrt(r * r - y * (y - 1) - 1)) for y in range(knee + 1, r + 1)]
        made += rows[: knee + 1] + steep if r else [0]
    return np.array(made, np.uint8)


@native(inline=False)
def root(n: u64) -> u64:
    """The whole part of a square root."""
    s = min(u64(sqrt(f64(n))), 0xFFFFFFFF)
    while s * s > n:
        s -= 1
    while s < 0xFFFFFFFF and (s + 1) * (s + 1) <= n:
        s += 1
    return s


@native
def row_of(r: u64, x: u64) -> u64:
    """The largest y with y * (y - 1) < r * r - x * x, for x < r."""
    left = r * r - x * x
    y: u64 = root(left)
    return y + u64((y + 1) * y < left)


@native(inline=False)
def diagonal(r: u64) -> u64:
    """The last x whose row is not above it: the largest with x * (x - 1) < r * r - x * x."""
    x = u64(f64(r) * f64(0.7071067811865476)) + 2
    x = min(x, r)
    while x > 0 and x * (x - 1) >= r * r - x * x:
        x -= 1
    return x


@native(inline=False)
def half_width(r: i64, knee: i64, row: i64) -> i64:
    """How far a big disc goes to either side on a row; ``knee`` is its diagonal."""
    if row <= knee:
        return i64(row_of(u64(r), u64(row)))
    rest = u64(r) * u64(r) - u64(row) * u64(row - 1) - 1
    return min(knee, i64(root(rest)))


@native(inline=False)
def solid(
    pixels: Array[u32],
    frame: Array[i64],
    dirty: Array[i32],
    widths: Array[u8],
    left: i64,
    top: i64,
    right: i64,
    bottom: i64,
    r: i64,
    color: u32,
) -> None:
    """All pixels within r of the core, whose corners are the centres of the quarters."""
    low, high = frame[X0], frame[X1]
    x0, y0 = max(left - r, low), max(top - r, frame[Y0])
    x1, y1 = min(right + r + 1, high), min(bottom + r + 1, frame[Y1])
    if x0 >= x1 or y0 >= y1 or color < VISIBLE:
        return
    mark(dirty, x0, y0, x1, y1)
    width = frame[WIDTH]
    knee = 0
    if r > TABLED:
        knee = i64(diagonal(u64(r)))
    places, counts = local(i32, SPANS), local(i32, SPANS)
    n = 0
    for y in hinted(range(y0, y1), scalar=True):
        away = max(max(top - y, y - bottom), 0)
        half = r
        if away > 0:
            if r <= TABLED:
                half = i64(widths[((r * (r + 1)) >> 1) + away])
            else:
                half = half_width(r, knee, away)
        first = max(left - half, low)
        count = min(right + half + 1, high) - first
        if color >= OPAQUE:
            if count > 0:
                fill_row(pixels, y * width + first, count, color)
        else:
            places[n], counts[n] = i32(y * width + first), i32(count)
            n += i64(count > 0)
            if n == SPANS:
                over_spans(pixels, places, counts, n, color)
                n = 0
    over_spans(pixels, places, counts, n, color)


@native(inline=False)
def outline(
    pixels: Array[u32],
    frame: Array[i64],
    dirty: Array[i32],
    widths: Array[u8],
    left: i64,
    top: i64,
    right: i64,
    bottom: i64,
    r: i64,
    color: u32,
) -> None:
    """Four quarters of a circle and the lines between them, each pixel once."""
    x0, y0, x1, y1 = frame[X0], frame[Y0], frame[X1], frame[Y1]
    if left - r >= x1 or right + r < x0 or top - r >= y1 or bottom + r < y0 or color < VISIBLE:
        return
    mark(
        dirty,
        max(left - r, x0),
        max(top - r, y0),
        min(right + r + 1, x1),
        min(bottom + r + 1, y1),
    )
    width = frame[WIDTH]
    first = max(left, x0)
    count = min(right + 1, x1) - first
    if count > 0:
        if y0 <= top - r:
            over_span(pixels, (top - r) * width + first, count, color)
        if bottom + r < y1 and (bottom != top or r > 0):
            over_span(pixels, (bottom + r) * width + first, count, color)
    inner = i64(r == 0)  # without a radius the corners are drawn by now
    first = max(top + inner, y0)
    count = min(bottom + 1 - inner, y1) - first
    if count > 0:
        if left - r >= x0:
            column(pixels, first * width + left - r, width, count, color)
        if right + r < x1 and (right != left or r > 0):
            column(pixels, first * width + right + r, width, count, color)
    if r > TABLED:
        knee = i64(diagonal(u64(r)))
        for sign in static((-1, 1)):
            x = left if sign < 0 else right
            y = top if sign < 0 else bottom
            far_arc(pixels, x, sign, x0, x1, 1, top, bottom, y0, y1, width, r, knee, 0, color)
            far_arc(pixels, y, sign, y0, y1, width, left, right, x0, x1, 1, r, knee, 1, color)
    elif r > 0:
        inside = left - r >= x0 and right + r < x1 and top - r >= y0 and bottom + r < y1
        if inside and color >= OPAQUE:
            whole_arcs(pixels, width, widths, left, top, right, bottom, r, color)
        else:
            arcs(pixels, frame, widths, left, top, right, bottom, r, color)


@native(inline=False)
def column(pixels: Array[u32], at: i64, width: i64, count: i64, color: u32) -> None:
    """A vertical line."""
    for i in hinted(range(at, at + count * width, width), scalar=True):
        if color >= OPAQUE:
            pixels[i] = color
        else:
            pixels[i] = over_pixel(pixels[i], color)


@native(inline=False)
def whole_arcs(
    pixels: Array[u32],
    width: i64,
    widths: Array[u8],
    left: i64,
    top: i64,
    right: i64,
    bottom: i64,
    r: i64,
    color: u32,
) -> None:
    """As ``arcs`` where all of them is seen, and opaque: most circles are."""
    rows = widths[(r * (r + 1)) >> 1 :]
    for x in hinted(range(1, r + 1), scalar=True):
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
    pixels: Array[u32],
    frame: Array[i64],
    widths: Array[u8],
    left: i64,
    top: i64,
    right: i64,
    bottom: i64,
    r: i64,
    color: u32,
) -> None:
    """Quarters of a circle whose radius is in the table, but for the pixels on its axes."""
    x0, y0, width = frame[X0], frame[Y0], frame[WIDTH]
    across, down = u64(frame[X1] - x0), u64(frame[Y1] - y0)
    rows = widths[(r * (r + 1)) >> 1 :]
    places = local(i32, PLACES)
    n = 0
    x = 1
    y = i64(rows[1])
    while x <= y:
        for flip in static((False, True)):
            a = y if flip else x
            b = x if flip else y
            if not flip or x != y:
                for above in static((False, True)):
                    line = top - b if above else bottom + b
                    seen = u64(line - y0) < down
                    for before in static((False, True)):
                        at = left - a if before else right + a
                        places[n] = i32(line * width + at)
                        n += i64(seen and u64(at - x0) < across)
        x += 1
        if x > r:
            break
        y = i64(rows[x])
    over_pixels(pixels, places, n, color)


@native(inline=False)
def far_arc(
    pixels: Array[u32],
    centre: i64,
    sign: i64,
    low: i64,
    high: i64,
    step: i64,
    near: i64,
    far: i64,
    least: i64,
    most: i64,
    stride: i64,
    r: i64,
    knee: i64,
    twin: i64,
    color: u32,
) -> None:
    """The flat eighths on one side of a big circle, as far as they are seen.

    They run along one axis, from ``centre`` on in the direction of ``sign`` between low and high;
    across it they lie their distance before ``near`` and behind ``far``, between least and most. A
    ``twin`` leaves the pixel on the diagonal to the other.
    """
    first = max(1, low - centre if sign > 0 else centre - high + 1)
    last = min(knee, high - 1 - centre if sign > 0 else centre - low)
    places = local(i32, PLACES)
    n = 0
    for x in hinted(range(first, last + 1), scalar=True):
        y = i64(row_of(u64(r), u64(x)))
        if x < y or twin == 0:
            at = (centre + sign * x) * step
            places[n] = i32(at + (near - y) * stride)
            n += i64(least <= near - y < most)
            places[n] = i32(at + (far + y) * stride)
            n += i64(least <= far + y < most)
            if n > PLACES - 3:
                over_pixels(pixels, places, n, color)
                n = 0
    over_pixels(pixels, places, n, color)
