"""Types of node properties: how a value is checked, annotated, animated, and written as JSON.

A :class:`PropertyType` is everything the library knows about the values of a property. Builder
signatures, checks, animation, scene files and the schema are derived from it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from dala.arguments import items_of
from dala.errors import ParameterError, did_you_mean
from dala.gpu.color import rgba_of
from dala.media.scene.nodes.json_types import (
    LIMIT,
    FixedList,
    JsonBoolean,
    JsonChoice,
    JsonColor,
    JsonNull,
    JsonNumber,
    JsonString,
    JsonType,
    JsonValue,
    ListOf,
    OneOf,
    ParsedString,
    PositiveNumber,
    bounds_text,
)
from dala.media.sources.seconds import LATEST, seconds_of, to_fraction

if TYPE_CHECKING:
    from dala.gpu.compute.kernel import Kernel
    from dala.media.scene.nodes.node import Node
    from dala.typing import NDArray

#: A property's value. Its type depends on the property, which only :class:`PropertyType` knows, so
#: that drawing computes with checked values and without casts.
Value: TypeAlias = Any
#: Values of properties, or arguments of a builder method, by name.
Values: TypeAlias = dict[str, Value]
#: Anything that a builder method accepts.
NodeArgument: TypeAlias = (
    "bool | float | str | os.PathLike[str] | NDArray | Node | Kernel | Callable[..., object]"
    " | Iterable[NodeArgument] | Mapping[str, NodeArgument] | None"
)
#: Red, green, blue and alpha, 0 to 255 each.
Rgba: TypeAlias = tuple[int, int, int, int]
#: Horizontal and vertical offset, blur, color.
Shadow: TypeAlias = tuple[float, float, float, Rgba]

#: Anchors and positions by name, as fractions of a box.
PLACES: Final[dict[str, tuple[float, float]]] = {
    "top-left": (0.0, 0.0), "top": (0.5, 0.0), "top-right": (1.0, 0.0),
    "left": (0.0, 0.5), "center": (0.5, 0.5), "right": (1.0, 0.5),
    "bottom-left": (0.0, 1.0), "bottom": (0.5, 1.0), "bottom-right": (1.0, 1.0),
}  # fmt: skip


class PropertyType:
    """The type of a property; this base accepts any value.

    Args:
        json: the form of a value in a scene file.
        annotation: the values that calls accept, as a type annotation.
        animatable: whether values can be interpolated.
        optional: whether None is accepted, which stands for "not set".
    """

    #: Plain numbers between these bounds need no conversion; the empty range turns that off.
    low, high = 1.0, 0.0

    def __init__(
        self, json: JsonType, annotation: str, *, animatable: bool = False, optional: bool = False
    ) -> None:
        self.json = OneOf(json, JsonNull()) if optional else json
        self.annotation = f"{annotation} | None" if optional else annotation
        self.animatable = animatable
        self.optional = optional

    def convert(self, value: Value, call: str, name: str) -> Value:
        """Return a value in the form that nodes keep it.

        Raises:
            ParameterError: the value is not of this type.
        """
        if value is None and self.optional:
            return None
        return self.convert_value(value, call, name)

    def convert_value(self, value: Value, call: str, name: str) -> Value:
        """Return a value other than None in the form that nodes keep it."""
        return value

    def dump(self, value: Value) -> JsonValue:
        """Return a kept value as scene files have it."""
        return None if value is None else self.dump_value(value)

    def dump_value(self, value: Value) -> JsonValue:
        """Return a kept value other than None as scene files have it."""
        return plain_json(value)


class NumberType(PropertyType):
    """A finite number within bounds."""

    def __init__(self, low: float = -LIMIT, high: float = LIMIT, *, optional: bool = False) -> None:
        super().__init__(JsonNumber(low, high), "float", animatable=True, optional=optional)
        self.low, self.high = low, high

    def convert_value(self, value: Value, call: str, name: str) -> float:
        """Return the number as a float."""
        try:
            found = math.nan if isinstance(value, bool | str) else float(value)
        except (TypeError, ValueError):
            found = math.nan
        if self.low <= found <= self.high:
            return found
        expected = "a number" + bounds_text(self.low, self.high)
        raise ParameterError.invalid(
            call, name, expected + (" or None" if self.optional else ""), value
        )


class BooleanType(PropertyType):
    """True or False."""

    def __init__(self) -> None:
        super().__init__(JsonBoolean(), "bool", animatable=True)

    def convert_value(self, value: Value, call: str, name: str) -> bool:
        """Return the value as a bool."""
        if value is True or value is False or type(value).__name__ in ("bool", "bool_"):
            return bool(value)
        raise ParameterError.invalid(call, name, "True or False", value)


class ChoiceType(PropertyType):
    """One of several strings; errors suggest the nearest."""

    def __init__(self, choices: Iterable[str]) -> None:
        self.choices = tuple(choices)
        super().__init__(JsonChoice(self.choices), "str")

    def convert_value(self, value: Value, call: str, name: str) -> str:
        """Return the string if it is one of the choices."""
        if isinstance(value, str) and value in self.choices:
            return value
        hint = did_you_mean(value, self.choices) if isinstance(value, str) else ""
        expected = f"one of {', '.join(map(repr, self.choices))}"
        raise ParameterError.invalid(call, name, expected, value, hint)


class StringType(PropertyType):
    """A string; ``expected`` says in errors about scene files what it stands for."""

    def __init__(
        self, expected: str = "a string", *, shortest: int = 0, optional: bool = False
    ) -> None:
        super().__init__(JsonString(expected, shortest=shortest), "str", optional=optional)

    def convert_value(self, value: Value, call: str, name: str) -> str:
        """Return the string."""
        if not isinstance(value, str):
            raise ParameterError.invalid(call, name, "a str", value, "Use str(value).")
        return value


class ColorType(PropertyType):
    """A color, kept as (r, g, b, a)."""

    def __init__(self, *, optional: bool = False) -> None:
        super().__init__(JsonColor(), "ColorLike", animatable=True, optional=optional)

    def convert_value(self, value: Value, call: str, name: str) -> Rgba:
        """Return the color; animations produce fractions, which are rounded."""
        items = as_tuple(value)
        if items is not None and any(isinstance(i, float) for i in items):
            value = tuple(
                round(i) if isinstance(i, float) and math.isfinite(i) else i for i in items
            )
        r, g, b, a = rgba_of(value, call, name)
        return r, g, b, a

    def dump_value(self, value: Value) -> str:
        """Return the color as "#rrggbb" or "#rrggbbaa"."""
        return hex_color(value)


class AnchorType(PropertyType):
    """A point of a box, as fractions of its size or by name."""

    def __init__(self) -> None:
        fraction = JsonNumber(-1000, 1000)
        json = OneOf(FixedList("[across, down]", fraction, fraction), JsonChoice(PLACES))
        super().__init__(json, "str | Sequence[float]", animatable=True)

    def convert_value(self, value: Value, call: str, name: str) -> tuple[float, float]:
        """Return the fractions across and down."""
        if isinstance(value, str):
            return PLACES[ChoiceType(PLACES).convert(value, call, name)]
        items = as_tuple(value)
        if items is None or len(items) != 2:
            expected = "a name such as 'center' or two fractions of the size such as (0.5, 1)"
            raise ParameterError.invalid(call, name, expected, value)
        across, down = (NumberType(-1000.0, 1000.0).convert(item, call, name) for item in items)
        return across, down

    def dump_value(self, value: Value) -> JsonValue:
        """Return the name of the point if it has one, else the fractions."""
        found = [place for place, point in PLACES.items() if point == value]
        return found[0] if found else plain_json(value)


class CropType(PropertyType):
    """Left, top, width and height in pixels of the content, or None for all of it."""

    def __init__(self) -> None:
        length, above = JsonNumber(0.0), PositiveNumber()
        json = FixedList("[left, top, width, height]", length, length, above, above)
        super().__init__(json, "Sequence[float]", animatable=True, optional=True)

    def convert_value(
        self, value: Value, call: str, name: str
    ) -> tuple[float, float, float, float]:
        """Return the four numbers."""
        items = as_tuple(value)
        if items is None or len(items) != 4:
            expected = "(left, top, width, height) in pixels of the content"
            raise ParameterError.invalid(call, name, expected, value)
        left, top, width, height = (NumberType(0.0).convert(item, call, name) for item in items)
        if width <= 0 or height <= 0:
            raise ParameterError.invalid(
                call, name, "a rectangle with width and height above 0", value
            )
        return left, top, width, height


class ShadowType(PropertyType):
    """Horizontal and vertical offset, blur and color; True stands for a default shadow."""

    def __init__(self, offset: float = LIMIT, blur: float = 400.0) -> None:
        number = JsonNumber(-offset, offset)
        row = FixedList(
            "[dx, dy, blur, color]", number, number, JsonNumber(0, blur), JsonColor(), shortest=3
        )
        annotation = "tuple[float, float, float] | tuple[float, float, float, ColorLike] | bool"
        super().__init__(
            OneOf(row, JsonBoolean(), JsonNull()), f"{annotation} | None", animatable=True
        )
        self._blur = blur

    def convert_value(self, value: Value, call: str, name: str) -> Shadow | None:
        """Return the four parts, or None for no shadow."""
        if value is None or value is False:
            return None
        if value is True:
            return 0.0, 4.0, 12.0, (0, 0, 0, 128)
        items = as_tuple(value)
        if items is None or len(items) not in (3, 4):
            expected = "(dx, dy, blur) or (dx, dy, blur, color), True or None"
            raise ParameterError.invalid(call, name, expected, value)
        dx, dy = (NumberType().convert(item, call, name) for item in items[:2])
        blur = NumberType(0.0, self._blur).convert(items[2], call, f"blur of {name}")
        color = ColorType().convert(items[3] if len(items) == 4 else (0, 0, 0, 128), call, name)
        return dx, dy, blur, color

    def dump_value(self, value: Value) -> JsonValue:
        """Return the four parts as a list."""
        return [*plain_json(value[:3]), hex_color(value[3])]


class FontType(PropertyType):
    """A font family, the path of a font file, or several; scene files keep paths relative."""

    def __init__(self) -> None:
        one = JsonString("a font family or the path of a font file", shortest=1)
        json = OneOf(one, ListOf(one, "a list of fonts", shortest=1))
        super().__init__(json, "str | os.PathLike[str] | Sequence[str]", optional=True)

    def convert_value(self, value: Value, call: str, name: str) -> Value:
        """Return the font or a tuple of fonts. TextStyle checks them."""
        return tuple(value) if isinstance(value, list) else value


class WeightType(PropertyType):
    """A font weight by name, or from 1 to 1000."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__(OneOf(JsonNumber(1, 1000), JsonChoice(names)), "str | int")


