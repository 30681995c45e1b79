"""Making buffers: from numbers, from bytes, from arrays and tensors of other libraries."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dala.errors import DalaError, DtypeError, ShapeError
from dala.gpu.compute.buffer import Buffer, allocate, check_dtype
from dala.gpu.compute.convert import as_array, checked_shape, count_of, to_dtype
from dala.gpu.compute.dtypes import ITEMSIZE, NUMPY, dtype_name
from dala.gpu.compute.engines import auto
from dala.gpu.compute.engines.base import Engine

_NAMES: Final = {dtype: name for name, dtype in NUMPY.items()}


def _engine(device: str | None) -> Engine:
    return auto.current() if device is None else auto.get(device)


def _fill(array: np.ndarray[Any, Any], dtype: str, device: str | None, call: str) -> Buffer:
    engine = _engine(device)
    check_dtype(engine, dtype, call)
    made = allocate(engine, array.shape, dtype, zero=False, call=call)
    if array.size:
        engine.upload(made.storage(call), array.reshape(-1).view(np.uint8).data)
    return made


def buffer(
    data: Any, shape: Any = None, dtype: Any = "f32", *, device: str | None = None
) -> Buffer:
    """A buffer holding a copy of some numbers.

    Args:
        data: a list (nested or flat), a NumPy array, bytes, a Pillow image, or anything with the
            buffer protocol.
        shape: the shape; the data's own where left out. The count must fit.
        dtype: "f32" (the default), "f64", "s32", "s64", "u32" or "u8"; NumPy names work too.
        device: where it lives; the current device where left out.

    Raises:
        OutOfRange: a whole number does not fit the dtype; nothing is wrapped.
        ShapeError: the data does not fill the shape.

    >>> b = buffer([1, 2, 3, 4], shape=(2, 2), device="cpu")
    >>> b.shape, b.dtype, b.nbytes
    ((2, 2), 'f32', 16)
    """
    name = dtype_name(dtype, call="buffer")
    wanted = None if shape is None else checked_shape(shape, "buffer")
    if isinstance(data, Buffer):
        data = data.numpy()
    array = as_array(data, "buffer")
    if wanted is not None and count_of(wanted) != array.size:
        raise ShapeError(
            f"buffer: shape {wanted} holds {count_of(wanted)} numbers, {array.size} came."
        )
    array = to_dtype(array, name, "buffer")
    if wanted is not None:
        array = array.reshape(wanted)
    return _fill(array, name, device, "buffer")


def buffer_zeros(
    shape: Any, dtype: Any = "f32", *, device: str | None = None, transient: bool = False
) -> Buffer:
    """A buffer of zeros.

    A ``transient`` one stands between stages of a pipeline: what it holds after a run is not told.

    >>> buffer_zeros((2, 3), "u8", device="cpu").read()
    b'\\x00\\x00\\x00\\x00\\x00\\x00'
    """
    name = dtype_name(dtype, call="buffer_zeros")
    wanted = checked_shape(shape, "buffer_zeros")
    engine = _engine(device)
    check_dtype(engine, name, "buffer_zeros")
    made = allocate(engine, wanted, name, zero=True, call="buffer_zeros")
    made.transient = transient
    return made


def buffer_from_binary(
    data: Any, shape: Any, dtype: Any = "u8", *, device: str | None = None
) -> Buffer:
    """A buffer from raw little-endian bytes; their number must match the shape exactly.

    >>> buffer_from_binary(b"\\x01\\x00\\x00\\x00", (1,), "s32", device="cpu").read_list()
    [1]
    """
    call = "buffer_from_binary"
    name = dtype_name(dtype, call=call)
    wanted = checked_shape(shape, call)
    try:
        view = memoryview(data)
        raw = view.cast("B") if view.contiguous and view.nbytes else memoryview(view.tobytes())
    except TypeError:
        raise DtypeError(
            f"{call}: data must be bytes, {type(data).__name__} came. Use buffer() for numbers."
        ) from None
    needed = count_of(wanted) * ITEMSIZE[name]
    if raw.nbytes != needed:
        raise ShapeError(
            f"{call}: shape {wanted} of {name!r} needs {needed} bytes, {raw.nbytes} came."
        )
    return _fill(np.frombuffer(raw, NUMPY[name]).reshape(wanted), name, device, call)


def from_array(array: Any, *, device: str | None = None) -> Buffer:
    """A buffer holding a copy of an array, its dtype kept (it must be one of the six).

    A Pillow image of mode L, RGB or RGBA is copied as it is, (height, width[, channels]) of u8, I
    as s32 and F as f32. 1 becomes gray of 0 and 255, I;16 becomes s32; palettes and other colour
    spaces become RGB, and RGBA where they have transparency.

    >>> from_array(np.zeros((2, 2), np.uint8), device="cpu").dtype
    'u8'
    """
    if isinstance(array, Buffer):
        array = array.numpy()
    found = as_array(array, "from_array")
    if found.dtype.kind == "b":
        found = found.astype(np.uint8)
    name = dtype_name(found.dtype, call="from_array")
    return _fill(to_dtype(found, name, "from_array"), name, device, "from_array")


def to_array(b: Buffer, shape: Any = None, dtype: Any = None) -> np.ndarray[Any, Any]:
    """The numbers as a NumPy array, in another shape or dtype if asked.

    On the cpu and reference devices the array shares the buffer's memory where the dtype stays the
    same; copy it to keep what it holds now.
    """
    return b.to_array(shape, dtype)


def from_dlpack(x: Any, *, device: str | None = None) -> Buffer:
    """A buffer over a tensor of another library (torch, JAX, CuPy, NumPy) through DLPack.

    On the cpu and reference devices contiguous host memory is shared, not copied: both see what
    either writes. Tensors on a GPU, and other devices here, are copied.
    """
    if type(x) is np.ndarray and x.flags.c_contiguous and x.dtype in _NAMES:
        return _shared(x, _NAMES[x.dtype], device)  # what DLPack would give
    try:
        array = np.from_dlpack(x)
    except DalaError:
        raise
    except (BufferError, RuntimeError, TypeError, AttributeError) as first:
        try:
            array = np.from_dlpack(x, device="cpu", copy=True)
        except Exception:
            raise DtypeError(
                f"from_dlpack: {type(x).__name__} cannot be read through DLPack on the host "
                f"({first}). Convert it first, such as x.detach().cpu() in torch or x.get() in "
                "CuPy, or copy it: from_array(x)."
            ) from None
    return _shared(array, dtype_name(array.dtype, call="from_dlpack"), device)


def _shared(array: np.ndarray[Any, Any], name: str, device: str | None) -> Buffer:
    """A buffer over the array's memory where the device can use that."""
    engine = _engine(device)
    check_dtype(engine, name, "from_dlpack")
    if array.flags.c_contiguous and array.dtype == NUMPY[name] and array.size:
        storage = engine.adopt(array.reshape(-1).view(np.uint8).data)
        if storage is not None:
            return Buffer(engine, storage, array.shape, name, readonly=not array.flags.writeable)
    return _fill(to_dtype(array, name, "from_dlpack"), name, device, "from_dlpack")
