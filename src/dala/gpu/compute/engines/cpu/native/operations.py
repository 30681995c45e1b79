"""Operators and conversions of native code.

No operation traps: integers wrap, ``//`` and ``%`` round down as in Python but return 0 for a
divisor of 0, and shifts take the amount modulo the width. Operands must have the same type:
constants take the type of the other operand, scalars are broadcast to vectors, and everything else
needs an explicit conversion.
"""

from __future__ import annotations

import ast
import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final, NoReturn

from dala.gpu.compute.engines.cpu.llvm.math import FUNCTIONS, math_function
from dala.gpu.compute.engines.cpu.llvm.text import FunctionText, constant
from dala.gpu.compute.engines.cpu.native.types import (
    BOOL,
    F64,
    I64,
    Operand,
    Span,
    Term,
    Type,
    is_number,
)

FAST: Final = "reassoc nsz contract "

_PYTHON: Final[dict[type, Callable[[Term, Term], Term]]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.LShift: operator.lshift, ast.RShift: operator.rshift, ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_, ast.BitXor: operator.xor, ast.Pow: operator.pow,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
_UNARY: Final[dict[type, Callable[[Term], Term]]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert,
}  # fmt: skip
_SIGNS: Final = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
    ast.Pow: "**",
}  # fmt: skip
_PLAIN: Final = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul"}
_BITWISE: Final = {ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor"}
_RULES: Final = {
    ast.Eq: ("eq", "eq", "oeq"), ast.NotEq: ("ne", "ne", "une"), ast.Lt: ("slt", "ult", "olt"),
    ast.LtE: ("sle", "ule", "ole"), ast.Gt: ("sgt", "ugt", "ogt"), ast.GtE: ("sge", "uge", "oge"),
}  # fmt: skip


class ArithmeticWriter(ABC):
    """Emits operations into a function."""

    f: FunctionText
    fast: bool

    @abstractmethod
    def fail(self, problem: str, advice: str = "") -> NoReturn:
        """Raise KernelSyntaxError at the current node."""

    # operands ---------------------------------------------------------------------------------
    def literal(self, number: float, kind: Type) -> Operand:
        """Return a constant as an operand of a type that holds it exactly."""
        scalar = kind.scalar
        if scalar.floating:
            text = constant(float(number), scalar.llvm)
        elif isinstance(number, float):
            self.fail(f"{number!r} is not a {scalar}", f"Convert it: {scalar}(...).")
        elif scalar is BOOL:
            if not isinstance(number, bool):
                self.fail(f"{number!r} is not a bool", "Use a comparison, True or False.")
            text = "true" if number else "false"
        else:
            low, high = _range(scalar)
            if not low <= int(number) <= high:
                self.fail(f"{number} does not fit {scalar}", f"Wrap it: {scalar}({number}).")
            text = constant(int(number), f"i{scalar.bits}")
        if kind.lanes == 1:
            return Operand(kind, text)
        each = ", ".join([f"{scalar.llvm} {text}"] * kind.lanes)
        return Operand(kind, f"<{each}>")

    def value(self, term: Term, kind: Type | None = None) -> Operand:
        """Return a term as an operand. A constant becomes ``kind``, or i64 or bool without one."""
        if isinstance(term, Operand):
            return term
        if not is_number(term):
            self.fail(f"expected a number, got {describe(term)}")
        if kind is None:
            if isinstance(term, float):
                self.fail(
                    f"the type of {term!r} is unknown",
                    f"Use f32({term!r}) or f64({term!r}).",
                )
            kind = BOOL if isinstance(term, bool) else I64
        return self.literal(term, kind)

    def broadcast(self, v: Operand, lanes: int) -> Operand:
        """Return a vector with a scalar in every lane."""
        if v.type.lanes == lanes:
            return v
        if v.type.lanes != 1:
            self.fail(f"cannot combine vectors of {v.type.lanes} and {lanes} lanes")
        wide = v.type.wide(lanes)
        one = self.f.let(f"insertelement {wide.llvm} poison, {v.type.llvm} {v.name}, i64 0")
        mask = f"<{lanes} x i32> zeroinitializer"
        every = self.f.let(f"shufflevector {wide.llvm} {one}, {wide.llvm} poison, {mask}")
        return Operand(wide, every)

    def same_type(self, *terms: Term, what: str = "the expression") -> list[Operand]:
        """Return operands of one type, with constants converted and scalars broadcast."""
        known = [t for t in terms if isinstance(t, Operand)]
        if not known:
            kind = F64 if any(isinstance(t, float) for t in terms) else None
            return [self.value(t, kind) for t in terms]
        lanes = max(k.type.lanes for k in known)
        scalar = known[0].type.scalar
        for k in known:
            if k.type.scalar != scalar:
                self.fail(
                    f"{what} mixes {known[0].type} and {k.type}",
                    f"Convert one of them: {scalar}(...) or {k.type.scalar}(...).",
                )
        return [
            self.broadcast(t, lanes)
            if isinstance(t, Operand)
            else self.value(t, scalar.wide(lanes))
            for t in terms
        ]

    def index(self, term: Term) -> str:
        """Return an integer as an i64 operand."""
        v = self.value(term)
        if not v.type.integer or v.type.lanes != 1:
            self.fail(f"expected an integer, got {v.type}")
        return self.convert(v, I64).name

    # operators --------------------------------------------------------------------------------
    def binary(self, op: ast.operator, a: Term, b: Term) -> Term:
        """Emit an arithmetic or bitwise operator."""
        kind = type(op)
        if is_number(a) and is_number(b):
            return self.fold(kind, a, b)
        sign = _SIGNS.get(kind, kind.__name__)
        x, y = self.same_type(a, b, what=f"'{sign}'")
        t = x.type
        if kind in _PLAIN:
            if t.scalar is BOOL:
                self.fail(f"'{sign}' does not take bools", "Convert them: i32(a) + i32(b).")
            return self._write(("f" if t.floating else "") + _PLAIN[kind], x, y)
        if kind is ast.Div:
            if not t.floating:
                self.fail(f"'/' takes floats, got {t}", "Use // for integers.")
            return self._write("fdiv", x, y)
        if t.floating:
            self.fail(f"'{sign}' does not take {t}")
        if kind in _BITWISE:
            return self._write(_BITWISE[kind], x, y)
        if not t.integer:
            self.fail(f"'{sign}' does not take {t}")
        if kind in (ast.FloorDiv, ast.Mod):
            return self._divide(kind is ast.Mod, x, y, b)
        if kind in (ast.LShift, ast.RShift):
            if not is_number(b) or not 0 <= b < t.bits:
                y = self._write("and", y, self.literal(t.bits - 1, t))
            right = "ashr" if t.signed else "lshr"
            return self._write("shl" if kind is ast.LShift else right, x, y)
        self.fail(f"'{sign}' is not supported in native code", "For powers, use power(a, b).")

    def fold(self, kind: type, a: float, b: float) -> Term:
        """Return the result of an operator on two constants, as Python computes it."""
        try:
            return _PYTHON[kind](a, b)
        except (ArithmeticError, TypeError, ValueError, KeyError) as error:
            self.fail(f"cannot compute this constant: {error}")

    def _write(self, op: str, x: Operand, y: Operand) -> Operand:
        flags = FAST if self.fast and x.type.floating else ""
        return Operand(x.type, self.f.let(f"{op} {flags}{x.type.llvm} {x.name}, {y.name}"))

    def _divide(self, rest: bool, a: Operand, b: Operand, given: Term) -> Operand:
        t = a.type
        safe, zero = b, None
        if not is_number(given) or given == 0:
            zero = self.compare(ast.Eq(), b, 0)
            unsafe = zero
            if t.signed:
                lowest = self.compare(ast.Eq(), a, -(1 << (t.bits - 1)))
                minus = self.compare(ast.Eq(), b, -1)
                unsafe = self._write("or", zero, self._write("and", lowest, minus))
            safe = self.choose(unsafe, self.literal(1, t), b)
        if not t.signed:
            quotient = self._write("udiv", a, safe)
        elif is_number(given) and given > 0 and given & (given - 1) == 0:
            quotient = self._write("ashr", a, self.literal(given.bit_length() - 1, t))
        else:
            quotient = self._write("sdiv", a, safe)
            left = self._write("srem", a, safe)
            apart = self.compare(ast.Lt(), self._write("xor", left, safe), 0)
            below = self._write("and", apart, self.compare(ast.NotEq(), left, 0))
            quotient = self._write("sub", quotient, self.convert(below, t.scalar))
        if rest:
            return self._write("sub", a, self._write("mul", quotient, safe))
        return quotient if zero is None else self.choose(zero, self.literal(0, t), quotient)

    def unary(self, op: ast.unaryop, a: Term) -> Term:
        """Emit ``-a``, ``+a``, ``~a`` or ``not a``."""
        if isinstance(op, ast.Not):
            if not isinstance(a, Operand):
                return not a
            v = self.condition(a)
            return self._write("xor", v, self.literal(True, v.type))
        if is_number(a):
            return _UNARY[type(op)](a)
        v = self.value(a)
        if isinstance(op, ast.UAdd):
            return v
        if isinstance(op, ast.Invert):
            if v.type.floating:
                self.fail(f"'~' does not take {v.type}")
            ones = True if v.type.bits == 1 else -1 if v.type.signed else _range(v.type)[1]
            return self._write("xor", v, self.literal(ones, v.type))
        if v.type.floating:
            return Operand(v.type, self.f.let(f"fneg {v.type.llvm} {v.name}"))
        return self._write("sub", self.literal(0, v.type), v)

    def compare(self, op: ast.cmpop, a: Term, b: Term) -> Term:
        """Emit a comparison. With NaN, only ``!=`` is true."""
        if type(op) not in _RULES:
            self.fail("only ==, !=, <, <=, > and >= are supported")
        if not isinstance(a, Operand) and not isinstance(b, Operand):
            return _PYTHON[type(op)](a, b)
        x, y = self.same_type(a, b, what="the comparison")
        signed, unsigned, floating = _RULES[type(op)]
        rule = floating if x.type.floating else signed if x.type.signed else unsigned
        word = "fcmp" if x.type.floating else "icmp"
        name = self.f.let(f"{word} {rule} {x.type.llvm} {x.name}, {y.name}")
        return Operand(BOOL.wide(x.type.lanes), name)

    def condition(self, term: Term) -> Operand:
        """Return a term as a condition, which must be a bool."""
        v = self.value(term)
        if v.type.scalar is not BOOL and v.type.scalar != BOOL:
            self.fail(f"a condition must be a bool, got {v.type}", "Compare it: x != 0.")
        return v

    def choose(self, condition: Term, yes: Term, no: Term) -> Operand:
        """Emit a select; lane by lane if the condition is a vector."""
        c = self.condition(condition)
        x, y = self.same_type(yes, no, what="the choice")
        if c.type.lanes > 1:
            x, y = self.broadcast(x, c.type.lanes), self.broadcast(y, c.type.lanes)
        t = x.type.llvm
        name = self.f.let(f"select {c.type.llvm} {c.name}, {t} {x.name}, {t} {y.name}")
        return Operand(x.type, name)

    # conversions ------------------------------------------------------------------------------
    def convert(self, term: Term, target: Type, *, fits: bool = False) -> Operand:
        """Emit a conversion. Integers wrap; floats are truncated, and clamped unless ``fits``."""
        if is_number(term):
            return self._convert_number(term, target)
        v = self.value(term)
        source, want = v.type, target.wide(v.type.lanes)
        if source.scalar == target:
            return v
        if target == BOOL:
            result = self.compare(ast.NotEq(), v, 0)
            assert isinstance(result, Operand)
            return result
        letter = "s" if (target if source.floating else source).signed else "u"
        if source.floating and target.floating:
            op = "fpext" if target.bits > source.bits else "fptrunc"
        elif source.floating:
            if not fits:
                name = f"fpto{letter}i.sat.{want.suffix}.{source.suffix}"
                full = self.f.module.intrinsic(name, want.llvm, source.llvm)
                text = f"call {want.llvm} {full}({source.llvm} {v.name})"
                return Operand(want, self.f.let(text))
            op = f"fpto{letter}i"
        elif target.floating:
            op = f"{letter}itofp"
        elif source.bits == target.bits:
            return Operand(want, v.name)
        elif source.bits > target.bits:
            op = "trunc"
        else:
            op = "sext" if source.signed else "zext"
        return Operand(want, self.f.let(f"{op} {source.llvm} {v.name} to {want.llvm}"))

    def _convert_number(self, number: float, target: Type) -> Operand:
        if target.floating:
            return self.literal(number, target)
        if target == BOOL:
            return self.literal(bool(number), target)
        if isinstance(number, float) and not math.isfinite(number):
            self.fail(f"{number!r} cannot be converted to {target}")
        low, _ = _range(target)
        return self.literal(((int(number) - low) & ((1 << target.bits) - 1)) + low, target)

    def clamp_convert(self, term: Term, target: Type) -> Operand:
        """Emit a conversion that clamps integers; floats are converted as by :meth:`convert`."""
        v = self.value(term)
        source = v.type
        if source.floating or not target.integer:
            return self.convert(v, target)
        low, high = _range(target)
        least, most = _range(source)
        if low > least:
            v = self.intrinsic("smax", v, self.literal(low, source))
        if high < most:
            v = self.intrinsic("smin" if source.signed else "umin", v, self.literal(high, source))
        return self.convert(v, target)

    # functions --------------------------------------------------------------------------------
    def intrinsic(self, name: str, *args: Operand, flags: bool = False) -> Operand:
        """Emit an intrinsic whose arguments and result have one type."""
        t = args[0].type
        full = self.f.module.intrinsic(f"{name}.{t.suffix}", t.llvm, *[t.llvm] * len(args))
        given = ", ".join(f"{t.llvm} {a.name}" for a in args)
        fast = FAST if flags and self.fast else ""
        return Operand(t, self.f.let(f"call {fast}{t.llvm} {full}({given})"))

    def math_function(self, op: str, *args: Operand) -> Operand:
        """Emit a math function, lane by lane."""
        t = args[0].type
        if op not in FUNCTIONS or not t.floating:
            self.fail(f"{op} takes floats, got {t}")
        name = math_function(self.f.module, op, t.scalar.name)
        scalar = t.scalar.llvm
        if t.lanes == 1:
            given = ", ".join(f"{scalar} {a.name}" for a in args)
            return Operand(t, self.f.let(f"call {scalar} {name}({given})"))
        result = "poison"
        for lane in range(t.lanes):
            parts = [self.f.let(f"extractelement {t.llvm} {a.name}, i64 {lane}") for a in args]
            one = self.f.let(f"call {scalar} {name}({', '.join(f'{scalar} {p}' for p in parts)})")
            result = self.f.let(f"insertelement {t.llvm} {result}, {scalar} {one}, i64 {lane}")
        return Operand(t, result)


def _range(t: Type) -> tuple[int, int]:
    if t.signed:
        return -(1 << (t.bits - 1)), (1 << (t.bits - 1)) - 1
    return 0, (1 << t.bits) - 1


def describe(term: Term) -> str:
    """Return a description of a term for messages."""
    if isinstance(term, Operand):
        return f"a value ({term.type})"
    if isinstance(term, Span):
        return f"an array of {term.element}"
    if isinstance(term, Type):
        return f"the type {term}"
    return f"{type(term).__name__} {term!r}"
