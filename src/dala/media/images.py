"""Pictures as people hold them: taken in without a copy where memory allows, given back as the
same kind.

An array, bytes with a width and a height, a Pillow image, a Frame or a Buffer.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Final, TypeAlias

import numpy as np

from dala.errors import DtypeError, ParameterError, ReadOnlyError, ShapeError, ShapeMismatch
from dala.gpu.compute import Buffer, from_dlpack
from dala.gpu.compute.convert import as_array
from dala.media.files import NUMBERS
from dala.media.frame import Frame

NDArray: TypeAlias = np.ndarray[Any, Any]
Shape: TypeAlias = tuple[int, ...]

#: dtypes that pictures have.
DTYPES: Final = ("u8", "f32")
_NAMES: Final = {np.dtype(np.uint8): "u8", np.dtype(np.float32): "f32"}


def dtype_of(array: NDArray) -> str:
    """What the array's numbers are on a device: bytes, or else floats."""
    return "u8" if array.dtype == np.uint8 else "f32"


class Picture:
    """A picture that was handed in: its pixels, and what to hand back."""

    __slots__ = ("given", "kind", "pixels")

    def __init__(self, kind: str, pixels: NDArray | Buffer, given: Any) -> None:
        #: "array", "bytes", "pillow", "frame" or "buffer".
        self.kind = kind
        self.pixels = pixels
        self.given = given

    @property
    def shape(self) -> tuple[int, ...]:
        """(height, width) or (height, width, channels)."""
        return self.pixels.shape

    @property
    def dtype(self) -> str:
        """The dtype of the pixels: "u8" or "f32"."""
        if isinstance(self.pixels, Buffer):
            return self.pixels.dtype
        return _NAMES[self.pixels.dtype]

    def buffer(self, device: str | None) -> Buffer:
        """The pixels on a device: the caller's own memory where the device can use it."""
        if isinstance(self.pixels, Buffer):
            return self.pixels if device is None else self.pixels.to(device)
        pixels = self.pixels
        if not pixels.flags.c_contiguous:
            pixels = np.ascontiguousarray(pixels)
        return from_dlpack(pixels, device=device)

    def give(self, result: Buffer | NDArray, device: str | None = None) -> Any:
        """A result as the kind that was handed in; it keeps the memory of what it is given."""
        if self.kind in ("frame", "buffer"):
            made = result if isinstance(result, Buffer) else from_dlpack(result, device=device)
            return self.given.like(made) if self.kind == "frame" else made
        array = result.numpy() if isinstance(result, Buffer) else result
        if self.kind == "array":
            return array
        if self.kind == "pillow":
            return _to_pillow(array, self.given.mode)
        data = array.tobytes()
        return data if isinstance(self.given, bytes) else type(self.given)(data)


def read(img: Any, width: int | None, height: int | None, call: str) -> Picture:
    """A picture of any kind, checked."""
    if isinstance(img, bytes | bytearray | memoryview):
        return Picture("bytes", _from_bytes(img, width, height, call), img)
    found = _find(img, call)
    rows, columns = found.shape[:2]
    if (width is not None and width != columns) or (height is not None and height != rows):
        raise ShapeMismatch(
            f"{call}: the picture is {columns} x {rows}, width={width} and height={height} came. "
            "Leave them out; only bytes need them."
        )
    return found


def _find(img: Any, call: str) -> Picture:
    if isinstance(img, np.ndarray):
        return Picture("array", check_array(img, call), img)
    if isinstance(img, Frame):
        if img.format in ("nv12", "i420"):
            raise ParameterError(
                f"{call}: the frame is {img.format}; filters take 'rgba', 'rgb' or 'gray'. "
                "Convert it first: frame.to('rgba')."
            )
        return Picture("frame", img.pixels, img)
    if isinstance(img, Buffer):
        img.storage(call)
        _check_shape(img.shape, call)
        if img.dtype not in DTYPES:
            raise DtypeError(f"{call}: a picture is u8 or f32, a buffer of {img.dtype!r} came.")
        return Picture("buffer", img, img)
    pillow = sys.modules.get("PIL.Image")
    if pillow is not None and isinstance(img, pillow.Image):
        return Picture("pillow", from_pillow(img, call), img)
    advice = "Convert it first, such as np.asarray(x)."
    if isinstance(img, str | os.PathLike):
        advice = "Open a file first: Frame.open(path)."
    raise DtypeError(
        f"{call}: a picture is an array, bytes with width and height, a Pillow image, a Frame or "
        f"a Buffer; {type(img).__name__} came. {advice}"
    )


