"""Compile and run chains of stages, each in one pass over the image."""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dala.gpu.compute.engines.base import Link, Runner, Storage, Tensor
from dala.gpu.compute.engines.cpu import cost as cpu_cost
from dala.gpu.compute.engines.cpu.jit import Code
from dala.gpu.compute.engines.cpu.job import CallWithoutGil, job_head, job_packer
from dala.gpu.compute.engines.cpu.launch import NativeJob, job_runner
from dala.gpu.compute.engines.cpu.llvm.analysis import ProgramAnalysis
from dala.gpu.compute.engines.cpu.llvm.kernel import assemble
from dala.gpu.compute.engines.cpu.llvm.metering import is_long
from dala.gpu.compute.engines.cpu.llvm.text import Module
from dala.gpu.compute.engines.cpu.llvm.tiles import HEAD_WORDS
from dala.gpu.compute.engines.cpu.rows.forms.blur.stage import blur_form, blur_row, blur_weights
from dala.gpu.compute.engines.cpu.rows.forms.row_functions import row_functions
from dala.gpu.compute.engines.cpu.rows.plan import (
    RowPlan,
    RowStage,
    blur_radius,
    lay_out,
    make_stages,
)
from dala.gpu.compute.engines.cpu.rows.row import RowSpec, RowWords
from dala.gpu.compute.engines.cpu.rows.window import SlidingWindow, table_size
from dala.gpu.compute.engines.scratch import scratch_memory
from dala.gpu.compute.lang.ir import Program

if TYPE_CHECKING:
    from dala.gpu.compute.engines.cpu.engine import CPUEngine

#: Numbers in a job block before those of the stages: height, width, rows, columns, tiles across.
_NUMBERS: Final = 5
#: Stack sizes that code reserves; the smallest sufficient one is used.
_STACK_SIZES: Final = (32 << 10, 64 << 10, 128 << 10, 240 << 10)
#: Tiles per thread, so that other threads can take over from a slow one.
_TILES: Final = 6


@dataclass(frozen=True)
class PlannedChain:
    """A chain that can run in one pass."""

    plan: RowPlan
    layout: _Layout
    #: Bytes of stack.
    stack_bytes: int
    #: Inputs and stored outputs.
    pointers: int
    #: Types of the chain's parameters.
    types: tuple[str, ...]

    @property
    def large(self) -> bool:
        """Whether no cache holds the output, and its rows can be stored around the caches."""
        plan, last = self.plan, self.plan.stages[-1]
        if last.analysis is None or last.analysis.table or last.ring or last.store is not None:
            return False
        lines = [columns * last.pixel % 64 == 0 for columns in (plan.width, plan.columns)]
        return plan.height * plan.width * last.pixel >= cpu_cost.STREAM_BYTES and all(lines)


def plan_rows(
    links: Sequence[Link],
    analysis: Sequence[ProgramAnalysis | None],
    inputs: Sequence[Tensor],
    lanes: int,
) -> PlannedChain | None:
    """Plan a chain; return None if it needs too many or too wide rows.

    Args:
        links: The stages.
        analysis: The analysis of each link that is a program.
        inputs: The chain's inputs.
        lanes: Elements of a vector.
    """
    height, width = links[0].out.shape[:2]
    stages = make_stages(links, analysis, inputs)
    plan = lay_out(stages, height, width, lanes)
    if plan is None:
        return None
    stack_bytes = next(s for s in _STACK_SIZES if s >= plan.stack_bytes)
    programs = [link.work for link in links if isinstance(link.work, Program)]
    types = tuple(p.type for program in programs for p in program.params)
    return PlannedChain(plan, _Layout(stages, len(inputs)), stack_bytes, len(inputs), types)


