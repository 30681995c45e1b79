"""What the tests of scenes share."""

from __future__ import annotations

import numpy as np

RNG = np.random.default_rng(11)


PHOTO = RNG.integers(0, 256, (20, 30, 3), dtype=np.uint8)


def pixels(scene, time=None):
    return np.array(scene.render(time)).astype(int)


def assert_near(got, want, steps=2):
    got, want = np.asarray(got, int), np.asarray(want, int)
    assert got.shape == want.shape
    assert np.abs(got - want).max(initial=0) <= steps


def over(below, picture, opacity=1.0):
    """Return straight RGBA over an opaque picture, by definition."""
    alpha = picture[..., 3:] / 255 * opacity
    colors = picture[..., :3] * alpha + below[..., :3] * (1 - alpha)
    return np.dstack([colors, np.full(colors.shape[:2], 255)]).round().astype(int)


def ground(color=(0, 0, 0, 255), size=(30, 20)):
    return np.full((size[1], size[0], 4), color, int)
