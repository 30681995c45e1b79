"""The exponential of exact programs, written as operations that every engine computes alike.

``exp(x)`` is 2 ** t with t = x / log(2). The whole part of t is added to the exponent of a
polynomial of the rest, which has twelve bits. The result has 16 digits, so that its products with
bytes are exact, and a relative error below 2^-11.8: a weighted mean of bytes moves by less than
1/25 of a step. It stays between 2^-62 and 2^80, and is 2^-62 for NaN.
"""

from __future__ import annotations

import math
from typing import Final

from dala.gpu.compute.lang.exact.limits import limited
from dala.gpu.compute.lang.exact.products import POWER_DIGITS, POWER_RANGE, RangeFinder
from dala.gpu.compute.lang.exact.uniform import is_uniform
from dala.gpu.compute.lang.ir import Program, Statement, Type, Value, values
from dala.gpu.compute.lang.rewrite import emit, rewrite

_SCALE: Final = 1.0 / math.log(2.0)
#: Added to t, which is then positive.
_BIAS: Final = 62
#: Added as well: sums of this size have twelve bits behind the point, and the whole part above.
_REST_BITS: Final = 12
_LEAST: Final = 2.0 ** (23 - _REST_BITS)
_WHOLE: Final = -(1 << _REST_BITS)
_MOST: Final = _LEAST + _BIAS + POWER_RANGE[1]
#: 2 ** f on [0, 1]: 2^-13.5, and 1 at 0.
_POLYNOMIAL: Final = (1.0, 0.6951116431103704, 0.2276600101771639, 2525.0 / 2.0**15)
_READS: Final = frozenset({"pixel", "image", "position", "element", "array"})
#: Clears the digits that a power does not have.
_MASK: Final = -(1 << (24 - POWER_DIGITS))


def with_exponentials(program: Program) -> Program:
    """Return a program with every exponential of an f32 written out."""
    if not any(v.op == "exp" and v.type == "f32" for v in values(program.body)):
        return program
    writer = _Writer(program)

    def change(old: Value, new: Value, body: list[Statement]) -> Value | None:
        if old.op != "exp" or old.type != "f32":
            return None
        writer.body = body
        return writer.power(old.args[0], new.args[0])

    return rewrite(program, change)


class _Writer:
    def __init__(self, program: Program) -> None:
        self.body: list[Statement] = []
        self.ranges = RangeFinder(program)
        self.uniform: dict[Value, bool] = {}
        #: Values that may differ between pixels.
        self.varying: set[Value] = set()
        for v in values(program.body):
            is_uniform(v, self.uniform)
            held = v.op == "get" and v.type == "f32"
            if held or v.op in _READS or any(a in self.varying for a in v.args):
                self.varying.add(v)

    def emit(self, op: str, kind: Type, *args: Value | float, attr: str | None = None) -> Value:
        return emit(self.body, op, kind, *args, attr=attr)

    def power(self, old: Value, x: Value) -> Value:
        """Append exp(x); the range of x is that of the old value."""
        t, most = self.biased(old, x)
        t = limited(t, "gt", _LEAST, self.body)
        if most > _MOST:
            t = limited(t, "lt", _MOST, self.body)
        whole = self.emit("and", "s32", self.emit("bits", "s32", t), _WHOLE)
        rest = self.emit("sub", "f32", t, self.emit("bits", "f32", whole))
        *others, c, last = (c * 2.0**-_BIAS for c in _POLYNOMIAL)
        # Both factors have twelve digits.
        total = self.emit("add", "f32", self.emit("mul", "f32", rest, last, attr="exact"), c)
        for c in reversed(others):
            total = self.emit("add", "f32", self.emit("mul", "f32", rest, total), c)
        exponent = self.emit("shl", "s32", whole, 23 - _REST_BITS)
        bits = self.emit("add", "s32", self.emit("bits", "s32", total), exponent)
        return self.emit("bits", "f32", self.emit("and", "s32", bits, _MASK), attr="power")

    def biased(self, old: Value, x: Value) -> tuple[Value, float]:
        """Append x / log(2) plus the bias; return it, and a number that it does not exceed.

        What is the same for all pixels is limited, if the rest is never positive.
        """
        if x.op == "add":
            parts = [(o, self.scaled(o, v)) for o, v in zip(old.args, x.args, strict=True)]
            (one, a), (other, b) = sorted(parts, key=lambda part: part[0] in self.varying)
            if a is not None and b is not None:
                first, most = self.emit("add", "f32", a, _LEAST + _BIAS), math.inf
                if self.ranges.of(other).high <= 0.0 and one not in self.varying:
                    first, most = limited(first, "lt", _MOST, self.body), _MOST
                return self.emit("add", "f32", first, b), most
        scaled = self.scaled(old, x)
        if scaled is None:
            scaled = self.emit("mul", "f32", x, _SCALE)
        most = _LEAST + _BIAS if self.ranges.of(old).high <= 0.0 else math.inf
        return self.emit("add", "f32", scaled, _LEAST + _BIAS), most

    def scaled(self, old: Value, x: Value) -> Value | None:
        """Append x / log(2), if it is a product with a number that is the same for all pixels."""
        if x.op != "mul":
            return None
        for i in (1, 0):
            if is_uniform(old.args[i], self.uniform):
                a, b = x.args[1 - i], x.args[i]
                if b.op == "const":
                    return self.emit("mul", "f32", a, b.attr * _SCALE)
                return self.emit("mul", "f32", a, self.emit("mul", "f32", b, _SCALE))
        return None
