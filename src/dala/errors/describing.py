"""Descriptions of values in messages, and advice for misspelled names and attributes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar, Final

from dala.errors.masking import masked

__all__ = ["counted", "describe", "did_you_mean", "printable"]

#: Longer names have no suggestions, and later ones are none: names in files may be a stranger's.
_LONGEST_NAME: Final = 100
_MOST_NAMES: Final = 2000


def printable(text: str) -> str:
    r"""Return text that any UTF-8 stream takes: lone surrogates are escaped.

    They come from file names that are not UTF-8 and from JSON, and would make printing fail.

    >>> printable("caf\u00e9 \udce9") == "caf\u00e9 \\udce9"
    True
    """
    return text.encode("utf-8", "backslashreplace").decode()


def describe(value: object) -> str:
    """Return a short description of a value for an error message.

    >>> describe("abc"), describe(2.5), describe([1, 2]), describe(object())
    ("'abc'", '2.5', '[1, 2]', 'object')
    >>> import numpy as np
    >>> describe(np.zeros((4, 3), np.uint8))
    'an array of shape (4, 3) and dtype uint8'
    """
    if isinstance(value, type):
        return value.__name__
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if isinstance(shape, tuple) and shape and dtype is not None:
        return f"an array of shape {shape} and dtype {dtype}"
    plain = (str, bytes, bool, int, float, complex, tuple, list, dict, set, frozenset, range)
    if value is None or isinstance(value, plain) or hasattr(value, "as_integer_ratio"):
        try:
            shown = masked(repr(value))
        except Exception:  # an element whose repr fails
            return type(value).__name__
        return shown if len(shown) <= 80 else f"{shown[:77]}..."
    return type(value).__name__


def counted(number: int, many: str, one: str = "") -> str:
    """Return a number of things.

    Args:
        number: how many there are.
        many: their name.
        one: the name of one; by default that of many without its "s".

    >>> counted(1, "videos"), counted(2, "videos"), counted(1, "passes", "pass")
    ('1 video', '2 videos', '1 pass')
    """
    return f"{number} {(one or many.removesuffix('s')) if number == 1 else many}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return "Did you mean ...?" for a misspelled name or that of another library, or "".

    >>> did_you_mean("grayscal", ["grayscale", "blur"])
    "Did you mean 'grayscale'?"
    """
    from dala.errors.synonyms import meant_by  # only mistakes need it

    if len(name) > _LONGEST_NAME:
        return ""
    near = (each for each in known if len(each) <= _LONGEST_NAME)
    close = meant_by(name, islice(near, _MOST_NAMES))
    return "Did you mean " + " or ".join(map(repr, close)) + "?" if close else ""


class AttributeMissing(AttributeError):
    """An attribute that is not there. Its advice is made when it is read: many only try a name."""

    def __init__(self, owner: type | ModuleType, name: str) -> None:
        super().__init__(name, obj=owner)  # without a name, Python adds no advice of its own
        self._owner, self._wanted = owner, name

    def __str__(self) -> str:
        known = [name for name in dir(self._owner) if not name.startswith("_")]
        told: dict[str, str] = getattr(self._owner, "_elsewhere", {})
        hints = (text for names, text in told.items() if self._wanted in names.split())
        hint = next(hints, "")
        if not hint and not self._wanted.startswith("_"):
            hint = did_you_mean(self._wanted, known)
        kind, name = type(self._owner) is ModuleType, repr(self._owner.__name__)
        said = f"module {name}" if kind else f"{name} object"
        said += f" has no attribute {self._wanted!r}"
        return f"{said}. {hint}" if hint else said


class KnownAttributes:
    """A base class whose missing attributes raise :class:`AttributeMissing`.

    ``_elsewhere`` has advice for names of other libraries that have no single name here.
    """

    __slots__ = ()
    _elsewhere: ClassVar[Mapping[str, str]] = {}

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            if hasattr(type(self), name):  # a property or a slot that raised it: its own error
                return object.__getattribute__(self, name)
            raise AttributeMissing(type(self), name)
