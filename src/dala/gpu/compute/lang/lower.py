"""Statements and expressions of a checked kernel, written out as IR.

Helper kernels are written out where they are called. Returns become assignments to result slots,
so that the IR needs none. Each variable has one type: the widest of what is assigned to it; when a
later assignment widens it, lowering starts again with what was learned.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias

from dala.gpu.compute.lang.build import (
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
from dala.gpu.compute.lang.check import always_returns
from dala.gpu.compute.lang.decl import CONSTANTS, KernelDecl
from dala.gpu.compute.lang.functions import FUNCTIONS
from dala.gpu.compute.lang.ir import (
    FLOATS,
    LOADED,
    Arg,
    Block,
    Break,
    Continue,
    For,
    If,
    Slot,
    Type,
    Value,
)
from dala.gpu.compute.lang.limits import MAX_CALLS_DEEP
from dala.gpu.compute.lang.scalars import join


class Restart(Exception):
    """Something learned makes the work so far wrong; begin again with it known."""


@dataclass
class Typing:
    """What is known about a kernel's variables from earlier attempts."""

    pixels: bool
    types: dict[tuple[Any, ...], Type] = field(default_factory=dict)
    sizes: dict[tuple[Any, ...], int] = field(default_factory=dict)


@dataclass(frozen=True)
class Site:
    """Where the program runs: its inputs and its positions."""

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

    key: tuple[Any, ...]


Binding: TypeAlias = Value | int | float | bool | Vec | Ref | Variable


@dataclass
class Frame:
    """One function being written out."""

    decl: KernelDecl
    path: tuple[Any, ...]
    env: dict[str, Binding]
    #: Element and pixel arguments by name, for their shapes.
    args: dict[str, int]
    often: frozenset[str]
    #: True when the function has one return, at its end.
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
}
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
}


