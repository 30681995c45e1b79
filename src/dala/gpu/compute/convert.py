"""Convert lists, arrays, bytes and Pillow images to dense little-endian arrays."""

from __future__ import annotations

import operator
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from dala import memory
from dala.errors import DalaError, DtypeError, OutOfRange, ShapeError
from dala.gpu.compute.dtypes import NUMPY
from dala.typing import NDArray

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage

    from dala.gpu.compute.buffer import Buffer

#: A shape: a tuple of ints, or one int for one axis.
ShapeLike: TypeAlias = "int | Sequence[int] | NDArray"

#: Numbers: a list (nested or flat), an array or scalar, bytes, a Pillow image, or a Buffer.
ArrayLike: TypeAlias = "npt.ArrayLike | PillowImage | Buffer"

MAX_RANK: Final = 16

#: Pillow modes that need no conversion.
_PLAIN_MODES: Final = frozenset({"L", "RGB", "RGBA", "I", "F"})
#: Conversions of other modes; those not listed become RGB (see ``_from_pillow``).
_MODES: Final = {"1": "L", "LA": "RGBA", "La": "RGBA", "PA": "RGBA", "RGBa": "RGBA"}


def checked_shape(shape: ShapeLike, call: str) -> tuple[int, ...]:
    """Return a shape as a tuple of ints, or raise ShapeError.

    >>> checked_shape(3, "buffer"), checked_shape([2, 0], "buffer")
    ((3,), (2, 0))
    """
    given = shape
    if isinstance(shape, int | np.integer) and not isinstance(shape, bool):
        shape = (shape,)
    if isinstance(shape, str | bytes | memoryview) or not isinstance(shape, Sequence | np.ndarray):
        raise ShapeError.invalid(call, "shape", "a tuple of ints", given)
    axes = []
    for axis in shape:
        try:
            size = operator.index(axis)
        except TypeError:
            size = -1
        if size < 0 or isinstance(axis, bool):
            raise ShapeError.invalid(call, "shape", "a tuple of ints of at least 0", given)
        axes.append(size)
    if len(axes) > MAX_RANK:
        raise ShapeError.invalid(call, "shape", f"of at most {MAX_RANK} axes", len(axes))
    return tuple(axes)


def as_array(data: ArrayLike, call: str) -> NDArray:
    """Convert data to a NumPy array; arrays are not copied."""
    if isinstance(data, np.ndarray):
        return data
    if isinstance(data, str):
        raise DtypeError.invalid(call, "data", "numbers", data, "Encode text to bytes first.")
    pillow = sys.modules.get("PIL.Image")
    if pillow is not None and isinstance(data, pillow.Image):
        return _from_pillow(data, call)
    if isinstance(data, bytes | bytearray):
        return np.frombuffer(data, np.uint8)
    if not isinstance(data, list | tuple):
        return _foreign(data, call)
    try:
        array = np.array(data)
        if array.dtype == np.float64 and array.size and np.abs(array).max() >= 2.0**63:
            array = np.array(data, dtype=object)  # as floats, large ints would lose digits
        return array
    except (ValueError, TypeError) as error:
        raise ShapeError(
            f"{call}: data must be numbers in rows of equal length (a list, an array, or bytes): "
            f"{error}",
            call=call,
            argument="data",
        ) from None


def _foreign(data: object, call: str) -> NDArray:
    """Convert an object of another library (a tensor, a scalar, a view) to an array."""
    try:
        return np.asarray(data)
    except DalaError:
        raise
    except (ValueError, TypeError, RuntimeError) as error:
        raise DtypeError(
            f"{call}: {type(data).__name__} cannot be read as an array ({error}). "
            "Convert it first, such as x.detach().float().cpu() in torch."
        ) from None


