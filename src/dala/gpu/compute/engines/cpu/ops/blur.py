"""Gaussian blur on the CPU: a chain of one stage, or a coarse grid for large radii."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dala.gpu.compute.engines.cpu.loops.chain import prepare_blur
from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.ops.shared import *
from dala.gpu.compute.engines.cpu.ops.wide_blur import make_wide_blur
from dala.gpu.compute.engines.sampling.gauss import EXACT_RADIUS

if TYPE_CHECKING:
    from dala.gpu.compute.engines.cpu.engine import CPUEngine


@implements("blur")
def make_blur(engine: CPUEngine, task: Task) -> Runner | None:
    """Return the runner of a blur, or None for dtypes, channels or radii without code."""
    if task["radius"] > EXACT_RADIUS and 0 not in task.output.shape:
        return make_wide_blur(engine, task)
    return prepare_blur(engine, task)
