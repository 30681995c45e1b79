"""Writing videos: pictures in, a whole file out or none."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from dala.errors import FreedError, ParameterError, ShapeError, VideoError
from dala.gpu.compute import from_array, from_dlpack
from dala.media.frame import Frame, pixels_of
from dala.media.video import color as colour
from dala.media.video.encode import Encoder, codec_for, encoder_of
from dala.media.video.live import pyav, source_of
from dala.media.video.reader import Reader, check_choice, check_count
from dala.media.video.sound import Sound
from dala.resources import Closing

_CALL = "video.write"


class _Box:
    """What a writer must give back; apart from it, so that it can be collected."""

    def __init__(self) -> None:
        self.encoder: Encoder | None = None
        self.sound: Sound | None = None

    def abandon(self) -> None:
        encoder, self.encoder = self.encoder, None
        if encoder is not None:
            encoder.abandon()
        if self.sound is not None:
            self.sound.close()


class Writer(Closing):
    """A video that is being written. Made by :func:`dala.media.video.writer`.

    The file gets its name when it is whole: at ``close()`` or at the end of the ``with`` block. An
    exception in the block, Ctrl-C among them, leaves nothing behind, and an older file as it was.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        fps: Any = None,
        codec: str | None = None,
        width: int | None = None,
        height: int | None = None,
        audio_from: Any = None,
        retime: bool = False,
        matrix: str | None = None,
        range: str = "limited",
        options: Mapping[str, Any] | None = None,
        threads: int = 0,
        device: str | None = None,
        pixel_aspect: Any = None,
    ) -> None:
        pyav()
        check_choice(_CALL, "matrix", matrix, (None, *dict.fromkeys(colour.MATRICES.values())))
        check_choice(_CALL, "range", range, tuple(colour.RANGES.values()))
        self.path = _target(path)
        self.fps = _rate(fps)
        if retime and self.fps is None:
            raise ParameterError(f"{_CALL}: retime=True needs 'fps', the rate to give the frames.")
        self._codec, self._options = encoder_of(codec or codec_for(self.path.suffix))
        self._options.update({name: str(value) for name, value in (options or {}).items()})
        self._threads = check_count(_CALL, "threads", threads, 0)
        sides = [
            check_count(_CALL, n, v, 2) for n, v in (("width", width), ("height", height)) if v
        ]
        if len(sides) == 1:
            raise ParameterError(f"{_CALL}: give both 'width' and 'height', or neither.")
        self._size: tuple[int, int] | None = (sides[0], sides[1]) if sides else None
        if self._size is not None:
            _even(self._size)
        self._aspect = _aspect(pixel_aspect)
        self._retime = retime
        self._matrix = matrix
        self._range = range
        self._device = device
        self._last: Fraction | None = None
        self._base = Fraction(1)
        self._stamp = -(1 << 62)
        #: How many frames were written.
        self.frames = 0
        self._box = _Box()
        if audio_from is not None:
            self._box.sound = self._sound(audio_from)
        self._finalizer = weakref.finalize(self, self._box.abandon)

    def _sound(self, audio_from: Any) -> Sound:
        if isinstance(audio_from, Sound):
            return audio_from
        if isinstance(audio_from, Reader):
            source = audio_from.source
        else:
            source = source_of(audio_from, _CALL)
        if source.live:
            raise ParameterError(
                f"{_CALL}: 'audio_from' is a file or a reader of one; {source.shown!r} is live."
            )
        if self.path.exists() and not source.url and self.path.samefile(source.shown):
            raise ParameterError(
                f"{_CALL}: {str(self.path)!r} is also where the sound comes from. Write to another "
                "name."
            )
        return Sound(source, _CALL)

    # facts ------------------------------------------------------------------------------------
    @property
    def width(self) -> int | None:
        """Columns; None until the first frame says."""
        return self._size[0] if self._size else None

    @property
    def height(self) -> int | None:
        """Rows; None until the first frame says."""
        return self._size[1] if self._size else None

    @property
    def closed(self) -> bool:
        """True once the writer was closed or given up."""
        return not self._finalizer.alive

    def __repr__(self) -> str:
        size = f" {self._size[0]} x {self._size[1]}" if self._size else ""
        state = " closed" if self.closed else ""
        return f"<Writer {str(self.path)!r}{size} {self._codec}, {self.frames} frames{state}>"

    # frames -----------------------------------------------------------------------------------
    def write(self, frame: Any, *, lent: bool = False) -> None:
        """Adds a picture: a Frame, an array (gray, RGB or RGBA, u8 or f32) or a Pillow image.

        A Frame is shown at its own time; what has none comes 1 / fps after the one before. Alpha
        is left out. With ``lent`` you promise that the memory of an "i420" frame stays as it is for
        as long as the writer holds on to it; else it is copied.

        Raises:
            ShapeError: another size than the first frame's, or an odd one.
            ParameterError: its time is not after the one before, or it has none and no ``fps``.
            VideoError: encoding a picture before it has failed.
        """
        if self.closed:
            raise FreedError(f"{_CALL}: {str(self.path)!r} was closed; no more can be written.")
        given = frame if isinstance(frame, Frame) else self._taken(frame)
        size = given.width, given.height
        if self._size is not None and size != self._size:
            raise ShapeError(
                f"{_CALL}: frames of {str(self.path)!r} are {self._size[0]} x {self._size[1]} "
                f"(width x height), one of {size[0]} x {size[1]} came. Resize it first."
            )
        _even(size)
        time = self._time(given)
        if self._matrix is None:
            self._matrix = given.matrix
        made = given.to("i420", matrix=self._matrix, range=self._range)
        av = pyav()
        if made.pixels is given.pixels and not lent:  # the caller's memory, which may change
            picture = av.VideoFrame.from_ndarray(made.numpy(), "yuv420p")
        else:
            picture = av.VideoFrame.from_numpy_buffer(made.numpy(), "yuv420p")
        try:
            encoder = self._box.encoder or self._start(given, size)
            stamp = max(round(time / self._base), self._stamp + 1)
            picture.time_base, picture.pts = self._base, stamp
            picture.color_range, picture.colorspace = encoder.tags[:2]
            picture.color_primaries, picture.color_trc = encoder.tags[2:]
            encoder.put(picture)
        except BaseException:
            self.abandon()
            raise
        self._last, self._stamp = time, stamp
        self.frames += 1

    def _taken(self, data: Any) -> Frame:
        found = pixels_of(data, _CALL)
        if isinstance(found, np.ndarray) and found.flags.c_contiguous:
            return Frame(from_dlpack(found, device=self._device))
        return Frame(from_array(found, device=self._device))

    def _time(self, frame: Frame) -> Fraction:
        """When the frame is shown."""
        if frame.time is not None and not self._retime:
            time = frame.time
        elif self.fps is None:
            raise ParameterError(
                f"{_CALL}: the frame has no time of its own (pts is None), so 'fps' must be given."
            )
        else:
            time = Fraction(0) if self._last is None else self._last + 1 / self.fps
        if self._last is not None and time <= self._last:
            raise ParameterError(
                f"{_CALL}: frame {self.frames} is shown at {float(time):.6f} s, which is not after "
                f"the one before ({float(self._last):.6f} s). Write frames in order, or give fps "
                "and retime=True to space them evenly."
            )
        return time

    def _start(self, first: Frame, size: tuple[int, int]) -> Encoder:
        own = first.time is not None and not self._retime
        self._base = first.time_base if own or self.fps is None else 1 / self.fps
        if self._codec == "mpeg4" and self._base.denominator > 0xFFFF:  # the standard's limit
            self._base = Fraction(1, 30000)
        transfer = "bt709" if first.transfer == "srgb" else first.transfer
        colours = colour.Colours(
            self._range, self._matrix or first.matrix, first.primaries, transfer
        )
        sound, self._box.sound = self._box.sound, None  # the encoder closes it
        encoder = Encoder(
            self.path,
            codec=self._codec,
            options=self._options,
            rate=self.fps,
            time_base=self._base,
            size=size,
            colours=colours,
            threads=self._threads,
            sound=sound,
            shift=not own,
            aspect=self._aspect,
        )
        self._box.encoder = encoder
        self._size = size
        return encoder

    # the end ----------------------------------------------------------------------------------
    def close(self) -> None:
        """Makes the file whole and gives it its name. Closing twice is fine.

        Raises:
            VideoError: no frame was written, or encoding failed; there is no file then.
        """
        if self.closed:
            return
        encoder = self._box.encoder
        if encoder is None:
            self.abandon()
            raise VideoError(f"{_CALL}: no frame was written, so {str(self.path)!r} was not made.")
        try:
            encoder.finish()
            self._box.encoder = None
        finally:
            self._finalizer()

    def abandon(self) -> None:
        """Gives up: no file is left, and an older one of the name stays as it was."""
        self._finalizer()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()


