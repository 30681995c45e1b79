"""The row function of a program that maps each byte to another: a table lookup.

A frame has millions of bytes, and a byte has 256 values. Where a program treats every channel by
itself and calls expensive functions (a gamma curve), each tile computes the 256 results once, with
the code that defines them, and looks every byte up.

``fill(ptr job, ptr table)`` writes the table. The row function (see
:mod:`dala.gpu.compute.engines.cpu.loops.row`) finds a pointer to it after those to its rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from dala.gpu.compute.engines.cpu.llvm.analysis import Form, ProgramAnalysis
from dala.gpu.compute.engines.cpu.llvm.emitter import Emitter, ValueReader, allocate_slots
from dala.gpu.compute.engines.cpu.llvm.metering import LoopMeter
from dala.gpu.compute.engines.cpu.loops.row import RowFunction, RowSpec, fourths_from, row_writer
from dala.gpu.compute.engines.cpu.rules.program import PixelProgram
from dala.gpu.compute.engines.cpu.rules.values import at_center
from dala.gpu.compute.engines.cpu.vector.text import TYPES, FunctionText
from dala.gpu.compute.lang.ir import Value, values

#: Entries of a table, a byte each.
SIZE: Final = 256
#: Marks accesses of the loop that fills a table as independent.
_GROUP: Final = ", !llvm.access.group !0"
#: Bytes (or pixels, where one of four bytes is kept) per iteration of the scalar loop.
_UNROLLED: Final = 4


class ByteTable(Form):
    """A function of one byte, looked up."""

    name = "table"
    scratch = SIZE

    def text(self, spec: RowSpec) -> str:
        """Return the row function of a table lookup, and the function that fills the table."""
        if spec.analysis.costly or not spec.analysis.vectorizable:
            fill = _Fill(spec).text()
        else:
            fill = _fill_by_row(spec)
        return fill + "\n" + _LookupRow(spec).text()


def table(source: PixelProgram) -> ProgramAnalysis | None:
    """Return the analysis of a function of one byte, if it is costly or tables always win."""
    if not source.of_bytes or len(source.program.args) != 1 or source.flat is None:
        return None
    found = source.one_channel(ByteTable())
    found.find_varying()
    simple = all(
        v.op not in ("position", "element", "array") and (v.op != "image" or at_center(v))
        for v in values(found.block)
    )
    return found if simple and (source.tables or found.costly) else None


def _fill_writer(spec: RowSpec) -> FunctionText:
    head = f"define internal void {spec.name}.fill(ptr %job, ptr %table) noinline #0"
    return FunctionText(spec.module, head)


class _Fill(ValueReader):
    """Emits a ``fill`` that computes one entry after another; LLVM vectorizes the loop."""

    def __init__(self, spec: RowSpec) -> None:
        self.f = _fill_writer(spec)
        self.analysis = spec.analysis
        self.spec = spec
        self.byte = ""

    def text(self) -> str:
        """Return the finished function."""
        f, analysis = self.f, self.analysis
        f.module.loops = True
        meter = LoopMeter(f, analysis.block)
        emitter = Emitter(f, self, allocate_slots(f, analysis.block), meter, of_bytes=True)

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
            return f.param(self.spec.first_param + value.attr, kind, tail=_GROUP)
        if value.op == "dim":
            return f.let(f"trunc i64 {f.word(self.spec.dims(value.attr), tail=_GROUP)} to i32")
        return self.byte


def _fill_by_row(spec: RowSpec) -> str:
    """Return a ``fill`` that runs the program over a row of all bytes, which compiles faster."""
    analysis = replace(spec.analysis, alpha=None, scale=1)
    once = replace(
        spec, name=f"{spec.name}.once", analysis=analysis, exact_args=[False], exact_out=False,
        far=(),
    )  # fmt: skip
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

    def __init__(self, spec: RowSpec) -> None:
        self.f = row_writer(spec.module, spec.name)
        self.analysis = spec.analysis
        self.machine = machine = spec.machine
        self.table = self.source = ""
        #: Bytes of a vector.
        self.size = 64 if machine.lookup else machine.vector
        self.kind = f"<{self.size} x i8>"

    def text(self) -> str:
        """Return the finished function."""
        f, machine = self.f, self.machine
        self.source = f.let("load ptr, ptr %rows")
        self.table = f.let(f"load ptr, ptr {f.at('%rows', '1', 'ptr')}")
        numbers = f.let(f"mul i64 %count, {self.analysis.scale}")
        unit = 1 if self.analysis.alpha is None else 4
        if machine.lookup or machine.shuffle:
            parts = self.quarters() if machine.lookup else self.differences()
            done = f.let(f"and i64 {numbers}, {-self.size}")
            with f.loop("0", done, self.size) as x:
                self.vector(x, parts)
        else:
            some = unit * _UNROLLED
            done = f.let(f"and i64 {numbers}, {-some}")
            with f.loop("0", done, some) as x:
                self.bytes(x, some)
        with f.loop(done, numbers, unit) as x:
            self.bytes(x, unit)
        f.do("ret void")
        return f.text()

    def quarters(self) -> list[str]:
        """Load the table as four vectors."""
        places = [self.f.at(self.table, str(64 * k)) for k in range(4)]
        return [self.f.let(f"load {self.kind}, ptr {at}, align 1") for at in places]

    def differences(self) -> list[str]:
        """Load the table as sixteen vectors: parts of 16 entries, xored with the part before.

        The first part of each half is itself.
        """
        f, found = self.f, []
        before = ""
        for k in range(16):
            part = f.let(f"load <16 x i8>, ptr {f.at(self.table, str(16 * k))}, align 1")
            made = f.let(f"xor <16 x i8> {part}, {before}") if k % 8 else part
            lanes = [i % 16 for i in range(self.size)]
            found.append(f.shuffle("<16 x i8>", made, "poison", lanes))
            before = part
        return found

    def vector(self, x: str, parts: list[str]) -> None:
        """Look up a vector of bytes."""
        f, kind = self.f, self.kind
        old = f.let(f"load {kind}, ptr {f.at(self.source, x)}, align 1")
        value = self.selected(old, parts) if self.machine.lookup else self.added(old, parts)
        if self.analysis.alpha is not None:
            value = fourths_from(f, kind, value, old, self.size)
        f.do(f"store {kind} {value}, ptr {f.at('%out', x)}, align 1")

    def selected(self, old: str, quarters: list[str]) -> str:
        """Look bytes up in both halves of the table and select the right half."""
        f, kind = self.f, self.kind
        low, high = (
            f.intrinsic(self.machine.lookup, kind, kind, a, old, b)
            for a, b in (quarters[:2], quarters[2:])
        )
        upper = f.let(f"icmp slt {kind} {old}, zeroinitializer")
        return f.let(f"select <64 x i1> {upper}, {kind} {high}, {kind} {low}")

    def added(self, old: str, parts: list[str]) -> str:
        """Look bytes up in all parts up to theirs: the differences add up to the right entry.

        A look-up of a negative byte is 0. Bytes become negative beyond their part, and those of the
        other half are from the beginning; they saturate.
        """
        f, kind = self.f, self.kind
        total = "zeroinitializer"
        for k, part in enumerate(parts):
            if k == 0:
                index = old
            elif k == 8:
                index = f.let(f"xor {kind} {old}, splat (i8 -128)")
            else:
                index = f.intrinsic(f"ssub.sat.v{self.size}i8", kind, kind, index, "splat (i8 16)")
            found = f.intrinsic(self.machine.shuffle, kind, kind, part, index)
            total = f.let(f"xor {kind} {total}, {found}")
        return total

    def bytes(self, x: str, count: int) -> None:
        """Look up a few bytes; all are loaded before the first is stored, so that loads overlap."""
        f = self.f
        found = []
        for k in range(count):
            place = f.let(f"add nsw i64 {x}, {k}") if k else x
            value = f.let(f"load i8, ptr {f.at(self.source, place)}")
            if self.analysis.alpha is None or k % 4 != 3:
                entry = f.at(self.table, f.let(f"zext i8 {value} to i64"))
                value = f.let(f"load i8, ptr {entry}")
            found.append((place, value))
        for place, value in found:
            f.do(f"store i8 {value}, ptr {f.at('%out', place)}")
