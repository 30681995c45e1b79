"""Reading animated pictures, with Pillow: whole frames, made of their parts by any disposal."""

from __future__ import annotations

import io
import itertools
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from dala.budget import check_deadline, checked, deadline
from dala.errors import DeviceUnavailable, FreedError, VideoError
from dala.extras import needing
from dala.gpu.compute import from_array
from dala.media.frame import MAX_PIXELS, Frame
from dala.media.pictures.plugins import CheckedBytes
from dala.media.video.animated.facts import (
    AnimationFacts,
    GifCanvas,
    common_unit,
    facts_of,
    kind_of,
    scan,
)
from dala.media.video.options import DecodeOptions
from dala.media.video.reader import Reader
from dala.media.video.source import VideoSource
from dala.notices import notify
from dala.offload import in_event_loop
from dala.typing import NDArray

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage

    from dala.media.video.decoding.input import SoundListener

#: What ``dala.limits`` ends.
_CALL: Final = "video.open"
#: The unit of time of each kind; that of an APNG depends on its delays.
_UNITS: Final = {"gif": Fraction(1, 100), "webp": Fraction(1, 1000)}
#: Pillow's name of each kind.
_PLUGINS: Final = {"gif": "GIF", "webp": "WEBP", "apng": "PNG"}
#: The finest unit of time of an APNG; delays that need a finer one are rounded to it.
_FINEST: Final = 1 << 31


def open_animation(source: VideoSource, options: DecodeOptions) -> AnimationReader | None:
    """Return a reader of an animated picture; None if the source is something else.

    Raises:
        DeviceUnavailable: ``hwaccel`` was given; these files are decoded by the CPU.
        VideoError: the file is damaged.
    """
    remote = source.live or (source.url and source.stream is None)
    stream = source.stream
    # Reading from a pipe may wait, which an event loop must not. FFmpeg gets it as a video.
    waits = stream is not None and not stream.in_memory and in_event_loop()
    kind = None if remote or waits else kind_of(stream or source.label)
    if kind is None:
        return None
    if options.hwaccel not in (None, "auto"):
        raise DeviceUnavailable(
            f"video.open: {source.label!r} is an animated picture, which no hardware decodes. "
            "Leave out hwaccel."
        )
    return AnimationReader(source, kind, options)


class AnimationFile:
    """An animated picture in memory: its facts, times and pixels."""

    def __init__(self, source: VideoSource, kind: str) -> None:
        self.name = source.label
        self._profile_said = False
        stream = source.stream
        data = Path(source.label).read_bytes() if stream is None else stream.head(stream.end())
        self._data = data
        self._image = self._open(kind)
        self.facts = self._find_facts(kind)
        self._canvas: GifCanvas | None = None
        if kind == "gif":
            self._canvas = GifCanvas(
                self._data, scan(self._data), self.facts.width, self.facts.height
            )
        delays = self.facts.delays
        self.unit = _UNITS.get(kind) or common_unit(delays, _FINEST)
        ends = [round(end / self.unit) for end in checked(itertools.accumulate(delays), _CALL)]
        self.times = [0, *ends]

    def _open(self, kind: str) -> PillowImage:
        with needing(_CALL, "media", "Pillow", ", and animated pictures need it"):
            from PIL import Image
        try:
            # Only the decoder of its kind, whatever else the bytes may be.
            data = self._data
            stream = io.BytesIO(data) if deadline() is None else CheckedBytes(data, _CALL)
            return Image.open(stream, formats=(_PLUGINS[kind],))
        except Exception as error:  # decoders raise nearly anything for damaged files
            check_deadline(_CALL)
            raise self._unreadable(error) from None

    def _find_facts(self, kind: str) -> AnimationFacts:
        width, height = self._image.size
        if width * height > MAX_PIXELS:
            raise VideoError(
                f"video.open: {self.name!r} has {width} x {height} pixels, more than "
                f"{MAX_PIXELS:,}."
            )
        try:
            found = facts_of(self._data, kind)
        except ValueError as error:
            raise self._unreadable(error) from None
        if kind == "apng":
            found = self._as_pillow_counts(found)
        if not found.delays:  # a single picture
            return AnimationFacts(kind, width, height, (Fraction(1, 10),), 1)
        return replace(found, width=width, height=height)

    def _as_pillow_counts(self, found: AnimationFacts) -> AnimationFacts:
        """Return facts that agree with Pillow, for which some APNGs are single pictures."""
        count = int(getattr(self._image, "n_frames", 1)) - found.skip
        if count < 1 or not getattr(self._image, "is_animated", False):
            return replace(found, delays=())
        return replace(found, delays=found.delays[:count])

    def _unreadable(self, error: Exception) -> VideoError:
        text = str(error) or type(error).__name__
        return VideoError(f"video: {self.name!r} cannot be read as an animated picture ({text}).")

    def pixels(self, number: int) -> NDArray:
        """Return a whole frame as RGBA."""
        if self._canvas is not None:
            return self._canvas.frame(number)
        image = self._image
        image.seek(number + self.facts.skip)
        image.load()
        profile = image.info.get("icc_profile")
        if not profile:
            return np.asarray(image.convert("RGBA"))
        from dala.media.pictures.pixels import to_srgb

        made, problem = to_srgb(image.convert("RGBA"), profile)
        if problem and not self._profile_said:
            self._profile_said = True
            notify(f"video.open: {self.name}: {problem}.")
        return np.asarray(made)

    def close(self) -> None:
        """Release the memory."""
        self._image.close()
        self._data, self._canvas = b"", None


