"""Rewrite programs that store bytes as fewer operations, where the last bits do not matter.

- Two constant factors are one, such as the 1/255 of a byte and a weight.
- A number that is added to a sum of products joins its first product: ``(r * a + g * b) - k`` is
  ``(r * a - k) + g * b``, two fused multiply-adds.
- The 255 of a stored byte joins the factors of what is stored, and the half that rounds it joins
  the last sum or product: ``clamp(x * amount * 255, 0, 255) + 0.5`` is ``clamp(x * (amount * 255)
  + 0.5, 0, 255.5)``. Values that cannot be below 0 or above 1 need no clamp.
- A factor of a difference joins its terms: ``(x - k) * f`` is ``x * f - (k * f)``, one fused
  multiply-add, where ``k`` and ``f`` are the same for all pixels.

Only values that :mod:`~dala.gpu.compute.engines.cpu.llvm.bytes.gentle` finds are changed.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import numpy as np

from dala.gpu.compute.engines.cpu.llvm.bytes.gentle import (
    LARGEST,
    OR_NAN,
    GentleValues,
    scaled_by_constant,
)
from dala.gpu.compute.engines.cpu.llvm.bytes.ranges import Ranges
from dala.gpu.compute.engines.cpu.llvm.weighted_sums import needed_values, stored_value
from dala.gpu.compute.lang.ir import Block, Value

#: Factors beyond these could overflow, or become 0.
_SMALLEST, _LARGEST = 1e-30, 1e30
#: Sums up to this are stored as 255.
_STORED: Final = LARGEST + 0.25
#: Infinite factors are replaced by this in sums, where infinity minus infinity would be NaN. It is
#: a power of two, so that equal terms still cancel.
_HUGE: Final = 2.0**100
#: A factor that differs from 1 by less is none: the 255 of a stored byte times the 1/255 of a read.
_NONE: Final = 2.0**-21


def rewritten(
    block: Block, result: tuple[Value, ...], varying: Collection[Value], *, partial: bool = False
) -> tuple[Block, tuple[Value, ...]]:
    """Return a program that does the same with fewer operations; only one without branches.

    Args:
        block: The program.
        result: What it stores.
        varying: Values that differ between pixels.
        partial: The results are read by a program that stores bytes, and are not bytes themselves.
    """
    if any(not isinstance(s, Value) for s in block.body):
        return block, result
    writer = _Rewriter(GentleValues(block, result, partial), varying)
    packed = len(result) > 1  # the first byte of a word must not have bits above it
    results = tuple(
        writer.copy(v) if partial else writer.stored(v, alone=bool(c) or not packed)
        for c, v in enumerate(result)
    )
    return Block(list(needed_values(results))), results


def _number(value: float) -> Value:
    return Value("const", "f32", (), value)


@dataclass(frozen=True)
class _Factor:
    """A constant times uniform values."""

    number: float = 1.0
    uniform: tuple[Value, ...] = ()

    def times(self, other: _Factor) -> _Factor:
        number = float(np.float32(self.number) * np.float32(other.number))
        return _Factor(number, self.uniform + other.uniform)

    @property
    def is_one(self) -> bool:
        return not self.uniform and abs(self.number - 1.0) < _NONE

    @property
    def is_moderate(self) -> bool:
        return _SMALLEST < abs(self.number) < _LARGEST

    def value(self) -> Value:
        """Return the factor as one uniform value."""
        if not self.uniform:
            return _number(self.number)
        total = self.uniform[0]
        for u in self.uniform[1:]:
            total = Value("mul", "f32", (total, u))
        if self.number == 1.0:
            return total
        return Value("mul", "f32", (total, _number(self.number)))


class _Rewriter:
    def __init__(self, gentle: GentleValues, varying: Collection[Value]) -> None:
        self.gentle = gentle
        self.varying = varying
        self.made: dict[Value, Value] = {}
        self.ranges = Ranges()

    def copy(self, v: Value) -> Value:
        """Return a value, rewritten."""
        if v.op == "const":
            return v
        if v not in self.made:
            self.made[v] = self._copy(v)
        return self.made[v]

    def _copy(self, v: Value) -> Value:
        if self._changeable(v):
            found = self._merged(v) or self._joined(v) or self._distributed(v)
            if found is not None:
                return found
        args = tuple(self.copy(a) for a in v.args)
        return v if args == v.args else Value(v.op, v.type, args, v.attr)

    def _changeable(self, v: Value) -> bool:
        return v.type == "f32" and v not in self.gentle.storing and self.gentle.is_gentle(v)

    def _single(self, v: Value) -> bool:
        """Return whether a value has one user, and is not needed if that is rewritten."""
        return len(self.gentle.users.get(v, ())) <= 1

    def _merged(self, v: Value) -> Value | None:
        """Return a product of two constants and a value with one constant."""
        outer = scaled_by_constant(v)
        inner = None if outer is None else scaled_by_constant(outer[0])
        if outer is None or inner is None:
            return None
        factor = _Factor(outer[1]).times(_Factor(inner[1]))
        if not factor.is_moderate:
            return None
        return Value("mul", "f32", (self.copy(inner[0]), factor.value()))

    # sums ---------------------------------------------------------------------------------------
    def _joined(self, v: Value) -> Value | None:
        """Return a sum of products and a uniform number with the number in the first product."""
        if v.op not in ("add", "sub") or v not in self.varying or self.gentle.under_root(v):
            return None
        uniform = [a not in self.varying for a in v.args]
        if uniform == [False, True]:
            total, more = v.args
        elif v.op == "add" and uniform == [True, False]:
            more, total = v.args
        else:
            return None
        return self._spliced(total, v.op, self.copy(more))

    def _spliced(self, total: Value, op: str, more: Value) -> Value | None:
        """Return a sum of products with a number added to (or taken from) its first product."""
        spine: list[Value] = []
        while total.op in ("add", "sub") and self._single(total) and total in self.varying:
            spine.append(total)
            total = total.args[0]
        if not spine or total.op != "mul" or not self._single(total):
            return None
        value = Value(op, "f32", (self.copy(total), more))
        for s in reversed(spine):
            value = Value(s.op, "f32", (value, self.copy(s.args[1])))
        return value

    def _distributed(self, v: Value) -> Value | None:
        """Return a sum with a uniform term, times a uniform factor, as a product and a term."""
        if v.op not in ("mul", "div") or v not in self.varying or self.gentle.under_root(v):
            return None
        total, factor = v.args
        if v.op == "mul" and total not in self.varying:
            total, factor = factor, total
        if factor in self.varying or total.op not in ("add", "sub") or not self._single(total):
            return None
        uniform = [a not in self.varying for a in total.args]
        if sum(uniform) != 1:
            return None
        factor = self.copy(factor)
        if v.op == "div":
            factor = Value("div", "f32", (_number(1.0), factor))
        if factor.op != "const":
            factor = Value("max", "f32", (_number(-_HUGE), factor))
            factor = Value("min", "f32", (_number(_HUGE), factor))
        terms = tuple(Value("mul", "f32", (self.copy(a), factor)) for a in total.args)
        return Value(total.op, "f32", terms)

    # bytes --------------------------------------------------------------------------------------
    def stored(self, v: Value, *, alone: bool) -> Value:
        """Return a stored byte, rewritten; ``alone``: only its lowest eight bits count."""
        inner = stored_value(v)
        if inner is None or inner not in self.varying or not self._changeable(inner):
            return self.copy(v)
        scaled = self.scaled(inner, _Factor(255.0))
        total = Value("add", "f32", (scaled, _number(0.5)))
        low, high = self.ranges.of(total)
        if alone and low >= 0:
            if high <= _STORED:
                return Value("cast", v.type, (total,), OR_NAN)
            beyond = Value("gt", "bool", (total, _number(LARGEST)))
            total = Value("select", "f32", (beyond, _number(LARGEST), total))
            return Value("cast", v.type, (total,), OR_NAN)
        for rule, end in (("gt", 0.0), ("lt", LARGEST)):
            within = Value(rule, "bool", (total, _number(end)))
            total = Value("select", "f32", (within, total, _number(end)))
        return Value("cast", v.type, (total,), "in_range")

    def scaled(self, v: Value, factor: _Factor) -> Value:
        """Return a value times a factor, which joins the factors that the value has."""
        inner, own = self._stripped(v)
        total = own.times(factor)
        if not total.is_moderate:
            inner, total = self.copy(v), factor
        if total.is_one:
            return inner
        return Value("mul", "f32", (inner, total.value()))

    def _stripped(self, v: Value) -> tuple[Value, _Factor]:
        """Return a value without its uniform factors, and these."""
        if v.op == "mul" and v in self.varying and self._changeable(v):
            for a, b in (v.args, v.args[::-1]):
                if a not in self.varying:
                    inner, factor = self._stripped(b)
                    own = (
                        _Factor(float(a.attr)) if a.op == "const" else _Factor(1.0, (self.copy(a),))
                    )
                    return inner, own.times(factor)
            if self._single(v):
                (a, of_a), (b, of_b) = (self._stripped(x) for x in v.args)
                return Value("mul", "f32", (a, b)), of_a.times(of_b)
        return self.copy(v), _Factor()
