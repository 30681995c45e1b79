"""1D convolution on WebGPU."""

from __future__ import annotations

from functools import cache
from math import prod
from typing import Final

from dala.gpu.compute.engines.base import Task
from dala.gpu.compute.engines.webgpu.ops.dispatches import Dispatches, implements, shader_text

#: Results per invocation, invocations per workgroup, and taps in workgroup memory at a time.
EACH: Final = 4
THREADS: Final = 128
TAPS: Final = 256
SPAN: Final = EACH * THREADS


@implements("convolve1d")
def add_convolve1d(work: Dispatches, task: Task) -> None:
    """Add one dispatch for all lines."""
    a, kernel = task.inputs
    size = task.output.shape[-1]
    across = -(-size // SPAN)
    groups = across * (prod(task.output.shape[:-1]))
    numbers = (size, a.shape[-1], kernel.shape[0], task["first"], across, groups)
    work.add(text(a.dtype), work.inputs, work.output, numbers, groups)


@cache
def text(dtype: str) -> str:
    """Return the shader for a dtype. Neighboring invocations compute neighboring results."""
    return shader_text(
        "convolve.wgsl",
        T=dtype,
        SPAN=SPAN,
        EACH=EACH,
        TAPS=TAPS,
        LAST_TAP=TAPS - 1,
        HELD=SPAN + TAPS - 1,
        THREADS=THREADS,
        SUMS="\n".join(f"    var s{i} = {dtype}(0);" for i in range(EACH)),
        PRODUCTS="\n".join(
            f"            s{i} += w * numbers[at + {i * THREADS}u];" for i in range(EACH)
        ),
        RESULTS="\n".join(
            f"    if (start + id + {i * THREADS}u < p.size) "
            f"{{ out[line * p.size + start + id + {i * THREADS}u] = s{i}; }}"
            for i in range(EACH)
        ),
    )
