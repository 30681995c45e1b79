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
from dala.gpu.compute.engines.cpu.native.types import Span, Term, is_number
from dala.gpu.compute.engines.cpu.vector.types import BOOL, F64, I64, Operand, Type
from dala.gpu.compute.engines.cpu.vector.writer import ValueWriter

#: Operators: how they are written, what Python computes for constants, and the operation.
_OPERATORS: Final[dict[type, tuple[str, Callable[[Term, Term], Term], str]]] = {
    ast.Add: ("+", operator.add, "add"), ast.Sub: ("-", operator.sub, "sub"),
    ast.Mult: ("*", operator.mul, "mul"), ast.Div: ("/", operator.truediv, "div"),
    ast.FloorDiv: ("//", operator.floordiv, "quotient"), ast.Mod: ("%", operator.mod, "rest"),
    ast.LShift: ("<<", operator.lshift, "shl"), ast.RShift: (">>", operator.rshift, "shr"),
    ast.BitAnd: ("&", operator.and_, "and"), ast.BitOr: ("|", operator.or_, "or"),
    ast.BitXor: ("^", operator.xor, "xor"), ast.Pow: ("**", operator.pow, "power"),
    ast.Eq: ("==", operator.eq, "eq"), ast.NotEq: ("!=", operator.ne, "ne"),
    ast.Lt: ("<", operator.lt, "lt"), ast.LtE: ("<=", operator.le, "le"),
    ast.Gt: (">", operator.gt, "gt"), ast.GtE: (">=", operator.ge, "ge"),
    ast.MatMult: ("MatMult", operator.matmul, "matmul"),
}  # fmt: skip
_UNARY: Final[dict[type, Callable[[Term], Term]]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert,
}  # fmt: skip


