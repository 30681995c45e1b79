"""The vocabulary of arguments: one small value for each kind of thing that a call accepts.

A kind checks a value that Python code passed, reads a text of a command line, and has the words
that errors, help and documents use for what it accepts. Options (:mod:`dala.options`) are declared
with kinds; calls that have no options use them alone:

>>> Integer(1, 100).check("Frame.save", "quality", 92)
92
>>> Integer(1, 100).check("Frame.save", "quality", 0)
Traceback (most recent call last):
dala.errors.ParameterError: Frame.save: quality must be an int from 1 to 100, got 0.
"""

from __future__ import annotations

import math
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar

from dala.arguments.times import seconds
from dala.errors import DalaError, FolderGiven, ParameterError, did_you_mean
from dala.errors.masking import resembles_url

if TYPE_CHECKING:
    from dala.typing import PathLike

T = TypeVar("T")
#: What a kind raises for a value that it does not accept. A memoryview of several axes has no
#: items: NotImplementedError.
_REFUSED: Final = (TypeError, ValueError, ZeroDivisionError, OverflowError, NotImplementedError)


class ArgumentKind(ABC, Generic[T]):
    """A kind of argument. Subclasses define the accepted values: ``expected`` and ``accept``."""

    #: What errors say that a value must be.
    expected: str = "a value"
    #: The name of the value in the help of a command; "" for that of the option.
    metavar: ClassVar[str] = ""

    @abstractmethod
    def accept(self, value: Any) -> T:
        """Return the value in its final form; raise TypeError or ValueError for others."""

    def read(self, text: str) -> Any:
        """Return the value that a text stands for; raise ValueError for others."""
        return text

    def advice(self, value: Any) -> str:
        """Return advice about a refused value; "" for none."""
        return ""

    def check(self, call: str, argument: str, value: Any) -> T:
        """Return an accepted value in its final form.

        Raises:
            ParameterError: it is not accepted; the text names the call and the argument.
        """
        try:
            return self.accept(value)
        except _REFUSED:
            advice = self.advice(value)
        raise ParameterError.invalid(call, argument, self.expected, value, advice)

    def check_optional(self, call: str, argument: str, value: Any) -> T | None:
        """Return an accepted value in its final form; None for None."""
        return None if value is None else self.check(call, argument, value)

    def parse(self, text: str) -> T:
        """Return the value of a text of the command line, for argparse."""
        try:
            return self.accept(self.read(text))
        except _REFUSED:
            from argparse import ArgumentTypeError

            raise ArgumentTypeError(f"must be {self.expected}, got {text!r}") from None

    def strict(self) -> ArgumentKind[T]:
        """Return the kind for strangers, who may only choose from known values."""
        return self

    def card(self) -> dict[str, Any]:
        """Return the description of its control on a page, as JSON."""
        return {"type": "text"}


# numbers, times, rates and sizes ------------------------------------------------------------------
@dataclass(frozen=True)
class Integer(ArgumentKind[int]):
    """An int in a range.

    >>> Integer(0).expected, Integer(1, 9).parse("7")
    ('an int of at least 0', 7)
    """

    low: int
    high: int | None = None
    #: What errors say instead of the range.
    words: str = ""
    metavar = "N"

    @property
    def expected(self) -> str:  # type: ignore[override]
        """The description of accepted values in errors."""
        upper = (
            f"of at least {self.low}" if self.high is None else f"from {self.low} to {self.high}"
        )
        return self.words or f"an int {upper}"

    def accept(self, value: Any) -> int:
        """Return the int."""
        if isinstance(value, bool):
            raise TypeError
        number = index(value)
        if number < self.low or (self.high is not None and number > self.high):
            raise ValueError
        return number

    def read(self, text: str) -> int:
        """Return the int that a text stands for."""
        if not (text.isdecimal() and len(text) < 20):
            raise ValueError
        return int(text)

    def card(self) -> dict[str, Any]:
        """Return the description of its control on a page, as JSON."""
        return {"type": "int", "low": self.low, "high": self.high}


