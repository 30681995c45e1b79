"""Strokes: the outline of a pen that follows a path, as contours to be filled nonzero.

Everything is in the coordinates of the path, and transformed last, so that a pen that is scaled
unevenly draws uneven lines. An outline follows one side of a line, turns around its end, and comes
back on the other. Inside of a turn, the sides meet where they cross, or go through the corner if a
segment is too short: then the outline is a sum of areas of the same sense, without holes.
"""

from __future__ import annotations

from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.vector.edges import TOLERANCE, Pen, close, line_to, move_to, pieces, select_points

#: The numbers of a point: place, whether it is inside a curve, direction and length to the next.
POINT: Final = 6
#: Dashes of one shape at most.
MAX_DASHES: Final = 1 << 18
#: The least cosine of a turn within a curve that is drawn as a corner; others are rounded.
SMOOTH: Final = 0.5
#: Halvings of an arc at most.
MAX_HALVINGS: Final = 8

BUTT, ROUND_CAP, SQUARE = range(3)
MITER, ROUND, BEVEL = range(3)


class Style(Record, fields=dict.fromkeys(["half", "limit", "cap", "join", "tolerance"], f64)):
    """Half of the width, the miter limit, cap, join, and the tolerance in a path's units."""


@native
def put(pen: Pen, edges: Array[i32], x: f64, y: f64) -> None:
    """Continue the contour to a point of the path's coordinates."""
    u, v = pen.a * x + pen.c * y + pen.e, pen.b * x + pen.d * y + pen.f
    if pen.open == 0:
        move_to(pen, u, v)
        pen.open = 1
    else:
        line_to(pen, edges, u, v)


@native
def finish(pen: Pen, edges: Array[i32]) -> None:
    """Close the contour."""
    if pen.open != 0:
        close(pen, edges)
    pen.open = 0


@native
def halved(v: f64) -> f64:
    """Return 1 - cos of half an angle, from 1 - cos of the angle."""
    return f64((v * 0.5) / (1 + sqrt(max(f64(0), 1 - v * 0.5))))


@native(inline=False)
def arc(
    pen: Pen, edges: Array[i32], style: Style, x: f64, y: f64, nx: f64, ny: f64, v: f64
) -> None:
    """Add the points between the ends of an arc from the normal n on; v is 1 - cos of its angle."""
    steps = 1
    next = halved(v)
    for _ in serial(MAX_HALVINGS):
        if style.half * next > style.tolerance:
            steps *= 2
            v = next
            next = halved(v)
    c, s = 1 - v, sqrt(max(f64(0), v * (2 - v)))
    for _ in serial(1, steps):
        nx, ny = c * nx - s * ny, s * nx + c * ny
        put(pen, edges, x + nx * style.half, y + ny * style.half)


@native(inline=False)
def turn(
    pen: Pen, edges: Array[i32], style: Style, p: Array[f64], ax: f64, ay: f64, before: f64,
    bx: f64, by: f64, after: f64,
) -> None:  # fmt: skip
    """Add the side of a corner between the directions a and b of segments of given lengths."""
    x, y, h = p[0], p[1], style.half
    mx, my, nx, ny = ay * h, -ax * h, by * h, -bx * h
    cross, dot = ax * by - ay * bx, ax * bx + ay * by
    join = style.join
    if p[2] != 0:
        join = f64(MITER) if dot > SMOOTH else f64(ROUND)
    sharp = 1 + dot
    if cross > 0 or (cross == 0 and dot < 0):  # outside
        if join == MITER and sharp * (style.limit * style.limit) >= 2:
            put(pen, edges, x + (mx + nx) / sharp, y + (my + ny) / sharp)
        else:
            put(pen, edges, x + mx, y + my)
            if join == ROUND:
                arc(pen, edges, style, x, y, ay, -ax, 1 - dot)
            put(pen, edges, x + nx, y + ny)
    elif sharp > 0 and 2 * (0 - cross) * h <= min(before, after) * sharp:
        put(pen, edges, x + (mx + nx) / sharp, y + (my + ny) / sharp)
    else:
        put(pen, edges, x + mx, y + my)
        put(pen, edges, x, y)
        put(pen, edges, x + nx, y + ny)


@native(inline=False)
def end_cap(pen: Pen, edges: Array[i32], style: Style, p: Array[f64], dx: f64, dy: f64) -> None:
    """Add the end of a line that goes in the direction d; its sides are added before and after."""
    h = style.half
    if style.cap == SQUARE:
        x, y = p[0] + dx * h, p[1] + dy * h
        put(pen, edges, x + dy * h, y - dx * h)
        put(pen, edges, x - dy * h, y + dx * h)
    elif style.cap == ROUND_CAP:
        arc(pen, edges, style, p[0], p[1], dy, -dx, f64(2))


