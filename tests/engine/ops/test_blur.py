"""Blur on every engine, against the weighted sum written as two matrices."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dala
from dala.gpu import compute
from dala.gpu.compute import Pipeline, buffer_zeros, from_array, run_kernel
from dala.gpu.compute.engines.sampling.gauss import gaussian_weights
from tests.support.engines import run
from tests.support.tolerances import assert_close

SHAPES = [(1, 1), (40, 68), (6, 9, 1), (33, 70, 3), (20, 72, 3), (21, 131, 4), (300, 3, 4)]
#: Radius and sigma: one dispatch on a GPU, and two from 17 on.
SIZES = [(3, 1.5), (9, None), (17, None), (60, 17.5)]


@cache
def matrix(size, radius, sigma):
    """Return the matrix for a row of ``size`` pixels: clamped, weights of each output sum to 1."""
    weights = [math.exp(-(d * d) / (2 * sigma * sigma)) for d in range(-radius, radius + 1)]
    found = np.zeros((size, size))
    for i in range(size):
        for d, weight in zip(range(-radius, radius + 1), weights, strict=True):
            found[i, min(max(i + d, 0), size - 1)] += weight / sum(weights)
    return found


def blurred(image, radius, sigma=None):
    """Return the exact result, in f64."""
    sigma = radius / 2 if sigma is None else sigma
    down, across = (matrix(n, radius, sigma) for n in image.shape[:2])
    channels = image.reshape(*image.shape[:2], -1).astype(float)
    out = np.einsum("yv,vuc,xu->yxc", down, channels, across, optimize=True)
    if image.ndim == 3 and image.shape[2] == 4:
        out[..., 3] = image[..., 3]
    return out.reshape(image.shape)


def picture(shape, dtype, seed=7):
    data = np.random.default_rng(seed).integers(0, 256, shape, np.uint8)
    return data if dtype == "u8" else (data / 255).astype("<f4")


def assert_blurred(got, exact, engine_id):
    """Bytes are within 0.55 steps; ``test_blur_bytes`` compares them exactly."""
    if got.dtype == np.uint8:
        assert np.abs(got - exact).max() <= 0.55
    else:
        assert_close(got, exact.astype("<f4"), engine_id, "program")


def blur(image, kernel="blur", **params):
    return run(kernel, [image], image.shape, "u8" if image.dtype == np.uint8 else "f32", params)


@pytest.mark.parametrize("dtype", ["u8", "f32"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values(engine_id, shape, dtype):
    image = picture(shape, dtype)
    for radius, sigma in SIZES:
        params = {"radius": radius} if sigma is None else {"radius": radius, "sigma": sigma}
        assert_blurred(blur(image, **params), blurred(image, radius, sigma), engine_id)


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    height=st.integers(1, 40),
    width=st.integers(1, 140),
    channels=st.sampled_from([1, 3, 4]),
    radius=st.sampled_from([3, 9, 23]),
    sigma=st.floats(0.05, 200),
    dtype=st.sampled_from(["u8", "f32"]),
)
def test_any_picture(engine_id, height, width, channels, radius, sigma, dtype):
    image = picture((height, width, channels), dtype, seed=height * width)
    got = blur(image, radius=radius, sigma=sigma)
    assert_blurred(got, blurred(image, radius, sigma), engine_id)


@pytest.mark.parametrize("dtype", ["u8", "f32"])
@pytest.mark.parametrize("radius", [4, 25])
def test_alpha_is_kept(engine_id, dtype, radius):
    image = picture((19, 26, 4), dtype)
    out = blur(image, radius=radius)
    np.testing.assert_array_equal(out[..., 3], image[..., 3])
    assert (out[..., :3] != image[..., :3]).any()


@pytest.mark.parametrize("kernel", ["blur", "gaussian_blur"])
def test_a_radius_of_0_changes_nothing(engine_id, kernel):
    for dtype in ("u8", "f32"):
        image = picture((9, 11, 3), dtype)
        np.testing.assert_array_equal(blur(image, kernel, radius=0), image)


def test_narrow_gaussians_return_the_pixel(engine_id):
    image = picture((9, 11), "u8")
    np.testing.assert_array_equal(blur(image, radius=5, sigma=1e-200), image)


def test_defaults(engine_id):
    """blur: radius 3, sigma half of the radius; gaussian_blur: sigma 1.5, radius 3 sigma."""
    image = picture((30, 41, 3), "u8")
    np.testing.assert_array_equal(blur(image), blur(image, radius=3, sigma=1.5))
    gaussian = blur(image, "gaussian_blur")
    np.testing.assert_array_equal(gaussian, blur(image, radius=5, sigma=1.5))
    np.testing.assert_array_equal(
        blur(image, "gaussian_blur", sigma=2.1), blur(image, radius=7, sigma=2.1)
    )
    wide = blur(image, "gaussian_blur", sigma=90)
    np.testing.assert_array_equal(wide, blur(image, radius=200, sigma=90.0))


@pytest.mark.parametrize(
    ("kernel", "params", "says"),
    [
        ("blur", {"radius": -1}, "blur: radius must be an int from 0 to 200, got -1."),
        ("blur", {"radius": 201}, "blur: radius must be an int from 0 to 200, got 201."),
        ("blur", {"radius": 1.5}, "radius must be an int from 0 to 200, got 1.5."),
        (
            "blur",
            {"sigma": 0},
            "blur: sigma must be a finite number above 0, got 0.0. For no blur use radius=0.",
        ),
        ("blur", {"sigma": math.inf}, "sigma must be a finite number above 0, got inf"),
        ("blur", {"sigma": math.nan}, "sigma must be a number, got nan."),
        ("blur", {"size": 3}, "no parameter 'size'"),
        ("gaussian_blur", {"sigma": -1}, "finite number above 0"),
        ("gaussian_blur", {"sigma": 101}, "sigma must be a number of at most 100, got 101."),
        ("gaussian_blur", {"sigma": "wide"}, "sigma must be a number of at most 100, got 'wide'."),
    ],
)
def test_invalid_parameters(engine_id, kernel, params, says):
    image, out = from_array(picture((4, 5, 4), "u8")), from_array(np.full((4, 5, 4), 9, np.uint8))
    with pytest.raises(dala.DalaError, match=says):
        run_kernel(kernel, [image], out, params)
    assert (np.array(out) == 9).all()


@pytest.mark.parametrize(
    ("shape", "dtype", "out_shape", "out_dtype", "says"),
    [
        ((4, 5, 2), "u8", (4, 5, 2), "u8", "img must be an image of shape"),
        ((4,), "u8", (4,), "u8", "img must be an image of shape"),
        ((4, 5), "s32", (4, 5), "s32", "img must be of dtype f32 or u8, got 's32'."),
        ((4, 5, 3), "u8", (4, 5, 4), "u8", r"output must be of shape \(4, 5, 3\), got"),
        ((4, 5, 3), "u8", (4, 5, 3), "f32", "output must be of dtype 'u8', got"),
    ],
)
def test_invalid_pictures(engine_id, shape, dtype, out_shape, out_dtype, says):
    with pytest.raises(dala.DalaError, match=says):
        run_kernel("blur", [buffer_zeros(shape, dtype)], buffer_zeros(out_shape, out_dtype))


def test_the_output_may_not_be_the_input(engine_id):
    image = from_array(picture((4, 5), "u8"))
    with pytest.raises(dala.DalaError, match="output must not be the input 'img'"):
        run_kernel("blur", [image], image)


def test_empty_pictures(engine_id):
    assert blur(np.zeros((0, 5, 3), np.uint8)).shape == (0, 5, 3)
    assert blur(np.zeros((4, 0), np.float32), radius=30).shape == (4, 0)


def test_in_a_pipeline_and_as_a_command(engine_id):
    image = picture((25, 44, 4), "u8")
    wanted = blur(image, radius=2)
    source, between, out = from_array(image), *(buffer_zeros(image.shape, "u8") for _ in range(2))
    chain = Pipeline()
    spec = {"op": "run_kernel", "kernel": "blur", "inputs": [source], "output": between}
    chain.add({**spec, "params": {"radius": 2}})
    chain.add({"op": "run_kernel", "kernel": "invert", "inputs": [between], "output": out})
    chain.run()
    np.testing.assert_array_equal(np.array(between), wanted)
    np.testing.assert_array_equal(np.array(out)[..., :3], 255 - wanted[..., :3])
    command = compute.submit({**spec, "output": out, "params": {"radius": 2}})
    compute.wait(command)
    np.testing.assert_array_equal(np.array(out), wanted)


def test_sigma_changes_without_compilation(engine_id):
    image, out = from_array(picture((25, 44, 4), "u8")), buffer_zeros((25, 44, 4), "u8")
    for radius in (6, 18):
        run_kernel("blur", [image], out, {"radius": radius, "sigma": 1.0})
        before = image.engine.stats().get("pipelines")
        run_kernel("blur", [image], out, {"radius": radius, "sigma": 2.0})
        assert image.engine.stats().get("pipelines") == before


@given(radius=st.integers(0, 200), sigma=st.floats(1e-300, 1e300))
def test_weights(radius, sigma):
    weights = gaussian_weights(radius, sigma)
    assert weights.shape == (2 * radius + 1,)
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_array_equal(weights, weights[::-1])
    assert (np.diff(weights[radius:]) <= 0).all()
    if radius and 0.1 < sigma < 1e6:
        assert weights[radius + 1] / weights[radius] == pytest.approx(math.exp(-0.5 / sigma**2))
