"""Row functions in fixed point, for weights that are known only at run time.

The weights decide how many fraction bits fit. A row whose weights leave too few is computed by a
second function of the same program, in floats.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from dala.gpu.compute.engines.cpu.llvm.analysis import ProgramAnalysis
from dala.gpu.compute.engines.cpu.llvm.text import constant
from dala.gpu.compute.engines.cpu.rows.row import RowFunction, RowSpec, call_row

LARGEST_INT16: Final = 32767.0
#: The bits of a float's exponent.
_EXPONENT: Final = 0x7F800000


class FixedPointRow(RowFunction):
    """Emits a row function that computes in fixed point, and the one in floats.

    Args:
        spec: The row function.
        analysis: The analysis of the program that computes the weights, instead of the spec's.
    """

    def __init__(self, spec: RowSpec, analysis: ProgramAnalysis) -> None:
        super().__init__(replace(spec, analysis=analysis))
        # Weights that do not fit may be so large that the last bits matter.
        plain = replace(spec.analysis, fused={}, products=frozenset())
        self.floats = replace(spec, name=f"{spec.name}.floats", analysis=plain)

    def text(self) -> str:
        """Return both functions."""
        return RowFunction(self.floats).text() + "\n" + super().text()

    def use_floats_unless(self, fits: str) -> None:
        """Call the function in floats, and return, unless an i1 is true."""
        f = self.f
        f.branch(fits, "fixed", "floats")
        f.start("floats")
        call_row(f, self.floats.name)
        f.do("ret void")
        f.start("fixed")

    def scale(self, room: str, most: float) -> tuple[str, str]:
        """Return the largest power of two that exceeds neither bound, and its bits as i32."""
        f = self.f
        much = f.let(f"fcmp ogt float {room}, {float_constant(most)}")
        room = f.let(f"select i1 {much}, float {float_constant(most)}, float {room}")
        bits = f.let(f"and i32 {f.let(f'bitcast float {room} to i32')}, {_EXPONENT}")
        return f.let(f"bitcast i32 {bits} to float"), bits

    def absolute(self, number: str) -> str:
        """Return the magnitude of a float."""
        return self._call("fabs.f32", number)

    def rounded(self, number: str, kind: str) -> str:
        """Round a float to an int."""
        return self.f.let(f"fptosi float {self._call('roundeven.f32', number)} to {kind}")

    def _call(self, name: str, number: str) -> str:
        full = self.f.module.intrinsic(name, "float", "float")
        return self.f.let(f"call float {full}(float {number})")


def float_constant(value: float) -> str:
    """Return an f32 constant as LLVM writes it."""
    return constant(value, "float")
