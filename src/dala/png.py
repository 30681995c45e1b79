"""Writes PNG files, so that pictures can be saved with no extra installed."""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path
from typing import Any, Final

import numpy as np

from dala.errors import DtypeError, ShapeError

#: PNG's colour type by number of channels: grey, grey and alpha, RGB, RGBA.
_COLOR_TYPES: Final = {1: 0, 2: 4, 3: 2, 4: 6}


def encode_png(image: Any) -> bytes:
    """The PNG file of a picture.

    Args:
        image: (height, width) or (height, width, channels) of u8, 1 to 4 channels, not empty.

    Raises:
        DtypeError: the numbers are not u8.
        ShapeError: the shape is not that of a picture.

    >>> encode_png(np.zeros((2, 3, 4), np.uint8))[:4]
    b'\\x89PNG'
    """
    pixels = np.asarray(image)
    if pixels.dtype != np.uint8:
        raise DtypeError(
            f"encode_png: image is {pixels.dtype}; PNG holds u8, so scale it to 0..255 and "
            "convert it first"
        )
    height, width, channels = (*pixels.shape, 1)[:3] if pixels.ndim in (2, 3) else (0, 0, 0)
    if channels not in _COLOR_TYPES or not height or not width:
        raise ShapeError(
            f"encode_png: image has shape {pixels.shape}; expected (height, width) or "
            "(height, width, channels) with 1 to 4 channels and no zero"
        )
    # Each row begins with its filter; "up" (2) stores the difference to the row above, which
    # compresses gradients and photographs well and costs one subtraction.
    rows = np.ascontiguousarray(pixels).reshape(height, width * channels)
    filtered = np.full((height, 1 + width * channels), 2, np.uint8)
    filtered[0, 1:] = rows[0]
    np.subtract(rows[1:], rows[:-1], out=filtered[1:, 1:])
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOR_TYPES[channels], 0, 0, 0)
    return b"".join(
        [
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", header),
            _chunk(b"IDAT", zlib.compress(filtered, 6)),
            _chunk(b"IEND", b""),
        ]
    )


def write_png(path: str | os.PathLike[str], image: Any) -> None:
    """Writes a picture to a file; see :func:`encode_png` for what a picture is."""
    Path(path).write_bytes(encode_png(image))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
