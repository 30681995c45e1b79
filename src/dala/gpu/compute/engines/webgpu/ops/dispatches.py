"""Operations as a few shaders one after another, with memory of their own in between.

A step is one dispatch of a complete WGSL module. Its bindings are: what it reads, in order, as
``var<storage, read>``; what it writes as ``var<storage, read_write>``; and last a uniform block.
No buffer may be read and written by one step. Groups are counted in one number and may be spread
over x and y: ``(group.y * groups.x + group.x)`` is the group's number, and there may be a few more
groups than asked for.
"""

from __future__ import annotations

import struct
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from dala.gpu.compute.engines.base import Runner, Storage, Values
from dala.gpu.compute.engines.webgpu.wgsl.helpers import read_wgsl

if TYPE_CHECKING:
    from dala.gpu.compute.engines.webgpu.device import ComputePipeline
    from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine


@dataclass(frozen=True, slots=True)
class BufferRef:
    """A buffer of an operation: one of its inputs, its output, or one that it brings along."""

    kind: Literal["input", "output", "temporary", "constant"]
    index: int = 0


OUTPUT = BufferRef("output")


def read_text(name: str) -> str:
    """Return the text of a shader file of this package."""
    return read_wgsl(name, __package__)


def block(*numbers: int | float) -> bytes:
    """A uniform block: ints become i32 (or u32 from 2**31 on), floats f32, in order."""
    parts = []
    for n in numbers:
        if isinstance(n, float):
            parts.append(struct.pack("<f", n))
        else:
            parts.append(struct.pack("<I" if n >= 1 << 31 else "<i", n))
    return b"".join(parts)


class Dispatches:
    """Collects the steps of an operation; ``runner()`` is what runs them."""

    def __init__(self, engine: WebGPUEngine) -> None:
        self._engine = engine
        self._steps: list[tuple[ComputePipeline, tuple[BufferRef, ...], bytes, int]] = []
        self._temporaries: list[int] = []
        self._constants: list[Storage] = []

    def temporary(self, nbytes: int) -> BufferRef:
        """Memory that lives during one run; what is in it at first is unknown."""
        self._temporaries.append(nbytes)
        return BufferRef("temporary", len(self._temporaries) - 1)

    def constant(self, data: Any) -> BufferRef:
        """Bytes (anything contiguous) that are uploaded now and kept while the runner lives."""
        view = memoryview(data).cast("B")
        storage = self._engine.allocate(view.nbytes, zero=False)
        self._engine.upload(storage, view)
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
        """Adds a step; the shader is compiled now, once for the same text."""
        pipeline = self._engine.shader(source, len(reads), max(len(numbers), 4))
        self._steps.append((pipeline, (*reads, writes), numbers or bytes(4), groups))

    def runner(self) -> Runner:
        """What runs all steps: one submit unless others come in between."""
        engine, steps, sizes = self._engine, self._steps, self._temporaries
        constants = self._constants

        def run(inputs: Sequence[Storage], output: Storage, params: Values) -> None:
            temporaries = [engine.allocate(n, zero=False) for n in sizes]
            try:
                for pipeline, places, numbers, groups in steps:
                    bound = []
                    for place in places:
                        if place.kind == "input":
                            bound.append(inputs[place.index])
                        elif place.kind == "output":
                            bound.append(output)
                        elif place.kind == "temporary":
                            bound.append(temporaries[place.index])
                        else:
                            bound.append(constants[place.index])
                    engine.dispatch(pipeline, bound, numbers, groups)
            finally:
                for storage in temporaries:
                    engine.release(storage)  # done in turn, after the dispatches

        if constants:
            weakref.finalize(run, _release, engine, constants).atexit = False
        return run


def _release(engine: WebGPUEngine, storages: list[Storage]) -> None:
    for storage in storages:
        engine.release(storage)