@native(inline=False)
def side(
    pen: Pen, edges: Array[i32], style: Style, points: Array[f64], count: i64, closed: bool,
    forward: bool,
) -> None:  # fmt: skip
    """Add one side of a line."""
    for k in serial(count):
        i = k if forward else count - 1 - k
        before = i - 1 if i > 0 else count - 1
        p, q = points[POINT * i :], points[POINT * before :]
        ax, ay, a, bx, by, b = q[3], q[4], q[5], p[3], p[4], p[5]
        if not forward:
            ax, ay, bx, by = -bx, -by, -ax, -ay
            a, b = b, a
        if not closed and k == 0:
            put(pen, edges, p[0] + by * style.half, p[1] - bx * style.half)
        elif not closed and k == count - 1:
            put(pen, edges, p[0] + ay * style.half, p[1] - ax * style.half)
        else:
            turn(pen, edges, style, p, ax, ay, a, bx, by, b)


@native(inline=False)
def dot(pen: Pen, edges: Array[i32], style: Style, points: Array[f64]) -> None:
    """Add a line without length, whose direction is known: nothing, a disc or a square."""
    if style.cap != BUTT:
        for k in serial(2):
            way = f64(1 - 2 * k)
            dx, dy = points[3] * way, points[4] * way
            put(pen, edges, points[0] + dy * style.half, points[1] - dx * style.half)
            end_cap(pen, edges, style, points, dx, dy)
        finish(pen, edges)


@native(inline=False)
def outline(
    pen: Pen, edges: Array[i32], style: Style, points: Array[f64], count: i64, closed: bool
) -> None:
    """Add the outline of a line of distinct points, whose directions are known."""
    if count < 2:
        dot(pen, edges, style, points)
        return
    side(pen, edges, style, points, count, closed, True)
    if closed:
        finish(pen, edges)
    else:
        last, first = points[POINT * (count - 1) :], points[POINT * (count - 2) :]
        end_cap(pen, edges, style, last, first[3], first[4])
    side(pen, edges, style, points, count, closed, False)
    if not closed:
        end_cap(pen, edges, style, points, -points[3], -points[4])
    finish(pen, edges)


@native(inline=False)
def add_point(pen: Pen, points: Array[f64], count: i64, x: f64, y: f64, smooth: f64) -> i64:
    """Add a point to a line, unless it is the last one; return the number of points."""
    at = POINT * count
    if at + 2 * POINT > len(points):
        pen.full = 1
        return count
    if count > 0:
        dx, dy = x - points[at - POINT], y - points[at - POINT + 1]
        length = sqrt(dx * dx + dy * dy)
        if not length > 1e-9:
            if smooth == 0:
                points[at - POINT + 2] = f64(0)
            return count
        points[at - POINT + 3], points[at - POINT + 4] = dx / length, dy / length
        points[at - POINT + 5] = length
    points[at], points[at + 1], points[at + 2] = x, y, smooth
    return count + 1


@native(inline=False)
def add_curve(
    pen: Pen, style: Style, points: Array[f64], count: i64, ax: f64, ay: f64, bx: f64, by: f64,
    cx: f64, cy: f64, dx: f64, dy: f64,
) -> i64:  # fmt: skip
    """Add a cubic curve from a to d to a line, as points; return the number of points."""
    ux, uy, vx, vy = ax - 2 * bx + cx, ay - 2 * by + cy, bx - 2 * cx + dx, by - 2 * cy + dy
    bend = sqrt(max(ux * ux + uy * uy, vx * vx + vy * vy))
    n = pieces(bend * 0.75, style.tolerance)
    if n > 1:  # the outer side of a wide line has longer pieces
        n = max(n, 1 + pieces(style.half, style.tolerance))
    step = 1 / f64(n)
    for k in serial(1, n):
        t = f64(k) * step
        s = 1 - t
        p, q, r, w = s * s * s, 3 * (s * s * t), 3 * (s * t * t), t * t * t
        x, y = (p * ax + q * bx) + (r * cx + w * dx), (p * ay + q * by) + (r * cy + w * dy)
        count = add_point(pen, points, count, x, y, f64(1))
    return i64(add_point(pen, points, count, dx, dy, f64(0)))


@native(inline=False)
def end_line(
    pen: Pen, edges: Array[i32], style: Style, points: Array[f64], count: i64, closed: bool,
    dash: Array[f64], dashes: i64, offset: f64,
) -> None:  # fmt: skip
    """Add the outline of a finished line, or of its dashes."""
    if count == 1:  # without length
        points[3], points[4] = f64(1), f64(0)
    if closed and count > 1:
        last = points[POINT * (count - 1) :]
        dx, dy = points[0] - last[0], points[1] - last[1]
        length = sqrt(dx * dx + dy * dy)
        if not length > 1e-9:
            count -= 1
        else:
            last[3], last[4], last[5] = dx / length, dy / length, length
    if dashes > 0:
        dashed(pen, edges, style, points, count, closed, dash, dashes, offset)
    else:
        outline(pen, edges, style, points, count, closed and count > 1)


