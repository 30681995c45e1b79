"""Prepare work that runs over an image row by row: single programs, blurs, and chains of both.

Code depends on the values of parameters that are loop bounds. A chain with such parameters is
compiled for each set of values, on first use.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from dala.gpu.compute.engines.base import Geometry, Link, Runner, Task, Tensor
from dala.gpu.compute.engines.cpu.launch import do_nothing, lazily
from dala.gpu.compute.engines.cpu.llvm.analysis import ProgramAnalysis
from dala.gpu.compute.engines.cpu.loops.neighbor_stages import add_neighbor_stages
from dala.gpu.compute.engines.cpu.loops.pair_stages import (
    MAX_STATEMENTS,
    add_pair_stages,
    first_params,
)
from dala.gpu.compute.engines.cpu.loops.runner import (
    PlannedChain,
    plan_rows,
    rows_runner,
    rows_text,
)
from dala.gpu.compute.engines.cpu.rules.blur.stage import blur_fits
from dala.gpu.compute.engines.cpu.rules.choose import analyze
from dala.gpu.compute.engines.cpu.variants import CountedVariant, Variants
from dala.gpu.compute.engines.stages import stage_by_stage
from dala.gpu.compute.engines.unroll import has_loops, loop_params
from dala.gpu.compute.lang.ir import Program, statements

if TYPE_CHECKING:
    from dala.gpu.compute.engines.cpu.engine import CPUEngine


def prepare_program(
    engine: CPUEngine, program: Program, geometry: Geometry, known: Mapping[int, int]
) -> Runner | None:
    """Return a runner for a program that reads around its pixels or uses positions."""
    found = _single(program, geometry)
    return None if found is None else _with_values(engine, *found, known)


def program_text(engine: CPUEngine, program: Program, geometry: Geometry) -> str | None:
    """Return the LLVM IR of a program that runs by rows; None for other programs."""
    found = _single(program, geometry)
    planned = None if found is None else _planned(engine, *found, {})
    return None if planned is None else rows_text(engine, planned[0])


def _single(program: Program, geometry: Geometry) -> tuple[list[Link], list[Tensor]] | None:
    """Return a program as a chain of one stage, and its inputs."""
    if len(geometry.dims) != 2 or not program.out.pixels:
        return None
    height, width = geometry.dims
    if any(tuple(shape[:2]) != (height, width) for shape in geometry.shapes):
        return None
    given = zip(program.args, geometry.shapes, strict=True)
    inputs = [Tensor(tuple(shape), arg.dtype) for arg, shape in given]
    channels = program.out.channels
    shape = (height, width) if channels == 1 else (height, width, channels)
    link = Link(program, tuple(range(len(inputs))), Tensor(shape, program.out.dtype))
    return [link], inputs


def prepare_blur(engine: CPUEngine, task: Task) -> Runner | None:
    """Return a runner for a single blur, compiled on first use: most blurs end up in chains."""
    if 0 in task.output.shape:
        return do_nothing
    if not blur_fits(task):
        return None
    found = _planned(engine, [Link(task, (0,), task.output)], task.inputs, {})
    return None if found is None else lazily(partial(rows_runner, engine, *found))


def make_chain(engine: CPUEngine, links: Sequence[Link], inputs: Sequence[Tensor]) -> Runner | None:
    """Return a runner for a chain, or None if it cannot run in one pass over the image."""
    if not links or not all(_fits(link, links, inputs) for link in links):
        return None
    wanted = _loop_params(links)
    one_by_one = partial(stage_by_stage, engine, links)
    runner: Runner | None = None
    if not wanted:
        runner = _with_values(engine, links, inputs, {})
    # Whether a chain is possible rarely depends on the values: test with one set.
    elif _analyze_all(engine, links, dict.fromkeys(wanted, 1)) is not None:
        runner = Variants(wanted, partial(_with_values, engine, links, inputs), one_by_one)
    counted = any(isinstance(k.work, Program) and has_loops(k.work.body) for k in links)
    return CountedVariant(runner, one_by_one) if runner is not None and counted else runner


def prefers_chain(engine: CPUEngine, producer: Program, consumer: Program) -> bool:
    """Return whether two programs of bytes run faster as stages of a chain than fused.

    Fused, a table or a per-channel program becomes part of a program that unpacks pixels, and the
    input of a stencil is computed again for every neighbor.
    """
    if producer.out.dtype != "u8" or consumer.out.dtype != "u8":
        return False
    first, second = (
        _analyze(p, tuple((i, 1) for i in loop_params(p.body)), bool(engine.machine.lookup))
        for p in (producer, consumer)
    )
    if first is None or second is None:
        return False
    if not all(r.pointwise for r in second.reach) or first.form.name != second.form.name:
        return True
    return first.form.name in ("weighted_sum", "color_matrix")  # a fused program would be neither


def _fits(link: Link, links: Sequence[Link], inputs: Sequence[Tensor]) -> bool:
    shape = links[0].out.shape[:2]
    if isinstance(link.work, Task) and link.work.op != "blur":
        return False
    tensors = [link.out, *(inputs[n] if n >= 0 else links[-1 - n].out for n in link.sources)]
    if link.store is not None:
        tensors.append(inputs[link.store])
    if any(t.shape[:2] != shape or len(t.shape) not in (2, 3) or 0 in t.shape for t in tensors):
        return False
    return blur_fits(link.work) if isinstance(link.work, Task) else link.work.out.pixels


def _loop_params(links: Sequence[Link]) -> dict[int, str]:
    """Return the types of a chain's parameters that are loop bounds, by index."""
    return {
        first + i: link.work.params[i].type
        for link, first in zip(links, first_params(links), strict=True)
        if isinstance(link.work, Program)
        for i in loop_params(link.work.body)
    }


