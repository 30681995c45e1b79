"""Unroll counted loops and fold constant ints, from IR to IR.

A kernel that visits its neighbors with ``for dx in range(-3, 4)`` becomes straight-line code with
constant offsets, so that the loop over positions vectorizes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from dala.gpu.compute.lang.ir import (
    INTS,
    Block,
    Break,
    Continue,
    For,
    If,
    SetSlot,
    Slot,
    Value,
    statements,
)
from dala.gpu.compute.lang.rewrite import Copier

#: The number that a value is folded to; None if it is not a constant.
_Number: TypeAlias = "int | float | None"

#: Loops are unrolled while the program stays below this many statements.
LIMIT: Final = 2500

#: The operations of ints that are folded.
FOLD: Final[dict[str, Callable[..., int]]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul,
    "neg": operator.neg, "abs": abs,
    "min": min, "max": max,
    "idiv": lambda a, b: a // b if b else 0, "mod": lambda a, b: a % b if b else 0,
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt,
    "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip
_LOGIC: Final[dict[str, Callable[..., bool]]] = {
    "and": lambda a, b: a and b, "or": lambda a, b: a or b, "xor": operator.ne,
    "not": operator.not_,
}  # fmt: skip


def unroll(
    body: Block,
    result: tuple[Value, ...],
    params: Mapping[int, int] | None = None,
    limit: int | None = None,
) -> tuple[Block, tuple[Value, ...]]:
    """Return a program with its counted loops unrolled, as far as a limit allows.

    Args:
        body: The program's block.
        result: Its results.
        params: Parameters, by index, whose values may be assumed.
        limit: The most statements; :data:`LIMIT` by default.
    """
    unroller = _Unroller(params or {}, LIMIT if limit is None else limit)
    return unroller.block(body), tuple(map(unroller.of, result))


def wrap(number: int, ir_type: str) -> int:
    """Return an int wrapped to the range of its type.

    >>> wrap(2**31, "s32")
    -2147483648
    """
    width = 64 if ir_type == "s64" else 32
    number &= (1 << width) - 1
    return number - (1 << width) if ir_type != "u32" and number >> (width - 1) else number


def loop_params(body: Block) -> tuple[int, ...]:
    """Return the parameters that must be known to unroll loops, and to know where images are read.

    Loop bounds and the offsets of neighbors depend on them.
    """
    found: set[int] = set()
    seen: set[Value] = set()
    for s in statements(body):
        pending: list[Value] = []
        if isinstance(s, For):
            pending = [s.start, s.stop]
        elif isinstance(s, Value) and s.op == "image":
            pending = list(s.args)
        while pending:
            v = pending.pop()
            if v in seen:
                continue
            seen.add(v)
            if v.op == "param" and v.type in INTS:
                found.add(v.attr)
            pending.extend(v.args)
    return tuple(sorted(found))


def has_loops(body: Block) -> bool:
    """Return whether a block contains a loop."""
    return any(isinstance(s, For) for s in statements(body))


class _Unroller(Copier):
    def __init__(self, params: Mapping[int, int], limit: int) -> None:
        super().__init__()
        self.params = params
        self.limit = limit
        #: Values of the indexes of loops being unrolled.
        self.known: dict[Slot, int] = {}
        self.count = 0

    def value(self, s: Value) -> Value:
        new = self.folded(s)
        if new.op != "const":
            self.body.append(new)
            self.count += 1
        return new

    def branch(self, s: If) -> None:
        condition = self.of(s.condition)
        if condition.op == "const":
            self.copy(s.then if condition.attr else s.otherwise)
        else:
            super().branch(s)

    def loop(self, s: For) -> None:
        start, stop = self.of(s.start), self.of(s.stop)
        turns = range(0)
        counted = start.op == "const" and stop.op == "const" and not jumps(s.body)
        if counted:
            turns = range(start.attr, stop.attr, s.step)
        if not counted or self.count + len(turns) * self.size(s.body) > self.limit:
            super().loop(s)
            return
        free = s.index not in _assigned(s.body)
        for turn in turns:
            self.body.append(SetSlot(s.index, Value("const", "s32", (), turn)))
            if free:
                self.known[s.index] = turn
            self.copy(s.body)
        self.known.pop(s.index, None)

    def size(self, block: Block, seen: dict[Value, _Number] | None = None) -> int:
        """Return the number of statements of a block once its counted loops are unrolled."""
        seen = {} if seen is None else seen
        total = 0
        for s in block.body:
            if isinstance(s, For):
                start, stop = self.number(s.start, seen), self.number(s.stop, seen)
                count = 1
                if start is not None and stop is not None:
                    count = len(range(int(start), int(stop), s.step))
                total += count * self.size(s.body, seen) + 1
            elif isinstance(s, If):
                total += self.size(s.then, seen) + self.size(s.otherwise, seen) + 1
            else:
                total += 1
        return total

    def number(self, v: Value, seen: dict[Value, _Number]) -> _Number:
        """Return the number that a value will be folded to, or None if it is not a constant."""
        v = self.of(v)
        if v.op == "const":
            constant: _Number = v.attr
            return constant
        if v.op == "param":
            return self.params.get(v.attr)
        if v not in seen:
            numbers = [self.number(a, seen) for a in v.args]
            known = [n for n in numbers if n is not None]
            whole = numbers and len(known) == len(numbers)
            seen[v] = _fold(v, known, v.args[0].type) if whole else None
        return seen[v]

    def folded(self, v: Value) -> Value:
        args = tuple(map(self.of, v.args))
        if v.op == "get" and v.attr in self.known:
            return Value("const", v.type, (), self.known[v.attr])
        if v.op == "param" and v.attr in self.params:
            return Value("const", v.type, (), self.params[v.attr])
        if args and all(a.op == "const" for a in args):
            number = _fold(v, [a.attr for a in args], args[0].type)
            if number is not None:
                return Value("const", v.type, (), number)
        if v.op == "select" and args[0].op == "const":
            return args[1] if args[0].attr else args[2]
        return Value(v.op, v.type, args, v.attr)


def _fold(v: Value, numbers: list[float], source: str) -> _Number:
    if source == "bool":
        return _LOGIC[v.op](*numbers) if v.op in _LOGIC else None
    if source not in INTS:
        return None
    ints = [wrap(int(n), source) for n in numbers]
    if v.op == "cast":
        if v.type == "bool":
            return ints[0] != 0
        # Small enough to be exact in any float type.
        small = abs(ints[0]) < 1 << 24
        return wrap(ints[0], v.type) if v.type in INTS else float(ints[0]) if small else None
    if v.op not in FOLD:
        return None
    number = FOLD[v.op](*ints)
    return number if v.type == "bool" else wrap(number, v.type)


def jumps(block: Block) -> bool:
    """Return whether a loop body contains ``break`` or ``continue`` of that loop."""
    return any(
        isinstance(s, Break | Continue)
        or (isinstance(s, If) and (jumps(s.then) or jumps(s.otherwise)))
        for s in block.body
    )


def _assigned(block: Block) -> set[Slot]:
    found = {s.slot for s in statements(block) if isinstance(s, SetSlot)}
    return found | {s.index for s in statements(block) if isinstance(s, For)}
