"""Pictures of any kind as arrays of u8, for textures, sources and scenes."""

from __future__ import annotations

import os
from typing import Final, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt

from dala.errors import DtypeError, ShapeError
from dala.gpu.compute import Buffer
from dala.media.frame import MAX_PIXELS, Frame
from dala.media.pictures.modes import rgba
from dala.typing import ImageLike, PathLike

Pixels: TypeAlias = npt.NDArray[np.uint8]

_U8: Final = np.dtype(np.uint8)


def is_rgb_bytes(picture: object) -> TypeGuard[Pixels]:
    """Return whether a picture is an RGB or RGBA array of u8, as most video frames are."""
    if type(picture) is not np.ndarray or picture.dtype is not _U8:
        return False
    shape = picture.shape
    return len(shape) == 3 and shape[2] in (3, 4) and picture.size > 0


def to_u8(picture: ImageLike, call: str) -> Pixels:
    """Return an array or a Pillow image as (height, width[, 3 or 4]) of u8; floats are 0 to 1.

    The result shares memory with the picture if nothing is converted.
    """
    if is_rgb_bytes(picture):
        return picture
    from dala.media.images import check_array, from_pillow, is_pillow

    if isinstance(picture, np.ndarray):
        array = check_array(picture, call)
    elif is_pillow(picture):
        array = from_pillow(picture, call)
    elif hasattr(picture, "__array__") and not isinstance(picture, str | bytes):
        array = check_array(np.asarray(picture), call)
    else:
        raise DtypeError(
            f"{call}: a picture must be an array, a Pillow image or a Frame, got "
            f"{type(picture).__name__}.",
            call=call,
        )
    if 0 in array.shape:
        raise ShapeError(f"{call}: a picture must have pixels, got shape {array.shape}.", call=call)
    if array.dtype == np.uint8:
        return array
    made: Pixels = np.rint(np.clip(np.nan_to_num(array), 0.0, 1.0) * 255.0).astype(np.uint8)
    return made


def to_rgba(picture: ImageLike | PathLike, call: str) -> Pixels:
    """Return a copy of a picture of any kind, or a file, as (height, width, 4) of u8."""
    if isinstance(picture, str | os.PathLike):
        from dala.media.files import load

        picture = load(picture, MAX_PIXELS)
    elif isinstance(picture, Frame):
        planar = picture.format in ("nv12", "i420")
        picture = (picture.to("rgba") if planar else picture).pixels.numpy()
    elif isinstance(picture, Buffer):
        picture = picture.numpy()
    found = to_u8(picture, call)
    return rgba(found, found[..., 3] if found.ndim == 3 and found.shape[2] == 4 else None)
