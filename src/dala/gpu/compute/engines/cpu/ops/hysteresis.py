"""Hysteresis on the CPU: flood fill from the strong pixels, with a stack."""

from __future__ import annotations

from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.ops.shared import *


@native
def follow(src: Array[u8], out: Array[u8], stack: Array[i32], height: i64, width: i64) -> None:
    """Write 255 where a strong pixel is reached; each pixel is pushed at most once."""
    count = height * width
    for i in independent(range(count)):
        out[i] = u8(0)
    top = i64(0)
    for i in range(count):
        if src[i] == 255 and out[i] == 0:
            out[i] = u8(255)
            stack[0] = i32(i)
            top = 1
        while top > 0:
            top -= 1
            at = i64(stack[top])
            y = at // width
            x = at - y * width
            for v in range(max(y - 1, 0), min(y + 2, height)):
                for u in range(max(x - 1, 0), min(x + 2, width)):
                    j = v * width + u
                    if src[j] != 0 and out[j] == 0:
                        out[j] = u8(255)
                        stack[top] = i32(j)
                        top += 1


@implements("hysteresis")
def make_hysteresis(engine: Engine, task: Task) -> Runner:
    """Return the runner, on one thread."""
    height, width = task.output.shape
    return scratch_runner(engine, task, [4 * height * width], compile_native(follow), height, width)
