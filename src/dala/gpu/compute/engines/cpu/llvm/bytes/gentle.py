"""Find the values of a program that stores bytes whose last bits do not matter.

A *gentle* value reaches the stored byte only through operations that keep a small error small.
Comparisons, conversions to ints and divisors could turn it into a large one, and a square root
could get a number below 0 where two equal products are subtracted.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from dala.gpu.compute.engines.cpu.llvm.weighted_sums import stored_value
from dala.gpu.compute.lang.ir import Block, For, If, SetSlot, Value, statements

#: The largest number that is stored as 255: bytes are rounded by adding a half.
LARGEST: Final = 255.5
#: The attribute of a conversion to an int of a number that is in range, or NaN: the byte of that
#: is 0.
OR_NAN: Final = "in_range_or_nan"

#: Operations whose result changes little if an operand does: the operands for which this holds.
_GENTLE: Final = {
    "add": (0, 1), "sub": (0, 1), "mul": (0, 1), "neg": (0,), "abs": (0,), "min": (0, 1),
    "max": (0, 1), "sqrt": (0,), "div": (0,), "select": (1, 2),
}  # fmt: skip

#: Errors may be multiplied by this, and must still be far below a step.
_LARGEST_FACTOR: Final = 1024.0


def scaled_by_constant(v: Value) -> tuple[Value, float] | None:
    """Return the operand and the constant factor of a product; None for other values."""
    if v.op != "mul" or v.type != "f32":
        return None
    for k in (0, 1):
        if v.args[k].op == "const":
            return v.args[1 - k], float(v.args[k].attr)
    return None


def rounded_value(v: Value) -> Value | None:
    """Return what a stored byte is rounded from, clamped and cut off: see ``rewrite.py``."""
    if v.op != "cast" or v.attr not in ("in_range", OR_NAN):
        return None
    of, v = v.attr, v.args[0]
    if of == OR_NAN:
        return v.args[2] if v.op == "select" else v
    for end in (LARGEST, 0.0):
        if v.op != "select" or v.args[2].op != "const" or v.args[2].attr != end:
            return None
        v = v.args[1]
    return v


class GentleValues:
    """The users of each value, and what an error of it does to the stored bytes."""

    def __init__(self, block: Block, result: Sequence[Value], partial: bool = False) -> None:
        self.users: dict[Value, list[tuple[Value, int]]] = {}
        #: Values that slots, branches and loops depend on.
        self.rough: set[Value] = set()
        for s in statements(block):
            if isinstance(s, Value):
                for k, a in enumerate(s.args):
                    self.users.setdefault(a, []).append((s, k))
            elif isinstance(s, SetSlot):
                self.rough.add(s.value)
            elif isinstance(s, If):
                self.rough.add(s.condition)
            elif isinstance(s, For):
                self.rough.update((s.start, s.stop))
        #: The operations that clamp and round a stored byte.
        self.storing: set[Value] = set()
        for stored in () if partial else result:
            inner = stored_value(stored) or rounded_value(stored)
            if inner is None:
                self.rough.add(stored)
            else:
                self._mark(stored, inner)
        self.gentle: dict[Value, bool] = {}
        self.rooted: dict[Value, bool] = {}

    def _mark(self, v: Value, inner: Value) -> None:
        if v is not inner and v not in self.storing:
            self.storing.add(v)
            for a in v.args:
                self._mark(a, inner)

    def product(self, v: Value, varying: Collection[Value]) -> int | None:
        """Return which operand of a sum is a varying product to fuse it with, if any."""
        if v.op not in ("add", "sub") or v.type != "f32":
            return None
        found = [
            k
            for k, a in enumerate(v.args)
            if a.op == "mul" and a in varying and len(self.users.get(a, ())) == 1
        ]
        if not found or v in self.storing or not self.is_gentle(v):
            return None
        squares = v.op == "add" and all(a.op == "mul" and a.args[0] is a.args[1] for a in v.args)
        if not squares and self.under_root(v):
            return None
        return found[-1]

    def is_gentle(self, v: Value) -> bool:
        """Return whether a small error of a value stays small in the stored bytes."""
        if v not in self.gentle:
            self.gentle[v] = v not in self.rough and all(
                u in self.storing
                or (k in _GENTLE.get(u.op, ()) and not _enlarges(u) and self.is_gentle(u))
                for u, k in self.users.get(v, ())
            )
        return self.gentle[v]

    def under_root(self, v: Value) -> bool:
        """Return whether a value's sign matters to a square root."""
        if v not in self.rooted:
            self.rooted[v] = any(
                u.op == "sqrt"
                or (
                    u.op != "abs"
                    and not (u.op == "mul" and u.args[0] is u.args[1])
                    and self.under_root(u)
                )
                for u, _ in self.users.get(v, ())
            )
        return self.rooted[v]


def _enlarges(v: Value) -> bool:
    """Return whether a value is another one times a large number, and so are its errors."""
    factor = scaled_by_constant(v)
    if factor is not None:
        return not abs(factor[1]) <= _LARGEST_FACTOR
    small = v.op == "div" and v.args[1].op == "const"
    return small and not abs(float(v.args[1].attr)) >= 1.0 / _LARGEST_FACTOR
