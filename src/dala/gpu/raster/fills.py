"""Filled shapes: clears, rectangles, triangles and sprites."""

from __future__ import annotations

from typing import Final

from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    hinted,
    i32,
    i64,
    local,
    splat,
    stream,
    u32,
    u64,
)
from dala.gpu.compute.engines.cpu.pixels.over import OPAQUE, VISIBLE, fill_row, over_some
from dala.gpu.raster.blend import SPANS, over_block, over_spans
from dala.gpu.raster.frame import ALIGNMENT, WIDTH, X0, X1, Y0, Y1, mark

#: Pixels of a canvas, and of a row, from which on a clear bypasses the caches.
STREAM_CANVAS_PIXELS: Final = 1 << 22
STREAM_ROW_PIXELS: Final = 1 << 16


@native(inline=False)
def replace(pixels: Array[u32], at: i64, count: i64, color: u32) -> None:
    """Fill a row with a color, alpha included."""
    fill_row(pixels, at, count, color)


@native(inline=False)
def clear(pixels: Array[u32], frame: Array[i64], damage: Array[i32], color: u32) -> None:
    """Fill the clip with a color, alpha included."""
    width = frame[WIDTH]
    x0 = frame[X0]
    count = frame[X1] - x0
    rows = frame[Y1] - frame[Y0]
    if count <= 0 or rows <= 0:
        return
    mark(damage, x0, frame[Y0], frame[X1], frame[Y1])
    at = frame[Y0] * width + x0
    if count == width:  # whole rows are contiguous
        count *= rows
        rows = 1
    if len(pixels) >= STREAM_CANVAS_PIXELS and count >= STREAM_ROW_PIXELS:
        v = splat(color, 16)
        head = 16 - ((at + frame[ALIGNMENT]) & 15)
        replace(pixels, at, head, color)
        for i in hinted(range(at + head, at + count - 15, 16), scalar=True):
            stream(pixels, i, v)
        rest = (count - head) & 15
        replace(pixels, at + count - rest, rest, color)
        return
    for row in hinted(range(rows), scalar=True):
        replace(pixels, at + row * width, count, color)


@native(inline=False)
def rect(
    pixels: Array[u32],
    frame: Array[i64],
    damage: Array[i32],
    left: i64,
    top: i64,
    right: i64,
    bottom: i64,
    color: u32,
) -> None:
    """Fill a rectangle; right and bottom are exclusive."""
    x0, y0 = max(left, frame[X0]), max(top, frame[Y0])
    x1, y1 = min(right, frame[X1]), min(bottom, frame[Y1])
    if x0 >= x1 or y0 >= y1 or color < VISIBLE:
        return
    mark(damage, x0, y0, x1, y1)
    width = frame[WIDTH]
    if color >= OPAQUE:
        for at in hinted(range(y0 * width + x0, y1 * width, width), scalar=True):
            fill_row(pixels, at, x1 - x0, color)
        return
    places, counts = local(i32, SPANS), local(i32, SPANS)
    n = 0
    for at in hinted(range(y0 * width + x0, y1 * width, width), scalar=True):
        places[n], counts[n] = i32(at), i32(x1 - x0)
        n += 1
        if n == SPANS:
            over_spans(pixels, places, counts, n, color)
            n = 0
    over_spans(pixels, places, counts, n, color)


@native(inline=False)
def edge(x0: i64, y0: i64, x1: i64, y1: i64, y: i64) -> tuple[i64, i64, i64, i64]:
    """Return a downward edge at row y: its column rounded up, the remainder, and their steps.

    Columns are ``x0 + (x1 - x0) * (y - y0) / (y1 - y0)``. The product of two 32-bit extents has 64
    bits, so everything is exact in u64 with a separate sign.
    """
    tall = u64(y1 - y0)
    wide = u64(abs(x1 - x0))
    whole = wide // tall
    rest = wide - whole * tall
    q, left = u64(0), u64(0)
    if y != y0:
        done = wide * u64(y - y0)
        q = done // tall
        left = done - q * tall
    if x1 >= x0:
        if left != 0:
            return x0 + i64(q) + 1, i64(tall - left), i64(whole), i64(rest)
        return x0 + i64(q), 0, i64(whole), i64(rest)
    if rest != 0:
        return x0 - i64(q), i64(left), -i64(whole) - 1, i64(tall - rest)
    return x0 - i64(q), i64(left), -i64(whole), 0