def rows_runner(engine: CPUEngine, planned: PlannedChain, key: tuple[Hashable, ...]) -> Runner:
    """Return the runner of a chain; ``key`` identifies its programs."""
    described = tuple(_described(s) for s in planned.plan.stages)

    def make(stream: bool) -> Runner:
        full_key = ("rows", key, described, planned.pointers, planned.stack_bytes, stream)
        code = engine.code_for(full_key, lambda: rows_text(engine, planned, stream=stream))
        return _runner(engine, planned, code)

    if not (engine.streams and planned.large):
        return make(False)
    return _by_alignment(make)


def _by_alignment(make: Callable[[bool], Runner]) -> Runner:
    """Return a runner that uses non-temporal stores where the output is on a 64-byte boundary."""
    streaming = make(True)
    other: list[Runner] = []

    def run(inputs: Sequence[Storage], output: Storage, params: tuple[float, ...]) -> None:
        if output.handle is not None and output.handle.address % 64 == 0:
            streaming(inputs, output, params)
            return
        if not other:  # rarely needed
            other.append(make(False))
        other[0](inputs, output, params)

    run.__dict__["code"] = streaming
    return run


def _described(s: RowStage) -> str:
    """Return the properties of a stage that its code depends on, apart from its program."""
    sources = [(q.stage, q.input, q.reach) for q in s.sources]
    blur = blur_form(s.blur) if s.blur is not None else None
    planes = s.planes.described if s.planes is not None else None
    return repr((blur, planes, s.out.dtype, s.channels, sources, s.store, s.first_param))


class _Layout:
    """The layout of a chain's job block, as indexes of eight-byte words."""

    def __init__(self, stages: Sequence[RowStage], pointers: int) -> None:
        self.first_input = HEAD_WORDS
        self.first_number = HEAD_WORDS + pointers
        at = self.first_number + _NUMBERS + 3 * len(stages)
        #: The first weight of each blur.
        self.weights: dict[int, int] = {}
        #: The call of each stage that converts planes.
        self.calls: dict[int, int] = {}
        for i, s in enumerate(stages):
            if s.blur is not None:
                self.weights[i] = at
                at += blur_radius(s.blur) + 1
            elif s.planes is not None:
                self.calls[i] = at
                at += s.planes.words
        self.first_param = at


def rows_text(engine: CPUEngine, planned: PlannedChain, *, stream: bool = False) -> str:
    """Return the module of a chain, as LLVM IR; ``stream``: with non-temporal stores."""
    stages, layout = planned.plan.stages, planned.layout
    module = Module()
    functions, names = [], []
    for i, s in enumerate(stages):
        name = f"@stage{i}"
        names.append(name)
        if s.blur is not None:
            first = layout.weights[i]
            width = layout.first_number + 1
            functions.append(blur_row(module, name, s, first, width, engine.machine, not s.ring))
        elif s.analysis is not None:
            ahead = table_size(s) - 1 if s.prefetches else None
            words = RowWords(_dims(layout), layout.first_param + s.first_param, ahead)
            exact = [q.stage is None for q in s.sources]
            last = stream and i == len(stages) - 1
            spec = RowSpec(module, name, s.analysis, words, engine.machine, exact, not s.ring, last)
            functions.append(row_functions(spec))
    window = SlidingWindow(
        module,
        stages,
        names,
        planned.stack_bytes,
        layout.first_number,
        layout.first_input,
        layout.calls,
        stream=stream,
    )
    functions.append(window.text())
    heading = "; a chain of " + ", ".join(_name(s) for s in stages) + "\n"
    return assemble(module, heading, "\n".join(functions), engine.attributes)


def _dims(layout: _Layout) -> Callable[[tuple[int, int]], int]:
    return lambda dim: layout.first_number + dim[1]


def _name(s: RowStage) -> str:
    if s.analysis is not None:
        name = s.analysis.program.name
        return name if name.isprintable() else repr(name)
    if s.planes is not None:
        return s.planes.op
    return s.blur.op if s.blur is not None else "copy"


