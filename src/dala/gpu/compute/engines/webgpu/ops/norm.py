"""Softmax and layer normalization on WebGPU.

Rows of up to 4096 units (vec4 if they are aligned) are read once and kept in the registers of up to
256 lanes; short rows share a workgroup. Longer rows and columns are read again in each pass.
"""

from __future__ import annotations

import struct
from functools import cache
from math import prod
from typing import Final

from dala.gpu.compute.engines.base import Task
from dala.gpu.compute.engines.webgpu.ops.dispatches import Dispatches, implements, shader_text
from dala.gpu.compute.engines.webgpu.ops.lanes import (
    Layout,
    lane_text,
    lanes_of,
    next_power_of_two,
    width_of,
)
from dala.gpu.compute.engines.webgpu.wgsl.helpers import helper_source
from dala.gpu.compute.engines.webgpu.wgsl.numbers import (
    STORED,
    bound,
    combining,
    declared,
    each,
    folding,
    neutral,
    reading,
    vector,
)

#: The most units that a lane keeps in registers.
MAX_KEPT: Final = 16


def _for_each_unit(kept: int, text: str) -> str:
    """Repeat a line for each unit that a lane keeps; ``@`` is the unit's number."""
    return "\n".join(text.replace("@", str(k)) for k in range(kept))


def _loop(kept: int, text: str) -> str:
    """Return a loop over a lane's units; $x is a unit, $i its index, $k its position in the row."""
    if kept:
        body = text.replace("$x", "x@").replace("$i", "(base + k@)").replace("$k", "k@")
        return _for_each_unit(kept, f"        if (k@ < p.n) {{ {body} }}")
    body = text.replace("$x", "fetch_a(i)").replace("$i", "i").replace("$k", "k")
    return (
        "        for (var k = lane; k < p.n; k += p.lanes) {\n"
        "            let i = base + k * p.inner;\n"
        f"            {body}\n        }}"
    )


def _begin(kept: int, unit: str) -> str:
    """Return the lines that read the units to keep."""
    return _for_each_unit(
        kept,
        f"    let k@ = lane + @u * p.lanes;\n    var x@ = {unit}(0);\n"
        "    if (inside && k@ < p.n) { x@ = fetch_a(base + k@); }",
    )


@cache
def _softmax(dtype: str, width: int, rows: bool, kept: int) -> str:
    kind = STORED[dtype]
    unit = vector(kind, width)
    folded = rows and width > 1
    folds = [
        part
        for combine, operation, fold in (("join", "max", "largest"), ("add", "sum", "total"))
        for part in (combining(combine, kind, operation, 1), folding(fold, combine, kind, width))
    ]
    value = each(f"exp_{kind}", unit, width, "d")
    second = "$x = exp_of($x - m); s += $x;" if kept else "s += exp_of($x - m);"
    third = "output[$i] = $x / s;" if kept else "output[$i] = exp_of($x - m) / s;"
    return shader_text(
        "softmax.wgsl",
        declarations=declared(
            ("n", "inner", "lanes", "items"),
            helper_source([f"max_{kind}", f"exp_{kind}"]),
            reading(0, "a", dtype, kind, width),
            bound(1, "output", unit, write=True),
            combining("larger", kind, "max", width),
            *(folds if folded else ()),
            f"fn exp_of(d: {unit}) -> {unit} {{\n    return {value};\n}}\n",
        ),
        shared=kind if folded else unit,
        places=lane_text(rows),
        unit=unit,
        neutral=neutral(kind, "max"),
        begin=_begin(kept, unit),
        first=_loop(kept, "m = larger(m, $x);"),
        second=_loop(kept, second),
        third=_loop(kept, third),
        largest="largest(m0)" if folded else "m0",
        total="total(s0)" if folded else "s0",
        join="join" if folded else "larger",
    )


def _kept_by(units: int, lanes: int) -> int:
    """Return the number of units that a lane keeps, or 0 if they are too many.

    It is a power of two, so that all lengths share a few shaders.
    """
    count = next_power_of_two(-(-units // lanes))
    return count if count <= MAX_KEPT else 0


@implements("softmax")
def add_softmax(work: Dispatches, task: Task) -> None:
    """Add one dispatch."""
    dtype, layout = task.inputs[0].dtype, task["layout"]
    outer, n, inner = _in_units(dtype, layout)
    width = layout[1] * layout[2] // (n * inner)
    lanes = lanes_of(n, inner)
    kept = _kept_by(n, lanes) if inner == 1 and layout[2] == 1 else 0
    items = outer * inner
    text = _softmax(dtype, width, layout[2] == 1, kept)
    numbers = (n, inner, lanes, items, 0)
    work.add(text, work.inputs, work.output, numbers, -(-items * lanes // 256))


def _in_units(dtype: str, layout: Layout) -> Layout:
    """Return the layout counted in units."""
    outer, n, inner = layout
    aligned = inner % 4 == 0 if inner > 1 else n % 4 == 0
    if not aligned or width_of(STORED[dtype], layout) == 1:
        return layout
    return (outer, n // 4, 1) if inner == 1 else (outer, n, inner // 4)


@cache
def _layer_norm(dtype: str, width: int, given: int, kept: int) -> str:
    kind = STORED[dtype]
    unit = vector(kind, width)
    names = ("a", "gamma", "beta")[:given]
    third = "var v = (($x - high) - low) * scale;"
    if given > 1:
        third += " v = v * fetch_gamma($k);"
    if given > 2:
        third += " v = v + fetch_beta($k);"
    return shader_text(
        "layer_norm.wgsl",
        declarations=declared(
            ("n", "inner", "lanes", "items", "count", "epsilon", "rest"),
            *(reading(i, name, dtype, kind, width) for i, name in enumerate(names)),
            bound(given, "output", unit, write=True),
            combining("add", kind, "sum", 1),
            folding("total", "add", kind, width),
        ),
        block=given + 1,
        kind=kind,
        places=lane_text(True),
        unit=unit,
        begin=_begin(kept, unit),
        first=_loop(kept, "sum += $x;"),
        second=_loop(kept, "let d = $x - m; more += d; squares += d * d;"),
        third=_loop(kept, third + " output[$i] = v;"),
    )


@implements("layer_norm")
def add_layer_norm(work: Dispatches, task: Task) -> None:
    """Add one dispatch."""
    a = task.inputs[0]
    count = a.shape[-1]
    outer = prod(a.shape[:-1])
    width = width_of(STORED[a.dtype], (2, count, 1))
    n = count // width
    lanes = lanes_of(n, 1)
    text = _layer_norm(a.dtype, width, len(task.inputs), _kept_by(n, lanes))
    numbers = (n, 1, lanes, outer, count, *_two_parts(task["epsilon"]), 0)
    work.add(text, work.inputs, work.output, numbers, -(-outer * lanes // 256))


def _two_parts(x: float) -> tuple[float, float]:
    """Split a number into the sum of two f32, for shaders that compute in f64."""
    high = struct.unpack("<f", struct.pack("<f", x))[0]
    return high, x - high
