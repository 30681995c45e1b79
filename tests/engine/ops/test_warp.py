"""warp_affine, warp_perspective and remap, against stored results of OpenCV and the definition."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dala
from dala.gpu import compute
from dala.gpu.compute import buffer_zeros, from_array, run_kernel
from dala.gpu.compute.engines.cpu.native import compile_native
from dala.gpu.compute.engines.cpu.ops.warp import runners as cpu_warp
from dala.gpu.compute.kernel import get
from tests.support import opencv_goldens
from tests.support.engines import run
from tests.support.tolerances import assert_close

METHODS = ("nearest", "bilinear", "bicubic")
BORDERS = tuple(opencv_goldens.BORDERS)
OPENCV = {"nearest": "NEAREST", "bilinear": "LINEAR", "bicubic": "CUBIC"}
FILL = tuple(c / 255 for c in opencv_goldens.FILL)
IDENTITY = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)


def noise(shape, seed=1):
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def warp(name, *arrays, **params):
    return np.array(get(name)(*(from_array(a) for a in arrays), **params).numpy())


# OpenCV ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("method", METHODS)
def test_opencv(engine_id, method, border):
    """OpenCV rounds coordinates and weights: within 3 of 255 of it, and a third on average.

    With nearest, the neighbor may be taken where a coordinate is between two pixels.
    """
    stored, image = opencv_goldens.load(), opencv_goldens.picture()
    params = {"method": method, "border": border, "fill": FILL}
    size = {"size": (40, 26)}
    found = {
        "affine": warp("warp_affine", image, matrix=opencv_goldens.AFFINE, **size, **params),
        "perspective": warp(
            "warp_perspective", image, matrix=opencv_goldens.PERSPECTIVE, **size, **params
        ),
        "remap": warp("remap", image, opencv_goldens.places(), **params),
    }
    for name, got in found.items():
        expected = stored[f"{name}-{OPENCV[method]}-{border}"]
        off = np.abs(got.astype(int) - expected).max(axis=-1)
        if method == "nearest":
            assert (off > 0).mean() <= 0.03, name
        else:
            assert off.max() <= 3, name
            assert off.mean() <= 0.34, name


# the definition --------------------------------------------------------------------------------
def border_index(i, count, border):
    """Return the index that is read for a position outside, or None."""
    if 0 <= i < count:
        return i
    if border == "constant":
        return None
    if border == "clamp":
        return min(max(i, 0), count - 1)
    if border == "wrap":
        return i % count
    while not 0 <= i < count:
        i = -i if i < 0 else 2 * (count - 1) - i
        i = 0 if count == 1 else i
    return i


def weights(method, part):
    if method == "nearest":
        return {int(part >= 0.5): 1.0}
    if method == "bilinear":
        return {0: 1 - part, 1: part}
    a = -0.75

    def weigh(x):
        x = abs(x)
        if x < 1:
            return (a + 2) * x**3 - (a + 3) * x**2 + 1
        return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a

    return {k: weigh(k - part) for k in (-1, 0, 1, 2)}


def at(image, x, y, method, border, fill):
    """Return the picture's value at a position, pixel by pixel."""
    total = np.zeros(image.shape[2])
    for dy, wy in weights(method, y - math.floor(y)).items():
        for dx, wx in weights(method, x - math.floor(x)).items():
            row = border_index(math.floor(y) + dy, image.shape[0], border)
            column = border_index(math.floor(x) + dx, image.shape[1], border)
            inside = row is not None and column is not None
            value = image[row, column] if inside else np.array(fill[: image.shape[2]])
            total += wy * wx * value
    return total


@pytest.mark.third
@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_values(engine_id, method, border, channels):
    image = (noise((7, 9, channels)) / 255).astype(np.float32)
    matrix = (1.313, 0.457, -4.219, -0.559, 1.117, 2.431)
    a, b, c, d, e, f = matrix
    expected = np.array(
        [
            [
                at(image, a * x + b * y + c, d * x + e * y + f, method, border, FILL)
                for x in range(14)
            ]
            for y in range(11)
        ]
    )
    got = warp(
        "warp_affine", image, matrix=matrix, size=(14, 11), method=method, border=border, fill=FILL
    )
    assert_close(got, expected.astype(np.float32), "webgpu", "program")


