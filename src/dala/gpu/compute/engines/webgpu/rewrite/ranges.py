"""Find the ranges of values, and with them the finite values.

Minima, maxima and roundings of such values need no care for NaN, which takes several operations.
What is computed from bytes has a range if the parameters have one; callers check those.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from dala.gpu.compute.engines.base import Values
from dala.gpu.compute.lang.ir import FLOATS, Program, Value, values

#: The largest and the smallest absolute value of a parameter of ordinary size.
MAX_PARAM: Final = 1e6
MIN_PARAM: Final = 1e-6
#: The largest number of ordinary size; its product with 255 is an f32.
_MAX: Final = 1e36


class Range(NamedTuple):
    """The least and the largest number, and the smallest absolute value."""

    low: float
    high: float
    least: float = 0.0

    @property
    def size(self) -> float:
        """The largest absolute value."""
        return max(-self.low, self.high)


#: Ranges by values.
Ranges: TypeAlias = Mapping[Value, Range]

_PARAM: Final = Range(-MAX_PARAM, MAX_PARAM, MIN_PARAM)


def are_ordinary(types: Sequence[str], params: Values) -> bool:
    """Return True if all floats among the parameters, of these types, are of ordinary size."""
    return all(
        MIN_PARAM <= abs(number) <= MAX_PARAM
        for number, type_ in zip(params, types, strict=True)
        if type_ in FLOATS
    )


def find_ranges(program: Program) -> Ranges:
    """Return the ranges of f32 values that have one, for parameters of ordinary size."""
    found: dict[Value, Range] = {}

    def of(v: Value) -> Range | None:
        if v.op == "const":
            number = float(v.attr)
            return Range(number, number) if abs(number) <= _MAX else None  # not for NaN either
        return found.get(v)

    for v in values(program.body):
        if v.type != "f32":
            continue
        made = _range(v, of)
        if made is not None and made.size <= _MAX:
            apart = max(made.low, -made.high, 0.0)  # from zero
            found[v] = Range(made.low, made.high, max(made.least, apart))
    return found


def _range(v: Value, of: Callable[[Value], Range | None]) -> Range | None:
    if v.op == "param":
        return _PARAM
    if v.op == "cast":
        if v.attr == "byte":
            return Range(0.0, 255.0)
        return Range(-(2.0**32), 2.0**32) if v.args[0].type in ("s32", "u32") else None
    if v.op not in _RULES:
        return None
    args = v.args[1:] if v.op == "select" else v.args
    parts = [of(arg) for arg in args]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    if v.op == "mul" and args[0] is args[1]:
        return Range(known[0].least ** 2, known[0].size ** 2)
    return _RULES[v.op](*known)


def _product(a: Range, b: Range) -> Range:
    ends = [x * y for x in a[:2] for y in b[:2]]
    return Range(min(ends), max(ends), a.least * b.least)


def _quotient(a: Range, b: Range) -> Range | None:
    least = max(b.least, b.low, -b.high)
    if least < 1e-20:
        return None
    if b.low < 0.0 < b.high:
        return Range(-a.size / least, a.size / least)
    ends = [x / y for x in a[:2] for y in ((b.high, least) if b.low >= 0.0 else (b.low, -least))]
    return Range(min(ends), max(ends))


def _within(a: Range, b: Range) -> Range:
    return Range(min(a.low, b.low), max(a.high, b.high))


#: The range of a result, from those of its arguments.
_RULES: Final[dict[str, Callable[..., Range | None]]] = {
    "add": lambda a, b: Range(a.low + b.low, a.high + b.high),
    "sub": lambda a, b: Range(a.low - b.high, a.high - b.low), "mul": _product, "div": _quotient,
    "neg": lambda a: Range(-a.high, -a.low, a.least),
    "abs": lambda a: Range(a.least, a.size, a.least),
    "min": lambda a, b: Range(min(a.low, b.low), min(a.high, b.high)),
    "max": lambda a, b: Range(max(a.low, b.low), max(a.high, b.high)), "select": _within,
    "sqrt": lambda a: Range(math.sqrt(a.low), math.sqrt(a.high)) if a.low >= 0.0 else None,
    "floor": lambda a: Range(a.low - 1.0, a.high), "ceil": lambda a: Range(a.low, a.high + 1.0),
    "round": lambda a: Range(a.low - 1.0, a.high + 1.0),
    "exp": lambda a: Range(0.0, 1.0) if a.high <= 0.0 else None,
}  # fmt: skip
