"""The one writer of operations on typed values as LLVM IR: scalars and vectors alike.

The emitter of the kernel IR (``llvm/operations.py``) and that of native code
(``native/operations.py``) decide which operation is meant; how it is written is decided here. No
operation traps: integers wrap, division rounds down and gives 0 for a divisor of 0, shifts take the
amount modulo the width, and floats saturate where they become integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

from dala.gpu.compute.engines.cpu.vector.text import FunctionText, constant
from dala.gpu.compute.engines.cpu.vector.types import BOOL, F64, Operand, Type

#: Predicates for signed integers, unsigned integers and floats; with NaN, only ``ne`` is true.
_PREDICATES: Final = {
    "eq": ("eq", "eq", "oeq"), "ne": ("ne", "ne", "une"), "lt": ("slt", "ult", "olt"),
    "le": ("sle", "ule", "ole"), "gt": ("sgt", "ugt", "ogt"), "ge": ("sge", "uge", "oge"),
    "uno": ("", "", "uno"), "ult": ("", "", "ult"), "ugt": ("", "", "ugt"),
}  # fmt: skip


@cache
def _flags(lanes: int) -> Type:
    """Return the type of a comparison; made once, since comparisons are frequent."""
    return BOOL.wide(lanes)


class ValueWriter:
    """Writes operations on typed values into a function.

    Args:
        f: The function to write to.
        flags: Flags of float operations, such as ``"nsz "``.
    """

    def __init__(self, f: FunctionText, flags: str = "") -> None:
        self.f = f
        self.flags = flags

    def let(self, text: str) -> str:
        """Emit an instruction without side effects; return its name."""
        return self.f.let(text)

    # operands -----------------------------------------------------------------------------------
    def number(self, value: float, t: Type) -> Operand:
        """Return a constant, in every lane of a vector."""
        return Operand(t, constant(value, t.llvm))

    def splat(self, v: Operand, lanes: int) -> Operand:
        """Return a vector with a scalar in every lane."""
        return Operand(v.type.wide(lanes), self.f.splat(v.type.llvm, v.name, lanes))

    def shuffle(self, x: Operand, y: Operand, lanes: Sequence[int]) -> Operand:
        """Return selected lanes of two vectors as one vector."""
        name = self.f.shuffle(x.type.llvm, x.name, y.name, lanes)
        return Operand(x.type.wide(len(lanes)), name)

    # operations ---------------------------------------------------------------------------------
    def write(self, op: str, x: Operand, y: Operand) -> Operand:
        """Emit an instruction of two operands of one type."""
        flags = self.flags if x.type.floating else ""
        return Operand(x.type, self.let(f"{op} {flags}{x.type.llvm} {x.name}, {y.name}"))

    def arithmetic(self, op: str, x: Operand, y: Operand) -> Operand:
        """Emit ``add``, ``sub``, ``mul``, or ``div`` of floats."""
        return self.write("f" + op if x.type.floating else op, x, y)

    def invoke(
        self, name: str, result: Type, *args: Operand, tail: str = "", flags: str = ""
    ) -> str:
        """Call a function; ``tail`` is a last argument with its type."""
        given = ", ".join([f"{a.type.llvm} {a.name}" for a in args] + ([tail] if tail else []))
        return self.let(f"call {flags}{result.llvm} {name}({given})")

    def intrinsic(self, name: str, *args: Operand, tail: str = "", flags: str = "") -> Operand:
        """Call an intrinsic whose arguments and result have one type."""
        t = args[0].type
        kinds = [t.llvm] * len(args) + (["i1"] if tail else [])
        full = self.f.module.intrinsic(f"{name}.{t.suffix}", t.llvm, *kinds)
        return Operand(t, self.invoke(full, t, *args, tail=tail, flags=flags))

    def comparison(self, op: str, x: Operand, y: Operand) -> Operand:
        """Emit a comparison: ``eq``, ``ne``, ``lt``, ``le``, ``gt``, ``ge``.

        Of floats also ``uno`` (either is NaN), ``ult`` and ``ugt`` (or either is NaN).
        """
        t = x.type
        signed, unsigned, floating = _PREDICATES[op]
        rule = f"fcmp {floating}" if t.floating else f"icmp {signed if t.signed else unsigned}"
        return Operand(_flags(t.lanes), self.let(f"{rule} {t.llvm} {x.name}, {y.name}"))

    def select(self, condition: Operand, x: Operand, y: Operand) -> Operand:
        """Emit a choice, lane by lane if the condition is a vector."""
        c, t = condition, x.type.llvm
        text = f"select {c.type.llvm} {c.name}, {t} {x.name}, {t} {y.name}"
        return Operand(x.type, self.let(text))

    def extreme(self, op: str, x: Operand, y: Operand) -> Operand:
        """Emit ``min`` or ``max`` of integers."""
        return self.intrinsic(("s" if x.type.signed else "u") + op, x, y)

    def shift(self, op: str, x: Operand, y: Operand, known: int | None = None) -> Operand:
        """Emit ``shl`` or ``shr``, which keeps the sign; ``known`` is the amount if constant."""
        if known is None or not 0 <= known < x.type.bits:
            y = self.write("and", y, self.number(x.type.bits - 1, x.type))
        return self.write("shl" if op == "shl" else "ashr" if x.type.signed else "lshr", x, y)

    def negated(self, v: Operand) -> Operand:
        """Emit the negative of a number."""
        if v.type.floating:
            return Operand(v.type, self.let(f"fneg {v.type.llvm} {v.name}"))
        return self.write("sub", self.number(0, v.type), v)

    def inverted(self, v: Operand) -> Operand:
        """Emit the inverse of all bits, or of a bool."""
        return self.write("xor", v, self.number(1 if v.type.bits == 1 else -1, v.type))

    def absolute(self, v: Operand) -> Operand:
        """Emit the absolute value; that of the lowest integer is itself."""
        if v.type.floating:
            return self.intrinsic("fabs", v)
        return self.intrinsic("abs", v, tail="i1 false") if v.type.signed else v

    # division -----------------------------------------------------------------------------------
    def divide(
        self, a: Operand, b: Operand, *, rest: bool, known: int | None = None, floats: bool = False
    ) -> Operand:
        """Emit division of integers, rounded down, or its rest; 0 for a divisor of 0.

        Args:
            a: The dividend.
            b: The divisor.
            rest: Whether the rest is wanted.
            known: The divisor if it is constant.
            floats: Whether to divide 32-bit integers as f64: vectors of integers cannot be.
        """
        t, zero = a.type, None
        if known is None or known <= 0:
            zero = unsafe = self.comparison("eq", b, self.number(0, t))
            if t.signed:
                lowest = self.comparison("eq", a, self.number(t.range[0], t))
                minus = self.comparison("eq", b, self.number(-1, t))
                unsafe = self.write("or", zero, self.write("and", lowest, minus))
            # Dividing by 1 gives the specified rest 0 and, for the lowest number, itself.
            b = self.select(unsafe, self.number(1, t), b)
        if known is None and floats and t.bits == 32:
            quotient = self._float_quotient(a, b)
        elif not t.signed:
            quotient = self.write("udiv", a, b)
        elif known is not None and known > 0 and known & (known - 1) == 0:
            quotient = self.write("ashr", a, self.number(known.bit_length() - 1, t))
        else:
            quotient = self._floor_quotient(a, b)
        if rest:
            return self.write("sub", a, self.write("mul", quotient, b))
        return quotient if zero is None else self.select(zero, self.number(0, t), quotient)

    def _float_quotient(self, a: Operand, b: Operand) -> Operand:
        # The floor of the f64 quotient of two 32-bit integers is exact.
        x, y = (self.convert(n, F64) for n in (a, b))
        floor = self.intrinsic("floor", self.arithmetic("div", x, y))
        return self.convert(floor, a.type.scalar, fits=True)

    def _floor_quotient(self, a: Operand, b: Operand) -> Operand:
        zero, flags = self.number(0, a.type), _flags(a.type.lanes).llvm
        quotient, left = self.write("sdiv", a, b), self.write("srem", a, b)
        apart = self.comparison("lt", self.write("xor", left, b), zero)
        below = self.write("and", apart, self.comparison("ne", left, zero))
        less = Operand(a.type, self.let(f"sext {flags} {below.name} to {a.type.llvm}"))
        return self.write("add", quotient, less)

    # conversions --------------------------------------------------------------------------------
    def convert(self, v: Operand, target: Type, *, fits: bool = False) -> Operand:
        """Emit a conversion to a scalar type, lane by lane.

        Integers wrap; floats are truncated, and clamped unless they are known to fit.
        """
        source, want = v.type, target.wide(v.type.lanes)
        if source.scalar == target:
            return v
        if target == BOOL:
            return self.comparison("ne", v, self.number(0, source))
        letter = "s" if (target if source.floating else source).signed else "u"
        if source.floating and target.floating:
            op = "fpext" if target.bits > source.bits else "fptrunc"
        elif source.floating and not fits:
            name = f"fpto{letter}i.sat.{want.suffix}.{source.suffix}"
            full = self.f.module.intrinsic(name, want.llvm, source.llvm)
            return Operand(want, self.invoke(full, want, v))
        elif source.floating:
            op = f"fpto{letter}i"
        elif target.floating:
            op = f"{letter}itofp"
        elif source.bits == target.bits:
            return Operand(want, v.name)
        elif source.bits > target.bits:
            op = "trunc"
        else:
            op = f"{letter}ext".replace("u", "z")
        return self.cast(op, v, want)

    def saturated(self, v: Operand, target: Type) -> Operand:
        """Emit a conversion that clamps integers as well."""
        source = v.type
        if source.floating or not target.integer:
            return self.convert(v, target)
        low, high = target.range
        least, most = source.range
        if low > least:
            v = self.intrinsic("smax", v, self.number(low, source))
        if high < most:
            v = self.extreme("min", v, self.number(high, source))
        return self.convert(v, target)

    def cast(self, op: str, v: Operand, target: Type) -> Operand:
        """Emit a conversion by an instruction; types that LLVM does not distinguish need none."""
        if v.type.llvm == target.llvm:
            return Operand(target, v.name)
        return Operand(target, self.let(f"{op} {v.type.llvm} {v.name} to {target.llvm}"))