def _from_bytes(data: Any, width: int | None, height: int | None, call: str) -> NDArray:
    for name, value in (("width", width), ("height", height)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise ParameterError(
                f"{call}: bytes need {name}, a whole number of at least 1; {value!r} came."
            )
    assert width is not None
    assert height is not None
    view = memoryview(data)
    if not view.c_contiguous:
        raise ShapeError(f"{call}: the memoryview is not contiguous. Give bytes(view).")
    array = np.frombuffer(view, np.uint8)
    channels, rest = divmod(array.size, width * height)
    if rest or channels not in (1, 3, 4):
        pixels = width * height
        raise ShapeError(
            f"{call}: {width} x {height} pixels are {4 * pixels} bytes of RGBA, {3 * pixels} of "
            f"RGB or {pixels} of gray; {array.size} came."
        )
    return array.reshape((height, width) if channels == 1 else (height, width, channels))


def check_array(array: NDArray, call: str) -> NDArray:
    """An array that is a picture: u8 or f32; bools are black and white."""
    _check_shape(array.shape, call)
    if array.dtype == np.bool_:
        return array.astype(np.uint8) * np.uint8(255)
    if array.dtype not in _NAMES:
        raise DtypeError(
            f"{call}: a picture is u8 (0..255) or f32 (0..1), an array of {array.dtype} came. "
            "Scale it and convert it: x.astype(np.float32)."
        )
    return array


def _check_shape(shape: tuple[int, ...], call: str) -> None:
    if len(shape) not in (2, 3) or (len(shape) == 3 and shape[2] not in (3, 4)):
        raise ShapeError(
            f"{call}: a picture has shape (height, width), (height, width, 3) or "
            f"(height, width, 4); {shape} came."
        )


def from_pillow(image: Any, call: str) -> NDArray:
    """A Pillow image as an array; 16-bit gray becomes f32, palettes and CMYK become RGB."""
    mode: str = image.mode
    if mode.startswith("I;16"):
        return (np.asarray(image) / np.float32(65535)).astype(np.float32)
    if mode in NUMBERS:
        raise DtypeError(
            f"{call}: a Pillow image of mode {mode!r} holds numbers of no known scale. Give an "
            "array of f32 from 0 to 1, or image.convert('L')."
        )
    return as_array(image, call)


def _to_pillow(array: NDArray, mode: str) -> Any:
    from PIL import Image

    if mode.startswith("I;16"):
        return Image.fromarray(np.rint(np.clip(array, 0, 1) * 65535).astype(np.uint16))
    return Image.fromarray(array)


def other(value: Any, shape: tuple[int, ...], call: str) -> NDArray | Buffer:
    """A second picture of a call, where bytes have the size of the first."""
    if isinstance(value, bytes | bytearray | memoryview):
        return read(value, shape[1], shape[0], call).pixels
    return read(value, None, None, call).pixels


def shared(b: Buffer) -> NDArray | None:
    """The buffer's own memory as an array, where the host can see it."""
    try:
        return b.__array__(copy=False)
    except ValueError:
        return None


def check_out(out: Any, kind: str, shape: tuple[int, ...], dtype: str, call: str) -> NDArray:
    """An array that takes a result."""
    if kind != "array" or not isinstance(out, np.ndarray):
        raise ParameterError(
            f"{call}: out is an array, for a picture that is one; {type(out).__name__} came for "
            f"a picture of kind {kind!r}. Leave it out and take what is returned."
        )
    if out.shape != shape or _NAMES.get(out.dtype) != dtype:
        raise ShapeMismatch(
            f"{call}: out must be {dtype} of shape {shape}, {out.dtype} of {out.shape} came."
        )
    if not out.flags.writeable:
        raise ReadOnlyError(f"{call}: out is read-only. Give an array that can be written.")
    return out
