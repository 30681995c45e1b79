"""A thread that reads a few pictures ahead, and seeks on request."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Final

from dala import forks
from dala.budget import pause
from dala.errors import VideoError
from dala.media.sources.feed import BadPicture, Feed, TimedPicture

#: Number of pictures read ahead.
AHEAD: Final = 3
#: Seconds ahead from which on seeking is faster than reading on.
_SEEK_AHEAD: Final = Fraction(2)
#: Seconds that ``close`` waits for the thread before and after interrupting it.
_JOIN_TIMEOUT: Final = 1.0


@dataclass(eq=False)
class Player:
    """Pictures of a feed by time.

    With ``newest`` only the newest picture is kept, for live feeds. With ``loop`` the feed starts
    over at its end, and times continue. ``length`` is that of the feed, if it is known already.
    """

    feed: Feed
    _: KW_ONLY
    loop: bool
    newest: bool
    patience: float
    #: Duration of the feed in seconds; None until the end was reached.
    length: Fraction | None = None

    def __post_init__(self) -> None:
        self.errors = 0
        self.error: Exception | None = None
        #: Whether a picture is late, or (newest) there has been no new one for a while.
        self.stalled = False
        self._changed = forks.condition()
        self._queue: deque[TimedPicture] = deque()
        self._current: TimedPicture | None = None
        self._arrived = time.monotonic()
        self._count = self._count_at_stall = 0
        self._target: Fraction | None = None
        self._position = Fraction(0)  # the latest time that was read or requested
        self._loop_start = Fraction(0)  # the time at which the current loop began
        self._loop_has_picture = False  # whether the current loop has returned a picture
        self._age = 0  # incremented by seeks, to discard pictures read before
        self._ended = self._closed = self._cannot_rewind = False
        context = copy_context()  # the thread uses the caller's current device
        self._thread = forks.thread(lambda: context.run(self._run), name="dala-source")
        self._thread.start()

    # reading ----------------------------------------------------------------------------------
    def first(self) -> TimedPicture | None:
        """Return the current picture, or wait for the next one."""
        with self._changed:
            self._wait(lambda: bool(self._queue) or self._ended)
            return self._current or (self._queue[0] if self._queue else None)

    def at(self, when: Fraction) -> TimedPicture | None:
        """Return the newest picture not later than a time; wait for it, up to the patience."""
        with self._changed:
            self._rewind_to(when)
            self._wait(lambda: self._take_due(when))
            return self._current

    def turn(self, feed: Feed, when: Fraction) -> None:
        """Continue with another view of the feed at a time of that, such as the feed backwards."""
        with self._changed:
            if feed is not self.feed:
                self.feed = feed
                self._seek(when)

    def latest(self) -> TimedPicture | None:
        """Return the newest picture, without waiting."""
        with self._changed:
            if self._queue:
                self._current = self._queue.pop()
                self._queue.clear()
                self.stalled = False
            elif not self._ended and time.monotonic() - self._arrived > self.patience:
                self._stall(f"no new frame for {self.patience:g} s")
            return self._current

    def is_over(self, when: Fraction) -> bool:
        """Return True if a time is after the end."""
        with self._changed:
            if not self._ended or self._queue:
                return False
            if self.newest or self._current is None or self.length is None:
                return True
            return when >= self.length

    def close(self, wait: bool = True) -> None:
        """Stop the thread, which then closes the feed."""
        with self._changed:
            self._closed = self._ended = True
            self._queue.clear()
            self._current = None
            self._changed.notify_all()
        if wait and self._thread is not threading.current_thread():
            self._thread.join(_JOIN_TIMEOUT)
            if self._thread.is_alive():
                self.feed.interrupt()
                self._thread.join(_JOIN_TIMEOUT)

    # with the lock held -----------------------------------------------------------------------
    def _rewind_to(self, when: Fraction) -> None:
        if self._current is not None and when < self._current.time:
            if self.feed.rewinds:
                self._seek(when)
            elif not self._cannot_rewind:
                self._cannot_rewind = True
                self._record_error(
                    VideoError(
                        "open_source: a generator cannot go back in time; its newest picture "
                        "stays. Give a function that makes the generator, or a list."
                    )
                )

    def _take_due(self, when: Fraction) -> bool:
        """Take all pictures that are due; return True if no later one can be."""
        while self._queue and self._queue[0].time <= when:
            self._current = self._queue.popleft()
            self._changed.notify_all()
        if self._queue or self._ended:
            return True
        shown = self._current
        if shown is not None and shown.until is not None and when < shown.until:
            return True
        if self._is_far(when):
            self._seek(when)
        return False

    def _is_far(self, when: Fraction) -> bool:
        if self.loop and self.length and when >= self._position + 2 * self.length:
            return self.feed.rewinds
        return self.feed.seeks and when > self._position + _SEEK_AHEAD

    def _seek(self, when: Fraction) -> None:
        loops = when // self.length if self.loop and self.length else 0
        self._loop_start = loops * (self.length or Fraction(0))
        self._target = when - self._loop_start
        self._position = when
        self._queue.clear()
        self._current = None
        self._ended = self._loop_has_picture = False
        self._age += 1
        self._changed.notify_all()

    def _wait(self, done: Callable[[], bool]) -> None:
        """Wait for a condition, up to the patience; a stalled feed is not waited for again."""
        end = time.monotonic() + self.patience
        while not done():
            if self.stalled and self._count == self._count_at_stall:
                return
            left = end - time.monotonic()
            if left <= 0:
                self._stall(f"no picture for {self.patience:g} s")
                return
            pause(self._changed, left, "open_source")
        self.stalled = False

    def _stall(self, what: str) -> None:
        if not self.stalled:
            self.stalled = True
            self._count_at_stall = self._count
            self._record_error(VideoError(f"open_source: {what}."))

    def _record_error(self, error: Exception) -> None:
        self.error = error
        self.errors += 1

    # the thread -------------------------------------------------------------------------------
    def _run(self) -> None:
        try:
            while self._step():
                pass
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()
            try:
                self.feed.close()
            except Exception as error:
                self._record_error(error)

    def _step(self) -> bool:
        """Read one picture when there is room for it; return False after ``close``."""
        with self._changed:
            while not self._closed and self._target is None and self._is_full():
                self._changed.wait(0.5)
            if self._closed:
                return False
            target, self._target, age, feed = self._target, None, self._age, self.feed
        timed, problem = None, None
        try:
            if target is not None:
                feed.seek(target)
            timed = feed.next()
        except BadPicture as bad:
            with self._changed:
                self._record_error(bad.__cause__ if isinstance(bad.__cause__, Exception) else bad)
            return True
        except Exception as error:
            problem = error
        with self._changed:
            if problem is not None and not self._closed:
                self._record_error(problem)
            if age == self._age and not self._closed:
                self._enqueue(timed)
        return True

    def _is_full(self) -> bool:
        return self._ended or (len(self._queue) >= AHEAD and not self.newest)

    def _enqueue(self, timed: TimedPicture | None) -> None:
        self._count += 1
        self._changed.notify_all()
        if timed is not None:
            self._loop_has_picture = True
            self._arrived = time.monotonic()
            if self.newest:
                self._queue.clear()
            until = None if timed.until is None else timed.until + self._loop_start
            self._queue.append(TimedPicture(timed.time + self._loop_start, timed.picture, until))
            self._position = max(self._position, self._queue[-1].time)
            return
        if self.length is None:
            self.length = self.feed.length
        if self.loop and self._loop_has_picture and self.length:
            self._loop_start += self.length
            self._position = self._loop_start
            self._target = Fraction(0)
            self._loop_has_picture = False
        else:
            self._ended = True
