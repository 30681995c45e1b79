"""Sampling pictures at coordinates, for the CPU: where all pixels that count lie inside there is no
border to think of, and four channels are one vector.
"""

from __future__ import annotations

from typing import Any, Final

from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    T,
    f32,
    f64,
    hinted,
    i32,
    i64,
    in_range,
    independent,
    load,
    local,
    saturate,
    select,
    shuffle,
    static,
    store,
    u8,
    u32,
    vec,
    view,
)
from dala.gpu.compute.engines.cpu.ops.warp.places import add_places, map_places, seen_places

#: Codes of what shaders know by name, in the order of engines/coordinates.py.
NEAREST, BILINEAR, BICUBIC = 0, 1, 2
CONSTANT, CLAMP, REFLECT, WRAP = 0, 1, 2, 3
AFFINE, PERSPECTIVE, MAP = 0, 1, 2
#: Pixels whose coordinates are found together.
STRETCH: Final = 256
_QUARTERS: Final = tuple(range(4)), tuple(range(4, 8)), tuple(range(8, 12)), tuple(range(12, 16))
_SPREAD: Final = tuple(k // 4 for k in range(16))
_THIRDS: Final = (0, 1, 2, 3), (3, 4, 5, 6), (6, 7, 8, 9), (9, 10, 11, 12)
_SPREAD_THREE: Final = (0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3)


@native
def pixel(source: Array[T], at: i64, *, T: type, channels: int) -> Any:  # noqa: N803
    """The pixel that begins at an element: a number, or a vector of four."""
    if channels == 1:
        return f32(source[at])
    elif channels == 3:
        return vec(f32(source[at]), f32(source[at + 1]), f32(source[at + 2]), f32(0))
    else:
        return f32(load(source, at, 4))


@native
def fold(i: i64, count: i64, *, border: int) -> i64:
    """A position inside, by the border's rule."""
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
    source: Array[T], x: i64, y: i64, width: i64, height: i64, fill: Any,
    *, T: type, channels: int, border: int,  # noqa: N803
) -> Any:  # fmt: skip
    """A pixel anywhere."""
    at = (fold(y, height, border=border) * width + fold(x, width, border=border)) * channels
    value = pixel(source, at, channels=channels)
    if border == CONSTANT:
        inside = x >= 0 and x < width and y >= 0 and y < height
        value = value if inside else fill
    return value


@native(fast=True)
def cubic(t: f32) -> Any:
    """The weights of four pixels, a = -0.75."""
    d = vec(t + 1.0, t, 1.0 - t, 2.0 - t)
    near = (1.25 * d - 2.25) * d * d + 1.0
    far = (((d - 5.0) * d + 8.0) * d - 4.0) * -0.75
    return shuffle(near, far, (4, 1, 2, 7))


@native(fast=True)
def near_two(
    source: Array[T], at: i64, pitch: i64, part_x: f32, part_y: f32,
    *, T: type, channels: int,  # noqa: N803
) -> Any:  # fmt: skip
    """Bilinear, all four pixels inside."""
    if channels == 4:
        above, below = f32(load(source, at, 8)), f32(load(source, at + pitch, 8))
        both = above + (below - above) * part_y
        left = shuffle(both, both, (0, 1, 2, 3))
        return left + (shuffle(both, both, (4, 5, 6, 7)) - left) * part_x
    elif channels == 3:
        # Two pixels are six numbers; eight are read where that many are left.
        if at + pitch + 8 <= len(source):
            above, below = f32(load(source, at, 8)), f32(load(source, at + pitch, 8))
            both = above + (below - above) * part_y
            left = shuffle(both, both, (0, 1, 2, 3))
            return left + (shuffle(both, both, (3, 4, 5, 6)) - left) * part_x
        else:
            return one_by_one(source, at, pitch, part_x, part_y, channels=channels)
    else:
        return one_by_one(source, at, pitch, part_x, part_y, channels=channels)


@native(fast=True)
def one_by_one(
    source: Array[T], at: i64, pitch: i64, part_x: f32, part_y: f32,
    *, T: type, channels: int,  # noqa: N803
) -> Any:  # fmt: skip
    """Bilinear, each pixel read by itself."""
    nw = pixel(source, at, channels=channels)
    ne = pixel(source, at + channels, channels=channels)
    sw = pixel(source, at + pitch, channels=channels)
    se = pixel(source, at + pitch + channels, channels=channels)
    above, below = nw + (ne - nw) * part_x, sw + (se - sw) * part_x
    return above + (below - above) * part_y


