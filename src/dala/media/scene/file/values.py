"""Kinds of values in a scene file: each checks a value, and says the same as JSON Schema.

``check(value, at, told)`` appends a line to ``told`` for whatever is wrong, beginning with where it
is (``nodes[2].position[1]``); it raises nothing, so that all that is wrong is told at once.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from dala.errors import ColorError, did_you_mean
from dala.gpu.color import NAMED, color_to_rgba
from dala.media.scene.nodes.properties import FAR

Schema = dict[str, Any]
#: Longest text of a value in an error.
_LONG: Final = 60
#: How errors of the calls begin that a scene is made by.
_CALL: Final = re.compile(
    r"(add_\w+(\('[^']*'\))?|(Scene|Frame|TexturePool|video)\.\w+|Scene|easing|open_source|TextStyle"
    r"|load_subtitles|font|layout|grid|stack|side_by_side|[^ :]+: get): "
)


class Entry(dict[str, Any]):
    """An object of a JSON file; ``twice`` are keys that stand in it more than once."""

    twice: tuple[str, ...] = ()


def shown(value: Any) -> str:
    """A value as an error shows it.

    >>> shown("left"), shown(True), shown([1, None])
    ("'left'", 'true', '[1, null]')
    """
    text = repr(value) if isinstance(value, str) else json.dumps(value, default=repr)
    return text if len(text) <= _LONG else f"{text[:_LONG]}.."


class Kind:
    """Anything."""

    #: What is expected, in words.
    words = "anything"

    def fits(self, value: Any) -> bool:
        """Whether a value is of this kind as far as its outermost form goes."""
        return True

    def check(self, value: Any, at: str, told: list[str]) -> None:
        """Tells what is wrong with a value."""
        if not self.fits(value):
            told.append(f"{at}: {self.words} is expected, {shown(value)} came.")

    def schema(self) -> Schema:
        """The same as JSON Schema."""
        return {}


class Number(Kind):
    """A finite number within bounds."""

    def __init__(self, low: float = -FAR, high: float = FAR, *, whole: bool = False) -> None:
        self.low, self.high, self.whole = low, high, whole
        bounds = "" if (low, high) == (-FAR, FAR) else f" of {low:g} or more"
        if bounds and high < FAR:
            bounds = f" of {low:g} to {high:g}"
        self.words = ("a whole number" if whole else "a number") + bounds

    def fits(self, value: Any) -> bool:
        """A number, true and false not among them."""
        return isinstance(value, int | float) and not isinstance(value, bool)

    def check(self, value: Any, at: str, told: list[str]) -> None:
        """A number of the right size."""
        good = self.fits(value) and self.low <= value <= self.high
        if not good or (self.whole and value != math.floor(value)):
            told.append(f"{at}: {self.words} is expected, {shown(value)} came.")

    def schema(self) -> Schema:
        """Its type and bounds."""
        made: Schema = {"type": "integer" if self.whole else "number"}
        return made | {"minimum": self.low, "maximum": self.high}


class Above(Number):
    """A number above 0."""

    def __init__(self, high: float = FAR) -> None:
        super().__init__(0.0, high)
        self.words = "a number above 0" + (f" and up to {high:g}" if high < FAR else "")

    def check(self, value: Any, at: str, told: list[str]) -> None:
        """A number above 0."""
        if not (self.fits(value) and 0 < value <= self.high):
            told.append(f"{at}: {self.words} is expected, {shown(value)} came.")

    def schema(self) -> Schema:
        """Its type and bounds."""
        return {"type": "number", "exclusiveMinimum": 0, "maximum": self.high}


class Truth(Kind):
    """True or false."""

    words = "true or false"

    def fits(self, value: Any) -> bool:
        """One of the two."""
        return isinstance(value, bool)

    def schema(self) -> Schema:
        """Its type."""
        return {"type": "boolean"}


class Null(Kind):
    """Nothing: as if it were left out."""

    words = "null"

    def fits(self, value: Any) -> bool:
        """Null."""
        return value is None

    def schema(self) -> Schema:
        """Its type."""
        return {"type": "null"}


class Text(Kind):
    """A text; ``what`` says which, and ``least`` how many letters it has at least."""

    def __init__(self, what: str = "a text", *, least: int = 0) -> None:
        self.words = what
        self.least = least

    def fits(self, value: Any) -> bool:
        """A text."""
        return isinstance(value, str) and len(value) >= self.least

    def schema(self) -> Schema:
        """Its type."""
        return {"type": "string"} | ({"minLength": self.least} if self.least else {})


class Word(Kind):
    """One of some words; the nearest is offered otherwise."""

    def __init__(self, known: Iterable[str]) -> None:
        self.known = tuple(known)
        self.words = " or ".join(map(repr, self.known[:2])) if len(self.known) < 3 else "a word"

    def fits(self, value: Any) -> bool:
        """A text."""
        return isinstance(value, str)

    def check(self, value: Any, at: str, told: list[str]) -> None:
        """One of them."""
        if isinstance(value, str) and value in self.known:
            return
        hint = did_you_mean(value, self.known) if isinstance(value, str) else ""
        listed = ", ".join(map(repr, self.known))
        text = f"{at}: one of {listed} is expected, {shown(value)} came. {hint}"
        told.append(text.rstrip())

    def schema(self) -> Schema:
        """The words."""
        return {"enum": list(self.known)}


class Tried(Text):
    """A text that some function takes, or refuses with a reason."""

    def __init__(self, what: str, examples: Iterable[str], attempt: Callable[[Any], Any]) -> None:
        super().__init__(what, least=1)
        self.examples = tuple(examples)
        self.attempt = attempt

    def check(self, value: Any, at: str, told: list[str]) -> None:
        """A text that it takes."""
        super().check(value, at, told)
        if self.fits(value):
            try:
                self.attempt(value)
            except (ValueError, KeyError) as error:
                told.append(f"{at}: {unprefixed(error)}")

    def schema(self) -> Schema:
        """What there is, and any other text: the file may use more than comes along."""
        return {"anyOf": [{"enum": list(self.examples)}, super().schema()]}


class Color(Kind):
    """A CSS name, "#rrggbb", "#rrggbbaa", or a list of three or four numbers."""

    words = "a colour"

    def fits(self, value: Any) -> bool:
        """A text or a list."""
        return isinstance(value, str | list)

    def check(self, value: Any, at: str, told: list[str]) -> None:
        """A colour."""
        try:
            color_to_rgba(value if self.fits(value) else "")
        except ColorError as error:
            came = str(error).partition(": ")[2]
            if not self.fits(value):
                came = f"a colour is expected, {shown(value)} came."
            told.append(f"{at}: {came}")

    def schema(self) -> Schema:
        """What $defs has of it."""
        return {"$ref": "#/$defs/color"}

    @staticmethod
    def definition() -> Schema:
        """The three forms, and names as they may be written besides."""
        part = {"type": "integer", "minimum": 0, "maximum": 255}
        return {
            "anyOf": [
                {"enum": list(NAMED)},
                {"type": "string", "pattern": "^ *(#[0-9a-fA-F]{3,8}|[a-zA-Z ]+) *$"},
                {"type": "array", "items": part, "minItems": 3, "maxItems": 4},
            ]
        }


class ColorText(Color):
    """A colour that is written as a text, where a list may be something else."""

    def fits(self, value: Any) -> bool:
        """A text."""
        return isinstance(value, str)


class Row(Kind):
    """A list of so many values, each of its own kind; the last ones may be left out."""

    def __init__(self, words: str, *kinds: Kind, least: int | None = None) -> None:
        self.words = words
        self.kinds = kinds
        self.least = len(kinds) if least is None else least

    def fits(self, value: Any) -> bool:
        """A list."""
        return isinstance(value, list)

    def check(self, value: Any, at: str, told: list[str]) -> None:
        """As many values, each of its kind."""
        if not isinstance(value, list) or not self.least <= len(value) <= len(self.kinds):
            told.append(f"{at}: {self.words} is expected, {shown(value)} came.")
            return
        for i, item in enumerate(value):
            self.kinds[i].check(item, f"{at}[{i}]", told)

    def schema(self) -> Schema:
        """Item by item."""
        items = [kind.schema() for kind in self.kinds]
        return {"type": "array", "prefixItems": items, "items": False, "minItems": self.least}


class Many(Kind):
    """A list of any length of one kind."""

    def __init__(self, kind: Kind, words: str, *, least: int = 0) -> None:
        self.kind = kind
        self.words = words
        self.least = least

    def fits(self, value: Any) -> bool:
        """A list."""
        return isinstance(value, list)

    def check(self, value: Any, at: str, told: list[str]) -> None:
        """Every value."""
        if not isinstance(value, list) or len(value) < self.least:
            told.append(f"{at}: {self.words} is expected, {shown(value)} came.")
            return
        for i, item in enumerate(value):
            self.kind.check(item, f"{at}[{i}]", told)

    def schema(self) -> Schema:
        """The kind of its items."""
        made: Schema = {"type": "array", "items": self.kind.schema()}
        return made | ({"minItems": self.least} if self.least else {})


class Either(Kind):
    """One of several kinds that differ in their outermost form."""

    def __init__(self, *kinds: Kind) -> None:
        self.kinds = kinds
        self.words = " or ".join(kind.words for kind in kinds)

    def fits(self, value: Any) -> bool:
        """What one of them takes."""
        return any(kind.fits(value) for kind in self.kinds)

    def check(self, value: Any, at: str, told: list[str]) -> None:
        """By the first that it may be."""
        for kind in self.kinds:
            if kind.fits(value):
                kind.check(value, at, told)
                return
        told.append(f"{at}: {self.words} is expected, {shown(value)} came.")

    def schema(self) -> Schema:
        """All of them."""
        return {"anyOf": [kind.schema() for kind in self.kinds]}


class Field:
    """A key of an object: its kind, what it is about, and whether it must be there."""

    def __init__(self, kind: Kind, about: str = "", *, needed: bool = False) -> None:
        self.kind = kind
        self.about = about
        self.needed = needed

    def schema(self) -> Schema:
        """Its kind, described."""
        return ({"description": self.about} if self.about else {}) | self.kind.schema()


class Object(Kind):
    """Keys and values; a key that is not known is refused and the nearest offered."""

    def __init__(self, words: str, fields: Mapping[str, Field]) -> None:
        self.words = words
        self.fields = dict(fields)

    def fits(self, value: Any) -> bool:
        """An object."""
        return isinstance(value, dict)

    def check(self, value: Any, at: str, told: list[str]) -> None:
        """All its keys."""
        if not isinstance(value, dict):
            told.append(f"{at or 'the file'}: {self.words} is expected, {shown(value)} came.")
            return
        for name in getattr(value, "twice", ()):
            told.append(f"{join(at, name)}: it is there twice. Leave one out.")
        for name, item in value.items():
            field = self.fields.get(name)
            if field is not None:
                field.kind.check(item, join(at, name), told)
                continue
            hint = did_you_mean(name, self.fields) or f"There are: {', '.join(self.fields)}."
            told.append(f"{join(at, name)}: there is no such key in {self.words}. {hint}")
        for name, field in self.fields.items():
            if field.needed and name not in value:
                told.append(f"{join(at, name)}: it is missing: {field.kind.words} is expected.")

    def schema(self) -> Schema:
        """All its keys."""
        needed = [name for name, field in self.fields.items() if field.needed]
        made: Schema = {"type": "object", "additionalProperties": False}
        if needed:
            made["required"] = needed
        return made | {"properties": {n: f.schema() for n, f in self.fields.items()}}


def join(at: str, name: str) -> str:
    """Where a key of an object is."""
    return f"{at}.{name}" if at else name


def unprefixed(error: BaseException) -> str:
    """What an error says, without the call that it begins with: the place stands there instead.

    >>> unprefixed(ValueError("add_effect('blur'): radius must be within 0..200, -3 came."))
    'radius must be within 0..200, -3 came.'
    """
    text = str(error) or type(error).__name__
    while found := _CALL.match(text):
        text = text[found.end() :]
    return text
