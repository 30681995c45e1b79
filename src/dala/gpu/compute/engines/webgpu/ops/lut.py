"""3D color lookup tables: one dispatch pads the entries to vec4, another maps the pixels.

1D tables, and tables behind curves, are lowered to the kernel language.
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
from dala.gpu.compute.engines.webgpu.wgsl.pixels import ImageFormat, image_groups, image_pass

if TYPE_CHECKING:
    from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine

_GROUP: Final = 128

_METHOD: Final = {
    # Go from the near corner to the far one, along the axis with the largest fraction first; among
    # equal ones red, then green. An infinite entry counts even where its weight is 0.
    "tetrahedral": """\
    let up = select(select(1u, step.y, part.y >= part.z), select(1u, step.x, part.x >= part.z),
        part.x >= part.y);
    let off = select(select(step.x, 1u, part.x >= part.z), select(step.y, 1u, part.y >= part.z),
        part.x >= part.y);
    let high = max(part.x, part.y);
    let less = min(part.x, part.y);
    let most = max(high, part.z);
    let least = min(less, part.z);
    let middle = max(less, min(high, part.z));
    return table[base] * (1.0f - most) + table[base + up] * (most - middle)
        + table[far - off] * (middle - least) + table[far] * least;""",
    # Not mix(): some drivers compute a + (b - a) * t, which is NaN for an infinite entry.
    "trilinear": """\
    let rest = 1.0f - part;
    let n00 = table[base] * rest.z + table[base + 1u] * part.z;
    let n01 = table[base + step.y] * rest.z + table[base + step.y + 1u] * part.z;
    let n10 = table[base + step.x] * rest.z + table[base + step.x + 1u] * part.z;
    let n11 = table[far - 1u] * rest.z + table[far] * part.z;
    return (n00 * rest.y + n01 * part.y) * rest.x + (n10 * rest.y + n11 * part.y) * part.x;""",
}


@cache
def shader(source: ImageFormat, stored: ImageFormat, method: str) -> str:
    """Return the shader for an image format and an output format."""
    return Template(read_text("lut.wgsl")).substitute(
        element=source.element,
        stored=stored.element,
        method=_METHOD[method],
        alpha="px.a * p.alpha" if source.channels == 4 else "p.white",
        image_pass=image_pass(source, stored, by_number=True),
    )


@implements("lut_apply")
def make_lut_apply(engine: WebGPUEngine, task: Task) -> Runner | None:
    """Return a runner of two dispatches for a plain 3D table; None for others."""
    image, lut = task.inputs
    if len(lut.shape) != 4 or task["shaper"]:
        return None
    size = lut.shape[0]
    height, width, channels = image.shape
    source = ImageFormat(image.dtype, channels)
    stored = ImageFormat(task.output.dtype, task.output.shape[2])
    unit = 255.0 if image.dtype == "u8" else 1.0
    white = 255.0 if task.output.dtype == "u8" else 1.0
    low, high = task["domain_min"], task["domain_max"]
    scale = [(size - 1) / (h - v) / unit for v, h in zip(low, high, strict=True)]
    dispatches = Dispatches(engine, task.op)
    table = dispatches.temporary(size**3 * 16)
    spread = Template(read_text("lut_spread.wgsl")).substitute(group=_GROUP)
    dispatches.add(spread, [BufferRef("input", 1)], table, block(size**3), -(-(size**3) // _GROUP))
    dispatches.add(
        shader(source, stored, task["method"]),
        [BufferRef("input"), table],
        OUTPUT,
        block(
            width, height, size, white,
            *(v * unit for v in low), white / unit,
            *scale, task["amount"],
            (1.0 - task["amount"]) * white / unit, 0, 0, 0,
        ),
        image_groups(stored, height * width),
    )  # fmt: skip
    return dispatches.runner()
