"""Pointwise programs, which read each argument only at the current pixel: the image is one row."""

from __future__ import annotations

from dala.gpu.compute.dtypes import ITEMSIZE
from dala.gpu.compute.engines.cpu.llvm.analysis import ProgramAnalysis
from dala.gpu.compute.engines.cpu.llvm.text import FunctionText, Module
from dala.gpu.compute.engines.cpu.rows.forms.row_functions import row_functions
from dala.gpu.compute.engines.cpu.rows.forms.table import SIZE
from dala.gpu.compute.engines.cpu.rows.machine import Machine
from dala.gpu.compute.engines.cpu.rows.row import RowSpec, RowWords


def pointwise_body(
    module: Module, analysis: ProgramAnalysis, words: RowWords, first_input: int, machine: Machine
) -> str:
    """Return ``body(job, out, start, end)`` of a pointwise program, as LLVM IR."""
    program = analysis.program
    head = "define void @body(ptr %job, ptr %out, i64 %start, i64 %end) noinline #0"
    f = FunctionText(module, head)
    table = f.alloca(f"[{len(program.args) + 1} x ptr]", "rows", 64)
    for i, arg in enumerate(program.args):
        skip = f.let(f"mul i64 %start, {ITEMSIZE[arg.dtype] * arg.channels}")
        pointer = f.at(f.word(first_input + i, "ptr"), skip)
        f.do(f"store ptr {pointer}, ptr {f.at(table, str(i), 'ptr')}")
    if analysis.table:
        entries = f.alloca(f"[{SIZE} x i8]", "entries", 64)
        f.do(f"call void @row.fill(ptr %job, ptr {entries})")
        f.do(f"store ptr {entries}, ptr {f.at(table, '1', 'ptr')}")
    exact = [True] * len(program.args)
    functions = row_functions(RowSpec(module, "@row", analysis, words, machine, exact, True))
    skip = f.let(f"mul i64 %start, {ITEMSIZE[program.out.dtype] * program.out.channels}")
    out, count = f.at("%out", skip), f.let("sub i64 %end, %start")
    f.do(f"call void @row(ptr %job, ptr {out}, ptr {table}, i64 {count}, i64 0, i64 0)")
    f.do("ret void")
    return functions + "\n" + f.text()
