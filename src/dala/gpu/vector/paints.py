"""The colors of paints, sixteen pixels at a time.

A paint is words: HEAD of them, then the colors of a gradient at TABLE places, or the pixels of a
pattern and of its smaller levels. A matrix maps the coordinates of paths to those of the paint: a
linear gradient is u, a radial one the distance from (0, 0), a conic one the angle, and a pattern
has its pixels there. Positions are f64 of the pixel's own center, so that no division into bands
and blocks changes them.
"""

from __future__ import annotations

from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.pixels.over import OPAQUE, divide_near
from dala.gpu.vector.edges import Pen

#: The kinds of paints, and what is outside of a gradient or pattern.
LINEAR, RADIAL, CONIC, PATTERN = range(4)
PAD, REPEAT, REFLECT = range(3)
#: The colors of a gradient.
TABLE: Final = 1024
#: The words before colors: kind, spread, width, height, levels, nearest, opaque, whether a gradient
#: is dithered, the six f64 of the matrix, and from LEVELS on where each level begins.
HEAD: Final = 40
DITHERED, MATRIX, LEVELS = 7, 8, 20
MAX_LEVELS: Final = HEAD - LEVELS
_LANES: Final = tuple(k + 0.5 for k in range(16))
_NUMBERS: Final = tuple(range(16))


def _bayer(x: int, y: int) -> int:
    """Return the threshold of a pixel in parts of 256: each of 64 values once in a square."""
    bits = (((x ^ y) >> k & 1) << 1 | (y >> k & 1) for k in (2, 1, 0))
    return sum(bit << 2 * n for n, bit in enumerate(bits)) * 4 + 2


_BAYER: Final = tuple(_bayer(x, y) for y in range(8) for x in range(8))
#: A polynomial of the arc tangent, in turns; it is 2 millionths off at most.
_ATAN: Final = tuple(
    c / 6.283185307179586 for c in (0.0208351, -0.0851330, 0.1801410, -0.3302995, 0.9998660)
)

_INTEGERS: Final = "kind first count x0 y0 x1 y1 evenodd color paint from_x from_y level fine"
_FLOATS: Final = "a b c d e f"


class Inking(
    Record, fields=dict.fromkeys(_INTEGERS.split(), i64) | dict.fromkeys(_FLOATS.split(), f64)
):
    """A shape to draw: its edges, its visible bounds, its rule and its paint.

    ``paint`` is the first word of a paint, or -1 for the color; then the matrix maps pixels to its
    coordinates, and ``level`` is that of a pattern. What is MASKED is coverage instead of edges:
    ``first`` is its first word, ``count`` its width, and ``from_x``, ``from_y`` its corner. A shape
    that crosses itself is ``fine``.
    """


@native
def kept(x: f64) -> f64:
    """Clamp a number of a matrix."""
    return min(max(f64(-1e30), x), f64(1e30))


@native(inline=False)
def place_paint(words: Array[u32], at: i64, draw: Inking, pen: Pen) -> None:
    """Compute the matrix from pixels to a paint, and the level of a pattern."""
    m = view(words, f64, 4 * (at + MATRIX))
    det = pen.a * pen.d - pen.b * pen.c
    scale = 1 / det if det != 0 else f64(0)
    a, b = kept(pen.d * scale), kept(-pen.b * scale)
    c, d = kept(-pen.c * scale), kept(pen.a * scale)
    e, f = kept(-(a * pen.e + c * pen.f)), kept(-(b * pen.e + d * pen.f))
    draw.a, draw.b = kept(m[0] * a + m[2] * b), kept(m[1] * a + m[3] * b)
    draw.c, draw.d = kept(m[0] * c + m[2] * d), kept(m[1] * c + m[3] * d)
    draw.e, draw.f = kept(m[0] * e + m[2] * f + m[4]), kept(m[1] * e + m[3] * f + m[5])
    draw.level = 0
    area = abs(draw.a * draw.d - draw.b * draw.c)
    while area >= 2 and draw.level < i64(words[at + 4]) - 1:  # 1.41 texels a pixel, or more
        area *= 0.25
        draw.level += 1


@native
def floored(x: Vector) -> Vector:
    """Round numbers of a moderate size down."""
    k = f64(in_range(i32, x))
    return select(k > x, k - 1, k)


@native
def spread_of(t: Vector, mode: i64, period: f64) -> Vector:
    """Return positions between 0 and a period."""
    t = min(max(t, -1e6 * period), 1e6 * period)
    found = min(max(t, 0), period)
    if mode == REPEAT:
        t = t / period
        found = (t - floored(t)) * period
    elif mode == REFLECT:
        t = t / (2 * period)
        t = 2 * (t - floored(t))
        found = min(t, 2 - t) * period
    return found


@native(inline=False)
def turns(u: Vector, v: Vector) -> Vector:
    """Return the angles of points in turns, from the x axis."""
    across, down = max(u, 0 - u), max(v, 0 - v)
    z = min(across, down) / max(max(across, down), 1e-300)
    square = z * z
    p = splat(f64(0), 16)
    for c in static(_ATAN):
        p = p * square + c
    angle = p * z
    angle = select(down > across, 0.25 - angle, angle)
    angle = select(u < 0, 0.5 - angle, angle)
    return select(v < 0, 1 - angle, angle)


