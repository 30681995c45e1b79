"""The critical path: what a frame waited for, from the moment it was done backwards.

At each moment one thread is on the path. Where it worked, the span it was in is on the path; where
it waited, the path goes on in the thread that ended the wait. What ran at the same time elsewhere
is not on it, however slow.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias

from dala.trace.export import Event
from dala.trace.recorder import Record

#: A thread or a device of a process.
Lane: TypeAlias = tuple[int, int]
#: A stage and its name.
Key: TypeAlias = tuple[str, str]

#: Between spans of Python code that records none; waiting for its turn after a wait was over; time
#: in which the system ran other threads; waiting for the time of the next frame.
PYTHON: Final[Key] = ("python", "")
TURN: Final[Key] = ("gil", "")
PROCESSOR: Final[Key] = ("processor", "")
IDLE: Final[Key] = ("idle", "")
#: Changes of threads without a step back in time after which a wait is blamed itself.
_HOPS: Final = 8


class Piece(NamedTuple):
    """A stretch of a lane's time: its innermost span, and the outermost one around that."""

    begin: int
    end: int
    span: Record
    root: Record


class Lanes:
    """The spans of all lanes, flattened to the innermost ones."""

    def __init__(self, events: Iterable[Event]) -> None:
        lanes: dict[Lane, list[Record]] = {}
        for process, record in events:
            if record[3] > record[2] and record[0] not in ("counter", "done"):
                lanes.setdefault((process, record[4]), []).append(record)
        self.pieces = {lane: flattened(spans) for lane, spans in lanes.items()}
        self._begins = {lane: [p.begin for p in found] for lane, found in self.pieces.items()}
        #: Ends of outermost spans, for waits that do not know who ended them.
        self._ends = sorted(
            (root[3], lane)
            for lane, found in self.pieces.items()
            for root in {id(p.root): p.root for p in found}.values()
            if not is_wait(root)
        )

    def path(self, lane: Lane, until: int, since: int) -> dict[Key, int]:
        """Return the nanoseconds of each stage on the critical path that ends at a moment."""
        found: dict[Key, int] = {}

        def add(key: Key, nanoseconds: int) -> None:
            if nanoseconds > 0:
                found[key] = found.get(key, 0) + nanoseconds

        at, hops = until, 0
        #: Lanes that gave work to one that does nothing in between: a device, a pool.
        givers: list[Lane] = []
        while at > since:
            piece = self._before(lane, at)
            if (piece is None or piece.end < at) and givers:
                lane = givers.pop()
                continue
            if piece is None or piece.end < at:
                begin = since if piece is None else max(piece.end, since)
                delay = min(self._delay_before(lane, at), at - begin)
                add(PROCESSOR, delay)
                add(PYTHON, at - begin - delay)
                at, hops = begin, 0
                continue
            begin, span = max(piece.begin, since), piece.span
            waker = self._waker(lane, piece, at) if is_wait(span) and hops < _HOPS else None
            if waker is not None:
                if "by" not in (span[6] or {}):
                    givers.append(lane)
                lane, woken = waker
                hops = hops + 1 if woken >= at else 0
                woken = max(woken, since)
                delay = min((piece.root[6] or {}).get("delayed_ns", 0), at - woken)
                add(PROCESSOR, delay)
                add(TURN, at - woken - delay)
                at = woken
                continue
            delay = _delay(piece, at - begin)
            add(PROCESSOR, delay)
            add(_key(span), at - begin - delay)
            at, hops = begin, 0
        return found

    def _delay_before(self, lane: Lane, at: int) -> int:
        """Return how long the system ran other threads before the span that begins at a moment."""
        begins = self._begins.get(lane, [])
        number = bisect_left(begins, at)
        if number == len(begins) or begins[number] != at:
            return 0
        delay: int = (self.pieces[lane][number].root[6] or {}).get("before_ns", 0)
        return delay

    def _before(self, lane: Lane, at: int) -> Piece | None:
        """Return the last piece of a lane that begins before a moment."""
        number = bisect_left(self._begins.get(lane, []), at)
        return self.pieces[lane][number - 1] if number else None

    def _waker(self, lane: Lane, piece: Piece, at: int) -> tuple[Lane, int] | None:
        """Return the lane that ended a wait, and when; None if none did."""
        span = piece.span
        facts = span[6] or {}
        if facts.get("by") is not None:
            other, woken = (lane[0], int(facts["by"])), int(facts.get("at", span[3]))
            # One that was there before the wait began woke no one.
            return (other, min(woken, at)) if other != lane and woken > span[2] else None
        if span[0] == "wait:idle":
            return None
        number = bisect_right(self._ends, (min(span[3], at) + 1,))
        while number:
            number -= 1
            end, other = self._ends[number]
            if end <= piece.begin:
                return None
            if other != lane:
                return other, min(end, at)
        return None


def _key(span: Record) -> Key:
    """Return what a span is counted as."""
    if span[0] == "wait:idle":
        return IDLE
    at = (span[6] or {}).get("at")
    # A wait for what was there already: the thread was not let go on.
    return TURN if is_wait(span) and at is not None and at <= span[2] else (span[0], span[1])


def is_wait(span: Record) -> bool:
    """Return whether a span is one of waiting."""
    return span[0].startswith("wait:")


def _delay(piece: Piece, nanoseconds: int) -> int:
    """Return the part of a stretch in which the system ran other threads."""
    root = piece.root
    delayed: int = (root[6] or {}).get("delayed_ns", 0)
    if piece.span[0] == "wait:idle":  # it overslept
        return min(nanoseconds, delayed)
    if not delayed or is_wait(piece.span):
        return 0
    return min(nanoseconds, delayed * nanoseconds // max(root[3] - root[2], 1))


def flattened(spans: list[Record]) -> list[Piece]:
    """Return the pieces of spans that nest, in order of time.

    >>> spans = [("a", "", 0, 10, 1, None, None), ("b", "", 2, 5, 1, None, None)]
    >>> [(p.begin, p.end, p.span[0]) for p in flattened(spans)]
    [(0, 2, 'a'), (2, 5, 'b'), (5, 10, 'a')]
    """
    pieces: list[Piece] = []
    stack: list[Record] = []
    at = 0

    def emit(end: int) -> None:
        if end > at:
            pieces.append(Piece(at, end, stack[-1], stack[0]))

    for span in sorted(spans, key=lambda s: (s[2], -s[3])):
        while stack and stack[-1][3] <= span[2]:
            emit(stack[-1][3])
            at = max(at, stack.pop()[3])
        if stack:
            emit(span[2])
        at = max(at, span[2]) if stack else span[2]
        stack.append(span)
    while stack:
        emit(stack[-1][3])
        at = max(at, stack.pop()[3])
    return pieces
