"""Build operations from several dispatches, with temporary buffers between them.

Each dispatch runs a complete WGSL module. Its bindings are the buffers that it reads, in order, as
``var<storage, read>``, the one that it writes as ``var<storage, read_write>``, and a uniform block.
No dispatch reads and writes the same buffer. Shaders compute the index of a workgroup as
``group.y * groups.x + group.x``; a few more workgroups than requested may run.
"""

from __future__ import annotations

import struct
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from dala.gpu.compute.engines.base import Bytes, Runner, Storage, Values
from dala.gpu.compute.engines.scratch import reserved_scratch
from dala.gpu.compute.engines.symbols import SymbolicBytes, SymbolicTable, is_symbolic
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


OUTPUT = BufferRef("output")


def read_text(name: str) -> str:
    """Return the text of a shader file of this package."""
    return read_wgsl(name, __package__)


def block(*numbers: int | float) -> bytes:
    """Pack a uniform block: ints as i32 (2**31 and above as u32), floats as f32, in order."""
    if is_symbolic(*numbers):
        return SymbolicBytes.pack(("f" if isinstance(n, float) else "i", n) for n in numbers)
    parts = []
    for n in numbers:
        if isinstance(n, float):
            parts.append(struct.pack("<f", n))
        else:
            parts.append(struct.pack("<I" if n >= 1 << 31 else "<i", n))
    return b"".join(parts)


class Dispatches:
    """Builds the dispatches of an operation; ``runner()`` returns a function that runs them.

    ``name`` is the operation, for errors.
    """

    def __init__(self, engine: WebGPUEngine, name: str) -> None:
        self.engine = engine
        self.name = name
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
        numbers: bytes,
        groups: int,
    ) -> None:
        """Compile a shader and add its dispatch. Equal text is compiled once."""
        pipeline = self.engine.shader(source, len(reads), max(len(numbers), 4), "none")
        self._dispatches.append((pipeline, (*reads, writes), numbers or bytes(4), groups))

    def runner(self) -> Runner:
        """Return a runner of all dispatches, usually in one submit."""
        engine, sizes = self.engine, self._temporaries
        constants, name = self._constants, self.name
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

        run = run_all
        if len(steps) == 1 and not sizes:
            pipeline, places, numbers, groups = steps[0]

            def run_one(inputs: Sequence[Storage], output: Storage, params: Values) -> None:
                held = (output, *constants, *inputs)
                engine.dispatch(pipeline, [held[i] for i in places], numbers, groups)

            run = run_one
        if constants:
            weakref.finalize(run, _release, engine, constants).atexit = False
        return run


def _release(engine: WebGPUEngine, storages: list[Storage]) -> None:
    for storage in storages:
        engine.release(storage)
