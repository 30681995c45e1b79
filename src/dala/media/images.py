"""Pictures as users hold them: arrays, bytes with a size, Pillow images, Frames and Buffers.

They are read without a copy where memory allows, and results are returned as the same kind.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias, TypeGuard

import numpy as np

from dala import memory
from dala.arguments import Integer
from dala.errors import (
    DtypeError,
    ParameterError,
    ReadOnlyError,
    ShapeError,
    ShapeMismatch,
    describe,
)
from dala.gpu.compute import Buffer, from_dlpack
from dala.gpu.compute.call.foreign import is_tensor, on_its_gpu, tensor_like
from dala.gpu.compute.convert import as_array
from dala.media.frame import Frame
from dala.media.pictures.pixels import NUMBERS, normalized, scaled
from dala.notices import notify
from dala.typing import ImageLike, KernelInput, NDArray

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage

Shape: TypeAlias = tuple[int, ...]

#: dtypes of pictures.
DTYPES: Final = ("u8", "f32")
_NAMES: Final = {np.dtype(np.uint8): "u8", np.dtype(np.float32): "f32"}
#: Rows and columns of a picture that are looked at for its range.
_SAMPLED: Final = 32
#: Other floats, which are computed as f32.
_FLOATS: Final = (np.dtype(np.float64), np.dtype(np.float16))


def dtype_of(array: NDArray | Buffer) -> str:
    """Return the dtype of an array's numbers on a device.

    "u8" for bytes, "s32" for 32-bit integers (tables of filters), else "f32".
    """
    if isinstance(array, Buffer):
        return array.dtype
    if array.dtype == np.int32:
        return "s32"
    return "u8" if array.dtype == np.uint8 else "f32"


@dataclass(eq=False, slots=True)
class SourceImage:
    """A picture that a user passed in: its pixels, and the kind of result to return."""

    #: "array", "bytes", "pillow", "frame", "buffer" or "tensor".
    kind: str
    pixels: NDArray | Buffer
    given: ImageLike

    @property
    def shape(self) -> Shape:
        """(height, width) or (height, width, channels)."""
        return self.pixels.shape

    @property
    def dtype(self) -> str:
        """The dtype of the pixels: "u8" or "f32"."""
        if isinstance(self.pixels, Buffer):
            return self.pixels.dtype
        return _NAMES[self.pixels.dtype]

    def buffer(self, device: str | None) -> Buffer:
        """Return the pixels on a device, in the caller's own memory where the device can use it."""
        if isinstance(self.pixels, Buffer):
            return self.pixels if device is None else self.pixels.to(device)
        pixels = self.pixels
        if not pixels.flags.c_contiguous:
            pixels = np.ascontiguousarray(pixels)
        return from_dlpack(pixels, device=device)

    def give(self, result: Buffer | NDArray, device: str | None = None) -> ImageLike:
        """Return a result as the kind that was passed in; it keeps the result's memory."""
        given = self.given
        if self.kind in ("frame", "buffer"):
            made = result if isinstance(result, Buffer) else from_dlpack(result, device=device)
            return given.like(made) if self.kind == "frame" and isinstance(given, Frame) else made
        if self.kind == "tensor" and isinstance(self.pixels, Buffer):
            assert is_tensor(given)
            return tensor_like(result, given)
        array = result.numpy() if isinstance(result, Buffer) else result
        if self.kind == "array":
            return _like_given(array, given) if isinstance(given, np.ndarray) else array
        if isinstance(given, bytes | bytearray | memoryview):
            data = array.tobytes()
            return data if isinstance(given, bytes) else type(given)(data)
        if is_pillow(given):
            return _to_pillow(array, given.mode)
        assert is_tensor(given)
        return tensor_like(array, given)


def wants_given_dtype(picture: SourceImage, out: NDArray | None, shape: Shape) -> bool:
    """Return True if ``out`` has the dtype of the user's array, which is computed as f32."""
    given = picture.given
    return (
        picture.kind == "array"
        and isinstance(given, np.ndarray)
        and isinstance(out, np.ndarray)
        and (given.dtype == np.uint16 or given.dtype in _FLOATS)
        and out.dtype == given.dtype
        and out.shape == shape
        and out.flags.writeable
    )


def read(img: ImageLike, width: int | None, height: int | None, call: str) -> SourceImage:
    """Check a picture of any kind and return it as a :class:`SourceImage`."""
    if isinstance(img, bytes | bytearray | memoryview):
        return SourceImage("bytes", _from_bytes(img, width, height, call), img)
    found = _find(img, call)
    rows, columns = found.shape[:2]
    if not (_is_side(width, columns) and _is_side(height, rows)):
        raise ShapeMismatch(
            f"{call}: the picture is {columns} x {rows}, got width={width} and height={height}. "
            "Leave them out: only bytes need them. Give other parameters by their names.",
            argument="width",
        )
    return found