@native(inline=False)
def fill_between(
    pixels: Array[u32],
    frame: Array[i64],
    ax: i64,
    ay: i64,
    bx: i64,
    by: i64,
    cx: i64,
    cy: i64,
    dx: i64,
    dy: i64,
    color: u32,
) -> None:
    """Fill the pixels between the edges a-b and c-d, on the rows that both cover."""
    y0 = max(max(ay, cy), frame[Y0])
    y1 = min(min(by, dy), frame[Y1])
    if y0 >= y1:
        return
    x, over_x, step, more = edge(ax, ay, bx, by, y0)
    z, over_z, stride, extra = edge(cx, cy, dx, dy, y0)
    tall = by - ay
    high = dy - cy
    low, top = frame[X0], frame[X1]
    width = frame[WIDTH]
    places, counts = local(i32, SPANS), local(i32, SPANS)
    n = 0
    for row in hinted(range(y0 * width, y1 * width, width), scalar=True):
        first = max(min(x, z), low)
        last = min(max(x, z), top)
        if color >= OPAQUE:
            if first < last:
                fill_row(pixels, row + first, last - first, color)
        else:
            places[n], counts[n] = i32(row + first), i32(last - first)
            n += i64(first < last)
            if n == SPANS:
                over_spans(pixels, places, counts, n, color)
                n = 0
        over_x -= more
        over_z -= extra
        x += step
        z += stride
        if over_x < 0:
            over_x += tall
            x += 1
        if over_z < 0:
            over_z += high
            z += 1
    over_spans(pixels, places, counts, n, color)


@native(inline=False)
def triangle(
    pixels: Array[u32],
    frame: Array[i64],
    damage: Array[i32],
    ax: i64,
    ay: i64,
    bx: i64,
    by: i64,
    cx: i64,
    cy: i64,
    color: u32,
) -> None:
    """Fill a triangle: pixels whose center is inside, or on a left or top edge."""
    if ay > by:
        ax, bx = bx, ax
        ay, by = by, ay
    if by > cy:
        bx, cx = cx, bx
        by, cy = cy, by
    if ay > by:
        ax, bx = bx, ax
        ay, by = by, ay
    x0, y0 = max(min(min(ax, bx), cx), frame[X0]), max(ay, frame[Y0])
    x1, y1 = min(max(max(ax, bx), cx), frame[X1]), min(cy, frame[Y1])
    if x0 >= x1 or y0 >= y1 or color < VISIBLE:
        return
    mark(damage, x0, y0, x1, y1)
    fill_between(pixels, frame, ax, ay, cx, cy, ax, ay, bx, by, color)
    fill_between(pixels, frame, ax, ay, cx, cy, bx, by, cx, cy, color)


@native(inline=False)
def sprite(
    pixels: Array[u32],
    frame: Array[i64],
    damage: Array[i32],
    atlas: Array[u32],
    start: i64,
    w: i64,
    h: i64,
    x: i64,
    y: i64,
    ahead: i64,
) -> None:
    """Draw rows of the atlas, one to one.

    Meanwhile the memory of the next sprite's target, from the pixel ``ahead`` on, is prefetched:
    scattered sprites would otherwise spend more than half of the time on cache misses.
    """
    x0, y0 = max(x, frame[X0]), max(y, frame[Y0])
    x1, y1 = min(x + w, frame[X1]), min(y + h, frame[Y1])
    if x0 >= x1 or y0 >= y1:
        return
    mark(damage, x0, y0, x1, y1)
    width = frame[WIDTH]
    at = y0 * width + x0
    source = start + (y0 - y) * w + x0 - x
    full = (x1 - x0) & ~15
    row = 0
    while row < y1 - y0 and full > 0:
        place, word = at + row * width, source + row * w
        done = over_block(
            pixels, place, width, atlas, word, w, full, y1 - y0 - row, ahead + row * width
        )
        row += done // full
        if row < y1 - y0:  # the rest of a row that is not fully opaque
            for k in hinted(range(done % full, full, 16), scalar=True):
                over_some(pixels, at + row * width + k, atlas, source + row * w + k, 16)
            row += 1
    rest = (x1 - x0) & 15
    if rest > 0:
        for line in hinted(range(y1 - y0), scalar=True):
            over_some(pixels, at + line * width + full, atlas, source + line * w + full, rest)
