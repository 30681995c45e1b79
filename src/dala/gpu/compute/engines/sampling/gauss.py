"""The weights of a Gaussian blur."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

#: How far a blur may reach, in pixels.
MAX_RADIUS: Final = 200


def gaussian_weights(radius: int, sigma: float) -> np.ndarray[Any, Any]:
    """The weights of the pixels -radius..radius: exp(-d**2 / (2 sigma**2)), their sum 1; f64."""
    with np.errstate(over="ignore", under="ignore"):
        far = np.arange(-radius, radius + 1) / sigma
        weights = np.exp(-0.5 * far * far)
    found: np.ndarray[Any, Any] = weights / weights.sum()
    return found
