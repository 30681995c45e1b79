"""Buffers: numbers on a device, of one dtype and one shape."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from dala import resources
from dala.errors import BufferTooLarge, FreedError, ReadOnlyError, ShapeError, UnsupportedDtype
from dala.gpu.compute.convert import as_array, checked_shape, to_dtype
from dala.gpu.compute.dtypes import ITEMSIZE, NUMPY, dtype_name
from dala.gpu.compute.engines import auto
from dala.gpu.compute.engines.base import Engine, Storage
from dala.gpu.compute.engines.cpu.memory import Memory
from dala.gpu.compute.future import Future
from dala.resources import Closing


class Buffer(Closing):
    """Numbers on a device. Make one with :func:`dala.gpu.compute.buffer` and its like.

    A buffer is freed by ``free()``, ``close()``, leaving a ``with`` block, or when it is collected;
    any other use after that raises FreedError. On the cpu and reference devices ``np.asarray(b)``,
    ``read_binary`` and DLPack share the buffer's memory; elsewhere they give a fresh copy.
    """

    __slots__ = (
        "__weakref__",
        "_key",
        "_storage",
        "dtype",
        "engine",
        "nbytes",
        "readonly",
        "shape",
        "transient",
    )

    def __init__(
        self,
        engine: Engine,
        storage: Storage,
        shape: tuple[int, ...],
        dtype: str,
        *,
        readonly: bool = False,
        transient: bool = False,
    ) -> None:
        self.engine = engine
        self.shape = shape
        self.dtype = dtype
        self.nbytes = storage.nbytes
        self.readonly = readonly
        #: True when a pipeline need not write it: it may vanish into the pass that reads it.
        self.transient = transient
        self._storage: Storage | None = storage
        #: What a kernel is specialised for; None once freed, so that every cached plan misses.
        self._key: tuple[Any, ...] | None = (engine, dtype, shape, storage.foreign)
        resources.track("buffer", engine.id, storage.nbytes)

    # facts ------------------------------------------------------------------------------------
    @property
    def device(self) -> str:
        """Id of the device the buffer lives on, such as "cpu" or "webgpu:0"."""
        return self.engine.id

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def freed(self) -> bool:
        """True once the buffer was freed."""
        return self._storage is None

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a buffer of shape () has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        state = " freed" if self.freed else ""
        return f"<Buffer {self.dtype} {self.shape} on {self.engine.id}{state}>"

    def storage(self, call: str, argument: str | None = None) -> Storage:
        """Return the buffer's memory; raise FreedError, naming the call, once it was freed."""
        if self._storage is None:
            what = f"buffer {self.dtype} {self.shape}"
            what = f"{argument} ({what})" if argument else f"the {what}"
            raise FreedError(
                f"{call}: {what} was freed. Make a new one, or free it later.",
                call=call,
                argument=argument,
            )
        return self._storage

    # out --------------------------------------------------------------------------------------
    def read_binary(self) -> memoryview:
        """The bytes, little-endian: the buffer's own memory where shared, else a copy."""
        storage = self.storage("read_binary")
        view = self.engine.host_view(storage)
        return self.engine.download(storage) if view is None else view

    def read(self) -> bytes:
        """A copy of the bytes, little-endian."""
        return bytes(self.read_binary())

    def read_list(self) -> list[Any]:
        """All numbers in one flat list."""
        return self.numpy().ravel().tolist()

    def read_async(self) -> Future[bytes]:
        """As :meth:`read` without waiting: a future to wait for or to await."""
        storage = self.storage("read_async")
        return Future(self.engine.download_async(storage), bytes)

    def numpy(self) -> np.ndarray[Any, Any]:
        """The numbers as a NumPy array: the buffer's own memory where shared, else a copy."""
        array = np.frombuffer(self.read_binary(), NUMPY[self.dtype]).reshape(self.shape)
        if self.readonly:
            array.flags.writeable = False
        return array

    def to_array(self, shape: Any = None, dtype: Any = None) -> np.ndarray[Any, Any]:
        """As :meth:`numpy`, in another shape or dtype if asked."""
        array = self.numpy()
        if shape is not None:
            wanted = checked_shape(shape, "to_array")
            if math.prod(wanted) != array.size:
                raise ShapeError(f"to_array: {array.size} numbers do not fill shape {wanted}.")
            array = array.reshape(wanted)
        if dtype is not None:
            array = array.astype(NUMPY[dtype_name(dtype, call="to_array")], copy=False)
        return array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False and self.engine.host_view(self.storage("np.asarray")) is None:
            raise ValueError(f"np.asarray: a buffer on {self.engine.id} cannot be read uncopied")
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(self, **options: Any) -> Any:
        return self.numpy().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)  # what is handed out is always host memory

    def __buffer__(self, flags: int) -> memoryview:
        return self.numpy().data

    # in ---------------------------------------------------------------------------------------
    def write(self, data: Any) -> None:
        """Replaces the contents; data must hold as many numbers as the buffer."""
        storage = self.storage("write")
        self.check_writable("write")
        array = to_dtype(as_array(data, "write"), self.dtype, "write")
        if array.size != self.size:
            raise ShapeError(
                f"write: the buffer {self.shape} holds {self.size} numbers, {array.size} came."
            )
        self.engine.upload(storage, array.reshape(-1).view(np.uint8).data)

    def check_writable(self, call: str) -> None:
        """Refuses a buffer over memory that its owner lent for reading only."""
        if self.readonly:
            raise ReadOnlyError(
                f"{call}: the buffer shares read-only memory. Copy it first: buffer(np.array(x))."
            )

    def to(self, device: str) -> Buffer:
        """The same numbers on another device; itself when it is already there."""
        engine = auto.get(device)
        storage = self.storage("to")
        if engine is self.engine:
            return self
        check_dtype(engine, self.dtype, "to")
        target = allocate(engine, self.shape, self.dtype, zero=False, call="to")
        if self.nbytes:
            view = self.engine.host_view(storage)
            data = self.engine.download(storage) if view is None else view
            engine.upload(target.storage("to"), data)
        return target

    # end --------------------------------------------------------------------------------------
    def free(self) -> None:
        """Gives the memory back. Freeing twice is fine."""
        storage, self._storage, self._key = self._storage, None, None
        if storage is not None:
            resources.untrack("buffer", self.engine.id, storage.nbytes)
            self.engine.release(storage)

    def close(self) -> None:
        """As :meth:`free`."""
        self.free()

    def __del__(self) -> None:
        # A buffer whose __init__ failed has no storage; at exit modules may be gone.
        try:  # noqa: SIM105 - for every buffer that comes and goes, and twice as quick
            self.free()
        except Exception:
            pass


