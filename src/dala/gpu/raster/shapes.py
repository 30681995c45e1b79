"""Lines, clears, rectangles, triangles and sprites.

The pixels of a line have a closed form. With extent ``b`` along the longer axis and ``a`` along the
shorter, the offset along the shorter axis after ``j`` steps is ``floor(a * j / b + 1/2)``. So a
line can be started anywhere: clipping finds the visible range of ``j``, and the clipped line has
exactly the pixels of the whole line there.
"""

from __future__ import annotations

from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.pixels.over import OPAQUE, VISIBLE, fill_row, over_some
from dala.gpu.raster.blend import *
from dala.gpu.raster.frame import DrawTarget, FrameRecord, damaged, mark

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


# lines ----------------------------------------------------------------------------------------
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


@native
def is_inside(frame: FrameRecord, x0: i64, y0: i64, x1: i64, y1: i64) -> bool:
    """Return whether the pixels from (x0, y0) to (x1, y1) are inside the clip."""
    return bool(x0 >= frame.x0 and x1 < frame.x1 and y0 >= frame.y0 and y1 < frame.y1)


@native(inline=False)
def draw_line(on: DrawTarget, x1: i64, y1: i64, x2: i64, y2: i64, color: u32, last: i64) -> None:
    """Draw a line (Bresenham), with its end point if ``last`` is 1."""
    if color < VISIBLE:
        return
    pixels, frame, damage, width = on.pixels, on.frame, on.damage, on.frame.width
    dx, dy = abs(x2 - x1), abs(y2 - y1)
    x0, y0 = min(x1, x2), min(y1, y2)
    inside = is_inside(frame, x0, y0, x0 + dx, y0 + dy)
    if inside and dx < MAX_TINY and 0 < dy < MAX_TINY and color >= OPAQUE:
        mark(damage, x0, y0, x0 + dx + 1, y0 + dy + 1)
        tiny_line(pixels, width, x1, y1, x2, y2, color, last)
        return
    right, down = x2 >= x1, y2 >= y1
    across = 1 if right else -1
    along = width if down else -width
    from_x, to_x = clip_steps(x1, right, frame.x0, frame.x1)
    from_y, to_y = clip_steps(y1, down, frame.y0, frame.y1)
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
    slope, position, begin, minor = u64(0), u64(0), 0, 0
    if dx < MAX_SHORT:
        slope = u64(dy << 32) // u64(dx) + 1
        position = HALF + slope * u64(first)
    places = local(i32, CHUNK)
    while first <= final:
        end = min(first + CHUNK - 1, final)
        if dx >= MAX_SHORT:
            begin, minor = minor_offset(dy, dx, first), minor_offset(dy, dx, end)
            for j in serial(first, end + 1):
                places[j - first] = i32(at + j * across + minor_offset(dy, dx, j) * along)
            over_pixels(pixels, places, end - first + 1, color)
        else:
            begin = i64(position >> 32)
            if color >= OPAQUE:
                for j in hinted(range(first, end + 1), scalar=True, unroll=4):
                    pixels[at + j * across + i64(position >> 32) * along] = color
                    position += slope
            else:
                for j in serial(first, end + 1):
                    places[j - first] = i32(at + j * across + i64(position >> 32) * along)
                    position += slope
                over_pixels(pixels, places, end - first + 1, color)
            minor = i64((position - slope) >> 32)
        if flat:
            mark_segment(damage, x1, y1, right, down, first, begin, end, minor)
        else:
            mark_segment(damage, x1, y1, right, down, begin, first, minor, end)
        first = end + 1


@native(inline=False)
def mark_segment(
    damage: Array[i32], x: i64, y: i64, right: bool, down: bool, ax: i64, ay: i64, bx: i64, by: i64
) -> None:
    """Add a segment of a line, given in steps from its start, to the damage."""
    x0 = x + ax if right else x - bx
    y0 = y + ay if down else y - by
    mark(damage, x0, y0, x0 + bx - ax + 1, y0 + by - ay + 1)


