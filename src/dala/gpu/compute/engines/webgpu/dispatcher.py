"""Runners of programs: one dispatch each, or metered ones for long loops and budgets.

A GPU cannot end a dispatch. So work that may take long is dispatched in pieces, and may be
cancelled between them; the system's watchdog does not end them either. Budgets of iterations are
compiled into the shader, which then sets a flag. Some software adapters end loops silently
(llvmpipe, after 65,535 iterations of an invocation): there, shaders with long loops report it.
"""

from __future__ import annotations

import math
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from dala import budget
from dala.errors import BufferTooLarge, DeviceError, FreedError
from dala.gpu.compute.engines.base import Geometry, Storage, Values
from dala.gpu.compute.engines.loop_bounds import LoopBounds
from dala.gpu.compute.engines.scratch import scratch_memory
from dala.gpu.compute.engines.unroll import has_loops
from dala.gpu.compute.engines.webgpu.limits import STORAGE_BUFFERS
from dala.gpu.compute.engines.webgpu.pipelines import ComputePipeline
from dala.gpu.compute.engines.webgpu.pool import DeviceBuffer
from dala.gpu.compute.engines.webgpu.rewrite.ranges import are_ordinary
from dala.gpu.compute.engines.webgpu.rewrite.uniform import LoopVariants, Uniforms, remembered
from dala.gpu.compute.engines.webgpu.wgsl.helpers import read_wgsl
from dala.gpu.compute.engines.webgpu.wgsl.shader import CUT, OVER, Metering, Shader
from dala.gpu.compute.lang.ir import Program

if TYPE_CHECKING:
    from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine

#: Statements of one dispatch, estimated, above which it is done in pieces: on a GPU, and on a
#: software adapter. Either takes less than a second.
MAX_WORK: Final = 2e11
MAX_SOFTWARE_WORK: Final = 2e9
#: Seconds that a piece should take, and workgroups of the first one.
PIECE_SECONDS: Final = 0.05
FIRST_PIECE: Final = 16

#: Iterations that every adapter makes at a position. More are made only by those that pass the
#: probe: llvmpipe makes 65,535 for four positions, and each of up to 1,400 loops may cost one.
SAFE_ITERATIONS: Final = 14_000
#: Parameters whose bounds are remembered.
MAX_BOUNDS: Final = 256
#: Iterations of the probe.
PROBED: Final = 70_000


class _Variant(NamedTuple):
    shader: Shader
    pipeline: ComputePipeline
    numbers: tuple[int, ...]
    groups: int


