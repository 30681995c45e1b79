"""Buffers: arrays in the memory of a device."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from dala import memory, resources
from dala.budget import accounts as accounts_here
from dala.errors import (
    BufferTooLarge,
    DeviceError,
    FreedError,
    ReadOnlyError,
    ShapeError,
    UnsupportedDtype,
)
from dala.gpu.compute.arrays.exchange import ExchangedArray
from dala.gpu.compute.arrays.methods import ArrayMethods
from dala.gpu.compute.convert import ArrayLike, ShapeLike, as_array, checked_shape, to_dtype
from dala.gpu.compute.dtypes import ITEMSIZE, NUMPY, DtypeLike, dtype_name
from dala.gpu.compute.engines import auto
from dala.gpu.compute.engines.base import Engine, Storage
from dala.gpu.compute.engines.cpu.memory import Memory
from dala.gpu.compute.future import Future
from dala.resources import Closing
from dala.typing import NDArray

if TYPE_CHECKING:
    from dala.gpu.compute.arrays.graph import Expression

#: Dtypes that some devices lack: what to use instead, and what a conversion to that does.
NARROWER: Final = {
    "f64": ("f32", "rounds to 24 bits, about 7 digits"),
    "s64": ("s32", "keeps the lower 32 bits"),
}

_PlanKey: TypeAlias = tuple[Engine, str, tuple[int, ...], bool]


class Buffer(ArrayMethods, ExchangedArray, Closing):
    """An array in the memory of a device. Make one with :func:`dala.gpu.compute.buffer`.

    Operators, indexing and reductions work as on NumPy arrays. The result of an operator is
    computed when its values are needed, fused with the operators before it. ``explain()`` shows
    how.

    A buffer is freed by ``free()``, ``close()``, at the end of a ``with`` block, or when it is
    garbage collected. Using a freed buffer raises FreedError. On the cpu and reference devices
    ``np.asarray(b)``, ``read_binary`` and DLPack share the buffer's memory; on others they copy.
    On cuda devices, DLPack and ``__cuda_array_interface__`` share it with libraries on that GPU.

    >>> from dala.gpu.compute import buffer
    >>> b = buffer([[1, 2], [3, 4]], dtype="s32", device="cpu")
    >>> b
    <Buffer s32 (2, 2) on cpu>
    >>> b.read_list()
    [1, 2, 3, 4]
    >>> (b * 2 + 1).read_list(), b[1].read_list(), int(b.sum())
    ([3, 5, 7, 9], [3, 4], 10)
    """

    __slots__ = (
        "__weakref__", "_key", "_storage", "dtype", "engine", "nbytes", "node", "origin",
        "readonly", "shape", "transient",
    )  # fmt: skip

    def __init__(
        self,
        engine: Engine,
        storage: Storage,
        shape: tuple[int, ...],
        dtype: str,
        *,
        readonly: bool = False,
        transient: bool = False,
        counted: bool = False,
    ) -> None:
        self.engine = engine
        self.shape = shape
        self.dtype = dtype
        self.nbytes = storage.nbytes
        self.readonly = readonly
        #: True for an intermediate of a pipeline, which a fused pass need not write.
        self.transient = transient
        self._storage: Storage | None = storage
        #: Key into the cached plans; None after freeing, so that no plan is found.
        self._key: _PlanKey | None = (engine, dtype, shape, storage.foreign)
        #: The expression that computes the values; None once they are computed.
        self.node: Expression | None = None
        #: How an expression was computed, for ``explain``.
        self.origin = ""
        if not counted:
            # Memory that is shared belongs to its owner.
            resources.track("buffer", engine.id, 0 if storage.foreign else storage.nbytes)

    @property
    def device(self) -> str:
        """The id of the buffer's device, such as "cpu" or "webgpu:0"."""
        return self.engine.id

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def freed(self) -> bool:
        """True if the buffer was freed."""
        return self._storage is None and self.node is None

    @property
    def ref(self) -> Buffer:
        """The buffer itself, for code ported from Dala in other languages (``inputs=[a.ref]``)."""
        return self

    def __repr__(self) -> str:
        state = " freed" if self.freed else ""
        return f"<Buffer {self.dtype} {self.shape} on {self.engine.id}{state}>"

    def storage(self, call: str, argument: str | None = None) -> Storage:
        """Return the buffer's memory, or raise a FreedError that names the call.

        The values of an expression are computed first.
        """
        if self._storage is None:
            if self.node is not None:
                self._evaluate()
                return self.storage(call, argument)
            what = f"buffer {self.dtype} {self.shape}"
            what = f"{argument} ({what})" if argument else f"the {what}"
            raise FreedError(
                f"{call}: {what} was freed. Make a new one, or free it later.",
                call=call,
                argument=argument,
            )
        return self._storage

    def _evaluate(self) -> None:
        """Compute the values of an expression."""
        from dala.gpu.compute.arrays import evaluate, graph

        with graph.LOCK:
            if self.node is not None:  # another thread may have computed it meanwhile
                evaluate.compute(self.node)

    def storage_to_write(self, call: str, argument: str | None = None) -> Storage:
        """Return the buffer's memory to write to, or raise an error that names the call.

        Expressions that read the buffer are computed first.
        """
        storage = self.storage(call, argument)
        self.check_writable(call)
        if storage.reader is not None:
            settle(storage)
        return storage

    # reading ----------------------------------------------------------------------------------
    def read_binary(self) -> memoryview:
        """Return the bytes, little-endian, read-only: a view of shared memory, else a copy."""
        return self.shared_bytes("read_binary").toreadonly()

    def shared_bytes(self, call: str) -> memoryview:
        """Return the bytes to read and write: a view of the memory if it is shared, else a copy."""
        storage = self.storage(call)
        view = self.engine.host_view(storage)
        if view is None:
            return self.engine.download(storage)
        self.settled(call)
        root: NDArray | None = None if storage.exposed is None else storage.exposed()
        if root is None:
            root = np.frombuffer(view, np.uint8)
            storage.exposed = weakref.ref(root)
        return root.data

    def settled(self, call: str) -> Storage:
        """Return the memory, for others to read and write."""
        storage = self.storage(call)
        if storage.reader is not None:
            settle(storage)
        return storage

    def contents(self, call: str) -> NDArray:
        """Return the values as an array for a short look: do not write to it or keep it."""
        return np.frombuffer(self._bytes(call), NUMPY[self.dtype]).reshape(self.shape)

    def _bytes(self, call: str) -> memoryview:
        storage = self.storage(call)
        view = self.engine.host_view(storage)
        return self.engine.download(storage) if view is None else view

    def read(self) -> bytes:
        """Return a copy of the bytes, little-endian."""
        return bytes(self._bytes("read"))

    def read_list(self) -> list[float]:
        """Return all elements in one flat list."""
        elements: list[float] = self.contents("read_list").ravel().tolist()
        return elements

    def read_async(self) -> Future[memoryview]:
        """Start copying the bytes and return a future, which can be awaited."""
        storage = self.storage("read_async")
        return Future(self.engine.download_async(storage), memoryview.toreadonly)

    def numpy(self) -> NDArray:
        """Return a NumPy array: a view of the buffer's memory if it is shared, else a copy."""
        shared = self.shared_bytes("numpy")
        array = np.frombuffer(shared, NUMPY[self.dtype]).reshape(self.shape)
        if self.readonly:
            array.flags.writeable = False
        return array

    def to_array(self, shape: ShapeLike | None = None, dtype: DtypeLike | None = None) -> NDArray:
        """Return a NumPy array, reshaped and converted if a shape or dtype is given."""
        array = self.numpy()
        if shape is not None:
            wanted = checked_shape(shape, "to_array")
            if math.prod(wanted) != array.size:
                raise ShapeError.invalid("to_array", "shape", f"of {array.size} elements", wanted)
            array = array.reshape(wanted)
        if dtype is not None:
            array = array.astype(NUMPY[dtype_name(dtype, call="to_array")], copy=False)
        return array

    # writing ----------------------------------------------------------------------------------
    def write(self, data: ArrayLike) -> None:
        """Replace the contents. ``data`` must have as many elements as the buffer."""
        self.storage("write")
        self.check_writable("write")
        array = to_dtype(as_array(data, "write"), self.dtype, "write")
        if array.size != self.size:
            expected = f"{self.size} elements, as the buffer {self.shape} has"
            raise ShapeError.invalid("write", "data", expected, array.size)
        storage = self.storage_to_write("write")
        self.engine.upload(storage, array.reshape(-1).view(np.uint8).data)

    def check_writable(self, call: str) -> None:
        """Raise ReadOnlyError if the buffer wraps read-only memory."""
        if self.readonly:
            raise ReadOnlyError(
                f"{call}: the buffer shares read-only memory. Copy it first: buffer(np.array(x))."
            )

    def to(self, device: str) -> Buffer:
        """Return a copy on another device, or the buffer itself if it is already there."""
        engine = auto.get(device)
        self.storage("to")
        if engine is self.engine:
            return self
        check_dtype(engine, self.dtype, "to")
        return self._copied(engine, "to")

    # copies -----------------------------------------------------------------------------------
    def __copy__(self) -> Buffer:
        """Return a buffer on the same device with a copy of the contents."""
        return self._copied(self.engine, "copy")

    def _copied(self, engine: Engine, call: str) -> Buffer:
        storage = self.storage(call)
        made = allocate(engine, self.shape, self.dtype, zero=False, call=call)
        if engine is self.engine:
            engine.copy(storage, made.storage(call))
        elif self.nbytes:
            engine.upload(made.storage(call), self._bytes(call))
        return made

    def __deepcopy__(self, memo: dict[int, object]) -> Buffer:
        return self.__copy__()

    def __reduce__(self) -> tuple[Callable[..., Buffer], tuple[NDArray, str]]:
        if self.engine.host_view(self.storage("pickle")) is None:
            raise DeviceError(
                f"pickle: a buffer on {self.device} belongs to this process. Pickle its values: "
                "buffer.numpy(), or buffer.to('cpu')."
            )
        return _restored, (self.numpy(), self.device)

    # freeing ----------------------------------------------------------------------------------
    def free(self) -> None:
        """Free the memory. Freeing twice is allowed.

        Expressions that read the buffer are computed first.
        """
        if self._storage is not None and self._storage.reader is not None:
            settle(self._storage)
        self._release()

    def _release(self) -> None:
        storage, self._storage, self._key, self.node = self._storage, None, None, None
        if storage is not None:
            if storage.accounts:
                memory.release("buffer", self.engine.id, storage.nbytes, storage.accounts)
            else:
                nbytes = 0 if storage.foreign else storage.nbytes
                resources.untrack("buffer", self.engine.id, nbytes)
            self.engine.release(storage)

    def close(self) -> None:
        """Free the memory, like :meth:`free`."""
        self.free()

    def __del__(self) -> None:
        # __init__ may have failed, or the interpreter may be exiting.
        # Nothing reads it: expressions keep their operands alive.
        try:  # noqa: SIM105 - twice as fast as suppress(), and every buffer runs this
            self._release()
        except Exception:
            pass


