"""Feeds: the pictures of a source in order, read one by one, in part, or backwards."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, cast

import numpy as np

from dala.errors import DalaError, ParameterError, VideoError
from dala.media.frame import Frame
from dala.media.pictures.pixels import Pixels, to_u8
from dala.media.sources.seconds import to_fraction

if TYPE_CHECKING:
    from dala.media.video.reader import Reader
    from dala.typing import ImageLike


#: Default frame rate of pictures without a time of their own.
FPS: Final = Fraction(30)
#: A feed ends after this many unreadable pictures in a row.
_MAX_FAILURES: Final = 100


#: What an iterator yields: a picture, or (seconds, picture).
FeedItem: TypeAlias = "ImageLike | tuple[float, ImageLike]"


class TimedPicture(NamedTuple):
    """A picture and its time; ``until`` is the time of the next one, if that is known."""

    time: Fraction
    picture: Frame | Pixels
    until: Fraction | None = None


class BadPicture(Exception):
    """A single picture cannot be shown; its cause says why. The next one may be fine."""


class Feed(ABC):
    """Pictures in order of time."""

    #: Whether ``seek`` may be called.
    rewinds = False
    #: Whether seeking forwards is faster than reading all frames in between.
    seeks = False
    #: Duration in seconds; None until the end was reached.
    length: Fraction | None = None

    @abstractmethod
    def next(self) -> TimedPicture | None:
        """Return the next picture; None after the last. Any error but BadPicture ends the feed.

        Raises:
            BadPicture: this picture cannot be shown.
        """

    @abstractmethod
    def seek(self, time: Fraction) -> None:
        """Continue with a picture that is not later than a time, or with the first."""

    def next_good(self) -> TimedPicture | None:
        """Return the next picture that can be shown; None at the end."""
        while True:
            with contextlib.suppress(BadPicture):
                return self.next()

    @property
    def expected(self) -> Fraction | None:
        """The length as far as it is known before reading."""
        return self.length

    def measure(self) -> Fraction | None:
        """Return the length of the feed, and start over; None if it has no end to be found.

        A feed that does not seek reads all its pictures for that.
        """
        if self.length is None and self.rewinds:
            while self.next_good() is not None:
                pass
            self.seek(Fraction(0))
        return self.length

    def interrupt(self) -> None:  # noqa: B027 - most feeds do not block
        """Make a blocked ``next`` return; called from another thread."""

    def close(self) -> None:  # noqa: B027 - most feeds hold nothing
        """Release the resources of the feed."""


@dataclass(eq=False)
class ReaderFeed(Feed):
    """Frames of an open video."""

    #: The open video.
    reader: Reader
    owned: bool
    device: str | None

    def __post_init__(self) -> None:
        self.live = self.reader.policy == "latest"
        self.rewinds = self.seeks = not self.live
        self._begin: Fraction | None = None
        self._last: Fraction | None = None
        self._step = 1 / (self.reader.fps or FPS)

    def next(self) -> TimedPicture | None:
        """Return the next frame, converted."""
        try:
            frame = next(self.reader)
        except StopIteration:
            self._ended()
            return None
        except VideoError:
            self._ended()
            raise
        time = frame.time
        if time is None:  # readers give every frame a time; other objects may not
            time = Fraction(0) if self._last is None else self._last + self._step
        if self._begin is None:
            self._begin = time
        self._last = time
        return TimedPicture(time - self._begin, displayable(frame, self.device))

    def seek(self, time: Fraction) -> None:
        """Continue with the frame shown at a time."""
        self.reader.seek(max((self._begin or Fraction(0)) + time, Fraction(0)))

    @property
    def expected(self) -> Fraction | None:
        """The length as the file's header gives it."""
        found = None if self.live else self.reader.duration
        return None if found is None else Fraction(found).limit_denominator(1_000_000)

    def measure(self) -> Fraction | None:
        """Return the length, found by reading the last picture, and start over."""
        if self.length is None and self.rewinds:
            if self._begin is None:
                self.next()
            self.reader.seek(self.expected or Fraction(10**6))
            while self.next() is not None:
                pass
            self.seek(Fraction(0))
        return self.length

    def _ended(self) -> None:
        if self._last is not None and self._begin is not None:
            self.length = self._last - self._begin + self._step

    def interrupt(self) -> None:
        """Close the video if the feed owns it, which wakes a thread that waits for a frame."""
        if self.owned:
            self.reader.close()

    close = interrupt


