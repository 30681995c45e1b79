"""Samples of bytes between pixels, in integers.

A fraction is rounded to 15 bits. A bilinear sample is mixed down, rounded to 7 bits of fraction,
then across, rounded to as many, then to a byte. Cubic weights are integers that add up to 2**14;
four rows are summed with 6 bits of fraction, then four columns, rounded to a byte.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dala.gpu.compute.engines.sampling.coordinates import BITS

Numbers: TypeAlias = npt.NDArray[np.int64]
#: Returns the pixels at rows and columns that are offset from the samples' integer coordinates.
Read: TypeAlias = Callable[[Numbers, Numbers], Numbers]


def rounded(whole: Numbers, part: Numbers) -> tuple[Numbers, Numbers]:
    """Round a coordinate to 15 bits of fraction."""
    part = part + (1 << (BITS - 16))
    return whole + (part >> BITS), (part & ((1 << BITS) - 1)) >> (BITS - 15)


def cubic_weights(t: Numbers) -> list[Numbers]:
    """Return the weights of four pixels for a fraction of 15 bits; a = -0.75.

    >>> [int(w) for w in cubic_weights(np.array(16384))]
    [-1536, 9728, 9728, -1536]
    """
    one, square = t << 5, t * t
    two, three = square >> 10, ((square >> 14) * t) >> 11
    first = (6 * two - 3 * three - 3 * one + 128) >> 8
    third = (6 * two - 5 * three + 3 * one + 128) >> 8
    fourth = (3 * three - 3 * two + 128) >> 8
    return [first, 16384 - first - third - fourth, third, fourth]


def bilinear(read: Read, y: Numbers, part_y: Numbers, x: Numbers, part_x: Numbers) -> Numbers:
    """Return bilinear samples."""
    (y, down), (x, across) = rounded(y, part_y), rounded(x, part_x)

    def mixed(column: Numbers) -> Numbers:
        above, below = read(y, column), read(y + 1, column)
        return (above << 7) + (((below - above) * down[..., None] + 128) >> 8)

    left, right = mixed(x), mixed(x + 1)
    value = left + (((right - left) * across[..., None] + 16384) >> 15)
    return (value + 64) >> 7


def bicubic(read: Read, y: Numbers, part_y: Numbers, x: Numbers, part_x: Numbers) -> Numbers:
    """Return bicubic samples."""
    (y, down), (x, across) = rounded(y, part_y), rounded(x, part_x)
    rows, columns = cubic_weights(down), cubic_weights(across)
    total: Numbers = np.full((*x.shape, 1), 1 << 19, np.int64)
    for k, weight in enumerate(columns):
        line = sum(w[..., None] * read(y + j - 1, x + k - 1) for j, w in enumerate(rows))
        total = total + weight[..., None] * ((line + 128) >> 8)
    found: Numbers = np.clip(total >> 20, 0, 255)
    return found
