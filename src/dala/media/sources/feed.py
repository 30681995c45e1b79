"""What gives a source its pictures, one after the other, each with its time.

Feeds are used by one thread. Times are seconds since the source's beginning, exact.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache
from numbers import Real
from typing import Any, Final, NamedTuple

import numpy as np

from dala.errors import DalaError, ParameterError, VideoError
from dala.media.frame import Frame
from dala.media.pixels import to_bytes

#: Frames a second of pictures that have no time of their own, unless told.
FPS: Final = Fraction(30)
#: Pictures in a row that cannot be shown, after which no more are tried.
_HOPELESS: Final = 100


class Shot(NamedTuple):
    """A picture, and since when it is shown; until when, where that is known beforehand."""

    time: Fraction
    picture: Any
    until: Fraction | None = None


class BadPicture(Exception):
    """One picture cannot be shown; the next may be. Its cause says why."""


class Feed(ABC):
    """Pictures in the order of their times."""

    #: Whether ``seek`` may be called.
    rewinds = False
    #: Whether seeking forwards is quicker than going through all that lies between.
    seeks = False

    def __init__(self) -> None:
        #: Seconds of the whole; None until the end has been seen.
        self.length: Fraction | None = None

    @abstractmethod
    def next(self) -> Shot | None:
        """The next; None after the last. Raises what went wrong, after which there is no more.

        Raises:
            BadPicture: this one cannot be shown.
        """

    @abstractmethod
    def seek(self, time: Fraction) -> None:
        """The next is one that is not later than the time, or the first."""

    def interrupt(self) -> None:  # noqa: B027 - most cannot be
        """Called from another thread: whoever waits in ``next`` should stop."""

    def close(self) -> None:  # noqa: B027 - most hold nothing
        """Gives back what it holds."""


class ReaderFeed(Feed):
    """Frames of a video."""

    def __init__(self, reader: Any, *, owned: bool, device: str | None) -> None:
        super().__init__()
        self._reader = reader
        self._owned = owned
        self._device = device
        self.live = reader.policy == "latest"
        self.rewinds = self.seeks = not self.live
        self._begin: Fraction | None = None
        self._last: Fraction | None = None
        self._step = 1 / (reader.fps or FPS)

    def next(self) -> Shot | None:
        """The next frame, converted."""
        try:
            frame = next(self._reader)
        except StopIteration:
            self._ended()
            return None
        except VideoError:
            self._ended()
            raise
        time = frame.time
        if time is None:  # a reader gives every frame a time; other makers may not
            time = Fraction(0) if self._last is None else self._last + self._step
        if self._begin is None:
            self._begin = time
        self._last = time
        return Shot(time - self._begin, shown(frame, self._device))

    def seek(self, time: Fraction) -> None:
        """Goes to the frame shown at a time."""
        self._reader.seek(max((self._begin or Fraction(0)) + time, Fraction(0)))

    def _ended(self) -> None:
        if self._last is not None and self._begin is not None:
            self.length = self._last - self._begin + self._step

    def interrupt(self) -> None:
        """Wakes whoever waits for a frame."""
        if self._owned:
            self._reader.close()

    def close(self) -> None:
        """Closes the video, if it was opened for this."""
        if self._owned:
            self._reader.close()


class IteratorFeed(Feed):
    """Pictures of an iterator: frames, pictures at a rate, or (seconds, picture).

    Args:
        begin: gives an iterator; called again for each time from the start, where it ``rewinds``.
        fps: of pictures that have no time.
        device: where frames shall be; None leaves them where they are.
        rewinds: False for what can be gone through only once.
    """

    def __init__(
        self, begin: Callable[[], Iterator[Any]], fps: Fraction, device: str | None, rewinds: bool
    ) -> None:
        super().__init__()
        self._start = begin
        self._device = device
        self.rewinds = rewinds
        self._items: Iterator[Any] | None = None
        self._count = 0
        self._bad = 0
        self._begin: Fraction | None = None
        self._last: Fraction | None = None
        self._rate_step = self._step = 1 / fps

    def next(self) -> Shot | None:
        """The next picture, in bytes of its own."""
        try:
            if self._items is None:
                self._items = iter(self._start())
            item = next(self._items)
        except StopIteration:
            self.finish()
            return None
        except Exception:
            self.finish()
            raise
        try:
            found = self.place(item)
            shot = found._replace(picture=shown(found.picture, self._device, copy=True))
        except DalaError as error:
            self._bad += 1
            if self._bad >= _HOPELESS:
                self.finish()
                raise
            raise BadPicture from error
        self._bad = 0
        return shot

    def place(self, item: Any) -> Shot:
        """An item and its time, which comes after those of the items before it."""
        number, self._count = self._count, self._count + 1
        time, until = number * self._rate_step, None
        if isinstance(item, tuple | list) and len(item) == 2 and isinstance(item[0], Real):
            time, item = exact("the time of a picture", item[0]), item[1]
        elif isinstance(item, Frame) and item.time is not None:
            if self._begin is None:
                self._begin = item.time
            time = item.time - self._begin
        else:
            until = time + self._rate_step
        if self._last is not None and time < self._last:
            raise ParameterError(
                f"video source: picture {number} is at {float(time):g} s, after one at "
                f"{float(self._last):g} s. Give them in order."
            )
        if self._last is not None and time > self._last:
            self._step = time - self._last
        self._last = time
        return Shot(time, item, until)

    def seek(self, time: Fraction) -> None:
        """Begins again."""
        self._stop()
        self._items, self._count, self._bad = None, 0, 0
        self._begin = self._last = None

    def finish(self) -> None:
        """No more will come: the length is known."""
        if self._last is not None:
            self.length = self._last + self._step

    def _stop(self) -> None:
        end = getattr(self._items, "close", None)
        if callable(end) and self.rewinds:  # a generator made for this; others belong to others
            with contextlib.suppress(Exception):
                end()

    def close(self) -> None:
        """Ends the generator, so that its ``finally`` runs."""
        self._stop()
        self._items = None


def shown(picture: Any, device: str | None, *, copy: bool = False) -> Any:
    """A frame of bytes in gray, RGB or RGBA on the device, or an array of such.

    ``copy``: an array that is given may be written to again by whoever gave it.
    """
    if not isinstance(picture, Frame):
        array = to_bytes(picture, "video source")
        return np.array(array) if copy else array
    if picture.format in ("nv12", "i420"):
        return picture.to("rgba", device=device)
    if device is not None:
        picture = picture.to(device=device)
    if picture.dtype != "u8":
        from dala.media.formats import visible

        picture = picture.like(visible(picture))
    return picture


def exact(name: str, value: Any) -> Fraction:
    """A number as the fraction that is meant: a float is the simple one it is nearest to.

    One frame of 30 a second is 1/30, of which the float falls short or goes beyond; to compare
    times one needs the number itself.
    """
    if isinstance(value, Fraction):
        return value
    if type(value) is float and value - value == 0.0:
        return _nearest(value)
    try:
        if isinstance(value, bool):
            raise TypeError
        found = Fraction(value)
        return found.limit_denominator(1_000_000) if isinstance(value, Real) else found
    except (TypeError, ValueError, OverflowError, ZeroDivisionError):
        raise ParameterError(
            f"video source: {name} is a number or a fraction such as '30000/1001', {value!r} came."
        ) from None


@lru_cache(maxsize=64)
def _nearest(value: float) -> Fraction:
    """All sources of a scene ask for the same time."""
    return Fraction(value).limit_denominator(1_000_000)
