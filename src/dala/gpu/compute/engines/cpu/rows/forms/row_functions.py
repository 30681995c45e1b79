"""The row function of a program, chosen by the form that its analysis found."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dala.gpu.compute.dtypes import ITEMSIZE
from dala.gpu.compute.engines.cpu.llvm.analysis import ProgramAnalysis, analyze_zero
from dala.gpu.compute.engines.cpu.llvm.bytes.zero import UNIFORM_BITS, ZeroVariant
from dala.gpu.compute.engines.cpu.rows.forms.color_matrix import ColorMatrixRow
from dala.gpu.compute.engines.cpu.rows.forms.table import SIZE, table_functions
from dala.gpu.compute.engines.cpu.rows.forms.weighted_sum import WeightedSumRow
from dala.gpu.compute.engines.cpu.rows.machine import Machine
from dala.gpu.compute.engines.cpu.rows.row import RowFunction, RowSpec, RowWithOther
from dala.gpu.compute.engines.cpu.vector.text import Module, body_text, constant

if TYPE_CHECKING:
    from dala.gpu.compute.engines.cpu.llvm.kernel import JobLayout


def row_functions(spec: RowSpec) -> str:
    """Return the row function that a spec describes, and the functions it calls, as LLVM IR."""
    analysis = spec.analysis
    if analysis.table:
        return table_functions(spec)
    if spec.machine.pair_product:
        if analysis.weighted_sum is not None:
            return WeightedSumRow(spec, analysis.weighted_sum).text()
        if analysis.color_matrix is not None:
            return ColorMatrixRow(spec, analysis.color_matrix).text()
    if analysis.zero is not None:
        return _ZeroParamRow(spec, analysis.zero).text()
    return RowFunction(spec).text()


class _ZeroParamRow(RowWithOther):
    """Emits a row function, and the one that it calls where a parameter is 0."""

    def __init__(self, spec: RowSpec, variant: ZeroVariant) -> None:
        zero = replace(spec, name=f"{spec.name}.zero", analysis=analyze_zero(spec.analysis))
        super().__init__(spec, zero)
        self.variant = variant

    def begin(self) -> None:
        """Call the other function, and return, where it computes the same."""
        f, variant = self.f, self.variant
        same = f.let(f"fcmp oeq float {self.params[variant.param]}, {constant(0.0, 'float')}")
        fabs = f.module.intrinsic("fabs.f32", "float", "float")
        for v in variant.guarded:
            size = f.let(f"call float {fabs}(float {self.emitter.operand(v, False)})")
            small = f.let(f"fcmp ole float {size}, {constant(2.0**UNIFORM_BITS, 'float')}")
            same = f.let(f"and i1 {same}, {small}")
        f.branch(same, "zero", "other")
        self.call_other("zero", "other")


def pointwise_body(
    module: Module, analysis: ProgramAnalysis, job: JobLayout, machine: Machine
) -> str:
    """Return ``body(job, out, start, end)`` of a program that reads only the current pixel.

    The image is one row.
    """
    program = analysis.program
    f = body_text(module)
    table = f.alloca(f"[{len(program.args) + 1} x ptr]", "rows", 64)
    for i, arg in enumerate(program.args):
        skip = f.let(f"mul i64 %start, {ITEMSIZE[arg.dtype] * arg.channels}")
        pointer = f.at(f.word(job.first_input + i, "ptr"), skip)
        f.do(f"store ptr {pointer}, ptr {f.at(table, str(i), 'ptr')}")
    if analysis.table:
        entries = f.alloca(f"[{SIZE} x i8]", "entries", 64)
        f.do(f"call void @row.fill(ptr %job, ptr {entries})")
        f.do(f"store ptr {entries}, ptr {f.at(table, '1', 'ptr')}")
    functions = row_functions(
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
