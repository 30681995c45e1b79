"""Cumulative sums on WebGPU.

Three dispatches compute the sums of pieces, the cumulative sums of those, and then each piece
starting from the sum before it. Reading the input twice is faster than updating the output.
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
from dala.gpu.compute.engines.webgpu.ops.lanes import Layout, width_of
from dala.gpu.compute.engines.webgpu.ops.reduce import (
    BETWEEN,
    add_pack,
    add_pieces,
    kind_of_sum,
)
from dala.gpu.compute.engines.webgpu.wgsl.numbers import (
    SIZE,
    bound,
    fields,
    reading,
    vector,
)

if TYPE_CHECKING:
    from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine

#: Rows up to this length use one lane each; longer rows are cut into chunks of a workgroup each.
SHORT_ROW: Final = 32
CHUNK: Final = 8192
#: If fewer lanes are busy, columns are cut into pieces of at least this many rows.
MIN_ROWS: Final = 32
ENOUGH_LANES: Final = 1 << 16


@cache
def _rows(dtype: str, kind: str, aligned: bool, pieces: bool, saturate: bool) -> str:
    width = 4 if aligned else 1
    parts = [
        fields("n", "inner", "length", "splits", "items"),
        reading(0, "a", dtype, kind, width),
    ]
    if pieces:
        parts.append(bound(1, "before", kind))
    parts.append(bound(1 + pieces, "output", vector(kind, width), write=True))
    if aligned:
        load = """\
if (many > 0u) { x = fetch_a((base + k) / 4u); }
        x = select(vec4<KIND>(0), x, vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(many));"""
        store = "if (many > 0u) { output[(base + k) / 4u] = x; }"
    else:
        load = "\n        ".join(
            f"if (many > {i}u) {{ x.{c} = fetch_a(base + k + {i}u); }}"
            for i, c in enumerate("xyzw")
        )
        store = "\n        ".join(
            f"if (many > {i}u) {{ output[base + k + {i}u] = x.{c}; }}" for i, c in enumerate("xyzw")
        )
    ahead = "select(KIND(0), sums[max(t, 1u) - 1u], t > 0u)"
    return Template(read_text("scan_rows.wgsl")).substitute(
        declarations="\n".join(parts),
        block=2 + pieces,
        kind=kind,
        before="if (inside && item % p.splits > 0u) { carry = before[item - 1u]; }"
        if pieces
        else "",
        load=load.replace("KIND", kind),
        ahead=ahead.replace("KIND", kind),
        saturate="x = min(x, vec4<u32>(255u));\n        carry = min(carry, 255u);"
        if saturate
        else "",
        store=store,
    )


@cache
def _columns(dtype: str, kind: str, width: int, pieces: bool, saturate: bool) -> str:
    unit = vector(kind, width)
    parts = [
        fields("n", "inner", "length", "splits", "items"),
        reading(0, "a", dtype, kind, width),
    ]
    if pieces:
        parts.append(bound(1, "before", unit))
    parts.append(bound(1 + pieces, "output", unit, write=True))
    begin = "if (piece % p.splits > 0u) { carry = before[item - p.inner]; }"
    return Template(read_text("scan_columns.wgsl")).substitute(
        declarations="\n".join(parts),
        block=2 + pieces,
        unit=unit,
        before=begin if pieces else "",
        saturate=f"carry = min(carry, {unit}(255u));" if saturate else "",
    )


def _cut(layout: Layout, by_rows: bool, width: int) -> tuple[int, int]:
    """Return the length and the number of pieces of the axis."""
    outer, n, inner = layout
    if by_rows:
        return min(CHUNK, -(-n // 1024) * 1024), -(-n // CHUNK)
    wanted = max(1, min(n // MIN_ROWS, ENOUGH_LANES * width // (outer * inner)))
    length = -(-n // wanted)
    return length, -(-n // length)


def add_scan(
    dispatches: Dispatches,
    source: tuple[BufferRef, str],
    kind: str,
    layout: Layout,
    target: BufferRef,
    saturate: bool,
) -> None:
    """Add the dispatches of cumulative sums along the middle axis."""
    outer, n, inner = layout
    place, dtype = source
    by_rows = inner == 1 and n > SHORT_ROW
    width = width_of(kind, layout) if inner > 1 or by_rows else 1
    length, splits = _cut(layout, by_rows, width)
    reads = [place]
    if splits > 1:
        sums = dispatches.temporary(outer * splits * inner * SIZE[kind])
        running = dispatches.temporary(outer * splits * inner * SIZE[kind])
        cut = length, splits
        add_pieces(dispatches, "sum", source, kind, layout, cut, sums, saturate=saturate)
        between = (sums, BETWEEN[kind])
        add_scan(dispatches, between, kind, (outer, splits, inner), running, saturate)
        reads.append(running)
    if by_rows:
        items = groups = outer * splits
        text = _rows(dtype, kind, width > 1, splits > 1, saturate)
    else:
        inner //= width
        items = outer * splits * inner
        groups = -(-items // 64)
        text = _columns(dtype, kind, width, splits > 1, saturate)
    dispatches.add(text, reads, target, block(n, inner, length, splits, items, 0), groups)


@implements("cumsum")
def make_cumsum(engine: WebGPUEngine, task: Task) -> Runner:
    """Return a runner of cumulative sums; for u8 a further dispatch packs bytes."""
    given, output = task.inputs[0].dtype, task.output.dtype
    kind = kind_of_sum(given, output)
    outer, n, inner = task["layout"]
    count = outer * n * inner
    dispatches = Dispatches(engine, task.op)
    target = dispatches.temporary(count * 4) if output == "u8" else OUTPUT
    add_scan(dispatches, (BufferRef("input"), given), kind, task["layout"], target, output == "u8")
    if output == "u8":
        add_pack(dispatches, target, count)
    return dispatches.runner()
