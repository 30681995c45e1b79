"""Types of sources: a still picture, a list, a function of time, and a played feed."""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Final, TypeAlias, TypedDict, Unpack

import numpy as np

from dala import forks, resources
from dala.errors import DalaError, ParameterError
from dala.media.frame import Frame
from dala.media.pictures.pixels import Pixels, is_rgb_bytes
from dala.media.sources.clip import ClipPlace, ClipTimes
from dala.media.sources.feed import (
    Feed,
    FeedItem,
    IteratorFeed,
    MirroredFeed,
    ReaderFeed,
    TrimmedFeed,
    displayable,
)
from dala.media.sources.player import Player
from dala.media.sources.seconds import Moment, to_fraction
from dala.resources import Closing
from dala.typing import ImageLike, NDArray

if TYPE_CHECKING:
    from dala.media.video.reader import Reader

Picture: TypeAlias = Frame | Pixels

#: Less than the distance of any two frames, in seconds.
_MOMENT: Final = Fraction(1, 10**12)


class SourceOptions(TypedDict):
    """The arguments of :class:`Source`."""

    clip: ClipTimes
    stall: str


class Source(Closing, ABC):
    """Moving pictures as a function of the scene's time, opened by :func:`open_source`.

    ``at`` does not raise errors of the stream; ``error`` has the last one.
    """

    def __init__(self, *, clip: ClipTimes, stall: str) -> None:
        #: When it is shown, and which part of it; a clip with other start and end may be assigned.
        self.clip = clip
        self.stall = stall
        #: Changes exactly when ``at`` returns other pixels.
        self.version = 0
        #: The same for the same picture of the source, at any time; None if that is not known.
        self.key: Hashable = None
        #: Whether ``close`` was called.
        self.closed = False
        #: The picture that ``at`` returned last; None if there was none.
        self.picture: Picture | None = None
        self._size: tuple[int, int] | None = None
        #: Whether the source had ended at the time of the last call of ``at``.
        self.ended = False
        self._error: Exception | None = None
        self._errors = 0
        resources.track("source", "host", 0)
        self._end = weakref.finalize(self, resources.untrack, "source", "host", 0)
        self._end.atexit = False

    # state ------------------------------------------------------------------------------------
    @property
    def offset(self) -> Fraction:
        """The scene's time at which it starts."""
        return self.clip.begin

    @property
    def speed(self) -> Fraction:
        """Seconds of the source per second of scene time; at the start, if it changes."""
        return self.clip.speed.values[0]

    @property
    def length(self) -> Fraction | None:
        """Seconds of the whole source, exact; None if they are not known."""
        return None

    @property
    def size(self) -> tuple[int, int] | None:
        """Width and height of the last picture, or of the first; None if unknown."""
        if self.picture is not None:
            self._size = _size(self.picture)
        elif self._size is None and not self.closed:
            first = self._first()
            self._size = None if first is None else _size(first)
        return self._size

    @property
    def live_reader(self) -> Reader | None:
        """The open video of a live source; None for all others."""
        return None

    @property
    def stalled(self) -> bool:
        """True if a picture is late."""
        return False

    @property
    def error(self) -> Exception | None:
        """The last error, if any."""
        return self._error

    @property
    def errors(self) -> int:
        """Number of errors."""
        return self._errors

    def __repr__(self) -> str:
        found = self._size if self.picture is None else _size(self.picture)
        size = "" if found is None else f" {found[0]}x{found[1]}"
        return f"<{type(self).__name__}{size}{' closed' if self.closed else ''}>"

    # use --------------------------------------------------------------------------------------
    def at(self, time: float | Fraction | Moment) -> Picture | None:
        """Return the newest picture not later than a scene time; None to show nothing."""
        if self.closed:
            return None
        when = time if isinstance(time, Moment) else Moment.of(to_fraction("time", time))
        clip, place = self.clip, None
        self.ended = False
        self._check_process()
        try:
            if not clip.plain:
                place = clip.place(when.exact, self.length)
                found = None if place is None else self._at(Moment.of(place.time), place)
            else:
                if clip.start:  # arithmetic with fractions is slow
                    when = Moment.of(when.exact - clip.start)
                found = None if when.seconds < 0 else self._at(when, None)
        except Exception as error:
            self._record_error(error)
            found = self.picture if self.stall == "freeze" else None
        if found is not self.picture:
            self._set_picture(found)
            self.version += 1
        return found

    def close(self) -> None:
        """Stop threads and close the stream. Closing twice has no effect."""
        self._set_picture(None)
        self.closed = True
        self._end()

    # inside -----------------------------------------------------------------------------------
    def _set_picture(self, picture: Picture | None) -> None:
        if picture is None and self.picture is not None:
            self._size = _size(self.picture)
        self.picture = picture

    def _record_error(self, error: Exception) -> None:
        self._error = error
        self._errors += 1

    def _check_process(self) -> None:
        """Raise if the pictures come from a thread that this process does not have."""

    @abstractmethod
    def _at(self, when: Moment, place: ClipPlace | None) -> Picture | None:
        """Return the picture at a time of the source, which is not negative.

        ``place`` has the details of a clip that is trimmed, looped a number of times, or not at
        speed 1; without it, a loop is up to the source.
        """

    def _is_hidden(self, place: ClipPlace | None) -> bool:
        """Return True if the source is over and shows nothing then."""
        self.ended = self.ended or (place is not None and place.over)
        return self.ended and self.clip.freeze is False

    def _first(self) -> Picture | None:
        """Return the first picture, if it is known."""
        return None


