"""The contract of bytes: programs that store bytes, rewritten once for all engines."""

from __future__ import annotations

from dala.gpu.compute.lang.exact.luma import with_integer_luma
from dala.gpu.compute.lang.exact.steps import in_steps
from dala.gpu.compute.lang.exact.sums import in_integers
from dala.gpu.compute.lang.ir import Program


def exact(program: Program) -> Program:
    """Return the program that all engines run; the same one unless it stores bytes."""
    return in_steps(with_integer_luma(in_integers(program))) if program.exact else program
