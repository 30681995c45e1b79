"""Blend modes against the formulas of the W3C's "Compositing and Blending Level 1"."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from dala.errors import ParameterError, ShapeMismatch
from dala.media import Frame, gpu
from dala.media.filters.blending import MODES
from tests.support.tolerances import assert_close

RNG = np.random.default_rng(4)
#: Every combination of some levels in one channel, and alphas.
LEVELS = np.array([0, 1, 63, 64, 127, 128, 191, 254, 255], np.uint8)


# the standard, in double precision, one pixel at a time ------------------------------------------
def lum(c):
    return 0.3 * c[0] + 0.59 * c[1] + 0.11 * c[2]


def clip_color(c):
    level, n, x = lum(c), min(c), max(c)
    if n < 0:
        c = [level + (v - level) * level / (level - n) for v in c]
    if x > 1:
        c = [level + (v - level) * (1 - level) / (x - level) for v in c]
    return c


def set_lum(c, level):
    d = level - lum(c)
    return clip_color([v + d for v in c])


def sat(c):
    return max(c) - min(c)


def set_sat(c, s):
    low, middle, high = sorted(range(3), key=lambda i: c[i])
    made = [0.0, 0.0, 0.0]
    if c[high] > c[low]:
        made[middle] = (c[middle] - c[low]) * s / (c[high] - c[low])
        made[high] = s
    return made


def hard_light(b, s):
    return b * 2 * s if s <= 0.5 else b + (2 * s - 1) - b * (2 * s - 1)


def color_dodge(b, s):
    return 0 if b == 0 else 1 if s == 1 else min(1, b / (1 - s))


def color_burn(b, s):
    return 1 if b == 1 else 0 if s == 0 else 1 - min(1, (1 - b) / s)


def soft_light(b, s):
    d = ((16 * b - 12) * b + 4) * b if b <= 0.25 else b**0.5
    return b - (1 - 2 * s) * b * (1 - b) if s <= 0.5 else b + (2 * s - 1) * (d - b)


CHANNELS = {
    "normal": lambda b, s: s,
    "multiply": lambda b, s: b * s,
    "screen": lambda b, s: b + s - b * s,
    "overlay": lambda b, s: hard_light(s, b),
    "darken": min,
    "lighten": max,
    "color-dodge": color_dodge,
    "color-burn": color_burn,
    "hard-light": hard_light,
    "soft-light": soft_light,
    "difference": lambda b, s: abs(b - s),
    "exclusion": lambda b, s: b + s - 2 * b * s,
}
COLORS = {
    "hue": lambda b, s: set_lum(set_sat(s, sat(b)), lum(b)),
    "saturation": lambda b, s: set_lum(set_sat(b, sat(s)), lum(b)),
    "color": lambda b, s: set_lum(s, lum(b)),
    "luminosity": lambda b, s: set_lum(b, lum(s)),
}


def pixel(mode, base, over, opacity):
    *cb, ab = base
    *cs, alpha = over
    alpha = alpha * opacity
    if mode in COLORS:
        mixed = COLORS[mode](cb, cs)
    else:
        mixed = [CHANNELS[mode](b, s) for b, s in zip(cb, cs, strict=True)]
    cs = [(1 - ab) * s + ab * m for s, m in zip(cs, mixed, strict=True)]
    whole = alpha + ab * (1 - alpha)
    if whole == 0:
        return [*cb, 0.0]
    return [
        *((alpha * s + ab * b * (1 - alpha)) / whole for s, b in zip(cs, cb, strict=True)),
        whole,
    ]


def widened(image):
    values = image / 255.0 if image.dtype == np.uint8 else image.astype(float)
    values = values[..., None] if values.ndim == 2 else values
    color = np.repeat(values, 3, axis=-1) if values.shape[-1] == 1 else values[..., :3]
    alpha = values[..., 3:] if values.shape[-1] == 4 else np.ones_like(color[..., :1])
    return np.concatenate([color, alpha], axis=-1)


@cache
def case(shape):
    """Return two pictures: random colors, with some extreme levels and alphas."""
    made = []
    for _ in range(2):
        image = RNG.integers(0, 256, shape, dtype=np.uint8)
        image[0] = RNG.choice(LEVELS, image[0].shape)
        if shape[2:] == (4,):
            image[..., 3] = RNG.choice([0, 1, 128, 255], shape[:2])
        made.append(image)
    return made


@cache
def expected(mode, shape, opacity):
    base, over = (widened(i) for i in case(shape))
    made = [
        pixel(mode, b, o, opacity)
        for b, o in zip(base.reshape(-1, 4).tolist(), over.reshape(-1, 4).tolist(), strict=True)
    ]
    made = np.array(made).reshape(base.shape)
    return made[..., 0] if len(shape) == 2 else made[..., : shape[2]]


def test_all_modes_of_the_standard():
    assert [*CHANNELS, *COLORS] == list(MODES)
    assert len(MODES) == 16


@pytest.mark.parametrize("mode", MODES)
def test_values(engine_id, mode):
    shapes = [((9, 7, 4), 0.6)]
    if mode in ("color-burn", "luminosity"):
        shapes += [((3, 6, 4), 1.0), ((4, 5, 3), 0.75), ((3, 9), 1.0)]
    for shape, opacity in shapes:
        base, over = case(shape)
        want = expected(mode, shape, opacity)
        got = gpu.blend(base, over, mode=mode, opacity=opacity)
        assert got.dtype == np.uint8
        assert np.abs(got - np.clip(want, 0, 1) * 255).max() <= 0.52
    light = [(image / 255).astype(np.float32) for image in case((9, 7, 4))]
    got = gpu.blend(*light, mode=mode)
    assert_close(got, expected(mode, (9, 7, 4), 1.0).astype("<f4"), "webgpu", "program")


def test_multiply_of_a_transparent_backdrop_is_the_source(engine_id):
    base = np.array([[[10, 20, 30, 0]]], np.uint8)
    over = np.array([[[200, 100, 50, 128]]], np.uint8)
    assert gpu.blend(base, over, mode="multiply").tolist() == [[[200, 100, 50, 128]]]
    assert gpu.blend(base, over, opacity=0.0).tolist() == base.tolist()


def test_pictures_of_other_kinds_and_channels(engine_id):
    base, over = case((5, 7, 4))
    want = gpu.blend(base[..., :3], over, mode="screen")
    assert gpu.blend(Frame.from_array(base[..., :3]), over, mode="screen").numpy().tolist() == (
        want.tolist()
    )
    wide = np.repeat(over[..., :1], 3, axis=-1)
    gray = np.ascontiguousarray(over[..., 0])
    assert np.array_equal(gpu.blend(base, gray, mode="hue"), gpu.blend(base, wide, mode="hue"))


def test_a_list_fuses_into_one_pass():
    base, over = case((5, 7, 4))
    with gpu.start_pipeline(7, 5, device="cpu") as ctx:
        filters = [
            "invert",
            ("blend", {"over": over, "mode": "overlay"}),
            ("brightness", {"value": 0.1}),
        ]
        got = gpu.process_frame(ctx, base, filters)
        assert ctx.passes == 1
    one = gpu.brightness(gpu.blend(gpu.invert(base), over, mode="overlay"), value=0.1)
    assert np.abs(got.astype(int) - one).max() <= 1


@pytest.mark.parametrize(
    ("params", "error", "text"),
    [
        (
            {"mode": "multiplyy"},
            ParameterError,
            "blend: mode must be one of 'normal', .*, got 'multiplyy'. Did you mean 'multiply'?",
        ),
        ({"opacity": 1.5}, ParameterError, "blend: opacity must be a number from 0 to 1, got 1.5"),
    ],
)
def test_errors(params, error, text):
    base, over = case((5, 7, 4))
    with pytest.raises(error, match=text):
        gpu.blend(base, over, device="cpu", **params)


def test_errors_of_the_second_picture():
    base, _ = case((5, 7, 4))
    with pytest.raises(
        ShapeMismatch, match="blend: over must be a picture of the same size, 7 x 5, got '7 x 4'"
    ):
        gpu.blend(base, base[:4], device="cpu")
    with pytest.raises(TypeError, match="over"):
        gpu.blend(base)
    with pytest.raises(TypeError, match="blend: a picture must be an array"):
        gpu.blend(base, "title.png", device="cpu")
