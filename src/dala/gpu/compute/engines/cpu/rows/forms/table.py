"""The row function of a program that makes of each byte another: looked up, not computed.

A frame has millions of bytes and a byte has 256 values. Where a program treats every channel by
itself and calls costly functions on the way (a gamma curve), their results are computed once for
each tile, by the plain code that defines them, and every byte is replaced by its entry.

``fill(ptr job, ptr table)`` writes the table; the row function (see
:mod:`dala.gpu.compute.engines.cpu.rows.emit`) finds it behind the pointers to its rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from dala.gpu.compute.engines.cpu.llvm.facts import Facts
from dala.gpu.compute.engines.cpu.llvm.scalar import Scalars, slots_of
from dala.gpu.compute.engines.cpu.llvm.text import TYPES, Function, Module
from dala.gpu.compute.engines.cpu.rows.emit import Machine, Row, Words
from dala.gpu.compute.lang.ir import Value

#: Entries, a byte each.
SIZE: Final = 256
#: Bytes, or pixels where one of four is kept, in a turn of the loop.
_TOGETHER: Final = 4


class _Fill:
    """Writes the function that computes a table."""

    def __init__(self, module: Module, name: str, facts: Facts, words: Words) -> None:
        self.f = Function(module, f"define internal void {name}(ptr %job, ptr %table) noinline #0")
        self.facts = facts
        self.words = words
        self.byte = ""

    def text(self) -> str:
        """The finished function."""
        f = self.f
        scalars = Scalars(f, self, slots_of(f, self.facts.block))
        f.jump("head")
        f.start("head")
        i = f.let("phi i64 [ 0, %entry ], [ %next, %ahead ]", "i")
        f.branch(f.let(f"icmp slt i64 {i}, {SIZE}"), "one", "done")
        f.start("one")
        self.byte = f.let(f"trunc i64 {i} to i32")
        scalars.zero_slots()
        scalars.block(self.facts.block)
        value = f.let(f"trunc i32 {scalars.name(self.facts.result[0])} to i8")
        at = f.let(f"getelementptr i8, ptr %table, i64 {i}")
        f.do(f"store i8 {value}, ptr {at}, !llvm.access.group !0")
        f.jump("ahead")
        f.start("ahead")
        f.do(f"%next = add nuw nsw i64 {i}, 1")
        f.jump("head", ", !llvm.loop !1")
        f.start("done")
        f.do("ret void")
        return f.text()

    def read(self, value: Value, args: list[str]) -> str:
        """A byte in the order of the table, a parameter, an extent."""
        f = self.f
        if value.op == "param":
            kind = TYPES[self.facts.program.params[value.attr].type]
            stored = "i8" if kind == "i1" else kind
            name = self.word(self.words.first_param + value.attr, stored)
            return f.let(f"icmp ne i8 {name}, 0") if kind == "i1" else name
        if value.op == "dim":
            return f.let(f"trunc i64 {self.word(self.words.dims(value.attr), 'i64')} to i32")
        return self.byte

    def word(self, at: int, kind: str) -> str:
        pointer = self.f.let(f"getelementptr i64, ptr %job, i64 {at}")
        return self.f.let(f"load {kind}, ptr {pointer}, !llvm.access.group !0")


def table_functions(module: Module, name: str, facts: Facts, words: Words, machine: Machine) -> str:
    """The row function of that name, and its ``fill``."""
    row = _Row(module, name, facts, machine.lookup)
    if facts.costly or not facts.writable:
        fill = _Fill(module, f"{name}.fill", facts, words).text()
    else:
        fill = _fill_by_row(module, name, facts, words, machine)
    return fill + "\n" + row.text()


def _fill_by_row(module: Module, name: str, facts: Facts, words: Words, machine: Machine) -> str:
    """A ``fill`` that runs the program over a row of all bytes: less to compile than a loop."""
    alone = replace(facts, alpha=None, scale=1, table=False)
    row = Row(module, f"{name}.once", alone, words, machine.vector, [False], False).text()
    module.helpers["@bytes"] = (
        f"@bytes = private constant [{SIZE} x i8] "
        f"[{', '.join(f'i8 {i - 256 if i > 127 else i}' for i in range(SIZE))}], align 64\n"
    )
    f = Function(module, f"define internal void {name}.fill(ptr %job, ptr %table) noinline #0")
    rows = f.alloca("ptr", "rows")
    f.do(f"store ptr @bytes, ptr {rows}")
    f.do(f"call void {name}.once(ptr %job, ptr %table, ptr {rows}, i64 {SIZE}, i64 0, i64 0)")
    f.do("ret void")
    return row + "\n" + f.text()


class _Row:
    """Writes the row function: with vectors where the machine can look bytes up in them."""

    def __init__(self, module: Module, name: str, facts: Facts, lookup: str) -> None:
        self.f = Function(
            module,
            f"define internal void {name}(ptr %job, ptr %out, ptr %rows, i64 %count, i64 %x0, "
            "i64 %y) noinline #0",
        )
        self.facts = facts
        self.lookup = lookup
        self.table = self.source = ""

    def text(self) -> str:
        """The finished function."""
        f = self.f
        self.source = f.let("load ptr, ptr %rows")
        at = f.let("getelementptr ptr, ptr %rows, i64 1")
        self.table = f.let(f"load ptr, ptr {at}")
        numbers = f.let(f"mul i64 %count, {self.facts.scale}")
        done = "0"
        if self.lookup:
            quarters = []
            for k in range(4):
                at = f.let(f"getelementptr i8, ptr {self.table}, i64 {64 * k}")
                quarters.append(f.let(f"load <64 x i8>, ptr {at}, align 1"))
            done = f.let(f"and i64 {numbers}, -64")
            self.loop("vector", "0", done, 64, lambda x: self.vector(x, quarters))
        unit = 1 if self.facts.alpha is None else 4
        if not self.lookup:
            some = unit * _TOGETHER
            done = f.let(f"and i64 {numbers}, {-some}")
            self.loop("some", "0", done, some, lambda x: self.bytes(x, some))
        self.loop("one", done, numbers, unit, lambda x: self.bytes(x, unit))
        f.do("ret void")
        return f.text()

    def loop(
        self, label: str, begin: str, stop: str, step: int, write: Callable[[str], None]
    ) -> None:
        """A loop over numbers of the row."""
        f, before = self.f, self.f.here
        f.jump(label)
        f.start(label)
        x = f.let(f"phi i64 [ {begin}, %{before} ], [ %{label}.next, %{label}.turn ]", "x")
        f.branch(f.let(f"icmp slt i64 {x}, {stop}"), f"{label}.turn", f"{label}.end")
        f.start(f"{label}.turn")
        write(x)
        f.do(f"%{label}.next = add nuw nsw i64 {x}, {step}")
        f.jump(label, ", !llvm.loop !2")
        f.start(f"{label}.end")

    def vector(self, x: str, quarters: list[str]) -> None:
        """64 bytes: looked up in either half of the table, and the right half chosen."""
        f, kind = self.f, "<64 x i8>"
        at = f.let(f"getelementptr i8, ptr {self.source}, i64 {x}")
        old = f.let(f"load {kind}, ptr {at}, align 1")
        name = f.module.intrinsic(self.lookup, kind, kind, kind, kind)
        low, high = (
            f.let(f"call {kind} {name}({kind} {a}, {kind} {old}, {kind} {b})")
            for a, b in (quarters[:2], quarters[2:])
        )
        upper = f.let(f"icmp slt {kind} {old}, zeroinitializer")
        value = f.let(f"select <64 x i1> {upper}, {kind} {high}, {kind} {low}")
        if self.facts.alpha is not None:
            places = ", ".join(f"i32 {64 + i if i % 4 == 3 else i}" for i in range(64))
            value = f.let(f"shufflevector {kind} {value}, {kind} {old}, <64 x i32> <{places}>")
        at = f.let(f"getelementptr i8, ptr %out, i64 {x}")
        f.do(f"store {kind} {value}, ptr {at}, align 1")

    def bytes(self, x: str, count: int) -> None:
        """A few bytes, one by one; loaded before any is stored, so that they need not wait."""
        f = self.f
        found = []
        for k in range(count):
            place = f.let(f"add nsw i64 {x}, {k}") if k else x
            pointer = f.let(f"getelementptr i8, ptr {self.source}, i64 {place}")
            value = f.let(f"load i8, ptr {pointer}")
            if self.facts.alpha is None or k % 4 != 3:
                index = f.let(f"zext i8 {value} to i64")
                entry = f.let(f"getelementptr i8, ptr {self.table}, i64 {index}")
                value = f.let(f"load i8, ptr {entry}")
            found.append((place, value))
        for place, value in found:
            pointer = f.let(f"getelementptr i8, ptr %out, i64 {place}")
            f.do(f"store i8 {value}, ptr {pointer}")
