"""Copy blocks and programs, and replace some of their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from dala.gpu.compute.lang.ir import (
    Attr,
    Block,
    For,
    If,
    Program,
    SetSlot,
    Slot,
    Statement,
    Type,
    Value,
)

#: Returns the value to use instead of one (old, and with its operands replaced), or None to keep
#: it. What it computes for that is appended to a list.
Change: TypeAlias = "Callable[[Value, Value, list[Statement]], Value | None]"


def _kept(old: Value, new: Value, body: list[Statement]) -> None:
    """Keep every value."""


class Copier:
    """Copies blocks; ``change`` may replace values.

    Args:
        change: see :data:`Change`.
        fresh: True for values and slots of their own, so that a block can be copied several times
            into one program.
    """

    def __init__(self, change: Change = _kept, *, fresh: bool = False) -> None:
        self._change = change
        self._fresh = fresh
        self.made: dict[Value, Value] = {}
        self._slots: dict[Slot, Slot] = {}
        #: The copy of the block that is being copied.
        self.body: list[Statement] = []

    def of(self, v: Value) -> Value:
        """Return the copy of a value."""
        return self.made.get(v, v)

    def stored(self, s: SetSlot) -> Value:
        """Return the copy of a value that is stored in a slot."""
        return self.of(s.value)

    def value(self, s: Value) -> Value:
        """Append a copy of a value, and return it."""
        args = tuple(map(self.of, s.args))
        new = s
        if self._fresh or args != s.args:
            new = Value(s.op, s.type, args, self._slot(s.attr) if s.op == "get" else s.attr)
        found = self._change(s, new, self.body)
        if found is None:
            self.body.append(new)
        return new if found is None else found

    def _slot(self, s: Slot) -> Slot:
        return self._slots.setdefault(s, Slot(s.name, s.type)) if self._fresh else s

    def block(self, block: Block) -> Block:
        """Return a copy of a block."""
        outer, self.body = self.body, []
        self.copy(block)
        made, self.body = Block(self.body), outer
        return made

    def copy(self, block: Block) -> None:
        """Append copies of the statements of a block."""
        for s in block.body:
            match s:
                case Value():
                    self.made[s] = self.value(s)
                case SetSlot():
                    self.store(s)
                case If():
                    self.branch(s)
                case For():
                    self.loop(s)
                case _:
                    self.body.append(s)

    def store(self, s: SetSlot) -> None:
        """Append a copy of an assignment."""
        self.body.append(SetSlot(self._slot(s.slot), self.stored(s)))

    def branch(self, s: If) -> None:
        """Append a copy of a branch."""
        condition = self.of(s.condition)
        self.body.append(If(condition, self.block(s.then), self.block(s.otherwise)))

    def loop(self, s: For) -> None:
        """Append a copy of a loop."""
        start, stop = self.of(s.start), self.of(s.stop)
        inner = self.block(s.body)
        self.body.append(For(self._slot(s.index), start, stop, s.step, inner))

    def program(self, program: Program) -> Program:
        """Return a copy of a program."""
        body = self.block(program.body)
        return program.with_body(body, tuple(map(self.of, program.result)))


def rewrite(program: Program, change: Change) -> Program:
    """Return a program whose values are replaced."""
    return Copier(change).program(program)


def emit(
    body: list[Statement], op: str, kind: Type, *args: Value | float, attr: Attr = None
) -> Value:
    """Append an operation and return it; numbers are constants of its type."""
    made = tuple(a if isinstance(a, Value) else Value("const", kind, (), a) for a in args)
    value = Value(op, kind, made, attr)
    body.append(value)
    return value
