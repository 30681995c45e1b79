"""Levels, color matrices, grain and lens effects: values on every engine, and errors."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageOps

import dala
from dala.errors import ParameterError
from dala.media import gpu
from tests.support import tone_pictures
from tests.support.tolerances import assert_close

RNG = np.random.default_rng(8)
PHOTO = RNG.integers(0, 256, (13, 17, 4), dtype=np.uint8)
SHAPES = [PHOTO, PHOTO[..., :3], PHOTO[..., 1], PHOTO[:1, :1]]
cv2 = pytest.importorskip("cv2")


def rounded(values):
    return np.floor(np.clip(values, 0, 255) + 0.5)


def assert_steps(got, want, steps=0.52):
    """Check u8 against exact values of 0..255."""
    assert got.dtype == np.uint8
    off = np.abs(got - np.clip(want, 0, 255))
    assert off.max() <= steps, off.max()


def colors(image):
    """Return the channels of an image without alpha, with a last axis."""
    return image[..., None] if image.ndim == 2 else image[..., :3]


def check(name, params, formula):
    """Compare a filter with a formula on colors of 0 to 1, for all channel counts and dtypes."""
    for image in SHAPES:
        want = formula(colors(image) / 255.0)
        got = getattr(gpu, name)(image, **params)
        assert got.shape == image.shape
        assert_steps(colors(got), want * 255)
        if image.shape[2:] == (4,):
            assert np.array_equal(got[..., 3], image[..., 3])
        light = (image / np.float32(255)).astype(np.float32)
        got = getattr(gpu, name)(light, **params)
        assert_close(
            colors(got), formula(colors(light).astype(float)).astype("<f4"), "webgpu", "program"
        )


def test_posterize_matches_pillow(engine_id):
    image = np.ascontiguousarray(PHOTO[..., :3])
    for bits in range(1, 9):
        want = np.asarray(ImageOps.posterize(Image.fromarray(image), bits))
        assert np.array_equal(gpu.posterize(image, bits=bits), want)


@pytest.mark.parametrize("levels", [1, 2, 3, 5, 16, 256])
def test_posterize_to_levels(engine_id, levels):
    parts = max(levels - 1, 1)
    every = np.arange(256, dtype=np.uint8).reshape(16, 16)
    want = np.floor(np.floor(every * (parts / 255) + 0.5) * 255 / parts + 0.5)
    assert np.array_equal(gpu.posterize(every, levels=levels), want)
    assert np.array_equal(gpu.posterize(every, bits=1, levels=levels), want)  # levels replaces bits
    light = gpu.posterize(every / np.float32(255), levels=levels)
    np.testing.assert_allclose(light, np.floor(every * (parts / 255) + 0.5) / parts, atol=1e-6)


# levels -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"in_black": 0.1, "in_white": 0.8},
        {"gamma": 2.2},
        {"in_black": 0.2, "gamma": 0.5, "out_black": 0.9, "out_white": 0.1},
    ],
)
def test_levels(engine_id, params):
    def formula(c):
        low, high = params.get("in_black", 0.0), params.get("in_white", 1.0)
        c = np.clip((c - low) / (high - low), 0, 1) ** (1 / params.get("gamma", 1.0))
        first, last = params.get("out_black", 0.0), params.get("out_white", 1.0)
        return first + c * (last - first)

    check("levels", params, formula)


def test_levels_per_channel(engine_id):
    image = np.ascontiguousarray(PHOTO[..., :3])
    made = gpu.levels(image, in_black=(0, 0.2, 0.4), gamma=(1, 2, 0.5), out_white=(1, 0.5, 1))
    for channel, (low, gamma, high) in enumerate([(0, 1, 1), (0.2, 2, 0.5), (0.4, 0.5, 1)]):
        c = np.clip((image[..., channel] / 255 - low) / (1 - low), 0, 1) ** (1 / gamma) * high
        assert_steps(made[..., channel], c * 255)


def test_levels_match_scikit_image(engine_id):
    exposure = pytest.importorskip("skimage.exposure")
    gray = PHOTO[..., 0]
    want = exposure.rescale_intensity(gray / 255.0, in_range=(0.2, 0.7), out_range=(0.1, 0.9))
    made = gpu.levels(gray, in_black=0.2, in_white=0.7, out_black=0.1, out_white=0.9)
    assert_steps(made, want * 255)


# color matrices ---------------------------------------------------------------------------------
MATRIX = np.array([[0.5, 0.3, 0.1], [-0.2, 1.1, 0.2], [0.3, 0.0, 0.9]])


def test_color_matrix(engine_id):
    image = np.ascontiguousarray(PHOTO[..., :3])
    assert_steps(gpu.color_matrix(image, matrix=MATRIX), cv2.transform(image / 1.0, MATRIX))
    wide = np.column_stack([MATRIX, [0.1, -0.05, 0.2]])
    want = cv2.transform(image / 255.0, wide) * 255
    for given in (wide, wide.tolist(), tuple(wide.reshape(-1).tolist())):
        assert_steps(gpu.color_matrix(image, matrix=given), want)
    got = gpu.color_matrix(PHOTO, matrix=wide)
    assert_steps(got[..., :3], want)
    assert np.array_equal(got[..., 3], PHOTO[..., 3])


def test_color_matrix_with_alpha(engine_id):
    matrix = RNG.uniform(-0.5, 0.8, (4, 5))
    flat = (PHOTO / 255.0).reshape(-1, 4)
    want = (np.column_stack([flat, np.ones(len(flat))]) @ matrix.T).reshape(PHOTO.shape)
    assert_steps(gpu.color_matrix(PHOTO, matrix=matrix), want * 255)
    light = (PHOTO / np.float32(255)).astype(np.float32)
    want[..., 3] = np.clip(want[..., 3], 0, 1)
    got = gpu.color_matrix(light, matrix=matrix)
    assert_close(got, want.astype("<f4"), "webgpu", "program")
    gray = np.full((2, 2), 100, np.uint8)
    assert_steps(gpu.color_matrix(gray, matrix=MATRIX), np.full((2, 2), 90.0))


# grain ------------------------------------------------------------------------------------------
def grain_noise(height, width, seed, channel=0):
    """Return the documented noise, with Python's integers."""
    made = np.empty((height, width))
    for y in range(height):
        for x in range(width):
            h = x * 668265263 + y * 374761393 + seed * 974634193 + channel * 1103515245
            h &= 0xFFFFFFFF
            h = (h ^ h >> 15) * 739982445 & 0xFFFFFFFF
            h = (h ^ h >> 12) * 695872825 & 0xFFFFFFFF
            h ^= h >> 15
            made[y, x] = (sum(h.to_bytes(4, "little")) - 510) / 147.8016
    return made


