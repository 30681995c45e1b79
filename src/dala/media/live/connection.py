"""One connection of a live stream: a thread, which has it encoded and sent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from fractions import Fraction
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import numpy as np

import dala
from dala import forks
from dala.errors import DalaError, DeviceUnavailable, VideoError
from dala.extras import needing
from dala.media.live.destination import Destination
from dala.media.live.muxing import Muxer, Samples, Sent, StreamSettings
from dala.media.live.sender import END, HEADER
from dala.media.video.source import DecodedFrame, ffmpeg_message
from dala.secure import certificate_files
from dala.trace.recorder import OFF, Here, tracer


class Transport(Protocol):
    """An open stream."""

    def send(
        self, slot: int, picture: DecodedFrame | None, sound: Samples | None, at: int
    ) -> list[Sent]:
        """Encode and send a picture, and sound from a sample on; return the packets."""

    def finish(self) -> list[Sent]:
        """Send the last packets of the encoders, and return them."""

    def close(self) -> None:
        """End the stream."""


class SendingFailed(Exception):
    """A failure of the sending process: FFmpeg's text, and the kind of its error."""

    def __init__(self, text: str, kind: str) -> None:
        super().__init__(text)
        self.kind = kind


class SenderProcess:
    """A stream of a process of its own; see ``sender.py``. ``kill`` ends it at any time."""

    def __init__(self) -> None:
        path = str(Path(dala.__file__).parents[1])
        known = os.environ.get("PYTHONPATH")
        environment = {**os.environ, "PYTHONPATH": f"{path}{os.pathsep}{known}" if known else path}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "dala.media.live.sender"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,  # Ctrl-C is for this process, which then ends the stream
        )
        self._answer()  # it has started

    def connect(self, settings: StreamSettings) -> None:
        """Connect; raise SendingFailed if that fails."""
        self._write(json.dumps(asdict(settings)).encode() + b"\n")
        self._answer()

    def send(
        self, slot: int, picture: DecodedFrame | None, sound: Samples | None, at: int
    ) -> list[Sent]:
        """Encode and send a picture, and sound from a sample on; return the packets."""
        none = np.zeros(0, np.uint8)
        pixels = none if picture is None else np.ascontiguousarray(picture.to_ndarray())
        samples = none if sound is None else np.ascontiguousarray(sound, np.float32)
        number = tracer.frame if tracer.on else None
        head = HEADER.pack(slot, at, pixels.nbytes, samples.nbytes, number or 0)
        self._write(head, *(array.reshape(-1).view(np.uint8).data for array in (pixels, samples)))
        return self._answer()

    def finish(self) -> list[Sent]:
        """Send the last packets of the encoders and end the stream."""
        self._write(HEADER.pack(END, 0, 0, 0, 0))
        return self._answer()

    def close(self) -> None:
        """End the process."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        try:
            self._process.wait(1)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End the process at once; the last packets may be lost."""
        self._process.kill()
        self._process.wait()

    def _write(self, *parts: bytes | memoryview) -> None:
        pipe = self._process.stdin
        assert pipe is not None
        try:
            for part in parts:
                pipe.write(part)
            pipe.flush()
        except OSError:
            raise SendingFailed("the process that sends has ended", "") from None

    def _answer(self) -> list[Sent]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SendingFailed("the process that sends has ended", "")
        answer = json.loads(line)
        if "error" in answer:
            raise SendingFailed(answer["error"], answer["kind"])
        return [Sent(*packet) for packet in answer["sent"]]


def local(settings: StreamSettings) -> Muxer:
    """Return a stream of this process."""
    try:
        return Muxer(settings)
    except OSError as error:
        raise SendingFailed(str(error.strerror or error), type(error).__name__) from error
    except ValueError as error:
        raise VideoError(f"live: {error}.") from error


# a virtual camera ---------------------------------------------------------------------------------
#: A camera of pyvirtualcam, which has no types.
CameraObject: TypeAlias = Any


class CameraTransport:
    """A virtual camera that is open, as a transport: sending a picture shows it."""

    def __init__(self, where: Destination, settings: StreamSettings) -> None:
        self._camera = _open_camera(where, settings)

    def send(
        self, slot: int, picture: DecodedFrame | None, sound: Samples | None, at: int
    ) -> list[Sent]:
        """Show a picture; a camera has no sound."""
        if picture is None:
            return []
        self._camera.send(picture.to_ndarray(format="rgb24"))
        return [Sent(0, slot)]

    def finish(self) -> list[Sent]:
        """Return nothing: no picture waits."""
        return []

    def close(self) -> None:
        """Close the camera."""
        self._camera.close()


