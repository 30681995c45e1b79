"""Simplify programs on u8 pixels before they are written as WGSL.

The front end emits explicit conversions between bytes and numbers. They are simplified: a byte that
is only copied (often alpha) stays a byte, two constant factors are merged, the cast of a byte to a
number is marked "byte", and the final conversion to a byte becomes the operation ``byte``, marked
"unit" if its argument is to be multiplied by 255. The minimum and maximum of bytes are taken before
they are converted.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dala.gpu.compute.lang.ir import (
    Block,
    For,
    If,
    Program,
    SetSlot,
    Statement,
    Value,
    make_program,
)


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

    def shorter(v: Value, args: tuple[Value, ...]) -> Value | None:
        if v.op == "cast" and v.type == "f32" and is_byte(args[0]):
            return Value("cast", "f32", args, "byte")
        if v.op == "mul" and v.type == "f32" and args[1].op == "const" and not exact:
            found = scaled_byte(args[0])
            if found is not None and _ordinary(found[1]) and _ordinary(args[1].attr):
                factor = float(np.float32(found[1] * args[1].attr))
                return Value("mul", "f32", (found[0], Value("const", "f32", (), factor)))
        if v.op in ("min", "max") and v.type == "f32":
            # The order of bytes is that of their products with a factor above 0.
            parts = [scaled_byte(a) for a in args]
            found, other = parts
            if found is not None and other is not None and found[1] == other[1] > 0.0:
                least = Value(v.op, "s32", (found[0].args[0], other[0].args[0]))
                extremes.add(least)
                number = Value("cast", "f32", (least,), "byte")
                if found[1] == 1.0:
                    return number
                return Value("mul", "f32", (number, Value("const", "f32", (), found[1])))
        if v.op == "cast" and v.attr == "in_range":
            whole = _saturated(args[0])
            if whole is not None:
                found = scaled_byte(whole)
                if found is not None and found[1] == 1.0:
                    return found[0].args[0]
                if whole.op == "mul" and _is(whole.args[1], 255.0):
                    return Value("byte", "s32", whole.args[:1], "unit")
                return Value("byte", "s32", (whole,))
        return None

    rewriter = _Rewriter(shorter)
    body = rewriter.block(program.body)
    result = tuple(map(rewriter.value, program.result))
    return make_program(
        program.name, program.args, program.out, program.params, body, result, program.rank
    )


class _Rewriter:
    """Copies blocks; ``shorter`` may replace a value with a new or an earlier one."""

    def __init__(self, shorter: Callable[[Value, tuple[Value, ...]], Value | None]) -> None:
        self._shorter = shorter
        self._became: dict[int, Value] = {}
        self._written: set[int] = set()

    def value(self, v: Value) -> Value:
        """Return the replacement of a value; constants are not part of a block and stay."""
        return self._became.get(id(v), v)

    def _write(self, v: Value, done: list[Statement]) -> None:
        """Add a value to a block, after new ones that it is computed from."""
        if v.op == "const" or id(v) in self._written:
            return
        self._written.add(id(v))
        for arg in v.args:
            self._write(arg, done)
        done.append(v)

    def block(self, source: Block) -> Block:
        """Return a copy of a block."""
        done: list[Statement] = []
        for s in source.body:
            if isinstance(s, Value):
                args = tuple(map(self.value, s.args))
                found = self._shorter(s, args) or Value(s.op, s.type, args, s.attr)
                self._became[id(s)] = found
                self._write(found, done)
            elif isinstance(s, SetSlot):
                done.append(SetSlot(s.slot, self.value(s.value)))
            elif isinstance(s, If):
                then, otherwise = self.block(s.then), self.block(s.otherwise)
                done.append(If(self.value(s.condition), then, otherwise))
            elif isinstance(s, For):
                start, stop = self.value(s.start), self.value(s.stop)
                done.append(For(s.index, start, stop, s.step, self.block(s.body)))
            else:
                done.append(s)
        return Block(done)


def _ordinary(factor: float) -> bool:
    """Return True if a product with another such constant neither overflows nor underflows."""
    return 1e-12 < abs(factor) < 1e12


def _saturated(v: Value) -> Value | None:
    """Return the f32 that a value clamps to 0..255 and rounds, or None."""
    if v.op != "add" or v.type != "f32" or not _is(v.args[1], 0.5):
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
