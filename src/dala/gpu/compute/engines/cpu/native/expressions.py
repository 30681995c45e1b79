"""Emit expressions of native code: names, operators, subscripts, memory accesses, calls."""

from __future__ import annotations

import ast
import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Final, NoReturn

from dala.gpu.compute.engines.cpu.native.function import NativeFunction
from dala.gpu.compute.engines.cpu.native.module import NativeModule
from dala.gpu.compute.engines.cpu.native.names import Record
from dala.gpu.compute.engines.cpu.native.operations import ArithmeticWriter, describe
from dala.gpu.compute.engines.cpu.native.signature import lookup
from dala.gpu.compute.engines.cpu.native.types import Span, Static, Term, is_group, is_number
from dala.gpu.compute.engines.cpu.vector.text import FunctionText
from dala.gpu.compute.engines.cpu.vector.types import BOOL, I64, Operand, Type

#: Returns early from a checked function. The result type is filled in when it is known.
EARLY_RETURN: Final = "ret $RESULT"


class MemoryWriter(ArithmeticWriter):
    """Emits loads and stores, with bounds checks in checked builds."""

    unit: NativeModule
    function: NativeFunction
    at: ast.AST
    groups: list[str]

    def address(self, array: Span, index: str) -> str:
        """Return the address of an element."""
        return self.f.let(
            f"getelementptr inbounds {array.element.stored}, ptr {array.pointer}, i64 {index}"
        )

    def access_metadata(self) -> str:
        """Return the metadata of a memory access inside independent loops."""
        if not self.groups:
            return ""
        group = self.groups[0]
        if len(self.groups) > 1:
            group = self.unit.meta("!{" + ", ".join(self.groups) + "}")
        return f", !llvm.access.group {group}"

    def load(self, array: Span, index: str, lanes: int = 1) -> Operand:
        """Load an element, or consecutive elements as a vector."""
        self.check_range(index, array.length, width=lanes)
        t = array.element.wide(lanes)
        text = f"load {t.stored}, ptr {self.address(array, index)}, align {array.align}"
        name = self.f.let(text + self.access_metadata())
        if t.bits == 1:
            name = self.f.let(f"icmp ne {t.stored} {name}, zeroinitializer")
        return Operand(t, name)

    def store(self, array: Span, index: str, term: Term) -> None:
        """Store an element, or a vector to consecutive elements."""
        lanes = term.type.lanes if isinstance(term, Operand) else 1
        t = array.element.wide(lanes)
        v = self.value(term, t)
        if v.type != t:
            self.fail(
                f"cannot store {v.type} in an array of {array.element}",
                f"Convert it: {array.element}(...), or saturate({array.element}, ...).",
            )
        self.check_range(index, array.length, width=lanes)
        name = v.name
        if t.bits == 1:
            name = self.f.let(f"zext {t.llvm} {name} to {t.stored}")
        place = self.address(array, index)
        self.f.do(
            f"store {t.stored} {name}, ptr {place}, align {array.align}{self.access_metadata()}"
        )

    def check_range(self, index: str, length: str, *, width: int = 1, more: str = "") -> None:
        """Emit a bounds check, in checked builds only."""
        if not self.unit.checked:
            return
        f = self.f
        limit = length
        if more:
            limit = f.let(f"add i64 {length}, {more}")
        if width > 1:
            limit = f.let(f"sub i64 {length}, {width - 1}")
        low = f.let(f"icmp sge i64 {index}, 0")
        high = f.let(f"icmp slt i64 {index}, {limit}")
        fine, bad = f.label("within"), f.label("beyond")
        f.branch(f.let(f"and i1 {low}, {high}"), fine, bad)
        f.start(bad)
        number, line = self.unit.names.index(self.function.name), self.function.line(self.at)
        report = f"i64 {index}, i64 {length}, i64 {line}, i64 {number}"
        f.do(f"call void @dala.fault(ptr %fault, {report})")
        f.do(EARLY_RETURN)
        f.start(fine)


@dataclass(frozen=True, slots=True)
class NumberVariable:
    """A local variable that holds a number or a vector."""

    type: Type
    pointer: str


class ArrayVariable(Span):
    """A local variable that holds an array: where its address and its length are stored."""


