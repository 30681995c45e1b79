"""Emit a whole module: native functions, and entry points that read a job block.

:mod:`~dala.gpu.compute.engines.cpu.native.arguments` describes the block. Word
``OUT_WORD`` holds the address of the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dala.gpu.compute.engines.cpu.llvm.tiles import HEAD_WORDS, OUT_WORD, Host
from dala.gpu.compute.engines.cpu.native.function import NativeFunction
from dala.gpu.compute.engines.cpu.native.module import EmittedFunction, NativeModule
from dala.gpu.compute.engines.cpu.native.signature import annotation, fill_statics, llvm_result
from dala.gpu.compute.engines.cpu.native.statements import write_function
from dala.gpu.compute.engines.cpu.native.types import ParamType, Result, Static
from dala.gpu.compute.engines.cpu.vector.types import BOOL, Type

_FIRST: Final = HEAD_WORDS + 1

# A fault report has five words: 1, index, length, line, number of the function. The first fault is
# kept.
FAULT: Final = """\
define internal void @dala.fault(ptr %f, i64 %index, i64 %length, i64 %line, i64 %name) #0 {
  %put = cmpxchg ptr %f, i64 0, i64 1 acq_rel monotonic
  %first = extractvalue { i64, i1 } %put, 1
  br i1 %first, label %report, label %leave
report:
  %p1 = getelementptr i64, ptr %f, i64 1
  store i64 %index, ptr %p1
  %p2 = getelementptr i64, ptr %f, i64 2
  store i64 %length, ptr %p2
  %p3 = getelementptr i64, ptr %f, i64 3
  store i64 %line, ptr %p3
  %p4 = getelementptr i64, ptr %f, i64 4
  store i64 %name, ptr %p4
  br label %leave
leave:
  ret void
}
"""


# On a single thread, too, a body gets one tile at a time.
TILE_BY_TILE: Final = """\
define void @all(ptr %job) #0 {
entry:
  %total.p = getelementptr i64, ptr %job, i64 1
  %total = load i64, ptr %total.p
  %chunk.p = getelementptr i64, ptr %job, i64 2
  %chunk = load i64, ptr %chunk.p
  br label %look
look:
  %start = phi i64 [ 0, %entry ], [ %end, %tile ]
  %some = icmp slt i64 %start, %total
  br i1 %some, label %tile, label %leave
tile:
  %full = add i64 %start, %chunk
  %over = icmp sgt i64 %full, %total
  %end = select i1 %over, i64 %total, i64 %full
  call void @body(ptr %job, ptr null, i64 %start, i64 %end)
  br label %look
leave:
  ret void
}
"""


# Windows commits stack pages one by one, in order, so every page of a large array must be touched
# before the array is used.
TOUCH: Final = """\
define internal void @dala.touch(i64 %pages) noinline #0 {
entry:
  br label %look
look:
  %n = phi i64 [ %pages, %entry ], [ %fewer, %page ]
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %page, label %leave
page:
  %p = alloca i8, i64 4096, align 16
  store volatile i8 0, ptr %p
  %fewer = sub i64 %n, 1
  br label %look
leave:
  ret void
}
"""


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
    return (
        f"define void @body(ptr %job, ptr %out, i64 %start, i64 %end) #0 {{\n{text}\n{TILE_BY_TILE}"
    )


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
    function: NativeFunction, statics: dict[str, Static], checked: bool, host: Host, touch_from: int
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
    unit = NativeModule(checked, host)
    if checked:
        unit.functions.append(FAULT)
    entry = [(k[1], 1, k[2]) if isinstance(k, tuple) else k for k in kinds]
    written = write_function(unit, function, entry, filled, entry=True)
    pages = unit.stack // 4096 + 4 if unit.stack >= touch_from else 0
    if pages:
        unit.functions.append(TOUCH)
    if unit.streamed:
        unit.module.intrinsic("x86.sse.sfence", "void")
    shared = params[-2:] == ["start", "end"]
    unit.functions.append(entry_points(unit, written, kinds, shared=shared, pages=pages))
    functions = list(dict.fromkeys(key[0] for key in unit.known))
    text = unit.text(host.attributes)
    plain = [k[:2] if isinstance(k, tuple) else k for k in kinds]
    return EmittedModule(text, params, plain, written.result, unit.names, functions)
