"""Positions, shapes, arrays, pixels and images in kernels."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.gpu.compute import Array, from_array, kernel, run_kernel, to_array
from tests.support.engines import NUMPY, needs, run
from tests.support.tolerances import assert_close

# position and shapes --------------------------------------------------------------------------


def test_position_along_one_axis_is_a_number(engine_id):
    k = kernel("def k(x):\n    return x + position()")
    assert run(k, [np.zeros(300, "<i4")], (300,), "s32").tolist() == list(range(300))


@pytest.mark.parametrize("shape", [(4, 5), (1, 7), (3, 1), (33, 65)], ids=str)
def test_position_in_two_axes(engine_id, shape):
    source = "def k(x):\n    i, j = position()\n    return x + i * 1000 + j"
    i, j = np.indices(shape)
    got = run(kernel(source), [np.zeros(shape, "<i4")], shape, "s32")
    assert got.tolist() == (i * 1000 + j).tolist()


def test_position_in_three_axes_and_by_number(engine_id):
    source = "def k(x):\n    a, b, c = position()\n    return x + a * 100 + b * 10 + position(2)"
    a, b, c = np.indices((2, 3, 4))
    got = run(kernel(source), [np.zeros((2, 3, 4), "<i4")], (2, 3, 4), "s32")
    assert got.tolist() == (a * 100 + b * 10 + c).tolist()


def test_position_with_a_broadcast_input(engine_id):
    source = "def k(x, y):\n    i, j = position()\n    return x * 100 + y * 10 + i - j"
    x, y = np.arange(3, dtype="<i4")[:, None], np.arange(4, dtype="<i4")
    i, j = np.indices((3, 4))
    got = run(kernel(source), [x, y], (3, 4), "s32")
    assert got.tolist() == (x * 100 + y * 10 + i - j).tolist()


def test_a_kernel_without_inputs(engine_id):
    k = kernel("def k(*, first=5):\n    return first + position()")
    assert run(k, [], (4,), "s32").tolist() == [5, 6, 7, 8]
    assert run(k, [], (4,), "s32", {"first": -1}).tolist() == [-1, 0, 1, 2]


def test_shapes(engine_id):
    source = """
    def k(a: Array):
        h, w = shape(a)
        i, j = position()
        return a.shape[0] * 1000 + a.shape[1] * 100 + h * 10 + w + shape()[0] * 10000 + len(a)
    """
    got = run(kernel(source), [np.zeros((2, 3), "<i4")], (4, 1), "s32")
    assert got.tolist() == [[2 * 1000 + 3 * 100 + 20 + 3 + 40000 + 2]] * 4


# arrays ---------------------------------------------------------------------------------------


def test_arrays_are_read_at_any_index(engine_id):
    source = "def k(a: Array):\n    i, j = position()\n    return a[j, i]"
    a = np.arange(15, dtype="<f4").reshape(3, 5)
    assert run(kernel(source), [a], (5, 3), "f32").tolist() == a.T.tolist()


def test_an_index_past_the_end_is_clamped(engine_id):
    source = "def k(a: Array):\n    return a[position() - 3]"
    a = np.array([10, 20, 30], "<i4")
    got = run(kernel(source), [a], (10,), "s32")
    assert got.tolist() == [10, 10, 10, 10, 20, 30, 30, 30, 30, 30]
    source = "def k(a: Array, *, i=0, j=0):\n    return a[i, j]"
    a = np.arange(6, dtype="<i4").reshape(2, 3)
    for i, j in [(-9, 1), (9, 1), (1, -9), (1, 9), (2**31 - 1, -(2**31))]:
        expected = a[min(max(i, 0), 1), min(max(j, 0), 2)]
        assert run(kernel(source), [a], (1,), "s32", {"i": i, "j": j}).tolist() == [expected]


@pytest.mark.parametrize("dtype", ["s32", "u32", "s64"])
def test_indexes_of_every_int_type_are_clamped(engine_id, dtype):
    with needs(dtype):
        ends = np.iinfo(NUMPY[dtype])
        index = np.array([0, 1, 2, 3, ends.max // 2 + 1, ends.max, ends.min], NUMPY[dtype])
        source = "def k(i, a: Array):\n    return a[i]"
        a = np.array([10, 20, 30], "<i4")
        got = run(kernel(source), [index, a], index.shape, "s32")
        assert got.tolist() == [10, 20, 30, 30, 30, 30, 10]


def test_arrays_of_every_dtype(engine_id):
    source = "def k(a: Array):\n    return a[2 - position()]"
    for dtype, name in NUMPY.items():
        with needs(dtype):
            a = np.array([1, 2, 250], name)
            assert run(kernel(source), [a], (3,), dtype).tolist() == [250, 2, 1]


def test_a_small_matrix_product(engine_id):
    @kernel
    def product(a: Array, b: Array):
        i, j = position()  # noqa: F821
        total = 0
        for n in range(a.shape[1]):
            total += a[i, n] * b[n, j]
        return total

    a = np.arange(12, dtype="<i4").reshape(3, 4)
    b = np.arange(20, dtype="<i4").reshape(4, 5) - 7
    assert run(product, [a, b], (3, 5), "s32").tolist() == (a @ b).tolist()


def test_arrays_beside_elements(engine_id):
    source = "def k(index, table: Array):\n    return table[index] + index"
    index = np.array([[0, 2], [1, 5]], "<i4")
    table = np.array([100, 200, 300], "<i4")
    got = run(kernel(source), [index, table], (2, 2), "s32")
    assert got.tolist() == [[100, 302], [201, 305]]


# pixels and images ----------------------------------------------------------------------------


def picture(shape, dtype, seed=9):
    random = np.random.default_rng(seed)
    if dtype == "u8":
        return random.integers(0, 256, shape, "u1")
    return (random.integers(-64, 320, shape) / 256).astype("<f4")


def load(image):
    """Return the values that a kernel reads from a stored image."""
    return image.astype("<f4") * np.float32(1 / 255) if image.dtype == np.uint8 else image


def store(values, dtype):
    """Return the stored form of values that a kernel returns."""
    if dtype == "f32":
        return values.astype("<f4")
    return np.floor(np.clip(values, 0, 1) * np.float32(255) + np.float32(0.5)).astype("u1")


def moved(image, dx, dy):
    """Return the image read at an offset, clamped at the edges."""
    h, w = image.shape[:2]
    rows, columns = np.clip(np.arange(h) + dy, 0, h - 1), np.clip(np.arange(w) + dx, 0, w - 1)
    return image[rows][:, columns]


IMAGE_SHAPES = [(5, 7), (5, 7, 1), (5, 7, 3), (5, 7, 4), (1, 1, 4), (2, 3, 3), (1, 9), (9, 1, 4)]


@pytest.mark.parametrize("dtype", ["u8", "f32"])
@pytest.mark.parametrize("shape", IMAGE_SHAPES, ids=str)
def test_an_image_read_at_an_offset(engine_id, shape, dtype):
    image = picture(shape, dtype)
    k = kernel("def k(img: Image, *, dx=0, dy=0):\n    return img[dx, dy]")
    for dx, dy in [(0, 0), (1, 0), (0, -1), (-2, 2), (100, -100), (2**31 - 1, -(2**31))]:
        got = run(k, [image], shape, dtype, {"dx": dx, "dy": dy})
        low, high = -(10**6), 10**6  # far beyond is the edge, whatever the distance
        expected = moved(image, min(max(dx, low), high), min(max(dy, low), high))
        assert_close(got, expected, engine_id)


@pytest.mark.parametrize("dtype", ["u8", "f32"])
@pytest.mark.parametrize("shape", IMAGE_SHAPES, ids=str)
def test_a_three_by_three_box(engine_id, shape, dtype):
    source = """
    def k(img: Image):
        total = img[0, 0] * 0
        for dy in range(-1, 2):
            for dx in range(-1, 2):
                total += img[dx, dy]
        return total * 0.125
    """
    image = picture(shape, dtype)
    total = sum(moved(load(image), dx, dy) for dy in (-1, 0, 1) for dx in (-1, 0, 1))
    got = run(kernel(source), [image], shape, dtype)
    assert_close(got, store(total * np.float32(0.125), dtype), engine_id, "program")


@pytest.mark.parametrize("dtype", ["u8", "f32"])
@pytest.mark.parametrize("channels", [3, 4])
def test_pixels_have_components_and_swizzles(engine_id, channels, dtype):
    image = picture((6, 5, channels), dtype)
    v = load(image)
    rgb, alpha = v[..., :3], v[..., 3] if channels == 4 else np.ones((6, 5), "<f4")
    cases = {
        "rgba(px.b, px.g, px.r, px.a)": np.dstack([v[..., 2], v[..., 1], v[..., 0], alpha]),
        "rgba(px.bgr, px.a)": np.dstack([v[..., 2], v[..., 1], v[..., 0], alpha]),
        "rgba(1.0 - px.rgb, px.a)": np.dstack([1 - rgb, alpha]),
        "rgba(px.rrr * 0.5 + px.ggg * 0.5, 1.0)": np.dstack(
            [(v[..., 0] + v[..., 1]) * 0.5] * 3 + [np.ones((6, 5))]
        ),
        "rgba(px.r, 0.25, 1.0, 0.5)": np.dstack(
            [v[..., 0]] + [np.full((6, 5), c) for c in (0.25, 1.0, 0.5)]
        ),
    }
    for text, expected in cases.items():
        k = kernel(f"def k(px: Pixel):\n    return {text}")
        got = run(k, [image], (6, 5, 4), dtype)
        assert_close(got, store(expected.astype("<f4"), dtype), engine_id, "program")


def test_pixel_kernel_keeps_every_byte(engine_id):
    image = np.arange(256, dtype="u1").reshape(8, 8, 4)
    got = run(kernel("def k(px: Pixel):\n    return px"), [image], (8, 8, 4), "u8")
    assert got.tolist() == image.tolist()


def test_pixels_are_clamped_and_rounded_when_stored_as_bytes(engine_id):
    values = np.array([-1, 0, 0.001, 0.5, 0.999, 1, 7, np.nan, np.inf, -np.inf, 0.1], "<f4")
    image = values.reshape(1, 11)
    got = run(kernel("def k(px: Pixel):\n    return px"), [image], (1, 11), "u8")
    expected = store(np.nan_to_num(image, nan=0.0), "u8")
    assert got.tolist() == expected.tolist()


def test_gray_pixel_has_every_component(engine_id):
    image = picture((4, 6), "f32")
    source = "def k(px: Pixel):\n    return px * 8 + px.r + px.g * 2 + px.b * 4 + px.a * 16"
    got = run(kernel(source), [image], (4, 6), "f32")
    assert_close(got, image * 15 + 16, engine_id)


@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_a_number_returned_for_a_pixel_is_gray_and_opaque(engine_id, dtype):
    image = picture((4, 3, 4), dtype)
    got = run(kernel("def k(px: Pixel):\n    return px.g"), [image], (4, 3, 4), dtype)
    green = image[..., 1]
    opaque = np.full_like(green, 255 if dtype == "u8" else 1)
    assert_close(got, np.dstack([green, green, green, opaque]), engine_id)


def test_position_of_a_pixel_is_row_and_column(engine_id):
    source = "def k(px: Pixel):\n    y, x = position()\n    return rgba(y, x, px.r, 1.0)"
    image = picture((5, 7, 4), "f32")
    got = run(kernel(source), [image], (5, 7, 4), "f32")
    y, x = np.indices((5, 7)).astype("<f4")
    assert_close(got, np.dstack([y, x, image[..., 0], np.ones((5, 7), "<f4")]), engine_id)


def test_image_width_and_height(engine_id):
    source = (
        "def k(img: Image):\n    return rgba(img.width, img.height, img.shape[0], img.shape[1])"
    )
    got = run(kernel(source), [picture((3, 5, 4), "f32")], (3, 5, 4), "f32")
    assert got.tolist() == [[[5, 3, 3, 5]] * 5] * 3


def test_two_pixel_inputs(engine_id):
    source = "def k(a: Pixel, b: Pixel, *, t=0.5):\n    return mix(a, b, t)"
    a, b = picture((4, 4, 4), "u8", 1), picture((4, 4, 4), "u8", 2)
    got = run(kernel(source), [a, b], (4, 4, 4), "u8", {"t": 0.25})
    expected = load(a) * np.float32(0.75) + load(b) * np.float32(0.25)
    assert_close(got, store(expected, "u8"), engine_id, "program")


def test_an_image_beside_an_array(engine_id):
    source = """
    def k(img: Image, weights: Array):
        total = 0.0
        for i in range(len(weights)):
            total += weights[i] * img[i - 1, 0].r
        return rgba(total, total, total, 1.0)
    """
    image = picture((4, 9, 4), "f32")
    weights = np.array([0.25, 0.5, 0.25], "<f4")
    red = image[..., 0]
    total = sum(w * moved(red, i - 1, 0) for i, w in enumerate(weights))
    got = run(kernel(source), [image, weights], (4, 9, 4), "f32")
    expected = np.dstack([total, total, total, np.ones_like(total)]).astype("<f4")
    assert_close(got, expected, engine_id, "program")


def test_image_input_as_output_raises(engine_id):
    """Reading neighbors while writing them is undefined, so it is refused."""
    image = picture((8, 8, 4), "u8")
    b = from_array(image.copy())
    k = kernel("def k(img: Image):\n    return img[1, 0]")
    try:
        run_kernel(k, [b], b)
    except dala.DalaError:
        assert np.array(to_array(b)).tolist() == image.tolist()
    else:
        assert np.array(to_array(b)).tolist() == moved(image, 1, 0).tolist()
