"""Coverage by exact area: edges are added to cells, and rows of cells are summed.

A cell holds how much the coverage changes from the pixel before: the running sum over a row is the
signed area of the pixel that lies inside, FULL where all of it does. Only blocks of sixteen cells
that an edge has touched are looked at; between them the coverage is constant.
"""

from __future__ import annotations

from dala.gpu.compute.engines.cpu.native import *

#: A pixel that is covered once: 256 fractions of its height times 512.
FULL: Final = 1 << 17
#: Cells of a strip of rows at most, and for shapes with few edges.
CELLS: Final = 1 << 16
FEW_CELLS: Final = 1 << 13
#: The longest row of cells: one more than a surface's pixels, in whole blocks.
BLOCK: Final = 16
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
