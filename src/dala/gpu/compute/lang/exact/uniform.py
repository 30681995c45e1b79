"""Evaluate what is the same for all positions on the host: expressions of parameters, in f64."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from dala.gpu.compute.lang.builder import floor
from dala.gpu.compute.lang.ir import FLOATS, Value

_Numbers = Sequence[Any]  # plain numbers, or symbols of an exported plan


def _divide(a: float, b: float) -> float:
    if b:
        return a / b
    return math.nan if not a or math.isnan(a) else math.copysign(math.inf, a)


def _root(x: float) -> float:
    return math.sqrt(x) if x >= 0 else math.nan


def _round(x: float) -> float:
    return float(round(x)) if math.isfinite(x) else x


_OPERATIONS: Final[dict[str, Callable[..., Any]]] = {
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
}
#: Functions that symbols remember by their name.
_FUNCTIONS: Final[dict[str, Callable[[float], float]]] = {"sin": math.sin, "cos": math.cos}


def is_uniform(v: Value) -> bool:
    """Return whether the host can evaluate a float: it depends on constants and parameters alone.

    Integers are left out, since they wrap around.
    """
    if v.op in ("const", "param"):
        return v.type in FLOATS or v.type == "s32"
    if v.op == "cast":
        return v.type in FLOATS and is_uniform(v.args[0])
    known = v.op in _OPERATIONS or v.op in _FUNCTIONS
    return known and v.type in (*FLOATS, "bool") and all(map(is_uniform, v.args))


def evaluate(wanted: Sequence[Value], params: _Numbers) -> list[Any]:
    """Return the values of uniform expressions for given parameters."""
    from dala.gpu.compute.engines.symbols import apply

    known: dict[Value, Any] = {}

    def of(v: Value) -> Any:
        if v.op == "const":
            return v.attr
        if v not in known:
            known[v] = compute(v)
        return known[v]

    def compute(v: Value) -> Any:
        if v.op == "param":
            return params[v.attr]
        args = [of(a) for a in v.args]
        if v.op == "cast":
            return args[0] * 1.0
        if v.op in _FUNCTIONS:
            x = args[0]
            return apply(v.op, _FUNCTIONS[v.op](x) if math.isfinite(x) else math.nan, x)
        return _OPERATIONS[v.op](*args)

    return [of(v) for v in wanted]
