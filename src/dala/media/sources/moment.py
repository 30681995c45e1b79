"""The time of a frame, in seconds and as an exact fraction."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Self


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
