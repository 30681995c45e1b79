"""Loops whose length differs between positions, for a vector of positions at a time.

A loop runs as long as any lane does. Lanes that have left it are masked: what is assigned there
keeps its value. ``break`` and ``continue`` take lanes out of the mask, and ``if`` divides it. All
lanes compute everything, since no operation traps and every read is clamped. The last vector of a
row repeats its last position, and stores it once.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import Final

from dala.gpu.compute.engines.cpu.llvm.emitter import (
    READS,
    SHORT_BRANCH,
    Emitter,
    allocate_slots,
    offset_or_place,
)
from dala.gpu.compute.engines.cpu.llvm.loops import KernelLoops
from dala.gpu.compute.engines.cpu.llvm.math import FUNCTIONS
from dala.gpu.compute.engines.cpu.llvm.metering import LoopMeter, before
from dala.gpu.compute.engines.cpu.vector.text import PLAIN_LOOP, STORED, FunctionText
from dala.gpu.compute.engines.unroll import jumps
from dala.gpu.compute.lang.ir import *

#: The most statements of a program of this form: longer ones compile faster position by position.
MAX_STATEMENTS: Final = 4000


class Divergence:
    """What differs between the positions of a vector.

    Args:
        block: The statements of a program.
        differs: Values that do so by themselves: reads at the position, and the position.
    """

    def __init__(self, block: Block, differs: Collection[Value]) -> None:
        self.values: set[Value] = set(differs)
        self.slots: set[Slot] = set()
        #: Loops that positions leave at different times.
        self.loops: set[For] = set()
        self._outside = _read_outside(block)
        found = -1
        while found < (found := len(self.values) + len(self.slots) + len(self.loops)):
            self._mark(block, False, False, None)

    def _mark(self, block: Block, masked: bool, apart: bool, loop: For | None) -> None:
        """Mark what differs, in one pass.

        Args:
            block: Statements.
            masked: Whether they run for some lanes only.
            apart: Whether that is so within the innermost loop.
            loop: The innermost loop.
        """
        for s in block.body:
            if isinstance(s, Value):
                held = s.op == "get" and s.attr in self.slots
                if held or any(a in self.values for a in s.args):
                    self.values.add(s)
            elif isinstance(s, SetSlot):
                if masked or s.value in self.values:
                    self.slots.add(s.slot)
            elif isinstance(s, If):
                split = s.condition in self.values
                self._mark(s.then, masked or split, apart or split, loop)
                self._mark(s.otherwise, masked or split, apart or split, loop)
            elif isinstance(s, For):
                bounds = s.start in self.values or s.stop in self.values
                if bounds:
                    self.loops.add(s)
                own = s in self.loops
                if bounds or ((own or masked) and s.index in self._outside):
                    self.slots.add(s.index)
                self._mark(s.body, masked or own, False, s)
            elif apart and loop is not None:
                self.loops.add(loop)


def _read_outside(block: Block) -> set[Slot]:
    """Return the indexes of loops that are read outside of their loop, or assigned."""
    every = list(statements(block))
    loops = [s for s in every if isinstance(s, For)]
    inside: dict[Slot, set[Value]] = {}
    for s in loops:
        inside.setdefault(s.index, set()).update(values(s.body))
    found = {s.slot for s in every if isinstance(s, SetSlot) and s.slot in inside}
    for v in every:
        if isinstance(v, Value) and v.op == "get" and v not in inside.get(v.attr, (v,)):
            found.add(v.attr)
    return found


class MaskedLoops(KernelLoops):
    """Emits the function ``body(job, out, start, end)`` with vectors of positions."""

    lanes = 1
    #: Offsets of the lanes from the first one, in positions.
    steps_of_lanes = ""

    def divergence(self) -> Divergence | None:
        """Return what differs between positions; None if no loop does, or it is too long."""
        every = list(statements(self.unrolled))
        differs = [s for s in every if isinstance(s, Value) and self._differs(s)]
        found = Divergence(self.unrolled, differs)
        return found if found.loops and len(every) <= MAX_STATEMENTS else None

    def _differs(self, v: Value) -> bool:
        if v.op == "element":
            return self.steps[v.attr] != 0
        return v.op in ("pixel", "image") or (v.op == "position" and v.attr == self.axes - 1)

    def vectors(self, lanes: int, found: Divergence) -> str:
        """Return the finished function, for a number of positions at a time."""
        self.lanes, self.found, self.hides = lanes, found, False
        self.scopes: list[dict[tuple[Hashable, ...], str]] = []
        self.taps.clear()
        self.f.module.vectors = self.f.module.loops = True
        out = self.program.out
        self.kept = self.f.alloca(f"[{lanes * out.channels} x {STORED[out.dtype]}]", "kept", 64)
        return self.text()

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
        item = STORED[out.dtype]
        if out.dtype == "u8":
            values = [f.let(f"trunc <{n} x i32> {v} to <{n} x i8>") for v in values]
        value = f.interleaved(item, values, n)
        there = self._at(out.dtype, self.out_row, self._scaled(out.channels))
        whole, part, after = (f.label(h) for h in ("whole", "part", "stored"))
        f.branch(f.let(f"icmp eq i64 {left}, {n}"), whole, part)
        f.start(whole)
        f.do(f"store <{n * out.channels} x {item}> {value}, ptr {there}, align 1")
        f.jump(after)
        f.start(part)
        f.do(f"store <{n * out.channels} x {item}> {value}, ptr {self.kept}, align 1")
        with f.loop("0", f.let(f"mul i64 {left}, {out.channels}")) as i:
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
        word = self.loaded[key]
        kind = f"<{n} x i32>"
        word = f.let(f"lshr {kind} {word}, splat (i32 {8 * channel})") if channel else word
        return word if channel == 3 else f.let(f"and {kind} {word}, splat (i32 255)")

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


class MaskedEmitter(Emitter):
    """Emits blocks for vectors of positions that leave loops at different times."""

    quick = False

    def __init__(self, f: FunctionText, reader: MaskedLoops, meter: LoopMeter) -> None:
        found = reader.found
        super().__init__(
            f, reader, reader.slots, meter, reader.lanes, found.values, found.slots,
            reader.program.exact,
        )  # fmt: skip
        self._diverging = found.loops
        #: Of each loop, the variables with the lanes that run this iteration, and those that run
        #: further ones; None for a loop that all lanes leave together. The innermost is last.
        self._running: list[tuple[str, str] | None] = []

    def value(self, v: Value) -> str:
        """Emit one operation and return its name."""
        if v.op in READS and v in self.varying:
            return self.reader.read(v, [self.operand(offset_or_place(a), True) for a in v.args])
        return super().value(v)

    # masks ------------------------------------------------------------------------------------
    def _both(self, a: str, b: str) -> str:
        return self.f.let(f"and {self.kind('bool')} {a}, {b}") if a else b

    def _none_else(self, mask: str, some: str, none: str) -> None:
        """Branch by whether any lane is in a mask."""
        flags, n = self.kind("bool"), self.lanes
        name = self.f.module.intrinsic(f"vector.reduce.or.v{n}i1", "i1", flags)
        self.f.branch(self.f.let(f"call i1 {name}({flags} {mask})"), some, none)

    def _after(self, s: If, outer: str) -> None:
        """Leave a branch: lanes that jumped in it are out."""
        self._mask = outer
        held = self._running[-1] if self._running else None
        if held and (jumps(s.then) or jumps(s.otherwise)):
            self._mask = self._both(outer, self.f.let(f"load {self.kind('bool')}, ptr {held[0]}"))

    def _jump(self, s: Break | Continue) -> None:
        held = self._running[-1]
        if held is None:
            super()._jump(s)
            return
        f, flags = self.f, self.kind("bool")
        rest = f.let(f"xor {flags} {self._mask}, splat (i1 true)")
        for variable in held if isinstance(s, Break) else held[:1]:
            left = f.let(f"and {flags} {f.let(f'load {flags}, ptr {variable}')}, {rest}")
            f.do(f"store {flags} {left}, ptr {variable}")

    def _branch(self, s: If) -> None:
        outer = self._mask
        super()._branch(s)
        self._after(s, outer)

    def _masked(self, s: If) -> None:
        f, flags, outer = self.f, self.kind("bool"), self._mask
        yes = self.operand(s.condition, True)
        sides = [(s.then, yes)]
        if s.otherwise.body:
            sides.append((s.otherwise, f.let(f"xor {flags} {yes}, splat (i1 true)")))
        for side, taken in sides:
            mask = self._both(outer, taken)
            if _is_short(side):
                self._mask = mask
                self.block(side)
            elif side.body:
                some, after = f.label("some"), f.label("endsome")
                self._none_else(mask, some, after)
                f.start(some)
                self._mask = mask
                self._scoped(side)
                f.jump(after)
                f.start(after)
        self._after(s, outer)

    # loops ------------------------------------------------------------------------------------
    def _loop(self, s: For) -> None:
        if s in self._diverging:
            self._masked_loop(s)
            return
        self._running.append(None)
        super()._loop(s)
        self._running.pop()

    def _masked_loop(self, s: For) -> None:
        f, flags, outer = self.f, self.kind("bool"), self._mask
        head, body, after = f.label("while"), f.label("body"), f.label("endwhile")
        run, live = f.alloca(flags, f"run.{head}"), f.alloca(flags, f"live.{head}")
        varying = s.start in self.varying or s.stop in self.varying
        counts = self._counts(s) if varying else ""
        ends = [] if varying else [self.operand(v, False) for v in (s.start, s.stop)]
        wide = [f.let(f"sext i32 {v} to i64") for v in ends]
        f.do(f"store {flags} {outer or 'splat (i1 true)'}, ptr {live}")
        origin, turns = f.here, f"%turns.{head}"
        f.jump(head)
        f.start(head)
        turn = f.let(f"phi i64 [ 0, %{origin} ], [ {turns}, %next.{head} ]", "turn")
        active, index = f.let(f"load {flags}, ptr {live}"), ""
        if varying:
            now = f.splat("i32", f.let(f"trunc i64 {turn} to i32"), self.lanes)
            more = f.let(f"icmp ult {self.kind('u32')} {now}, {counts}")
            active = self._both(active, more)
            f.do(f"store {flags} {active}, ptr {live}")
            moved = f.let(f"mul {self.kind('s32')} {now}, splat (i32 {s.step})")
            index = f.let(f"add {self.kind('s32')} {moved}, {self.operand(s.start, True)}")
        else:
            far = f.let(f"add i64 {f.let(f'mul i64 {turn}, {s.step}')}, {wide[0]}")
            on = f.label("on")
            f.branch(f.let(f"icmp {before(s)} i64 {far}, {wide[1]}"), on, after)
            f.start(on)
            index = f.let(f"trunc i64 {far} to i32")
        self._none_else(active, body, after)
        f.start(body)
        if s in self.meter.strips:
            self._look(turn, self.meter.strips[s])
        f.do(f"store {flags} {active}, ptr {run}")
        self._mask = active
        self._set_index(s, index)
        self._running.append((run, live))
        self._scoped(s.body)
        self._running.pop()
        self._mask = outer
        f.jump(f"next.{head}")
        f.start(f"next.{head}")
        f.do(f"{turns} = add nuw nsw i64 {turn}, 1")
        f.jump(head, PLAIN_LOOP)
        f.start(after)

    def _counts(self, s: For) -> str:
        """Return how many iterations each lane makes, as u32."""
        f, kind = self.f, self.kind("s32")
        first, last = (self.operand(v, True) for v in (s.start, s.stop))
        some = f.let(f"icmp {before(s)} {kind} {first}, {last}")
        ends = (last, first) if s.step > 0 else (first, last)
        span = f.let(f"sub {kind} {ends[0]}, {ends[1]}")
        if abs(s.step) > 1:
            less = f.let(f"sub {kind} {span}, splat (i32 1)")
            part = f.let(f"udiv {kind} {less}, splat (i32 {abs(s.step)})")
            span = f.let(f"add {kind} {part}, splat (i32 1)")
        return f.let(f"select {self.kind('bool')} {some}, {kind} {span}, {kind} zeroinitializer")

    def _look(self, turn: str, strip: int) -> None:
        """Look at the stop cell after each strip of iterations."""
        f = self.f
        length = 1 << (strip.bit_length() - 1)
        look, on = f.label("look"), f.label("on")
        part = f.let(f"and i64 {turn}, {length - 1}")
        f.branch(f.let(f"icmp eq i64 {part}, {length - 1}"), look, on)
        f.start(look)
        self.meter.check(on)

    def _set_index(self, s: For, index: str) -> None:
        """Set the loop's variable, in the lanes that run."""
        if s.index not in self.varying_slots:
            super()._set_index(s, index)
            return
        f, pointer, kind = self.f, self.slots[s.index], self.kind("s32")
        if s not in self._diverging or not (s.start in self.varying or s.stop in self.varying):
            index = f.splat("i32", index, self.lanes)
        if self._mask:
            old = f.let(f"load {kind}, ptr {pointer}")
            index = f.let(f"select {self.kind('bool')} {self._mask}, {kind} {index}, {kind} {old}")
        f.do(f"store {kind} {index}, ptr {pointer}")


def _is_short(block: Block) -> bool:
    """Return whether a block costs less than a branch around it."""
    every = list(statements(block))
    heavy = any(isinstance(s, For) or (isinstance(s, Value) and s.op in FUNCTIONS) for s in every)
    return not heavy and len(every) <= SHORT_BRANCH
