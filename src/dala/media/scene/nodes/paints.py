"""Paints of shapes: colors and gradients, as properties, in animations and in scene files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dala.errors import ParameterError
from dala.gpu.paint import ConicGradient, Gradient, LinearGradient, RadialGradient
from dala.media.scene.nodes import property_types as t
from dala.media.scene.nodes.json_types import JsonColor, JsonNull, OneOf, ParsedValue

_KINDS: Final = {kind.kind: kind for kind in (LinearGradient, RadialGradient, ConicGradient)}
_KEYS: Final = ("kind", "matrix", "stops", "spread", "space", "dither")


def gradient_of(data: Mapping[str, Any]) -> Gradient:
    """Return the gradient that a scene file has.

    >>> gradient_of({"kind": "linear", "matrix": [0.1, 0, 0, 0, 0, 0], "stops": [[0, "red"]]})
    <LinearGradient of 1 colors>
    """
    kind = _KINDS.get(str(data.get("kind")))
    unknown = [key for key in data if key not in _KEYS]
    matrix = data.get("matrix")
    if kind is None or unknown or not isinstance(matrix, list) or len(matrix) != 6:
        raise ParameterError.invalid(
            "gradient", "gradient", f"an object with kind ({', '.join(_KINDS)}), matrix (six "
            "numbers) and stops", dict(data),
        )  # fmt: skip
    from dala.gpu.path.numbers import numbers

    a, b, c, d, e, f = numbers("gradient", "matrix " * 6, tuple(matrix))
    made = kind.__new__(kind)
    stops: list[Any] = data.get("stops") or []
    spread, space = str(data.get("spread", "pad")), str(data.get("space", "srgb"))
    Gradient.__init__(made, (a, b, c, d, e, f), stops, spread, space, data.get("dither", False))
    return made


def gradient_data(gradient: Gradient) -> dict[str, Any]:
    """Return a gradient as a scene file has it."""
    rows = [gradient.stops[n : n + 5] for n in range(0, len(gradient.stops), 5)]
    colors = [[row[0], t.hex_color(tuple(round(part) for part in row[1:]))] for row in rows]
    return {
        "kind": gradient.kind, "matrix": list(gradient.matrix), "stops": colors,
        "spread": gradient.spread, "space": gradient.space, "dither": gradient.dither,
    }  # fmt: skip


def mix_gradients(a: Gradient, b: Gradient, share: float) -> Gradient:
    """Return the gradient between two of the same kind and number of stops."""
    made = gradient_of(gradient_data(a))
    made.matrix = tuple(x + (y - x) * share for x, y in zip(a.matrix, b.matrix, strict=True))  # type: ignore[assignment]
    mixed = (x + (y - x) * share for x, y in zip(a.stops, b.stops, strict=True))
    most = (1.0, 255.0, 255.0, 255.0, 255.0)
    made.stops = tuple(min(max(part, 0.0), most[n % 5]) for n, part in enumerate(mixed))
    return made


def paints_of(property: str, values: list[Any]) -> list[Gradient] | None:
    """Return values of an animation as gradients; None if none of them is one."""
    if not any(isinstance(value, Gradient | Mapping) for value in values):
        return None
    found = [gradient_of(value) if isinstance(value, Mapping) else value for value in values]
    alike = {
        (v.kind, len(v.stops), v.spread, v.space, v.dither) if isinstance(v, Gradient) else None
        for v in found
    }
    if len(alike) > 1 or None in alike:
        raise ParameterError(
            f"add_animation: values of {property!r} must be gradients of one kind, with the same "
            "number of stops.",
            argument=property,
        )
    return found


#: A gradient in a scene file.
JSON_GRADIENT: Final = ParsedValue(
    "a gradient", dict, gradient_of,
    {
        "type": "object",
        "required": ["kind", "matrix", "stops"],
        "additionalProperties": False,
        "properties": {
            "kind": {"enum": list(_KINDS)},
            "matrix": {
                "type": "array", "items": {"type": "number"}, "minItems": 6, "maxItems": 6,
                "description": "Maps coordinates to those of the gradient: a, b, c, d, e, f.",
            },
            "stops": {"type": "array", "minItems": 1, "description": "Rows of [place, color]."},
            "spread": {"enum": ["pad", "repeat", "reflect"]},
            "space": {"enum": ["srgb", "linear", "oklab"]},
            "dither": {"type": "boolean"},
        },
    },
)  # fmt: skip


class PaintType(t.ColorType):
    """A color or a gradient, whose coordinates are those of the path."""

    def __init__(self) -> None:
        super().__init__(optional=True)
        self.json = OneOf(JsonColor(), JSON_GRADIENT, JsonNull())
        self.annotation = "ColorLike | Gradient | None"

    def check_value(self, call: str, argument: str, value: t.Value) -> t.Value:
        """Return the color or the gradient."""
        if isinstance(value, Gradient):
            return value
        if isinstance(value, Mapping):
            return gradient_of(value)
        return super().check_value(call, argument, value)

    def dump_value(self, value: t.Value) -> Any:
        """Return the color, or the data of the gradient."""
        return gradient_data(value) if isinstance(value, Gradient) else super().dump_value(value)
