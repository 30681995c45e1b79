"""Resize to exactly half of both sides: each pixel is the mean of four."""

from __future__ import annotations

from typing import Final

import numpy as np

from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    T,
    f32,
    i64,
    load,
    shuffle,
    static,
    store,
    u8,
    u16,
)
from dala.gpu.compute.engines.sampling.taps import Taps

#: Output pixels computed at a time by channels; narrower pictures are resized as any.
PIXELS: Final = {1: 32, 3: 8, 4: 8}


def is_halving(taps: Taps, source: int) -> bool:
    """Return whether every pixel is the mean of its own two neighbors along an axis."""
    size = len(taps.first)
    return (
        taps.count == 2
        and source == 2 * size
        and bool((taps.weights == 0.5).all())
        and bool((taps.first == np.arange(size) * 2).all())
    )


def neighbors(channels: int, which: int) -> tuple[int, ...]:
    """Return the places of the left (0) or right (1) pixels of pairs in a row.

    >>> neighbors(1, 0)[:3], neighbors(3, 1)[:4]
    ((0, 2, 4), (3, 4, 5, 9))
    """
    return tuple(
        (2 * pixel + which) * channels + c
        for pixel in range(PIXELS[channels])
        for c in range(channels)
    )


@native
def halve(
    source: Array[T], out: Array[T], width: i64, start: i64, end: i64,
    *, T: type, channels: int, pixels: int,  # noqa: N803
    left: tuple[int, ...], right: tuple[int, ...],
) -> None:  # fmt: skip
    """Write rows [start, end) of the output; the last pixels of a row may be written twice."""
    line = width * channels
    for y in range(start, end):
        above, row = source[y * line * 4 :], out[y * line :]
        below = source[y * line * 4 + line * 2 :]
        for n in range((width + pixels - 1) // pixels):
            x = min(n * pixels, width - pixels) * channels
            a = load(above, x * 2, static(2 * pixels * channels))
            b = load(below, x * 2, static(2 * pixels * channels))
            s = u16(a) + u16(b) if u8 == T else a + b
            total = shuffle(s, s, left) + shuffle(s, s, right)
            if u8 == T:
                store(row, x, u8((total + u16(2)) >> 2))
            else:
                store(row, x, total * f32(0.25))
