"""Emit the statements of a block as LLVM instructions: slots, branches and loops.

One emitter serves single positions and vectors of them. Where all positions of a vector agree (as
one position always does), control flow becomes branches; where they differ, both sides of an ``if``
are emitted and assignments are selected by a mask. How a position is addressed, and how arguments
are read there, is up to the surrounding loop, which passes a :class:`ValueReader`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import Final

from dala.gpu.compute.engines.cpu.llvm.math import FUNCTIONS
from dala.gpu.compute.engines.cpu.llvm.metering import LoopMeter, before
from dala.gpu.compute.engines.cpu.llvm.operations import InstructionWriter
from dala.gpu.compute.engines.cpu.vector.text import PLAIN_LOOP, TYPES, FunctionText
from dala.gpu.compute.lang.ir import *

#: Operations that read something other than their operands.
READS: Final = frozenset({"param", "position", "dim", "element", "pixel", "image", "array"})


#: The most branches in a loop that LLVM may vectorize and know to be the same in all iterations.
MAX_BRANCHES: Final = 3
#: Branches of at most so many statements, without functions such as ``sin``, are no branches to it.
SHORT_BRANCH: Final = 10


class ValueReader(ABC):
    """Provides the operand of every operation in :data:`READS`."""

    @abstractmethod
    def read(self, value: Value, args: list[str]) -> str:
        """Return the operand of a read whose own operands are ``args``."""

    def color_sum(self, value: Value) -> str:
        """Emit a sum of one pixel's bytes, if there is a shorter way; else return ""."""
        return ""

    def enter(self) -> None:  # noqa: B027 - most readers have no scopes
        """Enter a scope: names defined in it are not visible after it."""

    def leave(self) -> None:  # noqa: B027
        """Leave the innermost scope."""


def offset_or_place(v: Value) -> Value:
    """Return the place that an offset leads to if it is known not to overflow, else the offset."""
    return v.args[0] if v.op == "sub" and v.attr == "place" else v