class BorrowedBuffer(Buffer):
    """A read-only view of another buffer, which it keeps alive.

    ``dala.diagnostics()`` counts only the owner of the memory.
    """

    __slots__ = ("_owner",)

    def __init__(self, owner: Buffer) -> None:
        self.engine, self.shape, self.dtype = owner.engine, owner.shape, owner.dtype
        self.nbytes, self.readonly, self.transient = owner.nbytes, True, False
        self.node, self.origin = None, ""
        self._storage, self._key = owner.storage("BorrowedBuffer"), owner._key
        self._owner: Buffer | None = owner

    def free(self) -> None:
        """Drop the reference to the owner. Freeing twice is allowed."""
        if self._storage is not None and self._storage.reader is not None:
            settle(self._storage)
        self._storage, self._key, self._owner = None, None, None

    def __del__(self) -> None:
        """Do nothing: the memory belongs to the owner."""


def _restored(array: NDArray, device: str) -> Buffer:
    """Return a buffer from the state that :meth:`Buffer.__reduce__` keeps."""
    made = allocate(
        auto.get(device), array.shape, dtype_name(array.dtype, call="pickle"), zero=False,
        call="pickle",
    )  # fmt: skip
    made.write(array)
    return made


def settle(storage: Storage) -> None:
    """Compute the expressions that read a storage, before it is written or released."""
    from dala.gpu.compute.arrays import graph

    graph.settle(storage)


