"""Build IR from terms: promote types, fold constants, apply operations to vectors.

A *term* is the result of an expression of the language: an IR value, a literal (a Python number
without a type yet), a :class:`Vec` of two to four of those, or a :class:`Compound` of terms.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NoReturn, TypeAlias

from dala.budget import check_deadline
from dala.gpu.compute.lang.ir import (
    FLOATS,
    INTS,
    Attr,
    Block,
    SetSlot,
    Slot,
    Statement,
    Type,
    Value,
)
from dala.gpu.compute.lang.limits import MAX_VALUES
from dala.gpu.compute.lang.scalars import RANGES, as_float, join, literal_type

Number: TypeAlias = int | float | bool
Scalar: TypeAlias = Value | Number


@dataclass(frozen=True, eq=False)
class Vec:
    """A vector of two to four numbers."""

    items: tuple[Scalar, ...]
    #: The terms of a tuple that was written with vectors in it; unpacking gives them back.
    parts: tuple[Term, ...] = ()


@dataclass(frozen=True, eq=False)
class Compound:
    """Several terms: the columns of a matrix, the items of a list or the members of a tuple."""

    kind: Literal["matrix", "list", "tuple"]
    parts: tuple[Term, ...]


Term: TypeAlias = Scalar | Vec | Compound


class Refused(Exception):
    """An error in a kernel, found while building IR; the front end adds the line."""

    def __init__(self, problem: str, advice: str = "", limit: int | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.advice = advice
        #: The limit that the kernel exceeds, if it is that.
        self.limit = limit


def refuse(problem: str, advice: str = "") -> NoReturn:
    """Raise :class:`Refused`."""
    raise Refused(problem, advice)


def type_of(term: Scalar) -> Type:
    """Return the type of a scalar term."""
    return term.type if isinstance(term, Value) else literal_type(term)


def describe(term: object) -> str:
    """Return a description of a term for an error message."""
    if isinstance(term, Vec):
        return f"a vector of {len(term.items)}"
    if isinstance(term, Compound):
        size = len(term.parts)
        if term.kind == "matrix":
            return f"a {size}x{len(components(term.parts[:1]))} matrix"
        return f"a {term.kind} of {size}"
    if isinstance(term, Value):
        return f"a value of type {term.type}"
    return repr(term)


def floor(x: float) -> float:
    """Return the floor as engines compute it: infinities, NaN and -0.0 stay themselves."""
    return float(math.floor(x)) if math.isfinite(x) and x != 0 else x


def _idiv(a: float, b: float) -> float:
    return a // b if isinstance(a, int) and isinstance(b, int) else floor(a / b)


def _mod(a: float, b: float) -> float:
    # Engines compute floats this way, which differs from Python's % where b is infinite.
    return a % b if isinstance(a, int) and isinstance(b, int) else a - b * floor(a / b)


_COMPARE: Final = ("eq", "ne", "lt", "le", "gt", "ge")
#: Functions that fold operations on constants.
FOLD: Final[dict[str, Callable[[float, float], float]]] = {
    **{name: getattr(operator, name) for name in ("add", "sub", "mul", *_COMPARE)},
    "div": operator.truediv, "idiv": _idiv, "mod": _mod,
    "min": lambda a, b: b if b < a or b != b else a,
    "max": lambda a, b: b if a < b or b != b else a,
}  # fmt: skip
#: The same for functions of floats.
_FOLD_REAL: Final[dict[str, Callable[..., float]]] = {
    name: getattr(math, name)
    for name in ("sqrt", "exp", "log", "sin", "cos", "tan", "atan", "atan2")
}
_BITS: Final[dict[str, Callable[[int, int], int]]] = {
    name: getattr(operator, f"{name}_" if name != "xor" else name) for name in ("and", "or", "xor")
}


class Builder:
    """Appends operations to the current block of IR."""

    def __init__(self) -> None:
        self.block = Block()
        self.count = 0

    def append(self, statement: Statement) -> None:
        """Append a statement to the current block."""
        check_deadline("a kernel's text")
        self.count += 1
        if self.count > MAX_VALUES:
            raise Refused(
                f"the kernel has more than {MAX_VALUES:,} operations, with helpers inlined",
                "Split it into several kernels, or use loops instead of repeated calls.",
                limit=MAX_VALUES,
            )
        self.block.body.append(statement)

    def emit(self, op: str, type: Type, *args: Value, attr: Attr = None) -> Value:
        """Append one operation and return its value."""
        value = Value(op, type, args, attr)
        self.append(value)
        return value

    # types ------------------------------------------------------------------------------------
    def convert(self, term: Scalar, type: Type) -> Value:
        """Convert a term to a value of a type: literals become constants, values are cast."""
        if isinstance(term, Value):
            if term.type == type:
                return term
            if term.op == "const":
                return self._constant(term.attr, type)
            return self.emit("cast", type, term)
        return self._constant(term, type)

    def _constant(self, number: int | float | bool, type: Type) -> Value:
        if type == "bool":
            return Value("const", "bool", attr=bool(number))
        if type in FLOATS:
            return Value("const", type, attr=float(number))
        if isinstance(number, float):
            if not math.isfinite(number):
                refuse(f"{number} cannot be an integer", "Use a float, or test for it first.")
            number = int(number)
        low, high = RANGES[type]
        if not low <= number <= high:
            refuse(
                f"{int(number)} does not fit in {type} ({low} to {high})",
                "Cast the other side to a wider type, for example s64(x) or u32(x).",
            )
        return Value("const", type, attr=int(number))

    def value(self, term: Scalar) -> Value:
        """Convert a term to a value of its own type."""
        return self.convert(term, type_of(term))

    def common(self, *terms: Scalar) -> Type:
        """Return the common type of the terms."""
        found: Type | None = None
        for t in terms:
            if isinstance(t, Value):
                found = t.type if found is None else join(found, t.type)
        for t in terms:
            if not isinstance(t, Value):
                here = literal_type(t, found)
                found = here if found is None else join(found, here)
        assert found is not None
        return found

    def lift(self, function: Callable[..., Scalar], *terms: Term) -> Term:
        """Apply a scalar function to the terms; componentwise if one is a vector or a matrix."""
        if any(isinstance(t, Compound) for t in terms):
            return self._lift_columns(function, *terms)
        sizes = {len(t.items) for t in terms if isinstance(t, Vec)}
        if not sizes:
            return function(*terms)
        if len(sizes) > 1:
            found = " and ".join(str(s) for s in sorted(sizes))
            refuse(
                f"vectors have different sizes: {found}",
                "Use the same components of both, for example px.rgb.",
            )
        size = sizes.pop()
        rows = [t.items if isinstance(t, Vec) else (t,) * size for t in terms]
        return Vec(tuple(function(*column) for column in zip(*rows, strict=True)))

    def _lift_columns(self, function: Callable[..., Scalar], *terms: Term) -> Term:
        records = [t for t in terms if isinstance(t, Compound)]
        other: Term | None = next((t for t in records if t.kind != "matrix"), None)
        other = other or next((t for t in terms if isinstance(t, Vec)), None)
        size = len(records[0].parts)
        other = other or next((t for t in records if len(t.parts) != size), None)
        if other is not None:
            refuse(
                f"this takes numbers, vectors or matrices of one size, got {describe(other)}",
                "Read one of its items: a[i].",
            )
        rows = [t.parts if isinstance(t, Compound) else (t,) * size for t in terms]
        return Compound(
            "matrix", tuple(self.lift(function, *row) for row in zip(*rows, strict=True))
        )

    # operations -------------------------------------------------------------------------------
    def binary(self, op: str, a: Scalar, b: Scalar) -> Scalar:
        """Emit an arithmetic, bit, min/max or comparison operation of two scalars."""
        if not isinstance(a, Value) and not isinstance(b, Value):
            return self._fold(op, a, b)
        type_ = self.common(a, b)
        if op == "div":
            type_ = as_float(type_)
        elif type_ == "bool" and op not in _BITS and op not in ("eq", "ne"):
            type_ = "s32"
        if op in _BITS and type_ in FLOATS:
            refuse(
                "bit operations require integers",
                "Cast with int(x); for conditions write 'and', 'or', 'not'.",
            )
        x, y = self.convert(a, type_), self.convert(b, type_)
        if op in ("idiv", "mod") and type_ in FLOATS:
            whole = self.emit("floor", type_, self.emit("div", type_, x, y))
            if op == "idiv":
                return whole
            return self.emit("sub", type_, x, self.emit("mul", type_, y, whole))
        return self.emit(op, "bool" if op in _COMPARE else type_, x, y)

    def _fold(self, op: str, a: Number, b: Number) -> Scalar:
        if op in _BITS:
            if isinstance(a, float) or isinstance(b, float):
                refuse("bit operations require integers", "Cast with int(x).")
            return self.checked(_BITS[op](a, b))
        try:
            result = FOLD[op](a, b)
        except ZeroDivisionError:
            refuse("this divides by zero", "Change the constant.")
        except OverflowError:
            refuse("this constant is too large", "Write a smaller number.")
        return self.checked(result)

    @staticmethod
    def checked(result: object) -> Number:
        """Return a constant; raise if it does not fit in 64 bits."""
        if isinstance(result, complex):
            refuse("this constant is not a real number", "Change the constant.")
        if isinstance(result, int) and not -(2**63) <= result < 2**64:
            refuse("this constant does not fit in 64 bits", "Write a float, such as 1e20.")
        assert isinstance(result, bool | int | float)
        return result

    def shift(self, op: str, a: Scalar, b: Scalar) -> Scalar:
        """Emit ``a << b`` or ``a >> b``; the result has the type of a."""
        if not isinstance(a, Value) and not isinstance(b, Value):
            if not isinstance(a, int) or not isinstance(b, int) or not 0 <= b < 64:
                refuse(
                    "shifts require an integer and an amount from 0 to 63", "Change the constant."
                )
            return self.checked(a << b if op == "shl" else a >> b)
        if type_of(a) in FLOATS or type_of(b) in FLOATS:
            refuse("shifts require integers", "Cast with int(x).")
        type_ = type_of(a) if type_of(a) != "bool" else "s32"
        return self.emit(op, type_, self.convert(a, type_), self.convert(b, type_))

    def negate(self, a: Scalar) -> Scalar:
        """Emit ``-a``."""
        if not isinstance(a, Value):
            return self.checked(-a)
        type_: Type = "s32" if a.type == "bool" else a.type
        return self.emit("neg", type_, self.convert(a, type_))

    def invert(self, a: Scalar) -> Scalar:
        """Emit ``~a``."""
        if type_of(a) in FLOATS:
            refuse("~ requires an integer", "Cast with int(x).")
        if not isinstance(a, Value):
            return self.checked(~int(a))
        type_: Type = "s32" if a.type == "bool" else a.type
        return self.emit("not", type_, self.convert(a, type_))

    def truth(self, a: Term) -> Value:
        """Convert a term to a condition."""
        if isinstance(a, Vec | Compound):
            what = "a vector" if isinstance(a, Vec) else describe(a)
            refuse(
                f"{what} cannot be a condition",
                "Compare one component (px.r > 0.5), or a length; or write any(...) or all(...).",
            )
        if not isinstance(a, Value):
            return Value("const", "bool", attr=bool(a))
        if a.type == "bool":
            return a
        return self.emit("ne", "bool", a, self.convert(0, a.type))

    def logical(self, op: str, a: Term, b: Term) -> Value:
        """Emit ``a and b`` or ``a or b``."""
        return self.emit(op, "bool", self.truth(a), self.truth(b))

    def negation(self, a: Term) -> Scalar:
        """Emit ``not a``."""
        x = self.truth(a)
        if x.op == "const":
            return not x.attr
        return self.emit("not", "bool", x)

    def select(self, condition: Term, a: Term, b: Term) -> Term:
        """Emit ``a if condition else b``; one condition selects whole vectors."""
        if isinstance(condition, Vec):  # a condition for each component
            return self.lift(lambda c, x, y: scalar(self.select(c, x, y)), condition, a, b)
        c = self.truth(condition)
        if isinstance(a, Compound) and isinstance(b, Compound):
            if (a.kind, len(a.parts)) != (b.kind, len(b.parts)):
                refuse(f"this chooses between {describe(a)} and {describe(b)}")
            return Compound(a.kind, self._parts(c, a.parts, b.parts))
        if isinstance(a, Vec) and isinstance(b, Vec) and len(a.parts) == len(b.parts) > 0:
            parts = self._parts(c, a.parts, b.parts)
            return Vec(tuple(components(parts)), parts)

        def one(x: Scalar, y: Scalar) -> Scalar:
            type_ = self.common(x, y)
            if c.op == "const":
                return self.convert(x if c.attr else y, type_)
            return self.emit("select", type_, c, self.convert(x, type_), self.convert(y, type_))

        return self.lift(one, a, b)

    def _parts(self, c: Value, a: Sequence[Term], b: Sequence[Term]) -> tuple[Term, ...]:
        return tuple(self.select(c, x, y) for x, y in zip(a, b, strict=True))

    def real(self, op: str, *terms: Scalar) -> Scalar:
        """Emit a float function of scalars; integers are converted first.

        A function of literals is a literal. It has no type yet, so it must not be computed in f32.
        """
        numbers = [t for t in terms if not isinstance(t, Value)]
        if len(numbers) == len(terms):
            try:
                return _FOLD_REAL[op](*numbers)
            except (ValueError, OverflowError, ZeroDivisionError):
                refuse(f"{op} has no finite value here", "Change the constant.")
        type_ = as_float(self.common(*terms))
        return self.emit(op, type_, *(self.convert(t, type_) for t in terms))

    def power(self, a: Scalar, b: Scalar) -> Scalar:
        """Emit ``a ** b``: products for small integer exponents, else ``pow``."""
        if not isinstance(a, Value) and not isinstance(b, Value):
            if abs(a) > 1 and abs(b) * math.log2(abs(a)) > 1023:
                refuse("this constant is too large", "Write a smaller number.")
            try:
                return self.checked(a**b)
            except (ZeroDivisionError, OverflowError):
                refuse("this power has no finite value", "Change the constant.")
        if not isinstance(b, Value) and float(b).is_integer() and abs(b) <= 16:
            n = int(b)
            if n < 0:
                return self.binary("div", 1.0, self._product(a, -n))
            if isinstance(b, float) and type_of(a) in INTS:
                a = self.convert(a, as_float(type_of(a)))
            return self._product(a, n)
        if type_of(a) in INTS and type_of(b) in INTS:
            refuse(
                "a power of integers requires a constant exponent of at most 16",
                "Make one of them a float: float(a) ** b.",
            )
        return self.real("pow", a, b)

    def _product(self, a: Scalar, n: int) -> Scalar:
        # By repeated squaring: x ** 8 takes three multiplications.
        result: Scalar | None = None
        while n:
            if n & 1:
                result = a if result is None else self.binary("mul", result, a)
            n >>= 1
            if n:
                a = self.binary("mul", a, a)
        return self.convert(1, type_of(a)) if result is None else result

    def index(self, term: Scalar) -> Value:
        """Convert an integer to s32 for an index or a loop bound, clamped to its range."""
        low, high = RANGES["s32"]
        if not isinstance(term, Value):
            return self.convert(min(max(int(term), low), high), "s32")
        if term.type in ("u32", "s64"):
            term = self.emit("min", term.type, term, self.convert(high, term.type))
        if term.type == "s64":
            term = self.emit("max", term.type, term, self.convert(low, term.type))
        return self.convert(term, "s32")

    # slots ------------------------------------------------------------------------------------
    def get(self, slot: Slot) -> Value:
        """Read a slot."""
        return self.emit("get", slot.type, attr=slot)

    def set(self, slot: Slot, term: Scalar) -> None:
        """Write a slot, converted to its type."""
        self.append(SetSlot(slot, self.convert(term, slot.type)))

    def to_u8(self, term: Scalar) -> Value:
        """Convert a number to 0..255 as s32: clamped, floats rounded half up; NaN becomes 0."""
        v = self.value(term)
        if v.type == "bool":
            return self.convert(v, "s32")
        zero, top = self.convert(0, v.type), self.convert(255, v.type)
        if v.type != "u32":
            v = self.emit("select", v.type, self.emit("gt", "bool", v, zero), v, zero)
        v = self.emit("select", v.type, self.emit("lt", "bool", v, top), v, top)
        if v.type in FLOATS:
            half = self.emit("add", v.type, v, self.convert(0.5, v.type))
            return self.emit("cast", "s32", half, attr="in_range")
        return self.convert(v, "s32")


def scalar(term: Term) -> Scalar:
    """Return a term that is one number; refuse others."""
    if isinstance(term, Vec | Compound):
        refuse(f"this takes one number, got {describe(term)}", "Take one component: v.x.")
    return term


def components(terms: Sequence[Term]) -> list[Scalar]:
    """Return the scalars of the terms, with vectors, matrices and tuples split into numbers."""
    found: list[Scalar] = []
    for t in terms:
        if isinstance(t, Compound):
            found.extend(components(t.parts))
        else:
            found.extend(t.items if isinstance(t, Vec) else (t,))
    return found
