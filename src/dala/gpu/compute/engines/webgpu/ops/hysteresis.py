"""Hysteresis on WebGPU: connected components by union-find, in a fixed number of dispatches."""

from __future__ import annotations

from dala.gpu.compute.engines.base import Task
from dala.gpu.compute.engines.webgpu.ops.dispatches import Dispatches, implements, shader_parts


@implements("hysteresis")
def add_hysteresis(work: Dispatches, task: Task) -> None:
    """Add dispatches: every pixel its own component; join; mark strong components; write."""
    height, width = task.output.shape
    count = height * width
    group = min(work.engine.workgroup, 128)
    start, join, mark, write = shader_parts("hysteresis.wgsl", group=group)
    labels, strong = work.temporary(4 * count), work.temporary(4 * count)
    numbers = (width, height, count, 0)
    groups = -(-count // group)
    source = work.inputs[0]
    work.add(start, [], labels, numbers, groups)
    work.clear(strong, count)
    work.add(join, [source], labels, numbers, groups)
    work.add(mark, [source, labels], strong, numbers, groups)
    words = -(-count // 4)
    work.add(write, [source, labels, strong], work.output, numbers, -(-words // group))
