"""Rows of coverage by exact area, painted on pixels.

A cell holds how much the coverage changes from the pixel before: the running sum over a row is the
signed area of the pixel that lies inside, FULL where all of it does. Only blocks of sixteen cells
that an edge has touched are looked at; between them the coverage is constant.
"""

from __future__ import annotations

from typing import NamedTuple

from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.pixels.over import OPAQUE, fill_row, over_any, over_opaque
from dala.gpu.vector.paints import Inking, paint_pixels

#: A pixel that is covered once: 256 fractions of its height times 512.
FULL: Final = 1 << 17
#: Cells of a strip of rows at most, and for shapes with few edges.
CELLS: Final = 1 << 16
FEW_CELLS: Final = 1 << 13
#: Lanes of sixteen zeros and sixteen numbers that shift the numbers by 1, 2, 4 and 8 lanes.
_SHIFTED: Final = tuple(
    tuple(16 + k - step if k >= step else 0 for k in range(16)) for step in (1, 2, 4, 8)
)

#: The right sides of eight pixels, their numbers, and the lane before each of eight.
_SIDES: Final = tuple(range(65536, 8 * 65536 + 1, 65536))
_EIGHT: Final = tuple(range(8))
_BEFORE: Final = (0, *range(8, 15))
_EVEN: Final = tuple(range(0, 32, 2))
_ODD: Final = tuple(range(1, 32, 2))
#: Cells after those of a strip, which the last edges of a row add nothing to.
PAST: Final = 8


@native
def touch(cells: Array[i32], marks: Array[u8], row: i64, i: i64, value: i64) -> None:
    """Add to a cell, and mark its block."""
    cells[row + i] += i32(value)
    marks[(row + i) >> 4] = 1


@native(inline=False)
def wide_edge(
    cells: Array[i32], marks: Array[u8], row: i64, width: i64, low: i64, high: i64, tall: i64,
    sign: i64,
) -> None:  # fmt: skip
    """Add a part of an edge that crosses several pixels of a row, from x low to high.

    The area left of x grows with the square of x: cells get its second differences.
    """
    scale = f64(tall * 256) / (f64(high - low) * 65536.0)
    first, last = low >> 16, high >> 16
    full = tall * 512 * (last + 1) - ((tall * (low + high) + 128) >> 8)
    before, area = i64(0), i64(0)
    i = max(first, 0)
    if i > first:
        t = f64((i << 16) - low)
        area = in_range(i64, t * t * scale + 0.5)
    while i <= last and i < width:
        after = full
        if i < last:
            t = f64(((i + 1) << 16) - low)
            after = in_range(i64, t * t * scale + 0.5)
        share = after - area
        touch(cells, marks, row, i, sign * (share - before))
        area, before = after, share
        i += 1
    if last < width:
        touch(cells, marks, row, last + 1, sign * (tall * 512 - before))


@native
def narrow_edge(
    cells: Array[i32], marks: Array[u8], row: i64, width: i64, low: i64, high: i64, tall: i64,
    scale: f32, sign: i64,
) -> None:  # fmt: skip
    """Add a part of an edge that crosses up to seven pixels of a row, from x low to high.

    A lane is the area left of x up to the right side of a pixel: it grows with the square of x
    within the part, and steadily beyond.
    """
    i = (low >> 16) & ~3
    low, high = low - (i << 16), high - (i << 16)
    side = load(table(i32, _SIDES), 0, 8)
    t = f32(max(min(side, i32(high)) - i32(low), 0))
    area = in_range(i32, t * t * scale + 0.5)
    area = select(
        side < i32(high), area, (i32(tall) * (2 * side - i32(low + high)) + 128) >> 8
    )  # fmt: skip
    zero = splat(i32(0), 8)
    share = area - shuffle(zero, area, _BEFORE)
    change = share - shuffle(zero, share, _BEFORE)
    seen = load(table(i32, _EIGHT), 0, 8) <= i32(width - i)
    change = select(seen, (change ^ i32(sign)) - i32(sign), zero)
    at = row + i
    store(cells, at, load(cells, at, 8) + change)
    marks[(at + (low >> 16)) >> 4] = 1
    marks[(at + min((high >> 16) + 1, width - i)) >> 4] = 1


