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

from dala.arguments import ArgumentKind, Selection, items_of
from dala.errors import ParameterError
from dala.gpu.color import NAMED, rgba_of
from dala.media.scene.nodes import json_types as j
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
#: How content fills a box: the names of ``resize``, "none", and "fill", another name of "stretch".
FITS: Final = ("stretch", "contain", "cover", "pad", "none", "fill", "letterbox", "crop")


class PropertyType(ArgumentKind[Value]):
    """The type of a property; this base accepts any value, and keeps lists as tuples.

    Args:
        json: the form of a value in a scene file.
        annotation: the values that calls accept, as a type annotation.
        animatable: whether values can be interpolated.
        optional: whether None is accepted, which stands for "not set".
    """

    #: Plain numbers between these bounds need no conversion; the empty range turns that off.
    low, high = 1.0, 0.0

    def __init__(
        self, json: j.JsonType, annotation: str, *, animatable: bool = False, optional: bool = False
    ) -> None:
        self.json = j.OneOf(json, j.JsonNull()) if optional else json
        self.annotation = f"{annotation} | None" if optional else annotation
        self.animatable = animatable
        self.optional = optional

    def accept(self, value: Value) -> Value:
        """Return a value in the form that nodes keep it."""
        return tuple(value) if isinstance(value, list) else value

    def check(self, call: str, argument: str, value: Value) -> Value:
        """Return a value in the form that nodes keep it.

        Raises:
            ParameterError: the value is not of this type.
        """
        if value is None and self.optional:
            return None
        return self.check_value(call, argument, value)

    def check_value(self, call: str, argument: str, value: Value) -> Value:
        """Return a value other than None in the form that nodes keep it."""
        return super().check(call, argument, value)

    def dump(self, value: Value) -> j.JsonValue:
        """Return a kept value as scene files have it."""
        return None if value is None else self.dump_value(value)

    def dump_value(self, value: Value) -> j.JsonValue:
        """Return a kept value other than None as scene files have it."""
        return plain_json(value)


class NumberType(PropertyType):
    """A finite number within bounds; errors name the ``unit``."""

    def __init__(
        self,
        low: float = -j.LIMIT,
        high: float = j.LIMIT,
        *,
        unit: str = "",
        optional: bool = False,
    ) -> None:
        json = j.JsonNumber(low, high)
        super().__init__(json, "float", animatable=True, optional=optional)
        self.low, self.high = low, high
        self.expected = f"{json.expected} {unit}".rstrip() + (" or None" if optional else "")

    def accept(self, value: Value) -> float:
        """Return the number as a float."""
        found = math.nan if isinstance(value, bool | str) else float(value)
        if self.low <= found <= self.high:
            return found
        raise ValueError


class BooleanType(PropertyType):
    """True or False."""

    expected = "True or False"

    def __init__(self) -> None:
        super().__init__(j.JsonBoolean(), "bool", animatable=True)

    def accept(self, value: Value) -> bool:
        """Return the value as a bool."""
        if value is True or value is False or type(value).__name__ in ("bool", "bool_"):
            return bool(value)
        raise TypeError


class ChoiceType(PropertyType):
    """One of several strings; errors suggest the nearest."""

    def __init__(self, choices: Iterable[str]) -> None:
        self.choices = tuple(choices)
        self._kind = Selection(*self.choices)
        super().__init__(j.JsonChoice(self.choices), "str")

    def check_value(self, call: str, argument: str, value: Value) -> str:
        """Return the string if it is one of the choices."""
        return str(self._kind.check(call, argument, value))


class StringType(PropertyType):
    """A string; ``expected`` is its meaning in errors about scene files."""

    def __init__(
        self, expected: str = "a string", *, shortest: int = 0, optional: bool = False
    ) -> None:
        super().__init__(j.JsonString(expected, shortest=shortest), "str", optional=optional)

    def check_value(self, call: str, argument: str, value: Value) -> str:
        """Return the string."""
        if not isinstance(value, str):
            raise ParameterError.invalid(call, argument, "a str", value, "Use str(value).")
        return value


class ColorType(PropertyType):
    """A color, kept as (r, g, b, a)."""

    def __init__(self, *, optional: bool = False) -> None:
        super().__init__(j.JsonColor(), "ColorLike", animatable=True, optional=optional)

    def check_value(self, call: str, argument: str, value: Value) -> Rgba:
        """Return the color; animations produce fractions, which are rounded."""
        items = as_tuple(value)
        if items is not None and any(isinstance(i, float) for i in items):
            value = tuple(
                round(i) if isinstance(i, float) and math.isfinite(i) else i for i in items
            )
        r, g, b, a = rgba_of(value, call, argument)
        return r, g, b, a

    def dump_value(self, value: Value) -> str:
        """Return the color as "#rrggbb" or "#rrggbbaa"."""
        return hex_color(value)


