"""Paths as edges: points are transformed, curves flattened, and lines rounded to fixed point.

The areas of contours that cross inside a pixel cancel or count twice there, so shapes whose edges
cross are drawn in sixteen parts of a pixel.

An edge is four numbers: x0, y0, x1, y1. x has 16 fractional bits and y has 8. Everything up to the
rounding is f64 with operations that are exact by IEEE 754, so that edges are the same everywhere.
"""

from __future__ import annotations

from dala.gpu.compute.engines.cpu.native import *

#: The largest distance in pixels between a curve and the lines that stand for it.
TOLERANCE: Final = 1 / 128
#: Lines that stand for one curve at most.
MAX_LINES: Final = 1024
#: Coordinates beyond this many pixels are clamped; surfaces end before.
GUARD: Final = 30000.0
#: Coordinates are clamped here first, so that products of them are finite.
BIG: Final = 1e15
#: Scale of x and of y. A number plus ROUND has the nearest integer in its low bits.
X_ONE, Y_ONE, ROUND = 65536.0, 256.0, 1.5 * 2**52
#: Lanes 1 to 8 as numbers; lanes after the one before; pairs of two vectors in turn.
_EIGHT: Final = tuple(range(1, 9))
_LATER: Final = (0, 0, 1, 2, 3, 4, 5, 6)
_ZIPPED: Final = tuple(k // 2 + 8 * (k % 2) for k in range(16))

#: Edges of a shape that are compared at most: others count as simple.
MAX_COMPARED: Final = 1024
_GROUP: Final = 8
_PLACES: Final = tuple(range(0, 4 * _GROUP, 4))

_FLOATS: Final = "a b c d e f x y start_x start_y left top right bottom"
_INTEGERS: Final = "count full ix iy near at code draws depth id drawn dashes open part"


class Pen(
    Record,
    fields=dict.fromkeys(_FLOATS.split(), f64) | dict.fromkeys(_INTEGERS.split(), i64),
):
    """The state of a path that is made into edges.

    The matrix, the current and the first point of a contour, and the part of the surface that is
    seen; then the number of edges, whether there was no room, the current point in fixed point and
    whether it is within the guard. Where ``prepare`` stopped and why, and what it found. ``open``:
    whether a contour has begun.
    """


@native
def clean(x: f64) -> f64:
    """Clamp a coordinate; NaN becomes a number."""
    return min(max(f64(-BIG), x), BIG)


@native
def fixed(x: Vector, one: f64) -> Vector:
    """Round coordinates within the guard to fixed point."""
    return i32(bits(i64, x * one + f64(ROUND)))


@native
def put_fixed(pen: Pen, edges: Array[i32], ax: i32, ay: i32, bx: i32, by: i32) -> None:
    """Add an edge, unless it is horizontal."""
    n = 4 * pen.count
    if n + 4 > len(edges):
        pen.full = 1
    elif ay != by:
        edges[n], edges[n + 1], edges[n + 2], edges[n + 3] = ax, ay, bx, by
        pen.count += 1


@native
def put_edge(pen: Pen, edges: Array[i32], x0: f64, y0: f64, x1: f64, y1: f64) -> None:
    """Add an edge whose coordinates are within the guard."""
    put_fixed(pen, edges, fixed(x0, X_ONE), fixed(y0, Y_ONE), fixed(x1, X_ONE), fixed(y1, Y_ONE))


@native(inline=False)
def put_far_edge(pen: Pen, edges: Array[i32], x0: f64, y0: f64, x1: f64, y1: f64) -> None:
    """Add an edge with coordinates beyond the guard, as up to three of the same coverage."""
    x0, y0, x1, y1 = clean(x0), clean(y0), clean(x1), clean(y1)
    down = y0 <= y1
    if not down:
        x0, x1 = x1, x0
        y0, y1 = y1, y0
    low, high = max(y0, -GUARD), min(y1, GUARD)
    if low >= high:
        return
    slope = (x1 - x0) / (y1 - y0)
    first, second = low, low
    if slope != 0:
        first, second = y0 + (-GUARD - x0) / slope, y0 + (GUARD - x0) / slope
    y = low
    for part in static(range(3)):
        end = high
        if part == 0:
            end = min(max(low, min(first, second)), high)
        if part == 1:
            end = min(max(low, max(first, second)), high)
        if end > y:
            a = min(max(-GUARD, x0 + slope * (y - y0)), GUARD)
            b = min(max(-GUARD, x0 + slope * (end - y0)), GUARD)
            if down:
                put_edge(pen, edges, a, y, b, end)
            else:
                put_edge(pen, edges, b, end, a, y)
            y = end


@native
def near(x: f64) -> bool:
    """Return whether a coordinate is within the guard."""
    return bool(abs(x) < GUARD)


@native(inline=False)
def line_to(pen: Pen, edges: Array[i32], x: f64, y: f64) -> None:
    """Add the line from the current point to a point of the surface."""
    if near(x) and near(y):
        ix, iy = fixed(x, X_ONE), fixed(y, Y_ONE)
        if pen.near != 0:
            put_fixed(pen, edges, i32(pen.ix), i32(pen.iy), ix, iy)
        else:
            put_far_edge(pen, edges, pen.x, pen.y, x, y)
        pen.ix, pen.iy, pen.near = i64(ix), i64(iy), 1
    else:
        put_far_edge(pen, edges, pen.x, pen.y, x, y)
        pen.near = 0
    pen.x, pen.y = x, y


@native
def close(pen: Pen, edges: Array[i32]) -> None:
    """Close the contour."""
    line_to(pen, edges, pen.start_x, pen.start_y)


@native
def move_to(pen: Pen, x: f64, y: f64) -> None:
    """Begin a contour."""
    pen.x, pen.y, pen.start_x, pen.start_y = x, y, x, y
    pen.near = 0
    if near(x) and near(y):
        pen.ix, pen.iy, pen.near = i64(fixed(x, X_ONE)), i64(fixed(y, Y_ONE)), 1


@native
def pieces(bend: f64, tolerance: f64) -> i64:
    """Return into how many lines a curve is divided, from its second difference."""
    return 1 + i64(
        in_range(i64, sqrt(min(max(f64(0), bend / tolerance), f64(MAX_LINES * MAX_LINES - 1))))
    )


@native(inline=False)
def curve_to(
    pen: Pen, edges: Array[i32], bx: f64, by: f64, cx: f64, cy: f64, dx: f64, dy: f64
) -> None:
    """Add a cubic curve from the current point, with coordinates of the surface."""
    ax, ay = pen.x, pen.y
    ux, uy, vx, vy = ax - 2 * bx + cx, ay - 2 * by + cy, bx - 2 * cx + dx, by - 2 * cy + dy
    bend = sqrt(max(ux * ux + uy * uy, vx * vx + vy * vy))
    n = pieces(bend * 0.75, f64(TOLERANCE))
    low, high = min(min(ax, bx), min(cx, dx)), max(max(ax, bx), max(cx, dx))
    top, bottom = min(min(ay, by), min(cy, dy)), max(max(ay, by), max(cy, dy))
    if bottom < pen.top or top > pen.bottom or low > pen.right or high < pen.left:
        n = 1  # its form cannot be seen
    step = 1 / f64(n)
    if pen.near != 0 and near(low) and near(high) and near(top) and near(bottom):
        put_curve(pen, edges, n, step, bx, by, cx, cy, dx, dy)
        return
    for k in serial(1, n):
        t = f64(k) * step
        line_to(pen, edges, curve_at(t, step, ax, bx, cx, dx), curve_at(t, step, ay, by, cy, dy))
    line_to(pen, edges, dx, dy)


@native
def curve_at(t: Vector, step: f64, a: f64, b: f64, c: f64, d: f64) -> Vector:
    """Return a coordinate of corners of the lines that stand for a curve.

    Corners are as far outside as the lines' middles are inside of it: half of the distance of a
    chord, which is an eighth of the second derivative times the square of a step.
    """
    s = 1 - t
    bend = s * (a - 2 * b + c) + t * (b - 2 * c + d)
    point = (s * s * s * a + 3 * (s * s * t) * b) + (3 * (s * t * t) * c + t * t * t * d)
    return point - 0.375 * step * step * bend


@native
def packed(x: Vector, y: Vector) -> Vector:
    """Return points as one number each."""
    return (u64(u32(y)) << 32) | u64(u32(x))


@native
def put_curve(
    pen: Pen, edges: Array[i32], n: i64, step: f64, bx: f64, by: f64, cx: f64, cy: f64, dx: f64,
    dy: f64,
) -> None:  # fmt: skip
    """Add a curve within the guard as n lines, eight at a time."""
    pairs = view(edges, u64, 0)
    at = 2 * pen.count
    if at + 2 * n > len(pairs):
        pen.full = 1
        return
    last = packed(pen.ix, pen.iy)
    ax, ay = pen.x, pen.y
    ix, iy = fixed(dx, X_ONE), fixed(dy, Y_ONE)
    end = packed(ix, iy)
    for k in serial(0, n, 8):
        t = (load(table(f64, _EIGHT), 0, 8) + f64(k)) * step
        x = fixed(curve_at(t, step, ax, bx, cx, dx), X_ONE)
        y = fixed(curve_at(t, step, ay, by, cy, dy), Y_ONE)
        next = packed(x, y)
        both = shuffle(insert(shuffle(next, next, _LATER), 0, last), next, _ZIPPED)
        store(pairs, at + 2 * k, both, 2 * (n - k))
        last = next[7]
    pairs[at + 2 * n - 1] = end
    pen.count += n
    pen.x, pen.y, pen.ix, pen.iy = dx, dy, i64(ix), i64(iy)


@native(inline=False)
def fill_path(pen: Pen, edges: Array[i32], data: Array[u8], at: i64) -> None:
    """Add the edges of a path, given by its bytes; open contours are closed."""
    count = i64(view(data, u32, at)[0])
    verbs = at + 8
    place = verbs + count
    a, b, c, d, e, f = pen.a, pen.b, pen.c, pen.d, pen.e, pen.f
    open = False
    for k in serial(verbs, verbs + count):
        verb = i64(data[k])
        n = select_points(verb)
        points = view(data, f64, place)
        place += 16 * n
        x0, y0, x1, y1, x2, y2 = f64(0), f64(0), f64(0), f64(0), f64(0), f64(0)
        if n > 0:
            x0, y0 = a * points[0] + c * points[1] + e, b * points[0] + d * points[1] + f
        if n > 1:
            x1, y1 = a * points[2] + c * points[3] + e, b * points[2] + d * points[3] + f
        if n > 2:
            x2, y2 = a * points[4] + c * points[5] + e, b * points[4] + d * points[5] + f
        if verb == 0:
            if open:
                close(pen, edges)
            move_to(pen, x0, y0)
            open = True
        elif verb == 1:
            line_to(pen, edges, x0, y0)
        elif verb == 2:
            px, py = pen.x, pen.y
            curve_to(
                pen, edges,
                px + (x0 - px) * (2 / 3), py + (y0 - py) * (2 / 3),
                x1 + (x0 - x1) * (2 / 3), y1 + (y0 - y1) * (2 / 3), x1, y1,
            )  # fmt: skip
        elif verb == 3:
            curve_to(pen, edges, x0, y0, x1, y1, x2, y2)
        else:
            close(pen, edges)
            open = False
    if open:
        close(pen, edges)


@native
def select_points(verb: i64) -> i64:
    """Return the number of points of a verb: 1, 1, 2, 3, 0."""
    return (0x03211 >> (4 * verb)) & 15


# crossings ------------------------------------------------------------------------------------
@native
def turns(edges: Array[i32], first: i64, count: i64) -> i64:
    """Return how often edges turn from down to up, or from left to right, or back."""
    found, across, down = 0, 0, 0
    for n in serial(first, first + count):
        dx, dy = edges[4 * n + 2] - edges[4 * n], edges[4 * n + 3] - edges[4 * n + 1]
        found += i64(dx > 0 and across < 0) + i64(dx < 0 and across > 0)
        found += i64(dy > 0 and down < 0) + i64(dy < 0 and down > 0)
        across = i64(dx) if dx != 0 else across
        down = i64(dy) if dy != 0 else down
    return found


@native
def side(ax: Vector, ay: Vector, bx: Vector, by: Vector, x: Vector, y: Vector) -> Vector:
    """Return on which side of a line points are."""
    return (bx - ax) * (y - ay) - (by - ay) * (x - ax)


@native(inline=False)
def cross(edges: Array[i32], p: i64, q: i64, last: i64) -> bool:
    """Return whether one of eight edges crosses one of eight others."""
    places = load(table(i32, _PLACES), 0, 8)
    group = edges[4 * q :]
    ax, ay = f64(gather(group, places)), f64(gather(group, places + 1))
    bx, by = f64(gather(group, places + 2)), f64(gather(group, places + 3))
    for n in serial(p, min(p + static(_GROUP), last)):
        x0, y0 = f64(edges[4 * n]), f64(edges[4 * n + 1])
        x1, y1 = f64(edges[4 * n + 2]), f64(edges[4 * n + 3])
        ours = side(ax, ay, bx, by, x0, y0) * side(ax, ay, bx, by, x1, y1)
        theirs = side(x0, y0, x1, y1, ax, ay) * side(x0, y0, x1, y1, bx, by)
        if any_of((ours < 0) & (theirs < 0)):
            return True
    return False


@native(inline=False)
def crosses(edges: Array[i32], first: i64, count: i64) -> bool:
    """Return whether edges of a shape cross each other."""
    last = first + count
    if count > MAX_COMPARED or 4 * last + 4 * static(_GROUP) > len(edges):
        return False
    if turns(edges, first, count) <= 4:
        return False
    boxes = local(i32, static(4 * MAX_COMPARED // _GROUP))
    groups = (count + static(_GROUP - 1)) // static(_GROUP)
    for k in serial(4 * last, 4 * (first + static(_GROUP) * groups)):
        edges[k] = 0  # the last group is whole
    for g in serial(groups):
        at = first + static(_GROUP) * g
        low, high = splat(i32(2**31 - 1), 4), splat(i32(-(2**31)), 4)
        for n in serial(at, min(at + static(_GROUP), last)):
            edge = load(edges, 4 * n, 4)
            low, high = min(low, edge), max(high, edge)
        boxes[4 * g], boxes[4 * g + 1] = min(low[0], low[2]), min(low[1], low[3])
        boxes[4 * g + 2], boxes[4 * g + 3] = max(high[0], high[2]), max(high[1], high[3])
        for h in serial(g + 1):
            apart = boxes[4 * h] > boxes[4 * g + 2] or boxes[4 * h + 2] < boxes[4 * g]
            above = boxes[4 * h + 1] > boxes[4 * g + 3] or boxes[4 * h + 3] < boxes[4 * g + 1]
            if not apart and not above and cross(edges, first + static(_GROUP) * h, at, last):
                return True
    return False