@native
def add_edge(
    cells: Array[i32], marks: Array[u8], stride: i64, left: i64, width: i64, top: i64, bottom: i64,
    edges: Array[i32], n: i64,
    *, fine: int,
) -> None:  # fmt: skip
    """Add an edge to a strip: the rows from top to bottom, ``width`` pixels from ``left`` on.

    Places on an edge are whole numbers: they are the same from whatever row on it is added.
    With ``fine``, pixels are parts of pixels, as many to a side as that power of two.
    """
    shift = left << 16
    x0, y0 = (i64(edges[4 * n]) << fine) - shift, i64(edges[4 * n + 1]) << fine
    x1, y1 = (i64(edges[4 * n + 2]) << fine) - shift, i64(edges[4 * n + 3]) << fine
    down = y0 <= y1
    sign = select(down, i64(0), i64(-1))
    xs, ys = select(down, x0, x1), select(down, y0, y1)
    dx, dy = select(down, x1 - x0, x0 - x1), abs(y1 - y0)
    y, last = max(ys, top << 8), min(ys + dy, bottom << 8)
    if y >= last or (x0 >= width << 16 and x1 >= width << 16):
        return
    slope = f64(dx) / f64(dy)
    step = in_range(i64, slope * 16777216)
    scale = f32(1 / (256 * max(abs(slope), f64(1))))
    x = xs + (((y - ys) * step + 8388608) >> 24)
    row = ((y >> 8) - top) * stride
    while y < last:
        below = min((y | 255) + 1, last)
        after = xs + (((below - ys) * step + 8388608) >> 24)
        tall = below - y
        low, high = min(x, after), max(x, after)
        i = low >> 16
        if i >= 0 and i < width and high - ((i & ~3) << 16) < 7 << 16:
            narrow_edge(cells, marks, row, width, low, high, tall, scale, sign)
        elif high < 0:
            touch(cells, marks, row, 0, (2 * sign + 1) * (tall * 512))
        elif i < width:
            wide_edge(cells, marks, row, width, low, high, tall, 2 * sign + 1)
        x, y = after, below
        row += stride


@native
def inside(sum: Vector, evenodd: bool) -> Vector:
    """Return the area inside, up to FULL, for a running sum of cells."""
    if evenodd:
        sum = sum & (2 * FULL - 1)
        sum = min(sum, 2 * FULL - sum)
    else:
        sum = min(max(sum, 0 - sum), FULL)
    return sum


