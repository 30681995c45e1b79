"""Terms of native code: arrays, compile-time constants, and the types of arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from dala.gpu.compute.engines.cpu.vector.types import Type

if TYPE_CHECKING:
    from dala.gpu.compute.engines.cpu.native.function import NativeFunction
    from dala.gpu.compute.engines.cpu.native.names import Record


@dataclass(frozen=True, slots=True)
class Span:
    """A run-time array: operands for its address and length, and its alignment in bytes."""

    element: Type
    pointer: str
    length: str
    align: int = 1
    #: The names of its elements.
    record: type[Record] | None = None


#: The type of an argument: a number's, an array's (its element, its alignment, its record), or a
#: group's, the named tuple of those of its members.
ArgType: TypeAlias = Any
#: The type of an entry function's parameter: a number's, or ``("array", element type)``.
ParamType: TypeAlias = "Type | tuple[str, Type]"
#: None for no result, a type, or a tuple of them.
Result: TypeAlias = "Type | tuple[Type, ...] | None"

#: A compile-time constant of a function. To type checkers, f32 is ``type[float]``.
Static: TypeAlias = "bool | int | float | type | Type | NativeFunction | tuple[Static, ...]"
#: The value of an expression: an Operand, a Span, a group of them (a named tuple), or a constant (a
#: number, a type).
Term: TypeAlias = Any


def is_group(term: Term) -> bool:
    """Return True for a named tuple, which is passed as its members are; or for its class."""
    return hasattr(term, "_fields")


def is_number(term: Term) -> bool:
    """Return True for a compile-time number."""
    return isinstance(term, (bool, int, float))
