"""Pictures of bytes drawn over others: equal on every engine, and near the formula."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from tests.support import pictures
from tests.support.engines import run


def noise(seed, channels):
    made = np.random.default_rng(seed).integers(0, 256, (45, 61, channels), "u1")
    if channels == 4:
        made[:9, :, 3], made[9:18, :, 3] = 255, 0
    return made


def exact(base, over, opacity):
    """Return the formula in f64, in steps."""
    opaque = np.full((*base.shape[:2], 1), 255, "u1")
    base, over = (p if p.shape[2] == 4 else np.dstack([p, opaque]) for p in (base, over))
    s, below = over[..., 3:] / 255.0 * opacity, base[..., 3:] / 255.0
    a = s + below * (1.0 - s)
    share = np.divide(s, a, out=np.zeros_like(s), where=a > 0)
    color = base[..., :3] + (over[..., :3].astype(float) - base[..., :3]) * share
    return np.concatenate([color, a * 255.0], axis=-1)


@pytest.mark.parametrize("opacity", [1.0, 0.5, 0.3, 1e-3, 0.0])
@pytest.mark.parametrize(("first", "second"), [(4, 4), (3, 4), (4, 3), (3, 3)])
def test_bytes_equal_the_definition(engine_id, opacity, first, second):
    base, over = noise(1, first), noise(2, second)
    base[20:30] = pictures.photo(10, 61)[..., :first]
    params = {"opacity": opacity}
    got = run("overlay_alpha", [base, over], base.shape, "u8", params)
    with dala.device("reference"):
        assert np.array_equal(got, run("overlay_alpha", [base, over], base.shape, "u8", params))
    wanted = exact(base, over, opacity)
    off = np.abs(got - wanted[..., :first])
    # Where both are translucent, 16 bits of a small alpha make a coarser color.
    solid = opacity == 1.0 or first == 3
    visible = slice(None) if solid else wanted[..., 3] > 100
    assert off[visible].max() <= (0.51 if solid else 0.53)
    if opacity == 1.0 and first == second == 3:
        assert np.array_equal(got, over)
    if opacity == 0.0:
        assert np.array_equal(got, base)


def test_rgb_equals_opaque_rgba(engine_id):
    base, over = noise(1, 3), noise(2, 4)
    full = np.dstack([base, np.full(base.shape[:2], 255, "u1")])
    got = run("overlay_alpha", [full, over], full.shape, "u8", {"opacity": 0.7})
    assert np.array_equal(got[..., :3], run("overlay_alpha", [base, over], base.shape, "u8",
                                            {"opacity": 0.7}))  # fmt: skip
    assert (got[..., 3] == 255).all()


def test_opaque_pixels_are_rounded_exactly(engine_id):
    """Every alpha over every pair of a few bytes, against the exact quotient."""
    few = np.array([0, 1, 2, 99, 127, 128, 200, 254, 255])
    alpha, s, d = (v.reshape(-1) for v in np.meshgrid(np.arange(256), few, few, indexing="ij"))
    base = np.stack([d, d, d, np.full_like(d, 255)], axis=-1).astype("u1")[None]
    over = np.stack([s, s, s, alpha], axis=-1).astype("u1")[None]
    got = run("overlay_alpha", [base, over], base.shape, "u8")
    assert np.array_equal(got[0, :, 0], (2 * (s * alpha + d * (255 - alpha)) + 255) // 510)