def _open_camera(where: Destination, settings: StreamSettings) -> CameraObject:
    with needing("live", "live", why=", and a virtual camera needs it"):
        import pyvirtualcam
    size, rate = (settings.width, settings.height), float(Fraction(settings.rate))
    try:
        return pyvirtualcam.Camera(*size, fps=rate, device=where.opened or None)
    except (RuntimeError, OSError, ValueError) as error:
        raise DeviceUnavailable(
            f"live: no virtual camera can be opened ({str(error).partition('. ')[0].strip('.')}). "
            "On Linux load the kernel module v4l2loopback; on macOS and Windows install OBS."
        ) from error


#: Pictures that may wait for the encoder; the oldest is dropped for a newer one.
QUEUE_SIZE: Final = 3


class Item(NamedTuple):
    """A picture of one slot, and sound; the picture is None where it was dropped.

    ``captured`` is when the frame was captured; None for a repeated picture. ``sound_at`` is the
    first sample of the sound, counted from the beginning of slot 0.
    """

    slot: int
    picture: DecodedFrame | None
    captured: float | None
    sound: Samples | None
    sound_at: int = 0
    #: Its number in a trace.
    number: int | None = None


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
        self._putter: Here | None = None
        self._captured: dict[int, float] = {}
        #: In a trace, numbers of frames by their slot, and when slot 0 was due.
        self._numbers: dict[int, int | None] = {}
        self._zero = 0.0
        self._process: SenderProcess | None = None
        #: Why it ended; None while it runs and after ``finish``.
        self.error: Exception | None = None
        self.connected = self.ended = False
        #: When the call of FFmpeg that runs now began; None between calls.
        self.busy_since: float | None = None
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
            self._putter = tracer.here() if tracer.on else None
            self._changed.notify_all()

    def is_stuck(self, timeout: float) -> bool:
        """Return whether FFmpeg has waited for the receiver for so many seconds."""
        busy = self.busy_since
        return busy is not None and monotonic() - busy >= timeout

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
        """Send the queue and end the stream. Return False if that takes longer than ``timeout``.

        A receiver that does not answer is left.
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
            process = self._process
            self._changed.notify_all()
        if process is not None:
            process.kill()  # which wakes the thread

    # the thread -------------------------------------------------------------------------------
    def _run(self) -> None:
        transport: Transport | None = None
        try:
            transport = self._connected()
            with self._changed:
                self.connected, self.busy_since = True, None
                self._changed.notify_all()
            self._send_all(transport)
        except Exception as error:
            self.error = error
        finally:
            try:
                if transport is not None:
                    self.busy_since = monotonic()
                    transport.close()
            except Exception as error:
                self.error = self.error or error
            with self._changed:
                self._meter.dropped += sum(item.picture is not None for item in self._items)
                self._items.clear()
                self.ended, self.busy_since = True, None
                self._changed.notify_all()

    def _connected(self) -> Transport:
        where, settings = self.where, self._settings
        if where.folder is not None:
            where.folder.mkdir(parents=True, exist_ok=True)
        if where.muxer == "camera":
            return CameraTransport(where, settings)
        # What may wait for a network has a process of its own.
        if where.muxer == "hls" or getattr(sys, "frozen", False):
            return local(settings)
        process = SenderProcess()
        with self._changed:
            self._process, self.busy_since = process, monotonic()
            abandoned = self._abandoned
        try:
            if abandoned:
                raise SendingFailed("it was closed", "")
            if where.muxer == "whip":
                with certificate_options() as own:
                    merged = {**settings.muxer_options, **own}
                    process.connect(replace(settings, muxer_options=merged))
            else:
                process.connect(settings)
        except BaseException:
            process.close()
            raise
        return process

    def _send_all(self, transport: Transport) -> None:
        while (item := self._next()) is not None:
            if item.picture is not None and item.captured is not None:
                self._captured[item.slot] = item.captured
            if tracer.on:
                tracer.frame = self._numbers[item.slot] = item.number
            with tracer.wait("the sender", self._settings.label) if tracer.on else OFF:
                sent = transport.send(item.slot, item.picture, item.sound, item.sound_at)
            self._count(sent)
            with self._changed:
                self.busy_since = None
                self._changed.notify_all()
        if not self._abandoned:
            self.busy_since = monotonic()
            self._count(transport.finish())

    def _next(self) -> Item | None:
        with self._changed:
            with tracer.wait("", "frames to send") if tracer.on else OFF as waited:
                while not self._items and not self._finishing:
                    self._changed.wait(0.5)
                waited.woken(self._putter)
            if not self._items:
                return None
            self.busy_since = monotonic()
            return self._items.popleft()

    def _count(self, sent: list[Sent]) -> None:
        now = monotonic()
        for size, slot in sent:
            if slot is None:
                self._meter.count_bytes(size, now)
            else:
                captured = self._captured.pop(slot, None)
                self._meter.sent(size, captured, now)
                if tracer.on:
                    self._traced(slot, captured or now)

    def _traced(self, slot: int, captured: float) -> None:
        """Record that a slot was sent, in a trace; the first one was due when it was captured."""
        period = 1 / float(Fraction(self._settings.rate))
        self._zero = self._zero or captured - slot * period
        frame, sink = self._numbers.pop(slot, None), self.where.label
        tracer.done(sink, frame, self._zero + slot * period)
        tracer.dropped(sink, self._meter.dropped)


def connection_error(call: str, where: Destination, error: Exception | None) -> Exception:
    """Return the error of a connection for users; None is a receiver that does not answer."""
    if isinstance(error, DalaError):
        return error
    if error is None:
        return VideoError(
            f"{call}: {where.label!r} does not answer. Check the address, and that it receives."
        )
    text, kind = where.hide(ffmpeg_message(error)), getattr(error, "kind", type(error).__name__)
    if isinstance(error, SendingFailed):
        error.args = (text,)
    if kind == "ProtocolNotFoundError":
        text = "the installed PyAV does not have this protocol"
    made = VideoError(
        f"{call}: cannot send to {where.label!r}: {text}. Check the address, and that it receives."
    )
    made.__cause__ = error
    return made


@contextmanager
def certificate_options() -> Iterator[dict[str, str]]:
    """Make a key and a certificate of it; yield FFmpeg's options that name their files.

    WebRTC knows its sender by the fingerprint of one. The files are deleted after the block.
    Browsers refuse the certificates that FFmpeg makes.

    Raises:
        MissingPackage: ``cryptography`` is not installed.
    """
    with certificate_files((), "live", "live") as (chain, key):
        yield {"key_file": str(key), "cert_file": str(chain)}


# what was sent ------------------------------------------------------------------------------------
#: Seconds over which the bit rate is measured, and the number of frames for the latency.
_WINDOW: Final = 5.0
_FRAMES: Final = 600


class LiveMeter:
    """Counts the frames and bytes of a live stream.

    >>> meter = LiveMeter(0.0)
    >>> meter.sent(1000, captured=0.0, now=0.05)
    >>> meter.stats(1.0)["latency_ms"]
    50.0
    """

    def __init__(self, now: float) -> None:
        self._began = now
        self.frames_in = self.shown = self.dropped = self.repeated = self.reconnects = 0
        self._sizes: deque[tuple[float, int]] = deque()
        self._bytes = self._all_bytes = 0
        self._latencies: deque[float] = deque(maxlen=_FRAMES)

    def sent(self, size: int, captured: float | None, now: float) -> None:
        """Count a packet of pictures; ``captured`` is when its frame was."""
        self.shown += 1
        if captured is not None:
            self._latencies.append(now - captured)
        self.count_bytes(size, now)

    def count_bytes(self, size: int, now: float) -> None:
        """Count the bytes of a packet."""
        self._all_bytes += size
        self._bytes += size
        self._sizes.append((now, size))
        while self._sizes and self._sizes[0][0] < now - _WINDOW:
            self._bytes -= self._sizes.popleft()[1]

    def stats(self, now: float) -> dict[str, float]:
        """Return the figures."""
        seconds = max(now - self._began, 1e-9)
        recent = min(seconds, _WINDOW)
        latencies = list(self._latencies)
        return {
            "frames_in": self.frames_in,
            "shown": self.shown,
            "dropped": self.dropped,
            "repeated": self.repeated,
            "reconnects": self.reconnects,
            "bit_rate": round(8 * self._bytes / recent),
            "bytes": self._all_bytes,
            "latency_ms": round(1000 * median(latencies), 2) if latencies else 0.0,
            "worst_latency_ms": round(1000 * max(latencies), 2) if latencies else 0.0,
            "seconds": round(seconds, 3),
        }
