"""Views of a feed: a part of it, and the same backwards."""

from __future__ import annotations

from collections import deque
from fractions import Fraction
from typing import Final

from dala.errors import VideoError
from dala.media.frame import Frame
from dala.media.pictures.pixels import Pixels
from dala.media.sources.feed import FPS, Feed, TimedPicture

#: Memory and number of pictures that are held to go backwards.
_HELD_BYTES: Final = 256 << 20
_FEWEST, _MOST = 8, 64


class FeedView(Feed):
    """A feed that shows the pictures of another, which it closes."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.rewinds, self.seeks = feed.rewinds, feed.seeks

    def interrupt(self) -> None:
        """End a call of the other feed that waits."""
        self.feed.interrupt()

    def close(self) -> None:
        """Close the other feed."""
        self.feed.close()


class TrimmedFeed(FeedView):
    """The part of a feed between two times; its own times count from the first."""

    def __init__(self, feed: Feed, first: Fraction, last: Fraction | None) -> None:
        super().__init__(feed)
        self._from = first
        self._to = last
        self._ahead: deque[TimedPicture] = deque()
        self._begun = False

    def next(self) -> TimedPicture | None:
        """Return the next picture of the part; the first is the one shown where it begins."""
        if not self._begun:
            self._begun = True
            if self.rewinds and self._from:
                self.feed.seek(self._from)
            self._skip()
        timed = self._ahead.popleft() if self._ahead else self.feed.next()
        if timed is None or (self._to is not None and timed.time >= self._to):
            whole = self.feed.length
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
        while (timed := self.feed.next_good()) is not None and timed.time <= self._from:
            shown, over = timed, timed.until is not None and timed.until > self._from
            if over or timed.time == self._from:
                timed = None
                break
        self._ahead.extend(found for found in (shown, timed) if found is not None)

    def seek(self, time: Fraction) -> None:
        """Continue with the picture shown at a time of the part."""
        self._ahead.clear()
        self._begun = True
        if self.seeks and time > 0:
            self.feed.seek(self._from + time)
        else:
            self.feed.seek(self._from)
            self._skip()


class MirroredFeed(FeedView):
    """A feed backwards: it reads a block of pictures at a time, and returns the last one first.

    The block is as large as the memory for it allows, but at most 64 pictures.
    """

    def __init__(self, feed: Feed, length: Fraction) -> None:
        super().__init__(feed)
        self.length = self._whole = length
        self.rewinds = True
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
        self.feed.seek(begin)
        found: list[TimedPicture] = []
        while True:
            timed = self.feed.next_good()
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

    def close(self) -> None:
        """Close the feed, and drop the block."""
        self._block.clear()
        super().close()


def _bytes(picture: Frame | Pixels) -> int:
    if isinstance(picture, Frame):
        return max(1, picture.width * picture.height * 4)
    return max(1, picture.nbytes)
