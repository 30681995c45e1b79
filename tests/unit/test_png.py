"""The PNG writer, read back by Pillow."""

import io

import numpy as np
import pytest
from PIL import Image

from dala.errors import DtypeError, ShapeError
from dala.png import encode_png, write_png

MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("size", [(1, 1), (1, 7), (7, 1), (33, 65)])
def test_round_trip(size, channels):
    pixels = np.random.default_rng(1).integers(0, 256, (*size, channels), np.uint8)
    read = Image.open(io.BytesIO(encode_png(pixels)))
    assert read.mode == MODES[channels]
    assert np.array_equal(np.asarray(read).reshape(pixels.shape), pixels)


def test_two_dimensions_are_gray():
    pixels = np.arange(12, dtype=np.uint8).reshape(3, 4)
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(encode_png(pixels)))), pixels)


def test_views(tmp_path):
    pixels = np.random.default_rng(2).integers(0, 256, (20, 30, 4), np.uint8)[::-2, 3::3, :3]
    write_png(tmp_path / "a.png", pixels)
    assert np.array_equal(np.asarray(Image.open(tmp_path / "a.png")), pixels)


def test_wrong_dtype():
    with pytest.raises(DtypeError) as caught:
        encode_png(np.zeros((2, 2, 3), np.float32))
    assert str(caught.value) == (
        "encode_png: image must be an array of u8 or u16, got an array of shape (2, 2, 3) and "
        "dtype float32. Scale it to 0..255 and convert it: x.astype('uint8')."
    )


@pytest.mark.parametrize("shape", [(), (4,), (0, 4), (4, 0, 3), (4, 4, 5), (4, 4, 0), (1, 4, 4, 4)])
def test_wrong_shape(shape):
    with pytest.raises(ShapeError) as caught:
        encode_png(np.zeros(shape, np.uint8))
    assert str(caught.value) == (
        "encode_png: image must be of shape (height, width) or (height, width, channels), "
        f"1 to 4 channels, not empty, got {shape}."
    )
