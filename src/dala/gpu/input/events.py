"""Input events: dictionaries with the names and fields of rendercanvas and jupyter_rfb.

Everything that enters a surface's queue is checked here first: what a program posts, and what a
page sends. So numbers are finite, texts and lists are short, and lists are tuples.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Final, NamedTuple, TypedDict, cast

from dala.errors import CommandError, did_you_mean

#: The largest magnitude of a number in an event.
MAX_NUMBER: Final = float(2**31)
#: Characters of a key's name, and of a dropped or typed text.
MAX_NAME: Final = 64
MAX_TEXT: Final = 1 << 16
#: Items of a tuple in an event.
MAX_ITEMS: Final = 64

#: Ids of touches are numbers, and texts of them in JSON.
_TOUCH: Final = re.compile(r"-?[0-9]{1,15}")

#: The modifier keys, in the order in which events list them.
MODIFIERS: Final = ("Shift", "Control", "Alt", "Meta")


class Touch(TypedDict):
    """A finger on the picture."""

    x: float
    y: float
    pressure: float


class InputEvent(TypedDict, total=False):
    """An event. ``event_type`` and ``time_stamp`` are always there; the type says which others."""

    event_type: str
    #: Seconds, of the clock ``time.perf_counter``.
    time_stamp: float
    #: The position, in pixels of the surface. Outside of the picture it is outside of the surface.
    x: float
    y: float
    #: The button of this event: 1 left, 2 right, 3 middle, and 0 where there is none.
    button: int
    #: The buttons that are held down.
    buttons: tuple[int, ...]
    #: The modifier keys that are held down, of "Shift", "Control", "Alt" and "Meta".
    modifiers: tuple[str, ...]
    #: The number of fingers, and where each is, by an id that it keeps while it is down.
    ntouches: int
    touches: dict[int, Touch]
    #: How far was scrolled; a notch of a wheel is 100.
    dx: float
    dy: float
    #: The name of a key as browsers have it ("a", "A", " ", "Enter", "ArrowLeft"), and its place.
    key: str
    code: str
    #: Typed text.
    data: str
    #: The size of the window or page in logical pixels, and the physical pixels of one.
    width: float
    height: float
    pixel_ratio: float
    #: Dropped: paths of files (a page gives names), and text.
    files: tuple[str, ...]
    text: str


class EventField(NamedTuple):
    """The type of a field: the words of errors, and a function that converts or returns None."""

    expected: str
    convert: Callable[[object], object | None]


def _number(value: object, low: float = -MAX_NUMBER) -> float | None:
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if low <= number <= MAX_NUMBER else None  # NaN is in no range


def _size(value: object) -> float | None:
    return _number(value, 1e-6)


def _small(value: object) -> int | None:
    number = _number(value, 0.0)
    return int(number) if number is not None and number < MAX_ITEMS and number % 1 == 0 else None


def _text(low: int, high: int) -> Callable[[object], str | None]:
    return lambda value: value if isinstance(value, str) and low <= len(value) <= high else None


def _items(convert: Callable[[object], object | None]) -> Callable[[object], object | None]:
    """Return a function that converts a sequence to a tuple of distinct items."""

    def tuple_of(value: object) -> object | None:
        if isinstance(value, (str, bytes)) or not isinstance(value, (Sequence, set, frozenset)):
            return None
        if len(value) > MAX_ITEMS:
            return None
        items = tuple(convert(item) for item in value)
        return None if None in items else tuple(dict.fromkeys(items))

    return tuple_of


def _touches(value: object) -> dict[int, Touch] | None:
    if not isinstance(value, Mapping) or len(value) > MAX_ITEMS:
        return None
    found: dict[int, Touch] = {}
    for name, touch in value.items():
        if not _TOUCH.fullmatch(str(name)) or not isinstance(touch, Mapping):
            return None
        x, y = _number(touch.get("x")), _number(touch.get("y"))
        pressure = _number(touch.get("pressure", 0.0))
        if x is None or y is None or pressure is None:
            return None
        found[int(name)] = Touch(x=x, y=y, pressure=pressure)
    return found


_NUMBER: Final = EventField("a finite number", _number)
_POSITIVE: Final = EventField("a number above 0", _size)
_SMALL: Final = EventField(f"an int from 0 to {MAX_ITEMS - 1}", _small)
_NAME: Final = EventField(f"a str of 1 to {MAX_NAME} characters", _text(1, MAX_NAME))
_TEXT: Final = EventField(f"a str of at most {MAX_TEXT} characters", _text(0, MAX_TEXT))
_KEYS: Final = ", ".join(map(repr, MODIFIERS))

#: The kind of each field.
FIELDS: Final = {
    **dict.fromkeys(("time_stamp", "x", "y", "dx", "dy"), _NUMBER),
    **dict.fromkeys(("width", "height", "pixel_ratio"), _POSITIVE),
    **dict.fromkeys(("button", "ntouches"), _SMALL),
    **dict.fromkeys(("key", "code"), _NAME),
    **dict.fromkeys(("data", "text"), _TEXT),
    "buttons": EventField(f"at most {MAX_ITEMS} buttons as ints", _items(_small)),
    "modifiers": EventField(
        f"modifier keys of {_KEYS}", _items(lambda value: value if value in MODIFIERS else None)
    ),
    "files": EventField(f"at most {MAX_ITEMS} names of files", _items(_text(1, 4096))),
    "touches": EventField("a dict of ids to {'x': .., 'y': .., 'pressure': ..}", _touches),
}


class EventKind(NamedTuple):
    """The fields of one type of event."""

    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()


_PRESS: Final = EventKind(("x", "y"), ("button", "buttons", "modifiers", "ntouches", "touches"))
_HOVER: Final = EventKind((), (*_PRESS.required, *_PRESS.optional))
_KEY: Final = EventKind(("key",), ("code", "modifiers"))

#: The types of events, with their fields.
EVENT_TYPES: Final = {
    **dict.fromkeys(("pointer_down", "pointer_move", "pointer_up", "double_click"), _PRESS),
    **dict.fromkeys(("pointer_enter", "pointer_leave"), _HOVER),
    "wheel": EventKind((), ("dx", "dy", "x", "y", "buttons", "modifiers")),
    **dict.fromkeys(("key_down", "key_up"), _KEY),
    "char": EventKind(("data",), ("modifiers",)),
    "resize": EventKind(("width", "height"), ("pixel_ratio",)),
    "drop": EventKind((), ("x", "y", "files", "text")),
    **dict.fromkeys(("focus", "blur", "close"), EventKind()),
}


def checked_type(call: str, value: object, *also: str) -> str:
    """Return a type of event, or one of ``also``; raise for anything else."""
    if isinstance(value, str) and (value in EVENT_TYPES or value in also):
        return value
    expected = f"one of {', '.join(map(repr, (*EVENT_TYPES, *also)))}"
    hint = did_you_mean(value, EVENT_TYPES) if isinstance(value, str) else ""
    raise CommandError.invalid(call, "event_type", expected, value, hint)


def checked_event(call: str, event: object, *, strict: bool = False) -> InputEvent:
    """Return a checked copy of an event.

    Fields that no event of the type has are kept, or left out with ``strict``, as for strangers.

    Raises:
        CommandError: The type is unknown, or a field is missing or has a wrong value.

    >>> event = {"event_type": "key_down", "key": "a", "modifiers": ["Shift"], "time_stamp": 1}
    >>> checked_event("post_event", event)
    {'event_type': 'key_down', 'key': 'a', 'modifiers': ('Shift',), 'time_stamp': 1.0}
    """
    if not isinstance(event, Mapping):
        raise CommandError.invalid(call, "event", "a dict with 'event_type'", event)
    kind = EVENT_TYPES[name := checked_type(call, event.get("event_type"))]
    for field in kind.required:
        if field not in event:
            expected = f"a {name} with {field!r}"
            raise CommandError.invalid(call, "event", expected, dict(event))
    found: dict[str, object] = {"event_type": name}
    for field in (*kind.required, *kind.optional, "time_stamp"):
        if field in event:
            found[field] = FIELDS[field].convert(event[field])
            if found[field] is None:
                expected = FIELDS[field].expected
                raise CommandError.invalid(call, f"event[{field!r}]", expected, event[field])
    if not strict:
        found = {**event, **found}
    found.setdefault("time_stamp", perf_counter())
    return cast("InputEvent", found)


#: The fields that must be equal for two events to be merged, and those that are added up.
_MERGED: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "pointer_move": (("buttons", "modifiers", "ntouches"), ()),
    "wheel": (("modifiers",), ("dx", "dy")),
    "resize": ((), ()),
}


def merged(before: InputEvent, event: InputEvent) -> InputEvent | None:
    """Return the one event that stands for two in a row, or None where each counts.

    >>> moves = [InputEvent(event_type="pointer_move", x=float(x), y=0.0) for x in (1, 2)]
    >>> merged(*moves)
    {'event_type': 'pointer_move', 'x': 2.0, 'y': 0.0}
    """
    same, summed = _MERGED.get(event["event_type"], ((), ()))
    old, new = cast("dict[str, float]", before), cast("dict[str, float]", event)
    if event["event_type"] not in _MERGED or before["event_type"] != event["event_type"]:
        return None
    if any(old.get(name) != new.get(name) for name in same):
        return None
    sums = {name: old.get(name, 0.0) + new.get(name, 0.0) for name in summed}
    return cast("InputEvent", {**new, **sums})
