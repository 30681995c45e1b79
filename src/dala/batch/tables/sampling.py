"""Which frames of a video a task looks at.

A long video is shared by several tasks. Each opens it, and takes its share of the time. The frames
that all of them take together do not depend on their number: with ``every``, the first frame in
each step of the clock, if there is one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dala.media.frame import Frame
    from dala.media.video.reader import Reader


class Share:
    """The stretch of a video that one of several tasks looks at.

    Args:
        duration: seconds of the video by its header; None if unknown.
        number: which of the tasks, from 0.
        count: how many tasks.
        every: seconds between two frames; None for all frames.

    >>> shares = [Share(10.0, k, 3, Fraction(1)) for k in range(3)]
    >>> [(float(s.start), None if s.end is None else float(s.end)) for s in shares]
    [(0.0, 3.0), (3.0, 6.0), (6.0, None)]
    """

    def __init__(
        self, duration: float | None, number: int, count: int, every: Fraction | None
    ) -> None:
        self._every = every
        self._last = -1
        self.empty = False
        if not duration or duration <= 0:
            # Nothing can be shared out: the first task does it all.
            self.empty, number, count = number > 0, 0, 1
            duration = 0.0
        whole = Fraction(duration).limit_denominator(1_000_000)
        if every is None:
            borders = [whole * k / count for k in (number, number + 1)]
        else:
            steps = math.ceil(whole / every)
            borders = [steps * k // count * every for k in (number, number + 1)]
        self.start = borders[0]
        #: None for the last task, which goes on to the real end of the video.
        self.end = None if number == count - 1 else borders[1]

    def wants(self, time: Fraction) -> bool:
        """Return whether to take the frame of a time; times ascend."""
        if time < self.start or self.over(time):
            return False
        if self._every is None:
            return True
        step = math.floor(time / self._every)
        if step <= self._last:
            return False
        self._last = step
        return True

    def over(self, time: Fraction) -> bool:
        """Return whether a time is after this share."""
        return self.end is not None and time >= self.end


def frames_of(reader: Reader, share: Share) -> Iterator[Frame]:
    """Yield the frames of a share."""
    if share.empty or (share.end is not None and share.start >= share.end):
        return
    if share.start > 0:
        reader.seek(share.start)
    ended = False

    def wanted(time: Fraction) -> bool:
        nonlocal ended
        ended = share.over(time)
        return ended or share.wants(time)

    for frame in reader.where(wanted):
        if ended:
            return
        yield frame
