"""Speed of a clip over time, and its exact integral: the position in the source."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Final, TypeAlias

from dala.arguments import Items
from dala.errors import ParameterError
from dala.media.sources.easing import EasingLike, easing
from dala.media.sources.seconds import to_fraction

#: (seconds since the clip began, speed) or (seconds, speed, easing up to the next one).
SpeedKeyframe: TypeAlias = "tuple[float, float] | Sequence[float | EasingLike | None]"
#: A speed: seconds of the source per second, or key frames of it.
SpeedLike: TypeAlias = "float | Fraction | str | Sequence[SpeedKeyframe]"

#: Largest speed in either direction.
FASTEST: Final = 1000
#: Positions on curved parts are rounded to picoseconds, far below the distance of frames.
_GRID: Final = 10**12
_EXPECTED: Final = (
    f"a number from -{FASTEST} to {FASTEST}, or key frames such as [(0, 1), (2, 0.5)]"
)
#: Nodes and weights of Gauss-Legendre quadrature with five points on [0, 1].
_GAUSS: Final = (
    (0.046910077030668004, 0.11846344252809454),
    (0.23076534494715845, 0.23931433524968324),
    (0.5, 0.28444444444444444),
    (0.7692346550528415, 0.23931433524968324),
    (0.953089922969332, 0.11846344252809454),
)


class Speed:
    """A speed over time: constant, or through key frames, with the first and last value beyond.

    >>> slower = Speed([(0, 1), (2, 0)])
    >>> slower.position(Fraction(2)), slower.position(Fraction(5)), slower.value(Fraction(1))
    (Fraction(1, 1), Fraction(1, 1), Fraction(1, 2))
    """

    __slots__ = ("_curves", "_sums", "given", "times", "values")

    def __init__(self, given: SpeedLike = 1, call: str = "open_source") -> None:
        #: The speed as it was given.
        self.given = given
        rows = _rows(given, call)
        self.times = [time for time, _, _ in rows]
        self.values = [value for _, value, _ in rows]
        self._curves = [curve for _, _, curve in rows]
        #: The position at each key frame.
        self._sums = [Fraction(0)]
        if self.times[0] > 0:
            self._sums[0] = self.times[0] * self.values[0]
        for part in range(len(rows) - 1):
            self._sums.append(self._sums[-1] + self._within(part, self.times[part + 1]))

    @property
    def constant(self) -> Fraction | None:
        """The speed, if it is the same all the time."""
        first = self.values[0]
        return first if all(value == first for value in self.values) else None

    @property
    def begins_backward(self) -> bool:
        """True if it runs backwards first."""
        return next((value < 0 for value in self.values if value), False)

    @property
    def turns_back(self) -> bool:
        """True if it runs backwards at some time."""
        return any(value < 0 for value in self.values)

    def value(self, since: Fraction) -> Fraction:
        """Return the speed some seconds after the beginning."""
        part = bisect_right(self.times, since) - 1
        if part < 0:
            return self.values[0]
        if part >= len(self.times) - 1:
            return self.values[-1]
        begin, end = self.times[part : part + 2]
        first, last = self.values[part : part + 2]
        share, curve = (since - begin) / (end - begin), self._curves[part]
        eased = share if curve is None else Fraction(curve(float(share)))
        return first + (last - first) * eased

    def is_backward(self, since: Fraction) -> bool:
        """Return True if it runs backwards at a time; where it stands, as it did before."""
        now = self.value(since)
        if now:
            return now < 0
        before = self.values[: bisect_right(self.times, since)]
        return next((value < 0 for value in reversed(before) if value), self.begins_backward)

    def position(self, since: Fraction) -> Fraction:
        """Return the integral of the speed over some seconds from the beginning."""
        part = bisect_right(self.times, since) - 1
        if part < 0:
            return since * self.values[0]
        if part >= len(self.times) - 1:
            return self._sums[-1] + (since - self.times[-1]) * self.values[-1]
        return self._sums[part] + self._within(part, since)

    def reaches(self, distance: Fraction) -> Fraction | None:
        """Return the seconds after which it has first covered a distance; None if it never does.

        The distance counts from the beginning in the direction in which it begins.
        """
        sign = -1 if self.begins_backward else 1
        if distance <= 0:
            return Fraction(0)
        steady = self.constant
        if steady is not None:
            return distance / abs(steady) if steady else None
        low = Fraction(0)
        for time, covered in zip(self.times, self._sums, strict=True):
            if covered * sign >= distance:
                return self._bisect(low, time, distance, sign)
            low = time
        left = distance - self._sums[-1] * sign
        return low + left / (self.values[-1] * sign) if self.values[-1] * sign > 0 else None

    def _bisect(self, low: Fraction, high: Fraction, distance: Fraction, sign: int) -> Fraction:
        while high - low > Fraction(1, 10**9):
            middle = (low + high) / 2
            if self.position(middle) * sign >= distance:
                high = middle
            else:
                low = middle
        return high.limit_denominator(1_000_000)

    def _within(self, part: int, until: Fraction) -> Fraction:
        """Return the integral from a key frame to a time before the next one."""
        begin, end = self.times[part : part + 2]
        if end == begin:
            return Fraction(0)
        first, last = self.values[part : part + 2]
        share, curve = (until - begin) / (end - begin), self._curves[part]
        if curve is None or first == last:
            area = share * share / 2
        else:
            area = Fraction(round(_integral(curve, 0.0, float(share)) * _GRID), _GRID)
        return (until - begin) * first + (last - first) * (end - begin) * area

    def __repr__(self) -> str:
        return f"<Speed {self.given}>"


def _rows(
    given: SpeedLike, call: str
) -> list[tuple[Fraction, Fraction, Callable[[float], float] | None]]:
    """Return checked key frames as (seconds, speed, curve); None is the straight line."""
    if not isinstance(given, list | tuple):
        return [(Fraction(0), _speed(given, call), None)]
    if not given:
        raise ParameterError.invalid(call, "speed", _EXPECTED, given)
    made: list[tuple[Fraction, Fraction, Callable[[float], float] | None]] = []
    for number, frame in enumerate(given):
        Items("(seconds, speed) or (seconds, speed, easing)", (2, 3)).check(
            call, f"key frame {number} of speed", frame
        )
        name = f"the time of key frame {number} of speed"
        time = to_fraction(name, frame[0], call)
        if time < 0 or (made and time < made[-1][0]):
            last = made[-1][0] if made else Fraction(0)
            expected = f"at least {float(last):g}; key frames are in order"
            raise ParameterError.invalid(call, name, expected, frame[0])
        own = frame[2] if len(frame) == 3 else None
        curve = None if own in (None, "linear") else easing(own)
        made.append((time, _speed(frame[1], call), curve))
    return made


def _speed(given: object, call: str) -> Fraction:
    try:
        found = to_fraction("speed", given, call)  # type: ignore[arg-type]
    except ParameterError:
        raise ParameterError.invalid(call, "speed", _EXPECTED, given) from None
    if abs(found) > FASTEST:
        raise ParameterError.invalid(call, "speed", _EXPECTED, given)
    return found


def _integral(curve: Callable[[float], float], a: float, b: float, depth: int = 0) -> float:
    """Return the integral of a function, halving where five points do not suffice."""
    whole, middle = _gauss(curve, a, b), (a + b) / 2
    halves = _gauss(curve, a, middle) + _gauss(curve, middle, b)
    # Steps may fool five points in large parts.
    if depth >= 5 and (abs(whole - halves) < 1e-13 or depth >= 44):
        return halves
    return _integral(curve, a, middle, depth + 1) + _integral(curve, middle, b, depth + 1)


def _gauss(curve: Callable[[float], float], a: float, b: float) -> float:
    return (b - a) * sum(weight * curve(a + (b - a) * node) for node, weight in _GAUSS)
