"""A WebGPU engine that records what it is asked to do, for an adapter with WebGPU's own limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from dala.errors import BufferTooLarge, DeviceError, UnsupportedDtype, UnsupportedOperation
from dala.forks import cached_property
from dala.gpu.compute.engines.base import Bytes, Geometry, Info, Runner, Storage, Task, Values
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
    #: "main" but for the stages of a shader with several entry points.
    entry: str = "main"


@dataclass(frozen=True, eq=False)
class RecordedCopy:
    """One copy of whole buffers."""

    source: RecordedBuffer
    target: RecordedBuffer


@dataclass
class Recording:
    """What an engine recorded, in order."""

    steps: list[RecordedDispatch | RecordedCopy] = field(default_factory=list)


class RecordingEngine(WebGPUEngine):
    """An engine that plans for any browser and records dispatches instead of running them.

    >>> engine = RecordingEngine()
    >>> engine.allocate(16, zero=True).handle.nbytes, engine.recording.steps
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
        self.recording = Recording()
        self._workgroup = 256

    @property
    def lost(self) -> bool:
        """False: there is no device."""
        return False

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
        return Future() if storage is None else self._refuse()

    def _refuse(self) -> Future[memoryview]:
        raise DeviceError("a recorded plan has no values: it cannot be read.")

    def copy(self, source: Storage, target: Storage) -> None:
        self.recording.steps.append(RecordedCopy(_buffer(source), _buffer(target)))

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
            self._check(program, shader)
            block = self.pack(shader.block, shader.block.numbers(geometry), params)
            buffers = (*(given[i] for i in shader.bound), out)
            made = RecordedDispatch(shader.source, buffers, block, shader.groups(geometry))
            self.recording.steps.append(made)

        return run

    def _check(self, program: Program, shader: Shader) -> None:
        most = DEFAULT[STORAGE_BUFFERS]
        if shader.joined:
            raise DeviceError(
                f"kernel {program.name!r} has {len(program.args)} inputs, but browsers allow "
                f"{most - 1}. Split the kernel."
            )

    def shader(
        self, source: str, inputs: int, block: int, checks: ShaderChecks = "all"
    ) -> ComputePipeline:
        return ComputePipeline(0, source, inputs, block, checks, flagged=False)

    def dispatch(
        self, pipeline: ComputePipeline, buffers: Sequence[Storage], block: bytes, groups: int
    ) -> None:
        bound = tuple(_buffer(storage) for storage in buffers)
        self.recording.steps.append(RecordedDispatch(pipeline.source, bound, block, groups))

    def scratch(self, sizes: Sequence[int]) -> list[Storage]:
        return [self.allocate(nbytes, zero=False) for nbytes in sizes]

    def dispatch_all(
        self,
        dispatches: Sequence[tuple[ComputePipeline, Sequence[Storage], bytes, int]],
        scratch: Sequence[Storage],
    ) -> None:
        for pipeline, buffers, block, groups in dispatches:
            self.dispatch(pipeline, buffers, block, groups)

    def pack(self, layout: BlockLayout, numbers: Values, params: Values) -> bytes:
        chosen = [params[i] for i, _ in layout.params]
        values = iter([*chosen[: layout.wide], *numbers, *chosen[layout.wide :]])
        kinds = _formats(layout.packer.format)
        return SymbolicBytes.pack((k, 0 if k == "x" else next(values)) for k in kinds)

    @contextmanager
    def batched(self) -> Iterator[None]:
        yield

    def synchronize(self) -> None:
        """Do nothing: nothing runs."""

    def stats(self) -> dict[str, int]:
        return {}

    def close(self) -> None:
        """Do nothing: it holds nothing native."""

    @cached_property
    def loops_end_early(self) -> int:
        """0: browsers do not end loops silently."""
        return 0


def _buffer(storage: Storage) -> RecordedBuffer:
    assert isinstance(storage.handle, RecordedBuffer)
    return storage.handle


def _formats(text: str) -> list[Literal["i", "I", "f", "x"]]:
    """Return the format of each item; ``12x`` is twelve items."""
    found: list[str] = []
    count = ""
    for letter in text.lstrip("<"):
        if letter.isdigit():
            count += letter
            continue
        found += [letter] * int(count or 1)
        count = ""
    return found  # type: ignore[return-value] # 64-bit types are refused before