class TupleType(PropertyType):
    """Several values in order, each of a type of its own.

    Args:
        names: the names of the parts, for errors.
        parts: their types.
        expected: what errors say that a value must be; by default the names.
        annotation: the values that calls accept.
        placed: whether the name of a place is accepted too.
        optional: whether None is accepted.
    """

    def __init__(
        self, names: str, *parts: PropertyType, expected: str = "",
        annotation: str = "Sequence[float]", placed: bool = False, optional: bool = False,
    ) -> None:  # fmt: skip
        row: j.JsonType = j.FixedList(f"[{names}]", *(part.json for part in parts))
        super().__init__(
            j.OneOf(row, j.JsonChoice(PLACES)) if placed else row,
            f"str | {annotation}" if placed else annotation,
            animatable=all(part.animatable for part in parts),
            optional=optional,
        )
        self.parts = parts
        self.expected = expected or f"({names})"

    def check_value(self, call: str, argument: str, value: Value) -> tuple[Value, ...]:
        """Return the parts, checked."""
        parts = zip(self.parts, self.split(call, argument, value), strict=True)
        return tuple(kind.check(call, argument, part) for kind, part in parts)

    def split(self, call: str, argument: str, value: Value) -> tuple[Value, ...]:
        """Return the parts, unchecked."""
        return parts_of(value, (len(self.parts),), call, argument, self.expected)


class AnchorType(TupleType):
    """A point of a box, as fractions of its size or by name."""

    def __init__(self, *, optional: bool = False) -> None:
        fraction = NumberType(-1000, 1000)
        expected = "a name such as 'center' or two fractions of the size such as (0.5, 1)"
        super().__init__(
            "across, down", fraction, fraction, expected=expected, placed=True, optional=optional
        )

    def check_value(self, call: str, argument: str, value: Value) -> tuple[Value, ...]:
        """Return the fractions across and down."""
        if isinstance(value, str):
            return place_of(call, argument, value)
        return super().check_value(call, argument, value)

    def dump_value(self, value: Value) -> j.JsonValue:
        """Return the name of the point if it has one, else the fractions."""
        named = (place for place, point in PLACES.items() if point == value)
        return next(named, plain_json(value))


class CropType(TupleType):
    """Left, top, width and height in pixels of the content, or None for all of it."""

    def __init__(self) -> None:
        length, above = NumberType(0.0), NumberType(0.0)
        above.json = j.PositiveNumber()
        names = "left, top, width, height"
        expected = f"({names}) in pixels of the content"
        super().__init__(names, length, length, above, above, expected=expected, optional=True)

    def check_value(self, call: str, argument: str, value: Value) -> tuple[Value, ...]:
        """Return the four numbers."""
        made = super().check_value(call, argument, value)
        if min(made[2:]) > 0:
            return made
        expected = "a rectangle with width and height above 0"
        raise ParameterError.invalid(call, argument, expected, value)


class ShadowType(PropertyType):
    """Horizontal and vertical offset, blur and color; True stands for a default shadow."""

    def __init__(self, offset: float = j.LIMIT, blur: float = 400.0) -> None:
        number = j.JsonNumber(-offset, offset)
        row = j.FixedList(
            "[dx, dy, blur, color]",
            number,
            number,
            j.JsonNumber(0, blur),
            j.JsonColor(),
            shortest=3,
        )
        annotation = "tuple[float, float, float] | tuple[float, float, float, ColorLike] | bool"
        super().__init__(
            j.OneOf(row, j.JsonBoolean(), j.JsonNull()), f"{annotation} | None", animatable=True
        )
        self._blur = blur

    def check_value(self, call: str, argument: str, value: Value) -> Shadow | None:
        """Return the four parts, or None for no shadow."""
        if value is None or value is False:
            return None
        if value is True:
            return 0.0, 4.0, 12.0, (0, 0, 0, 128)
        expected = "(dx, dy, blur) or (dx, dy, blur, color), True or None"
        items = parts_of(value, (3, 4), call, argument, expected)
        dx, dy = (NumberType().check(call, argument, item) for item in items[:2])
        blur = NumberType(0.0, self._blur).check(call, f"blur of {argument}", items[2])
        color = ColorType().check(call, argument, (*items, (0, 0, 0, 128))[3])
        return dx, dy, blur, color

    def dump_value(self, value: Value) -> j.JsonValue:
        """Return the four parts as a list."""
        return [*plain_json(value[:3]), hex_color(value[3])]