def span(engine: Engine, storage: Storage) -> tuple[int, int] | None:
    """Where memory begins and ends, if it is the host's."""
    handle = storage.handle
    if type(handle) is Memory:
        return handle.address, handle.address + storage.nbytes
    view = engine.host_view(storage)
    if view is None:
        return None
    start = int(np.frombuffer(view, np.uint8).__array_interface__["data"][0])
    return start, start + storage.nbytes


def overlap(a: Buffer, b: Buffer) -> bool:
    """True when two buffers share memory: they are one, or lie over the same host memory."""
    one, other = a._storage, b._storage
    if one is None or other is None:
        return False  # freed: whoever uses it says so
    if one is other:
        return True
    if not (one.foreign or other.foreign) or not (a.nbytes and b.nbytes):
        return False
    here, there = span(a.engine, one), span(b.engine, other)
    return here is not None and there is not None and here[0] < there[1] and there[0] < here[1]


def check_dtype(engine: Engine, dtype: str, call: str) -> None:
    """Refuses a dtype that the device cannot compute with."""
    if dtype not in engine.dtypes:
        instead = "f32" if dtype == "f64" else "s32"
        raise UnsupportedDtype(
            f"{call}: {engine.info().get('name', engine.id)} ({engine.id}) has no {dtype!r}; "
            f"it has {', '.join(sorted(engine.dtypes))}. Use dtype={instead!r}, or device='cpu'."
        )


_host_bytes: int | None = None


def _host_limit() -> int:
    """Bytes of memory in this machine: what no buffer in host memory can exceed."""
    global _host_bytes
    if _host_bytes is None:
        try:
            _host_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        except (AttributeError, ValueError, OSError):
            _host_bytes = 1 << 46
    return _host_bytes


def allocate(
    engine: Engine, shape: tuple[int, ...], dtype: str, *, zero: bool, call: str
) -> Buffer:
    """A new buffer on an engine, or BufferTooLarge naming the limit."""
    nbytes = math.prod(shape) * ITEMSIZE[dtype]
    limit, what = engine.max_buffer_bytes, "allows buffers of"
    if limit is None:
        limit, what = _host_limit(), "has memory for"
    if nbytes > limit:
        raise BufferTooLarge(
            f"{call}: shape {shape} of {dtype!r} needs {nbytes:,} bytes; "
            f"{engine.info().get('name', engine.id)} ({engine.id}) {what} at most "
            f"{limit:,}. Split the data, or use a narrower dtype."
        )
    try:
        storage = engine.allocate(nbytes, zero=zero)
    except BufferTooLarge:
        raise
    except MemoryError:
        raise BufferTooLarge(
            f"{call}: {engine.id} has no {nbytes:,} bytes left for shape {shape} of {dtype!r}. "
            "Free buffers, or split the data."
        ) from None
    return Buffer(engine, storage, shape, dtype)