class ArithmeticWriter(ValueWriter, ABC):
    """Checks the operands of native code, and emits operations on them."""

    products: dict[str, tuple[Operand, Operand]]

    @abstractmethod
    def fail(self, problem: str, advice: str = "") -> NoReturn:
        """Raise KernelSyntaxError at the current node."""

    # operands ---------------------------------------------------------------------------------
    def literal(self, number: float, kind: Type) -> Operand:
        """Return a constant as an operand of a type that holds it exactly."""
        scalar = kind.scalar
        if isinstance(number, float) and not scalar.floating:
            self.fail(f"{number!r} is not a {scalar}", f"Convert it: {scalar}(...).")
        if scalar is BOOL and not isinstance(number, bool):
            self.fail(f"{number!r} is not a bool", "Use a comparison, True or False.")
        if scalar.integer and not scalar.range[0] <= int(number) <= scalar.range[1]:
            self.fail(f"{number} does not fit {scalar}", f"Wrap it: {scalar}({number}).")
        return self.number(number, kind)

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
        return self.splat(v, lanes)

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
        sign, python, rule = _OPERATORS[type(op)]
        if is_number(a) and is_number(b):
            try:
                return python(a, b)
            except (ArithmeticError, TypeError, ValueError) as error:
                self.fail(f"cannot compute this constant: {error}")
        x, y = self.same_type(a, b, what=f"'{sign}'")
        t = x.type
        if rule in ("add", "sub", "mul"):
            if t.scalar is BOOL:
                self.fail(f"'{sign}' does not take bools", "Convert them: i32(a) + i32(b).")
            if t.floating and self.flags:
                return self._fuse(rule, x, y)
            return self.arithmetic(rule, x, y)
        if rule == "div":
            if not t.floating:
                self.fail(f"'/' takes floats, got {t}", "Use // for integers.")
            return self.arithmetic(rule, x, y)
        if t.floating:
            self.fail(f"'{sign}' does not take {t}")
        if rule in ("and", "or", "xor"):
            return self.write(rule, x, y)
        if not t.integer:
            self.fail(f"'{sign}' does not take {t}")
        known = b if is_number(b) else None
        if rule in ("quotient", "rest"):
            return self.divide(x, y, rest=rule == "rest", known=known)
        if rule in ("shl", "shr"):
            return self.shift(rule, x, y, known)
        self.fail(f"'{sign}' is not supported in native code", "Multiply instead of taking powers.")

    def _fuse(self, rule: str, x: Operand, y: Operand) -> Operand:
        """Emit an operator on floats, fused if an operand is a product, first of all the second.

        Which product is fused is decided here: LLVM's choice depends on the width of vectors.
        """
        made = self.products
        if rule != "mul" and y.name in made:
            a, b = made[y.name]
            return self.intrinsic("fmuladd", self.negated(a) if rule == "sub" else a, b, x)
        if rule != "mul" and x.name in made:
            return self.intrinsic("fmuladd", *made[x.name], self.negated(y) if rule == "sub" else y)
        found = self.arithmetic(rule, x, y)
        if rule == "mul":
            made[found.name] = x, y
        return found

    def unary(self, op: ast.unaryop, a: Term) -> Term:
        """Emit ``-a``, ``+a``, ``~a`` or ``not a``."""
        if isinstance(op, ast.Not):
            if not isinstance(a, Operand):
                return not a
            return self.inverted(self.condition(a))
        if is_number(a):
            return _UNARY[type(op)](a)
        v = self.value(a)
        if isinstance(op, ast.UAdd):
            return v
        if isinstance(op, ast.Invert):
            if v.type.floating:
                self.fail(f"'~' does not take {v.type}")
            return self.inverted(v)
        return self.negated(v)

    def compare(self, op: ast.cmpop, a: Term, b: Term) -> Term:
        """Emit a comparison. With NaN, only ``!=`` is true."""
        if type(op) not in _OPERATORS:
            self.fail("only ==, !=, <, <=, > and >= are supported")
        _, python, rule = _OPERATORS[type(op)]
        if not isinstance(a, Operand) and not isinstance(b, Operand):
            return python(a, b)
        x, y = self.same_type(a, b, what="the comparison")
        return self.comparison(rule, x, y)

    def condition(self, term: Term) -> Operand:
        """Return a term as a condition, which must be a bool."""
        v = self.value(term)
        if v.type.scalar != BOOL:
            self.fail(f"a condition must be a bool, got {v.type}", "Compare it: x != 0.")
        return v

    def choose(self, condition: Term, yes: Term, no: Term) -> Operand:
        """Emit a select; lane by lane if the condition is a vector."""
        c = self.condition(condition)
        x, y = self.same_type(yes, no, what="the choice")
        if c.type.lanes > 1:
            x, y = self.broadcast(x, c.type.lanes), self.broadcast(y, c.type.lanes)
        return self.select(c, x, y)

    # conversions ------------------------------------------------------------------------------
    def convert(self, v: Term, target: Type, *, fits: bool = False) -> Operand:
        """Emit a conversion. Integers wrap; floats are truncated, and clamped unless ``fits``."""
        if not is_number(v):
            return super().convert(self.value(v), target, fits=fits)
        if target == BOOL:
            return self.literal(bool(v), target)
        if target.floating:
            return self.literal(v, target)
        if isinstance(v, float) and not math.isfinite(v):
            self.fail(f"{v!r} cannot be converted to {target}")
        return self.number(int(v), target)

    # functions --------------------------------------------------------------------------------
    def math_function(self, op: str, *args: Operand) -> Operand:
        """Emit a math function, lane by lane."""
        t = args[0].type
        if op not in FUNCTIONS or not t.floating:
            self.fail(f"{op} takes floats, got {t}")
        name = math_function(self.f.module, op, t.scalar.name)
        if t.lanes == 1:
            return Operand(t, self.invoke(name, t, *args))
        result = "poison"
        for lane in range(t.lanes):
            parts = [self.lane(a, str(lane)) for a in args]
            one = self.invoke(name, t.scalar, *parts)
            result = self.let(f"insertelement {t.llvm} {result}, {t.scalar.llvm} {one}, i64 {lane}")
        return Operand(t, result)

    def lane(self, v: Operand, at: str) -> Operand:
        """Return one lane of a vector."""
        return Operand(v.type.scalar, self.let(f"extractelement {v.type.llvm} {v.name}, i64 {at}"))


def describe(term: Term) -> str:
    """Return a description of a term for messages."""
    if isinstance(term, Operand):
        return f"a value ({term.type})"
    if isinstance(term, Span):
        return f"an array of {term.element}" if term.record is None else term.record.__name__
    if isinstance(term, Type):
        return f"the type {term}"
    return f"{type(term).__name__} {term!r}"
