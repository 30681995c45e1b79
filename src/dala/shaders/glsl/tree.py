"""Types and the syntax tree of GLSL."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias


class GlslType(NamedTuple):
    """A type of GLSL. ``base`` is float, int, uint, bool, void, sampler or struct.

    ``size`` counts the numbers of a vector or column, ``columns`` those of a matrix (0 for others),
    ``length`` the items of an array (0 for others).
    """

    base: str
    size: int = 1
    columns: int = 0
    length: int = 0
    struct: str = ""

    def __str__(self) -> str:
        if self.length:
            return f"{self.item}[{self.length}]"
        if self.base == "struct":
            return self.struct
        if self.columns:
            return f"mat{self.columns}" + f"x{self.size}" * (self.columns != self.size)
        if self.size == 1:
            return "sampler2D" if self.base == "sampler" else self.base
        return {"float": "vec", "int": "ivec", "uint": "uvec", "bool": "bvec"}[self.base] + str(
            self.size
        )

    @property
    def item(self) -> GlslType:
        """The type of an array's items."""
        return self._replace(length=0)

    @property
    def scalar(self) -> bool:
        """True for one number."""
        return self.size == 1 and not self.columns and not self.length and self.base in NUMBERS


NUMBERS: Final = ("float", "int", "uint", "bool")
FLOAT: Final = GlslType("float")
INT: Final = GlslType("int")
UINT: Final = GlslType("uint")
BOOL: Final = GlslType("bool")
VOID: Final = GlslType("void")
VEC2: Final = GlslType("float", 2)
VEC3: Final = GlslType("float", 3)
VEC4: Final = GlslType("float", 4)

#: The types that have a name of their own.
KINDS: Final[dict[str, GlslType]] = {
    str(k): k
    for k in (
        VOID,
        GlslType("sampler"),
        *(GlslType(base, size) for base in NUMBERS for size in (1, 2, 3, 4)),
        *(GlslType("float", size, columns) for size in (2, 3, 4) for columns in (2, 3, 4)),
    )
} | {
    "sampler2DRect": GlslType("sampler"),
    **{f"mat{n}x{n}": GlslType("float", n, n) for n in (2, 3, 4)},
}


#: Words before types, and types that are refused, with what they are.
PRECISIONS: Final = frozenset({"highp", "mediump", "lowp"})
QUALIFIERS: Final = PRECISIONS | {
    "const", "uniform", "in", "out", "inout", "varying", "attribute", "flat", "smooth",
    "centroid", "invariant", "precise", "layout", "noperspective",
}  # fmt: skip
REFUSED: Final = {
    "samplerCube": "cube maps", "sampler3D": "3D textures", "sampler2DArray": "texture arrays",
    "sampler2DShadow": "shadow textures", "double": "doubles", "isampler2D": "integer textures",
    "usampler2D": "integer textures", "image2D": "stores to images", "buffer": "storage buffers",
}  # fmt: skip


@dataclass(eq=False, slots=True)
class GlslNode:
    """One node of the tree: an expression or a statement.

    ==========  ===========================================================================
    number      ``value``, of type ``kind``
    name        ``text``
    unary       ``text`` is the operator
    step        ``++`` or ``--``; ``value`` is True if it stands before its operand
    binary      ``text`` is the operator; likewise ``assign``
    choice      condition ? first : second
    call        of a function or constructor named ``text``, or of ``kind``
    member      ``.text`` of its part; index, comma, and list (``{a, b}``) have parts only
    declare     ``value`` is the list of variables
    expression  a statement; if, for, while, do, break, continue, discard, return, block, switch
    ==========  ===========================================================================
    """

    op: str
    line: int
    parts: tuple[GlslNode, ...] = ()
    text: str = ""
    value: object = None
    kind: GlslType | None = None


@dataclass(eq=False, slots=True)
class DeclaredName:
    """A variable, a parameter of a function, or a member of a struct."""

    name: str
    kind: GlslType
    line: int
    #: Words before the type: const, uniform, in, out, inout, varying.
    words: frozenset[str] = frozenset()
    start: GlslNode | None = None


@dataclass(eq=False, slots=True)
class GlslFunctionText:
    """A function with its body."""

    name: str
    kind: GlslType
    params: list[DeclaredName]
    body: GlslNode
    line: int


@dataclass(eq=False)
class UnitTree:
    """A whole text."""

    functions: list[GlslFunctionText] = field(default_factory=list)
    variables: list[DeclaredName] = field(default_factory=list)
    structs: dict[str, list[DeclaredName]] = field(default_factory=dict)


Structs: TypeAlias = dict[str, list[DeclaredName]]


def walk(node: GlslNode) -> list[GlslNode]:
    """Return a node and all nodes in it, those in declarations included."""
    found, todo = [], [node]
    while todo:
        here = todo.pop()
        found.append(here)
        todo.extend(here.parts)
        if here.op == "declare":
            todo.extend(d.start for d in variables(here) if d.start is not None)
    return found


def variables(node: GlslNode) -> list[DeclaredName]:
    """Return the variables of a declaration."""
    assert isinstance(node.value, list)
    return node.value
