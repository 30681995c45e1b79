"""Views of a feed: a part of it, and the same backwards."""

from __future__ import annotations

from collections import deque
from fractions import Fraction
from typing import Final

from dala.errors import VideoError
from dala.media.frame import Frame
from dala.media.pictures.pixels import Pixels
from dala.media.sources.feed import FPS, BadPicture, Feed, TimedPicture

#: Memory and number of pictures that are held to go backwards.
_HELD_BYTES: Final = 256 << 20
_FEWEST, _MOST = 8, 64


class TrimmedFeed(Feed):
    """The part of a feed between two times; its own times count from the first."""

    def __init__(self, feed: Feed, first: Fraction, last: Fraction | None) -> None:
        super().__init__()
        self._feed = feed
        self._from = first
        self._to = last
        self.rewinds, self.seeks = feed.rewinds, feed.seeks
        self._ahead: TimedPicture | None = None
        self._begun = False

    def next(self) -> TimedPicture | None:
        """Return the next picture of the part; the first is the one shown where it begins."""
        if not self._begun:
            self._begun = True
            if self.rewinds and self._from:
                self._feed.seek(self._from)
            self._skip()
        timed, self._ahead = self._ahead or self._feed.next(), None
        if timed is None or (self._to is not None and timed.time >= self._to):
            whole = self._feed.length
            ends = [end for end in (self._to, whole) if end is not None]
            self.length = max(min(ends) - self._from, Fraction(0)) if ends else None
            return None
        until = timed.until
        if until is not None:
            until = (until if self._to is None else min(until, self._to)) - self._from
        return TimedPicture(max(timed.time - self._from, Fraction(0)), timed.picture, until)

    def _skip(self) -> None:
        """Find the picture that is shown where the part begins."""
        shown: TimedPicture | None = None
        while True:
            try:
                timed = self._feed.next()
            except BadPicture:
                continue
            if timed is None:
                self._ahead = shown
                return
            if timed.time > self._from:
                break
            shown = timed
            if timed.until is not None and timed.until > self._from:
                break
            if timed.time == self._from:
                break
        if shown is None or shown is timed:
            self._ahead = timed
        else:
            self._ahead = shown
            self._feed = _Pushed(self._feed, timed)

    def seek(self, time: Fraction) -> None:
        """Continue with the picture shown at a time of the part."""
        if isinstance(self._feed, _Pushed):
            self._feed = self._feed.feed
        self._ahead, self._begun = None, True
        if self.seeks and time > 0:
            self._feed.seek(self._from + time)
        else:
            self._feed.seek(self._from)
            self._skip()

    def interrupt(self) -> None:
        """Make a blocked ``next`` return."""
        self._feed.interrupt()

    def close(self) -> None:
        """Close the feed."""
        self._feed.close()


class _Pushed(Feed):
    """A feed with one picture put back."""

    def __init__(self, feed: Feed, timed: TimedPicture) -> None:
        super().__init__()
        self.feed = feed
        self._timed: TimedPicture | None = timed
        self.rewinds, self.seeks = feed.rewinds, feed.seeks

    def next(self) -> TimedPicture | None:
        """Return the picture that was put back, then those of the feed."""
        timed, self._timed = self._timed, None
        if timed is None:
            timed = self.feed.next()
            self.length = self.feed.length
        return timed

    def seek(self, time: Fraction) -> None:
        """Seek in the feed."""
        self._timed = None
        self.feed.seek(time)

    def interrupt(self) -> None:
        """Make a blocked ``next`` return."""
        self.feed.interrupt()

    def close(self) -> None:
        """Close the feed."""
        self.feed.close()


class MirroredFeed(Feed):
    """A feed backwards: it reads a block of pictures at a time, and returns the last one first.

    The block is as large as the memory for it allows, but at most 64 pictures.
    """

    def __init__(self, feed: Feed, length: Fraction) -> None:
        super().__init__()
        self._feed = feed
        self.length = self._whole = length
        self.rewinds, self.seeks = True, feed.seeks
        self._block: deque[TimedPicture] = deque()
        #: Pictures before this time of the feed are still to come.
        self._before = length
        self._step = 1 / FPS
        self._count = _FEWEST

    def next(self) -> TimedPicture | None:
        """Return the picture before the last one."""
        while not self._block and self._before > 0:
            self._read()
        return self._block.popleft() if self._block else None

    def seek(self, time: Fraction) -> None:
        """Continue with the picture shown at a time, counted backwards from the end."""
        self._block.clear()
        at = min(self._whole - time, self._whole)
        self._before = at if at > 0 else min(self._step, self._whole)

    def _read(self) -> None:
        """Read the block of pictures before a time."""
        end = self._before
        begin = max(end - self._count * self._step, Fraction(0))
        self._feed.seek(begin)
        found: list[TimedPicture] = []
        while True:
            try:
                timed = self._feed.next()
            except BadPicture:
                continue
            if timed is None or timed.time >= end:
                break
            found.append(timed)
            if len(found) > self._count and not self.seeks:
                found.pop(0)
        if not found:
            raise VideoError("open_source: the source cannot be read backwards: it does not seek.")
        if self.seeks and len(found) > 1 and found[0].time < begin:
            del found[0]  # the next block has it
        if len(found) > 1:
            self._step = max((found[-1].time - found[0].time) / (len(found) - 1), Fraction(1, 1000))
        self._count = min(_MOST, max(_FEWEST, _HELD_BYTES // _bytes(found[0].picture)))
        later = end
        for timed in reversed(found):
            made = TimedPicture(self._whole - later, timed.picture, self._whole - timed.time)
            self._block.append(made)
            later = timed.time
        self._before = later

    def interrupt(self) -> None:
        """Make a blocked ``next`` return."""
        self._feed.interrupt()

    def close(self) -> None:
        """Close the feed, and drop the block."""
        self._block.clear()
        self._feed.close()


def _bytes(picture: Frame | Pixels) -> int:
    if isinstance(picture, Frame):
        return max(1, picture.width * picture.height * 4)
    return max(1, picture.nbytes)
