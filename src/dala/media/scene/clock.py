"""The clock of a scene: exact times of frames, and the measured frame rate."""

from __future__ import annotations

import math
from collections import deque
from contextlib import suppress
from fractions import Fraction
from typing import Any, Final

from dala.arguments import ArgumentKind
from dala.errors import ParameterError
from dala.media.frame import TIME_BASE
from dala.media.sources.moment import Moment

#: Rates such as 29.97 that stand for 30000/1001, by their thousandths and hundredths.
_NTSC: Final = {
    round(Fraction(n * 1000, 1001) * 1000): Fraction(n * 1000, 1001) for n in (24, 30, 48, 60, 120)
}
_NTSC_HUNDREDTHS: Final = {round(rate * 100): rate for rate in _NTSC.values()}


class Clock:
    """The times of frames: one after another, or as the caller asks."""

    def __init__(self, fps: float | str | Fraction) -> None:
        self.rate = frame_rate(fps)
        #: Seconds between frames.
        self.period = 1 / self.rate
        self._ticks, self._scale = self.period.as_integer_ratio()
        #: Number of the next frame if the caller gives no time.
        self.next = 0
        #: Time of the last frame in seconds; None before the first.
        self.time: float | None = None

    def moment(self, time: float | Fraction | None = None) -> Moment:
        """Return the time of the next frame, or a given time; :meth:`move` then moves the clock."""
        if time is None:
            ticks, scale = self.next * self._ticks, self._scale
            return Moment(ticks / scale, self.next, self.period)
        exact = _seconds(time)
        number = round(exact * self.rate)
        if abs(number / self.rate - exact) < Fraction(1, 10**7):
            return Moment(float(exact), number, self.period)
        return Moment(float(exact), round(exact / TIME_BASE), TIME_BASE, exact)

    def move(self, moment: Moment) -> None:
        """Move past a rendered frame: the next one is the first of the frame rate after it."""
        self.time = moment.seconds
        if moment.time_base is self.period:
            self.next = moment.pts + 1
        else:
            self.next = math.floor(moment.pts * moment.time_base * self.rate) + 1


def frame_rate(fps: float | str | Fraction) -> Fraction:
    """Return an exact frame rate; 29.97 and similar numbers mean 30000/1001.

    >>> frame_rate(29.97), frame_rate("25"), frame_rate(12.5)
    (Fraction(30000, 1001), Fraction(25, 1), Fraction(25, 2))
    """
    return SceneRate().check("Scene", "fps", fps)


class SceneRate(ArgumentKind[Fraction]):
    """The frame rate of a scene, exact."""

    expected = "a number above 0 and up to 1000, such as 30, 29.97 or '30000/1001'"
    metavar = "N"

    def accept(self, value: Any) -> Fraction:
        """Return the rate."""
        if isinstance(value, bool):
            raise TypeError
        rate = Fraction(value)
        if not 0 < rate <= 1000:
            raise ValueError
        if not isinstance(value, float):
            return rate
        ntsc = _NTSC.get(round(value * 1000)) or _NTSC_HUNDREDTHS.get(round(value * 100))
        near = ntsc is not None and abs(float(ntsc) - value) < 0.006
        return ntsc if near and ntsc is not None else rate.limit_denominator(10**6)


def _seconds(time: float | Fraction) -> Fraction:
    exact: Fraction | None = None
    if not isinstance(time, bool | str):
        with suppress(TypeError, ValueError, OverflowError):
            exact = Fraction(time if isinstance(time, int | Fraction) else float(time))
    if exact is None or abs(exact) > 10**9:
        raise ParameterError.invalid("Scene.render", "time", "a finite number of seconds", time)
    return exact


class FrameRateMeter:
    """Measured frames per second, over the last 30 frames."""

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=31)
        #: Call it with the time of each frame.
        self.tick = self._times.append

    @property
    def fps(self) -> float:
        """Frames per second; 0 before the second frame."""
        times = self._times
        took = times[-1] - times[0] if len(times) > 1 else 0.0
        return (len(times) - 1) / took if took > 0 else 0.0
