"""The CPU engine: kernels compiled with LLVM and run in tiles on the engine's own threads.

Memory is ordinary host memory, so views are free and copies are rare. There is no queue: work is
done when a runner returns.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from dala import forks
from dala.gpu.compute.dtypes import DTYPES, ITEMSIZE
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
)
from dala.gpu.compute.engines.cpu import cost as cpu_cost
from dala.gpu.compute.engines.cpu.compiles import Compiles
from dala.gpu.compute.engines.cpu.effort import effort_for
from dala.gpu.compute.engines.cpu.jit import Code, Jit, jit
from dala.gpu.compute.engines.cpu.job import (
    CallWithGil,
    CallWithoutGil,
    freed_error,
    job_head,
    job_packer,
)
from dala.gpu.compute.engines.cpu.launch import do_nothing, job_runner
from dala.gpu.compute.engines.cpu.llvm.kernel import JobLayout, module_text
from dala.gpu.compute.engines.cpu.llvm.metering import is_long
from dala.gpu.compute.engines.cpu.memory import Array, HostMemory, Memory, address_of
from dala.gpu.compute.engines.cpu.ops import IMPLEMENTATIONS
from dala.gpu.compute.engines.cpu.threads import ThreadPool, Tiles, pool, usable_cores
from dala.gpu.compute.engines.cpu.variants import CountedVariant, Variants
from dala.gpu.compute.engines.hardware import cpu_name
from dala.gpu.compute.engines.unroll import has_loops, loop_params, unroll
from dala.gpu.compute.lang.ir import Program

if TYPE_CHECKING:
    from dala.gpu.compute.engines.compositing import Composer
    from dala.gpu.compute.engines.cpu.llvm.analysis import ProgramAnalysis
    from dala.gpu.compute.engines.cpu.machine import Machine

# Modules for images are imported on first use: most calls do not need them.

#: The most programs kept compiled in memory. Older ones are reloaded from disk when needed.
MAX_PROGRAMS: Final = 512

#: Numbers of an input at most whose places vectors of positions count, in 32 bits.
MAX_PLACES: Final = 1 << 32

#: Estimated work after which code specialized for loop bounds pays for its compilation: for
#: programs in general, and for programs that run by rows.
SPECIALIZE_NS: Final = 20e6
SPECIALIZE_ROWS_NS: Final = 4e6


class CPUEngine(Engine):
    """An engine that runs programs on the host's cores."""

    id = "cpu"
    backend = "cpu"
    chain_method = "one sliding window"
    dtypes = frozenset(DTYPES)

    def __init__(self, *, compiler: Jit | None = None, threads: ThreadPool | None = None) -> None:
        self._compiler = compiler
        self._pool = threads
        self._memory = HostMemory()
        self._live: dict[int, int] = {}
        self._codes: dict[tuple[Hashable, ...], Code] = {}
        self._keeping = forks.lock()
        self._compiles: Compiles[Code] = Compiles()

    @property
    def _jit(self) -> Jit:
        if self._compiler is None:
            self._compiler = jit()
        return self._compiler

    @property
    def machine(self) -> Machine:
        """Properties of this CPU that generated code depends on."""
        return self._jit.machine

    @property
    def threads(self) -> ThreadPool:
        """The threads that run tiles."""
        if self._pool is None:
            self._pool = pool()
        return self._pool

    def info(self) -> Info:
        """Return name, cores, threads, vector features, LLVM version and cache folder."""
        compiler = self._jit
        return {
            "name": cpu_name(),
            "gpu": False,
            "backend": self.backend,
            "cores": usable_cores(),
            "threads": self.threads.threads,
            "target": compiler.cpu,
            "features": cpu_cost.vector_features(compiler.features),
            "llvm": compiler.version,
            "cache_dir": compiler.cache.folder,
        }

    # memory -----------------------------------------------------------------------------------
    def allocate(self, nbytes: int, *, zero: bool) -> Storage:
        """Allocate memory on a 64-byte boundary."""
        return self._storage(nbytes, self._memory.allocate(nbytes, zero=zero))

    def _storage(self, nbytes: int, memory: Memory, foreign: bool = False) -> Storage:
        storage = Storage(nbytes, memory, foreign)
        self._live[id(storage)] = nbytes
        return storage

    def release(self, storage: Storage) -> None:
        """Drop the reference to the memory; views of it and running calls keep it alive."""
        self._live.pop(id(storage), None)
        storage.handle = None

    def upload(self, storage: Storage, data: Bytes) -> None:
        """Copy host bytes into a storage."""
        if storage.nbytes:
            np.copyto(_array(storage), np.frombuffer(data, np.uint8))

    def download(self, storage: Storage) -> memoryview:
        """Return a copy of the bytes."""
        return memoryview(_array(storage).copy())

    def copy(self, source: Storage, target: Storage) -> None:
        """Copy one storage to another, which may be the same."""
        np.copyto(_array(target), _array(source))

    def host_view(self, storage: Storage) -> memoryview:
        """Return the bytes without a copy; the view keeps them alive after release."""
        return memoryview(_array(storage))

    def adopt(self, memory: memoryview) -> Storage | None:
        """Return a storage over the caller's bytes; None if they are empty or not contiguous."""
        if not memory.c_contiguous or not memory.nbytes:
            return None
        array = np.frombuffer(memory, np.uint8)
        return self._storage(memory.nbytes, Memory(array, address_of(array)), foreign=True)

    # work -------------------------------------------------------------------------------------
    def source(self, program: Program, geometry: Geometry) -> str:
        """Return the LLVM IR of a program, before optimization."""
        text = None
        if program.out.pixels:
            from dala.gpu.compute.engines.cpu.loops.chain import program_text

            text = program_text(self, program, geometry)
        return text or self._text(program, geometry, {})

    def assembly(self, program: Program, geometry: Geometry) -> str:
        """Return the assembly of a program."""
        text = self.source(program, geometry)
        return self._jit.assembly(text, effort=effort_for(text))

    def prepare(self, program: Program, geometry: Geometry) -> Runner:
        """Return the runner of a program for a geometry."""
        if geometry.count == 0:
            return do_nothing
        plan = cpu_cost.plan(program, geometry, self.threads.threads)

        def specialized(known: Mapping[int, int]) -> Runner | None:
            if program.out.pixels:
                from dala.gpu.compute.engines.cpu.loops.chain import prepare_program

                runner = prepare_program(self, program, geometry, known)
                if runner is not None:
                    return runner
            if known and has_loops(unroll(program.body, program.result, known)[0]):
                return None  # with a loop left, specialized code is no faster
            return self._runner(program, geometry, plan, known)

        def general() -> Runner:
            made = specialized({})
            assert made is not None
            return made

        types = {i: program.params[i].type for i in loop_params(program.body)}
        if types:
            # Row code needs the values, and compiles quickly.
            rows = self._analysis(program, dict.fromkeys(types, 1)) is not None
            limit = SPECIALIZE_ROWS_NS if rows else SPECIALIZE_NS
            runner: Runner = Variants(types, specialized, general, plan.work_ns, limit)
        else:
            runner = general()
        if not has_loops(program.body):
            return runner

        counted = partial(self._runner, program, geometry, plan, {}, counting=True)
        return CountedVariant(runner, counted)

    def chain(self, links: Sequence[Link], inputs: Sequence[Tensor]) -> Runner | None:
        """Return a runner that runs a chain in one pass over the image, or None."""
        from dala.gpu.compute.engines.cpu.loops.chain import make_chain

        return make_chain(self, links, inputs)

    def prefers_chain(self, producer: Program, consumer: Program) -> bool:
        """Return whether two programs run faster as stages of a chain than fused."""
        if not (producer.out.pixels and consumer.out.pixels):
            return False
        from dala.gpu.compute.engines.cpu.loops.chain import prefers_chain

        return prefers_chain(self, producer, consumer)

    def operate(self, task: Task) -> Runner | None:
        """Return a runner for an operation, or None if the engine does not implement it."""
        return IMPLEMENTATIONS.prepare(self, task)

    def composer(self) -> Composer:
        """Return a new compositor that runs native code, tile by tile."""
        from dala.gpu.compute.engines.cpu.compose.composer import CPUComposer

        return CPUComposer()

    def _text(
        self,
        program: Program,
        geometry: Geometry,
        known: Mapping[int, int],
        counting: bool = False,
    ) -> str:
        attributes, layout = self.machine.attributes, geometry.layout
        analysis = self._analysis(program, known) if layout[0] == 1 and not counting else None
        single = analysis is None and _goes_singly(program, geometry)
        machine = None if single else self.machine
        return module_text(program, layout, attributes, known, analysis, machine, counting)

    def _analysis(self, program: Program, known: Mapping[int, int]) -> ProgramAnalysis | None:
        """Return the analysis of a pixel program, or None if it cannot be emitted with vectors."""
        if not program.out.pixels:
            return None
        from dala.gpu.compute.engines.cpu.rules.choose import analyze

        return analyze(program, known, tables=bool(self.machine.lookup))

    def code_for(
        self,
        key: tuple[Hashable, ...],
        text: Callable[[], str],
        call: str,
        *,
        unrolled: bool = False,
    ) -> Code:
        """Return the functions ``body`` and ``all`` of a module, compiled on first use.

        Callers wait for the compilation of their own key only; ``call`` names them in errors.
        """
        found = self._codes.get(key)
        if found is not None:
            return found
        compiler, exports = self._jit, ("body", "all")
        module = text()
        loaded = compiler.load_cached(module, exports)
        if loaded is not None:
            return self._kept(key, loaded)

        def make() -> Code:
            effort = effort_for(module, unrolled=unrolled)
            code = compiler.compile_new(module, exports, effort=effort)
            return self._kept(key, code)

        return self._compiles.run(key, make, call)

    def _kept(self, key: tuple[Hashable, ...], code: Code) -> Code:
        with self._keeping:
            if len(self._codes) >= MAX_PROGRAMS:
                self._codes.pop(next(iter(self._codes)))
            return self._codes.setdefault(key, code)

    def _runner(
        self,
        program: Program,
        geometry: Geometry,
        plan: cpu_cost.TilePlan,
        known: Mapping[int, int],
        counting: bool = False,
    ) -> Runner:
        singly = _goes_singly(program, geometry)
        code = self.code_for(
            (program.key, geometry.layout, *known.items(), counting, singly),
            lambda: self._text(program, geometry, known, counting),
            program.name,
            unrolled=bool(known),
        )
        long = counting or is_long(program.body, known)
        layout = JobLayout(program, len(geometry.dims))
        numbers = layout.geometry_values(geometry)
        fixed = struct.pack(f"={len(numbers)}q", *numbers)
        size = ITEMSIZE[program.out.dtype] * program.out.channels
        total, body = geometry.count, code.addresses["body"]
        plain, stream = (
            job_head(total, plan.chunk, body, size, nontemporal) for nontemporal in (False, True)
        )
        run = job_runner(
            self.threads, program.name, plain,
            job_packer(layout.inputs, fixed, [p.type for p in program.params]),
            (CallWithGil if plan.keep_gil else CallWithoutGil)(code.addresses["all"]),
            self.tiles() if plan.helpers or plan.stream or plan.chunk < total else None,
            plan.helpers, guarded=long or plan.work_ns >= cpu_cost.GUARDED_NS,
            stream=stream if plan.stream else None, size=size,
        )  # fmt: skip
        run.__dict__["code"] = code  # the code must live as long as its runner
        return run

    def tiles(self) -> Tiles:
        """Return the functions that run a job on several threads."""
        code = self._jit.tiles()
        return Tiles(code.addresses, code)

    def stats(self) -> dict[str, int]:
        """Return counts of live memory, memory kept for reuse, and compilations."""
        sizes = list(self._live.values())
        found = {
            "live_buffers": len(sizes),
            "live_bytes": sum(sizes),
            "kept_bytes": self._memory.kept_bytes,
            "compiled": 0,
            "cache_hits": 0,
            "compile_ms": 0,
        }
        if self._compiler is not None:
            found["compiled"] = self._compiler.compiled
            found["cache_hits"] = self._compiler.cache_hits
            found["compile_ms"] = round(self._compiler.compile_seconds * 1000)
        return found

    def close(self) -> None:
        """Drop compiled code and memory kept for reuse."""
        self._codes.clear()
        self._memory.clear()


def _goes_singly(program: Program, geometry: Geometry) -> bool:
    """Return whether vectors of positions cannot read the inputs.

    Samples load two by two, and an image may have no two rows or columns; places in an input are
    numbers of 32 bits.
    """
    shapes = list(zip(program.args, geometry.shapes, strict=True))
    narrow = any(a.kind == "image" and min(shape[:2]) < 2 for a, shape in shapes)
    return narrow or any(math.prod(shape) > MAX_PLACES for _, shape in shapes)


def _array(storage: Storage) -> Array:
    try:
        array: Array = storage.handle.array
        return array
    except AttributeError:
        raise freed_error() from None