@pytest.mark.parametrize("shape", [(9, 12), (9, 12, 1), (9, 12, 3), (9, 12, 4)])
@pytest.mark.parametrize("method", METHODS)
def test_integer_translations(engine_id, method, shape):
    image = noise(shape)
    moved = (1.0, 0.0, -3.0, 0.0, 1.0, 2.0)
    expected = np.zeros_like(image)
    expected[:-2, 3:] = image[2:, :-3]
    params = {"method": method}
    assert_close(warp("warp_affine", image, matrix=moved, **params), expected, engine_id)
    nine = (*moved, 0.0, 0.0, 1.0)
    assert_close(warp("warp_perspective", image, matrix=nine, **params), expected, engine_id)
    y, x = np.mgrid[:9, :12].astype(np.float32)
    places = np.stack([x - 3, y + 2], axis=-1)
    assert_close(warp("remap", image, places, **params), expected, engine_id)


def test_coordinates_are_precise_far_from_the_corner(engine_id):
    """A ramp of 1 per pixel, 30000 pixels wide, sampled to a thousandth of a pixel."""
    image = np.arange(30000, dtype=np.float32)[None].repeat(2, axis=0)
    matrix = (1.001, 0.0, 0.0, 0.0, 1.0, 0.0)
    got = warp("warp_affine", image, matrix=matrix, size=(29000, 1))
    assert np.abs(got[0] - np.arange(29000) * 1.001).max() <= 0.004  # two ulps of f32 there


@pytest.mark.long  # a picture of 2.1 GB
def test_pictures_of_more_than_two_billion_pixels():
    """Places in them are no 32-bit numbers: the CPU engine crashed."""
    side, corner = 46400, noise((100, 100, 1))
    image = np.zeros((side, side, 1), np.uint8)
    image[-100:, -100:] = corner
    turn = partial(get("warp_affine"), size=(40, 40))
    wanted = np.array(turn(from_array(corner, device="cpu"), matrix=(0.9, -0.3, 20, 0.3, 0.9, 5)))
    far = (0.9, -0.3, side - 80, 0.3, 0.9, side - 95)
    got = np.array(turn(from_array(image, device="cpu"), matrix=far))
    assert np.abs(got.astype(int) - wanted).max() <= 1


def test_perspective_formula(engine_id):
    image = (noise((20, 24, 3)) / 255).astype(np.float32)
    matrix = np.array([[0.9, 0.13, -1.7], [-0.11, 1.07, 1.3], [0.0041, -0.0027, 1.0]])
    expected = np.empty((15, 18, 3))
    for y in range(15):
        for x in range(18):
            u, v, w = matrix @ (x, y, 1)
            expected[y, x] = at(image, u / w, v / w, "bilinear", "reflect", FILL)
    got = warp("warp_perspective", image, matrix=matrix, size=(18, 15), border="reflect")
    assert np.abs(got - expected).max() <= 2e-5  # coordinates in f32 on some devices


def test_zero_divisors(engine_id):
    """Where the divisor is 0, the corner pixel is read."""
    image = noise((4, 5))
    got = warp("warp_perspective", image, matrix=(1, 0, 0, 0, 1, 0, 0, 0, 0), size=(3, 3))
    assert (got == image[0, 0]).all()


def test_nan_and_infinite_coordinates(engine_id):
    image = noise((6, 8, 4))
    places = np.full((1, 6, 2), 3.0, np.float32)
    places[0, :, 0] = [np.nan, np.inf, -np.inf, 1e30, -1e9, 2.0]
    got = warp("remap", image, places, fill=(1.0, 0.0, 0.2, 1.0))
    assert (got[0, :5] == (255, 0, 51, 255)).all()
    assert (got[0, 5] == image[3, 2]).all()
    clamped = warp("remap", image, places, border="clamp")
    assert (clamped[0] == image[3, [0, 7, 0, 7, 0, 2]]).all()


@given(
    source=st.tuples(st.integers(1, 30), st.integers(1, 30)),
    shape=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    channels=st.sampled_from([None, 1, 3, 4]),
    dtype=st.sampled_from(["u8", "f32"]),
    method=st.sampled_from(METHODS),
    border=st.sampled_from(BORDERS),
    seed=st.integers(0, 99),
)
@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_warp(engine_id, source, shape, channels, dtype, method, border, seed):
    image = noise(source if channels is None else (*source, channels), seed)
    image = image if dtype == "u8" else (image / 255).astype("f4")
    random = np.random.default_rng(seed)
    params = {"method": method, "border": border, "fill": FILL}
    matrix = np.array(IDENTITY) + random.uniform(-1, 1, 6) * (1, 1, 20, 1, 1, 20)
    places = random.uniform(-70, 100, (*shape, 2)).astype(np.float32)
    places[random.random(shape) < 0.2] = np.round(places[0, 0])

    def both():
        return (
            warp("warp_affine", image, matrix=matrix, size=shape[::-1], **params),
            warp("remap", image, places, **params),
        )

    got = both()
    with dala.device("reference"):
        expected = both()
    for mine, wanted in zip(got, expected, strict=True):
        assert_close(mine, wanted, engine_id, "program")


