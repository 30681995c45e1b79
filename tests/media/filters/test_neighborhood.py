"""Neighborhood filters and their borders, against OpenCV, Pillow and NumPy."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from PIL import Image, ImageFilter

import dala
from dala.errors import ParameterError, ShapeError
from dala.gpu.compute import buffer_zeros, from_array
from dala.gpu.compute.kernel import get as find_kernel
from dala.media import gpu
from dala.media.filters.neighborhoods import structuring_element
from tests.support.pictures import photo

BORDERS = {
    "clamp": cv2.BORDER_REPLICATE,
    "reflect": cv2.BORDER_REFLECT_101,
    "constant": cv2.BORDER_CONSTANT,
}
#: OpenCV has no "wrap" for most filters.
NUMPY_BORDERS = {"clamp": "edge", "reflect": "reflect", "wrap": "wrap", "constant": "constant"}
SHAPES = ((1, 1), (1, 7, 3), (13, 17, 3), (8, 6), (9, 70, 4))


def noise(shape, dtype="u8", seed=1):
    random = np.random.default_rng(seed).integers(0, 256, shape, np.uint8)
    return random if dtype == "u8" else random / np.float32(255)


def windows(image, radius, border):
    """Return every value of each square, in the last axis; alpha is the pixel's own."""
    around = [(radius, radius)] * 2 + [(0, 0)] * (image.ndim - 2)
    wide = np.pad(image, around, NUMPY_BORDERS[border])
    side = 2 * radius + 1
    found = np.lib.stride_tricks.sliding_window_view(wide, (side, side), (0, 1))
    found = found.reshape(*image.shape, -1).copy()
    if image.ndim == 3 and image.shape[2] == 4:
        found[:, :, 3] = image[:, :, 3, None]
    return found


@pytest.mark.parametrize("dtype", ["u8", "f32"])
@pytest.mark.parametrize("border", NUMPY_BORDERS)
def test_box_blur(engine_id, border, dtype):
    for shape in SHAPES:
        image = noise(shape, dtype)
        for radius in (0, 1, 6, 20):
            got = gpu.box_blur(image, radius=radius, border=border)
            want = windows(image, radius, border).mean(-1, dtype=np.float64)
            assert np.abs(got - want).max() <= (1 if dtype == "u8" else 1e-5)


@pytest.mark.parametrize("dtype", ["u8", "f32"])
@pytest.mark.parametrize("radius", [0, 1, 2, 3, pytest.param(7, marks=pytest.mark.long)])
def test_median(engine_id, radius, dtype):
    for shape in SHAPES:
        image = noise(shape, dtype)
        for border in ("clamp", "reflect") if radius == 3 else ("clamp",):
            got = gpu.median(image, radius=radius, border=border)
            want = np.median(windows(image, radius, border), -1)
            assert np.abs(got - want).max() <= (0 if dtype == "u8" else 1e-6)


def test_opencvs_median_and_box(engine_id):
    image = noise((20, 31, 3))
    for radius in (1, 2, 5):
        side = 2 * radius + 1
        np.testing.assert_array_equal(gpu.median(image, radius=radius), cv2.medianBlur(image, side))
        for border, code in BORDERS.items():
            if border != "constant":
                got = gpu.box_blur(image, radius=radius, border=border)
                want = cv2.blur(image, (side, side), borderType=code)
                assert np.abs(got.astype(int) - want).max() <= 1


@pytest.mark.parametrize("border", NUMPY_BORDERS)
def test_borders_of_other_filters(engine_id, border):
    """A filter of a padded picture, cropped."""
    image = noise((7, 9, 4))
    wide = np.pad(image, [(4, 4), (4, 4), (0, 0)], NUMPY_BORDERS[border])
    for name, params in {
        "blur": {"radius": 3},
        "gaussian_blur": {"sigma": 1.0},
        "sharpen": {},
        "edge_detect": {},
        "denoise": {"radius": 2},
        "beauty": {"radius": 4},
        "erode": {"radius": 4},
        "dilate": {"radius": 1},
        "emboss": {"dx": 3, "dy": -4},
        "unsharp_mask": {"radius": 1.2},
        "motion_blur": {"length": 7, "angle": 20},
    }.items():
        got = getattr(gpu, name)(image, border=border, **params)
        want = getattr(gpu, name)(wide, **params)[4:-4, 4:-4]
        assert np.abs(got.astype(int) - want).max() <= 1, name


def test_bilateral_is_opencvs(engine_id):
    for shape in SHAPES[:4]:
        image = noise(shape)
        for border, code in BORDERS.items():
            for radius in (1, 3):
                params = {"radius": radius, "sigma_color": 0.3, "sigma_space": 2}
                got = gpu.bilateral(image, border=border, **params)
                want = cv2.bilateralFilter(image, 2 * radius + 1, 76.5, 2, borderType=code)
                assert np.abs(got.astype(int) - want.reshape(shape)).max() <= 1
    image = noise((5, 6, 4))
    assert (gpu.bilateral(image)[..., 3] == image[..., 3]).all()
    assert (gpu.bilateral(image, radius=0) == image).all()


