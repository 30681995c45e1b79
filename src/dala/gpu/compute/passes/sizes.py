"""Sizes of the buffers that passes write: a scale, or two numbers or formulas."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias

from dala.errors import ParameterError

#: A scale of the output's size, or (width, height), each a number or a formula of ``width``,
#: ``height`` and the program's parameters, such as ``("width // 2", 256)``.
PassSize: TypeAlias = "float | tuple[int | str, int | str]"

#: The largest side of a buffer, in pixels.
MAX_SIDE: Final = 1 << 16

_OPERATORS: Final[dict[type, Callable[..., Any]]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.USub: operator.neg, ast.UAdd: operator.pos,
}  # fmt: skip
_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "min": min, "max": max, "floor": math.floor, "ceil": math.ceil, "round": round, "abs": abs,
}  # fmt: skip
_ADVICE: Final = (
    "Write a scale such as 0.5, or two numbers or formulas: ('width // 2', 256). Formulas have "
    "width, height, parameters, + - * / // %, min, max, floor, ceil, round and abs."
)


def checked_size(size: object, call: str) -> PassSize:
    """Return a size that can be evaluated; raise ParameterError otherwise.

    >>> checked_size(("width // 2", 256), "program")
    ('width // 2', 256)
    """
    given = size if isinstance(size, tuple | list) else (size,)
    good = all(isinstance(s, int | float | str) and not isinstance(s, bool) for s in given)
    if isinstance(size, str) or not good or (isinstance(size, tuple | list) and len(size) != 2):
        raise ParameterError.invalid(call, "size", "a scale or (width, height)", size, _ADVICE)
    for item in given:
        if isinstance(item, str):
            _walk(_parsed(item, call), None, item, call)
        elif not 0 < item <= MAX_SIDE:  # also NaN
            raise ParameterError.invalid(call, "size", "above 0", size, _ADVICE)
    return tuple(size) if isinstance(size, list) else size  # type: ignore[return-value]


def size_of(
    size: PassSize, width: int, height: int, params: Mapping[str, Any], call: str
) -> tuple[int, int]:
    """Return a size in pixels; fractions are cut off, and 1 is the least.

    >>> size_of(0.5, 101, 60, {}, "program"), size_of(("max(width, n)", 7), 4, 4, {"n": 9}, "p")
    ((50, 30), (9, 7))
    """
    if size == 1:
        return width, height
    if not isinstance(size, tuple):
        return _side(width * size, call), _side(height * size, call)
    names = {**params, "width": width, "height": height}
    w, h = (
        _side(_walk(_parsed(s, call), names, s, call) if isinstance(s, str) else s, call)
        for s in size
    )
    return w, h


def _side(value: Any, call: str) -> int:
    whole = math.floor(value) if math.isfinite(value) else 0
    if whole > MAX_SIDE:
        raise ParameterError.invalid(call, "size", f"at most {MAX_SIDE} pixels", value)
    return max(whole, 1)


@lru_cache(256)
def _parsed(text: str, call: str) -> ast.expr:
    try:
        if len(text) > 1000:
            raise ValueError
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise ParameterError.invalid(call, "size", "a formula", text, _ADVICE) from None


def _walk(node: ast.expr, names: Mapping[str, Any] | None, text: str, call: str) -> Any:
    """Return the value of a formula; without names, only check its form."""
    match node:
        case ast.Constant(int() | float() as value) if not isinstance(value, bool):
            return value
        case ast.Name(name) if names is None or name in names:
            return 1 if names is None else names[name]
        case ast.BinOp(left, op, right) if type(op) in _OPERATORS:
            found = [_walk(n, names, text, call) for n in (left, right)]
            return 1 if names is None else _computed(_OPERATORS[type(op)], found)
        case ast.UnaryOp(op, inner) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_walk(inner, names, text, call))
        case ast.Call(ast.Name(name), args, []) if name in _FUNCTIONS and args:
            found = [_walk(n, names, text, call) for n in args]
            return 1 if names is None else _computed(_FUNCTIONS[name], found)
    raise ParameterError.invalid(call, "size", "a formula of known names", text, _ADVICE)


def _computed(function: Callable[..., Any], values: list[Any]) -> Any:
    try:
        return function(*values)
    except (ZeroDivisionError, OverflowError, ValueError, TypeError):
        return math.inf  # and so 1 pixel, as of sizes below 1
