"""Groups of eight samples: whether they are inside the picture, and samples of one channel."""

from __future__ import annotations

from typing import Final

from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    T,
    Vector,
    all_of,
    f32,
    i32,
    i64,
    independent,
    load,
    shuffle,
    u32,
)

#: Samples of a group.
GROUP: Final = 8

#: Indices in METHODS and BORDERS of ``engines/sampling/coordinates.py``.
NEAREST, BILINEAR, BICUBIC = 0, 1, 2
CONSTANT, CLAMP, REFLECT, WRAP = 0, 1, 2, 3

_FOUR: Final = tuple(range(4))
_EIGHT: Final = tuple(range(8))
_SIXTEEN: Final = tuple(range(16))
_EVEN: Final = tuple(range(0, 16, 2))
_ODD: Final = tuple(range(1, 16, 2))
_EACH_TWICE: Final = tuple(k // 2 for k in range(16))


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


@native
def places(
    whole_x: Array[i32], whole_y: Array[i32], width: i64, at: Array[i32], count: i64
) -> None:
    """Write the index of each sample's upper left pixel; those outside are wrong."""
    for i in independent(range(count)):
        at[i] = whole_y[i] * i32(width) + whole_x[i]


@native
def group_inside(
    whole_x: Array[i32], whole_y: Array[i32], k: i64, width: i64, height: i64, *, pixels: int
) -> Vector:
    """Return whether ``pixels`` beside each sample of a group, and two below, are inside."""
    x, y = u32(load(whole_x, k, GROUP)), u32(load(whole_y, k, GROUP))
    return all_of((x < u32(max(width - pixels + 1, 0))) & (y < u32(height - 1)))


@native
def group_outside(
    whole_x: Array[i32], whole_y: Array[i32], k: i64, width: i64, height: i64
) -> Vector:
    """Return whether all pixels of a group of samples are outside of the picture."""
    x, y = load(whole_x, k, GROUP), load(whole_y, k, GROUP)
    across, down = (x < -1) | (x >= i32(width)), (y < -1) | (y >= i32(height))
    return all_of(across | down)


@native
def eight_pairs(source: Array[T], at: Array[i32], k: i64, more: i64, *, T: type) -> Vector:  # noqa: N803
    """Load two adjacent numbers for each sample of a group."""
    a, b = load(source, i64(at[k]) + more, 2), load(source, i64(at[k + 1]) + more, 2)
    c, d = load(source, i64(at[k + 2]) + more, 2), load(source, i64(at[k + 3]) + more, 2)
    e, f = load(source, i64(at[k + 4]) + more, 2), load(source, i64(at[k + 5]) + more, 2)
    g, h = load(source, i64(at[k + 6]) + more, 2), load(source, i64(at[k + 7]) + more, 2)
    left = shuffle(shuffle(a, b, _FOUR), shuffle(c, d, _FOUR), _EIGHT)
    right = shuffle(shuffle(e, f, _FOUR), shuffle(g, h, _FOUR), _EIGHT)
    return shuffle(left, right, _SIXTEEN)


@native(fast=True)
def sample_gray_group(
    source: Array[f32], at: Array[i32], part_x: Array[f32], part_y: Array[f32], k: i64, pitch: i64
) -> Vector:
    """Return a group of f32 samples of one channel that are all inside the picture."""
    above, below = eight_pairs(source, at, k, 0), eight_pairs(source, at, k, pitch)
    down, across = load(part_y, k, GROUP), load(part_x, k, GROUP)
    both = above + (below - above) * shuffle(down, down, _EACH_TWICE)
    left, right = shuffle(both, both, _EVEN), shuffle(both, both, _ODD)
    return left + (right - left) * across
