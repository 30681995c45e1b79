"""Filter kernels against their formulas in NumPy (tests/support/filter_formulas.py).

Values are compared on small pictures of every shape, where the border is a large part. Alpha,
neutral parameters, ranges and the purpose of each filter have their own tests.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

import dala
from dala.gpu import compute
from dala.gpu.compute import kernels
from dala.media.filters.declarations import declared
from tests.support import pictures
from tests.support.engines import run
from tests.support.filter_formulas import FILTERS, LUMA, overlay_alpha
from tests.support.tolerances import assert_close

SHAPES = [(9, 14), (6, 5, 1), (9, 14, 3), (9, 14, 4), (1, 1, 4), (1, 7, 3), (6, 1), (2, 2, 4)]
STENCILS = ["sharpen", "edge_detect", "denoise", "beauty", "erode", "dilate", "median"]
TWO_INPUTS = {"overlay_alpha", "video_mix"}
KEEP_ALPHA = [name for name in FILTERS if declared()[name].keeps_alpha]


# pictures -----------------------------------------------------------------------------------------
def picture(shape, dtype, seed=3):
    """Return a part of the generated photograph with noise and alphas from 0 to 1."""
    height, width = shape[:2]
    whole = pictures.photo(50, 80)[18 : 18 + height, 8 : 8 + width].astype(float)
    random = np.random.default_rng(seed)
    whole[..., :3] += random.integers(-20, 21, (height, width, 3))
    whole[..., 3] = random.choice([0, 1, 64, 128, 200, 255], (height, width))
    image = np.clip(whole, 0, 255).astype("u1")
    image = image[..., 1].reshape(shape) if len(shape) == 2 or shape[2] == 1 else image
    image = image if image.ndim == 2 else image[..., : shape[2]]
    return np.ascontiguousarray(image if dtype == "u8" else (image / 255).astype("<f4"))


def widened(image):
    """Return a stored image as four channels of f64."""
    values = image / 255.0 if image.dtype == np.uint8 else image.astype(float)
    values = values[..., None] if values.ndim == 2 else values
    color = np.repeat(values, 3, axis=-1) if values.shape[-1] == 1 else values[..., :3]
    alpha = values[..., 3:] if values.shape[-1] == 4 else np.ones_like(color[..., :1])
    return np.concatenate([color, alpha], axis=-1)


def assert_is(got, exact, shape, dtype):
    """Check that u8 is the exact value rounded, within 1/50 of a step, and f32 as in the table."""
    exact = exact[..., :1] if len(shape) == 2 else exact[..., : shape[2]]
    exact = exact.reshape(shape)
    if dtype == "f32":
        assert_close(got, exact.astype("<f4"), "webgpu", "program")
    else:
        off = np.abs(got - np.clip(exact, 0, 1) * 255)
        assert off.max() <= 0.52, f"{off.max():.3f} steps at {np.argwhere(off > 0.52)[0]}"


def apply(name, images, params=None):
    dtype = "u8" if images[0].dtype == np.uint8 else "f32"
    return run(name, images, images[0].shape, dtype, params)


def given(name, shape, dtype):
    return [picture(shape, dtype, seed) for seed in ((3, 4) if name in TWO_INPUTS else (3,))]


# every filter -------------------------------------------------------------------------------------
def test_every_filter_is_covered():
    assert set(FILTERS) <= set(kernels())
    assert set(FILTERS) == set(pictures.FILTERS)


@pytest.mark.third
@pytest.mark.parametrize("name", FILTERS)
def test_values_of_floats(engine_id, name):
    assert_values(name, "f32")


@pytest.mark.parametrize("name", FILTERS)
def test_values_of_bytes(name):
    """On the reference, whose bytes are those of every engine (``tests/engine/answers``)."""
    with dala.device("reference"):
        assert_values(name, "u8")


def assert_values(name, dtype):
    _, cases, _ = FILTERS[name]
    for shape in SHAPES:
        images = given(name, shape, dtype)
        for number, params in enumerate(cases):
            exact = exact_result(name, shape, dtype, number)
            assert_is(apply(name, images, params), exact, shape, dtype)


@cache  # the engines run one after another, with the same pictures
def exact_result(name, shape, dtype, case):
    formula, cases, _ = FILTERS[name]
    return formula(*map(widened, given(name, shape, dtype)), **cases[case])


@pytest.mark.parametrize("name", KEEP_ALPHA)
def test_alpha_is_kept(engine_id, name):
    for dtype in ("u8", "f32"):
        image = picture((9, 14, 4), dtype)
        for params in FILTERS[name][1]:
            assert np.array_equal(apply(name, [image], params)[..., 3], image[..., 3])


@pytest.mark.third
@pytest.mark.parametrize("name", [name for name in FILTERS if FILTERS[name][2] is not None])
def test_neutral_parameters_change_nothing(engine_id, name):
    for shape in SHAPES:
        images = given(name, shape, "u8")
        assert np.array_equal(apply(name, images, FILTERS[name][2]), images[0])
        images = given(name, shape, "f32")
        assert_close(apply(name, images, FILTERS[name][2]), images[0], "webgpu", "program")


@pytest.mark.parametrize("name", STENCILS)
def test_border_is_clamped(engine_id, name):
    """Filtering a picture that is padded with its border pixels gives the same center."""
    image = picture((7, 8, 4), "u8")
    wide = np.pad(image, [(6, 6), (6, 6), (0, 0)], mode="edge")
    for params in FILTERS[name][1]:
        expected = apply(name, [wide], params)[6:-6, 6:-6]
        assert_close(apply(name, [image], params), expected, engine_id, "program")


OUT_OF_RANGE = [
    ("brightness", {"value": math.inf}, "a finite number"),
    ("contrast", {"value": -math.inf}, "a finite number"),
    ("saturation", {"value": -1.5}, "a finite number of at least -1"),
    ("gamma", {"value": 0.0}, "a finite number of at least 0.01"),
    ("gamma", {"value": math.inf}, "a finite number of at least 0.01"),
    ("hue", {"degrees": math.inf}, "a finite number"),
    ("hue", {"degrees": 1e300}, "a finite number that fits f32"),
    ("vignette", {"softness": -1.0}, "a finite number of at least 0.0001"),
    ("vignette", {"radius": math.inf}, "a finite number"),
    ("sepia", {"amount": 1.5}, "a number from 0 to 1"),
    ("sepia", {"amount": -1.0}, "a number from 0 to 1"),
    ("sharpen", {"amount": math.inf}, "a finite number"),
    ("edge_detect", {"amount": math.inf}, "a finite number"),
    ("denoise", {"radius": -5}, "an int from 0 to 16"),
    ("denoise", {"radius": 17}, "an int from 0 to 16"),
    ("denoise", {"sigma_space": 0.0}, "a number from 0.001 to 1000"),
    ("denoise", {"sigma_color": -1.0}, "a number from 0.001 to 1000"),
    ("beauty", {"radius": 33}, "an int from 0 to 32"),
    ("beauty", {"amount": 2.0}, "a number from 0 to 1"),
    ("erode", {"radius": -1}, "an int from 0 to 32"),
    ("dilate", {"radius": 2**31 - 1}, "an int from 0 to 32"),
    ("chroma_key", {"threshold": -1.0}, "a finite number of at least 0"),
    ("chroma_key", {"softness": 0.0}, "a finite number of at least 0.0001"),
    ("chroma_key", {"despill": 7.0}, "a number from 0 to 1"),
    ("chroma_key", {"key": (0.0, math.inf, 0.0)}, "3 finite numbers"),
    ("overlay_alpha", {"opacity": 3.0}, "a number from 0 to 1"),
    ("overlay_alpha", {"opacity": -1.0}, "a number from 0 to 1"),
    ("video_mix", {"t": 1.5}, "a number from 0 to 1"),
    ("video_mix", {"t": -0.5}, "a number from 0 to 1"),
]


@pytest.mark.parametrize(("name", "beyond", "wanted"), OUT_OF_RANGE)
def test_parameters_out_of_range(engine_id, name, beyond, wanted):
    images = [compute.from_array(image) for image in given(name, (5, 6, 4), "u8")]
    (param,) = beyond
    before = np.full((5, 6, 4), 7, "u1")
    out = compute.from_array(before)
    spec = {"op": "run_kernel", "kernel": name, "inputs": images, "output": out, "params": beyond}
    empty = compute.Pipeline()
    runs = (
        lambda: compute.run_kernel(name, images, out, beyond),
        lambda: compute.submit(spec),
        lambda: empty.add(spec),
    )
    for run_it in runs:
        with pytest.raises(dala.ParameterError) as caught:
            run_it()
        assert str(caught.value).startswith(f"{name}: {param} must be {wanted}, got ")
    assert empty.stage_count == 0
    assert np.array_equal(compute.to_array(out), before)


def test_bounds_are_included(engine_id):
    image = picture((5, 6, 4), "u8")
    for name, params in [
        ("denoise", {"radius": 16, "sigma_space": 0.001}),
        ("erode", {"radius": 32}),
        ("gamma", {"value": 0.01}),
        ("saturation", {"value": -1}),
        ("sepia", {"amount": 1.0}),
    ]:
        assert apply(name, [image], params).shape == image.shape


# purpose of each filter ------------------------------------------------------------------------
def colors(*rows):
    return np.array(rows, "<f4").reshape(1, -1, len(rows[0]))


def test_hue_rotates_and_keeps_luma(engine_id):
    image = colors((0.8, 0.2, 0.2), (0.2, 0.8, 0.2), (0.2, 0.2, 0.8), (0.5, 0.5, 0.5))
    turned = apply("hue", [image], {"degrees": 120.0})
    assert turned[0].argmax(axis=-1)[:3].tolist() == [1, 2, 0]
    assert np.allclose(turned @ LUMA, image @ LUMA, atol=1e-5)
    assert np.allclose(turned[0, 3], 0.5, atol=1e-5)


def test_gamma_clamps_negative_colors(engine_id):
    image = colors((-0.5, 0.0, 0.25), (1.0, 4.0, -0.0))
    got = apply("gamma", [image], {"value": 2.0})
    assert np.allclose(got, [[[0, 0, 0.5], [1, 2, 0]]], atol=1e-5)


def test_edge_detect_step(engine_id):
    image = np.zeros((4, 8), "<f4")
    image[:, 4:] = 0.25
    got = apply("edge_detect", [image])
    assert np.allclose(got, np.tile([0, 0, 0, 1, 1, 0, 0, 0], (4, 1)), atol=1e-6)


def test_denoise_keeps_edges(engine_id):
    clean = np.full((24, 32, 3), 60, "u1")
    clean[:, 16:] = 190
    noisy = pictures.noisy(clean, 8.0)
    got = apply("denoise", [noisy], {"radius": 3, "sigma_space": 2.0, "sigma_color": 0.12})
    before, after = noisy.astype(float) - clean, got.astype(float) - clean
    assert after.std() < before.std() / 2.5
    assert np.abs(after[:, 15:17]).mean() < 8


def test_beauty_smooths_only_skin(engine_id):
    shades = [*pictures.SKIN, (0.3, 0.45, 0.8), (0.5, 0.5, 0.5), (0.2, 0.6, 0.25)]
    for number, shade in enumerate(shades):
        flat = np.empty((16, 16, 3), "u1")
        flat[:] = np.array(shade) * 255
        # The same noise in each channel changes the brightness, not the color.
        noise = pictures.noise(16, 16)[..., :1] * 5
        rough = np.clip(flat + noise, 0, 255).astype("u1")
        got = apply("beauty", [rough], {"amount": 1.0})
        if number < 3:
            assert got[4:-4, 4:-4].std(axis=(0, 1)).max() < rough.std(axis=(0, 1)).min() / 2.5
        else:
            assert np.array_equal(got, rough)


def test_median_removes_specks(engine_id):
    image = np.full((9, 9, 4), 100, "u1")
    image[2::4, 2::4] = 255
    image[0, 0] = 0
    assert (apply("median", [image])[..., :3] == 100).all()


def test_median_of_permutations(engine_id):
    random = np.random.default_rng(8)
    squares = random.permuted(np.tile(np.arange(9, dtype="u1"), (500, 1)), axis=1)
    stacked = squares.reshape(500 * 3, 3)
    assert (apply("median", [stacked])[1::3, 1] == 4).all()


def test_opening_and_closing(engine_id):
    image = np.zeros((12, 12), "u1")
    image[3:9, 3:9] = 200
    image[1, 1] = 200
    opened = apply("dilate", [apply("erode", [image])])
    expected = image.copy()
    expected[1, 1] = 0
    assert np.array_equal(opened, expected)


def test_chroma_key_alpha_and_despill(engine_id):
    image = colors(
        (0.0, 1.0, 0.0, 1.0),  # the key
        (0.0, 0.8, 0.0, 1.0),  # the key in shadow
        (0.5, 0.5, 0.5, 1.0),
        (0.9, 0.6, 0.5, 0.5),  # skin, half transparent
        (0.5, 0.7, 0.5, 1.0),  # gray with spill
        (0.9, 0.9, 0.1, 1.0),  # yellow keeps its green
    )
    got = apply("chroma_key", [image])[0]
    assert got[:, 3].tolist() == [0, 0, 1, 0.5, 1, 1]
    for same in (2, 3, 5):
        assert np.allclose(got[same, :3], image[0, same, :3], atol=1e-5)
    assert np.ptp(got[4, :3]) < 0.01
    assert np.allclose(got[4, :3] @ LUMA, image[0, 4, :3] @ LUMA, atol=1e-5)


def test_chroma_key_adds_alpha(engine_id):
    image = np.array([[[0, 255, 0], [255, 0, 0]]], "u1")
    assert run("chroma_key", [image], (1, 2, 4), "u8")[..., 3].tolist() == [[0, 255]]


def test_overlay_rounding(engine_id):
    """Every byte equals the exact result, except at ties."""
    random = np.random.default_rng(4)
    base, over = (random.integers(0, 256, (16, 16, 4), "u1") for _ in range(2))
    got = apply("overlay_alpha", [base, over]).reshape(-1, 4).tolist()
    for b, o, g in zip(
        base.reshape(-1, 4).tolist(), over.reshape(-1, 4).tolist(), got, strict=True
    ):
        s, under = Fraction(o[3], 255), Fraction(b[3], 255) * (1 - Fraction(o[3], 255))
        exact = [(o[c] * s + b[c] * under) / (s + under) for c in range(3)]
        for value, stored in zip([*exact, (s + under) * 255], g, strict=True):
            assert abs(stored - value) <= Fraction(5001, 10000)


def test_overlay_of_transparent_and_opaque(engine_id):
    base, over = (picture((6, 7, 4), "f32", seed) for seed in (1, 2))
    over[..., 3] = 0
    assert np.array_equal(apply("overlay_alpha", [base, over]), base)
    over[..., 3] = 1
    assert np.array_equal(apply("overlay_alpha", [base, over]), over)


def test_pictures_with_and_without_alpha(engine_id):
    base = picture((6, 7, 3), "u8", 1)
    over = picture((6, 7, 4), "u8", 2)
    exact = overlay_alpha(widened(base), widened(over))
    assert_is(apply("overlay_alpha", [base, over]), exact, (6, 7, 3), "u8")


def test_video_mix_endpoints(engine_id):
    first, second = (picture((6, 7, 4), "f32", seed) for seed in (1, 2))
    got = apply("video_mix", [first, second], {"t": 1.0})
    assert np.array_equal(got[..., 3], second[..., 3])
    seen = second[..., 3] > 0
    assert np.array_equal(got[seen], second[seen])
