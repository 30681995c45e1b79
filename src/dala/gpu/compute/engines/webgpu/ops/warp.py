"""Warps on WebGPU: each invocation computes its coordinates and samples the source there."""

from __future__ import annotations

from functools import cache
from string import Template
from typing import TYPE_CHECKING, Final

from dala.gpu.compute.engines.base import Runner, Task
from dala.gpu.compute.engines.sampling.coordinates import affine_words, perspective_words
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

_NEAREST: Final = (
    "    let near = at.whole + (at.part >> vec2<u32>(23u));\n    return tap(near.x, near.y);"
)
_SAMPLE: Final = {
    "nearest": _NEAREST,
    "bilinear": (
        "    let x = at.whole.x;\n"
        "    let y = at.whole.y;\n"
        "    return weighted_sum(tap(x, y), tap(x + 1, y), tap(x, y + 1), tap(x + 1, y + 1),\n"
        "        bilinear_weights(vec2<f32>(at.part) * 5.9604644775390625e-8f));"
    ),
    "bicubic": (
        "    let part = vec2<f32>(at.part) * 5.9604644775390625e-8f;\n"
        "    let wx = cubic_weights(part.x);\n"
        "    let wy = cubic_weights(part.y);\n"
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
#: The same for bytes, in integers: see ``engines/sampling/byte_samples.py``.
_SAMPLE_BYTES: Final = {
    "nearest": _NEAREST,
    "bilinear": (
        "    let place = rounded(at);\n"
        "    let left = mixed(place.whole, place.part.y);\n"
        "    let right = mixed(place.whole + vec2<i32>(1, 0), place.part.y);\n"
        "    let value = left + (((right - left) * place.part.x + 16384) >> vec4<u32>(15u));\n"
        "    return vec4<f32>((value + 64) >> vec4<u32>(7u));"
    ),
    "bicubic": (
        "    let place = rounded(at);\n"
        "    var rows = byte_weights(place.part.y);\n"
        "    var columns = byte_weights(place.part.x);\n"
        "    var sum = vec4<i32>(524288);\n"
        "    for (var k = 0; k < 4; k++) {\n"
        "        let x = place.whole.x + k - 1;\n"
        "        var line = vec4<i32>(128);\n"
        "        for (var j = 0; j < 4; j++) {\n"
        "            line += rows[j] * vec4<i32>(tap(x, place.whole.y + j - 1));\n"
        "        }\n"
        "        sum += columns[k] * (line >> vec4<u32>(8u));\n"
        "    }\n"
        "    return vec4<f32>(clamp(sum >> vec4<u32>(20u), vec4<i32>(0), vec4<i32>(255)));"
    ),
}
_ROUNDED: Final = """fn rounded(at: Coordinates) -> Coordinates {
    let part = at.part + 256;
    let kept = part & vec2<i32>(16777215);
    return Coordinates(at.whole + (part >> vec2<u32>(24u)), kept >> vec2<u32>(9u));
}

"""
_MIXED: Final = """fn mixed(at: vec2<i32>, part: i32) -> vec4<i32> {
    let above = vec4<i32>(tap(at.x, at.y));
    let below = vec4<i32>(tap(at.x, at.y + 1));
    return (above << vec4<u32>(7u)) + (((below - above) * part + 128) >> vec4<u32>(8u));
}

"""
_BYTE_WEIGHTS: Final = """fn byte_weights(t: i32) -> array<i32, 4> {
    let square = t * t;
    let one = t << 5u;
    let two = square >> 10u;
    let three = ((square >> 14u) * t) >> 11u;
    let first = (6 * two - 3 * three - 3 * one + 128) >> 8u;
    let third = (6 * two - 5 * three + 3 * one + 128) >> 8u;
    let fourth = (3 * three - 3 * two + 128) >> 8u;
    return array<i32, 4>(first, 16384 - first - third - fourth, third, fourth);
}

"""
_BYTE_FUNCTIONS: Final = {
    "nearest": "",
    "bilinear": _ROUNDED + _MIXED,
    "bicubic": _ROUNDED + _BYTE_WEIGHTS,
}

#: Functions of ``pixels.wgsl`` that a method uses for f32.
_USES: Final = {
    "nearest": (),
    "bilinear": ("bilinear_weights", "weighted_sum"),
    "bicubic": ("cubic_weights",),
}

_SPLIT: Final = """fn split(v: vec2<f32>) -> Coordinates {
    let bits = bitcast<vec2<u32>>(v) & vec2<u32>(0x7fffffffu);
    let number = select(v, vec2<f32>(-536870912.0f), bits > vec2<u32>(0x7f800000u));
    let near = clamp(number, vec2<f32>(-536870912.0f), vec2<f32>(536870912.0f));
    let small = trunc(near * 16777216.0f) * 5.9604644775390625e-8f;
    let exact = select(near, small, abs(near) < vec2<f32>(1.0f));
    let whole = floor(exact);
    return Coordinates(vec2<i32>(whole), vec2<i32>((exact - whole) * 16777216.0f));
}

"""

_PLACE: Final = {
    "warp_affine": (
        "    let c = bitcast<vec4<i32>>(table[x]);\n"
        "    let r = bitcast<vec4<i32>>(table[p.width + y]);\n"
        "    let sum = c + r;\n"
        "    return Coordinates(\n"
        "        sum.xz + (sum.yw >> vec2<u32>(24u)), sum.yw & vec2<i32>(16777215));"
    ),
    "warp_perspective": (
        "    let w = bitcast<i32>(row(12u, x, y).x);\n"
        "    let turn = vec2<bool>(w < 0);\n"
        "    let u = row(0u, x, y);\n"
        "    let v = row(6u, x, y);\n"
        "    let across = divided(select(u, negative(u), turn), abs(w));\n"
        "    let down = divided(select(v, negative(v), turn), abs(w));\n"
        "    return Coordinates(vec2<i32>(across.x, down.x), vec2<i32>(across.y, down.y));"
    ),
    "remap": "    return split(table[y * p.width + x]);",
}
#: The element type of the second buffer.
_TABLE: Final = {"warp_affine": "vec4<u32>", "warp_perspective": "u32", "remap": "vec2<f32>"}


@cache
def shader(op: str, dtype: str, channels: int, method: str, border: str) -> str:
    """Return the shader of a warp."""
    image = ImageFormat(dtype, channels)
    whole = dtype == "u8"
    functions = _BYTE_FUNCTIONS[method] if whole else ""
    if op == "warp_perspective":
        functions += read_text("warp_perspective.wgsl")
    elif op == "remap":
        functions += _SPLIT
    rest = (
        f"<storage, read> table: array<{_TABLE[op]}>",
        f"<storage, read_write> result: array<{image.element}>",
        "<uniform> p: Block",
    )
    bindings = [f"@group(0) @binding({i}) var{text};" for i, text in enumerate(rest, 1)]
    return Template(read_text("warp.wgsl")).substitute(
        element=image.element,
        bindings="\n".join(bindings),
        fold=_FOLD[border],
        bordered=_BORDERED.get(border, "value"),
        functions=functions,
        place=_PLACE[op],
        sample=(_SAMPLE_BYTES if whole else _SAMPLE)[method],
        image_pass=image_pass(image, image, *(() if whole else _USES[method])),
    )


@implements("remap", "warp_affine", "warp_perspective")
def make_warp(engine: WebGPUEngine, task: Task) -> Runner:
    """Return a runner of one dispatch."""
    image, out = task.inputs[0].shape, task.output.shape
    channels = out[2] if len(out) == 3 else 1
    dispatches = Dispatches(engine, task.op)
    table = BufferRef("input", 1)
    if task.op == "warp_affine":
        table = dispatches.constant(affine_words(task["matrix"], *out[:2]))
    elif task.op == "warp_perspective":
        table = dispatches.constant(perspective_words(task["matrix"], *out[:2]))
    text = shader(task.op, task.output.dtype, channels, task["method"], task["border"])
    numbers = block(out[1], out[0], image[1], image[0], *task["fill"])
    groups = image_groups(ImageFormat(task.output.dtype, channels), out[0] * out[1])
    dispatches.add(text, [BufferRef("input"), table], OUTPUT, numbers, groups)
    return dispatches.runner()
