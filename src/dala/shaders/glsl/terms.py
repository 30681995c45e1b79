"""Translated values, variables and functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from dala.shaders.glsl.tree import GlslFunctionText, GlslType, Structs

#: The casts of the kernel language, by base types of GLSL.
CASTS: Final = {"float": "f32", "int": "s32", "uint": "u32", "bool": "bool"}


#: The variable that keeps the arguments of derivatives.
PLACES: Final = "%p"


class Expr(NamedTuple):
    """Translated text: one for each number, vector, matrix or array that the type is made of."""

    texts: tuple[str, ...]
    kind: GlslType
    #: The value of a constant number.
    value: float | None = None
    depth: int = 0

    @property
    def text(self) -> str:
        """The text of a type that is not a struct."""
        return self.texts[0]


@dataclass(eq=False)
class GlslVariable:
    """A variable of a text."""

    texts: tuple[str, ...]
    kind: GlslType
    fixed: bool = False
    value: float | None = None


@dataclass(eq=False)
class GlslFunction:
    """A function, its name in the translation, and the variables outside it that it uses."""

    text: GlslFunctionText
    name: str
    reads: list[str]
    writes: list[str]


def leaves(kind: GlslType, structs: Structs) -> list[tuple[str, GlslType]]:
    """Return the numbers, vectors, matrices and arrays of a type, with the ends of their names."""
    if kind.base != "struct":
        return [("", kind)]
    found = []
    for member in structs[kind.struct]:
        for end, leaf in leaves(member.kind, structs):
            length = leaf.length or kind.length
            found.append((f"_{member.name}{end}", leaf._replace(length=length)))
    return found


def zero(kind: GlslType) -> str:
    """Return the text of a zero of a type that is not a struct."""
    if kind.length:
        return "[" + ", ".join([zero(kind.item)] * kind.length) + "]"
    number = {"float": "0.0", "int": "0", "uint": "u32(0)", "bool": "False"}[kind.base]
    return number if kind.scalar else f"{kind}({number})"


def literal(value: float, base: str) -> Expr:
    """Return a constant."""
    if base == "float":
        text = repr(float(value))
        text = text if text[-1] not in "fn" else f"f32({text})"
    else:
        value = int(value)
        if base != "bool":
            value = (value + 2**31) % 2**32 - 2**31 if base == "int" else value % 2**32
        text = {"int": str(value), "uint": f"u32({value})", "bool": str(bool(value))}[base]
    return Expr((f"({text})" if text[0] == "-" else text,), GlslType(base), value)
