"""Planes as pictures of PyAV, for encoders: borrowed where PyAV can, else copied.

``VideoFrame.from_numpy_buffer`` takes the height of 4:2:0 planes for a multiple of four, so planes
are handed over one by one here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dala.media.video.source import DecodedFrame, av
from dala.typing import NDArray


def i420_planes(pixels: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Return views of Y, Cb and Cr of an "i420" array of shape (height * 3 / 2, width)."""
    height, width = pixels.shape[0] // 3 * 2, pixels.shape[1]
    return split_planes(pixels.reshape(-1), (height, width), (height // 2, width // 2))


def split_planes(
    flat: NDArray, size: tuple[int, int], small: tuple[int, int]
) -> tuple[NDArray, NDArray, NDArray]:
    """Return views of Y, Cb and Cr that follow each other, from their (height, width)."""
    luma, chroma = math.prod(size), math.prod(small)
    u, v = flat[luma : luma + 2 * chroma].reshape(2, *small)
    return flat[:luma].reshape(size), u, v


def nv12_planes(pixels: NDArray) -> tuple[NDArray, NDArray]:
    """Return views of Y, and of Cb and Cr in pairs, of an "nv12" array."""
    height = pixels.shape[0] // 3 * 2
    return pixels[:height], pixels[height:]


def picture_of(planes: Sequence[NDArray], pixel_format: str) -> DecodedFrame:
    """Return a picture of PyAV over planes, one for each component, of shape (rows, columns).

    The planes are u8, or u16 for more than eight bits. Their memory is borrowed: it must not change
    while the picture is in use. It is copied where PyAV cannot borrow it: read-only arrays, rows
    that are not contiguous, and odd sizes with subsampled chroma.
    """
    height, width = planes[0].shape
    whole = "444" in pixel_format or not (height % 2 or width % 2)
    if whole and all(p.flags.writeable and p.strides[1] == p.itemsize for p in planes):
        return av.VideoFrame.from_dlpack(tuple(planes), pixel_format, width, height)
    picture = av.VideoFrame(width, height, pixel_format)
    for plane, target in zip(planes, picture.planes, strict=True):
        row = target.line_size // plane.itemsize
        into = np.frombuffer(target, plane.dtype, count=row * plane.shape[0])
        np.copyto(into.reshape(plane.shape[0], row)[:, : plane.shape[1]], plane)
    return picture
