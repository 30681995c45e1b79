"""Reduce programs that treat all channels alike to programs for one channel.

A row is then a run of elements, and pixels need not be unpacked: the neighbor at dx is
dx * channels elements away. Alpha, if kept, is copied afterwards. Where values are only read,
compared by ``min`` and ``max``, and stored, bytes need not be widened either.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, cast

from dala.gpu.compute.engines.cpu.llvm.bytes.values import scaled_byte
from dala.gpu.compute.lang.ir import (
    Block,
    For,
    If,
    Program,
    SetSlot,
    Slot,
    Statement,
    Type,
    Value,
    format_program,
    statements,
)

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
    slots: set[Slot] = set()
    needed: set[Value] = set()

    def need(v: Value) -> None:
        if v in needed or v.op == "const":
            return
        needed.add(v)
        if v.op == "get":
            slots.add(v.attr)
        for a in v.args:
            need(a)

    need(result)
    before = (-1, -1)
    while before != (len(needed), len(slots)):
        before = len(needed), len(slots)
        for s in statements(block):
            if isinstance(s, SetSlot) and s.slot in slots:
                need(s.value)
            elif isinstance(s, If):
                need(s.condition)
            elif isinstance(s, For):
                need(s.start)
                need(s.stop)
    renamed: dict[Value, Value] = {}

    def of(v: Value) -> Value:
        return renamed.get(v, v)

    def copy(block: Block) -> Block | None:
        body: list[Statement] = []
        for s in block.body:
            if isinstance(s, Value):
                if s not in needed:
                    continue
                attr = s.attr
                if s.op in ("pixel", "image"):
                    if attr[1] != channel:
                        return None
                    attr = (attr[0], 0)
                renamed[s] = Value(s.op, s.type, tuple(of(a) for a in s.args), attr)
                body.append(renamed[s])
            elif isinstance(s, SetSlot):
                if s.slot in slots:
                    body.append(SetSlot(s.slot, of(s.value)))
            elif isinstance(s, If):
                then, otherwise = copy(s.then), copy(s.otherwise)
                if then is None or otherwise is None:
                    return None
                body.append(If(of(s.condition), then, otherwise))
            elif isinstance(s, For):
                inner = copy(s.body)
                if inner is None:
                    return None
                if inner.body or s.index in slots:
                    body.append(For(s.index, of(s.start), of(s.stop), s.step, inner))
            else:
                return None
        return Block(body)

    copied = copy(block)
    return None if copied is None else (copied, of(result))


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
    slots = {s: Slot(s.name, BYTE) for s in found.slots}
    new: dict[Value, Value] = {}
    loose = False

    def of(v: Value) -> Value:
        return new.get(v, v)

    def copy(block: Block) -> Block:
        nonlocal loose
        body: list[Statement] = []
        for s in block.body:
            if isinstance(s, Value):
                read = found.read(s)
                if s.op in ("pixel", "image"):
                    new[s] = Value(s.op, BYTE, tuple(of(a) for a in s.args), s.attr)
                    body.append(new[s])
                elif read is not None:
                    new[s] = of(read)
                elif found.scaled(s):
                    attr = slots[s.attr] if s.op == "get" else s.attr
                    kind: Type = BYTE
                    new[s] = Value(s.op, kind, tuple(of(a) for a in s.args), attr)
                    body.append(new[s])
                else:
                    body.append(s)
            elif isinstance(s, SetSlot):
                if s.slot in slots:
                    body.append(SetSlot(slots[s.slot], of(s.value)))
                else:
                    loose = loose or s.slot.type == "f32"
                    body.append(s)
            elif isinstance(s, If):
                loose = True
            elif isinstance(s, For):
                body.append(For(s.index, s.start, s.stop, s.step, copy(s.body)))
        return Block(body)

    copied = copy(block)
    if loose:
        return None
    part = _slice_bytes(copied, of(leaf))
    return part, of(leaf)


def _slice_bytes(block: Block, result: Value) -> Block:
    """Drop the conversion of the selected byte to the stored value."""
    needed: set[Value] = set()
    todo = [result]
    for s in statements(block):
        if isinstance(s, SetSlot):
            todo.append(s.value)
        elif isinstance(s, For):
            todo += [s.start, s.stop]
    while todo:
        v = todo.pop()
        if v not in needed:
            needed.add(v)
            todo.extend(v.args)

    def copy(block: Block) -> Block:
        body: list[Statement] = []
        for s in block.body:
            if isinstance(s, For):
                body.append(For(s.index, s.start, s.stop, s.step, copy(s.body)))
            elif not isinstance(s, Value) or s in needed:
                body.append(s)
        return Block(body)

    return copy(block)
