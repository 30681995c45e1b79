"""What people hand in (lists, arrays, bytes) to a dense little-endian array of one dtype."""

from __future__ import annotations

import operator
import sys
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dala.errors import DalaError, DtypeError, OutOfRange, ShapeError
from dala.gpu.compute.dtypes import NUMPY

MAX_RANK: Final = 16

#: Pillow's modes whose numbers mean what a picture's do here, or are plain numbers.
_PLAIN_MODES: Final = frozenset({"L", "RGB", "RGBA", "I", "F"})
#: What the others become: modes with transparency RGBA, the rest RGB (see ``_picture``).
_MODES: Final = {"1": "L", "LA": "RGBA", "La": "RGBA", "PA": "RGBA", "RGBa": "RGBA"}


def checked_shape(shape: Any, call: str) -> tuple[int, ...]:
    """A shape as a tuple of whole numbers, or ShapeError.

    >>> checked_shape(3, "buffer"), checked_shape([2, 0], "buffer")
    ((3,), (2, 0))
    """
    given = shape
    if isinstance(shape, int | np.integer) and not isinstance(shape, bool):
        shape = (shape,)
    if isinstance(shape, str | bytes) or not isinstance(shape, Sequence | np.ndarray):
        raise ShapeError(f"{call}: shape must be a tuple of whole numbers, {given!r} came.")
    axes = []
    for axis in shape:
        try:
            size = operator.index(axis)
        except TypeError:
            size = -1
        if size < 0 or isinstance(axis, bool):
            raise ShapeError(
                f"{call}: shape must hold whole numbers of at least 0, {given!r} came."
            )
        axes.append(size)
    if len(axes) > MAX_RANK:
        raise ShapeError(f"{call}: shape has {len(axes)} axes; at most {MAX_RANK} are allowed.")
    return tuple(axes)


def count_of(shape: tuple[int, ...]) -> int:
    """Number of elements in a shape."""
    total = 1
    for axis in shape:
        total *= axis
    return total


def as_array(data: Any, call: str) -> np.ndarray[Any, Any]:
    """Data as a NumPy array, without copying where it already is one."""
    if isinstance(data, np.ndarray):
        return data
    if isinstance(data, str):
        raise DtypeError(f"{call}: data must be numbers, a text came. Encode it to bytes first.")
    pillow = sys.modules.get("PIL.Image")
    if pillow is not None and isinstance(data, pillow.Image):
        return _picture(data, call)
    if isinstance(data, bytes | bytearray):
        return np.frombuffer(data, np.uint8)
    if not isinstance(data, list | tuple):
        return _foreign(data, call)
    try:
        array = np.array(data)
        if array.dtype == np.float64 and array.size and np.abs(array).max() >= 2.0**63:
            array = np.array(data, dtype=object)  # whole numbers this large lost digits as floats
        return array
    except (ValueError, TypeError) as error:
        raise ShapeError(
            f"{call}: data must be numbers in rows of equal length (a list, an array, or bytes): "
            f"{error}"
        ) from None


def _foreign(data: Any, call: str) -> np.ndarray[Any, Any]:
    """An object of another library (a tensor, a scalar, a view) as an array."""
    try:
        return np.asarray(data)
    except DalaError:
        raise
    except (ValueError, TypeError, RuntimeError) as error:
        raise DtypeError(
            f"{call}: {type(data).__name__} cannot be read as an array ({error}). "
            "Convert it first, such as x.detach().float().cpu() in torch."
        ) from None


def _picture(image: Any, call: str) -> np.ndarray[Any, Any]:
    """A Pillow image as an array: gray, RGB or RGBA, or the numbers of a mode that holds numbers.

    Palettes and other colour spaces are resolved, since their numbers would be taken for colours.
    """
    mode: str = image.mode
    try:
        if mode.startswith("I;16"):
            return np.asarray(image).astype(np.int32)  # no 16-bit dtype here: the numbers, wider
        if mode in _PLAIN_MODES:
            return np.asarray(image)
        if mode == "P":
            return np.asarray(image.convert("RGBA" if image.has_transparency_data else "RGB"))
        if mode == "La":
            image = image.convert("LA")
        return np.asarray(image.convert(_MODES.get(mode, "RGB")))
    except (OSError, ValueError) as error:
        raise DtypeError(
            f"{call}: the Pillow image of mode {mode!r} cannot be read as a picture ({error}). "
            "Give one that Pillow can load and convert to 'L', 'RGB' or 'RGBA'."
        ) from None


def to_dtype(array: np.ndarray[Any, Any], dtype: str, call: str) -> np.ndarray[Any, Any]:
    """The array in a dtype, C-contiguous; refuses what would be changed by the conversion.

    Floats may be rounded to a narrower float; whole numbers never wrap, fractions are never cut.
    """
    target = NUMPY[dtype]
    if array.dtype == target:
        return np.asarray(array, order="C")
    if array.dtype == object:
        array = _from_objects(array, dtype, call)
    kind = array.dtype.kind
    if kind not in "biuf":
        raise DtypeError(
            f"{call}: data of dtype {array.dtype} cannot become {dtype!r}. Give real numbers."
        )
    if array.size == 0 or kind == "b":
        return np.asarray(array, dtype=target, order="C")
    if target.kind == "f":
        if kind == "f" and array.dtype.itemsize > target.itemsize:
            _check_float_range(array, dtype, call)
        with np.errstate(over="ignore"):
            return np.asarray(array, dtype=target, order="C")
    _check_int_range(array, dtype, call)
    return np.asarray(array, dtype=target, order="C")


def _from_objects(array: np.ndarray[Any, Any], dtype: str, call: str) -> np.ndarray[Any, Any]:
    """Python ints beyond 64 bits arrive as objects: say which one does not fit."""
    info = np.iinfo(NUMPY[dtype]) if NUMPY[dtype].kind != "f" else None
    for value in array.flat:
        if not isinstance(value, bool | int | float | np.number):
            raise DtypeError(
                f"{call}: data must be numbers, {type(value).__name__} came ({value!r})."
            )
        if info and isinstance(value, int) and not info.min <= value <= info.max:
            raise _out_of_range(call, value, dtype)
    try:
        return array.astype(np.float64)
    except OverflowError:
        raise OutOfRange(f"{call}: a number does not fit in {dtype!r}. Scale the data.") from None


def _check_float_range(array: np.ndarray[Any, Any], dtype: str, call: str) -> None:
    limit = np.finfo(NUMPY[dtype]).max
    with np.errstate(invalid="ignore"):
        bad = np.isfinite(array) & (np.abs(array) > limit)
    if bad.any():
        raise OutOfRange(
            f"{call}: {array[bad].flat[0].item()!r} does not fit in {dtype!r} (largest {limit:g}). "
            "Use dtype='f64'."
        )


def _check_int_range(array: np.ndarray[Any, Any], dtype: str, call: str) -> None:
    info = np.iinfo(NUMPY[dtype])
    if array.dtype.kind == "f":
        whole = np.isfinite(array) & (np.floor(array) == array)
        if not whole.all():
            raise OutOfRange(
                f"{call}: {float(array[~whole].flat[0])!r} is not a whole number, as {dtype!r} "
                "needs. Round the data first, or use dtype='f32'."
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
        "Use a wider dtype, or bring the data into range."
    )
