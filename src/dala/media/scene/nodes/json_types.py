"""Types of JSON values in scene files: each checks a value and describes itself as JSON Schema.

``check(value, at, problems)`` appends one line to ``problems`` for every mistake, starting with
its location (``nodes[2].position[1]``). It never raises, so one run reports all mistakes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, TypeAlias

from dala.budget import checked
from dala.errors import ColorError, DalaError, did_you_mean
from dala.gpu.color import NAMED, rgba_of

#: A value read from a JSON file. ``Any`` is deliberate: the types below check it.
JsonValue: TypeAlias = Any
#: A JSON value, for public signatures.
JsonData: TypeAlias = (
    "bool | int | float | str | Sequence[JsonData] | Mapping[str, JsonData] | None"
)
#: A JSON Schema, or a part of one.
Schema: TypeAlias = dict[str, JsonValue]
#: An object of a scene file.
JsonItem: TypeAlias = dict[str, JsonValue]

#: Positions, sizes and other numbers without bounds of their own lie within this range.
LIMIT: Final = 1_000_000.0
#: Mistakes after which no others are looked for.
MAX_PROBLEMS: Final = 1000
#: Characters of a value that an error message shows.
_MOST_SHOWN: Final = 60
#: The names of the calls that errors of the builder methods start with.
_CALL: Final = re.compile(
    r"(add_\w+(\('[^']*'\))?|(Scene|Frame|TexturePool|video)\.\w+|Scene|easing|open_source|TextStyle"
    r"|load_subtitles|transition|fonts?|layout|grid|stack|side_by_side|[^ :]+: get): "
)


class JsonDict(dict[str, JsonValue]):
    """A JSON object that remembers keys which occur more than once, as ``repeated``."""

    repeated: tuple[str, ...] = ()


def format_value(value: JsonValue) -> str:
    """Return a JSON value as error messages show it.

    >>> format_value("left"), format_value(True), format_value([1, None])
    ("'left'", 'true', '[1, null]')
    """
    text = repr(value) if isinstance(value, str) else json.dumps(value, default=repr)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}.."


def refusal(at: str, expected: str, value: JsonValue, hint: str = "") -> str:
    """Return the line that reports a refused value.

    >>> refusal("nodes[0].opacity", "a number from 0 to 1", 2)
    'nodes[0].opacity: must be a number from 0 to 1, got 2.'
    """
    return f"{at}: must be {expected}, got {format_value(value)}. {hint}".rstrip()


class JsonType:
    """Any JSON value; the base of the other types."""

    #: What is expected, as error messages say it.
    expected = "any value"
    #: The Python types of the outermost form of a value.
    form: ClassVar[type | tuple[type, ...]] = object
    #: The type as JSON Schema, where it is always the same.
    SCHEMA: ClassVar[Schema] = {}

    def fits(self, value: JsonValue) -> bool:
        """Return True if the outermost form of a value (number, list, ...) is right."""
        return isinstance(value, self.form)

    def accepts(self, value: JsonValue) -> bool:
        """Return True if a value of the right form is accepted, apart from its contents."""
        return True

    def hint(self, value: JsonValue) -> str:
        """Return advice about a refused value; "" for none."""
        return ""

    def check(self, value: JsonValue, at: str, problems: list[str]) -> None:
        """Append a line to ``problems`` for each mistake in a value."""
        if self.fits(value) and self.accepts(value):
            self.check_inside(value, at, problems)
        else:
            problems.append(refusal(at, self.expected, value, self.hint(value)))

    def check_inside(self, value: JsonValue, at: str, problems: list[str]) -> None:
        """Append a line for each mistake inside an accepted value."""

    def schema(self) -> Schema:
        """Return the type as JSON Schema."""
        return self.SCHEMA


class JsonNumber(JsonType):
    """A finite number within bounds."""

    form = (int, float)

    def __init__(self, low: float = -LIMIT, high: float = LIMIT, *, integer: bool = False) -> None:
        self.low, self.high, self.integer = low, high, integer
        self.expected = ("an integer" if integer else "a number") + bounds_text(low, high)

    def fits(self, value: JsonValue) -> bool:
        """Return True for numbers; booleans are not numbers."""
        return super().fits(value) and not isinstance(value, bool)

    def accepts(self, value: JsonValue) -> bool:
        """Return True within the bounds."""
        inside = self.low <= value <= self.high
        return inside and (not self.integer or bool(value == math.floor(value)))

    def schema(self) -> Schema:
        """Return type and bounds."""
        made: Schema = {"type": "integer" if self.integer else "number"}
        return made | {"minimum": self.low, "maximum": self.high}


def bounds_text(low: float, high: float) -> str:
    """Return the bounds of a number as error messages say them.

    >>> bounds_text(0, 1), bounds_text(0, LIMIT), bounds_text(-LIMIT, LIMIT)
    (' from 0 to 1', ' of at least 0', '')
    """
    if (low, high) == (-LIMIT, LIMIT):
        return ""
    return f" of at least {low:g}" if high >= LIMIT else f" from {low:g} to {high:g}"


class PositiveNumber(JsonNumber):
    """A number above 0."""

    def __init__(self, high: float = LIMIT) -> None:
        super().__init__(0.0, high)
        self.expected = "a number above 0" + (f" and up to {high:g}" if high < LIMIT else "")

    def accepts(self, value: JsonValue) -> bool:
        """Return True above 0 and up to the bound."""
        return bool(0 < value <= self.high)

    def schema(self) -> Schema:
        """Return type and bounds."""
        return {"type": "number", "exclusiveMinimum": 0, "maximum": self.high}


class JsonBoolean(JsonType):
    """True or false."""

    expected = "true or false"
    form = bool
    SCHEMA: ClassVar[Schema] = {"type": "boolean"}


class JsonNull(JsonType):
    """Null, which means the same as leaving the key out."""

    expected = "null"
    form = type(None)
    SCHEMA: ClassVar[Schema] = {"type": "null"}


@dataclass(eq=False)
class JsonString(JsonType):
    """A string of at least ``shortest`` characters; ``expected`` is its meaning."""

    form = str

    expected: str = "a string"
    shortest: int = 0

    def fits(self, value: JsonValue) -> bool:
        """Return True for strings that are long enough."""
        return super().fits(value) and len(value) >= self.shortest

    def schema(self) -> Schema:
        """Return the type and the least length."""
        return {"type": "string"} | ({"minLength": self.shortest} if self.shortest else {})


class JsonChoice(JsonType):
    """One of several strings; errors suggest the nearest."""

    form = str

    def __init__(self, choices: Iterable[str]) -> None:
        self.choices = tuple(choices)
        self.expected = f"one of {', '.join(map(repr, self.choices))}"

    def accepts(self, value: JsonValue) -> bool:
        """Return True for one of the choices."""
        return value in self.choices

    def hint(self, value: JsonValue) -> str:
        """Return the nearest choice."""
        return did_you_mean(value, self.choices) if isinstance(value, str) else ""

    def schema(self) -> Schema:
        """Return the choices."""
        return {"enum": list(self.choices)}


class ParsedValue(JsonType):
    """A value that a function reads; its errors are those of the value.

    Args:
        expected: what errors say that a value must be.
        form: the types of values that are read.
        parse: raises an error if the value is wrong.
        schema: the schema.
    """

    def __init__(
        self, expected: str, form: type | tuple[type, ...], parse: Callable[[JsonValue], object],
        schema: Schema,
    ) -> None:  # fmt: skip
        self.expected = expected
        self._form, self._parse, self._schema = form, parse, schema

    def fits(self, value: JsonValue) -> bool:
        """Return True if the value has the form; a string must not be empty."""
        return isinstance(value, self._form) and value != ""

    def check_inside(self, value: JsonValue, at: str, problems: list[str]) -> None:
        """Append the error of reading the value, if there is one."""
        try:
            self._parse(value)
        except (DalaError, ValueError, KeyError) as error:
            problems.append(f"{at}: {without_call(error)}")

    def schema(self) -> Schema:
        """Return the schema."""
        return self._schema


class ParsedString(ParsedValue):
    """A string that a function reads; the schema suggests examples."""

    def __init__(
        self, expected: str, examples: Iterable[str], parse: Callable[[str], object]
    ) -> None:
        self.examples = tuple(examples)
        anything: Schema = {"type": "string", "minLength": 1}
        named: Schema = {"anyOf": [{"enum": list(self.examples)}, anything]}
        super().__init__(expected, str, parse, named if self.examples else anything)


class JsonColor(JsonType):
    """A CSS name, "#rrggbb", "#rrggbbaa", or a list of three or four numbers."""

    expected = "a color"
    form: ClassVar[type | tuple[type, ...]] = (str, list)
    SCHEMA: ClassVar[Schema] = {"$ref": "#/$defs/color"}

    def check_inside(self, value: JsonValue, at: str, problems: list[str]) -> None:
        """Append the reason if it is no color."""
        try:
            rgba_of(value, "load_scene", "color")
        except ColorError as error:
            problems.append(f"{at}: {str(error).removeprefix('load_scene: color ')}")

    @staticmethod
    def definition() -> Schema:
        """Return the definition that the reference names."""
        part = {"type": "integer", "minimum": 0, "maximum": 255}
        return {
            "anyOf": [
                {"enum": list(NAMED)},
                {"type": "string", "pattern": "^ *(#[0-9a-fA-F]{3,8}|[a-zA-Z ]+) *$"},
                {"type": "array", "items": part, "minItems": 3, "maxItems": 4},
            ]
        }


class FixedList(JsonType):
    """A list of a fixed number of values, each of its own type; trailing ones may be optional."""

    form = list

    def __init__(self, expected: str, *items: JsonType, shortest: int | None = None) -> None:
        self.expected = expected
        self.items = items
        self.shortest = len(items) if shortest is None else shortest

    def accepts(self, value: JsonValue) -> bool:
        """Return True for the right number of items."""
        return self.shortest <= len(value) <= len(self.items)

    def check_inside(self, value: JsonValue, at: str, problems: list[str]) -> None:
        """Append lines for the items."""
        for i, item in enumerate(value):
            self.items[i].check(item, f"{at}[{i}]", problems)

    def schema(self) -> Schema:
        """Return the types of the items."""
        items = [kind.schema() for kind in self.items]
        return {"type": "array", "prefixItems": items, "items": False, "minItems": self.shortest}


@dataclass(eq=False)
class ListOf(JsonType):
    """A list of any length with items of one type."""

    form = list

    item: JsonType
    expected: str
    shortest: int = 0

    def accepts(self, value: JsonValue) -> bool:
        """Return True for enough items."""
        return len(value) >= self.shortest

    def check_inside(self, value: JsonValue, at: str, problems: list[str]) -> None:
        """Append lines for the items."""
        for i, item in checked(enumerate(value), "load_scene"):
            self.item.check(item, f"{at}[{i}]", problems)
            if len(problems) >= MAX_PROBLEMS:
                break

    def schema(self) -> Schema:
        """Return the type of the items."""
        made: Schema = {"type": "array", "items": self.item.schema()}
        return made | ({"minItems": self.shortest} if self.shortest else {})


class OneOf(JsonType):
    """One of several types that differ in their outermost form."""

    def __init__(self, *options: JsonType) -> None:
        self.options = options
        self.expected = " or ".join(option.expected for option in options)

    def fits(self, value: JsonValue) -> bool:
        """Return True if one of the types has the form of the value."""
        return any(option.fits(value) for option in self.options)

    def check_inside(self, value: JsonValue, at: str, problems: list[str]) -> None:
        """Append lines of the type that has the form of the value."""
        next(option for option in self.options if option.fits(value)).check(value, at, problems)

    def schema(self) -> Schema:
        """Return the types."""
        return {"anyOf": [option.schema() for option in self.options]}


@dataclass
class Field:
    """A key of a JSON object: its type, its description, and whether it is required."""

    kind: JsonType
    description: str = ""
    required: bool = False

    def schema(self) -> Schema:
        """Return the type's schema with the description."""
        described = {"description": self.description} if self.description else {}
        return described | self.kind.schema()