def _analyze_all(
    engine: CPUEngine, links: Sequence[Link], known: Mapping[int, int]
) -> list[ProgramAnalysis | None] | None:
    """Analyze each program of a chain; return None if one cannot run by rows."""
    found: list[ProgramAnalysis | None] = []
    tables = bool(engine.machine.lookup)
    for link, first in zip(links, first_params(links), strict=True):
        if isinstance(link.work, Task):
            found.append(None)
            continue
        own = range(first, first + len(link.work.params))
        values = {i - first: known[i] for i in own if i in known}
        analysis = _analyze(link.work, tuple(values.items()), tables)
        if analysis is None:
            return None
        found.append(analysis)
    total = sum(sum(1 for _ in statements(f.block)) for f in found if f is not None)
    return found if len(links) == 1 or total <= MAX_STATEMENTS else None


@lru_cache(maxsize=32)
def _analyze(
    program: Program, known: tuple[tuple[int, int], ...], tables: bool
) -> ProgramAnalysis | None:
    """Analyze a program, once for all chains that contain it."""
    return analyze(program, dict(known), tables=tables)


def _with_values(
    engine: CPUEngine, links: Sequence[Link], inputs: Sequence[Tensor], known: Mapping[int, int]
) -> Runner | None:
    """Return a runner for given values of the loop bounds."""
    found = _planned(engine, links, inputs, known)
    return None if found is None else rows_runner(engine, *found)


def _planned(
    engine: CPUEngine, links: Sequence[Link], inputs: Sequence[Tensor], known: Mapping[int, int]
) -> tuple[PlannedChain, tuple[Hashable, ...]] | None:
    """Return a plan and its key, with stages of neighbors and of pairs where they fit."""
    analysis = _analyze_all(engine, links, known)
    if analysis is None:
        return None
    # Per-channel rows do not unpack pixels, so neighbor stages would save little.
    worth = [f is not None and f.scale == 1 and f.form.name == "packed" for f in analysis]
    tries: list[tuple[Sequence[Link], list[ProgramAnalysis | None]]] = [(links, analysis)]
    for split in (lambda given, _: add_neighbor_stages(given, worth), add_pair_stages):
        more = split(*tries[-1])
        found = _analyze_all(engine, more, known) if len(more) > len(tries[-1][0]) else None
        if found is not None:
            tries.append((more, found))
    for stages, found in reversed(tries):
        planned = plan_rows(stages, found, inputs, engine.machine)
        if planned is not None:
            return planned, _key(stages, known)
    return None


def _key(links: Sequence[Link], known: Mapping[int, int]) -> tuple[Hashable, ...]:
    names = tuple(w.work.key if isinstance(w.work, Program) else w.work.op for w in links)
    return names, *known.items()
