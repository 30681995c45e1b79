"""Keep the numbers of bytes in steps: a byte c of a picture is c, not c / 255, as far as possible.

Pixels are numbers from 0 to 1, so each byte that is read is multiplied by 1/255, and each number
that is stored by 255. Most of these products cancel. A value is written as ``inner * (1/255) **
power``: sums, differences, products, quotients, comparisons and selections are computed from the
inner values, and the power is made good only where it is needed. Differences of bytes and their
squares are then whole numbers, exact on every engine.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from dala.gpu.compute.lang.exact.luma import BITS
from dala.gpu.compute.lang.ir import Block, Program, SetSlot, Slot, Value, statements, values
from dala.gpu.compute.lang.rewrite import Copier, emit

#: The power of a value; None for one that can have any: a constant, or the same for all positions.
_Power: TypeAlias = "int | None"

_UNIT: Final = 1.0 / 255.0
_MOST: Final = 4
_SAME: Final = ("neg", "abs")
_ALIKE: Final = ("add", "sub", "min", "max", "lt", "le", "gt", "ge", "eq", "ne")


def in_steps(program: Program) -> Program:
    """Return a program that keeps numbers in steps, where it reads and stores bytes."""
    writer = _Writer(program)
    return writer.program(program) if any(writer.powers.values()) else program


def _is_unit(v: Value) -> bool:
    return v.op == "const" and v.attr == _UNIT


class _Writer(Copier):
    def __init__(self, program: Program) -> None:
        super().__init__()
        self.args = program.args
        self.uniform = _uniform(program.body)
        self.slots: dict[Slot, _Power] = {}
        self.powers: dict[Value, _Power] = {}
        while self._find_powers(program.body):
            pass
        #: Values whose power was made good, in the blocks that are open.
        self.scopes: list[dict[tuple[Value, int], Value]] = []

    # powers -------------------------------------------------------------------------------------
    def _find_powers(self, body: Block) -> bool:
        """Find the power of every value; return whether that of a slot changed."""
        changed = False
        for s in statements(body):
            if isinstance(s, Value):
                self.powers[s] = self._power(s)
            elif isinstance(s, SetSlot) and s.slot.type == "f32":
                power = self.power_of(s.value)
                if power is not None and self.slots.setdefault(s.slot, power) != power:
                    changed = changed or self.slots[s.slot] != 0
                    self.slots[s.slot] = 0
        gets = (s for s in values(body) if s.op == "get" and s.type == "f32")
        return changed or any(self.powers[s] != self.slots.get(s.attr) for s in gets)

    def power_of(self, v: Value) -> _Power:
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
        powers = [self.power_of(a) for a in v.args]
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
            return 0 if self._is_scaled_limit(v) else self._common(powers)
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
        return self.args[argument].dtype == "u8"

    def _cancels(self, v: Value) -> bool:
        """Return whether a product is that of a number in steps and 255."""
        factor = v.args[1]
        return factor.op == "const" and factor.attr == 255.0 and (self.power_of(v.args[0]) or 0) > 0

    def _is_scaled_limit(self, v: Value) -> bool:
        """Return whether a product with a uniform number is limited: that number takes the power.

        ``smoothstep`` is then a function of 0 to 1.
        """
        if v.op not in ("min", "max") or v.args[1].op != "const" or v.args[0].op != "mul":
            return False
        return any(a.op != "const" and a in self.uniform for a in v.args[0].args)

    def _common(self, powers: list[_Power]) -> _Power:
        known = {p for p in powers if p is not None}
        return None if not known else known.pop() if len(known) == 1 else 0

    # values -------------------------------------------------------------------------------------
    def block(self, block: Block) -> Block:
        self.scopes.append({})
        made = super().block(block)
        self.scopes.pop()
        return made

    def stored(self, s: SetSlot) -> Value:
        return self.raised(s.value, self.slots.get(s.slot) or 0)

    def of(self, v: Value) -> Value:
        """Return a value as it is."""
        return self.raised(v, 0)

    def emit(self, like: Value, *args: Value) -> Value:
        return emit(self.body, like.op, like.type, *args, attr=like.attr)

    def raised(self, v: Value, power: int) -> Value:
        """Return the inner value for another power."""
        inner = self.made.get(v, v)
        if v.type != "f32":
            return inner
        factor = _UNIT ** ((self.power_of(v) or 0) - power)
        if factor == 1.0:
            return inner
        if v.op == "const":
            return Value("const", "f32", (), v.attr * factor)
        for made in self.scopes:
            if (v, power) in made:
                return made[v, power]
        found = self.scopes[-1][v, power] = self._times(inner, factor)
        return found

    def _times(self, inner: Value, factor: float) -> Value:
        """Return a product; the factor joins one that is the same for all positions."""
        if inner.op == "mul":
            a, b = inner.args
            if a.op == "const" or (b.op != "const" and a in self.uniform):
                a, b = b, a
            if b.op == "const":
                product = b.attr * factor
                return a if product == 1.0 else emit(self.body, "mul", "f32", a, product)
            if b in self.uniform and a not in self.uniform:
                scale = emit(self.body, "mul", "f32", b, factor)
                self.uniform.add(scale)
                return emit(self.body, "mul", "f32", a, scale)
        return emit(self.body, "mul", "f32", inner, factor)

    def value(self, v: Value) -> Value:
        if v in self.uniform:
            args = tuple(self.made.get(a, a) for a in v.args)
            made = v if args == v.args else Value(v.op, v.type, args, v.attr)
            self.body.append(made)
            self.uniform.add(made)
            return made
        power = self.power_of(v)
        if v.op == "mul" and power == 1 and _is_unit(v.args[1]) and self._is_byte(v.args[0]):
            return self.of(v.args[0])
        if v.op == "mul" and self._cancels(v):
            return self.raised(v.args[0], 1)
        if v.op in ("mul", "div", "sqrt", *_SAME) and self._keeps(v, power):
            return self.emit(v, *(self.made.get(a, a) for a in v.args))
        if v.op in _ALIKE and all(a.type == "f32" for a in v.args):
            common = self._common([self.power_of(a) for a in v.args]) or 0
            common = (power or 0) if v.type == "f32" else common
            return self.emit(v, *(self.raised(a, common) for a in v.args))
        if v.op == "select" and v.type == "f32":
            flag, *others = v.args
            return self.emit(v, self.of(flag), *(self.raised(a, power or 0) for a in others))
        return self.emit(v, *map(self.of, v.args))

    def _keeps(self, v: Value, power: _Power) -> bool:
        """Return whether a product, quotient or root of inner values has the value's power."""
        if v.type != "f32":
            return False
        powers = [self.power_of(a) or 0 for a in v.args]
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
        if isinstance(s, Value) and (
            s.op in ("param", "dim")
            or (
                s.op not in ("pixel", "image", "position", "element", "array", "get")
                and all(a.op == "const" or a in found for a in s.args)
            )
        ):
            found.add(s)
    return found