@native
def tiny_line(
    pixels: Array[u32], width: i64, x1: i64, y1: i64, x2: i64, y2: i64, color: u32, last: i64
) -> None:
    """Draw a tiny opaque line inside the clip, with the pixels of ``draw_line``."""
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
def draw_triangle(
    on: DrawTarget, ax: i64, ay: i64, bx: i64, by: i64, cx: i64, cy: i64, color: u32
) -> None:
    """Draw the outline of a triangle: three lines, each without its end point."""
    x0, x1 = min(min(ax, bx), cx), max(max(ax, bx), cx)
    y0, y1 = min(min(ay, by), cy), max(max(ay, by), cy)
    inside = is_inside(on.frame, x0, y0, x1, y1)
    if inside and x1 - x0 < MAX_TINY and y1 - y0 < MAX_TINY and color >= OPAQUE:
        mark(on.damage, x0, y0, x1 + 1, y1 + 1)
        pixels, width = on.pixels, on.frame.width
        pixels[ay * width + ax] = color
        tiny_line(pixels, width, ax, ay, bx, by, color, 0)
        tiny_line(pixels, width, bx, by, cx, cy, color, 0)
        tiny_line(pixels, width, cx, cy, ax, ay, color, 0)
        return
    point = ax == bx and ay == by and bx == cx and by == cy
    draw_line(on, ax, ay, bx, by, color, i64(point))
    draw_line(on, bx, by, cx, cy, color, 0)
    draw_line(on, cx, cy, ax, ay, color, 0)


# filled shapes and sprites --------------------------------------------------------------------
@native(inline=False)
def fill_clip(on: DrawTarget, color: u32) -> None:
    """Fill the clip with a color, alpha included."""
    pixels, frame, width = on.pixels, on.frame, on.frame.width
    x0, y0, x1, y1 = damaged(on.frame, on.damage, frame.x0, frame.y0, frame.x1, frame.y1, True)
    count, rows = x1 - x0, y1 - y0
    if count == 0:
        return
    at = y0 * width + x0
    if count == width:  # whole rows are contiguous
        count *= rows
        rows = 1
    for row in serial(rows):
        fill_row(pixels, at + row * width, count, color)


@native(inline=False)
def fill_rect(on: DrawTarget, left: i64, top: i64, right: i64, bottom: i64, color: u32) -> None:
    """Fill a rectangle; right and bottom are exclusive."""
    x0, y0, x1, y1 = damaged(on.frame, on.damage, left, top, right, bottom, color >= VISIBLE)
    width, n = on.frame.width, 0
    spans = Spans(on.pixels, local(i32, SPANS), local(i32, SPANS), color)
    for at in serial(y0 * width + x0, y1 * width, width):
        n = add_span(spans, n, at, x1 - x0)
    over_spans(spans, n)


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
    on: DrawTarget, ax: i64, ay: i64, bx: i64, by: i64, cx: i64, cy: i64, dx: i64, dy: i64,
    color: u32,
) -> None:  # fmt: skip
    """Fill the pixels between the edges a-b and c-d, on the rows that both cover."""
    frame = on.frame
    y0 = max(max(ay, cy), frame.y0)
    y1 = min(min(by, dy), frame.y1)
    if y0 >= y1:
        return
    x, over_x, step, more = edge(ax, ay, bx, by, y0)
    z, over_z, stride, extra = edge(cx, cy, dx, dy, y0)
    tall = by - ay
    high = dy - cy
    low, top, width, n = frame.x0, frame.x1, frame.width, 0
    spans = Spans(on.pixels, local(i32, SPANS), local(i32, SPANS), color)
    for row in serial(y0 * width, y1 * width, width):
        first = max(min(x, z), low)
        last = min(max(x, z), top)
        n = add_span(spans, n, row + first, last - first)
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
    over_spans(spans, n)


@native(inline=False)
def fill_triangle(
    on: DrawTarget, ax: i64, ay: i64, bx: i64, by: i64, cx: i64, cy: i64, color: u32
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
    left, right = min(min(ax, bx), cx), max(max(ax, bx), cx)
    x0, _, x1, _ = damaged(on.frame, on.damage, left, ay, right, cy, color >= VISIBLE)
    if x0 < x1:
        fill_between(on, ax, ay, cx, cy, ax, ay, bx, by, color)
        fill_between(on, ax, ay, cx, cy, bx, by, cx, cy, color)


@native(inline=False)
def sprite(on: DrawTarget, atlas: Array[u32], start: i64, w: i64, h: i64, x: i64, y: i64) -> None:
    """Draw rows of the atlas, one to one."""
    x0, y0, x1, y1 = damaged(on.frame, on.damage, x, y, x + w, y + h, True)
    pixels, width = on.pixels, on.frame.width
    at = y0 * width + x0
    source = start + (y0 - y) * w + x0 - x
    full = (x1 - x0) & ~15
    row = 0
    while row < y1 - y0 and full > 0:
        place, word = at + row * width, source + row * w
        done = over_block(pixels, place, width, atlas, word, w, full, y1 - y0 - row)
        row += done // full
        if row < y1 - y0:  # the rest of a row that is not fully opaque
            for k in serial(done % full, full, 16):
                over_some(pixels, at + row * width + k, atlas, source + row * w + k, 16)
            row += 1
    rest = (x1 - x0) & 15
    if rest > 0:
        for line in serial(y1 - y0):
            over_some(pixels, at + line * width + full, atlas, source + line * w + full, rest)
