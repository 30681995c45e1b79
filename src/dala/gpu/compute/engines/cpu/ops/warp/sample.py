"""Warp rows: sample at coordinates, with borders.

Samples whose pixels are all inside the picture skip the border code. A pixel of four channels is
one vector.
"""

from __future__ import annotations

from typing import Final

from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    T,
    Vector,
    f32,
    f64,
    hinted,
    i32,
    i64,
    in_range,
    independent,
    load,
    local,
    prefetch,
    saturate,
    select,
    static,
    store,
    u8,
    u32,
    view,
)
from dala.gpu.compute.engines.cpu.ops.warp.coordinates import (
    affine,
    distance,
    mapped,
    perspective,
    perspective_at,
)
from dala.gpu.compute.engines.cpu.ops.warp.groups import (
    GROUP,
    group_inside,
    group_outside,
    places,
    sample_gray_group,
    sample_group,
)
from dala.gpu.compute.engines.cpu.pixels.gather import (
    bicubic,
    bicubic_gray,
    bilinear,
    cubic_weights,
    mix_corners,
    pixel,
)

#: Indices in METHODS and BORDERS of ``engines/sampling/coordinates.py``, and kinds of warp.
NEAREST, BILINEAR, BICUBIC = 0, 1, 2
CONSTANT, CLAMP, REFLECT, WRAP = 0, 1, 2, 3
AFFINE, PERSPECTIVE, MAP = 0, 1, 2
#: Pixels of a batch.
BATCH: Final = 256
#: The most pixels of a row that a batch reads, if rows are mixed first.
SPAN: Final = 2 * BATCH
#: How many rows of the output ahead pixels are prefetched: a rotated row reads a few pixels of each
#: of many rows of the input, which CPUs do not foresee.
AHEAD: Final = 6
#: The most pixels of a picture whose places are 32-bit numbers.
MAX_PIXELS: Final = (1 << 31) - 1


@native
def fold(i: i64, count: i64, *, border: int) -> i64:
    """Map an index to one inside the picture, by the border mode."""
    if border == WRAP:
        return i % count
    elif border == REFLECT:
        period = max(2 * (count - 1), 1)
        r = abs(i) % period
        return min(r, period - r, count - 1)
    else:
        return min(max(i, 0), count - 1)


@native(inline=False)
def tap(
    source: Array[T], x: i64, y: i64, width: i64, height: i64, fill: Vector,
    *, T: type, channels: int, border: int,  # noqa: N803
) -> Vector:  # fmt: skip
    """Return the pixel at any position, inside or outside of the picture."""
    at = (fold(y, height, border=border) * width + fold(x, width, border=border)) * channels
    value = pixel(source, at, channels=channels)
    if border == CONSTANT:
        inside = x >= 0 and x < width and y >= 0 and y < height
        value = value if inside else fill
    return value


@native(fast=True)
def sample(
    source: Array[T], x: i64, part_x: f32, y: i64, part_y: f32, width: i64, height: i64,
    fill: Vector, *, T: type, channels: int, method: int, border: int,  # noqa: N803
) -> Vector:  # fmt: skip
    """Return a bilinear or bicubic sample at any position."""
    if method == BILINEAR:
        value = fill
        if border == CONSTANT and (x < -1 or x >= width or y < -1 or y >= height):
            return fill
        if x >= 0 and x < width - 1 and y >= 0 and y < height - 1:
            at = (y * width + x) * channels
            value = bilinear(source, at, width * channels, part_x, part_y, channels=channels)
        else:
            nw = tap(source, x, y, width, height, fill, channels=channels, border=border)
            ne = tap(source, x + 1, y, width, height, fill, channels=channels, border=border)
            sw = tap(source, x, y + 1, width, height, fill, channels=channels, border=border)
            se = tap(source, x + 1, y + 1, width, height, fill, channels=channels, border=border)
            value = mix_corners(nw, ne, sw, se, part_x, part_y)
        return value
    else:
        value = fill
        if border == CONSTANT and (x < -2 or x > width or y < -2 or y > height):
            return fill
        if x >= 1 and x < width - 2 and y >= 1 and y < height - 2:
            at = ((y - 1) * width + x - 1) * channels
            value = bicubic(source, at, width * channels, part_x, part_y, channels=channels)
        else:
            wx, wy = cubic_weights(part_x), cubic_weights(part_y)
            value = fill * 0.0
            for j in static(range(4)):
                for k in static(range(4)):
                    one = tap(
                        source, x + k - 1, y + j - 1, width, height, fill,
                        channels=channels, border=border,
                    )  # fmt: skip
                    value += (wy[j] * wx[k]) * one
        return value