@native(inline=False)
def dashed(
    pen: Pen, edges: Array[i32], style: Style, points: Array[f64], count: i64, closed: bool,
    dash: Array[f64], dashes: i64, offset: f64,
) -> None:  # fmt: skip
    """Add the outlines of the dashes of a line. A closed line's last dash joins its first.

    Dashes without length are dots, also at the beginning of a line.
    """
    total = f64(0)
    for k in serial(dashes):
        total += max(f64(0), dash[k])
    if not total > 1e-9 or not total < 1e30:
        outline(pen, edges, style, points, count, closed and count > 1)
        return
    if dashes & 1 != 0:
        total *= 2
    turns = offset / total
    left = (turns - f64(i64(turns))) * total  # converting clamps
    if left < 0:
        left += total
    n = 0
    step = max(f64(0), dash[0])
    while left >= step and n < 2 * dashes and (left > 0 or step > 0 or n & 1 != 0):
        left -= step
        n += 1
        step = max(f64(0), dash[n % dashes])
    left = step - left
    on = n & 1 == 0
    kept = points[POINT * count :]
    first = 0  # the points of the first dash, which a closed line's last one may join
    joins = closed and on
    made = 0
    if on:
        made = add_point(pen, kept, 0, points[0], points[1], f64(0))
        if made == 1:
            kept[3], kept[4] = points[3], points[4]
    segments = count if closed else count - 1
    for i in serial(segments):
        p = points[POINT * i :]
        length, done = p[5], f64(0)
        while left < length - done and pen.full == 0:
            done += left
            x, y = p[0] + p[3] * done, p[1] + p[4] * done
            own = kept[POINT * first :]
            if on:
                made = add_point(pen, own, made, x, y, f64(0))
                if joins:
                    joins = False
                    first = made
                else:
                    outline(pen, edges, style, own, made, False)
                made = 0
            else:
                made = add_point(pen, own, 0, x, y, f64(0))
                if made == 1:
                    own[3], own[4] = p[3], p[4]
            on = not on
            n += 1
            left = max(f64(0), dash[n % dashes])
            pen.dashes += 1
            if pen.dashes > MAX_DASHES:
                pen.full = 2
        left -= length - done
        if on and pen.full == 0 and (i < segments - 1 or not closed):
            q = points[POINT * (i + 1) :]
            made = add_point(pen, kept[POINT * first :], made, q[0], q[1], q[2])
    if pen.full != 0:
        return
    own = kept[POINT * first :]
    if joins:  # no dash ended: the whole line is one
        outline(pen, edges, style, points, count, count > 1)
    elif on and first > 0:
        for k in serial(first):
            made = add_point(
                pen, own, made, kept[POINT * k], kept[POINT * k + 1], kept[POINT * k + 2]
            )
        outline(pen, edges, style, own, made, False)
    else:
        if first > 0:
            outline(pen, edges, style, kept, first, False)
        if on:
            if closed:
                made = add_point(pen, own, made, points[0], points[1], f64(0))
            outline(pen, edges, style, own, made, False)


@native(inline=False)
def stroke_path(
    pen: Pen, edges: Array[i32], points: Array[f64], data: Array[u8], at: i64, width: f64, cap: i64,
    join: i64, miter: f64, offset: f64, dash: Array[f64], dashes: i64,
) -> None:  # fmt: skip
    """Add the outlines of a path, given by its bytes."""
    style = Style(local(f64, static(Style.size)), 0)
    scale = sqrt(pen.a * pen.a + pen.b * pen.b + pen.c * pen.c + pen.d * pen.d)
    style.tolerance = TOLERANCE / min(max(f64(1e-12), scale), f64(1e12))
    style.half, style.limit = abs(width) * 0.5, miter
    style.cap, style.join = f64(cap), f64(join)
    if width == 0:
        area = sqrt(abs(pen.a * pen.d - pen.b * pen.c))
        style.half = 0.5 / max(f64(1e-12), area if area > 0 else scale)
    count = i64(view(data, u32, at)[0])
    verbs = at + 8
    place = verbs + count
    pen.open, pen.dashes = 0, 0
    made = 0
    drawn = False
    x, y = f64(0), f64(0)
    for k in serial(verbs, verbs + count):
        verb = i64(data[k])
        n = select_points(verb)
        p = view(data, f64, place)
        place += 16 * n
        if verb == 0:
            if drawn and pen.full == 0:
                end_line(pen, edges, style, points, made, False, dash, dashes, offset)
            made, drawn = 0, False
            made = add_point(pen, points, 0, p[0], p[1], f64(0))
        elif verb == 1:
            made = add_point(pen, points, made, p[0], p[1], f64(0))
        elif verb == 2:
            made = add_curve(
                pen, style, points, made, x, y,
                x + (p[0] - x) * (2 / 3), y + (p[1] - y) * (2 / 3),
                p[2] + (p[0] - p[2]) * (2 / 3), p[3] + (p[1] - p[3]) * (2 / 3), p[2], p[3],
            )  # fmt: skip
        elif verb == 3:
            made = add_curve(
                pen, style, points, made, x, y, p[0], p[1], p[2], p[3], p[4], p[5]
            )  # fmt: skip
        else:
            if pen.full == 0:
                end_line(pen, edges, style, points, made, True, dash, dashes, offset)
            made, drawn = 0, False
        if verb > 0 and verb < 4:
            drawn = True
        if n > 0:
            x, y = p[2 * n - 2], p[2 * n - 1]
    if drawn and pen.full == 0:
        end_line(pen, edges, style, points, made, False, dash, dashes, offset)
