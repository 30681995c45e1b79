"""Preprocessing of pictures for models."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

import dala
from dala.gpu.compute import buffer_zeros, from_array, run_kernel
from dala.gpu.compute.kernel import get
from tests.engine.ops.resizing import METHODS, noise
from tests.support import opencv_goldens, pictures
from tests.support.engines import run
from tests.support.tolerances import assert_close

MEAN, STD = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])


def preprocess(image, **params):
    return np.array(get("preprocess")(from_array(image), **params).numpy())


def assert_steps(got, expected, std=1.0, steps=1.0):
    """Compare values that were bytes, within a number of steps of 255 on the model's scale."""
    assert got.dtype == np.float32
    assert got.shape == expected.shape
    assert np.max(np.abs(got - expected) * std) <= (steps + 0.001) / 255


def test_imagenet_recipe(engine_id):
    """As torchvision: the shorter side to 8/7 of the size, center crop, mean and std."""
    image = pictures.photo(150, 220)[..., :3].copy()
    full = Image.fromarray(image).resize((int(64 * 220 / 150), 64), Image.Resampling.BILINEAR)
    left = round((full.width - 56) / 2)
    cut = np.asarray(full.crop((left, 4, left + 56, 60))) / 255
    expected = ((cut - MEAN) / STD).transpose(2, 0, 1)[None]
    got = preprocess(image, size=(56, 56), fit="crop", keep=0.875)
    assert_steps(got, expected, STD.min())


def test_letterbox_recipe(engine_id):
    """As YOLOv5: INTER_LINEAR, padding of 114, then 0 to 1."""
    image = opencv_goldens.picture()
    expected = opencv_goldens.load()["letterbox"].transpose(2, 0, 1) / 255
    out = buffer_zeros((3, 64, 64), "f32")
    params = {"fit": "letterbox", "normalize": "unit", "antialias": False}
    run_kernel("preprocess", [from_array(image)], out, params)
    assert_steps(np.array(out.numpy()), expected)
    assert np.abs(out.numpy()[:, :12] - 114 / 255).max() <= 1e-6
    assert np.abs(out.numpy()[:, 52:] - 114 / 255).max() <= 1e-6


def test_signed_recipe(engine_id):
    """As BlazeFace: stretched, -1 to 1, channels last."""
    image = pictures.photo(60, 90)[..., :3].copy()
    small = np.asarray(Image.fromarray(image).resize((32, 32), Image.Resampling.BILINEAR))
    got = preprocess(image, size=(32, 32), normalize="signed", layout="nhwc")
    assert_steps(got, (small / 127.5 - 1)[None], 0.5)


def test_normalize(engine_id):
    image = noise((6, 5, 3))
    values = image.transpose(2, 0, 1)[None] / 255
    mean, std = MEAN[:, None, None], STD[:, None, None]
    given = {"size": (5, 6)}
    near = partial(np.testing.assert_allclose, rtol=1e-5, atol=3e-6)
    near(preprocess(image, **given), (values - mean) / std)
    near(preprocess(image, normalize=True, **given), (values - mean) / std)
    near(preprocess(image, normalize=False, **given), values * 255, atol=1e-4)
    near(preprocess(image, normalize="raw", **given), values * 255, atol=1e-4)
    near(preprocess(image, normalize="unit", **given), values)
    near(preprocess(image, normalize="signed", **given), values * 2 - 1)
    near(preprocess(image, normalize="unit", mean=0.25, std=(0.5, 1, 2), **given),
         (values - 0.25) / np.array([0.5, 1, 2])[:, None, None])  # fmt: skip
    floats = (image / 255).astype("f4")
    near(preprocess(floats, **given), (values - mean) / std)


def test_channels(engine_id):
    image = noise((6, 5, 4))
    given = {"size": (5, 6), "normalize": "unit", "mean": (0, 0.1, 0.2)}
    rgb = preprocess(image, **given)
    assert_close(preprocess(image, order="bgr", **given), rgb[:, ::-1].copy(), engine_id)
    assert_close(preprocess(image[..., :3].copy(), **given), rgb, engine_id)
    gray = preprocess(image[..., 0].copy(), **given)
    for c, mean in enumerate((0, 0.1, 0.2)):
        np.testing.assert_allclose(gray[0, c], image[..., 0] / 255 - mean, atol=1e-6)


