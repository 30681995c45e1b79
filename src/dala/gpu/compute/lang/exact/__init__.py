"""The contract of bytes: programs that store bytes, rewritten once for all engines."""

from __future__ import annotations

from dala.gpu.compute.lang.exact.exponential import with_exponentials
from dala.gpu.compute.lang.exact.limits import with_limits, without_idle_limits
from dala.gpu.compute.lang.exact.luma import with_integer_luma
from dala.gpu.compute.lang.exact.products import with_exact_products
from dala.gpu.compute.lang.exact.steps import in_steps
from dala.gpu.compute.lang.exact.sums import in_integers
from dala.gpu.compute.lang.ir import Program


def exact(program: Program) -> Program:
    """Return the program that all engines run; the same one unless it stores bytes."""
    if not program.exact:
        return program
    made = with_limits(in_steps(with_integer_luma(in_integers(program))))
    return with_exact_products(without_idle_limits(with_exponentials(made)))
