"""Type promotion: the type of an expression with operands of different types.

A literal takes the type of the other operand. Otherwise the wider type wins, in the order bool <
s32 < u32 < s64 < f32 < f64, so s32 with u32 gives u32, as in C. One exception: s64 with f32 gives
f64, because f32 would lose digits.
"""

from __future__ import annotations

from typing import Final

from dala.gpu.compute.lang.ir import FLOATS, Type

_ORDER: Final[tuple[Type, ...]] = ("bool", "s32", "u32", "s64", "f32", "f64")

RANGES: Final = {
    "s32": (-(2**31), 2**31 - 1),
    "u32": (0, 2**32 - 1),
    "s64": (-(2**63), 2**63 - 1),
    "u8": (0, 255),
}


def join(a: Type, b: Type) -> Type:
    """Return the common type of two types."""
    if {a, b} == {"s64", "f32"}:
        return "f64"
    return max(a, b, key=_ORDER.index)


def as_float(t: Type) -> Type:
    """Return the float type in which ``/`` and ``sqrt`` compute for operands of a type."""
    if t in FLOATS:
        return t
    return "f64" if t == "s64" else "f32"


def literal_type(value: int | float | bool, other: Type | None = None) -> Type:
    """Return the type of a literal, by itself or with another operand of type ``other``."""
    if isinstance(value, bool):
        return other if other is not None else "bool"
    if isinstance(value, int):
        if other is None or other == "bool":
            return "s32" if RANGES["s32"][0] <= value <= RANGES["s32"][1] else "s64"
        return other
    if other is None or other == "bool":
        return "f32"
    return as_float(other)
