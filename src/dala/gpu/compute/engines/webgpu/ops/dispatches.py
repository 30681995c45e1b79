"""Build operations from several dispatches, with temporary buffers between them.

A function that adds the dispatches of an operation registers itself with ``@implements``. Each
dispatch runs a complete WGSL module. Its bindings are the buffers that it reads, in order, as
``var<storage, read>``, the one that it writes as ``var<storage, read_write>``, and a uniform block.
No dispatch reads and writes the same buffer. Shaders compute the index of a workgroup as
``group.y * groups.x + group.x``; a few more workgroups than requested may run.
"""

from __future__ import annotations

import struct
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from string import Template
from typing import TYPE_CHECKING, Literal, TypeAlias

from dala.gpu.compute.engines.base import Bytes, Runner, Storage, Task, Values
from dala.gpu.compute.engines.scratch import reserved_scratch
from dala.gpu.compute.engines.symbols import SymbolicBytes, SymbolicTable, is_symbolic
from dala.gpu.compute.engines.webgpu.ops import IMPLEMENTATIONS
from dala.gpu.compute.engines.webgpu.wgsl.helpers import read_wgsl
from dala.typing import NDArray

if TYPE_CHECKING:
    from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine
    from dala.gpu.compute.engines.webgpu.pipelines import ComputePipeline


@dataclass(frozen=True, slots=True)
class BufferRef:
    """A buffer of an operation: an input, its output, a temporary or a constant."""

    kind: Literal["input", "output", "temporary", "constant"]
    index: int = 0


def shader_text(*names: str, **values: object) -> str:
    """Return shader files of this package, joined, with values for their ``$names``."""
    return Template("".join(read_wgsl(name, __package__) for name in names)).substitute(values)


def shader_parts(name: str, **values: object) -> list[str]:
    """Return the parts of a shader file, apart by ``// ---``, each after the first as its head."""
    head, *parts = read_wgsl(name, __package__).split("// ---\n")
    return [Template(head + part).substitute(values) for part in parts]


def _packed(numbers: Sequence[int | float]) -> bytes:
    """Pack a uniform block: ints as i32 (2**31 and above as u32), floats as f32, in order."""
    kinds = ["f" if isinstance(n, float) else "i" for n in numbers]
    if is_symbolic(*numbers):
        return SymbolicBytes.pack(zip(kinds, numbers, strict=True))
    kinds = ["I" if k == "i" and n >= 1 << 31 else k for k, n in zip(kinds, numbers, strict=True)]
    return struct.pack(f"<{''.join(kinds)}", *numbers)


class Dispatches:
    """Builds the dispatches of a task; ``runner()`` returns a function that runs them."""

    def __init__(self, engine: WebGPUEngine, task: Task) -> None:
        self.engine = engine
        self.task = task
        self.inputs = [BufferRef("input", i) for i in range(len(task.inputs))]
        self.output = BufferRef("output")
        self._dispatches: list[tuple[ComputePipeline, tuple[BufferRef, ...], bytes, int]] = []
        self._temporaries: list[int] = []
        self._constants: list[Storage] = []

    def temporary(self, nbytes: int) -> BufferRef:
        """Add memory that is allocated for each run, with undefined content."""
        self._temporaries.append(nbytes)
        return BufferRef("temporary", len(self._temporaries) - 1)

    def constant(self, data: Bytes | NDArray) -> BufferRef:
        """Upload contiguous bytes, which live as long as the runner."""
        view = data if isinstance(data, SymbolicTable) else memoryview(data).cast("B")
        size = view.size if isinstance(view, SymbolicTable) else view.nbytes
        storage = self.engine.allocate(size, zero=False)
        self.engine.upload(storage, view)
        self._constants.append(storage)
        return BufferRef("constant", len(self._constants) - 1)

    def add(
        self,
        source: str,
        reads: Sequence[BufferRef],
        writes: BufferRef,
        numbers: Sequence[int | float] | bytes,
        groups: int,
    ) -> None:
        """Compile a shader and add its dispatch; ``numbers`` are its uniform block.

        Equal text is compiled once.
        """
        block = numbers if isinstance(numbers, bytes) else _packed(numbers)
        pipeline = self.engine.shader(source, len(reads), len(block), "none")
        self._dispatches.append((pipeline, (*reads, writes), block, groups))

    def clear(self, target: BufferRef, count: int) -> None:
        """Add a dispatch that sets 32-bit numbers to zero."""
        self.add(shader_text("clear.wgsl"), [], target, (count,), -(-count // 256))

    def runner(self) -> Runner:
        """Return a runner of all dispatches, usually in one submit; without any it copies."""
        engine, sizes = self.engine, self._temporaries
        constants, name = self._constants, self.task.op
        first = {"output": 0, "constant": 1, "temporary": 1 + len(constants)}
        first["input"] = first["temporary"] + len(sizes)
        steps = [
            (pipeline, [first[ref.kind] + ref.index for ref in refs], numbers, groups)
            for pipeline, refs, numbers, groups in self._dispatches
        ]

        total = int(sum(sizes))

        def run_all(inputs: Sequence[Storage], output: Storage, params: Values) -> None:
            with reserved_scratch(engine, name, total):
                scratch = engine.scratch(sizes)
                held = (output, *constants, *scratch, *inputs)
                engine.dispatch_all(
                    [(p, [held[i] for i in at], block, n) for p, at, block, n in steps], scratch
                )

        def run_one(inputs: Sequence[Storage], output: Storage, params: Values) -> None:
            pipeline, places, numbers, groups = steps[0]
            held = (output, *constants, *inputs)
            engine.dispatch(pipeline, [held[i] for i in places], numbers, groups)

        if not steps:
            return lambda inputs, output, params: engine.copy(inputs[0], output)
        run = run_one if len(steps) == 1 and not sizes else run_all
        if constants:
            weakref.finalize(run, _release, engine, constants).atexit = False
        return run


def _release(engine: WebGPUEngine, storages: list[Storage]) -> None:
    for storage in storages:
        engine.release(storage)


class Declined(Exception):
    """An operation that is lowered to kernels for these shapes or dtypes."""


#: Adds the dispatches of a task, or raises Declined.
Add: TypeAlias = Callable[[Dispatches, Task], None]


def implements(*operations: str) -> Callable[[Add], Add]:
    """Return a decorator that registers a function for one or more operations."""

    def decorate(add: Add) -> Add:
        def make(engine: WebGPUEngine, task: Task) -> Runner | None:
            dispatches = Dispatches(engine, task)
            try:
                add(dispatches, task)
            except Declined:
                return None
            return dispatches.runner()

        IMPLEMENTATIONS.register(*operations)(make)
        return add

    return decorate
