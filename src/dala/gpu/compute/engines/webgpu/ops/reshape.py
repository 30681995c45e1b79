"""Reshape and trivial transposes on WebGPU: copies of the bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dala.gpu.compute.engines.base import Runner, Storage, Task, Values
from dala.gpu.compute.engines.webgpu.ops import implements

if TYPE_CHECKING:
    from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine


@implements("reshape")
def make_reshape(engine: WebGPUEngine, task: Task) -> Runner:
    """Return a runner that copies the input's bytes to the output."""

    def run(inputs: Sequence[Storage], output: Storage, params: Values) -> None:
        engine.copy(inputs[0], output)

    return run


@implements("transpose")
def make_transpose(engine: WebGPUEngine, task: Task) -> Runner | None:
    """Return a copy for arrays with fewer than two axes; others are lowered to a kernel."""
    plain = len(task["axes"]) < 2 and not task["reverse"]
    return make_reshape(engine, task) if plain else None
