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
    Compound,
    Refused,
    Scalar,
    Term,
    Vec,
    components,
    describe,
    refuse,
    type_of,
)
from dala.gpu.compute.lang.check import inside, is_math, is_method
from dala.gpu.compute.lang.declaration import CONSTANTS, LEVELS, KernelDecl
from dala.gpu.compute.lang.functions import FUNCTIONS, Function
from dala.gpu.compute.lang.ir import FLOATS, LOADED, Arg, Attr, Slot, Type, Value
from dala.gpu.compute.lang.library import matrices, parts, prelude, sampling
from dala.gpu.compute.lang.library.shapes import Shape, shaped, size_of

#: Identifies a variable: the call path of its function, its name, and the component's index.
VariableKey: TypeAlias = tuple[object, ...]


class Restart(Exception):
    """Raised to restart lowering, because a type is wider than assumed."""


@dataclass
class Typing:
    """Types of a kernel's variables, as found in earlier attempts."""

    pixels: bool
    types: dict[VariableKey, Type] = field(default_factory=dict)
    shapes: dict[VariableKey, Shape] = field(default_factory=dict)


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


Binding: TypeAlias = Value | int | float | bool | Vec | Compound | Ref | Variable
#: What names mean in a function.
Env: TypeAlias = dict[str, Binding]


@dataclass
class FunctionScope:
    """The state of a function during lowering."""

    decl: KernelDecl
    path: VariableKey
    env: Env
    #: Element and pixel arguments by name, for their shapes.
    args: dict[str, int]
    #: Names that are assigned more than once.
    often: frozenset[str]
    #: True if the function has a single return, at its end.
    straight: bool
    result: Term | None = None
    done: Slot | None = None
    loops: int = 0

    def is_image(self, arg: int) -> bool:
        """Return whether an input is declared as an image."""
        return any(d.kind == "image" and self.args.get(d.name) == arg for d in self.decl.args)


