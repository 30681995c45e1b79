"""Thresholds, equalization, contrast and white balance, against OpenCV, Pillow and formulas."""

from __future__ import annotations

import pathlib
from functools import cache

import numpy as np
import pytest
from PIL import Image, ImageOps

from dala.errors import ParameterError
from dala.media import Frame, gpu
from dala.media.filters.histograms import light_color

cv2 = pytest.importorskip("cv2")

PHOTOS = pathlib.Path(__file__).parents[2] / "photos"


@cache
def photo(height=45, width=61):
    """Return a part of a photograph, of odd size."""
    with Image.open(PHOTOS / "astronaut.png") as image:
        small = image.convert("RGB").resize((128, 128))
    return np.ascontiguousarray(np.asarray(small)[20 : 20 + height, 30 : 30 + width])


def gray():
    return cv2.cvtColor(photo(), cv2.COLOR_RGB2GRAY)


def with_alpha(image):
    alpha = np.arange(image.shape[0] * image.shape[1], dtype=np.uint8).reshape(image.shape[:2])
    return np.dstack([image, alpha])


def as_float(image):
    return (image / np.float32(255)).astype(np.float32)


# thresholds --------------------------------------------------------------------------------------
TYPES = {
    "binary": cv2.THRESH_BINARY,
    "binary_inv": cv2.THRESH_BINARY_INV,
    "trunc": cv2.THRESH_TRUNC,
    "tozero": cv2.THRESH_TOZERO,
    "tozero_inv": cv2.THRESH_TOZERO_INV,
}


@pytest.mark.parametrize("kind", TYPES)
def test_fixed_threshold_matches_opencv(engine_id, kind):
    image = gray()
    for level in (0, 101, 254):
        want = cv2.threshold(image, level, 255, TYPES[kind])[1]
        assert np.array_equal(gpu.threshold(image, value=level / 255, type=kind), want)
    _, want = cv2.threshold(as_float(image), 0.4, 1.0, TYPES[kind])
    assert np.abs(gpu.threshold(as_float(image), value=0.4, type=kind) - want).max() < 1e-6
    color = gpu.threshold(with_alpha(photo()), value=101 / 255, type=kind)
    want = cv2.threshold(image, 101, 255, TYPES[kind])[1]
    assert all(np.array_equal(color[..., c], want) for c in range(3))
    assert np.array_equal(color[..., 3], with_alpha(photo())[..., 3])


def test_adaptive_is_the_mean():
    made = gpu.threshold(photo(), method="adaptive", block_size=5, device="cpu")
    assert np.array_equal(made, gpu.threshold(photo(), method="mean", block_size=5, device="cpu"))
    assert 0 < made[..., 0].mean() < 255


def test_otsu_matches_opencv(engine_id):
    _, want = cv2.threshold(gray(), 0, 255, cv2.THRESH_OTSU)
    assert np.array_equal(gpu.threshold(gray(), method="otsu"), want)
    assert np.array_equal(gpu.threshold(photo(), method="otsu")[..., 1], want)
    assert np.array_equal(gpu.threshold(as_float(gray()), method="otsu") * 255, want)
    two = np.array([[10, 10, 200, 200]], np.uint8)  # levels between them are equally good
    assert np.array_equal(gpu.threshold(two, method="otsu"), [[0, 0, 255, 255]])
    flat = np.full((3, 3), 77, np.uint8)
    assert np.array_equal(
        gpu.threshold(flat, method="otsu"), cv2.threshold(flat, 0, 255, cv2.THRESH_OTSU)[1]
    )


@pytest.mark.parametrize("size", [3, 11, 31])
def test_adaptive_threshold_matches_opencv(engine_id, size):
    """Pixels may differ where the rounded mean does: there, value and threshold are one apart."""
    image = gray()
    mean = cv2.boxFilter(image, cv2.CV_32F, (size, size), borderType=cv2.BORDER_REPLICATE)
    want = cv2.adaptiveThreshold(image, 255, cv2.ADAPTIVE_THRESH_MEAN_C, cv2.THRESH_BINARY, size, 2)
    for got in (
        gpu.threshold(image, method="mean", block_size=size, offset=2 / 255),
        gpu.threshold(photo(), method="mean", block_size=size, offset=2 / 255)[..., 0],
    ):
        differ = got != want
        assert differ.mean() < 0.01
        assert (np.abs(image - mean + 2)[differ] <= 1.01).all()
    want = cv2.adaptiveThreshold(
        image, 255, cv2.ADAPTIVE_THRESH_GAUSSIAN_C, cv2.THRESH_BINARY_INV, size, 2
    )
    got = gpu.threshold(
        image, method="gaussian", block_size=size, offset=2 / 255, type="binary_inv"
    )
    assert (got != want).mean() < 0.01


