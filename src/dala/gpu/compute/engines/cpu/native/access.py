"""Loads and stores of native code, and the checks of a checked build."""

from __future__ import annotations

import ast
from typing import Final

from dala.gpu.compute.engines.cpu.native.operations import Operations
from dala.gpu.compute.engines.cpu.native.source import NativeFunction
from dala.gpu.compute.engines.cpu.native.types import Span, Term, Value
from dala.gpu.compute.engines.cpu.native.unit import Unit

#: Ends a function early in a checked build; the type of the result is filled in when it is known.
LEAVE: Final = "ret $RESULT"


class Access(Operations):
    """Writes accesses to memory."""

    unit: Unit
    function: NativeFunction
    at: ast.AST
    groups: list[str]

    def address(self, array: Span, index: str) -> str:
        """The address of an element."""
        return self.f.let(
            f"getelementptr inbounds {array.element.stored}, ptr {array.pointer}, i64 {index}"
        )

    def grouped(self) -> str:
        """What a memory access in independent loops is marked with."""
        if not self.groups:
            return ""
        if len(self.groups) == 1:
            return f", !llvm.access.group {self.groups[0]}"
        both = self.unit.meta("!{" + ", ".join(self.groups) + "}")
        return f", !llvm.access.group {both}"

    def load(self, array: Span, index: str, lanes: int = 1) -> Value:
        """Reads an element, or neighbours as a vector."""
        self.check_range(index, array.length, width=lanes)
        t = array.element.wide(lanes)
        text = f"load {t.stored}, ptr {self.address(array, index)}, align {array.align}"
        name = self.f.let(text + self.grouped())
        if t.bits == 1:
            name = self.f.let(f"icmp ne {t.stored} {name}, zeroinitializer")
        return Value(t, name)

    def store(self, array: Span, index: str, term: Term) -> None:
        """Writes an element, or a vector to neighbours."""
        lanes = term.type.lanes if isinstance(term, Value) else 1
        t = array.element.wide(lanes)
        v = self.value(term, t)
        if v.type != t:
            self.fail(
                f"{v.type} is stored into an array of {array.element}",
                f"Convert it: {array.element}(...), or saturate({array.element}, ...).",
            )
        self.check_range(index, array.length, width=lanes)
        name = v.name
        if t.bits == 1:
            name = self.f.let(f"zext {t.llvm} {name} to {t.stored}")
        place = self.address(array, index)
        self.f.do(f"store {t.stored} {name}, ptr {place}, align {array.align}{self.grouped()}")

    def check_range(self, index: str, length: str, *, width: int = 1, more: str = "") -> None:
        """In a checked build, leaves with a fault unless the access lies within the array."""
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
        f.do(LEAVE)
        f.start(fine)
