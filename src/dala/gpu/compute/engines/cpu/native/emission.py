"""A whole module of native code: parsed, typed, written as LLVM IR."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dala.gpu.compute.engines.cpu.llvm.tiles import Host
from dala.gpu.compute.engines.cpu.native.body import write_function
from dala.gpu.compute.engines.cpu.native.glue import FAULT, TOUCH, glue_text
from dala.gpu.compute.engines.cpu.native.source import NativeFunction
from dala.gpu.compute.engines.cpu.native.specialise import fill_statics
from dala.gpu.compute.engines.cpu.native.types import Type
from dala.gpu.compute.engines.cpu.native.unit import Result, Unit, annotation


@dataclass(frozen=True, slots=True)
class Emitted:
    """The IR of a function for a set of constants, and what calls of it need to know."""

    text: str
    params: list[str]
    kinds: list[Any]
    result: Result
    #: Names of functions, by the number that a fault carries.
    names: list[str]
    #: All functions that went into it.
    functions: list[NativeFunction]


def emit(
    function: NativeFunction, statics: dict[str, Any], *, checked: bool, host: Host, touch_from: int
) -> Emitted:
    """Writes a function and all that it calls."""
    filled = fill_statics(function, statics)
    kinds = [annotation(function, p.annotation, filled, p) for p in function.params]
    for p, kind in zip(function.params, kinds, strict=True):
        array = isinstance(kind, tuple) and kind[0] == "array"
        if not isinstance(kind[1] if array else kind, Type):
            function.fail(p, f"argument {p.arg} needs a type", "Annotate it: Array[f32], i64.")
    params = [p.arg for p in function.params]
    unit = Unit(checked, host.streams, host.portion, host.portion_lanes)
    if checked:
        unit.functions.append(FAULT)
    entry = [(k[1], 1) if isinstance(k, tuple) else k for k in kinds]
    written = write_function(unit, function, entry, filled, entry=True)
    pages = unit.stack // 4096 + 4 if unit.stack >= touch_from else 0
    if pages:
        unit.functions.append(TOUCH)
    if unit.streamed:
        unit.module.intrinsic("x86.sse.sfence", "void")
    unit.functions.append(
        glue_text(
            written,
            kinds,
            shared=params[-2:] == ["start", "end"],
            checked=checked,
            pages=pages,
            fence=unit.streamed,
        )
    )
    functions = list(dict.fromkeys(key[0] for key in unit.known))
    text = unit.text(host.attributes)
    return Emitted(text, params, kinds, written.result, unit.names, functions)
