"""The exponential of exact programs: one sequence of f32 operations.

It has a relative error of 2^-17, enough for bytes, and saturates at the smallest and largest powers
of two. No operation is fused, so that every processor computes the same.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from dala.typing import NDArray

#: Arguments are limited to this range.
RANGE: Final = (-87.0, 88.0)
#: exp(x) is 2 ** (x * SCALE).
SCALE: Final = 1.0 / math.log(2.0)
#: Adding 1.5 * 2^23 rounds to a whole number and leaves it in the low bits.
MAGIC: Final = 12582912.0
ONE_BITS: Final = 0x3F800000
#: 2^r on [-1/2, 1/2]: 2^-18.4, and 1 at 0.
POLYNOMIAL: Final = (
    1.0, 0.6931241933554522, 0.2402409861165368,
    0.05590642514458512, 0.009582853183706542,
)  # fmt: skip


def quick_exp(x: NDArray) -> NDArray:
    """Return the exponential of f32 numbers.

    >>> quick_exp(np.array([0.0, 1.0], np.float32)).tolist()
    [1.0, 2.7182865142822266]
    """
    if x.dtype != np.float32:
        return np.asarray(np.exp(x))
    low, high = (np.float32(end) for end in RANGE)
    x = np.where(x < low, low, x)
    t = np.where(x > high, high, x) * np.float32(SCALE)
    shifted = t + np.float32(MAGIC)
    rest = t - (shifted - np.float32(MAGIC))
    total = rest * np.float32(POLYNOMIAL[-1]) + np.float32(POLYNOMIAL[-2])
    for c in reversed(POLYNOMIAL[:-2]):
        total = total * rest + np.float32(c)
    bits = (shifted.view(np.uint32) << np.uint32(23)) + np.uint32(ONE_BITS)
    return np.asarray(total * bits.view(np.float32))
