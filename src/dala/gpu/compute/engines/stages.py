"""Chains, stage by stage: where an engine cannot run one in a single pass, or has to count."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from math import prod

from dala.gpu.compute.dtypes import ITEMSIZE
from dala.gpu.compute.engines.base import Engine, Geometry, Link, Runner, Storage, Task
from dala.gpu.compute.engines.scratch import scratch_memory
from dala.gpu.compute.lang.ir import Program


def stage_by_stage(engine: Engine, links: Sequence[Link]) -> Runner:
    """Return a runner that runs the stages of a chain one after another."""
    stages: list[tuple[Link, Runner, str, int]] = []
    for link in links:
        work = link.work
        if isinstance(work, Task):
            made = engine.operate(work)
            assert made is not None
            stages.append((link, made, work.op, 0))
        else:
            runner = engine.prepare(work, _geometry(work, link.out.shape))
            stages.append((link, runner, work.name, len(work.params)))

    def run(inputs: Sequence[Storage], output: Storage, params: tuple[float, ...]) -> None:
        results: list[Storage] = []
        first = 0
        with ExitStack() as own:
            for link, runner, name, count in stages:
                given = [inputs[n] if n >= 0 else results[-1 - n] for n in link.sources]
                if len(results) == len(links) - 1:
                    target = output
                elif link.store is not None:
                    target = inputs[link.store]
                else:
                    nbytes = prod(link.out.shape) * ITEMSIZE[link.out.dtype]
                    (target,) = own.enter_context(scratch_memory(engine, name, nbytes))
                runner(given, target, params[first : first + count])
                first += count
                results.append(target)
            last = links[-1].store
            if last is not None:
                engine.copy(output, inputs[last])

    return run


def _geometry(program: Program, shape: tuple[int, ...]) -> Geometry:
    height, width = shape[:2]
    dims = (height, width) if program.uses_position else (height * width,)
    shapes = tuple(
        (height, width) if a.rank == 2 else (height, width, a.channels) for a in program.args
    )
    return Geometry(dims, ((),) * len(shapes), shapes, shape)