class FontType(PropertyType):
    """A font family, the path of a font file, or several; scene files keep paths relative."""

    def __init__(self) -> None:
        one = j.JsonString("a font family or the path of a font file", shortest=1)
        json = j.OneOf(one, j.ListOf(one, "a list of fonts", shortest=1))
        super().__init__(json, "str | os.PathLike[str] | Sequence[str]", optional=True)


class PairType(TupleType):
    """Two values under one name, such as (x, y), of two properties."""

    def __init__(
        self, names: str, *parts: PropertyType, expected: str = "", placed: bool = False
    ) -> None:
        annotation = f"tuple[{', '.join(part.annotation for part in parts)}] | Sequence[float]"
        super().__init__(names, *parts, expected=expected, annotation=annotation, placed=placed)

    def split(self, call: str, argument: str, value: Value) -> tuple[Value, ...]:
        """Return the two parts, unchecked; None stands for two times None."""
        return (None, None) if value is None else super().split(call, argument, value)


class PlaceType(PairType):
    """A position: (x, y), or a corner, an edge or the center by name."""

    def __init__(self) -> None:
        expected = "(x, y) or a name such as 'top-right'"
        super().__init__("x, y", NumberType(), NumberType(), expected=expected, placed=True)


#: A size: (width, height), each of which may be None.
SIZE: Final = PairType("width, height", *[NumberType(0.0, optional=True)] * 2)


class PathType(PropertyType):
    """The path of a file. Scene files keep it relative; ``json`` may allow more, such as a URL."""

    def __init__(
        self, annotation: str, json: j.JsonType | None = None, *, optional: bool = False
    ) -> None:
        super().__init__(
            json or j.JsonString("the path of a file", shortest=1), annotation, optional=optional
        )


class TimeType(PropertyType):
    """A time in seconds, kept as a fraction; text such as "1:02:03.5" is one, too."""

    def __init__(
        self, *, optional: bool = False, positive: bool = False, words: Iterable[str] = ()
    ) -> None:
        text = j.ParsedString(
            "a time such as '1:02:03.5'", words,
            lambda value: value in words or seconds_of(value, "load_scene", "time"),
        )  # fmt: skip
        json = j.OneOf(
            j.PositiveNumber(LATEST) if positive else j.JsonNumber(-LATEST, LATEST), text
        )
        super().__init__(json, "TimeLike", optional=optional)

    def check_value(self, call: str, argument: str, value: Value) -> Fraction:
        """Return the time."""
        return seconds_of(value, call, argument)

    def dump_value(self, value: Value) -> j.JsonValue:
        """Return seconds; a fraction that no float stands for is text such as "1/3"."""
        exact = to_fraction("time", float(value))
        return plain_json(value) if exact == value else str(value)


def place_of(call: str, argument: str, name: str) -> tuple[float, float]:
    """Return a place by its name, as fractions of a box; "top_left" is "top-left"."""
    return PLACES[ChoiceType(PLACES).check(call, argument, name.replace("_", "-"))]


def as_tuple(value: Value) -> tuple[Value, ...] | None:
    """Return the items of a tuple, list or array; None for anything else.

    >>> as_tuple([1, 2]), as_tuple("ab"), as_tuple(3)
    ((1, 2), None, None)
    """
    if isinstance(value, str | bytes | dict):
        return None
    found = items_of(value)
    return None if found is None else tuple(found)


def parts_of(
    value: Value, counts: tuple[int, ...], call: str, name: str, expected: str
) -> tuple[Value, ...]:
    """Return the items of a value; raise unless it has one of some numbers of them.

    >>> parts_of([1, 2], (2,), "add_image", "size", "(width, height)")
    (1, 2)
    """
    items = as_tuple(value)
    if items is None or len(items) not in counts:
        raise ParameterError.invalid(call, name, expected, value)
    return items


def is_color_name(text: str) -> bool:
    """Return True if a text is a color, not the name of a file.

    >>> is_color_name("light blue"), is_color_name("sky.png")
    (True, False)
    """
    return text.startswith("#") or text.strip().lower().replace(" ", "") in NAMED


def hex_color(color: Sequence[float]) -> str:
    """Return a color as a hexadecimal string.

    >>> hex_color((255, 128, 0, 255)), hex_color((0, 0, 0, 0))
    ('#ff8000', '#00000000')
    """
    r, g, b, a = (round(n) for n in color)
    return f"#{r:02x}{g:02x}{b:02x}" + ("" if a == 255 else f"{a:02x}")


def plain_json(value: Value) -> j.JsonValue:
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
