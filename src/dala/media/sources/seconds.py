"""Times as calls take them: numbers, fractions, or text such as "01:02:03.5"; kept exact."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from numbers import Real
from typing import Final, Self, TypeAlias

from dala.arguments.times import seconds
from dala.errors import ParameterError

#: A time: seconds, a fraction, or text such as "1:02:03.5" or "1m30s".
TimeLike: TypeAlias = "float | Fraction | str"

#: The latest time, in seconds: about 30 years.
LATEST: Final = 10**9


def to_fraction(name: str, value: TimeLike, call: str = "open_source") -> Fraction:
    """Return a number as a fraction; a float becomes the nearest simple one.

    >>> to_fraction("offset", 1 / 30)
    Fraction(1, 30)
    """
    if isinstance(value, Fraction):
        return value
    if type(value) is float and value - value == 0.0:
        return _nearest(value)
    try:
        if isinstance(value, bool):
            raise TypeError
        found = Fraction(value)
        return found.limit_denominator(1_000_000) if isinstance(value, Real) else found
    except (TypeError, ValueError, OverflowError, ZeroDivisionError):
        expected = "a number or a fraction such as '30000/1001'"
        raise ParameterError.invalid(call, name, expected, value) from None


def seconds_of(value: TimeLike, call: str, name: str) -> Fraction:
    """Return a time in seconds, exact: of a number, a fraction, or text for ``arguments.seconds``.

    >>> seconds_of("01:02:03.5", "cut", "from"), seconds_of(0.1, "cut", "from")
    (Fraction(7447, 2), Fraction(1, 10))
    """
    found: Fraction | None
    try:
        found = seconds(value) if isinstance(value, str) else to_fraction(name, value, call)
    except (ValueError, ArithmeticError):  # a ParameterError is one, too
        found = None
    if found is None or abs(found) > LATEST:
        expected = "a time in seconds, or text such as '1:02:03.5' or '1m30s'"
        raise ParameterError.invalid(call, name, expected, value)
    return found


@lru_cache(maxsize=64)
def _nearest(value: float) -> Fraction:
    """Cached, because all sources of a scene use the same times."""
    return Fraction(value).limit_denominator(1_000_000)


@dataclass(eq=False, slots=True)
class Moment:
    """The time at which a frame is shown.

    ``seconds`` is a float; ``exact`` is ``pts * time_base``, computed when it is first read.

    >>> Moment(0.1, 1, Fraction(1, 10)).exact
    Fraction(1, 10)
    """

    #: Seconds.
    seconds: float
    pts: int
    time_base: Fraction
    _exact: Fraction | None = None

    @classmethod
    def of(cls, exact: Fraction) -> Self:
        """Return the moment of an exact time in seconds."""
        return cls(float(exact), 1, exact, exact)

    @property
    def exact(self) -> Fraction:
        """The time in seconds as a fraction."""
        if self._exact is None:
            self._exact = self.pts * self.time_base
        return self._exact
