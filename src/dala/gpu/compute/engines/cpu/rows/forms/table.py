"""The row function of a program that maps each byte to another: a table lookup.

A frame has millions of bytes, and a byte has 256 values. Where a program treats every channel by
itself and calls expensive functions (a gamma curve), each tile computes the 256 results once, with
the code that defines them, and looks every byte up.

``fill(ptr job, ptr table)`` writes the table. The row function (see
:mod:`dala.gpu.compute.engines.cpu.rows.row`) finds a pointer to it after those to its rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from dala.gpu.compute.engines.cpu.llvm.analysis import ProgramAnalysis
from dala.gpu.compute.engines.cpu.llvm.emitter import Emitter, ValueReader, allocate_slots
from dala.gpu.compute.engines.cpu.llvm.metering import LoopMeter
from dala.gpu.compute.engines.cpu.llvm.text import TYPES, FunctionText, Module
from dala.gpu.compute.engines.cpu.rows.row import RowFunction, RowSpec, row_writer
from dala.gpu.compute.lang.ir import Value

#: Entries of a table, a byte each.
SIZE: Final = 256
#: Marks accesses of the loop that fills a table as independent.
_GROUP: Final = ", !llvm.access.group !0"
#: Bytes (or pixels, where one of four bytes is kept) per iteration of the scalar loop.
_UNROLLED: Final = 4


def table_functions(spec: RowSpec) -> str:
    """Return the row function of a table lookup, and the function that fills the table."""
    if spec.analysis.costly or not spec.analysis.vectorizable:
        fill = _Fill(spec).text()
    else:
        fill = _fill_by_row(spec)
    row = _LookupRow(spec.module, spec.name, spec.analysis, spec.machine.lookup)
    return fill + "\n" + row.text()


def _fill_writer(spec: RowSpec) -> FunctionText:
    head = f"define internal void {spec.name}.fill(ptr %job, ptr %table) noinline #0"
    return FunctionText(spec.module, head)


class _Fill(ValueReader):
    """Emits a ``fill`` that computes one entry after another; LLVM vectorizes the loop."""

    def __init__(self, spec: RowSpec) -> None:
        self.f = _fill_writer(spec)
        self.analysis = spec.analysis
        self.words = spec.words
        self.byte = ""

    def text(self) -> str:
        """Return the finished function."""
        f, analysis = self.f, self.analysis
        meter = LoopMeter(f, analysis.block)
        emitter = Emitter(f, self, allocate_slots(f, analysis.block), of_bytes=True, meter=meter)

        def entry(i: str) -> None:
            mark = emitter.mark()
            self.byte = f.let(f"trunc i64 {i} to i32")
            emitter.zero_slots()
            emitter.block(analysis.block)
            value = f.let(f"trunc i32 {emitter.operand(analysis.result[0], False)} to i8")
            f.do(f"store i8 {value}, ptr {f.at('%table', i)}{_GROUP}")
            emitter.rewind(mark)

        meter.positions("0", str(SIZE), entry, tail=", !llvm.loop !1")
        f.do("ret void")
        return f.text()

    def read(self, value: Value, args: list[str]) -> str:
        """Return a parameter, an extent, or the byte that is the current index."""
        f = self.f
        if value.op == "param":
            kind = TYPES[self.analysis.program.params[value.attr].type]
            return f.param(self.words.first_param + value.attr, kind, tail=_GROUP)
        if value.op == "dim":
            return f.let(f"trunc i64 {f.word(self.words.dims(value.attr), tail=_GROUP)} to i32")
        return self.byte


def _fill_by_row(spec: RowSpec) -> str:
    """Return a ``fill`` that runs the program over a row of all bytes, which compiles faster."""
    analysis = replace(spec.analysis, alpha=None, scale=1, table=False)
    once = replace(
        spec, name=f"{spec.name}.once", analysis=analysis, exact_args=[False], exact_out=False
    )
    row = RowFunction(once).text()
    spec.module.helpers["@bytes"] = (
        f"@bytes = private constant [{SIZE} x i8] "
        f"[{', '.join(f'i8 {i - 256 if i > 127 else i}' for i in range(SIZE))}], align 64\n"
    )
    f = _fill_writer(spec)
    rows = f.alloca("ptr", "rows")
    f.do(f"store ptr @bytes, ptr {rows}")
    f.do(f"call void {once.name}(ptr %job, ptr %table, ptr {rows}, i64 {SIZE}, i64 0, i64 0)")
    f.do("ret void")
    return row + "\n" + f.text()


class _LookupRow:
    """Emits the row function, with vector lookups where the CPU has them."""

    def __init__(self, module: Module, name: str, analysis: ProgramAnalysis, lookup: str) -> None:
        self.f = row_writer(module, name)
        self.analysis = analysis
        self.lookup = lookup
        self.table = self.source = ""

    def text(self) -> str:
        """Return the finished function."""
        f = self.f
        self.source = f.let("load ptr, ptr %rows")
        at = f.let("getelementptr ptr, ptr %rows, i64 1")
        self.table = f.let(f"load ptr, ptr {at}")
        numbers = f.let(f"mul i64 %count, {self.analysis.scale}")
        done = "0"
        if self.lookup:
            quarters = []
            for k in range(4):
                at = f.let(f"getelementptr i8, ptr {self.table}, i64 {64 * k}")
                quarters.append(f.let(f"load <64 x i8>, ptr {at}, align 1"))
            done = f.let(f"and i64 {numbers}, -64")
            with f.loop("0", done, 64) as x:
                self.vector(x, quarters)
        unit = 1 if self.analysis.alpha is None else 4
        if not self.lookup:
            some = unit * _UNROLLED
            done = f.let(f"and i64 {numbers}, {-some}")
            with f.loop("0", done, some) as x:
                self.bytes(x, some)
        with f.loop(done, numbers, unit) as x:
            self.bytes(x, unit)
        f.do("ret void")
        return f.text()

    def vector(self, x: str, quarters: list[str]) -> None:
        """Look up 64 bytes in both halves of the table and select the right half."""
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
        if self.analysis.alpha is not None:
            places = ", ".join(f"i32 {64 + i if i % 4 == 3 else i}" for i in range(64))
            value = f.let(f"shufflevector {kind} {value}, {kind} {old}, <64 x i32> <{places}>")
        at = f.let(f"getelementptr i8, ptr %out, i64 {x}")
        f.do(f"store {kind} {value}, ptr {at}, align 1")

    def bytes(self, x: str, count: int) -> None:
        """Look up a few bytes; all are loaded before the first is stored, so that loads overlap."""
        f = self.f
        found = []
        for k in range(count):
            place = f.let(f"add nsw i64 {x}, {k}") if k else x
            pointer = f.let(f"getelementptr i8, ptr {self.source}, i64 {place}")
            value = f.let(f"load i8, ptr {pointer}")
            if self.analysis.alpha is None or k % 4 != 3:
                index = f.let(f"zext i8 {value} to i64")
                entry = f.let(f"getelementptr i8, ptr {self.table}, i64 {index}")
                value = f.let(f"load i8, ptr {entry}")
            found.append((place, value))
        for place, value in found:
            pointer = f.let(f"getelementptr i8, ptr %out, i64 {place}")
            f.do(f"store i8 {value}, ptr {pointer}")
