"""Words, choices, settings and other things as arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dala.arguments.kind import ArgumentKind
from dala.errors import did_you_mean


@dataclass(frozen=True, init=False)
class Selection(ArgumentKind[Any]):
    """One of several values; ``hidden`` ones are accepted and not listed.

    >>> Selection("scale", "error").expected
    "one of 'scale', 'error'"
    >>> Selection("linear", "cubic").check("resize", "method", "cubik")
    Traceback (most recent call last):
    dala.errors.ParameterError: resize: method must be one of 'linear', 'cubic', got 'cubik'. ...
    """

    values: tuple[Any, ...]
    hidden: tuple[Any, ...]
    expected: str

    def __init__(self, *values: Any, expected: str = "", hidden: tuple[Any, ...] = ()) -> None:
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "hidden", hidden)
        listed = expected or f"one of {', '.join(map(repr, values))}"
        object.__setattr__(self, "expected", listed)

    def accept(self, value: Any) -> Any:
        """Return the value."""
        for one in (*self.values, *self.hidden):
            if type(one) is type(value) and one == value:
                return one
        raise ValueError

    def advice(self, value: Any) -> str:
        """Return the names that a misspelled one may stand for."""
        if not isinstance(value, str):
            return ""
        return did_you_mean(value, [one for one in self.values if isinstance(one, str)])

    def card(self) -> dict[str, Any]:
        """Return the description of its control on a page, as JSON."""
        return {"type": "choice", "choices": list(self.values)}


@dataclass(frozen=True)
class Flag(ArgumentKind[bool]):
    """True or False.

    >>> Flag().check("Scene.render_to", "alpha", 1)
    Traceback (most recent call last):
    dala.errors.ParameterError: Scene.render_to: alpha must be True or False, got 1.
    """

    expected: str = "True or False"

    def accept(self, value: Any) -> bool:
        """Return the bool."""
        if not isinstance(value, bool):
            raise TypeError
        return value

    def card(self) -> dict[str, Any]:
        """Return the description of its control on a page, as JSON."""
        return {"type": "bool"}


@dataclass(frozen=True)
class Text(ArgumentKind[str]):
    """A text, such as a name that is looked up later; ``names`` are the usual ones.

    >>> Text(names=("h264", "av1")).strict().card()["choices"]
    ['h264', 'av1']
    """

    expected: str = "a str or None"
    names: tuple[str, ...] = ()

    def accept(self, value: Any) -> str:
        """Return the text."""
        if not isinstance(value, str):
            raise TypeError
        return value

    def strict(self) -> ArgumentKind[str]:
        """Return a choice of the usual names."""
        return Selection(*self.names)


@dataclass(frozen=True)
class Settings(ArgumentKind[Mapping[str, Any]]):
    """Values by name.

    >>> Settings("a dict of FFmpeg's options").check("video.write", "options", {"crf": 18})
    {'crf': 18}
    """

    expected: str

    def accept(self, value: Any) -> Mapping[str, Any]:
        """Return the mapping, as a dict with names that are texts."""
        if not isinstance(value, Mapping):
            raise TypeError
        return {str(name): one for name, one in value.items()}


@dataclass(frozen=True)
class Fitting(ArgumentKind[Any]):
    """A value that a function accepts: an object of some class, or one that the callee checks.

    >>> Fitting("callable", callable).check("Scene.play", "on_frame", len)
    <built-in function len>
    """

    expected: str = "a value"
    fits: Callable[[Any], bool] = lambda value: True

    def accept(self, value: Any) -> Any:
        """Return the value."""
        if not self.fits(value):
            raise TypeError
        return value
