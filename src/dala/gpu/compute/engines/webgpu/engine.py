"""The WebGPU engine: Vulkan, Metal, Direct3D 12 and OpenGL through wgpu-py.

The engine can be used from any thread. It checks arguments, generates shaders and packs uniform
blocks on the caller's thread, and makes all native calls on the device's owner thread
(``owner.py``, ``device.py``).
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from dala import forks
from dala.errors import BufferTooLarge, DeviceError, FreedError, UnsupportedDtype
from dala.forks import cached_property
from dala.gpu.compute.engines.base import (
    Bytes,
    Engine,
    Geometry,
    Info,
    Link,
    Runner,
    Storage,
    Task,
    Tensor,
    Values,
)
from dala.gpu.compute.engines.compositing import Composer
from dala.gpu.compute.engines.cpu.memory import HostMemory
from dala.gpu.compute.engines.webgpu.adapters import Adapter
from dala.gpu.compute.engines.webgpu.backlog import Costs
from dala.gpu.compute.engines.webgpu.calls.public import ShaderChecks
from dala.gpu.compute.engines.webgpu.copying import copy_bytes, pieces
from dala.gpu.compute.engines.webgpu.device import UNIFORM_BYTES, NativeDevice
from dala.gpu.compute.engines.webgpu.dispatcher import (
    Dispatcher,
    buffer_of,
    buffers_of,
    probe_loops,
)
from dala.gpu.compute.engines.webgpu.limits import (
    STORAGE_BUFFERS,
    WORKGROUP_MEMORY,
    largest_buffer,
    limits_class,
    within,
    workgroup_bytes,
)
from dala.gpu.compute.engines.webgpu.ops import IMPLEMENTATIONS
from dala.gpu.compute.engines.webgpu.owner import Owner
from dala.gpu.compute.engines.webgpu.pipelines import ComputePipeline
from dala.gpu.compute.engines.webgpu.pool import (
    SOFTWARE_BYTES,
    DeviceBuffer,
    Mapped,
    pool_bytes_from_environment,
    size_class,
)
from dala.gpu.compute.engines.webgpu.staging import STAGING_BYTES, UPLOAD_BYTES
from dala.gpu.compute.engines.webgpu.timing import DispatchTimes
from dala.gpu.compute.engines.webgpu.wgsl.shader import (
    BlockLayout,
    Metering,
    Shader,
    shader_key,
    write_shader,
)
from dala.gpu.compute.lang.ir import Program
from dala.memory import add_card
from dala.trace.recorder import OFF, traced, tracer

if TYPE_CHECKING:
    from dala.gpu.compute.engines.webgpu.cuda.copies.pinned import PinnedMemory

#: The most handles of pipelines that the engine keeps for programs, and for shaders of operations.
MAX_PIPELINES: Final = 256

K = TypeVar("K")
T = TypeVar("T")

#: Allocations up to this size do not wait for the owner; the next wait raises if one failed.
UNCHECKED_BYTES = 1 << 24
#: The same for the memory between the dispatches of an operation, which mostly is the pool's.
UNCHECKED_SCRATCH = 1 << 28

#: Uploads up to this size are copied and enqueued; larger uploads wait for the owner.
QUEUED_BYTES = 1 << 16

#: From this size on, the caller's thread copies to and from mapped memory.
MAPPED_BYTES = 1 << 20


class WebGPUEngine(Engine):
    """The engine of one WebGPU adapter.

    Args:
        adapter: from :func:`~dala.gpu.compute.engines.webgpu.adapters.list_adapters`.
        pool_bytes: limit of free memory in the pool; by default ``DALA_POOL_BYTES``, or 512 MiB.
        staging_bytes: memory for downloads in flight.

    Raises:
        DeviceError: the adapter's device cannot be opened.
        ParameterError: ``DALA_WEBGPU_LIMITS`` is set to something else than a class of limits.
    """

    backend = "webgpu"
    max_buffer_bytes: int
    max_bound_inputs: int
    chain_method = "one dispatch"
    fuses_operations = True
    queued = True
    depends_on_values = depends_on_size = True  # shaders: on parameters, on the number of pixels

    def __init__(
        self, adapter: Adapter, *, pool_bytes: int | None = None, staging_bytes: int | None = None
    ) -> None:
        #: The limits in force, and the class that lowers them: "", "default" or "downlevel".
        self.limits_class = limits_class()
        self.limits = limits = within(adapter.limits, self.limits_class)
        self.id = adapter.id
        self.adapter = adapter
        if adapter.kind == "discrete":
            add_card(adapter.id, adapter.name, adapter.memory_bytes)
        self.dtypes = adapter.dtypes
        self.gpu = not adapter.software
        self.max_buffer_bytes, self.max_buffer_name = largest_buffer(limits)
        self.max_bound_inputs = limits[STORAGE_BUFFERS] - 1
        self.max_inputs = min(self.max_inputs, self.max_bound_inputs)
        #: The size of a workgroup: 256 invocations, or the device's limit if that is lower.
        self.workgroup = min(
            256,
            limits["max-compute-invocations-per-workgroup"],
            limits["max-compute-workgroup-size-x"],
        )
        self._lock = forks.lock()
        self._compiled: dict[tuple[object, ...], tuple[Shader, ComputePipeline]] = {}
        self._shaders: dict[tuple[str, int, int], ComputePipeline] = {}
        self._copies = Costs()
        self._host = HostMemory(STAGING_BYTES)
        #: The thread that makes all native calls of this engine.
        self.owner = Owner(f"{adapter.id} ({adapter.name}, {adapter.backend})")
        if adapter.backend == "CUDA":
            from dala.gpu.compute.engines.webgpu.cuda import sharing

            self.sharing = sharing
            self.owner.after_loss = "Restart the process, which has one CUDA context."
        software = adapter.software
        kept = pool_bytes_from_environment(software=software) if pool_bytes is None else pool_bytes
        if staging_bytes is None:
            staging_bytes = SOFTWARE_BYTES if software else STAGING_BYTES
        try:
            #: The native device, for the owner's thread only.
            self.device = self.owner.call(
                NativeDevice, adapter, limits, self.owner, kept, staging_bytes
            )
        except BaseException:
            self.owner.close()
            raise
        #: Memory from and to which the device copies directly; None where memory is mapped.
        self.pinned: PinnedMemory | None
        self.pinned = None if self.sharing is None else self.sharing.pinned_memory(self)
        weakref.finalize(self, self.owner.close_soon).atexit = False

    def info(self) -> Info:
        adapter = self.adapter
        return {
            "name": adapter.name, "gpu": self.gpu, "backend": self.backend, "id": self.id,
            "api": adapter.backend, "kind": adapter.kind, "vendor": adapter.vendor,
            "driver": adapter.driver, "software": adapter.software, "dtypes": sorted(self.dtypes),
            "max_buffer_bytes": self.max_buffer_bytes, "features": sorted(adapter.features),
            "limits": dict(self.limits), "limits_class": self.limits_class or "adapter",
        }  # fmt: skip

    @property
    def lost(self) -> bool:
        """True if the device is lost and a new engine is needed."""
        return self.owner.lost is not None

    # memory -----------------------------------------------------------------------------------

    def allocate(self, nbytes: int, *, zero: bool) -> Storage:
        buffer = self._buffer(nbytes)
        zero = zero or nbytes == 0  # kernels read zeros from an empty buffer
        enqueue = self.owner.post if nbytes <= UNCHECKED_BYTES else self.owner.call
        enqueue(self.device.allocate, buffer, zero)
        return Storage(nbytes, buffer)

    def _buffer(self, nbytes: int) -> DeviceBuffer:
        """Return a buffer without memory."""
        if nbytes > self.max_buffer_bytes:
            raise BufferTooLarge(
                f"allocate: nbytes must be at most {self.max_buffer_bytes} "
                f"({self.max_buffer_name}) on {self.owner.name}, got {nbytes}. Split the data, or "
                "use device 'cpu'."
            )
        return DeviceBuffer(nbytes, size_class(nbytes, self.max_buffer_bytes))

    def release(self, storage: Storage) -> None:
        buffer, storage.handle = storage.handle, None
        if buffer is not None:
            self.owner.post_from_finalizer(self.device.release, buffer)

    def upload(self, storage: Storage, data: Bytes) -> None:
        view = memoryview(data)
        buffer = buffer_of(storage)
        if view.nbytes == 0:
            return
        view = view.cast("B")
        with tracer.span("upload", self.id, bytes=view.nbytes) if tracer.on else OFF:
            if view.nbytes <= QUEUED_BYTES:
                self.owner.post(self.device.write, buffer, memoryview(bytes(view)))
            elif self.pinned is not None:
                self.pinned.write(buffer, view)
            elif not MAPPED_BYTES <= view.nbytes <= UPLOAD_BYTES:
                self.owner.call(self.device.write, buffer, view)
            else:
                self._write(buffer, view)

    def _write(self, buffer: DeviceBuffer, view: memoryview) -> None:
        """Upload through mapped memory that this thread fills while the owner continues."""
        mapped = self.owner.wait(self.owner.promise(self.device.request_upload, view.nbytes))
        try:
            copy_bytes(mapped.memory, np.frombuffer(view, np.uint8))
        except BaseException:
            self.owner.post_from_finalizer(self.device.uploads.give_back, mapped)
            raise
        finally:
            mapped.released = True
        self.owner.post(self.device.write_upload, mapped, buffer, view.nbytes)

    @traced("download")
    def download(self, storage: Storage) -> memoryview:
        if storage.nbytes < MAPPED_BYTES:
            return self.owner.wait(self.download_async(storage))
        buffer, parts = buffer_of(storage), pieces(storage.nbytes)
        direct = self._read_directly(storage)
        if direct is not None:
            return self.owner.wait(direct)
        if self.pinned is not None:
            data = self._host.block(storage.nbytes)
            if self.pinned.read_large(buffer, data):
                return memoryview(data)
        futures = [self.owner.promise(self.device.read, buffer, *part, True) for part in parts]
        try:
            data = self._host.block(storage.nbytes)
            for future, (start, nbytes) in zip(futures, parts, strict=True):
                mapped = self.owner.wait(future)
                copy_bytes(data[start : start + nbytes], np.frombuffer(mapped.memory, np.uint8))
        finally:  # also those that an error or Ctrl-C left unread
            for future in futures:
                future.add_done_callback(self._give_back)
        return memoryview(data)

    def _give_back(self, future: Future[Mapped]) -> None:
        if future.exception() is None:
            mapped = future.result()
            mapped.released = True
            self.owner.post_from_finalizer(self.device.staging.give_back, mapped)

    def _read_directly(self, storage: Storage) -> Future[memoryview] | None:
        if self.pinned is None:
            return None
        return self.pinned.read(buffer_of(storage), storage.nbytes)

    def download_async(self, storage: Storage) -> Future[memoryview]:
        direct = self._read_directly(storage)
        if direct is not None:
            return direct
        return self.owner.promise(self.device.read, buffer_of(storage), 0, storage.nbytes, False)

    def copy(self, source: Storage, target: Storage) -> None:
        cost, nbytes = self._copies.of(source.nbytes), source.nbytes
        work = self.device.copy
        self.owner.enqueue(cost, work, buffer_of(source), buffer_of(target), nbytes, 0, 0)

    # work -------------------------------------------------------------------------------------

    def prepare(self, program: Program, geometry: Geometry) -> Runner:
        if geometry.count == 0:
            return lambda inputs, output, params: None
        missing = sorted({"f64", "s64"} & program.types - self.dtypes)
        if missing:
            raise UnsupportedDtype(
                f"kernel {program.name!r} computes with {' and '.join(missing)}, which "
                f"{self.owner.name} does not support. Use 32-bit types, or device 'cpu'."
            )
        return Dispatcher(self, program, geometry)

    def operate(self, task: Task) -> Runner | None:
        return IMPLEMENTATIONS.prepare(self, task)

    def chain(self, links: Sequence[Link], inputs: Sequence[Tensor]) -> Runner | None:
        from dala.gpu.compute.engines.webgpu.chain import make_chain

        return make_chain(self, links, inputs)

    def shader(
        self, source: str, inputs: int, block: int, checks: ShaderChecks = "all"
    ) -> ComputePipeline:
        """Return the pipeline of a complete shader; equal text is compiled once.

        Only shaders without any text or index from users may be without checks.
        """
        key = (source, inputs, block)
        found = self._shaders.get(key)
        if found is None:
            problem = self.memory_problem(source)
            if problem:
                title = source.split("\n", 1)[0].lstrip("/ ")
                raise DeviceError(f"a shader ({title}) {problem}. Use device 'cpu'.")
            made = self._pipeline("the WGSL", source, inputs, block, checks)
            found = self._kept(self._shaders, key, made)
        return found

    def _pipeline(
        self,
        what: str,
        source: str,
        inputs: int,
        block: int,
        checks: ShaderChecks,
        flagged: bool = False,
    ) -> ComputePipeline:
        try:
            add = self.device.pipelines.add
            with tracer.span("compile", what.removesuffix("; its WGSL")) if tracer.on else OFF:
                module = self.device.calls.translate(source, checks)
                return self.owner.call(add, source, inputs, block, checks, flagged, module)
        except DeviceError as error:
            lines = (f"{n:4} {line}" for n, line in enumerate(source.splitlines(), 1))
            error.add_note("\n".join([f"{what}:", *lines]))
            raise

    def _kept(self, cache: dict[K, T], key: K, made: T) -> T:
        """Add to a cache; the oldest goes when it is full. Runners keep the pipelines they use."""
        with self._lock:
            if key not in cache and len(cache) >= MAX_PIPELINES:
                del cache[next(iter(cache))]
            return cache.setdefault(key, made)

    def memory_problem(self, source: str) -> str:
        """Return why a shader needs too much workgroup memory, or ""; wgpu does not check it."""
        held, most = workgroup_bytes(source), self.limits[WORKGROUP_MEMORY]
        if held <= most:
            return ""
        return (
            f"needs {held} bytes of workgroup memory, but {self.owner.name} allows {most} "
            f"({WORKGROUP_MEMORY})"
        )

    def dispatch(
        self, pipeline: ComputePipeline, buffers: Sequence[Storage], block: bytes, groups: int
    ) -> None:
        """Enqueue a dispatch; the last buffer is the output."""
        cost, work = pipeline.costs.of(groups), self.device.dispatch
        self.owner.enqueue(cost, work, pipeline, buffers_of(buffers), block, groups)

    def scratch(self, sizes: Sequence[int]) -> list[Storage]:
        """Return storages for :meth:`dispatch_all`, which gives them memory while it runs."""
        return [Storage(nbytes, self._buffer(nbytes)) for nbytes in sizes]

    def dispatch_all(
        self,
        dispatches: Sequence[tuple[ComputePipeline, Sequence[Storage], bytes, int]],
        scratch: Sequence[Storage],
    ) -> None:
        """Enqueue dispatches at once, in order; each has the output last."""
        made = [(p, buffers_of(bound), block, groups) for p, bound, block, groups in dispatches]
        given = buffers_of(scratch)
        small = sum(buffer.size for buffer in given) <= UNCHECKED_SCRATCH
        work = self.device.dispatch_all
        if small:
            cost = made[-1][0].costs.of(sum(groups for *_, groups in made))
            self.owner.enqueue(cost, work, made, given)
        else:
            self.owner.call(work, made, given)

    def pack(self, layout: BlockLayout, numbers: Values, params: Values) -> bytes:
        """Return the uniform block of a dispatch."""
        return layout.pack(numbers, params)

    def composer(self) -> Composer:
        from dala.gpu.compute.engines.webgpu.compose.composer import WebGPUComposer

        return WebGPUComposer(self)

    def name_work(self, name: str, frame: int | None) -> None:
        self.owner.post(self.device.tracing.name_work, name, frame)

    @contextmanager
    def batched(self) -> Iterator[None]:
        """Return a context manager that submits dispatches in as few batches as possible."""
        self.owner.post(self.device.hold, 1)
        try:
            yield
        finally:
            self.owner.post(self.device.hold, -1)

    @contextmanager
    def profile(self) -> Iterator[DispatchTimes | None]:
        """Return a context manager that times all dispatches in its block, from any thread.

        The end of the block waits for the device; then the durations are available. The value is
        None if the device has no timestamps, or while another thread is profiling.
        """
        timer = self.owner.call(self.device.start_timing)
        if timer is None:
            yield None
            return
        times = DispatchTimes(lambda: self.owner.post(timer.mark))
        try:
            yield times
        except BaseException:
            self.owner.post_from_finalizer(self.device.stop_timing, timer)
            raise
        data = self.owner.wait(self.owner.promise(self.device.stop_timing, timer))
        times.fill(timer.seconds(data), timer.marks)

    def source(self, program: Program, geometry: Geometry) -> str:
        return self._written(program, geometry).source

    def synchronize(self) -> None:
        self.owner.wait(self.owner.promise(self.device.sync))

    def stats(self) -> dict[str, int]:
        try:
            return self.owner.call(self.device.stats)
        except (DeviceError, FreedError):  # lost or closed: the last known counts
            return self.device.stats()

    def close(self) -> None:
        self.owner.close()
        self._host.clear()  # plans of kernels may keep this object
        if self.pinned is not None:
            self.pinned.clear()

    @cached_property
    def loops_end_early(self) -> int:
        """After how many iterations the adapter ends loops silently; 0 if it does not."""
        return probe_loops(self)

    def compiled(
        self,
        program: Program,
        geometry: Geometry,
        aliased: tuple[int, ...],
        metering: Metering | None = None,
        ordinary: bool = False,
    ) -> tuple[Shader, ComputePipeline]:
        """Return the shader and pipeline of a program; compile it on first use."""
        key = (*shader_key(program, geometry, aliased), metering, ordinary)
        found = self._compiled.get(key)
        if found is None:
            shader = self._written(program, geometry, aliased, metering, ordinary)
            self._check_limits(program, shader)
            what, nbytes = f"kernel {program.name!r}; its WGSL", shader.block.packer.size
            flagged = metering is not None
            made = self._pipeline(what, shader.source, shader.inputs, nbytes, "indices", flagged)
            found = self._kept(self._compiled, key, (shader, made))
        return found

    def _written(
        self,
        program: Program,
        geometry: Geometry,
        aliased: tuple[int, ...] = (),
        metering: Metering | None = None,
        ordinary: bool = False,
    ) -> Shader:
        return write_shader(
            program, geometry, workgroup=self.workgroup, aliased=aliased, metering=metering,
            software=self.adapter.software, buffers=self.limits[STORAGE_BUFFERS],
            ordinary=ordinary,
        )  # fmt: skip

    def _check_limits(self, program: Program, shader: Shader) -> None:
        limits, most = self.limits, self.limits[STORAGE_BUFFERS]
        own = 1 if shader.block.first is None else 2  # the output, and a flag
        if shader.inputs + own > most:  # inputs of one type share a buffer
            metered = "" if own == 1 else " with limits or long loops"
            raise DeviceError(
                f"kernel {program.name!r} reads inputs of {shader.inputs} types, but "
                f"{self.owner.name} allows {most - own}{metered} ({STORAGE_BUFFERS} is {most}). "
                "Convert some, or split the kernel."
            )
        most_bytes = min(limits["max-uniform-buffer-binding-size"], UNIFORM_BYTES)
        if shader.block.packer.size > most_bytes:
            raise DeviceError(
                f"kernel {program.name!r} has {shader.block.packer.size} bytes of parameters, but "
                f"{self.owner.name} allows {most_bytes} (max-uniform-buffer-binding-size). Pass "
                "large tables as an array."
            )