class Lowering:
    """Writes kernels out as IR at one site."""

    def __init__(self, builder: Builder, site: Site, typing: Typing) -> None:
        self.b = builder
        self.site = site
        self.typing = typing
        self.slots: dict[tuple[Any, ...], Slot] = {}
        self.calls = 0
        self.stack: list[KernelDecl] = []

    def kernel(self, decl: KernelDecl, params: Mapping[str, Term]) -> Term:
        """The result of the outermost kernel."""
        env: dict[str, Binding] = dict(params)
        for index, arg in enumerate(self.site.args):
            if arg.kind == "element":
                env[arg.name] = self.b.emit("element", LOADED[arg.dtype], attr=index)
            elif arg.kind == "pixel":
                env[arg.name] = self._texel("pixel", index)
            else:
                env[arg.name] = Ref(index)
        names = {arg.name: index for index, arg in enumerate(self.site.args)}
        return self._function(decl, env, names, ())

    # functions --------------------------------------------------------------------------------
    def _function(
        self,
        decl: KernelDecl,
        env: dict[str, Binding],
        args: dict[str, int],
        path: tuple[Any, ...],
    ) -> Term:
        if decl in self.stack or len(self.stack) >= MAX_CALLS_DEEP:
            refuse("kernels call one another in a circle, or too deeply", "Use a loop instead.")
        self.stack.append(decl)
        body = decl.function.body
        returns = [n for n in _inside(body) if isinstance(n, ast.Return)]
        straight = len(returns) == 1 and body[-1] is returns[0]
        often = _assigned_often(decl)
        frame = Frame(decl, path, env, args, often, straight)
        for name in sorted(often & set(env)):  # an argument that is assigned becomes a variable
            start = env[name]
            if not isinstance(start, Ref | Variable):
                self._assign(frame, name, start)
        if not straight:
            frame.done = Slot("done", "bool")
            if path:  # a helper may be written out inside a loop, where it starts over each turn
                self.b.set(frame.done, False)
        self._block(frame, body)
        self.stack.pop()
        if frame.result is None:
            frame.result = self._read((path, "return"))
        return frame.result

    def _helper(self, frame: Frame, node: ast.Call, decl: KernelDecl) -> Term:
        if len(node.args) != len(decl.args):
            refuse(
                f"{decl.name} takes {len(decl.args)} inputs, {len(node.args)} came",
                "Give its inputs in order and its parameters by name.",
            )
        env: dict[str, Binding] = {}
        args: dict[str, int] = {}
        for declared, given in zip(decl.args, node.args, strict=True):
            term = self._binding(frame, given)
            if declared.kind in ("image", "array"):
                if not isinstance(term, Ref) or self.site.args[term.arg].kind != declared.kind:
                    refuse(f"{decl.name} wants an {declared.kind} for {declared.name!r}")
                args[declared.name] = term.arg
            elif isinstance(term, Ref | Variable):
                refuse(f"{decl.name} wants one value for {declared.name!r}", "Read one: a[i, j].")
            elif declared.dtype is not None and declared.dtype != "u8":
                target = LOADED[declared.dtype]
                term = self.b.lift(lambda x, t=target: self.b.convert(x, t), term)
            env[declared.name] = term
        given_params = {k.arg: k.value for k in node.keywords}
        for p in decl.params:
            if p.name in given_params:
                env[p.name] = self._term(frame, given_params.pop(p.name))
            elif p.default is None:
                refuse(f"{decl.name} needs the parameter {p.name!r}", f"Write {p.name}=...")
            else:
                env[p.name] = Vec(p.default) if isinstance(p.default, tuple) else p.default
        if given_params:
            refuse(f"{decl.name} has no parameter {next(iter(given_params))!r}")
        self.calls += 1
        path = (*frame.path, self.calls)
        try:
            return self._function(decl, env, args, path)
        except Refused as refused:
            # A mistake inside the helper is shown in the helper's own source.
            decl.source.fail(decl.function, refused.problem, refused.advice)

    # statements -------------------------------------------------------------------------------
    def _block(self, frame: Frame, body: list[ast.stmt]) -> bool:
        """Writes statements out; True when nothing can follow them."""
        for index, statement in enumerate(body):
            rest = body[index + 1 :]
            if isinstance(statement, ast.If):
                return self._if(frame, statement, rest)
            if isinstance(statement, ast.For):
                self._for(frame, statement)
                if _returns_inside([statement]):
                    return self._unless_done(frame, rest)
                continue
            try:
                ended = self._statement(frame, statement)
            except Refused as refused:
                self._fail(frame, statement, refused)
            if ended:
                return True
        return False

    def _statement(self, frame: Frame, node: ast.stmt) -> bool:
        if isinstance(node, ast.Return):
            assert node.value is not None
            self._return(frame, self._term(frame, node.value))
            if frame.loops:
                self.b.append(Break())
            return True
        if isinstance(node, ast.Break):
            self.b.append(Break())
            return True
        if isinstance(node, ast.Continue):
            self.b.append(Continue())
            return True
        if isinstance(node, ast.Assign):
            term = self._term(frame, node.value)
            for target in node.targets:
                self._store(frame, target, term)
        elif isinstance(node, ast.AnnAssign):
            assert node.value is not None
            self._store(frame, node.target, self._term(frame, node.value))
        elif isinstance(node, ast.AugAssign):
            assert isinstance(node.target, ast.Name)
            before = self._term(frame, ast.copy_location(ast.Name(node.target.id), node.target))
            after = self._operate(node.op, before, self._term(frame, node.value))
            self._assign(frame, node.target.id, after)
        return False  # pass, docstrings and nested functions write nothing

    def _store(self, frame: Frame, target: ast.expr, term: Term) -> None:
        if isinstance(target, ast.Name):
            self._assign(frame, target.id, term)
            return
        assert isinstance(target, ast.Tuple)
        if not isinstance(term, Vec) or len(term.items) != len(target.elts):
            refuse(
                f"{len(target.elts)} names cannot take {describe(term)}",
                "Give as many names as there are numbers.",
            )
        for name, item in zip(target.elts, term.items, strict=True):
            assert isinstance(name, ast.Name)
            self._assign(frame, name.id, item)

    def _assign(self, frame: Frame, name: str, term: Term) -> None:
        if name not in frame.often:
            frame.env[name] = term
            return
        key = (frame.path, name)
        self._write(key, term, name)
        frame.env[name] = Variable(key)

    def _write(self, key: tuple[Any, ...], term: Term, name: str) -> None:
        size = len(term.items) if isinstance(term, Vec) else 0
        if self.typing.sizes.setdefault(key, size) != size:
            refuse(
                f"{name} is {'a vector' if size else 'one number'} here and "
                f"{'one number' if size else 'a vector'} or of another size elsewhere",
                "Keep one size for one name.",
            )
        for index, item in enumerate(components([term])):
            part = (*key, index)
            found = type_of(item)
            known = self.typing.types.get(part)
            wide = found if known is None else join(known, found)
            self.typing.types[part] = wide
            if known is not None and wide != known:
                raise Restart
            slot = self.slots.setdefault(part, Slot(name, wide))
            self.b.set(slot, item)

    def _read(self, key: tuple[Any, ...]) -> Term:
        size = self.typing.sizes[key]
        items = tuple(self.b.get(self.slots[(*key, index)]) for index in range(max(size, 1)))
        return Vec(items) if size else items[0]

    def _return(self, frame: Frame, term: Term) -> None:
        outermost = not frame.path
        if outermost and isinstance(term, Vec) and not self.typing.pixels:
            if self.site.out_rank not in (2, 3):
                refuse(
                    "a vector result is a pixel, and the output is not an image",
                    "Return one number, or give an output of shape (height, width, 4).",
                )
            self.typing.pixels = True
            raise Restart
        if frame.straight:
            frame.result = term
            return
        if outermost and self.typing.pixels:
            # Returns of a pixel kernel may mix gray values and vectors; meet as pixels.
            items = components([term])
            items = [*items, *items, *items] if len(items) == 1 else items
            term = Vec(tuple([*items, 1.0][:4])) if len(items) >= 3 else term
        self._write((frame.path, "return"), term, "the result")
        assert frame.done is not None
        self.b.set(frame.done, True)

    def _if(self, frame: Frame, node: ast.If, rest: list[ast.stmt]) -> bool:
        try:
            condition = self.b.truth(self._term(frame, node.test))
        except Refused as refused:
            self._fail(frame, node.test, refused)
        if condition.op == "const":
            return self._block(frame, (node.body if condition.attr else node.orelse) + rest)
        then, otherwise = node.body, node.orelse
        # What follows a branch that returns belongs to the other branch: no flag is needed.
        if always_returns(then) and not frame.loops and not _returns_inside(otherwise):
            otherwise, rest = otherwise + rest, []
        elif otherwise and always_returns(otherwise) and not frame.loops and not _returns_inside(then):
            then, rest = then + rest, []
        before = frame.env
        outer = self.b.block
        branches: list[tuple[Block, dict[str, Binding], bool]] = []
        for body in (then, otherwise):
            self.b.block = Block()
            frame.env = dict(before)
            ended = self._block(frame, body)
            branches.append((self.b.block, frame.env, ended))
        self.b.block = outer
        (b1, env1, end1), (b2, env2, end2) = branches
        self.b.append(If(condition, b1, b2))
        if end1 and end2:
            return True
        if end1 or end2:
            frame.env = env2 if end1 else env1
        else:
            frame.env = {name: env1[name] for name in env1 if name in env2}
        # Direct names from one branch are not seen from outside it.
        frame.env = {
            name: bound
            for name, bound in frame.env.items()
            if isinstance(bound, Variable) or before.get(name) is bound
        }
        if rest and _returns_inside([node]):
            return self._unless_done(frame, rest)
        return self._block(frame, rest)

    def _unless_done(self, frame: Frame, rest: list[ast.stmt]) -> bool:
        """What follows something that may have returned runs only where it has not."""
        assert frame.done is not None
        outer, before = self.b.block, frame.env
        done = self.b.get(frame.done)
        leave, go_on = Block(), Block()
        if frame.loops:
            leave.body.append(Break())
        self.b.block, frame.env = go_on, dict(before)
        ended = self._block(frame, rest)
        self.b.block, frame.env = outer, before
        self.b.append(If(done, leave, go_on))
        return ended

    def _for(self, frame: Frame, node: ast.For) -> None:
        assert isinstance(node.target, ast.Name)
        assert isinstance(node.iter, ast.Call)
        try:
            bounds = [self._whole(self._term(frame, a), "a range") for a in node.iter.args]
        except Refused as refused:
            self._fail(frame, node.iter, refused)
        start: Scalar = 0
        step: Scalar = 1
        if len(bounds) == 1:
            stop = bounds[0]
        else:
            start, stop = bounds[0], bounds[1]
            step = bounds[2] if len(bounds) == 3 else 1
        if isinstance(step, Value) or step == 0:
            self._fail(
                frame,
                node.iter.args[2],
                Refused("the step of a range is a number other than 0", "Write the number."),
            )
        index = Slot(node.target.id, "s32")
        outer, before = self.b.block, frame.env
        try:
            first, last = self.b.convert(start, "s32"), self.b.convert(stop, "s32")
        except Refused as refused:
            self._fail(frame, node.iter, refused)
        self.b.block, frame.env = Block(), dict(before)
        frame.loops += 1
        self._assign(frame, node.target.id, self.b.get(index))
        self._block(frame, node.body)
        frame.loops -= 1
        body = self.b.block
        self.b.block, frame.env = outer, before
        self.b.append(For(index, first, last, int(step), body))

    def _fail(self, frame: Frame, node: ast.AST, refused: Refused) -> NoReturn:
        frame.decl.source.fail(getattr(refused, "node", node), refused.problem, refused.advice)

    # expressions ------------------------------------------------------------------------------
    def _term(self, frame: Frame, node: ast.expr) -> Term:
        """What an expression stands for, as numbers."""
        bound = self._binding(frame, node)
        if isinstance(bound, Ref):
            arg = self.site.args[bound.arg]
            how = "img[dx, dy]" if arg.kind == "image" else "a[i, j]"
            self._refuse_at(node, f"{arg.name!r} is an {arg.kind}", f"Read one value of it: {how}.")
        assert not isinstance(bound, Variable)
        return bound

    def _binding(self, frame: Frame, node: ast.expr) -> Binding:
        try:
            return self._expression(frame, node)
        except Refused as refused:
            if not hasattr(refused, "node"):
                refused.node = node  # type: ignore[attr-defined]
            raise

    def _refuse_at(self, node: ast.AST, problem: str, advice: str = "") -> NoReturn:
        refused = Refused(problem, advice)
        refused.node = node  # type: ignore[attr-defined]
        raise refused

    def _expression(self, frame: Frame, node: ast.expr) -> Binding:
        b = self.b
        if isinstance(node, ast.Constant):
            if isinstance(node.value, int) and not -(2**63) <= node.value < 2**64:
                refuse("this constant does not fit in 64 bits", "Write a float, such as 1e20.")
            assert isinstance(node.value, bool | int | float)
            return node.value
        if isinstance(node, ast.Name):
            return self._name(frame, node)
        if isinstance(node, ast.BinOp):
            return self._operate(
                node.op, self._term(frame, node.left), self._term(frame, node.right)
            )
        if isinstance(node, ast.UnaryOp):
            term = self._term(frame, node.operand)
            if isinstance(node.op, ast.Not):
                return b.negation(term)
            if isinstance(node.op, ast.UAdd):
                return term
            return b.lift(b.negate if isinstance(node.op, ast.USub) else b.invert, term)
        if isinstance(node, ast.BoolOp):
            op = "and" if isinstance(node.op, ast.And) else "or"
            result: Term = b.truth(self._term(frame, node.values[0]))
            for part in node.values[1:]:
                result = b.logical(op, result, self._term(frame, part))
            return result
        if isinstance(node, ast.Compare):
            return self._compare(frame, node)
        if isinstance(node, ast.IfExp):
            condition = self._term(frame, node.test)
            return b.select(
                condition, self._term(frame, node.body), self._term(frame, node.orelse)
            )
        if isinstance(node, ast.Tuple):
            if not 2 <= len(node.elts) <= 4:
                refuse("a vector has two to four numbers", "Write (x, y), (x, y, z) or (r, g, b, a).")
            items = components([self._term(frame, item) for item in node.elts])
            return Vec(tuple(items))
        if isinstance(node, ast.Subscript):
            return self._subscript(frame, node)
        if isinstance(node, ast.Attribute):
            return self._attribute(frame, node)
        assert isinstance(node, ast.Call)
        return self._call(frame, node)

    def _name(self, frame: Frame, node: ast.Name) -> Binding:
        bound = frame.env.get(node.id)
        if isinstance(bound, Variable):
            return self._read(bound.key)
        if bound is not None:
            return bound
        if node.id in frame.decl.constants:
            constant = frame.decl.constants[node.id]
            return Vec(constant) if isinstance(constant, tuple) else constant
        if node.id in CONSTANTS and not _is_local(frame.decl, node.id):
            return CONSTANTS[node.id]
        refuse(
            f"{node.id!r} may have no value here",
            "Give it a value before the if or the loop.",
        )

    def _operate(self, op: ast.operator, a: Term, c: Term) -> Term:
        b = self.b
        if isinstance(op, ast.Pow):
            return b.lift(b.power, a, c)
        if isinstance(op, ast.LShift | ast.RShift):
            name = "shl" if isinstance(op, ast.LShift) else "shr"
            return b.lift(lambda x, y: b.shift(name, x, y), a, c)
        return b.lift(lambda x, y: b.binary(_BINARY[type(op)], x, y), a, c)

    def _compare(self, frame: Frame, node: ast.Compare) -> Term:
        b = self.b
        left = self._term(frame, node.left)
        result: Term | None = None
        for op, comparator in zip(node.ops, node.comparators, strict=True):
            right = self._term(frame, comparator)
            if isinstance(left, Vec) or isinstance(right, Vec):
                refuse("vectors cannot be compared", "Compare one component: px.r > 0.5.")
            one = b.binary(_COMPARE[type(op)], left, right)
            result = one if result is None else b.logical("and", result, one)
            left = right
        assert result is not None
        return result

    def _whole(self, term: Term, what: str) -> Scalar:
        if isinstance(term, Vec) or type_of(term) in FLOATS:
            refuse(f"{what} needs whole numbers, {describe(term)} came", "Cast with int(x).")
        return term

    def _subscript(self, frame: Frame, node: ast.Subscript) -> Term:
        bound = self._binding(frame, node.value)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if isinstance(bound, Ref):
            arg = self.site.args[bound.arg]
            indexes = []
            for part in parts:
                index = self._whole(self._term(frame, part), "an index")
                indexes.append(self.b.convert(index, "s32"))
            wanted = 2 if arg.kind == "image" else arg.rank
            if len(indexes) != wanted:
                refuse(
                    f"{arg.name!r} takes {wanted} indexes, {len(indexes)} came",
                    "Write img[dx, dy]." if arg.kind == "image" else "Give one index an axis.",
                )
            if arg.kind == "image":
                return self._texel("image", bound.arg, *indexes)
            return self.b.emit("array", LOADED[arg.dtype], *indexes, attr=bound.arg)
        if not isinstance(bound, Vec):
            refuse(
                "only arrays, images and vectors can be indexed",
                "Annotate the input: a: Array, or img: Image.",
            )
        index = self._term(frame, parts[0])
        if len(parts) > 1 or not isinstance(index, int) or not (
            -len(bound.items) <= index < len(bound.items)
        ):
            refuse(f"a component is chosen by a number below {len(bound.items)}", "Write v[0].")
        return bound.items[index]

    def _texel(self, op: str, arg: int, *offsets: Value) -> Term:
        """One pixel of an input: a vector, or one number where the image is gray."""
        b, spec = self.b, self.site.args[arg]
        items: list[Scalar] = []
        for channel in range(spec.channels):
            raw = b.emit(op, LOADED[spec.dtype], *offsets, attr=(arg, channel))
            if spec.dtype == "u8":
                items.append(b.binary("mul", b.convert(raw, "f32"), 1 / 255))
            else:
                items.append(raw)
        if spec.channels == 1:
            return items[0]
        return Vec(tuple([*items, 1.0][:4]))

    def _attribute(self, frame: Frame, node: ast.Attribute) -> Binding:
        if isinstance(node.value, ast.Name) and node.value.id == "math":
            return CONSTANTS[node.attr]
        if node.attr in ("shape", "width", "height"):
            return self._shape(frame, node.value, node.attr)
        term = self._term(frame, node.value)
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

    def _shape(self, frame: Frame, node: ast.expr, what: str) -> Term:
        if not isinstance(node, ast.Name) or node.id not in frame.args:
            refuse(f".{what} belongs to an input", "Write it after an input's name.")
        index = frame.args[node.id]
        arg = self.site.args[index]
        if what == "shape":
            axes = [self.b.emit("dim", "s32", attr=(index, axis)) for axis in range(arg.rank)]
            return Vec(tuple(axes)) if len(axes) != 1 else axes[0]
        if arg.kind not in ("image", "pixel"):
            refuse(f"only images have .{what}", f"Write {node.id}.shape[0].")
        return self.b.emit("dim", "s32", attr=(index, 0 if what == "height" else 1))

    def _call(self, frame: Frame, node: ast.Call) -> Term:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else None
        if isinstance(node.func, ast.Name):
            name = node.func.id
            if name in frame.decl.helpers:
                return self._helper(frame, node, frame.decl.helpers[name])
        assert name is not None
        function = FUNCTIONS[name]
        if node.keywords:
            refuse(f"{name} takes no named arguments", "Give them in order.")
        if not function.least <= len(node.args) <= function.most:
            count = str(function.least)
            if function.most != function.least:
                count += f" to {function.most}"
            refuse(f"{name} takes {count} arguments, {len(node.args)} came", function.doc)
        if name == "position":
            return self._position(frame, node)
        if name in ("shape", "len"):
            return self._shape_call(frame, node, name)
        terms = [self._term(frame, a) for a in node.args]
        if function.whole:
            return function.build(self.b, *terms)
        return self.b.lift(lambda *scalars: function.build(self.b, *scalars), *terms)

    def _position(self, frame: Frame, node: ast.Call) -> Term:
        rank = self.site.rank
        if node.args:
            axis = self._term(frame, node.args[0])
            if not isinstance(axis, int) or not -rank <= axis < rank:
                refuse(f"position takes an axis below {rank}", "Write position(0).")
            return self.b.emit("position", "s32", attr=axis % rank)
        axes = [self.b.emit("position", "s32", attr=axis) for axis in range(rank)]
        return Vec(tuple(axes)) if rank > 1 else axes[0]

    def _shape_call(self, frame: Frame, node: ast.Call, name: str) -> Term:
        if node.args:
            term = self._shape(frame, node.args[0], "shape")
            if name == "len":
                return term.items[0] if isinstance(term, Vec) else term
            return term
        rank = self.site.rank
        axes = [self.b.emit("dim", "s32", attr=(-1, axis)) for axis in range(rank)]
        return Vec(tuple(axes)) if rank > 1 else axes[0]


def _inside(body: list[ast.stmt]) -> list[ast.AST]:
    """All nodes of some statements, nested functions left out."""
    found: list[ast.AST] = []
    todo: list[ast.AST] = list(body)
    while todo:
        node = todo.pop()
        if not isinstance(node, ast.FunctionDef):
            found.append(node)
            todo.extend(ast.iter_child_nodes(node))
    return found


def _returns_inside(body: list[ast.stmt]) -> bool:
    return any(isinstance(n, ast.Return) for n in _inside(body))


def _assigned_often(decl: KernelDecl) -> frozenset[str]:
    """Names assigned more than once, arguments counting as assigned."""
    counts: dict[str, int] = {a.name: 1 for a in decl.args}
    counts.update({p.name: 1 for p in decl.params})
    for node in _inside(decl.function.body):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            counts[node.id] = counts.get(node.id, 0) + 1
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            counts[node.target.id] = counts.get(node.target.id, 0) + 1
    return frozenset(name for name, count in counts.items() if count > 1)


def _is_local(decl: KernelDecl, name: str) -> bool:
    return any(
        isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
        for n in _inside(decl.function.body)
    )
