"""Types and values of native code: scalars, fixed vectors of them, arrays in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias


@dataclass(frozen=True, slots=True)
class Type:
    """A number type, or a vector of ``lanes`` numbers; what LLVM calls it and how it behaves."""

    name: str
    llvm_scalar: str
    bits: int
    signed: bool = False
    floating: bool = False
    lanes: int = 1

    @property
    def llvm(self) -> str:
        """LLVM's name for the type of a value."""
        return self.llvm_scalar if self.lanes == 1 else f"<{self.lanes} x {self.llvm_scalar}>"

    @property
    def stored(self) -> str:
        """LLVM's name for the type in memory: a bool has a byte there."""
        scalar = "i8" if self.bits == 1 else self.llvm_scalar
        return scalar if self.lanes == 1 else f"<{self.lanes} x {scalar}>"

    @property
    def suffix(self) -> str:
        """What names of intrinsics end with."""
        scalar = f"f{self.bits}" if self.floating else f"i{self.bits}"
        return scalar if self.lanes == 1 else f"v{self.lanes}{scalar}"

    @property
    def size(self) -> int:
        """Bytes of one number in memory."""
        return max(self.bits // 8, 1)

    @property
    def integer(self) -> bool:
        """True for whole numbers; a bool is none."""
        return not self.floating and self.bits > 1

    @property
    def scalar(self) -> Type:
        """The type of one lane."""
        return self if self.lanes == 1 else replace(self, lanes=1)

    def wide(self, lanes: int) -> Type:
        """A vector of this type's numbers."""
        return replace(self, lanes=lanes)

    def __str__(self) -> str:
        return self.name if self.lanes == 1 else f"vector of {self.lanes} {self.name}"

    def __call__(self, value: Any) -> Any:
        """Only in native code, where it is a conversion."""
        raise TypeError(f"{self.name}(...) is a conversion of native code; it does nothing here")


BOOL: Final = Type("bool", "i1", 1)
U8: Final = Type("u8", "i8", 8)
I8: Final = Type("i8", "i8", 8, signed=True)
U16: Final = Type("u16", "i16", 16)
I16: Final = Type("i16", "i16", 16, signed=True)
U32: Final = Type("u32", "i32", 32)
I32: Final = Type("i32", "i32", 32, signed=True)
U64: Final = Type("u64", "i64", 64)
I64: Final = Type("i64", "i64", 64, signed=True)
F32: Final = Type("f32", "float", 32, signed=True, floating=True)
F64: Final = Type("f64", "double", 64, signed=True, floating=True)

BY_NAME: Final = {
    t.name: t for t in (BOOL, U8, I8, U16, I16, U32, I32, U64, I64, F32, F64)
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Operand:
    """A number or vector known when the code runs: its type, and LLVM's operand for it."""

    type: Type
    name: str


@dataclass(frozen=True, slots=True)
class Span:
    """An array: where it begins, how many elements it has, and how well it is aligned."""

    element: Type
    pointer: str
    length: str
    align: int = 1


#: The type of an argument: a number's, or an array's (its element, its alignment).
ArgType: TypeAlias = "Type | tuple[Type, int]"
#: None for no result, a type, or a tuple of them.
Result: TypeAlias = "Type | tuple[Type, ...] | None"

#: What an expression gives: something of the run, or a Python object known now (a number, a type).
Term: TypeAlias = Any


def is_number(term: Term) -> bool:
    """True for a number known at compile time."""
    return isinstance(term, (bool, int, float))
