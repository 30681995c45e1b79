"""A scene's clock: which time the next frame has, exactly, and how fast frames come."""

from __future__ import annotations

import math
from collections import deque
from contextlib import suppress
from fractions import Fraction
from typing import Any, Final

from dala.errors import ParameterError
from dala.media.frame import TIME_BASE
from dala.media.moment import Moment

#: Rates that are written in short for 1001ths.
_SHORT: Final = {
    round(Fraction(n * 1000, 1001) * 1000): Fraction(n * 1000, 1001) for n in (24, 30, 48, 60, 120)
}
_SHORT_TWO: Final = {round(rate * 100): rate for rate in _SHORT.values()}


class Clock:
    """Times of frames: one after another, or as told."""

    def __init__(self, fps: Any) -> None:
        self.rate = frame_rate(fps)
        #: Seconds from frame to frame.
        self.period = 1 / self.rate
        self._ticks, self._scale = self.period.as_integer_ratio()
        #: Number of the next frame if no time is told.
        self.next = 0
        #: Seconds of the last frame; None before the first.
        self.time: float | None = None

    def moment(self, time: Any = None) -> Moment:
        """The time of the next frame; the clock moves there with :meth:`move`."""
        if time is None:
            ticks, scale = self.next * self._ticks, self._scale
            return Moment(ticks / scale, self.next, self.period)
        exact = _seconds(time)
        number = round(exact * self.rate)
        if abs(number / self.rate - exact) < Fraction(1, 10**7):
            return Moment(float(exact), number, self.period)
        return Moment(float(exact), round(exact / TIME_BASE), TIME_BASE, exact)

    def move(self, moment: Moment) -> None:
        """A frame was made: the next one is the first of the rate that is later."""
        self.time = moment.seconds
        if moment.time_base is self.period:
            self.next = moment.pts + 1
        else:
            self.next = math.floor(moment.pts * moment.time_base * self.rate) + 1


def frame_rate(fps: Any) -> Fraction:
    """Frames a second, exactly; 29.97 and its like are 30000/1001.

    >>> frame_rate(29.97), frame_rate("25"), frame_rate(12.5)
    (Fraction(30000, 1001), Fraction(25, 1), Fraction(25, 2))
    """
    try:
        if isinstance(fps, bool):
            raise TypeError
        if isinstance(fps, float):
            short = _SHORT.get(round(fps * 1000)) or _SHORT_TWO.get(round(fps * 100))
            near = short is not None and abs(float(short) - fps) < 0.006
            rate = short if near and short is not None else Fraction(fps).limit_denominator(10**6)
        else:
            rate = Fraction(fps)
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        rate = Fraction(0)
    if not 0 < rate <= 1000:
        raise ParameterError(
            f"Scene: fps is a number above 0 and up to 1000, such as 30, 29.97 or '30000/1001'; "
            f"{fps!r} came."
        )
    return rate


def _seconds(time: Any) -> Fraction:
    exact: Fraction | None = None
    if not isinstance(time, bool | str):
        with suppress(TypeError, ValueError, OverflowError):
            exact = Fraction(time if isinstance(time, int | Fraction) else float(time))
    if exact is None or abs(exact) > 10**9:
        raise ParameterError(f"Scene.render: time is seconds, a finite number; {time!r} came.")
    return exact


class Rate:
    """Frames a second as they really come, over the last ones."""

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=31)
        #: A frame came, at a time.
        self.tick = self._times.append

    @property
    def fps(self) -> float:
        """Frames a second; 0 before the second frame."""
        times = self._times
        took = times[-1] - times[0] if len(times) > 1 else 0.0
        return (len(times) - 1) / took if took > 0 else 0.0
