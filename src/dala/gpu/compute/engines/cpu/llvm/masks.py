"""Emit control flow that differs between the positions of a vector.

A loop runs as long as any lane does. Lanes that have left it are masked: what is assigned there
keeps its value. ``break`` and ``continue`` take lanes out of the mask, and ``if`` divides it. All
lanes compute everything, since no operation traps and every read is clamped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dala.gpu.compute.engines.cpu.llvm.emitter import (
    READS,
    SHORT_BRANCH,
    Emitter,
    offset_or_place,
)
from dala.gpu.compute.engines.cpu.llvm.math import FUNCTIONS
from dala.gpu.compute.engines.cpu.llvm.metering import LoopMeter, before
from dala.gpu.compute.engines.cpu.vector.text import PLAIN_LOOP, FunctionText
from dala.gpu.compute.engines.unroll import jumps
from dala.gpu.compute.lang.ir import *

if TYPE_CHECKING:
    from dala.gpu.compute.engines.cpu.llvm.masked import MaskedLoops


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
        self._reads, self._quads = reader, reader.quads
        #: Of each loop, the variables with the lanes that run this iteration, and those that run
        #: further ones; None for a loop that all lanes leave together. The innermost is last.
        self._running: list[tuple[str, str] | None] = []

    def value(self, v: Value) -> str:
        """Emit one operation and return its name."""
        quad = self._quads.get(v)
        if quad is not None:
            x, y = (self.operand(a, True) for a in (quad.x, quad.y))
            return self._reads.quad(v, x, y)
        if v.op in READS and v in self.varying:
            return self.reader.read(v, [self.operand(offset_or_place(a), True) for a in v.args])
        return super().value(v)

    # masks ------------------------------------------------------------------------------------
    def _both(self, a: str, b: str) -> str:
        return self.f.let(f"and {self.kind('bool')} {a}, {b}") if a else b

    def _none_else(self, mask: str, some: str, none: str) -> None:
        """Branch by whether any lane is in a mask."""
        self.f.branch(any_lane(self.f, self.lanes, mask), some, none)

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

    def _scoped(self, block: Block) -> None:
        outer = self._mask
        super()._scoped(block)
        self._mask = outer

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


def any_lane(f: FunctionText, lanes: int, mask: str) -> str:
    """Return whether a mask has any lane."""
    flags = f"<{lanes} x i1>"
    return f.intrinsic(f"vector.reduce.or.v{lanes}i1", "i1", flags, mask)


def _is_short(block: Block) -> bool:
    """Return whether a block costs less than a branch around it."""
    every = list(statements(block))
    heavy = any(isinstance(s, For) or (isinstance(s, Value) and s.op in FUNCTIONS) for s in every)
    return not heavy and len(every) <= SHORT_BRANCH
