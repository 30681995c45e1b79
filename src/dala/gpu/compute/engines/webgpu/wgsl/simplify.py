"""Programs over pixels of bytes, made shorter before they are written as WGSL.

The front end spells out how a byte becomes a number and how a number becomes a byte. What comes to
the same is put in its place: a byte that is only handed on (as alpha mostly is) stays a byte, two
constant factors of a byte are one, a byte becomes a number by a cast marked "byte", and the end of
a computation is the operation ``byte``.
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
    """The same program, or one that gives the same but for the last place of its numbers."""
    if "u8" not in {program.out.dtype, *(arg.dtype for arg in program.args)}:
        return program

    def is_byte(v: Value) -> bool:
        if v.op in ("pixel", "image"):
            return bool(program.args[v.attr[0]].dtype == "u8")
        if v.op in ("element", "array"):
            return bool(program.args[v.attr].dtype == "u8")
        return v.op == "byte"

    def scaled_byte(v: Value) -> tuple[Value, float] | None:
        """The byte, converted, and the constant that it is multiplied with."""
        if v.op != "mul" or v.type != "f32" or v.args[1].op != "const":
            return None
        number = v.args[0]
        if number.op == "cast" and is_byte(number.args[0]):
            return number, v.args[1].attr
        return None

    def shorter(v: Value, args: tuple[Value, ...]) -> Value | None:
        if v.op == "cast" and v.type == "f32" and is_byte(args[0]):
            return Value("cast", "f32", args, "byte")
        if v.op == "mul" and v.type == "f32" and args[1].op == "const":
            found = scaled_byte(args[0])
            if found is not None and _ordinary(found[1]) and _ordinary(args[1].attr):
                factor = float(np.float32(found[1] * args[1].attr))
                return Value("mul", "f32", (found[0], Value("const", "f32", (), factor)))
        if v.op == "cast" and v.attr == "in_range":
            whole = _saturated(args[0])
            if whole is not None:
                found = scaled_byte(whole)
                if found is not None and found[1] == 1.0:
                    return found[0].args[0]
                return Value("byte", "s32", (whole,))
        return None

    rewriter = _Rewriter(shorter)
    body = rewriter.block(program.body)
    result = tuple(map(rewriter.value, program.result))
    return make_program(
        program.name, program.args, program.out, program.params, body, result, program.rank
    )


class _Rewriter:
    """Copies blocks; ``shorter`` may put a new value, or one written before, in a value's place."""

    def __init__(self, shorter: Callable[[Value, tuple[Value, ...]], Value | None]) -> None:
        self._shorter = shorter
        self._became: dict[int, Value] = {}
        self._written: set[int] = set()

    def value(self, v: Value) -> Value:
        """What a value became; constants stand in no block and stay."""
        return self._became.get(id(v), v)

    def block(self, source: Block) -> Block:
        """The copy of a block."""
        done: list[Statement] = []
        for s in source.body:
            if isinstance(s, Value):
                args = tuple(map(self.value, s.args))
                found = self._shorter(s, args) or Value(s.op, s.type, args, s.attr)
                self._became[id(s)] = found
                if id(found) not in self._written:
                    self._written.add(id(found))
                    done.append(found)
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
    """Whether a product with another such constant neither overflows nor vanishes."""
    return 1e-12 < abs(factor) < 1e12


def _saturated(v: Value) -> Value | None:
    """The f32 that is taken into 0..255 and rounded, if that is what a value is."""
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
