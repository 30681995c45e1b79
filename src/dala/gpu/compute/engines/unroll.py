"""Unroll counted loops and fold constant ints, from IR to IR.

A kernel that visits its neighbors with ``for dx in range(-3, 4)`` becomes straight-line code with
constant offsets, so that the loop over positions vectorizes.
"""

from __future__ import annotations

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
    Statement,
    Value,
    statements,
)

#: The number that a value is folded to; None if it is not a constant.
_Number: TypeAlias = "int | float | None"

#: Loops are unrolled while the program stays below this many statements.
LIMIT: Final = 2500

_FOLD: Final[dict[str, Callable[..., int]]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "neg": lambda a: -a, "abs": abs,
    "min": lambda a, b: min(a, b), "max": lambda a, b: max(a, b),
    "idiv": lambda a, b: a // b if b else 0, "mod": lambda a, b: a % b if b else 0,
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip
_LOGIC: Final[dict[str, Callable[..., bool]]] = {
    "and": lambda a, b: a and b, "or": lambda a, b: a or b, "xor": lambda a, b: a != b,
    "not": lambda a: not a,
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
    new = unroller.block(body)
    return new, tuple(unroller.value(v) for v in result)


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


class _Unroller:
    def __init__(self, params: Mapping[int, int], limit: int) -> None:
        self.params = params
        self.limit = limit
        self.values: dict[Value, Value] = {}
        #: Values of the indexes of loops being unrolled.
        self.known: dict[Slot, int] = {}
        self.count = 0

    def value(self, v: Value) -> Value:
        return v if v.op == "const" else self.values[v]

    def block(self, block: Block) -> Block:
        out: list[Statement] = []
        self.into(out, block)
        return Block(out)

    def into(self, out: list[Statement], block: Block) -> None:
        for s in block.body:
            if isinstance(s, Value):
                new = self.folded(s)
                self.values[s] = new
                if new.op != "const":
                    out.append(new)
                    self.count += 1
            elif isinstance(s, SetSlot):
                out.append(SetSlot(s.slot, self.value(s.value)))
            elif isinstance(s, If):
                self.branch(out, s)
            elif isinstance(s, For):
                self.loop(out, s)
            else:
                out.append(s)

    def branch(self, out: list[Statement], s: If) -> None:
        condition = self.value(s.condition)
        if condition.op == "const":
            self.into(out, s.then if condition.attr else s.otherwise)
        else:
            out.append(If(condition, self.block(s.then), self.block(s.otherwise)))

    def loop(self, out: list[Statement], s: For) -> None:
        start, stop = self.value(s.start), self.value(s.stop)
        turns = range(0)
        counted = start.op == "const" and stop.op == "const" and not _jumps(s.body)
        if counted:
            turns = range(start.attr, stop.attr, s.step)
        if not counted or self.count + len(turns) * self.size(s.body) > self.limit:
            out.append(For(s.index, start, stop, s.step, self.block(s.body)))
            return
        free = s.index not in _assigned(s.body)
        for turn in turns:
            number = Value("const", "s32", (), turn)
            out.append(SetSlot(s.index, number))
            if free:
                self.known[s.index] = turn
            self.into(out, s.body)
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
        v = self.values.get(v, v)
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
        args = tuple(self.value(a) for a in v.args)
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
    if v.op not in _FOLD:
        return None
    number = _FOLD[v.op](*ints)
    return number if v.type == "bool" else wrap(number, v.type)


def _jumps(block: Block) -> bool:
    """Return whether a loop body contains ``break`` or ``continue`` of that loop."""
    for s in block.body:
        if isinstance(s, (Break, Continue)):
            return True
        if isinstance(s, If) and (_jumps(s.then) or _jumps(s.otherwise)):
            return True
    return False


def _assigned(block: Block) -> set[Slot]:
    found = {s.slot for s in statements(block) if isinstance(s, SetSlot)}
    return found | {s.index for s in statements(block) if isinstance(s, For)}
