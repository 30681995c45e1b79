"""Reading animated pictures, with Pillow: whole frames, whatever their parts and disposals are."""

from __future__ import annotations

import io
import itertools
import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from numbers import Real
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from dala.errors import DeviceUnavailable, FreedError, MissingPackage, ParameterError, VideoError
from dala.extras import pip_install
from dala.forks import cached_property
from dala.gpu.compute import from_array
from dala.media.frame import MAX_PIXELS, Frame
from dala.media.notices import notify
from dala.media.video.animated.facts import AnimationFacts, facts_of, kind_of
from dala.media.video.animated.gif import GifCanvas, scan
from dala.media.video.arguments import check_choice
from dala.media.video.borrowed import BorrowedFrame
from dala.media.video.reader import Reader
from dala.media.video.source import VideoSource
from dala.offload import LoopWorker, in_event_loop
from dala.typing import NDArray

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage

    from dala.media.video.decoding.input import SoundListener

#: The unit of time of each kind; that of an APNG depends on its delays.
_UNITS: Final = {"gif": Fraction(1, 100), "webp": Fraction(1, 1000)}
#: Pillow's name of each kind.
_PLUGINS: Final = {"gif": "GIF", "webp": "WEBP", "apng": "PNG"}
#: The finest unit of time of an APNG; delays that need a finer one are rounded to it.
_FINEST: Final = 1 << 31


def open_animation(
    source: VideoSource,
    *,
    format: str,
    device: str | None,
    policy: str | None,
    hwaccel: str | None,
    depth: str | None = None,
) -> AnimationReader | None:
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
    if hwaccel not in (None, "auto"):
        raise DeviceUnavailable(
            f"video.open: {source.label!r} is an animated picture, which no hardware decodes. "
            "Leave out hwaccel."
        )
    return AnimationReader(source, kind, format=format, device=device, policy=policy, depth=depth)


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
        self.unit = _UNITS.get(kind) or _unit(delays)
        ends = [round(end / self.unit) for end in itertools.accumulate(delays)]
        self.times = [0, *ends]

    def _open(self, kind: str) -> PillowImage:
        try:
            from PIL import Image
        except ImportError:
            raise MissingPackage(
                "video.open: Pillow is not installed, and animated pictures need it. "
                f"Run: {pip_install('media')}"
            ) from None
        try:
            # Only the decoder of its kind, whatever else the bytes may be.
            return Image.open(io.BytesIO(self._data), formats=(_PLUGINS[kind],))
        except Exception as error:  # decoders raise nearly anything for damaged files
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
        from dala.media.pictures.profiles import to_srgb

        made, problem = to_srgb(image.convert("RGBA"), profile)
        if problem and not self._profile_said:
            self._profile_said = True
            notify(f"video.open: {self.name}: {problem}.")
        return np.asarray(made)

    def close(self) -> None:
        """Release the memory."""
        self._image.close()
        self._data, self._canvas = b"", None


