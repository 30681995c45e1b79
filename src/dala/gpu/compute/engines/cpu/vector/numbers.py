"""Values with Python's operators, in which the math functions are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from dala.gpu.compute.engines.cpu.vector.types import BY_NAME, F32, F64, I32, I64, Operand, Type
from dala.gpu.compute.engines.cpu.vector.writer import ValueWriter

Factor: TypeAlias = "Num | float | int"

_BITS: Final = {F64: I64, I64: F64, F32: I32, I32: F32}


def _operator(op: str) -> Callable[[Num, Factor], Num]:
    """Return the method that writes an operation with another number."""

    def write(self: Num, other: Factor) -> Num:
        return Num(self.w, self.w.arithmetic(op, self.value, self._operand(other)))

    return write


class Num:
    """A value whose operators write instructions.

    Comparisons are ordered, so they are false for NaN.
    """

    __slots__ = ("value", "w")

    def __init__(self, w: ValueWriter, value: Operand) -> None:
        self.w = w
        self.value = value

    @property
    def type(self) -> Type:
        """The type of the value."""
        return self.value.type

    def _operand(self, other: Factor) -> Operand:
        return other.value if isinstance(other, Num) else self.w.number(other, self.type)

    __add__ = _operator("add")
    __sub__ = _operator("sub")
    __mul__ = _operator("mul")
    __truediv__ = _operator("div")
    __and__ = _operator("and")
    __or__ = _operator("or")
    __xor__ = _operator("xor")

    def __rsub__(self, other: Factor) -> Num:
        return self.of(other) - self

    def __rtruediv__(self, other: Factor) -> Num:
        return self.of(other) / self

    def __lshift__(self, amount: int) -> Num:
        return Num(self.w, self.w.shift("shl", self.value, self._operand(amount), amount))

    def __rshift__(self, amount: int) -> Num:
        return Num(self.w, self.w.shift("shr", self.value, self._operand(amount), amount))

    def __neg__(self) -> Num:
        return Num(self.w, self.w.negated(self.value))

    def of(self, value: Factor) -> Num:
        """Return a constant of this value's type."""
        return Num(self.w, self._operand(value))

    def compare(self, op: str, other: Factor) -> Num:
        """Compare as :meth:`ValueWriter.comparison` does."""
        return Num(self.w, self.w.comparison(op, self.value, self._operand(other)))

    def __lt__(self, other: Factor) -> Num:
        return self.compare("lt", other)

    def __gt__(self, other: Factor) -> Num:
        return self.compare("gt", other)

    def equals(self, other: Factor) -> Num:
        """Compare for equality (``==`` keeps Python's meaning)."""
        return self.compare("eq", other)

    def choose(self, yes: Num, no: Factor) -> Num:
        """Return ``yes`` where this bool is true, else ``no``."""
        return Num(self.w, self.w.select(self.value, yes.value, yes._operand(no)))

    def to(self, target: Type | str) -> Num:
        """Convert to a scalar type, or the one of that name, lane by lane; floats must fit ints."""
        kind = BY_NAME[target] if isinstance(target, str) else target
        return Num(self.w, self.w.convert(self.value, kind, fits=True))

    def bits(self) -> Num:
        """Reinterpret a float as an int, or an int as a float."""
        other = _BITS[self.type.scalar].wide(self.type.lanes)
        return Num(self.w, self.w.cast("bitcast", self.value, other))

    def call(self, intrinsic: str, *others: Factor) -> Num:
        """Call an intrinsic whose arguments all have this value's type."""
        given = [self._operand(o) for o in others]
        return Num(self.w, self.w.intrinsic(intrinsic, self.value, *given))

    def multiply_add(self, factor: Factor, addend: Factor) -> Num:
        """Return ``self * factor + addend``, fused where the CPU has the instruction."""
        return self.call("fmuladd", factor, addend) if self.w.f.fused else self * factor + addend

    def within(self, low: float, high: float) -> Num:
        """Clamp to a range; NaN stays NaN."""
        above = (self < low).choose(self.of(low), self)
        return (above > high).choose(self.of(high), above)
