"""What lies between two values of a property: numbers, tuples of them, colours, yes and no."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any, TypeAlias

from dala.errors import ColorError, ParameterError

#: From two values and how far between them (0 the first, 1 the second; beyond too) to a value.
Mix: TypeAlias = Callable[[Any, Any, float], Any]


def mixing(call: str, property: str, values: Sequence[Any]) -> tuple[list[Any], Mix]:
    """The values in one form, and how to mix two of them.

    Strings are colours, and so is anything that a property whose name ends with "color" has.
    Colours become (r, g, b, a); they are mixed with their alpha, so that what fades from
    "transparent" to red is red all along. Tuples are mixed item by item. True and False hold until
    the next.

    Raises:
        ParameterError: a value is none of these, or they are not all of one kind.

    >>> values, mix = mixing("doc", "color", ["transparent", "red"])
    >>> mix(*values, 0.5)
    (255, 0, 0, 128)
    """
    colored = property.endswith(("color", "colour"))
    if colored or any(isinstance(v, str) for v in values):
        found = [_color(call, property, v, colored) for v in values]
        if None not in found:
            return found, mix_colors
    if all(isinstance(v, bool) for v in values):
        return list(values), _hold
    if all(isinstance(v, Real) and not isinstance(v, bool) for v in values):
        return [_number(call, property, v) for v in values], mix_numbers
    if all(isinstance(v, list | tuple) or hasattr(v, "tolist") for v in values):
        rows = [tuple(v.tolist() if hasattr(v, "tolist") else v) for v in values]
        if len({len(row) for row in rows}) == 1 and rows[0]:
            return _rows(call, property, rows)
    shown = ", ".join(repr(v) for v in values[:4])
    raise ParameterError(
        f"{call}: values of {property!r} are numbers, tuples of as many numbers each, or colours "
        f"(CSS names, '#rrggbb'), all of one kind; {shown} came."
    )


def mix_numbers(a: float, b: float, t: float) -> float:
    """Between two numbers; exactly the second at 1."""
    return b if t == 1.0 else a + (b - a) * t


def mix_colors(a: tuple[int, ...], b: tuple[int, ...], t: float) -> tuple[int, ...]:
    """Between two colours (r, g, b, a), as light that passes through them: as CSS does it."""
    alpha = min(max(a[3] + (b[3] - a[3]) * t, 0.0), 255.0)
    if a[3] == b[3]:
        light = [x + (y - x) * t for x, y in zip(a[:3], b[:3], strict=True)]
    elif alpha == 0.0:
        light = [*(a if t < 0.5 else b)[:3]]
    else:
        whole = [x * a[3] + (y * b[3] - x * a[3]) * t for x, y in zip(a[:3], b[:3], strict=True)]
        light = [x / alpha for x in whole]
    return tuple(min(max(math.floor(x + 0.5), 0), 255) for x in (*light, alpha))


def _hold(a: bool, b: bool, t: float) -> bool:
    return b if t >= 1.0 else a


def _rows(call: str, property: str, rows: list[tuple[Any, ...]]) -> tuple[list[Any], Mix]:
    columns = [mixing(call, property, column) for column in zip(*rows, strict=True)]
    mixes = [mix for _, mix in columns]
    values = list(zip(*(values for values, _ in columns), strict=True))

    def mix(a: tuple[Any, ...], b: tuple[Any, ...], t: float) -> tuple[Any, ...]:
        return tuple(m(x, y, t) for m, x, y in zip(mixes, a, b, strict=True))

    return values, mix


def _number(call: str, property: str, value: Any) -> float:
    if isinstance(value, Integral):
        return operator.index(value)
    number = float(value)
    if not math.isfinite(number):
        raise ParameterError(f"{call}: a value of {property!r} is {number}, which is no number.")
    return number


def _color(call: str, property: str, value: Any, colored: bool) -> tuple[int, ...] | None:
    """A colour; None where it is none and the property need not be one."""
    from dala.gpu.color import color_to_rgba

    try:
        return tuple(color_to_rgba(value))
    except ColorError as error:
        if not colored:
            return None
        raise ParameterError(f"{call}: a value of {property!r} is no colour: {error}") from None
