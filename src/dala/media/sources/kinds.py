"""Sources by kind: one picture, a list of them, a function of time, and what is played."""

from __future__ import annotations

import weakref
from bisect import bisect_right
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from dala import resources
from dala.errors import DalaError, ParameterError
from dala.media.frame import Frame
from dala.media.moment import Moment
from dala.media.pixels import Pixels, plain
from dala.media.sources.feed import Feed, IteratorFeed, Shot, exact, shown
from dala.media.sources.player import Player
from dala.resources import Closing

Picture: TypeAlias = Frame | Pixels


class Source(Closing):
    """Moving pictures by the scene's time. Made by :func:`open_source`.

    Nothing that goes wrong in what it shows is raised by ``at``: ``error`` has it.
    """

    def __init__(self, *, offset: Fraction, speed: Fraction, end: str, stall: str) -> None:
        self.offset = offset
        self.speed = speed
        self.end = end
        self.stall = stall
        #: Changes exactly when ``at`` gives other pixels.
        self.version = 0
        #: Whether its time is another than the scene's: arithmetic with fractions is not quick.
        self._shifted = offset != 0 or speed != 1
        self._closed = False
        self._given: Picture | None = None
        self._size: tuple[int, int] | None = None
        self._over = False
        self._error: Exception | None = None
        self._errors = 0
        resources.track("source", "host", 0)
        self._end = weakref.finalize(self, resources.untrack, "source", "host", 0)
        self._end.atexit = False

    # facts ------------------------------------------------------------------------------------
    @property
    def size(self) -> tuple[int, int] | None:
        """Width and height of what was shown last, or will be shown first; None if unknown."""
        if self._given is not None:
            self._size = _size(self._given)
        elif self._size is None and not self._closed:
            first = self._first()
            self._size = None if first is None else _size(first)
        return self._size

    @property
    def ended(self) -> bool:
        """True when the last ``at`` was after the end."""
        return self._over

    @property
    def stalled(self) -> bool:
        """True while a picture is due that does not come."""
        return False

    @property
    def error(self) -> Exception | None:
        """What went wrong last; None if nothing did."""
        return self._error

    @property
    def errors(self) -> int:
        """How often something went wrong."""
        return self._errors

    @property
    def closed(self) -> bool:
        """True once it was closed."""
        return self._closed

    def __repr__(self) -> str:
        found = self._size if self._given is None else _size(self._given)
        size = "" if found is None else f" {found[0]}x{found[1]}"
        return f"<{type(self).__name__}{size}{' closed' if self.closed else ''}>"

    # use --------------------------------------------------------------------------------------
    def at(self, time: float | Fraction | Moment) -> Picture | None:
        """The newest picture not later than a time of the scene; None: show nothing."""
        if self._closed:
            return None
        when = time if type(time) is Moment else Moment.of(exact("time", time))
        if self._shifted:
            when = Moment.of((when.exact - self.offset) * self.speed)
        self._over = False
        try:
            found = None if when.seconds < 0 else self._at(when)
        except Exception as error:
            self._note(error)
            found = self._given if self.stall == "freeze" else None
        if found is not self._given:
            self._give(found)
            self.version += 1
        return found

    def close(self) -> None:
        """Ends threads and closes what was opened. Closing twice is fine."""
        self._give(None)
        self._closed = True
        self._end()

    # inside -----------------------------------------------------------------------------------
    def _give(self, picture: Picture | None) -> None:
        if picture is None and self._given is not None:
            self._size = _size(self._given)
        self._given = picture

    def _note(self, error: Exception) -> None:
        self._error = error
        self._errors += 1

    def _at(self, when: Moment) -> Picture | None:
        """The picture at a time of the source, from 0 on."""
        raise NotImplementedError

    def _first(self) -> Picture | None:
        """The picture that will be shown first, if it can be told."""
        return None


class StillSource(Source):
    """One picture for ever."""

    def __init__(self, picture: Any, device: str | None, **options: Any) -> None:
        self._picture: Picture = shown(picture, device, copy=True)
        super().__init__(**options)

    def _at(self, when: Moment) -> Picture | None:
        return self._picture

    def _first(self) -> Picture | None:
        return self._picture


