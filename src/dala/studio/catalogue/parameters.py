"""Parameters as the page gets them: types, bounds and controls, from the declarations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, TypeAlias

from dala.gpu.compute.kernels.filter import FilterParam

#: A value of a JSON document.
Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
#: An object of a JSON document.
JsonObject: TypeAlias = "dict[str, Json]"

#: Parameters of three or four numbers that are colors, by name.
_COLORS: Final = ("color", "fill", "key")
#: Parameters of two numbers that are a place on the picture.
_POINTS: Final = ("center", "position")
#: Bounds beyond this only exclude infinity.
_FAR: Final = 1e5
#: The length of blurs in pixels up to which a control goes.
_SPREAD: Final = 10.0
#: The widest range of a control for a parameter whose bounds are further apart.
_WIDE: Final = 2000.0


def parameter(p: FilterParam) -> JsonObject:
    """Return a parameter as the catalogue lists it.

    >>> from dala.media.filters.declarations import declared
    >>> made = parameter(declared()["blur"].parameters[0])
    >>> made["type"], made["slider"], made["unit"]
    ('int', [0, 200, 1], 'pixels')
    >>> parameter(declared()["chroma_key"].parameters[0])["type"]
    'color'
    """
    kind, whole = kind_of(p), p.whole
    made: JsonObject = {"name": p.name, "type": kind, "required": p.required}
    made["default"] = plain(p.default)
    said: JsonObject = {"unit": p.unit, "doc": p.doc, "label": p.label, "choices": list(p.choices)}
    made |= {name: value for name, value in said.items() if value}
    if kind in ("number", "int", "numbers", "point"):
        made |= bounds(p.default, p.low, p.high, whole=whole, unit=p.unit)
    if kind in ("numbers", "color", "point"):
        made |= {"size": p.size, "spread": p.spread}
    match kind:
        case "numbers" | "point":
            made["whole"] = whole
        case "color":
            made["alpha"] = p.size == 4
        case "picture":
            made["alpha"] = p.type == "background"
        case "size":
            made["spread"] = p.spread
    return made


def kind_of(p: FilterParam) -> str:
    """Return the type of a parameter for the page, such as "number" or "color".

    >>> kind_of(FilterParam("size", "size", size=2)), kind_of(FilterParam("red", "points"))
    ('size', 'curve')
    """
    match p.type:
        case "float" | "number":
            return "number"
        case "int" | "bool" | "choice" | "lut" | "map" | "size":
            return p.type
        case "points":
            return "curve"
        case "picture" | "background":
            return "picture"
    if p.name in _COLORS and p.size in (3, 4):
        return "color"
    if p.name in _POINTS and p.size == 2:
        return "point"
    return "numbers"


def bounds(
    default: object, low: float | None, high: float | None, *, whole: bool, unit: str
) -> JsonObject:
    """Return the bounds of a number that are not too far to be shown, and its control.

    >>> bounds(1, 0.0, math.inf, whole=True, unit="")
    {'low': 0.0, 'slider': [0, 21, 1]}
    """
    near = {"low": _finite(low), "high": _finite(high)}
    control = slider(_number(default), near["low"], near["high"], whole=whole, unit=unit)
    return {**{name: value for name, value in near.items() if value is not None}, "slider": control}


def slider(
    default: float | None, low: float | None, high: float | None, *, whole: bool, unit: str = ""
) -> list[Json]:
    """Return the lowest value, the highest and the step of a control.

    Bounds that are missing, or very far apart, are chosen around the default.

    >>> slider(0.5, 0.0, 1.0, whole=False)
    [0.0, 1.0, 0.01]
    >>> slider(0.0, None, None, whole=False)
    [-1.0, 1.0, 0.01]
    >>> slider(0.0, None, None, whole=False, unit="degrees")
    [-180.0, 180.0, 1.0]
    >>> slider(1.5, None, 100.0, whole=False, unit="pixels")
    [0.1, 10.0, 0.01]
    """
    if low is None and unit == "pixels" and not whole and (default is None or default > 0):
        low, high = 0.1, min(high or _SPREAD, max(_SPREAD, 4 * (default or 0)))  # a length
    middle = default if default is not None else (low or 0.0)
    reach = 180.0 if unit == "degrees" else max(1.0, 2 * abs(middle)) * (10 if whole else 1)
    if low is not None and high is not None and high - low <= _WIDE:
        first, last = low, high
    else:
        first = max(low, middle - reach) if low is not None else middle - reach
        last = min(high, max(middle + reach, first + reach)) if high is not None else middle + reach
    if whole:
        return [math.floor(first), max(math.ceil(last), math.floor(first) + 1), 1]
    span = last - first if last > first else 1.0
    step = 10.0 ** math.floor(math.log10(span / 100) + 1e-9)
    return [float(first), float(first + span), step]


def _finite(value: float | None) -> float | None:
    return None if value is None or abs(value) >= _FAR else value


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)


def plain(value: object) -> Json:
    """Return a value as JSON: tuples become lists, numbers that are not finite become None.

    >>> plain((0.0, 1.0)), plain(float("inf"))
    ([0.0, 1.0], None)
    """
    if isinstance(value, bool | str) or value is None:
        return value
    if isinstance(value, int | float):
        return value if math.isfinite(value) else None
    if isinstance(value, Sequence):
        return [plain(item) for item in value]
    return str(value)


def title_of(name: str) -> str:
    """Return a name as a title.

    >>> title_of("chroma_key"), title_of("hue")
    ('Chroma key', 'Hue')
    """
    text = name.replace("_", " ").strip()
    return text[:1].upper() + text[1:]
