"""Emit the function that runs a chain over its tiles, row by row; ``plan.py`` explains the method.

Image sizes and the offsets of rings are numbers in the job block, so that one piece of code serves
images of any size.

Programs read inputs in place, apart from the ends of rows: these are copied, since pixels beyond
them repeat. A row has three parts: the first vectors and the rest at its end are computed from the
copies, the vectors in the middle from the inputs. Nothing is read beyond an input's rows. Tiles too
narrow for parts are copied whole, and so are the rows of chains with stages that begin beside the
image.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dala.gpu.compute.engines.cpu.llvm.metering import STOP_WORD
from dala.gpu.compute.engines.cpu.loops.copies import (
    ROWS_AHEAD,
    colors_function,
    copy_function,
    point_function,
    repeat_function,
)
from dala.gpu.compute.engines.cpu.loops.plan import RowSource, RowStage, original, reads_in_place
from dala.gpu.compute.engines.cpu.vector.text import PLAIN_LOOP, Module, body_text

if TYPE_CHECKING:
    from dala.gpu.compute.engines.cpu.loops.runner import PlannedChain

#: Bytes of a row of a tile from which on parts are worth it.
_LONG: Final = 1536
#: More rows than an image has.
_ALL_ROWS: Final = (1 << 32) - 1
#: Types of the last arguments of ``point``, which differ between a ring and an input.
_KINDS: Final = ("ptr", "i64", "i64")


class SlidingWindow:
    """Emits ``body(job, out, start, end)`` of a chain, for the tiles [start, end)."""

    def __init__(
        self, module: Module, planned: PlannedChain, names: list[str], vector: int, *, stream: bool
    ) -> None:
        self.f = body_text(module)
        self.module = module
        self.stages = stages = planned.plan.stages
        self.names = names
        self.stack_bytes = planned.plan.stack_bytes
        self.layout = planned.layout
        #: Whether the last stage uses non-temporal stores.
        self.stream = stream
        #: The most columns that a program reads beside a part; a number of pixels that is always
        #: whole vectors; the pixels of the first part; and those copied at either end of a row.
        self.beside = max((s.margin for s in stages if s.copies), default=0)
        self.vector = vector
        self.head = (self.beside // vector + 1) * vector
        self.ends = -(-(self.head + 3 * self.beside) // vector) * vector
        largest = max((s.pixel for s in stages if s.copies), default=1)
        self.least = max(2 * self.ends, _LONG // largest)
        #: For each stage: its ring, the bytes of a row, and its scratch memory.
        self.rings: list[tuple[str, str, str]] = []
        self.base = self.f.alloca(f"[{self.stack_bytes} x i8]", "space", 64)
        entries = max((table_size(s) for s in stages), default=0) + 1
        self.table = self.f.alloca(f"[{entries} x ptr]", "rows", 64)
        self.row = ""
        #: Operations that all of a tile sees, by their text.
        self.known: dict[str, str] = {}

    # numbers ------------------------------------------------------------------------------------
    def op(self, text: str, a: str, b: str | int) -> str:
        """Emit an operation on i64; one that the tile already has is not repeated."""
        if text in ("add", "sub") and str(b) == "0":
            return a
        line = f"{text} i64 {a}, {b}"
        made = self.known.get(line) or self.f.let(line)
        if not self.row:
            self.known[line] = made
        return made

    def either(self, condition: str, yes: str, no: str) -> str:
        return self.f.let(f"select i1 {condition}, i64 {yes}, i64 {no}")

    # the function -------------------------------------------------------------------------------
    def text(self) -> str:
        """Return the finished function."""
        f = self.f
        self.touch()
        self.load_numbers()
        with f.loop("%start", "%end", hint="tile") as tile:
            self.begin_tile(tile)
            self.tile_rows()
        if self.stream:  # they are not ordered with the counter of finished tiles
            f.do(f"call void {self.module.intrinsic('x86.sse.sfence', 'void')}()")
        f.do("ret void")
        return f.text()

    def load_numbers(self) -> None:
        """Load the numbers that are the same for all tiles, and fill tables."""
        f, word = self.f, self.layout.first_number
        self.height, self.width, self.strip, self.columns, self.across = (
            f.word(word + i) for i in range(5)
        )
        self.last = self.op("sub", self.height, 1)
        for i in range(len(self.stages)):
            offset, stride, scratch = (f.word(word + 5 + 3 * i + k) for k in range(3))
            self.rings.append((self.f.at(self.base, offset), stride, self.f.at(self.base, scratch)))
        for i, s in enumerate(self.stages):
            if s.table:
                f.do(f"call void {self.names[i]}.fill(ptr %job, ptr {self.rings[i][2]})")

    def begin_tile(self, tile: str) -> None:
        """Compute the rows and columns of a tile."""
        down, right = self.op("udiv", tile, self.across), self.op("urem", tile, self.across)
        self.y0 = self.op("mul", down, self.strip)
        self.y1 = self.f.smaller(self.op("add", self.y0, self.strip), self.height)
        self.c0 = self.op("mul", right, self.columns)
        self.c1 = self.f.smaller(self.op("add", self.c0, self.columns), self.width)
        columns = self.op("sub", self.c1, self.c0)
        self.narrow = "true"
        if reads_in_place(self.stages):
            self.narrow = self.f.let(f"icmp slt i64 {columns}, {self.least}")
        self.spans = [self.span(s) for s in self.stages]
        self.limits = [self.limit(s) for s in self.stages]
        self.sizes = [
            self.op("mul", count, s.pixel)
            for s, (_, count) in zip(self.stages, self.spans, strict=True)
        ]
        # Offset of the first column of each stage in its own ring and in those it reads.
        self.offsets = [self.offset(i, s) for i, s in enumerate(self.stages)]
        self.reads = [
            [None if q.stage is None else self.offset(i, self.stages[q.stage]) for q in s.sources]
            for i, s in enumerate(self.stages)
        ]

    def tile_rows(self) -> None:
        """Emit the loop that moves the window down a tile: each stage computes one row."""
        f, before = self.f, self.f.here
        begin = self.op("add", self.y0, min(s.first - s.lead for s in self.stages))
        again = "goon" if "@dala.check" in self.module.helpers else "endstep"
        f.jump("step")
        f.start("step")
        self.time = f.let(f"phi i64 [ {begin}, %{before} ], [ %time.next, %{again} ]", "time")
        f.branch(f.let(f"icmp slt i64 {self.time}, {self.y1}"), "stage0", "endtile")
        for i in range(len(self.stages)):
            f.start(f"stage{i}")
            self.stage_row(i)
        f.start(f"stage{len(self.stages)}")
        f.jump("endstep")
        f.start("endstep")
        if "@dala.check" in self.module.helpers:  # a stage that ends early returns from its row
            state = f.let(f"load atomic i64, ptr {f.word(STOP_WORD, 'ptr')} monotonic, align 8")
            f.branch(f.let(f"icmp eq i64 {state}, 2"), "gone", "goon")
            f.start("gone")
            f.do("ret void")
            f.start("goon")
        f.do(f"%time.next = add nsw i64 {self.time}, 1")
        f.jump("step", PLAIN_LOOP)
        f.start("endtile")

    def touch(self) -> None:
        """Touch the stack page by page, from the top: some systems grow it only that way."""
        f = self.f
        f.jump("touch")
        f.start("touch")
        at = f.let(f"phi i64 [ {self.stack_bytes - 4096}, %entry ], [ %touch.next, %touch ]")
        f.do(f"store volatile i8 0, ptr {self.f.at(self.base, at)}")
        f.do(f"%touch.next = sub nsw i64 {at}, 4096")
        last = f.let("icmp slt i64 %touch.next, 0")
        f.do(f"br i1 {last}, label %touched, label %touch{PLAIN_LOOP}")
        f.start("touched")

    def span(self, s: RowStage) -> tuple[str, str]:
        """Return the first column that a stage computes in this tile, and the number of columns."""
        first, last = self.op("sub", self.c0, s.margin), self.op("add", self.c1, s.margin)
        if not s.beyond:
            first, last = self.f.larger(first, 0), self.f.smaller(last, self.width)
        return first, self.op("sub", last, first)

    def offset(self, i: int, ring: RowStage) -> str:
        """Return the offset in a ring's row of the first column that stage i computes."""
        column = self.op("sub", self.spans[i][0], self.c0)
        return self.op("mul", self.op("add", column, ring.margin), ring.pixel)

    def limit(self, s: RowStage) -> tuple[str, str]:
        """Return the rows that a stage computes in this strip."""
        first = self.op("add", self.y0, s.first)
        first = first if s.beyond else self.f.larger(first, 0)
        return first, self.f.smaller(self.op("add", self.y1, s.lead), self.height)

    def stage_row(self, i: int) -> None:
        """Emit the code for one row of a stage, run only if the strip needs it."""
        f, s = self.f, self.stages[i]
        self.row = self.op("add", self.time, s.lead)
        self.within(*self.limits[i], f"row{i}", f"stage{i + 1}")
        column, count = self.spans[i]
        base = self.slot(i, self.row) if s.ring else ""
        target = self.f.at(base, self.offsets[i]) if s.ring else self.target(i, column)
        if s.analysis is None and s.blur is None:
            (given,), (pixel,) = s.sources, s.read
            source = self.pixel(given, pixel, self.row, self.reads[i][0] or column)
            if s.colors:
                ahead = self.op("mul", self.width, ROWS_AHEAD * pixel)
                name = colors_function(self.module)
                f.do(f"call void {name}(ptr {target}, ptr {source}, i64 {count}, i64 {ahead})")
            else:
                nbytes, end = self.sizes[i], str(self.ends * pixel)
                self.copy(target, source, self.either(self.narrow, nbytes, end))
                last = self.either(self.narrow, "0", end)
                skip = self.op("sub", nbytes, last)
                self.copy(self.f.at(target, skip), self.f.at(source, skip), last)
        elif any(original(self.stages, q) for q in s.sources):
            self.parts(i, target)
        else:
            self.part(i, target, "0", count)
        if s.ring and s.margin and not s.beyond:
            self.pad(i, base, target)
        if s.store is not None and (s.ring or i == len(self.stages) - 1):
            self.keep(i, base)
        f.jump(f"stage{i + 1}")

    def within(self, low: str, high: str, yes: str, no: str) -> None:
        """Begin a block that runs if the current row is within a range; else another does."""
        f = self.f
        tests = [f.let(f"icmp {c} i64 {self.row}, {e}") for c, e in (("sge", low), ("slt", high))]
        f.branch(f.let(f"and i1 {tests[0]}, {tests[1]}"), yes, no)
        f.start(yes)

    def parts(self, i: int, target: str) -> None:
        """Compute a row of a program that reads inputs in place: its start, middle and end."""
        f, head, (_, count) = self.f, str(self.head), self.spans[i]
        vectors = self.op("and", self.op("sub", count, self.head + self.beside), -self.vector)
        last = self.either(self.narrow, "0", self.op("add", vectors, head))
        with f.loop(self.either(self.narrow, "2", "0"), "3", hint="part") as part:
            middle, end = (f.let(f"icmp eq i64 {part}, {k}") for k in (1, 2))
            begin, stop = (
                self.either(end, c, self.either(middle, b, a))
                for a, b, c in (("0", head, last), (head, last, count))
            )
            self.part(i, target, begin, stop, middle)

    def part(self, i: int, target: str, begin: str, stop: str, middle: str = "") -> None:
        """Call the row function of a stage for part of a row, given relative to its columns."""
        column = self.op("add", self.spans[i][0], begin)
        self.fill_table(i, begin, column, middle)
        place = self.f.at(target, self.op("mul", begin, self.stages[i].pixel))
        self.f.do(
            f"call void {self.names[i]}(ptr %job, ptr {place}, ptr {self.table}, "
            f"i64 {self.op('sub', stop, begin)}, i64 {column}, i64 {self.row})"
        )

    def target(self, i: int, column: str) -> str:
        """Return the address of a row of a stage without a ring, in an output."""
        s, out = self.stages[i], "%out"
        if i < len(self.stages) - 1:
            assert s.store is not None
            out = self.f.word(self.layout.first_input + s.store, "ptr")
        place = self.op("add", self.op("mul", self.row, self.width), column)
        return self.f.at(out, self.op("mul", place, s.pixel))

    def slot(self, i: int, row: str) -> str:
        """Return the address of a row in the ring of a stage."""
        s, (ring, stride, _) = self.stages[i], self.rings[i]
        if s.depth == 1:
            return ring
        row = self.op("add", row, s.shift)
        return self.f.at(ring, self.op("mul", self.op("urem", row, s.depth), stride))

    def fill_table(self, i: int, begin: str, column: str, middle: str) -> None:
        """Emit code that fills the table of pointers to the rows that a stage reads.

        They point to a column, which is ``begin`` after the stage's first one. Where ``middle``
        is true, an i1, they point to the inputs instead of copies.
        """
        f, s, at = self.f, self.stages[i], 0
        for source, pixel, offset in zip(s.sources, s.read, self.reads[i], strict=True):
            place = column
            if offset is not None:
                place = self.op("add", offset, self.op("mul", begin, pixel))
            where, direct = self.rows(source, pixel, place), original(self.stages, source)
            if direct is not None:
                both = zip(_KINDS, self.rows(direct, pixel, column), where, strict=True)
                where = [f.let(f"select i1 {middle}, {k} {a}, {k} {b}") for k, a, b in both]
            first, last = source.reach.up, self.last
            if source.stage is not None and self.stages[source.stage].beyond:
                first, last = first + self.stages[source.stage].shift, str(_ALL_ROWS)
            dx, dy = source.neighbor or (0, 1)
            row, table = self.op("add", self.row, first), f.at(self.table, str(at), "ptr")
            numbers = [f"i64 {n}" for n in (source.count, row, last, dy, dx * pixel)]
            typed = [f"{kind} {name}" for kind, name in zip(_KINDS, where, strict=True)]
            given = ", ".join([f"ptr {table}", *numbers, *typed])
            f.do(f"call void {point_function(self.module)}({given})")
            at += source.count
        if s.scratch:
            self.put(str(at), self.rings[i][2])
        if s.prefetches:
            place = self.op("add", self.op("mul", self.time, self.width), column)
            ahead = self.f.at("%out", self.op("mul", place, s.pixel))
            self.put(str(at), self.rings[i][0] if self.stream else ahead)

    def rows(self, source: RowSource, pixel: int, place: str) -> list[str]:
        """Return the address of row 0 at a place, the bytes of a row, and the rows of the ring.

        The place is an offset in a ring, or a column of an input.
        """
        if source.stage is not None:
            ring, stride, _ = self.rings[source.stage]
            return [self.f.at(ring, place), stride, str(self.stages[source.stage].depth)]
        pointer = self.f.word(self.layout.first_input + source.input, "ptr")
        base = self.f.at(pointer, self.op("mul", place, pixel))
        return [base, self.op("mul", self.width, pixel), str(_ALL_ROWS)]

    def pixel(self, source: RowSource, pixel: int, row: str, place: str) -> str:
        """Return the address of a pixel of a ring, by its offset, or of an input, by its column."""
        if source.stage is not None:
            return self.f.at(self.slot(source.stage, row), place)
        pointer = self.f.word(self.layout.first_input + source.input, "ptr")
        place = self.op("add", self.op("mul", row, self.width), place)
        return self.f.at(pointer, self.op("mul", place, pixel))

    def put(self, at: str, pointer: str) -> None:
        self.f.do(f"store ptr {pointer}, ptr {self.f.at(self.table, at, 'ptr')}")

    def copy(self, to: str, source: str, nbytes: str) -> None:
        given = f"ptr {to}, ptr {source}, i64 {nbytes}"
        self.f.do(f"call void {copy_function(self.module)}({given})")

    def pad(self, i: int, base: str, first: str) -> None:
        """Repeat the edge pixels of a row beyond the image."""
        f, s = self.f, self.stages[i]
        column, count = self.spans[i]
        name = repeat_function(self.module, s.pixel)
        missing = self.op("sub", column, self.op("sub", self.c0, s.margin))
        f.do(f"call void {name}(ptr {base}, ptr {first}, i64 {missing})")
        after = self.f.at(first, self.sizes[i])
        missing = self.op("sub", self.op("add", self.c1, s.margin), self.op("add", column, count))
        last = self.f.at(after, str(-s.pixel))
        f.do(f"call void {name}(ptr {after}, ptr {last}, i64 {missing})")

    def keep(self, i: int, base: str) -> None:
        """Copy a row to the output that stores it, if it belongs to this strip."""
        f, s = self.f, self.stages[i]
        assert s.store is not None
        self.within(self.y0, self.y1, f"keep{i}", f"kept{i}")
        place = self.op("add", self.op("mul", self.row, self.width), self.c0)
        offset = self.op("mul", place, s.pixel)
        source = self.f.at("%out", offset)
        if s.ring:
            source = self.f.at(base, str(s.margin * s.pixel))
        target = self.f.at(self.f.word(self.layout.first_input + s.store, "ptr"), offset)
        self.copy(target, source, self.op("mul", self.op("sub", self.c1, self.c0), s.pixel))
        f.jump(f"kept{i}")
        f.start(f"kept{i}")


def table_size(s: RowStage) -> int:
    """Return the number of pointers that a stage's row function receives."""
    rows = sum(q.count for q in s.sources)
    return rows + (1 if s.scratch or s.prefetches else 0)