class AnimationReader(Reader):
    """An animated GIF, APNG or WebP as a video of RGBA frames; made by ``video.open``.

    Frames carry their times and durations exactly. Delays of at most 1/100 s are 1/10 s, as in
    browsers. ``loop`` is the number of plays in the file, 0 for forever; iteration plays it once::

        with video.open("cat.gif") as reader:
            for frame in reader:
                print(frame.time, frame.duration * frame.time_base)
    """

    def __init__(
        self,
        source: VideoSource,
        kind: str,
        *,
        format: str = "rgba",
        device: str | None = None,
        policy: str | None = None,
        depth: str | None = None,
    ) -> None:
        check_choice("video.open", "depth", depth, (None, "float"))
        check_choice("video.open", "format", format, ("rgba", "native"))
        check_choice("video.open", "policy", policy, (None, "every", "latest"))
        self.source = source
        self.format = format
        self.policy = "every"
        self.depth = depth
        self._device = device
        self._frame = 0
        self._ended = False
        self._closed = False
        self._kind = kind
        self._worker = LoopWorker("dala video reader")
        if not in_event_loop():  # there, the first use opens it
            self._load()

    @cached_property
    def _file(self) -> AnimationFile:
        return AnimationFile(self.source, self._kind)

    # properties -------------------------------------------------------------------------------
    @property
    def width(self) -> int:
        """Width of the frames."""
        return self._file.facts.width

    @property
    def height(self) -> int:
        """Height of the frames."""
        return self._file.facts.height

    @property
    def loop(self) -> int:
        """How often it plays according to the file; 0 is forever."""
        return self._file.facts.plays

    @property
    def fps(self) -> Fraction | None:
        """Frames per second, exact; the average for unequal delays."""
        return len(self._file.facts.delays) / sum(self._file.facts.delays, Fraction(0))

    @property
    def duration(self) -> float | None:
        """Duration in seconds of one play."""
        return float(sum(self._file.facts.delays))

    @property
    def frames(self) -> int | None:
        """Number of frames."""
        return len(self._file.facts.delays)

    @property
    def codec(self) -> str:
        """The kind: "gif", "apng" or "webp"."""
        return self._file.facts.kind

    @property
    def scan(self) -> str | None:
        """How it is scanned: animations are not interlaced in time."""
        return None

    def keep_size(self, width: int, height: int, pixels: str) -> None:
        """Do nothing: all pictures of an animation have one size."""

    @property
    def bits(self) -> int:
        """Bits per stored sample: always 8."""
        return 8

    @property
    def is_hdr(self) -> bool:
        """Whether the file is HDR: never."""
        return False

    @property
    def pixel_aspect(self) -> Fraction:
        """A stored pixel's width / height: always 1."""
        return Fraction(1)

    @property
    def rotation(self) -> int:
        """Rotation in degrees: always 0."""
        return 0

    @property
    def has_audio(self) -> bool:
        """Whether there is sound: never."""
        return False

    @property
    def listener(self) -> SoundListener | None:
        """What hears the sound: an animation has none, so there is never one."""
        return None

    @listener.setter
    def listener(self, listener: SoundListener | None) -> None:
        """Do nothing: there is nothing to hear."""

    @property
    def dropped(self) -> int:
        """Number of frames dropped: always 0."""
        return 0

    @property
    def arrived(self) -> float:
        """When the last frame had been decoded, by ``time.monotonic``: now."""
        return monotonic()

    @property
    def notices(self) -> tuple[str, ...]:
        """What was repaired or left out: nothing so far."""
        return ()

    @property
    def closed(self) -> bool:
        """True once the reader is closed."""
        return self._closed

    def __repr__(self) -> str:
        if "_file" not in self.__dict__:
            return f"<Reader {self.name!r} {'closed' if self.closed else 'not opened yet'}>"
        closed = " closed" if self.closed else ""
        count = len(self._file.facts.delays)
        size = f"{self.width}x{self.height}"
        return f"<Reader {self.name!r} {size} {self.codec}, {count} frames{closed}>"

    # frames -----------------------------------------------------------------------------------
    def __enter__(self) -> Self:
        self._check()
        self._load()
        return self

    def __iter__(self) -> Self:
        self._check()
        if self._ended:
            self._frame, self._ended = 0, False
        return self

    def __next__(self) -> Frame:
        self._check()
        number, count = self._frame, len(self._file.facts.delays)
        if number >= count:
            damaged = not self._file.facts.whole and not self._ended
            self._ended = True
            if damaged:
                raise self._damaged("the file ends early")
            raise StopIteration
        try:
            pixels = self._file.pixels(number)
        except Exception as error:  # decoders raise nearly anything for damaged files
            self._ended = True
            raise self._damaged(str(error) or type(error).__name__) from None
        if self.depth == "float":
            pixels = pixels / np.float32(255)
        self._frame += 1
        start, end = self._file.times[number : number + 2]
        return Frame(
            from_array(pixels, device=self._device),
            format="rgba",
            pts=start,
            time_base=self._file.unit,
            duration=end - start,
        )

    def _damaged(self, why: str) -> VideoError:
        number, self._frame = self._frame, len(self._file.facts.delays)
        return VideoError(f"video: {self.name!r} is damaged after {number} frames ({why}).")

    def borrow(self) -> Iterator[Frame | BorrowedFrame]:
        """Iterate as usual; the frames are never borrowed."""
        yield from self

    def seek(self, t: float | Fraction) -> None:
        """Seek: the next frame is the one shown at ``t`` seconds."""
        self._check()
        self._forget()
        if not isinstance(t, Real) or isinstance(t, bool) or not math.isfinite(t) or t < 0:
            raise ParameterError.invalid("Reader.seek", "t", "a number of seconds, 0 or more", t)
        exact = Fraction(t)
        if isinstance(t, float):
            exact = exact.limit_denominator(1_000_000)
        last = len(self._file.facts.delays) - 1
        self._ended = False
        self._frame = min(bisect_right(self._file.times, exact / self._file.unit) - 1, last)

    def close(self) -> None:
        """Close the file. Frames stay valid. Closing twice is fine."""
        if not self._closed:
            self._closed = True
            if "_file" in self.__dict__:  # it was opened
                self._file.close()

    def _load(self) -> AnimationFile:
        return self._file

    def _interrupt(self) -> None:
        """Do nothing: decoding a frame is short."""

    def _check(self) -> None:
        if self._closed:
            raise FreedError(f"video: {self.name!r} is closed. Open it again.")


def _unit(delays: tuple[Fraction, ...]) -> Fraction:
    """Return the unit of time in which all delays are integers."""
    common = math.lcm(*(delay.denominator for delay in delays))
    return Fraction(1, common if common <= _FINEST else 1_000_000)
