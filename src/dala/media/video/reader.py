"""Reading videos: frames by iteration, with exact times and correct colors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from numbers import Real
from time import monotonic
from typing import Self

from dala import forks
from dala.errors import FreedError, ParameterError, VideoError
from dala.gpu.compute import Buffer
from dala.media.frame import Frame
from dala.media.hdr import TRANSFERS, Hdr
from dala.media.notices import notify
from dala.media.video import color, deep
from dala.media.video.arguments import check_choice, check_count, check_seconds
from dala.media.video.borrowed import BorrowedFrame, converted_frame
from dala.media.video.decoding.decoder import Decoder
from dala.media.video.decoding.input import SoundListener, VideoInput, frame_count
from dala.media.video.source import POLICIES, DecodedFrame, VideoSource, turn_of
from dala.media.video.stages import SCANS
from dala.offload import AsyncIterating, LoopWorker, in_event_loop


class _Resources:
    """What a reader releases; separate from it, so that the reader can be collected."""

    def __init__(self, make: Callable[[], VideoInput]) -> None:
        self._make = make
        self.input: VideoInput | None = None
        self._opening = forks.lock()
        self.decoder: Decoder | None = None
        self.worker = LoopWorker("dala video reader")
        self.home = forks.Home()
        #: Held while the decoder is started: several threads may ask for the first frame.
        self.starting = forks.rlock()

    @property
    def opened(self) -> VideoInput:
        """The open file; the first access opens it."""
        return self.input or self.open()

    def open(self) -> VideoInput:
        """Open the file unless it is open, and return it."""
        with self._opening:
            self.input = self.input or self._make()
            return self.input

    def halt(self) -> bool:
        decoder, self.decoder = self.decoder, None
        return decoder is None or decoder.stop()

    def close(self) -> None:
        if not self.home.here:
            forks.keep(self)
        elif self.halt() and self.input is not None:
            self.input.close()

    def release(self) -> None:
        """Close, for a reader that was collected: not on the thread of an event loop."""
        if self.worker.started and in_event_loop():
            self.worker.submit(self.close)
        else:
            self.close()


class Reader(AsyncIterating[Frame]):
    """An open video: iterate it for frames. Created by :func:`dala.media.video.open`.

    A thread decodes a few frames ahead. Iteration continues from the current position (the start,
    or where ``seek`` put it). After the end, iterating again starts over::

        with video.open("clip.mp4") as reader:
            print(reader.width, reader.height, reader.fps)
            for frame in reader:
                ...

    In asyncio, ``async for`` and ``async with`` leave all waiting and decoding to threads::

        async with video.open("clip.mp4") as reader:
            async for frame in reader:
                ...
    """

    _instead = "Pass the path, and open it there."

    def __init__(
        self,
        source: VideoSource,
        *,
        format: str = "rgba",
        depth: str | None = None,
        device: str | None = None,
        policy: str | None = None,
        queue: int | None = None,
        rotate: bool = True,
        square_pixels: bool = False,
        matrix: str | None = None,
        range: str | None = None,
        hwaccel: str | None = None,
        threads: int = 0,
        timeout: float = 10.0,
        deinterlace: bool | str | None = None,
        on_resize: str = "scale",
    ) -> None:
        call = "video.open"
        check_choice(call, "format", format, ("rgba", "native"))
        check_choice(call, "depth", depth, (None, "float"))
        if depth == "float" and format == "native":
            raise ParameterError.invalid(
                call, "format", "'rgba' with depth='float'", format, "Planes are u8."
            )
        check_choice(call, "policy", policy, (None, *POLICIES))
        check_choice(call, "matrix", matrix, (None, *dict.fromkeys(color.MATRICES.values())))
        check_choice(call, "range", range, (None, *color.RANGES.values()))
        check_choice(call, "on_resize", on_resize, ("scale", "error"))
        if not (deinterlace is None or isinstance(deinterlace, bool) or deinterlace in SCANS):
            raise ParameterError.invalid(
                call, "deinterlace", "True, False, 'auto' or None", deinterlace
            )
        self.source = source
        self.format = format
        #: "float" for f32 frames, None for u8.
        self.depth = depth
        #: "every" frame, or only the "latest" if frames arrive faster than they are read.
        self.policy = policy or ("latest" if source.live else "every")
        length = (1 if self.policy == "latest" else 4) if queue is None else queue
        self._length = check_count(call, "queue", length, 1)
        self._device = device
        self._rotate = rotate
        self._square = square_pixels
        self._matrix = matrix
        self._range = range
        self._at: Fraction | None = None
        self._fresh = True
        self._ended = False
        self._turn: int | None = None
        self._dropped = 0
        self._said = 0
        self._resources = _Resources(
            partial(
                VideoInput,
                source,
                hwaccel=hwaccel,
                threads=check_count(call, "threads", threads, 0),
                timeout=check_seconds(call, "timeout", timeout),
                call=call,
                deinterlace=deinterlace,
                on_resize=on_resize,
            )
        )
        self._worker = self._resources.worker
        if not in_event_loop():  # there, the first use opens it
            self._resources.open()
        self._finalizer = forks.finalize(self, self._resources.release)

    # properties -------------------------------------------------------------------------------
    @property
    def name(self) -> str:
        """The path, URL or camera, as in messages."""
        return self.source.label

    @property
    def width(self) -> int:
        """Width of the frames, after rotation and stretching."""
        return self._size()[0]

    @property
    def height(self) -> int:
        """Height of the frames, after rotation and stretching."""
        return self._size()[1]

    @property
    def fps(self) -> Fraction | None:
        """Frames per second, exact; the average for variable rates; None if unknown."""
        return self._opened("fps").rate

    @property
    def duration(self) -> float | None:
        """Duration in seconds; None if unknown (cameras, streams)."""
        opened = self._opened("duration")
        stream = opened.stream
        if stream.duration is not None:
            return float(stream.duration * stream.time_base)
        whole = opened.container.duration
        return None if whole is None else whole / 1_000_000

    @property
    def frames(self) -> int | None:
        """Number of frames according to the file; None if it does not say."""
        return frame_count(self._opened("frames").stream) or None

    @property
    def codec(self) -> str:
        """FFmpeg's name for the codec, such as "h264"."""
        return str(self._opened("codec").stream.codec_context.name)

    @property
    def bits(self) -> int:
        """Bits per stored sample: 8, or more for deep color."""
        form = self._opened("bits").stream.codec_context.format
        return int(form.components[0].bits) if form is not None else 8

    @property
    def is_hdr(self) -> bool:
        """Whether the file is tagged as HDR (HLG or PQ)."""
        tag = self._opened("is_hdr").stream.codec_context.color_trc
        return color.TRANSFERS.get(int(tag)) in TRANSFERS

    @property
    def pixel_aspect(self) -> Fraction:
        """A stored pixel's width / height; 1 if the file does not say."""
        stream = self._opened("pixel_aspect").stream
        found = stream.sample_aspect_ratio or stream.codec_context.sample_aspect_ratio
        return Fraction(found) if found else Fraction(1)

    @property
    def rotation(self) -> int:
        """Clockwise rotation in degrees that makes the stored pictures upright."""
        self._opened("rotation")
        if self._turn is None:  # known from the first frame on
            first = self._decoder().queue.get(keep=True)
            self._turn = 0 if first is None else turn_of(first)
        return self._turn

    @property
    def has_audio(self) -> bool:
        """Whether the source has audio, which ``video.write(audio_from=...)`` can copy."""
        return bool(self._opened("has_audio").container.streams.audio)

    @property
    def listener(self) -> SoundListener | None:
        """What takes the sound of a live source as it arrives; None if it is not wanted."""
        return self._opened("listener").listener

    @listener.setter
    def listener(self, listener: SoundListener | None) -> None:
        self._opened("listener").listener = listener

    @property
    def dropped(self) -> int:
        """Number of frames dropped by policy "latest"."""
        decoder = self._resources.decoder
        return self._dropped + (0 if decoder is None else decoder.queue.dropped)

    @property
    def arrived(self) -> float:
        """When the last frame had been decoded, by ``time.monotonic``; of a camera, captured."""
        decoder = self._resources.decoder
        return monotonic() if decoder is None else decoder.queue.arrived

    @property
    def notices(self) -> tuple[str, ...]:
        """What was repaired, converted or left out so far; each is also a warning, once."""
        return tuple(self._resources.opened.notices.values()) if self._resources.input else ()

    @property
    def closed(self) -> bool:
        """True once the reader is closed."""
        return not self._finalizer.alive

    def __repr__(self) -> str:
        if self.closed:
            return f"<Reader {self.name!r} closed>"
        if not self._resources.input:
            return f"<Reader {self.name!r} not opened yet>"
        opened = self._opened("repr")
        context = opened.stream.codec_context
        width, height, *_ = opened.size.first or (context.width, context.height)
        return f"<Reader {self.name!r} {width}x{height} {context.name}>"

    # frames -----------------------------------------------------------------------------------
    def __enter__(self) -> Self:
        self._opened("with")
        return self

    async def __aenter__(self) -> Self:
        await self._worker.run(lambda: (self.__enter__(), self.width))  # which may need a frame
        return self

    def __iter__(self) -> Self:
        self._opened("iter")
        if self._ended:
            self._restart(None)
        return self

    def __next__(self) -> Frame:
        decoded = self._next()
        if decoded is None:
            raise StopIteration
        return self._converted(decoded, *self._planes(decoded))

    def borrow(self) -> Iterator[Frame | BorrowedFrame]:
        """Iterate as usual, but yield "native" frames over the decoder's own memory if possible.

        A borrowed frame must be released before the next one is read.
        """
        while (decoded := self._next()) is not None:
            found = self._planes(decoded)
            made = [self._borrowed(decoded, *found) or self._converted(decoded, *found)]
            del decoded, found  # keep no reference to a frame that the caller has
            yield made.pop()

    def where(self, wanted: Callable[[Fraction], bool]) -> Iterator[Frame]:
        """Iterate as usual, but convert and yield only the frames whose time is wanted."""
        while (decoded := self._next()) is not None:
            if wanted(decoded.pts * Fraction(decoded.time_base)):
                yield self._converted(decoded, *self._planes(decoded))

    def _next(self) -> DecodedFrame | None:
        """Return the next decoded frame; None after the last."""
        self._opened("next")
        if self._ended:
            return None
        try:
            decoded = self._decoder().queue.get()
        except VideoError:
            self._ended = True
            raise
        finally:
            if len(self._resources.opened.notices) > self._said:
                self._tell()
        if decoded is None:
            self._ended = True
        else:
            self._turn = turn_of(decoded)
        return decoded

    def _tell(self) -> None:
        """Issue the notices that are new."""
        texts = self.notices
        said, self._said = self._said, len(texts)
        for text in texts[said:]:
            notify(text, stacklevel=4)

    @property
    def scan(self) -> str | None:
        """How an interlaced video was found to be scanned; known after the first frame.

        One of "flags", "tff", "bff" and "none"; None where that was not asked for.
        """
        return self._opened("scan").scan

    def keep_size(self, width: int, height: int, pixels: str) -> None:
        """Scale frames of another size to this one, that of a frame before those to be read.

        They are those of stored pictures; ``pixels`` is FFmpeg's name of the pixel format.
        """
        self._opened("keep_size").size.first = (width, height, pixels)

    def seek(self, t: float | Fraction) -> None:
        """Seek: the next frame is the one shown at ``t`` seconds.

        ``t`` is on the frames' clock (``pts * time_base``). Before the first frame it means the
        first, after the last one the last.

        Raises:
            ParameterError: ``t`` is not a finite number of 0 or more.
            VideoError: the source is live.
        """
        self._opened("seek")
        self._forget()
        if not isinstance(t, Real) or isinstance(t, bool) or not math.isfinite(t) or t < 0:
            raise ParameterError.invalid("Reader.seek", "t", "a number of seconds, 0 or more", t)
        if self.source.live:
            raise VideoError(f"Reader.seek: {self.name!r} is live, and live sources cannot seek.")
        exact = Fraction(t)
        # A float stands for the nearest simple fraction: 2.36 is slightly below 59/25.
        self._restart(exact.limit_denominator(1_000_000) if isinstance(t, float) else exact)

    def close(self) -> None:
        """Stop the thread and close the file. Frames stay valid. Closing twice is fine."""
        self._dropped = self.dropped
        if self._finalizer.detach():
            self._resources.close()

    async def seek_async(self, t: float | Fraction) -> None:
        """Seek as :meth:`seek` does, without blocking the event loop."""
        await self._worker.run(lambda: self.seek(t))

    # implementation ---------------------------------------------------------------------------
    def _interrupt(self) -> None:
        decoder = self._resources.decoder
        if decoder is not None:
            decoder.queue.close()

    def _opened(self, what: str) -> VideoInput:
        if self.closed:
            raise FreedError(f"video: {self.name!r} is closed. Open it again to use {what!r}.")
        self._resources.home.check(f"video: {self.name!r}", "Open it again: video.open(...).")
        return self._resources.opened

    def _restart(self, at: Fraction | None) -> None:
        self._dropped = self.dropped
        if self._resources.decoder is not None:
            if not self._resources.halt():
                self.close()
                raise VideoError(f"video: {self.name!r} no longer responds and was closed.")
            self._fresh = False
        self._at = at
        self._ended = False

    def _decoder(self) -> Decoder:
        with self._resources.starting:
            if self._resources.decoder is None:
                if self.source.live and not self._fresh:
                    self._resources.opened.open()
                    self._fresh = True
                self._resources.decoder = Decoder(
                    self._resources.opened,
                    size=self._length,
                    policy=self.policy,
                    at=self._at,
                    fresh=self._fresh and self._at is None,
                )
            return self._resources.decoder

    def _size(self) -> tuple[int, int]:
        opened = self._opened("size")
        context = opened.stream.codec_context
        # The decoder may be ahead, where the size is another.
        width, height, *_ = opened.size.first or (context.width, context.height)
        if self.format == "native":
            return width, height
        if self._square:
            width = max(1, round(width * self.pixel_aspect))
        if self._rotate and self.rotation in (90, 270):
            width, height = height, width
        return width, height

    def _planes(
        self, decoded: DecodedFrame
    ) -> tuple[color.DecodedPlanes | deep.DeepPlanes, color.ColorInfo]:
        codec = self._resources.opened.stream.codec_context.name
        colors = color.color_info(decoded, codec, self._matrix, self._range)
        if self._matrix is None and (found := color.unknown_matrix(decoded)) is not None:
            self._resources.opened.say(
                "matrix",
                f"its matrix (code {found} of H.273) is not known here; {colors.matrix} is used.",
            )
        if self.depth == "float" or colors.transfer in TRANSFERS:
            return deep.deep_planes(decoded, colors), colors
        return color.planes_of(decoded, colors), colors

    def _borrowed(
        self,
        decoded: DecodedFrame,
        planes: color.DecodedPlanes | deep.DeepPlanes,
        colors: color.ColorInfo,
    ) -> BorrowedFrame | None:
        if self.format != "native" or isinstance(planes, deep.DeepPlanes):
            return None
        buffers = color.borrow_planes(planes, self._device)
        if buffers is None:
            return None
        return BorrowedFrame(
            buffers,
            planes.format,
            decoded.pts,
            Fraction(decoded.time_base),
            colors.range,
            colors.matrix,
            colors.primaries,
            colors.transfer,
            colors.siting,
            colors.tags,
        )

    def _converted(
        self,
        decoded: DecodedFrame,
        planes: color.DecodedPlanes | deep.DeepPlanes,
        colors: color.ColorInfo,
    ) -> Frame:
        made: Buffer | None = None
        hdr: Hdr | None = None
        if isinstance(planes, deep.DeepPlanes):
            floats = self.depth == "float"
            made = deep.to_rgba(planes, self._device, deep=floats)
            if planes.hdr is not None:
                colors, hdr = (deep.WIDE, planes.hdr) if floats else (deep.SDR, None)
        elif self.format == "native":
            made = color.to_planes(planes, self._device)
            if made is not None:
                return converted_frame(made, planes.format, decoded, colors, colors.range)
        if not isinstance(planes, deep.DeepPlanes):
            made = color.to_rgba(planes, colors, self._device)
        assert made is not None
        if self.format == "rgba":
            if self._square and self.pixel_aspect != 1:
                made = color.to_square_pixels(made, self.pixel_aspect)
            if self._rotate and self._turn in (90, 180, 270):
                made = color.rotate(made, self._turn)
        return converted_frame(made, "rgba", decoded, colors, "full", hdr)
