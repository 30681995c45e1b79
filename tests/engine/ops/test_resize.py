"""Resizing of pictures."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

import dala
from dala.gpu import compute
from dala.gpu.compute import buffer_zeros, from_array, run_kernel
from dala.gpu.compute.engines.cpu.native import compile_native
from dala.gpu.compute.engines.cpu.ops.resize import runners as cpu_resize
from dala.gpu.compute.kernel import get
from tests.engine.ops.resizing import METHODS, noise, resize
from tests.support import opencv_goldens
from tests.support.engines import run
from tests.support.tolerances import assert_close

PILLOW = {"nearest": 0, "bilinear": 2, "bicubic": 3, "lanczos": 1, "area": 4}


OPENCV = {
    "bilinear": "LINEAR",
    "bicubic": "CUBIC",
    "area": "AREA",
    "nearest": "NEAREST_EXACT",
}


SIZES = [(20, 30), (80, 90), (9, 100), (60, 13), (1, 1), (37, 53)]


# the filters --------------------------------------------------------------------------------------


def weights(source, size, method, antialias):
    """Return the matrix of one axis, entry by entry from the formula."""
    a = -0.5 if antialias else -0.75

    def weigh(x):
        x = abs(x)
        if method == "bilinear":
            return max(1 - x, 0)
        if method == "lanczos":
            return float(np.sinc(x) * np.sinc(x / 3)) if x < 3 else 0.0
        if x < 1:
            return (a + 2) * x**3 - (a + 3) * x**2 + 1
        return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0

    matrix = np.zeros((size, source))
    scale = source / size
    stretch = max(scale, 1.0) if antialias else 1.0
    for o in range(size):
        if method == "nearest":
            matrix[o, (2 * o + 1) * source // (2 * size)] = 1
        elif method == "area":
            for i in range(source):
                covered = min((o + 1) * scale, i + 1) - max(o * scale, i)
                matrix[o, i] = max(covered, 0)
        elif antialias:
            for i in range(source):
                matrix[o, i] = weigh((i + 0.5 - (o + 0.5) * scale) / stretch)
        else:
            center = (o + 0.5) * scale - 0.5
            for i in range(math.floor(center) - 3, math.floor(center) + 5):
                matrix[o, min(max(i, 0), source - 1)] += weigh(i - center)
        matrix[o] /= matrix[o].sum()
    return matrix


def by_formula(image, size, method, antialias):
    image = image.astype(np.float64)
    down = weights(image.shape[0], size[0], method, antialias)
    across = weights(image.shape[1], size[1], method, antialias)
    return np.einsum("yi,ij...,xj->yx...", down, image, across)


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [(7, 31), (40, 9), (3, 2)])
def test_filters(engine_id, method, antialias, size):
    image = (noise((23, 17, 4)) / 255).astype(np.float32)
    expected = by_formula(image, size, method, antialias).astype(np.float32)
    got = resize(image, size, method=method, antialias=antialias)
    assert_close(got, expected, "webgpu", "program")


@pytest.mark.parametrize("method", ["nearest", "bilinear", "bicubic", "lanczos"])
@pytest.mark.parametrize("shape", [(37, 53), (37, 53, 3), (37, 53, 4)])
def test_pillow(engine_id, method, shape):
    """Within 1 of 255; values are limited, as Pillow clamps them between its passes."""
    image = noise(shape, 70, 186)
    # Pillow premultiplies RGBA; its CMYK is four plain channels.
    picture = Image.fromarray(image, "CMYK") if shape[2:] == (4,) else Image.fromarray(image)
    for size in SIZES:
        expected = np.asarray(picture.resize(size[::-1], PILLOW[method]))
        got = resize(image, size, method=method)
        assert got.dtype == np.uint8
        assert np.abs(got.astype(int) - expected).max() <= (0 if method == "nearest" else 1)


@pytest.mark.parametrize(("down", "across"), [(1, 3), (2, 2), (5, 4)])
def test_area_is_the_mean_for_integer_scales(engine_id, down, across):
    image = noise((40, 60, 3))
    size = 40 // down, 60 // across
    blocks = image.reshape(size[0], down, size[1], across, 3).astype(float)
    got = resize(image, size, method="area")
    assert np.abs(got - blocks.mean(axis=(1, 3))).max() <= 0.51
    if (down, across) == (2, 2):  # halves are rounded up
        np.testing.assert_array_equal(got, np.floor(blocks.mean(axis=(1, 3)) + 0.5))
    pillow = np.asarray(Image.fromarray(image).resize(size[::-1], PILLOW["area"]))
    assert np.abs(got.astype(int) - pillow).max() <= 1


@pytest.mark.parametrize("method", OPENCV)
def test_opencv(engine_id, method):
    stored = opencv_goldens.load()
    image = opencv_goldens.picture()
    for size in opencv_goldens.SIZES:
        if method == "area" and (size[0] > image.shape[0] or size[1] > image.shape[1]):
            continue  # OpenCV interpolates then
        expected = stored[f"resize-{OPENCV[method]}-{size[0]}x{size[1]}"]
        got = resize(image, size, method=method, antialias=False)
        assert np.abs(got.astype(int) - expected).max() <= (0 if method == "nearest" else 1)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_identity_and_constant_pictures(engine_id, method, dtype):
    image = noise((13, 11, 3))
    flat = np.full((9, 8, 3), 77, np.uint8)
    if dtype == "f32":
        image, flat = (image / 255).astype("f4"), (flat / 255).astype("f4")
    assert_close(resize(image, (13, 11), method=method), image, engine_id)
    for antialias in (True, False):
        got = resize(flat, (31, 3), method=method, antialias=antialias)
        assert np.abs(got.astype(float) - flat[0, 0, 0]).max() <= (0 if dtype == "u8" else 2e-7)


def test_many_taps(engine_id):
    """Strong reduction: sums of hundreds of pixels, in both orders of the passes."""
    for shape, size in (((900, 40, 4), (2, 30)), ((40, 1200, 3), (30, 3)), ((700, 500), (1, 1))):
        image = noise(shape)
        for method in ("bilinear", "lanczos", "area"):
            expected = by_formula(image, size, method, True)
            got = resize(image, size, method=method)
            assert np.abs(got - np.clip(expected, 0, 255)).max() <= 0.51


def test_limited_memory_between_passes(engine_id, monkeypatch):
    """If the intermediate does not fit, the passes are swapped or become one."""
    image = noise((90, 60, 3))
    expected = by_formula(image, (20, 17), "lanczos", True)
    engine = from_array(image).engine
    for limit in (25_000, 20_000, 17_000):  # across: 24480 bytes, down: 19200
        monkeypatch.setattr(engine, "max_buffer_bytes", limit)
        get("resize")._plans.clear()
        got = resize(image, (20, 17), method="lanczos")
        assert np.abs(got - np.clip(expected, 0, 255)).max() <= 0.51


def test_long_strides(engine_id):
    """Without antialiasing, source pixels may be far apart."""
    image = noise((3, 20000, 4))
    for size in ((2, 9), (5, 17)):
        expected = by_formula(image, size, "bilinear", False)
        got = resize(image, size, antialias=False)
        assert np.abs(got - expected).max() <= 0.6


def test_alpha_is_a_channel_like_the_others(engine_id):
    image = noise((12, 15, 4))
    got = resize(image, (7, 22), method="bicubic")
    for c in range(4):
        alone = resize(np.ascontiguousarray(image[..., c]), (7, 22), method="bicubic")
        assert_close(got[..., c], alone, "cpu", "program")


@given(
    source=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    size=st.tuples(st.integers(1, 60), st.integers(1, 60)),
    channels=st.sampled_from([None, 1, 3, 4]),
    dtype=st.sampled_from(["u8", "f32"]),
    method=st.sampled_from(METHODS),
    antialias=st.booleans(),
    seed=st.integers(0, 99),
)
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_resize(engine_id, source, size, channels, dtype, method, antialias, seed):
    image = noise(source if channels is None else (*source, channels), seed=seed)
    image = image if dtype == "u8" else (image / 255).astype("f4")
    params = {"method": method, "antialias": antialias}
    got = resize(image, size, **params)
    with dala.device("reference"):
        expected = resize(image, size, **params)
    assert_close(got, expected, engine_id, "program")


@pytest.mark.long
def test_native_code_stays_in_bounds(monkeypatch):
    """The CPU's code with every load and store checked."""
    monkeypatch.setattr(cpu_resize, "compile_native", partial(compile_native, checked=True))
    with dala.device("cpu"):
        for shape in ((30, 44, 4), (30, 44, 3), (30, 44), (2, 70, 4)):
            for size, method in (
                ((13, 17), "bilinear"),
                ((64, 99), "bicubic"),
                ((1, 3000), "area"),
            ):
                out = buffer_zeros((*size, *shape[2:]), "u8")
                run_kernel("resize", [from_array(noise(shape))], out, {"method": method})


