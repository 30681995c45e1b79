"""What differs between the positions of a vector, and the samples among its reads."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from operator import is_
from typing import NamedTuple

from dala.gpu.compute.engines.cpu.llvm.emitter import offset_or_place
from dala.gpu.compute.lang.ir import *


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


class SampleCorner(NamedTuple):
    """A read of one of four adjacent pixels: the place of the first, and which of them it is."""

    x: Value
    y: Value
    corner: int


def find_quads(every: Sequence[Statement], program: Program) -> dict[Value, SampleCorner]:
    """Return the reads of pixels of three or four bytes that are samples between four pixels."""
    found: dict[Value, SampleCorner] = {}
    corners: dict[tuple[int, Value, Value], set[int]] = {}
    for v in every:
        if not isinstance(v, Value) or v.op != "image":
            continue
        arg = program.args[v.attr[0]]
        places = [offset_or_place(a) for a in v.args]
        if arg.dtype == "u8" and arg.channels in (3, 4) and not any(map(is_, places, v.args)):
            (x, right), (y, below) = map(_step, places)
            found[v] = SampleCorner(x, y, right + 2 * below)
            corners.setdefault((v.attr[0], x, y), set()).add(right + 2 * below)
    whole = {key for key, seen in corners.items() if len(seen) == 4}
    return {v: q for v, q in found.items() if (v.attr[0], q.x, q.y) in whole}


def _step(place: Value) -> tuple[Value, int]:
    """Return a place as another one and a step of 0 or 1."""
    if place.op == "add" and place.args[1].op == "const" and place.args[1].attr in (0, 1):
        return place.args[0], place.args[1].attr
    return place, 0
