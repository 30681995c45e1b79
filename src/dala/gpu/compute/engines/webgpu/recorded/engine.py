"""A WebGPU engine that records dispatches, for an adapter with WebGPU's own limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from dala.errors import BufferTooLarge, DeviceError, UnsupportedDtype, UnsupportedOperation
from dala.forks import cached_property
from dala.gpu.compute.engines.base import (
    Bytes,
    Engine,
    Geometry,
    Info,
    Runner,
    Storage,
    Task,
    Values,
)
from dala.gpu.compute.engines.symbols import SymbolicBytes, SymbolicTable
from dala.gpu.compute.engines.webgpu.adapters import Adapter
from dala.gpu.compute.engines.webgpu.calls.public import ShaderChecks
from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine
from dala.gpu.compute.engines.webgpu.limits import DEFAULT, STORAGE_BUFFERS, largest_buffer
from dala.gpu.compute.engines.webgpu.pipelines import ComputePipeline
from dala.gpu.compute.engines.webgpu.wgsl.shader import BlockLayout, Shader, shader_key
from dala.gpu.compute.lang.ir import Program

#: Shaders by what their text depends on, for several recordings of one chain.
ShaderCache: TypeAlias = "dict[tuple[object, ...], Shader]"


@dataclass(eq=False)
class RecordedBuffer:
    """Memory of a recorded plan."""

    #: Bytes; symbolic where they depend on a size.
    nbytes: int
    #: What was uploaded to it.
    data: bytes | None = None


@dataclass(frozen=True, eq=False)
class RecordedDispatch:
    """One dispatch of a recorded plan; the last buffer is written."""

    source: str
    buffers: tuple[RecordedBuffer, ...]
    #: The uniform block; a :class:`SymbolicBytes` where it depends on symbols.
    block: bytes
    #: The number of workgroups.
    groups: int


@dataclass(frozen=True, eq=False)
class RecordedCopy:
    """One copy of whole buffers."""

    source: RecordedBuffer
    target: RecordedBuffer


class RecordingEngine(WebGPUEngine):
    """An engine that plans for any browser and records dispatches instead of running them.

    >>> engine = RecordingEngine()
    >>> engine.allocate(16, zero=True).handle.nbytes, engine.steps
    (16, [])
    """

    #: A page has one shader for every value of a slider, and for pictures of every size.
    depends_on_values = False
    depends_on_size = False

    def __init__(self, shaders: ShaderCache | None = None) -> None:
        self._written_shaders = {} if shaders is None else shaders
        self.id = "web"
        self.adapter = Adapter(
            id=self.id, name="a browser", vendor="", driver="", backend="WebGPU", kind="virtual",
            software=False, features=frozenset(), limits=DEFAULT,
            dtypes=frozenset({"f32", "s32", "u32", "u8"}), native=None,
        )  # fmt: skip
        self.dtypes = self.adapter.dtypes
        self.gpu = True
        self.limits_class, self.limits = "default", dict(DEFAULT)
        self.max_buffer_bytes, self.max_buffer_name = largest_buffer(DEFAULT)
        self.max_inputs = self.max_bound_inputs = DEFAULT[STORAGE_BUFFERS] - 1
        #: The dispatches and copies so far, in order.
        self.steps: list[RecordedDispatch | RecordedCopy] = []
        self.workgroup = 256

    # There is no device, and nothing runs.
    lost = Engine.lost
    synchronize = Engine.synchronize
    stats = Engine.stats
    close = Engine.close

    def info(self) -> Info:
        return {"name": "a browser", "gpu": True, "backend": self.backend, "id": self.id}

    # memory -----------------------------------------------------------------------------------
    def allocate(self, nbytes: int, *, zero: bool) -> Storage:
        most = self.max_buffer_bytes
        if nbytes > most:
            raise BufferTooLarge(
                f"allocate: nbytes must be at most {most} in a browser, got {int(nbytes)}. Use a "
                "smaller picture."
            )
        return Storage(0, RecordedBuffer(nbytes))  # it takes no memory

    def release(self, storage: Storage) -> None:
        """Do nothing: recorded memory is the plan's."""

    def upload(self, storage: Storage, data: Bytes) -> None:
        keeps = isinstance(data, SymbolicBytes | SymbolicTable)
        _buffer(storage).data = data if keeps else bytes(data)  # type: ignore[assignment]

    def download(self, storage: Storage) -> memoryview:
        raise DeviceError("a recorded plan has no values: it cannot compute on the host.")

    def download_async(self, storage: Storage) -> Future[memoryview]:
        raise DeviceError("a recorded plan has no values: it cannot be read.")

    def copy(self, source: Storage, target: Storage) -> None:
        self.steps.append(RecordedCopy(_buffer(source), _buffer(target)))

    # work -------------------------------------------------------------------------------------
    def operate(self, task: Task) -> Runner | None:
        if task.host:
            raise UnsupportedOperation(
                f"{task.op}: runs on the host, which a web page has not.",
                call=task.op, operation=task.op, engine=self.id,
            )  # fmt: skip
        return super().operate(task)

    def prepare(self, program: Program, geometry: Geometry) -> Runner:
        if geometry.count == 0:
            return lambda inputs, output, params: None
        missing = sorted({"f64", "s64"} & program.types)
        if missing:
            raise UnsupportedDtype(
                f"kernel {program.name!r} computes with {' and '.join(missing)}, which browsers do "
                "not have. Use 32-bit types."
            )

        def run(inputs: Sequence[Storage], output: Storage, params: Values) -> None:
            given = [_buffer(storage) for storage in inputs]
            out = _buffer(output)
            aliased = tuple(i for i, buffer in enumerate(given) if buffer is out)
            key = shader_key(program, geometry, aliased)
            shader = self._written_shaders.get(key)
            if shader is None:
                shader = self._written_shaders[key] = self._written(program, geometry, aliased)
            if shader.joined:
                raise DeviceError(
                    f"kernel {program.name!r} has {len(program.args)} inputs, but browsers allow "
                    f"{DEFAULT[STORAGE_BUFFERS] - 1}. Split the kernel."
                )
            block = self.pack(shader.block, shader.block.numbers(geometry), params)
            buffers = (*(given[i] for i in shader.bound), out)
            made = RecordedDispatch(shader.source, buffers, block, shader.groups(geometry))
            self.steps.append(made)

        return run

    def shader(
        self, source: str, inputs: int, block: int, checks: ShaderChecks = "all"
    ) -> ComputePipeline:
        return ComputePipeline(0, source, inputs, block, checks, flagged=False)

    def dispatch(
        self, pipeline: ComputePipeline, buffers: Sequence[Storage], block: bytes, groups: int
    ) -> None:
        bound = tuple(_buffer(storage) for storage in buffers)
        self.steps.append(RecordedDispatch(pipeline.source, bound, block, groups))

    def scratch(self, sizes: Sequence[int]) -> list[Storage]:
        return [self.allocate(nbytes, zero=False) for nbytes in sizes]

    def dispatch_all(
        self,
        dispatches: Sequence[tuple[ComputePipeline, Sequence[Storage], bytes, int]],
        scratch: Sequence[Storage],
    ) -> None:
        for one in dispatches:
            self.dispatch(*one)

    def pack(self, layout: BlockLayout, numbers: Values, params: Values) -> bytes:
        values = iter(layout.ordered(numbers, [params[i] for i, _ in layout.params]))
        kinds = layout.packer.format.lstrip("<")  # 64-bit types are refused before
        return SymbolicBytes.pack((k, 0 if k == "x" else next(values)) for k in kinds)

    @contextmanager
    def batched(self) -> Iterator[None]:
        yield

    @cached_property
    def loops_end_early(self) -> int:
        """0: browsers do not end loops silently."""
        return 0


def _buffer(storage: Storage) -> RecordedBuffer:
    assert isinstance(storage.handle, RecordedBuffer)
    return storage.handle