# calls --------------------------------------------------------------------------------------------


def test_the_size_of_the_output(engine_id):
    image = noise((10, 14, 3))
    given_size = resize(image, (6, 9))
    assert_close(run("resize", [image], (6, 9, 3), "u8"), given_size, engine_id)
    with pytest.raises(
        dala.ParameterError, match="resize: the output's shape does not follow from the inputs"
    ):
        get("resize")(from_array(image))


def test_bicubic_scale(engine_id):
    image = noise((10, 15, 4))
    got = get("bicubic_scale")(from_array(image), scale=1.7).numpy()
    assert got.shape == (17, 26, 4)
    assert_close(np.array(got), resize(image, (17, 26), method="bicubic"), engine_id)
    sharp = run("bicubic_scale", [image], (5, 7, 4), "u8", {"antialias": False})
    assert_close(sharp, resize(image, (5, 7), method="bicubic", antialias=False), engine_id)


@pytest.mark.parametrize(
    ("shape", "dtype", "out", "params", "error", "words"),
    [
        ((4, 4, 2), "u8", (2, 2, 2), {}, dala.ShapeError, "image must be an image of shape"),
        ((4, 4), "s32", (2, 2), {}, dala.DtypeMismatch, "image must be of dtype f32 or u8"),
        ((4, 4, 3), "u8", (2, 2, 4), {}, dala.ShapeMismatch, r"\(height, width, 3\)"),
        (
            (4, 4, 3),
            "u8",
            (2, 2),
            {},
            dala.ShapeMismatch,
            r"output must be of shape \(height, width, 3\), got \(2, 2\)",
        ),
        ((4, 4, 3), "u8", (2, 2, 3), {"size": (2, 3)}, dala.ShapeMismatch, r"\(3, 2, 3\)"),
        ((0, 4, 3), "u8", (2, 2, 3), {}, dala.ShapeMismatch, "image must be a picture with pixels"),
        ((4, 4), "u8", (2, 2), {"method": "cubic"}, dala.ParameterError, "'bicubic'"),
        (
            (4, 4),
            "u8",
            (2, 2),
            {"size": (2, 0)},
            dala.ParameterError,
            r"size must be \(width, height\), ints from 1 to",
        ),
        ((4, 4), "u8", (2, 2), {"antialiased": True}, dala.UnknownParameter, "antialias"),
    ],
)
def test_invalid_calls(engine_id, shape, dtype, out, params, error, words):
    image, target = buffer_zeros(shape, dtype), from_array(np.full(out, 9, np.uint8))
    with pytest.raises(error, match=words):
        run_kernel("resize", [image], target, params)
    assert (target.numpy() == 9).all()


