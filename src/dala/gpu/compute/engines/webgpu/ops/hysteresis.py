"""Hysteresis on WebGPU: connected components by union-find, in a fixed number of dispatches."""

from __future__ import annotations

from string import Template
from typing import TYPE_CHECKING

from dala.gpu.compute.engines.base import Runner, Task
from dala.gpu.compute.engines.webgpu.ops import implements
from dala.gpu.compute.engines.webgpu.ops.dispatches import (
    OUTPUT,
    BufferRef,
    Dispatches,
    block,
    read_text,
)

if TYPE_CHECKING:
    from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine


@implements("hysteresis")
def make_hysteresis(engine: WebGPUEngine, task: Task) -> Runner:
    """Return a runner: every pixel its own component; join; mark strong components; write."""
    height, width = task.output.shape
    count = height * width
    group = min(engine.workgroup, 128)
    parts = read_text("hysteresis.wgsl").split("// ---\n")
    head, start, join, mark, write = (Template(p).substitute(group=group) for p in parts)
    dispatches = Dispatches(engine, task.op)
    labels, strong = dispatches.temporary(4 * count), dispatches.temporary(4 * count)
    numbers = block(width, height, count, 0)
    groups = -(-count // group)
    source = BufferRef("input")
    dispatches.add(head + start, [], labels, numbers, groups)
    dispatches.add(read_text("clear.wgsl"), [], strong, block(count), -(-count // 256))
    dispatches.add(head + join, [source], labels, numbers, groups)
    dispatches.add(head + mark, [source, labels], strong, numbers, groups)
    words = -(-count // 4)
    dispatches.add(head + write, [source, labels, strong], OUTPUT, numbers, -(-words // group))
    return dispatches.runner()
