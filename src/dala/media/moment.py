"""The time of a frame: in seconds, and exactly."""

from __future__ import annotations

from fractions import Fraction
from typing import Self


class Moment:
    """When a frame is shown: seconds, and as the frame says it, which is exact."""

    __slots__ = ("_exact", "pts", "seconds", "time_base")

    def __init__(
        self, seconds: float, pts: int, time_base: Fraction, exact: Fraction | None = None
    ) -> None:
        self.seconds = seconds
        self.pts = pts
        self.time_base = time_base
        self._exact = exact

    @classmethod
    def of(cls, exact: Fraction) -> Self:
        """A time as it is."""
        return cls(float(exact), 1, exact, exact)

    @property
    def exact(self) -> Fraction:
        """Seconds; worked out when somebody asks, as arithmetic with fractions is not quick."""
        if self._exact is None:
            self._exact = self.pts * self.time_base
        return self._exact