@native
def copy_nearest(
    source: Array[T], whole_x: Array[i32], part_x: Array[f32], whole_y: Array[i32],
    part_y: Array[f32], width: i64, height: i64, fill: Array[T], out: Array[T], count: i64,
    *, T: type, channels: int, border: int,  # noqa: N803
) -> None:  # fmt: skip
    """Copy the nearest pixels of a batch."""
    if channels == 1:
        for i in independent(range(count)):
            x = i64(whole_x[i]) + select(part_x[i] >= 0.5, 1, 0)
            y = i64(whole_y[i]) + select(part_y[i] >= 0.5, 1, 0)
            value = source[fold(y, height, border=border) * width + fold(x, width, border=border)]
            if border == CONSTANT:
                inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
                value = select(inside, value, fill[0])
            out[i] = value
    else:
        for i in hinted(range(count), scalar=True):
            x = i64(whole_x[i]) + select(part_x[i] >= 0.5, 1, 0)
            y = i64(whole_y[i]) + select(part_y[i] >= 0.5, 1, 0)
            at = (fold(y, height, border=border) * width + fold(x, width, border=border)) * channels
            outside = x < 0 or x >= width or y < 0 or y >= height
            beyond = border == CONSTANT and outside
            if channels == 4:
                store(out, i * 4, load(fill, 0, 4) if beyond else load(source, at, 4))
            else:
                for c in static(range(3)):
                    out[i * 3 + c] = fill[c] if beyond else source[at + c]


@native
def all_inside(whole: Array[i32], count: i64, low: i32, high: i32) -> Vector:
    """Return whether all positions are in [low, high)."""
    least, most = whole[0], whole[0]
    for i in range(1, count):
        least, most = min(least, whole[i]), max(most, whole[i])
    return least >= low and most < high


@native(fast=True)
def sample_gray(
    source: Array[T], whole_x: Array[i32], part_x: Array[f32], whole_y: Array[i32],
    part_y: Array[f32], width: i64, out: Array[T], count: i64, *, T: type,  # noqa: N803
) -> None:  # fmt: skip
    """Sample a batch of one channel bicubically; its pixels are all inside the picture."""
    for i in independent(range(count)):
        at = i64(whole_y[i]) * width + i64(whole_x[i])
        value = bicubic_gray(source, at - width - 1, width, part_x[i], part_y[i])
        store_pixel(out, i, value, channels=1)


@native
def mixable(
    whole_x: Array[i32], whole_y: Array[i32], count: i64, width: i64, height: i64
) -> Vector:
    """Return whether a level batch is inside the picture, and reads a short part of two rows.

    Positions of an affine warp rise or fall along a row.
    """
    low = i64(min(whole_x[0], whole_x[count - 1]))
    high = i64(max(whole_x[0], whole_x[count - 1]))
    y = i64(whole_y[0])
    return low >= 0 and high < width - 1 and high - low < SPAN and y >= 0 and y < height - 1


@native(fast=True)
def mix_rows(
    source: Array[T], at: i64, pitch: i64, part_y: f32, mixed: Array[f32], count: i64,
    *, T: type,  # noqa: N803
) -> None:  # fmt: skip
    """Interpolate between a row and the one below it."""
    for i in independent(range(count)):
        above, below = f32(source[at + i]), f32(source[at + pitch + i])
        mixed[i] = above + (below - above) * part_y


@native(fast=True)
def sample_across(
    mixed: Array[f32], first: i64, whole_x: Array[i32], part_x: Array[f32], out: Array[T], at: i64,
    count: i64, *, T: type, channels: int,  # noqa: N803
) -> None:  # fmt: skip
    """Sample a row of pixels that begins at a column."""
    for i in range(count):
        x = (i64(whole_x[i]) - first) * channels
        left, right = load(mixed, x, 4), load(mixed, x + channels, 4)
        store_pixel(out, at + i * channels, left + (right - left) * part_x[i], channels=channels)


