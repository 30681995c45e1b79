"""What the host can evaluate: expressions of constants and parameters."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from dala.gpu.compute.lang.builder import floor
from dala.gpu.compute.lang.ir import FLOATS, Value


def _divide(a: float, b: float) -> float:
    if b:
        return a / b
    return math.nan if not a or math.isnan(a) else math.copysign(math.inf, a)


def _root(x: float) -> float:
    return math.sqrt(x) if x >= 0 else math.nan


def _round(x: float) -> float:
    return float(round(x)) if math.isfinite(x) else x


#: What the host computes, in f64.
OPERATIONS: Final[dict[str, Callable[..., Any]]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": _divide,
    "neg": lambda a: -a,
    "abs": abs,
    "min": lambda a, b: b if b < a or b != b else a,
    "max": lambda a, b: b if a < b or b != b else a,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "select": lambda c, a, b: a if c else b,
    "sqrt": _root,
    "floor": floor,
    "ceil": lambda x: -floor(-x),
    "round": _round,
    "sin": lambda x: math.sin(x) if math.isfinite(x) else math.nan,
    "cos": lambda x: math.cos(x) if math.isfinite(x) else math.nan,
}


def is_uniform(v: Value) -> bool:
    """Return whether the host can evaluate a float: it depends on constants and parameters alone.

    Integers are left out, since they wrap around.
    """
    if v.op in ("const", "param"):
        return v.type in FLOATS or v.type == "s32"
    if v.op == "cast":
        return v.type in FLOATS and is_uniform(v.args[0])
    return v.op in OPERATIONS and v.type in (*FLOATS, "bool") and all(map(is_uniform, v.args))
