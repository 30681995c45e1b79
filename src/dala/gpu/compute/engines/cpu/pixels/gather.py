"""Sample images at given coordinates: nearest, bilinear and bicubic.

All pixels that a sample reads must be inside the image; callers handle borders.
"""

from __future__ import annotations

from dala.gpu.compute.engines.cpu.native import *

#: By the number of channels: the lanes of each of four pixels, and which pixel a lane belongs to.
_PARTS: Final = tuple(tuple(tuple(range(c * k, c * k + 4)) for k in range(4)) for c in range(5))
_REPEAT: Final = tuple(tuple(min(k // max(c, 1), 3) for k in range(16)) for c in range(5))


@native
def nearest_row(
    row: Array[T], columns: Array[i32], out: Array[T], count: i64, *, channels: int
) -> None:
    """Copy the pixels of a row at given columns."""
    for x in independent(range(count)):
        for c in static(range(channels)):
            out[x * channels + c] = row[i64(columns[x]) * channels + c]


@native
def pixel(source: Array[T], at: i64, *, channels: int) -> Vector:
    """Return the pixel that starts at an element: a scalar, or a vector of four."""
    if channels == 1:
        return f32(source[at])
    elif channels == 3:
        return vec(f32(source[at]), f32(source[at + 1]), f32(source[at + 2]), f32(0))
    else:
        return f32(load(source, at, 4))


# bilinear -------------------------------------------------------------------------------------
@native(fast=True)
def bilinear(
    source: Array[T], at: i64, pitch: i64, part_x: f32, part_y: f32, *, channels: int
) -> Vector:
    """Return one bilinear sample; ``at`` is the index of its upper left pixel's first element.

    Computes all channels of one pixel, of any dtype. ``weigh_corners`` computes one channel of
    sixteen RGBA8 pixels, so that the compositor can weight them by alpha. In a warp it takes 0.92
    to 1.14 times as long as this.
    """
    # Two pixels of three channels have six elements; eight are loaded where there are enough.
    if channels == 4 or (channels == 3 and at + pitch + 8 <= len(source)):
        above, below = f32(load(source, at, 8)), f32(load(source, at + pitch, 8))
        both = above + (below - above) * part_y
        left = shuffle(both, both, (0, 1, 2, 3))
        return left + (shuffle(both, both, _PARTS[channels][1]) - left) * part_x
    else:
        nw = pixel(source, at, channels=channels)
        ne = pixel(source, at + channels, channels=channels)
        sw = pixel(source, at + pitch, channels=channels)
        se = pixel(source, at + pitch + channels, channels=channels)
        return mix_corners(nw, ne, sw, se, part_x, part_y)


@native(fast=True)
def mix_corners(nw: Vector, ne: Vector, sw: Vector, se: Vector, part_x: f32, part_y: f32) -> Vector:
    """Interpolate between four pixels."""
    above, below = nw + (ne - nw) * part_x, sw + (se - sw) * part_x
    return above + (below - above) * part_y


# bicubic --------------------------------------------------------------------------------------
@native(fast=True)
def cubic_weights(t: f32) -> Vector:
    """Return the weights of four pixels, a = -0.75."""
    d = vec(t + 1.0, t, 1.0 - t, 2.0 - t)
    near = (1.25 * d - 2.25) * d * d + 1.0
    far = (((d - 5.0) * d + 8.0) * d - 4.0) * -0.75
    return shuffle(near, far, (4, 1, 2, 7))


@native(fast=True)
def bicubic(
    source: Array[T], at: i64, pitch: i64, part_x: f32, part_y: f32, *, channels: int
) -> Vector:
    """Return one bicubic sample; ``at`` is the index of its upper left pixel's first element."""
    wx, wy = cubic_weights(part_x), cubic_weights(part_y)
    if channels == 4 or (channels == 3 and at + 3 * pitch + 16 <= len(source)):
        rows = wy[0] * f32(load(source, at, 16))
        for k in static((1, 2, 3)):
            rows += wy[k] * f32(load(source, at + k * pitch, 16))
        rows = rows * shuffle(wx, wx, _REPEAT[channels])
        total = shuffle(rows, rows, _PARTS[channels][0])
        for k in static((1, 2, 3)):
            total += shuffle(rows, rows, _PARTS[channels][k])
        return total
    else:
        total = pixel(source, at, channels=channels) * 0.0
        for j in static(range(4)):
            row = wx[0] * pixel(source, at + j * pitch, channels=channels)
            for k in static((1, 2, 3)):
                row += wx[k] * pixel(source, at + j * pitch + k * channels, channels=channels)
            total += wy[j] * row
        return total
