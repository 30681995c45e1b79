"""Bounds of the values of a program, from those of the bytes that it reads."""

from __future__ import annotations

import math
from typing import Final, TypeAlias

from dala.gpu.compute.lang.ir import FLOATS, Value

#: The smallest and the largest value; NaN may occur besides.
Range: TypeAlias = tuple[float, float]

_ANY: Final[Range] = (-math.inf, math.inf)
_BYTE: Final[Range] = (0.0, 255.0)


class Ranges:
    """Finds the bounds of f32 values; each value is visited once.

    Bounds are those of exact arithmetic. Rounding keeps their order, so a value whose lower bound
    is 0 is never below 0.
    """

    def __init__(self) -> None:
        self._found: dict[Value, Range] = {}

    def of(self, v: Value) -> Range:
        """Return the bounds of a value, infinite where they are not known."""
        if v not in self._found:
            self._found[v] = _ANY  # in case the value depends on itself
            low, high = self._of(v)
            self._found[v] = _ANY if math.isnan(low) or math.isnan(high) else (low, high)
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
        if v.args[0] is v.args[1]:
            return 0.0, math.inf
        # Infinity times 0 is NaN, which may occur besides.
        products = [x * y if x and y else 0.0 for x in (a, b) for y in (c, d)]
        return min(products), max(products)
