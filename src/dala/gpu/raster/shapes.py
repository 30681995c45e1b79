"""Outlines: lines, and triangles made of them.

A line's pixels have a closed form. With ``b`` the extent along the longer axis and ``a`` the one
along the shorter, after ``j`` steps the shorter axis is ``floor(a * j / b + 1/2)`` away. So a line
can be entered anywhere: clipping finds the range of ``j`` that is seen, and draws the very pixels
that the whole line would have there.
"""

from __future__ import annotations

from typing import Final

from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    hinted,
    i32,
    i64,
    local,
    table,
    u32,
    u64,
)
from dala.gpu.compute.engines.cpu.pixels.over import OPAQUE, VISIBLE
from dala.gpu.raster.blend import over_pixels, over_span
from dala.gpu.raster.frame import WIDTH, X0, X1, Y0, Y1, mark

#: Pixels that are drawn at a time.
PIECE: Final = 64
#: Up to here products of two fit easily.
SMALL: Final = 1 << 28
#: Lines up to this long are drawn by a slope of 32 bits behind the point. It is too steep by less
#: than 2^-32, so after all steps by less than 1 / (2 * length): no floor is reached too soon.
SHORT: Final = 1 << 15
HALF: Final = 1 << 31
#: Triangles below this size that are wholly seen are drawn by slopes that are not divided for: of
#: 2^32 the share of each step, rounded up, which makes them too steep by less than 2^-26 a step.
TINY: Final = 64
SHARES: Final = (0, *(-(-(1 << 32) // n) for n in range(1, TINY)))


@native
def away(a: i64, b: i64, j: i64) -> i64:
    """How far along the shorter axis after ``j`` steps: all below 2^32, so products fit u64."""
    done = u64(a) * u64(j)
    q = done // u64(b)
    rest = done - q * u64(b)
    return i64(q) + i64(2 * rest >= u64(b))


@native(inline=False)
def first_at(a: i64, b: i64, low: i64, high: i64, wanted: i64) -> i64:
    """The first j of low..high from which the shorter axis is ``wanted`` away; high + 1 if none."""
    high += 1
    if wanted < SMALL and b < SMALL and a > 0:  # floor(a * j / b + 1/2) >= wanted, solved for j
        return min(max(low, ((2 * wanted - 1) * b + 2 * a - 1) // (2 * a)), high)
    while low < high:
        middle = (low + high) >> 1
        if away(a, b, middle) >= wanted:
            high = middle
        else:
            low = middle + 1
    return low


@native
def reach_of(start: i64, forward: bool, low: i64, high: i64) -> tuple[i64, i64]:
    """The steps from ``start`` that lead to low and to high - 1, in their order."""
    if forward:
        return low - start, high - 1 - start
    return start - high + 1, start - low


@native(inline=False)
def line(
    pixels: Array[u32],
    frame: Array[i64],
    dirty: Array[i32],
    x1: i64,
    y1: i64,
    x2: i64,
    y2: i64,
    color: u32,
    last: i64,
) -> None:
    """A line by Bresenham, with its end point if ``last`` is 1."""
    if color < VISIBLE:
        return
    width = frame[WIDTH]
    dx, dy = abs(x2 - x1), abs(y2 - y1)
    x0, y0 = min(x1, x2), min(y1, y2)
    inside = x0 >= frame[X0] and x0 + dx < frame[X1] and y0 >= frame[Y0] and y0 + dy < frame[Y1]
    if inside and dx < TINY and 0 < dy < TINY and color >= OPAQUE:
        mark(dirty, x0, y0, x0 + dx + 1, y0 + dy + 1)
        edge(pixels, width, x1, y1, x2, y2, color, last)
        return
    right, down = x2 >= x1, y2 >= y1
    across = 1 if right else -1
    along = width if down else -width
    from_x, to_x = reach_of(x1, right, frame[X0], frame[X1])
    from_y, to_y = reach_of(y1, down, frame[Y0], frame[Y1])
    flat = dx >= dy
    if not flat:
        dx, dy = dy, dx
        across, along = along, across
        from_x, from_y = from_y, from_x
        to_x, to_y = to_y, to_x
    # From here on x is the longer axis, in steps from the start.
    first = max(from_x, 0)
    final = min(to_x, dx - 1 + last)
    if first > final or from_y > dy or to_y < 0:
        return
    if from_y > 0 or to_y < dy:
        first = first_at(dy, dx, first, final, from_y)
        final = first_at(dy, dx, first, final, to_y + 1) - 1
        if first > final:
            return
    if dy == 0 and flat:
        y = y1
        begin = x1 + first if right else x1 - final
        mark(dirty, begin, y, begin + final - first + 1, y + 1)
        over_span(pixels, y * width + begin, final - first + 1, color)
        return
    at = y1 * width + x1
    if dx < SHORT:
        short(
            pixels, dirty, at, across, along, dx, dy, first, final, color, x1, y1, right, down, flat
        )
    else:
        long(
            pixels, dirty, at, across, along, dx, dy, first, final, color, x1, y1, right, down, flat
        )


@native(inline=False)
def short(
    pixels: Array[u32],
    dirty: Array[i32],
    at: i64,
    across: i64,
    along: i64,
    dx: i64,
    dy: i64,
    first: i64,
    final: i64,
    color: u32,
    x1: i64,
    y1: i64,
    right: bool,
    down: bool,
    flat: bool,
) -> None:
    """The steps from ``first`` to ``final`` of a short line, which begins at the pixel ``at``."""
    slope = u64(dy << 32) // u64(dx) + 1
    way = HALF + slope * u64(first)
    places = local(i32, PIECE)
    while first <= final:
        end = min(first + PIECE - 1, final)
        was = i64(way >> 32)
        if color >= OPAQUE:
            for j in hinted(range(first, end + 1), scalar=True, unroll=4):
                pixels[at + j * across + i64(way >> 32) * along] = color
                way += slope
        else:
            for j in hinted(range(first, end + 1), scalar=True):
                places[j - first] = i32(at + j * across + i64(way >> 32) * along)
                way += slope
            over_pixels(pixels, places, end - first + 1, color)
        minor = i64((way - slope) >> 32)
        if flat:
            stain(dirty, x1, y1, right, down, first, was, end, minor)
        else:
            stain(dirty, x1, y1, right, down, was, first, minor, end)
        first = end + 1


@native(inline=False)
def long(
    pixels: Array[u32],
    dirty: Array[i32],
    at: i64,
    across: i64,
    along: i64,
    dx: i64,
    dy: i64,
    first: i64,
    final: i64,
    color: u32,
    x1: i64,
    y1: i64,
    right: bool,
    down: bool,
    flat: bool,
) -> None:
    """As ``short``, for a line of any length."""
    minor = away(dy, dx, first) if first > 0 else 0
    # 2 * dy * j + dx - 2 * dx * minor, which stays within 0 .. 2 * dx
    error = dx + i64(2 * (u64(dy) * u64(first) - u64(dx) * u64(minor)))
    at += first * across + minor * along
    places = local(i32, PIECE)
    turn, more = 0, 0
    while first <= final:
        end = min(first + PIECE - 1, final)
        was = minor + more
        for k in hinted(range(end - first + 1), scalar=True):
            at += turn
            minor += more
            places[k] = i32(at)
            error += 2 * dy
            turn, more = across, 0
            if error >= 2 * dx:
                error -= 2 * dx
                turn += along
                more = 1
        over_pixels(pixels, places, end - first + 1, color)
        if flat:
            stain(dirty, x1, y1, right, down, first, was, end, minor)
        else:
            stain(dirty, x1, y1, right, down, was, first, minor, end)
        first = end + 1


@native(inline=False)
def stain(
    dirty: Array[i32],
    x: i64,
    y: i64,
    right: bool,
    down: bool,
    ax: i64,
    ay: i64,
    bx: i64,
    by: i64,
) -> None:
    """Remembers a piece of a line, given in steps from its start."""
    x0 = x + ax if right else x - bx
    y0 = y + ay if down else y - by
    mark(dirty, x0, y0, x0 + bx - ax + 1, y0 + by - ay + 1)


@native
def edge(
    pixels: Array[u32], width: i64, x1: i64, y1: i64, x2: i64, y2: i64, color: u32, last: i64
) -> None:
    """A tiny opaque line, all of which is seen: the pixels of ``short``."""
    dx, dy = abs(x2 - x1), abs(y2 - y1)
    across = 1 if x2 >= x1 else -1
    along = width if y2 >= y1 else -width
    if dx < dy:
        dx, dy = dy, dx
        across, along = along, across
    slope = u64(dy) * table(u64, SHARES)[dx]
    way = u64(HALF)
    at = y1 * width + x1
    for _ in hinted(range(dx + last), scalar=True, unroll=4):
        pixels[at + i64(way >> 32) * along] = color
        way += slope
        at += across


@native(inline=False)
def wire(
    pixels: Array[u32],
    frame: Array[i64],
    dirty: Array[i32],
    ax: i64,
    ay: i64,
    bx: i64,
    by: i64,
    cx: i64,
    cy: i64,
    color: u32,
) -> None:
    """A triangle's outline: three lines, each up to where the next begins."""
    x0, x1 = min(min(ax, bx), cx), max(max(ax, bx), cx)
    y0, y1 = min(min(ay, by), cy), max(max(ay, by), cy)
    inside = x0 >= frame[X0] and x1 < frame[X1] and y0 >= frame[Y0] and y1 < frame[Y1]
    if inside and x1 - x0 < TINY and y1 - y0 < TINY and color >= OPAQUE:
        mark(dirty, x0, y0, x1 + 1, y1 + 1)
        width = frame[WIDTH]
        pixels[ay * width + ax] = color
        edge(pixels, width, ax, ay, bx, by, color, 0)
        edge(pixels, width, bx, by, cx, cy, color, 0)
        edge(pixels, width, cx, cy, ax, ay, color, 0)
        return
    point = ax == bx and ay == by and bx == cx and by == cy
    line(pixels, frame, dirty, ax, ay, bx, by, color, i64(point))
    line(pixels, frame, dirty, bx, by, cx, cy, color, 0)
    line(pixels, frame, dirty, cx, cy, ax, ay, color, 0)