def _is_side(given: int | None, size: int) -> bool:
    return given is None or (isinstance(given, int | float | np.number) and given == size)


def _find(img: ImageLike, call: str) -> SourceImage:
    if isinstance(img, np.ndarray):
        return SourceImage("array", check_array(img, call), img)
    if isinstance(img, Frame):
        if img.format in ("nv12", "i420"):
            raise ParameterError(
                f"{call}: the frame's format must be 'rgba', 'rgb' or 'gray', got {img.format!r}. "
                "Convert it first: frame.to('rgba').",
            )
        return SourceImage("frame", img.pixels, img)
    if isinstance(img, Buffer):
        img.storage(call)
        _check_shape(img.shape, call)
        if img.dtype not in DTYPES:
            raise DtypeError(
                f"{call}: a picture must be u8 or f32, got a buffer of {img.dtype!r}.",
            )
        return SourceImage("buffer", img, img)
    pillow = sys.modules.get("PIL.Image")
    if pillow is not None and isinstance(img, pillow.Image):
        return SourceImage("pillow", from_pillow(img, call), img)
    if is_tensor(img):
        shared = on_its_gpu(img)
        if shared is not None and shared.dtype in DTYPES:
            _check_shape(shared.shape, call)
            return SourceImage("tensor", shared, img)
        pixels = from_dlpack(img, device="cpu").numpy()
        return SourceImage("tensor", check_array(pixels, call), img)
    advice = "Convert it first, such as np.asarray(x)."
    if isinstance(img, str | os.PathLike):
        advice = "Open a file first: Frame.open(path)."
    raise DtypeError(
        f"{call}: a picture must be an array, a tensor, bytes with width and height, a Pillow "
        f"image, a Frame or a Buffer, got {type(img).__name__}. {advice}",
    )


def kernel_input(value: KernelInput, call: str) -> SourceImage | None:
    """Return a Frame or a Pillow image as an input of a kernel; None for other values."""
    if isinstance(value, Frame) or is_pillow(value):
        return _find(value, call)
    return None


def _from_bytes(
    data: bytes | bytearray | memoryview, width: int | None, height: int | None, call: str
) -> NDArray:
    view = memoryview(data)
    if width is None or height is None:
        missing = " and ".join(n for n, v in (("width", width), ("height", height)) if v is None)
        raise ParameterError(
            f"{call}: bytes need width and height, got {view.nbytes} bytes without {missing}. Add "
            "width=..., height=...; an encoded picture, such as a PNG, is opened with "
            "Frame.open(data).",
            argument=missing.partition(" ")[0],
            expected="the width and height of the picture",
        )
    width, height = _side(width, "width", call), _side(height, "height", call)
    if not view.c_contiguous:
        raise ShapeError(f"{call}: the memoryview is not contiguous. Give bytes(view).")
    array = np.frombuffer(view, np.uint8)
    channels, rest = divmod(array.size, width * height)
    if rest or channels not in (1, 3, 4):
        pixels = width * height
        raise ShapeError(
            f"{call}: {width} x {height} pixels are {4 * pixels} bytes of RGBA, {3 * pixels} of "
            f"RGB or {pixels} of gray, got {array.size}.",
        )
    return array.reshape((height, width) if channels == 1 else (height, width, channels))


def _side(value: int | None, name: str, call: str) -> int:
    return Integer(1, words="an int of at least 1 for bytes").check(call, name, value)


def check_pixels(data: ImageLike, call: str) -> NDArray | Buffer:
    """Check that data is a picture, or planes of one, and return its pixels."""
    if isinstance(data, Buffer):
        return data
    if is_pillow(data):
        return from_pillow(data, call)
    try:
        array = np.asarray(data)
    except (TypeError, ValueError):  # rows of different lengths
        array = np.array(data, object)
    if array.dtype.kind in "OUSV":
        raise DtypeError(
            f"{call}: a picture must be an array, a Pillow image or a Buffer, got "
            f"{type(data).__name__}. Open files with Frame.open(path).",
        )
    return check_array(array, call)


def check_array(array: NDArray, call: str) -> NDArray:
    """Check that an array is a picture, and return it as u8 or f32.

    Bools become black and white, uint16 x / 65535, and other floats f32: floats are 0 to 1.
    """
    _check_shape(array.shape, call)
    if array.dtype not in _NAMES or not array.flags.c_contiguous:
        memory.check_copy(array.size * (1 if array.dtype.itemsize == 1 else 4), call)
    if array.dtype == np.bool_:
        return array.astype(np.uint8) * np.uint8(255)
    if array.dtype.kind == "f":
        _note_range(array, call)
    if array.dtype == np.uint16:
        return (array / np.float32(65535)).astype(np.float32, copy=False)
    if array.dtype in _FLOATS:
        return array.astype(np.float32)
    if array.dtype not in _NAMES:
        raise DtypeError(
            f"{call}: a picture must be u8 (0..255), u16 (0..65535) or floats (0..1), got an array "
            f"of {array.dtype}. Scale it and convert it: x.astype(np.float32).",
        )
    return array


