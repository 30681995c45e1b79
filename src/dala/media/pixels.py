"""Pictures of any kind as arrays of bytes, for what keeps or draws them."""

from __future__ import annotations

import os
from typing import Any, Final, TypeAlias

import numpy as np

from dala.errors import DtypeError, ShapeError
from dala.gpu.compute import Buffer
from dala.media.frame import MAX_PIXELS, Frame

Pixels: TypeAlias = np.ndarray[Any, Any]

_U8: Final = np.dtype(np.uint8)


def plain(picture: Any) -> bool:
    """Whether it is an array of bytes in RGB or RGBA, as most frames of videos are."""
    if type(picture) is not np.ndarray or picture.dtype is not _U8:
        return False
    shape = picture.shape
    return len(shape) == 3 and shape[2] in (3, 4) and picture.size > 0


def to_bytes(picture: Any, call: str) -> Pixels:
    """An array or a Pillow image as (height, width[, 3 or 4]) of u8; floats are 0 to 1.

    Shares memory with what was given where nothing had to be converted.
    """
    if plain(picture):
        found: Pixels = picture
        return found
    from dala.media.images import check_array, from_pillow

    if isinstance(picture, np.ndarray):
        array = check_array(picture, call)
    elif hasattr(picture, "mode") and hasattr(picture, "getbands"):
        array = from_pillow(picture, call)
    elif hasattr(picture, "__array__") and not isinstance(picture, str | bytes):
        array = check_array(np.asarray(picture), call)
    else:
        raise DtypeError(
            f"{call}: a picture is an array, a Pillow image or a Frame, {type(picture).__name__} "
            "came."
        )
    if 0 in array.shape:
        raise ShapeError(f"{call}: a picture has pixels, one of shape {array.shape} came.")
    if array.dtype == np.uint8:
        return array
    made: Pixels = np.rint(np.clip(np.nan_to_num(array), 0.0, 1.0) * 255.0).astype(np.uint8)
    return made


def to_rgba(picture: Any, call: str) -> Pixels:
    """A picture of any kind, also a Buffer or a file's path, as a new (height, width, 4) of u8."""
    if isinstance(picture, str | os.PathLike):
        from dala.media.files import load

        picture = load(picture, MAX_PIXELS)
    elif isinstance(picture, Frame):
        planar = picture.format in ("nv12", "i420")
        picture = (picture.to("rgba") if planar else picture).pixels.numpy()
    elif isinstance(picture, Buffer):
        picture = picture.numpy()
    found = to_bytes(picture, call)
    made = np.full((*found.shape[:2], 4), 255, np.uint8)
    if found.ndim == 2:
        made[..., :3] = found[..., None]
    else:
        made[..., : found.shape[2]] = found
    return made