@given(
    source=st.tuples(st.integers(1, 50), st.integers(1, 50)),
    size=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    channels=st.sampled_from([None, 3, 4]),
    dtype=st.sampled_from(["u8", "f32"]),
    params=st.fixed_dictionaries(
        {
            "method": st.sampled_from(METHODS),
            "antialias": st.booleans(),
            "fit": st.sampled_from(["stretch", "letterbox", "crop"]),
            "layout": st.sampled_from(["nchw", "nhwc"]),
            "order": st.sampled_from(["rgb", "bgr"]),
            "normalize": st.sampled_from(["unit", "signed"]),
            "keep": st.sampled_from([1.0, 0.875, 0.5]),
            "pad": st.floats(0, 1),
        }
    ),
)
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_preprocess(engine_id, source, size, channels, dtype, params):
    image = noise(source if channels is None else (*source, channels))
    image = image if dtype == "u8" else (image / 255).astype("f4")
    got = preprocess(image, size=size, **params)
    with dala.device("reference"):
        expected = preprocess(image, size=size, **params)
    assert_close(got, expected, engine_id, "program")


@given(
    size=st.tuples(st.integers(1, 9), st.integers(14, 50)),
    times=st.tuples(st.floats(4, 6), st.floats(4, 6)),
    channels=st.sampled_from([3, 4]),
    dtype=st.sampled_from(["u8", "u8", "f32"]),
    params=st.fixed_dictionaries(
        {
            "method": st.sampled_from(["bilinear", "bilinear", "nearest"]),
            "fit": st.sampled_from(["stretch", "letterbox", "crop"]),
            "layout": st.sampled_from(["nchw", "nhwc"]),
            "order": st.sampled_from(["rgb", "bgr"]),
            "pad": st.floats(0, 1),
        }
    ),
)
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_small_tensors(engine_id, size, times, channels, dtype, params):
    image = noise((*(math.ceil(n * t) for n, t in zip(size[::-1], times, strict=True)), channels))
    image = image if dtype == "u8" else (image / 255).astype("f4")
    got = preprocess(image, size=size, antialias=False, **params)
    with dala.device("reference"):
        expected = preprocess(image, size=size, antialias=False, **params)
    assert_close(got, expected, engine_id, "program")


@pytest.mark.parametrize(
    ("out", "params", "error", "words"),
    [
        ((1, 3, 8, 8), {"size": (9, 8)}, dala.ShapeMismatch, r"\(1, 3, 8, 9\)"),
        ((1, 8, 8, 3), {}, dala.ShapeMismatch, r"\(1, 3, height, width\)"),
        ((2, 3, 8, 8), {}, dala.ShapeMismatch, "with or without the 1"),
        ((8, 8), {}, dala.ShapeMismatch, r"got \(8, 8\)"),
        ((3, 8, 8), {"std": 0.0}, dala.ParameterError, "std must be a number or 3 numbers from"),
        ((3, 8, 8), {"normalize": "yes"}, dala.ParameterError, "'imagenet'"),
        ((3, 8, 8), {"fit": "fill"}, dala.ParameterError, "'letterbox'"),
        ((3, 8, 8), {"mean": (1, 2)}, dala.ParameterError, "3 numbers"),
    ],
)
def test_invalid_tensors(engine_id, out, params, error, words):
    target = from_array(np.full(out, 9, np.float32))
    with pytest.raises(error, match=words):
        run_kernel("preprocess", [buffer_zeros((4, 6, 3), "u8")], target, params)
    assert (target.numpy() == 9).all()


def test_tensors_are_f32(engine_id):
    with pytest.raises(dala.DtypeMismatch, match="'f32'"):
        run_kernel("preprocess", [buffer_zeros((4, 6, 3), "u8")], buffer_zeros((3, 8, 8), "u8"))


@pytest.mark.parametrize("width", [1, 7, 8, 9, 16, 31, 33])
@pytest.mark.parametrize("channels", [0, 3, 4], ids=["gray", "rgb", "rgba"])
def test_exact_halves(width, channels):
    """The mean of four pixels; bytes are rounded half up."""
    rng = np.random.default_rng(width)
    shape = (6, 2 * width, channels) if channels else (6, 2 * width)
    pixels = rng.integers(0, 256, shape, np.uint8)
    parts = [pixels[y::2, x::2].astype(np.uint32) for y in (0, 1) for x in (0, 1)]
    wanted = ((sum(parts) + 2) // 4).astype(np.uint8)
    with dala.device("cpu"):
        got = run("resize", [pixels], wanted.shape, "u8", {"method": "area"})
        assert np.array_equal(got, wanted)
        floats = (pixels / np.float32(255)).astype("f4")
        means = sum(floats[y::2, x::2].astype("f8") for y in (0, 1) for x in (0, 1)) / 4
        got = run("resize", [floats], wanted.shape, "f32", {"method": "area"})
    np.testing.assert_allclose(got, means, rtol=0, atol=2e-7)
