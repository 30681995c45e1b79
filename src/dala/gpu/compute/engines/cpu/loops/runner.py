"""Compile and run chains of stages, each in one pass over the image."""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from dala.gpu.compute.engines.base import Link, Runner, Storage, Tensor
from dala.gpu.compute.engines.cpu import cost as cpu_cost
from dala.gpu.compute.engines.cpu.jit import Code
from dala.gpu.compute.engines.cpu.job import CallWithoutGil, job_head, job_packer
from dala.gpu.compute.engines.cpu.launch import job_runner, lazily
from dala.gpu.compute.engines.cpu.llvm.analysis import ProgramAnalysis
from dala.gpu.compute.engines.cpu.llvm.kernel import assemble
from dala.gpu.compute.engines.cpu.llvm.metering import is_long
from dala.gpu.compute.engines.cpu.llvm.tiles import HEAD_WORDS
from dala.gpu.compute.engines.cpu.loops.pair_stages import Part
from dala.gpu.compute.engines.cpu.loops.plan import (
    RowPlan,
    RowStage,
    blur_radius,
    lay_out,
    make_stages,
    original,
)
from dala.gpu.compute.engines.cpu.loops.row import RowSpec
from dala.gpu.compute.engines.cpu.loops.window import SlidingWindow, table_size
from dala.gpu.compute.engines.cpu.machine import Machine
from dala.gpu.compute.engines.cpu.rules.blur.stage import blur_form, blur_weights, row_blur
from dala.gpu.compute.engines.cpu.vector.text import Module
from dala.gpu.compute.engines.scratch import scratch_memory
from dala.gpu.compute.lang.ir import Program

if TYPE_CHECKING:
    from dala.gpu.compute.engines.cpu.engine import CPUEngine

#: Numbers in a job block before those of the stages: height, width, rows, columns, tiles across.
_NUMBERS: Final = 5
#: Tiles per thread, so that other threads can take over from a slow one.
_TILES: Final = 6


@dataclass(frozen=True)
class PlannedChain:
    """A chain that can run in one pass."""

    plan: RowPlan
    layout: ChainLayout
    #: Inputs and stored outputs.
    pointers: int
    #: Types of the chain's parameters.
    types: tuple[str, ...]

    @property
    def large(self) -> bool:
        """Whether no cache holds the output, and its rows can be stored around the caches."""
        plan, last = self.plan, self.plan.stages[-1]
        if last.analysis is None or last.table or last.ring or last.store is not None:
            return False
        lines = [columns * last.pixel % 64 == 0 for columns in (plan.width, plan.columns)]
        return plan.height * plan.width * last.pixel >= cpu_cost.STREAM_BYTES and all(lines)


