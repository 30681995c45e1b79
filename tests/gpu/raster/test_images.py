"""Scaled images, within one step of the definition in f64."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from dala.gpu import command
from dala.gpu.raster import Canvas

U32 = 2**32 - 1


def taps(drawn: int, source: int, seen: range) -> tuple[Any, Any, Any]:
    """Return the two source pixels of each drawn pixel, and the weight of the second."""
    place = np.array([((2 * k + 1) * source - drawn) / (2 * drawn) for k in seen])
    first = np.floor(place)
    part = place - first
    low = np.clip(first, 0, source - 1).astype(int)
    return low, np.clip(first + 1, 0, source - 1).astype(int), part


def bilinear(image: np.ndarray, w: int, h: int, columns: range, rows: range) -> np.ndarray:
    """Return straight RGBA in f64, colors weighted by alpha."""
    data = image.astype(float)
    data[..., :3] *= data[..., 3:]
    x0, x1, fx = taps(w, image.shape[1], columns)
    y0, y1, fy = taps(h, image.shape[0], rows)
    wide = data[:, x0] * (1 - fx)[:, None] + data[:, x1] * fx[:, None]
    made = wide[y0] * (1 - fy)[:, None, None] + wide[y1] * fy[:, None, None]
    made[..., :3] /= np.maximum(made[..., 3:], 1e-9)
    return made


def photo(rng: random.Random, w: int, h: int, opaque: bool) -> np.ndarray:
    image = np.frombuffer(rng.randbytes(w * h * 4), np.uint8).reshape(h, w, 4).copy()
    if opaque:
        image[..., 3] = 255
    else:
        image[: h // 2, : w // 2, 3] = 0
        image[h // 2 :, w // 3 :, 3] = 255
    return image


SIZES = [
    (7, 5, 40, 30),
    (30, 20, 60, 40),
    (40, 30, 13, 9),
    (1, 1, 25, 9),
    (9, 1, 3, 33),
    (5, 5, 5, 9),
]


@pytest.mark.parametrize("opaque", [True, False])
@pytest.mark.parametrize("size", SIZES)
def test_bilinear(size: tuple[int, int, int, int], opaque: bool) -> None:
    sw, sh, w, h = size
    image = photo(random.Random(sw), sw, sh, opaque)
    canvas = Canvas(70, 50)
    canvas.load_image(9, image.tobytes(), sw, sh)
    for x, y in ((0, 0), (5, 3), (-11, -4), (50, 35)):
        canvas.pixels[...] = 0
        canvas.run(command.encode_image_blit(9, x, y, w, h))
        columns = range(max(0, -x), max(min(w, 70 - x), 0))
        rows = range(max(0, -y), max(min(h, 50 - y), 0))
        if not columns or not rows:
            assert not canvas.pixels.any()
            continue
        wanted = bilinear(image, w, h, columns, rows)
        drawn = canvas.pixels[y + rows.start : y + rows.stop, x + columns.start : x + columns.stop]
        assert np.abs(drawn[..., 3] - wanted[..., 3]).max() <= 1
        solid = drawn[..., 3] > 0
        assert np.abs(drawn[..., :3] - wanted[..., :3])[solid].max(initial=0) <= 1
        drawn[...] = 0
        assert not canvas.pixels.any()


def test_transparent_colors_do_not_bleed() -> None:
    image = np.array([[(255, 0, 0, 0), (0, 255, 0, 255)]], np.uint8)
    canvas = Canvas(40, 4)
    canvas.load_image(1, image, 2, 1)
    canvas.run(command.encode_image_blit(1, 0, 0, 40, 4))
    seen = canvas.pixels[canvas.pixels[..., 3] > 0]
    assert len(seen) > 100
    assert (seen[:, :3] == (0, 255, 0)).all()


def test_images_of_one_color_keep_their_color() -> None:
    canvas = Canvas(90, 70)
    for value in range(256):
        image = np.full((6, 7, 4), value, np.uint8)
        image[..., 3] = 255
        canvas.load_image(1, image, 7, 6)
        canvas.run(command.encode_image_blit(1, 0, 0, 90, 70))
        assert (canvas.pixels[..., :3] == value).all()


@pytest.mark.parametrize("nearest", [False, True])
def test_images_at_their_own_size_are_exact(nearest: bool) -> None:
    image = photo(random.Random(2), 33, 21, False)
    canvas = Canvas(40, 30)
    canvas.nearest = nearest
    canvas.load_image(1, image, 33, 21)
    canvas.run(command.encode_image_blit(1, 2, 3, 33, 21))
    image[image[..., 3] == 0] = 0
    assert np.array_equal(canvas.pixels[3:24, 2:35], image)


def test_nearest() -> None:
    image = photo(random.Random(3), 7, 5, True)
    canvas = Canvas(60, 50)
    canvas.nearest = True
    canvas.load_image(1, image, 7, 5)
    for w, h in ((50, 40), (3, 2), (7, 11)):
        canvas.pixels[...] = 0
        canvas.run(command.encode_image_blit(1, -2, 4, w, h))
        columns = [(2 * k + 1) * 7 // (2 * w) for k in range(2, w)]
        rows = [(2 * k + 1) * 5 // (2 * h) for k in range(h)]
        drawn = canvas.pixels[4 : 4 + h, : w - 2]
        assert np.array_equal(drawn, image[np.ix_(rows, columns)])


@pytest.mark.parametrize("nearest", [False, True])
@pytest.mark.parametrize("opaque", [True, False])
def test_huge_and_empty_sizes(opaque: bool, nearest: bool) -> None:
    image = photo(random.Random(4), 5, 4, opaque)
    canvas = Canvas(30, 20)
    canvas.nearest = nearest
    canvas.load_image(1, image, 5, 4)
    canvas.load_image(2, b"", 0, 9)
    for place in ((0, 0, 0, 9), (0, 0, 9, 0), (-(2**31), 0, 2**31, 5), (0, 20, 5, 5)):
        canvas.run(command.encode_image_blit(1, *place))
    canvas.run(command.encode_image_blit(2, 0, 0, 30, 20))
    assert not canvas.pixels.any()
    assert canvas.take_damage() == []
    assert not canvas.take_faults()
    # So large that the canvas is within one pixel of the image.
    canvas.run(command.encode_image_blit(1, -(2**31), -(2**31), U32, U32))
    middle = (
        image[2, 2]
        if nearest
        else bilinear(image, U32, U32, range(2**31, 2**31 + 1), range(2**31, 2**31 + 1))[0, 0]
    )
    assert np.abs(canvas.pixels.astype(float) - middle).max() <= 1


def test_scaled_image_is_blended_exactly() -> None:
    image = photo(random.Random(5), 20, 20, False)
    plain, over = Canvas(50, 50), Canvas(50, 50)
    over.pixels[...] = (10, 200, 90, 255)
    for canvas in (plain, over):
        canvas.load_image(1, image, 20, 20)
        canvas.run(command.encode_image_blit(1, 0, 0, 50, 50))
    s = plain.pixels.astype(int)
    a = s[..., 3:]
    wanted = (2 * (s[..., :3] * a + np.array([10, 200, 90]) * (255 - a)) + 255) // 510
    assert np.array_equal(over.pixels[..., :3], wanted)
    assert (over.pixels[..., 3] == 255).all()


def test_images_are_copied_and_replaced() -> None:
    canvas = Canvas(4, 4)
    data = bytearray(b"\x01\x02\x03\xff")
    canvas.load_image(1, data, 1, 1)
    data[0] = 99
    canvas.run(command.encode_image_blit(1, 0, 0, 4, 4))
    assert (canvas.pixels == (1, 2, 3, 255)).all()
    canvas.load_image(1, data, 1, 1)
    canvas.run(command.encode_image_blit(1, 0, 0, 4, 4))
    assert (canvas.pixels == (99, 2, 3, 255)).all()
    assert len(canvas._images) == 1
    canvas.remove_image(1)
    canvas.remove_image(1)
    canvas.run(command.encode_image_blit(1, 0, 0, 4, 4))
    assert canvas.take_faults() == [(0x16, 0, 1)]
    assert len(canvas._images) == 0
