"""Weights of Gaussian and box blurs, and the coarse grid on which wide Gaussians are summed.

A Gaussian of a large radius is so smooth that it can be summed on a coarse grid, with every
``factor``-th pixel, and the cost does not grow with the radius. Along each axis:

1. Sample J of the grid is the mean of 2 * factor pixels around (J + 1/2) * factor - 1/2, weighted
   by a triangle: 1, 3, 5, ... and back. Reads beyond the border are clamped, and the grid has
   samples beyond the border, so that clamping reads of the grid is the same as clamping reads of
   the picture.
2. The grid is blurred with the weights of :class:`CoarseBlur`.
3. A pixel is interpolated linearly between its two nearest samples.

The three steps together have nearly the weights of the Gaussian: the weights of step 2 are fitted
to it by least squares. They are not negative and sum to 1, so results stay within the range of the
input.

u8 pictures are blurred in integers, on every engine: samples have 7 bits after the point, rounded
after step 1 and after each axis of step 2, whose weights are in 1 / 65536. Shares and the weights
of step 3 are integers over a power of two, so the only other rounding is that of the result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from dala.gpu.compute.engines.symbols import FUNCTIONS, apply, int_of, is_symbolic

#: The largest radius of a blur, in pixels.
MAX_RADIUS: Final = 200
#: The largest radius of a Gaussian that is summed pixel by pixel.
EXACT_RADIUS: Final = 60
#: Weights of a wide Gaussian further than this many sigmas away are left out: 6e-7 in all.
_TAIL: Final = 5.0
#: Samples of the grid before the first pixel.
BEFORE: Final = 2
#: A grid of four pixels is coarse enough for speed; one of two is used where its error is larger.
_FACTOR: Final = 4
_MAX_ERROR: Final = 1.5 / 255.0

#: How far sums of bytes are shifted after the first pass and after the second.
MIDDLE_SHIFT: Final = 10
RESULT_SHIFT: Final = 22
#: The fraction's bits of a coarse grid's samples, if they are integers.
GRID_SHIFT: Final = 7


def gaussian_weights(radius: int, sigma: float) -> npt.NDArray[np.float64]:
    """Return normalized f64 weights exp(-d**2 / (2 sigma**2)) for d in -radius..radius."""
    if is_symbolic(sigma):
        plain = gaussian_weights(radius, float(sigma))
        numbers = [
            apply("gauss", float(weight), int(radius), sigma, abs(d))
            for d, weight in zip(range(-radius, radius + 1), plain, strict=True)
        ]
        return np.array(numbers, object)
    with np.errstate(over="ignore", under="ignore"):
        far = np.arange(-radius, radius + 1) / sigma
        weights = np.exp(-0.5 * far * far)
    found: npt.NDArray[np.float64] = weights / weights.sum()
    return found


def byte_steps(radius: int, sigma: float) -> list[int]:
    """Return the weights of u8 pictures in 1 / 65536, from the center outwards.

    They sum exactly to 65536, counting all but the center twice, and each is within a step of the
    Gaussian's. The center's is even and below 65536, so that its half fits into 15 bits.

    With these weights w, a blur of bytes x is, first down the columns and then along the rows,

        v = (sum(w * x) + 2**9) >> 10
        result = (sum(w * v) + 2**21) >> 22

    All sums of the first kind are below 2**24, and of the second below 2**31.
    """
    if is_symbolic(sigma):
        plain = byte_steps(radius, float(sigma))
        steps = (apply("gauss_steps", w, int(radius), sigma, d) for d, w in enumerate(plain))
        return [int_of(step) for step in steps]
    return _quantized(gaussian_weights(radius, sigma)[radius:])


def _quantized(weights: npt.NDArray[np.float64]) -> list[int]:
    """Round weights from the center outwards to 1 / 65536; the largest remainders go up."""
    exact = weights * 65536.0
    exact[0] /= 2.0
    steps = np.floor(exact)
    missing = 32768 - int(steps.sum())
    steps[np.argsort(steps - exact, kind="stable")[:missing]] += 1
    found = [int(s) for s in steps]
    if found[0] == 32768:
        found[:2] = [32767, 1][: len(found)]
    return [2 * found[0], *found[1:]]


def shifted(numbers: npt.NDArray[np.int64], shift: int) -> npt.NDArray[np.int64]:
    """Return numbers divided by 2**shift, rounded to the nearest integer, halves up."""
    return (numbers + (1 << shift >> 1)) >> shift


def box_weights(radius: int) -> npt.NDArray[np.float64]:
    """Return 2 * radius + 1 equal weights that sum to 1."""
    return np.full(2 * radius + 1, 1.0 / (2 * radius + 1))


def used_radius(radius: int, sigma: float) -> int:
    """Return the radius that a Gaussian needs: weights too small to matter are left out."""
    if radius <= EXACT_RADIUS:
        return radius
    return max(min(radius, math.ceil(_TAIL * min(sigma, radius))), 1)


@dataclass(frozen=True)
class CoarseBlur:
    """A wide Gaussian on a coarse grid; see the module."""

    #: Pixels per sample of the grid.
    factor: int
    #: Weights of the grid's samples, from the center outwards.
    weights: tuple[float, ...]
    #: The largest error along one axis, for any picture of values from 0 to 1.
    error: float

    @property
    def radius(self) -> int:
        """The radius on the grid, in samples."""
        return len(self.weights) - 1

    def samples(self, size: int) -> int:
        """Return the number of the grid's samples for an axis of ``size`` pixels."""
        return -(-(size - 1 + self.factor // 2) // self.factor) + 1 + BEFORE

    def first_pixel(self, sample: int) -> int:
        """Return the first of the 2 * factor pixels that a sample is the mean of."""
        return self.factor * (sample - BEFORE) - self.factor // 2

    @property
    def share_bits(self) -> int:
        """The shares of a sample's pixels sum to 2**share_bits."""
        return (2 * self.factor**2).bit_length() - 1

    def shares(self) -> list[int]:
        """Return the weights of the pixels of a sample, in units of the smallest."""
        rising = [2 * k + 1 for k in range(self.factor)]
        return rising + rising[::-1]

    def steps(self) -> list[int]:
        """Return the weights in 1 / 65536, for grids of integers; they sum exactly to 65536."""
        return _quantized(np.array(self.weights))

    def place(self, pixel: int) -> tuple[int, float]:
        """Return the sample before a pixel, and the weight of the sample after it."""
        whole, part = divmod(pixel + self.factor // 2, self.factor)
        return whole + BEFORE - 1, (part + 0.5) / self.factor


@lru_cache(maxsize=64)
def coarse_blur(radius: int, sigma: float) -> CoarseBlur:
    """Return the coarse grid and its weights for a Gaussian of more than ``EXACT_RADIUS``."""
    found = _fitted(radius, sigma, _FACTOR)
    return found if found.error <= _MAX_ERROR else _fitted(radius, sigma, _FACTOR // 2)


def _fitted(radius: int, sigma: float, factor: int) -> CoarseBlur:
    """Fit the weights of a grid so that all three steps together come closest to the Gaussian."""
    taps = -(-radius // factor)
    shapes = _shapes(factor)
    reach = factor * (taps + 2)
    exact = np.zeros(2 * reach + 1)
    exact[reach - radius : reach + radius + 1] = gaussian_weights(radius, sigma)
    # The equations of least squares. Shapes further apart than their width do not overlap.
    overlaps = np.zeros(2 * taps + 1)
    right = np.zeros(2 * taps + 1)
    for shape in shapes:
        overlaps[:4] += [shape[k * factor :] @ shape[: len(shape) - k * factor] for k in range(4)]
        right += np.correlate(exact, shape)[::factor]
    numbers = np.arange(2 * taps + 1)
    square = _folded(_folded(overlaps[np.abs(numbers[:, None] - numbers)], taps).T, taps)
    right = _folded(right, taps)
    count = np.array([1.0] + [2.0] * taps)
    # One more equation, with a large weight: the weights sum to 1.
    square += 100.0 * np.outer(count, count)
    right += 100.0 * count
    kept = np.ones(taps + 1, bool)
    while True:
        weights = np.zeros(taps + 1)
        weights[kept] = np.linalg.solve(square[np.ix_(kept, kept)], right[kept])
        if (weights >= 0.0).all():
            break
        kept &= weights > 0.0
    weights /= (weights * count).sum()
    apart = np.zeros(2 * factor * taps + 1)
    apart[::factor] = [*weights[:0:-1], *weights]
    off = max(float(np.abs(np.convolve(apart, shape) - exact).sum()) for shape in shapes)
    return CoarseBlur(factor, tuple(weights.tolist()), off / 2.0)


def _shapes(factor: int) -> list[npt.NDArray[np.float64]]:
    """Return how far pixels count, up to 2 * factor away, if the grid is not blurred.

    There is one array for each place of a pixel between two samples.
    """
    at = np.arange(-2 * factor, 2 * factor + 1)
    made = []
    for pixel in range(factor):
        before, part = CoarseBlur(factor, (1.0,), 0.0).place(pixel)
        total = np.zeros(len(at))
        for sample, share in ((before, 1.0 - part), (before + 1, part)):
            center = (sample - BEFORE + 0.5) * factor - 0.5
            total += share * np.maximum(1.0 - np.abs(at + pixel - center) / factor, 0.0) / factor
        made.append(total)
    return made


def _folded(rows: npt.NDArray[np.float64], taps: int) -> npt.NDArray[np.float64]:
    """Add the rows of taps on both sides of the center, which share a weight."""
    found = rows[taps:].copy()
    found[1:] += rows[:taps][::-1]
    return found


FUNCTIONS["gauss"] = lambda radius, sigma, d: float(gaussian_weights(radius, sigma)[radius + d])
FUNCTIONS["gauss_steps"] = lambda radius, sigma, d: byte_steps(radius, sigma)[d]
