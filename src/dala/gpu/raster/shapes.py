"""Lines, and outlines of triangles.

The pixels of a line have a closed form. With extent ``b`` along the longer axis and ``a`` along the
shorter, the offset along the shorter axis after ``j`` steps is ``floor(a * j / b + 1/2)``. So a
line can be started anywhere: clipping finds the visible range of ``j``, and the clipped line has
exactly the pixels of the whole line there.
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

#: Pixels that are blended at a time.
CHUNK: Final = 64
#: Products of two numbers below this fit easily.
MAX_SMALL: Final = 1 << 28
#: Lines up to this length use a fixed-point slope of 32 fractional bits. It is too steep by less
#: than 2^-32, so after all steps by less than 1 / (2 * length): no floor is reached too soon.
MAX_SHORT: Final = 1 << 15
HALF: Final = 1 << 31
#: Lines and triangles below this size that lie inside the clip take their slopes from a table of
#: 2^32 / n, rounded up, instead of dividing: they are too steep by less than 2^-26 a step.
MAX_TINY: Final = 64
RECIPROCALS: Final = (0, *(-(-(1 << 32) // n) for n in range(1, MAX_TINY)))


@native
def minor_offset(a: i64, b: i64, j: i64) -> i64:
    """Return the offset along the shorter axis after ``j`` steps; all are below 2^32."""
    done = u64(a) * u64(j)
    q = done // u64(b)
    rest = done - q * u64(b)
    return i64(q) + i64(2 * rest >= u64(b))


@native(inline=False)
def first_step(a: i64, b: i64, low: i64, high: i64, wanted: i64) -> i64:
    """Return the first j in low..high whose minor offset is at least ``wanted``, or high + 1."""
    high += 1
    if wanted < MAX_SMALL and b < MAX_SMALL and a > 0:
        # floor(a * j / b + 1/2) >= wanted, solved for j
        return min(max(low, ((2 * wanted - 1) * b + 2 * a - 1) // (2 * a)), high)
    while low < high:
        middle = (low + high) >> 1
        if minor_offset(a, b, middle) >= wanted:
            high = middle
        else:
            low = middle + 1
    return low


@native
def clip_steps(start: i64, forward: bool, low: i64, high: i64) -> tuple[i64, i64]:
    """Return the numbers of steps from ``start`` to low and to high - 1, in walking order."""
    if forward:
        return low - start, high - 1 - start
    return start - high + 1, start - low


@native(inline=False)
def line(
    pixels: Array[u32],
    frame: Array[i64],
    damage: Array[i32],
    x1: i64,
    y1: i64,
    x2: i64,
    y2: i64,
    color: u32,
    last: i64,
) -> None:
    """Draw a line (Bresenham), with its end point if ``last`` is 1."""
    if color < VISIBLE:
        return
    width = frame[WIDTH]
    dx, dy = abs(x2 - x1), abs(y2 - y1)
    x0, y0 = min(x1, x2), min(y1, y2)
    inside = x0 >= frame[X0] and x0 + dx < frame[X1] and y0 >= frame[Y0] and y0 + dy < frame[Y1]
    if inside and dx < MAX_TINY and 0 < dy < MAX_TINY and color >= OPAQUE:
        mark(damage, x0, y0, x0 + dx + 1, y0 + dy + 1)
        tiny_line(pixels, width, x1, y1, x2, y2, color, last)
        return
    right, down = x2 >= x1, y2 >= y1
    across = 1 if right else -1
    along = width if down else -width
    from_x, to_x = clip_steps(x1, right, frame[X0], frame[X1])
    from_y, to_y = clip_steps(y1, down, frame[Y0], frame[Y1])
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
        first = first_step(dy, dx, first, final, from_y)
        final = first_step(dy, dx, first, final, to_y + 1) - 1
        if first > final:
            return
    if dy == 0 and flat:
        y = y1
        begin = x1 + first if right else x1 - final
        mark(damage, begin, y, begin + final - first + 1, y + 1)
        over_span(pixels, y * width + begin, final - first + 1, color)
        return
    at = y1 * width + x1
    if dx < MAX_SHORT:
        short_line(
            pixels,
            damage,
            at,
            across,
            along,
            dx,
            dy,
            first,
            final,
            color,
            x1,
            y1,
            right,
            down,
            flat,
        )
    else:
        long_line(
            pixels,
            damage,
            at,
            across,
            along,
            dx,
            dy,
            first,
            final,
            color,
            x1,
            y1,
            right,
            down,
            flat,
        )


@native(inline=False)
def short_line(
    pixels: Array[u32],
    damage: Array[i32],
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
    """Draw the steps ``first`` to ``final`` of a short line that begins at the pixel ``at``."""
    slope = u64(dy << 32) // u64(dx) + 1
    position = HALF + slope * u64(first)
    places = local(i32, CHUNK)
    while first <= final:
        end = min(first + CHUNK - 1, final)
        minor_start = i64(position >> 32)
        if color >= OPAQUE:
            for j in hinted(range(first, end + 1), scalar=True, unroll=4):
                pixels[at + j * across + i64(position >> 32) * along] = color
                position += slope
        else:
            for j in hinted(range(first, end + 1), scalar=True):
                places[j - first] = i32(at + j * across + i64(position >> 32) * along)
                position += slope
            over_pixels(pixels, places, end - first + 1, color)
        minor = i64((position - slope) >> 32)
        if flat:
            mark_segment(damage, x1, y1, right, down, first, minor_start, end, minor)
        else:
            mark_segment(damage, x1, y1, right, down, minor_start, first, minor, end)
        first = end + 1


@native(inline=False)
def long_line(
    pixels: Array[u32],
    damage: Array[i32],
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
    """Draw the steps ``first`` to ``final`` of a line of any length."""
    minor = minor_offset(dy, dx, first) if first > 0 else 0
    # 2 * dy * j + dx - 2 * dx * minor, which stays within 0 .. 2 * dx
    error = dx + i64(2 * (u64(dy) * u64(first) - u64(dx) * u64(minor)))
    at += first * across + minor * along
    places = local(i32, CHUNK)
    turn, more = 0, 0
    while first <= final:
        end = min(first + CHUNK - 1, final)
        minor_start = minor + more
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
            mark_segment(damage, x1, y1, right, down, first, minor_start, end, minor)
        else:
            mark_segment(damage, x1, y1, right, down, minor_start, first, minor, end)
        first = end + 1


@native(inline=False)
def mark_segment(
    damage: Array[i32],
    x: i64,
    y: i64,
    right: bool,
    down: bool,
    ax: i64,
    ay: i64,
    bx: i64,
    by: i64,
) -> None:
    """Add a segment of a line, given in steps from its start, to the damage."""
    x0 = x + ax if right else x - bx
    y0 = y + ay if down else y - by
    mark(damage, x0, y0, x0 + bx - ax + 1, y0 + by - ay + 1)


@native
def tiny_line(
    pixels: Array[u32], width: i64, x1: i64, y1: i64, x2: i64, y2: i64, color: u32, last: i64
) -> None:
    """Draw a tiny opaque line inside the clip, with the pixels of ``short_line``."""
    dx, dy = abs(x2 - x1), abs(y2 - y1)
    across = 1 if x2 >= x1 else -1
    along = width if y2 >= y1 else -width
    if dx < dy:
        dx, dy = dy, dx
        across, along = along, across
    slope = u64(dy) * table(u64, RECIPROCALS)[dx]
    position = u64(HALF)
    at = y1 * width + x1
    for _ in hinted(range(dx + last), scalar=True, unroll=4):
        pixels[at + i64(position >> 32) * along] = color
        position += slope
        at += across


@native(inline=False)
def triangle_outline(
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
    """Draw the outline of a triangle: three lines, each without its end point."""
    x0, x1 = min(min(ax, bx), cx), max(max(ax, bx), cx)
    y0, y1 = min(min(ay, by), cy), max(max(ay, by), cy)
    inside = x0 >= frame[X0] and x1 < frame[X1] and y0 >= frame[Y0] and y1 < frame[Y1]
    if inside and x1 - x0 < MAX_TINY and y1 - y0 < MAX_TINY and color >= OPAQUE:
        mark(damage, x0, y0, x1 + 1, y1 + 1)
        width = frame[WIDTH]
        pixels[ay * width + ax] = color
        tiny_line(pixels, width, ax, ay, bx, by, color, 0)
        tiny_line(pixels, width, bx, by, cx, cy, color, 0)
        tiny_line(pixels, width, cx, cy, ax, ay, color, 0)
        return
    point = ax == bx and ay == by and bx == cx and by == cy
    line(pixels, frame, damage, ax, ay, bx, by, color, i64(point))
    line(pixels, frame, damage, bx, by, cx, cy, color, 0)
    line(pixels, frame, damage, cx, cy, ax, ay, color, 0)
