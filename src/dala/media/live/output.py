"""A live stream: frames in, at a constant rate, to a receiver that may come and go."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from os import PathLike
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeAlias, Unpack

import numpy as np

from dala import forks
from dala.arguments import SECONDS, WAIT, ArgumentKind, Integer, Quantity, Settings
from dala.errors import DalaError, FreedError, ShapeError
from dala.gpu.compute import from_array
from dala.media.formats import to_sdr
from dala.media.frame import Frame
from dala.media.images import check_pixels
from dala.media.live.connection import Connection, Item, LiveMeter, connection_error
from dala.media.live.destination import Destination, destination_of
from dala.media.live.muxing import SOUND_RATE, Samples, StreamSettings
from dala.media.live.slots import Backoff, SlotClock
from dala.media.video import color
from dala.media.video.options import EncoderOptions
from dala.media.video.output.layouts import encoded_picture
from dala.media.video.output.opening import EncoderChoice, check_encoder, choose_encoder, set_tags
from dala.media.video.source import DecodedFrame, pyav
from dala.notices import notify
from dala.options import Options, option, takes
from dala.resources import Closing
from dala.trace.recorder import OFF, tracer
from dala.typing import ImageLike

if TYPE_CHECKING:
    from dala.media.live.keywords import StreamKeywords


class BitRate(ArgumentKind[int]):
    """Bits a second: a number, or text such as "4M" or "800k".

    >>> BitRate().check("live.open", "bit_rate", "2.5M")
    2500000
    """

    expected = "bits a second, such as 4_000_000 or '4M'"
    metavar = "N"

    def accept(self, value: Any) -> int:
        """Return the number."""
        if isinstance(value, bool):
            raise TypeError
        text = str(value).strip().lower().removesuffix("bit/s").strip()
        unit = {"k": 1e3, "m": 1e6, "g": 1e9}.get(text[-1:], 0)
        found = float(text[:-1]) * unit if unit else float(text)
        if not 1000 <= found <= 1e10:
            raise ValueError
        return round(found)


@dataclass(frozen=True, kw_only=True)
class StreamOptions(Options):
    """The options of everything that sends live.

    Args:
        bit_rate: bits a second of the pictures, such as 4_000_000 or "4M"; by default by the size.
        key_frames: seconds between key frames, at which receivers can begin.
        encoder: "auto" for hardware that works here, or the name of one; by default software.
        options: options of the encoder, such as ``{"preset": "superfast"}``.
        reconnect: seconds for which a lost receiver is tried again.
        timeout: seconds until a receiver that does not answer counts as lost.
        threads: encoding threads; 0 lets the encoder choose.
    """

    bit_rate: int | str | None = option(
        BitRate(), None, "bits a second, such as 4M (by the size)", command=True
    )
    key_frames: float = option(
        Quantity(0, 3600, "seconds", above=True),
        2.0,
        "seconds between key frames (2)",
        command=True,
    )
    encoder: str | None = option(
        EncoderOptions.specs()["encoder"].kind, None, "auto for hardware that works", command=True
    )
    options: Mapping[str, str | float] | None = option(Settings("a dict of the encoder's options"))
    reconnect: float = option(
        SECONDS, 300.0, "seconds for which what is lost is tried again (300)", command=True
    )
    timeout: float = option(WAIT, 10.0)
    threads: int = option(Integer(0), 0)


#: A function of the first sample and their number that returns (number, 2) samples at 48 kHz, or
#: fewer if the others have not arrived yet: they are asked for again.
SoundSource: TypeAlias = Callable[[int, int], Samples]

#: Bits per pixel of the default bit rate, and its limits.
_BITS_PER_PIXEL: Final = 0.07
_LEAST_RATE, _MOST_RATE = 200_000, 20_000_000
_SOUND_BIT_RATE: Final = 128_000
#: Seconds that starting a process takes at most.
_STARTING: Final = 120.0
#: Pictures that are repeated at once.
_MOST_REPEATED: Final = 2
#: What each hardware needs to send at a constant rate without delay.
_HARDWARE: Final[Mapping[str, Mapping[str, str]]] = {
    "nvenc": {"rc": "cbr", "cq": "0", "zerolatency": "1", "delay": "0", "bf": "0"},
    "videotoolbox": {"realtime": "1", "flags": "", "global_quality": "0", "bf": "0"},
    "qsv": {"global_quality": "0", "async_depth": "1", "bf": "0"},
    "amf": {"rc": "cbr", "usage": "ultralowlatency", "bf": "0"},
    "vaapi": {"rc_mode": "CBR", "bf": "0"},
}


@takes(StreamOptions)
class LiveOutput(Closing):
    """A live stream that is being sent. Created by ``live.open``, ``Scene.live`` and others.

    Frames are shown at a constant rate: where the source is late the last picture is repeated,
    where it is early a frame is dropped, and ``stats`` counts both. If the receiver is lost, it is
    tried again with growing waits; frames are dropped meanwhile.

    Example::

        with live.open("rtmp://127.0.0.1/live/test", (1280, 720), fps=30) as sink:
            for frame in camera:
                sink.write(frame)
            print(sink.stats)
    """

    _instead = "Open it in the process that sends."

    def __init__(
        self,
        url: str | PathLike[str],
        size: tuple[int, int],
        *,
        fps: Fraction,
        sound: bool = False,
        call: str = "live.open",
        clock: Callable[[], float] = monotonic,
        **given: Unpack[StreamKeywords],
    ) -> None:
        pyav()
        self._call = call
        self.where: Destination = destination_of(url, call)
        self.size = size
        self.fps = fps
        options = StreamOptions.checked(call, given)
        self._reconnect, self._timeout = options.reconnect, options.timeout
        self._clock = clock
        self._sound = sound and bool(self.where.sound)
        #: Bits a second of the pictures.
        self.bit_rate = int(options.bit_rate or usual_bit_rate(size, fps))
        self._settings = self._choose(options)
        self._meter = LiveMeter(monotonic())
        self._guard = forks.lock()
        self._slots = SlotClock(fps)
        self._last: DecodedFrame | None = None
        self._next_sample = 0
        #: The first slot that was not used.
        self.next_slot = 0
        self._lost_at: float | None = None
        self._retry_at = 0.0
        self._backoff = Backoff(options.reconnect)
        #: Why the stream ended before it was closed; None if it did not.
        self.error: Exception | None = None
        #: Whether ``close`` was called.
        self.closed = False
        self._home = forks.Home()
        self._connection = connection = Connection(self.where, self._settings, self._meter)
        connection.wait(
            lambda: connection.connected or connection.is_stuck(options.timeout), _STARTING
        )
        if not connection.connected:
            connection.abandon()
            raise connection_error(call, self.where, connection.error)

    # frames -----------------------------------------------------------------------------------
    def write(
        self,
        frame: ImageLike,
        *,
        captured: float | None = None,
        sound: SoundSource | None = None,
    ) -> None:
        """Send a frame now, as the next of an unsteady source such as a camera.

        Args:
            frame: a Frame, an array (gray, RGB or RGBA, u8 or f32) or a Pillow image. Its own time,
                if it has one, tells how far it is from the frame before.
            captured: when it was captured, by ``time.monotonic()``; by default now.
            sound: a function of the first sample and their number that returns the sound; less
                than that if it has not arrived yet.

        Raises:
            ShapeError: the frame has another size than the stream.
            VideoError: the receiver was lost and is not back.
        """
        now = self._clock()
        time = frame.time if isinstance(frame, Frame) else None
        slot = self._slots.slot(None if time is None else float(time), captured or now)
        self.repeat(slot - 1, sound)
        self.put(frame, slot, captured=captured or now, sound=sound)

    def prepare(self, frame: ImageLike) -> None:
        """Convert a frame as :meth:`put` does, and drop it: what that compiles is there then."""
        self._converted(frame)

    def put(
        self,
        frame: ImageLike,
        slot: int,
        *,
        captured: float | None = None,
        sound: SoundSource | None = None,
    ) -> bool:
        """Send a frame in a slot of the constant rate. Return False if the slot was used before.

        Slots that were left out are not sent. ``captured`` is when the frame was captured, on the
        clock of ``time.monotonic``. Never waits for the receiver.
        """
        self._check()
        if tracer.on:
            tracer.frame = getattr(frame, "trace_id", None) or tracer.frame
        with tracer.span("convert", self._settings.pixel_format) if tracer.on else OFF:
            picture = self._converted(frame)
        with self._guard:
            self._meter.frames_in += 1
            if slot < self.next_slot:
                self._meter.dropped += 1
                return False
            self._last = picture
            self._enqueue(slot, picture, captured, sound)
        return True

    def repeat(self, slot: int, sound: SoundSource | None = None) -> None:
        """Send the last picture again, in the slots up to this one.

        Of a longer gap only the end is sent: the rest would overflow the queue.
        """
        self._check()
        with self._guard:
            if slot - self.next_slot >= _MOST_REPEATED:
                self._meter.dropped += slot - self.next_slot + 1 - _MOST_REPEATED
                self.next_slot = slot + 1 - _MOST_REPEATED
            while self._last is not None and self.next_slot <= slot:
                self._meter.repeated += 1
                self._slots.skip(self.next_slot)
                self._enqueue(self.next_slot, self._last, None, sound)

    def skip(self, slot: int) -> None:
        """Count the slots before this one as dropped, for a source that is late."""
        with self._guard:
            self._meter.dropped += max(slot - self.next_slot, 0)
            self.next_slot = max(self.next_slot, slot)

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until all that was written is sent. Return False after ``timeout`` seconds."""
        return self._connection.wait(self._connection.is_idle, timeout)

    def _enqueue(
        self, slot: int, picture: DecodedFrame, captured: float | None, sound: SoundSource | None
    ) -> None:
        self.next_slot = slot + 1
        at = self._next_sample
        samples = self._samples(slot, sound)
        self._supervise()
        number = tracer.frame if tracer.on and captured is not None else None
        self._connection.put(Item(slot, picture, captured, samples, at, number))

    def _samples(self, slot: int, sound: SoundSource | None) -> Samples | None:
        """Return the sound from the last sample that was sent to the end of a slot."""
        if not self._sound:
            return None
        start, end = self._next_sample, round((slot + 1) * SOUND_RATE / self.fps)
        count = max(end - start, 0)
        made = np.zeros((count, 2), np.float32) if sound is None else sound(start, count)
        self._next_sample = start + len(made)
        return made

    def _converted(self, data: ImageLike) -> DecodedFrame:
        settings = self._settings
        frame = (
            data if isinstance(data, Frame) else Frame(from_array(check_pixels(data, self._call)))
        )
        if (frame.width, frame.height) != self.size:
            raise ShapeError(
                f"{self._call}: frames must be {self.size[0]}x{self.size[1]} (width x height), got "
                f"{frame.width}x{frame.height}. Resize them first."
            )
        if frame.hdr is not None:
            frame = to_sdr(frame)
        picture = encoded_picture(
            frame,
            settings.pixel_format,
            (settings.width, settings.height),
            matrix=_MATRIX,
            range="limited",
            copy=True,
        )
        set_tags(picture, settings.tags)
        return picture

    # the connection ---------------------------------------------------------------------------

    def _supervise(self) -> None:
        """Replace a connection that was lost, after a while. Never waits."""
        connection, now = self._connection, self._clock()
        if not connection.ended and not connection.is_stuck(self._timeout):
            if connection.connected and self._lost_at is not None:
                self._meter.reconnects += 1
                self._lost_at = None
                self._backoff = Backoff(self._reconnect)
            return
        if self._lost_at is None:
            self._lost_at = now
            why = connection_error(self._call, self.where, connection.error)
            notify(f"{why} It is tried again for {self._reconnect:g} s.", stacklevel=5)
            self._schedule(now)
        elif self._retry_at == math.inf:  # the new one failed, too
            self._schedule(now)
        if now >= self._retry_at:
            connection.abandon()
            self._retry_at = math.inf
            self._connection = Connection(self.where, self._settings, self._meter)

    def _schedule(self, now: float) -> None:
        assert self._lost_at is not None
        wait = self._backoff.wait(now - self._lost_at)
        if wait is None:
            self.error = connection_error(self._call, self.where, self._connection.error)
            raise self.error
        self._retry_at = now + wait

    # state ------------------------------------------------------------------------------------
    @property
    def stats(self) -> dict[str, float]:
        """Frames in, shown, dropped and repeated, bit rate, latency, reconnections."""
        return self._meter.stats(monotonic())

    @property
    def state(self) -> str:
        """One of "sending", "lost" while a lost receiver is tried again, or "closed"."""
        if self.closed:
            return "closed"
        return "sending" if self._lost_at is None and not self._connection.ended else "lost"

    def _check(self) -> None:
        if self.closed:
            raise FreedError(f"{self._call}: the stream is closed. Open another one.")
        self._home.check(f"{self._call}: {self.where.label!r}", "Open it in this process.")
        if self.error is not None:
            raise self.error

    def __repr__(self) -> str:
        width, height = self.size
        return f"<LiveOutput {self.where.label!r} {width}x{height} {self.state}>"

    # the end ----------------------------------------------------------------------------------
    def close(self) -> None:
        """Send the queued packets and end the stream; closing twice is fine.

        What keeps the end from being sent is reported, unless the loss of the receiver was before.
        """
        if self.closed:
            return
        self.closed = True
        if not self._home.here:
            return
        ended = self._connection.finish(self._timeout)
        known = self._lost_at is not None or self.error is not None
        if not known and (not ended or self._connection.error is not None):
            why = connection_error(self._call, self.where, self._connection.error)
            notify(f"{why} The end of the stream was not sent.")

    # settings ---------------------------------------------------------------------------------
    def _choose(self, options: StreamOptions) -> StreamSettings:
        check_encoder(options.encoder, "h264", True)
        rate = str(self.bit_rate)
        group = str(max(1, round(self.fps * options.key_frames)))
        given = {name: str(value) for name, value in (options.options or {}).items()}
        common = {"b": rate, "maxrate": rate, "bufsize": rate, "g": group, **given}
        profile = {"profile": "baseline"} if self.where.muxer == "whip" else {}
        software = EncoderChoice(
            "libx264",
            {
                "preset": "veryfast", "tune": "zerolatency", "keyint_min": group,
                "sc_threshold": "0", **profile, **common,
            },
            "yuv420p",
        )  # fmt: skip
        even = self.size[0] + self.size[0] % 2, self.size[1] + self.size[1] % 2
        try:
            choice = choose_encoder(options.encoder, "h264", even, software, common)
        except DalaError as error:
            raise error.within(self._call) from None
        kind = choice.name.rpartition("_")[2]
        if kind in _HARDWARE:
            made = {**choice.options, **_HARDWARE[kind], **common}
            choice = replace(choice, options={k: v for k, v in made.items() if v})
        matrix = color.code_point(color.MATRICES, _MATRIX)
        where, layout = self.where, choice.pixel_format
        return StreamSettings(
            choice.name, choice.options, str(self.fps), str(1 / self.fps), *even, layout, "",
            options.threads, (1, matrix, 1, 1), name=where.opened, muxer=where.muxer,
            muxer_options=where.options, device=choice.device or "",
            sound=where.sound if self._sound else "", sound_bit_rate=_SOUND_BIT_RATE,
        )  # fmt: skip


#: The matrix of live pictures, which players assume.
_MATRIX: Final = "bt709"


def usual_bit_rate(size: tuple[int, int], fps: Fraction) -> int:
    """Return the bits a second of a size.

    >>> usual_bit_rate((1920, 1080), Fraction(30))
    4354560
    """
    return round(min(max(size[0] * size[1] * fps * _BITS_PER_PIXEL, _LEAST_RATE), _MOST_RATE))
