"""Lower the expressions of a checked kernel to IR."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import NoReturn, TypeAlias

from dala.gpu.compute.lang.builder import (
    Builder,
    Refused,
    Scalar,
    Term,
    Vec,
    components,
    describe,
    refuse,
    type_of,
)
from dala.gpu.compute.lang.check import inside, is_math
from dala.gpu.compute.lang.declaration import CONSTANTS, KernelDecl
from dala.gpu.compute.lang.functions import FUNCTIONS
from dala.gpu.compute.lang.ir import FLOATS, LOADED, Arg, Attr, Slot, Type, Value

#: Identifies a variable: the call path of its function, its name, and the component's index.
VariableKey: TypeAlias = tuple[object, ...]


class Restart(Exception):
    """Raised to restart lowering, because a type is wider than assumed."""


@dataclass
class Typing:
    """Types of a kernel's variables, as found in earlier attempts."""

    pixels: bool
    types: dict[VariableKey, Type] = field(default_factory=dict)
    sizes: dict[VariableKey, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Site:
    """The inputs and output that a kernel is lowered for."""

    args: tuple[Arg, ...]
    rank: int
    pixels: bool
    out_rank: int


@dataclass(frozen=True)
class Ref:
    """An image or array argument, by its index among the inputs."""

    arg: int


@dataclass(frozen=True)
class Variable:
    """A name that is assigned more than once."""

    key: VariableKey


Binding: TypeAlias = Value | int | float | bool | Vec | Ref | Variable


@dataclass
class FunctionScope:
    """The state of a function during lowering."""

    decl: KernelDecl
    path: VariableKey
    env: dict[str, Binding]
    #: Element and pixel arguments by name, for their shapes.
    args: dict[str, int]
    #: Names that are assigned more than once.
    often: frozenset[str]
    #: True if the function has a single return, at its end.
    straight: bool
    result: Term | None = None
    done: Slot | None = None
    loops: int = 0


_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "idiv",
    ast.Mod: "mod",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.LShift: "shl",
    ast.RShift: "shr",
}
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
}


