"""Create buffers from numbers, bytes, arrays and tensors of other libraries."""

from __future__ import annotations

from math import prod
from typing import Final, TypeAlias

import numpy as np

from dala.errors import ArityError, DalaError, DtypeError, ShapeError
from dala.gpu.compute.buffer import Buffer, allocate, check_dtype
from dala.gpu.compute.convert import ArrayLike, ShapeLike, as_array, checked_shape, to_dtype
from dala.gpu.compute.dtypes import ITEMSIZE, NUMPY, DtypeLike, dtype_name
from dala.gpu.compute.engines import auto
from dala.gpu.compute.engines.base import Engine
from dala.typing import NDArray, SupportsDLPack

#: Raw bytes: any object with the buffer protocol.
BytesLike: TypeAlias = bytes | bytearray | memoryview | NDArray


_NAMES: Final = {dtype: name for name, dtype in NUMPY.items()}


def _engine(device: str | None) -> Engine:
    return auto.current() if device is None else auto.get(device)


def filled(array: NDArray, dtype: str, engine: Engine, call: str) -> Buffer:
    """Return a buffer on an engine with the values of an array of its dtype."""
    check_dtype(engine, dtype, call)
    made = allocate(engine, array.shape, dtype, zero=False, call=call)
    if array.size:
        engine.upload(made.storage(call), array.reshape(-1).view(np.uint8).data)
    return made


def buffer(
    data: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DtypeLike = "f32",
    *,
    device: str | None = None,
) -> Buffer:
    """Create a buffer from numbers, which are copied.

    Args:
        data: a list (nested or flat), a NumPy array, bytes, a Pillow image, or any object with the
            buffer protocol.
        shape: the shape; the data's own by default. The number of elements must match.
        dtype: "f32", "f64", "s32", "s64", "u32" or "u8", or a NumPy name.
        device: the device; the default is the current one.

    Raises:
        OutOfRange: an integer does not fit the dtype; integers never wrap.
        ShapeError: the number of elements does not match the shape.

    >>> b = buffer([1, 2, 3, 4], shape=(2, 2), device="cpu")
    >>> b.shape, b.dtype, b.nbytes
    ((2, 2), 'f32', 16)
    """
    name = dtype_name(dtype, call="buffer")
    wanted = None if shape is None else checked_shape(shape, "buffer")
    if isinstance(data, Buffer):
        data = data.contents("buffer")
    array = as_array(data, "buffer")
    if wanted is not None and prod(wanted) != array.size:
        raise ShapeError.invalid(
            "buffer", "data", f"{prod(wanted)} elements, to fill {wanted}", array.size
        )
    array = to_dtype(array, name, "buffer")
    if wanted is not None:
        array = array.reshape(wanted)
    return filled(array, name, _engine(device), "buffer")


def buffer_zeros(
    shape: ShapeLike,
    dtype: DtypeLike = "f32",
    *,
    device: str | None = None,
    transient: bool = False,
) -> Buffer:
    """Create a buffer of zeros.

    Args:
        shape: the shape.
        dtype: the dtype.
        device: the device; the default is the current one.
        transient: True for an intermediate of a pipeline, whose contents are undefined after a
            run.

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
    data: BytesLike, shape: ShapeLike, dtype: DtypeLike = "u8", *, device: str | None = None
) -> Buffer:
    """Create a buffer from raw little-endian bytes. Their number must match the shape and dtype.

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
        raise DtypeError.invalid(call, "data", "bytes", data, "Use buffer() for numbers.") from None
    needed = prod(wanted) * ITEMSIZE[name]
    if raw.nbytes != needed:
        raise ShapeError.invalid(
            call, "data", f"{needed} bytes, to fill {wanted} of {name!r}", raw.nbytes
        )
    return filled(np.frombuffer(raw, NUMPY[name]).reshape(wanted), name, _engine(device), call)


def from_array(array: ArrayLike, *, device: str | None = None) -> Buffer:
    """Create a buffer from an array, which is copied and keeps its dtype.

    Pillow images of mode L, RGB and RGBA become (height, width[, channels]) of u8. Modes I and I;16
    become s32, mode F f32, and mode 1 gray of 0 and 255. Palettes and other color spaces become
    RGB, or RGBA if they have transparency.

    >>> from_array(np.zeros((2, 2), np.uint8), device="cpu").dtype
    'u8'
    """
    if isinstance(array, Buffer):
        array = array.contents("from_array")
    found = as_array(array, "from_array")
    name = "u8" if found.dtype.kind == "b" else dtype_name(found.dtype, call="from_array")
    return filled(to_dtype(found, name, "from_array"), name, _engine(device), "from_array")


def to_array(b: Buffer, shape: ShapeLike | None = None, dtype: DtypeLike | None = None) -> NDArray:
    """Return the buffer as a NumPy array, reshaped and converted if a shape or dtype is given.

    On the cpu and reference devices the array shares the buffer's memory unless it is converted.

    >>> to_array(buffer([1, 2, 3, 4], device="cpu"), (2, 2), "u8").tolist()
    [[1, 2], [3, 4]]
    """
    if not isinstance(b, Buffer):
        raise ArityError.invalid("to_array", "b", "a Buffer", b)
    return b.to_array(shape, dtype)


def from_dlpack(x: SupportsDLPack, *, device: str | None = None) -> Buffer:
    """Create a buffer from a tensor of another library (torch, JAX, CuPy, NumPy) through DLPack.

    On the cpu and reference devices contiguous host memory is shared, not copied. On a cuda device,
    so are tensors of that GPU, also those of Numba: work on the caller's stream is waited for, by
    the GPU. Those of other devices are copied through the host.

    >>> array = np.zeros(2, np.float32)
    >>> b = from_dlpack(array, device="cpu")
    >>> array[0] = 7
    >>> b.read_list()
    [7.0, 0.0]
    """
    if type(x) is np.ndarray and x.flags.c_contiguous and x.dtype in _NAMES:
        return _shared(x, _NAMES[x.dtype], device)  # faster than DLPack, with the same result
    engine = _engine(device)
    try:
        if engine.sharing is not None and (found := engine.sharing.adopt_tensor(engine, x)):
            storage, shape, dtype, readonly = found
            return Buffer(
                engine, storage, shape, dtype_name(dtype, call="from_dlpack"), readonly=readonly
            )
        old = hasattr(x, "__cuda_array_interface__") and not hasattr(x, "__dlpack__")
        array = np.asarray(x) if old else np.from_dlpack(x)
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


def _shared(array: NDArray, name: str, device: str | None) -> Buffer:
    """Return a buffer that shares the array's memory if the device can use it, else a copy."""
    engine = _engine(device)
    if name not in engine.dtypes:
        check_dtype(engine, name, "from_dlpack")
    if array.flags.c_contiguous and array.dtype == NUMPY[name] and array.size:
        storage = engine.adopt(array.reshape(-1).view(np.uint8).data)
        if storage is not None:
            return Buffer(engine, storage, array.shape, name, readonly=not array.flags.writeable)
    return filled(to_dtype(array, name, "from_dlpack"), name, _engine(device), "from_dlpack")
