"""Argmax on WebGPU: passes that keep the indices of the largest numbers so far."""

from __future__ import annotations

from functools import cache
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
from dala.gpu.compute.engines.webgpu.ops.lanes import lane_text, lanes_of, split
from dala.gpu.compute.engines.webgpu.wgsl.helpers import helper_source
from dala.gpu.compute.engines.webgpu.wgsl.numbers import (
    STORED,
    bound,
    fields,
    reading,
)

if TYPE_CHECKING:
    from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine


@cache
def _text(dtype: str, out: str, rows: bool, later: bool) -> str:
    kind = STORED[dtype]
    parts = [
        fields("n", "inner", "length", "splits", "lanes", "items", "along"),
        reading(0, "a", dtype, kind, 1),
    ]
    if later:
        parts.append(bound(1, "earlier", "u32"))
    parts.append(bound(2 if later else 1, "output", out, write=True))
    better = "x > y"
    if kind in ("f32", "f64"):
        parts.insert(1, helper_source([f"isnan_{kind}"]))
        better = f"(x > y && !isnan_{kind}(y)) || (isnan_{kind}(x) && !isnan_{kind}(y))"
    at = "earlier[from_here + k * p.inner]" if later else "k"
    return Template(read_text("argmax.wgsl")).substitute(
        declarations="\n".join(parts),
        block=3 if later else 2,
        kind=kind,
        better=better,
        places=lane_text(rows),
        place=at,
        result={"u32": "places[t]", "i32": "i32(places[t])", "i64": "i64(u64(places[t]))"}[out],
    )


@implements("argmax")
def make_argmax(engine: WebGPUEngine, task: Task) -> Runner:
    """Return a runner of passes that reduce the axis to one index."""
    outer, n, inner = task["passes"][0]
    dtype, along = task.inputs[0].dtype, n
    dispatches = Dispatches(engine)
    earlier: BufferRef | None = None
    while True:
        length, splits = split("i64", (outer, n, inner))  # as for i64: one number at a time
        target = OUTPUT if splits == 1 else dispatches.temporary(outer * splits * inner * 4)
        out = STORED[task.output.dtype] if splits == 1 else "u32"
        lanes = lanes_of(length, inner)
        items = outer * splits * inner
        reads = [BufferRef("input")] if earlier is None else [BufferRef("input"), earlier]
        numbers = block(n, inner, length, splits, lanes, items, along, 0)
        text = _text(dtype, out, inner == 1, earlier is not None)
        dispatches.add(text, reads, target, numbers, -(-items * lanes // 256))
        if splits == 1:
            return dispatches.runner()
        earlier, n = target, splits