#: True once pictures of 0 to 255 in floats were reported.
_noted = False


def _note_range(array: NDArray, call: str) -> None:
    """Say once that floats look like 0 to 255: a sample has whole numbers, or colors far above 1.

    Such a picture is valid, and its result is wrong: floats are 0 to 1.
    """
    global _noted
    if _noted or not array.size:
        return
    rows, columns = (max(side // _SAMPLED, 1) for side in array.shape[:2])
    sample = array[::rows, ::columns].astype(np.float32)
    least, most = float(sample.min()), float(sample.max())
    if not (least >= 0 and 1 < most <= 255):  # NaN too
        return
    if (sample == np.rint(sample)).all() or (array.ndim == 3 and sample.mean() > 8):
        _noted = True
        notify(
            f"{call}: a float picture is 0 to 1, and this one has values up to {most:g}. If they "
            "are 0 to 255, divide: picture / 255."
        )


def _like_given(array: NDArray, given: NDArray) -> NDArray:
    """Return a result of f32 in the dtype of the array that was passed in."""
    if array.dtype == np.float32 and given.dtype == np.uint16:
        scaled: NDArray = np.rint(np.clip(np.nan_to_num(array), 0, 1) * 65535)
        return scaled.astype(np.uint16)
    if array.dtype == np.float32 and given.dtype in _FLOATS:
        return array.astype(given.dtype)
    return array


def _check_shape(shape: Shape, call: str) -> None:
    if len(shape) not in (2, 3) or (len(shape) == 3 and shape[2] not in (3, 4)):
        raise ShapeError(
            f"{call}: a picture must have shape (height, width), (height, width, 3) or "
            f"(height, width, 4), got {shape}.",
        )


def from_pillow(image: PillowImage, call: str) -> NDArray:
    """Return a Pillow image as an array; palettes and CMYK become RGB, a color key becomes alpha.

    Modes of numbers become f32: I;16 and I count as x / 65535, F as 0 to 1.
    """
    mode: str = image.mode
    if mode in NUMBERS or mode.startswith("I;16"):
        return scaled(image, call)
    if mode in ("1", "L", "RGB") and "transparency" in image.info:
        image = normalized(image)
    return as_array(image, call)


def is_pillow(value: object) -> TypeGuard[PillowImage]:
    """Return whether a value is a Pillow image, without importing Pillow."""
    return hasattr(value, "mode") and hasattr(value, "getbands")


def _to_pillow(array: NDArray, mode: str) -> PillowImage:
    from PIL import Image

    if mode.startswith("I;16"):
        return Image.fromarray(np.rint(np.clip(array, 0, 1) * 65535).astype(np.uint16))
    if mode == "I" and array.dtype == np.float32 and array.ndim == 2:
        whole = np.rint(np.nan_to_num(array.astype(np.float64)) * 65535)
        return Image.fromarray(np.clip(whole, -(2**31), 2**31 - 1).astype(np.int32))
    return Image.fromarray(array)


def second(value: ImageLike, shape: Shape, call: str) -> NDArray | Buffer:
    """Return the pixels of a second picture of a call, where bytes have the size of the first."""
    if isinstance(value, bytes | bytearray | memoryview):
        return read(value, shape[1], shape[0], call).pixels
    return read(value, None, None, call).pixels


def host_memory(b: Buffer) -> NDArray | None:
    """Return the buffer's own memory as an array, or None where the host cannot access it."""
    try:
        return b.__array__(copy=False)
    except ValueError:
        return None


def check_out(out: NDArray, kind: str, shape: Shape, dtype: str, call: str) -> NDArray:
    """Check that ``out`` is an array that a result can be written to."""
    if kind != "array" or not isinstance(out, np.ndarray):
        raise ParameterError(
            f"{call}: out must be an array, and the picture too; got {describe(type(out))} for a "
            f"picture of kind {kind!r}. Leave it out and use the return value.",
        )
    if out.shape != shape or _NAMES.get(out.dtype) != dtype:
        raise ShapeMismatch.invalid(
            call, "out", f"an array of shape {shape} and dtype {dtype}", out
        )
    if not out.flags.writeable:
        raise ReadOnlyError(f"{call}: out is read-only. Give a writable array.")
    return out
