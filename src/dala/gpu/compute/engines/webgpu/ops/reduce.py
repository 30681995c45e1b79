"""Reductions on WebGPU: a shader is dispatched repeatedly until one number is left.

The shader depends on the types, on whether units are single numbers or vec4, and on whether
neighbors belong to one result ("rows") or to different ones ("columns"). Sizes are in the uniform
block.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

from dala.gpu.compute.engines.base import Task
from dala.gpu.compute.engines.webgpu.ops.dispatches import (
    BufferRef,
    Dispatches,
    implements,
    shader_text,
)
from dala.gpu.compute.engines.webgpu.ops.lanes import Layout, lane_text, lanes_of, split, width_of
from dala.gpu.compute.engines.webgpu.wgsl.helpers import helper_source
from dala.gpu.compute.engines.webgpu.wgsl.numbers import (
    SIZE,
    STORED,
    bound,
    combining,
    declared,
    folding,
    neutral,
    reading,
    vector,
)


@dataclass(frozen=True)
class Reduction:
    """A "sum", "max" or "min", the WGSL type that it is computed in, and whether it saturates."""

    operation: str
    kind: str
    saturate: bool = False


@cache
def _text(how: Reduction, dtype: str, width: int, rows: bool, tail: bool) -> str:
    operation, kind = how.operation, how.kind
    unit = vector(kind, width)
    partial = kind if rows else unit
    folded = width > 1 and rows
    floats = operation != "sum" and kind in ("f32", "f64")
    fetch_last = (
        f"fn fetch_last(i: u32) -> {unit} {{\n"
        "    let inside = vec4<u32>(0u, 1u, 2u, 3u) + 4u * i < vec4<u32>(p.total);\n"
        f"    return select({unit}({neutral(kind, operation)}), fetch_a(i), inside);\n}}\n"
    )
    return shader_text(
        "reduce.wgsl",
        declarations=declared(
            ("n", "inner", "length", "splits", "lanes", "items", "total"),
            helper_source([f"{operation}_{kind}"] if floats else []),
            reading(0, "a", dtype, kind, width),
            bound(1, "output", partial, write=True),
            combining("combine", kind, operation, width),
            combining("join", kind, operation, 1) if folded else "",
            folding("fold", "join", kind, width) if folded else "",
            fetch_last if tail else "",
        ),
        partial=partial,
        places=lane_text(rows),
        unit=unit,
        neutral=neutral(kind, operation),
        last="fetch_last(i)" if tail else "fetch_a(i)",
        whole="min(last, p.total / 4u)" if tail else "last",
        folded="fold(r0)" if folded else "r0",
        join="join" if folded else "combine",
        result=f"min(part[t], {partial}(255u))" if how.saturate else "part[t]",
    )


def kind_of_sum(output: str) -> str:
    """Return the WGSL type that sums are computed in."""
    return "u32" if output in ("u8", "u32", "s32") else STORED[output]


#: The dtype of a buffer between passes, by WGSL type.
BETWEEN: Final = {"f32": "f32", "f64": "f64", "i32": "s32", "i64": "s64", "u32": "u32"}


def add_pieces(
    work: Dispatches,
    how: Reduction,
    source: tuple[BufferRef, str],
    layout: Layout,
    pieces: tuple[int, int],
    target: BufferRef,
) -> None:
    """Add one pass over pieces (their length and number) of the middle axis."""
    outer, n, inner = layout
    length, splits = pieces
    place, dtype = source
    width = width_of(how.kind, layout) if inner > 1 or length % 4 == 0 or splits == 1 else 1
    rows = inner == 1
    tail = rows and width > 1 and n % 4 != 0
    if width > 1 and rows:
        n, length = -(-n // 4), -(-length // 4)
    elif width > 1:
        inner //= 4
    lanes = lanes_of(length, inner)
    items = outer * splits * inner
    text = _text(how, dtype, width, rows, tail)
    numbers = (n, inner, length, splits, lanes, items, layout[1] if tail else 0, 0)
    work.add(text, [place], target, numbers, -(-items * lanes // 256))


def add_passes(
    work: Dispatches,
    how: Reduction,
    source: tuple[BufferRef, str],
    layout: Layout,
    target: BufferRef,
) -> None:
    """Add passes until the middle axis is reduced to one."""
    outer, n, inner = layout
    pieces = split(how.kind, layout, light=True)
    while pieces[1] > 1:
        to = work.temporary(outer * pieces[1] * inner * SIZE[how.kind])
        add_pieces(work, how, source, (outer, n, inner), pieces, to)
        source, n = (to, BETWEEN[how.kind]), pieces[1]
        pieces = split(how.kind, (outer, n, inner), light=True)
    add_pieces(work, how, source, (outer, n, inner), pieces, target)


def add_pack(work: Dispatches, source: BufferRef, count: int) -> None:
    """Add a pass that packs 32-bit numbers into bytes of the output."""
    words = -(-count // 4)
    work.add(shader_text("pack.wgsl"), [source], work.output, (words,), -(-words // 256))


@implements("reduce_max", "reduce_min", "reduce_sum")
def add_reduction(work: Dispatches, task: Task) -> None:
    """Add passes that reduce one axis after another."""
    operation = task.op.removeprefix("reduce_")
    output = task.output.dtype
    kind = kind_of_sum(output) if operation == "sum" else STORED[output]
    how = Reduction(operation, kind, output == "u8" and operation == "sum")
    source = (work.inputs[0], task.inputs[0].dtype)
    layouts = task["passes"]
    for i, layout in enumerate(layouts):
        count = layout[0] * layout[2]
        target = work.output
        if output == "u8" or i < len(layouts) - 1:
            target = work.temporary(count * SIZE[kind])
        add_passes(work, how, source, layout, target)
        source = (target, BETWEEN[kind])
    if output == "u8":
        add_pack(work, source[0], count)


@cache
def _best_text(dtype: str, out: str, rows: bool, later: bool, width: int) -> str:
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
        text = _best_text(dtype, out, inner == 1, not first, width)
        work.add(text, reads, target, numbers, -(-items * lanes // 256))
        if splits == 1:
            return
        earlier, n = target, splits
