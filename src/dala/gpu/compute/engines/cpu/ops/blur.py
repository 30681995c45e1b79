"""Gaussian blur on the CPU: a stage of rows by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dala.gpu.compute.engines.base import Runner, Task
from dala.gpu.compute.engines.cpu.ops import implements
from dala.gpu.compute.engines.cpu.rows.chain import prepare_blur

if TYPE_CHECKING:
    from dala.gpu.compute.engines.cpu.engine import CPUEngine


@implements("blur")
def make_blur(engine: CPUEngine, task: Task) -> Runner | None:
    """The runner for a blur; None for dtypes, channels and radii there is no code for."""
    return prepare_blur(engine, task)