def line_kernel(length, angle):
    """Return the kernel of a motion blur: samples on a line, spread over their four pixels."""
    count, middle = int(np.ceil(length)), 10
    line = np.zeros((2 * middle + 1,) * 2, np.float32)
    along = (np.arange(count) - (count - 1) / 2) * (length - 1) / max(count - 1, 1)
    x = np.round(along * np.cos(np.radians(angle)), 9) + middle
    y = np.round(-along * np.sin(np.radians(angle)), 9) + middle
    for dx in (0, 1):
        for dy in (0, 1):
            i, j = np.floor(x).astype(int), np.floor(y).astype(int)
            weights = np.abs(1 - dx - (x - i)) * np.abs(1 - dy - (y - j)) / count
            np.add.at(line, (j + dy, i + dx), weights)
    return line


@pytest.mark.parametrize(("length", "angle"), [(1, 0), (9, 0), (9, 90), (6.5, 30), (5, 135)])
def test_motion_blur_is_a_convolution(engine_id, length, angle):
    line = line_kernel(length, angle)
    assert line.sum() == pytest.approx(1.0)
    for shape in SHAPES[:4]:
        image = noise(shape)
        want = cv2.filter2D(image, -1, line, borderType=cv2.BORDER_REFLECT_101).reshape(shape)
        got = gpu.motion_blur(image, length=length, angle=angle, border="reflect")
        assert np.abs(got.astype(int) - want).max() <= 1


def test_motion_blur_along_a_row_is_a_box(engine_id):
    image = noise((6, 20, 3))
    want = cv2.blur(image, (5, 1), borderType=cv2.BORDER_REPLICATE)
    assert np.abs(gpu.motion_blur(image, length=5).astype(int) - want).max() <= 1


def test_unsharp_mask(engine_id):
    image = noise((20, 31, 3))
    soft = cv2.GaussianBlur(image, (11, 11), 1.5, borderType=cv2.BORDER_REPLICATE).astype(float)
    want = np.clip(image + 1.2 * (image - soft), 0, 255)
    got = gpu.unsharp_mask(image, radius=1.5, amount=1.2)
    assert np.abs(got - want).max() <= 2.5  # the blurred picture is rounded to bytes
    kept = gpu.unsharp_mask(image, radius=1.5, amount=1.2, threshold=0.2)
    small = np.abs(image - soft) < 50
    np.testing.assert_array_equal(kept[small], image[small])
    np.testing.assert_array_equal(gpu.unsharp_mask(image, amount=0.0), image)


def test_emboss_is_pillows(engine_id):
    image = noise((12, 15, 3))
    want = np.asarray(Image.fromarray(image).filter(ImageFilter.EMBOSS))
    # Pillow leaves the border alone.
    assert np.abs(gpu.emboss(image, dy=1).astype(int) - want)[1:-1, 1:-1].max() <= 1


# morphology ---------------------------------------------------------------------------------------
OPENCV = {
    "erode": cv2.MORPH_ERODE, "dilate": cv2.MORPH_DILATE, "open": cv2.MORPH_OPEN,
    "close": cv2.MORPH_CLOSE, "gradient": cv2.MORPH_GRADIENT, "tophat": cv2.MORPH_TOPHAT,
    "blackhat": cv2.MORPH_BLACKHAT,
}  # fmt: skip
UNEVEN = np.array([[0, 1, 0, 1], [1, 0, 0, 0], [0, 0, 1, 1]], np.uint8)
ELEMENTS = (
    ({"radius": 2}, np.ones((5, 5), np.uint8)),
    ({"radius": 3, "shape": "ellipse"}, structuring_element("ellipse", 3)),
    ({"element": UNEVEN}, UNEVEN),
)
SCATTERED = (np.indices((13, 13)).sum(axis=0) % 2).astype(np.uint8)


def test_elements_are_opencvs():
    codes = {"rect": cv2.MORPH_RECT, "cross": cv2.MORPH_CROSS, "ellipse": cv2.MORPH_ELLIPSE}
    for radius in range(12):
        for shape, code in codes.items():
            want = cv2.getStructuringElement(code, (2 * radius + 1,) * 2)
            np.testing.assert_array_equal(structuring_element(shape, radius), want)


@pytest.mark.third
@pytest.mark.parametrize("operation", OPENCV)
def test_morphology_is_opencvs(engine_id, operation):
    for shape, dtype in (((1, 1), "u8"), ((1, 7, 3), "u8"), ((13, 17, 3), "u8"), ((8, 6), "f32")):
        image = noise(shape, dtype)
        white = 255 if dtype == "u8" else 1
        for params, element in ELEMENTS:
            for border, repeat in (("clamp", 1), ("reflect", 2), ("constant", 2)):
                got = gpu.morphology(
                    image, operation=operation, border=border, fill=0.4, iterations=repeat, **params
                )
                want = cv2.morphologyEx(
                    image, OPENCV[operation], element, iterations=repeat,
                    borderType=BORDERS[border], borderValue=(0.4 * white,) * 4,
                )  # fmt: skip
                assert np.abs(got - want.reshape(shape).astype(float)).max() <= 1e-6