class ListSource(Source):
    """Pictures that are all there: any time is at hand."""

    def __init__(
        self, items: Any, fps: Fraction, device: str | None, loop: bool, **options: Any
    ) -> None:
        if not len(items):
            raise ParameterError("open_source: the list is empty; give at least one picture.")
        self._fps = fps
        self._loop = loop
        self._device = device
        self._made: tuple[int, Picture] | None = None
        self._times: list[Fraction] | None = None
        self._pictures: Any = items
        self._length = len(items) / fps
        if isinstance(items, np.ndarray):
            shown(items[0], None)  # which tells of all
        else:
            shots, length = _placed(items, fps)
            self._times = [shot.time for shot in shots]
            self._pictures = [shot.picture for shot in shots]
            self._length = length
        super().__init__(**options)

    def _at(self, when: Moment) -> Picture | None:
        time = when.exact
        self._over = not self._loop and time >= self._length
        if self._over and self.end == "hide":
            return None
        if self._loop:
            time %= self._length
        if self._times is None:
            index = min(int(time * self._fps), len(self._pictures) - 1)
        else:
            index = bisect_right(self._times, time) - 1
        return None if index < 0 else self._picture(index)

    def _first(self) -> Picture | None:
        return self._picture(0)

    def _picture(self, index: int) -> Picture:
        if self._made is None or self._made[0] != index:
            self._made = index, shown(self._pictures[index], self._device)
        return self._made[1]


class FunctionSource(Source):
    """A function of the seconds since the source's beginning, asked when a frame is drawn."""

    def __init__(self, function: Callable[[float], Any], fps: Any, device: Any, **options: Any):
        self._function = function
        self._fps = fps
        self._device = device
        self._seconds: float | None = None
        self._picture: Picture | None = None
        super().__init__(**options)

    def _at(self, when: Moment) -> Picture | None:
        seconds = when.seconds
        if self._fps is not None:
            seconds = float((when.exact * self._fps) // 1 / self._fps)
        if seconds != self._seconds:
            self._seconds = seconds
            try:
                made = self._function(seconds)
                if plain(made):
                    self._picture = made.view()
                else:
                    self._picture = None if made is None else _fresh(shown(made, self._device))
            except Exception as error:
                self._note(error)
                if self.stall == "hide":
                    self._picture = None
        return self._picture

    def _first(self) -> Picture | None:
        return self._at(Moment.of(Fraction(0))) if self._seconds is None else self._picture


class PlayedSource(Source):
    """Pictures that come one after the other, fetched ahead by a thread."""

    def __init__(self, feed: Feed, loop: bool, newest: bool, patience: float, **options: Any):
        super().__init__(**options)
        self._newest = newest
        self._looked = False
        self._player = Player(feed, loop=loop, newest=newest, patience=patience)
        self._stop = weakref.finalize(self, self._player.close, False)

    @property
    def stalled(self) -> bool:
        """True while a picture is due that does not come."""
        return self._player.stalled

    @property
    def error(self) -> Exception | None:
        """What went wrong last in the source; None if nothing did."""
        return self._player.error or self._error

    @property
    def errors(self) -> int:
        """How often something went wrong in the source."""
        return self._player.errors + self._errors

    def _at(self, when: Moment) -> Picture | None:
        player = self._player
        shot = player.latest() if self._newest else player.at(when.exact)
        self._over = player.is_over(when.exact)
        if self._over and self.end == "hide":
            return None
        if player.stalled and self.stall == "hide":
            return None
        return None if shot is None else shot.picture

    def _first(self) -> Picture | None:
        if self._newest or self._looked:
            return None
        self._looked = True
        shot = self._player.first()
        return None if shot is None else shot.picture

    def close(self) -> None:
        """Ends the thread and closes what was opened. Closing twice is fine."""
        if self._stop.detach() is not None:
            self._player.close()
        super().close()


def _placed(items: Any, fps: Fraction) -> tuple[list[Shot], Fraction]:
    """The pictures of a list with their times, checked, and how long they last together."""
    feed = IteratorFeed(lambda: iter(items), fps, None, True)
    shots = []
    for i, item in enumerate(items):
        try:
            shots.append(feed.place(item))
            if not isinstance(shots[-1].picture, Frame):
                shown(shots[-1].picture, None)
        except DalaError as error:
            raise ParameterError(f"open_source: picture {i} of the list: {error}") from error
    feed.finish()
    assert feed.length is not None
    return shots, feed.length


def _fresh(picture: Picture) -> Picture:
    """An array that is told apart from one before it, though its memory may be the same."""
    return picture if isinstance(picture, Frame) else picture.view()


def _size(picture: Picture) -> tuple[int, int]:
    if isinstance(picture, Frame):
        return picture.width, picture.height
    return int(picture.shape[1]), int(picture.shape[0])