class StillSource(Source):
    """One picture at all times."""

    def __init__(
        self, picture: ImageLike, device: str | None, **options: Unpack[SourceOptions]
    ) -> None:
        self._picture: Picture = displayable(picture, device, copy=True)
        clip = options["clip"]  # one picture has no speed, and no parts
        super().__init__(clip=ClipTimes(clip.start, clip.end), stall=options["stall"])

    def _at(self, when: Moment, place: ClipPlace | None) -> Picture | None:
        self.key = 0
        return self._picture

    def _first(self) -> Picture | None:
        return self._picture


class ListSource(Source):
    """Pictures in a list or array, with random access."""

    def __init__(
        self,
        items: Sequence[FeedItem] | NDArray,
        fps: Fraction,
        device: str | None,
        **options: Unpack[SourceOptions],
    ) -> None:
        if not len(items):
            raise ParameterError(
                "open_source: stream must be a list of at least one picture, got []."
            )
        self._fps = fps
        self._device = device
        self._made: tuple[int, Picture] | None = None
        self._times: list[Fraction] | None = None
        self._pictures: Sequence[ImageLike] | NDArray
        self._length = len(items) / fps
        if isinstance(items, np.ndarray):
            displayable(items[0], None)  # one check covers all
            self._pictures = items
        else:
            self._times, self._pictures, self._length = _with_times(items, fps)
        super().__init__(**options)

    def _at(self, when: Moment, place: ClipPlace | None) -> Picture | None:
        time, backward = when.exact, place is not None and place.backward
        if place is None:
            self.ended = self.clip.runs is not None and time >= self._length
            if self.clip.runs is None:
                time %= self._length
        if self._is_hidden(place):
            return None
        if self._times is None:
            at = time * self._fps
            index = min(-(-at // 1) - 1 if backward else at // 1, len(self._pictures) - 1)
        else:
            index = (bisect_left if backward else bisect_right)(self._times, time) - 1
        self.key = index
        return None if index < 0 else self._picture(index)

    @property
    def length(self) -> Fraction | None:
        """Seconds of all pictures."""
        return self._length

    def _first(self) -> Picture | None:
        return self._picture(0)

    def _picture(self, index: int) -> Picture:
        if self._made is None or self._made[0] != index:
            self._made = index, displayable(self._pictures[index], self._device)
        return self._made[1]


class FunctionSource(Source):
    """A function of the seconds since the beginning, called when a frame is drawn."""

    def __init__(
        self,
        function: Callable[[float], ImageLike | None],
        fps: Fraction | None,
        device: str | None,
        **options: Unpack[SourceOptions],
    ) -> None:
        clip = options["clip"]
        if clip.trim[1] is None and (clip.speed.turns_back or clip.runs not in (1, None)):
            raise ParameterError(
                "open_source: a function of time has no end to start over or go back from. Give "
                "trim=(from, to)."
            )
        self._function = function
        self._fps = fps
        self._device = device
        self._seconds: float | None = None
        self._picture: Picture | None = None
        super().__init__(**options)

    def _at(self, when: Moment, place: ClipPlace | None) -> Picture | None:
        seconds = when.seconds
        if self._is_hidden(place):
            return None
        if self._fps is not None:
            at = when.exact * self._fps
            backward = place is not None and place.backward
            seconds = float((-(-at // 1) - 1 if backward else at // 1) / self._fps)
        if seconds != self._seconds:
            self._seconds = seconds
            try:
                made = self._function(seconds)
                if is_rgb_bytes(made):
                    self._picture = made.view()
                else:
                    self._picture = (
                        None if made is None else _distinct(displayable(made, self._device))
                    )
            except Exception as error:
                self._record_error(error)
                if self.stall == "hide":
                    self._picture = None
        return self._picture

    def _first(self) -> Picture | None:
        return self._at(Moment.of(Fraction(0)), None) if self._seconds is None else self._picture


class PlayedSource(Source):
    """Pictures of a feed, read ahead by a thread."""

    def __init__(
        self,
        feed: Feed,
        newest: bool,
        patience: float,
        **options: Unpack[SourceOptions],
    ) -> None:
        clip = options["clip"]
        #: Whether a time of its frames always means the same frame, as in a file.
        self._repeats = isinstance(feed, ReaderFeed) and not newest
        self._length = checked_length(feed, clip)
        span = clip.span(self._length)
        if any(clip.trim):
            feed = TrimmedFeed(feed, *clip.trim)
        self._forward = feed
        self._backward = None
        if clip.speed.turns_back:
            assert span is not None
            self._backward = MirroredFeed(feed, span)
        super().__init__(**options)
        self._span = span
        self._newest = newest
        self._looked_ahead = False
        self._home = forks.Home()
        first = self._backward if self._backward and clip.speed.begins_backward else feed
        self._player = Player(
            first, loop=clip.runs != 1, newest=newest, patience=patience,
            length=span if self._length is not None else None,
        )  # fmt: skip
        self._stop = forks.finalize(self, self._player.close, False)

    @property
    def live_reader(self) -> Reader | None:
        """The open video of a live source; None for all others."""
        feed = self._forward
        return feed.reader if isinstance(feed, ReaderFeed) and feed.live else None

    def _check_process(self) -> None:
        self._home.check("open_source: the stream", "Open it again here.")

    @property
    def stalled(self) -> bool:
        """True if a picture is late."""
        return self._player.stalled

    @property
    def error(self) -> Exception | None:
        """The last error of the stream, if any."""
        return self._player.error or self._error

    @property
    def errors(self) -> int:
        """Number of errors of the stream."""
        return self._player.errors + self._errors

    def _at(self, when: Moment, place: ClipPlace | None) -> Picture | None:
        player = self._player
        if place is None or self._newest:
            timed = player.latest() if self._newest else player.at(when.exact)
            self.ended = player.is_over(when.exact)
        else:
            at = place.unrolled
            backward = place.backward and not place.over and self._backward is not None
            if backward:
                assert self._span is not None
                assert self._backward is not None
                at = self._span - at
                player.turn(self._backward, at)
            else:
                if place.backward:  # held: the picture just before the end
                    at = max(at - _MOMENT, Fraction(0))
                player.turn(self._forward, at)
            timed = player.at(at)
            self.ended = place.over or (not backward and player.is_over(at))
        if self._is_hidden(None):
            return None
        if player.stalled and self.stall == "hide":
            return None
        if timed is None:
            return None
        self.key = getattr(timed.picture, "time", None) if self._repeats else None
        return timed.picture

    @property
    def length(self) -> Fraction | None:
        """Seconds of the whole source, once they are known."""
        if self._length is None and not any(self.clip.trim):
            return self._player.length
        return self._length

    def _first(self) -> Picture | None:
        if self._newest or self._looked_ahead:
            return None
        self._looked_ahead = True
        timed = self._player.first()
        return None if timed is None else timed.picture

    def close(self) -> None:
        """Stop the thread and close the stream. Closing twice has no effect."""
        if self._stop.detach() is not None:
            self._player.close()
        super().close()


def checked_length(feed: Feed, clip: ClipTimes) -> Fraction | None:
    """Return the length of a feed if the clip needs it; raise an error if it cannot be known."""
    first, last = clip.trim
    still = Fraction(0) if isinstance(clip.freeze, bool) else clip.freeze
    if clip.speed.turns_back and not feed.rewinds:
        raise ParameterError(
            "open_source: a generator, iterator or live source cannot be read backwards. Give a "
            "function that makes the generator, a list, or a file."
        )
    expected = feed.expected
    furthest = max(first, last or 0, still)
    measured = clip.speed.turns_back or (clip.runs is not None and clip.runs > 1)
    if measured or (first and clip.runs is None) or (expected is not None and furthest > expected):
        length = feed.measure()
        if measured and length is None and last is None:
            raise ParameterError(
                "open_source: the length of the source is not known. Give trim=(from, to)."
            )
        if length is not None and furthest > length:
            name = "freeze" if still else "trim"
            raise ParameterError.invalid(
                "open_source",
                name,
                f"within the {float(length):g} s of the source",
                float(furthest),
            )
        return length
    return None


def _with_times(
    items: Sequence[FeedItem], fps: Fraction
) -> tuple[list[Fraction], list[ImageLike], Fraction]:
    """Return the times and pictures of a list, checked, and the duration of all."""
    feed = IteratorFeed(lambda: iter(items), fps, None, True)
    times: list[Fraction] = []
    pictures: list[ImageLike] = []
    for i, item in enumerate(items):
        try:
            time, picture, _ = feed.place(item)
            if not isinstance(picture, Frame):
                displayable(picture, None)
            times.append(time)
            pictures.append(picture)
        except DalaError as error:
            call = f"open_source: picture {i} of the list"
            raise ParameterError(str(error.within(call)), call="open_source") from error
    feed.finish()
    assert feed.length is not None
    return times, pictures, feed.length


def _distinct(picture: Picture) -> Picture:
    """Return a new array object, so that a change is noticed even if the memory is the same."""
    return picture if isinstance(picture, Frame) else picture.view()


def _size(picture: Picture) -> tuple[int, int]:
    if isinstance(picture, Frame):
        return picture.width, picture.height
    return int(picture.shape[1]), int(picture.shape[0])
