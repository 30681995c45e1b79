"""resize, bicubic_scale and preprocess, against Pillow, stored results of OpenCV, and formulas."""

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
from dala.gpu.compute.engines.cpu.native.names import u8
from dala.gpu.compute.engines.cpu.ops.resize import runners as cpu_resize
from dala.gpu.compute.engines.cpu.ops.resize.sparse import tensor_sparse
from dala.gpu.compute.engines.sampling.taps import Axis
from dala.gpu.compute.kernel import get
from tests.support import opencv_goldens, pictures
from tests.support.engines import run
from tests.support.tolerances import assert_close

METHODS = ("nearest", "bilinear", "bicubic", "lanczos", "area")
PILLOW = {"nearest": 0, "bilinear": 2, "bicubic": 3, "lanczos": 1, "area": 4}
OPENCV = {
    "bilinear": "LINEAR",
    "bicubic": "CUBIC",
    "area": "AREA",
    "nearest": "NEAREST_EXACT",
}
SIZES = [(20, 30), (80, 90), (9, 100), (60, 13), (1, 1), (37, 53)]


def noise(shape, low=0, high=256, seed=1):
    return np.random.default_rng(seed).integers(low, high, shape, dtype=np.uint8)


def resize(image, size, **params):
    return np.array(get("resize")(from_array(image), size=size, **params).numpy())


# the filters -----------------------------------------------------------------------------------
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


# calls -----------------------------------------------------------------------------------------
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
        ((4, 4, 3), "u8", (2, 2, 3), {"size": (3, 2)}, dala.ShapeMismatch, r"\(3, 2, 3\)"),
        ((0, 4, 3), "u8", (2, 2, 3), {}, dala.ShapeMismatch, "image must be a picture with pixels"),
        ((4, 4), "u8", (2, 2), {"method": "cubic"}, dala.ParameterError, "'bicubic'"),
        (
            (4, 4),
            "u8",
            (2, 2),
            {"size": (0, 2)},
            dala.ParameterError,
            "size must be 2 ints from 1 to",
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


# preprocess ------------------------------------------------------------------------------------
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
    given = {"size": (6, 5)}
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
    given = {"size": (6, 5), "normalize": "unit", "mean": (0, 0.1, 0.2)}
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
def test_sparse_tensors(engine_id, size, times, channels, dtype, params):
    image = noise((*(math.ceil(n * t) for n, t in zip(size, times, strict=True)), channels))
    image = image if dtype == "u8" else (image / 255).astype("f4")
    got = preprocess(image, size=size, antialias=False, **params)
    with dala.device("reference"):
        expected = preprocess(image, size=size, antialias=False, **params)
    assert_close(got, expected, engine_id, "program")


@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize("planes", [True, False])
@pytest.mark.parametrize("columns", [16, 17, 31, 48])
def test_sparse_code_stays_in_bounds(channels, planes, columns):
    """Checked code, on a picture whose last pixel is the last of its memory."""
    image = noise((36, columns * 4, channels))
    y, x = Axis(36, 8, 0, 8), Axis(columns * 4, columns, 0, columns)
    taps_y, taps_x = y.taps("bilinear", False), x.taps("bilinear", False)
    code = compile_native(
        tensor_sparse, checked=True, T=u8, channels=channels, taps_x=2, taps_y=2, pick=(2, 1, 0),
        pairs=True, planes=planes,
    )  # fmt: skip
    out = np.zeros((3, 8, columns) if planes else (8, columns, 3), np.float32)
    first, last = taps_y.first, taps_x.first * np.int32(channels)
    down = taps_y.weights.astype(np.float32)
    across = np.ascontiguousarray(taps_x.weights.T.astype(np.float32))
    finish = np.array([1, 2, 3, 4, 5, 6], np.float32)
    step, plane = (1, 8 * columns) if planes else (3, 1)
    numbers = (columns * 4 * channels, 0, columns * step, plane)
    whole = (image.reshape(-1), out.reshape(-1), first, down.reshape(-1), last, across.reshape(-1))
    code(*whole, finish, *numbers, 0, 8)
    made = taps_y.apply(taps_x.apply(image.astype(np.float64), 1), 0)[..., [2, 1, 0]]
    expected = made * finish[:3] + finish[3:]
    np.testing.assert_allclose(out, expected.transpose(2, 0, 1) if planes else expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("out", "params", "error", "words"),
    [
        ((1, 3, 8, 8), {"size": (8, 9)}, dala.ShapeMismatch, r"\(1, 3, 8, 9\)"),
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
