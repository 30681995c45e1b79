"""A CUDA device with the calls of a ``wgpu.GPUDevice`` that the engine makes.

Commands are recorded in a list, and go to the stream when they are submitted. A kernel's uniform
block is one of its parameters, so uniform buffers are memory of the host.
"""

from __future__ import annotations

import ctypes
import struct
from collections import OrderedDict, deque
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from dala.errors import DeviceError
from dala.gpu.compute.engines.webgpu.calls.public import Mapping, MapToken, PublicCalls
from dala.gpu.compute.engines.webgpu.cuda.api import CudaApi, CudaFunction, CudaGraph
from dala.gpu.compute.engines.webgpu.cuda.ptx import CompiledShader, compile_shader
from dala.gpu.compute.engines.webgpu.pool import USAGE

if TYPE_CHECKING:
    import numpy.typing as npt

    from dala.gpu.compute.engines.cpu.memory import Memory
    from dala.gpu.compute.engines.webgpu.calls.public import ShaderChecks

#: Buffers that the host reads, writes, or that hold uniform blocks.
_HOST: Final = USAGE["MAP_READ"] | USAGE["MAP_WRITE"] | USAGE["UNIFORM"] | USAGE["QUERY_RESOLVE"]

#: The most rows of workgroups in a dispatch.
MAX_ROWS: Final = 65535

#: Something to do on the stream: a function and its arguments. Equal commands do the same.
Command: TypeAlias = tuple[Any, ...]

#: The function of a dispatch that is not packed yet.
_LAUNCH: Final = None

#: The fewest commands of a plan that become a graph when they are done again, and the most graphs
#: and plans that are remembered.
MIN_GRAPH: Final = 2
MAX_GRAPHS: Final = 64


class CudaBuffer:
    """Memory of the GPU, or of the host if the host uses it."""

    def __init__(self, api: CudaApi, size: int, *, host: bool) -> None:
        self.size = size
        self.host = host
        self._api = api
        self.address = api.allocate_host(size) if host else api.allocate(size)
        if not host:
            api.clear(self.address, size)

    def __del__(self) -> None:
        if "address" in self.__dict__:
            with suppress(Exception):  # the device was lost or closed, and its memory with it
                (self._api.free_host if self.host else self._api.free)(self.address)

    def memory(self, nbytes: int) -> npt.NDArray[np.uint8]:
        """Return the memory of the host as an array."""
        return np.frombuffer((ctypes.c_uint8 * nbytes).from_address(self.address), np.uint8)

    def read_mapped(self, start: int, nbytes: int, *, copy: bool) -> memoryview:
        """Return memory of the host; it stays valid until it is unmapped."""
        return memoryview(self.memory(start + nbytes)[start:])

    def unmap(self) -> None:
        """Nothing to do: memory of the host stays mapped."""


class CudaGroup:
    """Buffers bound together: their addresses and sizes, as kernels take them."""

    def __init__(self, entries: list[dict[str, Any]]) -> None:
        self.resources = [entry["resource"] for entry in entries]
        #: The ids of the buffers.
        self.ids = {id(resource["buffer"]) for resource in self.resources}
        self.uniform: CudaBuffer = self.resources[-1]["buffer"]
        self.packed: dict[tuple[int, ...], bytes] = {}

    def pack(self, storage: tuple[int, ...]) -> bytes:
        """Return the parameters of a kernel without its block."""
        found = self.packed.get(storage)
        if found is None:
            buffers = [self.resources[binding]["buffer"] for binding in storage]
            found = b"".join(struct.pack("<QQ", b.address, b.size) for b in buffers)
            self.packed[storage] = found
        return found


class CudaPipeline:
    """A kernel that was loaded."""

    def __init__(self, api: CudaApi, shader: CompiledShader) -> None:
        self.shader = shader
        self._api = api
        self.function: CudaFunction = api.load(shader.ptx.encode())

    def __del__(self) -> None:
        if "function" in self.__dict__:
            with suppress(Exception):  # the device was lost or closed, and its kernels with it
                self._api.unload(self.function)


