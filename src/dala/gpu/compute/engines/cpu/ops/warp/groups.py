"""Samples of warps for any dtype: pixels anywhere, and groups of eight inside the picture."""

from __future__ import annotations

from typing import Any, NamedTuple

from dala.gpu.compute.engines.cpu.native import *

#: Pixels of a batch.
BATCH: Final = 256
#: Samples of a group.
GROUP: Final = 8

#: Indices in METHODS and BORDERS of ``engines/sampling/coordinates.py``.
NEAREST, BILINEAR, BICUBIC = 0, 1, 2
CONSTANT, CLAMP, REFLECT, WRAP = 0, 1, 2, 3

_EVEN: Final = tuple(range(0, 16, 2))
_ODD: Final = tuple(range(1, 16, 2))
_EACH_TWICE: Final = tuple(k // 2 for k in range(16))


class Batch(NamedTuple):
    """Source coordinates of pixels, and the size of the picture that they are in."""

    whole_x: Array[i32]
    part_x: Array[Any]
    whole_y: Array[i32]
    part_y: Array[Any]
    width: i64
    height: i64


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
    *, pixel: NativeFunction, channels: int, border: int,
) -> Vector:  # fmt: skip
    """Return the pixel at any position, inside or outside; ``pixel`` loads one."""
    at = (fold(y, height) * width + fold(x, width)) * channels
    value = pixel(source, at)
    if border == CONSTANT:
        inside = x >= 0 and x < width and y >= 0 and y < height
        value = value if inside else fill
    return value


@native
def places(of: Batch, at: Array[i32], count: i64) -> None:
    """Write the index of each sample's upper left pixel; those outside are wrong."""
    for i in independent(range(count)):
        at[i] = of.whole_y[i] * i32(of.width) + of.whole_x[i]


@native
def group_inside(of: Batch, k: i64, *, pixels: int) -> Vector:
    """Return whether ``pixels`` beside each sample of a group, and two below, are inside."""
    x, y = u32(load(of.whole_x, k, GROUP)), u32(load(of.whole_y, k, GROUP))
    return all_of((x < u32(max(of.width - pixels + 1, 0))) & (y < u32(of.height - 1)))


@native
def group_outside(of: Batch, k: i64) -> Vector:
    """Return whether all pixels of a group of samples are outside of the picture."""
    x, y = load(of.whole_x, k, GROUP), load(of.whole_y, k, GROUP)
    return all_of((x < -1) | (x >= i32(of.width)) | (y < -1) | (y >= i32(of.height)))


@native
def fractions(part: Array[S], k: i64, *, S: type) -> Vector:  # noqa: N803
    """Return the fractions of a group, of 16 bits for bytes."""
    found = load(part, k, GROUP)
    return i16(found) if i32 == S else found


@native
def eight_pairs(source: Array[T], at: Array[i32], k: i64, more: i64, *, T: type) -> Vector:  # noqa: N803
    """Load two adjacent numbers for each sample of a group; bytes in units of 1/128."""
    a, b = load(source, i64(at[k]) + more, 2), load(source, i64(at[k + 1]) + more, 2)
    c, d = load(source, i64(at[k + 2]) + more, 2), load(source, i64(at[k + 3]) + more, 2)
    e, f = load(source, i64(at[k + 4]) + more, 2), load(source, i64(at[k + 5]) + more, 2)
    g, h = load(source, i64(at[k + 6]) + more, 2), load(source, i64(at[k + 7]) + more, 2)
    found = join(a, b, c, d, e, f, g, h)
    return i16(found) << 7 if u8 == T else found


@native(fast=True)
def between(a: Vector, b: Vector, part: Vector, *, T: type) -> Vector:  # noqa: N803
    """Interpolate; for bytes, in units of 1/128, with fractions in units of 2**-15."""
    if u8 == T:
        return a + multiply_q15(b - a, part)
    return a + (b - a) * part


@native
def sample_gray_group(
    source: Array[T], at: Array[i32], part_x: Array[S], part_y: Array[S], k: i64, pitch: i64,
    *, T: type,  # noqa: N803
) -> Vector:  # fmt: skip
    """Return a group of samples of one channel that are all inside the picture."""
    above, below = eight_pairs(source, at, k, 0), eight_pairs(source, at, k, pitch)
    down, across = fractions(part_y, k), fractions(part_x, k)
    both = between(above, below, shuffle(down, down, _EACH_TWICE))
    value = between(shuffle(both, both, _EVEN), shuffle(both, both, _ODD), across)
    return u8((value + 64) >> 7) if u8 == T else value


# anywhere ---------------------------------------------------------------------------------------
@native
def bilinear_any(
    source: Array[T], x: i64, y: i64, part_x: S, part_y: S, width: i64, height: i64, fill: Vector,
    *, pixel: NativeFunction, mix: NativeFunction, channels: int, border: int,
) -> Vector:  # fmt: skip
    """Return a bilinear sample at any position; ``pixel`` loads one, ``mix`` interpolates."""
    beyond = border == CONSTANT and (x < -1 or x >= width or y < -1 or y >= height)
    if beyond:
        return fill
    nw = tap(source, x, y, width, height, fill)
    ne = tap(source, x + 1, y, width, height, fill)
    sw = tap(source, x, y + 1, width, height, fill)
    se = tap(source, x + 1, y + 1, width, height, fill)
    return mix(nw, ne, sw, se, part_x, part_y)
