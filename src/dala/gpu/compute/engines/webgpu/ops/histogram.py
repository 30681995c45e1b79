"""Histograms on WebGPU.

Numbers are compared with the edges of the bins, so that all devices count them in the same bins. A
multiplication guesses the first bin to try. Bytes use a table.
"""

from __future__ import annotations

import math
from functools import cache
from string import Template
from typing import TYPE_CHECKING, Final

import numpy as np

from dala.gpu.compute.dtypes import NUMPY
from dala.gpu.compute.engines.base import Runner, Task
from dala.gpu.compute.engines.webgpu.ops import implements
from dala.gpu.compute.engines.webgpu.ops.dispatches import (
    OUTPUT,
    BufferRef,
    Dispatches,
    block,
    read_text,
)
from dala.gpu.compute.engines.webgpu.wgsl.helpers import helper_source
from dala.gpu.compute.engines.webgpu.wgsl.numbers import STORED, bound, reading

if TYPE_CHECKING:
    from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine

#: The most counters in a workgroup. If there are few bins, each has several, for different lanes.
MAX_COUNTERS: Final = 2048
#: The fewest numbers that a workgroup counts, to make up for adding its counters.
MIN_LENGTH: Final = 8192

_CLEAR: Final = """\
for (var i = t; i < ${size}u; i += 256u) { atomicStore(&counters[i], 0u); }
    workgroupBarrier();"""
_GATHER: Final = """\
workgroupBarrier();
    for (var i = t; i < p.bins; i += 256u) {
        var sum = 0u;
        for (var c = i; c < ${size}u; c += ${stride}u) { sum += atomicLoad(&counters[c]); }
        if (sum > 0u) { atomicAdd(&output[i], sum); }
    }"""
_BY_TABLE: Final = """\
fn bin(x: u32) -> u32 {
    return edges[x];
}"""
_BY_GUESS: Final = """\
fn bin(x: $kind) -> u32 {
    if ($nan!(x >= edges[0] && x <= edges[p.used])) { return 0xffffffffu; }
    var g = u32(clamp($distance * bitcast<f32>(p.scale), 0.0f, f32(p.used - 1u)));
    g = min(g, p.used - 1u);
    while (x < edges[g]) { g -= 1u; }
    while (g + 1u < p.used && x >= edges[g + 1u]) { g += 1u; }
    return g;
}"""
# A guess in f32 may be too far off for 64-bit numbers, so these use a binary search.
_BY_HALVES: Final = """\
fn bin(x: $kind) -> u32 {
    if ($nan!(x >= edges[0] && x <= edges[p.used])) { return 0xffffffffu; }
    var low = 0u;
    var high = p.used;
    while (high - low > 1u) {
        let middle = (low + high) / 2u;
        if (x >= edges[middle]) { low = middle; } else { high = middle; }
    }
    return low;
}"""


@cache
def _text(dtype: str, size: int, stride: int) -> str:
    kind = STORED[dtype]
    width = 4 if dtype == "u8" else 1
    names = ("bins", "used", "length", "total", "bytes", "scale", "zero")
    parts = ["struct Block {\n" + "".join(f"    {n}: u32,\n" for n in names) + "}\n"]
    parts.append(reading(0, "a", dtype, kind, width))
    parts.append(bound(1, "edges", kind))
    nan = ""
    if kind in ("f32", "f64"):
        parts.insert(1, helper_source([f"isnan_{kind}"]))
        nan = f"isnan_{kind}(x) || "
    distance = "(x - edges[0])" if kind == "f32" else "f32(u32(x) - u32(edges[0]))"
    by = _BY_TABLE if dtype == "u8" else _BY_HALVES if kind in ("f64", "i64") else _BY_GUESS
    add = "atomicAdd(&output[b], 1u)"
    if size:
        add = f"atomicAdd(&counters[b + (t % {size // stride}u) * {stride}u], 1u)"
    count = f"let b = bin(X);\n        if (b != 0xffffffffu) {{ {add}; }}"
    if width == 1:
        count = count.replace("X", "fetch_a(i)")
    else:
        lines = ["let x = fetch_a(i);"]
        for n, lane in enumerate("xyzw"):
            one = count.replace("let b", f"let b{n}").replace("(b ", f"(b{n} ")
            one = one.replace("[b]", f"[b{n}]").replace("[b +", f"[b{n} +")
            one = one.replace("X", f"x.{lane}")
            lines.append(one.replace("if (b", f"if (4u * i + {n}u < p.bytes && b"))
        count = "\n        ".join(lines)
    sizes = {"size": size, "stride": stride}
    return Template(read_text("histogram.wgsl")).substitute(
        declarations="\n".join(parts),
        counters=f"var<workgroup> counters: array<atomic<u32>, {size}>;" if size else "",
        bin=Template(by).substitute(kind=kind, nan=nan, distance=distance),
        clear=Template(_CLEAR).substitute(sizes) if size else "",
        count=count,
        gather=Template(_GATHER).substitute(sizes) if size else "",
    )


@implements("histogram")
def make_histogram(engine: WebGPUEngine, task: Task) -> Runner:
    """Return a runner of a dispatch that clears the output and one that counts."""
    dtype, bins = task.inputs[0].dtype, task["bins"]
    edges = np.frombuffer(task["edges"], NUMPY[dtype])
    count = math.prod(task.inputs[0].shape)
    dispatches = Dispatches(engine, task.op)
    dispatches.add(read_text("clear.wgsl"), [], OUTPUT, block(bins), -(-bins // 256))
    if len(edges) < 2:
        return dispatches.runner()
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
    numbers = block(bins, used, length, units, count, scale, 0)
    constant = dispatches.constant(np.ascontiguousarray(edges))
    text = _text(dtype, size, stride if size else 1)
    dispatches.add(text, [BufferRef("input"), constant], OUTPUT, numbers, -(-units // length))
    return dispatches.runner()