def test_scattered_element(engine_id):
    image = noise((15, 14, 3))
    got = gpu.morphology(image, operation="dilate", element=SCATTERED)
    want = cv2.dilate(image, SCATTERED, borderType=cv2.BORDER_REPLICATE)
    np.testing.assert_array_equal(got, want)


def test_morphology_of_frames(engine_id):
    image = noise((15, 14, 4))
    with gpu.start_pipeline(14, 15) as pipeline:
        for params in ({"radius": 2, "shape": "ellipse"}, {"element": UNEVEN, "border": "wrap"}):
            got = gpu.process_frame(pipeline, image, [("morphology", params), "invert"])
            np.testing.assert_array_equal(got, gpu.invert(gpu.morphology(image, **params)))


def test_morphology_keeps_alpha_and_agrees_with_erode(engine_id):
    image = noise((9, 11, 4))
    got = gpu.morphology(image, operation="erode", radius=2)
    np.testing.assert_array_equal(got, gpu.erode(image, radius=2))
    np.testing.assert_array_equal(gpu.morphology(image, radius=0), image)
    assert (gpu.morphology(image, operation="gradient")[..., 3] == image[..., 3]).all()


# canny --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("l2", [False, True])
def test_canny_is_opencvs(engine_id, l2):
    image = photo(60, 91)
    for given in (
        noise((1, 1)),
        noise((1, 9)),
        noise((17, 23, 3)),
        np.ascontiguousarray(image[..., :3]),
        cv2.GaussianBlur(noise((40, 37)), (0, 0), 2) * 3,
    ):
        for low, high in ((100, 200), (20, 600)):
            want = cv2.Canny(given, low, high, L2gradient=l2)
            got = gpu.canny(given, low=low / 255, high=high / 255, l2=l2)
            np.testing.assert_array_equal(got if got.ndim == 2 else got[..., 0], want)


def test_canny_follows_long_weak_edges(engine_id):
    """A spiral with one strong pixel: every pixel of it is an edge."""
    kernel = find_kernel("hysteresis")
    size = 33
    spiral = np.zeros((size, size), np.uint8)
    y = x = 0
    step = (0, 1)
    for length in sorted([*range(2, size, 2)] * 2, reverse=True):
        for _ in range(length):
            spiral[y, x] = 100
            y, x = y + step[0], x + step[1]
        step = step[1], -step[0]
    weak = (spiral > 0).sum()
    spiral[0, 0] = 255
    apart = spiral.copy()
    apart[3, 1] = 0
    for given in (spiral, apart):
        out = buffer_zeros((size, size), "u8")
        kernel.run([from_array(given)], out, {})
        got = np.array(out.numpy())
        assert got[0, 0] == 255
        count, labels = cv2.connectedComponents((given > 0).astype(np.uint8), connectivity=8)
        np.testing.assert_array_equal(got > 0, labels == labels[0, 0])
        assert count >= 2
    assert weak > 400


def test_canny_keeps_alpha_and_takes_floats(engine_id):
    image = photo(40, 60)
    image[..., 3] = 77
    got = gpu.canny(image, sigma=1.0)
    assert (got[..., 3] == 77).all()
    assert set(np.unique(got[..., :3])) == {0, 255}
    light = gpu.canny(np.ascontiguousarray(image[..., 0]) / np.float32(255))
    want = cv2.Canny(np.ascontiguousarray(image[..., 0]), 102, 204)
    assert ((light > 0.5) != (want > 0)).mean() < 0.01


@pytest.mark.parametrize(
    ("name", "params", "error", "text"),
    [
        ("box_blur", {"radius": 201}, ParameterError, "radius must be an int from 0 to 200"),
        ("median", {"radius": 8}, ParameterError, "radius must be an int from 0 to 7"),
        ("median", {"border": "mirror"}, ParameterError, "border must be one of"),
        ("median", {"border": "wrap", "radius": 9}, ParameterError, "radius must be an int"),
        ("bilateral", {"sigma_color": 0}, ParameterError, "sigma_color must be"),
        ("motion_blur", {"length": 0.5}, ParameterError, "length must be"),
        ("unsharp_mask", {"radius": -1}, ParameterError, "radius must be"),
        ("emboss", {"dx": 40}, ParameterError, "dx must be"),
        ("morphology", {"operation": "blob"}, ParameterError, "operation must be one of"),
        ("morphology", {"element": np.zeros((3, 3))}, ParameterError, "only zeros"),
        ("morphology", {"element": np.zeros(3)}, ShapeError, "element must be a 2D array"),
        ("morphology", {"element": "square"}, ShapeError, "element must be a 2D array"),
        ("canny", {"low": 2.0, "high": 1.0}, ParameterError, "low must be at most high, 1"),
    ],
)
def test_errors(name, params, error, text):
    with dala.device("cpu"), pytest.raises(error, match=text):
        getattr(gpu, name)(noise((8, 10, 3)), **params)
