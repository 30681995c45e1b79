"""Argmax on WebGPU: passes that keep the indices of the largest numbers so far."""

from __future__ import annotations

from functools import cache

from dala.gpu.compute.engines.base import Task
from dala.gpu.compute.engines.webgpu.ops.dispatches import (
    BufferRef,
    Dispatches,
    implements,
    shader_text,
)
from dala.gpu.compute.engines.webgpu.ops.lanes import lane_text, lanes_of, split, width_of
from dala.gpu.compute.engines.webgpu.wgsl.helpers import helper_source
from dala.gpu.compute.engines.webgpu.wgsl.numbers import STORED, bound, declared, reading, vector


@cache
def _text(dtype: str, out: str, rows: bool, later: bool, width: int) -> str:
    kind = STORED[dtype]
    unit = vector(kind, width)
    lanes = "xyzw" if width > 1 else ""
    fetched = "fetch_a(base + start * p.inner)"
    nan = f"isnan_{kind}"
    floats = kind in ("f32", "f64")
    return shader_text(
        "argmax.wgsl",
        declarations=declared(
            ("n", "inner", "length", "splits", "lanes", "items", "along"),
            helper_source([nan] if floats else []),
            reading(0, "a", dtype, kind, width),
            bound(1, "earlier", "u32") if later else "",
            bound(1 + later, "output", out, write=True),
        ),
        block=2 + later,
        kind=kind,
        better=f"(x > y && !{nan}(y)) || ({nan}(x) && !{nan}(y))" if floats else "x > y",
        consider=_consider("consider", kind, unit, lanes, False)
        + _consider("consider_last", kind, unit, lanes, width > 1),
        width=width,
        first=f"{fetched}.x" if width > 1 else fetched,
        whole=f"min(last, p.along / {width}u)" if width > 1 else "last",
        alongs="p.n" if width > 1 else "p.along",
        places=lane_text(rows),
        place="earlier[from_here + k * p.inner]" if later else "k",
        result={"u32": "places[t]", "i32": "i32(places[t])", "i64": "i64(u64(places[t]))"}[out],
    )


def _consider(name: str, kind: str, unit: str, lanes: str, checked: bool) -> str:
    """Return a function that considers the numbers of a unit in order; ``checked`` for the last."""
    lines = [f"fn {name}(so_far: Best, x: {unit}, place: u32) -> Best {{", "    var best = so_far;"]
    for i, lane in enumerate(lanes):
        line = f"best = keep(best, x.{lane}, place * 4u + {i}u);"
        lines.append(
            f"    if (place * 4u + {i}u < p.along) {{ {line} }}" if checked else f"    {line}"
        )
    if not lanes:
        lines.append("    best = keep(best, x, place);")
    return "\n".join([*lines, "    return best;", "}", ""])


@implements("argmax")
def add_argmax(work: Dispatches, task: Task) -> None:
    """Add passes that reduce the axis to one index."""
    outer, n, inner = task["passes"][0]
    dtype, along = task.inputs[0].dtype, n
    earlier: BufferRef | None = None
    while True:
        first = earlier is None
        width = width_of(STORED[dtype], (outer, n, inner)) if first and inner == 1 else 1
        # Later passes read one number at a time, as for i64.
        length, splits = split(STORED[dtype] if width > 1 else "i64", (outer, n, inner))
        if width > 1:
            n, length = -(-n // width), length // width
        target = work.output if splits == 1 else work.temporary(outer * splits * inner * 4)
        out = STORED[task.output.dtype] if splits == 1 else "u32"
        lanes = lanes_of(length, inner)
        items = outer * splits * inner
        reads = [*work.inputs, *([] if earlier is None else [earlier])]
        numbers = (n, inner, length, splits, lanes, items, along, 0)
        text = _text(dtype, out, inner == 1, not first, width)
        work.add(text, reads, target, numbers, -(-items * lanes // 256))
        if splits == 1:
            return
        earlier, n = target, splits
