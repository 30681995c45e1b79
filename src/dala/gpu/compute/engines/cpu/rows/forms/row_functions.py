"""Choose the row function of a program by the form that its analysis found."""

from __future__ import annotations

from dala.gpu.compute.engines.cpu.llvm.analysis import analyze_zero
from dala.gpu.compute.engines.cpu.rows.forms.color_matrix import ColorMatrixRow
from dala.gpu.compute.engines.cpu.rows.forms.table import table_functions
from dala.gpu.compute.engines.cpu.rows.forms.weighted_sum import WeightedSumRow
from dala.gpu.compute.engines.cpu.rows.forms.zero_param import ZeroParamRow
from dala.gpu.compute.engines.cpu.rows.row import RowFunction, RowSpec


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
        return ZeroParamRow(spec, analyze_zero(analysis)).text()
    return RowFunction(spec).text()
