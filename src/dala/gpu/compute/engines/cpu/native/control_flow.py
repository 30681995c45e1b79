"""Emit local variables, branches and loops of native code."""

from __future__ import annotations

import ast
from abc import abstractmethod
from dataclasses import dataclass
from typing import Final, Literal

from dala.gpu.compute.engines.cpu.native.expressions import (
    ArrayVariable,
    ExpressionWriter,
    NumberVariable,
)
from dala.gpu.compute.engines.cpu.native.function import NativeFunction
from dala.gpu.compute.engines.cpu.native.module import NativeModule
from dala.gpu.compute.engines.cpu.native.names import hinted, independent, serial, static
from dala.gpu.compute.engines.cpu.native.operations import describe
from dala.gpu.compute.engines.cpu.native.signature import arg_type
from dala.gpu.compute.engines.cpu.native.types import ArgType, Result, Span, Static, Term, is_number
from dala.gpu.compute.engines.cpu.vector.text import FunctionText
from dala.gpu.compute.engines.cpu.vector.types import I64, Operand, Type

#: The most iterations of an unrolled loop.
MAX_UNROLLED: Final = 4096


@dataclass(slots=True)
class _Loop:
    """The labels that ``continue`` and ``break`` jump to, and whether they are used."""

    again: str
    after: str
    left: bool = False
    again_used: bool = False


class VariableWriter(ExpressionWriter):
    """Emits assignments to the local variables of one function."""

    def __init__(
        self,
        unit: NativeModule,
        function: NativeFunction,
        f: FunctionText,
        statics: dict[str, Static],
    ) -> None:
        super().__init__(unit, function, f)
        self.statics = statics
        self.loops: list[_Loop] = []
        self.result: Result | Literal["any"] = "any"
        self._numbers: dict[tuple[str, Type], NumberVariable] = {}
        self._arrays: dict[tuple[str, ArgType], ArrayVariable] = {}

    # variables --------------------------------------------------------------------------------
    def assign(self, name: str, term: Term, declared: Type | None = None) -> None:
        """Assign a value to a name. The first assignment decides its type."""
        found = self.names.get(name)
        if isinstance(term, tuple):
            if isinstance(found, (NumberVariable, ArrayVariable)):
                self.fail(f"{name!r} is a variable; it cannot become {describe(term)}")
            self.names[name] = term  # for the statements that follow in this block
            return
        if isinstance(term, Span):
            row = found if isinstance(found, ArrayVariable) else self._array(name, term)
            if arg_type(row) != arg_type(term):
                self.fail(f"{name!r} is an array of {row.element} (alignment {row.align})")
            self.names[name] = row
            self.f.do(f"store ptr {term.pointer}, ptr {row.pointer}")
            self.f.do(f"store i64 {term.length}, ptr {row.length}")
            return
        if isinstance(found, ArrayVariable):
            self.fail(f"{name!r} is an array; it cannot become {describe(term)}")
        if found is not None and not isinstance(found, NumberVariable):
            self.fail(f"{name!r} is a constant here", "Give the variable another name.")
        if found is None and name in self.statics:
            self.fail(f"{name!r} is a compile-time constant", "Give the variable another name.")
        kind = declared or (found.type if found else None)
        v = self.value(term, kind)
        if kind is not None and v.type != kind:
            self.fail(f"{name!r} is {kind} and cannot hold {v.type}", f"Convert: {kind}(...).")
        if found is None:
            found = self._number(name, v.type)
            self.names[name] = found
        self.f.do(f"store {v.type.llvm} {v.name}, ptr {found.pointer}")

    def _number(self, name: str, kind: Type) -> NumberVariable:
        key = (name, kind)
        if key not in self._numbers:
            place = self.f.alloca(kind.llvm, f"{llvm_name(name)}.{len(self._numbers)}v")
            # A variable that no path has assigned reads as zero.
            self.f.entry.append(f"  store {kind.llvm} zeroinitializer, ptr {place}")
            self._numbers[key] = NumberVariable(kind, place)
        return self._numbers[key]

    def _array(self, name: str, span: Span) -> ArrayVariable:
        key = (name, arg_type(span))
        if key not in self._arrays:
            place = f"{llvm_name(name)}.{len(self._arrays)}"
            pointer, length = self.f.alloca("ptr", f"{place}p"), self.f.alloca("i64", f"{place}n")
            self.f.entry.append(f"  store ptr null, ptr {pointer}")
            self.f.entry.append(f"  store i64 0, ptr {length}")
            self._arrays[key] = ArrayVariable(
                span.element, pointer, length, span.align, span.record
            )
        return self._arrays[key]


