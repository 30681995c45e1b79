"""Find exact products: they round nothing, so that fusing them with a sum changes no bit.

A byte has eight digits, a square of differences eighteen, a power of ``exponential.py`` sixteen.
Where two factors have at most 24 digits together, their product is an f32. It is marked with
``attr == "exact"``: engines may fuse it with a sum that it is a part of, and need not hide it from
compilers that fuse.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Final, TypeAlias

from dala.gpu.compute.lang.ir import Program, Statement, Value, values
from dala.gpu.compute.lang.rewrite import emit, rewrite

#: The digits of an f32, and the power of two that every f32 is a multiple of.
_DIGITS: Final = 24
_LEAST: Final = -149
#: Products up to this are finite, and so are sums with them.
_LARGE: Final = 2.0**100
_INT32: Final = 2**31
#: What ``exponential.py`` returns: its digits, and the powers of two that it is between.
POWER_DIGITS: Final = 16
POWER_RANGE: Final = (-64, 80)


@dataclass(frozen=True)
class NumberRange:
    """The range of a number that is not NaN: significant bits, and a factor 2 ** unit."""

    low: float = -math.inf
    high: float = math.inf
    digits: int = _DIGITS
    unit: int = _LEAST
    #: Whether it may be NaN.
    nan: bool = True

    @property
    def size(self) -> float:
        """The largest magnitude."""
        return max(-self.low, self.high)


_ANY: Final = NumberRange()
#: A value, and the factors of its powers; None for a constant.
_Polynomial: TypeAlias = "tuple[Value | None, tuple[float, ...]]"
_CUBIC: Final = 4
#: More than what rounding changes in a polynomial, relative to its terms.
_ROUNDING: Final = 1e-6


def exact_products(program: Program) -> frozenset[Value]:
    """Return the products of f32 that are exact."""
    ranges = RangeFinder(program)
    found = (v for v in values(program.body) if v.op == "mul" and v.type == "f32")
    return frozenset(v for v in found if ranges.is_exact(v))


def with_exact_products(program: Program) -> Program:
    """Return a program whose exact products are marked."""
    found = exact_products(program)

    def mark(old: Value, new: Value, body: list[Statement]) -> Value | None:
        return emit(body, new.op, new.type, *new.args, attr="exact") if old in found else None

    return rewrite(program, mark) if found else program


class RangeFinder:
    """Finds the ranges of a program's values."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.known: dict[Value, NumberRange] = {}
        self.polynomials: dict[Value, _Polynomial | None] = {}
        # In order, so that operands are known: programs may be deep.
        for v in values(program.body):
            self.of(v)
            self._polynomial(v)

    def of(self, v: Value) -> NumberRange:
        """Return the range of an f32 or an s32."""
        if v not in self.known:
            self.known[v] = _constant(v) if v.op == "const" else self._range(v)
        return self.known[v]

    def is_exact(self, product: Value) -> bool:
        """Return whether a product rounds nothing."""
        a, b = (self.of(v) for v in product.args)
        one = 1 in (a.digits, b.digits)
        if a.digits + b.digits - one > _DIGITS or a.unit + b.unit < _LEAST:
            return False
        return a.size * b.size <= _LARGE

    def _range(self, v: Value) -> NumberRange:
        if v.type == "s32":
            return self._integer(v)
        if v.type != "f32":
            return _ANY
        if v.op == "bits" and v.attr == "power":
            first, last = POWER_RANGE
            return NumberRange(2.0**first, 2.0**last, POWER_DIGITS, first - POWER_DIGITS, nan=False)
        if v.op == "cast" and v.args[0].type == "s32":
            found = self.of(v.args[0])
            return NumberRange(
                found.low, found.high, min(_digits(found.size, 0), _DIGITS), 0, nan=False
            )
        if v.op == "select":
            return _either(self._chosen(v), self.of(v.args[2]))
        if v.op in _RULES:
            return self._computed(v)
        return _ANY

    def _chosen(self, v: Value) -> NumberRange:
        """Return the range of a selected value, which its condition may limit."""
        condition, chosen = v.args[:2]
        found = self.of(chosen)
        if condition.op in ("gt", "lt") and condition.args[0] is chosen:
            end = self.of(condition.args[1])
            if condition.op == "gt":
                return replace(found, low=max(found.low, end.low), nan=False)
            return replace(found, high=min(found.high, end.high), nan=False)
        return found

    def _computed(self, v: Value) -> NumberRange:
        args = [self.of(a) for a in v.args]
        low, high = _RULES[v.op](*args)
        nan = any(a.nan for a in args)
        if v.op in ("add", "sub", "mul"):
            nan = nan or not all(math.isfinite(a.size) for a in args)
        elif v.op == "div" or (v.op == "sqrt" and args[0].low < 0.0):
            nan = True
        if v.op == "mul":
            if v.args[0] is v.args[1]:
                low = max(low, 0.0)
            least, most = self._extremes(v)
            low, high = max(low, least), min(high, most)
        unit, digits = min(a.unit for a in args), max(a.digits for a in args)
        if v.op in ("add", "sub"):
            digits = min(_digits(max(-low, high), unit), _DIGITS)
        elif v.op == "mul" and self.is_exact(v):
            digits, unit = sum(a.digits for a in args), sum(a.unit for a in args)
        elif v.op in ("mul", "div", "sqrt"):
            return NumberRange(low, high, nan=nan)
        return NumberRange(low, high, min(digits, _DIGITS), unit, nan)

    def _extremes(self, v: Value) -> tuple[float, float]:
        """Return limits of a polynomial of one value, such as that of ``smoothstep``."""
        found = self._polynomial(v)
        if found is None or found[0] is None or len(found[1]) != _CUBIC:
            return -math.inf, math.inf
        at, (c0, c1, c2, c3) = self.of(found[0]), found[1]
        places = [at.low, at.high]
        square = c2 * c2 - 3.0 * c1 * c3
        if c3 and square >= 0.0:
            turns = ((-c2 + sign * math.sqrt(square)) / (3.0 * c3) for sign in (-1.0, 1.0))
            places += [x for x in turns if at.low < x < at.high]
        ends = [((c3 * x + c2) * x + c1) * x + c0 for x in places]
        x = at.size
        room = _ROUNDING * (((abs(c3) * x + abs(c2)) * x + abs(c1)) * x + abs(c0))
        return min(ends) - room, max(ends) + room

    def _polynomial(self, v: Value) -> _Polynomial | None:
        """Return a number as a polynomial of one value, of at most the third degree."""
        if v not in self.polynomials:
            self.polynomials[v] = self._polynomial_of(v)
        return self.polynomials[v]

    def _polynomial_of(self, v: Value) -> _Polynomial | None:
        if v.op == "const":
            return None, (float(v.attr),)
        if v.op in ("add", "sub", "mul") and v.type == "f32":
            a, b = (self._polynomial(x) for x in v.args)
            if a is not None and b is not None:
                atoms = {p[0] for p in (a, b) if p[0] is not None}
                made = _joined(v.op, a[1], b[1])
                if len(atoms) <= 1 and len(made) <= _CUBIC:
                    return (atoms.pop() if atoms else None), made
        found = self.of(v) if v.op == "select" else _ANY
        return None if found.nan or not math.isfinite(found.size) else (v, (0.0, 1.0))

    def _integer(self, v: Value) -> NumberRange:
        """Return the range of an integer; all integers where it may wrap around."""
        found = NumberRange(-_INT32, _INT32, _DIGITS, 0, nan=False)
        if v.op in ("pixel", "image") and self.program.args[v.attr[0]].dtype == "u8":
            found = NumberRange(0, 255, 8, 0, nan=False)
        elif v.op in ("add", "sub", "mul", "neg", "min", "max"):
            low, high = _RULES[v.op](*(self.of(a) for a in v.args))
            if max(-low, high) < _INT32:
                found = NumberRange(low, high, _DIGITS, 0, nan=False)
        return found


