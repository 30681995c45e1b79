"""Limits of numbers: a constant limit also stops NaN, and a byte is limited only where needed.

``max(x, 0.0)`` is 0 where x is NaN, unlike in programs of floats: it is one instruction, and what
follows is known to be a number. Stored numbers are limited to 0 and 255; ``smoothstep`` and its
products with bytes never leave that range.
"""

from __future__ import annotations

import math
from typing import Final

from dala.gpu.compute.lang.exact.products import RangeFinder
from dala.gpu.compute.lang.exact.sums import limited_number
from dala.gpu.compute.lang.ir import Program, Statement, Value
from dala.gpu.compute.lang.rewrite import emit, rewrite

#: Numbers between these ends are stored as 0 to 255, with some room for rounding.
_ENDS: Final = (-0.49, 255.49)


def limited(x: Value, rule: str, end: float, body: list[Statement]) -> Value:
    """Append x where it is greater ("gt") or less ("lt") than an end, else the end."""
    limit = Value("const", "f32", (), end)
    inside = Value(rule, "bool", (x, limit))
    made = Value("select", "f32", (inside, x, limit))
    body += (inside, made)
    return made


def with_limits(program: Program) -> Program:
    """Return a program whose ``min`` and ``max`` with constants are never NaN."""

    def change(old: Value, new: Value, body: list[Statement]) -> Value | None:
        if old.op not in ("min", "max") or old.type != "f32":
            return None
        x, end = new.args if new.args[1].op == "const" else new.args[::-1]
        if end.op != "const" or math.isnan(end.attr):
            return None
        return limited(x, "gt" if old.op == "max" else "lt", end.attr, body)

    return rewrite(program, change)


def without_idle_limits(program: Program) -> Program:
    """Return a program that does not limit stored numbers that are bytes anyway."""
    ranges = RangeFinder(program)

    def change(old: Value, new: Value, body: list[Statement]) -> Value | None:
        wanted = limited_number(old)
        if wanted is None:
            return None
        found = ranges.of(wanted)
        if found.nan or found.low < _ENDS[0] or found.high > _ENDS[1]:
            return None
        x = limited_number(new)
        assert x is not None
        return emit(body, "cast", "s32", emit(body, "add", "f32", x, 0.5), attr="in_range")

    return rewrite(program, change)