class ControlWriter(VariableWriter):
    """Emits branches and loops; :class:`~.statements.FunctionWriter` adds the other statements."""

    @abstractmethod
    def block(self, statements: list[ast.stmt]) -> None:
        """Emit statements."""

    def _if(self, s: ast.If) -> None:
        condition = self.term(s.test)
        if not isinstance(condition, Operand):
            self.block(s.body if condition else s.orelse)
            return
        f = self.f
        yes, no, after = f.label("then"), f.label("else"), f.label("endif")
        f.branch(self._single(condition), yes, no if s.orelse else after)
        f.start(yes)
        self.block(s.body)
        reached = not (f.ended and s.orelse)
        f.jump(after)
        if s.orelse:
            f.start(no)
            self.block(s.orelse)
            reached = reached or not f.ended
            f.jump(after)
        if reached:
            f.start(after)

    def _single(self, condition: Operand) -> str:
        if condition.type.lanes > 1:
            self.fail("a condition must be a single bool", "Use any_of(mask) or all_of(mask).")
        return self.condition(condition).name

    def _while(self, s: ast.While) -> None:
        if s.orelse:
            self.fail("while ... else is not supported")
        f = self.f
        head, turn, after = f.label("while"), f.label("turn"), f.label("endwhile")
        f.jump(head)
        f.start(head)
        condition = self.term(s.test)
        endless = False
        if isinstance(condition, Operand):
            f.branch(self._single(condition), turn, after)
        elif condition:
            endless = True
            f.jump(turn)
        else:
            f.jump(after)
            f.start(after)
            return
        f.start(turn)
        loop = self._body(s, _Loop(head, after))
        f.jump(head)
        if not endless or loop.left:
            f.start(after)

    def _body(self, s: ast.While | ast.For, loop: _Loop) -> _Loop:
        """Emit the statements of a loop once."""
        self.loops.append(loop)
        self.block(s.body)
        return self.loops.pop()

    def _for(self, s: ast.For) -> None:
        if s.orelse:
            self.fail("for ... else is not supported")
        if not isinstance(s.target, ast.Name):
            self.fail("a loop has one counter")
        steps, options, unrolled = s.iter, {}, False
        if isinstance(steps, ast.Call) and isinstance(steps.func, ast.Name):
            marker = self.term(steps.func)
            if marker is serial:
                self._count(s, s.target.id, self._bounds(steps), {"scalar": True})
                return
            if marker in (static, independent, hinted):
                unrolled = marker is static
                for k in steps.keywords:
                    options[k.arg or ""] = self.term(k.value)
                options["independent"] = marker is independent
                if len(steps.args) != 1:
                    self.fail(f"{steps.func.id}(...) takes one range")
                steps = steps.args[0]
        if unrolled:
            self._unroll(s, s.target.id, self.term(steps))
        else:
            if not is_call(steps, "range"):
                self.fail("a for loop iterates over range(...)", "Or use a while loop.")
            self._count(s, s.target.id, self._bounds(steps), options)

    def _bounds(self, node: ast.expr) -> tuple[str, str, Term]:
        if not isinstance(node, ast.Call) or node.keywords:
            self.fail("a range has no named arguments")
        terms = [self.term(a) for a in node.args]
        if not 1 <= len(terms) <= 3:
            self.fail("range takes one to three arguments")
        step = terms[2] if len(terms) == 3 else 1
        first, last = (0, terms[0]) if len(terms) == 1 else terms[:2]
        if isinstance(step, int) and step == 0:
            self.fail("the step of a range must not be 0")
        return self.index(first), self.index(last), step

    def _count(
        self, s: ast.For, name: str, bounds: tuple[str, str, Term], options: dict[str, Term]
    ) -> None:
        f = self.f
        first, last, step = bounds
        down = is_number(step) and step < 0
        stride = self.index(step)
        if not is_number(step):  # a step known at run time is at least 1
            stride = self.intrinsic("smax", Operand(I64, stride), Operand(I64, "1")).name
        marks = self._loop_marks(options)
        head, turn, follow, after = (f.label(h) for h in ("for", "turn", "next", "endfor"))
        before = f.here
        f.jump(head)
        f.start(head)
        up = f"%step.{head}"
        counter = f.let(f"phi i64 [ {first}, %{before} ], [ {up}, %{follow} ]", "count")
        rule = "sgt" if down else "slt"
        f.branch(f.let(f"icmp {rule} i64 {counter}, {last}"), turn, after)
        f.start(turn)
        self.assign(name, Operand(I64, counter))
        self._body(s, _Loop(follow, after))
        if options.get("independent"):
            self.groups.pop()
        f.jump(follow)
        f.start(follow)
        f.do(f"{up} = add nsw i64 {counter}, {stride}")
        f.jump(head, marks)
        f.start(after)

    def _loop_marks(self, options: dict[str, Term]) -> str:
        if unknown := set(options) - {"independent", "width", "unroll", "scalar"}:
            self.fail(f"unknown loop options: {', '.join(sorted(unknown))}")
        marks = []
        if options.get("independent"):
            group = self.unit.meta("distinct !{}")
            self.groups.append(group)
            marks.append(self.unit.meta(f'!{{!"llvm.loop.parallel_accesses", {group}}}'))
        for key, word in (("width", "vectorize.width"), ("unroll", "unroll.count")):
            if options.get(key):
                marks.append(self.unit.meta(f'!{{!"llvm.loop.{word}", i32 {options[key]}}}'))
        if options.get("scalar"):
            marks.append(self.unit.meta('!{!"llvm.loop.vectorize.enable", i1 false}'))
            marks.append(self.unit.meta('!{!"llvm.loop.unroll.disable"}'))
        elif options.get("width"):
            marks.append(self.unit.meta('!{!"llvm.loop.vectorize.enable", i1 true}'))
        if not marks:
            return ""
        listed = ", ".join(marks)
        return f", !llvm.loop {self.unit.meta(f'distinct !{{$, {listed}}}')}"

    def _unroll(self, s: ast.For, name: str, values: Term) -> None:
        if not isinstance(values, (range, tuple)):
            self.fail("static(...) unrolls a range or a tuple of compile-time constants")
        if len(values) > MAX_UNROLLED:
            self.fail(f"an unrolled loop has at most {MAX_UNROLLED} iterations, got {len(values)}")
        if isinstance(self.names.get(name), (NumberVariable, ArrayVariable)):
            self.fail(f"{name!r} is already a variable", "Give the counter another name.")
        after = self.f.label("unrolled")
        left = False
        for v in values:
            if self.f.ended:
                break
            self.names[name] = v
            loop = self._body(s, _Loop(self.f.label("turn"), after))
            left = left or loop.left
            if loop.again_used:
                self.f.jump(loop.again)
                self.f.start(loop.again)
        self.names.pop(name, None)
        if left:
            self.f.jump(after)
            self.f.start(after)

    def _leave_loop(self, s: ast.Break | ast.Continue) -> None:
        if not self.loops:
            self.fail("break and continue need a loop")
        loop, out = self.loops[-1], isinstance(s, ast.Break)
        loop.left |= out
        loop.again_used |= not out
        self.f.jump(loop.after if out else loop.again)


def llvm_name(name: str) -> str:
    """Return a name that is valid in LLVM IR."""
    return name if name.isascii() else "name"


def is_call(node: ast.expr, name: str) -> bool:
    """Return True for a call of the function with this name."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
