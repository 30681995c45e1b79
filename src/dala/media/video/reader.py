"""Reading videos: frames by iteration, with exact times and correct colors."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from time import monotonic
from typing import Any, ClassVar, Final, Self, SupportsIndex

from dala import forks
from dala.arguments import Quantity
from dala.errors import FreedError, IndexOutOfRange, ParameterError, VideoError
from dala.media.frame import Frame
from dala.media.hdr import TRANSFERS, Hdr
from dala.media.video import color, deep
from dala.media.video.decoding.decoder import Decoder
from dala.media.video.decoding.input import SoundListener, VideoInput, frame_count
from dala.media.video.decoding.nvdec import layout_of, on_host
from dala.media.video.options import DecodeOptions
from dala.media.video.source import DecodedFrame, VideoSource, turn_of
from dala.media.video.timing import header_duration
from dala.notices import notify
from dala.offload import AsyncIterating, LoopWorker, in_event_loop
from dala.trace.recorder import traced

CALL: Final = "video.open"
#: A time to seek.
SECONDS: Final = Quantity(0, unit="seconds")


class _Resources:
    """The resources of a reader; separate from it, so that the reader can be collected."""

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
    _elsewhere: ClassVar = {
        "read grab retrieve get_next_data iter_frames": "next(reader, None) is the next frame, or "
        "None after the last; `for frame in reader` takes all.",
        "get_frame get_data save_frame set": "reader[10] is a frame by its number; "
        "reader.seek(1.5) and next(reader) are one by its time.",
        "subclip subclipped trim cut": "Play a part of a file in a scene: scene.add_video(path, "
        "trim=(1, 2)). `dala cut` writes one to a file.",
        "isOpened": "video.open raises if the file cannot be opened.",
        "size shape": "It has width and height.",
    }

    def __init__(self, source: VideoSource, options: DecodeOptions | None = None) -> None:
        options = options or DecodeOptions()
        if options.depth == "float" and options.format == "native":
            raise ParameterError.invalid(
                CALL, "format", "'rgba' with depth='float'", options.format, "Planes are u8."
            )
        self.source = source
        self.options = options
        self.format = options.format
        #: "float" for f32 frames, None for u8.
        self.depth = options.depth
        #: "every" frame, or only the "latest" if frames arrive faster than they are read.
        self.policy = options.policy or ("latest" if source.live else "every")
        self._length = options.queue or (1 if self.policy == "latest" else 4)
        self._at: Fraction | None = None
        self._fresh = True
        self._ended = False
        self._turn: int | None = None
        self._times: list[Fraction] = []
        self._dropped = self._said = 0
        self._resources = _Resources(self._opener())
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
        found = header_duration(opened.container, opened.stream)
        return None if found is None else float(found)

    @property
    def frames(self) -> int | None:
        """Quantity of frames according to the file; None if it does not say."""
        return frame_count(self._opened("frames").stream) or None

    @property
    def codec(self) -> str:
        """FFmpeg's name for the codec, such as "h264"."""
        return str(self._opened("codec").stream.codec_context.name)

    @property
    def bits(self) -> int:
        """Bits per stored sample: 8, or more for deep color."""
        form = self._opened("bits").stream.codec_context.format
        if form is not None and not form.components:  # known from the first frame on
            first = self._decoder().queue.get(keep=True)
            form = None if first is None else layout_of(first)
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
        """The receiver of the sound of a live source as it arrives; None if it is not wanted."""
        return self._opened("listener").listener

    @listener.setter
    def listener(self, listener: SoundListener | None) -> None:
        self._opened("listener").listener = listener

    @property
    def dropped(self) -> int:
        """Quantity of frames dropped by policy "latest"."""
        decoder = self._resources.decoder
        return self._dropped + (0 if decoder is None else decoder.queue.dropped)

    @property
    def arrived(self) -> float:
        """When the last frame had been decoded, by ``time.monotonic``; of a camera, captured."""
        decoder = self._resources.decoder
        return monotonic() if decoder is None else decoder.queue.arrived

    @property
    def notices(self) -> tuple[str, ...]:
        """Repairs, conversions and omissions so far; each is also a warning, once."""
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
        return self._made(decoded)

    def __len__(self) -> int:
        if (count := self.frames) is None:
            raise TypeError(
                f"len: {self.name!r} does not say how many frames it has. Count them: "
                "sum(1 for _ in reader)."
            )
        return count

    def __bool__(self) -> bool:
        return True  # whatever its length

    def __getitem__(self, number: SupportsIndex) -> Frame:
        """Return a frame by its number, exactly; the next one is that after it.

        The first use reads the times of all frames, without decoding.
        """
        try:
            number = operator.index(number)
        except TypeError:
            advice = "For a part, seek, and take as many: itertools.islice(reader, 10)."
            raise TypeError(
                f"reader[...] takes the number of a frame, got {number!r}. {advice}"
            ) from None
        self._opened("frames")
        times = self._times = self._times or self._find_times()
        if not -len(times) <= number < len(times):
            raise IndexOutOfRange(f"reader[{number}]: {self.name!r} has {len(times)} frames.")
        self.seek(times[number])
        return next(self)

    def _find_times(self) -> list[Fraction]:
        """Return the times of all frames."""
        from dala.media.video.chunks.index import index_video

        if self.source.live:
            raise VideoError(f"reader[...]: {self.name!r} is live: its frames have no numbers.")
        index = index_video(self.source, CALL)
        if index.problem:
            advice = "Skip frames: next(itertools.islice(reader, 10, None))."
            raise VideoError(f"reader[...]: {self.name!r}: {index.problem}. {advice}")
        return [index.time(number) for number in range(index.frames)]

    def where(self, wanted: Callable[[Fraction], bool]) -> Iterator[Frame]:
        """Iterate as usual, but convert and yield only the frames whose time is wanted."""
        while (decoded := self._next()) is not None:
            if wanted(decoded.pts * Fraction(decoded.time_base)):
                yield self._made(decoded)

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
        """The order of fields that was found in an interlaced video; known after the first frame.

        One of "flags", "tff", "bff" and "none"; None where that was not asked for.
        """
        return self._opened("scan").scan

    def keep_size(self, width: int, height: int, pixels: str) -> None:
        """Scale frames of another size to this one, that of a frame before those to be read.

        They are those of stored pictures; ``pixels`` is FFmpeg's name of the pixel format.
        """
        self._opened("keep_size").size.first = (width, height, pixels)

    def seek(self, t: float | Fraction | str) -> None:
        """Seek: the next frame is the one shown at ``t`` seconds.

        ``t``, a number or a text such as "1m30s", is on the frames' clock (``pts * time_base``).
        Before the first frame it means the first, after the last one the last.

        Raises:
            ParameterError: ``t`` is not a finite number of 0 or more.
            VideoError: the source is live.
        """
        self._opened("seek")
        self._forget()
        given = SECONDS.check("Reader.seek", "t", t)
        t = given if isinstance(t, str) else t
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

    async def seek_async(self, t: float | Fraction | str) -> None:
        """Seek as :meth:`seek` does, without blocking the event loop."""
        await self._worker.run(lambda: self.seek(t))

    # implementation ---------------------------------------------------------------------------
    def _opener(self) -> Callable[[], Any]:
        """Return a function that opens the file, without a reference to this object."""
        return partial(VideoInput, self.source, self.options, CALL)

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
        if self.options.square_pixels:
            width = max(1, round(width * self.pixel_aspect))
        if self.options.rotate and self.rotation in (90, 270):
            width, height = height, width
        return width, height

    @traced("convert", "decoded frame")
    def _made(self, decoded: DecodedFrame) -> Frame:
        """Return a decoded frame in the wanted form."""
        opened, options, device = self._resources.opened, self.options, self.options.device
        codec = opened.stream.codec_context.name
        decoded = on_host(decoded, always=False)
        colors = color.color_info(decoded, codec, options.matrix, options.range)
        if options.matrix is None and (found := color.unknown_matrix(decoded)) is not None:
            known = f"is not known here; {colors.matrix} is used."
            opened.say("matrix", f"its matrix (code {found} of H.273) {known}")
        times: Any = {"pts": decoded.pts, "time_base": Fraction(decoded.time_base)}
        hdr: Hdr | None = None
        if self.depth == "float" or colors.transfer in TRANSFERS:
            floats = self.depth == "float"
            words = deep.deep_planes(decoded, colors, device)
            made = deep.to_rgba(words, device, deep=floats)
            if words.hdr is not None:
                colors, hdr = (deep.WIDE, words.hdr) if floats else (deep.SDR, None)
        else:
            planes = color.planes_of(decoded, colors, device)
            if self.format == "native":
                native = color.to_planes(planes, device)
                if native is not None:
                    facts = vars(replace(colors, siting="left"))
                    return Frame(native, format=planes.format, **times, **facts)
            made = color.to_rgba(planes, colors, device)
        if self.format == "rgba":
            if options.square_pixels and self.pixel_aspect != 1:
                made = color.to_square_pixels(made, self.pixel_aspect)
            if options.rotate and self._turn in (90, 180, 270):
                made = color.rotate(made, self._turn)
        facts = vars(replace(colors, range="full", siting="left"))
        return Frame(made, format="rgba", hdr=hdr, **times, **facts)
