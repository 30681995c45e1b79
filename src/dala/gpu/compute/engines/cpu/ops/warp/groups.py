"""Bilinear samples inside a picture, eight at a time.

A pixel and the one beside it are one load. RGBA8 pixels are mixed in 16-bit fixed point: a byte is
held as value * 128 and a weight in units of 1/32768. Each of the two steps rounds to 1/128 of a
step of the byte and its weight to 1/65536, so the result is within 1/60 of a step of the exact one
before it is rounded.
"""

from __future__ import annotations

from typing import Final

from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    T,
    Vector,
    all_of,
    f32,
    i16,
    i32,
    i64,
    in_range,
    independent,
    load,
    multiply_q15,
    shuffle,
    static,
    u8,
    u32,
)
from dala.gpu.compute.engines.cpu.pixels.taps import PAIRS_OF_TAPS

#: Samples of a group.
GROUP: Final = 8

_FOUR: Final = tuple(range(4))
_EIGHT: Final = tuple(range(8))
_SIXTEEN: Final = tuple(range(16))
_ALL: Final = tuple(range(32))
_LEFT: Final = tuple(k + s for g in (0, 8, 16, 24) for s in (0, 32) for k in range(g, g + 4))
_RIGHT: Final = tuple(k + 4 for k in _LEFT)
_EVEN: Final = tuple(range(0, 16, 2))
_ODD: Final = tuple(range(1, 16, 2))
_EACH_TWICE: Final = tuple(k // 2 for k in range(16))
_EACH_FOUR: Final = tuple(k // 4 for k in range(32))
_EACH_EIGHT: Final = tuple(tuple(p for p in order for _ in range(8)) for order in PAIRS_OF_TAPS)


@native
def places(
    whole_x: Array[i32], whole_y: Array[i32], width: i64, at: Array[i32], count: i64
) -> None:
    """Write the index of each sample's upper left pixel; those outside are wrong."""
    for i in independent(range(count)):
        at[i] = whole_y[i] * i32(width) + whole_x[i]


@native
def group_inside(
    whole_x: Array[i32], whole_y: Array[i32], k: i64, width: i64, height: i64
) -> Vector:
    """Return whether all pixels of a group of samples are inside the picture."""
    x, y = u32(load(whole_x, k, GROUP)), u32(load(whole_y, k, GROUP))
    return all_of((x < u32(width - 1)) & (y < u32(height - 1)))


@native
def group_outside(
    whole_x: Array[i32], whole_y: Array[i32], k: i64, width: i64, height: i64
) -> Vector:
    """Return whether all pixels of a group of samples are outside of the picture."""
    x, y = load(whole_x, k, GROUP), load(whole_y, k, GROUP)
    across, down = (x < -1) | (x >= i32(width)), (y < -1) | (y >= i32(height))
    return all_of(across | down)


@native
def weights(part: Array[f32], k: i64) -> Vector:
    """Return the fractions of a group as fixed-point weights."""
    return i16(min(in_range(i32, load(part, k, GROUP) * 32768.0 + 0.5), 32767))


@native
def four_pairs(source: Array[u8], at: Array[i32], k: i64, more: i64, *, n: int) -> Vector:
    """Load two adjacent pixels for every second sample of a group."""
    order = static(PAIRS_OF_TAPS[n])
    p = load(source, i64(at[k + static(order[0])]) * 4 + more, 8)
    q = load(source, i64(at[k + static(order[1])]) * 4 + more, 8)
    r = load(source, i64(at[k + static(order[2])]) * 4 + more, 8)
    s = load(source, i64(at[k + static(order[3])]) * 4 + more, 8)
    return i16(shuffle(shuffle(p, q, _SIXTEEN), shuffle(r, s, _SIXTEEN), _ALL)) << 7


@native
def mix_down(
    source: Array[u8], at: Array[i32], k: i64, pitch: i64, weight: Vector, *, n: int
) -> Vector:
    """Interpolate between the rows of every second sample of a group."""
    above = four_pairs(source, at, k, 0, n=n)
    below = four_pairs(source, at, k, pitch, n=n)
    each = shuffle(weight, weight, static(_EACH_EIGHT[n]))
    return above + multiply_q15(below - above, each)


@native
def sample_group(
    source: Array[u8], at: Array[i32], part_x: Array[f32], part_y: Array[f32], k: i64, pitch: i64
) -> Vector:
    """Return the 32 bytes of a group of samples that are all inside the picture."""
    down, across = weights(part_y, k), weights(part_x, k)
    even = mix_down(source, at, k, pitch, down, n=0)
    odd = mix_down(source, at, k, pitch, down, n=1)
    left, right = shuffle(even, odd, _LEFT), shuffle(even, odd, _RIGHT)
    value = left + multiply_q15(right - left, shuffle(across, across, _EACH_FOUR))
    return u8((value + 64) >> 7)


@native
def eight_pairs(source: Array[T], at: Array[i32], k: i64, more: i64, *, T: type) -> Vector:  # noqa: N803
    """Load two adjacent numbers for each sample of a group."""
    a, b = load(source, i64(at[k]) + more, 2), load(source, i64(at[k + 1]) + more, 2)
    c, d = load(source, i64(at[k + 2]) + more, 2), load(source, i64(at[k + 3]) + more, 2)
    e, f = load(source, i64(at[k + 4]) + more, 2), load(source, i64(at[k + 5]) + more, 2)
    g, h = load(source, i64(at[k + 6]) + more, 2), load(source, i64(at[k + 7]) + more, 2)
    left = shuffle(shuffle(a, b, _FOUR), shuffle(c, d, _FOUR), _EIGHT)
    right = shuffle(shuffle(e, f, _FOUR), shuffle(g, h, _FOUR), _EIGHT)
    return f32(shuffle(left, right, _SIXTEEN))


@native(fast=True)
def sample_gray_group(
    source: Array[T], at: Array[i32], part_x: Array[f32], part_y: Array[f32], k: i64, pitch: i64,
    *, T: type,  # noqa: N803
) -> Vector:  # fmt: skip
    """Return a group of samples of one channel that are all inside the picture."""
    above, below = eight_pairs(source, at, k, 0), eight_pairs(source, at, k, pitch)
    down, across = load(part_y, k, GROUP), load(part_x, k, GROUP)
    both = above + (below - above) * shuffle(down, down, _EACH_TWICE)
    left, right = shuffle(both, both, _EVEN), shuffle(both, both, _ODD)
    return left + (right - left) * across
