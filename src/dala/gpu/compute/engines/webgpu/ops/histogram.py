"""Histograms on WebGPU.

Numbers are compared with the edges of the bins, so that all devices count them in the same bins. A
multiplication guesses the first bin to try. Bytes use a table.
"""

from __future__ import annotations

import math
from functools import cache
from string import Template
from typing import Final

import numpy as np

from dala.gpu.compute.dtypes import NUMPY
from dala.gpu.compute.engines.base import Task
from dala.gpu.compute.engines.webgpu.ops.dispatches import Dispatches, implements, shader_text
from dala.gpu.compute.engines.webgpu.wgsl.helpers import helper_source, wgsl_parts
from dala.gpu.compute.engines.webgpu.wgsl.numbers import STORED, bound, declared, reading

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
