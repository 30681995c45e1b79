"""Weights of a Gaussian blur."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

#: The radius of a blur at most, in pixels.
MAX_RADIUS: Final = 200


def gaussian_weights(radius: int, sigma: float) -> np.ndarray[Any, Any]:
    """Return normalized f64 weights exp(-d**2 / (2 sigma**2)) for d in -radius..radius."""
    with np.errstate(over="ignore", under="ignore"):
        far = np.arange(-radius, radius + 1) / sigma
        weights = np.exp(-0.5 * far * far)
    found: np.ndarray[Any, Any] = weights / weights.sum()
    return found
