"""Calls whose input or result is not a picture: planes of video, and tensors of models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from dala.errors import ParameterError
from dala.gpu.compute import Buffer
from dala.media.filters.declarations import declared
from dala.media.filters.plans import FilterValue, Values, declared_steps, run_on
from dala.media.frame import PLANAR, Frame
from dala.media.images import SourceImage, read
from dala.typing import ImageLike, NDArray

_CODING: Final = ("matrix", "range", "siting")


def convert(
    img: ImageLike,
    width: int | None,
    height: int | None,
    name: str,
    params: Mapping[str, FilterValue],
    out: NDArray | None,
    device: str | None,
) -> ImageLike:
    """Apply a conversion to a picture, or to planes of one, of any kind.

    Frames become Frames, and their format, matrix, range and siting are used; ``preprocess`` makes
    a Buffer of a Frame or a Buffer, and an array of everything else.
    """
    given = {key: value for key, value in params.items() if value is not None}
    if isinstance(img, Frame) and name == "rgb_to_yuv":
        return _frame_to_planes(img, given, device)
    if name == "preprocess" and isinstance(given.get("normalize"), bool):
        given["normalize"] = "imagenet" if given["normalize"] else "raw"
    if isinstance(img, Frame) and name == "yuv_to_rgb" and img.format in PLANAR:
        given = {"format": img.format, **{key: getattr(img, key) for key in _CODING}, **given}
        picture = SourceImage("frame", img.pixels, img)
    elif name == "yuv_to_rgb" and isinstance(img, bytes | bytearray | memoryview):
        picture = _planes(img, width, height, given)
    else:
        picture = read(img, width, height, name)
    if name == "preprocess":
        picture.kind = "buffer" if isinstance(picture.pixels, Buffer) else "array"
        picture.given = picture.pixels  # the result is numbers for a model, not a picture
    steps = declared_steps(declared()[name], picture.shape, picture.dtype, given, name)
    return run_on(picture, steps, out, device, name)


def _planes(
    data: bytes | bytearray | memoryview,
    width: int | None,
    height: int | None,
    given: Mapping[str, FilterValue],
) -> SourceImage:
    """Return bytes of planes as an array of (height * 3 / 2, width)."""
    if given.get("format") in PLANAR and width and height:
        array = np.frombuffer(data, np.uint8)
        if array.size == width * height * 3 // 2:
            return SourceImage("bytes", array.reshape(height * 3 // 2, width), data)
    return read(data, width, height, "yuv_to_rgb")


def _frame_to_planes(frame: Frame, given: Mapping[str, FilterValue], device: str | None) -> Frame:
    known: Values = {"format": "nv12", **given}
    if known["format"] not in PLANAR:
        raise ParameterError.invalid(
            "rgb_to_yuv", "format", "'nv12' or 'i420' for a Frame", known["format"]
        )
    return frame.to(device=device, **known)
