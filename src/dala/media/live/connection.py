"""One connection of a live stream: a thread that encodes and sends."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from time import monotonic
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from dala import forks
from dala.errors import DalaError, VideoError
from dala.media.live.destination import Destination
from dala.media.live.measures import LiveMeter
from dala.media.video.decoding.input import ffmpeg_message
from dala.media.video.output.hardware import EncoderChoice, hardware_device
from dala.media.video.source import AvObject, DecodedFrame, pyav

#: Pictures that may wait for the encoder; the oldest is dropped for a newer one.
QUEUE_SIZE: Final = 3
#: Samples a second, and channels, of the sound.
SOUND_RATE: Final = 48000
#: Sound of a slot: (samples, 2), f32.
Samples = npt.NDArray[np.float32]


class Item(NamedTuple):
    """A picture of one slot and the sound up to its end; the picture is None where it was dropped.

    ``captured`` is when the frame was captured; None for a repeated picture.
    """

    slot: int
    picture: DecodedFrame | None
    captured: float | None
    sound: Samples | None


@dataclass(frozen=True)
class StreamSettings:
    """How a live stream is encoded."""

    size: tuple[int, int]
    rate: Fraction
    choice: EncoderChoice
    tags: tuple[int, int, int, int]
    #: Bits a second of the sound; 0 for no sound.
    sound_bit_rate: int
    threads: int
    #: Further options of the muxer.
    muxer: dict[str, str] = field(default_factory=dict)


class Connection:
    """A connection, from connecting to the first error or ``finish``. Nothing here waits for it.

    ``put`` never blocks: if the receiver or the encoder is slow, the oldest waiting picture is
    dropped and counted. Pictures are dropped before they are encoded, so that the stream stays
    whole.
    """

    def __init__(self, where: Destination, settings: StreamSettings, meter: LiveMeter) -> None:
        self.where = where
        self._settings = settings
        self._meter = meter
        self._items: deque[Item] = deque()
        self._changed = forks.condition()
        self._finishing = self._abandoned = False
        self._captured: dict[int, float] = {}
        self._first: int | None = None
        #: Why it ended; None while it runs and after ``finish``.
        self.error: Exception | None = None
        self.connected = False
        self.ended = False
        #: When the call of FFmpeg that runs now began; None between calls.
        self.busy_since: float | None = monotonic()
        self._thread = forks.thread(self._run, name="dala live sender")
        self._thread.start()

    # the other threads ------------------------------------------------------------------------
    def put(self, item: Item) -> None:
        """Queue a picture with its sound."""
        with self._changed:
            if self.ended or self._finishing:
                self._meter.dropped += item.picture is not None
                return
            waiting = [n for n, old in enumerate(self._items) if old.picture is not None]
            if item.picture is not None and len(waiting) >= QUEUE_SIZE:
                old = self._items[waiting[0]]
                self._items[waiting[0]] = old._replace(picture=None)
                self._meter.dropped += 1
            self._items.append(item)
            self._changed.notify_all()

    def is_idle(self) -> bool:
        """Return whether nothing waits and nothing is being sent."""
        return self.connected and not self._items and self.busy_since is None

    def wait(self, done: Callable[[], bool], timeout: float) -> bool:
        """Wait until something is so, or the connection ended; return whether it is so."""
        end = monotonic() + timeout
        with self._changed:
            while not done() and not self.ended:
                left = end - monotonic()
                if left <= 0:
                    break
                self._changed.wait(min(left, 0.5))  # with a timeout, so that Ctrl-C works
            return done()

    def finish(self, timeout: float) -> bool:
        """Send what waits and end the stream. Return False if that takes longer than ``timeout``.

        The thread of a receiver that does not answer ends once FFmpeg returns.
        """
        with self._changed:
            self._finishing = True
            self._changed.notify_all()
        if self.wait(lambda: self.ended, timeout):
            self._thread.join(timeout)
            return True
        self.abandon()
        return False

    def abandon(self) -> None:
        """Send nothing more."""
        with self._changed:
            self._abandoned = self._finishing = True
            self._meter.dropped += sum(item.picture is not None for item in self._items)
            self._items.clear()
            self._changed.notify_all()

    # the thread -------------------------------------------------------------------------------
    def _run(self) -> None:
        output = None
        try:
            output = self._connect()
            with self._changed:
                self.connected, self.busy_since = True, None
                self._changed.notify_all()
            self._send_all(output)
        except Exception as error:
            self.error = error
        finally:
            try:
                if output is not None:
                    self.busy_since = monotonic()
                    output.close()
            except Exception as error:
                self.error = self.error or error
            with self._changed:
                self._meter.dropped += sum(item.picture is not None for item in self._items)
                self._items.clear()
                self.ended, self.busy_since = True, None
                self._changed.notify_all()

    def _connect(self) -> AvObject:
        settings, where = self._settings, self.where
        if where.folder is not None:
            where.folder.mkdir(parents=True, exist_ok=True)
        output = pyav().open(
            where.name, "w", format=where.muxer, container_options={**where.options}
        )
        try:
            self._video = _add_video(output, settings)
            self._audio = _add_audio(output, where.sound, settings.sound_bit_rate)
            output.start_encoding()
        except BaseException:
            output.close()
            raise
        return output

    def _send_all(self, output: AvObject) -> None:
        while (item := self._next()) is not None:
            self._send(output, item)
            with self._changed:
                self.busy_since = None
                self._changed.notify_all()
        if self._abandoned:
            return
        self.busy_since = monotonic()
        for stream in filter(None, (self._video, self._audio)):
            for packet in stream.encode(None):
                self._mux(output, packet)

    def _next(self) -> Item | None:
        with self._changed:
            while not self._items and not self._finishing:
                self._changed.wait(0.5)
            if not self._items:
                return None
            self.busy_since = monotonic()
            return self._items.popleft()

    def _send(self, output: AvObject, item: Item) -> None:
        rate = self._settings.rate
        if self._first is None:
            if item.picture is None:
                return  # a stream begins with a picture
            self._first = item.slot
        if item.picture is not None:
            picture = item.picture
            picture.pts, picture.time_base = item.slot - self._first, 1 / rate
            if item.captured is not None:
                self._captured[picture.pts] = item.captured
            for packet in self._video.encode(picture):
                self._mux(output, packet)
        if item.sound is not None and len(item.sound) and self._audio is not None:
            end = round((item.slot + 1 - self._first) * SOUND_RATE / rate)
            start = max(end - len(item.sound), 0)
            frame = pyav().AudioFrame.from_ndarray(
                np.ascontiguousarray(item.sound[-(end - start) :].T), format="fltp", layout="stereo"
            )
            frame.rate, frame.pts, frame.time_base = SOUND_RATE, start, Fraction(1, SOUND_RATE)
            for packet in self._audio.encode(frame):
                self._mux(output, packet)

    def _mux(self, output: AvObject, packet: AvObject) -> None:
        size, stamp, of_video = packet.size, packet.pts, packet.stream is self._video
        if of_video and packet.duration == 0:
            packet.duration = max(1, round(1 / self._settings.rate / packet.time_base))
        if not size:
            return
        captured = None
        if of_video:
            number = round(stamp * packet.time_base * self._settings.rate)
            captured = self._captured.pop(number, None)
        output.mux_one(packet)
        now = monotonic()
        if of_video:
            self._meter.sent(size, captured, now)
        else:
            self._meter.count_bytes(size, now)


def _add_video(output: AvObject, settings: StreamSettings) -> AvObject:
    choice = settings.choice
    stream = output.add_stream(
        choice.name,
        rate=settings.rate,
        options=dict(choice.options),
        hwaccel=hardware_device(choice.device),
    )
    context = stream.codec_context
    context.width, context.height = settings.size
    context.pix_fmt = choice.pixel_format
    context.time_base = 1 / settings.rate
    context.thread_count = settings.threads
    context.color_range, context.colorspace = settings.tags[:2]
    context.color_primaries, context.color_trc = settings.tags[2:]
    context.open(strict=False)
    return stream


def _add_audio(output: AvObject, codec: str, bit_rate: int) -> AvObject | None:
    if not codec or not bit_rate:
        return None
    stream = output.add_stream(codec, rate=SOUND_RATE, layout="stereo")
    stream.codec_context.bit_rate = bit_rate
    return stream


def connection_error(call: str, where: Destination, error: Exception | None) -> Exception:
    """Return the error of a connection for users; None is a receiver that does not answer."""
    if isinstance(error, DalaError):
        return error
    if error is None:
        return VideoError(
            f"{call}: {where.label!r} does not answer. Check the address, and that it receives."
        )
    text = ffmpeg_message(error)
    if type(error).__name__ == "ProtocolNotFoundError":
        text = "the installed PyAV does not have this protocol"
    made = VideoError(
        f"{call}: cannot send to {where.label!r}: {text}. Check the address, and that it receives."
    )
    made.__cause__ = error
    return made
