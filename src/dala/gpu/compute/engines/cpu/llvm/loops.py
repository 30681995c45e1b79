"""The loops over positions: rows, the loop along a row, reads and stores.

Along several axes work goes row by row, and along a row there is one plain loop with steps of 0 or
1, which vectorises: its iterations are independent, and the metadata says so (an element argument
may be the output itself, but only at the same index). Where images are read at constant offsets
that loop is split: the few pixels whose neighbours hang over an edge go through a careful copy of
it, and the rest needs no clamping.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from dala.gpu.compute.engines.cpu.llvm.scalar import Scalars, slots_of
from dala.gpu.compute.engines.cpu.llvm.text import STORED, TYPES, Function, Module
from dala.gpu.compute.engines.cpu.llvm.unroll import unroll
from dala.gpu.compute.lang.ir import Block, For, If, Program, Slot, Value, values

if TYPE_CHECKING:
    from dala.gpu.compute.engines.cpu.llvm.kernel import JobLayout

# Loads and stores assume no alignment: it costs nothing on the machines we know, and memory that
# belongs to somebody else may have none.
_GROUP = ", align 1, !llvm.access.group !0"


def _fixed(v: Value) -> bool:
    """Whether a read is an image's, at an offset known now."""
    return v.op == "image" and all(a.op == "const" for a in v.args)


def _nested(block: Block, inside: bool = False) -> Iterator[Value]:
    """Every value that stands inside control flow."""
    for s in block.body:
        if isinstance(s, Value):
            if inside:
                yield s
        elif isinstance(s, If):
            yield from _nested(s.then, True)
            yield from _nested(s.otherwise, True)
        elif isinstance(s, For):
            yield from _nested(s.body, True)