@native
def prefetch_rows(
    source: Array[T], whole_x: Array[i32], whole_y: Array[i32], width: i64, height: i64, count: i64,
    *, T: type, channels: int,  # noqa: N803
) -> None:  # fmt: skip
    """Prefetch the rows below those of a batch that is rotated a little.

    It reads a few pixels of each of many rows, which CPUs do not foresee. The upper rows were read
    for the row of the output above. Steeper batches read lines of memory that earlier rows of the
    output have read, except for few.
    """
    rows = i64(abs(whole_y[count - 1] - whole_y[0]))
    if rows >= 4 and rows * 4 <= count:
        # Twice for each row and four times for each line of memory, wherever they begin.
        line = static((64 if u8 == T else 16) // channels)
        step = max(min(count // (rows + 1) // 2, line // 4), 1)
        for i in range(0, count, step):
            x = min(max(i64(whole_x[i]), 0), width - 1)
            y = min(max(i64(whole_y[i]) + 1, 0), height - 1)
            prefetch(source, (y * width + x) * channels)


@native
def sample_any(
    source: Array[T], whole_x: Array[i32], part_x: Array[f32], whole_y: Array[i32],
    part_y: Array[f32], width: i64, height: i64, fill: Vector, out: Array[T], begin: i64, end: i64,
    *, T: type, channels: int, method: int, border: int,  # noqa: N803
) -> None:  # fmt: skip
    """Sample pixels [begin, end) of a batch, at any position."""
    for i in range(begin, end):
        v = sample(
            source, i64(whole_x[i]), part_x[i], i64(whole_y[i]), part_y[i],
            width, height, fill, channels=channels, method=method, border=border,
        )  # fmt: skip
        store_pixel(out, i * channels, v, channels=channels)


@native
def sample_groups(
    source: Array[T], whole_x: Array[i32], part_x: Array[f32], whole_y: Array[i32],
    part_y: Array[f32], width: i64, height: i64, fill: Vector, filled: Array[T], out: Array[T],
    count: i64, later: i64, *, T: type, channels: int, border: int, foreseen: bool,  # noqa: N803
) -> None:  # fmt: skip
    """Sample a batch bilinearly; groups that cross the border, pixel by pixel.

    ``later``: if it can be ``foreseen``, how many pixels further the row of the output reads whose
    pixels are to be prefetched.
    """
    at, pitch = local(i32, BATCH), width * channels
    places(whole_x, whole_y, width, at, count)
    k = 0
    while k < count:
        end = min(k + GROUP, count)
        whole = end - k == GROUP
        if whole and group_inside(whole_x, whole_y, k, width, height):
            for j in static(range(GROUP if foreseen else 0)):
                prefetch(source, (i64(at[k + j]) + later) * channels)
            if channels == 4 and u8 == T:
                store(out, k * 4, sample_group(source, at, part_x, part_y, k, pitch))
            elif channels == 1:
                v = sample_gray_group(source, at, part_x, part_y, k, pitch)
                if u8 == T:
                    store(out, k, saturate(u8, in_range(i32, v + 0.5)))
                else:
                    store(out, k, v)
            else:
                for i in range(k, end):
                    first = i64(at[i]) * channels
                    v = bilinear(source, first, pitch, part_x[i], part_y[i], channels=channels)
                    store_pixel(out, i * channels, v, channels=channels)
        elif border == CONSTANT and whole and group_outside(whole_x, whole_y, k, width, height):
            store(out, k * channels, load(filled, 0, static(GROUP * channels)))
        else:
            sample_any(
                source, whole_x, part_x, whole_y, part_y, width, height, fill, out, k, end,
                channels=channels, method=BILINEAR, border=border,
            )  # fmt: skip
        k = end


@native
def warp(
    source: Array[T], table: Array[u32], matrix: Array[f64], fill: Array[f32], out: Array[T],
    width: i64, height: i64, out_width: i64, out_height: i64, start: i64, end: i64,
    *, T: type, channels: int, method: int, border: int, kind: int,  # noqa: N803
) -> None:  # fmt: skip
    """Warp rows [start, end) of the output, a batch of pixels at a time."""
    beyond = fill[0] if channels == 1 else load(fill, 0, 4)
    given, entries = view(table, f32), out_width + out_height
    whole_x, part_x = local(i32, BATCH), local(f32, BATCH)
    whole_y, part_y = local(i32, BATCH), local(f32, BATCH)
    filled = local(T, GROUP * channels)
    # Where all pixels of a row are between the same two rows, these are mixed first.
    mixes = static(kind == AFFINE and method == BILINEAR and channels > 1)
    mixed = local(f32, (SPAN + 2) * 4 if mixes else 1)
    for k in static(range(GROUP)):
        store_pixel(filled, k * channels, beyond, channels=channels)
    for y in range(start, end):
        begin = 0
        while begin < out_width:
            count = min(BATCH, out_width - begin)
            first = y * out_width + begin
            if kind == AFFINE:
                row = out_width + y
                affine(table, table[entries:], begin, row, whole_x, part_x, count)
                affine(
                    table[2 * entries :], table[3 * entries :], begin, row, whole_y, part_y, count
                )
            elif kind == MAP:
                mapped(given[first * 2 :], whole_x, part_x, count)
                mapped(given[first * 2 + 1 :], whole_y, part_y, count)
            else:
                perspective(matrix, matrix[6:], begin, f64(y), whole_x, part_x, count)
                perspective(matrix[3:], matrix[6:], begin, f64(y), whole_y, part_y, count)
            if method != BILINEAR or kind == MAP:
                prefetch_rows(source, whole_x, whole_y, width, height, count, channels=channels)
            if method == NEAREST and u8 == T and channels == 4:
                copy_nearest(
                    view(source, u32), whole_x, part_x, whole_y, part_y, width, height,
                    view(filled, u32), view(out, u32, first * 4), count, channels=1, border=border,
                )  # fmt: skip
            elif method == NEAREST:
                copy_nearest(
                    source, whole_x, part_x, whole_y, part_y, width, height,
                    filled, out[first * channels :], count, channels=channels, border=border,
                )  # fmt: skip
            elif (
                channels == 1
                and method == BICUBIC
                and all_inside(whole_x, count, 1, i32(width - 2))
                and all_inside(whole_y, count, 1, i32(height - 2))
            ):
                sample_gray(source, whole_x, part_x, whole_y, part_y, width, out[first:], count)
            elif mixes and matrix[3] == 0.0 and mixable(whole_x, whole_y, count, width, height):
                left = i64(min(whole_x[0], whole_x[count - 1]))
                wide = i64(max(whole_x[0], whole_x[count - 1])) - left + 2
                at = (i64(whole_y[0]) * width + left) * channels
                mix_rows(source, at, width * channels, part_y[0], mixed, wide * channels)
                sample_across(
                    mixed, left, whole_x, part_x, out, first * channels, count, channels=channels
                )
            elif method == BILINEAR and width * height <= MAX_PIXELS:
                later = 0
                if kind == AFFINE:
                    later = distance(f64(AHEAD) * matrix[1], f64(AHEAD) * matrix[4], width, height)
                elif kind == PERSPECTIVE:
                    x, down = begin + count // 2, f64(y + AHEAD)
                    across = perspective_at(matrix, matrix[6:], f64(x), down)
                    down = perspective_at(matrix[3:], matrix[6:], f64(x), down)
                    across -= f64(whole_x[count // 2])
                    down -= f64(whole_y[count // 2])
                    later = distance(across, down, width, height)
                sample_groups(
                    source, whole_x, part_x, whole_y, part_y, width, height, beyond, filled,
                    out[first * channels :], count, later,
                    channels=channels, border=border, foreseen=kind != MAP,
                )  # fmt: skip
            else:
                sample_any(
                    source, whole_x, part_x, whole_y, part_y, width, height, beyond,
                    out[first * channels :], 0, count,
                    channels=channels, method=method, border=border,
                )  # fmt: skip
            begin += BATCH


@native
def store_pixel(out: Array[T], at: i64, value: Vector, *, T: type, channels: int) -> None:  # noqa: N803
    """Store a pixel; for u8, rounded half up and saturated."""
    if u8 == T:
        whole = saturate(u8, in_range(i32, value + 0.5))
        if channels == 1:
            out[at] = whole
        elif channels == 4:
            store(out, at, whole)
        else:
            for c in static(range(3)):
                out[at + c] = whole[c]
    elif channels == 1:
        out[at] = value
    elif channels == 4:
        store(out, at, value)
    else:
        for c in static(range(3)):
            out[at + c] = value[c]
