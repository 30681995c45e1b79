"""Weights of Gaussian and box blurs."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

#: The largest radius of a blur, in pixels.
MAX_RADIUS: Final = 200


def gaussian_weights(radius: int, sigma: float) -> npt.NDArray[np.float64]:
    """Return normalized f64 weights exp(-d**2 / (2 sigma**2)) for d in -radius..radius."""
    with np.errstate(over="ignore", under="ignore"):
        far = np.arange(-radius, radius + 1) / sigma
        weights = np.exp(-0.5 * far * far)
    found: npt.NDArray[np.float64] = weights / weights.sum()
    return found


def box_weights(radius: int) -> npt.NDArray[np.float64]:
    """Return 2 * radius + 1 equal weights that sum to 1."""
    return np.full(2 * radius + 1, 1.0 / (2 * radius + 1))
