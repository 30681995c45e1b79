"""Values of constant expressions: lengths of arrays, conditions of the preprocessor."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Final

from dala.shaders.glsl.tree import GlslNode

#: Operators of constants.
OPERATORS: Final[dict[str, Callable[[float, float], float]]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "==": operator.eq,
    "!=": operator.ne, "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge,
    "&&": lambda a, b: bool(a) and bool(b), "||": lambda a, b: bool(a) or bool(b),
    "^^": lambda a, b: bool(a) != bool(b),
    "/": lambda a, b: a / b if isinstance(a, float) or isinstance(b, float) else int(a / b),
    "%": math.fmod, "&": lambda a, b: int(a) & int(b), "|": lambda a, b: int(a) | int(b),
    "^": lambda a, b: int(a) ^ int(b), ">>": lambda a, b: int(a) >> int(b),
    "<<": lambda a, b: int(a) << (int(b) & 31),
}  # fmt: skip
_FUNCTIONS: Final[dict[str, Callable[..., float]]] = {
    "floor": math.floor, "ceil": math.ceil, "min": min, "max": max, "abs": abs, "sqrt": math.sqrt,
    "int": int, "float": float, "uint": int, "round": round, "pow": math.pow, "mod": math.fmod,
    "clamp": lambda x, low, high: min(max(x, low), high), "sin": math.sin, "cos": math.cos,
    "log": math.log, "exp": math.exp, "log2": math.log2,
}  # fmt: skip


def evaluate(node: GlslNode, names: Mapping[str, float]) -> float:
    """Return the value of an expression of numbers.

    Raises:
        LookupError, ArithmeticError, ValueError, TypeError: it has none.
    """
    if node.op == "number":
        assert isinstance(node.value, int | float)
        return node.value
    if node.op == "name":
        return names[node.text]
    given = [evaluate(part, names) for part in node.parts]
    if node.op == "unary":
        return {"-": -given[0], "+": given[0], "!": not given[0]}[node.text]
    if node.op == "binary":
        return OPERATORS[node.text](*given)
    if node.op == "choice":
        return given[1] if given[0] else given[2]
    if node.op == "call" and node.kind is None:
        return _FUNCTIONS[node.text](*given)
    raise ValueError(node.op)
