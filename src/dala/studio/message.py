"""Messages of pages: parsed with bounds, and their arguments checked."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NoReturn

from dala.arguments import Flag, Integer, Quantity
from dala.errors import DalaError, KernelSyntaxError, ParameterError
from dala.studio.cards.card import Card
from dala.studio.cards.chain import describe_error
from dala.studio.catalogue.parameters import Json, JsonObject
from dala.studio.document.tab import Tab
from dala.untrusted.place import NewFile

if TYPE_CHECKING:
    from dala.studio.session import StudioSession

#: The deepest nesting of a message.
_DEEPEST: Final = 64
#: The longest time, in seconds.
_LATEST: Final = 1e7


def parsed(data: str | bytes, longest: int) -> JsonObject:
    """Return a message as an object.

    Raises:
        ParameterError: it is too long, not JSON, or not an object.

    >>> parsed('{"do": "undo"}', 100)
    {'do': 'undo'}
    """
    if isinstance(data, bytes):
        raise ParameterError("message: pages send text, not bytes.")
    # In UTF-8 a character takes up to four bytes.
    if len(data) > longest or (
        len(data) * 4 > longest and len(data.encode(errors="replace")) > longest
    ):
        raise ParameterError(f"message: a message must have at most {longest:,} bytes.")
    try:
        found: Json = json.loads(data, parse_constant=_constant)
    except RecursionError:
        raise ParameterError("message: lists and objects are nested too deep.") from None
    except ValueError as error:
        raise ParameterError(f"message: not JSON: {error}.") from None
    if not isinstance(found, dict):
        raise ParameterError.invalid("message", "a message", "an object", found)
    if _depth(found) > _DEEPEST:
        raise ParameterError("message: lists and objects are nested too deep.")
    return found


def _constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number in JSON")


def _depth(value: Json) -> int:
    level: list[Json] = [value]
    for depth in range(_DEEPEST + 1):
        inner: list[Json] = []
        for item in level:
            if isinstance(item, dict):
                inner += item.values()
            elif isinstance(item, list):
                inner += item
        if not inner:
            return depth
        level = inner
    return _DEEPEST + 1


class PageRequest:
    """A message of a page with the session that it changes, and checked access to its arguments.

    >>> PageRequest(None, {"do": "seek", "time": 1.5}).seconds("time")
    Fraction(3, 2)
    """

    def __init__(self, session: StudioSession, data: JsonObject) -> None:
        self.session, self.data = session, data
        name = data.get("do")
        self.name = name if isinstance(name, str) else ""

    def __contains__(self, key: str) -> bool:
        return self.data.get(key) is not None

    def get(self, key: str) -> Json:
        """Return an argument as it is; None if it is missing."""
        return self.data.get(key)

    def fail(self, key: str, expected: str) -> NoReturn:
        """Raise the error of an argument that is refused."""
        raise ParameterError.invalid(self.name, key, expected, self.data.get(key))

    def text(self, key: str, longest: int = 4096) -> str:
        """Return an argument that is text."""
        value = self.data.get(key)
        if not isinstance(value, str) or len(value) > longest:
            self.fail(key, f"text of at most {longest} characters")
        return value

    def flag(self, key: str, default: bool | None = None) -> bool:
        """Return an argument that is true or false."""
        value = self.data.get(key)
        if value is None and default is not None:
            return default
        return Flag("true or false").check(self.name, key, value)

    def integer(self, key: str, low: int, high: int, default: int | None = None) -> int:
        """Return an argument that is a whole number."""
        value = self.data.get(key)
        if value is None and default is not None:
            return default
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        return Integer(low, high).check(self.name, key, value)

    def number(self, key: str, low: float, high: float) -> float:
        """Return an argument that is a number."""
        words = f"a number from {low:g} to {high:g}"
        return Quantity(low, high, words=words).check(self.name, key, self.data.get(key))

    def seconds(self, key: str) -> Fraction:
        """Return an argument that is a time in seconds, as exact as a frame needs it."""
        return Fraction(self.number(key, -_LATEST, _LATEST)).limit_denominator(10**6)

    def mark(self, *parts: str) -> object:
        """Return the mark that joins changes of one gesture to one step of undo; None if none."""
        drag = self.data.get("drag")
        if isinstance(drag, bool) or not isinstance(drag, int | float | str):
            return None
        return (self.name, *parts, drag)

    @property
    def tab(self) -> Tab:
        """The active tab."""
        return self.session.tab(self.name)

    def card(self, kind: str | None = None) -> tuple[Tab, int, Card]:
        """Return the active tab, and the place and the card of it that the message names."""
        tab = self.tab
        number, card = tab.card(self.get("card"), self.name)
        if kind is not None and card.kind != kind:
            self.fail("card", f"the id of a {kind} card")
        return tab, number, card

    def target(self, usual: str) -> NewFile:
        """Return the file that ``path`` names, or the usual one, to write.

        Raises:
            ParameterError: it is outside of the folders; or it exists, the studio has neither
                opened nor made it, and ``replace`` is not true.
        """
        found = self.session.folders.target(self.get("path") or usual, self.name)
        if not self.flag("replace", False) and not self.session.owns(found):
            raise ParameterError(
                f"{self.name}: {found.name.name!r} exists, and is not of this studio. "
                "Choose another name, or say that it is replaced.",
                call=self.name,
                argument="replace",
            )
        return found


def error_json(error: BaseException) -> JsonObject:
    """Return an error as the protocol has it.

    >>> error_json(ParameterError.invalid("blur", "radius", "an int", 0.5))["argument"]
    'radius'
    """
    made: JsonObject = {"text": describe_error(error)}
    if isinstance(error, KernelSyntaxError):
        made |= {"line": error.lineno, "column": error.offset}
    elif isinstance(error, DalaError) and error.argument is not None:
        made["argument"] = error.argument
    return made