def _target(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        raise ParameterError(f"{_CALL}: 'path' names the file to write, {path!r} came.")
    target = Path(os.fsdecode(path))
    if not target.suffix:
        raise ParameterError(
            f"{_CALL}: {str(target)!r} has no suffix to say what kind of file it is, such as .mp4."
        )
    if target.is_dir():
        raise VideoError(f"{_CALL}: {str(target)!r} is a folder; name a file in it.")
    if not target.parent.is_dir():
        raise VideoError(f"{_CALL}: there is no folder {str(target.parent)!r}. Make it first.")
    return target


def _rate(fps: Any) -> Fraction | None:
    """Frames a second; floats such as 29.97 become the 30000/1001 they stand for."""
    if fps is None:
        return None
    try:
        if isinstance(fps, bool):
            raise TypeError
        rate = Fraction(fps)
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        rate = Fraction(0)
    if not 0 < rate <= 100_000:
        raise ParameterError(
            f"{_CALL}: 'fps' is a number of frames a second, such as 30 or Fraction(30000, 1001); "
            f"{fps!r} came."
        )
    if isinstance(fps, float):
        ntsc = Fraction(round(rate * Fraction(1001, 1000)) * 1000, 1001)
        if rate != round(rate) and abs(rate - ntsc) < Fraction(5, 1000):
            return ntsc
        return rate.limit_denominator(1001)
    return rate


def _aspect(value: Any) -> Fraction | None:
    if value is None:
        return None
    try:
        if isinstance(value, bool):
            raise TypeError
        found = Fraction(value).limit_denominator(65535)
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        found = Fraction(0)
    if not 0 < found <= 65535:
        raise ParameterError(
            f"{_CALL}: 'pixel_aspect' is the width of a pixel by its height, such as "
            f"Fraction(64, 45); {value!r} came."
        )
    return found


def _even(size: tuple[int, int]) -> None:
    if size[0] % 2 or size[1] % 2:
        raise ShapeError(
            f"{_CALL}: video has chroma for each 2 by 2 pixels, so width and height must be even; "
            f"{size[0]} x {size[1]} came. Crop or pad the picture."
        )
