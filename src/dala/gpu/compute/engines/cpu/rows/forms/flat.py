"""Programs that read each pixel by itself: the picture is one long row."""

from __future__ import annotations

from dala.gpu.compute.dtypes import ITEMSIZE
from dala.gpu.compute.engines.cpu.llvm.facts import Facts
from dala.gpu.compute.engines.cpu.llvm.text import Function, Module
from dala.gpu.compute.engines.cpu.rows.emit import Machine, Words
from dala.gpu.compute.engines.cpu.rows.forms.choose import row_functions
from dala.gpu.compute.engines.cpu.rows.forms.table import SIZE


def flat_body(
    module: Module, facts: Facts, words: Words, first_input: int, machine: Machine
) -> str:
    """``body(job, out, start, end)`` of such a program."""
    program = facts.program
    f = Function(module, "define void @body(ptr %job, ptr %out, i64 %start, i64 %end) noinline #0")
    table = f.alloca(f"[{len(program.args) + 1} x ptr]", "rows", 64)
    for i, arg in enumerate(program.args):
        pointer = f.let(f"getelementptr i64, ptr %job, i64 {first_input + i}")
        pointer = f.let(f"load ptr, ptr {pointer}")
        skip = f.let(f"mul i64 %start, {ITEMSIZE[arg.dtype] * arg.channels}")
        pointer = f.let(f"getelementptr i8, ptr {pointer}, i64 {skip}")
        place = f.let(f"getelementptr ptr, ptr {table}, i64 {i}")
        f.do(f"store ptr {pointer}, ptr {place}")
    if facts.table:
        entries = f.alloca(f"[{SIZE} x i8]", "entries", 64)
        f.do(f"call void @row.fill(ptr %job, ptr {entries})")
        place = f.let(f"getelementptr ptr, ptr {table}, i64 1")
        f.do(f"store ptr {entries}, ptr {place}")
    tight = [True] * len(program.args)
    functions = row_functions(module, "@row", facts, words, machine, tight, True)
    skip = f.let(f"mul i64 %start, {ITEMSIZE[program.out.dtype] * program.out.channels}")
    out = f.let(f"getelementptr i8, ptr %out, i64 {skip}")
    count = f.let("sub i64 %end, %start")
    f.do(f"call void @row(ptr %job, ptr {out}, ptr {table}, i64 {count}, i64 0, i64 0)")
    f.do("ret void")
    return functions + "\n" + f.text()