def _from_pillow(image: PillowImage, call: str) -> NDArray:
    """Convert a Pillow image to an array: gray, RGB or RGBA, or numbers for modes I and F.

    Palettes and other color spaces are converted.
    """
    mode: str = image.mode
    try:
        if mode.startswith("I;16"):
            return np.asarray(image).astype(np.int32)  # there is no 16-bit dtype
        if mode in _PLAIN_MODES:
            return np.asarray(image)
        if mode == "P":
            return np.asarray(image.convert("RGBA" if image.has_transparency_data else "RGB"))
        if mode == "La":
            image = image.convert("LA")
        return np.asarray(image.convert(_MODES.get(mode, "RGB")))
    except (OSError, ValueError) as error:
        raise DtypeError(
            f"{call}: the Pillow image of mode {mode!r} cannot be read ({error}). "
            "Pass one that Pillow can load and convert to 'L', 'RGB' or 'RGBA'."
        ) from None


def to_dtype(array: NDArray, dtype: str, call: str) -> NDArray:
    """Convert an array to a C-contiguous one of a dtype; raise if values would change.

    Only rounding to a narrower float is allowed. Integers never wrap, fractions are never
    truncated.
    """
    target = NUMPY[dtype]
    if array.dtype != target or not array.flags.c_contiguous:
        memory.check_copy(array.size * target.itemsize, call)
    if array.dtype == target:
        return np.asarray(array, order="C")
    if array.dtype == object:
        array = _from_objects(array, dtype, call)
    kind = array.dtype.kind
    if kind not in "biuf":
        raise DtypeError(
            f"{call}: data of dtype {array.dtype} cannot become {dtype!r}. Pass real numbers."
        )
    if array.size and kind != "b":
        if target.kind != "f":
            _check_int_range(array, dtype, call)
        elif kind == "f" and array.dtype.itemsize > target.itemsize:
            _check_float_range(array, dtype, call)
    with np.errstate(over="ignore"):
        return np.asarray(array, dtype=target, order="C")


def _from_objects(array: NDArray, dtype: str, call: str) -> NDArray:
    """Convert an array of Python ints of any size; raise if one does not fit."""
    info = np.iinfo(NUMPY[dtype]) if NUMPY[dtype].kind != "f" else None
    for value in array.flat:
        if not isinstance(value, bool | int | float | np.number):
            raise DtypeError.invalid(call, "data", "numbers", value)
        if info and isinstance(value, int) and not info.min <= value <= info.max:
            raise _out_of_range(call, value, dtype)
    try:
        return array.astype(np.float64)
    except OverflowError:
        raise OutOfRange(f"{call}: a number does not fit in {dtype!r}. Scale the data.") from None


def _check_float_range(array: NDArray, dtype: str, call: str) -> None:
    limit = np.finfo(NUMPY[dtype]).max
    with np.errstate(invalid="ignore"):
        bad = np.isfinite(array) & (np.abs(array) > limit)
    if bad.any():
        raise OutOfRange(
            f"{call}: {array[bad].flat[0].item()!r} does not fit in {dtype!r} (largest {limit:g}). "
            "Use dtype='f64'."
        )


def _check_int_range(array: NDArray, dtype: str, call: str) -> None:
    info = np.iinfo(NUMPY[dtype])
    if array.dtype.kind == "f":
        whole = np.isfinite(array) & (np.floor(array) == array)
        if not whole.all():
            raise OutOfRange(
                f"{call}: {float(array[~whole].flat[0])!r} is not an integer, as {dtype!r} "
                "requires. Round the data first, or use dtype='f32'."
            )
        bad = (array < float(info.min)) | (array >= float(info.max) + 1)
    else:
        low, high = int(array.min()), int(array.max())
        if info.min <= low and high <= info.max:
            return
        bad = (array < info.min) if low < info.min else (array > info.max)
    if bad.any():
        raise _out_of_range(call, array[bad].flat[0].item(), dtype)


def _out_of_range(call: str, value: float, dtype: str) -> OutOfRange:
    info = np.iinfo(NUMPY[dtype])
    return OutOfRange(
        f"{call}: {value} does not fit in {dtype!r} ({info.min} to {info.max}). "
        "Use a wider dtype, or scale the data."
    )
