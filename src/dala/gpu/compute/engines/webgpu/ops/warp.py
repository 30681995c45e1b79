"""Warps on WebGPU: each invocation computes its coordinates and samples the source there."""

from __future__ import annotations

from functools import cache
from string import Template
from typing import TYPE_CHECKING, Final

from dala.gpu.compute.engines.base import Runner, Task
from dala.gpu.compute.engines.sampling.coordinates import affine_words
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

_FOLD: Final = {
    "constant": "    return clamp(i, 0, count - 1);",
    "clamp": "    return clamp(i, 0, count - 1);",
    # Drivers differ in the remainder of negative numbers.
    "wrap": ("    let r = i - (i / count) * count;\n    return select(r, r + count, r < 0);"),
    "reflect": (
        "    let period = max(2 * (count - 1), 1);\n"
        "    let r = abs(i) % period;\n"
        "    return min(min(r, period - r), count - 1);"
    ),
}

_BORDERED: Final = {
    "constant": (
        "select(p.fill, value, x >= 0 && y >= 0 && x < p.source_width && y < p.source_height)"
    ),
}

_SAMPLE: Final = {
    "nearest": (
        "    let at_near = at.whole + select(vec2<i32>(0), vec2<i32>(1), "
        "at.part >= vec2<f32>(0.5f));\n"
        "    return tap(at_near.x, at_near.y);"
    ),
    "bilinear": (
        "    let x = at.whole.x;\n"
        "    let y = at.whole.y;\n"
        "    return weighted_sum(tap(x, y), tap(x + 1, y), tap(x, y + 1), tap(x + 1, y + 1),\n"
        "        bilinear_weights(at.part));"
    ),
    "bicubic": (
        "    let wx = cubic_weights(at.part.x);\n"
        "    let wy = cubic_weights(at.part.y);\n"
        "    var sum = vec4<f32>(0.0f);\n"
        "    for (var k = 0; k < 4; k++) {\n"
        "        let y = at.whole.y + k - 1;\n"
        "        let row = wx.x * tap(at.whole.x - 1, y) + wx.y * tap(at.whole.x, y)\n"
        "            + wx.z * tap(at.whole.x + 1, y) + wx.w * tap(at.whole.x + 2, y);\n"
        "        sum += wy[k] * row;\n"
        "    }\n"
        "    return sum;"
    ),
}

#: Functions of ``pixels.wgsl`` that a method uses.
_USES: Final = {
    "nearest": (),
    "bilinear": ("bilinear_weights", "weighted_sum"),
    "bicubic": ("cubic_weights",),
}

_PLACE: Final = {
    "warp_affine": (
        "    let c = table[x];\n"
        "    let r = table[p.width + y];\n"
        "    let sum = bitcast<vec2<f32>>(c.yw) + bitcast<vec2<f32>>(r.yw);\n"
        "    let over = sum >= vec2<f32>(1.0f);\n"
        "    let whole = bitcast<vec2<i32>>(c.xz) + bitcast<vec2<i32>>(r.xz);\n"
        "    return Coordinates(whole + select(vec2<i32>(0), vec2<i32>(1), over),\n"
        "        select(sum, sum - vec2<f32>(1.0f), over));"
    ),
    "warp_perspective": (
        "    let at = vec3<f32>(f32(x), f32(y), 1.0f);\n"
        "    let w = dot(p.matrix_w.xyz, at);\n"
        "    let back = select(1.0f / w, 0.0f, w == 0.0f);\n"
        "    return split(vec2<f32>(dot(p.matrix_u.xyz, at), dot(p.matrix_v.xyz, at)) * back);"
    ),
    "remap": "    return split(table[y * p.width + x]);",
}
#: The element type of the second buffer, for operations that have one.
_TABLE: Final = {"warp_affine": "vec4<u32>", "remap": "vec2<f32>"}


@cache
def shader(op: str, dtype: str, channels: int, method: str, border: str) -> str:
    """Return the shader of a warp."""
    image = ImageFormat(dtype, channels)
    rest = [f"<storage, read> table: array<{_TABLE[op]}>"] if op in _TABLE else []
    rest += [
        f"<storage, read_write> result: array<{image.element}>",
        "<uniform> p: Block",
    ]
    bindings = [f"@group(0) @binding({i}) var{text};" for i, text in enumerate(rest, 1)]
    return Template(read_text("warp.wgsl")).substitute(
        element=image.element,
        bindings="\n".join(bindings),
        fold=_FOLD[border],
        bordered=_BORDERED.get(border, "value"),
        place=_PLACE[op],
        sample=_SAMPLE[method],
        image_pass=image_pass(image, image, *_USES[method]),
    )


@implements("remap", "warp_affine", "warp_perspective")
def make_warp(engine: WebGPUEngine, task: Task) -> Runner:
    """Return a runner of one dispatch."""
    image, out = task.inputs[0].shape, task.output.shape
    channels = out[2] if len(out) == 3 else 1
    dispatches = Dispatches(engine, task.op)
    reads = [BufferRef("input")]
    rows = [0.0] * 12
    if task.op == "warp_affine":
        reads.append(dispatches.constant(affine_words(task["matrix"], *out[:2])))
    elif task.op == "remap":
        reads.append(BufferRef("input", 1))
    else:
        m = list(task["matrix"])
        rows = [*m[:3], 0.0, *m[3:6], 0.0, *m[6:], 0.0]
    text = shader(task.op, task.output.dtype, channels, task["method"], task["border"])
    numbers = block(out[1], out[0], image[1], image[0], *task["fill"], *rows)
    groups = image_groups(ImageFormat(task.output.dtype, channels), out[0] * out[1])
    dispatches.add(text, reads, OUTPUT, numbers, groups)
    return dispatches.runner()
