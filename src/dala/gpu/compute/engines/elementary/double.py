"""Functions of f64, as in ``single``, correct to one or two units in the last place.

Products that must be exact are computed by clearing the low half of a factor instead of with fused
instructions, so that every CPU computes the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from dala.gpu.compute.engines.elementary.single import (
    MAGIC,
    atan2_with,
    log_specials,
    polynomial,
    pow_specials,
    power_of_two,
    split_exponent,
    trigonometric,
)

if TYPE_CHECKING:
    from dala.gpu.compute.engines.cpu.vector.numbers import Num

# (exp(r) - 1 - r) / r^2, |r| <= log(2)/2: 2^-63.8 of exp(r)
EXP: Final = (
    0.5, 0.16666666666666682, 0.04166666666666611, 0.008333333333317237, 0.0013888888889112883,
    0.0001984126989611702, 2.4801586928196645e-05, 2.7557234957363955e-06, 2.7557581751216213e-07,
    2.511204967809403e-08, 2.0826567120031576e-09,
)  # fmt: skip
# (2^r - 1) / r, |r| <= 1/2: 2^-64.3 of 2^r
EXP2: Final = (
    0.6931471805599453, 0.24022650695910072, 0.05550410866482169, 0.00961812910762833,
    0.001333355814639301, 0.00015403530393642346, 1.525273385417578e-05, 1.3215486593224512e-06,
    1.0178051949571747e-07, 7.054975091396402e-09, 4.456575780347644e-10, 2.5624708952148166e-11,
)  # fmt: skip
# 2 (atanh(s)/s - 1) / s^2 in s^2, |s| <= 0.1716: 2^-58.5 of atanh
LOG: Final = (
    0.6666666666666731, 0.39999999999436864, 0.2857142873817265, 0.22222198956720546,
    0.18183546228046005, 0.15314477843319785, 0.14791957641233938,
)  # fmt: skip
# (3 atanh(s)/s - 3 - s^2) / s^4 in s^2, same range: 2^-71.5 of atanh
LOG_TAIL: Final = (
    0.5999999999999998, 0.42857142857160235, 0.33333333327875486, 0.2727272813483295,
    0.2307684575951288, 0.20004110973639155, 0.17519019521655738, 0.17931300717871348,
)  # fmt: skip
# (sin(r)/r - 1) / r^2 and (cos(r) - 1 + r^2/2) / r^4 in r^2, |r| <= pi/4: 2^-58 and 2^-64
SIN: Final = (
    -0.16666666666666632, 0.008333333333322536, -0.0001984126982988495, 2.755731371378719e-06,
    -2.50507609926757e-08, 1.5896938458481372e-10,
)  # fmt: skip
COS: Final = (
    0.04166666666666661, -0.0013888888888875298, 2.48015872901333e-05, -2.755731452244956e-07,
    2.087574446506366e-09, -1.136066355587852e-11,
)  # fmt: skip
# (atan(t)/t - 1) / t^2 in t^2, |t| <= tan(pi/8): 2^-59.4
ATAN: Final = (
    -0.3333333333333323, 0.1999999999996166, -0.14285714280881634, 0.11111110813434968,
    -0.09090898530705517, 0.07692072756231606, -0.06663235701798553, 0.058487823731325904,
    -0.05043084395047021, 0.03815531074005149, -0.018001600454471786,
)  # fmt: skip
# pi/2 in three parts of 23 bits and the rest; log(2) in 32 bits and the rest.
HALF_PI: Final = tuple(
    float.fromhex(h)
    for h in ("0x1.921fb4p+0", "0x1.4442dp-24", "0x1.846988p-48", "0x1.8cc51701b839ap-72")
)
LN2: Final = (float.fromhex("0x1.62e42feep-1"), float.fromhex("0x1.a39ef35793c76p-33"))
# 2 / (3 log 2) in 25 bits and the rest.
TWO_THIRDS_LOG2E: Final = (float.fromhex("0x1.ec709ep-1"), -7.028461650952758e-09)
#: pi / 2 - math.pi / 2, and pi / 4 - math.pi / 4.
HALF_PI_REST: Final = 6.123233995736766e-17
QUARTER_PI_REST: Final = 3.061616997868383e-17


def upper(x: Num) -> Num:
    """Return x with its low 27 bits cleared, so that products of two such numbers are exact."""
    return (x.bits() & -(1 << 27)).bits()


def scaled(x: Num, power: Num) -> Num:
    """Return x 2^power in two steps, so that results near the limits of the range round once."""
    half = power.multiply_add(0.5, MAGIC)
    rest = (power - (half - MAGIC)) + MAGIC
    return x * power_of_two(half) * power_of_two(rest)


def _exp(x: Num) -> Num:
    x = x.within(-746.0, 710.0)
    power = x.multiply_add(1.0 / math.log(2.0), MAGIC) - MAGIC
    high = power.multiply_add(-LN2[0], x)
    r = power.multiply_add(-LN2[1], high)
    # The rounding error of r belongs to its first-order term.
    lost = power.multiply_add(-LN2[1], high - r)
    tail = (r * r).multiply_add(polynomial(r, EXP), lost)
    return scaled((r + tail) + 1.0, power)


def split_any(x: Num) -> tuple[Num, Num]:
    """Return the exponent and fraction as ``split_exponent``, of subnormal numbers too."""
    tiny = x < 2.0**-1022
    normal, added = tiny.choose(x * 2.0**54, x), tiny.choose(x.of(54.0), 0.0)
    exponent, f = split_exponent(normal)
    return exponent - added, f


def _log(x: Num) -> Num:
    exponent, f = split_any(x)
    s = f / (f + 2.0)
    z = s * s
    half = f * f * 0.5
    tail = s * (half + z * polynomial(z, LOG)) + exponent * LN2[1]
    return log_specials(x, exponent * LN2[0] - ((half - tail) - f))


def sin_cos(x: Num) -> tuple[Num, Num, Num]:
    """Return sin and cos of the remainder after whole quarter turns, and their number."""
    shifted = x.multiply_add(2.0 / math.pi, MAGIC)
    count = shifted - MAGIC
    rest = (x - count * HALF_PI[0]) - count * HALF_PI[1]
    third = count * HALF_PI[2]
    near = rest - third
    last = ((rest - near) - third) - count * HALF_PI[3]
    r = (near + last).within(-0.7857, 0.7857)
    low = ((near - r) + last).within(-1e-15, 1e-15)
    z = r * r
    sine = r + (r * (z * polynomial(z, SIN)) + low * (1.0 - z * 0.5))
    # 1 - z/2 is not exact; its rounding error is added back.
    most = 1.0 - z * 0.5
    cosine = most + (((1.0 - most) - z * 0.5) + (z * z * polynomial(z, COS) - r * low))
    return x.equals(0.0).choose(x, sine), cosine, shifted.bits()


def atan_ratio(low: Num, high: Num, swapped: Num) -> Num:
    """Return atan(low / high), or its complement to pi/2 if ``swapped``; 0 <= low <= high."""
    # Prevents overflow of the sum below.
    small = (high > 1e300).choose(high.of(2.0**-60), 1.0)
    low, high = low * small, high * small
    wide = low > high * 0.41421356237309503
    t = wide.choose(low - high, low) / wide.choose(low + high, high)
    z = t * t
    tail = t * (z * polynomial(z, ATAN))
    quarter = (tail + QUARTER_PI_REST) + t + math.pi / 4
    first = wide.choose(quarter, t + tail)
    return swapped.choose(math.pi / 2 - (first - HALF_PI_REST), first)


def _atan(x: Num) -> Num:
    size = x.call("fabs")
    steep = size > 1.0
    low = steep.choose(x.of(1.0), size)
    infinite = size.equals(math.inf)
    low = infinite.choose(x.of(0.0), low)
    high = infinite.choose(x.of(1.0), steep.choose(size, 1.0))
    return atan_ratio(low, high, steep).call("copysign", x)


def _atan2(y: Num, x: Num) -> Num:
    def ratio(low: Num, high: Num, swapped: Num) -> Num:
        infinite = high.equals(math.inf)
        low = infinite.choose(x.of(0.0), low)
        return atan_ratio(low, infinite.choose(x.of(1.0), high), swapped)

    return atan2_with(ratio, y, x)


def log2_pair(x: Num) -> tuple[Num, Num]:
    """Return log2 of a positive x as a sum of two numbers, the first with its low half clear."""
    exponent, f = split_any(x)
    # s = f / (f + 2) in two words.
    divisor = f + 2.0
    divisor_low = f - (divisor - 2.0)
    s = f / divisor
    s_high, d_high = upper(s), upper(divisor)
    rest = (f - s_high * d_high) - s_high * ((divisor - d_high) + divisor_low)
    s_low = rest / divisor
    # log(1 + f) = 2/3 s (3 + s^2 + tail)
    z = s * s
    z_high = s_high * s_high
    tail = z * z * polynomial(z, LOG_TAIL) + s_low * (s_high + s)
    sum_high = upper((z_high + 3.0) + tail)
    sum_low = tail - ((sum_high - 3.0) - z_high)
    product = s_high * sum_high
    product_low = s_low * sum_high + sum_low * s
    p_high = upper(product + product_low)
    p_low = product_low - (p_high - product)
    high = p_high * TWO_THIRDS_LOG2E[0]
    low = p_high * TWO_THIRDS_LOG2E[1] + p_low * sum(TWO_THIRDS_LOG2E)
    total = upper((high + low) + exponent)
    return total, low - ((total - exponent) - high)


def _pow(x: Num, y: Num) -> Num:
    high, low = log2_pair(x.call("fabs"))
    # Any larger power of anything but 1 overflows already. The limit also avoids inf * 0.
    y_near = y.within(-(2.0**66), 2.0**66)
    y_high = upper(y_near)
    t_high = (y_high * high).within(-4400.0, 4400.0)
    t_low = ((y_near - y_high) * high + y_near * low).within(-4400.0, 4400.0)
    power = ((t_high + t_low).within(-1100.0, 1100.0) + MAGIC) - MAGIC
    r = ((t_high - power) + t_low).within(-0.6, 0.6)
    return pow_specials(x, y, scaled((r * polynomial(r, EXP2)) + 1.0, power))


DOUBLE: Final[dict[str, Callable[..., Any]]] = {
    "exp": _exp, "log": _log, **trigonometric(sin_cos),
    "atan": _atan, "atan2": _atan2, "pow": _pow,
}  # fmt: skip
