"""What the host can evaluate: expressions of constants and parameters."""

from __future__ import annotations

from typing import Final

from dala.gpu.compute.lang.ir import FLOATS, Value

#: Operations that ``call/derived.py`` evaluates.
OPERATIONS: Final = frozenset({
    "add", "sub", "mul", "div", "neg", "abs", "min", "max", "eq", "ne", "lt", "le", "gt", "ge",
    "select", "sqrt", "floor", "ceil", "round", "sin", "cos",
})  # fmt: skip


def is_uniform(v: Value) -> bool:
    """Return whether the host can evaluate a float: it depends on constants and parameters alone.

    Integers are left out, since they wrap around.
    """
    if v.op in ("const", "param"):
        return v.type in FLOATS or v.type == "s32"
    if v.op == "cast":
        return v.type in FLOATS and is_uniform(v.args[0])
    return v.op in OPERATIONS and v.type in (*FLOATS, "bool") and all(map(is_uniform, v.args))