class Emitter(InstructionWriter):
    """Emits blocks for ``lanes`` positions at a time.

    Args:
        f: The function to write to.
        reader: Reads arguments, parameters and positions.
        slots: A stack variable for each slot, from :func:`allocate_slots`; LLVM promotes them to
            registers.
        meter: Meters the loops of the block.
        lanes: Elements of a vector.
        varying: Values that become vectors.
        varying_slots: Slots that hold vectors.
        of_bytes: Whether the program stores bytes; see :class:`InstructionWriter`.
    """

    def __init__(
        self,
        f: FunctionText,
        reader: ValueReader,
        slots: dict[Slot, str],
        meter: LoopMeter,
        lanes: int = 1,
        varying: Collection[Value] = frozenset(),
        varying_slots: Collection[Slot] = frozenset(),
        of_bytes: bool = False,
    ) -> None:
        super().__init__(f, lanes, varying, of_bytes)
        self.meter = meter
        self.reader = reader
        self.slots = slots
        self.varying_slots = varying_slots
        #: The lanes for which the current block runs; "" for all.
        self._mask = ""
        #: Labels of ``continue`` and ``break``, innermost loop last.
        self._loops: list[tuple[str, str]] = []

    def zero_slots(self) -> None:
        """Set every slot to zero."""
        for slot, pointer in self.slots.items():
            kind = self.kind(slot.type, slot in self.varying_slots)
            self.f.do(f"store {kind} zeroinitializer, ptr {pointer}")

    def hoist(self, block: Block) -> None:
        """Emit the uniform values of a block ahead of the loop over vectors."""
        for s in block.body:
            if not isinstance(s, Value) or s.op == "get" or s in self.varying:
                continue
            if all(a.op == "const" or a in self.names for a in s.args):
                self.names[s] = self.value(s)
        used = {a for s in self.varying for a in s.args}
        for v, name in self.names.items():
            if v in used:
                self.broadcast(name, v.type)

    def value(self, v: Value) -> str:
        """Emit one operation and return its name."""
        if v.op in READS:
            return self.reader.read(v, [self.operand(offset_or_place(a), False) for a in v.args])
        if v.op == "get":
            kind = self.kind(v.type, v in self.varying)
            return self.f.let(f"load {kind}, ptr {self.slots[v.attr]}")
        if v.op == "add" and v.type == "s32" and v in self.varying:
            return self.reader.color_sum(v) or self.operation(v)
        return self.operation(v)

    def block(self, block: Block) -> None:
        """Emit all statements of a block, up to a ``break`` or ``continue``."""
        for s in block.body:
            if isinstance(s, Value):
                if s not in self.names:
                    self.names[s] = self.value(s)
            elif isinstance(s, SetSlot):
                self._assign(s)
            elif isinstance(s, If):
                if s.condition in self.varying:
                    self._masked(s)
                else:
                    self._branch(s)
            elif isinstance(s, For):
                self._loop(s)
            else:
                self._jump(s)
                return

    def _jump(self, s: Break | Continue) -> None:
        follow, after = self._loops[-1]
        self.f.jump(after if isinstance(s, Break) else follow)

    def _scoped(self, block: Block) -> None:
        mark = self.mark()
        self.reader.enter()
        self.block(block)
        self.reader.leave()
        self.rewind(mark)

    def _assign(self, s: SetSlot) -> None:
        varying = s.slot in self.varying_slots
        kind, pointer = self.kind(s.slot.type, varying), self.slots[s.slot]
        value = self.operand(s.value, varying)
        if self._mask and varying:
            old = self.f.let(f"load {kind}, ptr {pointer}")
            flags = self.kind("bool")
            value = self.f.let(f"select {flags} {self._mask}, {kind} {value}, {kind} {old}")
        self.f.do(f"store {kind} {value}, ptr {pointer}")

    def _branch(self, s: If) -> None:
        f = self.f
        yes, no, after = f.label("then"), f.label("else"), f.label("endif")
        f.branch(self.operand(s.condition, False), yes, no if s.otherwise.body else after)
        f.start(yes)
        self._scoped(s.then)
        f.jump(after)
        if s.otherwise.body:
            f.start(no)
            self._scoped(s.otherwise)
            f.jump(after)
        f.start(after)

    def _masked(self, s: If) -> None:
        f, flags, outer = self.f, self.kind("bool"), self._mask
        condition = self.operand(s.condition, True)
        for side, taken in ((s.then, True), (s.otherwise, False)):
            if not side.body:
                continue
            mask = condition
            if not taken:
                mask = f.let(f"xor {flags} {condition}, splat (i1 true)")
            self._mask = f.let(f"and {flags} {outer}, {mask}") if outer else mask
            self.block(side)
            self._mask = outer

    def _set_index(self, s: For, index: str) -> None:
        self.f.do(f"store i32 {index}, ptr {self.slots[s.index]}")

    def _loop(self, s: For) -> None:
        # The counter has 64 bits, so that it cannot overflow at the end of the range.
        f, meter = self.f, self.meter
        first = f.let(f"sext i32 {self.operand(s.start, False)} to i64")
        last = f.let(f"sext i32 {self.operand(s.stop, False)} to i64")
        if s not in meter.strips:
            self._for(s, first, last)
        elif meter.leave:
            after = f.label("endloop")
            meter.guard(
                s, first, last, after,
                lambda tail: self._for(s, first, last, after, some=True, tail=tail),
            )  # fmt: skip
        else:
            self._strips(s, first, last)

    def _strips(self, s: For, first: str, last: str) -> None:
        """Emit a metered loop as a loop over strips."""
        f, length, after = self.f, self.meter.strips[s] * s.step, self.f.label("endloop")
        origin, strip, again = f.here, f.label("strip"), f.label("again")
        f.jump(strip)
        f.start(strip)
        at = f.let(f"phi i64 [ {first}, %{origin} ], [ %far.{strip}, %{again}.on ]", "at")
        f.do(f"%far.{strip} = add nsw i64 {at}, {length}")
        more = f.let(f"icmp {before(s)} i64 %far.{strip}, {last}")
        stop = f.let(f"select i1 {more}, i64 %far.{strip}, i64 {last}")
        self._for(s, at, stop, after)
        f.do(f"br i1 {more}, label %{again}, label %{after}, !prof !6")
        f.start(again)
        self.meter.check(f"{again}.on")
        f.jump(strip)
        f.start(after)

    def _for(
        self,
        s: For,
        first: str,
        last: str,
        leave: str = "",
        *,
        some: bool = False,
        tail: str = "",
    ) -> None:
        """Emit a plain loop.

        Args:
            s: The loop.
            first: The first index.
            last: Where it stops.
            leave: Where ``break`` continues, if not after the loop.
            some: Whether it has an iteration for certain.
            tail: Metadata of the loop.
        """
        f = self.f
        head, body, follow, after = (f.label(h) for h in ("for", "body", "next", "endfor"))
        origin, step = f.here, f"%step.{head}"
        f.jump(head)
        f.start(head)
        counter = f.let(f"phi i64 [ {first}, %{origin} ], [ {step}, %{follow} ]", "count")
        if not some:
            f.branch(f.let(f"icmp {before(s)} i64 {counter}, {last}"), body, after)
            f.start(body)
        self.meter.iteration(s)
        index = f.let(f"trunc i64 {counter} to i32")
        self._set_index(s, index)
        self._loops.append((follow, leave or after))
        self._scoped(s.body)
        self._loops.pop()
        f.jump(follow)
        f.start(follow)
        f.do(f"{step} = add nsw i64 {counter}, {s.step}")
        # Code that already uses vectors gains nothing from LLVM's unrolling.
        # Its vectorizer takes exponential time for conditions that do not change in the loop.
        plain = self.lanes > 1 or count_branches(s.body) > MAX_BRANCHES
        tail = PLAIN_LOOP if plain else tail
        if some:
            again = f.let(f"icmp {before(s)} i64 {step}, {last}")
            f.do(f"br i1 {again}, label %{head}, label %{after}{tail}")
        else:
            f.jump(head, tail)
        f.start(after)


def count_branches(block: Block) -> int:
    """Return the number of branches in a block that LLVM does not turn into selections."""
    found = 0
    for s in statements(block):
        if isinstance(s, If):
            inside = [*statements(s.then), *statements(s.otherwise)]
            calls = any(isinstance(v, Value) and v.op in FUNCTIONS for v in inside)
            found += calls or len(inside) > SHORT_BRANCH
    return found


def allocate_slots(
    f: FunctionText, block: Block, lanes: int = 1, varying: Collection[Slot] = frozenset()
) -> dict[Slot, str]:
    """Reserve a stack variable for every slot that a block uses."""
    found: dict[Slot, str] = {}
    for s in statements(block):
        slot = (
            s.slot if isinstance(s, SetSlot)
            else s.index if isinstance(s, For)
            else s.attr if isinstance(s, Value) and s.op == "get"
            else None
        )  # fmt: skip
        if slot is not None and slot not in found:
            kind = TYPES[slot.type]
            kind = f"<{lanes} x {kind}>" if slot in varying else kind
            found[slot] = f.alloca(kind, f"slot{len(found)}")
    return found