def test_grain_is_the_same_on_every_engine(engine_id):
    gray = np.full((7, 9), 128, np.uint8)
    for seed in (0, 7, 2**31 - 1):
        want = 128 + 255 * 0.1 * grain_noise(7, 9, seed)
        assert_steps(gpu.grain(gray, amount=0.1, seed=seed), want)
    colored = gpu.grain(np.full((7, 9, 4), 128, np.uint8), amount=0.1, seed=3, colored=True)
    for channel in range(3):
        want = 128 + 255 * 0.1 * grain_noise(7, 9, 3, channel)
        assert_steps(colored[..., channel], want)
    assert (colored[..., 3] == 128).all()


def test_grain_is_nearly_gaussian():
    light = np.full((256, 256), 0.5, np.float32)
    for size in (1.0, 2.5):
        noise = (gpu.grain(light, amount=0.1, size=size, seed=1, device="cpu") - 0.5) / 0.1
        assert abs(noise.mean()) < 0.03
        assert abs(noise.std() - 1.0) < 0.03
    plain = (gpu.grain(light, amount=0.1, device="cpu") - 0.5) / 0.1
    for shifted in (plain[1:], np.roll(plain, 1, axis=1)[1:]):  # neighbors are not correlated
        assert abs(np.corrcoef(plain[:-1].ravel(), shifted.ravel())[0, 1]) < 0.02
    other = gpu.grain(light, amount=0.1, seed=1, device="cpu")
    assert abs(np.corrcoef(plain.ravel(), other.ravel())[0, 1]) < 0.02
    assert np.array_equal(gpu.grain(light, amount=0.0, device="cpu"), light)


