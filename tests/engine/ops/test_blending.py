"""Blend modes of the compositor: equal bytes on every engine, and near W3C's formulas in f64."""

from __future__ import annotations

import numpy as np
import pytest

from dala.gpu.compute.composite import BLENDS, FILL, LINEAR, OPAQUE, PICTURE, RING, TINT
from tests.engine.ops.test_compositing import BACKDROPS, PLACES, box, noise, opaque, render
from tests.support import pictures as photos


def overlay(b, s):
    return np.where(b <= 0.5, 2 * b * s, 1 - 2 * (1 - b) * (1 - s))


def dodge(b, s):
    quotient = np.divide(b, 1 - s, out=np.ones_like(b), where=s < 1)
    return np.where(b <= 0, 0.0, np.where(s >= 1, 1.0, np.minimum(1, quotient)))


def soft(b, s):
    d = np.where(b <= 0.25, ((16 * b - 12) * b + 4) * b, np.sqrt(b))
    return np.where(s <= 0.5, b - (1 - 2 * s) * b * (1 - b), b + (2 * s - 1) * (d - b))


def lum(c):
    return (c @ [0.3, 0.59, 0.11])[..., None]


def sat(c):
    return c.max(-1, keepdims=True) - c.min(-1, keepdims=True)


def set_sat(c, wanted):
    whole = sat(c)
    low = c.min(-1, keepdims=True)
    return np.divide((c - low) * wanted, whole, out=np.zeros_like(c), where=whole > 0)


def set_lum(c, light):
    c = c + light - lum(c)
    least, most = c.min(-1, keepdims=True), c.max(-1, keepdims=True)
    with np.errstate(all="ignore"):
        c = np.where(least < 0, light + (c - light) * light / (light - least), c)
        return np.where(most > 1, light + (c - light) * (1 - light) / (most - light), c)


MIXES = {
    "hue": lambda b, s: set_lum(set_sat(s, sat(b)), lum(b)),
    "saturation": lambda b, s: set_lum(set_sat(b, sat(s)), lum(b)),
    "color": lambda b, s: set_lum(s, lum(b)),
    "luminosity": lambda b, s: set_lum(b, lum(s)),
    "over": lambda b, s: s,
    "multiply": lambda b, s: b * s,
    "screen": lambda b, s: b + s - b * s,
    "overlay": overlay,
    "darken": np.minimum,
    "lighten": np.maximum,
    "color-dodge": dodge,
    "color-burn": lambda b, s: 1 - dodge(1 - b, 1 - s),
    "hard-light": lambda b, s: overlay(s, b),
    "soft-light": soft,
    "difference": lambda b, s: np.abs(b - s),
    "exclusion": lambda b, s: b + s - 2 * b * s,
}


def light(x):
    return np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)


def coded(x):
    return np.where(x <= 0.0031308, x * 12.92, 1.055 * np.maximum(x, 1e-9) ** (1 / 2.4) - 0.055)


def formula(mode, back, source, opacity, linear):
    """Blend straight bytes over straight bytes in f64; the result is in steps."""
    back, source = back / 255.0, source / 255.0
    below, above = back[..., 3:], source[..., 3:] * opacity
    b, s = back[..., :3], source[..., :3]
    if linear:
        b, s = light(b), light(s)
    if mode == "add":
        alpha = np.minimum(above + below, 1)
        colors = np.minimum(above * s + below * b, 1)
    else:
        alpha = above + below * (1 - above)
        mixed = (1 - below) * s + below * MIXES[mode](b, s)
        colors = above * mixed + (1 - above) * below * b
    colors = np.clip(np.divide(colors, alpha, out=np.zeros_like(colors), where=alpha > 0), 0, 1)
    return np.concatenate([coded(colors) if linear else colors, alpha], axis=-1) * 255.0


def layers():
    """Return a backdrop and a picture of its size: noise, a photo, every kind of alpha."""
    back, source = noise(2, 97, 61), noise(1, 97, 61)
    back[40:50, :60, :3], source[45:55, 20:80, :3] = (
        photos.photo(10, 60)[..., :3], photos.photo(10, 60)[..., :3],
    )  # fmt: skip
    source[:9, :, 3] = 255
    return back, source


