"""Gains, fades and panning of samples: ours, exact to the sample and the same in any block."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from dala.arguments import Selection
from dala.media.audio.checks import Samples
from dala.typing import NDArray

CURVES: Final = ("linear", "equal_power")
CURVE: Final = Selection(*CURVES)


def fade_gains(positions: NDArray, length: int, curve: str) -> NDArray:
    """Return the factors of a fade from silence, at positions counted from its beginning.

    Position 0 is silent, ``length`` and later ones are unchanged. Linear fades in and out add up to
    1, those of equal power to a power of 1.

    >>> fade_gains(np.arange(-1, 5), 4, "linear").tolist()
    [0.0, 0.0, 0.25, 0.5, 0.75, 1.0]
    """
    if length <= 0:
        return np.ones(len(positions), np.float32)
    steps = np.clip(positions / length, 0.0, 1.0)
    if curve == "equal_power":
        steps = np.sin(steps * (math.pi / 2))
    return steps.astype(np.float32)


def apply_fades(
    block: Samples, first: int, total: int | None, fade_in: int, fade_out: int, curve: str
) -> Samples:
    """Return a block with the fades of the sound that it is part of.

    Args:
        block: samples.
        first: position of its first sample in the sound.
        total: samples of the sound; None if it has no end.
        fade_in, fade_out: samples of the fades.
        curve: "linear" or "equal_power".
    """
    count = len(block)
    if fade_in > 0 and first < fade_in:
        gains = fade_gains(np.arange(first, first + count), fade_in, curve)
        block = block * gains[:, None]
    if fade_out > 0 and total is not None and first + count > total - fade_out:
        gains = fade_gains(total - np.arange(first, first + count), fade_out, curve)
        block = block * gains[:, None]
    return block


def pan_gains(position: NDArray) -> tuple[NDArray, NDArray]:
    """Return the factors of left and right for a mono sound: equal power, -1 left, 1 right.

    >>> left, right = pan_gains(np.array([-1.0, 0.0, 1.0]))
    >>> left.astype(float).round(4).tolist(), right.astype(float).round(4).tolist()
    ([1.0, 0.7071, 0.0], [0.0, 0.7071, 1.0])
    """
    angle = (np.asarray(position, np.float64) + 1) * (math.pi / 4)
    return np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)


def pan_mono(block: Samples, position: NDArray) -> Samples:
    """Return a mono block as stereo at positions, one or one for each sample."""
    left, right = pan_gains(position)
    return np.stack((block[:, 0] * left, block[:, 0] * right), axis=1)


def pan_stereo(block: Samples, position: NDArray) -> Samples:
    """Return a stereo block moved to positions: the center leaves it as it is.

    Towards one side, the channel of the other side moves over to it by the law of equal power, as
    the StereoPannerNode of browsers does.
    """
    where = np.asarray(position, np.float64)
    angle = np.where(where <= 0, where + 1, where) * (math.pi / 2)
    near = np.cos(angle).astype(np.float32)
    far = np.sin(angle).astype(np.float32)
    left, right = block[:, 0], block[:, 1]
    to_left = (left + right * near, right * far)
    to_right = (left * near, right + left * far)
    aside = where <= 0
    panned = (np.where(aside, a, b) for a, b in zip(to_left, to_right, strict=True))
    return np.stack(tuple(panned), axis=1).astype(np.float32, copy=False)
