"""exp, log, sin, cos, tan, atan, atan2 and pow as straight-line LLVM IR, so that loops vectorize.

They contain no branches, tables or calls. The f32 functions compute in f64 and round once at the
end, which makes them correct to about half a unit in the last place, including subnormal numbers.
The f64 functions (``math64``) use a second word where precision needs it.

sin, cos and tan are accurate for arguments up to 1.6e9. Beyond that they stay within their range
but are not meaningful. Polynomials are minimax fits (Remez); their relative error is stated beside
them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from dala.gpu.compute.engines.cpu.llvm.text import FunctionText, Module, Num, polynomial
from dala.gpu.compute.lang.exact import exponential

ONE_BITS: Final = 0x3FF0000000000000
SQRT_HALF_BITS: Final = 0x3FE6A09E667F3BCD
#: Adding 1.5 * 2^52 rounds to a whole number and leaves it in the low bits.
MAGIC: Final = 6755399441055744.0

# 2^r on [-1/2, 1/2]: 2^-34.5
EXP2: Final = (
    0.9999999999616214, 0.6931471807287087, 0.24022651198752468, 0.055504103528701415,
    0.00961802717306244, 0.001333392282088976, 0.00015469317233742872, 1.5201909456020445e-05,
)  # fmt: skip
# log(1 + f) / f on [sqrt(1/2) - 1, sqrt(2) - 1]: 2^-35.8
LOG: Final = (
    0.9999999999859609, -0.5000000002940763, 0.3333333433353973, -0.24999994080700225,
    0.1999988116147802, -0.16666943414168986, 0.14290986431595512, -0.1249748389705239,
    0.11005089375748714, -0.09922871646711405, 0.10033188208546927, -0.09900756911631359,
    0.05362797198732117,
)  # fmt: skip
# log2(1 + f) / f on the same range: 2^-43.8
LOG2: Final = (
    1.4426950408890469, -0.721347520446801, 0.48089834687660465, -0.3606737593353256,
    0.2885390223212312, -0.2404492771583746, 0.20609845913325472, -0.18033135411364,
    0.16032086817985117, -0.144422516627164, 0.13093563273873718, -0.11798139761304226,
    0.11069888392865344, -0.1188725418261059, 0.11559796368279589, -0.057490014426064724,
)  # fmt: skip
# sin(r) / r and cos(r) in r^2, |r| <= pi/4: 2^-37.7 and 2^-34.3
SIN: Final = (
    0.9999999999954386, -0.16666666630371862, 0.008333328683023404, -0.00019839176220273817,
    2.7171331773520283e-06,
)  # fmt: skip
COS: Final = (
    0.9999999999524808, -0.4999999961465372, 0.04166661666334081, -0.001388661691418486,
    2.437971665416957e-05,
)  # fmt: skip
# atan(t) / t in t^2, |t| <= 1: 2^-36.6
ATAN: Final = (
    0.9999999999906546, -0.3333333300529269, 0.19999980835977066, -0.1428527140749315,
    0.1110574144898946, -0.09051618850212532, 0.07503957327521193, -0.06042622980777699,
    0.04396707097995775, -0.026338424788682795, 0.011646483689882255, -0.0032782500377426197,
    0.0004329498836024581,
)  # fmt: skip
# pi/2 in parts of 23, 23 and 53 bits: whole multiples below 2^30 are exact.
HALF_PI: Final = tuple(
    float.fromhex(h) for h in ("0x1.921fb4p+0", "0x1.4442dp-24", "0x1.8469898cc5170p-48")
)
#: pi - math.pi.
PI_REST: Final = 1.2246467991473532e-16


def power_of_two(shifted: Num) -> Num:
    """Return 2^k, from k + MAGIC; k must be a normal exponent."""
    return ((shifted.bits() << 52) + ONE_BITS).bits()


def exp2_core(t: Num) -> Num:
    """Return 2^t; overflow and underflow are left to the rounding to f32."""
    t = t.within(-300.0, 300.0)
    shifted = t + MAGIC
    return polynomial(t - (shifted - MAGIC), EXP2) * power_of_two(shifted)


def split_exponent(x: Num) -> tuple[Num, Num]:
    """Return (e, f) with x = 2^e (1 + f), 1 + f in [sqrt(1/2), sqrt(2)); x positive and normal."""
    offset = x.bits() - SQRT_HALF_BITS
    # Through i32: most CPUs convert no other int to f64 in vectors.
    high = (offset >> 32).to("trunc", "i32")
    exponent = Num(x.f, "i32", x.f.let(f"ashr i32 {high.name}, 20")).to("sitofp", "double")
    mantissa = ((offset & 0x000FFFFFFFFFFFFF) + SQRT_HALF_BITS).bits()
    return exponent, mantissa - 1.0


def quarter_turns(x: Num) -> tuple[Num, Num]:
    """Return (r, n) with x = n pi/2 + r, |r| <= pi/4; n is in the low bits of an i64."""
    shifted = x.multiply_add(2.0 / math.pi, MAGIC)
    count = shifted - MAGIC
    rest = x
    for part in HALF_PI:
        rest = count.multiply_add(-part, rest)
    return rest.within(-0.7857, 0.7857), shifted.bits()


def sin_cos(x: Num) -> tuple[Num, Num, Num]:
    """Return sin and cos of the remainder, and the number of quarter turns."""
    rest, turns = quarter_turns(x)
    square = rest * rest
    return rest * polynomial(square, SIN), polynomial(square, COS), turns


def turned(sine: Num, cosine: Num, turns: Num) -> Num:
    """Return the sine after a number of quarter turns."""
    value = (turns & 1).equals(0).choose(sine, cosine)
    return (value.bits() ^ ((turns & 2) << 62)).bits()


def tangent(sine: Num, cosine: Num, turns: Num) -> Num:
    """Return the tangent after a number of quarter turns."""
    odd = (turns & 1).equals(1)
    return odd.choose(-cosine, sine) / odd.choose(sine, cosine)


def atan_ratio(low: Num, high: Num, swapped: Num) -> Num:
    """Return atan(low / high), or its complement to pi/2 if ``swapped``; 0 <= low <= high."""
    t = low / high
    angle = t * polynomial(t * t, ATAN)
    return swapped.choose(math.pi / 2 - angle, angle)


def log_specials(x: Num, value: Num) -> Num:
    """Return ``value`` with -inf at zero, NaN below it, and infinity and NaN unchanged."""
    value = (x < math.inf).choose(value, x)
    value = x.equals(0.0).choose(x.of(-math.inf), value)
    return (x < 0.0).choose(x.of(math.nan), value)


def atan2_with(ratio: Callable[[Num, Num, Num], Num], y: Num, x: Num) -> Num:
    """Return atan2 with all its special cases, given a function for atan(low / high)."""
    height, width = y.call("fabs"), x.call("fabs")
    steep = height > width
    low, high = steep.choose(width, height), steep.choose(height, width)
    diagonal = low.equals(math.inf)
    low, high = diagonal.choose(x.of(1.0), low), diagonal.choose(x.of(1.0), high)
    angle = ratio(low, high.equals(0.0).choose(x.of(1.0), high), steep)
    # A comparison does not distinguish -0.0 from 0.0; the bits do.
    angle = (x.bits() < 0).choose(math.pi - (angle - PI_REST), angle)
    angle = y.compare("uno", x).choose(y + x, angle)
    return angle.call("copysign", y)


def pow_specials(x: Num, y: Num, value: Num) -> Num:
    """Return ``value``, which is |x|^y, corrected for zeros, infinities, negative bases and NaN."""
    zero, infinite = x.equals(0.0), x.call("fabs").equals(math.inf)
    edge = (infinite ^ (y < 0.0)).choose(x.of(math.inf), 0.0)
    value = (zero | infinite).choose(edge, value)
    half = y * 0.5
    whole, even = y.call("floor").equals(y), half.call("floor").equals(half)
    signed = even.choose(value, (whole & (x.bits() < 0)).choose(-value, value))
    value = ((x < 0.0) & (whole ^ 1) & (infinite ^ 1)).choose(x.of(math.nan), signed)
    value = x.compare("uno", y).choose(x + y, value)
    return (y.equals(0.0) | x.equals(1.0)).choose(x.of(1.0), value)


def _exp(x: Num) -> Num:
    return exp2_core(x * (1.0 / math.log(2.0)))


def _log(x: Num) -> Num:
    exponent, f = split_exponent(x)
    return log_specials(x, exponent.multiply_add(math.log(2.0), f * polynomial(f, LOG)))


def _sin(x: Num) -> Num:
    return turned(*sin_cos(x))


def _cos(x: Num) -> Num:
    sine, cosine, turns = sin_cos(x)
    return turned(sine, cosine, turns + 1)


def _tan(x: Num) -> Num:
    return tangent(*sin_cos(x))


def _atan(x: Num) -> Num:
    size = x.call("fabs")
    steep = size > 1.0
    angle = atan_ratio(steep.choose(x.of(1.0), size), steep.choose(size, 1.0), steep)
    return angle.call("copysign", x)


def _atan2(y: Num, x: Num) -> Num:
    return atan2_with(atan_ratio, y, x)


def _pow(x: Num, y: Num) -> Num:
    exponent, f = split_exponent(x.call("fabs"))
    # Any larger power of anything but 1 overflows already. The limit also avoids inf * 0.
    t = (exponent + f * polynomial(f, LOG2)) * y.within(-1e12, 1e12)
    return pow_specials(x, y, exp2_core(t))


# exp of a vector of f32, in f32 throughout ------------------------------------------------------
# Computing in f64 takes twice the vectors: too slow for filters that call exp for each neighbor.
# Errors stay below four units in the last place, and below 2^-126 where the result is subnormal.
# Programs of bytes have their own (``lang/exact/exponential.py``).
#: log(2) in two parts, the first short enough that its multiples are exact.
_LN2_32: Final = (0.693359375, -2.1219444005469058e-4)
#: Where the power of two is 0, and where it is infinite.
_EXP32_RANGE: Final = (-87.8, 88.8)
# e^r on [0, log(2)]: 2^-23.5, and 1 at 0
_EXP32: Final = (
    1.0, 1.0000059645030004, 0.49987075962384125,
    0.16755531012901148, 0.03906182497601506, 0.011669927611565907,
)  # fmt: skip


def vector_exp(module: Module, lanes: int, quick: bool) -> str:
    """Return the name of the function for ``exp`` of a vector of f32, emitting it on first use."""
    name = f"@exp.v{lanes}f32{'.quick' if quick else ''}"
    if name not in module.helpers:
        kind = f"<{lanes} x float>" if lanes > 1 else "float"
        head = f"define internal {kind} {name}({kind} %x) alwaysinline nounwind memory(none)"
        f = FunctionText(module, head)
        x = Num(f, kind, "%x")
        f.do(f"ret {kind} {(_quick_exp32(x) if quick else _exp32(x)).name}")
        module.helpers[name] = f.text()
    return name


def _exp32(x: Num) -> Num:
    x = x.within(*_EXP32_RANGE)
    # The whole part is rounded down, so that the largest power of two is still finite.
    shifted = x.multiply_add(1.0 / math.log(2.0), -0.5) + exponential.MAGIC
    count = shifted - exponential.MAGIC
    rest = count.multiply_add(-_LN2_32[0], x)
    rest = count.multiply_add(-_LN2_32[1], rest)
    return polynomial(rest, _EXP32) * _power_of_two32(shifted)


def _quick_exp32(x: Num) -> Num:
    t = x.within(*exponential.RANGE) * exponential.SCALE
    shifted = t + exponential.MAGIC
    rest = t - (shifted - exponential.MAGIC)
    total: Num = rest * exponential.POLYNOMIAL[-1] + exponential.POLYNOMIAL[-2]
    for c in reversed(exponential.POLYNOMIAL[:-2]):
        total = total * rest + c
    return total * _power_of_two32(shifted)


def _power_of_two32(shifted: Num) -> Num:
    # The shift drops the upper bits of the magic number. Callers multiply by the result rather than
    # add exponents, so that NaN stays NaN.
    return ((shifted.bits() << 23) + exponential.ONE_BITS).bits()


_F32: Final[dict[str, Callable[..., Num]]] = {
    "exp": _exp, "log": _log, "sin": _sin, "cos": _cos, "tan": _tan,
    "atan": _atan, "atan2": _atan2, "pow": _pow,
}  # fmt: skip

FUNCTIONS: Final = frozenset(_F32)


def math_function(module: Module, op: str, ir_type: str) -> str:
    """Return the name of the function for an operation, emitting it on first use."""
    name = f"@{op}.{ir_type}"
    if name in module.helpers:
        return name
    arity = 2 if op in ("atan2", "pow") else 1
    llvm_type = "float" if ir_type == "f32" else "double"
    heads = ", ".join(f"{llvm_type} %x{i}" for i in range(arity))
    f = FunctionText(
        module, f"define internal {llvm_type} {name}({heads}) alwaysinline nounwind memory(none)"
    )
    args = [Num(f, llvm_type, f"%x{i}") for i in range(arity)]
    if ir_type == "f32":
        result = _F32[op](*(a.to("fpext", "double") for a in args)).to("fptrunc", "float")
    else:
        from dala.gpu.compute.engines.cpu.llvm.math64 import F64  # imported on use: rarely needed

        result = F64[op](*args)
    f.do(f"ret {llvm_type} {result.name}")
    module.helpers[name] = f.text()
    return name
