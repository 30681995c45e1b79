"""Find values that are numbers of ordinary size, neither NaN nor infinite.

Minima, maxima and roundings of such values need no care for NaN, which takes several operations.
What is computed from bytes is of ordinary size if the parameters are; callers check those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from dala.gpu.compute.engines.base import Values
from dala.gpu.compute.lang.ir import FLOATS, Program, Value, values

#: The largest parameter of ordinary size.
MAX_PARAM: Final = 1e6
#: The largest value of ordinary size; f32 goes on to 3e38.
_MAX: Final = 1e30

#: The largest absolute result of operations, from those of their arguments.
_SIZES: Final[dict[str, Callable[..., float]]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a + b, "mul": lambda a, b: a * b,
    "neg": lambda a: a, "abs": lambda a: a, "min": max, "max": max,
    "floor": lambda a: a + 1.0, "ceil": lambda a: a + 1.0, "round": lambda a: a + 1.0,
}  # fmt: skip


def are_ordinary(types: Sequence[str], params: Values) -> bool:
    """Return True if all floats among the parameters, of these types, are of ordinary size.

    Where they are symbols, the comparisons are guards: an exported plan refuses larger values.
    """
    return all(
        -MAX_PARAM <= number <= MAX_PARAM
        for number, type_ in zip(params, types, strict=True)
        if type_ in FLOATS
    )


def ordinary_values(program: Program) -> frozenset[Value]:
    """Return the floats of ordinary size, for parameters of ordinary size."""
    sizes: dict[Value, float] = {}

    def size(v: Value) -> float | None:
        if v.op == "const":
            number = abs(float(v.attr))
            return number if number <= _MAX else None  # not for NaN either
        return sizes.get(v)

    def found(v: Value) -> float | None:
        if v.op == "param":
            return MAX_PARAM
        if v.op == "cast" and v.attr == "byte":
            return 255.0
        if v.op == "cast":
            return 2.0**32 if v.args[0].type in ("s32", "u32") else None
        if v.op == "select":
            a, b = (size(arg) for arg in v.args[1:])
            return None if a is None or b is None else max(a, b)
        if v.op == "div":
            a, by = size(v.args[0]), v.args[1]
            if a is None or by.op != "const" or not abs(by.attr) > 1e-20:
                return None
            return a / abs(float(by.attr))
        if v.op not in _SIZES:
            return None
        parts = [size(arg) for arg in v.args]
        known = [part for part in parts if part is not None]
        return _SIZES[v.op](*known) if len(known) == len(parts) else None

    for v in values(program.body):
        if v.type == "f32":
            made = found(v)
            if made is not None and made <= _MAX:
                sizes[v] = made
    return frozenset(sizes)
