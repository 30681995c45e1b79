"""1D convolution on WebGPU."""

from __future__ import annotations

from functools import cache
from math import prod
from string import Template
from typing import TYPE_CHECKING, Final

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

#: Results per invocation, invocations per workgroup, and taps in workgroup memory at a time.
EACH: Final = 4
THREADS: Final = 128
TAPS: Final = 256
SPAN: Final = EACH * THREADS


@implements("convolve1d")
def make_convolve1d(engine: WebGPUEngine, task: Task) -> Runner:
    """Return a runner of one dispatch for all lines."""
    dispatches = Dispatches(engine, task.op)
    a, kernel = task.inputs
    size = task.output.shape[-1]
    across = -(-size // SPAN)
    groups = across * (prod(task.output.shape[:-1]))
    numbers = block(size, a.shape[-1], kernel.shape[0], task["first"], across, groups)
    dispatches.add(
        text(a.dtype), [BufferRef("input", 0), BufferRef("input", 1)], OUTPUT, numbers, groups
    )
    return dispatches.runner()


@cache
def text(dtype: str) -> str:
    """Return the shader for a dtype. Neighboring invocations compute neighboring results."""
    return Template(read_text("convolve.wgsl")).substitute(
        T=dtype,
        SPAN=SPAN,
        SPANu=f"{SPAN}u",
        EACH=EACH,
        TAPS=TAPS,
        TAPSu=f"{TAPS}u",
        LAST_TAP=TAPS - 1,
        HELD=SPAN + TAPS - 1,
        HELDu=f"{SPAN + TAPS - 1}u",
        THREADS=THREADS,
        THREADSu=f"{THREADS}u",
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
