"""Times of clips: one mapping from the time of a scene to the time of a source.

Videos, functions, lists, subtitles, groups, inner scenes and timelines all have a
:class:`ClipTimes`. Its ``place`` maps a time of the scene (or group) to a time of the source.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

from dala.arguments import Integer, Items
from dala.errors import ParameterError
from dala.media.sources.seconds import Moment, TimeLike, seconds_of, to_fraction
from dala.media.sources.speed import Speed, SpeedLike

#: (from, to) in seconds of the source; None stands for its beginning or end.
TrimLike: TypeAlias = "tuple[TimeLike | None, TimeLike | None] | list[TimeLike | None]"
#: What is shown where there is no picture: the last one, or nothing.
POLICIES: Final = ("freeze", "hide")
#: Seconds before its start at which a clip is opened, and after its end at which it is closed.
SOON: Final = 1.0
LATELY: Final = 0.25
#: Floats this close to a border are compared exactly.
_CLOSE: Final = 1e-5
#: Pieces of a curved speed are this long.
_STEP: Final = Fraction(1, 50)


_NORMAL: Final = Speed(1)


class ClipPlace(NamedTuple):
    """A moment of a source."""

    #: Seconds since the beginning of the source, within the trimmed part.
    time: Fraction
    #: Seconds since the beginning of the trimmed part, counting on through all runs of a loop.
    unrolled: Fraction
    #: Whether it runs backwards there: then the picture is the one shown just before ``time``.
    backward: bool
    #: Whether the source has ended, and its last picture is held.
    over: bool


class ClipPiece(NamedTuple):
    """A stretch of time over which a clip plays its source at a constant speed."""

    #: Beginning and end, in the time of the scene or group.
    start: Fraction
    end: Fraction
    #: The times of the source at both; the second is the smaller if it runs backwards.
    source_start: Fraction
    source_end: Fraction


@dataclass(eq=False, repr=False, slots=True)
class ClipTimes:
    """The times of a clip, exact: when it is there, and which part of its source it plays.

    Args:
        start: the time of the scene at which it begins; None for one that is always there, whose
            source begins at 0.
        end: the time at which it is gone; None for never.
        trim: the part of the source to play, (from, to) in its seconds.
        speed: seconds of the source per second.
        runs: how often the part is played; None for without end.
        freeze: True to hold the last picture after the end, False to show nothing then, or the
            time of the one picture to show.

    >>> clip = ClipTimes(start=Fraction(10), trim=(Fraction(2), Fraction(4)), runs=None)
    >>> clip.place(Fraction(13)).time
    Fraction(3, 1)
    """

    start: Fraction | None = None
    end: Fraction | None = None
    trim: tuple[Fraction, Fraction | None] = (Fraction(0), None)
    speed: Speed = _NORMAL
    runs: int | None = 1
    freeze: bool | Fraction = True
    _first: float = field(init=False)
    _last: float = field(init=False)
    #: Whether its source runs as it is: at speed 1, from its beginning.
    plain: bool = field(init=False)

    def __post_init__(self) -> None:
        self._first = float("-inf") if self.start is None else float(self.start)
        self._last = float("inf") if self.end is None else float(self.end)
        self.plain = (
            not any(self.trim) and self.speed.constant == 1
            and self.runs in (1, None) and isinstance(self.freeze, bool)
        )  # fmt: skip

    @classmethod
    def of(
        cls,
        call: str,
        *,
        start: TimeLike | None = None,
        end: TimeLike | None = None,
        duration: TimeLike | None = None,
        trim: TrimLike | None = None,
        speed: SpeedLike | None = None,
        loop: bool | int | None = None,
        freeze: bool | TimeLike | None = None,
        offset: TimeLike | None = None,
        policies: bool = False,
    ) -> ClipTimes:
        """Return the times that a call gives, checked.

        ``offset`` is another name of ``start``. With ``policies``, ``end`` may be "freeze" or
        "hide".
        """
        moved = None if offset is None else to_fraction("offset", offset, call)
        if start is not None and moved:
            raise ParameterError(f"{call}: give start or offset, which mean the same, not both.")
        start = start if start is not None else moved or None
        if policies and isinstance(end, str) and end in POLICIES:
            if freeze is not None:
                raise ParameterError(f"{call}: give freeze or end={end!r}, not both.")
            freeze, end = end == "freeze", None
        elif policies and isinstance(end, str) and not any(c.isdigit() for c in end):
            raise ParameterError.invalid(call, "end", "a time in seconds, 'freeze' or 'hide'", end)
        begin = None if start is None else seconds_of(start, call, "start")
        if end is not None and duration is not None:
            raise ParameterError(f"{call}: give end or duration, not both.")
        last = None if end is None else seconds_of(end, call, "end")
        if duration is not None:
            length = seconds_of(duration, call, "duration")
            if length <= 0:
                raise ParameterError.invalid(call, "duration", "above 0", duration)
            last = (begin or Fraction(0)) + length
        check_order(begin, last, call)
        still = _freeze(freeze, call)
        if not isinstance(still, bool) and (trim or loop or speed not in (None, 1)):
            raise ParameterError(
                f"{call}: freeze is the time of one picture, so trim, speed and loop do not apply. "
                "Leave them out."
            )
        made = _NORMAL if speed is None else Speed(speed, call)
        return cls(begin, last, _trim(trim, call), made, _runs(loop, call), still)

    def with_times(self, start: Fraction | None, end: Fraction | None) -> ClipTimes:
        """Return the same clip at another time."""
        return replace(self, start=start, end=end)

    # facts ------------------------------------------------------------------------------------
    @property
    def begin(self) -> Fraction:
        """The time at which the source begins."""
        return Fraction(0) if self.start is None else self.start

    @property
    def bounded(self) -> bool:
        """True if it is not always there."""
        return self.start is not None or self.end is not None

    @property
    def needs_length(self) -> bool:
        """True if ``place`` needs the length of the source."""
        return self.trim[1] is None and (self.speed.turns_back or self.runs != 1)

    def exists(self, when: Moment) -> bool:
        """Return True if it is there at a time: from the start on, and before the end."""
        seconds = when.seconds
        if seconds < self._first + _CLOSE:
            if seconds < self._first - _CLOSE:
                return False
            if self.start is not None and when.exact < self.start:
                return False
        if seconds > self._last - _CLOSE:
            return seconds < self._last + _CLOSE and self.end is not None and when.exact < self.end
        return True

    def is_near(self, when: Moment) -> bool:
        """Return True if it is there at a time, or about to be, or was just now."""
        return self._first - SOON <= when.seconds < self._last + LATELY

    def span(self, length: Fraction | None) -> Fraction | None:
        """Return the seconds of the source that one run plays; None if they are not known."""
        first, last = self.trim
        if last is None or (length is not None and last > length):
            last = length
        return None if last is None else max(last - first, Fraction(0))

    def natural_end(self, length: Fraction | None) -> Fraction | None:
        """Return the time at which it ends, by itself or by its ``end``; None for never."""
        span = self.span(length)
        ends = [] if self.end is None else [self.end]
        if self.runs is not None and span is not None and isinstance(self.freeze, bool):
            took = self.speed.reaches(span * self.runs)
            ends += [] if took is None else [self.begin + took]
        return min(ends, default=None)

    # the mapping ------------------------------------------------------------------------------
    def place(self, time: Fraction, length: Fraction | None = None) -> ClipPlace | None:
        """Return the moment of the source at a time; None where nothing is shown.

        ``length`` is that of the whole source, if it is known.
        """
        since = time - self.begin
        if since < 0:
            return None
        if not isinstance(self.freeze, bool):
            return ClipPlace(self.freeze, self.freeze, False, False)
        first, span = self.trim[0], self.span(length)
        at, backward = self.speed.position(since), self.speed.is_backward(since)
        if self.speed.begins_backward:
            if span is None:
                raise ParameterError(
                    "clip: what runs backwards needs an end to begin at. Give trim=(from, to)."
                )
            at += span
        low, high = self._range(span)
        over = False
        if low is not None and (at < low or (at == low and backward)):
            at, backward, over = low, False, True
        elif high is not None and (at > high or (at == high and not backward)):
            at, backward, over = high, True, True
        if over and not self.freeze:
            return None
        folded = at
        if span and self.runs != 1:
            run = -(-at // span) - 1 if backward else at // span
            folded = at - run * span
        return ClipPlace(first + folded, at, backward, over)

    def _range(self, span: Fraction | None) -> tuple[Fraction | None, Fraction | None]:
        """Return the least and largest position of all runs; None where there is no limit."""
        if self.runs is None:
            return (Fraction(0) if span is None else None), None
        whole = None if span is None else span * self.runs
        if self.speed.begins_backward and span is not None and whole is not None:
            return span - whole, span
        return Fraction(0), whole

    def pieces(
        self, start: Fraction, end: Fraction, length: Fraction | None = None
    ) -> list[ClipPiece]:
        """Return the stretches of constant speed between two times; gaps are silence or stills.

        Sound follows a clip by them: runs of a loop, trims and the end of the source are borders,
        and a curved speed is cut into steps of a fiftieth of a second.

        >>> ClipTimes(trim=(Fraction(0), Fraction(2)), runs=2).pieces(Fraction(1), Fraction(9))
        [ClipPiece(start=Fraction(1, 1), end=Fraction(2, 1), source_start=Fraction(1, 1), \
source_end=Fraction(2, 1)), ClipPiece(start=Fraction(2, 1), end=Fraction(4, 1), \
source_start=Fraction(0, 1), source_end=Fraction(2, 1))]
        """
        begin = max(start, self.begin)
        stop = end if self.end is None else min(end, self.end)
        if begin >= stop or not isinstance(self.freeze, bool):
            return []
        span = self.span(length)
        base = span if self.speed.begins_backward and span is not None else Fraction(0)
        found: list[ClipPiece] = []
        for first, last in self._steady(begin, stop):
            a, b = (base + self.speed.position(t - self.begin) for t in (first, last))
            if a != b:
                found += self._folded(first, last, a, b, span)
        return found

    def _steady(self, begin: Fraction, stop: Fraction) -> list[tuple[Fraction, Fraction]]:
        """Return the parts of a stretch in which the speed counts as constant."""
        if self.speed.constant is not None:
            return [(begin, stop)]
        borders = {begin, stop}
        borders |= {t + self.begin for t in self.speed.times if begin < t + self.begin < stop}
        first = -(-begin // _STEP)
        last = stop // _STEP
        borders |= {n * _STEP for n in range(first, last + 1) if begin < n * _STEP < stop}
        ordered = sorted(borders)
        return list(pairwise(ordered))

    def _folded(
        self, first: Fraction, last: Fraction, a: Fraction, b: Fraction, span: Fraction | None
    ) -> list[ClipPiece]:
        """Return the pieces of a stretch that goes from position a to b, run by run."""
        offset = self.trim[0]
        if span is None:
            return [ClipPiece(first, last, offset + a, offset + b)] if min(a, b) >= 0 else []
        if not span:
            return []
        least, most = self._range(span)
        low = min(a, b) if least is None else max(min(a, b), least)
        high = max(a, b) if most is None else min(max(a, b), most)
        made: list[ClipPiece] = []
        run = low // span
        while run * span < high:
            p, q = max(low, run * span), min(high, (run + 1) * span)
            t, u = (first + (x - a) * (last - first) / (b - a) for x in (p, q))
            s, e = offset + p - run * span, offset + q - run * span
            if q > p:
                made.append(ClipPiece(t, u, s, e) if b > a else ClipPiece(u, t, e, s))
            run += 1
        return made if b > a else made[::-1]

    def __repr__(self) -> str:
        start = "" if self.start is None else f"{float(self.start):g}"
        end = "" if self.end is None else f"{float(self.end):g}"
        return f"<ClipTimes {start}..{end}>"


#: The times of what is always there and runs as it is.
ALWAYS: Final = ClipTimes()


def check_order(start: Fraction | None, end: Fraction | None, call: str) -> None:
    """Raise ParameterError unless a clip ends after it starts."""
    first = Fraction(0) if start is None else start
    if end is not None and end <= first:
        raise ParameterError.invalid(
            call, "end", f"after the start at {float(first):g} s", float(end)
        )


def _trim(given: TrimLike | None, call: str) -> tuple[Fraction, Fraction | None]:
    if given is None:
        return Fraction(0), None
    begin, end = Items("(from, to) in seconds of the source", (2,)).check(call, "trim", given)
    first = Fraction(0) if begin is None else seconds_of(begin, call, "trim")
    last = None if end is None else seconds_of(end, call, "trim")
    if first < 0 or (last is not None and last <= first):
        expected = "(from, to) with 0 <= from < to"
        raise ParameterError.invalid(call, "trim", expected, tuple(given))
    return first, last


def _runs(loop: bool | int | None, call: str) -> int | None:
    if loop is None or loop is False:
        return 1
    if loop is True:
        return None
    words = "True, False or the number of runs, an int of at least 1"
    return Integer(1, words=words).check(call, "loop", loop)


def _freeze(given: bool | TimeLike | None, call: str) -> bool | Fraction:
    if given is None or isinstance(given, bool):
        return True if given is None else given
    try:
        found = seconds_of(given, call, "freeze")
    except ParameterError:
        found = Fraction(-1)
    if found < 0:
        expected = "True, False or the time of a picture, in seconds of the source"
        raise ParameterError.invalid(call, "freeze", expected, given)
    return found