class CudaTimes:
    """The time stamps of a query set."""

    def __init__(self, count: int) -> None:
        self.events: list[Any] = [None] * count


class CudaClock:
    """The seconds of events since a first one. The driver counts from event to event in floats."""

    def __init__(self, api: CudaApi) -> None:
        self._api = api
        self._base: Any = None
        self._seconds = 0.0

    def start(self) -> None:
        """Begin to count, if it was not begun."""
        if self._base is None:
            self._base = self._api.event(timed=True)

    def read(self, events: list[Any]) -> list[float]:
        """Wait for events, return their seconds, and release them."""
        found = [self._seconds + self._api.elapsed(self._base, event) for event in events]
        for event in (self._base, *events[:-1]):
            self._api.release(event)
        self._base, self._seconds = events[-1], found[-1]
        return found


class CudaCommands(NamedTuple):
    """What was recorded: the commands, where plans begin and end, and what the commands use."""

    commands: list[Command]
    plans: list[int]
    held: list[Any]


class CudaEncoder:
    """Records commands; also a compute pass of itself."""

    def __init__(self, device: CudaDevice) -> None:
        self._device = device
        self._api = device.api
        self.commands: list[Command] = []
        self.plans = [0] if device.in_plan else []
        self._held: list[Any] = []
        self._last: tuple[CudaTimes, int] | None = None

    def begin_compute_pass(self, *, timestamp_writes: dict[str, Any] | None = None) -> CudaEncoder:
        """Begin a pass, with time stamps at both ends if they are asked for."""
        if timestamp_writes is not None:
            times = timestamp_writes["query_set"]
            self._stamp(times, timestamp_writes["beginning_of_pass_write_index"])
            self._last = times, timestamp_writes["end_of_pass_write_index"]
        return self

    def end(self) -> None:
        """End a pass."""
        if self._last is not None:
            self._stamp(*self._last)
            self._last = None

    def _stamp(self, times: CudaTimes, index: int) -> None:
        def run() -> None:
            times.events[index] = self._api.event(timed=True)

        self.commands.append((run,))

    def clear_buffer(self, buffer: CudaBuffer) -> None:
        """Write zeros."""
        self.commands.append((self._api.clear, buffer.address, buffer.size))
        self._held.append(buffer)

    def copy_buffer_to_buffer(
        self, source: CudaBuffer, start: int, target: CudaBuffer, at: int, nbytes: int
    ) -> None:
        """Copy bytes."""
        places = target.address + at, source.address + start
        self.commands.append((self._api.copy, *places, nbytes))
        self._held += (source, target)

    def copy_rows(
        self, source: Any, pitch: int, target: CudaBuffer, nbytes: int, count: int
    ) -> None:
        """Copy rows of ``nbytes`` bytes that are ``pitch`` bytes apart, to one after another."""
        places = target.address, source.address
        self.commands.append((self._api.copy_rows, *places, pitch, nbytes, count))
        self._held += (source, target)

    def resolve_query_set(
        self, times: CudaTimes, first: int, count: int, target: CudaBuffer, at: int
    ) -> None:
        """Write time stamps in nanoseconds."""

        def run() -> None:
            seconds = self._device.clock.read(times.events[first : first + count])
            stamps = (np.array(seconds) * 1e9).astype(np.uint64)
            target.memory(target.size)[at : at + stamps.nbytes] = stamps.view(np.uint8)

        self.commands.append((run,))

    def finish(self) -> CudaCommands:
        """Return the commands.

        Raises:
            RuntimeError: the device was destroyed.
        """
        if self._device.destroyed:
            raise RuntimeError("the device is lost: it was destroyed")
        return CudaCommands(self.commands, self.plans, self._held)