class ExpressionWriter(MemoryWriter):
    """Emits expressions; :class:`~.statements.FunctionWriter` adds statements."""

    statics: dict[str, Static]

    def __init__(self, unit: NativeModule, function: NativeFunction, f: FunctionText) -> None:
        super().__init__(f, "nsz " if function.fast else "")
        self.unit = unit
        self.function = function
        #: The factors of float products, by their names.
        self.products: dict[str, tuple[Operand, Operand]] = {}
        self.at: ast.AST = function.tree
        #: Local names: variables, or constants (counters of unrolled loops).
        self.names: dict[str, NumberVariable | ArrayVariable | Term] = {}
        #: Access groups of the enclosing independent loops.
        self.groups: list[str] = []
        #: Arrays on the stack, by the call that creates them.
        self.locals: dict[tuple[int, Type, int], str] = {}

    def fail(self, problem: str, advice: str = "") -> NoReturn:
        """Raise KernelSyntaxError at the current node."""
        self.function.fail(self.at, problem, advice)

    # terms ------------------------------------------------------------------------------------
    def term(self, node: ast.expr) -> Term:
        """Evaluate an expression: to a constant, or to code that computes it."""
        before, self.at = self.at, node
        handler = _NODES.get(type(node))
        if handler is None:
            self.fail(f"{type(node).__name__} is not supported in native code")
        found = handler(self, node)
        self.at = before
        return found

    def _constant(self, node: ast.Constant) -> Term:
        if not is_number(node.value):
            self.fail(f"{node.value!r} is not a number")
        return node.value

    def _name(self, node: ast.Name) -> Term:
        if node.id in self.names:
            return self.read(self.names[node.id])
        try:
            found = lookup(self.function, node.id, self.statics)
        except KeyError:
            self.fail(f"{node.id!r} is not defined", "Assign a local variable before using it.")
        return BOOL if found is bool else found

    def read(self, variable: NumberVariable | ArrayVariable | Term) -> Term:
        """Return the value of a local name."""
        if isinstance(variable, NumberVariable):
            kind = variable.type
            return Operand(kind, self.f.let(f"load {kind.llvm}, ptr {variable.pointer}"))
        if isinstance(variable, ArrayVariable):
            pointer = self.f.let(f"load ptr, ptr {variable.pointer}")
            length = self.f.let(f"load i64, ptr {variable.length}")
            return Span(variable.element, pointer, length, variable.align, variable.record)
        return variable

    def _attribute(self, node: ast.Attribute) -> Term:
        owner = self.term(node.value)
        if isinstance(owner, Span) and owner.record is not None:
            return self.load(*self.field(owner, node.attr))
        if (isinstance(owner, (ModuleType, type)) or is_group(owner)) and hasattr(owner, node.attr):
            return getattr(owner, node.attr)
        self.fail(f"{ast.unparse(node)} is not supported in native code")

    def field(self, owner: Span, name: str) -> tuple[Span, str]:
        """Return a record as an array of the type of a field, and the field's index."""
        if owner.record is None or name not in owner.record.places:
            self.fail(f"{describe(owner)} has no {name!r}")
        return replace(owner, element=owner.record.kinds[name]), str(owner.record.places[name])

    def _named(self, called: Term, args: list[Term]) -> Term:
        """Return a group of values, or a record of an array by its number."""
        if is_group(called):
            if len(args) != len(called._fields):
                self.fail(f"{called.__name__}(...) takes {', '.join(called._fields)}")
            return called(*(a if isinstance(a, (Span, tuple)) else self.value(a) for a in args))
        array, *number = args
        if not isinstance(array, Span) or array.element != called.element or len(number) != 1:
            self.fail(f"{called.__name__}(...) takes an array of {called.element} and a number")
        place = Operand(I64, self.index(number[0]))
        first = self.binary(ast.Mult(), place, called.size).name
        self.check_range(first, array.length, width=called.size)
        pointer = self.address(array, first)
        return Span(array.element, pointer, str(called.size), array.align, called)

    def _tuple(self, node: ast.Tuple) -> Term:
        return tuple(self.term(e) for e in node.elts)

    def _binary(self, node: ast.BinOp) -> Term:
        a, b = self.term(node.left), self.term(node.right)
        return self.binary(node.op, a, b)

    def _unary(self, node: ast.UnaryOp) -> Term:
        return self.unary(node.op, self.term(node.operand))

    # conditions -------------------------------------------------------------------------------
    def _boolean(self, node: ast.BoolOp) -> Term:
        parts = [lambda n=n: self.term(n) for n in node.values]
        pure = all(self._is_pure(n) for n in node.values[1:])
        return self._chain(parts, isinstance(node.op, ast.And), pure)

    def _compare(self, node: ast.Compare) -> Term:
        last = self.term(node.left)
        parts: list[Callable[[], Term]] = []
        for op, right in zip(node.ops, node.comparators, strict=True):

            def part(op: ast.cmpop = op, right: ast.expr = right) -> Term:
                nonlocal last
                a, last = last, self.term(right)
                return self.compare(op, a, last)

            parts.append(part)
        return self._chain(parts, True, all(self._is_pure(n) for n in node.comparators[1:]))

    def _chain(self, parts: Sequence[Callable[[], Term]], every: bool, pure: bool) -> Term:
        """Emit ``and`` (every) or ``or``, with constants folded and short-circuit evaluation."""
        total: Operand | None = None
        after = self.f.label("known")
        arrivals: list[str] = []
        for i, part in enumerate(parts):
            term = part()
            if not isinstance(term, Operand):
                if bool(term) == every:
                    continue
                if total is None:
                    return not every
                term = self.literal(not every, BOOL)
            v = self.condition(term)
            if total is not None and pure:
                v = self.write("and" if every else "or", *self.same_type(total, v))
            total = v
            if not pure and i < len(parts) - 1:
                if v.type.lanes > 1:
                    self.fail("and, or take single bools", "Use & or | for vectors.")
                following = self.f.label("next")
                arrivals.append(self.f.here)
                self.f.branch(v.name, *((following, after) if every else (after, following)))
                self.f.start(following)
        if total is None:
            return every
        if not arrivals:
            return total
        last = self.f.here
        self.f.jump(after)
        self.f.start(after)
        early = "false" if every else "true"
        edges = [f"[ {early}, %{a} ]" for a in arrivals] + [f"[ {total.name}, %{last} ]"]
        return Operand(BOOL, self.f.let(f"phi i1 {', '.join(edges)}"))

    def _is_pure(self, node: ast.expr) -> bool:
        """Return True if an expression is safe to evaluate when its value is not needed."""
        for part in ast.walk(node):
            if isinstance(part, ast.Subscript):
                return False
            if isinstance(part, ast.Call) and not (
                isinstance(part.func, ast.Name)
                and (part.func.id in ("min", "max", "abs") or self._is_type(part.func.id))
            ):
                return False
        return True

    def _is_type(self, name: str) -> bool:
        try:
            return isinstance(lookup(self.function, name, self.statics), Type)
        except KeyError:
            return False

    def _choice(self, node: ast.IfExp) -> Term:
        condition = self.term(node.test)
        if not isinstance(condition, Operand):
            return self.term(node.body if condition else node.orelse)
        if condition.type.lanes > 1 or (self._is_pure(node.body) and self._is_pure(node.orelse)):
            return self.choose(condition, self.term(node.body), self.term(node.orelse))
        yes, no, after = (self.f.label(h) for h in ("yes", "no", "chosen"))
        self.f.branch(self.condition(condition).name, yes, no)
        self.f.start(yes)
        a = self.term(node.body)
        ends = self.f.here
        # The other branch may give a constant its type, so both are emitted first.
        held, self.f.lines = self.f.lines, []
        self.f.start(no)
        b = self.term(node.orelse)
        other, self.f.lines = self.f.lines, held
        x = self.value(a, b.type if isinstance(b, Operand) else None)
        y = self.value(b, x.type)
        if x.type != y.type:
            self.fail(f"the branches have types {x.type} and {y.type}", "Convert one of them.")
        last = self.f.here
        self.f.here, self.f.ended = ends, False
        self.f.jump(after)
        self.f.lines += other
        self.f.here, self.f.ended = last, False
        self.f.jump(after)
        self.f.start(after)
        t = x.type.llvm
        return Operand(x.type, self.f.let(f"phi {t} [ {x.name}, %{ends} ], [ {y.name}, %{last} ]"))

    # memory -----------------------------------------------------------------------------------
    def _subscript(self, node: ast.Subscript) -> Term:
        owner = self.term(node.value)
        if isinstance(node.slice, ast.Slice):
            return self._slice(owner, node.slice)
        index = self.term(node.slice)
        if isinstance(owner, Span):
            return self.load(owner, self.index(index))
        if isinstance(owner, Operand) and owner.type.lanes > 1:
            if isinstance(index, int) and not 0 <= index < owner.type.lanes:
                self.fail(f"lane {index} is out of range for {owner.type.lanes} lanes")
            return self.lane(owner, self.index(index))
        if isinstance(owner, (tuple, list, range)):
            if not isinstance(index, int):
                self.fail("a constant tuple needs a constant index", "Use an array: table(f32, X).")
            if not -len(owner) <= index < len(owner):
                self.fail(f"index {index} is out of range for {len(owner)} constants")
            return owner[index]
        self.fail(f"{describe(owner)} is not subscriptable")

    def _slice(self, owner: Term, piece: ast.Slice) -> Span:
        if not isinstance(owner, Span) or piece.step is not None:
            self.fail("only arrays can be sliced, as a[i:j] without a step")
        first = self.index(self.term(piece.lower)) if piece.lower else "0"
        last = self.index(self.term(piece.upper)) if piece.upper else owner.length
        if self.unit.checked:
            self.check_range(first, owner.length, more="1")
            self.check_range(last, owner.length, more="1")
            self.check_range(first, last, more="1")
        length = self.f.let(f"sub i64 {last}, {first}")
        pointer = self.address(owner, first)
        return Span(owner.element, pointer, length, owner.align)

    # calls ------------------------------------------------------------------------------------
    def _call(self, node: ast.Call) -> Term:
        from dala.gpu.compute.engines.cpu.native.intrinsics import (
            INTRINSICS,  # imports this module
        )

        called = self.term(node.func)
        args = [self.term(a) for a in node.args if not isinstance(a, ast.Starred) or self._star()]
        named = {k.arg or self._star(): self.term(k.value) for k in node.keywords}
        self.at = node
        if isinstance(called, Type):
            if len(args) != 1 or named:
                self.fail(f"{called}(...) takes one argument")
            return self.convert(args[0], called)
        if isinstance(called, NativeFunction):
            return self.call(called, args, named)
        if is_group(called) or (isinstance(called, type) and issubclass(called, Record)):
            return self._named(called, args)
        try:
            handler = INTRINSICS.get(called)
        except TypeError:
            handler = None
        if handler is not None:
            try:
                return handler(self, *args, **named)
            except TypeError as error:
                if error.__traceback__ is not None and error.__traceback__.tb_next is None:
                    problem = str(error).split("() ", 1)[-1]
                    self.fail(f"{ast.unparse(node.func)}: {problem}")
                raise
        # Functions of Python's math module work on constants.
        known = getattr(math, getattr(called, "__name__", "?"), None)
        if known is not None and known is called and all(is_number(a) for a in args):
            return known(*args)
        self.fail(f"{ast.unparse(node.func)} cannot be called in native code")

    def _star(self) -> NoReturn:
        self.fail("* and ** are not supported in calls")

    @abstractmethod
    def call(self, function: NativeFunction, args: list[Term], statics: dict[str, Static]) -> Term:
        """Emit a call of another native function."""


_NODES: dict[type, Callable[..., Term]] = {
    ast.Constant: ExpressionWriter._constant, ast.Name: ExpressionWriter._name,
    ast.Attribute: ExpressionWriter._attribute, ast.Tuple: ExpressionWriter._tuple,
    ast.BinOp: ExpressionWriter._binary, ast.UnaryOp: ExpressionWriter._unary,
    ast.BoolOp: ExpressionWriter._boolean, ast.Compare: ExpressionWriter._compare,
    ast.IfExp: ExpressionWriter._choice, ast.Subscript: ExpressionWriter._subscript,
    ast.Call: ExpressionWriter._call,
}  # fmt: skip
