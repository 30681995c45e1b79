"""Keep the numbers of bytes in steps: a byte c of a picture is c, not c / 255, as far as possible.

Pixels are numbers from 0 to 1, so each byte that is read is multiplied by 1/255, and each number
that is stored by 255. Most of these products cancel. A value is written as ``inner * (1/255) **
power``: sums, differences, products, quotients, comparisons and selections are computed from the
inner values, and the power is made good only where it is needed. Differences of bytes and their
squares are then whole numbers, exact on every engine.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, TypeAlias

from dala.gpu.compute.lang.exact.luma import BITS
from dala.gpu.compute.lang.ir import (
    Block,
    For,
    If,
    Program,
    SetSlot,
    Slot,
    Value,
    make_program,
    statements,
    values,
)

#: The power of a value; None for one that can have any: a constant, or the same for all positions.
_Power: TypeAlias = "int | None"

_UNIT: Final = 1.0 / 255.0
_MOST: Final = 4
_SAME: Final = ("neg", "abs")
_ALIKE: Final = ("add", "sub", "min", "max", "lt", "le", "gt", "ge", "eq", "ne")


def in_steps(program: Program) -> Program:
    """Return a program that keeps numbers in steps, where it reads and stores bytes."""
    writer = _Writer(program)
    if not any(power for power in writer.powers.values()):
        return program
    body = writer.block(program.body)
    result = tuple(writer.plain(v) for v in program.result)
    made = make_program(
        program.name, program.args, program.out, program.params, body, result, program.rank
    )
    return replace(made, derived=program.derived)


def _is_unit(v: Value) -> bool:
    return v.op == "const" and v.attr == _UNIT


class _Writer:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.uniform = _uniform(program.body)
        self.slots: dict[Slot, _Power] = {}
        self.powers: dict[Value, _Power] = {}
        while self._find_powers():
            pass
        self.new: dict[Value, Value] = {}
        #: Values whose power was made good, in the blocks that are open.
        self.made: list[dict[tuple[Value, int], Value]] = []
        self.target = Block()

    # powers -------------------------------------------------------------------------------------
    def _find_powers(self) -> bool:
        """Find the power of every value; return whether that of a slot changed."""
        changed = False
        for s in statements(self.program.body):
            if isinstance(s, Value):
                self.powers[s] = self._power(s)
            elif isinstance(s, SetSlot) and s.slot.type == "f32":
                power = self.of(s.value)
                if power is not None and self.slots.setdefault(s.slot, power) != power:
                    changed = changed or self.slots[s.slot] != 0
                    self.slots[s.slot] = 0
        gets = (s for s in values(self.program.body) if s.op == "get" and s.type == "f32")
        return changed or any(self.powers[s] != self.slots.get(s.attr) for s in gets)

    def of(self, v: Value) -> _Power:
        """Return the power of an operand."""
        if v.op == "const" or v in self.uniform:
            return None
        return self.powers.get(v, 0)

    def _power(self, v: Value) -> _Power:
        if v in self.uniform:
            return None
        if v.op == "get":
            return self.slots.get(v.attr) if v.type == "f32" else 0
        if v.type not in ("f32", "bool") or any(a.type not in ("f32", "bool") for a in v.args):
            return 0
        powers = [self.of(a) for a in v.args]
        if v.op == "mul":
            if _is_unit(v.args[1]) and self._is_byte(v.args[0]):
                return 1
            total = (powers[0] or 0) + (powers[1] or 0)
            return 0 if self._cancels(v) or abs(total) > _MOST else total
        if v.op == "div":
            total = (powers[0] or 0) - (powers[1] or 0)
            return total if abs(total) <= _MOST else 0
        if v.op == "sqrt":
            return powers[0] // 2 if powers[0] and powers[0] % 2 == 0 else 0
        if v.op in _SAME:
            return powers[0]
        if v.op in _ALIKE and v.type == "f32":
            return self._common(powers)
        if v.op == "select":
            return self._common(powers[1:])
        return 0

    def _is_byte(self, v: Value) -> bool:
        """Return whether a value is a byte of a picture, or a sum of such (``luma.py``)."""
        if v.op == "mul" and v.args[1].op == "const" and v.args[1].attr == 2.0**-BITS:
            return v.args[0].op == "cast" and v.args[0].args[0].op == "add"
        if v.op != "cast" or v.args[0].op not in ("pixel", "image"):
            return False
        argument: int = v.args[0].attr[0]
        return self.program.args[argument].dtype == "u8"

    def _cancels(self, v: Value) -> bool:
        """Return whether a product is that of a number in steps and 255."""
        factor = v.args[1]
        return factor.op == "const" and factor.attr == 255.0 and (self.of(v.args[0]) or 0) > 0

    def _common(self, powers: list[_Power]) -> _Power:
        known = {p for p in powers if p is not None}
        return None if not known else known.pop() if len(known) == 1 else 0

    # values -------------------------------------------------------------------------------------
    def block(self, block: Block) -> Block:
        outer, self.target = self.target, Block()
        self.made.append({})
        for s in block.body:
            if isinstance(s, Value):
                self.new[s] = self._value(s)
            elif isinstance(s, SetSlot):
                power = self.slots.get(s.slot) or 0
                self.target.body.append(SetSlot(s.slot, self.raised(s.value, power)))
            elif isinstance(s, If):
                condition = self.plain(s.condition)
                then, otherwise = self.block(s.then), self.block(s.otherwise)
                self.target.body.append(If(condition, then, otherwise))
            elif isinstance(s, For):
                start, stop = self.plain(s.start), self.plain(s.stop)
                self.target.body.append(For(s.index, start, stop, s.step, self.block(s.body)))
            else:
                self.target.body.append(s)
        self.made.pop()
        made, self.target = self.target, outer
        return made

    def emit(self, op: str, like: Value, *args: Value) -> Value:
        value = Value(op, like.type, args, like.attr)
        self.target.body.append(value)
        return value

    def plain(self, v: Value) -> Value:
        """Return a value as it is."""
        return self.raised(v, 0)

    def raised(self, v: Value, power: int) -> Value:
        """Return the inner value for another power."""
        inner = self.new.get(v, v)
        if v.type != "f32":
            return inner
        factor = _UNIT ** ((self.of(v) or 0) - power)
        if factor == 1.0:
            return inner
        if v.op == "const":
            return Value("const", "f32", (), v.attr * factor)
        for made in self.made:
            if (v, power) in made:
                return made[v, power]
        found = self._times(inner, factor, v)
        self.made[-1][v, power] = found
        return found

    def _times(self, inner: Value, factor: float, like: Value) -> Value:
        """Return a product; the factor joins one that is the same for all positions."""
        if inner.op == "mul":
            a, b = inner.args
            if a.op == "const" or (b.op != "const" and a in self.uniform):
                a, b = b, a
            if b.op == "const":
                product = Value("const", "f32", (), b.attr * factor)
                return a if product.attr == 1.0 else self._product(a, product)
            if b in self.uniform and a not in self.uniform:
                scale = self._product(b, Value("const", "f32", (), factor))
                self.uniform.add(scale)
                return self._product(a, scale)
        return self._product(inner, Value("const", "f32", (), factor))

    def _product(self, a: Value, b: Value) -> Value:
        value = Value("mul", "f32", (a, b))
        self.target.body.append(value)
        return value

    def _value(self, v: Value) -> Value:
        if v in self.uniform:
            args = tuple(self.new.get(a, a) for a in v.args)
            made = v if args == v.args else Value(v.op, v.type, args, v.attr)
            self.target.body.append(made)
            self.uniform.add(made)
            return made
        power = self.of(v)
        if v.op == "mul" and power == 1 and _is_unit(v.args[1]) and self._is_byte(v.args[0]):
            return self.plain(v.args[0])
        if v.op == "mul" and self._cancels(v):
            return self.raised(v.args[0], 1)
        if v.op in ("mul", "div", "sqrt", *_SAME) and self._keeps(v, power):
            return self.emit(v.op, v, *(self.new.get(a, a) for a in v.args))
        if v.op in _ALIKE and all(a.type == "f32" for a in v.args):
            common = self._common([self.of(a) for a in v.args]) or 0
            return self.emit(v.op, v, *(self.raised(a, common) for a in v.args))
        if v.op == "select" and v.type == "f32":
            flag, *others = v.args
            return self.emit(
                "select", v, self.plain(flag), *(self.raised(a, power or 0) for a in others)
            )
        if v.op == "get":
            return self.emit("get", v)
        args = tuple(self.plain(a) for a in v.args)
        return self.emit(v.op, v, *args)

    def _keeps(self, v: Value, power: _Power) -> bool:
        """Return whether a product, quotient or root of inner values has the value's power."""
        if v.type != "f32":
            return False
        powers = [self.of(a) or 0 for a in v.args]
        if v.op == "mul":
            return power == sum(powers)
        if v.op == "div":
            return power == powers[0] - powers[1]
        if v.op == "sqrt":
            return 2 * (power or 0) == powers[0]
        return (power or 0) == powers[0]


def _uniform(block: Block) -> set[Value]:
    """Return the values that are the same at all positions, outside of loops and branches."""
    found: set[Value] = set()
    for s in block.body:
        if isinstance(s, Value):
            same = s.op in ("param", "dim") or (
                s.op not in ("pixel", "image", "position", "element", "array", "get")
                and all(a.op == "const" or a in found for a in s.args)
            )
            if same:
                found.add(s)
    return found