@native(fast=True)
def near_four(
    source: Array[T], at: i64, pitch: i64, part_x: f32, part_y: f32,
    *, T: type, channels: int,  # noqa: N803
) -> Any:  # fmt: skip
    """Bicubic, all sixteen pixels inside; ``at`` is the first of them."""
    wx, wy = cubic(part_x), cubic(part_y)
    if channels == 4:
        rows = wy[0] * f32(load(source, at, 16))
        for k in static((1, 2, 3)):
            rows += wy[k] * f32(load(source, at + k * pitch, 16))
        rows = rows * shuffle(wx, wx, _SPREAD)
        total = shuffle(rows, rows, _QUARTERS[0])
        for k in static((1, 2, 3)):
            total += shuffle(rows, rows, _QUARTERS[k])
        return total
    elif channels == 3 and at + 3 * pitch + 16 <= len(source):
        rows = wy[0] * f32(load(source, at, 16))
        for k in static((1, 2, 3)):
            rows += wy[k] * f32(load(source, at + k * pitch, 16))
        rows = rows * shuffle(wx, wx, _SPREAD_THREE)
        total = shuffle(rows, rows, _THIRDS[0])
        for k in static((1, 2, 3)):
            total += shuffle(rows, rows, _THIRDS[k])
        return total
    else:
        total = pixel(source, at, channels=channels) * 0.0
        for j in static(range(4)):
            row = wx[0] * pixel(source, at + j * pitch, channels=channels)
            for k in static((1, 2, 3)):
                row += wx[k] * pixel(source, at + j * pitch + k * channels, channels=channels)
            total += wy[j] * row
        return total


@native(fast=True)
def sample(
    source: Array[T], x: i64, part_x: f32, y: i64, part_y: f32, width: i64, height: i64, fill: Any,
    *, T: type, channels: int, method: int, border: int,  # noqa: N803
) -> Any:  # fmt: skip
    """The picture's value at a place."""
    if method == BILINEAR:
        value = fill
        if border == CONSTANT and (x < -1 or x >= width or y < -1 or y >= height):
            return fill
        if x >= 0 and x < width - 1 and y >= 0 and y < height - 1:
            at = (y * width + x) * channels
            value = near_two(source, at, width * channels, part_x, part_y, channels=channels)
        else:
            nw = tap(source, x, y, width, height, fill, channels=channels, border=border)
            ne = tap(source, x + 1, y, width, height, fill, channels=channels, border=border)
            sw = tap(source, x, y + 1, width, height, fill, channels=channels, border=border)
            se = tap(source, x + 1, y + 1, width, height, fill, channels=channels, border=border)
            above, below = nw + (ne - nw) * part_x, sw + (se - sw) * part_x
            value = above + (below - above) * part_y
        return value
    else:
        value = fill
        if border == CONSTANT and (x < -2 or x > width or y < -2 or y > height):
            return fill
        if x >= 1 and x < width - 2 and y >= 1 and y < height - 2:
            at = ((y - 1) * width + x - 1) * channels
            value = near_four(source, at, width * channels, part_x, part_y, channels=channels)
        else:
            wx, wy = cubic(part_x), cubic(part_y)
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
    """A stretch of pixels as they are in the source."""
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
def all_inside(whole: Array[i32], count: i64, low: i32, high: i32) -> Any:
    """Whether all positions lie in [low, high)."""
    least, most = whole[0], whole[0]
    for i in range(1, count):
        least, most = min(least, whole[i]), max(most, whole[i])
    return least >= low and most < high


@native(fast=True)
def gray_stretch(
    source: Array[T], whole_x: Array[i32], part_x: Array[f32], whole_y: Array[i32],
    part_y: Array[f32], width: i64, out: Array[T], count: i64,
    *, T: type, method: int,  # noqa: N803
) -> None:  # fmt: skip
    """A stretch of one channel that needs no pixel beyond the border."""
    for i in independent(range(count)):
        at = i64(whole_y[i]) * width + i64(whole_x[i])
        if method == BILINEAR:
            value = one_by_one(source, at, width, part_x[i], part_y[i], channels=1)
        else:
            value = sixteen(source, at - width - 1, width, part_x[i], part_y[i])
        put(out, i, value, channels=1)