def test_coarse_grain(engine_id):
    gray = np.full((9, 9), 128, np.uint8)
    points = grain_noise(5, 5, 4)
    made = gpu.grain(gray, amount=0.1, size=2.0, seed=4)
    assert_steps(made[::2, ::2], 128 + 25.5 * points)  # the points of the lattice
    middle = (points[:, :-1] + points[:, 1:]) / 2 / np.sqrt(0.5)
    assert_steps(made[::2, 1::2], 128 + 25.5 * middle)


# lenses -----------------------------------------------------------------------------------------
def test_chromatic_aberration(engine_id):
    made = gpu.chromatic_aberration(PHOTO, amount=3.0)
    assert np.array_equal(made[..., 1], PHOTO[..., 1])
    assert np.array_equal(made[..., 3], PHOTO[..., 3])
    share = 3.0 / (np.hypot(17, 13) / 2)
    for channel, factor in ((0, 1 + share), (2, 1 - share)):
        center = np.array([8.0, 6.0])
        matrix = np.column_stack([np.eye(2) / factor, center * (1 - 1 / factor)])
        plane = PHOTO[..., channel].astype(np.float32)
        want = cv2.warpAffine(
            plane, matrix, (17, 13), flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
            borderMode=cv2.BORDER_REPLICATE,
        )  # fmt: skip
        # OpenCV rounds coordinates to 1/32 of a pixel, where neighbors differ by up to 255
        assert np.abs(made[..., channel] - want).max() <= 255 / 32 + 1
    for same in (PHOTO[..., 0], PHOTO[:1, :1], PHOTO[:0]):
        assert np.array_equal(gpu.chromatic_aberration(same, amount=5.0), same)
    assert np.array_equal(gpu.chromatic_aberration(PHOTO, amount=0.0), PHOTO)


# errors -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: gpu.posterize(PHOTO, bits=0), "posterize: bits must be an int from 1 to 8, got 0"),
        (
            lambda: gpu.posterize(PHOTO, levels=257),
            "posterize: levels must be an int from 0 to 256, got 257",
        ),
        (
            lambda: gpu.levels(PHOTO, in_black=0.5, in_white=0.5),
            r"levels: in_black must be below in_white, 0.5, got 0.5",
        ),
        (lambda: gpu.levels(PHOTO, gamma=0), "levels: gamma must be"),
        (
            lambda: gpu.color_matrix(PHOTO, matrix=np.eye(4)),
            "color_matrix: matrix must be a 3x3, 3x4 or 4x5 matrix, got '16 numbers'",
        ),
        (lambda: gpu.color_matrix(PHOTO, matrix="red"), "color_matrix: matrix must be"),
        (lambda: gpu.color_matrix(PHOTO), "missing required parameter 'matrix'"),
        (
            lambda: gpu.grain(PHOTO, seed=-1),
            "grain: seed must be an int from 0 to 2147483647, got -1",
        ),
        (lambda: gpu.grain(PHOTO, size=0.5), "grain: size must be a number from 1 to 64, got 0.5"),
        (
            lambda: gpu.chromatic_aberration(PHOTO, amount=float("nan")),
            "chromatic_aberration: amount must be a number from -200 to 200, got nan",
        ),
    ],
)
def test_errors(call, text):
    with pytest.raises(ParameterError, match=text):
        call()


# documentation ----------------------------------------------------------------------------------
@pytest.mark.parametrize("name", tone_pictures.NAMES)
def test_stored_picture_is_current(name):
    """After an intended change, run python -m tests.support.tone_pictures."""
    with Image.open(tone_pictures.FOLDER / f"{name}.png") as stored:
        wanted = np.asarray(stored.convert("RGB")).astype(int)
    with dala.device("cpu"):
        shown = tone_pictures.show(name, tone_pictures.sources())
    assert np.array_equal(shown, wanted)
