"""The contract of an engine: memory, and programs prepared for a geometry. Nothing else.

Everything above an engine has checked the call before it gets here: shapes fit, dtypes are
supported, buffers are alive and live on this engine. Engines know IR and storage only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from dala.gpu.compute.lang.ir import Program

if TYPE_CHECKING:
    from concurrent.futures import Future as ConcurrentFuture

    from dala.gpu.compute.engines.compositing import Composer

#: Anything with the buffer protocol, C-contiguous.
Bytes: TypeAlias = Any


@dataclass(eq=False)
class Storage:
    """Memory on an engine. ``handle`` is the engine's own; ``nbytes`` what the buffer asked for."""

    nbytes: int
    handle: Any
    #: True when the memory belongs to somebody else (shared through DLPack or the buffer protocol).
    foreign: bool = False


@dataclass(frozen=True)
class Geometry:
    """The positions a program runs over, and how each element argument walks along them.

    ``dims`` are the positions' extents, outermost first, never empty; axes that walk alike have
    been merged unless the program uses positions, so a plain elementwise call has one axis.
    ``strides[i]`` belongs to argument i: for an *element* argument its step in elements along each
    of ``dims`` (0 where it is broadcast), ending in 0 or 1; for every other kind, ``()``.
    The output is always dense over ``dims`` (times its channels).
    """

    dims: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]
    #: Full shapes of the inputs and the output, as ``dim`` operations and image reads see them.
    shapes: tuple[tuple[int, ...], ...]
    out_shape: tuple[int, ...]

    @property
    def count(self) -> int:
        total = 1
        for d in self.dims:
            total *= d
        return total

    @property
    def layout(self) -> tuple[int, tuple[int, ...]]:
        """What generated code depends on: number of axes, and each element's innermost step."""
        return len(self.dims), tuple(s[-1] if s else -1 for s in self.strides)


@dataclass(frozen=True)
class Tensor:
    """What an engine needs to know of a buffer before it sees one."""

    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, eq=False)
