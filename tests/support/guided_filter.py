"""A guided filter for masks, in NumPy."""

import numpy as np


def refine(mask, guide, radius=4, softness=1e-3):
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
    return np.clip(made, 0, 1)


def _mean(x, radius):
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
