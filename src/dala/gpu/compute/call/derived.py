"""Compute derived parameters on the host, in f64: one function for all engines."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from dala.gpu.compute.engines.symbols import FUNCTIONS, apply, is_symbolic
from dala.gpu.compute.lang.builder import floor
from dala.gpu.compute.lang.exact.fixed_point import fixed_point
from dala.gpu.compute.lang.ir import Derived, Value

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


def _evaluate(wanted: Sequence[Value], params: _Numbers) -> list[Any]:
    """Return the values of uniform expressions for given parameters."""
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


def with_derived(derived: Derived, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the declared parameters, and the derived ones behind them."""
    numbers = _evaluate(derived.numbers, values)
    found = fixed_point(derived.window, derived.layout, [float(n) for n in numbers])
    if not is_symbolic(*numbers):
        return (*values, *found)
    given = (int(derived.window), len(derived.layout), *derived.layout, *numbers)
    return (*values, *(apply("fixed_point", n, i, *given) for i, n in enumerate(found)))


def _fixed_point_at(index: int, window: int, length: int, *given: float) -> int:
    layout = [int(n) for n in given[:length]]
    return fixed_point(bool(window), layout, given[length:])[index]


FUNCTIONS["fixed_point"] = _fixed_point_at
