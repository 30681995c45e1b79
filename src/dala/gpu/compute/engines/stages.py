"""Chains, stage by stage: where an engine cannot run one in a single pass, or has to count."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from dala.gpu.compute.engines.base import (
    Engine,
    Geometry,
    Link,
    Runner,
    Storage,
    Task,
    Tensor,
)
from dala.gpu.compute.engines.scratch import scratch_memory
from dala.gpu.compute.lang.ir import Program


def stage_by_stage(engine: Engine, links: Sequence[Link]) -> Runner:
    """Return a runner that runs the stages of a chain one after another."""
    runners: list[Runner] = []
    counts = []
    for link in links:
        if isinstance(link.work, Task):
            made = engine.operate(link.work)
            assert made is not None
            runners.append(made)
            counts.append(0)
        else:
            runners.append(engine.prepare(link.work, _geometry(link)))
            counts.append(len(link.work.params))

    def run(inputs: Sequence[Storage], output: Storage, params: tuple[float, ...]) -> None:
        results: list[Storage] = []
        first = 0
        with ExitStack() as own:
            for link, runner, count in zip(links, runners, counts, strict=True):
                given = [inputs[n] if n >= 0 else results[-1 - n] for n in link.sources]
                if len(results) == len(links) - 1:
                    target = output
                elif link.store is not None:
                    target = inputs[link.store]
                else:
                    between = scratch_memory(engine, _name(link), _nbytes(link.out))
                    (target,) = own.enter_context(between)
                runner(given, target, params[first : first + count])
                first += count
                results.append(target)
            last = links[-1].store
            if last is not None:
                engine.copy(output, inputs[last])

    return run


def _name(link: Link) -> str:
    return link.work.op if isinstance(link.work, Task) else link.work.name


def _geometry(link: Link) -> Geometry:
    program = link.work
    assert isinstance(program, Program)
    height, width = link.out.shape[:2]
    dims = (height, width) if program.uses_position else (height * width,)
    shapes = tuple(
        (height, width) if a.rank == 2 else (height, width, a.channels) for a in program.args
    )
    return Geometry(dims, ((),) * len(shapes), shapes, link.out.shape)


def _nbytes(tensor: Tensor) -> int:
    total = 4 if tensor.dtype == "f32" else 1
    for extent in tensor.shape:
        total *= extent
    return total
