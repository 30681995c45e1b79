"""Cumulative sums on WebGPU.

Three dispatches compute the sums of pieces, the cumulative sums of those, and then each piece
starting from the sum before it. Reading the input twice is faster than updating the output.
"""

from __future__ import annotations

from functools import cache
from math import prod
from typing import Final

from dala.gpu.compute.engines.base import Task
from dala.gpu.compute.engines.webgpu.ops.dispatches import (
    BufferRef,
    Dispatches,
    implements,
    shader_text,
)
from dala.gpu.compute.engines.webgpu.ops.lanes import Layout, width_of
from dala.gpu.compute.engines.webgpu.ops.reduce import (
    BETWEEN,
    Reduction,
    add_pack,
    add_pieces,
    kind_of_sum,
)
from dala.gpu.compute.engines.webgpu.wgsl.numbers import SIZE, bound, declared, reading, vector

#: Rows up to this length use one lane each; longer rows are cut into chunks of a workgroup each.
SHORT_ROW: Final = 32
CHUNK: Final = 8192
#: If fewer lanes are busy, columns are cut into pieces of at least this many rows.
MIN_ROWS: Final = 32
ENOUGH_LANES: Final = 1 << 16


def _declared(dtype: str, kind: str, width: int, before: str) -> str:
    """Return the declarations; sums of earlier pieces are of the type ``before``, "" if none."""
    return declared(
        ("n", "inner", "length", "splits", "items"),
        reading(0, "a", dtype, kind, width),
        bound(1, "before", before) if before else "",
        bound(2 if before else 1, "output", vector(kind, width), write=True),
    )


@cache
def _rows(dtype: str, kind: str, aligned: bool, pieces: bool, saturate: bool) -> str:
    if aligned:
        load = f"""\
if (many > 0u) {{ x = fetch_a((base + k) / 4u); }}
        x = select(vec4<{kind}>(0), x, vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(many));"""
        store = "if (many > 0u) { output[(base + k) / 4u] = x; }"
    else:
        load, store = (
            "\n        ".join(
                f"if (many > {i}u) {{ {each.format(c=c, i=i)} }}" for i, c in enumerate("xyzw")
            )
            for each in ("x.{c} = fetch_a(base + k + {i}u);", "output[base + k + {i}u] = x.{c};")
        )
    begin = "if (inside && item % p.splits > 0u) { carry = before[item - 1u]; }"
    fit = "x = min(x, vec4<u32>(255u));\n        carry = min(carry, 255u);"
    return shader_text(
        "scan_rows.wgsl",
        declarations=_declared(dtype, kind, 4 if aligned else 1, kind if pieces else ""),
        block=2 + pieces,
        kind=kind,
        before=begin if pieces else "",
        load=load,
        ahead=f"select({kind}(0), sums[max(t, 1u) - 1u], t > 0u)",
        saturate=fit if saturate else "",
        store=store,
    )


@cache
def _columns(dtype: str, kind: str, width: int, pieces: bool, saturate: bool) -> str:
    unit = vector(kind, width)
    begin = "if (piece % p.splits > 0u) { carry = before[item - p.inner]; }"
    return shader_text(
        "scan_columns.wgsl",
        declarations=_declared(dtype, kind, width, unit if pieces else ""),
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
    work: Dispatches,
    how: Reduction,
    source: tuple[BufferRef, str],
    layout: Layout,
    target: BufferRef,
) -> None:
    """Add the dispatches of cumulative sums along the middle axis."""
    outer, n, inner = layout
    kind, (place, dtype) = how.kind, source
    by_rows = inner == 1 and n > SHORT_ROW
    width = width_of(kind, layout) if inner > 1 or by_rows else 1
    length, splits = _cut(layout, by_rows, width)
    reads = [place]
    if splits > 1:
        nbytes = outer * splits * inner * SIZE[kind]
        sums, running = work.temporary(nbytes), work.temporary(nbytes)
        add_pieces(work, how, source, layout, (length, splits), sums)
        add_scan(work, how, (sums, BETWEEN[kind]), (outer, splits, inner), running)
        reads.append(running)
    if by_rows:
        items = groups = outer * splits
        text = _rows(dtype, kind, width > 1, splits > 1, how.saturate)
    else:
        inner //= width
        items = outer * splits * inner
        groups = -(-items // 64)
        text = _columns(dtype, kind, width, splits > 1, how.saturate)
    work.add(text, reads, target, (n, inner, length, splits, items, 0), groups)


@implements("cumsum")
def add_cumsum(work: Dispatches, task: Task) -> None:
    """Add cumulative sums; for u8 a further dispatch packs bytes."""
    output, layout = task.output.dtype, task["layout"]
    count, packs = prod(layout), output == "u8"
    target = work.temporary(count * 4) if packs else work.output
    how = Reduction("sum", kind_of_sum(output), packs)
    add_scan(work, how, (work.inputs[0], task.inputs[0].dtype), layout, target)
    if packs:
        add_pack(work, target, count)
