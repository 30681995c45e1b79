"""Row functions that multiply 16-bit weights, added in pairs.

Sums of bytes have integer weights (``lang/exact/fixed_point.py``). Where these fit 16 bits, which
the number of fraction bits tells, processors multiply and add pairs in one instruction. A row with
wider weights is computed by the plain row function of the same program. Both are exact.
"""

from __future__ import annotations

from dataclasses import replace

from dala.gpu.compute.engines.cpu.llvm.analysis import ProgramAnalysis
from dala.gpu.compute.engines.cpu.loops.row import RowSpec, RowWithOther
from dala.gpu.compute.lang.exact.fixed_point import NARROW_BITS
from dala.gpu.compute.lang.ir import Value


class NarrowRow(RowWithOther):
    """Emits a row function for 16-bit weights, and the plain one.

    Args:
        spec: The row function.
        analysis: The analysis of the program that loads the weights, instead of the spec's.
        bits: The fraction bits of the weights.
    """

    def __init__(self, spec: RowSpec, analysis: ProgramAnalysis, bits: Value) -> None:
        super().__init__(replace(spec, analysis=analysis), replace(spec, name=f"{spec.name}.wide"))
        self.wanted_bits = bits
        #: The fraction bits in every lane of a vector of i32.
        self.bits = ""

    def begin(self) -> None:
        """Call the plain function, and return, unless weights fit 16 bits."""
        f = self.f
        bits = self.scalar(self.wanted_bits)
        fits = f.let(f"icmp sle i32 {bits}, {NARROW_BITS}")
        f.branch(fits, "narrow", "wide")
        self.call_other("wide", "narrow")
        self.bits = self.splat(bits)

    def scalar(self, v: Value) -> str:
        """Return a weight, a bias or the fraction bits."""
        return str(v.attr) if v.op == "const" else self.emitter.operand(v, False)

    def splat(self, number: str) -> str:
        """Broadcast an i32."""
        return self.f.splat("i32", number, self.vector // 4)

    def pair(self, low: str, high: str) -> str:
        """Broadcast two 16-bit weights."""
        f = self.f
        lower = f.let(f"and i32 {low}, 65535")
        both = self.splat(f.let(f"or i32 {lower}, {f.let(f'shl i32 {high}, 16')}"))
        return f.let(f"bitcast {self.words32} {both} to {self.words16}")

    def shifted(self, total: str) -> str:
        """Drop the fraction bits."""
        return self.f.let(f"ashr {self.words32} {total}, {self.bits}")