class _AnimationFrame(NamedTuple):
    """A decoded frame and its time."""

    pixels: NDArray
    pts: int
    time_base: Fraction
    duration: int


class AnimationReader(Reader):
    """An animated GIF, APNG or WebP as a video of RGBA frames; made by ``video.open``.

    Frames carry their times and durations exactly. Delays of at most 1/100 s are 1/10 s, as in
    browsers. ``loop`` is the number of plays in the file, 0 for forever; iteration plays it once::

        with video.open("cat.gif") as reader:
            for frame in reader:
                print(frame.time, frame.duration * frame.time_base)
    """

    # What videos have, and animated pictures have not.
    scan: str | None = None
    bits = 8
    is_hdr = False
    pixel_aspect = Fraction(1)
    rotation = 0
    has_audio = False
    listener: SoundListener | None = None
    notices: tuple[str, ...] = ()

    def __init__(self, source: VideoSource, kind: str, options: DecodeOptions) -> None:
        self._kind, self._frame = kind, 0
        super().__init__(source, replace(options, policy="every"))

    def _opener(self) -> Callable[[], Any]:
        return partial(AnimationFile, self.source, self._kind)

    def _opened(self, what: str) -> Any:  # in a forked process, too: it has no thread
        if self.closed:
            raise FreedError(f"video: {self.name!r} is closed. Open it again.")
        return self._resources.opened

    @property
    def _file(self) -> AnimationFile:
        """The file, also after it was closed: its facts stay."""
        found: Any = self._resources.opened
        file: AnimationFile = found
        return file

    # properties -------------------------------------------------------------------------------
    @property
    def loop(self) -> int:
        """How often it plays; 0 is forever."""
        return self._file.facts.plays

    @property
    def fps(self) -> Fraction | None:
        """The mean number of frames per second; their times are exact."""
        return len(self._file.facts.delays) / sum(self._file.facts.delays, Fraction(0))

    @property
    def duration(self) -> float | None:
        """Duration of one play in seconds."""
        return float(sum(self._file.facts.delays))

    @property
    def frames(self) -> int | None:
        """Number of frames."""
        return len(self._file.facts.delays)

    @property
    def codec(self) -> str:
        """The format: "gif", "apng" or "webp"."""
        return self._file.facts.kind

    def _size(self) -> tuple[int, int]:
        return self._file.facts.width, self._file.facts.height

    def keep_size(self, width: int, height: int, pixels: str) -> None:
        """Do nothing: all frames have the size of the first."""

    def __repr__(self) -> str:
        file = self._resources.input
        state = " closed" if self.closed else ""
        if not isinstance(file, AnimationFile):
            return f"<Reader {self.name!r}{state or ' not opened yet'}>"
        facts = file.facts
        size, count = f"{facts.width}x{facts.height}", len(facts.delays)
        return f"<Reader {self.name!r} {size} {facts.kind}, {count} frames{state}>"

    # frames -----------------------------------------------------------------------------------
    def _next(self) -> _AnimationFrame | None:
        check_deadline(_CALL)
        file, number = self._opened("next"), self._frame
        if number >= len(file.facts.delays):
            damaged = not file.facts.whole and not self._ended
            self._ended = True
            if damaged:
                raise self._damaged("the file ends early")
            return None
        try:
            pixels = file.pixels(number)
        except Exception as error:  # decoders raise nearly anything for damaged files
            check_deadline(_CALL)
            self._ended = True
            raise self._damaged(str(error) or type(error).__name__) from None
        self._frame += 1
        start, end = file.times[number : number + 2]
        return _AnimationFrame(pixels, start, file.unit, end - start)

    def _made(self, decoded: _AnimationFrame) -> Frame:
        pixels, *times = decoded
        if self.depth == "float":
            pixels = pixels / np.float32(255)
        facts: Any = dict(zip(decoded._fields[1:], times, strict=True))
        return Frame(from_array(pixels, device=self.options.device), format="rgba", **facts)

    def _damaged(self, why: str) -> VideoError:
        number, self._frame = self._frame, len(self._file.facts.delays)
        return VideoError(f"video: {self.name!r} is damaged after {number} frames ({why}).")

    def _find_times(self) -> list[Fraction]:
        return [time * self._file.unit for time in self._file.times[:-1]]

    def _restart(self, at: Fraction | None) -> None:
        file, self._ended = self._file, False
        last = len(file.facts.delays) - 1
        self._frame = min(bisect_right(file.times, (at or 0) / file.unit) - 1, last)