def test_adaptive_threshold_of_floats(engine_id):
    image = as_float(gray())
    mean = cv2.boxFilter(image, -1, (5, 5), borderType=cv2.BORDER_REPLICATE)
    got = gpu.threshold(image, method="mean", block_size=5, offset=0.03)
    near = np.abs(image - mean + 0.03) < 1e-5
    assert np.array_equal(got[~near], (image > mean - 0.03).astype(np.float32)[~near])


# equalization ------------------------------------------------------------------------------------
def test_equalize_matches_opencv(engine_id):
    want = cv2.equalizeHist(gray())
    assert np.array_equal(gpu.equalize(gray()), want)
    assert np.abs(gpu.equalize(as_float(gray())) * 255 - want).max() < 0.01
    each = gpu.equalize(with_alpha(photo()), channels="each")
    for c in range(3):
        assert np.array_equal(each[..., c], cv2.equalizeHist(photo()[..., c].copy()))
    assert np.array_equal(each[..., 3], with_alpha(photo())[..., 3])
    flat = np.full((3, 4), 9, np.uint8)
    assert np.array_equal(gpu.equalize(flat), flat)


def test_equalize_keeps_chroma(engine_id):
    made = gpu.equalize(photo()).astype(int)
    change = cv2.equalizeHist(gray()).astype(int) - gray()
    assert np.array_equal(made, np.clip(photo() + change[..., None], 0, 255))


@pytest.mark.parametrize(
    ("clip", "tiles", "size"),
    [
        (2.0, (8, 8), (40, 56)),
        (2.0, (8, 8), (45, 61)),
        (0.0, (4, 3), (45, 60)),
        (40.0, 5, (40, 61)),
    ],
)
def test_clahe_matches_opencv(engine_id, clip, tiles, size):
    image = np.ascontiguousarray(gray()[: size[0], : size[1]])
    grid = (tiles, tiles) if isinstance(tiles, int) else tiles
    want = cv2.createCLAHE(clip, grid[::-1]).apply(image).astype(int)
    got = gpu.clahe(image, clip_limit=clip, tiles=tiles)
    assert np.abs(got - want).max() <= 1  # halves are rounded up here
    light = gpu.clahe(as_float(image), clip_limit=clip, tiles=tiles) * 255
    assert np.abs(light - want).max() <= 0.52
    if clip == 2.0:
        color = photo()[: size[0], : size[1]]
        made = gpu.clahe(color, clip_limit=clip, tiles=tiles)
        shifted = np.clip(color + (want - image)[..., None], 0, 255)
        assert np.abs(made - shifted).max() <= 1


# contrast ----------------------------------------------------------------------------------------
def test_auto_contrast_matches_pillow(engine_id):
    image = photo() // 2 + 40
    for cutoff in (0, 2, (1, 7.5)):
        for tone in (False, True):
            want = ImageOps.autocontrast(Image.fromarray(image), cutoff, preserve_tone=tone)
            got = gpu.auto_contrast(image, cutoff=cutoff, preserve_tone=tone)
            off = got.astype(int) - np.asarray(want)
            assert off.min() >= 0  # Pillow truncates
            assert off.max() <= 1
    light = gpu.auto_contrast(as_float(image)) * 255
    assert np.abs(light - gpu.auto_contrast(image)).max() <= 0.51
    flat = np.full((3, 4, 4), 9, np.uint8)
    assert np.array_equal(gpu.auto_contrast(flat, cutoff=1), flat)
    assert np.array_equal(gpu.auto_contrast(image, cutoff=100), image)


# white balance -----------------------------------------------------------------------------------
def test_gray_world(engine_id):
    image = with_alpha(photo())
    means = photo().reshape(-1, 3).mean(axis=0)
    want = photo() * (means.mean() / means)
    got = gpu.white_balance(image)
    assert np.abs(got[..., :3] - np.clip(want, 0, 255)).max() <= 0.52
    assert np.array_equal(got[..., 3], image[..., 3])
    light = gpu.white_balance(as_float(image))[..., :3] * 255
    assert np.abs(light - want).max() < 0.01
    no_blue = photo() * np.array([1, 1, 0], np.uint8)
    assert not gpu.white_balance(no_blue)[..., 2].any()
    assert np.array_equal(gpu.white_balance(gray()), gray())