#: Level ones: enlarged, mirrored, reduced (long parts of rows), a single pixel, partly outside.
LEVEL = (
    (0.7, 0.0, 10.3, 0.0, 0.7, 1.2),
    (-1.1, 0.0, 598.4, 0.0, 1.2, -3.0),
    (2.6, 0.0, 0.2, 0.0, 0.4, 1.1),
    (0.0, 0.0, 5.5, 0.0, 0.0, 2.5),
    (1.0, 0.25, 2.0, 0.0, 1.0, 6.5),
)


@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_level_warps(engine_id, channels, dtype):
    """Rows whose pixels are all between the same two rows, in several batches."""
    image = noise((9, 601, channels))
    image = image if dtype == "u8" else (image / np.float32(255)).astype(np.float32)
    for matrix in LEVEL:
        with dala.device("reference"):
            expected = warp("warp_affine", image, matrix=matrix, size=(530, 8))
        got = warp("warp_affine", image, matrix=matrix, size=(530, 8))
        assert_close(got, expected, engine_id, "program")


@pytest.mark.parametrize("degrees", [0.5, 7, 30, 45, 90, 200])
def test_turned_bytes(engine_id, degrees):
    """Several batches of RGBA8 pixels, inside, outside and on the border; almost exact."""
    image, (height, width) = noise((150, 301, 4)), (97, 333)
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    middle = np.array([[c, -s], [s, c]]) @ (-width / 2, -height / 2) + (150.3, 75.2)
    matrix = (c, -s, middle[0], s, c, middle[1])
    nine = (*matrix, 0.0002, -0.0001, 1.0)
    for border in ("constant", "wrap"):
        params = {"size": (width, height), "border": border, "fill": FILL}
        for name, given_matrix in (("warp_affine", matrix), ("warp_perspective", nine)):
            got = warp(name, image, matrix=given_matrix, **params)
            with dala.device("reference"):
                floats = (image / 255).astype(np.float32)
                exact = warp(name, floats, matrix=given_matrix, **params) * 255
            off = np.abs(got - exact)
            # Perspective coordinates are f32 on some devices.
            assert off.max() <= (0.52 if name == "warp_affine" else 0.6), (name, border)


@pytest.mark.parametrize("shape", [(150, 301), (150, 301, 3), (150, 301, 4)])
@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_groups_of_samples(engine_id, dtype, shape):
    """Groups inside, outside and across the border, of all kinds of pixels."""
    image = noise(shape) if dtype == "u8" else (noise(shape) / 255).astype(np.float32)
    matrix = (0.82, -0.6, 40.3, 0.55, 0.9, -60.7)
    places = np.stack(np.meshgrid(np.arange(333), np.arange(41)), axis=-1).astype(np.float32)
    places = places * (0.9, 3.5) + np.sin(places[..., ::-1] / 9) * 5

    def every():
        return (
            warp("warp_affine", image, matrix=matrix, size=(333, 91), fill=FILL),
            warp("remap", image, places.astype(np.float32), border="reflect"),
        )

    got = every()
    with dala.device("reference"):
        expected = every()
    for mine, wanted in zip(got, expected, strict=True):
        assert_close(mine, wanted, engine_id, "program")


@pytest.mark.long
def test_native_code_stays_in_bounds(monkeypatch):
    """The CPU's code with every load and store checked."""
    monkeypatch.setattr(cpu_warp, "compile_native", partial(compile_native, checked=True))
    matrix = (0.7, 0.3, -9.0, -0.2, 0.8, -3.0)
    with dala.device("cpu"):
        for method, border, channels in (
            ("nearest", "constant", 1), ("bilinear", "clamp", 1), ("bilinear", "reflect", 3),
            ("bilinear", "constant", 4), ("bicubic", "wrap", 4), ("bicubic", "clamp", 3),
        ):  # fmt: skip
            for shape in ((11, 13, channels), (1, 1, channels), (2, 3, channels)):
                params = {"size": (300, 30), "method": method, "border": border}
                warp("warp_affine", noise(shape), matrix=matrix, **params)
        turned = (0.7, 0.3, -9.0, -0.2, 0.8, -3.0, 0.001, -0.002, 1.0)
        warp("warp_perspective", noise((31, 43, 4)), matrix=turned, size=(300, 30))
        for level in LEVEL:
            for shape in ((9, 601, 3), (9, 601, 4), (2, 2, 4)):
                warp("warp_affine", noise(shape), matrix=level, size=(530, 8))


