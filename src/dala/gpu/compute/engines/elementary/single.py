"""exp, log, sin, cos, tan, atan, atan2 and pow of f32 as one sequence of operations.

They contain no branches, tables or calls, so that loops vectorize. They are written with the
operators of :class:`~dala.gpu.compute.engines.cpu.vector.numbers.Num`. The reference engine runs
them on arrays (``reference/functions.py``), so that both give the same bits in programs of bytes.

They compute in f64 and round once at the end, which makes them correct to about half a unit in the
last place, including subnormal numbers. Those of f64 (``double``) use a second word where precision
needs it.

sin, cos and tan are accurate for arguments up to 1.6e9. Beyond that they stay within their range
but are not meaningful. Polynomials are minimax fits (Remez); their relative error is stated beside
them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from dala.gpu.compute.engines.cpu.vector.numbers import Num

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


def polynomial(x: Num, coefficients: Sequence[float]) -> Num:
    """Evaluate ``c[0] + c[1] x + c[2] x^2 + ...`` by Horner's rule."""
    total: Num = x.multiply_add(coefficients[-1], coefficients[-2])
    for c in reversed(coefficients[:-2]):
        total = total.multiply_add(x, c)
    return total


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
    high = (offset >> 32).to("i32")
    exponent = (high >> 20).to("f64")
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


def trigonometric(
    sin_cos: Callable[[Num], tuple[Num, Num, Num]],
) -> dict[str, Callable[[Num], Num]]:
    """Return sin, cos and tan, given sin and cos of the remainder and the quarter turns."""

    def cos(x: Num) -> Num:
        sine, cosine, turns = sin_cos(x)
        return turned(sine, cosine, turns + 1)

    def tan(x: Num) -> Num:
        sine, cosine, turns = sin_cos(x)
        odd = (turns & 1).equals(1)
        return odd.choose(-cosine, sine) / odd.choose(sine, cosine)

    return {"sin": lambda x: turned(*sin_cos(x)), "cos": cos, "tan": tan}


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


SINGLE: Final[dict[str, Callable[..., Any]]] = {
    "exp": _exp, "log": _log, **trigonometric(sin_cos),
    "atan": _atan, "atan2": _atan2, "pow": _pow,
}  # fmt: skip