def test_white_balance_by_color_and_light(engine_id):
    wall = np.array([[[230, 180, 120]]], np.uint8)
    luma = 0.299 * 230 + 0.587 * 180 + 0.114 * 120
    made = gpu.white_balance(wall, color=(230 / 255, 180 / 255, 120 / 255))
    assert np.abs(made - luma).max() <= 0.51
    assert np.abs(gpu.white_balance(photo(), temperature=6504).astype(int) - photo()).max() <= 1
    lamp = np.array([[light_color(3000)]], np.float32) * 0.5
    neutral = gpu.white_balance(lamp, temperature=3000)
    assert np.ptp(neutral) < 1e-4
    cool = np.array([[light_color(12000)]])
    assert cool[0, 0, 2] > 1.2 > 1.0 > cool[0, 0, 0]


@pytest.mark.parametrize("kelvins", [2000, 2221.9, 2222.1, 3000, 3999, 4001, 6999.9, 7000, 25000])
def test_light_is_near_the_planckian_locus(kelvins):
    """Compare with Planck's law and approximated CIE 1931 color matching functions (Wyman 2013)."""
    nm = np.arange(380.0, 781.0)

    def lobe(mean, below, above):
        return np.exp(-0.5 * ((nm - mean) / np.where(nm < mean, below, above)) ** 2)

    x = (
        1.056 * lobe(599.8, 37.9, 31.0)
        + 0.362 * lobe(442.0, 16.0, 26.7)
        - 0.065 * lobe(501.1, 20.4, 26.2)
    )
    y = 0.821 * lobe(568.8, 46.9, 40.5) + 0.286 * lobe(530.9, 16.3, 31.1)
    z = 1.217 * lobe(437.0, 11.8, 36.0) + 0.681 * lobe(459.0, 26.0, 13.8)
    light = nm**-5 / (np.exp(1.4388e7 / (nm * kelvins)) - 1)
    xyz = np.array([light @ x, light @ y, light @ z])
    to_rgb = [[3.2404542, -1.5371385, -0.4985314], [-0.969266, 1.8760108, 0.041556],
              [0.0556434, -0.2040259, 1.0572252]]  # fmt: skip
    linear = np.array(to_rgb) @ xyz
    linear = np.maximum(linear / linear[1], 1e-4)
    want = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    assert np.abs(np.array(light_color(kelvins)) - want).max() < 0.08  # daylight is a bit greener


# everywhere --------------------------------------------------------------------------------------
CALLS = {
    "threshold": {"method": "otsu"},
    "equalize": {},
    "clahe": {"tiles": 2},
    "auto_contrast": {"cutoff": 2},
    "white_balance": {},
}


@pytest.mark.parametrize("name", CALLS)
def test_small_and_empty_pictures_and_frames(engine_id, name):
    call = getattr(gpu, name)
    for shape in ((1, 1), (1, 1, 4), (1, 5, 3), (0, 4, 3)):
        image = np.full(shape, 100, np.uint8)
        made = call(image, **CALLS[name])
        assert made.shape == shape
    frame = call(Frame.from_array(photo()), **CALLS[name])
    assert np.array_equal(frame.numpy(), call(photo(), **CALLS[name]))
    with gpu.start_pipeline(61, 45) as ctx:
        listed = gpu.process_frame(ctx, photo(), ["invert", (name, CALLS[name])])
    assert np.abs(listed.astype(int) - call(gpu.invert(photo()), **CALLS[name])).max() <= 1


@pytest.mark.parametrize(
    ("name", "params", "text"),
    [
        ("threshold", {"method": "local"}, "must be one of 'fixed', 'otsu', 'adaptive', 'mean'"),
        ("threshold", {"method": "mean", "block_size": 4}, "block_size must be odd, got 4"),
        ("threshold", {"block_size": 999}, "threshold: block_size must be an int from 3 to 401"),
        ("equalize", {"channels": "rgb"}, "equalize: channels must be one of 'luma', 'each'"),
        ("clahe", {"tiles": 0}, "clahe: tiles must be"),
        ("clahe", {"clip_limit": -1}, "clahe: clip_limit must be"),
        ("auto_contrast", {"cutoff": 101}, "auto_contrast: cutoff must be"),
        ("white_balance", {"color": (1, 1, 1), "temperature": 5e3}, "or temperature, got both"),
        ("white_balance", {"temperature": 100}, "must be a number from 2000 to 25000, got 100"),
        ("white_balance", {"color": (0, 1, 1)}, "white_balance: color must be"),
    ],
)  # fmt: skip
def test_errors(name, params, text):
    with pytest.raises(ParameterError, match=text):
        getattr(gpu, name)(photo(), device="cpu", **params)
