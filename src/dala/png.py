"""A PNG encoder, so that images can be saved without optional packages."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from dala.budget import checked
from dala.errors import DtypeError, ShapeError
from dala.extensions import write_whole
from dala.typing import PathLike

#: PNG color type by number of channels: gray, gray with alpha, RGB, RGBA.
_COLOR_TYPES: Final = {1: 0, 2: 4, 3: 2, 4: 6}

#: Bytes that are compressed in one call.
_PART: Final = 1 << 18


def encode_png(image: npt.ArrayLike, *, icc_profile: bytes | None = None) -> bytes:
    """Return an image as the bytes of a PNG file.

    Args:
        image: a u8 or u16 array of shape (height, width) or (height, width, channels), with 1 to 4
            channels.
        icc_profile: the color profile of the pixels; without one they are sRGB.

    Raises:
        DtypeError: the dtype is not u8 or u16.
        ShapeError: the shape is not that of an image, or the image is empty.

    >>> encode_png(np.zeros((2, 3, 4), np.uint8))[:4]
    b'\\x89PNG'
    """
    pixels = np.asarray(image)
    if pixels.dtype not in (np.uint8, np.uint16):
        advice = "Scale it to 0..255 and convert it: x.astype('uint8')."
        raise DtypeError.invalid("encode_png", "image", "an array of u8 or u16", pixels, advice)
    height, width, channels = (*pixels.shape, 1)[:3] if pixels.ndim in (2, 3) else (0, 0, 0)
    if channels not in _COLOR_TYPES or not height or not width:
        raise ShapeError.invalid(
            "encode_png",
            "image",
            "of shape (height, width) or (height, width, channels), 1 to 4 channels, not empty",
            pixels.shape,
        )
    # Each row starts with its filter type. "Up" (2) stores the difference to the row above, which
    # compresses gradients and photographs well.
    depth = pixels.dtype.itemsize
    stored = np.ascontiguousarray(pixels, ">u2" if depth == 2 else np.uint8)
    rows = stored.view(np.uint8).reshape(height, width * channels * depth)
    filtered = np.full((height, 1 + width * channels * depth), 2, np.uint8)
    filtered[0, 1:] = rows[0]
    np.subtract(rows[1:], rows[:-1], out=filtered[1:, 1:])
    header = struct.pack(">IIBBBBB", width, height, 8 * depth, _COLOR_TYPES[channels], 0, 0, 0)
    profile = []
    if icc_profile is not None:
        profile = [_chunk(b"iCCP", b"profile\0\0" + zlib.compress(icc_profile))]
    return b"".join(
        [
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", header),
            *profile,
            _chunk(b"IDAT", b"".join(_compressed(filtered.reshape(-1)))),
            _chunk(b"IEND", b""),
        ]
    )


def _compressed(data: npt.NDArray[np.uint8]) -> Iterator[bytes]:
    """Yield the parts of compressed bytes."""
    made = zlib.compressobj(6)
    for at in checked(range(0, len(data), _PART), "encode_png"):
        yield made.compress(data[at : at + _PART])
    yield made.flush()


def write_png(path: PathLike, image: npt.ArrayLike) -> None:
    """Write an image to a PNG file; see :func:`encode_png`."""
    write_whole(path, encode_png(image))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
