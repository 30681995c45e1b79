"""The exponential of a vector of f32, in f32 throughout.

The maths library (``math``) computes f32 functions in f64, which
costs twice the vectors and more; for a function that filters call once a neighbour that is too
much. Errors stay below four ulps, and below 2^-126 where the result is no normal number. The quick
form, for programs that store bytes, has a relative error of 2^-17 and ends at the smallest and the
largest powers of two.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from dala.gpu.compute.engines.cpu.llvm.text import Function, Module, constant

#: Adding 1.5 * 2^23 rounds to a whole number and leaves it in the low bits.
_MAGIC: Final = 12582912.0
_ONE_BITS: Final = 0x3F800000
#: log(2) in two parts, the first short enough that its multiples are exact.
_LOG2: Final = (0.693359375, -2.1219444005469058e-4)
#: Where the power of two is 0, and where it is infinite.
_ENDS: Final = (-87.8, 88.8)
# e^r on [0, log(2)]: 2^-23.5, and 1 at 0
_TERMS: Final = (
    1.0, 1.0000059645030004, 0.49987075962384125,
    0.16755531012901148, 0.03906182497601506, 0.011669927611565907,
)  # fmt: skip
#: The ends of the quick form.
_QUICK_ENDS: Final = (-87.0, 88.0)
# 2^r on [-1/2, 1/2]: 2^-18.4, and 1 at 0
_QUICK: Final = (
    1.0, 0.6931241933554522, 0.2402409861165368,
    0.05590642514458512, 0.009582853183706542,
)  # fmt: skip


def exp_function(module: Module, lanes: int, quick: bool) -> str:
    """The name of the function, writing it on first use."""
    name = f"@exp.v{lanes}f32{'.quick' if quick else ''}"
    if name not in module.helpers:
        kind = f"<{lanes} x float>"
        head = f"define internal {kind} {name}({kind} %x) alwaysinline nounwind memory(none)"
        f = Function(module, head)
        f.do(f"ret {kind} {(_quick if quick else _full)(f, lanes)}")
        module.helpers[name] = f.text()
    return name


def _full(f: Function, lanes: int) -> str:
    kind, times_plus = f"<{lanes} x float>", _writer(f, lanes)
    x = _clamped(f, lanes, _ENDS)
    # The whole part rounded down, so that the largest power of two is still a number.
    below = times_plus(x, _float(1.0 / math.log(2.0)), _float(-0.5))
    shifted = f.let(f"fadd {kind} {below}, {_float(_MAGIC)}")
    count = f.let(f"fsub {kind} {shifted}, {_float(_MAGIC)}")
    rest = times_plus(count, _float(-_LOG2[0]), x)
    rest = times_plus(count, _float(-_LOG2[1]), rest)
    return _raised(f, lanes, _polynomial(times_plus, rest, _TERMS), shifted)


def _quick(f: Function, lanes: int) -> str:
    kind, times_plus = f"<{lanes} x float>", _writer(f, lanes)
    x, scale = _clamped(f, lanes, _QUICK_ENDS), _float(1.0 / math.log(2.0))
    shifted = times_plus(x, scale, _float(_MAGIC))
    less = f.let(f"fsub {kind} {_float(_MAGIC)}, {shifted}")
    rest = times_plus(x, scale, less)
    return _raised(f, lanes, _polynomial(times_plus, rest, _QUICK), shifted)


def _polynomial(
    times_plus: Callable[[str, str, str], str], rest: str, terms: tuple[float, ...]
) -> str:
    value = times_plus(rest, _float(terms[-1]), _float(terms[-2]))
    for term in reversed(terms[:-2]):
        value = times_plus(value, rest, _float(term))
    return value


def _raised(f: Function, lanes: int, value: str, shifted: str) -> str:
    """A value times the power of two in the low bits of a shifted number.

    The upper bits of the magic number leave in the shift. A product rather than a sum of exponents,
    so that NaN stays NaN.
    """
    kind, whole = f"<{lanes} x float>", f"<{lanes} x i32>"
    bits = f.let(f"bitcast {kind} {shifted} to {whole}")
    power = f.let(f"shl {whole} {bits}, splat (i32 23)")
    power = f.let(f"add {whole} {power}, splat (i32 {_ONE_BITS})")
    return f.let(f"fmul {kind} {value}, {f.let(f'bitcast {whole} {power} to {kind}')}")


def _float(value: float) -> str:
    return f"splat (float {constant(value, 'float')})"


def _clamped(f: Function, lanes: int, ends: tuple[float, float]) -> str:
    """x within the range of results; NaN stays."""
    kind, flags = f"<{lanes} x float>", f"<{lanes} x i1>"
    low, high = _float(ends[0]), _float(ends[1])
    below = f.let(f"fcmp ogt {kind} {low}, %x")
    x = f.let(f"select {flags} {below}, {kind} {low}, {kind} %x")
    above = f.let(f"fcmp olt {kind} {high}, {x}")
    return f.let(f"select {flags} {above}, {kind} {high}, {kind} {x}")


def _writer(f: Function, lanes: int) -> Callable[[str, str, str], str]:
    kind = f"<{lanes} x float>"
    name = f.module.intrinsic(f"fmuladd.v{lanes}f32", kind, kind, kind, kind)

    def times_plus(a: str, b: str, c: str) -> str:
        return f.let(f"call {kind} {name}({kind} {a}, {kind} {b}, {kind} {c})")

    return times_plus
