"""Numbers, times, rates and sizes as arguments."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from operator import index
from typing import Any, Final

from dala.arguments.kind import ArgumentKind


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
        """Return the number as a float."""
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
        return float(text)

    def card(self) -> dict[str, Any]:
        """Return the description of its control on a page, as JSON."""
        return {"type": "number", "low": self.low, "high": self.high}


#: A duration, and a time of 0 or more, in seconds.
DURATION: Final = Quantity(0, 1e9, "seconds", above=True)
SECONDS: Final = Quantity(0, 1e9, "seconds")
#: How long to wait, or to go on.
WAIT: Final = Quantity(0, 1e6, "seconds", above=True)

_SIDE: Final = re.compile(r"0*[1-9]\d{0,7}", re.ASCII)
_SPAN: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|sec|min|m|h)?")
_UNITS: Final = {"": 1, "ms": 0.001, "s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600}


@dataclass(frozen=True)
class Duration(ArgumentKind[float]):
    """A duration as a number of seconds, or as a text with a unit.

    >>> Duration().check("batch.videos", "chunk", "2min"), Duration().parse("1.5")
    (120.0, 1.5)
    """

    expected: str = "seconds, such as 60 or '2min', or None"
    metavar = "S"

    def accept(self, value: Any) -> float:
        """Return the seconds."""
        if isinstance(value, str):
            found = _SPAN.fullmatch(value.strip().lower())
            if found is None:
                raise ValueError
            value = float(found[1]) * _UNITS[found[2] or ""]
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
