"""Warps on WebGPU: each invocation computes its coordinates and samples the source there."""

from __future__ import annotations

from functools import cache
from typing import Final

from dala.gpu.compute.engines.base import Task
from dala.gpu.compute.engines.sampling.coordinates import affine_words, perspective_words
from dala.gpu.compute.engines.webgpu.ops.dispatches import Dispatches, implements, shader_text
from dala.gpu.compute.engines.webgpu.wgsl.helpers import wgsl_parts
from dala.gpu.compute.engines.webgpu.wgsl.names import bindings
from dala.gpu.compute.engines.webgpu.wgsl.pixels import ImageFormat, image_groups, image_pass

#: A pixel beyond the border "constant".
_FILLED: Final = (
    "select(p.fill, value, x >= 0 && y >= 0 && x < p.source_width && y < p.source_height)"
)

#: Functions for bytes that a method uses.
_BYTE_FUNCTIONS: Final = {
    "nearest": (),
    "bilinear": ("rounded", "mixed"),
    "bicubic": ("rounded", "byte_weights"),
}

#: Functions of ``pixels.wgsl`` that a method uses for f32.
_USES: Final = {
    "nearest": (),
    "bilinear": ("bilinear_weights", "weighted_sum"),
    "bicubic": ("cubic_weights",),
}

#: The element type of the second buffer.
_TABLE: Final = {"warp_affine": "vec4<u32>", "warp_perspective": "u32", "remap": "vec2<f32>"}


@cache
def shader(op: str, image: ImageFormat, method: str, border: str) -> str:
    """Return the shader of a warp."""
    parts = wgsl_parts("warp_parts.wgsl", __package__)
    whole = image.dtype == "u8"
    functions = "".join(f"{parts[name]}\n\n" for name in (_BYTE_FUNCTIONS[method] if whole else ()))
    if op == "warp_perspective":
        functions += shader_text("warp_perspective.wgsl")
    elif op == "remap":
        functions += f"{parts['split']}\n\n"
    own = image.element
    reads = [f"source: array<{own}>", f"table: array<{_TABLE[op]}>"]
    return shader_text(
        "warp.wgsl",
        bindings="\n".join(bindings(reads, [f"result: array<{own}>"])),
        fold=parts[f"fold {'clamp' if border == 'constant' else border}"],
        bordered=_FILLED if border == "constant" else "value",
        functions=functions,
        place=parts[f"place {op}"],
        sample=parts[f"{'bytes' if whole and method != 'nearest' else 'sample'} {method}"],
        image_pass=image_pass(image, image, *(() if whole else _USES[method])),
    )


@implements("remap", "warp_affine", "warp_perspective")
def add_warp(work: Dispatches, task: Task) -> None:
    """Add one dispatch."""
    picture = ImageFormat.of(task.output)
    (rows, columns), (height, width) = task.inputs[0].shape[:2], task.output.shape[:2]
    reads = list(work.inputs)
    if task.op != "remap":
        words = affine_words if task.op == "warp_affine" else perspective_words
        reads.append(work.constant(words(task["matrix"], height, width)))
    text = shader(task.op, picture, task["method"], task["border"])
    numbers = (width, height, columns, rows, *task["fill"])
    work.add(text, reads, work.output, numbers, image_groups(picture, height * width))
