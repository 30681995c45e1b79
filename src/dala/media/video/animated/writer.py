"""Writing animated pictures: frames are kept until the end, because a palette needs all of them."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np

from dala import forks
from dala.errors import ShapeError, VideoError
from dala.media.frame import Frame
from dala.media.parts import PartFile
from dala.media.pictures.pixels import to_rgba
from dala.media.video.animated.encoders import CODECS, OPTIONS, Palette, check_options, encode
from dala.media.video.animated.facts import common_unit
from dala.media.video.options import EncodeOptions
from dala.media.video.writer import Writer
from dala.notices import notify
from dala.typing import NDArray, PathLike

_CALL: Final = "video.write"
#: Frames are kept in memory up to this many bytes, then in a temporary file.
_IN_MEMORY: Final = 256 << 20
#: The unit of time of each kind, and the shortest delay in it; below that, players slow down.
_TICKS: Final = {"gif": (Fraction(1, 100), 2), "webp": (Fraction(1, 1000), 11)}


@dataclass(frozen=True, slots=True)
class FrameSchedule:
    """Frames in order, as an encoder takes them."""

    path: Path
    size: tuple[int, int]
    #: Start of each frame, and the end, in units of ``unit``, from 0.
    times: tuple[int, ...]
    unit: Fraction
    #: How often it plays; 0 is forever.
    plays: int
    opaque: bool
    options: Mapping[str, str]


class AnimationWriter(Writer):
    """An animated GIF, APNG or WebP being written; made by ``video.write``.

    A frame is shown until the next one; the last for its ``duration``, or as long as the one
    before. As with videos, the file appears when it is complete::

        with video.write("out.gif", fps=25, loop=0) as sink:
            for picture in pictures:
                sink.write(picture)
    """

    def __init__(self, path: PathLike | BinaryIO, kind: str, options: EncodeOptions) -> None:
        given = options.ffmpeg
        check_options(kind, given)
        self._held = ExitStack()
        self._stream: BinaryIO | None = None
        if not isinstance(path, str | os.PathLike):
            self._stream = path
            folder = self._held.enter_context(tempfile.TemporaryDirectory(prefix="dala-"))
            path = Path(folder) / f"stream.{kind}"
        forks.finalize(self, self._held.close)
        own = replace(options, format=kind, codec=CODECS[kind], options=None, crf=None)
        super().__init__(path, replace(own, alpha=False, width=None, height=None))
        self._kind = kind
        self._plays = min(options.loop or 0, 65535)
        self._given = {**OPTIONS[kind], **given}
        if options.width and options.height:
            self._size = options.width, options.height
        self._spool = self._held.enter_context(
            tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - the stack closes it
        )
        self._times: list[Fraction] = []
        self._end: Fraction | None = None
        self._opaque = True
        self._palette: Palette | None = None

    def _append(self, given: Frame, copy: bool) -> None:
        size = self._size_of(given)
        if max(size) > 65535:
            raise ShapeError(f"{_CALL}: {self._kind} is at most 65535 wide and high, got {size}.")
        time = self._time(given)
        pixels = to_rgba(given, _CALL)
        try:
            self._opaque = self._opaque and bool((pixels[..., 3] == 255).all())
            self._spool.write(pixels.data)
            if self._kind == "gif" and self._given["palette"] == "global":
                if self._palette is None:
                    self._palette = Palette(size, self._given)
                self._palette.add(pixels)
        except OSError as error:
            self.abandon()
            raise VideoError(
                f"{_CALL}: the frames of {str(self.path)!r} cannot be kept until the end: "
                f"{error.strerror}."
            ) from error
        except BaseException:
            self.abandon()
            raise
        self._size = size
        self._times.append(time)
        own = given.duration is not None and not self.options.retime
        self._end = time + given.duration * given.time_base if own and given.duration else None
        self._last = time
        self.frames += 1

    # nodeco
    def _finish(self) -> None:
        """Encode the frames and complete the file. Closing twice is fine.

        Raises:
            VideoError: no frame was written, or encoding failed. There is no file then.
        """
        assert self.path is not None
        assert self._size is not None
        kept, times, unit = self._schedule()
        try:
            part = self._held.enter_context(PartFile(self.path))
            work = FrameSchedule(
                part.path, self._size, times, unit, self._plays, self._opaque, self._given
            )
            encode(self._kind, work, self._pictures(kept), self._palette)
            if self._stream is None:
                part.complete()
            else:
                with part.path.open("rb") as made:
                    shutil.copyfileobj(made, self._stream)
        except OSError as error:
            raise VideoError(
                f"{_CALL}: {str(self.path)!r} cannot be written: {error.strerror or error}."
            ) from error

    def abandon(self) -> None:
        """Discard the frames. An existing file of that name stays untouched."""
        self._held.close()
        self._palette = None
        super().abandon()

    def _layout(self, encoder: str, pixel_format: str | None, alpha: bool) -> str:
        return "rgba"  # the frames are kept; encoders take them from there

    # implementation ---------------------------------------------------------------------------
    def _schedule(self) -> tuple[list[int], tuple[int, ...], Fraction]:
        """Return the frames to encode, their times and the end in ticks, and the tick."""
        starts = [time - self._times[0] for time in self._times]
        end = self._end and self._end - self._times[0]
        if end is None:
            step = 1 / self.fps if self.fps else Fraction(1, 10)
            end = starts[-1] + (starts[-1] - starts[-2] if len(starts) > 1 else step)
        if self._kind == "apng":
            unit = common_unit([*starts, end])
            return list(range(len(starts))), tuple(round(t / unit) for t in [*starts, end]), unit
        unit, least = _TICKS[self._kind]
        kept: list[int] = []
        ticks: list[int] = []
        for number, start in enumerate(starts):
            tick = round(start / unit)
            if not ticks or tick - ticks[-1] >= least:
                kept.append(number)
                ticks.append(tick)
        if left := len(starts) - len(kept):
            most = "50" if self._kind == "gif" else "90"
            notify(
                f"{_CALL}: {self.path}: {self._kind} has at most {most} frames per second; {left} "
                f"of {len(starts)} frames are left out."
            )
        return kept, (*ticks, max(round(end / unit), ticks[-1] + least)), unit

    def _pictures(self, kept: list[int]) -> Iterator[NDArray]:
        assert self._size is not None
        shape = (self._size[1], self._size[0], 4)
        count = shape[0] * shape[1] * 4
        for number in kept:
            self._spool.seek(number * count)
            yield np.frombuffer(self._spool.read(count), np.uint8).reshape(shape)
