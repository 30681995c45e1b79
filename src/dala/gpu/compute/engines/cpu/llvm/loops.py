"""Emit the loops over positions: rows, the loop along a row, reads and stores.

Several axes are processed row by row. A row is one plain loop with steps of 0 or 1, which LLVM
vectorizes: its iterations are independent, and metadata says so (an element argument may alias the
output, but only at the same index). Where images are read at constant offsets the row is split: the
few pixels whose neighbors cross an edge run through a copy of the loop that clamps, and the others
need no clamping.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from dala.gpu.compute.engines.cpu.llvm.emitter import (
    MAX_BRANCHES,
    Emitter,
    ValueReader,
    allocate_slots,
    count_branches,
    offset_or_place,
)
from dala.gpu.compute.engines.cpu.llvm.metering import LoopMeter
from dala.gpu.compute.engines.cpu.llvm.tiles import TOTAL_WORD
from dala.gpu.compute.engines.cpu.vector.text import PLAIN_LOOP, STORED, TYPES, Module, body_text
from dala.gpu.compute.engines.unroll import unroll
from dala.gpu.compute.lang.ir import Arg, Block, Program, Slot, Value, values

if TYPE_CHECKING:
    from dala.gpu.compute.engines.cpu.llvm.kernel import JobLayout

# Loads and stores assume no alignment: it costs nothing on current CPUs, and memory passed in by
# the caller may be unaligned.
_GROUP = ", align 1, !llvm.access.group !0"
_VECTOR_LOOP = ", !llvm.loop !1"

#: A pointer into the current row, or a value loaded from it: an argument, an image's row at dy, or
#: the element of an argument that does not advance along the row.
_RowKey: TypeAlias = "int | tuple[int, int] | tuple[str, int]"


def _constant_offset(v: Value) -> bool:
    """Return whether a value reads an image at a constant offset."""
    return v.op == "image" and all(a.op == "const" for a in v.args)


def _nested(block: Block) -> Iterator[Value]:
    """Yield every value inside control flow."""
    for s in block.body:
        if not isinstance(s, Value):
            yield from values(Block([s]))


class KernelLoops(ValueReader):
    """Emits the function ``body(job, out, start, end)`` of a kernel."""

    def __init__(
        self,
        module: Module,
        program: Program,
        layout: tuple[int, tuple[int, ...]],
        job: JobLayout,
        known: Mapping[int, int],
        counting: bool = False,
    ) -> None:
        self.f = body_text(module)
        self.program = program
        self.axes, self.steps = layout
        self.job = job
        #: Whether to count iterations, and so to keep all loops.
        self.counting = counting
        limit = 0 if counting else None
        self.unrolled, self.result = unroll(program.body, program.result, known, limit)
        #: Image reads at constant offsets: argument -> offsets along x, offsets along y.
        self.taps: dict[int, tuple[set[int], set[int]]] = {}
        for v in values(self.unrolled):
            if _constant_offset(v):
                xs, ys = self.taps.setdefault(v.attr[0], (set(), set()))
                xs.add(v.args[0].attr)
                ys.add(v.args[1].attr)
        #: Whether values that are the same along a row are made to look as if they were not: for
        #: branches on them, LLVM's vectorizer takes exponential time.
        self.hides = count_branches(self.unrolled) > MAX_BRANCHES
        self.differs = self.total = ""
        #: Loaded from the job block once.
        self.slots: dict[Slot, str] = {}
        self.inputs: list[str] = []
        self.words: dict[tuple[str, int, int], str] = {}
        self.params: list[str] = []
        #: Indexes along the outer axes, and pointers into this row.
        self.outer: list[str] = []
        self.rows: dict[_RowKey, str] = {}
        self.out_row = ""
        #: The position along the row as i64, and the whole position as i32.
        self.x = ""
        self.position: list[str] = []
        self.border = False
        self.loaded: dict[tuple[Hashable, ...], str] = {}

    def text(self) -> str:
        """Return the finished function."""
        f = self.f
        self.slots = self.allocate()
        first = self.job.first_input
        self.inputs = [f.word(first + i, "ptr", f"in{i}") for i in range(self.job.inputs)]
        self.words = {word: f.word(at) for word, at in self.job.words.items()}
        if self.hides:
            self.total = f.word(TOTAL_WORD)
        for i, p in enumerate(self.program.params):
            self.params.append(f.param(self.job.first_param + i, TYPES[p.type], p.name))
        if self.axes == 1:
            self._begin_row("0", "0")
            self._along("%start", "%end")
        else:
            self._over_rows()
        f.do("ret void")
        return f.text()

    def allocate(self) -> dict[Slot, str]:
        """Reserve the variables of the slots."""
        return allocate_slots(self.f, self.program.body)

    def _clamp(self, index: str, extent: str) -> str:
        """Clamp an index to [0, extent); an empty extent gives 0, which is still valid memory."""
        top = self.f.let(f"sub i64 {extent}, 1")
        return self.f.larger(self.f.smaller(index, top), 0)

    def _at(self, dtype: str, pointer: str, index: str) -> str:
        return self.f.at(pointer, index, STORED[dtype])

    def _load(self, arg: Arg, pointer: str, index: str = "") -> str:
        """Load a stored number of an argument, u8 as i32."""
        pointer = self._at(arg.dtype, pointer, index) if index else pointer
        value = self.f.let(f"load {STORED[arg.dtype]}, ptr {pointer}{_GROUP}", arg.name)
        return self.f.let(f"zext i8 {value} to i32", arg.name) if arg.dtype == "u8" else value

    # rows -------------------------------------------------------------------------------------
    def _over_rows(self) -> None:
        """Loop over the rows that [start, end) touches, counting along the outer axes."""
        f, last = self.f, self.axes - 1
        extents = [self.words["dim", 0, axis] for axis in range(self.axes)]
        first_row = f.let(f"udiv i64 %start, {extents[last]}")
        column = f.let(f"urem i64 %start, {extents[last]}")
        firsts, rest = [""] * last, first_row
        for axis in range(last - 1, 0, -1):
            firsts[axis] = f.let(f"urem i64 {rest}, {extents[axis]}")
            rest = f.let(f"udiv i64 {rest}, {extents[axis]}")
        firsts[0] = rest
        f.jump("row")
        f.start("row")
        at = f.let("phi i64 [ %start, %entry ], [ %at.next, %endrow ]", "at")
        begin = f.let(f"phi i64 [ {column}, %entry ], [ 0, %endrow ]", "begin")
        row = f.let(f"phi i64 [ {first_row}, %entry ], [ %row.next, %endrow ]", "row")
        self.outer = [
            f.let(f"phi i64 [ {first}, %entry ], [ %index{axis}.next, %endrow ]", f"index{axis}")
            for axis, first in enumerate(firsts)
        ]
        wanted = f.let(f"add i64 {begin}, {f.let(f'sub i64 %end, {at}')}")
        stop = f.smaller(wanted, extents[last])
        self._begin_row(f.let(f"mul i64 {row}, {extents[last]}"), row)
        self._along(begin, stop)
        f.jump("endrow")
        f.start("endrow")
        f.do(f"%at.next = add i64 {at}, {f.let(f'sub i64 {stop}, {begin}')}")
        f.do(f"%row.next = add i64 {row}, 1")
        carry = "1"
        for axis in range(last - 1, -1, -1):
            more = f.let(f"add i64 {self.outer[axis]}, {carry}")
            full = f.let(f"icmp eq i64 {more}, {extents[axis]}")
            f.do(f"%index{axis}.next = select i1 {full}, i64 0, i64 {more}")
            carry = f.let(f"zext i1 {full} to i64")
        f.branch(f.let("icmp slt i64 %at.next, %end"), "row", "leave")
        f.start("leave")

    def _begin_row(self, before: str, y: str) -> None:
        """Emit pointers into this row, which starts after ``before`` positions."""
        f = self.f
        for i, arg in enumerate(self.program.args):
            pointer = self.inputs[i]
            if arg.kind == "element":
                for axis in range(self.axes - 1):
                    offset = f.let(f"mul i64 {self.outer[axis]}, {self.words['stride', i, axis]}")
                    pointer = self._at(arg.dtype, pointer, offset)
                self.rows[i] = pointer
                if self.steps[i] == 0:
                    self.rows["same", i] = self._load(arg, pointer)
            elif arg.kind == "pixel":
                offset = f.let(f"mul i64 {before}, {arg.channels}")
                self.rows[i] = self._at(arg.dtype, pointer, offset)
        for i, (_, offsets) in self.taps.items():
            for dy in sorted(offsets):
                self.rows[i, dy] = self._image_row(i, f.let(f"add i64 {y}, {dy}"))
        out = self.program.out
        self.out_row = self._at(out.dtype, "%out", f.let(f"mul i64 {before}, {out.channels}"))

    def _image_row(self, i: int, y: str) -> str:
        """Return a pointer to a row of an image, clamped to the image."""
        f, arg = self.f, self.program.args[i]
        height, width = self.words["shape", i, 0], self.words["shape", i, 1]
        row = f.let(f"mul i64 {self._clamp(y, height)}, {width}")
        return self._at(arg.dtype, self.inputs[i], f.let(f"mul i64 {row}, {arg.channels}"))

    # along a row ------------------------------------------------------------------------------
    def _along(self, begin: str, stop: str) -> None:
        """Emit the loop along a row, split at the edges where images are read."""
        f = self.f
        if not self.taps:
            self._positions(begin, stop, border=False)
            return
        low = max(-dx for xs, _ in self.taps.values() for dx in xs)
        high = stop
        for i, (xs, _) in self.taps.items():
            limit = f.let(f"sub i64 {self.words['shape', i, 1]}, {max(xs)}")
            high = f.smaller(high, limit)
        left = f.smaller(f.larger(begin, max(low, 0)), stop)
        right = f.larger(high, left)
        part, middle, back, after = (f.label(h) for h in ("part", "middle", "back", "endparts"))
        before = f.here
        f.jump(part)
        f.start(part)
        # Two iterations: the left edge and the middle, then the right edge.
        first = f.let(f"phi i1 [ true, %{before} ], [ false, %{back} ]")
        edge_begin = f.let(f"select i1 {first}, i64 {begin}, i64 {right}")
        edge_stop = f.let(f"select i1 {first}, i64 {left}, i64 {stop}")
        self._positions(edge_begin, edge_stop, border=True)
        f.branch(first, middle, after)
        f.start(middle)
        self._positions(left, right, border=False)
        f.jump(back)
        f.start(back)
        f.jump(part)
        f.start(after)

    def _positions(self, begin: str, stop: str, *, border: bool) -> None:
        # The copy that clamps runs for a few pixels, so it stays small rather than unrolled.
        block, result = self.unrolled, self.result
        if border:
            block, result = self.program.body, self.program.result
        meter = LoopMeter(self.f, block, self.counting)
        tail = PLAIN_LOOP if border else _VECTOR_LOOP
        self.border = border

        def position(x: str) -> None:
            self.x, self.loaded = x, {}
            self._one_position(block, result, meter)

        meter.positions(begin, stop, position, tail=tail, twice=not border)

    def _one_position(self, block: Block, result: Sequence[Value], meter: LoopMeter) -> None:
        f, out = self.f, self.program.out
        if self.hides:  # always true, since a row is not longer than the job
            self.differs = f.let(f"icmp ne i64 {self.x}, {self.total}")
        if self.program.uses_position:
            self.position = [f.let(f"trunc i64 {x} to i32") for x in (*self.outer, self.x)]
        emitter = Emitter(f, self, self.slots, meter, of_bytes=self.program.exact)
        emitter.zero_slots()
        for v in _nested(block):
            # Safe to read whether or not the branch is taken, and faster without a mask.
            if v.op in ("element", "pixel") or (_constant_offset(v) and not self.border):
                emitter.names[v] = self.read(v, [emitter.operand(a, False) for a in v.args])
        emitter.block(block)
        base = self._scaled(out.channels)
        for c, v in enumerate(result):
            value, kind = emitter.operand(v, False), STORED[out.dtype]
            if out.dtype == "u8":
                value = f.let(f"trunc i32 {value} to i8")
            there = self._at(out.dtype, self.out_row, self._plus(base, c))
            f.do(f"store {kind} {value}, ptr {there}{_GROUP}")

    def _scaled(self, channels: int) -> str:
        return self.x if channels == 1 else self.f.let(f"mul nuw nsw i64 {self.x}, {channels}")

    def _plus(self, index: str, number: int) -> str:
        return index if number == 0 else self.f.let(f"add nsw i64 {index}, {number}")

    # reads ------------------------------------------------------------------------------------
    def read(self, value: Value, args: list[str]) -> str:
        """Emit a read at the current position; return its operand."""
        v = value
        if v.op in ("param", "position"):
            index: int = v.attr
            return self._hidden(
                self.params[index] if v.op == "param" else self.position[index], v.type
            )
        if v.op == "dim":
            extent = self.words["shape", v.attr[0], v.attr[1]]
            return self._hidden(self.f.let(f"trunc i64 {extent} to i32"), v.type)
        if v.op == "array":
            return self._array(v, args)
        if v.op == "image" and (self.border or not _constant_offset(v)):
            return self._image(v, args)
        # Reads inside control flow are emitted before it, so a repeated one is always in scope.
        key = (v.op, v.attr, *args)
        if key not in self.loaded:
            self.loaded[key] = self._read_in_row(v)
        return self.loaded[key]

    def _hidden(self, name: str, ir_type: str) -> str:
        """Return a value that LLVM cannot know to be the same along a row, if it must not."""
        if not self.hides:
            return name
        kind = TYPES[ir_type]
        return self.f.let(f"select i1 {self.differs}, {kind} {name}, {kind} zeroinitializer")

    def _read_in_row(self, v: Value) -> str:
        """Read an element, a pixel, or an image at a constant offset inside it."""
        if v.op == "element":
            arg = self.program.args[v.attr]
            if self.steps[v.attr] == 0:
                return self._hidden(self.rows["same", v.attr], v.type)
            return self._load(arg, self.rows[v.attr], self.x)
        i, channel = v.attr
        arg = self.program.args[i]
        base = self._scaled(arg.channels)
        if v.op == "pixel":
            row, offset = self.rows[i], channel
        else:
            dx, dy = (a.attr for a in v.args)
            row, offset = self.rows[i, dy], dx * arg.channels + channel
        return self._load(arg, row, self._plus(base, offset))

    def _image(self, v: Value, args: list[str]) -> str:
        """Read an image at an offset that is known only at run time or may cross an edge."""
        f, (i, channel) = self.f, v.attr
        arg = self.program.args[i]
        if all(offset_or_place(a) is not a for a in v.args):
            return self._place(arg, i, channel, *args)
        positions = self.x, self.outer[0]
        x, y = (
            wide if offset_or_place(a) is not a else f.let(f"add i64 {position}, {wide}")
            for a, position, wide in zip(
                v.args, positions, [f.let(f"sext i32 {a} to i64") for a in args], strict=True
            )
        )
        row = self._image_row(i, y)
        base = f.let(f"mul nuw nsw i64 {self._clamp(x, self.words['shape', i, 1])}, {arg.channels}")
        return self._load(arg, row, self._plus(base, channel))

    def _place(self, arg: Arg, i: int, channel: int, x: str, y: str) -> str:
        """Read an image at a place, in 32 bits as far as that goes: vectors hold twice as many.

        The channels of a pixel of bytes are one word, whose loads LLVM joins.
        """
        f = self.f
        down, across = (f.let(f"trunc i64 {self.words['shape', i, k]} to i32") for k in (0, 1))
        row, column = (
            f.intrinsic("smax.i32", "i32", "i32", f.intrinsic("smin.i32", "i32", "i32", at, top), 0)
            for at, top in (
                (at, f.let(f"sub i32 {size}, 1")) for at, size in ((y, down), (x, across))
            )
        )
        pixel = f.let(f"add i32 {f.let(f'mul i32 {row}, {across}')}, {column}")
        wide = f.let(f"zext i32 {pixel} to i64")
        if arg.dtype != "u8" or arg.channels != 4:
            base = f.let(f"mul nuw i64 {wide}, {arg.channels}")
            return self._load(arg, self.inputs[i], self._plus(base, channel))
        word = f.let(f"load i32, ptr {f.at(self.inputs[i], wide, 'i32')}{_GROUP}", arg.name)
        shifted = f.let(f"lshr i32 {word}, {8 * channel}") if channel else word
        return shifted if channel == 3 else f.let(f"and i32 {shifted}, 255")

    def _array(self, v: Value, args: list[str]) -> str:
        """Read an array, every index clamped."""
        f, arg = self.f, self.program.args[v.attr]
        offset = "0"
        for axis, index in enumerate(args):
            extent = self.words["shape", v.attr, axis]
            wide = self._clamp(f.let(f"sext i32 {index} to i64"), extent)
            if axis:
                wide = f.let(f"add i64 {f.let(f'mul i64 {offset}, {extent}')}, {wide}")
            offset = wide
        return self._load(arg, self.inputs[v.attr], offset)
