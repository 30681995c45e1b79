"""Generate readable code for a kernel: ``kernel.source("wgsl")``."""

from __future__ import annotations

import ast

from dala.errors import ParameterError
from dala.gpu.compute.call.geometry import program_for
from dala.gpu.compute.dtypes import dtype_name
from dala.gpu.compute.engines.base import Tensor
from dala.gpu.compute.lang.declaration import KernelDecl

#: Height and width of the example buffers.
_SIDE = 64


def generate(decl: KernelDecl, target: str, dtype: str | None) -> str:
    """Return a kernel as "python", "ir", "llvm" or "wgsl" code, for example buffers."""
    if target == "python":
        return decl.source.text
    if target not in ("ir", "llvm", "wgsl"):
        raise ParameterError.invalid(
            "Kernel.source", "target", "'python', 'ir', 'llvm' or 'wgsl'", target
        )
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
    program, geometry = program_for(decl, inputs, candidates[0], None)
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