def _runner(engine: CPUEngine, planned: PlannedChain, code: Code) -> Runner:
    plan, pointers = planned.plan, planned.pointers
    stages = plan.stages
    across = -(-plan.width // plan.columns)
    helpers, strip = _share(plan, engine.threads.threads, across)
    total = -(-plan.height // strip) * across
    head = job_head(total, 1, code.addresses["body"])
    numbers = [plan.height, plan.width, strip, plan.columns, across]
    for (ring, stride), scratch in zip(plan.rings, plan.scratch, strict=True):
        numbers += [ring, stride, scratch]
    fixed = struct.pack(f"={len(numbers)}q", *numbers)
    for s in stages:
        if s.blur is not None:
            fixed += blur_weights(s.blur)
        elif s.planes is not None:
            fixed += s.planes.call
    work = _work(plan)
    large = work >= cpu_cost.GUARDED_NS
    long = any(s.analysis is not None and is_long(s.analysis.block) for s in stages)
    job = NativeJob(
        ", ".join(_name(s) for s in stages),
        head,
        pack=job_packer(pointers, fixed, planned.types),
        run_all=CallWithoutGil(code.addresses["all"]),
        tiles=engine.tiles() if helpers or large else None,
        helpers=helpers,
        guarded=long or large,
    )
    launch = job_runner(job, engine.threads)
    # A single pointwise program may write to its input.
    alone = len(stages) == 1 and all(q.reach.pointwise for q in stages[0].sources)
    stored = sorted({s.store for s in stages if s.store is not None})

    def run(inputs: Sequence[Storage], output: Storage, params: tuple[float, ...]) -> None:
        if not alone and _overlaps(inputs, output, stored):
            _run_in_copies(engine, launch, inputs, output, params, stored)
        else:
            launch(inputs, output, params)

    # The code, of the chain and of the functions it calls, must live as long as the runner.
    run.__dict__["code"] = code, [s.planes.native for s in stages if s.planes is not None]
    return run


def _work(plan: RowPlan) -> float:
    """Return the estimated work on one core, in nanoseconds."""
    return plan.height * plan.width * sum(cpu_cost.stage_ns(s) for s in plan.stages)


def _share(plan: RowPlan, threads: int, across: int) -> tuple[int, int]:
    """Return the number of helper threads and the rows of a strip."""
    work = _work(plan)
    if work < cpu_cost.SINGLE_THREAD_NS:
        return 0, plan.height
    helpers = min(threads - 1, max(1, int(work // cpu_cost.HELPER_NS)))
    # Rows around a strip are computed again in the next one, so strips should not be thin.
    strip = max(-(-plan.height * across // ((helpers + 1) * _TILES)), 6 * plan.halo, 1)
    strip = max(min(strip, -(-plan.height * across // (helpers + 1)), plan.height), 1)
    if any(s.planes is not None for s in plan.stages):
        strip += strip % 2  # two rows share their chroma
    return helpers, strip


def _range(storage: Storage) -> tuple[int, int]:
    memory = storage.handle
    return (0, 0) if memory is None else (memory.address, memory.address + storage.nbytes)


def _overlaps(inputs: Sequence[Storage], output: Storage, stored: list[int]) -> bool:
    """Return whether an output overlaps an input."""
    written = [_range(s) for s in (output, *(inputs[i] for i in stored))]
    for i, s in enumerate(inputs):
        if i not in stored:
            begin, end = _range(s)
            if any(a < end and begin < b for a, b in written):
                return True
    return False


def _run_in_copies(
    engine: CPUEngine, run: Runner, inputs: Sequence[Storage], output: Storage,
    params: tuple[float, ...], stored: list[int],
) -> None:  # fmt: skip
    """Run into temporary memory and copy: no tile may read what another has written."""
    given = list(inputs)
    targets = [*(inputs[i] for i in stored), output]
    with scratch_memory(engine, "a pipeline", *(target.nbytes for target in targets)) as copies:
        for i, copy in zip(stored, copies, strict=False):
            given[i] = copy
        run(given, copies[-1], params)
        for copy, target in zip(copies, targets, strict=True):
            engine.copy(copy, target)
