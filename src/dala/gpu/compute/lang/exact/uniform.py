"""Values that the host can evaluate: expressions of constants and parameters."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from dala.gpu.compute.lang.builder import FOLD, floor
from dala.gpu.compute.lang.ir import FLOATS, Value


def _divide(a: float, b: float) -> float:
    if b:
        return a / b
    if not a or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _root(x: float) -> float:
    return math.sqrt(x) if x >= 0 else math.nan


def _round(x: float) -> float:
    return float(round(x)) if math.isfinite(x) else x


#: What the host computes: in f64, or rounded to f32 after each operation.
OPERATIONS: Final[dict[str, Callable[..., Any]]] = {
    **{op: fold for op, fold in FOLD.items() if op not in ("idiv", "mod")},
    "div": _divide,
    "neg": lambda a: -a,
    "abs": abs,
    "select": lambda c, a, b: a if c else b,
    "sqrt": _root,
    "floor": floor,
    "ceil": lambda x: -floor(-x),
    "round": _round,
    "sin": lambda x: math.sin(x) if math.isfinite(x) else math.nan,
    "cos": lambda x: math.cos(x) if math.isfinite(x) else math.nan,
}
#: Those whose results may have other last digits on other machines.
INEXACT: Final = frozenset({"sin", "cos"})


def is_uniform(v: Value, known: dict[Value, bool]) -> bool:
    """Return whether the host can evaluate a float: it depends on constants and parameters alone.

    Integers are left out, since they wrap around. ``known`` holds what was found before.
    """
    if v not in known:
        if v.op in ("const", "param"):
            known[v] = v.type in FLOATS or v.type == "s32"
        elif v.op == "cast":
            known[v] = v.type in FLOATS and is_uniform(v.args[0], known)
        else:
            possible = v.op in OPERATIONS and v.type in (*FLOATS, "bool")
            known[v] = possible and all(is_uniform(a, known) for a in v.args)
    return known[v]
