"""The row functions of a program that does less where a parameter is 0."""

from __future__ import annotations

from dataclasses import replace

from dala.gpu.compute.engines.cpu.llvm.analysis import ProgramAnalysis
from dala.gpu.compute.engines.cpu.llvm.bytes.zero import UNIFORM_BITS
from dala.gpu.compute.engines.cpu.llvm.text import constant
from dala.gpu.compute.engines.cpu.rows.row import RowFunction, RowSpec, call_row


class ZeroParamRow(RowFunction):
    """Emits a row function, and the one that it calls where a parameter is 0."""

    def __init__(self, spec: RowSpec, zero: ProgramAnalysis) -> None:
        super().__init__(spec)
        self.zero = replace(spec, name=f"{spec.name}.zero", analysis=zero)

    def text(self) -> str:
        """Return both functions."""
        return RowFunction(self.zero).text() + "\n" + super().text()

    def begin(self) -> None:
        """Call the other function, and return, where it computes the same."""
        f, variant = self.f, self.analysis.zero
        assert variant is not None
        same = f.let(f"fcmp oeq float {self.params[variant.param]}, {constant(0.0, 'float')}")
        fabs = f.module.intrinsic("fabs.f32", "float", "float")
        for v in variant.guarded:
            size = f.let(f"call float {fabs}(float {self.emitter.operand(v, False)})")
            small = f.let(f"fcmp ole float {size}, {constant(2.0**UNIFORM_BITS, 'float')}")
            same = f.let(f"and i1 {same}, {small}")
        f.branch(same, "zero", "other")
        f.start("zero")
        call_row(f, self.zero.name)
        f.do("ret void")
        f.start("other")
