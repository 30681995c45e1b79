"""Compute derived parameters on the host, in f64: one function for all engines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dala.gpu.compute.engines.symbols import FUNCTIONS, apply, is_symbolic
from dala.gpu.compute.lang.exact.fixed_point import fixed_point
from dala.gpu.compute.lang.exact.uniform import OPERATIONS
from dala.gpu.compute.lang.ir import Derived, Value, arguments_first

_Numbers = Sequence[Any]  # plain numbers, or symbols of an exported plan


def _evaluate(wanted: Sequence[Value], params: _Numbers) -> list[Any]:
    """Return the values of uniform expressions for given parameters."""
    known: dict[Value, Any] = {}
    for v in arguments_first(wanted):
        args = [known[a] for a in v.args]
        if v.op == "const":
            known[v] = v.attr
        elif v.op == "param":
            known[v] = params[v.attr]
        elif v.op == "cast":
            known[v] = args[0] * 1.0
        else:
            found = OPERATIONS[v.op](*args)
            known[v] = apply(v.op, found, *args) if v.op in FUNCTIONS else found
    return [known[v] for v in wanted]


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
