"""Open a source of moving pictures for a video node.

:func:`open_source` accepts a file, an open video, a generator, a camera or a function of time and
returns a :class:`Source`, whose ``at(time)`` is the newest picture not later than that time. Times
are compared as exact fractions, so 29.97 frames per second do not drift.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterable, Callable, Iterable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Final, TypeAlias, TypeGuard, cast

import numpy as np

from dala.arguments import Selection
from dala.errors import ParameterError
from dala.media.frame import Frame
from dala.media.sources.clip import POLICIES, ClipTimes, TrimLike
from dala.media.sources.feed import FPS, FeedItem, IteratorFeed, ReaderFeed
from dala.media.sources.seconds import TimeLike, to_fraction
from dala.media.sources.speed import SpeedLike
from dala.media.sources.types import (
    FunctionSource,
    ListSource,
    PlayedSource,
    Source,
    SourceOptions,
    StillSource,
)

if TYPE_CHECKING:
    from dala.media.video.reader import Reader
    from dala.media.video.source import VideoFile
    from dala.typing import ImageLike

__all__ = ["Source", "open_source"]

#: Default number of seconds after which a source that returns no picture has stalled.
PATIENCE: Final = 10.0
LIVE_PATIENCE: Final = 1.0
_POLICY: Final = Selection(*POLICIES, expected="'freeze' or 'hide'")

#: What :func:`open_source` accepts.
VideoInput: TypeAlias = (
    "VideoFile | Reader | ImageLike | Iterable[ImageLike | tuple[float, ImageLike]]"
    " | Callable[[float], ImageLike | None] | Callable[[], Iterable[ImageLike]]"
)


def open_source(
    stream: VideoInput,
    *,
    fps: float | Fraction | str | None = None,
    offset: float | Fraction = 0.0,
    speed: SpeedLike = 1.0,
    loop: bool | int = False,
    end: TimeLike | None = None,
    stall: str = "freeze",
    device: str | None = None,
    patience: float | None = None,
    hwaccel: str | None = None,
    start: TimeLike | None = None,
    duration: TimeLike | None = None,
    trim: TrimLike | None = None,
    freeze: bool | TimeLike | None = None,
) -> Source:
    """Open a source of moving pictures.

    Args:
        stream: a path, a URL, the number of a camera, a video as bytes or a file object; an open
            video (``video.open``), which the caller closes; an iterable or generator of Frames, of
            pictures at ``fps``, or of (seconds, picture); a function that returns such a generator;
            a function of the time in seconds that returns a picture; one picture.
        fps: frame rate of pictures without a time of their own; 30 by default. A function of time
            is called this often; by default for every frame that is drawn.
        offset: another name of ``start``.
        speed: seconds of the source per second of scene time; negative to play it backwards from
            its end. Or key frames of the speed, (seconds since the start, speed[, easing]).
        loop: True to start over at the end, or the number of runs. A generator can be read only
            once and cannot loop: give the function that makes it.
        end: scene time from which on nothing is shown. "freeze" and "hide" mean what ``freeze``
            True and False do.
        stall: while a picture is late, or if a function fails, "freeze" the last one or "hide" it.
        device: the device of the frames; by default the current one.
        patience: seconds after which a late picture is a stall; 10, or 1 for live sources.
        hwaccel: the hardware that decodes a video, or "auto", as for ``video.open``.
        start: scene time at which the source starts; nothing is shown before. Negative if it
            started earlier.
        duration: seconds after the start at which it ends, instead of ``end``.
        trim: (from, to), the part of the source to show, in its seconds; None for either end.
        freeze: after the end of the source, True to hold the last picture and False to show
            nothing; or a time of the source, whose picture is shown all the time.

    Raises:
        ParameterError: an argument is invalid.
        VideoNotFound, VideoError, MissingPackage: the video cannot be opened.

    >>> import numpy as np
    >>> with open_source(lambda seconds: np.full((2, 2, 3), 10 * seconds, np.uint8)) as source:
    ...     int(source.at(3)[0, 0, 0])
    30
    """
    rate = None if fps is None else _positive("fps", fps)
    options: SourceOptions = {
        "clip": ClipTimes.of(
            "open_source", start=start, offset=to_fraction("offset", offset), end=end,
            duration=duration, trim=trim, speed=speed, loop=loop, freeze=freeze, policies=True,
        ),
        "stall": _POLICY.check("open_source", "stall", stall),
    }  # fmt: skip
    wait = None if patience is None else float(_positive("patience", patience))
    given: object = stream
    if isinstance(given, Source):
        raise ParameterError(
            "open_source: stream is already a source. Give the file or pictures it was opened from."
        )
    if _is_video(given):
        from dala.media import video

        reader = video.open(given, device=device, hwaccel=hwaccel)
        try:
            return _of_reader(reader, True, device, wait, options)
        except BaseException:
            reader.close()
            raise
    if hwaccel is not None:
        raise ParameterError(
            "open_source: hwaccel applies to videos that open_source opens. Give it to video.open."
        )
    if callable(getattr(given, "seek", None)) and hasattr(given, "policy"):
        return _of_reader(cast("Reader", given), False, device, wait, options)
    if _is_picture(given):
        return StillSource(given, device, **options)
    if isinstance(given, list | tuple) or (isinstance(given, np.ndarray) and given.ndim == 4):
        return ListSource(given, rate or FPS, device, **options)
    begin = _iterator_factory(given)
    if begin is None and callable(given) and not isinstance(given, Iterable):
        return FunctionSource(given, rate, device, **options)
    if begin is None:
        expected = "a path, a video, an iterable or generator of pictures, a function or a picture"
        is_async = isinstance(given, AsyncIterable)
        advice = "Asynchronous iterables are not supported." if is_async else ""
        raise ParameterError.invalid("open_source", "stream", expected, given, advice)
    rewinds = not isinstance(given, Iterator)
    if options["clip"].runs != 1 and not rewinds:
        raise ParameterError(
            "open_source: a generator or iterator can be read only once, so it cannot loop. Give "
            "the function that makes it (without calling it), or a list."
        )
    feed = IteratorFeed(begin, rate or FPS, device, rewinds)
    return PlayedSource(feed, False, wait or PATIENCE, **options)


def _of_reader(
    reader: Reader,
    owned: bool,
    device: str | None,
    wait: float | None,
    options: SourceOptions,
) -> Source:
    feed = ReaderFeed(reader, owned, device)
    clip = options["clip"]
    if feed.live and (clip.runs != 1 or not clip.plain):
        raise ParameterError(
            "open_source: loop, speed, trim and freeze do not apply to live sources. Leave them "
            "out."
        )
    default = LIVE_PATIENCE if feed.live else PATIENCE
    return PlayedSource(feed, feed.live, wait or default, **options)


def _is_video(stream: object) -> TypeGuard[VideoFile]:
    """Return whether ``video.open`` opens it: a name, a camera, bytes or a file object."""
    if isinstance(stream, bool):
        return False
    if isinstance(stream, str | os.PathLike | int | bytes | bytearray | memoryview):
        return True
    return callable(getattr(stream, "read", None)) and not _is_picture(stream)


def _is_picture(stream: object) -> TypeGuard[ImageLike]:
    if isinstance(stream, Frame) or (isinstance(stream, np.ndarray) and stream.ndim != 4):
        return True
    return hasattr(stream, "mode") and hasattr(stream, "getbands")


def _iterator_factory(stream: object) -> Callable[[], Iterator[FeedItem]] | None:
    """Return a function that makes iterators over a stream; None if it cannot be iterated."""
    if isinstance(stream, Iterable):
        return lambda: iter(stream)
    if not callable(stream):
        return None
    from inspect import isgeneratorfunction, signature

    try:
        signature(stream).bind()
        makes_iterator = True
    except TypeError:
        makes_iterator = isgeneratorfunction(stream)
    except ValueError:
        makes_iterator = False
    make = cast("Callable[[], Iterable[FeedItem]]", stream)
    return (lambda: iter(make())) if makes_iterator else None


def _positive(name: str, value: float | Fraction | str) -> Fraction:
    found = to_fraction(name, value)
    if found <= 0:
        raise ParameterError.invalid("open_source", name, "above 0", value)
    return found
