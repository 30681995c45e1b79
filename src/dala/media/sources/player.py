"""A thread that fetches pictures ahead of their time, a few at most, and goes where it is told."""

from __future__ import annotations

import threading
import time
from collections import deque
from contextvars import copy_context
from fractions import Fraction
from typing import Final

from dala.errors import VideoError
from dala.media.sources.feed import BadPicture, Feed, Shot

#: Pictures that wait, at most.
AHEAD: Final = 3
#: Seconds of the source beyond what is known, from which on seeking beats going through.
_FAR: Final = Fraction(2)
#: Seconds that ``close`` waits for the thread before it disturbs it, and then once more.
_GRACE: Final = 1.0


class Player:
    """Pictures of a feed by time.

    With ``newest`` it never waits for room: who is late sees the newest picture only. With ``loop``
    it goes round and round, and times go on.
    """

    def __init__(self, feed: Feed, *, loop: bool, newest: bool, patience: float) -> None:
        self.errors = 0
        self.error: Exception | None = None
        #: True while it has kept somebody waiting for too long, or (newest) has nothing new.
        self.stalled = False
        #: Seconds of one round; None until the end has been seen.
        self.length: Fraction | None = None
        self._feed = feed
        self._loop = loop
        self._newest = newest
        self._patience = patience
        self._changed = threading.Condition()
        self._shots: deque[Shot] = deque()
        self._shown: Shot | None = None
        self._arrived = time.monotonic()
        self._news = self._news_at_stall = 0
        self._target: Fraction | None = None
        self._position = Fraction(0)  # the latest time that is here, or on its way
        self._round = Fraction(0)  # when the present round began
        self._any = False  # whether the present round has given a picture
        self._age = 0  # grows by one whenever what is on its way is no longer wanted
        self._ended = False
        self._closed = False
        self._stuck = False
        context = copy_context()  # the device in use here is that of the thread
        self._thread = threading.Thread(
            target=lambda: context.run(self._run), name="dala-source", daemon=True
        )
        self._thread.start()

    # for those who look -----------------------------------------------------------------------
    def first(self) -> Shot | None:
        """The picture that is shown, or else the next, which is waited for."""
        with self._changed:
            self._wait(lambda: bool(self._shots) or self._ended)
            return self._shown or (self._shots[0] if self._shots else None)

    def at(self, when: Fraction) -> Shot | None:
        """The newest picture not later than a time. Waits for it, but not for ever."""
        with self._changed:
            self._go_to(when)
            self._wait(lambda: self._arrive(when))
            return self._shown

    def latest(self) -> Shot | None:
        """The newest that has come. Does not wait."""
        with self._changed:
            if self._shots:
                self._shown = self._shots.pop()
                self._shots.clear()
                self.stalled = False
            elif not self._ended and time.monotonic() - self._arrived > self._patience:
                self._stall(f"no new frame has come for {self._patience:g} s")
            return self._shown

    def is_over(self, when: Fraction) -> bool:
        """Whether the last picture has had its time."""
        with self._changed:
            if not self._ended or self._shots:
                return False
            if self._newest or self._shown is None or self.length is None:
                return True
            return when >= self.length

    def close(self, wait: bool = True) -> None:
        """Ends the thread, which then closes the feed."""
        with self._changed:
            self._closed = self._ended = True
            self._shots.clear()
            self._shown = None
            self._changed.notify_all()
        if wait and self._thread is not threading.current_thread():
            self._thread.join(_GRACE)
            if self._thread.is_alive():
                self._feed.interrupt()
                self._thread.join(_GRACE)

    # under the lock ---------------------------------------------------------------------------
    def _go_to(self, when: Fraction) -> None:
        if self._shown is not None and when < self._shown.time:
            if self._feed.rewinds:
                self._seek(when)
            elif not self._stuck:
                self._stuck = True
                self._note(
                    VideoError(
                        "video source: a generator cannot go back in time; its newest picture "
                        "stays. Give a function that makes the generator, or a list."
                    )
                )

    def _arrive(self, when: Fraction) -> bool:
        """Takes what is due; True when nothing that is to come can be due."""
        while self._shots and self._shots[0].time <= when:
            self._shown = self._shots.popleft()
            self._changed.notify_all()
        if self._shots or self._ended:
            return True
        shown = self._shown
        if shown is not None and shown.until is not None and when < shown.until:
            return True
        if self._is_far(when):
            self._seek(when)
        return False

    def _is_far(self, when: Fraction) -> bool:
        if self._loop and self.length and when >= self._position + 2 * self.length:
            return self._feed.rewinds
        return self._feed.seeks and when > self._position + _FAR

    def _seek(self, when: Fraction) -> None:
        rounds = when // self.length if self._loop and self.length else 0
        self._round = rounds * (self.length or Fraction(0))
        self._target = when - self._round
        self._position = when
        self._shots.clear()
        self._shown = None
        self._ended = self._any = False
        self._age += 1
        self._changed.notify_all()

    def _wait(self, done: object) -> None:
        """Until it is done, or the patience is over; who has stalled is not waited for again."""
        assert callable(done)
        end = time.monotonic() + self._patience
        while not done():
            if self.stalled and self._news == self._news_at_stall:
                return
            left = end - time.monotonic()
            if left <= 0:
                self._stall(f"it has given no picture for {self._patience:g} s")
                return
            self._changed.wait(min(left, 0.5))  # with a limit, so that Ctrl-C is heard everywhere
        self.stalled = False

    def _stall(self, what: str) -> None:
        if not self.stalled:
            self.stalled = True
            self._news_at_stall = self._news
            self._note(VideoError(f"video source: {what}."))

    def _note(self, error: Exception) -> None:
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
                self._feed.close()
            except Exception as error:
                self._note(error)

    def _step(self) -> bool:
        """Fetches one picture when there is room for it; False when no more is wanted."""
        with self._changed:
            while not self._closed and self._target is None and self._is_full():
                self._changed.wait(0.5)
            if self._closed:
                return False
            target, self._target, age = self._target, None, self._age
        shot, problem = None, None
        try:
            if target is not None:
                self._feed.seek(target)
            shot = self._feed.next()
        except BadPicture as bad:
            with self._changed:
                self._note(bad.__cause__ if isinstance(bad.__cause__, Exception) else bad)
            return True
        except Exception as error:
            problem = error
        with self._changed:
            if problem is not None and not self._closed:
                self._note(problem)
            if age == self._age and not self._closed:
                self._take(shot)
        return True

    def _is_full(self) -> bool:
        return self._ended or (len(self._shots) >= AHEAD and not self._newest)

    def _take(self, shot: Shot | None) -> None:
        self._news += 1
        self._changed.notify_all()
        if shot is not None:
            self._any = True
            self._arrived = time.monotonic()
            if self._newest:
                self._shots.clear()
            until = None if shot.until is None else shot.until + self._round
            self._shots.append(Shot(shot.time + self._round, shot.picture, until))
            self._position = max(self._position, self._shots[-1].time)
            return
        if self.length is None:
            self.length = self._feed.length
        if self._loop and self._any and self.length:
            self._round += self.length
            self._position = self._round
            self._target = Fraction(0)
            self._any = False
        else:
            self._ended = True