class JsonObject(JsonType):
    """An object with known keys; an unknown key is refused and the nearest suggested."""

    form = dict

    def __init__(self, expected: str, fields: Mapping[str, Field]) -> None:
        self.expected = expected
        self.fields = dict(fields)

    def check(self, value: JsonValue, at: str, problems: list[str]) -> None:
        """Append lines for the object; the outermost one is the file."""
        super().check(value, at if self.fits(value) else at or "the file", problems)

    def check_inside(self, value: JsonValue, at: str, problems: list[str]) -> None:
        """Append lines for repeated, unknown and missing keys, and for the values."""
        for name in getattr(value, "repeated", ()):
            problems.append(f"{join(at, name)}: the key occurs twice. Remove one.")
        for name, item in value.items():
            field = self.fields.get(name)
            if field is not None:
                field.kind.check(item, join(at, name), problems)
                continue
            hint = did_you_mean(name, self.fields) or f"Known keys: {', '.join(self.fields)}."
            problems.append(f"{join(at, name)}: {self.expected} has no such key. {hint}")
            if len(problems) >= MAX_PROBLEMS:
                break
        for name, field in self.fields.items():
            if field.required and name not in value:
                problems.append(f"{join(at, name)}: missing; must be {field.kind.expected}.")

    def schema(self) -> Schema:
        """Return the keys and which of them are required."""
        required = [name for name, field in self.fields.items() if field.required]
        made: Schema = {"type": "object", "additionalProperties": False}
        if required:
            made["required"] = required
        return made | {"properties": {n: f.schema() for n, f in self.fields.items()}}


def join(at: str, name: str) -> str:
    """Return the location of a key inside the object at ``at``.

    >>> join("nodes[0]", "text"), join("", "width")
    ('nodes[0].text', 'width')
    """
    return f"{at}.{name}" if at else name


def without_call(error: BaseException) -> str:
    """Return an error's text without the call it starts with; a location takes its place.

    >>> without_call(ValueError("add_effect('blur'): radius must be within 0..200, got -3."))
    'radius must be within 0..200, got -3.'
    """
    text = str(error) or type(error).__name__
    while found := _CALL.match(text):
        text = text[found.end() :]
    return text
