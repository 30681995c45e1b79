"""Masks made better: edges drawn to those of the picture, and steady from frame to frame."""

from __future__ import annotations

from typing import Any

import numpy as np

from dala.errors import ParameterError


def refine(mask: Any, guide: Any, radius: int = 4, softness: float = 1e-3) -> Any:
    """A mask whose edges follow those of a picture: the guided filter.

    Within each window the mask is taken for a linear function of the picture, so it bends where
    the picture does.

    Args:
        mask: (height, width), 0..1.
        guide: the picture, (height, width), 0..1.
        radius: half the window's side.
        softness: how large a variance of the picture counts as an edge.
    """
    mask, guide = np.asarray(mask, np.float32), np.asarray(guide, np.float32)
    mean_i, mean_p = _mean(guide, radius), _mean(mask, radius)
    slope = (_mean(guide * mask, radius) - mean_i * mean_p) / (
        _mean(guide * guide, radius) - mean_i * mean_i + softness
    )
    offset = mean_p - slope * mean_i
    made = _mean(slope, radius) * guide + _mean(offset, radius)
    return np.clip(made, 0, 1)


def _mean(x: Any, radius: int) -> Any:
    """The mean of the window around each number, smaller at the borders."""
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


class Steady:
    """Masks smoothed in time: small changes come slowly, large ones at once.

    >>> steady = Steady(0.5)
    >>> float(steady(np.array([[0.0]]))[0, 0]), float(steady(np.array([[0.2]]))[0, 0]) < 0.2
    (0.0, True)

    Args:
        amount: how much of the last mask stays where little changes, 0 (none) to below 1.
    """

    def __init__(self, amount: float = 0.6) -> None:
        if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 <= amount < 1:
            raise ParameterError(f"Steady: amount is 0 to below 1, {amount!r} came.")
        self.amount = float(amount)
        self._last: Any = None

    def __call__(self, mask: Any) -> Any:
        """The next mask, smoothed; one of another size starts afresh."""
        mask = np.asarray(mask, np.float32)
        last = self._last
        if last is not None and last.shape == mask.shape:
            # Where a mask flips, what was there is let go: no trail behind what moves.
            keep = self.amount * (1 - np.clip(np.abs(mask - last) * 1.5, 0, 1))
            mask = (mask + (last - mask) * keep).astype(np.float32)
        self._last = mask
        return mask

    def reset(self) -> None:
        """Forgets the past, as after a cut."""
        self._last = None
