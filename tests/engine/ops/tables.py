"""What the tests of look-up tables share."""

from __future__ import annotations

import itertools
import math

import numpy as np

from tests.support.tolerances import assert_close


def ramp(n, low=(0, 0, 0), high=(1, 1, 1)):
    """Return the identity table."""
    axes = [np.linspace(a, b, n) for a, b in zip(low, high, strict=True)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).astype("<f4")


def table(n, seed=1):
    return np.random.default_rng(seed).uniform(-0.1, 1.1, (n, n, n, 3)).astype("<f4")


def curve(n):
    """Return waves, which a fine table interpolates almost exactly."""
    x = np.linspace(0, 1, n)[:, None]
    return (0.5 + 0.55 * np.sin(5 * x + np.array([0.0, 2.0, 4.0]))).astype("<f4")


def picture(shape, dtype, seed=2):
    image = np.random.default_rng(seed).integers(0, 256, shape, "u1")
    return image if dtype == "u8" else (image / 255).astype("<f4")


def corners(lut, color, low, high, method):
    """Look up one color at a time, with the weights of the eight corners written out."""
    n = lut.shape[0]
    t = [min(max((c - a) / (b - a) * (n - 1), 0), n - 1) for c, a, b in zip(color, low, high)]  # noqa: B905
    cell = [min(int(v), n - 2) for v in t]
    r, g, b = (v - i for v, i in zip(t, cell, strict=True))
    weights = {}
    if method == "trilinear":
        for corner in itertools.product((0, 1), repeat=3):
            parts = [p if s else 1 - p for s, p in zip(corner, (r, g, b), strict=True)]
            weights[corner] = math.prod(parts)
    else:  # the six tetrahedra, by the order of the fractions
        if r >= g >= b:
            path = (1, 0, 0), (1, 1, 0), (r, g, b)
        elif r >= b >= g:
            path = (1, 0, 0), (1, 0, 1), (r, b, g)
        elif b >= r >= g:
            path = (0, 0, 1), (1, 0, 1), (b, r, g)
        elif g >= r >= b:
            path = (0, 1, 0), (1, 1, 0), (g, r, b)
        elif g >= b >= r:
            path = (0, 1, 0), (0, 1, 1), (g, b, r)
        else:
            path = (0, 0, 1), (0, 1, 1), (b, g, r)
        second, third, (x, y, z) = path
        weights = {(0, 0, 0): 1 - x, second: x - y, third: y - z, (1, 1, 1): z}
    found = np.zeros(3)
    for corner, weight in weights.items():
        found += weight * lut[tuple(np.add(cell, corner))].astype(float)
    return found


def expected(image, lut, method="tetrahedral", amount=1.0, low=(0, 0, 0), high=(1, 1, 1)):
    values = image / 255.0 if image.dtype == np.uint8 else image.astype(float)
    made = values.copy()
    for at in np.ndindex(*image.shape[:2]):
        color = values[at][:3]
        if lut.ndim == 2:
            n = len(lut)
            grid = [np.linspace(a, b, n) for a, b in zip(low, high, strict=True)]
            found = np.array([np.interp(color[c], grid[c], lut[:, c]) for c in range(3)])
        else:
            found = corners(lut, color, low, high, method)
        made[at][:3] = color + (found - color) * amount
    return made


def assert_is(got, exact, slack=0.51):
    if got.dtype == np.uint8:
        off = np.abs(got - np.clip(exact, 0, 1) * 255)
        assert off.max() <= slack, f"{off.max():.3f} steps at {np.argwhere(off > slack)[0]}"
    else:
        assert_close(got, exact.astype("<f4"), "webgpu", "program")
