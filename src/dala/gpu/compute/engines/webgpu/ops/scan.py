"""Cumulative sums on WebGPU.

Three dispatches compute the sums of pieces, the cumulative sums of those, and then each piece
starting from the sum before it. Reading the input twice is faster than updating the output.
"""

from __future__ import annotations

import math
from functools import cache
from math import prod
from string import Template
from typing import Final

import numpy as np

from dala.gpu.compute.dtypes import NUMPY
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
from dala.gpu.compute.engines.webgpu.wgsl.helpers import helper_source, wgsl_parts
from dala.gpu.compute.engines.webgpu.wgsl.numbers import (
    SIZE,
    STORED,
    bound,
    declared,
    reading,
    vector,
)

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
        block=2 + pieces, kind=kind, before=begin if pieces else "", load=load,
        ahead=f"select({kind}(0), sums[max(t, 1u) - 1u], t > 0u)",
        saturate=fit if saturate else "", store=store,
    )  # fmt: skip


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


#: The most counters in a workgroup. If there are few bins, each has several, for different lanes.
MAX_COUNTERS: Final = 2048
#: The fewest numbers that a workgroup counts, to make up for adding its counters.
MIN_LENGTH: Final = 8192


@cache
def _text(dtype: str, size: int, stride: int) -> str:
    kind = STORED[dtype]
    width = 4 if dtype == "u8" else 1
    floats = kind in ("f32", "f64")
    nan = f"isnan_{kind}(x) || " if floats else ""
    distance = "(x - edges[0])" if kind == "f32" else "f32(u32(x) - u32(edges[0]))"
    by = "table" if dtype == "u8" else "halves" if kind in ("f64", "i64") else "guess"
    parts = wgsl_parts("histogram_parts.wgsl", __package__)

    def counted(b: str, x: str, inside: str = "") -> str:
        at = f"counters[{b} + (t % {size // stride}u) * {stride}u]" if size else f"output[{b}]"
        test = f"{inside}{b} != 0xffffffffu"
        return f"let {b} = bin({x});\n        if ({test}) {{ atomicAdd(&{at}, 1u); }}"

    count = [counted("b", "fetch_a(i)")]
    if width > 1:
        count = ["let x = fetch_a(i);"]
        for n, lane in enumerate("xyzw"):
            count.append(counted(f"b{n}", f"x.{lane}", f"4u * i + {n}u < p.bytes && "))
    sizes = {"size": size, "stride": stride}
    return shader_text(
        "histogram.wgsl",
        declarations=declared(
            ("bins", "used", "length", "total", "bytes", "scale"),
            helper_source([f"isnan_{kind}"] if floats else []),
            reading(0, "a", dtype, kind, width),
            bound(1, "edges", kind),
        ),
        counters=f"var<workgroup> counters: array<atomic<u32>, {size}>;" if size else "",
        bin=Template(parts[f"by {by}"]).substitute(kind=kind, nan=nan, distance=distance),
        clear=Template(parts["clear"]).substitute(sizes) if size else "",
        count="\n        ".join(count),
        gather=Template(parts["gather"]).substitute(sizes) if size else "",
    )


@implements("histogram")
def add_histogram(work: Dispatches, task: Task) -> None:
    """Add a dispatch that clears the output and one that counts."""
    dtype, bins = task.inputs[0].dtype, task["bins"]
    edges = np.frombuffer(task["edges"], NUMPY[dtype])
    count = math.prod(task.inputs[0].shape)
    work.clear(work.output, bins)
    if len(edges) < 2:
        return
    used = len(edges) - 1
    scale = min(bins / (task["high"] - task["low"]), 3e38)
    units = count
    if dtype == "u8":
        values = np.arange(256)
        table = np.searchsorted(edges[:-1], values, side="right").astype(np.uint32) - np.uint32(1)
        table[values > edges[-1]] = 0xFFFFFFFF
        edges, units = table, -(-count // 4)
    # A power of two, so that all sizes share a few shaders, with as many copies as fit.
    stride = 1 << (bins - 1).bit_length()
    size = 0 if stride > MAX_COUNTERS else max(stride, min(8 * stride, MAX_COUNTERS))
    length = max(MIN_LENGTH, 8 * bins, -(-units // 4096))
    numbers = (bins, used, length, units, count, scale, 0)
    constant = work.constant(np.ascontiguousarray(edges))
    text = _text(dtype, size, stride if size else 1)
    work.add(text, [work.inputs[0], constant], work.output, numbers, -(-units // length))


#: The fewest pixels that a workgroup counts, to make up for adding its counters.
MIN_PIXELS: Final = 4096

_LEVELS: Final = {
    "u8": "return (a[i >> 2u] >> ((i & 3u) * 8u)) & 255u;",
    # A comparison with NaN is false, so that it becomes 0.
    "f32": "let v = a[i] * 255.0f + 0.5f;\n    return u32(select(0.0f, min(v, 255.0f), v > 0.0f));",
}
_LUMA: Final = """\
let sum = level(at) * 9798u + level(at + 1u) * 19235u + level(at + 2u) * 3735u;
            atomicAdd(&counters[(sum + 16384u) >> 15u], 1u);"""
_ONE: Final = "atomicAdd(&counters[level(at + {0}u) + {0}u * 256u], 1u);"


@cache
def _tiles_text(dtype: str, channels: int, planes: int, luma: bool) -> str:
    count = "\n            ".join(_ONE.format(c) for c in range(planes))
    return shader_text(
        "tile_histogram.wgsl",
        kind="u32" if dtype == "u8" else "f32",
        level=_LEVELS[dtype],
        size=planes * 256,
        channels=channels,
        count=_LUMA if luma else count,
    )


@implements("tile_histogram")
def add_tile_histogram(work: Dispatches, task: Task) -> None:
    """Add a dispatch that clears the output and one that counts."""
    image = task.inputs[0]
    height, width = image.shape[:2]
    channels = image.shape[2] if len(image.shape) == 3 else 1
    rows, columns, planes, levels = task.output.shape
    tall, wide = task["size"]
    tiles, pixels = rows * columns, tall * wide
    length = max(MIN_PIXELS, -(-pixels * tiles // 4096))
    parts = -(-pixels // length)
    size = tiles * planes * levels
    work.clear(work.output, size)
    work.add(
        _tiles_text(image.dtype, channels, planes, task["luma"]),
        work.inputs,
        work.output,
        (height, width, tall, wide, tiles, columns, parts, length),
        tiles * parts,
    )