class CudaQueue:
    """Writes from the host, in order with submits."""

    def __init__(self, device: CudaDevice) -> None:
        self._device = device

    def write_buffer(self, buffer: CudaBuffer, start: int, data: Any) -> None:
        """Write bytes. The data may change after the call."""
        source = np.frombuffer(data, np.uint8)
        if buffer.host:
            buffer.memory(buffer.size)[start : start + source.size] = source
            return
        self._device.wait_for_reads({id(buffer)})
        # Memory that is not pinned is copied before the call returns.
        self._device.api.copy(buffer.address + start, source.ctypes.data, source.size)


class CudaDevice:
    """What the engine uses of a ``wgpu.GPUDevice``."""

    def __init__(self, api: CudaApi, capability: int, features: frozenset[str]) -> None:
        self.api = api
        self.capability = capability
        self.features = features
        self.clock = CudaClock(api)
        self.destroyed = False
        #: Plans that were done, the latest last, and their graphs if it was more than once.
        self.graphs: OrderedDict[tuple[Command, ...], CudaGraph | None] = OrderedDict()
        #: Whether commands that are recorded belong to a plan.
        self.in_plan = False
        self.queue = CudaQueue(self)
        #: The submits that read buffers back, by the ids of these.
        self.reading: dict[int, int] = {}

    def wait_for_reads(self, ids: set[int] | None = None) -> None:
        """Let later work wait for downloads; only if they read some of these buffers."""
        if self.reading and (ids is None or not self.reading.keys().isdisjoint(ids)):
            self.api.follow(self.api.back)

    def create_buffer(
        self, *, size: int, usage: int, mapped_at_creation: bool = False
    ) -> CudaBuffer:
        """Return new memory; the GPU's is zero."""
        return CudaBuffer(self.api, size, host=bool(usage & _HOST))

    def create_command_encoder(self) -> CudaEncoder:
        """Return an encoder."""
        return CudaEncoder(self)

    def create_query_set(self, *, type: str, count: int) -> CudaTimes:
        """Return time stamps."""
        self.clock.start()
        return CudaTimes(count)

    def create_bind_group_layout(self, *, entries: list[dict[str, Any]]) -> None:
        """Layouts have no meaning here: parameters are packed by the shader."""

    def create_pipeline_layout(self, *, bind_group_layouts: list[Any]) -> None:
        """Layouts have no meaning here."""

    def create_bind_group(self, *, layout: None, entries: list[dict[str, Any]]) -> CudaGroup:
        """Return buffers bound together."""
        return CudaGroup(entries)

    def create_compute_pipeline(self, *, layout: None, compute: dict[str, Any]) -> CudaPipeline:
        """Return a kernel."""
        return CudaPipeline(self.api, compute["module"])

    def destroy(self) -> None:
        """Release the context."""
        self.graphs.clear()
        self.destroyed = True
        self.api.close()