def test_the_dtype_is_kept(engine_id):
    with pytest.raises(dala.DtypeMismatch, match="'u8'"):
        run_kernel("resize", [buffer_zeros((4, 4), "u8")], buffer_zeros((2, 2), "f32"))


def test_empty_outputs(engine_id):
    out = buffer_zeros((0, 5, 3), "u8")
    run_kernel("resize", [from_array(noise((4, 4, 3)))], out)
    assert out.numpy().shape == (0, 5, 3)


def test_in_a_pipeline_and_submitted(engine_id):
    image = noise((20, 30, 4))
    expected = 255 - resize(image, (11, 40)).astype(int)
    source, small = from_array(image), buffer_zeros((11, 40, 4), "u8")
    out = buffer_zeros((11, 40, 4), "u8")
    with compute.Pipeline() as pipeline:
        pipeline.add({"op": "run_kernel", "kernel": "resize", "inputs": [source], "output": small})
        pipeline.add({"op": "run_kernel", "kernel": "invert", "inputs": [small], "output": out})
        pipeline.run()
    assert np.abs(out.numpy()[..., :3].astype(int) - expected[..., :3]).max() <= 1
    later = buffer_zeros((11, 40, 4), "u8")
    spec = {"op": "run_kernel", "kernel": "resize", "inputs": [source], "output": later}
    compute.wait(compute.submit(spec))
    assert_close(np.array(later.numpy()), np.array(small.numpy()), engine_id)