class PaddingType(PropertyType):
    """One number, (horizontal, vertical), or (left, top, right, bottom)."""

    def __init__(self) -> None:
        number = JsonNumber(0, 4096)
        json = OneOf(number, ListOf(number, "a list of 2 or 4 numbers", shortest=1))
        super().__init__(json, "float | Sequence[float]", animatable=True)

    def convert_value(self, value: Value, call: str, name: str) -> Value:
        """Return a number or a tuple. TextStyle checks them."""
        return tuple(value) if isinstance(value, list) else value


class PairType(PropertyType):
    """Two values under one name, such as (x, y); the parts have types of their own."""

    def __init__(self, expected: str, first: PropertyType, second: PropertyType) -> None:
        row = FixedList(f"[{expected}]", first.json, second.json)
        inner = f"tuple[{first.annotation}, {second.annotation}]"
        animatable = first.animatable and second.animatable
        super().__init__(row, f"{inner} | Sequence[float]", animatable=animatable)
        self.expected = f"({expected})"

    def split(self, value: Value, call: str, name: str) -> tuple[Value, Value]:
        """Return the two parts, unchecked; None stands for two times None."""
        if value is None:
            return None, None
        items = as_tuple(value)
        if items is None or len(items) != 2:
            raise ParameterError.invalid(call, name, self.expected, value)
        return items[0], items[1]