class Task:
    """One call of an operation (a kernel with code of its own on each engine), checked.

    ``values`` are its parameters, in the order the operation declares them, every one checked and
    filled in. ``define`` is the definition: arrays in, the output's array out (NumPy, any float
    precision at least the output's); the reference engine runs it.
    """

    op: str
    inputs: tuple[Tensor, ...]
    output: Tensor
    values: tuple[tuple[str, Any], ...]
    define: Callable[..., Any]
    #: The module that declares the operation, without its package; engines look there for code.
    domain: str = ""
    #: True for an operation that every engine runs on the host, by its definition.
    host: bool = False

    def __getitem__(self, param: str) -> Any:
        """The value of a parameter."""
        for name, value in self.values:
            if name == param:
                return value
        raise KeyError(param)

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal exactly for tasks that do the same work."""
        return self.op, self.inputs, self.output, self.values


@dataclass(frozen=True, eq=False)
class Link:
    """One stage of a chain: pixel and image programs, or tasks, over one height and width.

    ``sources[i]`` says where input i comes from: a number n from 0 on is the chain's n-th outside
    input; -1 - j is what stage j made. ``store`` is where the result is kept besides: the number of
    an outside *output*, which the runner finds among its inputs, or None if nobody asks for it. The
    last stage's result is the chain's output.
    """

    work: Program | Task
    sources: tuple[int, ...]
    out: Tensor
    store: int | None = None


#: Runs prepared work: (inputs, output, parameter values in the order of ``Program.params``).
Runner: TypeAlias = Callable[[Sequence[Storage], Storage, tuple[Any, ...]], None]


class Engine(ABC):
    """One device: allocates, moves bytes, prepares and runs programs."""

    #: "cpu", "reference", "null" or "webgpu:N".
    id: str
    #: The kind: "cpu", "reference", "null" or "webgpu".
    backend: str
    #: dtypes that buffers and programs may use.
    dtypes: frozenset[str]
    #: True for real graphics hardware.
    gpu: bool = False
    #: True where an operation that melts into its neighbours beats the engine's own code for it.
    fuses_operations: bool = False
    #: True where work is enqueued and runners return before it is done.
    queued: bool = False
    #: How :meth:`chain` runs its stages, for ``Pipeline.explain()``.
    chain_method: str = "one pass"
    #: Largest buffer in bytes, or None where only memory is the limit.
    max_buffer_bytes: int | None = None

    @property
    def lost(self) -> bool:
        """True once the device is lost; a new engine is needed then."""
        return False

    @abstractmethod
    def info(self) -> dict[str, Any]:
        """At least ``name``, ``gpu``, ``backend``; whatever else is known about the device."""

    # memory -----------------------------------------------------------------------------------
    @abstractmethod
    def allocate(self, nbytes: int, *, zero: bool) -> Storage:
        """New memory, zeroed if asked. ``nbytes`` may be 0."""

    @abstractmethod
    def release(self, storage: Storage) -> None:
        """Gives memory back. Safe from any thread and finalizer; never blocks, never raises."""

    @abstractmethod
    def upload(self, storage: Storage, data: Bytes) -> None:
        """Fills the storage from host bytes (length equals ``nbytes``). Ordered with other work."""

    @abstractmethod
    def download(self, storage: Storage) -> memoryview:
        """The bytes once all earlier work on them is done: a fresh host copy ("B" format)."""

    def download_async(self, storage: Storage) -> ConcurrentFuture[memoryview]:
        """As :meth:`download`, without waiting; taken after the work enqueued so far."""
        from concurrent.futures import Future

        done: ConcurrentFuture[memoryview] = Future()
        done.set_result(self.download(storage))
        return done

    @abstractmethod
    def copy(self, source: Storage, target: Storage) -> None:
        """Copies all of ``source`` into ``target`` (same nbytes), ordered with other work."""

    def host_view(self, storage: Storage) -> memoryview | None:
        """The storage's own bytes as writable host memory ("B" format), or None if not shared."""
        return None

    def adopt(self, memory: memoryview) -> Storage | None:
        """Storage over the caller's host memory without a copy, or None where that cannot be.

        Read-only memory may be adopted: whoever asks sees to it that it is never an output.
        """
        return None

    # work -------------------------------------------------------------------------------------
    @abstractmethod
    def prepare(self, program: Program, geometry: Geometry) -> Runner:
        """Compiles (or finds) code for the program and returns what runs it over the geometry.

        A runner may be called from any thread, any number of times. Element arguments may be the
        output itself; image, pixel-with-other-channels and array arguments never are. It returns
        when the work is done, or, on engines with a queue of their own, when it is enqueued.
        """

    @abstractmethod
    def operate(self, task: Task) -> Runner | None:
        """As :meth:`prepare` for an operation; its runner takes no parameters, the task has them.

        None where the engine has no code of its own for it. Preparing the same operation with
        other values compiles nothing anew unless the code depends on them.
        """

    def chain(self, links: Sequence[Link], inputs: Sequence[Tensor]) -> Runner | None:
        """One pass for a chain of stages, what lies between them never leaving the caches.

        ``inputs`` describes the outside inputs and then the outside outputs that links store to.
        The runner's parameters are those of the links' programs, one after another. None where the
        engine has no such pass or would gain nothing; the stages are then run one by one.
        """
        return None

    def keeps_apart(self, producer: Program, consumer: Program) -> bool:
        """Whether two programs run sooner as links of a chain than melted into one."""
        return False

    @abstractmethod
    def source(self, program: Program, geometry: Geometry) -> str:
        """The code generated for a program, for people to read."""

    def composer(self) -> Composer:
        """Draws pictures onto pictures; each call gives a new one."""
        from dala.gpu.compute.engines.reference.compositor import HostComposer

        return HostComposer(self)

    def together(self) -> AbstractContextManager[None]:
        """Work begun inside a ``with`` block of this goes to the device at once, if it can."""
        return nullcontext()

    def profile(self) -> AbstractContextManager[Any]:
        """Times the work begun inside a ``with`` block of this by the device's own clock.

        Gives None where the device cannot; else ``mark()`` ends a pass, and ``passes`` holds the
        seconds of each when the block has ended.
        """
        return nullcontext()

    def synchronize(self) -> None:  # noqa: B027 - nothing to wait for unless an engine has a queue
        """Waits for all enqueued work; raises what went wrong in it."""

    def stats(self) -> dict[str, int]:
        """Counters for ``dala.diagnostics()``: at least ``live_buffers`` and ``live_bytes``."""
        return {}

    def close(self) -> None:  # noqa: B027 - most engines hold nothing
        """Gives back everything; used at interpreter exit."""
