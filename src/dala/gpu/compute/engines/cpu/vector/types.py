"""Types and operands of generated code: scalars and vectors of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Type:
    """A number type, or the type of a vector of ``lanes`` numbers."""

    name: str
    llvm_scalar: str
    bits: int
    signed: bool = False
    floating: bool = False
    lanes: int = 1

    @property
    def llvm(self) -> str:
        """The LLVM type of a value."""
        return self.llvm_scalar if self.lanes == 1 else f"<{self.lanes} x {self.llvm_scalar}>"

    @property
    def stored(self) -> str:
        """The LLVM type in memory, where a bool takes a byte."""
        scalar = "i8" if self.bits == 1 else self.llvm_scalar
        return scalar if self.lanes == 1 else f"<{self.lanes} x {scalar}>"

    @property
    def suffix(self) -> str:
        """The suffix of intrinsic names."""
        scalar = f"f{self.bits}" if self.floating else f"i{self.bits}"
        return scalar if self.lanes == 1 else f"v{self.lanes}{scalar}"

    @property
    def size(self) -> int:
        """The size of one number in bytes."""
        return max(self.bits // 8, 1)

    @property
    def integer(self) -> bool:
        """True for integer types; bool is not one."""
        return not self.floating and self.bits > 1

    @property
    def scalar(self) -> Type:
        """The type of one lane."""
        return self if self.lanes == 1 else replace(self, lanes=1)

    def wide(self, lanes: int) -> Type:
        """Return the type of a vector with this many lanes of the same scalar type."""
        return replace(self, lanes=lanes)

    def __str__(self) -> str:
        return self.name if self.lanes == 1 else f"vector of {self.lanes} {self.name}"

    @property
    def range(self) -> tuple[int, int]:
        """The least and the largest number of an integer type."""
        if self.signed:
            return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1
        return 0, (1 << self.bits) - 1

    def __call__(self, value: object) -> Any:
        """Raise TypeError: types convert in native code only."""
        raise TypeError(
            f"{self.name}(...) is a conversion of native code and does not work in Python."
        )


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
    """A run-time number or vector: its type, and its operand in LLVM IR."""

    type: Type
    name: str