class PlaceType(PairType):
    """A position: (x, y), or a corner, an edge or the center by name."""

    def __init__(self) -> None:
        super().__init__("x, y", NumberType(), NumberType())
        self.json = OneOf(self.json, JsonChoice(PLACES))
        self.annotation = f"str | {self.annotation}"
        self.expected = "(x, y) or a name such as 'top-right'"


class SizeType(PairType):
    """A size: (width, height), each of which may be None."""

    def __init__(self) -> None:
        side = NumberType(0.0, optional=True)
        super().__init__("width, height", side, side)


class PathType(PropertyType):
    """The path of a file. Scene files keep it relative; ``json`` may allow more, such as a URL."""

    def __init__(
        self, annotation: str, json: JsonType | None = None, *, optional: bool = False
    ) -> None:
        super().__init__(
            json or JsonString("the path of a file", shortest=1), annotation, optional=optional
        )


class ParsedType(PropertyType):
    """A value that a function checks, such as a frame rate."""

    def __init__(
        self, json: JsonType, annotation: str, parse: Callable[[Value], object] | None = None
    ) -> None:
        super().__init__(json, annotation)
        self._parse = parse

    def convert_value(self, value: Value, call: str, name: str) -> Value:
        """Return the value after the function accepted it."""
        if self._parse is not None:
            self._parse(value)
        return value


