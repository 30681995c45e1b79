"""Generate readable code for a kernel: ``kernel.source("wgsl")``."""

from __future__ import annotations

import ast
import json
import math
from typing import Any, Final

from dala.errors import ParameterError
from dala.gpu.compute.call.geometry import program_for
from dala.gpu.compute.dtypes import dtype_name
from dala.gpu.compute.engines.base import Tensor
from dala.gpu.compute.lang.declaration import KernelDecl, ParamDecl
from dala.gpu.compute.lang.ir import Program

#: Height and width of the example buffers.
_SIDE = 64


def generate(decl: KernelDecl, target: str, dtype: str | None) -> str:
    """Return a kernel as "python", "ir", "llvm" or "wgsl" code, for example buffers."""
    if target == "python":
        return decl.source.python
    if target not in ("ir", "llvm", "wgsl", "glsl", "isf"):
        raise ParameterError.invalid(
            "Kernel.source", "target", "'python', 'ir', 'llvm', 'wgsl', 'glsl' or 'isf'", target
        )
    fragment = target in ("glsl", "isf")
    if fragment:
        dtype = "f32"  # textures give floats
    name = None if dtype is None else dtype_name(dtype, call="Kernel.source")
    inputs = []
    for arg in decl.args:
        if arg.kind in ("pixel", "image"):
            inputs.append(Tensor((_SIDE, _SIDE, 4), name or "u8"))
        elif arg.kind == "array":
            inputs.append(Tensor((_SIDE,) * _rank(decl, arg.name), name or "f32"))
        else:
            inputs.append(Tensor((_SIDE,), arg.dtype or name or "f32"))
    images = [i.shape for i in inputs if len(i.shape) == 3]
    others = [i.shape for i in inputs]
    wide = (_SIDE, _SIDE, 4)
    candidates = images or others or [wide]
    shape = wide if fragment and decl.pixels else candidates[0]
    program, geometry = program_for(decl, inputs, shape, "f32" if fragment else None)
    if fragment:
        from dala.gpu.compute.engines.webgpu.wgsl.glsl import glsl

        return glsl(program) if target == "glsl" else _isf(decl, program)
    if target == "ir":
        return program.key
    if target == "llvm":
        from dala.gpu.compute.engines import auto

        return auto.get("cpu").source(program, geometry)
    from dala.gpu.compute.engines.webgpu.wgsl.shader import emit

    return emit(program, geometry.layout)


def _rank(decl: KernelDecl, name: str) -> int:
    """Return the number of indices in the kernel's reads of an array."""
    for node in ast.walk(decl.function):
        if (
            isinstance(node, ast.Subscript)
            and isinstance(node.value, ast.Name)
            and node.value.id == name
        ):
            return len(node.slice.elts) if isinstance(node.slice, ast.Tuple) else 1
    return 1


# ISF --------------------------------------------------------------------------------------------
_ISF_GIVEN: Final = {
    "time": ("TIME",),
    "frame": ("FRAMEINDEX",),
    "resolution": ("RENDERSIZE.x", "RENDERSIZE.y"),
    "date": ("DATE.x", "DATE.y", "DATE.z", "DATE.w"),
}
_ISF_TEXEL: Final = """#define isf_size(image) ivec2(IMG_SIZE(image))
#define textureSize(image, lod) isf_size(image)
#define isf_inside(image, at) clamp(at, ivec2(0), isf_size(image) - 1)
#define isf_up(image, at) ivec2(at.x, isf_size(image).y - 1 - at.y)
#define texel(image, at) IMG_PIXEL(image, vec2(isf_up(image, isf_inside(image, (at)))) + 0.5)"""


def _isf(decl: KernelDecl, program: Program) -> str:
    """Return a program as an ISF 2 file: a JSON header, and GLSL."""
    from dala.gpu.compute.engines.webgpu.wgsl.glsl import TYPES, glsl_parts, refused

    text, images, params = glsl_parts(program)
    inputs: list[dict[str, Any]] = []
    for n, name in enumerate(images):
        label = {} if name == program.args[n].name else {"LABEL": program.args[n].name}
        inputs.append({"NAME": "inputImage" if n == 0 else name, "TYPE": "image", **label})
    lines = [f"#define {images[0]} inputImage"] if images and images[0] != "inputImage" else []
    for p in decl.params:
        own = [name for name, q in zip(params, program.params, strict=True) if q.name == p.name]
        given = _ISF_GIVEN.get(p.role) if p.role else None
        if p.role == "pointer":
            raise refused(program.name, "ISF has no pointer")
        if given is None:
            inputs.append(_isf_input(p))
            given = (p.name,) if len(own) == 1 else tuple(f"{p.name}.{c}" for c in "xyzw"[: p.size])
            if p.size == 3:
                given = tuple(f"{p.name}.{c}" for c in "rgb")
        types = [q.type for q in program.params if q.name == p.name]
        lines += [
            f"#define {o} {TYPES[t]}({g})"
            for o, g, t in zip(own, given, types, strict=True)
            if o != g or t == "s32"  # a long is a float in some hosts
        ]
    header: dict[str, Any] = {"ISFVSN": "2", "DESCRIPTION": decl.doc, "INPUTS": inputs}
    header["CATEGORIES"] = ["Filter" if images else "Generator"]
    return "\n".join([
        f"/*{json.dumps(header, indent=2).replace('*/', '* /')}*/", "",
        "#define size ivec2(RENDERSIZE)", *lines, *([_ISF_TEXEL] if images else []), "", text, "",
        "void main() {",
        "    ivec2 at = ivec2(gl_FragCoord.xy);",
        "    gl_FragColor = kernel(at.x, size.y - 1 - at.y);",
        "}", "",
    ])  # fmt: skip


def _isf_input(p: ParamDecl) -> dict[str, Any]:
    kinds = {0: "float", 2: "point2D", 3: "color", 4: "color"}
    kind = {"int": "long", "bool": "bool"}.get(p.type, "") if not p.size else ""
    made: dict[str, Any] = {"NAME": p.name, "TYPE": kind or kinds[p.size]}
    value = p.default
    if isinstance(value, tuple):
        value = (*value, 1.0) if p.size == 3 else value
        made["DEFAULT"] = list(value)
    elif value is not None:
        made["DEFAULT"] = value
    if kind == "long":
        made["TYPE"] = "float"
    if p.label:
        made["LABEL"] = p.label
    ends = {"MIN": p.low, "MAX": p.high}
    return made | {k: end for k, end in ends.items() if end is not None and math.isfinite(end)}