@native
def covered(sum: Vector, evenodd: bool) -> Vector:
    """Return the coverage of 0 to 255 for a running sum of cells."""
    return (inside(sum, evenodd) * 255 + FULL // 2) >> 17


@native
def fours(a: Vector, b: Vector, c: Vector, d: Vector) -> Vector:
    """Return the sums of each four lanes of four vectors of sixteen."""
    p = shuffle(a, b, _EVEN) + shuffle(a, b, _ODD)
    q = shuffle(c, d, _EVEN) + shuffle(c, d, _ODD)
    return shuffle(p, q, _EVEN) + shuffle(p, q, _ODD)


@native
def running_sums(v: Vector) -> Vector:
    """Return the sums of the first lanes of sixteen, for each lane."""
    zero = splat(i32(0), 16)
    for lanes in static(_SHIFTED):
        v = v + shuffle(zero, v, lanes)
    return v


# rows ------------------------------------------------------------------------------------------
#: Edges from which on strips are as tall as cells allow.
MANY_EDGES: Final = 256


_LANES: Final = tuple(range(16))

#: Parts of a side of a pixel of shapes that cross themselves, and pixels that are drawn together.
FINE: Final = 4
FINE_PIXELS: Final = 2048
#: The kinds of draws.
SHAPE, MASKED = 0, 1


class Paper(NamedTuple):
    """The target of shapes, and the arrays that they are drawn with."""

    pixels: Array[u32]
    width: i64
    #: Coverage of the clip, one byte for each pixel; empty without one.
    clip: Array[u8]
    #: Paths, masks and paints.
    words: Array[u32]
    #: Cells and marks of one strip, all zero.
    cells: Array[i32]
    marks: Array[u8]


@native
def scaled_alpha(a: Vector, c: Vector) -> Vector:
    """Return alphas times coverage, both of 0 to 255, rounded."""
    t = a * c + 128
    return (t + (t >> 8)) >> 8


@native
def blend_some(pixels: Array[u32], at: i64, n: i64, s: Vector, c: Vector) -> None:
    """Composite up to sixteen pixels with a coverage."""
    s = (s & 0xFFFFFF) | (scaled_alpha(s >> 24, c) << 24)
    if n == 16:
        d = load(pixels, at, 16)
        if all_of(d >= OPAQUE):
            store(pixels, at, over_opaque(d, s))
        else:
            store(pixels, at, over_any(d, s))
    else:
        store(pixels, at, over_any(load(pixels, at, 16, n), s), n)


@native(inline=False)
def blend_few(pixels: Array[u32], at: i64, n: i64, s: Vector) -> None:
    """Composite up to sixteen pixels over any others."""
    store(pixels, at, over_any(load(pixels, at, 16, n), s), n)


@native
def blend_whole(pixels: Array[u32], at: i64, s: Vector) -> None:
    """Composite sixteen pixels."""
    d = load(pixels, at, 16)
    if all_of(d >= OPAQUE):
        store(pixels, at, over_opaque(d, s))
    else:
        blend_few(pixels, at, 16, s)


@native
def blend_flat(pixels: Array[u32], at: i64, count: i64, color: u32) -> None:
    """Composite pixels of one color."""
    if color >= OPAQUE:
        fill_row(pixels, at, count, color)
        return
    s = splat(color, 16)
    for k in serial(0, count - 15, 16):
        blend_whole(pixels, at + k, s)
    if count & 15 != 0:
        blend_few(pixels, at + (count & ~15), count & 15, s)


@native(inline=False)
def blend_painted(on: Paper, draw: Inking, x: i64, y: i64, n: i64, c: Vector) -> None:
    """Composite a paint over up to sixteen pixels from (x, y) on, within the clip."""
    at = y * on.width + x
    if len(on.clip) > 0:
        c = scaled_alpha(u32(load(on.clip, at, 16, n)), c)
    s = splat(u32(draw.color), 16)
    if draw.paint >= 0:
        s = paint_pixels(on.words, draw, x, y)
    blend_some(on.pixels, at, n, s, c)


@native
def sweep(
    on: Paper, draw: Inking, left: i64, width: i64, row: i64, y: i64, *, plain: bool
) -> None:  # fmt: skip
    """Paint a row of a strip, from its cells on; the cells are zero afterwards."""
    color = u32(draw.color)
    evenodd = draw.evenodd != 0
    at = y * on.width + left
    sum: i32 = 0
    lanes = load(table(i32, _LANES), 0, 16)
    block, blocks = 0, (width + 16) >> 4
    first = row >> 4
    while block < blocks:
        x = 16 * block
        if on.marks[first + block] != 0:
            on.marks[first + block] = 0
            v = running_sums(load(on.cells, row + x, 16)) + sum
            store(on.cells, row + x, splat(i32(0), 16))
            sum = v[15]
            block += 1
            n = min(width - x, 16)
            if n > 0:
                if plain:
                    alphas = scaled_alpha(splat(color >> 24, 16), u32(covered(v, evenodd)))
                    s = (alphas << 24) | (color & 0xFFFFFF)
                    if left + x + 16 <= on.width:
                        blend_whole(on.pixels, at + x, select(lanes < i32(n), s, u32(0)))
                    else:
                        blend_few(on.pixels, at + x, n, s)
                else:
                    blend_painted(on, draw, left + x, y, n, u32(covered(v, evenodd)))
        else:
            block += 1
            while block < blocks and on.marks[first + block] == 0:
                block += 1
            n = min(16 * block, width) - x
            c = u32(covered(sum, evenodd))
            if c > 0 and n > 0:
                if plain:
                    alpha = scaled_alpha(color >> 24, c)
                    if alpha > 0:
                        blend_flat(on.pixels, at + x, n, (color & 0xFFFFFF) | (alpha << 24))
                else:
                    for k in serial(0, n, 16):
                        blend_painted(on, draw, left + x + k, y, min(n - k, 16), splat(c, 16))


@native(inline=False)
def sweep_rows(
    on: Paper, draw: Inking, stride: i64, top: i64, bottom: i64, *, plain: bool
) -> None:  # fmt: skip
    """Paint the rows of a strip."""
    left, width = draw.x0, draw.x1 - draw.x0
    for y in serial(top, bottom):
        sweep(on, draw, left, width, (y - top) * stride, y, plain=plain)


@native(inline=False)
def fill_edges(on: Paper, draw: Inking, edges: Array[i32], top: i64, bottom: i64) -> None:
    """Draw the rows from top to bottom of a shape."""
    left, width = draw.x0, draw.x1 - draw.x0
    stride = (width + 16) & ~15
    cells = CELLS if draw.count > MANY_EDGES else FEW_CELLS
    rows = max(1, (cells - PAST) // stride)
    plain = draw.paint < 0 and len(on.clip) == 0
    first, last = draw.first, draw.first + draw.count
    for y in serial(top, bottom, rows):
        below = min(y + rows, bottom)
        for n in serial(first, last):
            add_edge(on.cells, on.marks, stride, left, width, y, below, edges, n, fine=0)
        if plain:
            sweep_rows(on, draw, stride, y, below, plain=True)
        else:
            sweep_rows(on, draw, stride, y, below, plain=False)


@native
def sweep_fine(on: Paper, draw: Inking, row: i64, stride: i64, left: i64, n: i64, y: i64) -> None:
    """Paint n pixels of a row from four rows of cells, four to a pixel."""
    sums = local(i32, FINE)
    for k in static(range(FINE)):
        sums[k] = 0
    for x in serial(0, stride // FINE, 16):
        area = splat(i32(0), 16)
        for k in static(range(FINE)):
            at = row + k * stride + FINE * x
            a = take(on, at, sums[k])
            b = take(on, at + 16, a[15])
            c = take(on, at + 32, b[15])
            d = take(on, at + 48, c[15])
            sums[k] = d[15]
            odd = draw.evenodd != 0
            area += fours(inside(a, odd), inside(b, odd), inside(c, odd), inside(d, odd))
        if x < n:
            cover = u32((area * 255 + 8 * FULL) >> 21)
            blend_painted(on, draw, left + x, y, min(n - x, 16), cover)


@native
def take(on: Paper, at: i64, sum: i32) -> Vector:
    """Return the running sums of sixteen cells, which are zero afterwards."""
    v = running_sums(load(on.cells, at, 16)) + sum
    store(on.cells, at, splat(i32(0), 16))
    on.marks[at >> 4] = 0
    return v


@native(inline=False)
def fill_fine(on: Paper, draw: Inking, edges: Array[i32], top: i64, bottom: i64) -> None:
    """Draw the rows from top to bottom of a shape that crosses itself."""
    for left in serial(draw.x0, draw.x1, FINE_PIXELS):
        width = min(draw.x1 - left, FINE_PIXELS)
        stride = (FINE * width + 64) & ~63
        rows = (CELLS - PAST) // (FINE * stride)
        for y in serial(top, bottom, rows):
            below = min(y + rows, bottom)
            for n in serial(draw.first, draw.first + draw.count):
                add_edge(
                    on.cells, on.marks, stride, FINE * left, FINE * width, FINE * y, FINE * below,
                    edges, n, fine=2,
                )  # fmt: skip
            for line in serial(y, below):
                sweep_fine(on, draw, FINE * (line - y) * stride, stride, left, width, line)


@native
def fill_mask(on: Paper, draw: Inking, top: i64, bottom: i64) -> None:
    """Draw the rows from top to bottom of a mask."""
    bytes = view(on.words, u8, 4 * draw.first)
    for y in serial(top, bottom):
        row = (y - draw.from_y) * draw.count - draw.from_x
        for x in serial(draw.x0, draw.x1, 16):
            n = min(draw.x1 - x, 16)
            c = u32(load(bytes, row + x, 16, n))
            if any_of(c > 0):
                blend_painted(on, draw, x, y, n, c)


@native(inline=False)
def clip_row(
    on: Paper, draw: Inking, row: i64, y: i64, before: Array[u8], after: Array[u8]
) -> None:
    """Multiply the coverage of a row of a strip with that of a clip; the cells are zero then."""
    left, width = draw.x0, draw.x1 - draw.x0
    at, sum = y * on.width + left, i32(0)
    for x in serial(0, (width + 16) & ~15, 16):
        on.marks[(row + x) >> 4] = 0
        v = running_sums(load(on.cells, row + x, 16)) + sum
        store(on.cells, row + x, splat(i32(0), 16))
        sum = v[15]
        n = min(width - x, 16)
        if n > 0:
            c = u32(covered(v, draw.evenodd != 0))
            if len(before) > 0:
                c = scaled_alpha(u32(load(before, at + x, 16, n)), c)
            store(after, at + x, u8(c), n)


@native
def clip_bands(
    before: Array[u8], after: Array[u8], edges: Array[i32], draws: Array[i64], cells: Array[i32],
    marks: Array[u8], width: i64, height: i64, rows: i64, start: i64, end: i64,
) -> None:  # fmt: skip
    """Write the coverage of a shape within a clip, for bands [start, end) of so many rows."""
    own = marks[start * static(CELLS // 16) :]
    on = Paper(view(before, u32), width, before, view(before, u32), cells[start * CELLS :], own)
    draw = Inking(draws, 0)
    stride = (draw.x1 - draw.x0 + 16) & ~15
    tall = max(1, (CELLS - PAST) // stride)
    top, bottom = max(draw.y0, start * rows), min(draw.y1, end * rows)
    for y in serial(top, bottom, tall):
        below = min(y + tall, bottom)
        for n in serial(draw.first, draw.first + draw.count):
            add_edge(
                on.cells, on.marks, stride, draw.x0, draw.x1 - draw.x0, y, below, edges, n,
                fine=0,
            )  # fmt: skip
        for line in serial(y, below):
            clip_row(on, draw, (line - y) * stride, line, before, after)


@native
def paint_bands(
    pixels: Array[u32], edges: Array[i32], draws: Array[i64], clip: Array[u8], words: Array[u32],
    cells: Array[i32], marks: Array[u8], width: i64, height: i64, rows: i64, count: i64, start: i64,
    end: i64,
) -> None:  # fmt: skip
    """Draw the shapes of bands [start, end), each of so many rows."""
    top, bottom = start * rows, min(end * rows, height)
    own = cells[start * CELLS :]
    on = Paper(pixels, width, clip, words, own, marks[start * static(CELLS // 16) :])
    for k in serial(count):
        draw = Inking(draws, k)
        y0, y1 = max(draw.y0, top), min(draw.y1, bottom)
        if y0 < y1:
            if draw.fine != 0:
                fill_fine(on, draw, edges, y0, y1)
            elif draw.kind == SHAPE:
                fill_edges(on, draw, edges, y0, y1)
            else:
                fill_mask(on, draw, y0, y1)