@dataclass(frozen=True)
class Quantity(ArgumentKind[float]):
    """A finite number in a range, ``above`` the lower end if that does not belong to it.

    >>> Quantity(0, 1).expected, Quantity(0, unit="seconds", above=True).expected
    ('a number from 0 to 1', 'a number of seconds above 0')
    """

    low: float = -math.inf
    high: float = math.inf
    unit: str = ""
    above: bool = False
    #: What errors say instead of the range.
    words: str = ""
    metavar = "X"

    @property
    def expected(self) -> str:  # type: ignore[override]
        """The description of accepted values in errors."""
        of = f"a number of {self.unit}" if self.unit else "a number"
        if self.words:
            return self.words
        if self.above:
            return f"{of} above {self.low:g}"
        if math.isfinite(self.low) and self.high < 1e6:
            return f"{of} from {self.low:g} to {self.high:g}"
        if math.isfinite(self.low) and self.high > 1e9:
            return f"{of}, {self.low:g} or more" if self.unit else f"{of} of at least {self.low:g}"
        return of

    def accept(self, value: Any) -> float:
        """Return the number as a float; an array without axes is one, and seconds may be a text."""
        if isinstance(value, str) and self.unit == "seconds":
            return self.accept(float(seconds(value)))
        value = value.item() if getattr(value, "shape", None) == () else value
        if isinstance(value, bool) or not isinstance(value, Real):
            raise TypeError
        number = float(value)
        if not self.low <= number <= self.high or (self.above and number == self.low):
            raise ValueError
        if not math.isfinite(number):
            raise ValueError
        return number

    def read(self, text: str) -> float:
        """Return the number that a text stands for."""
        return float(seconds(text) if self.unit == "seconds" else text)

    def card(self) -> dict[str, Any]:
        """Return the description of its control on a page, as JSON."""
        return {"type": "number", "low": self.low, "high": self.high}


#: A duration, and a time of 0 or more, in seconds.
DURATION: Final = Quantity(0, 1e9, "seconds", above=True)
SECONDS: Final = Quantity(0, 1e9, "seconds")
#: How long to wait, or to go on.
WAIT: Final = Quantity(0, 1e6, "seconds", above=True)

_SIDE: Final = re.compile(r"0*[1-9]\d{0,7}", re.ASCII)


@dataclass(frozen=True)
class Duration(ArgumentKind[float]):
    """A duration as a number of seconds, or as a text, see :func:`seconds`.

    >>> Duration().check("batch.videos", "chunk", "2min"), Duration().parse("1.5")
    (120.0, 1.5)
    """

    expected: str = "seconds, such as 60 or '2min', or None"
    metavar = "S"

    def accept(self, value: Any) -> float:
        """Return the seconds."""
        if isinstance(value, str):
            value = float(seconds(value))
        return Quantity(0, above=True).accept(value)


@dataclass(frozen=True)
class Rate(ArgumentKind[Fraction]):
    """Frames per second as a fraction; 29.97 and the like become 30000/1001.

    >>> Rate().check("video.write", "fps", 29.97), Rate().parse("25")
    (Fraction(30000, 1001), Fraction(25, 1))
    """

    high: int = 100_000
    expected: str = "a number of frames per second, such as 30 or Fraction(30000, 1001)"
    metavar = "N"

    def accept(self, value: Any) -> Fraction:
        """Return the rate, exact."""
        if isinstance(value, bool):
            raise TypeError
        rate = Fraction(value)
        if not 0 < rate <= self.high:
            raise ValueError
        if not isinstance(value, float):
            return rate
        ntsc = Fraction(round(rate * Fraction(1001, 1000)) * 1000, 1001)
        if rate != round(rate) and abs(rate - ntsc) < Fraction(5, 1000):
            return ntsc
        return rate.limit_denominator(1001)


@dataclass(frozen=True)
class Ratio(ArgumentKind[Fraction]):
    """A ratio above 0 as a fraction, such as a pixel's width / height.

    >>> Ratio("a ratio").check("video.write", "pixel_aspect", 1.5)
    Fraction(3, 2)
    """

    expected: str
    high: int = 65535

    def accept(self, value: Any) -> Fraction:
        """Return the ratio, exact."""
        if isinstance(value, bool):
            raise TypeError
        found = Fraction(value).limit_denominator(self.high)
        if not 0 < found <= self.high:
            raise ValueError
        return found


