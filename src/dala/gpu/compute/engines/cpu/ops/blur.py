"""Gaussian blur on the CPU, as a chain of one stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dala.gpu.compute.engines.base import Runner, Task
from dala.gpu.compute.engines.cpu.ops import implements
from dala.gpu.compute.engines.cpu.rows.chain import prepare_blur

if TYPE_CHECKING:
    from dala.gpu.compute.engines.cpu.engine import CPUEngine


@implements("blur")
def make_blur(engine: CPUEngine, task: Task) -> Runner | None:
    """Return the runner of a blur, or None for dtypes, channels or radii without code."""
    return prepare_blur(engine, task)
