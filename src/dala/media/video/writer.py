"""Writing videos: frames in, a complete file out, or none."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, BinaryIO, Unpack

import numpy as np

from dala import forks
from dala.budget import check_deadline
from dala.errors import FreedError, ParameterError, ShapeError, VideoError
from dala.gpu.compute import from_array, from_dlpack
from dala.media.formats import to_sdr
from dala.media.frame import Frame
from dala.media.hdr import Hdr
from dala.media.images import check_pixels
from dala.media.video import color
from dala.media.video.encode import (
    Encoder,
    default_codec,
    default_threads,
    find_encoder,
    fitted_options,
    repeatable_options,
)
from dala.media.video.options import EncodeOptions
from dala.media.video.output.layouts import (
    DEEP_LAYOUTS,
    HDR_LAYOUT,
    choose_layout,
    deep_codec,
    encoded_picture,
    has_alpha,
    hdr_options,
    is_translucent,
    stored_size,
    takes_layout,
)
from dala.media.video.output.opening import (
    EncoderChoice,
    PictureEncoding,
    check_encoder,
    choose_encoder,
    on_gpu,
    set_tags,
)
from dala.media.video.output.target import Target
from dala.media.video.reader import Reader
from dala.media.video.source import VideoSource, pyav, source_of
from dala.media.video.tracks import TrackGroup, Tracks
from dala.notices import notify
from dala.offload import AsyncClosing, LoopWorker, in_event_loop
from dala.options import takes
from dala.trace.recorder import OFF, Holding, tracer
from dala.typing import ImageLike, PathLike

if TYPE_CHECKING:
    from dala.media.video.keywords import EncodeKeywords

_CALL = "video.write"
#: Containers whose frames have a number instead of a time.
_COUNTED = ("avi", "ogg", "ogv", "y4m")


class _Resources:
    """The resources of a writer; separate from it, so that the writer can be collected."""

    def __init__(self) -> None:
        self.encoder: Encoder | None = None
        self.tracks = TrackGroup()

    def abandon(self) -> None:
        encoder, self.encoder = self.encoder, None
        if encoder is not None:
            encoder.abandon()
        self.tracks.close()


@takes(EncodeOptions)
class Writer(AsyncClosing):
    """A video file being written. Created by :func:`dala.media.video.write`.

    The file appears when it is complete: at ``close()`` or at the end of the ``with`` block. An
    exception in the block, Ctrl-C included, leaves no file, and an existing file untouched::

        with video.write("out.mp4", fps=30) as sink:
            for picture in pictures:
                sink.write(picture)

    In asyncio, use ``async with`` and ``await sink.write_async(picture)``.
    """

    _instead = "Pass frames to the process that writes."

    def __init__(
        self,
        path: PathLike | BinaryIO | Target,
        chosen: EncodeOptions | None = None,
        **given: Unpack[EncodeKeywords],
    ) -> None:
        pyav()
        options = chosen or EncodeOptions.checked(_CALL, given)
        self.options = options
        self._target = path if isinstance(path, Target) else Target(path, options.format)
        #: The path of the file; None for a file object.
        self.path = self._target.path
        self.fps = None if options.fps is None else Fraction(options.fps)
        if options.retime and self.fps is None:
            raise ParameterError(f"{_CALL}: retime=True needs fps, the rate to give the frames.")
        self._given = options.ffmpeg
        self._hdr: Hdr | None = None
        self._hdr_reported = False
        self._choose(options.hdr)
        if bool(options.width) != bool(options.height):
            raise ParameterError(f"{_CALL}: give both width and height, or neither.")
        self._size: tuple[int, int] | None = None
        if options.width and options.height:
            self._size = options.width, options.height
        self._stored: tuple[int, int] = (0, 0)
        self._matrix = options.matrix
        self._last: Fraction | None = None
        self._base = Fraction(1)
        #: Whether the container counts frames instead of storing times; whether a time was moved.
        self._counts = self._moved = False
        self._stamp = -(1 << 62)
        #: Number of frames written.
        self.frames = 0
        self._resources = _Resources()
        self._track_sources = [
            (self._track_source(found, argument), argument == "tracks_from")
            for argument in ("tracks_from", "audio_from")
            if (found := getattr(options, argument)) is not None
        ]
        # In an event loop the first frame opens files, on its thread.
        if not in_event_loop() or any(isinstance(s, Tracks) for s, _ in self._track_sources):
            self._open_tracks()
        self._writing = forks.lock()
        self._worker = LoopWorker("dala video writer")
        self._finalizer = forks.finalize(self, self._resources.abandon)
        self._home = forks.Home()

    def _choose(self, hdr: Hdr | None) -> None:
        """Choose codec, encoder and pixel format, for HDR or SDR."""
        options = self.options
        codec, pixel_format = options.codec, options.pixel_format
        alpha, encoder = options.alpha, options.encoder
        deep = hdr is not None and not alpha and encoder is None
        if deep and codec is None and pixel_format in (None, *DEEP_LAYOUTS):
            codec = deep_codec(self._target.format)
        self._codec = codec or default_codec(self._target.format, alpha)
        name, defaults = find_encoder(self._codec)
        if deep and pixel_format is None and takes_layout(name, HDR_LAYOUT):
            pixel_format = HDR_LAYOUT
        layout = self._layout(name, pixel_format, alpha)
        settings = {**defaults, **self._given}
        if hdr is not None and deep and layout in DEEP_LAYOUTS:
            self._hdr = hdr
            stored = hdr_options(name, hdr, settings)
            settings = settings if stored is None else stored
            if stored is None:
                notify(
                    f"{_CALL}: {name!r} does not store the mastering display and the light levels "
                    "of HDR. codec='hevc' and 'av1' do.",
                    stacklevel=4,
                )
        self._choice = EncoderChoice(name, settings, layout)
        self._plain = layout in ("yuv420p", "nv12")
        check_encoder(encoder, self._codec, self._plain)
        self._alpha_reported = alpha or has_alpha(layout)

    def _adopt(self, frame: Frame, hdr: Hdr) -> Frame:
        """Write HDR if this is the first frame and the codec can; else tone-map the frame."""
        if self._resources.encoder is None:
            self._choose(hdr)
        if self._hdr is not None:
            return frame
        if not self._hdr_reported:
            self._hdr_reported = True
            notify(
                f"{_CALL}: {self._target.label!r} has 8 bits ({self._choice.name}, "
                f"{self._choice.pixel_format}), so frames of HDR are tone-mapped to SDR. "
                "codec='hevc' or 'av1' keeps HDR.",
                stacklevel=4,
            )
        return to_sdr(frame)

    def _layout(self, encoder: str, pixel_format: str | None, alpha: bool) -> str:
        """Return the pixel format for an encoder."""
        return choose_layout(encoder, pixel_format, alpha)

    def _track_source(
        self, given: PathLike | Reader | Tracks, argument: str
    ) -> VideoSource | Tracks:
        """Return the source of tracks, checked."""
        if isinstance(given, Tracks):
            return given
        source = given.source if isinstance(given, Reader) else source_of(given, _CALL)
        if source.live:
            raise ParameterError.invalid(_CALL, argument, "a file, not a live source", source.label)
        path = self.path
        if path is not None and path.exists() and not source.url and path.samefile(source.label):
            what = "audio source" if argument == "audio_from" else "source of the tracks"
            raise ParameterError(
                f"{_CALL}: {self._target.label!r} is also the {what}. Write to another file."
            )
        return source

    def _open_tracks(self) -> None:
        """Open the sound, or with ``tracks_from`` everything but the pictures."""
        sources, self._track_sources = self._track_sources, []
        tracks = self._resources.tracks.members
        try:
            for source, everything in sources:
                if not isinstance(source, Tracks):
                    sound = not everything or self.options.audio_from is None
                    source = Tracks(source, _CALL, sound=sound, everything=everything)
                tracks.append(source)
        except BaseException:
            self._resources.tracks.close()
            raise

    # facts ------------------------------------------------------------------------------------
    @property
    def width(self) -> int | None:
        """Width in pixels; None before the first frame."""
        return self._size[0] if self._size else None

    @property
    def height(self) -> int | None:
        """Height in pixels; None before the first frame."""
        return self._size[1] if self._size else None

    @property
    def encoder(self) -> str:
        """FFmpeg's name of the encoder; with ``encoder="auto"`` final after the first frame."""
        return self._choice.name

    @property
    def closed(self) -> bool:
        """True once the writer is closed or abandoned."""
        return not self._finalizer.alive

    def __repr__(self) -> str:
        size = f" {self._size[0]}x{self._size[1]}" if self._size else ""
        state = " closed" if self.closed else ""
        name = self._target.label
        return f"<Writer {name!r}{size} {self._choice.name}, {self.frames} frames{state}>"

    # frames -----------------------------------------------------------------------------------
    def write(self, frame: ImageLike, *, copy: bool = True) -> None:
        """Append a frame: a Frame, an array (gray, RGB or RGBA, u8 or f32) or a Pillow image.

        A Frame keeps its own time; a picture without one is shown 1 / fps after the one before.
        Alpha is dropped, and a notice says so, unless the writer has ``alpha=True``. With
        ``copy=False`` the memory of an "i420" frame is not copied: do not change it while the
        writer holds a reference. Several threads may write; their frames are in some order.

        Raises:
            ShapeError: the size differs from the first frame's.
            ParameterError: the time is not after the previous frame's, or there is neither a time
                nor ``fps``.
            VideoError: encoding an earlier frame failed.
        """
        if self.closed:
            raise FreedError(f"{_CALL}: {self._target.label!r} is closed. Open another writer.")
        self._home.check(f"{_CALL}: {self._target.label!r}", "Write to another file here.")
        check_deadline(_CALL)
        given = frame if isinstance(frame, Frame) else self._to_frame(frame)
        if tracer.on:
            tracer.frame = given.trace_id or tracer.frame
        with Holding(self._writing, "writer") if tracer.on else self._writing:
            self._append(given, copy)

    def _size_of(self, frame: Frame) -> tuple[int, int]:
        """Return the size of a frame; raise if the others have another."""
        size = frame.width, frame.height
        if self._size is not None and size != self._size:
            width, height = self._size
            raise ShapeError(
                f"{_CALL}: frames of {self._target.label!r} must be {width}x{height} "
                f"(width x height), got {size[0]}x{size[1]}. Resize it first."
            )
        return size

    def _append(self, given: Frame, copy: bool) -> None:
        """Append a frame; one thread at a time."""
        size, time = self._size_of(given), self._time(given)
        if given.hdr is not None and self._hdr is None:
            given = self._adopt(given, given.hdr)
        if self._matrix is None:
            self._matrix = given.matrix if self._hdr is None else "bt2020"
        if not self._alpha_reported and self.frames & (self.frames - 1) == 0:
            self._report_alpha(given)
        try:
            encoder = self._resources.encoder or self._start(given, size)
            with tracer.span("convert", self._choice.pixel_format) if tracer.on else OFF:
                picture = encoded_picture(
                    given,
                    self._choice.pixel_format,
                    self._stored,
                    matrix=self._matrix,
                    range=self.options.range,
                    copy=copy,
                    hdr=self._hdr,
                    gpu=self._choice.gpu,
                )
            stamp = max(round(time / self._base), self._stamp + 1)
            if not self._moved and self._counts and abs(stamp * self._base - time) > self._base / 4:
                self._report_moved()
            picture.time_base, picture.pts = self._base, stamp
            set_tags(picture, encoder.tags)
            encoder.put(picture, self._ticks(given))
        except BaseException:
            self.abandon()
            raise
        self._last, self._stamp = time, stamp
        self.frames += 1

    async def write_async(self, frame: ImageLike) -> None:
        """Append a frame as :meth:`write` does, without blocking the event loop."""
        await self._worker.run(lambda: self.write(frame))

    def _ticks(self, frame: Frame) -> int | None:
        """Return how long a frame is shown, in units of the encoder; None if unknown."""
        if frame.duration is None or self.options.retime:
            return None
        return max(1, round(frame.duration * frame.time_base / self._base))

    def _report_alpha(self, frame: Frame) -> None:
        """Say once that alpha is dropped. Looks at frames 0, 1, 2, 4, 8, ... only."""
        if is_translucent(frame):
            self._alpha_reported = True
            notify(
                f"{_CALL}: {self._target.label!r} does not keep the alpha of its frames. Give "
                "alpha=True and write .mov (prores, png), .webm (vp9) or .mkv (ffv1, vp9).",
                stacklevel=3,
            )

    def _report_moved(self) -> None:
        """Say once that a frame cannot be shown at its own time."""
        self._moved = True
        notify(
            f"{_CALL}: {self._target.label!r} has frames at a fixed rate; times of frame "
            f"{self.frames} and others are rounded to it. Write .mkv or .mp4 to keep them.",
            stacklevel=3,
        )

    def _to_frame(self, data: ImageLike) -> Frame:
        found = check_pixels(data, _CALL)
        if isinstance(found, np.ndarray) and found.flags.c_contiguous:
            return Frame(from_dlpack(found, device=self.options.device))
        return Frame(from_array(found, device=self.options.device))

    def _time(self, frame: Frame) -> Fraction:
        """Return the frame's time in seconds."""
        if frame.time is not None and not self.options.retime:
            time = frame.time
        elif self.fps is None:
            raise ParameterError(f"{_CALL}: the frame has no time (its pts is None). Give fps.")
        else:
            time = Fraction(0) if self._last is None else self._last + 1 / self.fps
        if self._last is not None and time <= self._last:
            raise ParameterError(
                f"{_CALL}: frame {self.frames} is at {float(time):.6f} s, not after the previous "
                f"({float(self._last):.6f} s). Write frames in order, or give fps and retime=True "
                "to space them evenly."
            )
        return time

    def _start(self, first: Frame, size: tuple[int, int]) -> Encoder:
        own = first.time is not None and not self.options.retime
        self._base = first.time_base if own or self.fps is None else 1 / self.fps
        if self._choice.name == "mpeg4" and self._base.denominator > 0xFFFF:  # the standard's limit
            self._base = Fraction(1, 30000)
        self._counts = self.fps is not None and self._target.format in _COUNTED
        if self._counts and self.fps is not None:
            self._base = 1 / self.fps
        self._choice = choose_encoder(
            self.options.encoder, self._codec, size, self._choice, self._given, plain=self._plain
        )
        self._stored = stored_size(self._choice.name, self._choice.pixel_format, size)
        self._choice = on_gpu(self._choice, first.device, self._stored)
        if self._stored != size:
            notify(
                f"{_CALL}: {self._target.label!r} is {self._stored[0]}x{self._stored[1]} instead "
                f"of {size[0]}x{size[1]}: {self._codec} needs even sizes, so the last row or "
                "column is repeated. codec='vp9', 'av1' or 'ffv1', or pixel_format='yuv444p', "
                "keep the size.",
                stacklevel=4,
            )
        self._open_tracks()
        tracks, self._resources.tracks = self._resources.tracks, TrackGroup()
        choice, name, aspect = self._choice, self._choice.name, self.options.pixel_aspect
        encoding = PictureEncoding(
            name,
            repeatable_options(
                name, fitted_options(name, self._stored, choice.options), self._stored[0]
            ),
            str(self.fps or 30), str(self._base), *self._stored, choice.pixel_format,
            "" if aspect is None else str(Fraction(aspect)),
            self.options.threads or default_threads(name), self._tags(first),
        )  # fmt: skip
        encoder = Encoder(self._target, encoding, choice, tracks, shift=not own)  # closes them
        self._resources.encoder = encoder
        self._size = size
        return encoder

    def _tags(self, first: Frame) -> tuple[int, int, int, int]:
        """Return code points of range (FFmpeg's), matrix, primaries and transfer (H.273)."""
        rgb = self._choice.pixel_format.startswith(("rgb", "bgra", "gbrp"))
        span = 2 if self.options.range == "full" or rgb else 1
        matrix = 0 if rgb else color.code_point(color.MATRICES, self._matrix or first.matrix)
        if self._hdr is not None:
            return span, matrix, 9, color.code_point(color.TRANSFERS, self._hdr.transfer)
        transfer = first.transfer
        if transfer == "srgb" and first.tags is None and not rgb:
            transfer = "bt709"  # that of video; pictures have no other
        own = color.written_tags(first.primaries, transfer, first.matrix, first.tags)
        return span, matrix, *own

    # the end ----------------------------------------------------------------------------------
    def close(self) -> None:
        """Complete the file. Closing twice is fine.

        Raises:
            VideoError: no frame was written, or encoding failed. There is no file then.
        """
        if self.closed:
            return
        if not self._home.here:  # the parent completes it
            self.abandon()
            return
        if not self.frames:
            self.abandon()
            raise VideoError(
                f"{_CALL}: no frame was written, so {self._target.label!r} was not created."
            )
        try:
            self._finish()
        finally:
            self.abandon()

    def _finish(self) -> None:
        """Encode the remaining frames, and complete the file."""
        assert self._resources.encoder is not None
        self._resources.encoder.finish()
        self._resources.encoder = None

    def abandon(self) -> None:
        """Discard the file. An existing file of that name stays untouched."""
        self._finalizer()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()
