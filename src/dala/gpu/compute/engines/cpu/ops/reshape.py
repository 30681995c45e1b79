"""Reshape and transpose on the CPU, where they are a copy of the bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dala.gpu.compute.engines.base import Engine, Runner, Storage, Task, Values
from dala.gpu.compute.engines.cpu.ops import implements

if TYPE_CHECKING:
    from dala.gpu.compute.engines.cpu.engine import CPUEngine


@implements("reshape")
def make_reshape(engine: Engine, task: Task) -> Runner:
    """Return the runner that copies the input's bytes to the output."""

    def run(inputs: Sequence[Storage], output: Storage, params: Values) -> None:
        engine.copy(inputs[0], output)

    return run


@implements("transpose")
def make_transpose(engine: CPUEngine, task: Task) -> Runner | None:
    """Copy arrays with fewer than two axes; the others are lowered to the kernel language."""
    return make_reshape(engine, task) if len(task["axes"]) < 2 else None
