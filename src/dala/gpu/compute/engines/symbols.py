"""Numbers that remember how they were computed, so that a plan can be exported as formulas.

A plan is made by ordinary Python code from the size of a picture and the parameters of its filters.
Where these are symbols, the numbers of the plan are symbols too: each has a value, with which all
code runs as usual, and an expression. Comparisons have plain results, and are noted as *guards*: a
plan holds for all values for which its guards hold.

Some code takes the value and drops the expression: ``range``, ``struct``, NumPy, and the product of
a float with a symbolic int in this order. So an export compares a plan with plans for other values.

Expressions are numbers, names of symbols, or tuples of an operator and its operands.

>>> trace = Trace()
>>> w = trace.integer("w", 30)
>>> halves = w // 2
>>> int(halves), halves.expr, halves < 16, trace.guards
(15, ('//', 'w', 2), True, [('<', ('//', 'w', 2), 16, True)])
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any, Final, TypeAlias

#: A number, the name of a symbol, or an operator and its operands.
Expr: TypeAlias = "int | float | str | tuple[Any, ...]"
#: A comparison, its operands and its result.
Guard: TypeAlias = "tuple[str, Expr, Expr, bool]"
Number: TypeAlias = "int | float"

_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
}

#: Functions of expressions that a package adds: tables of weights, for example.
FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "cos": math.cos,
    "sin": math.sin,
    "bits": int.bit_length,
}


class Trace:
    """The symbols of one plan, and the guards that its code passed."""

    def __init__(self) -> None:
        self.guards: list[Guard] = []
        self._seen: set[Guard] = set()

    def integer(self, name: str, value: int) -> int:
        """Return an integer symbol."""
        return int_of(_made(value, name, self))

    def real(self, name: str, value: float) -> float:
        """Return a symbol for a real number."""
        return _made(float(value), name, self)

    def guard(self, guard: Guard) -> None:
        """Note a comparison."""
        if guard not in self._seen:
            self._seen.add(guard)
            self.guards.append(guard)


def expr_of(value: Number) -> Expr:
    """Return the expression of a number: its own, or the number itself.

    >>> expr_of(3), expr_of(Trace().real("sigma", 2.0) * 2)
    (3, ('*', 'sigma', 2))
    """
    return value.expr if isinstance(value, Symbolic) else value


def is_symbolic(*values: object) -> bool:
    """Return whether any value is a symbol or computed from one.

    >>> is_symbolic(3, 0.5), is_symbolic(3, Trace().integer("w", 4))
    (False, True)
    """
    return any(isinstance(v, Symbolic) for v in values)


def fixed(value: Any) -> Any:
    """Return a number as a plain one, for code that depends on its value; the trace notes it.

    >>> trace = Trace()
    >>> fixed(trace.integer("radius", 3)), fixed(4), trace.guards
    (3, 4, [('==', 'radius', 3, True)])
    """
    return _fixed(value) if isinstance(value, Symbolic) else value


def int_of(value: Number) -> int:
    """Return a number that is an int, as its type.

    >>> int_of(3)
    3
    """
    assert isinstance(value, int)
    return value


def apply(name: str, value: Number, *args: Number) -> Number:
    """Return a value as the result of a function of :data:`FUNCTIONS`.

    >>> expr_of(apply("gauss", 0.4, 3, Trace().real("sigma", 1.0)))
    ('gauss', 3, 'sigma')
    """
    traces = [a.trace for a in args if isinstance(a, Symbolic)]
    if not traces:
        return value
    trace, expr = traces[0], (name, *map(expr_of, args))
    return _made(value, expr, trace)


# expressions -------------------------------------------------------------------------------------
def evaluate(expr: Expr, values: Mapping[str, Number]) -> Any:
    """Return the value of an expression; a table for functions that return one.

    >>> evaluate(("//", ("+", "w", 15), 16), {"w": 30})
    2
    """
    if isinstance(expr, str):
        return values[expr]
    if not isinstance(expr, tuple):
        return expr
    name, *rest = expr
    args = [evaluate(a, values) if isinstance(a, str | tuple) else a for a in rest]
    if name in _NEUTRAL:
        return reduce(_COMPUTE[name], args)
    return (_COMPUTE.get(name) or FUNCTIONS[name])(*args)


_COMPUTE: Final[dict[str, Callable[..., Any]]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "//": operator.floordiv, "%": operator.mod, "**": operator.pow, "floor": math.floor,
    "ceil": math.ceil, "round": round, "trunc": math.trunc, "abs": abs,
}  # fmt: skip
#: The numbers that sums and products begin with.
_NEUTRAL: Final = {"+": 0, "*": 1}


def holds(guard: Guard, values: Mapping[str, Number]) -> bool:
    """Return whether a guard holds for other values of the symbols.

    >>> holds(("<", "w", 8, True), {"w": 4})
    True
    """
    kind, a, b, result = guard
    return bool(_COMPARE[kind](evaluate(a, values), evaluate(b, values))) is result


def _flat(kind: str, *parts: Expr) -> Expr:
    """Return a sum or a product of parts, with one plain number."""
    found: list[Expr] = []
    plain: Number = _NEUTRAL[kind]
    for part in parts:
        for item in part[1:] if isinstance(part, tuple) and part[0] == kind else (part,):
            if isinstance(item, str | tuple):
                found.append(item)
            else:
                plain = _COMPUTE[kind](plain, item)
    if kind == "*" and plain == 0:
        return 0
    if plain != _NEUTRAL[kind] or not found:
        found.append(plain)
    return found[0] if len(found) == 1 else (kind, *sorted(found, key=repr))


def _built(kind: str, a: Expr, b: Expr) -> Expr:
    """Return the expression of an operator with two operands."""
    if kind == "-":
        kind, b = "+", _flat("*", b, -1)
    if kind in _NEUTRAL:
        return _flat(kind, a, b)
    return a if b == 1 and kind in ("/", "//") else (kind, a, b)


# numbers -----------------------------------------------------------------------------------------
class Symbolic:
    """A number with an expression."""

    expr: Expr
    trace: Trace

    def __format__(self, spec: str) -> str:
        return format(_fixed(self), spec)

    def __str__(self) -> str:
        return str(_fixed(self))

    def __repr__(self) -> str:  # in error messages and keys of caches
        return repr(_plain(self))

    def __hash__(self) -> int:
        return hash(_plain(self))


class SymbolicInt(Symbolic, int):
    """An int with an expression."""

    def bit_length(self) -> int:
        return int_of(_made(int.bit_length(self), ("bits", self.expr), self.trace))

    def __lshift__(self, other: int) -> int:
        return int(_fixed(self) << other)

    def __rlshift__(self, other: int) -> int:
        return int(other << _fixed(self))

    def __rshift__(self, other: int) -> int:
        return int(_fixed(self) >> other)

    def __and__(self, other: int) -> int:
        return int(_fixed(self) & other)

    __rand__ = __and__

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other


class SymbolicFloat(Symbolic, float):
    """A float with an expression."""

    def is_integer(self) -> bool:
        return float(_plain(self)).is_integer()


def _plain(value: Any) -> Any:
    """Return the value of a number as a plain number."""
    if isinstance(value, SymbolicInt):
        return int.__int__(value)
    if isinstance(value, SymbolicFloat):
        return float.__float__(value)
    return value


def _fixed(value: Symbolic) -> Any:  # an int or a float
    """Return the value of a symbol, for code that depends on it."""
    plain = _plain(value)
    value.trace.guard(("==", value.expr, plain, True))
    return plain


def _made(value: Number, expr: Expr, trace: Trace) -> Number:
    if not isinstance(expr, str | tuple):
        return value
    made = SymbolicInt(value) if isinstance(value, int) else SymbolicFloat(value)
    made.expr, made.trace = expr, trace
    return made


def _operator(kind: str, *, swapped: bool) -> Callable[[Any, Any], Any]:
    compute = _COMPUTE[kind]

    def operate(self: Any, other: Any) -> Any:
        if not isinstance(other, int | float):
            return NotImplemented
        a, b = (other, self) if swapped else (self, other)
        value = compute(_plain(a), _plain(b))
        return _made(value, _built(kind, expr_of(a), expr_of(b)), self.trace)

    return operate


def _comparison(kind: str, *, swapped: bool, negated: bool) -> Callable[[Any, Any], Any]:
    compare = _COMPARE[kind]

    def compared(self: Any, other: Any) -> Any:
        if not isinstance(other, int | float):
            return NotImplemented
        a, b = (other, self) if swapped else (self, other)
        result = compare(_plain(a), _plain(b))
        exprs = expr_of(a), expr_of(b)
        if exprs[0] != exprs[1]:
            self.trace.guard((kind, *exprs, result))
        return not result if negated else result

    return compared


def _unary(kind: str) -> Callable[..., Any]:
    def unary(self: Any, digits: int | None = None) -> Any:
        if digits is not None:  # round(x, 4)
            return round(self * 10.0**digits) / 10.0**digits
        value = _COMPUTE[kind](_plain(self))
        if isinstance(self, SymbolicInt) and kind != "abs":
            return self
        return _made(value, (kind, self.expr), self.trace)

    return unary


def _truth(self: Any) -> bool:
    result = bool(_plain(self))
    self.trace.guard(("==", self.expr, 0, not result))
    return result


def _install(kinds: Iterable[type]) -> None:
    names = {"+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod",
             "**": "pow"}  # fmt: skip
    compared = {
        "lt": ("<", False, False), "gt": ("<", True, False), "le": ("<=", False, False),
        "ge": ("<=", True, False), "eq": ("==", False, False), "ne": ("==", False, True),
    }  # fmt: skip
    for kind in kinds:
        for sign, name in names.items():
            setattr(kind, f"__{name}__", _operator(sign, swapped=False))
            setattr(kind, f"__r{name}__", _operator(sign, swapped=True))
        for name, (sign, swapped, negated) in compared.items():
            setattr(kind, f"__{name}__", _comparison(sign, swapped=swapped, negated=negated))
        for name in ("floor", "ceil", "round", "trunc", "abs"):
            setattr(kind, f"__{name}__", _unary(name))
        setattr(kind, "__neg__", lambda self: self * -1)  # noqa: B010 - mypy refuses assignments
        setattr(kind, "__bool__", _truth)  # noqa: B010


_install((SymbolicInt, SymbolicFloat))


# blocks of numbers --------------------------------------------------------------------------------
class SymbolicBytes(bytes):
    """Packed 32-bit numbers, with the expressions of symbolic ones by their offset.

    Attributes:
        words: offset, "u" or "f", and the expression of each number that is not constant.

    >>> w = Trace().integer("w", 30)
    >>> made = b"abcd" + SymbolicBytes.pack([("i", w), ("f", 0.5)])
    >>> len(made), made.words
    (12, ((4, 'u', 'w'),))
    """

    words: tuple[tuple[int, str, Expr], ...]

    @classmethod
    def pack(cls, numbers: Iterable[tuple[str, Number]]) -> SymbolicBytes:
        """Pack numbers by their ``struct`` formats: "i", "I" or "f"; "x" is a byte of padding."""
        parts: list[bytes] = []
        words: list[tuple[int, str, Expr]] = []
        at = 0
        for kind, number in numbers:
            expr = expr_of(number)
            if isinstance(expr, str | tuple):
                words.append((at, "f" if kind == "f" else "u", expr))
            parts.append(word(kind, _plain(number)))
            at += len(parts[-1])
        return cls._of(b"".join(parts), words)

    @classmethod
    def _of(cls, data: bytes, words: Iterable[tuple[int, str, Expr]]) -> SymbolicBytes:
        made = cls(data)
        made.words = tuple(words)
        return made

    def __add__(self, other: Any) -> SymbolicBytes:
        moved = [(at + len(self), *rest) for at, *rest in getattr(other, "words", ())]
        return self._of(bytes(self) + bytes(other), [*self.words, *moved])

    def __radd__(self, other: bytes) -> SymbolicBytes:
        moved = [(at + len(other), kind, expr) for at, kind, expr in self.words]
        return self._of(bytes(other) + bytes(self), moved)


class SymbolicTable(bytes):
    """The bytes of a table that a function of :data:`FUNCTIONS` computes.

    Attributes:
        table: the expression.
        size: the number of bytes, which may be symbolic.
    """

    table: Expr
    size: int

    @classmethod
    def of(cls, name: str, data: bytes, size: int, *args: Number) -> SymbolicTable:
        """Return a table of a function and its arguments."""
        made = cls(data)
        made.table, made.size = (name, *map(expr_of, args)), size
        return made


def word(kind: str, number: Number) -> bytes:
    """Return a number as four bytes: "f" as f32, else modulo 2**32; "x" is a byte of padding.

    >>> word("u", -1).hex()
    'ffffffff'
    """
    if kind == "x":
        return b"\0"
    if kind == "f":
        try:
            return struct.pack("<f", number)
        except OverflowError:
            return struct.pack("<f", math.copysign(math.inf, number))
    return struct.pack("<I", int(number) & 0xFFFFFFFF)