def plan_rows(
    links: Sequence[Link],
    analysis: Sequence[ProgramAnalysis | None],
    inputs: Sequence[Tensor],
    machine: Machine,
) -> PlannedChain | None:
    """Plan a chain; return None if it needs too many or too wide rows.

    Args:
        links: The stages.
        analysis: The analysis of each link that is a program.
        inputs: The chain's inputs.
        machine: The CPU.
    """
    height, width = links[0].out.shape[:2]
    stages = make_stages(links, analysis, inputs, bool(machine.pair_product))
    plan = lay_out(stages, height, width, machine.vector // 4)
    if plan is None:
        return None
    programs = [k.work for k in links if isinstance(k.work, Program) and not isinstance(k, Part)]
    types = tuple(p.type for program in programs for p in program.params)
    return PlannedChain(plan, ChainLayout(stages, len(inputs)), len(inputs), types)


def rows_runner(engine: CPUEngine, planned: PlannedChain, key: tuple[Hashable, ...]) -> Runner:
    """Return the runner of a chain; ``key`` identifies its programs."""
    described = tuple(_described(s) for s in planned.plan.stages)
    named = [s.analysis.program.name if s.analysis else "blur" for s in planned.plan.stages
             if s.analysis or s.blur]  # fmt: skip
    call = " > ".join(dict.fromkeys(named)) or "a copy of rows"

    def make(stream: bool) -> Runner:
        full_key = ("rows", key, described, planned.pointers, planned.plan.stack_bytes, stream)
        code = engine.code_for(full_key, lambda: rows_text(engine, planned, stream=stream), call)
        return _runner(engine, planned, code)

    if not (engine.machine.streams and planned.large):
        return make(False)
    return _by_alignment(make)


def _by_alignment(make: Callable[[bool], Runner]) -> Runner:
    """Return a runner that uses non-temporal stores where the output is on a 64-byte boundary."""
    streaming = make(True)
    other = lazily(partial(make, False))  # rarely needed

    def run(inputs: Sequence[Storage], output: Storage, params: tuple[float, ...]) -> None:
        aligned = output.handle is not None and output.handle.address % 64 == 0
        (streaming if aligned else other)(inputs, output, params)

    run.__dict__["code"] = streaming
    return run


def _described(s: RowStage) -> str:
    """Return the properties of a stage that its code depends on, apart from its program."""
    sources = [(q.stage, q.input, q.reach, q.neighbor) for q in s.sources]
    blur = blur_form(s.blur) if s.blur is not None else None
    kind = s.out.dtype, s.channels, s.colors
    return repr((blur, kind, sources, s.store, s.first_param, s.beyond))


class ChainLayout:
    """The layout of a chain's job block, as indexes of eight-byte words."""

    def __init__(self, stages: Sequence[RowStage], pointers: int) -> None:
        self.first_input = HEAD_WORDS
        self.first_number = HEAD_WORDS + pointers
        at = self.first_number + _NUMBERS + 3 * len(stages)
        #: The first weight of each blur.
        self.weights: dict[int, int] = {}
        for i, s in enumerate(stages):
            if s.blur is not None:
                self.weights[i] = at
                at += blur_radius(s.blur) + 1
        self.first_param = at


def rows_text(engine: CPUEngine, planned: PlannedChain, *, stream: bool = False) -> str:
    """Return the module of a chain, as LLVM IR; ``stream``: with non-temporal stores."""
    stages, layout = planned.plan.stages, planned.layout
    module = Module()
    functions, names = [], []
    shared: dict[Hashable, str] = {}
    for i, s in enumerate(stages):
        name = f"@stage{i}"
        names.append(name)
        if s.blur is not None:
            words = layout.weights[i], layout.first_number + 1
            functions.append(row_blur(s.blur)(module, name, s, *words, engine.machine).text())
        elif s.analysis is not None:
            ahead = table_size(s) - 1 if s.prefetches else None
            exact = [q.stage is None for q in s.sources]
            far = [
                k for k, q in enumerate(s.sources) if original(stages, q) or (exact[k] and s.ring)
            ]
            last = stream and i == len(stages) - 1
            spec = RowSpec(
                module, name, s.analysis, engine.machine, lambda dim: layout.first_number + dim[1],
                layout.first_param + s.first_param, exact, not s.ring, ahead, last, far, s.beyond,
            )  # fmt: skip
            # Parts of a program differ in where they read, which the window knows.
            program = s.analysis.program.key, s.first_param, ahead, *exact, *far
            names[i] = shared.setdefault(program if s.beyond else name, name)
            if names[i] == name:
                functions.append(spec.analysis.form.text(spec))
    window = SlidingWindow(module, planned, names, engine.machine.vector, stream=stream)
    functions.append(window.text())
    heading = "; a chain of " + ", ".join(_name(s) for s in stages) + "\n"
    return assemble(module, heading, "\n".join(functions), engine.machine.attributes)


def _name(s: RowStage) -> str:
    if s.analysis is not None:
        name = s.analysis.program.name
        return name if name.isprintable() else repr(name)
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
    work = _work(plan)
    large = work >= cpu_cost.GUARDED_NS
    long = any(s.analysis is not None and is_long(s.analysis.block) for s in stages)
    launch = job_runner(
        engine.threads, ", ".join(_name(s) for s in stages), head,
        job_packer(pointers, fixed, planned.types), CallWithoutGil(code.addresses["all"]),
        engine.tiles() if helpers or large else None, helpers, guarded=long or large,
    )  # fmt: skip
    # A single pointwise program may write to its input.
    alone = len(stages) == 1 and all(q.reach.pointwise for q in stages[0].sources)
    stored = sorted({s.store for s in stages if s.store is not None})

    def run(inputs: Sequence[Storage], output: Storage, params: tuple[float, ...]) -> None:
        if not alone and _overlaps(inputs, output, stored):
            _run_in_copies(engine, launch, inputs, output, params, stored)
        else:
            launch(inputs, output, params)

    run.__dict__["code"] = code  # it must live as long as the runner
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
    return helpers, strip


def _range(storage: Storage) -> tuple[int, int]:
    memory = storage.handle
    return (0, 0) if memory is None else (memory.address, memory.address + storage.nbytes)


def _overlaps(inputs: Sequence[Storage], output: Storage, stored: list[int]) -> bool:
    """Return whether an output overlaps an input."""
    written = [_range(s) for s in (output, *(inputs[i] for i in stored))]
    read = [_range(s) for i, s in enumerate(inputs) if i not in stored]
    return any(a < end and begin < b for begin, end in read for a, b in written)


def _run_in_copies(
    engine: CPUEngine, run: Runner, inputs: Sequence[Storage], output: Storage,
    params: tuple[float, ...], stored: list[int],
) -> None:  # fmt: skip
    """Run into temporary memory and copy: no tile may read the output of another."""
    given = list(inputs)
    targets = [*(inputs[i] for i in stored), output]
    with scratch_memory(engine, "a pipeline", *(target.nbytes for target in targets)) as copies:
        for i, copy in zip(stored, copies, strict=False):
            given[i] = copy
        run(given, copies[-1], params)
        for copy, target in zip(copies, targets, strict=True):
            engine.copy(copy, target)