def _constant(v: Value) -> NumberRange:
    number = float(v.attr)
    if not math.isfinite(number) or not number:
        return NumberRange(number, number, 1, 0, nan=False) if number == 0 else _ANY
    top, bottom = abs(number).as_integer_ratio()
    unit = (top & -top).bit_length() - bottom.bit_length()
    digits = (top // (top & -top)).bit_length()
    return NumberRange(number, number, min(digits, _DIGITS), max(unit, _LEAST), nan=False)


def _either(a: NumberRange, b: NumberRange) -> NumberRange:
    return NumberRange(
        min(a.low, b.low), max(a.high, b.high), max(a.digits, b.digits), min(a.unit, b.unit),
        a.nan or b.nan,
    )  # fmt: skip


def _joined(op: str, a: tuple[float, ...], b: tuple[float, ...]) -> tuple[float, ...]:
    """Add, subtract or multiply polynomials."""
    if op == "mul":
        made = [0.0] * (len(a) + len(b) - 1)
        for i, x in enumerate(a):
            for k, y in enumerate(b):
                made[i + k] += x * y
        return tuple(made)
    sign = 1.0 if op == "add" else -1.0
    return tuple(x + sign * y for x, y in zip_longest(a, b, fillvalue=0.0))


def _digits(size: float, unit: int) -> int:
    """Return the digits of multiples of 2 ** unit up to a size."""
    if not math.isfinite(size):
        return _DIGITS
    return max(math.frexp(size)[1] - unit, 1)


def _ends(a: NumberRange, b: NumberRange) -> tuple[float, float]:
    ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    ends = [0.0 if math.isnan(e) else e for e in ends]  # infinity times 0: near 0, or large
    return min(ends), max(ends)


def _quotient(a: NumberRange, b: NumberRange) -> tuple[float, float]:
    if b.low >= 0.0:
        return (0.0 if a.low >= 0.0 else -math.inf, 0.0 if a.high <= 0.0 else math.inf)
    return -math.inf, math.inf


#: The smallest and the largest result.
_RULES: Final[dict[str, Callable[..., Any]]] = {
    "add": lambda a, b: (a.low + b.low, a.high + b.high),
    "sub": lambda a, b: (a.low - b.high, a.high - b.low),
    "mul": _ends,
    "div": _quotient,
    "neg": lambda a: (-a.high, -a.low),
    "abs": lambda a: (max(a.low, -a.high, 0.0), a.size),
    "min": lambda a, b: (min(a.low, b.low), min(a.high, b.high)),
    "max": lambda a, b: (max(a.low, b.low), max(a.high, b.high)),
    "sqrt": lambda a: (0.0, math.sqrt(a.high) if a.high > 0.0 else 0.0),
}
