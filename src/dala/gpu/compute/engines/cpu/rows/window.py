"""Emit the function that runs a chain over its tiles, row by row; ``plan.py`` explains the method.

Image sizes and the offsets of rings are numbers in the job block, so that one piece of code serves
images of any size.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dala.gpu.compute.engines.cpu.llvm.metering import STOP_WORD
from dala.gpu.compute.engines.cpu.llvm.text import PLAIN_LOOP, FunctionText, Module
from dala.gpu.compute.engines.cpu.rows.copies import ROWS_AHEAD, copy_function, repeat_function
from dala.gpu.compute.engines.cpu.rows.plan import RowSource, RowStage
from dala.gpu.compute.engines.cpu.rows.planes import PlaneStage

#: The most rows whose pointers are computed without a loop.
_UNROLLED: Final = 1


class SlidingWindow:
    """Emits ``body(job, out, start, end)`` of a chain, for the tiles [start, end)."""

    def __init__(
        self, module: Module, stages: list[RowStage], names: list[str], stack_bytes: int,
        first_word: int, first_input: int, calls: Mapping[int, int], *, stream: bool = False,
    ) -> None:  # fmt: skip
        self.f = FunctionText(
            module, "define void @body(ptr %job, ptr %out, i64 %start, i64 %end) noinline #0"
        )
        self.module = module
        self.stages = stages
        self.names = names
        self.stack_bytes = stack_bytes
        self.first_word = first_word
        self.first_input = first_input
        #: For stages that convert planes: the first word of their call.
        self.calls = calls
        #: Whether the last stage uses non-temporal stores.
        self.stream = stream
        self.blocks: dict[int, str] = {}
        #: For each stage: its ring, the bytes of a row, and its scratch memory.
        self.rings: list[tuple[str, str, str]] = []
        self.base = self.f.alloca(f"[{stack_bytes} x i8]", "space", 64)
        entries = max((table_size(s) for s in stages), default=0) + 1
        self.table = self.f.alloca(f"[{entries} x ptr]", "rows", 64)
        self.row = ""

    # numbers ------------------------------------------------------------------------------------
    def op(self, text: str, a: str, b: str | int) -> str:
        return self.f.let(f"{text} i64 {a}, {b}")

    def at(self, pointer: str, offset: str) -> str:
        return self.f.at(pointer, offset)

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
        f, word = self.f, self.first_word
        for i, s in enumerate(self.stages):
            if s.planes is not None:
                self.blocks[i] = self.block(i, s.planes)
        self.height, self.width, self.strip, self.columns, self.across = (
            f.word(word + i) for i in range(5)
        )
        for i in range(len(self.stages)):
            offset, stride, scratch = (f.word(word + 5 + 3 * i + k) for k in range(3))
            self.rings.append((self.at(self.base, offset), stride, self.at(self.base, scratch)))
        for i, s in enumerate(self.stages):
            if s.analysis is not None and s.analysis.table:
                f.do(f"call void {self.names[i]}.fill(ptr %job, ptr {self.rings[i][2]})")

    def begin_tile(self, tile: str) -> None:
        """Compute the rows and columns of a tile."""
        down, right = self.op("udiv", tile, self.across), self.op("urem", tile, self.across)
        self.y0 = self.op("mul", down, self.strip)
        self.y1 = self.f.smaller(self.op("add", self.y0, self.strip), self.height)
        self.c0 = self.op("mul", right, self.columns)
        self.c1 = self.f.smaller(self.op("add", self.c0, self.columns), self.width)
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
        f.do(f"store volatile i8 0, ptr {self.at(self.base, at)}")
        f.do(f"%touch.next = sub nsw i64 {at}, 4096")
        last = f.let("icmp slt i64 %touch.next, 0")
        f.do(f"br i1 {last}, label %touched, label %touch{PLAIN_LOOP}")
        f.start("touched")

    def span(self, s: RowStage) -> tuple[str, str]:
        """Return the first column that a stage computes in this tile, and the number of columns."""
        first = self.f.larger(self.op("sub", self.c0, s.margin), 0)
        last = self.f.smaller(self.op("add", self.c1, s.margin), self.width)
        return first, self.op("sub", last, first)

    def offset(self, i: int, ring: RowStage) -> str:
        """Return the offset in a ring's row of the first column that stage i computes."""
        column = self.op("sub", self.spans[i][0], self.c0)
        return self.op("mul", self.op("add", column, ring.margin), ring.pixel)

    def limit(self, s: RowStage) -> tuple[str, str]:
        """Return the rows that a stage computes in this strip."""
        first = self.f.larger(self.op("add", self.y0, s.first), 0)
        return first, self.f.smaller(self.op("add", self.y1, s.lead), self.height)

    def stage_row(self, i: int) -> None:
        """Emit the code for one row of a stage, run only if the strip needs it."""
        f, s = self.f, self.stages[i]
        self.row = self.op("add", self.time, s.lead)
        low, high = self.limits[i]
        enough = f.let(f"icmp sge i64 {self.row}, {low}")
        not_over = f.let(f"icmp slt i64 {self.row}, {high}")
        f.branch(f.let(f"and i1 {enough}, {not_over}"), f"row{i}", f"stage{i + 1}")
        f.start(f"row{i}")
        column, count = self.spans[i]
        base = self.slot(i, self.row) if s.ring else ""
        target = ""
        if s.planes is None or s.ring:
            target = self.at(base, self.offsets[i]) if s.ring else self.target(i, column)
        if s.planes is not None and s.planes.last:
            self.to_planes(i)
        elif s.planes is not None:
            self.put_row(i, 0, target)
            self.call(i, self.row)
        elif s.analysis is None and s.blur is None:
            source = self.input_pixel(s.sources[0], s.pixel, self.row, column)
            ahead = self.op("mul", self.width, ROWS_AHEAD * s.pixel)
            self.copy(target, source, self.sizes[i], ahead)
        else:
            self.fill_table(i, column)
            f.do(
                f"call void {self.names[i]}(ptr %job, ptr {target}, ptr {self.table}, "
                f"i64 {count}, i64 {column}, i64 {self.row})"
            )
        if s.ring and s.margin:
            self.pad(i, base, target)
        if (s.store is not None and s.ring) or (s.store is not None and i == len(self.stages) - 1):
            self.keep(i, base)
        f.jump(f"stage{i + 1}")

    # planes -------------------------------------------------------------------------------------
    def block(self, i: int, planes: PlaneStage) -> str:
        """Copy a stage's argument block for this thread and add its buffers' addresses."""
        f, kind = self.f, f"[{planes.words - 1} x i64]"
        made = f.alloca(kind, f"call{i}", 64)
        given = f.let(f"getelementptr i64, ptr %job, i64 {self.calls[i] + 1}")
        f.do(f"store {kind} {f.let(f'load {kind}, ptr {given}, align 8')}, ptr {made}, align 8")
        for word, outside in planes.based:
            base = "%out" if outside < 0 else self.f.word(self.first_input + outside, "ptr")
            where = f.let(f"getelementptr i64, ptr {made}, i64 {word}")
            offset = f.let(f"load i64, ptr {where}")
            f.do(f"store ptr {self.at(base, offset)}, ptr {where}")
        return made

    def put_row(self, i: int, which: int, row: str) -> None:
        """Set one of the rows in a stage's argument block."""
        planes = self.stages[i].planes
        assert planes is not None
        where = self.f.let(f"getelementptr i64, ptr {self.blocks[i]}, i64 {planes.rows[which]}")
        self.f.do(f"store ptr {row}, ptr {where}")

    def call(self, i: int, number: str) -> None:
        """Call a stage's function, for one row or one pair of rows."""
        code = self.f.word(self.calls[i], "ptr")
        end = self.op("add", number, 1)
        self.f.do(f"call void {code}(ptr {self.blocks[i]}, ptr null, i64 {number}, i64 {end})")

    def to_planes(self, i: int) -> None:
        """Convert two rows, once the second of them is computed."""
        f, (source,) = self.f, self.stages[i].sources
        odd = f.let(f"trunc i64 {self.row} to i1")
        f.branch(odd, f"pair{i}", f"stage{i + 1}")
        f.start(f"pair{i}")
        place = self.reads[i][0]
        assert place is not None
        for which, row in enumerate((self.op("sub", self.row, 1), self.row)):
            self.put_row(i, which, self.pixel(source, 0, row, place))
        self.call(i, self.op("lshr", self.row, 1))

    def target(self, i: int, column: str) -> str:
        """Return the address of a row of a stage without a ring, in an output."""
        s, out = self.stages[i], "%out"
        if i < len(self.stages) - 1:
            assert s.store is not None
            out = self.f.word(self.first_input + s.store, "ptr")
        place = self.op("add", self.op("mul", self.row, self.width), column)
        return self.at(out, self.op("mul", place, s.pixel))

    def slot(self, i: int, row: str) -> str:
        """Return the address of a row in the ring of a stage."""
        s, (ring, stride, _) = self.stages[i], self.rings[i]
        if s.depth == 1:
            return ring
        return self.at(ring, self.op("mul", self.op("urem", row, s.depth), stride))

    def input_pixel(self, source: RowSource, pixel: int, row: str, column: str) -> str:
        """Return the address of a pixel of an input."""
        pointer = self.f.word(self.first_input + source.input, "ptr")
        place = self.op("add", self.op("mul", row, self.width), column)
        return self.at(pointer, self.op("mul", place, pixel))

    def fill_table(self, i: int, column: str) -> None:
        """Emit code that fills the table of pointers to the rows that a stage reads."""
        s, at = self.stages[i], 0
        for source, pixel, place in zip(s.sources, s.read, self.reads[i], strict=True):
            up, down = source.reach.up, source.reach.down
            if down - up > _UNROLLED:
                self.fill_by_loop(i, at, source, pixel, place or column)
            else:
                for dy in range(up, down + 1):
                    row = self.clamped(str(dy)) if dy else self.row
                    self.put(str(at + dy - up), self.pixel(source, pixel, row, place or column))
            at += down - up + 1
        if s.scratch:
            self.put(str(at), self.rings[i][2])
        if s.prefetches:
            place = self.op("add", self.op("mul", self.time, self.width), column)
            ahead = self.at("%out", self.op("mul", place, s.pixel))
            self.put(str(at), self.rings[i][0] if self.stream else ahead)

    def fill_by_loop(self, i: int, at: int, source: RowSource, pixel: int, place: str) -> None:
        """Fill the table in a loop, where a stage reads many rows."""
        f, name, up = self.f, f"table{i}.{at}", source.reach.up
        before = f.here
        f.jump(name)
        f.start(name)
        k = f.let(f"phi i64 [ 0, %{before} ], [ %{name}.next, %{name} ]")
        row = self.clamped(self.op("add", k, up))
        self.put(self.op("add", k, at), self.pixel(source, pixel, row, place))
        f.do(f"%{name}.next = add nuw nsw i64 {k}, 1")
        done = f.let(f"icmp sgt i64 %{name}.next, {source.reach.down - up}")
        f.do(f"br i1 {done}, label %{name}.done, label %{name}{PLAIN_LOOP}")
        f.start(f"{name}.done")

    def clamped(self, dy: str) -> str:
        """Return the row dy below, clamped to the image."""
        row = self.f.smaller(self.op("add", self.row, dy), self.op("sub", self.height, 1))
        return self.f.larger(row, 0)

    def pixel(self, source: RowSource, pixel: int, row: str, place: str) -> str:
        """Return the address of a pixel of a ring, by its offset, or of an input, by its column."""
        if source.stage is not None:
            return self.at(self.slot(source.stage, row), place)
        return self.input_pixel(source, pixel, row, place)

    def put(self, at: str, pointer: str) -> None:
        where = self.f.let(f"getelementptr ptr, ptr {self.table}, i64 {at}")
        self.f.do(f"store ptr {pointer}, ptr {where}")

    def copy(self, to: str, source: str, nbytes: str, ahead: str = "") -> None:
        """Copy a row, and prefetch what is some bytes ahead."""
        name = copy_function(self.module, prefetch=bool(ahead))
        given = f"ptr {to}, ptr {source}, i64 {nbytes}, i64 {ahead or 0}"
        self.f.do(f"call void {name}({given})")

    def pad(self, i: int, base: str, first: str) -> None:
        """Repeat the edge pixels of a row beyond the image."""
        f, s = self.f, self.stages[i]
        column, count = self.spans[i]
        name = repeat_function(self.module, s.pixel)
        missing = self.op("sub", column, self.op("sub", self.c0, s.margin))
        f.do(f"call void {name}(ptr {base}, ptr {first}, i64 {missing})")
        after = self.at(first, self.sizes[i])
        missing = self.op("sub", self.op("add", self.c1, s.margin), self.op("add", column, count))
        last = self.at(after, str(-s.pixel))
        f.do(f"call void {name}(ptr {after}, ptr {last}, i64 {missing})")

    def keep(self, i: int, base: str) -> None:
        """Copy a row to the output that stores it, if it belongs to this strip."""
        f, s = self.f, self.stages[i]
        assert s.store is not None
        inside = f.let(f"icmp sge i64 {self.row}, {self.y0}")
        before = f.let(f"icmp slt i64 {self.row}, {self.y1}")
        f.branch(f.let(f"and i1 {inside}, {before}"), f"keep{i}", f"kept{i}")
        f.start(f"keep{i}")
        place = self.op("add", self.op("mul", self.row, self.width), self.c0)
        offset = self.op("mul", place, s.pixel)
        source = self.at("%out", offset)
        if s.ring:
            source = self.at(base, str(s.margin * s.pixel))
        target = self.at(self.f.word(self.first_input + s.store, "ptr"), offset)
        self.copy(target, source, self.op("mul", self.op("sub", self.c1, self.c0), s.pixel))
        f.jump(f"kept{i}")
        f.start(f"kept{i}")


def table_size(s: RowStage) -> int:
    """Return the number of pointers that a stage's row function receives."""
    rows = sum(r.reach.down - r.reach.up + 1 for r in s.sources)
    return rows + (1 if s.scratch or s.prefetches else 0)