class TimeType(PropertyType):
    """A time in seconds, kept as a fraction; text such as "1:02:03.5" is one, too."""

    def __init__(
        self, *, optional: bool = False, positive: bool = False, words: Iterable[str] = ()
    ) -> None:
        text = ParsedString(
            "a time such as '1:02:03.5'", words,
            lambda value: value in words or seconds_of(value, "load_scene", "time"),
        )  # fmt: skip
        json = OneOf(PositiveNumber(LATEST) if positive else JsonNumber(-LATEST, LATEST), text)
        super().__init__(json, "TimeLike", optional=optional)

    def convert_value(self, value: Value, call: str, name: str) -> Fraction:
        """Return the time."""
        return seconds_of(value, call, name)

    def dump_value(self, value: Value) -> JsonValue:
        """Return seconds; a fraction that no float stands for is text such as "1/3"."""
        exact = to_fraction("time", float(value))
        return plain_json(value) if exact == value else str(value)


def as_tuple(value: Value) -> tuple[Value, ...] | None:
    """Return the items of a tuple, list or array; None for anything else.

    >>> as_tuple([1, 2]), as_tuple("ab"), as_tuple(3)
    ((1, 2), None, None)
    """
    if isinstance(value, str | bytes | dict):
        return None
    found = items_of(value)
    return None if found is None else tuple(found)


def hex_color(color: Sequence[float]) -> str:
    """Return a color as a hexadecimal string.

    >>> hex_color((255, 128, 0, 255)), hex_color((0, 0, 0, 0))
    ('#ff8000', '#00000000')
    """
    r, g, b, a = (round(n) for n in color)
    return f"#{r:02x}{g:02x}{b:02x}" + ("" if a == 255 else f"{a:02x}")


def plain_json(value: Value) -> JsonValue:
    """Return numbers and sequences as JSON has them; whole floats become integers.

    >>> plain_json((1.0, 2.5))
    [1, 2.5]
    """
    if isinstance(value, tuple | list):
        return [plain_json(item) for item in value]
    if hasattr(value, "item") and not getattr(value, "shape", ()):
        value = value.item()
    if isinstance(value, Fraction):
        value = float(value)
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1 << 53:
        return int(value)
    return value
