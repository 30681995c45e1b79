"""The interface of an engine, which allocates memory and runs programs and operations.

Callers check all arguments first: shapes match, dtypes are supported, and buffers are not freed and
belong to this engine. Engines know about the IR, storage and operations, and nothing above them.
"""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from dala.gpu.compute.lang.ir import Program
from dala.resources import Account
from dala.typing import NDArray

if TYPE_CHECKING:
    from concurrent.futures import Future as ConcurrentFuture

    from dala.gpu.compute.engines.compositing import Composer
    from dala.gpu.compute.params import CheckedValues

#: C-contiguous host memory.
Bytes: TypeAlias = bytes | bytearray | memoryview

#: Parameter values in the order of ``Program.params``.
Values: TypeAlias = tuple[int | float, ...]


@dataclass(eq=False)
class Storage:
    """A block of memory on an engine; only the engine knows the meaning of ``handle``."""

    nbytes: int
    handle: Any  # the type depends on the engine
    #: True if the memory is shared with other code, through DLPack or the buffer protocol.
    foreign: bool = False
    #: The node of an expression that reads it, see :mod:`dala.gpu.compute.arrays.graph`.
    reader: weakref.ref[Any] | None = None
    #: Returns the array behind all views of its host memory that were handed out, or True while
    #: another library uses its GPU memory; None after that.
    exposed: Callable[[], Any] | None = None
    #: The memory budgets that it counts against, beside that of the process.
    accounts: tuple[Account, ...] = ()


@dataclass(frozen=True)
class Geometry:
    """The positions a program runs over, and the strides of each element argument.

    ``dims`` are the extents, outermost first, never empty. Unless the program uses positions, axes
    along which every argument is contiguous are merged, so a plain elementwise call has one axis.
    ``strides[i]`` are the strides of argument i along ``dims``, in elements: 0 where it is
    broadcast, and 0 or 1 for the last axis. They are ``()`` for arguments that are not *element*
    arguments. The output is contiguous over ``dims`` (and its channels).
    """

    dims: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]
    #: Shapes of the inputs and the output before merging, for ``dim`` operations and image reads.
    shapes: tuple[tuple[int, ...], ...]
    out_shape: tuple[int, ...]

    @property
    def count(self) -> int:
        """The number of positions."""
        return prod(self.dims)

    def extent(self, argument: int, axis: int) -> int:
        """Return the size of an argument (-1: the output) along an axis, as ``dim`` defines it."""
        shape = self.out_shape if argument < 0 else self.shapes[argument]
        return (shape or (1,))[axis]

    @property
    def layout(self) -> tuple[int, tuple[int, ...]]:
        """The part that generated code depends on: the number of axes and innermost strides."""
        return len(self.dims), tuple(s[-1] if s else -1 for s in self.strides)


@dataclass(frozen=True)
class Tensor:
    """The shape and dtype of a buffer."""

    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, eq=False)
class Task:
    """A checked call of an operation.

    ``values`` are all parameters, in order of declaration. ``define`` is the definition that the
    reference engine runs: it takes NumPy arrays and returns the output as an array, with at least
    the output's precision.
    """

    op: str
    inputs: tuple[Tensor, ...]
    output: Tensor
    values: CheckedValues
    define: Callable[..., NDArray] | None
    #: The module that declares the operation, without its package. An engine's code for it is in
    #: the module of that name, or in one named after the operation.
    domain: str = ""
    #: True for an operation whose definition every engine runs on the host.
    host: bool = False

    def __getitem__(self, param: str) -> Any:  # the type depends on the parameter
        """Return the value of a parameter."""
        for name, value in self.values:
            if name == param:
                return value
        raise KeyError(param)

    @property
    def key(self) -> tuple[object, ...]:
        """A key that is equal for tasks that do the same work."""
        return self.op, self.inputs, self.output, self.values


@dataclass(frozen=True, eq=False)
class Link:
    """One stage of a chain: a pixel or image program, or a task. All have the same image size.

    ``sources[i]`` says where input i comes from: a chain input by index, or ``-1 - j`` for the
    result of stage j. ``store`` is the index of an additional output for the stage's result (passed
    to the runner among its inputs), or None. The result of the last stage is the chain's output.
    """

    work: Program | Task
    sources: tuple[int, ...]
    out: Tensor
    store: int | None = None


class SharedTensor(NamedTuple):
    """Another library's tensor as storage."""

    storage: Storage
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    readonly: bool


class PassTimes(Protocol):
    """Durations of passes, from device timestamps."""

    #: Duration of each pass in seconds.
    passes: list[float]

    def mark(self) -> None:
        """End a pass."""


#: Facts about a device by name.
Info: TypeAlias = dict[str, str | int | Sequence[str] | Mapping[str, int] | None]

#: Runs prepared work: (inputs, output, parameter values).
Runner: TypeAlias = Callable[[Sequence[Storage], Storage, Values], None]


