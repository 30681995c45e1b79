"""Types of WGSL with their layout in buffers and their names in LLVM, and values of them."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

#: The bytes and the LLVM names of scalars.
_SCALARS: Final = {
    "bool": (1, "i1"), "i32": (4, "i32"), "u32": (4, "i32"), "f32": (4, "float"),
    "f16": (2, "half"), "i64": (8, "i64"), "u64": (8, "i64"), "f64": (8, "double"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class WgslScalar:
    """A number or a bool; "int" and "float" are literals that take the type beside them."""

    name: str

    @property
    def abstract(self) -> bool:
        """Whether this is the type of a literal without a suffix."""
        return self.name in ("int", "float")

    @property
    def floating(self) -> bool:
        """Whether this is a type of floats."""
        return self.name[0] == "f"

    @property
    def signed(self) -> bool:
        """Whether this is a type of integers with a sign."""
        return self.name[0] == "i"

    @property
    def bits(self) -> int:
        """The number of bits."""
        return 1 if self.name == "bool" else self.size * 8

    @property
    def size(self) -> int:
        """Bytes in a buffer."""
        return _SCALARS[self.name][0]

    align = size

    @property
    def llvm(self) -> str:
        """The name of the type in LLVM."""
        return _SCALARS[self.name][1]


@dataclass(frozen=True, slots=True)
class WgslVector:
    """Two to four scalars."""

    count: int
    of: WgslScalar

    @property
    def size(self) -> int:
        """Bytes in a buffer."""
        return self.count * self.of.size

    @property
    def align(self) -> int:
        """The multiple of bytes at which values begin."""
        return (2 if self.count == 2 else 4) * self.of.size

    @property
    def llvm(self) -> str:
        """The name of the type in LLVM."""
        return f"<{self.count} x {self.of.llvm}>"


@dataclass(frozen=True, slots=True)
class WgslArray:
    """Values of one type; ``count`` is 0 for those of a whole buffer."""

    of: WgslType
    count: int

    @property
    def stride(self) -> int:
        """Bytes from one value to the next."""
        return -(-self.of.size // self.of.align) * self.of.align

    @property
    def size(self) -> int:
        """Bytes in a buffer."""
        return self.stride * self.count

    @property
    def align(self) -> int:
        """The multiple of bytes at which values begin."""
        return self.of.align

    @property
    def llvm(self) -> str:
        """The name of the type in LLVM."""
        return f"[{self.count} x {self.of.llvm}]"


@dataclass(frozen=True, slots=True)
class WgslStruct:
    """Named values."""

    name: str
    fields: tuple[tuple[str, WgslType], ...]

    @property
    def align(self) -> int:
        """The multiple of bytes at which values begin."""
        return max(kind.align for _, kind in self.fields)

    @property
    def size(self) -> int:
        """Bytes in a buffer."""
        _, last = self.fields[-1]
        end = self.offset(len(self.fields) - 1) + last.size
        return -(-end // self.align) * self.align

    @property
    def llvm(self) -> str:
        """The name of the type in LLVM."""
        return "{" + ", ".join(kind.llvm for _, kind in self.fields) + "}"

    @property
    def kinds(self) -> list[WgslType]:
        """The types of the fields."""
        return [kind for _, kind in self.fields]

    def offset(self, index: int) -> int:
        """Return the place of a field in bytes."""
        at = 0
        for k, (_, kind) in enumerate(self.fields):
            at = -(-at // kind.align) * kind.align
            if k == index:
                break
            at += kind.size
        return at

    def index(self, name: str) -> int:
        """Return the number of a field."""
        return [field for field, _ in self.fields].index(name)


WgslType: TypeAlias = WgslScalar | WgslVector | WgslArray | WgslStruct

BOOL, I32, U32, F32 = WgslScalar("bool"), WgslScalar("i32"), WgslScalar("u32"), WgslScalar("f32")
INT, FLOAT = WgslScalar("int"), WgslScalar("float")
#: The scalars that have names.
SCALARS: Final = {name: WgslScalar(name) for name in _SCALARS}


def scalar_of(kind: WgslType) -> WgslScalar:
    """Return the type of a number, or of a vector's numbers."""
    if isinstance(kind, WgslVector):
        return kind.of
    assert isinstance(kind, WgslScalar), kind
    return kind


def like(kind: WgslType, scalar: WgslScalar) -> WgslType:
    """Return the type of as many scalars of another type."""
    return WgslVector(kind.count, scalar) if isinstance(kind, WgslVector) else scalar


@dataclass(frozen=True, slots=True)
class WgslValue:
    """A result: its type, its LLVM text, and its number if that is known."""

    kind: WgslType
    text: str
    number: int | float | None = None


@dataclass(frozen=True, slots=True)
class WgslPlace:
    """Memory: the type of its content, its address, and LLVM's type of the address."""

    kind: WgslType
    address: str
    pointer: str = "ptr"
    #: The number of elements of a buffer's array, as LLVM text.
    length: str = ""


def constant(kind: WgslScalar, number: int | float) -> WgslValue:
    """Return a number of a type.

    >>> constant(WgslScalar("f32"), 0.5).text, constant(WgslScalar("i32"), -3).text
    ('0x3fe0000000000000', '-3')
    """
    if kind.name == "f16":
        return WgslValue(kind, f"0xH{np.float16(number).view(np.uint16):04X}", float(number))
    if kind.floating and not kind.abstract:
        exact = float(np.float32(number)) if kind.name == "f32" else float(number)
        return WgslValue(kind, "0x" + struct.pack(">d", exact).hex(), exact)
    if kind.name == "bool":
        return WgslValue(kind, "true" if number else "false", number)
    if kind.abstract:
        return WgslValue(kind, "", number)
    bits, whole = kind.bits, int(number)
    whole &= (1 << bits) - 1
    if kind.signed and whole >> (bits - 1):
        whole -= 1 << bits
    return WgslValue(kind, str(whole), whole)


def literal(token: str) -> WgslValue:
    """Return the value of a number in a text.

    >>> literal("0xffu").number, literal("1.5f").kind.name, literal("3").kind.name
    (255, 'f32', 'int')
    """
    names = {"li": "i64", "lu": "u64", "lf": "f64", "i": "i32", "u": "u32", "f": "f32", "h": "f16"}
    hexadecimal = token[:2] in ("0x", "0X")
    for suffix, name in names.items():
        if token.endswith(suffix) and not (hexadecimal and suffix == "f"):
            digits = token[: -len(suffix)]
            kind = WgslScalar(name)
            return constant(kind, float(digits) if kind.floating else int(digits, 0))
    if hexadecimal or token.isdecimal():
        return WgslValue(WgslScalar("int"), "", int(token, 0))
    return WgslValue(WgslScalar("float"), "", float(token))