_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "idiv",
    ast.Mod: "mod", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor", ast.LShift: "shl",
    ast.RShift: "shr",
}  # fmt: skip
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
}  # fmt: skip


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

    @abstractmethod
    def _library(self, node: ast.Call, function: Function, terms: list[Term]) -> Term:
        """Lower a call of a function of the prelude and return its result."""

    def _read(self, key: VariableKey) -> Term:
        shape = self.typing.shapes[key]
        slots = (self.slots[(*key, index)] for index in range(size_of(shape)))
        return shaped(shape, map(self.b.get, slots))

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
                return self._tuple([self._term(item) for item in node.elts])
            case ast.List():
                return parts.made_list([self._term(item) for item in node.elts])
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

    def _tuple(self, terms: list[Term]) -> Term:
        """Return a vector of two to four numbers; other tuples keep their members apart."""
        items = components(terms)
        if any(isinstance(t, Compound) for t in terms) or (
            len(items) > 4 and len(items) > len(terms)
        ):
            return Compound("tuple", tuple(terms))
        if not 2 <= len(items) <= 4:
            advice = "Write (x, y), (x, y, z) or (r, g, b, a); a table is a list: [a, b, c, d, e]."
            refuse("a vector has two to four numbers", advice)
        return Vec(tuple(items), tuple(terms) if len(items) > len(terms) else ())

    def _operate(self, op: ast.operator, a: Term, c: Term) -> Term:
        b = self.b
        matrix = matrices.is_matrix(a), matrices.is_matrix(c)
        vector = isinstance(a, Vec) or isinstance(c, Vec)
        joined = isinstance(op, ast.Mult) and any(matrix) and (vector or all(matrix))
        if joined or isinstance(op, ast.MatMult):
            return matrices.product(b, a, c)
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
            if isinstance(left, Vec | Compound) or isinstance(right, Vec | Compound):
                advice = "Compare one component: px.r > 0.5; or write all(lessThan(a, b))."
                refuse("vectors cannot be compared", advice)
            one: Term = b.binary(_COMPARE[type(op)], left, right)
            result = one if result is None else b.logical("and", result, one)
            left = right
        assert result is not None
        return result

    def _whole(self, term: Term, what: str, node: ast.expr | None = None) -> Scalar:
        if isinstance(term, Vec | Compound) or type_of(term) in FLOATS:
            divides = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
            advice = "Cast with int(x)."
            if divides:
                advice = "Integers are divided by //; / gives a float."
            refuse(f"{what} requires integers, got {describe(term)}", advice)
        return term

    def _subscript(self, node: ast.Subscript) -> Term:
        bound = self._binding(node.value)
        if isinstance(bound, Ref):
            arg = self.site.args[bound.arg]
            if arg.kind == "array" and self.frame.is_image(bound.arg):
                refuse(
                    f"{arg.name!r} is not as large as the output, so it has no offsets",
                    "Read it with img.sample_uv(u, v), or resize it.",
                )
            places = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            given = [self._whole(self._term(place), "an index", place) for place in places]
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
        assert not isinstance(bound, Variable)
        return parts.pick(self.b, bound, self._index_of(bound, node))

    def _index_of(self, term: Term, node: ast.Subscript) -> Scalar:
        """Return the index of a part of a term."""
        count = len(parts.parts_of(term))
        if isinstance(node.slice, ast.Tuple):
            refuse(f"the index of a component must be below {count}", "Write v[0], or m[0][1].")
        return self._whole(self._term(node.slice), "an index", node.slice)

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
        letters = letters_of(node.attr)
        if isinstance(term, Compound):
            refuse(
                f"{describe(term)} has no component {node.attr!r}", "Read one of its items: a[0]."
            )
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
        if arg.kind not in ("image", "pixel") and not self.frame.is_image(index):
            refuse(f"only images have .{what}", f"Write {node.id}.shape[0].")
        return self.b.emit("dim", "s32", attr=(index, 0 if what == "height" else 1))

    def _call(self, node: ast.Call) -> Term:
        if is_method(node):
            return self._sample(node)
        if isinstance(node.func, ast.Name):
            name = node.func.id
            if name in self.frame.decl.helpers:
                return self._helper(node, self.frame.decl.helpers[name])
        else:
            assert isinstance(node.func, ast.Attribute)
            name = node.func.attr
        function = FUNCTIONS[name]
        if node.keywords and not function.prelude:
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
            name_of = node.args[0]
            is_input = isinstance(name_of, ast.Name) and name_of.id in self.frame.args
            if name == "len" and not is_input:
                return len(parts.parts_of(self._term(name_of)))
            term = self._shape(name_of, "shape")
            return term.items[0] if name == "len" and isinstance(term, Vec) else term
        terms = [self._term(a) for a in node.args]
        if function.prelude:
            return self._library(node, function, terms)
        if function.whole:
            return function.build(self.b, *terms)
        build = partial(function.build, self.b)  # returns scalars for scalars
        return self.b.lift(build, *terms)  # type: ignore[arg-type]

    def _sample(self, node: ast.Call) -> Term:
        """Lower a filtered read: ``img.sample(x, y, filter="linear", edge="clamp")``."""
        assert isinstance(node.func, ast.Attribute)
        name = node.func.attr
        bound = self._binding(node.func.value)
        if not isinstance(bound, Ref) or not self.frame.is_image(bound.arg):
            refuse(f"only images have .{name}()", "Annotate the input as an image: img: Image.")
        items = components([self._term(a) for a in node.args])
        if len(items) != 2:
            refuse(f"{name} takes 2 numbers, got {len(items)}", f"Write img.{name}(x, y).")
        keywords = {k.arg: k.value for k in node.keywords}
        options: dict[str, str | Term] = {"filter": "linear", "edge": "clamp"}
        lod = keywords.pop("lod", None)
        for key, value in keywords.items():
            if key not in options:
                refuse(f"{name} has no argument {key!r}", "It takes filter=, edge= and lod=.")
            is_text = isinstance(value, ast.Constant) and isinstance(value.value, str)
            options[key] = str(value.value) if is_text else self._term(value)  # type: ignore[attr-defined]
        sampling.check(options["filter"], options["edge"])
        arg = self.site.args[bound.arg]
        sampler = sampling.Sampler(self.b, arg, bound.arg, str(options["filter"]), options["edge"])
        found = sampling.METHODS[name](sampler, *items)
        if lod is None:
            return found
        names = [a.name for a in self.site.args]
        if f"{arg.name}{LEVELS}" not in names:
            problem = "lod= reads smaller copies of the image, which passes of a program make"
            refuse(problem, "Write @program instead of @kernel.")
        levels = names.index(f"{arg.name}{LEVELS}")
        gray = not isinstance(found, Vec)
        base = Vec((*components([found]) * 3, 1.0)) if gray else found
        decl = prelude.find("sample_level_", 1)
        assert decl is not None
        place = sampler.place(name, *items)
        given = [Ref(levels), base, *place, self._term(lod), *sampler.codes()]
        env: Env = dict(zip((a.name for a in decl.args), given, strict=True))
        bare = ast.copy_location(ast.Call(node.func, [], []), node)
        made = self._prelude(bare, "lod=", decl, env, {"levels": levels})
        return components([made])[0] if gray else made

    @abstractmethod
    def _prelude(
        self, node: ast.Call, name: str, decl: KernelDecl, env: Env, args: dict[str, int]
    ) -> Term:
        """Lower a call of a function of the prelude; errors in it are errors of the call."""

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


def letters_of(attribute: str) -> list[int]:
    """Return the components that a swizzle names."""
    names = next(names for names in ("rgba", "xyzw", "stpq") if attribute[0] in names)
    return [names.find(c) for c in attribute]


def _is_local(decl: KernelDecl, name: str) -> bool:
    return any(
        isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
        for n in inside(decl.function.body)
    )