class Engine(ABC):
    """The interface to one device: allocates memory, copies data, runs programs and operations."""

    #: "cpu", "reference", "null", "webgpu:N" or "cuda:N".
    id: str
    #: The kind: "cpu", "reference", "null" or "webgpu".
    backend: str
    #: dtypes that buffers and programs may use.
    dtypes: frozenset[str]
    #: True for graphics hardware.
    gpu: bool = False
    #: True if fusing an operation with its neighbors is faster than the engine's code for it.
    fuses_operations: bool = False
    #: True if runners enqueue work and return before it is done.
    queued: bool = False
    #: How :meth:`chain` runs its stages, for ``Pipeline.explain()``.
    chain_method: str = "one pass"
    #: The largest buffer in bytes, or None if only memory limits it.
    max_buffer_bytes: int | None = None
    #: The device's name for that limit, for errors.
    max_buffer_name: str = ""
    #: The module that shares memory with other libraries on the same GPU; None on other devices.
    sharing: Any = None
    #: The most inputs of a kernel that an expression is fused into.
    max_inputs: int = 7
    #: The most inputs that a pass reads without copying some; None for any number.
    max_bound_inputs: int | None = None

    @property
    def lost(self) -> bool:
        """True if the device is lost and a new engine is needed."""
        return False

    @abstractmethod
    def info(self) -> Info:
        """Return ``name``, ``gpu``, ``backend`` and other facts about the device."""

    # memory -----------------------------------------------------------------------------------
    @abstractmethod
    def allocate(self, nbytes: int, *, zero: bool) -> Storage:
        """Allocate memory, with undefined content unless ``zero``. ``nbytes`` may be 0."""

    @abstractmethod
    def release(self, storage: Storage) -> None:
        """Release memory. Safe in any thread and in finalizers; never blocks or raises."""

    @abstractmethod
    def upload(self, storage: Storage, data: Bytes) -> None:
        """Copy ``nbytes`` bytes of host memory to the storage, in order with other work."""

    @abstractmethod
    def download(self, storage: Storage) -> memoryview:
        """Wait for earlier work on the storage, and return a copy of its bytes (format "B")."""

    def download_async(self, storage: Storage) -> ConcurrentFuture[memoryview]:
        """Start a :meth:`download` after the work enqueued so far, and return its future."""
        from concurrent.futures import Future

        done: ConcurrentFuture[memoryview] = Future()
        done.set_result(self.download(storage))
        return done

    @abstractmethod
    def copy(self, source: Storage, target: Storage) -> None:
        """Copy ``source`` to ``target`` (of the same size), in order with other work."""

    def host_view(self, storage: Storage) -> memoryview | None:
        """Return the memory as a writable view (format "B"), or None if it is not on the host."""
        return None

    def adopt(self, memory: memoryview) -> Storage | None:
        """Wrap the caller's host memory as storage without a copy; None if that is impossible.

        Read-only memory is allowed if the storage is never used as an output.
        """
        return None

    # work -------------------------------------------------------------------------------------
    @abstractmethod
    def prepare(self, program: Program, geometry: Geometry) -> Runner:
        """Compile the program, or find its cached code, and return a runner for the geometry.

        A runner may be called from any thread, any number of times. Element arguments, and pixels
        with the output's channels, may be the output itself; image and array arguments never are.
        The runner returns when the work is done or, on engines with a queue, when it is enqueued.
        """

    @abstractmethod
    def operate(self, task: Task) -> Runner | None:
        """Return a runner for an operation, or None if the engine has no code for this task.

        The runner ignores its parameters; they are in the task. Other parameter values recompile
        only if the code depends on them.
        """

    def chain(self, links: Sequence[Link], inputs: Sequence[Tensor]) -> Runner | None:
        """Return a runner that runs a chain of stages as one pass, with intermediates in caches.

        ``inputs`` describes the chain's inputs, followed by the outputs that links store to. The
        runner's parameters are those of the links' programs, concatenated. Returns None if the
        engine cannot run the chain as one pass, or not faster; the stages then run one by one.
        """
        return None

    def prefers_chain(self, producer: Program, consumer: Program) -> bool:
        """Return True if two programs are faster as links of a chain than fused into one."""
        return False

    @abstractmethod
    def source(self, program: Program, geometry: Geometry) -> str:
        """Return the code generated for a program, for display."""

    def composer(self) -> Composer:
        """Return a new composer, which draws pictures onto pictures."""
        from dala.gpu.compute.engines.reference.compositor import HostComposer

        return HostComposer(self)

    def name_work(self, name: str, frame: int | None) -> None:  # noqa: B027 - most have no queue
        """Give the work that is enqueued from now on a name in the trace, and its frame."""

    def batched(self) -> AbstractContextManager[None]:
        """Return a context manager that submits the work started in its block together."""
        return nullcontext()

    def profile(self) -> AbstractContextManager[PassTimes | None]:
        """Return a context manager that times the work started in its block on the device.

        Its value is None if the device has no timestamps. Otherwise call ``mark()`` after each
        pass; after the block, ``passes`` has the duration of each pass in seconds.
        """
        return nullcontext()

    def synchronize(self) -> None:  # noqa: B027 - most engines have no queue
        """Wait for all enqueued work, and raise the first error in it."""

    def stats(self) -> dict[str, int]:
        """Return counters for ``dala.diagnostics()``, such as ``live_buffers``, ``live_bytes``."""
        return {}

    def close(self) -> None:  # noqa: B027 - most engines hold nothing
        """Release everything; called at interpreter exit."""
