"""Lower the statements of a checked kernel to IR.

Helper kernels are inlined at each call. Returns become assignments to result slots, so the IR has
no return. Each variable has one type, the widest of its assignments; if a later assignment widens
it, lowering restarts with the wider type.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping

from dala.errors import KernelSyntaxError
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
from dala.gpu.compute.lang.check import always_returns, assigned_often, inside, returns_inside
from dala.gpu.compute.lang.declaration import KernelDecl, ParamDecl
from dala.gpu.compute.lang.expressions import (
    Env,
    Expressions,
    FunctionScope,
    Ref,
    Restart,
    Site,
    Typing,
    Variable,
    VariableKey,
    letters_of,
)
from dala.gpu.compute.lang.functions import Function
from dala.gpu.compute.lang.ir import LOADED, Block, Break, Continue, For, If, Slot, Value
from dala.gpu.compute.lang.library import prelude
from dala.gpu.compute.lang.library.parts import made_list, with_part
from dala.gpu.compute.lang.library.shapes import Shape, shape_of, size_of
from dala.gpu.compute.lang.limits import MAX_BLOCKS_DEEP, MAX_CALLS_DEEP, MAX_LOOPS_DEEP
from dala.gpu.compute.lang.scalars import join


class Lowering(Expressions):
    """Lowers kernels to IR."""

    def __init__(self, builder: Builder, site: Site, typing: Typing) -> None:
        super().__init__(builder, site, typing)
        self.calls = 0
        #: Blocks and loops around the current statement, those of calling kernels included.
        self.blocks = 0
        self.loops = 0
        #: True if a type is wider than an earlier use assumed, so that lowering must restart.
        self.widened = False

    def kernel(self, decl: KernelDecl, params: Mapping[str, Term]) -> Term:
        """Lower the outermost kernel and return its result."""
        env: Env = dict(params)
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
        env: Env,
        args: dict[str, int],
        path: VariableKey,
    ) -> Term:
        if any(f.decl is decl for f in self.stack) or len(self.stack) >= MAX_CALLS_DEEP:
            refuse("kernels call each other recursively or too deeply", "Use a loop instead.")
        body = decl.function.body
        returns = [n for n in inside(body) if isinstance(n, ast.Return)]
        straight = len(returns) == 1 and body[-1] is returns[0]
        often = assigned_often(body, [a.name for a in decl.args] + [*decl.param_names])
        frame = self.frame = FunctionScope(decl, path, env, args, often, straight)
        self.stack.append(frame)
        for name in sorted(often & set(env)):  # arguments that are assigned to become variables
            start = env[name]
            if not isinstance(start, Ref | Variable):
                self._assign(name, start)
        if not straight:
            frame.done = Slot("done", "bool")
            if path:  # reset the result: the helper may be called in a loop
                self.b.set(frame.done, False)
        self._block(body)
        self.stack.pop()
        self.frame = self.stack[-1] if self.stack else frame
        return self._read((path, "return")) if frame.result is None else frame.result

    def _helper(self, node: ast.Call, decl: KernelDecl) -> Term:
        if len(node.args) != len(decl.args):
            refuse(
                f"{decl.name} takes {len(decl.args)} inputs, got {len(node.args)}",
                "Pass its inputs in order and its parameters by name.",
            )
        env: Env = {}
        args: dict[str, int] = {}
        for declared, given in zip(decl.args, node.args, strict=True):
            term = self._binding(given)
            if declared.kind in ("image", "array"):
                kind = "image" if declared.kind == "image" else "array"
                if not isinstance(term, Ref) or self._kind_of(term) != kind:
                    refuse(f"{declared.name!r} of {decl.name} must be an {declared.kind}")
                args[declared.name] = term.arg
            elif isinstance(term, Ref | Variable):
                refuse(f"{declared.name!r} of {decl.name} must be one value", "Read one: a[i, j].")
            elif declared.dtype is not None and declared.dtype != "u8":
                target = LOADED[declared.dtype]
                term = self.b.lift(lambda x, t=target: self.b.convert(x, t), term)
            env[declared.name] = term
        return self._call_of(node, decl, env, args)

    def _kind_of(self, term: Ref) -> str:
        return "image" if self.frame.is_image(term.arg) else self.site.args[term.arg].kind

    def _call_of(self, node: ast.Call, decl: KernelDecl, env: Env, args: dict[str, int]) -> Term:
        """Lower a call of a kernel whose inputs are bound."""
        given_params = {k.arg: k.value for k in node.keywords}
        for p in decl.params:
            if p.name in given_params:
                env[p.name] = self._within(p, self._term(given_params.pop(p.name)))
            elif p.default is None:
                refuse(f"{decl.name} requires the parameter {p.name!r}", f"Write {p.name}=...")
            elif p.listed and isinstance(p.default, tuple):
                env[p.name] = made_list(p.default)
            else:
                env[p.name] = Vec(p.default) if isinstance(p.default, tuple) else p.default
        if given_params:
            refuse(f"{decl.name} has no parameter {next(iter(given_params))!r}")
        self.calls += 1
        path = (*self.frame.path, self.calls)
        try:
            return self._function(decl, env, args, path)
        except Refused as refused:
            # Show the line in the helper's source.
            decl.source.fail(decl.function, refused.problem, refused.advice)

    def _library(self, node: ast.Call, function: Function, terms: list[Term]) -> Term:
        decl = prelude.find(function.name, len(components(terms)))
        if decl is None:
            refuse(f"{function.name} takes no {len(components(terms))} numbers", function.doc)
        if function.joined:
            items = components(terms)
            terms = [Vec(tuple(items)) if len(items) > 1 else items[0]]
        names = [declared.name for declared in decl.args]
        env: Env = dict(zip(names, terms, strict=True))
        return self._prelude(node, function.name, decl, env, {})

    def _prelude(
        self, node: ast.Call, name: str, decl: KernelDecl, env: Env, args: dict[str, int]
    ) -> Term:
        """Lower a call of a function of the prelude; errors in it are errors of the call."""
        frame, depth = self.frame, len(self.stack)
        try:
            return self._call_of(node, decl, env, args)
        except KernelSyntaxError as error:
            if error.kernel != prelude.NAME or not self.stack:
                raise
            # Show the call, not the line of the prelude.
            self.frame = frame
            del self.stack[depth:]
            refuse(f"{name}: {error.problem}", error.advice)

    def _within(self, p: ParamDecl, term: Term) -> Term:
        """Clamp a computed parameter to its range. The parser has checked literals."""
        low, high = p.low, p.high
        if p.listed and not isinstance(term, Compound):
            term = made_list(components([term]))
        if low is None or high is None or isinstance(term, (bool, int, float)):
            return term

        def clamped(x: Scalar) -> Scalar:
            x = x if math.isinf(low) else self.b.binary("max", x, low)
            return x if math.isinf(high) else self.b.binary("min", x, high)

        if isinstance(term, Compound):
            return Compound(term.kind, tuple(self.b.lift(clamped, part) for part in term.parts))
        return self.b.lift(clamped, term)

    # statements -------------------------------------------------------------------------------
    def _block(self, body: list[ast.stmt]) -> bool:
        """Lower statements; return True if control never reaches the end."""
        todo = list(reversed(body))  # a stack: text with hundreds of ifs in a row must not recurse
        while todo:
            statement = todo.pop()
            try:
                if isinstance(statement, ast.If):
                    ended, todo = self._if(statement, todo)
                    if ended:
                        return True
                elif isinstance(statement, ast.For):
                    self._for(statement)
                    if returns_inside([statement]):
                        return self._unless_done(todo[::-1])
                elif isinstance(statement, ast.While):
                    self._while(statement)
                    if returns_inside([statement]):
                        return self._unless_done(todo[::-1])
                elif self._statement(statement):
                    return True
            except Refused as refused:
                # Of an if or a loop, its condition or range.
                place = getattr(statement, "test", getattr(statement, "iter", statement))
                place = getattr(refused, "node", place)
                fail = self.frame.decl.source.fail
                fail(place, refused.problem, refused.advice, limit=refused.limit)
        return False

    def _nested(
        self,
        place: ast.AST,
        body: list[ast.stmt],
        index: Slot | None = None,
        test: ast.expr | None = None,
    ) -> tuple[Block, Env, bool]:
        """Lower statements into a block of their own, which a loop begins with its index or test.

        Return it, the names that are bound at its end, and True if control leaves it.
        """
        self.blocks += 1
        if self.blocks > MAX_BLOCKS_DEEP:
            self._refuse_at(
                place,
                f"blocks are nested more than {MAX_BLOCKS_DEEP} deep; each elif, and each if "
                "that returns, nests what follows it",
                "Read the values from an array, or use several kernels.",
            )
        outer, before = self.b.block, self.frame.env
        self.b.block, self.frame.env = Block(), dict(before)
        if index is not None:
            self._assign(index.name, self.b.get(index))
        if test is not None:
            holds = self.b.truth(self._term(test))
            self.b.append(If(holds, Block(), Block([Break()])))
        ended = self._block(body)
        made = self.b.block, self.frame.env, ended
        self.b.block, self.frame.env = outer, before
        self.blocks -= 1
        return made

    def _statement(self, node: ast.stmt) -> bool:
        if isinstance(node, ast.Return):
            assert node.value is not None
            self._return(self._term(node.value))
            if self.frame.loops:
                self.b.append(Break())
            return True
        if isinstance(node, ast.Break | ast.Continue):
            self.b.append(Break() if isinstance(node, ast.Break) else Continue())
            return True
        if isinstance(node, ast.Assign):
            if self._assign_tuple(node):
                return False
            term = self._term(node.value)
            for target in node.targets:
                self._store(target, term)
        elif isinstance(node, ast.AnnAssign):
            assert node.value is not None
            self._store(node.target, self._term(node.value))
        elif isinstance(node, ast.AugAssign):
            before = self._term(node.target)
            self._store(node.target, self._operate(node.op, before, self._term(node.value)))
        return False  # pass, docstrings and nested functions emit nothing

    def _assign_tuple(self, node: ast.Assign) -> bool:
        """Lower ``a, b = x, y``: compute all terms first; each may be a vector."""
        target, value = node.targets[0], node.value
        if not (
            len(node.targets) == 1
            and isinstance(target, ast.Tuple)
            and isinstance(value, ast.Tuple)
            and len(target.elts) == len(value.elts)
        ):
            return False
        terms = [self._term(item) for item in value.elts]
        for name, term in zip(target.elts, terms, strict=True):
            self._store(name, term)
        return True

    def _store(self, target: ast.expr, term: Term) -> None:
        if isinstance(target, ast.Name):
            self._assign(target.id, term)
            return
        if isinstance(target, ast.Attribute | ast.Subscript):
            self._store(target.value, self._with_part(target, term))
            return
        assert isinstance(target, ast.Tuple)
        items: tuple[Term, ...] = ()
        if isinstance(term, Compound):
            items = term.parts
        elif isinstance(term, Vec):
            items = term.parts if len(term.parts) == len(target.elts) else term.items
        elif len(target.elts) == 1:
            items = (term,)  # (i,) = position()
        if len(items) != len(target.elts):
            refuse(
                f"cannot assign {describe(term)} to {len(target.elts)} names",
                "Write one name per number.",
            )
        for name, item in zip(target.elts, items, strict=True):
            self._store(name, item)

    def _with_part(self, target: ast.Attribute | ast.Subscript, new: Term) -> Term:
        """Return the term that a target is a part of, with that part replaced."""
        bound = self._binding(target.value)
        if isinstance(bound, Ref | Variable):
            refuse(
                "a kernel cannot store into an array",
                "Return the value for this position; position() returns its index.",
            )
        if isinstance(target, ast.Subscript):
            return with_part(self.b, bound, self._index_of(bound, target), new)
        letters, items = letters_of(target.attr), components([new])
        if not isinstance(bound, Vec) or max(letters) >= len(bound.items):
            refuse(f"{describe(bound)} has no component {target.attr!r}")
        if len(items) != len(letters):
            refuse(f"cannot assign {describe(new)} to {len(letters)} components")
        given = dict(zip(letters, items, strict=True))
        return Vec(tuple(given.get(i, old) for i, old in enumerate(bound.items)))

    def _assign(self, name: str, term: Term) -> None:
        if name not in self.frame.often:
            self.frame.env[name] = term
            return
        key = (self.frame.path, name)
        self._write(key, term, name)
        self.frame.env[name] = Variable(key)

    def _write(self, key: VariableKey, term: Term, name: str) -> None:
        shape = shape_of(term)
        known_shape = self.typing.shapes.setdefault(key, shape)
        if known_shape != shape and _numbers(known_shape) == _numbers(shape) is not None:
            # Vectors of one size, of which one was written in parts.
            self.typing.shapes[key] = size_of(shape)
        elif known_shape != shape:
            one = "a vector" if isinstance(term, Vec) else "one number"
            other = "one number" if isinstance(term, Vec) else "a vector"
            if isinstance(term, Compound):
                one, other = describe(term), "something else"
            refuse(f"{name} is {one} here and {other} or of another size elsewhere", _SECOND)
        for index, item in enumerate(components([term])):
            part = (*key, index)
            found = type_of(item)
            known = self.typing.types.get(part)
            wide = found if known is None else join(known, found)
            self.typing.types[part] = wide
            if known is not None and wide != known:
                # Go on, to find all types that are wider than assumed; the IR is discarded.
                self.widened = True
                self.slots[part] = Slot(name, wide)
            slot = self.slots.setdefault(part, Slot(name, wide))
            self.b.set(slot, item)

    def _return(self, term: Term) -> None:
        outermost = not self.frame.path
        if outermost and isinstance(term, Compound):
            advice = "Return one number, or rgba(r, g, b, a)."
            refuse(f"the result is {describe(term)}, not a number or a pixel", advice)
        if outermost and isinstance(term, Vec) and not self.typing.pixels:
            if self.site.out_rank not in (2, 3):
                refuse(
                    "a vector result is a pixel, and the output is not an image",
                    "Return one number, or pass an output of shape (height, width, 4).",
                )
            self.typing.pixels = True
            raise Restart
        if self.frame.straight:
            self.frame.result = term
            return
        if outermost and self.typing.pixels:
            # A pixel kernel may return gray values and vectors: convert all to pixels.
            items = components([term])
            items = [*items, *items, *items] if len(items) == 1 else items
            term = Vec(tuple([*items, 1.0][:4])) if len(items) >= 3 else term
        self._write((self.frame.path, "return"), term, "the result")
        assert self.frame.done is not None
        self.b.set(self.frame.done, True)

    def _if(self, node: ast.If, later: list[ast.stmt]) -> tuple[bool, list[ast.stmt]]:
        """Lower an if; return whether control ends there, and the statements that remain.

        ``later`` and the returned list are stacks: the next statement is the last element.
        """
        condition = self.b.truth(self._term(node.test))
        if condition.op == "const":
            return False, later + (node.body if condition.attr else node.orelse)[::-1]
        then, otherwise = node.body, node.orelse
        # If one branch returns, move the rest into the other branch; this avoids a flag.
        if always_returns(then) and not self.frame.loops and not returns_inside(otherwise):
            otherwise, later = otherwise + later[::-1], []
        elif (
            otherwise
            and always_returns(otherwise)
            and not self.frame.loops
            and not returns_inside(then)
        ):
            then, later = then + later[::-1], []
        before = self.frame.env
        b1, env1, end1 = self._nested(node, then)
        b2, env2, end2 = self._nested(node, otherwise)
        self.b.append(If(condition, b1, b2))
        if end1 and end2:
            return True, []
        if end1 or end2:
            self.frame.env = env2 if end1 else env1
        else:
            self.frame.env = {name: env1[name] for name in env1 if name in env2}
        # Names assigned in only one branch are not visible after it.
        self.frame.env = {
            name: bound
            for name, bound in self.frame.env.items()
            if isinstance(bound, Variable) or before.get(name) is bound
        }
        if later and returns_inside([node]):
            return self._unless_done(later[::-1]), []
        return False, later

    def _unless_done(self, rest: list[ast.stmt]) -> bool:
        """Lower statements that must not run after a return."""
        if not rest and not self.frame.loops:
            return False
        assert self.frame.done is not None
        done = self.b.get(self.frame.done)
        leave = Block([Break()] if self.frame.loops else [])
        go_on, _, ended = self._nested(rest[0], rest) if rest else (Block(), {}, False)
        self.b.append(If(done, leave, go_on))
        return ended

    def _for(self, node: ast.For) -> None:
        assert isinstance(node.target, ast.Name)
        assert isinstance(node.iter, ast.Call)
        bounds = [self._whole(self._term(a), "a range", a) for a in node.iter.args]
        start, stop = (0, *bounds[:2])[-2:]
        step = bounds[2] if len(bounds) == 3 else 1
        if isinstance(step, Value) or step == 0:
            problem = "the step of a range must be a constant other than 0"
            self._refuse_at(node.iter.args[2], problem, "Write a number.")
        index = Slot(node.target.id, "s32")
        first, last = self.b.index(start), self.b.index(stop)
        self._loop(node, index, index, (first, last), int(step))

    def _while(self, node: ast.While) -> None:
        """Lower a loop that runs as long as a condition holds, at most 2**31 - 1 times.

        The number is kept in a slot, so that no engine takes it for the loop's length.
        """
        most = Slot("most", "s32")
        self.b.set(most, 2**31 - 1)
        bounds = self.b.convert(0, "s32"), self.b.get(most)
        self._loop(node, Slot("turn", "s32"), None, bounds, 1)

    def _loop(
        self,
        node: ast.For | ast.While,
        index: Slot,
        named: Slot | None,
        bounds: tuple[Value, Value],
        step: int,
    ) -> None:
        self.frame.loops += 1
        self.loops += 1
        if self.loops > MAX_LOOPS_DEEP:
            self._refuse_at(
                node,
                f"loops are nested more than {MAX_LOOPS_DEEP} deep",
                "Compute several indices from one loop variable with // and %.",
            )
        test = node.test if isinstance(node, ast.While) else None
        body, _, _ = self._nested(node, node.body, named, test)
        self.frame.loops -= 1
        self.loops -= 1
        self.b.append(For(index, *bounds, step, body))


_SECOND = "Use a second name."


def _numbers(shape: Shape) -> int | None:
    """Return the size of a vector's shape; None for other shapes."""
    if isinstance(shape, int):
        return shape or None
    return size_of(shape) if shape[0] == "vector" else None