@pytest.mark.third
@pytest.mark.parametrize("blend", BLENDS)
@pytest.mark.parametrize("linear", [0, LINEAR], ids=["srgb", "linear"])
def test_blends_equal_the_definition(dala_device: str, blend: str, linear: int) -> None:
    back, source = layers()
    for opacity in (1.0, 0.6, 1 / 255):
        draws = np.concatenate([
            box(PICTURE, 0, 0, 97, 61, picture=source, blend=blend, flags=linear, opacity=opacity),
            box(FILL, 30, 8, 40, 45, color=(240, 120, 10, 160), blend=blend, flags=linear),
            box(TINT, 3, 2, 97, 61, picture=source, color=(9, 99, 255, 201), blend=blend),
        ])  # fmt: skip
        given = {"size": (97, 61), "start": back, "background": None}
        wanted = render("reference", draws, [source], **given)
        assert np.array_equal(render(dala_device, draws, [source], **given), wanted)


@pytest.mark.parametrize("blend", BLENDS)
@pytest.mark.parametrize("linear", [0, LINEAR], ids=["srgb", "linear"])
@pytest.mark.parametrize("opacity", [1.0, 0.6])
def test_the_definition_is_near_the_formula(blend: str, linear: int, opacity: float) -> None:
    back, source = layers()
    for backdrop in (back, np.dstack([back[..., :3], np.full((61, 97), 255, "u1")])):
        draws = box(PICTURE, 0, 0, 97, 61, picture=source, blend=blend, flags=linear,
                    opacity=opacity)  # fmt: skip
        got = render("reference", draws, [source], size=(97, 61), start=backdrop, background=None)
        wanted = formula(blend, backdrop, source, opacity, bool(linear))
        # Where the source is transparent, the pixel stays; a small alpha has a coarse color.
        seen = (source[..., 3] > 0) & (wanted[..., 3] > 100)
        # In linear light 16 bits are a twentieth of a step where it is darkest.
        assert np.abs(got - wanted)[seen].max() <= (0.6 if linear else 0.51)


def test_pictures_at_their_own_size_are_equal(dala_device: str) -> None:
    """Copies, opacity, fills: no value differs from the definition."""
    picture, solid = noise(3, 40, 30), opaque(4, 40, 30)
    for background in BACKDROPS.values():
        draws = np.concatenate([
            box(PICTURE, 2, 1, 40, 30, picture=solid, number=1, flags=OPAQUE),
            box(PICTURE, 20, 11, 40, 30, picture=picture),
            box(PICTURE, 33, 21, 40, 30, picture=picture, opacity=0.37),
            box(FILL, 50, 20, 30, 40, color=(250, 9, 90, 77), opacity=0.9),
            box(TINT, 60, 30, 40, 30, picture=picture, color=(1, 250, 9, 200)),
        ])  # fmt: skip
        wanted = render("reference", draws, [picture, solid], background=background)
        got = render(dala_device, draws, [picture, solid], background=background)
        assert np.array_equal(got, wanted)


@pytest.mark.parametrize("radius", [0, 0.3, 1, 7.5, 40])
@pytest.mark.parametrize("place", ["whole", "between", "larger", "smaller", "thin", "above"])
def test_unrotated_boxes_are_equal(dala_device: str, radius: float, place: str) -> None:
    """Edges, round corners and rings anywhere, and pictures at their own size inside them."""
    picture, where = noise(4, 40, 30), PLACES[place]
    draws = np.concatenate([
        box(FILL, *where, radius=radius, color=(0, 0, 255, 255), opacity=0.5),
        box(RING, *where, radius=radius, width=3.5, color=(9, 250, 80, 200)),
        box(PICTURE, 30, 20, 40, 30, picture=picture, radius=radius, opacity=0.8),
        box(FILL, 60.7, 40.1, 20, 13, radius=radius, color=(99, 0, 9, 255), blend="screen"),
    ])  # fmt: skip
    for background in BACKDROPS.values():
        wanted = render("reference", draws, [picture], background=background)
        assert np.array_equal(render(dala_device, draws, [picture], background=background), wanted)
