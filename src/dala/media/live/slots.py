"""Live streams: waits between attempts, slots of time, and the difference of two clocks."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

#: Seconds over which the difference between a source's clock and ours is averaged.
_SMOOTHING: Final = 2.0
#: Seconds by which a source's clock may leap before it is taken as set anew.
_LEAP: Final = 0.5
#: Seconds that a frame may be away from its slot before one is dropped or repeated.
_SLACK: Final = 0.018


class ClockDifference:
    """The difference between our clock and that of a source, which is steady but fast or slow.

    What arrives has jitter; the difference is averaged, so that it follows the clocks only.

    Args:
        settling: seconds from the first arrival on in which the least difference counts. What a
            source has gathered before it was opened arrives at once, and late.

    >>> difference = ClockDifference()
    >>> difference.put(5.0, 100.0), difference.put(5.04, 101.0)
    (5.0, 5.02)
    """

    def __init__(self, settling: float = 0.0) -> None:
        #: In seconds; None before the first arrival.
        self.value: float | None = None
        self._last = 0.0
        self._settling, self._settled = settling, 0.0

    def put(self, difference: float, arrival: float) -> float:
        """Take the difference at an arrival on our clock; return the averaged one."""
        if self.value is None or abs(difference - self.value) > _LEAP:
            if self.value is None or difference > self.value:
                self._settled = arrival + self._settling
            self.value = difference
        if arrival < self._settled:
            self.value = min(self.value, difference)
        share = min(max(arrival - self._last, 0.0) / _SMOOTHING, 1.0)
        self._last = arrival
        self.value += share * (difference - self.value)
        return self.value


class SlotClock:
    """Numbers the frames of a live source by the slots of a constant rate.

    A source has a clock of its own, which is steady but runs a little fast or slow; frames arrive
    by our clock, with jitter. A slot is chosen by the source's times, moved by the averaged
    difference of the clocks, so that jitter drops nothing and the clocks never drift apart.

    >>> clock = SlotClock(Fraction(10))
    >>> [clock.slot(time, arrival) for time, arrival in ((5.0, 0.0), (5.1, 0.14), (5.2, 0.2))]
    [0, 1, 2]
    """

    def __init__(self, rate: Fraction) -> None:
        self._rate, self._period = float(rate), float(1 / rate)
        self._difference = ClockDifference()
        self._begin: float | None = None  # our time in the middle of slot 0
        self._next = 0
        self._slack = max(0.55, min(0.9, _SLACK * self._rate))

    def slot(self, time: float | None, arrival: float) -> int:
        """Return the slot of a frame: by its time, if it has one, and the time of its arrival.

        A number that was returned before means that the frame is one too many.
        """
        when = arrival if time is None else time + self._difference.put(arrival - time, arrival)
        early = when - self._next * self._period
        settling = time is not None and self._next < self._rate
        if self._begin is None or (settling and early < self._begin):
            self._begin = early  # the first frames often arrive late, and by different times
        ideal = (when - self._begin) * self._rate
        if abs(ideal - self._next) <= self._slack:
            slot = self._next
        else:
            slot = max(0, math.floor(ideal + 0.5))
        self._next = max(self._next, slot + 1)
        return slot

    def skip(self, slot: int) -> None:
        """Count a slot as used, by a repeated picture."""
        self._next = max(self._next, slot + 1)

    def due(self, slot: int) -> float:
        """Return the time on our clock in the middle of a slot."""
        assert self._begin is not None
        return self._begin + slot * self._period

    @property
    def started(self) -> bool:
        """True from the first frame on."""
        return self._begin is not None


#: Seconds before the first attempt, and the most between two.
FIRST_WAIT: Final = 0.25
LONGEST_WAIT: Final = 8.0


class Backoff:
    """Waits that double, until the time for all attempts is over.

    Args:
        patience: seconds after which ``wait`` returns None.

    >>> backoff = Backoff(1.0)
    >>> [backoff.wait(elapsed) for elapsed in (0.0, 0.25, 0.75, 1.0)]
    [0.25, 0.5, 0.25, None]
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._next = FIRST_WAIT

    def wait(self, elapsed: float) -> float | None:
        """Return the seconds to wait after so many in all; None if the patience is over."""
        left = self._patience - elapsed
        if left <= 0:
            return None
        wait = min(self._next, left)
        self._next = min(2 * self._next, LONGEST_WAIT)
        return wait
