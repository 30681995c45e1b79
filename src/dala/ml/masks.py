"""Mask post-processing: a guided filter for edges, and smoothing over time."""

from __future__ import annotations

import numpy as np

from dala.errors import ParameterError
from dala.typing import NDArray


def refine(mask: NDArray, guide: NDArray, radius: int = 4, softness: float = 1e-3) -> NDArray:
    """Align the edges of a mask with those of a picture, with a guided filter.

    Args:
        mask: shape (height, width), 0 to 1.
        guide: the picture in gray, shape (height, width), 0 to 1.
        radius: half the side of the filter window.
        softness: the variance in the picture from which an area counts as an edge.
    """
    mask, guide = np.asarray(mask, np.float32), np.asarray(guide, np.float32)
    mean_i, mean_p = _mean(guide, radius), _mean(mask, radius)
    slope = (_mean(guide * mask, radius) - mean_i * mean_p) / (
        _mean(guide * guide, radius) - mean_i * mean_i + softness
    )
    offset = mean_p - slope * mean_i
    made = _mean(slope, radius) * guide + _mean(offset, radius)
    clipped: NDArray = np.clip(made, 0, 1)
    return clipped


def _mean(x: NDArray, radius: int) -> NDArray:
    """Return the mean of the window around each element; windows are cut at the borders."""
    for axis in (0, 1):
        n = x.shape[axis]
        total = x.copy()
        source, sums = np.moveaxis(x, axis, 0), np.moveaxis(total, axis, 0)
        for shift in range(1, min(radius, n - 1) + 1):
            sums[shift:] += source[:-shift]
            sums[:-shift] += source[shift:]
        at = np.arange(n)
        count = np.minimum(at + radius, n - 1) - np.maximum(at - radius, 0) + 1
        sums /= count.astype(x.dtype)[:, None]
        x = total
    return x


class TemporalSmoother:
    """Smooths masks over time: small changes are damped, large ones pass.

    Args:
        amount: the weight of the previous mask where little changes, from 0 to below 1.

    >>> smooth = TemporalSmoother(0.5)
    >>> float(smooth(np.array([[0.0]]))[0, 0]), float(smooth(np.array([[0.2]]))[0, 0]) < 0.2
    (0.0, True)
    """

    def __init__(self, amount: float = 0.6) -> None:
        if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 <= amount < 1:
            raise ParameterError.invalid(
                "TemporalSmoother", "amount", "a number from 0 to below 1", amount
            )
        self.amount = float(amount)
        self._last: NDArray | None = None

    def __call__(self, mask: NDArray) -> NDArray:
        """Return the next mask, smoothed. A mask of another size resets the history."""
        mask = np.asarray(mask, np.float32)
        last = self._last
        if last is not None and last.shape == mask.shape:
            # No smoothing where the mask flips, so moving objects leave no trail.
            keep = self.amount * (1 - np.clip(np.abs(mask - last) * 1.5, 0, 1))
            mask = (mask + (last - mask) * keep).astype(np.float32)
        self._last = mask
        return mask

    def reset(self) -> None:
        """Reset the history, for example after a cut."""
        self._last = None