def lazy(node: Expression) -> Buffer:
    """Return a buffer whose values are computed when they are needed."""
    made = Buffer.__new__(Buffer)
    made.engine, made.shape, made.dtype = node.engine, node.shape, node.dtype
    made.nbytes = math.prod(node.shape) * ITEMSIZE[node.dtype]
    made.readonly = made.transient = False
    made._storage, made._key = None, None
    made.node, made.origin = node, ""
    node.owner = weakref.ref(made)
    return made


def hand_over(made: Buffer, owner: Buffer, origin: str) -> Buffer:
    """Move the memory of a new buffer to the buffer of an expression, and return that."""
    owner._storage, owner._key = made._storage, made._key
    owner.node, owner.origin = None, origin
    made._storage, made._key = None, None
    return owner


def reshaped_view(b: Buffer, shape: tuple[int, ...]) -> Buffer:
    """Return a read-only view of a buffer with another shape."""
    view = BorrowedBuffer(b)
    relabel(view, shape)
    return view


def relabel(b: Buffer, shape: tuple[int, ...]) -> None:
    """Change the shape of a buffer whose elements are filled in another shape."""
    storage = b.storage("reshape")
    b.shape, b._key = shape, (b.engine, b.dtype, shape, storage.foreign)


def evaluated(buffers: Sequence[Buffer]) -> bool:
    """Compute the expressions among some buffers; return False if there are none."""
    found = False
    for b in buffers if isinstance(buffers, list | tuple) else ():
        if isinstance(b, Buffer) and b.node is not None:
            b.storage("run_kernel")
            found = True
    return found


