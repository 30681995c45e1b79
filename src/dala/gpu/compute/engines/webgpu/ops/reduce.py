"""Reductions on WebGPU: a shader is dispatched repeatedly until one number is left.

The shader depends on the types, on whether units are single numbers or vec4, and on whether
neighbors belong to one result ("rows") or to different ones ("columns"). Sizes are in the uniform
block.
"""

from __future__ import annotations

from functools import cache
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
from dala.gpu.compute.engines.webgpu.ops.lanes import (
    Layout,
    lane_text,
    lanes_of,
    split,
    width_of,
)
from dala.gpu.compute.engines.webgpu.wgsl.helpers import helper_source
from dala.gpu.compute.engines.webgpu.wgsl.numbers import (
    SIZE,
    STORED,
    bound,
    combining,
    fields,
    folding,
    neutral,
    reading,
    vector,
)

if TYPE_CHECKING:
    from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine


@cache
def _text(
    operation: str, dtype: str, kind: str, width: int, rows: bool, tail: bool, saturate: bool
) -> str:
    unit = vector(kind, width)
    partial = kind if rows else unit
    parts = [
        fields("n", "inner", "length", "splits", "lanes", "items", "total"),
        reading(0, "a", dtype, kind, width),
        bound(1, "output", partial, write=True),
        combining("combine", kind, operation, width),
    ]
    if width > 1 and rows:
        parts.append(combining("join", kind, operation, 1))
        parts.append(folding("fold", "join", kind, width))
    last = "fetch_a(i)"
    if tail:
        last = "fetch_last(i)"
        parts.append(
            f"fn fetch_last(i: u32) -> {unit} {{\n"
            "    let inside = vec4<u32>(0u, 1u, 2u, 3u) + 4u * i < vec4<u32>(p.total);\n"
            f"    return select({unit}({neutral(kind, operation)}), fetch_a(i), inside);\n}}\n"
        )
    if operation != "sum" and kind in ("f32", "f64"):
        parts.insert(1, helper_source([f"{operation}_{kind}"]))
    return Template(read_text("reduce.wgsl")).substitute(
        declarations="\n".join(parts),
        partial=partial,
        places=lane_text(rows),
        unit=unit,
        neutral=neutral(kind, operation),
        last=last,
        whole="min(last, p.total / 4u)" if tail else "last",
        folded="fold(r0)" if width > 1 and rows else "r0",
        join="join" if width > 1 and rows else "combine",
        result=f"min(part[t], {partial}(255u))" if saturate else "part[t]",
    )


def kind_of_sum(given: str, output: str) -> str:
    """Return the WGSL type that sums are computed in."""
    if output in ("u8", "u32", "s32"):
        return "u32"
    return STORED[output]


#: The dtype of a buffer between passes, by WGSL type.
BETWEEN: Final = {"f32": "f32", "f64": "f64", "i32": "s32", "i64": "s64", "u32": "u32"}


def add_pieces(
    dispatches: Dispatches,
    operation: str,
    source: tuple[BufferRef, str],
    kind: str,
    layout: Layout,
    pieces: tuple[int, int],
    target: BufferRef,
    *,
    saturate: bool = False,
) -> None:
    """Add one pass over pieces (their length and number) of the middle axis."""
    outer, n, inner = layout
    length, splits = pieces
    place, dtype = source
    width = width_of(kind, (outer, n, inner)) if inner > 1 or length % 4 == 0 or splits == 1 else 1
    rows = inner == 1
    tail = rows and width > 1 and n % 4 != 0
    if width > 1 and rows:
        n, length = -(-n // 4), -(-length // 4)
    elif width > 1:
        inner //= 4
    lanes = lanes_of(length, inner)
    items = outer * splits * inner
    text = _text(operation, dtype, kind, width, rows, tail, saturate)
    numbers = block(n, inner, length, splits, lanes, items, layout[1] if tail else 0, 0)
    dispatches.add(text, [place], target, numbers, -(-items * lanes // 256))


def add_passes(
    dispatches: Dispatches,
    operation: str,
    source: tuple[BufferRef, str],
    kind: str,
    layout: Layout,
    target: BufferRef,
    *,
    saturate: bool = False,
) -> None:
    """Add passes until the middle axis is reduced to one."""
    outer, n, inner = layout
    while True:
        length, splits = split(kind, (outer, n, inner), light=True)
        to = target
        if splits > 1:
            to = dispatches.temporary(outer * splits * inner * SIZE[kind])
        pieces = length, splits
        add_pieces(
            dispatches, operation, source, kind, (outer, n, inner), pieces, to, saturate=saturate
        )
        if splits == 1:
            return
        source, n = (to, BETWEEN[kind]), splits


def add_pack(dispatches: Dispatches, source: BufferRef, count: int) -> None:
    """Add a pass that packs 32-bit numbers into bytes of the output."""
    words = -(-count // 4)
    dispatches.add(read_text("pack.wgsl"), [source], OUTPUT, block(words), -(-words // 256))


@implements("reduce_max", "reduce_min", "reduce_sum")
def make_reduction(engine: WebGPUEngine, task: Task) -> Runner:
    """Return a runner of passes that reduce one axis after another."""
    operation = task.op.removeprefix("reduce_")
    given, output = task.inputs[0].dtype, task.output.dtype
    kind = kind_of_sum(given, output) if operation == "sum" else STORED[output]
    dispatches = Dispatches(engine, task.op)
    source = (BufferRef("input"), given)
    layouts = task["passes"]
    saturate = output == "u8" and operation == "sum"
    for i, layout in enumerate(layouts):
        count = layout[0] * layout[2]
        target = OUTPUT
        if output == "u8" or i < len(layouts) - 1:
            target = dispatches.temporary(count * SIZE[kind])
        add_passes(dispatches, operation, source, kind, layout, target, saturate=saturate)
        source = (target, BETWEEN[kind])
    if output == "u8":
        add_pack(dispatches, source[0], count)
    return dispatches.runner()