@dataclass(eq=False)
class IteratorFeed(Feed):
    """Pictures of an iterator: frames, pictures at a rate, or (seconds, picture).

    Args:
        begin: returns an iterator; called again to start over, if it ``rewinds``.
        fps: frame rate of pictures without a time.
        device: the device of the frames; None leaves them where they are.
        rewinds: False for iterators that can be read only once.
    """

    begin: Callable[[], Iterator[FeedItem]]
    fps: Fraction
    device: str | None
    rewinds: bool

    def __post_init__(self) -> None:
        self._items: Iterator[FeedItem] | None = None
        self._count = self._bad = 0
        self._begin: Fraction | None = None
        self._last: Fraction | None = None
        self._rate_step = self._step = 1 / self.fps

    def next(self) -> TimedPicture | None:
        """Return the next picture, copied."""
        try:
            if self._items is None:
                self._items = iter(self.begin())
            item = next(self._items)
        except StopIteration:
            self.finish()
            return None
        except Exception:
            self.finish()
            raise
        try:
            time, picture, until = self.place(item)
            timed = TimedPicture(time, displayable(picture, self.device, copy=True), until)
        except DalaError as error:
            self._bad += 1
            if self._bad >= _MAX_FAILURES:
                self.finish()
                raise
            raise BadPicture from error
        self._bad = 0
        return timed

    def place(self, item: FeedItem) -> tuple[Fraction, ImageLike, Fraction | None]:
        """Return the time of an item, its picture, and the time of the next one if that is known.

        The time must not be before that of the last item.
        """
        number, self._count = self._count, self._count + 1
        time, until = number * self._rate_step, None
        if isinstance(item, tuple | list) and len(item) == 2 and isinstance(item[0], Real):
            time, item = to_fraction("the time of a picture", cast(float, item[0])), item[1]
        elif isinstance(item, Frame) and item.time is not None:
            if self._begin is None:
                self._begin = item.time
            time = item.time - self._begin
        else:
            until = time + self._rate_step
        if self._last is not None and time < self._last:
            raise ParameterError(
                f"open_source: pictures must be in order of time; number {number} is at "
                f"{float(time):g} s, after one at {float(self._last):g} s."
            )
        if self._last is not None and time > self._last:
            self._step = time - self._last
        self._last = time
        return time, cast("ImageLike", item), until  # displayable refuses anything else

    def seek(self, time: Fraction) -> None:
        """Start over."""
        self._stop()
        self._items, self._count, self._bad = None, 0, 0
        self._begin = self._last = None

    def finish(self) -> None:
        """Set the length after the last picture."""
        if self._last is not None:
            self.length = self._last + self._step

    def _stop(self) -> None:
        end = getattr(self._items, "close", None)
        if callable(end) and self.rewinds:  # only generators that this feed made
            with contextlib.suppress(Exception):
                end()

    def close(self) -> None:
        """Close the generator, so that its ``finally`` blocks run."""
        self._stop()
        self._items = None


def displayable(picture: ImageLike, device: str | None, *, copy: bool = False) -> Frame | Pixels:
    """Return a u8 Frame on the device, or a u8 array, in gray, RGB or RGBA.

    With ``copy``, arrays are copied, because the caller may write to them again.
    """
    if not isinstance(picture, Frame):
        array = to_u8(picture, "open_source")
        return cast(Pixels, np.array(array)) if copy else array
    if picture.format in ("nv12", "i420"):
        return picture.to("rgba", device=device)
    if device is not None:
        picture = picture.to(device=device)
    if picture.dtype != "u8":
        from dala.media.formats import visible

        picture = picture.like(visible(picture))
    return picture


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