def span(engine: Engine, storage: Storage) -> tuple[int, int] | None:
    """Return the start and end address of memory, or None for memory that only we know."""
    handle = storage.handle
    if type(handle) is Memory:
        return handle.address, handle.address + storage.nbytes
    if engine.sharing is not None:
        if not (storage.foreign or storage.exposed):
            return None
        start = engine.sharing.address_of(storage)
        return start, start + storage.nbytes
    view = engine.host_view(storage)
    if view is None:
        return None
    start = int(np.frombuffer(view, np.uint8).__array_interface__["data"][0])
    return start, start + storage.nbytes


def overlap(a: Buffer, b: Buffer) -> bool:
    """Return True if two buffers share memory."""
    one, other = a._storage, b._storage
    if one is None or other is None:
        return False  # using the freed buffer raises later
    if one is other:
        return True
    if not (one.foreign or other.foreign) or not (a.nbytes and b.nbytes):
        return False
    here, there = span(a.engine, one), span(b.engine, other)
    return here is not None and there is not None and here[0] < there[1] and there[0] < here[1]


def check_dtype(engine: Engine, dtype: str, call: str) -> None:
    """Raise UnsupportedDtype if the device does not support a dtype."""
    if dtype not in engine.dtypes:
        instead, does = NARROWER[dtype]
        raise UnsupportedDtype(
            f"{call}: {engine.info().get('name', engine.id)} ({engine.id}) does not support "
            f"{dtype!r}, only {', '.join(sorted(engine.dtypes))}. Use dtype={instead!r}; for an "
            f"array, x.astype(np.{NUMPY[instead].name}) {does}. Or use device='cpu'.",
            call=call,
            argument="dtype",
        )


def allocate(
    engine: Engine, shape: tuple[int, ...], dtype: str, *, zero: bool, call: str
) -> Buffer:
    """Allocate a buffer on an engine, or raise a BufferTooLarge that names the limit."""
    nbytes = check_size(engine, shape, dtype, call)
    counted = nbytes >= memory.EXACT_FROM or resources.too_many or bool(accounts_here())
    accounts = memory.reserve("buffer", engine.id, nbytes, call) if counted else ()
    try:
        storage = engine.allocate(nbytes, zero=zero)
    except BaseException as error:
        if counted:
            memory.release("buffer", engine.id, nbytes, accounts)
        if isinstance(error, MemoryError) and not isinstance(error, BufferTooLarge):
            raise BufferTooLarge(
                f"{call}: {engine.id} has no {nbytes:,} bytes left for shape {shape} of {dtype!r}. "
                "Free buffers, or split the data."
            ) from None
        raise
    storage.accounts = accounts
    return Buffer(engine, storage, shape, dtype, counted=counted)


def check_size(engine: Engine, shape: tuple[int, ...], dtype: str, call: str) -> int:
    """Return the bytes of a buffer, or raise a BufferTooLarge that names the limit."""
    nbytes = math.prod(shape) * ITEMSIZE[dtype]
    limit, what = engine.max_buffer_bytes, "allows buffers of"
    named = f" ({engine.max_buffer_name})" if engine.max_buffer_name else ""
    if limit is None:
        limit, what = memory.machine_bytes(), "has memory for"
    if nbytes > limit:
        raise BufferTooLarge(
            f"{call}: shape {shape} of {dtype!r} needs {nbytes:,} bytes; "
            f"{engine.info().get('name', engine.id)} ({engine.id}) {what} at most "
            f"{limit:,}{named}. Split the data, or use a narrower dtype."
        )
    return nbytes
