"""crop, pad, flip, rotate and pixelate, against NumPy, Pillow and OpenCV."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from PIL import Image

import dala
from dala.errors import ParameterError
from dala.gpu.compute.kernels.resize import FITS
from dala.media import Frame, gpu
from dala.media.scene import Scene
from dala.ml import preprocess
from tests.support.tolerances import assert_close

SHAPES = ((1, 1), (1, 7, 3), (5, 1, 4), (9, 23, 4), (13, 17, 3), (8, 6))
NUMPY_BORDERS = {"clamp": "edge", "reflect": "reflect", "wrap": "wrap"}


def noise(shape, dtype="u8", seed=1):
    random = np.random.default_rng(seed).integers(0, 256, shape, np.uint8)
    return random if dtype == "u8" else random / np.float32(255)


@pytest.mark.parametrize("dtype", ["u8", "f32"])
@pytest.mark.parametrize("border", NUMPY_BORDERS)
def test_pad(engine_id, border, dtype):
    for shape in SHAPES:
        image = noise(shape, dtype)
        around = ((9, 2), (3, 5), (0, 0))[: len(shape)]
        got = gpu.pad(image, padding=(3, 9, 5, 2), border=border)
        np.testing.assert_array_equal(got, np.pad(image, around, NUMPY_BORDERS[border]))


@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_pad_with_a_color(engine_id, dtype):
    fill = (0.2, 0.4, 0.6, 0.8)
    for shape in SHAPES:
        image = noise(shape, dtype)
        color = np.array(fill) * 255 + 0.5 if dtype == "u8" else np.array(fill)
        want = np.empty((shape[0] + 3, shape[1] + 2, *shape[2:]), image.dtype)
        want[...] = color[: shape[2]] if len(shape) == 3 else color[0]
        want[1:-2, :-2] = image
        got = gpu.pad(image, padding=(0, 1, 2, 2), fill=fill)
        np.testing.assert_array_equal(got, want)
    assert gpu.pad(noise((2, 3)), padding=1).shape == (4, 5)
    assert not gpu.pad(noise((2, 3, 4)), padding=1)[0].any()


@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_flip_and_crop(engine_id, dtype):
    for shape in (*SHAPES, (3, 41, 3), (2, 64, 4)):
        image = noise(shape, dtype)
        np.testing.assert_array_equal(gpu.flip(image), image[:, ::-1])
        np.testing.assert_array_equal(gpu.flip(image, direction="vertical"), image[::-1])
        np.testing.assert_array_equal(gpu.flip(image, direction="both"), image[::-1, ::-1])
        height, width = shape[:2]
        box = (width // 2, height // 3, width, height)
        np.testing.assert_array_equal(gpu.crop(image, box=box), image[height // 3 :, width // 2 :])
    image = noise((6, 9, 3), dtype)
    np.testing.assert_array_equal(gpu.crop(image, size=(4, 3)), image[1:4, 2:6])


def test_kinds_of_pictures(engine_id):
    image = noise((6, 9, 4))
    box = (1, 2, 5, 6)
    want = image[2:6, 1:5]
    assert gpu.crop(image.tobytes(), 9, 6, box=box) == want.tobytes()
    pillow = gpu.crop(Image.fromarray(image), box=box)
    np.testing.assert_array_equal(pillow, Image.fromarray(image).crop(box))
    frame = gpu.crop(Frame.from_array(image), box=box)
    assert (frame.width, frame.height) == (4, 4)


@pytest.mark.parametrize("turns", [-1, 0, 1, 2, 3, 5])
def test_right_angles_are_exact(engine_id, turns):
    for shape in (*SHAPES, (70, 41, 3)):
        image = noise(shape)
        got = gpu.rotate(image, angle=90 * turns, expand=True)
        np.testing.assert_array_equal(got, np.rot90(image, turns))


@pytest.mark.parametrize("angle", [30.0, -75.5])
def test_rotations_are_opencvs(engine_id, angle):
    """OpenCV rounds coordinates to 1/32 of a pixel."""
    smooth = cv2.GaussianBlur(noise((31, 40, 3)), (0, 0), 2)
    for border, code in (("constant", cv2.BORDER_CONSTANT), ("reflect", cv2.BORDER_REFLECT_101)):
        matrix = cv2.getRotationMatrix2D((11.5, 19.5), angle, 1)
        want = cv2.warpAffine(smooth, matrix, (40, 31), borderMode=code)
        got = gpu.rotate(smooth, angle=angle, center=(12, 20), border=border)
        assert np.abs(got.astype(int) - want).mean() <= 0.6


def test_expanded_size_is_pillows(engine_id):
    image = noise((20, 33, 3))
    for angle in (10, 45, 133.3):
        got = gpu.rotate(image, angle=angle, expand=True)
        want = Image.fromarray(image).rotate(angle, expand=True).size
        assert abs(got.shape[1] - want[0]) <= 1  # Pillow rounds outward once more
        assert abs(got.shape[0] - want[1]) <= 1


@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_pixelate(engine_id, dtype):
    for shape in ((16, 24, 3), (13, 17, 4), (1, 7), (1, 1, 3)):
        image = noise(shape, dtype)
        for size in (1, 4, 9):
            height, width = (-(-n // size) * size for n in shape[:2])
            around = ((0, height - shape[0]), (0, width - shape[1]), (0, 0))[: len(shape)]
            blocks = np.pad(image, around, "edge").astype(float)
            blocks = blocks.reshape(height // size, size, width // size, size, -1).mean((1, 3))
            want = blocks.repeat(size, 0).repeat(size, 1)[: shape[0], : shape[1]].reshape(shape)
            got = gpu.pixelate(image, block=size)
            assert got.dtype == image.dtype
            assert np.abs(got - want).max() <= (0.75 if dtype == "u8" else 1e-5)


# fitting ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_fits(engine_id, dtype):
    fill = (0.2, 0.4, 0.6, 0.8)
    for shape, contained in (((30, 45, 3), (16, 24)), ((9, 6, 4), (20, 13)), ((1, 1), (20, 20))):
        image = noise(shape, dtype)
        most = 1 if dtype == "u8" else 1e-5
        for method in ("bilinear", "nearest"):
            made = {
                fit: gpu.resize(image, size=(24, 20), fit=fit, method=method, fill=fill)
                for fit in FITS
            }
            assert made["contain"].shape[:2] == contained
            stretched = gpu.resize(image, size=contained[::-1], method=method)
            np.testing.assert_array_equal(made["contain"], stretched)
            high, wide = 20 - contained[0], 24 - contained[1]
            around = (wide // 2, high // 2, wide - wide // 2, high - high // 2)
            padded = gpu.pad(stretched, padding=around, fill=fill)
            assert np.abs(made["pad"].astype(float) - padded).max() <= most
            scale = max(20 / shape[0], 24 / shape[1])
            full = [max(n, int(s * scale + 1e-6)) for n, s in zip((20, 24), shape, strict=False)]
            whole = gpu.resize(image, size=full[::-1], method=method)
            top, left = (round((f - n) / 2) for f, n in zip(full, (20, 24), strict=True))
            covered = whole[top : top + 20, left : left + 24]
            assert np.abs(made["cover"].astype(float) - covered).max() <= most
            np.testing.assert_array_equal(made["letterbox"], made["pad"])
            np.testing.assert_array_equal(made["crop"], made["cover"])
            assert made["stretch"].shape == (20, 24, *shape[2:])


def test_one_number_left_out_keeps_the_aspect():
    with dala.device("cpu"):
        image = noise((30, 45, 3))
        assert gpu.resize(image, size=(15, None)).shape == (10, 15, 3)
        assert gpu.resize(image, size=(None, 60)).shape == (60, 90, 3)
        assert gpu.thumbnail(image, size=(15, None)).shape == (10, 15, 3)


def test_thumbnail_is_pillows(engine_id):
    image = cv2.GaussianBlur(noise((40, 64, 3)), (0, 0), 1.5)
    for size in ((20, 20), (50, 10), (32, 100)):
        pillow = Image.fromarray(image)
        pillow.thumbnail(size, reducing_gap=None)
        got = gpu.thumbnail(image, size=size)
        assert got.shape == np.asarray(pillow).shape
        assert np.abs(got.astype(int) - np.asarray(pillow)).max() <= 1
    np.testing.assert_array_equal(gpu.thumbnail(image, size=100), image)
    for fit in ("stretch", "cover", "pad"):
        assert gpu.thumbnail(image, size=(70, 90), fit=fit).shape == (90, 70, 3)


@pytest.mark.parametrize("fit", FITS)
def test_preprocess_takes_every_fit(fit):
    with dala.device("cpu"):
        image = noise((30, 45, 3))
        tensor = preprocess(image, (24, 20), fit=fit, normalize="unit", pad=0.25).numpy()
        want = gpu.resize(image / np.float32(255), size=(24, 20), fit=fit, fill=0.25)
        assert np.abs(tensor[0].transpose(1, 2, 0) - want).max() <= 1e-5


def test_scenes_take_every_fit():
    with dala.device("cpu"):
        image = noise((4, 8, 3))
        shown = {}
        for fit in (*FITS, "fill"):
            with Scene(8, 8) as scene:
                scene.add_image(image, size=(8, 8), fit=fit)
                shown[fit] = np.array(scene.render())[..., :3]
        np.testing.assert_array_equal(shown["pad"], shown["contain"])
        np.testing.assert_array_equal(shown["letterbox"], shown["contain"])
        np.testing.assert_array_equal(shown["crop"], shown["cover"])
        np.testing.assert_array_equal(shown["fill"], shown["stretch"])
        np.testing.assert_array_equal(shown["contain"][2:6], image)
        assert not np.array_equal(shown["stretch"], shown["cover"])


def test_in_filter_lists(engine_id):
    image = noise((8, 10, 4))
    with gpu.start_pipeline(10, 8) as pipeline:
        filters = [
            ("pad", {"padding": 2, "border": "reflect"}),
            "flip",
            ("crop", {"size": (10, 8)}),
        ]
        got = gpu.process_frame(pipeline, image, filters)
    assert_close(got, image[:, ::-1], engine_id, "program")


@pytest.mark.parametrize(
    ("name", "params", "text"),
    [
        ("crop", {}, "got neither"),
        ("crop", {"box": (0, 0, 1, 1), "size": (1, 1)}, "got both"),
        ("crop", {"box": (0, 0, 11, 5)}, "within the picture of 10 x 8 pixels"),
        ("crop", {"box": (4, 0, 4, 5)}, "left < right"),
        ("crop", {"size": (2, 9)}, "pad"),
        ("crop", {"box": "all"}, "box must be"),
        ("pad", {}, "missing required parameter 'padding'"),
        ("pad", {"padding": -1}, "padding must be an int or 4 ints from 0"),
        ("pad", {"padding": 1, "border": "mirror"}, "border must be one of"),
        ("flip", {"direction": "left"}, "direction must be one of"),
        ("rotate", {}, "missing required parameter 'angle'"),
        ("rotate", {"angle": float("nan")}, "angle must be"),
        ("resize", {"size": (2, 2), "fit": "covr"}, "fit must be one of .* Did you mean 'cover'"),
        ("thumbnail", {}, "missing required parameter 'size'"),
        ("thumbnail", {"size": 0}, r"size must be an int or \(width, height\), ints from 1"),
        ("pixelate", {"block": 0}, "block must be an int from 1 to 4096"),
    ],
)
def test_errors(name, params, text):
    with dala.device("cpu"), pytest.raises(ParameterError, match=text):
        getattr(gpu, name)(noise((8, 10, 3)), **params)