# calls -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "params", "error", "words"),
    [
        ("warp_affine", {}, dala.ParameterError, "missing required parameter 'matrix'"),
        ("warp_affine", {"matrix": (1, 2, 3)}, dala.ParameterError, "6 numbers"),
        ("warp_perspective", {"matrix": np.eye(2)}, dala.ParameterError, "9 numbers"),
        (
            "warp_affine",
            {"matrix": (math.inf,) * 6},
            dala.ParameterError,
            "matrix must be 6 numbers from",
        ),
        ("warp_affine", {"matrix": IDENTITY, "border": "mirror"}, dala.ParameterError, "'reflect'"),
        ("warp_affine", {"matrix": IDENTITY, "size": (3, 3)}, dala.ShapeMismatch, r"\(3, 3, 3\)"),
    ],
)
def test_invalid_calls(engine_id, name, params, error, words):
    target = from_array(np.full((4, 5, 3), 9, np.uint8))
    with pytest.raises(error, match=words):
        run_kernel(name, [buffer_zeros((6, 7, 3), "u8")], target, params)
    assert (target.numpy() == 9).all()


@pytest.mark.parametrize(
    ("image", "places", "error", "words"),
    [
        (((6, 7, 2), "u8"), ((4, 5, 2), "f32"), dala.ShapeError, "image must be an image of shape"),
        (((6, 7, 3), "u8"), ((4, 5, 3), "f32"), dala.ShapeMismatch, r"\(height, width, 2\)"),
        (((6, 7, 3), "u8"), ((4, 5, 2), "u8"), dala.DtypeMismatch, "map must be of dtype 'f32'"),
        (((6, 7, 3), "u8"), ((3, 5, 2), "f32"), dala.ShapeMismatch, r"\(3, 5, 3\)"),
        (((6, 7, 4), "u8"), ((4, 5, 2), "f32"), dala.ShapeMismatch, r"\(4, 5, 4\)"),
        (((6, 7, 3), "f32"), ((4, 5, 2), "f32"), dala.DtypeMismatch, "'f32'"),
        (
            ((0, 7, 3), "u8"),
            ((4, 5, 2), "f32"),
            dala.ShapeMismatch,
            "image must be a picture with pixels",
        ),
    ],
)
def test_invalid_maps(engine_id, image, places, error, words):
    target = from_array(np.full((4, 5, 3), 9, np.uint8))
    with pytest.raises(error, match=words):
        run_kernel("remap", [buffer_zeros(*image), buffer_zeros(*places)], target)
    assert (target.numpy() == 9).all()


def test_output_size(engine_id):
    image = noise((6, 7, 4))
    got = run("warp_affine", [image], (4, 9, 4), "u8", {"matrix": IDENTITY})
    assert_close(got[:, :7], image[:4], engine_id)
    assert not got[:, 7:].any()


def test_in_a_pipeline_and_submitted(engine_id):
    image = noise((10, 12, 4))
    params = {"matrix": (0.9, 0.1, 0.5, -0.1, 0.9, 1.0), "border": "clamp"}
    source, turned, out = (from_array(image), *(buffer_zeros((8, 9, 4), "u8") for _ in "ab"))
    turn = {"op": "run_kernel", "kernel": "warp_affine", "inputs": [source], "params": params}
    with compute.Pipeline() as pipeline:
        pipeline.add({**turn, "output": turned})
        pipeline.add({"op": "run_kernel", "kernel": "invert", "inputs": [turned], "output": out})
        pipeline.run()
    expected = warp("warp_affine", image, size=(9, 8), **params)
    assert_close(np.array(turned.numpy()), expected, engine_id)
    assert (out.numpy()[..., :3] == 255 - expected[..., :3]).all()
    later = buffer_zeros((8, 9, 4), "u8")
    compute.wait(compute.submit({**turn, "output": later}))
    assert_close(np.array(later.numpy()), expected, engine_id)
