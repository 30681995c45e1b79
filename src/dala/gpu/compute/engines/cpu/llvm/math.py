"""Math functions in LLVM IR: those of ``elementary``, and exp of vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from dala.gpu.compute.engines.cpu.vector.numbers import Num
from dala.gpu.compute.engines.cpu.vector.text import FunctionText, Module
from dala.gpu.compute.engines.cpu.vector.types import BY_NAME, F32, F64, Operand, Type
from dala.gpu.compute.engines.cpu.vector.writer import ValueWriter
from dala.gpu.compute.engines.elementary.single import SINGLE, polynomial

# exp of a vector of f32, in f32 throughout ------------------------------------------------------
# Computing in f64 takes twice the vectors: too slow for filters that call exp for each neighbor.
# Errors stay below four units in the last place, and below 2^-126 where the result is subnormal.
# Programs of bytes have it written out (``lang/exact/exponential.py``).
#: Adding 1.5 * 2^23 rounds to a whole number and leaves it in the low bits.
_MAGIC32: Final = 12582912.0
#: log(2) in two parts, the first short enough that its multiples are exact.
_LN2_32: Final = (0.693359375, -2.1219444005469058e-4)
#: Where the power of two is 0, and where it is infinite.
_EXP32_RANGE: Final = (-87.8, 88.8)
# e^r on [0, log(2)]: 2^-23.5, and 1 at 0
_EXP32: Final = (
    1.0, 1.0000059645030004, 0.49987075962384125,
    0.16755531012901148, 0.03906182497601506, 0.011669927611565907,
)  # fmt: skip


def vector_exp(module: Module, lanes: int) -> str:
    """Return the name of the function for ``exp`` of a vector of f32, emitting it on first use."""
    name = f"@exp.v{lanes}f32"
    if name not in module.helpers:
        module.helpers[name] = _function(module, name, F32.wide(lanes), 1, _exp32)
    return name


def _exp32(x: Num) -> Num:
    x = x.within(*_EXP32_RANGE)
    # The whole part is rounded down, so that the largest power of two is still finite.
    shifted = x.multiply_add(1.0 / math.log(2.0), -0.5) + _MAGIC32
    count = shifted - _MAGIC32
    rest = count.multiply_add(-_LN2_32[0], x)
    rest = count.multiply_add(-_LN2_32[1], rest)
    # The shift drops the upper bits of the magic number. A product, not a sum of exponents: NaN
    # stays NaN.
    return polynomial(rest, _EXP32) * ((shifted.bits() << 23) + 0x3F800000).bits()


FUNCTIONS: Final = frozenset(SINGLE)


def math_function(
    module: Module, op: str, ir_type: str, *, fused: bool = True, lanes: int = 1
) -> str:
    """Return the name of the function for an operation, emitting it on first use.

    Without fused products it computes what the reference engine does, at every level. Vectors are
    computed as their numbers are.
    """
    kind = BY_NAME[ir_type].wide(lanes)
    name = f"@{op}.{kind.suffix}" + ("" if fused else ".plain")
    if name in module.helpers:
        return name

    def write(*args: Num) -> Any:
        if ir_type == "f32":
            return SINGLE[op](*(a.to(F64) for a in args)).to(F32)
        from dala.gpu.compute.engines.elementary.double import DOUBLE  # rarely needed

        return DOUBLE[op](*args)

    arity = 2 if op in ("atan2", "pow") else 1
    module.helpers[name] = _function(module, name, kind, arity, write, fused)
    return name


def _function(
    module: Module, name: str, t: Type, arity: int, write: Callable[..., Num], fused: bool = True
) -> str:
    """Return the text of a function of ``arity`` numbers of a type."""
    heads = ", ".join(f"{t.llvm} %x{i}" for i in range(arity))
    f = FunctionText(
        module, f"define internal {t.llvm} {name}({heads}) alwaysinline nounwind memory(none)"
    )
    f.fused = fused
    w = ValueWriter(f)
    result = write(*(Num(w, Operand(t, f"%x{i}")) for i in range(arity)))
    f.do(f"ret {t.llvm} {result.value.name}")
    return f.text()