class Body:
    """Writes the function ``body(job, out, start, end)``."""

    def __init__(
        self,
        module: Module,
        program: Program,
        layout: tuple[int, tuple[int, ...]],
        job: JobLayout,
        known: Mapping[int, int],
    ) -> None:
        self.f = Function(
            module,
            "define void @body(ptr %job, ptr %out, i64 %start, i64 %end) noinline #0",
        )
        self.program = program
        self.axes, self.steps = layout
        self.job = job
        self.block, self.result = unroll(program.body, program.result, known)
        #: Image reads at constant offsets: argument -> offsets along x, offsets along y.
        self.taps: dict[int, tuple[set[int], set[int]]] = {}
        for v in values(self.block):
            if _fixed(v):
                xs, ys = self.taps.setdefault(v.attr[0], (set(), set()))
                xs.add(v.args[0].attr)
                ys.add(v.args[1].attr)
        #: What is loaded from the job block once.
        self.slots: dict[Slot, str] = {}
        self.inputs: list[str] = []
        self.words: dict[tuple[str, int, int], str] = {}
        self.params: list[str] = []
        #: Indexes along the outer axes, and pointers into this row: by argument, (image, dy).
        self.outer: list[str] = []
        self.rows: dict[object, str] = {}
        self.out_row = ""
        #: The position along the row, as i64, and all of it as i32.
        self.x = ""
        self.position: list[str] = []
        self.border = False
        self.seen: dict[object, str] = {}

    def text(self) -> str:
        """The finished function."""
        f = self.f
        self.slots = slots_of(f, self.program.body)
        first = self.job.first_input
        self.inputs = [self.word(first + i, "ptr", f"in{i}") for i in range(self.job.inputs)]
        self.words = {word: self.word(at) for word, at in self.job.words.items()}
        for i, p in enumerate(self.program.params):
            at, kind = self.job.first_param + i, TYPES[p.type]
            name = self.word(at, "i8" if kind == "i1" else kind, p.name)
            self.params.append(f.let(f"icmp ne i8 {name}, 0") if kind == "i1" else name)
        if self.axes == 1:
            self.row("0", "0")
            self.along("%start", "%end")
        else:
            self.over_rows()
        f.do("ret void")
        return f.text()

    def word(self, at: int, kind: str = "i64", hint: str = "word") -> str:
        """Loads a word of the job block."""
        pointer = self.f.let(f"getelementptr i64, ptr %job, i64 {at}")
        return self.f.let(f"load {kind}, ptr {pointer}", hint)

    def least(self, a: str, b: str, rule: str = "smin") -> str:
        """The smaller (or with "smax" the larger) of two i64."""
        name = self.f.module.intrinsic(f"{rule}.i64", "i64", "i64", "i64")
        return self.f.let(f"call i64 {name}(i64 {a}, i64 {b})")

    def clamped(self, index: str, extent: str) -> str:
        """An index kept within [0, extent); 0 where there is nothing, which is still our memory."""
        top = self.f.let(f"sub i64 {extent}, 1")
        return self.least(self.least(index, top), "0", "smax")

    def step(self, dtype: str, pointer: str, index: str, hint: str = "p") -> str:
        """A pointer moved by a number of elements."""
        return self.f.let(f"getelementptr {STORED[dtype]}, ptr {pointer}, i64 {index}", hint)

    def load(self, dtype: str, pointer: str, hint: str = "v") -> str:
        """The stored number, u8 as i32."""
        value = self.f.let(f"load {STORED[dtype]}, ptr {pointer}{_GROUP}", hint)
        return self.f.let(f"zext i8 {value} to i32", hint) if dtype == "u8" else value

    # rows -------------------------------------------------------------------------------------
    def over_rows(self) -> None:
        """Goes through the rows that [start, end) touches, counting along the outer axes."""
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
        stop = self.least(wanted, extents[last])
        self.row(f.let(f"mul i64 {row}, {extents[last]}"), row)
        self.along(begin, stop)
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

    def row(self, before: str, y: str) -> None:
        """Pointers into this row, and what stays the same along it; ``before`` counts positions."""
        f = self.f
        for i, arg in enumerate(self.program.args):
            pointer = self.inputs[i]
            if arg.kind == "element":
                for axis in range(self.axes - 1):
                    offset = f.let(f"mul i64 {self.outer[axis]}, {self.words['stride', i, axis]}")
                    pointer = self.step(arg.dtype, pointer, offset)
                self.rows[i] = pointer
                if self.steps[i] == 0:
                    self.rows["same", i] = self.load(arg.dtype, pointer, arg.name)
            elif arg.kind == "pixel":
                offset = f.let(f"mul i64 {before}, {arg.channels}")
                self.rows[i] = self.step(arg.dtype, pointer, offset)
        for i, (_, offsets) in self.taps.items():
            for dy in sorted(offsets):
                self.rows[i, dy] = self.image_row(i, f.let(f"add i64 {y}, {dy}"))
        out = self.program.out
        self.out_row = self.step(out.dtype, "%out", f.let(f"mul i64 {before}, {out.channels}"))

    def image_row(self, i: int, y: str) -> str:
        """A pointer to a row of an image, the nearest one where y is outside."""
        f, arg = self.f, self.program.args[i]
        height, width = self.words["shape", i, 0], self.words["shape", i, 1]
        row = f.let(f"mul i64 {self.clamped(y, height)}, {width}")
        return self.step(arg.dtype, self.inputs[i], f.let(f"mul i64 {row}, {arg.channels}"))

    # along a row ------------------------------------------------------------------------------
    def along(self, begin: str, stop: str) -> None:
        """The loop along a row: in one piece, or apart at the edges where images are read."""
        f = self.f
        if not self.taps:
            self.loop(begin, stop, border=False)
            return
        low = max(-dx for xs, _ in self.taps.values() for dx in xs)
        high = stop
        for i, (xs, _) in self.taps.items():
            limit = f.let(f"sub i64 {self.words['shape', i, 1]}, {max(xs)}")
            high = self.least(high, limit)
        left = self.least(self.least(begin, str(max(low, 0)), "smax"), stop)
        right = self.least(high, left, "smax")
        part, middle, back, after = (f.label(h) for h in ("part", "middle", "back", "endparts"))
        before = f.here
        f.jump(part)
        f.start(part)
        # Two rounds: the left edge and the middle, then the right edge.
        first = f.let(f"phi i1 [ true, %{before} ], [ false, %{back} ]")
        edge_begin = f.let(f"select i1 {first}, i64 {begin}, i64 {right}")
        edge_stop = f.let(f"select i1 {first}, i64 {left}, i64 {stop}")
        self.loop(edge_begin, edge_stop, border=True)
        f.branch(first, middle, after)
        f.start(middle)
        self.loop(left, right, border=False)
        f.jump(back)
        f.start(back)
        f.jump(part)
        f.start(after)

    def loop(self, begin: str, stop: str, *, border: bool) -> None:
        """One loop over x in [begin, stop)."""
        f = self.f
        head, turn, ahead, after = (f.label(h) for h in ("along", "position", "ahead", "endalong"))
        before = f.here
        f.jump(head)
        f.start(head)
        following = f"%x.{ahead}"
        self.x = f.let(f"phi i64 [ {begin}, %{before} ], [ {following}, %{ahead} ]", "x")
        f.branch(f.let(f"icmp slt i64 {self.x}, {stop}"), turn, after)
        f.start(turn)
        self.border, self.seen = border, {}
        self.one_position()
        f.jump(ahead)
        f.start(ahead)
        f.do(f"{following} = add nuw nsw i64 {self.x}, 1")
        f.jump(head, f", !llvm.loop !{2 if border else 1}")
        f.start(after)

    def one_position(self) -> None:
        """Reads, the block, the stores."""
        f, out = self.f, self.program.out
        if self.program.uses_position:
            self.position = [f.let(f"trunc i64 {x} to i32") for x in (*self.outer, self.x)]
        scalars = Scalars(f, self, self.slots)
        scalars.zero_slots()
        # The careful copy is for a few pixels, so it stays small rather than unrolled.
        block, result = self.block, self.result
        if self.border:
            block, result = self.program.body, self.program.result
        for v in _nested(block):
            # Safe to read whether or not the branch is taken, and without a mask it is quicker.
            if v.op in ("element", "pixel") or (_fixed(v) and not self.border):
                scalars.names[v] = self.read(v, [scalars.name(a) for a in v.args])
        scalars.block(block)
        base = self.scaled(out.channels)
        for c, v in enumerate(result):
            value, kind = scalars.name(v), STORED[out.dtype]
            if out.dtype == "u8":
                value = f.let(f"trunc i32 {value} to i8")
            there = self.step(out.dtype, self.out_row, self.plus(base, c))
            f.do(f"store {kind} {value}, ptr {there}{_GROUP}")

    def scaled(self, channels: int) -> str:
        """x times a number of channels."""
        return self.x if channels == 1 else self.f.let(f"mul nuw nsw i64 {self.x}, {channels}")

    def plus(self, index: str, constant: int) -> str:
        """An index plus a constant."""
        return index if constant == 0 else self.f.let(f"add nsw i64 {index}, {constant}")

    # reads ------------------------------------------------------------------------------------
    def read(self, v: Value, args: list[str]) -> str:
        """The operand of a read; see :class:`~dala.gpu.compute.engines.cpu.llvm.scalar.Reads`."""
        if v.op in ("param", "position"):
            index: int = v.attr
            return self.params[index] if v.op == "param" else self.position[index]
        if v.op == "dim":
            return self.f.let(f"trunc i64 {self.words['shape', v.attr[0], v.attr[1]]} to i32")
        if v.op == "array":
            return self.array(v, args)
        if v.op == "image" and (self.border or not _fixed(v)):
            return self.image(v, args)
        # Reads inside control flow were done before it, so a repeated one is always at hand.
        key = (v.op, v.attr, *args)
        if key not in self.seen:
            self.seen[key] = self.fixed(v)
        return self.seen[key]

    def fixed(self, v: Value) -> str:
        """A read whose place along the row is known: an element, a pixel, an image's neighbour."""
        if v.op == "element":
            arg = self.program.args[v.attr]
            if self.steps[v.attr] == 0:
                return self.rows["same", v.attr]
            return self.load(arg.dtype, self.step(arg.dtype, self.rows[v.attr], self.x), arg.name)
        i, channel = v.attr
        arg = self.program.args[i]
        if v.op == "pixel":
            row, base = self.rows[i], self.scaled(arg.channels)
            offset = channel
        else:
            dx, dy = (a.attr for a in v.args)
            row, base = self.rows[i, dy], self.scaled(arg.channels)
            offset = dx * arg.channels + channel
        return self.load(arg.dtype, self.step(arg.dtype, row, self.plus(base, offset)), arg.name)

    def image(self, v: Value, args: list[str]) -> str:
        """An image read at offsets only known when it runs, or that may hang over an edge."""
        f, (i, channel) = self.f, v.attr
        arg = self.program.args[i]
        dx, dy = (f.let(f"sext i32 {a} to i64") for a in args)
        row = self.image_row(i, f.let(f"add i64 {self.outer[0]}, {dy}"))
        x = self.clamped(f.let(f"add i64 {self.x}, {dx}"), self.words["shape", i, 1])
        base = f.let(f"mul nuw nsw i64 {x}, {arg.channels}")
        return self.load(arg.dtype, self.step(arg.dtype, row, self.plus(base, channel)), arg.name)

    def array(self, v: Value, args: list[str]) -> str:
        """An array read, every index clamped."""
        f, arg = self.f, self.program.args[v.attr]
        offset = "0"
        for axis, index in enumerate(args):
            extent = self.words["shape", v.attr, axis]
            wide = self.clamped(f.let(f"sext i32 {index} to i64"), extent)
            if axis:
                wide = f.let(f"add i64 {f.let(f'mul i64 {offset}, {extent}')}, {wide}")
            offset = wide
        return self.load(arg.dtype, self.step(arg.dtype, self.inputs[v.attr], offset), arg.name)
