"""What the tests of writing share."""

from __future__ import annotations

import numpy as np

from dala.media import video


def glass(width=48, height=32):
    """Colors that change slowly, and alpha from 0 to 255."""
    y, x = np.mgrid[0:height, 0:width]
    parts = [x * 5, y * 7, x * 0 + 90, x * 255 // (width - 1)]
    return np.stack(parts, axis=-1).astype(np.uint8)


def plain(count=5):
    return [glass()[..., :3]] * count


def count(data, suffix, folder):
    path = folder / f"read.{suffix}"
    path.write_bytes(data)
    with video.open(path) as reader:
        return len(list(reader))
