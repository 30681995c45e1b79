"""The body of a program that reads only the current pixel: the image is one row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dala.gpu.compute.dtypes import ITEMSIZE
from dala.gpu.compute.engines.cpu.llvm.analysis import ProgramAnalysis
from dala.gpu.compute.engines.cpu.loops.row import RowSpec
from dala.gpu.compute.engines.cpu.machine import Machine
from dala.gpu.compute.engines.cpu.vector.text import Module, body_text

if TYPE_CHECKING:
    from dala.gpu.compute.engines.cpu.llvm.kernel import JobLayout


def pointwise_body(
    module: Module, analysis: ProgramAnalysis, job: JobLayout, machine: Machine
) -> str:
    """Return ``body(job, out, start, end)`` of the program."""
    program = analysis.program
    f = body_text(module)
    table = f.alloca(f"[{len(program.args) + 1} x ptr]", "rows", 64)
    for i, arg in enumerate(program.args):
        skip = f.let(f"mul i64 %start, {ITEMSIZE[arg.dtype] * arg.channels}")
        pointer = f.at(f.word(job.first_input + i, "ptr"), skip)
        f.do(f"store ptr {pointer}, ptr {f.at(table, str(i), 'ptr')}")
    if analysis.form.scratch:
        entries = f.alloca(f"[{analysis.form.scratch} x i8]", "entries", 64)
        f.do(f"call void @row.fill(ptr %job, ptr {entries})")
        f.do(f"store ptr {entries}, ptr {f.at(table, '1', 'ptr')}")
    functions = analysis.form.text(
        RowSpec(
            module, "@row", analysis, machine, lambda dim: job.words["shape", *dim],
            job.first_param, [True] * len(program.args), True,
        )
    )  # fmt: skip
    skip = f.let(f"mul i64 %start, {ITEMSIZE[program.out.dtype] * program.out.channels}")
    out, count = f.at("%out", skip), f.let("sub i64 %end, %start")
    f.do(f"call void @row(ptr %job, ptr {out}, ptr {table}, i64 {count}, i64 0, i64 0)")
    f.do("ret void")
    return functions + "\n" + f.text()
