"""Bounds of the values of a program, from those of the bytes that it reads."""

from __future__ import annotations

import math
from typing import Final, TypeAlias

import numpy as np

from dala.gpu.compute.lang.ir import FLOATS, Value

#: The smallest and the largest value; NaN may occur besides.
Range: TypeAlias = tuple[float, float]

_ANY: Final[Range] = (-math.inf, math.inf)
_BYTE: Final[Range] = (0.0, 255.0)

#: A polynomial: the value that it is of, None for a constant, and its coefficients from the lowest.
_Polynomial: TypeAlias = tuple[Value | None, tuple[float, ...]]
#: The highest degree of a polynomial, and how large the sum of its terms may be.
_MAX_DEGREE: Final = 5
_MAX_TERMS: Final = 4096.0
#: The most that rounding adds to a polynomial, relative to the sum of its terms.
_ROUNDING: Final = 2.0**-18


class Ranges:
    """Finds the bounds of f32 values; each value is visited once.

    Bounds are those of exact arithmetic. Rounding keeps their order, so a value whose lower bound
    is 0 is never below 0. A polynomial of a bounded value, such as ``t * t * (3 - 2 * t)``, has
    closer bounds than its terms; these include what rounding may add.
    """

    def __init__(self) -> None:
        self._found: dict[Value, Range] = {}
        self._polynomials: dict[Value, _Polynomial] = {}

    def of(self, v: Value) -> Range:
        """Return the bounds of a value, infinite where they are not known."""
        if v not in self._found:
            self._found[v] = _ANY  # in case the value depends on itself
            low, high = self._of(v)
            if math.isnan(low) or math.isnan(high):
                low, high = _ANY
            least, most = self._of_polynomial(v)
            self._found[v] = max(low, least), min(high, most)
        return self._found[v]

    def _of(self, v: Value) -> Range:
        if v.op == "const" and v.type in FLOATS:
            return float(v.attr), float(v.attr)
        if v.op == "cast":
            read = v.args[0]
            return _BYTE if read.op in ("pixel", "image") and read.type not in FLOATS else _ANY
        if v.type != "f32":
            return _ANY
        if v.op == "select":
            (a, b), (c, d) = self.of(v.args[1]), self.of(v.args[2])
            return min(a, c), max(b, d)
        if v.op in ("sqrt", "abs"):
            return 0.0, math.inf
        if v.op == "neg":
            a, b = self.of(v.args[0])
            return -b, -a
        if v.op not in ("add", "sub", "mul", "min", "max"):
            return _ANY
        (a, b), (c, d) = (self.of(x) for x in v.args)
        if v.op == "add":
            return a + c, b + d
        if v.op == "sub":
            return a - d, b - c
        if v.op == "min":
            return min(a, c), min(b, d)
        if v.op == "max":
            return max(a, c), max(b, d)
        # Infinity times 0 is NaN, which may occur besides.
        products = [x * y if x and y else 0.0 for x in (a, b) for y in (c, d)]
        least = 0.0 if v.args[0] is v.args[1] else -math.inf
        return max(min(products), least), max(products)

    # polynomials --------------------------------------------------------------------------------
    def _of_polynomial(self, v: Value) -> Range:
        """Return the bounds of a polynomial of a bounded value; none for other values."""
        base, terms = self._polynomial(v)
        if base is None or base is v or len(terms) < 3:
            return _ANY
        low, high = self.of(base)
        size = max(abs(low), abs(high))
        total = sum(abs(c) * size**k for k, c in enumerate(terms)) if size <= 1e30 else size
        if not total <= _MAX_TERMS:
            return _ANY
        of = np.polynomial.Polynomial(terms)
        turns = [float(x.real) for x in of.deriv().roots() if abs(x.imag) < 1e-6]
        found = [float(of(min(max(x, low), high))) for x in (low, high, *turns)]
        return min(found) - total * _ROUNDING, max(found) + total * _ROUNDING

    def _polynomial(self, v: Value) -> _Polynomial:
        """Return a value as a polynomial of another one, or of itself."""
        if v.op == "const" and v.type in FLOATS:
            return None, (float(v.attr),)
        if v not in self._polynomials:
            self._polynomials[v] = v, (0.0, 1.0)  # in case the value depends on itself
            self._polynomials[v] = self._combined(v) or (v, (0.0, 1.0))
        return self._polynomials[v]

    def _combined(self, v: Value) -> _Polynomial | None:
        if v.type != "f32" or v.op not in ("add", "sub", "mul", "neg"):
            return None
        parts = [self._polynomial(a) for a in v.args]
        bases = {base for base, _ in parts if base is not None}
        if len(bases) != 1:
            return None
        first, last = (np.array(terms) for _, terms in (parts[0], parts[-1]))
        if v.op == "mul":
            made = np.polynomial.polynomial.polymul(first, last)
        elif v.op == "neg":
            made = -first
        else:
            other = last if v.op == "add" else -last
            made = np.polynomial.polynomial.polyadd(first, other)
        if len(made) > _MAX_DEGREE + 1 or not np.isfinite(made).all():
            return None
        return bases.pop(), tuple(float(c) for c in made)
