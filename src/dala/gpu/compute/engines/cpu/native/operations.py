"""Arithmetic of native code: what each operator and conversion writes.

Whole numbers wrap. ``//`` and ``%`` round down as Python's do, and give 0 where the divisor is 0;
shifts take the amount modulo the width: nothing in the data can trap. Operands have one type:
constants take the other operand's, scalars spread over vectors, all else is an explicit conversion.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from typing import Any, Final, NoReturn

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

_PYTHON: Final[dict[type, Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.LShift: operator.lshift, ast.RShift: operator.rshift, ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_, ast.BitXor: operator.xor, ast.Pow: operator.pow,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
_UNARY: Final[dict[type, Callable[[Any], Any]]] = {
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


class OperationWriter:
    """Writes operations into a function."""

    f: FunctionText
    fast: bool

    def fail(self, problem: str, advice: str = "") -> NoReturn:
        """Raises with the place that is being compiled."""
        raise NotImplementedError

    # operands ---------------------------------------------------------------------------------
    def literal(self, number: Any, kind: Type) -> Operand:
        """A constant as a value of a type, which must be able to hold it."""
        scalar = kind.scalar
        if scalar.floating:
            text = constant(float(number), scalar.llvm)
        elif isinstance(number, float):
            self.fail(f"{number!r} is no {scalar}", f"Write {scalar}(...) where it is meant.")
        elif scalar is BOOL:
            if not isinstance(number, bool):
                self.fail(f"{number!r} is no bool", "Compare, or write True or False.")
            text = "true" if number else "false"
        else:
            low, high = _range(scalar)
            if not low <= int(number) <= high:
                self.fail(f"{number} does not fit {scalar}", f"{scalar}({number}) wraps it.")
            text = constant(int(number), f"i{scalar.bits}")
        if kind.lanes == 1:
            return Operand(kind, text)
        each = ", ".join([f"{scalar.llvm} {text}"] * kind.lanes)
        return Operand(kind, f"<{each}>")

    def value(self, term: Term, kind: Type | None = None) -> Operand:
        """A term as a value; a bare number becomes ``kind``, or i64 where none is known."""
        if isinstance(term, Operand):
            return term
        if not is_number(term):
            self.fail(f"a number is needed here, not {describe(term)}")
        if kind is None:
            if isinstance(term, float):
                self.fail(
                    f"the type of {term!r} is not known here",
                    f"Write f32({term!r}) or f64({term!r}).",
                )
            kind = BOOL if isinstance(term, bool) else I64
        return self.literal(term, kind)

    def spread(self, v: Operand, lanes: int) -> Operand:
        """A scalar in every lane of a vector."""
        if v.type.lanes == lanes:
            return v
        if v.type.lanes != 1:
            self.fail(f"vectors of {v.type.lanes} and {lanes} lanes do not go together")
        wide = v.type.wide(lanes)
        one = self.f.let(f"insertelement {wide.llvm} poison, {v.type.llvm} {v.name}, i64 0")
        mask = f"<{lanes} x i32> zeroinitializer"
        every = self.f.let(f"shufflevector {wide.llvm} {one}, {wide.llvm} poison, {mask}")
        return Operand(wide, every)

    def alike(self, *terms: Term, what: str = "these") -> list[Operand]:
        """Values of one type: constants follow the others, scalars spread over vectors."""
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
            self.spread(t, lanes) if isinstance(t, Operand) else self.value(t, scalar.wide(lanes))
            for t in terms
        ]

    def index(self, term: Term) -> str:
        """A whole number as an i64 operand."""
        v = self.value(term)
        if not v.type.integer or v.type.lanes != 1:
            self.fail(f"a whole number is needed here, not {v.type}")
        return self.convert(v, I64).name

    # operators --------------------------------------------------------------------------------
    def binary(self, op: ast.operator, a: Term, b: Term) -> Term:
        """An arithmetic or bitwise operator."""
        kind = type(op)
        if is_number(a) and is_number(b):
            return self.fold(kind, a, b)
        sign = _SIGNS.get(kind, kind.__name__)
        x, y = self.alike(a, b, what=f"'{sign}'")
        t = x.type
        if kind in _PLAIN:
            if t.scalar is BOOL:
                self.fail(f"'{sign}' of bools", "Convert: i32(a) + i32(b).")
            return self._write(("f" if t.floating else "") + _PLAIN[kind], x, y)
        if kind is ast.Div:
            if not t.floating:
                self.fail(f"'/' divides floats, not {t}", "Write // for whole numbers.")
            return self._write("fdiv", x, y)
        if t.floating:
            self.fail(f"'{sign}' is not for {t}")
        if kind in _BITWISE:
            return self._write(_BITWISE[kind], x, y)
        if not t.integer:
            self.fail(f"'{sign}' is not for {t}")
        if kind in (ast.FloorDiv, ast.Mod):
            return self._divide(kind is ast.Mod, x, y, b)
        if kind in (ast.LShift, ast.RShift):
            if not is_number(b) or not 0 <= b < t.bits:
                y = self._write("and", y, self.literal(t.bits - 1, t))
            right = "ashr" if t.signed else "lshr"
            return self._write("shl" if kind is ast.LShift else right, x, y)
        self.fail(f"'{sign}' is not part of native code", "power(a, b) raises to a power.")

    def fold(self, kind: type, a: Any, b: Any) -> Any:
        """An operator on two constants: Python's own result."""
        try:
            return _PYTHON[kind](a, b)
        except (ArithmeticError, TypeError, ValueError, KeyError) as error:
            self.fail(f"this constant cannot be computed: {error}")

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
        """``-a``, ``+a``, ``~a`` and ``not a``."""
        if isinstance(op, ast.Not):
            if not isinstance(a, Operand):
                return not a
            v = self.truth(a)
            return self._write("xor", v, self.literal(True, v.type))
        if is_number(a):
            return _UNARY[type(op)](a)
        v = self.value(a)
        if isinstance(op, ast.UAdd):
            return v
        if isinstance(op, ast.Invert):
            if v.type.floating:
                self.fail(f"'~' is not for {v.type}")
            ones = True if v.type.bits == 1 else -1 if v.type.signed else _range(v.type)[1]
            return self._write("xor", v, self.literal(ones, v.type))
        if v.type.floating:
            return Operand(v.type, self.f.let(f"fneg {v.type.llvm} {v.name}"))
        return self._write("sub", self.literal(0, v.type), v)

    def compare(self, op: ast.cmpop, a: Term, b: Term) -> Any:
        """A comparison: false for NaN, but for ``!=``."""
        if type(op) not in _RULES:
            self.fail("only == != < <= > >= compare here")
        if not isinstance(a, Operand) and not isinstance(b, Operand):
            return _PYTHON[type(op)](a, b)
        x, y = self.alike(a, b, what="the comparison")
        signed, unsigned, floating = _RULES[type(op)]
        rule = floating if x.type.floating else signed if x.type.signed else unsigned
        word = "fcmp" if x.type.floating else "icmp"
        name = self.f.let(f"{word} {rule} {x.type.llvm} {x.name}, {y.name}")
        return Operand(BOOL.wide(x.type.lanes), name)

    def truth(self, term: Term) -> Operand:
        """A term as a condition, which must be a bool."""
        v = self.value(term)
        if v.type.scalar is not BOOL and v.type.scalar != BOOL:
            self.fail(f"a condition must be a bool, not {v.type}", "Compare: x != 0.")
        return v

    def choose(self, condition: Term, yes: Term, no: Term) -> Operand:
        """A select, lane by lane where the condition is a vector."""
        c = self.truth(condition)
        x, y = self.alike(yes, no, what="the choice")
        if c.type.lanes > 1:
            x, y = self.spread(x, c.type.lanes), self.spread(y, c.type.lanes)
        t = x.type.llvm
        name = self.f.let(f"select {c.type.llvm} {c.name}, {t} {x.name}, {t} {y.name}")
        return Operand(x.type, name)

    # conversions ------------------------------------------------------------------------------
    def convert(self, term: Term, target: Type, *, fits: bool = False) -> Operand:
        """A conversion: whole numbers wrap, floats are cut and saturate unless they surely fit."""
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

    def _convert_number(self, number: Any, target: Type) -> Operand:
        if target.floating:
            return self.literal(number, target)
        if target == BOOL:
            return self.literal(bool(number), target)
        if isinstance(number, float) and not math.isfinite(number):
            self.fail(f"{number!r} is no {target}")
        low, _ = _range(target)
        return self.literal(((int(number) - low) & ((1 << target.bits) - 1)) + low, target)

    def clamp_convert(self, term: Term, target: Type) -> Operand:
        """A conversion of whole numbers that saturates; of floats, as :meth:`convert`."""
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
        """An intrinsic whose arguments and result have one type."""
        t = args[0].type
        full = self.f.module.intrinsic(f"{name}.{t.suffix}", t.llvm, *[t.llvm] * len(args))
        given = ", ".join(f"{t.llvm} {a.name}" for a in args)
        fast = FAST if flags and self.fast else ""
        return Operand(t, self.f.let(f"call {fast}{t.llvm} {full}({given})"))

    def mathematics(self, op: str, *args: Operand) -> Operand:
        """A function of the maths library, lane by lane."""
        t = args[0].type
        if op not in FUNCTIONS or not t.floating:
            self.fail(f"{op} is for floats, not {t}")
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
    """A term in words, for messages."""
    if isinstance(term, Operand):
        return f"a value ({term.type})"
    if isinstance(term, Span):
        return f"an array of {term.element}"
    if isinstance(term, Type):
        return f"the type {term}"
    return f"{type(term).__name__} {term!r}"