class Dispatcher:
    """A program prepared for a geometry. Each call enqueues one dispatch, or runs metered ones."""

    __slots__ = (
        "_bounds", "_engine", "_geometry", "_last", "_loops", "_program", "_simpler", "_uniforms",
        "_unrolled", "_variants",
    )  # fmt: skip

    def __init__(self, engine: WebGPUEngine, program: Program, geometry: Geometry) -> None:
        self._engine = engine
        self._program = program
        self._geometry = geometry
        self._loops = has_loops(program.body)
        #: Bounds by parameters; only of programs with loops.
        self._bounds: dict[Values, LoopBounds] = {}
        self._unrolled = LoopVariants(program, software=engine.adapter.software)
        #: What the host computes, by programs.
        self._uniforms: dict[str, Uniforms] = {}
        #: Whether shaders are simpler for parameters of ordinary size.
        self._simpler = program.out.dtype == "u8"
        #: By the arguments that alias the output, by how it is metered, by the program, and whether
        #: the parameters are of ordinary size.
        self._variants: dict[tuple[tuple[int, ...], Metering | None, str, bool], _Variant] = {}
        #: The parameters of the last call, its aliases, its variant and its block. Calls that
        #: repeat their parameters pass the same tuple.
        self._last: tuple[Values, tuple[int, ...], _Variant, bytes] | None = None
        if not self._unrolled.useful:  # else it depends on the parameters
            self._variant((), None, self._uniform(program).program, self._simpler)

    def __call__(self, inputs: Sequence[Storage], output: Storage, params: Values) -> None:
        """Run the program, or enqueue it."""
        buffers, out = buffers_of(inputs), buffer_of(output)
        aliased: tuple[int, ...] = ()
        if out in buffers:
            aliased = tuple(i for i, buffer in enumerate(buffers) if buffer is out)
        scope = budget.find_scope()
        if scope is not None:
            scope.check(self._program.name)
        if self._loops:
            metering, pieces = self._metering(scope, params)
            if metering is not None:
                self._run_metered(aliased, buffers, out, params, metering, pieces)
                return
        last = self._last
        if last is None or last[0] is not params or last[1] != aliased:
            uniforms = self._uniform(self._unrolled.program(params))
            program, given = uniforms.program, uniforms.values(params)
            ordinary = self._simpler and are_ordinary(uniforms.types, given)
            variant = self._variant(aliased, None, program, ordinary)
            block = variant.shader.block.pack(variant.numbers, given)
            last = self._last = params, aliased, variant, block
        (shader, pipeline, _, groups), block = last[2:]
        enqueue, work = self._engine.owner.enqueue, self._engine.device.dispatch
        cost = pipeline.costs.of(groups * (self._statements(params) if self._loops else 1))
        if shader.joined:
            with self._joined(shader, buffers) as read:
                enqueue(cost, work, pipeline, (*read, out), block, groups)
            return
        bound = (*[buffers[i] for i in shader.bound], out)
        enqueue(cost, work, pipeline, bound, block, groups)

    def _uniform(self, program: Program) -> Uniforms:
        geometry = self._geometry
        return remembered(self._uniforms, program.key, lambda: Uniforms(program, geometry))

    def _variant(
        self,
        aliased: tuple[int, ...],
        metering: Metering | None,
        program: Program,
        ordinary: bool = False,
    ) -> _Variant:
        engine, geometry = self._engine, self._geometry

        def make() -> _Variant:
            shader, pipeline = engine.compiled(program, geometry, aliased, metering, ordinary)
            numbers = shader.block.numbers(geometry)
            return _Variant(shader, pipeline, numbers, shader.groups(geometry))

        return remembered(self._variants, (aliased, metering, program.key, ordinary), make)

    @contextmanager
    def _joined(
        self, shader: Shader, buffers: Sequence[DeviceBuffer]
    ) -> Iterator[tuple[DeviceBuffer, ...]]:
        """Copy inputs that share a binding into one buffer; return all buffers to read."""
        engine, name = self._engine, self._program.name
        starts = [group.starts(self._program, self._geometry) for group in shader.joined]
        largest = max((end for *_, end in starts), default=0)
        if largest > engine.max_buffer_bytes:
            raise BufferTooLarge(
                f"{name}: {engine.owner.name} binds {engine.limits[STORAGE_BUFFERS]} buffers "
                f"({STORAGE_BUFFERS}), so {len(shader.joined[0].args)} of its inputs must fit in "
                f"one of {engine.max_buffer_bytes} bytes, and take {largest}. Split the kernel or "
                "the data, or use device 'cpu'.",
                call=name,
            )
        with scratch_memory(engine, name, *(end for *_, end in starts)) as storages:
            for group, (*firsts, _), storage in zip(shader.joined, starts, storages, strict=True):
                target = buffer_of(storage)
                for i, first in zip(group.args, firsts, strict=True):
                    nbytes = buffers[i].nbytes
                    assert first + nbytes <= storage.nbytes
                    engine.owner.post(engine.device.copy, buffers[i], target, nbytes, 0, first)
            yield (*(buffers[i] for i in shader.bound), *(buffer_of(s) for s in storages))

    # long loops and budgets -------------------------------------------------------------------

    def _bounds_of(self, params: Values) -> LoopBounds:
        program, geometry = self._program, self._geometry
        return remembered(
            self._bounds, params, lambda: LoopBounds(program, geometry, params), MAX_BOUNDS
        )

    def _statements(self, params: Values) -> int:
        """Return the most statements of an invocation, by which calls with loops differ."""
        return math.ceil(self._bounds_of(params).statements or 1)

    def _metering(self, scope: budget.Scope | None, params: Values) -> tuple[Metering | None, bool]:
        """Return how a call is metered, or None, and whether it runs in pieces."""
        engine = self._engine
        bounds = self._bounds_of(params)
        limit = None if scope is None else scope.limits.iterations
        if limit is not None and bounds.iterations is not None and bounds.iterations <= limit:
            limit = None  # no path is longer
        most = MAX_WORK if engine.gpu else MAX_SOFTWARE_WORK
        if bounds.statements is None:
            pieces = scope is not None and (scope.deadline is not None or limit is not None)
        else:
            pieces = bounds.statements * self._geometry.count > most
        unsafe = bounds.iterations is None or bounds.iterations > SAFE_ITERATIONS
        cut = unsafe and engine.loops_end_early > 0
        if limit is None and not pieces and not cut:
            return None, False
        return Metering(None if limit is None else min(limit, (1 << 31) - 1), cut), pieces

    def _run_metered(
        self,
        aliased: tuple[int, ...],
        buffers: Sequence[DeviceBuffer],
        out: DeviceBuffer,
        params: Values,
        metering: Metering,
        pieces: bool,
    ) -> None:
        """Dispatch, in pieces if asked for, wait for the end, and raise if the flag is set."""
        engine, scope = self._engine, budget.find_scope()
        uniforms = self._uniform(self._program)
        program, given = uniforms.program, uniforms.values(params)
        shader, pipeline, numbers, groups = self._variant(aliased, metering, program)
        first_at = shader.block.first
        assert first_at is not None
        flag = engine.allocate(4, zero=True)
        with ExitStack() as stack:
            stack.callback(engine.release, flag)
            read = stack.enter_context(self._joined(shader, buffers))
            bound = (*read, out, buffer_of(flag))
            first, size = 0, FIRST_PIECE if pieces else groups
            while first < groups:
                if scope is not None:
                    scope.check(self._program.name)
                size = min(size, groups - first)
                begin = time.monotonic()
                moved = (*numbers[:first_at], first, *numbers[first_at + 1 :])
                block = shader.block.pack(moved, given)
                engine.owner.post(engine.device.dispatch, pipeline, bound, block, size)
                raised = struct.unpack("<I", engine.download(flag))[0]
                self._check_flag(raised, metering)
                first += size
                took = time.monotonic() - begin
                size = size * 2 if took < PIECE_SECONDS else max(size // 2, 1)

    def _check_flag(self, raised: int, metering: Metering) -> None:
        name = self._program.name
        if raised == OVER:
            assert metering.limit is not None
            raise budget.limit_exceeded(name, metering.limit)
        if raised == CUT:
            raise DeviceError(
                f"{name}: its loops make more iterations than {self._engine.owner.name} can, which "
                f"ends all loops of an invocation after {self._engine.loops_end_early} in total. "
                "Loop less, or use device 'cpu'.",
                call=name,
            )


def probe_loops(engine: WebGPUEngine) -> int:
    """Return after how many iterations an adapter ends loops early, or 0 if it does not."""
    made = engine.allocate(8, zero=True)
    try:
        pipeline = engine.shader(read_wgsl("probe.wgsl", __package__), 0, 16)
        engine.dispatch(pipeline, [made], struct.pack("<4I", PROBED, 0, 0, 0), 1)
        last = int(struct.unpack("<2I", engine.download(made))[0])
    finally:
        engine.release(made)
    return 0 if last == PROBED - 1 else last + 1


def buffer_of(storage: Storage) -> DeviceBuffer:
    """Return the buffer of a storage that was not released."""
    buffer = storage.handle
    if buffer is None:
        raise FreedError("this memory was released and cannot be used any more.")
    assert isinstance(buffer, DeviceBuffer)
    return buffer


def buffers_of(storages: Sequence[Storage]) -> tuple[DeviceBuffer, ...]:
    """Return the buffers of storages, none of which was released."""
    found = tuple([storage.handle for storage in storages])
    if None in found:
        return tuple([buffer_of(storage) for storage in storages])  # raises
    return found