class CudaCalls(PublicCalls):
    """The calls of the engine for a CUDA device. For the owner's thread only."""

    def __init__(self, device: CudaDevice) -> None:
        super().__init__(device)
        self._api = device.api
        self._capability = device.capability
        #: Submits in flight: the number, what is reached when it is done, and the commands, which
        #: hold what the GPU uses.
        self._events: deque[tuple[int, Any, Any]] = deque()
        self._mapped: deque[tuple[int, MapToken]] = deque()
        self._repeats = {self._api.launch, self._api.copy, self._api.clear}

    def close(self) -> None:
        self._events.clear()
        self._mapped.clear()
        super().close()

    def translate(self, code: str, checks: ShaderChecks) -> object:
        return compile_shader(code, checks, self._capability)

    def shader_module(self, code: str, checks: ShaderChecks) -> Any:
        return self.translate(code, checks)

    def record(
        self, encoder: Any, pipeline: Any, group: Any, offset: int, across: int, down: int
    ) -> None:
        if down > MAX_ROWS:
            raise DeviceError(
                f"dispatch: there must be at most {MAX_ROWS} rows of workgroups on CUDA, "
                f"got {down} of {across}. Split the work into several calls."
            )
        encoder.commands.append((_LAUNCH, pipeline, group, offset, (across, down)))

    def _launch(
        self, pipeline: CudaPipeline, group: CudaGroup, offset: int, grid: tuple[int, int]
    ) -> Command:
        """Return the command of a dispatch, with its uniform block as it is now."""
        shader, packed = pipeline.shader, group.pack(pipeline.shader.storage)
        if shader.block:
            packed += ctypes.string_at(group.uniform.address + offset, shader.block)
        return self._api.launch, pipeline.function, grid, shader.workgroup, packed

    def mark_plan(self, encoder: Any, begins: bool) -> None:
        self.device.in_plan = begins
        if encoder is not None:
            encoder.plans.append(len(encoder.commands))

    def submit(self, commands: Any) -> int:
        if self.device.reading:
            self.device.wait_for_reads(_ids_of(commands))
        made = [c if c[0] is not _LAUNCH else self._launch(*c[1:]) for c in commands.commands]
        at, ends = 0, [*commands.plans, len(made)]
        for begin, end in zip(ends[::2], ends[1::2], strict=False):
            _do(made[at:begin])
            self._repeat(tuple(made[begin:end]), commands.held)
            at = end
        _do(made[at:])
        self.submitted += 1
        self._events.append((self.submitted, self._api.event(), commands))
        return self.submitted

    def _repeat(self, plan: tuple[Command, ...], held: list[Any]) -> None:
        """Do the commands of a plan; by a graph if they are the same as before."""
        if len(plan) < MIN_GRAPH or not self._repeats.issuperset([c[0] for c in plan]):
            _do(plan)
            return
        graphs = self.device.graphs
        if plan in graphs and graphs[plan] is None:
            graphs[plan] = self._api.capture(partial(_do, plan))
        graph = graphs.setdefault(plan, None)
        graphs.move_to_end(plan)
        if len(graphs) > MAX_GRAPHS:
            graphs.popitem(last=False)
        if graph is None:
            _do(plan)
            return
        held.append(graph)  # until its work has ended
        self._api.launch_graph(graph)

    def read_back(self, buffer: CudaBuffer, start: int, memory: Memory, nbytes: int) -> None:
        """Copy a buffer to pinned memory, while later work goes on that does not use it."""
        event = self._api.read_back(memory.address, buffer.address + start, nbytes)
        self.submitted += 1
        self.device.reading[id(buffer)] = self.submitted
        self._events.append((self.submitted, event, (buffer, memory)))

    def poll(self) -> None:
        while self._events and self._api.reached(self._events[0][1]):
            self.finished, _, held = self._events.popleft()
            if self.device.reading.get(id(held[0])) == self.finished:
                del self.device.reading[id(held[0])]
        while self._mapped and self._mapped[0][0] <= self.finished:
            self._mapped.popleft()[1].set_done()

    def map_to_read(self, buffer: Any, size: int) -> Mapping:
        return self.map_to_write(buffer)

    def map_to_write(self, buffer: Any) -> Mapping:
        token = MapToken()
        self._mapped.append((self.submitted, token))
        return token, _Done()

    def memory(self, buffer: Any, nbytes: int) -> npt.NDArray[np.uint8]:
        found: npt.NDArray[np.uint8] = buffer.memory(nbytes)
        return found

    def unmap(self, buffer: Any, memory: npt.NDArray[np.uint8]) -> None:
        pass

    def timestamp_period(self) -> float:
        return 1e-9


def _ids_of(commands: CudaCommands) -> set[int]:
    """Return the ids of all buffers that commands use."""
    groups = [command[2].ids for command in commands.commands if command[0] is _LAUNCH]
    return set().union(map(id, commands.held), *groups)


def _do(commands: Sequence[Command]) -> None:
    for work, *arguments in commands:
        work(*arguments)


class _Done:
    """The promise of memory that is always mapped."""

    def sync_wait(self) -> None:
        """Return at once."""
