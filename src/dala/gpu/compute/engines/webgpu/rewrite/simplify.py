"""Simplify programs on u8 pixels before they are written as WGSL.

The front end emits explicit conversions between bytes and numbers. They are simplified: a byte that
is only copied (often alpha) stays a byte, two constant factors are merged, the cast of a byte to a
number is marked "byte", and the final conversion to a byte becomes the operation ``byte``, marked
"unit" if its argument is to be multiplied by 255. The minimum and maximum of bytes are taken before
they are converted; sums of bytes such as luma after that, if the bytes are converted anyway.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dala.gpu.compute.lang.ir import Program, Value, values
from dala.gpu.compute.lang.rewrite import Copier


def simplify(program: Program) -> Program:
    """Return an equivalent program; floats that are stored may differ in the last bit."""
    if "u8" not in {program.out.dtype, *(arg.dtype for arg in program.args)}:
        return program

    exact = program.exact
    extremes: set[Value] = set()

    def is_byte(v: Value) -> bool:
        if v in extremes:
            return True
        if v.op in ("pixel", "image"):
            return bool(program.args[v.attr[0]].dtype == "u8")
        if v.op in ("element", "array"):
            return bool(program.args[v.attr].dtype == "u8")
        return v.op == "byte"

    def scaled_byte(v: Value) -> tuple[Value, float] | None:
        """If a value is a byte times a constant, return both."""
        if v.op == "cast" and v.type == "f32" and is_byte(v.args[0]):
            return v, 1.0
        if v.op != "mul" or v.type != "f32" or v.args[1].op != "const":
            return None
        number = v.args[0]
        if number.op == "cast" and is_byte(number.args[0]):
            return number, v.args[1].attr
        return None

    converted = {
        _read(v.args[0]) for v in values(program.body) if v.op == "cast" and is_byte(v.args[0])
    }
    #: Sums of bytes with whole weights that became sums of floats, and their parts.
    sums: dict[Value, list[tuple[Value, float]]] = {}

    def byte_sum(v: Value) -> list[tuple[Value, float]] | None:
        """Return bytes and weights, if a value is a sum of bytes that are floats elsewhere."""
        if v.op == "add":
            parts = [byte_sum(a) for a in v.args]
            known = [part for part in parts if part is not None]
            return known[0] + known[1] if len(known) == 2 else None
        if v.op != "mul" or v.args[1].op != "const" or not is_byte(v.args[0]):
            return None
        return [(v.args[0], v.args[1].attr)] if _read(v.args[0]) in converted else None

    def float_sum(parts: list[tuple[Value, float]], factor: float) -> Value:
        """Return the sum as floats, with nothing to round: of conversions that are there anyway."""
        total = None
        for byte, weight in parts:
            number = Value("cast", "f32", (byte,), "byte")
            scale = Value("const", "f32", (), weight * factor)
            product = Value("mul", "f32", (number, scale), "exact")
            total = product if total is None else Value("add", "f32", (total, product))
        assert total is not None
        sums[total] = parts
        return total

    def shorter(v: Value, args: tuple[Value, ...]) -> Value | None:
        if v.op == "cast" and v.type == "f32" and args[0].op == "add" and exact:
            parts = byte_sum(args[0])
            if parts is not None and sum(abs(w) for _, w in parts) * 255.0 < 2.0**24:
                return float_sum(parts, 1.0)
        if v.op == "mul" and args[0] in sums and _is_power(args[1]):
            return float_sum(sums[args[0]], args[1].attr)
        if v.op == "cast" and v.type == "f32" and is_byte(args[0]):
            return Value("cast", "f32", args, "byte")
        if v.op == "mul" and v.type == "f32" and args[1].op == "const" and not exact:
            found = scaled_byte(args[0])
            if found is not None and _ordinary(found[1]) and _ordinary(args[1].attr):
                factor = float(np.float32(found[1] * args[1].attr))
                return Value("mul", "f32", (found[0], Value("const", "f32", (), factor)))
        if v.op in ("min", "max") and v.type == "f32":
            # The order of bytes is that of their products with a factor above 0.
            scaled = [scaled_byte(a) for a in args]
            found, other = scaled
            if found is not None and other is not None and found[1] == other[1] > 0.0:
                least = Value(v.op, "s32", (found[0].args[0], other[0].args[0]))
                extremes.add(least)
                number = Value("cast", "f32", (least,), "byte")
                if found[1] == 1.0:
                    return number
                return Value("mul", "f32", (number, Value("const", "f32", (), found[1])))
        if v.op == "cast" and v.attr == "in_range":
            whole = _saturated(args[0])
            stored = args[0].args[0] if whole is None and _adds_half(args[0]) else whole
            found = None if stored is None else scaled_byte(stored)
            if found is not None and found[1] == 1.0:
                return found[0].args[0]
            if whole is not None:
                if whole.op == "mul" and _is(whole.args[1], 255.0):
                    return Value("byte", "s32", whole.args[:1], "unit")
                return Value("byte", "s32", (whole,))
        return None

    return Shortener(shorter).program(program)


class Shortener(Copier):
    """Copies blocks; ``shorter`` may replace a value with a new or an earlier one."""

    def __init__(self, shorter: Callable[[Value, tuple[Value, ...]], Value | None]) -> None:
        super().__init__()
        self._shorter = shorter
        self._written: set[Value] = set()

    def value(self, s: Value) -> Value:
        args = tuple(map(self.of, s.args))
        found = self._shorter(s, args) or Value(s.op, s.type, args, s.attr)
        self._write(found)
        return found

    def _write(self, v: Value) -> None:
        """Append a value, after new ones that it is computed from."""
        if v.op == "const" or v in self._written:
            return
        self._written.add(v)
        for arg in v.args:
            self._write(arg)
        self.body.append(v)


def _read(v: Value) -> object:
    """Return a key that is equal for reads of the same byte."""
    return (v.op, v.attr, *((a.attr if a.op == "const" else a) for a in v.args))


def _is_power(v: Value) -> bool:
    """Return True for powers of two, whose products are exact."""
    return v.op == "const" and _ordinary(v.attr) and abs(math.frexp(v.attr)[0]) == 0.5


def _ordinary(factor: float) -> bool:
    """Return True if a product with another such constant neither overflows nor underflows."""
    return 1e-12 < abs(factor) < 1e12


def _adds_half(v: Value) -> bool:
    return v.op == "add" and v.type == "f32" and _is(v.args[1], 0.5)


def _saturated(v: Value) -> Value | None:
    """Return the f32 that a value clamps to 0..255 and rounds, or None."""
    if not _adds_half(v):
        return None
    found = v.args[0]
    for test, limit in (("lt", 255), ("gt", 0)):
        if found.op != "select" or found.args[0].op != test:
            return None
        condition, inside, outside = found.args
        tested, against = condition.args
        if tested is not inside or not _is(against, limit) or not _is(outside, limit):
            return None
        found = inside
    return found


def _is(v: Value, number: float) -> bool:
    return v.op == "const" and bool(v.attr == number)
