"""Reduce programs that treat all channels alike to programs for one channel.

A row is then a run of elements, and pixels need not be unpacked: the neighbor at dx is
dx * channels elements away. Alpha, if kept, is copied afterwards. Where values are only read,
compared by ``min`` and ``max``, and stored, bytes need not be widened either.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, cast

from dala.gpu.compute.engines.cpu.rules.values import scaled_byte
from dala.gpu.compute.lang.ir import *
from dala.gpu.compute.lang.rewrite import Copier, emit

#: The type of a byte that is not widened; only per-channel programs have it.
BYTE: Final = cast(Type, "u8")


def flatten(
    program: Program, block: Block, result: tuple[Value, ...], kept: bool
) -> tuple[Program, Block, tuple[Value, ...]] | None:
    """Return the program for one channel, or None if it does not treat all channels alike.

    With ``kept``, the fourth channel is left out.
    """
    channels = program.out.channels
    if any(a.channels != channels for a in program.args) or not program.args:
        return None
    if any(isinstance(s, Value) and s.op == "position" and s.attr == 1 for s in statements(block)):
        return None
    slices = []
    for channel in range(channels - 1 if kept and channels == 4 else channels):
        part = _slice(block, result[channel], channel)
        if part is None:
            return None
        slices.append(part)
    first = format_program(slices[0][0], (slices[0][1],))
    if any(format_program(b, (r,)) != first for b, r in slices[1:]):
        return None
    args = tuple(replace(a, channels=1) for a in program.args)
    flat = replace(program, args=args, out=replace(program.out, channels=1))
    return flat, slices[0][0], (slices[0][1],)


def _slice(block: Block, result: Value, channel: int) -> tuple[Block, Value] | None:
    """Return the part of a block that one channel needs; None if it reads another channel."""
    part = _needed(block, result)
    reads = {v for v in values(part) if v.op in ("pixel", "image")}
    if any(v.attr[1] != channel for v in reads):
        return None

    def change(old: Value, new: Value, body: list[Statement]) -> Value | None:
        if old not in reads:
            return None
        return emit(body, new.op, new.type, *new.args, attr=(new.attr[0], 0))

    copier = Copier(change)
    return copier.block(part), copier.of(result)


def _needed(block: Block, result: Value) -> Block:
    """Return the part of a block that a value needs, with all conditions and loops."""
    every = list(statements(block))
    todo = [result, *(v for s in every if isinstance(s, If | For) for v in operands(s))]
    needed: set[Value] = set()
    slots: set[Slot] = set()
    while todo:
        needed.update(list(arguments_first(todo, needed)))
        slots = {v.attr for v in needed if v.op == "get"}
        todo = [s.value for s in every if isinstance(s, SetSlot) and s.slot in slots]
        todo = [v for v in todo if v not in needed]

    def copy(block: Block) -> Block:
        body: list[Statement] = []
        for s in block.body:
            if isinstance(s, If):
                body.append(If(s.condition, copy(s.then), copy(s.otherwise)))
            elif isinstance(s, For):
                inner = copy(s.body)
                if inner.body or s.index in slots:
                    body.append(For(s.index, s.start, s.stop, s.step, inner))
            elif s in needed or (isinstance(s, SetSlot) and s.slot in slots):
                body.append(s)
        return Block(body)

    return copy(block)


# bytes ------------------------------------------------------------------------------------------
class _Bytes:
    """Finds values that are bytes as floats, in a per-channel program of u8."""

    def __init__(self, block: Block) -> None:
        self.every = list(statements(block))
        stored = {s.slot for s in self.every if isinstance(s, SetSlot)}
        self.slots = {s for s in stored if s.type == "f32"}
        self._known: dict[Value, bool] = {}
        while self._narrow():
            self._known.clear()

    def _narrow(self) -> bool:
        for s in self.every:
            if isinstance(s, SetSlot) and s.slot in self.slots and not self.scaled(s.value):
                self.slots.remove(s.slot)
                return True
        return False

    def scaled(self, v: Value) -> bool:
        """Return whether a value is a byte as a float."""
        if v.op == "get":
            return v.attr in self.slots
        if v.op not in ("min", "max"):
            return self.read(v) is not None
        if v not in self._known:
            self._known[v] = v.type == "f32" and all(self.scaled(a) for a in v.args)
        return self._known[v]

    def read(self, v: Value) -> Value | None:
        """Return the read whose float this is."""
        if v.op != "cast" or v.type != "f32" or v.args[0].op not in ("pixel", "image"):
            return None
        return v.args[0]


def to_bytes(block: Block, stored: Value) -> tuple[Block, Value] | None:
    """Return the program on unscaled bytes, if it only selects among them; else None."""
    found = _Bytes(block)
    leaf = scaled_byte(stored, found.scaled)
    if leaf is None:
        return None
    if any(isinstance(s, If) or _is_loose(s, found.slots) for s in found.every):
        return None
    slots = {s: Slot(s.name, BYTE) for s in found.slots}
    new: dict[Value, Value] = {}

    def of(v: Value) -> Value:
        return new.get(v, v)

    def copy(block: Block) -> Block:
        body: list[Statement] = []
        for s in block.body:
            if isinstance(s, SetSlot):
                body.append(SetSlot(slots.get(s.slot, s.slot), of(s.value)))
            elif isinstance(s, For):
                body.append(For(s.index, s.start, s.stop, s.step, copy(s.body)))
            elif isinstance(s, Value) and (read := found.read(s)) is not None:
                new[s] = of(read)
            elif isinstance(s, Value) and (s.op in ("pixel", "image") or found.scaled(s)):
                attr = slots[s.attr] if s.op == "get" else s.attr
                new[s] = Value(s.op, BYTE, tuple(map(of, s.args)), attr)
                body.append(new[s])
            else:
                body.append(s)
        return Block(body)

    # The conversion of the selected byte to the stored value is dropped.
    return _needed(copy(block), of(leaf)), of(leaf)


def _is_loose(s: Statement, slots: set[Slot]) -> bool:
    """Return whether a statement stores a float that is no byte."""
    return isinstance(s, SetSlot) and s.slot not in slots and s.slot.type == "f32"