class Expressions(ABC):
    """Lowers expressions to IR."""

    def __init__(self, builder: Builder, site: Site, typing: Typing) -> None:
        self.b = builder
        self.site = site
        self.typing = typing
        self.slots: dict[VariableKey, Slot] = {}
        #: The functions that are being lowered, the innermost last, which is also ``frame``.
        self.stack: list[FunctionScope] = []
        self.frame: FunctionScope

    @abstractmethod
    def _helper(self, node: ast.Call, decl: KernelDecl) -> Term:
        """Lower a call of another kernel and return its result."""

    def _read(self, key: VariableKey) -> Term:
        size = self.typing.sizes[key]
        items = tuple(self.b.get(self.slots[(*key, index)]) for index in range(max(size, 1)))
        return Vec(items) if size else items[0]

    def _term(self, node: ast.expr) -> Term:
        """Return the value of an expression; raise if it is a whole image or array."""
        bound = self._binding(node)
        if isinstance(bound, Ref):
            arg = self.site.args[bound.arg]
            how = "img[dx, dy]" if arg.kind == "image" else "a[i, j]"
            self._refuse_at(node, f"{arg.name!r} is an {arg.kind}", f"Read one value of it: {how}.")
        assert not isinstance(bound, Variable)
        return bound

    def _binding(self, node: ast.expr) -> Binding:
        try:
            return self._expression(node)
        except Refused as refused:
            if not hasattr(refused, "node"):
                refused.node = node  # type: ignore[attr-defined]
            raise

    def _refuse_at(self, node: ast.AST, problem: str, advice: str = "") -> NoReturn:
        refused = Refused(problem, advice)
        refused.node = node  # type: ignore[attr-defined]
        raise refused

    def _expression(self, node: ast.expr) -> Binding:
        b = self.b
        match node:
            case ast.Constant(value=bool() | int() | float() as number):
                return b.checked(number)
            case ast.Name():
                return self._name(node)
            case ast.BinOp():
                return self._operate(node.op, self._term(node.left), self._term(node.right))
            case ast.UnaryOp(op=ast.Not()):
                return b.negation(self._term(node.operand))
            case ast.UnaryOp(op=ast.UAdd()):
                return self._term(node.operand)
            case ast.UnaryOp():
                apply = b.negate if isinstance(node.op, ast.USub) else b.invert
                return b.lift(apply, self._term(node.operand))
            case ast.BoolOp():
                op = "and" if isinstance(node.op, ast.And) else "or"
                result: Term = b.truth(self._term(node.values[0]))
                for part in node.values[1:]:
                    result = b.logical(op, result, self._term(part))
                return result
            case ast.Compare():
                return self._compare(node)
            case ast.IfExp():
                terms = [self._term(part) for part in (node.test, node.body, node.orelse)]
                return b.select(*terms)
            case ast.Tuple():
                if not 2 <= len(node.elts) <= 4:
                    advice = "Write (x, y), (x, y, z) or (r, g, b, a)."
                    refuse("a vector has two to four numbers", advice)
                return Vec(tuple(components([self._term(item) for item in node.elts])))
            case ast.Subscript():
                return self._subscript(node)
            case ast.Attribute():
                return self._attribute(node)
        assert isinstance(node, ast.Call)
        return self._call(node)

    def _name(self, node: ast.Name) -> Binding:
        bound = self.frame.env.get(node.id)
        if isinstance(bound, Variable):
            return self._read(bound.key)
        if bound is not None:
            return bound
        if node.id in self.frame.decl.constants:
            constant = self.frame.decl.constants[node.id]
            return Vec(constant) if isinstance(constant, tuple) else constant
        if node.id in CONSTANTS and not _is_local(self.frame.decl, node.id):
            return CONSTANTS[node.id]
        refuse(
            f"{node.id!r} may have no value here",
            "Give it a value before the if or the loop.",
        )

    def _operate(self, op: ast.operator, a: Term, c: Term) -> Term:
        b = self.b
        if isinstance(op, ast.Pow):
            return b.lift(b.power, a, c)
        name = _BINARY[type(op)]
        return b.lift(partial(b.shift if name in ("shl", "shr") else b.binary, name), a, c)

    def _compare(self, node: ast.Compare) -> Term:
        b = self.b
        left: Term = self._term(node.left)
        result: Term | None = None
        for op, comparator in zip(node.ops, node.comparators, strict=True):
            right = self._term(comparator)
            if isinstance(left, Vec) or isinstance(right, Vec):
                refuse("vectors cannot be compared", "Compare one component: px.r > 0.5.")
            one: Term = b.binary(_COMPARE[type(op)], left, right)
            result = one if result is None else b.logical("and", result, one)
            left = right
        assert result is not None
        return result

    def _whole(self, term: Term, what: str) -> Scalar:
        if isinstance(term, Vec) or type_of(term) in FLOATS:
            refuse(f"{what} requires integers, got {describe(term)}", "Cast with int(x).")
        return term

    def _subscript(self, node: ast.Subscript) -> Term:
        bound = self._binding(node.value)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if isinstance(bound, Ref):
            arg = self.site.args[bound.arg]
            given = [self._whole(self._term(part), "an index") for part in parts]
            indexes = [self.b.index(g) for g in given]
            wanted = 2 if arg.kind == "image" else arg.rank
            if len(indexes) != wanted:
                refuse(
                    f"{arg.name!r} takes {wanted} indexes, got {len(indexes)}",
                    "Write img[dx, dy]." if arg.kind == "image" else "Write one index per axis.",
                )
            if arg.kind == "image":
                return self._texel("image", bound.arg, *indexes)
            return self.b.emit("array", LOADED[arg.dtype], *indexes, attr=bound.arg)
        if isinstance(bound, Value) and bound.op in ("position", "dim"):
            bound = Vec((bound,))  # position() and shape() of one axis can be indexed too
        if not isinstance(bound, Vec):
            refuse(
                "only arrays, images and vectors can be indexed",
                "Annotate the input: a: Array, or img: Image.",
            )
        chosen = self._term(parts[0])
        if (
            len(parts) > 1
            or not isinstance(chosen, int)
            or not (-len(bound.items) <= chosen < len(bound.items))
        ):
            refuse(f"the index of a component must be below {len(bound.items)}", "Write v[0].")
        return bound.items[chosen]

    def _texel(self, op: str, arg: int, *offsets: Value) -> Term:
        """Return one pixel of an input: a vector, or one number for a gray image."""
        b, spec = self.b, self.site.args[arg]
        items: list[Scalar] = []
        for channel in range(spec.channels):
            raw = b.emit(op, LOADED[spec.dtype], *offsets, attr=(arg, channel))
            is_byte = spec.dtype == "u8"
            items.append(b.binary("mul", b.convert(raw, "f32"), 1 / 255) if is_byte else raw)
        if spec.channels == 1:
            return items[0]
        return Vec(tuple([*items, 1.0][:4]))

    def _attribute(self, node: ast.Attribute) -> Binding:
        if is_math(node):
            return CONSTANTS[node.attr]
        if node.attr in ("shape", "width", "height"):
            return self._shape(node.value, node.attr)
        term = self._term(node.value)
        letters = ["rgba".find(c) if c in "rgba" else "xyzw".find(c) for c in node.attr]
        if not isinstance(term, Vec):
            if not self.site.pixels:
                refuse(
                    f"one number has no component {node.attr!r}",
                    "Annotate the input as a pixel: px: Pixel.",
                )
            term = Vec((term, term, term, 1.0))  # a gray pixel
        if max(letters) >= len(term.items):
            refuse(f"{describe(term)} has no component {node.attr!r}")
        if len(letters) == 1:
            return term.items[letters[0]]
        return Vec(tuple(term.items[i] for i in letters))

    def _shape(self, node: ast.expr, what: str) -> Term:
        if not isinstance(node, ast.Name) or node.id not in self.frame.args:
            refuse(f"only inputs have .{what}", "Write it after the name of an input.")
        index = self.frame.args[node.id]
        arg = self.site.args[index]
        if what == "shape":
            return self._axes("dim", [(index, axis) for axis in range(arg.rank)])
        if arg.kind not in ("image", "pixel"):
            refuse(f"only images have .{what}", f"Write {node.id}.shape[0].")
        return self.b.emit("dim", "s32", attr=(index, 0 if what == "height" else 1))

    def _call(self, node: ast.Call) -> Term:
        if isinstance(node.func, ast.Name):
            name = node.func.id
            if name in self.frame.decl.helpers:
                return self._helper(node, self.frame.decl.helpers[name])
        else:
            assert isinstance(node.func, ast.Attribute)
            name = node.func.attr
        function = FUNCTIONS[name]
        if node.keywords:
            refuse(f"{name} takes no named arguments", "Pass them in order.")
        if not function.least <= len(node.args) <= function.most:
            count = str(function.least)
            if function.most != function.least:
                count += f" to {function.most}"
            refuse(f"{name} takes {count} arguments, got {len(node.args)}", function.doc)
        if name == "position":
            return self._position(node)
        if name in ("shape", "len"):
            if not node.args:
                return self._axes("dim", [(-1, axis) for axis in range(self.site.rank)])
            term = self._shape(node.args[0], "shape")
            return term.items[0] if name == "len" and isinstance(term, Vec) else term
        terms = [self._term(a) for a in node.args]
        if function.whole:
            return function.build(self.b, *terms)
        build = partial(function.build, self.b)  # returns scalars for scalars
        return self.b.lift(build, *terms)  # type: ignore[arg-type]

    def _position(self, node: ast.Call) -> Term:
        rank = self.site.rank
        if node.args:
            axis = self._term(node.args[0])
            if not isinstance(axis, int) or not -rank <= axis < rank:
                refuse(f"position takes an axis below {rank}", "Write position(0).")
            return self.b.emit("position", "s32", attr=axis % rank)
        return self._axes("position", range(rank))

    def _axes(self, op: str, attrs: Iterable[Attr]) -> Term:
        """Return a number for each axis: a vector, or one number for one axis."""
        axes = tuple(self.b.emit(op, "s32", attr=attr) for attr in attrs)
        return axes[0] if len(axes) == 1 else Vec(axes)


def _is_local(decl: KernelDecl, name: str) -> bool:
    return any(
        isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
        for n in inside(decl.function.body)
    )
