"""Interpolation between two values of a property: numbers, tuples, colors and booleans."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Final, TypeAlias

from dala.errors import ColorError, ParameterError
from dala.typing import NDArray

if TYPE_CHECKING:
    from dala.media.scene.nodes.property_types import Value

#: A value that can be animated. Colors may be given as strings.
AnimatedValue: TypeAlias = "bool | float | str | Sequence[AnimatedValue] | NDArray"
#: Maps two values and a progress (0 is the first, 1 the second; beyond is allowed) to a value.
Interpolator: TypeAlias = Callable[..., AnimatedValue]

CALL: Final = "add_animation"


def interpolation(
    property: str, values: Sequence[Value], *, colors: bool | None = None
) -> tuple[list[AnimatedValue], Interpolator]:
    """Return the values in one form, and the function that interpolates two of them.

    Strings are colors. Colors become (r, g, b, a) and are interpolated with premultiplied alpha,
    so a fade from "transparent" to red is red all the time. Tuples are interpolated item by item.
    Booleans keep the first value until the second is reached.

    Args:
        property: the property that errors name.
        values: the values.
        colors: whether they are colors; by default, if the property's name ends with "color".

    Raises:
        ParameterError: a value cannot be interpolated, or the values are of different kinds.

    >>> values, mix = interpolation("color", ["transparent", "red"])
    >>> mix(*values, 0.5)
    (255, 0, 0, 128)
    """
    colored = property.endswith("color") if colors is None else colors
    if colored or any(isinstance(v, str) for v in values):
        found = [_color(property, v, colored) for v in values]
        if None not in found:
            return [color for color in found if color is not None], mix_colors
    if all(isinstance(v, bool) for v in values):
        return list(values), _hold
    if all(isinstance(v, Real) and not isinstance(v, bool) for v in values):
        return [_number(property, v) for v in values], mix_numbers
    if all(isinstance(v, list | tuple) or hasattr(v, "tolist") for v in values):
        rows = [tuple(v.tolist() if hasattr(v, "tolist") else v) for v in values]
        if len({len(row) for row in rows}) == 1 and rows[0]:
            return _rows(property, rows)
    got = ", ".join(repr(v) for v in values[:4])
    raise ParameterError(
        f"{CALL}: values of {property!r} must be numbers, tuples of the same length, or colors "
        f"(CSS names, '#rrggbb'), all of one kind, got {got}.",
        argument=property,
    )


def mix_numbers(a: float, b: float, t: float) -> float:
    """Interpolate two numbers; the result at 1 is exactly the second."""
    return b if t == 1.0 else a + (b - a) * t


def mix_colors(a: tuple[int, ...], b: tuple[int, ...], t: float) -> tuple[int, ...]:
    """Interpolate two colors (r, g, b, a) with premultiplied alpha, as CSS does."""
    alpha = min(max(a[3] + (b[3] - a[3]) * t, 0.0), 255.0)
    if a[3] == b[3]:
        rgb = [x + (y - x) * t for x, y in zip(a[:3], b[:3], strict=True)]
    elif alpha == 0.0:
        rgb = [*(a if t < 0.5 else b)[:3]]
    else:
        whole = [x * a[3] + (y * b[3] - x * a[3]) * t for x, y in zip(a[:3], b[:3], strict=True)]
        rgb = [x / alpha for x in whole]
    return tuple(min(max(math.floor(x + 0.5), 0), 255) for x in (*rgb, alpha))


def _hold(a: bool, b: bool, t: float) -> bool:
    return b if t >= 1.0 else a


def _rows(property: str, rows: list[tuple[Value, ...]]) -> tuple[list[AnimatedValue], Interpolator]:
    columns = [interpolation(property, column) for column in zip(*rows, strict=True)]
    mixes = [mix for _, mix in columns]
    values: list[AnimatedValue] = [*zip(*(values for values, _ in columns), strict=True)]

    def mix(a: tuple[Value, ...], b: tuple[Value, ...], t: float) -> tuple[Value, ...]:
        return tuple(m(x, y, t) for m, x, y in zip(mixes, a, b, strict=True))

    return values, mix


def _number(property: str, value: Value) -> float:
    if isinstance(value, Integral):
        return operator.index(value)
    number = float(value)
    if not math.isfinite(number):
        raise ParameterError.invalid(CALL, f"a value of {property!r}", "a finite number", number)
    return number


def _color(property: str, value: Value, colored: bool) -> tuple[int, ...] | None:
    """Return a color; None if it is not one and the property does not need one."""
    from dala.gpu.color import rgba_of

    try:
        return tuple(rgba_of(value, CALL, f"a value of {property!r}"))
    except ColorError as error:
        if not colored:
            return None
        raise ParameterError(str(error), argument=property) from None
