"""Coverage of a blurred box, in integers.

Lengths are multiples of 1/256. The Gaussian ends at three standard deviations. Its integral from 0
to 3 - 3 s of them is 1 - s - s (1 - s) g(s), within 0.0003, with a polynomial g; all numbers have
15 bits of fraction and are rounded down. The box is cut along y, as far as the Gaussian reaches,
into ``STEPS`` equal parts. Each counts with its share of the Gaussian, times the integral along x
over the width that the box has in its middle; rounded corners make it narrower.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from dala.typing import NDArray

#: Parts of a box along y.
STEPS: Final = 12
#: One, and the coefficients of g from the highest power on.
ONE: Final = 1 << 15
CURVE: Final = (61800, -54952, -19825, -32408)

Whole = npt.NDArray[np.int64]


def inverse_of(width: int) -> int:
    """Return 2**30 over three standard deviations of some 256ths, rounded up.

    >>> inverse_of(256)
    1398102
    """
    return -(-(1 << 30) // max(3 * width, 1))


def integral(x: Whole, width: int) -> Whole:
    """Return the integral of the Gaussian from 0 to x, from -ONE to ONE."""
    near = np.minimum(np.abs(x), 3 * width)
    s = ONE - np.minimum((near * inverse_of(width)) >> 15, ONE)
    g = np.full_like(s, CURVE[0])
    for c in CURVE[1:]:
        g = ((g * s) >> 15) + c
    value = ONE - s - ((((s * (ONE - s)) >> 15) * g) >> 15)
    signed: Whole = np.where(x < 0, -value, value)
    return signed


def between(a: Whole, b: Whole, width: int) -> Whole:
    """Return the integral from a to b, not below 0 though ends are rounded."""
    found: Whole = np.maximum(integral(b, width) - integral(a, width), 0)
    return found


def root(x: Whole) -> Whole:
    """Return the square root, rounded down."""
    found = np.floor(np.sqrt(x.astype(np.float64))).astype(np.int64)
    found = np.where(found * found > x, found - 1, found)
    return np.where((found + 1) * (found + 1) <= x, found + 1, found)


def blurred(u: NDArray, v: NDArray, hw: int, hh: int, radius: int, width: int) -> Whole:
    """Return the coverage, of 2**15, at positions in a box around the origin."""
    radius = min(radius, hw, hh)
    u, v = np.broadcast_arrays(u, v)
    begin, end = (np.clip(edge, v - hh, v + hh) for edge in (-3 * width, 3 * width))
    total = np.zeros(u.shape, np.int64)
    for k in range(STEPS):
        a, b = (begin + (end - begin) * n // STEPS for n in (k, k + 1))
        beyond = np.maximum(np.abs(v - ((a + b) >> 1)) - (hh - radius), 0)
        half = hw - radius + root(np.maximum(radius * radius - beyond * beyond, 0))
        across = between(u - half, u + half, width) >> 1
        total += between(a, b, width) * across
    found: Whole = np.minimum((total + (1 << 15)) >> 16, ONE)
    return found
