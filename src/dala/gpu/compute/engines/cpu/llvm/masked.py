"""Emit a kernel for a vector of positions at a time, where LLVM could not or would do worse.

That is so where a loop ends at different times (``masks.py``), and for samples of images: the four
pixels around a place are two loads for each lane, instead of four gathers. The last vector of a row
repeats its last position, and stores it once.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from dala.gpu.compute.engines.cpu.llvm.divergence import Divergence, SampleCorner, find_quads
from dala.gpu.compute.engines.cpu.llvm.emitter import READS, allocate_slots, offset_or_place
from dala.gpu.compute.engines.cpu.llvm.loops import KernelLoops
from dala.gpu.compute.engines.cpu.llvm.masks import MaskedEmitter, any_lane
from dala.gpu.compute.engines.cpu.llvm.math import FUNCTIONS
from dala.gpu.compute.engines.cpu.llvm.metering import LoopMeter
from dala.gpu.compute.engines.cpu.llvm.operations import InstructionWriter
from dala.gpu.compute.engines.cpu.vector.text import STORED
from dala.gpu.compute.lang.ir import *

#: The most statements of a program of this form: longer ones compile faster position by position.
MAX_STATEMENTS: Final = 8000
#: The most pixels that are loaded one by one, by lanes and samples: each is eight lines of text;
#: and the most in programs whose vectors are twice as long.
MOST_LOADED: Final = 640
FEW_LOADED: Final = 160
#: How many rows further down pixels are prefetched, as for warps.
ROWS_AHEAD: Final = 6
#: Reads that give a place, and the most operations that are done again to foresee one.
_PLACES: Final = frozenset({"param", "position", "dim"})
MOST_AHEAD: Final = 64


class MaskedLoops(KernelLoops):
    """Emits the function ``body(job, out, start, end)`` with vectors of positions."""

    lanes = 1
    found: Divergence
    quads: Mapping[Value, SampleCorner] = MappingProxyType({})
    #: Offsets of the lanes from the first one, in positions.
    steps_of_lanes = ""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        #: Images whose pixels are prefetched.
        self.foreseen: set[int] = set()
        self.scopes: list[dict[tuple[Hashable, ...], str]] = []

    def useful(self, vector: int) -> bool:
        """Plan for vectors of some bytes; return whether a loop differs, or images are sampled."""
        every = list(statements(self.unrolled))
        differs = [s for s in every if isinstance(s, Value) and self._differs(s)]
        self.found = Divergence(self.unrolled, differs)
        self.quads = find_quads(every, self.program)
        samples = len({(v.attr[0], q.x, q.y) for v, q in self.quads.items()})
        # Of straight code processors see two vectors at a time only if they take turns.
        few = samples * vector // 2 <= FEW_LOADED and not self.found.loops
        self.lanes = vector // (2 if few else 4)
        if samples * self.lanes > MOST_LOADED:
            self.quads = {}
        return len(every) <= MAX_STATEMENTS and bool(self.found.loops or self.quads)

    def _differs(self, v: Value) -> bool:
        if v.op == "element":
            return self.steps[v.attr] != 0
        return v.op in ("pixel", "image") or (v.op == "position" and v.attr == self.axes - 1)

    def text(self) -> str:
        self.hides = False
        self.taps.clear()
        self.f.module.vectors = self.f.module.loops = True
        out = self.program.out
        self.kept = self.f.alloca(
            f"[{self.lanes * out.channels} x {STORED[out.dtype]}]", "kept", 64
        )
        return super().text()

    def allocate(self) -> dict[Slot, str]:
        return allocate_slots(self.f, self.unrolled, self.lanes, self.found.slots)

    def enter(self) -> None:
        """Enter a scope."""
        self.scopes.append(dict(self.loaded))

    def leave(self) -> None:
        """Leave a scope: what was read in it is not visible after it."""
        self.loaded = self.scopes.pop()

    def _positions(self, begin: str, stop: str, *, border: bool) -> None:
        f, n = self.f, self.lanes
        meter = LoopMeter(f, self.unrolled)
        steps = ", ".join(f"i32 {i}" for i in range(n))

        def position(x: str) -> None:
            self.x, self.loaded = x, {}
            left = f.smaller(f.let(f"sub i64 {stop}, {x}"), n)
            last = f.let(f"trunc i64 {f.let(f'sub i64 {left}, 1')} to i32")
            kind = f"<{n} x i32>"
            ends = f.splat("i32", last, n)
            self.steps_of_lanes = f.intrinsic(f"smin.v{n}i32", kind, kind, f"<{steps}>", ends)
            if self.program.uses_position:
                self.position = [f.let(f"trunc i64 {x} to i32") for x in (*self.outer, x)]
                first = f.splat("i32", self.position[-1], n)
                self.position[-1] = f.let(f"add {kind} {first}, {self.steps_of_lanes}")
            emitter = MaskedEmitter(f, self, meter)
            emitter.zero_slots()
            emitter.block(self.unrolled)
            self._store([emitter.operand(v, True) for v in self.result], left)

        meter.positions(begin, stop, position, n)

    def _store(self, values: Sequence[str], left: str) -> None:
        """Store the results of the first positions of a vector."""
        f, n, out = self.f, self.lanes, self.program.out
        item, count, kind = STORED[out.dtype], out.channels, f"<{n} x i32>"
        if (item, count) == ("i8", 4):  # as words
            item, count, (value, *others) = "i32", 1, values
            for channel, v in enumerate(others, 1):
                shifted = f.let(f"shl {kind} {v}, splat (i32 {8 * channel})")
                value = f.let(f"or {kind} {value}, {shifted}")
        else:
            if item == "i8":
                values = [f.let(f"trunc {kind} {v} to <{n} x i8>") for v in values]
            value = f.interleaved(item, values, n)
        there = self._at(out.dtype, self.out_row, self._scaled(out.channels))
        whole, part, after = (f.label(h) for h in ("whole", "part", "stored"))
        f.branch(f.let(f"icmp eq i64 {left}, {n}"), whole, part)
        f.start(whole)
        f.do(f"store <{n * count} x {item}> {value}, ptr {there}, align 1")
        f.jump(after)
        f.start(part)
        f.do(f"store <{n * count} x {item}> {value}, ptr {self.kept}, align 1")
        with f.loop("0", f.let(f"mul i64 {left}, {count}")) as i:
            one = f.let(f"load {item}, ptr {f.at(self.kept, i, item)}")
            f.do(f"store {item} {one}, ptr {f.at(there, i, item)}, align 1")
        f.jump(after)
        f.start(after)

    # reads ------------------------------------------------------------------------------------
    def read(self, value: Value, args: list[str]) -> str:
        """Emit a read at the current positions; return its operand, a vector if they differ."""
        v, n = value, self.lanes
        if v not in self.found.values or v.op == "position":
            return super().read(v, args)
        arg = self.program.args[v.attr if v.op in ("element", "array") else v.attr[0]]
        if v.op == "image":
            kinds = [offset_or_place(a) is a for a in v.args]
            key: tuple[Hashable, ...] = ("place", v.attr[0], *args, *kinds)
            if key not in self.loaded:
                self.loaded[key] = self._places(v, args)
            return self._channel(arg, v.attr[0], v.attr[1], self.loaded[key])
        if v.op == "array":
            return self._gathered(arg, self.inputs[v.attr], self._offsets(v, args))
        key = (v.op, v.attr)
        if key not in self.loaded:
            i, channel = (v.attr, 0) if v.op == "element" else v.attr
            row = self._at(arg.dtype, self.rows[i], self._scaled(arg.channels))
            steps = self._product(self.steps_of_lanes, str(arg.channels))
            offsets = self.f.let(f"add <{n} x i32> {steps}, splat (i32 {channel})")
            self.loaded[key] = self._gathered(arg, row, offsets)
        return self.loaded[key]

    def _product(self, vector: str, number: str) -> str:
        return self.f.let(f"mul <{self.lanes} x i32> {vector}, splat (i32 {number})")

    def _extent(self, i: int, axis: int) -> str:
        size = self.f.let(f"trunc i64 {self.words['shape', i, axis]} to i32")
        return self.f.splat("i32", size, self.lanes)

    def _inside(self, index: str, size: str) -> str:
        f, n = self.f, self.lanes
        kind = f"<{n} x i32>"
        top = f.let(f"add {kind} {size}, splat (i32 -1)")
        low = f.intrinsic(f"smin.v{n}i32", kind, kind, index, top)
        return f.intrinsic(f"smax.v{n}i32", kind, kind, low, "zeroinitializer")

    def _places(self, v: Value, args: list[str]) -> str:
        """Return the numbers of the pixels that are read."""
        f, n, i = self.f, self.lanes, v.attr[0]
        kind = f"<{n} x i32>"
        row = self.f.let(f"trunc i64 {self.outer[0]} to i32")
        here = self.position[-1], f.splat("i32", row, n)
        x, y = (
            at if offset_or_place(a) is not a
            else f.intrinsic(f"sadd.sat.v{n}i32", kind, kind, position, at)
            for a, position, at in zip(v.args, here, args, strict=True)
        )  # fmt: skip
        width = self._extent(i, 1)
        row = f.let(f"mul {kind} {self._inside(y, self._extent(i, 0))}, {width}")
        return f.let(f"add {kind} {row}, {self._inside(x, width)}")

    def _offsets(self, v: Value, args: list[str]) -> str:
        """Return the numbers of the elements of an array that are read."""
        f, kind, found = self.f, f"<{self.lanes} x i32>", ""
        for axis, index in enumerate(args):
            size = self._extent(v.attr, axis)
            index = self._inside(index, size)
            if axis:
                index = f.let(f"add {kind} {f.let(f'mul {kind} {found}, {size}')}, {index}")
            found = index
        return found

    def _channel(self, arg: Arg, i: int, channel: int, pixels: str) -> str:
        """Read a channel of pixels; those of four bytes are words."""
        f, n = self.f, self.lanes
        if arg.dtype != "u8" or arg.channels != 4:
            places = self._product(pixels, str(arg.channels))
            places = f.let(f"add <{n} x i32> {places}, splat (i32 {channel})")
            return self._gathered(arg, self.inputs[i], places)
        key = ("word", i, pixels)
        if key not in self.loaded:
            self.loaded[key] = self._gather("i32", self.inputs[i], pixels)
        return self._part(self.loaded[key], channel)

    def quad(self, v: Value, x: str, y: str) -> str:
        """Return a channel of one of four adjacent pixels, which are loaded together."""
        i, channel = v.attr
        key = ("quad", i, x, y)
        if key not in self.loaded:
            words = self._quad(self.quads[v], i, x, y)
            self.loaded |= {(*key, n): word for n, word in enumerate(words)} | {key: ""}
        return self._part(self.loaded[*key, self.quads[v].corner], channel)

    def _quad(self, quad: SampleCorner, i: int, x: str, y: str) -> list[str]:
        """Load the pixel at each place, the ones right of it and below, as words.

        At the edges the pixels loaded are those inside, and the nearest of them are chosen.
        """
        f, n = self.f, self.lanes
        kind, flags, pair = f"<{n} x i32>", f"<{n} x i1>", f"<{n} x i64>"
        sizes = [f.let(f"trunc i64 {self.words['shape', i, axis]} to i32") for axis in (1, 0)]
        ends = [f.splat("i32", f.let(f"sub i32 {size}, 1"), n) for size in sizes]
        left, top = (self._inside(at, end) for at, end in zip((x, y), ends, strict=True))
        row = f.let(f"mul {kind} {top}, {f.splat('i32', sizes[0], n)}")
        first = f.let(f"add {kind} {row}, {left}")
        size = self.program.args[i].channels
        image, wide_row = self.inputs[i], f.let(f"zext i32 {sizes[0]} to i64")
        # Of three bytes, two pixels have six, and eight are loaded: none beyond the image.
        spare = 8 - 2 * size
        below = f.let(f"sub i64 {f.let(f'mul i64 {wide_row}, {size}')}, {spare}")
        rows = image, f.at(image, below)
        ahead = self._ahead(quad, i, sizes[0])
        pairs = ["poison", "poison"]
        for lane in range(n):
            one = f.let(f"extractelement {kind} {first}, i64 {lane}")
            at = f.let(f"mul i64 {f.let(f'zext i32 {one} to i64')}, {size}")
            if ahead and not lane:
                ahead = f.at(image, f.let(f"sub i64 {f.let(f'mul i64 {ahead}, {size}')}, {at}"))
            if ahead and not lane % 4:
                name = f.module.intrinsic("prefetch.p0", "void", "ptr", "i32", "i32", "i32")
                f.do(f"call void {name}(ptr {f.at(ahead, at)}, i32 0, i32 3, i32 1)")
            for k, pointer in enumerate(rows):
                two = f.let(f"load i64, ptr {f.at(pointer, at)}, align 1")
                pairs[k] = f.let(f"insertelement {pair} {pairs[k]}, i64 {two}, i64 {lane}")
        corners = []
        for k, p in enumerate(pairs):
            for side in (0, 1):
                bits = 8 * (k * spare + side * size)
                one = f.let(f"lshr {pair} {p}, splat (i64 {bits})") if bits else p
                corners.append(f.let(f"trunc {pair} {one} to {kind}"))
        beside = [
            f.let(f"icmp ne {kind} {at}, {to}") for at, to in zip((x, y), (left, top), strict=True)
        ]
        edge, after, before = f.label("edge"), f.label("inner"), f.here
        either = f.let(f"or {flags} {beside[0]}, {beside[1]}")
        f.branch(any_lane(f, n, either), edge, after)
        f.start(edge)
        nearest = self._nearest(corners, (x, left), (y, top))
        f.jump(after)
        f.start(after)
        return [
            f.let(f"phi {kind} [ {inner}, %{before} ], [ {outer}, %{edge} ]")
            for inner, outer in zip(corners, nearest, strict=True)
        ]

    def _nearest(
        self, corners: Sequence[str], across: tuple[str, str], down: tuple[str, str]
    ) -> list[str]:
        """Return the corners where some pixels are beyond the image: those nearest inside."""
        f, kind, flags = self.f, f"<{self.lanes} x i32>", f"<{self.lanes} x i1>"

        def chosen(test: str, place: tuple[str, str], yes: str, no: str) -> str:
            flag = f.let(f"icmp {test} {kind} {place[0]}, {place[1]}")
            return f.let(f"select {flags} {flag}, {kind} {yes}, {kind} {no}")

        a, b, c, d = corners
        a, b, c, d = (
            chosen("sgt", down, c, a), chosen("sgt", down, d, b),
            chosen("slt", down, a, c), chosen("slt", down, b, d),
        )  # fmt: skip
        return [
            chosen("sgt", across, b, a), chosen("slt", across, a, b),
            chosen("sgt", across, d, c), chosen("slt", across, c, d),
        ]  # fmt: skip

    def _ahead(self, quad: SampleCorner, i: int, width: str) -> str:
        """Return the number of the pixel that is read some rows further down, or "".

        A row that is turned reads a few pixels of each of many rows, which CPUs do not foresee.
        """
        if i in self.foreseen:
            return ""
        needed = list(arguments_first((quad.x, quad.y)))
        if len(needed) > MOST_AHEAD or any(
            v.op in FUNCTIONS or v.op in READS - _PLACES or v.op == "get" for v in needed
        ):
            return ""
        self.foreseen.add(i)
        f, writer = self.f, InstructionWriter(self.f, of_bytes=True)
        down = f.let(f"trunc i64 {f.let(f'add i64 {self.outer[0]}, {ROWS_AHEAD}')} to i32")
        across = f.let(f"trunc i64 {self.x} to i32")
        for v in needed:
            if v.op == "position":
                writer.names[v] = (down, across)[v.attr]
            elif v.op != "const":
                writer.names[v] = super().read(v, []) if v.op in _PLACES else writer.operation(v)
        x, y = (f.let(f"sext i32 {writer.operand(v, False)} to i64") for v in (quad.x, quad.y))
        row = f.let(f"mul i64 {y}, {f.let(f'zext i32 {width} to i64')}")
        return f.let(f"add i64 {row}, {x}")

    def _part(self, words: str, channel: int) -> str:
        """Return a channel of pixels of four bytes."""
        f, kind = self.f, f"<{self.lanes} x i32>"
        words = f.let(f"lshr {kind} {words}, splat (i32 {8 * channel})") if channel else words
        return words if channel == 3 else f.let(f"and {kind} {words}, splat (i32 255)")

    def _gathered(self, arg: Arg, pointer: str, places: str) -> str:
        found = self._gather(STORED[arg.dtype], pointer, places)
        n = self.lanes
        return self.f.let(f"zext <{n} x i8> {found} to <{n} x i32>") if arg.dtype == "u8" else found

    def _gather(self, item: str, pointer: str, places: str) -> str:
        """Load an element for each lane."""
        f, n = self.f, self.lanes
        wide = f.let(f"zext <{n} x i32> {places} to <{n} x i64>")
        at = f.let(f"getelementptr {item}, ptr {pointer}, <{n} x i64> {wide}")
        kind, short = f"<{n} x {item}>", {"float": "f32", "double": "f64"}.get(item, item)
        name = f.module.intrinsic(
            f"masked.gather.v{n}{short}.v{n}p0", kind, f"<{n} x ptr>", "i32", f"<{n} x i1>", kind
        )
        given = f"<{n} x ptr> {at}, i32 1, <{n} x i1> splat (i1 true), {kind} poison"
        return f.let(f"call {kind} {name}({given})")