def sides(text: str) -> tuple[int | None, int | None] | None:
    """Parse WxH, Wx or xH; return None for anything else.

    >>> sides("1280x720"), sides("640x"), sides("x360"), sides("640")
    ((1280, 720), (640, None), (None, 360), None)
    """
    parts = text.lower().split("x")
    if len(parts) != 2 or not all(part == "" or _SIDE.fullmatch(part) for part in parts):
        return None
    width, height = (int(part) if part else None for part in parts)
    return width, height


@dataclass(frozen=True)
class Size(ArgumentKind[tuple[int, int]]):
    """(width, height) in pixels; on the command line WxH.

    >>> Size().parse("1280x720"), Size(2).check("live.open", "size", [640, 360])
    ((1280, 720), (640, 360))
    """

    low: int = 1
    high: int = 16384
    expected: str = "WxH such as 1280x720"
    metavar = "WxH"

    def accept(self, value: Any) -> tuple[int, int]:
        """Return the two ints."""
        width, height = (Integer(self.low, self.high).accept(side) for side in value)
        return width, height

    def read(self, text: str) -> tuple[int | None, int | None]:
        """Return the sides that a text stands for."""
        found = sides(text)
        if found is None:
            raise ValueError
        return found


# words, choices, settings and other things --------------------------------------------------------
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


#: Lengths of lists that are not empty.
SOME: Final = range(1, 1 << 62)


@dataclass(frozen=True)
class Items(ArgumentKind[Sequence[Any]]):
    """Items in order, such as a list; neither a text nor a mapping. ``counts`` are the lengths.

    >>> Items("(from, to)", (2,)).check("video.open", "trim", [1, None])
    [1, None]
    """

    expected: str
    counts: Container[int] = range(1 << 62)

    def accept(self, value: Any) -> Sequence[Any]:
        """Return the value."""
        other = isinstance(value, str | bytes | bytearray | memoryview | Mapping)
        if other or not isinstance(value, Sequence) or len(value) not in self.counts:
            raise TypeError
        return value


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


# paths and items ----------------------------------------------------------------------------------
def refuse_folder(call: str, path: Path) -> None:
    """Raise if a path that must name a file names a folder.

    >>> refuse_folder("Frame.open", Path("/"))
    Traceback (most recent call last):
    dala.errors.FolderGiven: Frame.open: '/' is a folder. Name a file in it.
    """
    if path.is_dir():
        raise FolderGiven(f"{call}: '{path}' is a folder. Name a file in it.", call=call)


def checked_path(
    call: str, argument: str, given: PathLike, error: type[DalaError] = ParameterError
) -> Path:
    """Return a path; raise for other values and for names that no file can have.

    >>> checked_path("Scene.save", "path", "scene.json").name
    'scene.json'
    >>> checked_path("Scene.save", "path", "")
    Traceback (most recent call last):
    dala.errors.ParameterError: Scene.save: path must be a str or Path, got ''.
    """
    try:
        text = os.fspath(given)
        encoded = os.fsencode(text)
    except (TypeError, ValueError):
        encoded = b""
    if not encoded or b"\0" in encoded or isinstance(given, bytes):
        raise error.invalid(call, argument, "a str or Path", given)
    refuse_url(call, argument, given, error)
    return Path(os.fsdecode(encoded))


def refuse_url(
    call: str, argument: str, given: object, error: type[DalaError] = ParameterError
) -> None:
    """Raise for a URL in place of a path: the system's error would quote its secrets."""
    text = os.fspath(given) if isinstance(given, str | os.PathLike) else ""
    if isinstance(text, str) and resembles_url(text):
        raise error.invalid(call, argument, "a path, not a URL", text)


def items_of(value: Iterable[T]) -> list[T] | None:
    """Return the items of an iterable argument as a list; None if it is not iterable.

    >>> items_of((1, 2)), items_of(3)
    ([1, 2], None)
    """
    try:
        return list(value)
    except (TypeError, NotImplementedError):  # a memoryview of several axes has no items
        return None