@native(fast=True)
def sixteen(
    source: Array[T],
    at: i64,
    pitch: i64,
    t: f32,
    u: f32,
    *,
    T: type,  # noqa: N803
) -> f32:
    """Bicubic of one channel, all in scalars, which become lanes."""
    total = f32(0)
    for j in static(range(4)):
        row = cubic_at(t, n=0) * f32(source[at + pitch * j])
        for k in static((1, 2, 3)):
            row += cubic_at(t, n=k) * f32(source[at + pitch * j + k])
        total += cubic_at(u, n=j) * row
    return total


@native(fast=True)
def cubic_at(t: f32, *, n: int) -> f32:
    """The weight of the n-th of four pixels, a = -0.75."""
    if n == 0 or n == 3:
        d = t + 1.0 if n == 0 else 2.0 - t
        return (((d - 5.0) * d + 8.0) * d - 4.0) * -0.75
    else:
        e = t if n == 1 else 1.0 - t
        return (1.25 * e - 2.25) * e * e + 1.0


@native
def warp(
    source: Array[T], table: Array[u32], matrix: Array[f64], fill: Array[f32], out: Array[T],
    width: i64, height: i64, out_width: i64, start: i64, end: i64,
    *, T: type, channels: int, method: int, border: int, kind: int,  # noqa: N803
) -> None:  # fmt: skip
    """Rows [start, end) of the output; coordinates are found for a stretch of pixels at a time."""
    beyond = fill[0] if channels == 1 else load(fill, 0, 4)
    given = view(table, f32)
    whole_x, part_x = local(i32, STRETCH), local(f32, STRETCH)
    whole_y, part_y = local(i32, STRETCH), local(f32, STRETCH)
    stored, reach = local(T, 4), static(1 if method == BICUBIC else 0)
    put(stored, 0, beyond, channels=channels)
    for y in range(start, end):
        begin = 0
        while begin < out_width:
            count = min(STRETCH, out_width - begin)
            first = y * out_width + begin
            if kind == AFFINE:
                column, row = table[begin * 4 :], table[(out_width + y) * 4 :]
                add_places(column, row, whole_x, part_x, count)
                add_places(column[2:], row[2:], whole_y, part_y, count)
            elif kind == MAP:
                map_places(given[first * 2 :], whole_x, part_x, count)
                map_places(given[first * 2 + 1 :], whole_y, part_y, count)
            else:
                seen_places(matrix, matrix[6:], begin, f64(y), whole_x, part_x, count)
                seen_places(matrix[3:], matrix[6:], begin, f64(y), whole_y, part_y, count)
            if method == NEAREST and u8 == T and channels == 4:
                copy_nearest(
                    view(source, u32), whole_x, part_x, whole_y, part_y, width, height,
                    view(stored, u32), view(out, u32, first * 4), count, channels=1, border=border,
                )  # fmt: skip
            elif method == NEAREST:
                copy_nearest(
                    source, whole_x, part_x, whole_y, part_y, width, height,
                    stored, out[first * channels :], count, channels=channels, border=border,
                )  # fmt: skip
            elif channels == 1 and (
                all_inside(whole_x, count, i32(reach), i32(width - 1 - reach))
                and all_inside(whole_y, count, i32(reach), i32(height - 1 - reach))
            ):
                gray_stretch(
                    source, whole_x, part_x, whole_y, part_y, width, out[first:], count,
                    method=method,
                )  # fmt: skip
            else:
                for i in range(count):
                    v = sample(
                        source, i64(whole_x[i]), part_x[i], i64(whole_y[i]), part_y[i],
                        width, height, beyond, channels=channels, method=method, border=border,
                    )  # fmt: skip
                    put(out, (first + i) * channels, v, channels=channels)
            begin += STRETCH


@native
def put(out: Array[T], at: i64, value: Any, *, T: type, channels: int) -> None:  # noqa: N803
    """Stores a pixel; u8 rounded, halves up, and saturated."""
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