@native(inline=False)
def paint_pixels(words: Array[u32], draw: Inking, x: i64, y: i64) -> Vector:
    """Return the straight colors of a paint at sixteen pixels from (x, y) on."""
    at = draw.paint
    kind, mode = i64(words[at]), i64(words[at + 1])
    px, py = load(table(f64, _LANES), 0, 16) + f64(x), f64(y) + 0.5
    u = px * draw.a + (draw.c * py + draw.e)
    if kind == PATTERN:
        v = px * draw.b + (draw.d * py + draw.f)
        return pattern_pixels(words, at, draw.level, mode, u, v)
    if kind == RADIAL:
        v = px * draw.b + (draw.d * py + draw.f)
        u = sqrt(u * u + v * v)
    elif kind == CONIC:
        u = turns(u, px * draw.b + (draw.d * py + draw.f))
    place = in_range(i32, spread_of(u, mode, f64(1)) * f64(TABLE - 1) + 0.5)
    if words[at + DITHERED] != 0:
        return dithered(words[at + HEAD :], place, x, y)
    return gather(words[at + HEAD :], place)


@native(inline=False)
def dithered(colors: Array[u32], place: Vector, x: i64, y: i64) -> Vector:
    """Return fine colors rounded by an ordered pattern of eight by eight pixels."""
    lanes = load(table(i32, _NUMBERS), 0, 16) + i32(x)
    lift = gather(table(u32, _BAYER), (lanes & 7) + i32(8 * (y & 7)))
    low, high = gather(colors, place), gather(colors, place + TABLE)
    red, green = ((low & 0xFFFF) + lift) >> 8, ((low >> 16) + lift) >> 8
    blue, alpha = ((high & 0xFFFF) + lift) >> 8, ((high >> 16) + lift) >> 8
    return red | (green << 8) | (blue << 16) | (alpha << 24)


@native
def half_before(x: Vector, size: i64, mode: i64) -> Vector:
    """Return places of an axis in 256 parts, from the center of the first texel."""
    return in_range(i32, (spread_of(x, mode, f64(size)) + 1) * 256) - 384


@native
def texel(n: Vector, size: i64, mode: i64) -> Vector:
    """Return the texels of an axis that stand for numbers from -1 to its size."""
    last = i32(size) - 1
    if mode == REPEAT:
        n = select(n < 0, last, select(n > last, i32(0), n))
    return min(max(n, 0), last)


@native(inline=False)
def pattern_pixels(
    words: Array[u32], at: i64, level: i64, mode: i64, u: Vector, v: Vector
) -> Vector:
    """Return sixteen pixels of a pattern at places of its largest level."""
    w, h = i64(words[at + 2]), i64(words[at + 3])
    wide, tall = max(w >> level, 1), max(h >> level, 1)
    image = words[at + HEAD + i64(words[at + LEVELS + level]) :]
    u, v = u * (f64(wide) / f64(w)), v * (f64(tall) / f64(h))
    if words[at + 5] != 0:
        column = in_range(i32, spread_of(u, mode, f64(wide)))
        row = in_range(i32, spread_of(v, mode, f64(tall)))
        return gather(image, min(row, i32(tall - 1)) * i32(wide) + min(column, i32(wide - 1)))
    across, down = half_before(u, wide, mode), half_before(v, tall, mode)
    left, right = texel(across >> 8, wide, mode), texel((across >> 8) + 1, wide, mode)
    top = texel(down >> 8, tall, mode) * i32(wide)
    bottom = texel((down >> 8) + 1, tall, mode) * i32(wide)
    fx, fy = u32(across & 255), u32(down & 255)
    p, q = gather(image, top + left), gather(image, top + right)
    r, s = gather(image, bottom + left), gather(image, bottom + right)
    wp, wq = (256 - fx) * (256 - fy), fx * (256 - fy)
    wr, ws = (256 - fx) * fy, fx * fy
    if words[at + 6] != 0:
        out = splat(u32(OPAQUE), 16)
        for shift in static((0, 8, 16)):
            sum = ((p >> shift) & 255) * wp + ((q >> shift) & 255) * wq + 32768
            sum += ((r >> shift) & 255) * wr + ((s >> shift) & 255) * ws
            out |= (sum >> 16) << shift
        return out
    wp, wq, wr, ws = wp * (p >> 24), wq * (q >> 24), wr * (r >> 24), ws * (s >> 24)
    total = wp + wq + wr + ws
    out = ((total + 32768) >> 16) << 24
    # Weights are divided by 4: sums and their halves then fit.
    wp, wq, wr, ws = wp >> 2, wq >> 2, wr >> 2, ws >> 2
    part = max(wp + wq + wr + ws, 1)
    inverse = 2 / f32(i32(part))
    for shift in static((0, 8, 16)):
        sum = ((p >> shift) & 255) * wp + ((q >> shift) & 255) * wq + (part >> 1)
        sum += ((r >> shift) & 255) * wr + ((s >> shift) & 255) * ws
        out |= divide_near(sum, part, f32(i32(sum >> 1)) * inverse) << shift
    return out
