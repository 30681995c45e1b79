"""Emit a whole module: native functions, and entry points that read a job block.

:mod:`~dala.gpu.compute.engines.cpu.native.arguments` describes the block. Word
``OUT_WORD`` holds the address of the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dala.gpu.compute.engines.cpu.llvm.tiles import HEAD_WORDS, OUT_WORD
from dala.gpu.compute.engines.cpu.machine import Machine
from dala.gpu.compute.engines.cpu.native.function import NativeFunction
from dala.gpu.compute.engines.cpu.native.module import EmittedFunction, NativeModule
from dala.gpu.compute.engines.cpu.native.signature import annotation, fill_statics, llvm_result
from dala.gpu.compute.engines.cpu.native.statements import write_function
from dala.gpu.compute.engines.cpu.native.types import ParamType, Result, Static
from dala.gpu.compute.engines.cpu.vector.text import runtime
from dala.gpu.compute.engines.cpu.vector.types import BOOL, Type

_FIRST: Final = HEAD_WORDS + 1

# A fault report has five words: 1, index, length, line, number of the function. The first fault is
# kept. On a single thread, too, a body gets one tile at a time. Windows commits stack pages one by
# one, in order, so every page of a large array must be touched before the array is used.


def entry_points(
    unit: NativeModule, entry: EmittedFunction, kinds: list[ParamType], *, shared: bool, pages: int
) -> str:
    """Return the exported functions: ``all(job)``, and ``body`` if the function has a range."""
    lines = [f"  call void @dala.touch(i64 {pages})"] if pages else []
    parts: list[str] = []
    at = _FIRST
    for kind in kinds[:-2] if shared else kinds:
        for llvm in ("ptr", "i64") if isinstance(kind, tuple) else (kind.stored,):
            lines.append(f"  %p{at} = getelementptr i64, ptr %job, i64 {at}")
            lines.append(f"  %a{at} = load {llvm}, ptr %p{at}")
            value = f"%a{at}"
            if kind == BOOL:
                lines.append(f"  %b{at} = icmp ne i8 %a{at}, 0")
                llvm, value = "i1", f"%b{at}"
            parts.append(f"{llvm} {value}")
            at += 1
    if shared:
        parts += ["i64 %start", "i64 %end"]
    if unit.checked:
        lines.append(f"  %f.p = getelementptr i64, ptr %job, i64 {HEAD_WORDS}")
        lines.append("  %f = load ptr, ptr %f.p")
        parts.append("ptr %f")
    if unit.checked and shared:  # no tile starts after a fault
        lines.append("  %code = load atomic i64, ptr %f monotonic, align 8")
        lines.append("  %bad = icmp ne i64 %code, 0")
        lines.append("  br i1 %bad, label %leave, label %go\nleave:\n  ret void\ngo:")
    returned = llvm_result(entry.result)
    call = f"call {returned} {entry.name}({', '.join(parts)})"
    if entry.result is None:
        lines.append(f"  {call}")
    else:
        lines.append(f"  %result = {call}")
        lines.append(f"  %to.p = getelementptr i64, ptr %job, i64 {OUT_WORD}")
        lines.append("  %to = load ptr, ptr %to.p")
        lines += store_result(entry.result)
    if unit.streamed:  # nontemporal stores must be visible before the tile is reported as done
        lines.append("  call void @llvm.x86.sse.sfence()")
    text = "\n".join([*lines, "  ret void\n}\n"])
    if not shared:
        return f"define void @all(ptr %job) #0 {{\n{text}"
    head = "define void @body(ptr %job, ptr %out, i64 %start, i64 %end) #0 {"
    return "\n".join([head, text, runtime("tile by tile")])


def store_result(result: Type | tuple[Type, ...]) -> list[str]:
    """Return the instructions that store a result."""
    lines = []
    for i, t in enumerate(result if isinstance(result, tuple) else (result,)):
        value = "%result"
        if isinstance(result, tuple):
            value = f"%r{i}"
            lines.append(f"  {value} = extractvalue {llvm_result(result)} %result, {i}")
        if t.bits == 1:
            lines.append(f"  %z{i} = zext i1 {value} to i8")
            value = f"%z{i}"
        lines.append(f"  %to{i} = getelementptr i64, ptr %to, i64 {i}")
        lines.append(f"  store {t.stored} {value}, ptr %to{i}")
    return lines


@dataclass(frozen=True, slots=True)
class EmittedModule:
    """The LLVM IR of a function for a set of constants, with its signature."""

    text: str
    params: list[str]
    kinds: list[ParamType]
    result: Result
    #: Names of functions, by the number in a fault report.
    names: list[str]
    #: Every native function in the module.
    functions: list[NativeFunction]


def emit(
    function: NativeFunction,
    statics: dict[str, Static],
    checked: bool,
    machine: Machine,
    touch_from: int,
) -> EmittedModule:
    """Emit a function and everything it calls."""
    filled = fill_statics(function, statics)
    kinds = [annotation(function, p.annotation, filled, p) for p in function.params]
    for p, kind in zip(function.params, kinds, strict=True):
        array = isinstance(kind, tuple) and kind[0] == "array"
        if not isinstance(kind[1] if array else kind, Type):
            function.fail(
                p, f"argument {p.arg} needs a type", "Annotate it, for example Array[f32] or i64."
            )
    params = [p.arg for p in function.params]
    unit = NativeModule(checked, machine)
    if checked:
        unit.functions.append(runtime("fault"))
    entry = [(k[1], 1, k[2]) if isinstance(k, tuple) else k for k in kinds]
    written = write_function(unit, function, entry, filled, entry=True)
    pages = unit.stack // 4096 + 4 if unit.stack >= touch_from else 0
    if pages:
        unit.functions.append(runtime("touch"))
    if unit.streamed:
        unit.module.intrinsic("x86.sse.sfence", "void")
    shared = params[-2:] == ["start", "end"]
    unit.functions.append(entry_points(unit, written, kinds, shared=shared, pages=pages))
    functions = list(dict.fromkeys(key[0] for key in unit.known))
    text = unit.text(machine.attributes)
    plain = [k[:2] if isinstance(k, tuple) else k for k in kinds]
    return EmittedModule(text, params, plain, written.result, unit.names, functions)
