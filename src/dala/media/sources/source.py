"""Where a video node's pictures come from: anything that moves, asked by the scene's time.

:func:`open_source` takes what people have (a file, an open video, a generator, a camera, a
function of time) and gives a :class:`Source`: ``at(time)`` is the newest picture not later than
that time. Times are compared as exact fractions, so 29.97 frames a second stay that for hours.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterable, Callable, Iterable, Iterator
from fractions import Fraction
from typing import Any, Final

import numpy as np

from dala.errors import ParameterError
from dala.media.frame import Frame
from dala.media.sources.feed import FPS, IteratorFeed, ReaderFeed, exact
from dala.media.sources.kinds import FunctionSource, ListSource, PlayedSource, Source, StillSource

__all__ = ["Source", "open_source"]

#: Seconds to wait for a picture, unless told; for a live source, after which it has stalled.
PATIENCE: Final = 10.0
LIVE_PATIENCE: Final = 1.0
_POLICIES: Final = ("freeze", "hide")


def open_source(
    stream: Any,
    *,
    fps: float | Fraction | str | None = None,
    offset: float | Fraction = 0.0,
    speed: float | Fraction = 1.0,
    loop: bool = False,
    end: str = "freeze",
    stall: str = "freeze",
    device: str | None = None,
    patience: float | None = None,
) -> Source:
    """A source of moving pictures.

    Args:
        stream: a path, a URL, the number of a camera; an open video (``video.open``), which stays
            yours to close; an iterable or generator of Frames, of pictures at ``fps``, or of
            (seconds, picture); a function that makes such a generator; a function of the time in
            seconds that gives a picture; one picture.
        fps: of pictures that have no time of their own; 30 where left out. A function of the time
            is asked so often; where left out, for every frame that is drawn.
        offset: the scene's time at which the source begins; below 0, it has begun before.
        speed: seconds of the source in a second of the scene.
        loop: begin again at the end. What can be gone through once only, such as a generator,
            cannot: give the function that makes it.
        end: after the end, "freeze" the last picture or "hide" it.
        stall: while a picture is due that does not come, or a function fails, likewise.
        device: where frames shall be; the current device where left out.
        patience: seconds after which a picture that does not come is a stall; 10, or 1 if live.

    Raises:
        ParameterError: an argument is not one it takes.
        VideoNotFound, VideoError, MissingPackage: the video cannot be opened.
    """
    rate = None if fps is None else _above_0("fps", fps)
    options: dict[str, Any] = {
        "offset": exact("offset", offset),
        "speed": _above_0("speed", speed),
        "end": _policy("end", end),
        "stall": _policy("stall", stall),
    }
    wait = None if patience is None else float(_above_0("patience", patience))
    if isinstance(stream, Source):
        raise ParameterError("open_source: it is a source already; give what it was made of.")
    if isinstance(stream, str | os.PathLike | int) and not isinstance(stream, bool):
        from dala.media import video

        stream = video.open(stream, device=device)
        try:
            return _of_reader(stream, True, device, loop, wait, options)
        except BaseException:
            stream.close()
            raise
    if callable(getattr(stream, "seek", None)) and hasattr(stream, "policy"):
        return _of_reader(stream, False, device, loop, wait, options)
    if _is_picture(stream):
        return StillSource(stream, device, **options)
    if isinstance(stream, list | tuple) or (isinstance(stream, np.ndarray) and stream.ndim == 4):
        return ListSource(stream, rate or FPS, device, loop, **options)
    begin = _maker(stream)
    if begin is None and callable(stream) and not isinstance(stream, Iterable):
        return FunctionSource(stream, rate, device, **options)
    if begin is None:
        raise ParameterError(
            "open_source: a path, a video, an iterable or generator of pictures, a function or a "
            f"picture is expected, {type(stream).__name__} came."
            + (" Asynchronous ones are not taken." if isinstance(stream, AsyncIterable) else "")
        )
    rewinds = not isinstance(stream, Iterator)
    if loop and not rewinds:
        raise ParameterError(
            "open_source: a generator or iterator can be gone through only once, so it cannot "
            "loop. Give the function that makes it (without calling it), or a list."
        )
    feed = IteratorFeed(begin, rate or FPS, device, rewinds)
    return PlayedSource(feed, loop, False, wait or PATIENCE, **options)


def _of_reader(
    reader: Any, owned: bool, device: Any, loop: bool, wait: Any, options: dict[str, Any]
) -> Source:
    feed = ReaderFeed(reader, owned=owned, device=device)
    if feed.live and (loop or options["speed"] != 1):
        raise ParameterError(
            "open_source: a live source has no other time than now: leave out loop and speed."
        )
    default = LIVE_PATIENCE if feed.live else PATIENCE
    return PlayedSource(feed, loop, feed.live, wait or default, **options)


def _is_picture(stream: Any) -> bool:
    if isinstance(stream, Frame) or (isinstance(stream, np.ndarray) and stream.ndim != 4):
        return True
    return hasattr(stream, "mode") and hasattr(stream, "getbands")


def _maker(stream: Any) -> Callable[[], Iterator[Any]] | None:
    """What gives iterators over a stream, if it can be iterated; a function may make it."""
    if isinstance(stream, Iterable):
        return lambda: iter(stream)
    if not callable(stream):
        return None
    from inspect import isgeneratorfunction, signature

    try:
        signature(stream).bind()
        makes = True
    except TypeError:
        makes = isgeneratorfunction(stream)
    except ValueError:
        makes = False
    return (lambda: iter(stream())) if makes else None


def _above_0(name: str, value: Any) -> Fraction:
    found = exact(name, value)
    if found <= 0:
        raise ParameterError(f"open_source: {name} is above 0, {value!r} came.")
    return found


def _policy(name: str, value: Any) -> str:
    if value not in _POLICIES:
        raise ParameterError(f"open_source: {name} is 'freeze' or 'hide', {value!r} came.")
    return str(value)
