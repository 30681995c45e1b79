"""Threads that send: a scene or a surface at its rate, a video as its frames arrive."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from contextlib import ExitStack, suppress
from contextvars import copy_context
from fractions import Fraction
from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple

from dala import forks
from dala.errors import FreedError
from dala.media.frame import Frame
from dala.media.live.output import LiveOutput, SoundSource
from dala.media.live.slots import SlotClock
from dala.media.video.source import FrameQueue
from dala.resources import Closing
from dala.trace.recorder import OFF, tracer
from dala.typing import ImageLike

if TYPE_CHECKING:
    from dala.media.audio.arriving import LiveSound
    from dala.media.video.reader import Reader

#: Slots that a source may be silent before the last picture is repeated.
_SILENCE: Final = 1.5
#: Frames that may wait between the source and the stream.
_MAILBOX: Final = 2


class LiveRun(Closing):
    """A live stream that sends by itself, on a thread, until it is closed.

    Returned by ``Scene.live``, ``Surface.live`` and ``live.send``::

        with scene.live("rtmp://127.0.0.1/live/test") as run:
            time.sleep(60)
            print(run.stats)
    """

    _instead = "Start it in the process that sends."

    def __init__(self, output: LiveOutput, seconds: Fraction | None) -> None:
        self.output = output
        #: The number of slots to send; None without end.
        self._last = None if seconds is None else max(1, round(seconds * output.fps))
        self._stop = forks.event()
        self._done = forks.event()
        #: What is closed at the end: filters, the sound.
        self.held = ExitStack()
        #: Why the stream ended before it was closed; None if it did not.
        self.error: Exception | None = None
        context = copy_context()  # the thread uses the caller's current device
        self._thread = forks.thread(lambda: context.run(self._run), name="dala live")

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    @abstractmethod
    def send(self) -> None:
        """Send until ``_stop`` is set or the last slot was sent."""

    def _run(self) -> None:
        try:
            self.send()
        except Exception as error:
            self.error = error
        finally:
            for close in (self.output.close, self.held.close):
                try:
                    close()
                except Exception as error:
                    self.error = self.error or error
            self._done.set()

    @property
    def stats(self) -> dict[str, float]:
        """Frames in, shown, dropped and repeated, bit rate, latency, reconnections."""
        return self.output.stats

    @property
    def state(self) -> str:
        """One of "sending", "lost" while a lost receiver is tried again, or "closed"."""
        return self.output.state

    @property
    def closed(self) -> bool:
        """True once nothing more is sent."""
        return self._done.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end. Return False after ``timeout`` seconds; raise the stream's error."""
        end = None if timeout is None else monotonic() + timeout
        while not self._done.is_set():
            left = 0.5 if end is None else min(0.5, end - monotonic())
            if left <= 0:
                return False
            self._done.wait(left)  # in short waits, so that Ctrl-C works on every system
        self._thread.join()
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        return True

    def close(self) -> None:
        """Stop sending and end the stream; closing twice is fine.

        Raises:
            VideoError: the receiver was lost before.
        """
        self._stop.set()
        if self._thread.ident is not None:
            self.wait()
        else:
            self.output.close()
            self.held.close()

    def stop(self) -> None:
        """Stop sending, without waiting for the end."""
        self._stop.set()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            with suppress(Exception):  # the block's own error matters
                self.close()

    def __repr__(self) -> str:
        return f"<LiveRun {self.output.where.label!r} {self.state}>"


class PacedRun(LiveRun):
    """Sends the result of a function for each slot, at its time; late slots are dropped.

    ``picture(slot)`` returns the picture of a slot, or None if the last one is still right.
    """

    def __init__(
        self,
        output: LiveOutput,
        picture: Callable[[int], ImageLike | None],
        seconds: Fraction | None,
        *,
        sound: SoundSource | None = None,
        until: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__(output, seconds)
        self._picture = picture
        self._until = until
        self._sound = sound
        #: The time of slot 0 on our clock; None before it was sent.
        self.begin: float | None = None

    def send(self) -> None:
        """Send until the end."""
        output, rate, slot = self.output, self.output.fps, 1
        self._send_slot(0)  # before the clock starts: the first picture may take long
        begin = self.begin = monotonic() - 1 / float(rate)
        while (self._last is None or slot < self._last) and not self._stop.is_set():
            if self._until():
                return
            now = monotonic()
            wait = begin + float(slot / rate) - now
            if wait > 0:
                with tracer.wait("idle") if tracer.on else OFF:
                    self._stop.wait(wait)
                continue
            due = math.floor((now - begin) * rate)
            if due > slot + 1:  # more than a slot late
                slot = due if self._last is None else min(due, self._last - 1)
                output.skip(slot)
            self._send_slot(slot)
            slot += 1

    def _send_slot(self, slot: int) -> None:
        captured = monotonic()
        try:
            picture = self._picture(slot)
        except FreedError:
            if self._until():  # it was closed meanwhile, which is the end
                return
            raise
        if picture is None:
            self.output.repeat(slot, self._sound)
        else:
            self.output.put(picture, slot, captured=captured, sound=self._sound)


class Arrived(NamedTuple):
    """A picture to send, its time by the source, and when it arrived by our clock."""

    frame: ImageLike
    time: float | None
    arrival: float


class SourceRun(LiveRun):
    """Sends the frames of an open video: of a live one as they arrive, of a file at their times.

    Where the source is silent, the last picture is repeated.
    """

    def __init__(
        self,
        output: LiveOutput,
        reader: Reader,
        process: Callable[[Frame], ImageLike] | None,
        seconds: Fraction | None,
        first: Arrived,
        *,
        sound: SoundSource | None = None,
        heard: LiveSound | None = None,
    ) -> None:
        super().__init__(output, seconds)
        self._reader = reader
        self._process = process
        self._sound = sound if heard is None else heard.voice(self._zero).arrived
        self._begin: float | None = None
        self._arriving = FrameQueue(_MAILBOX, "every", "frames to send")
        if reader.policy == "latest":  # it is old when the receiver is connected
            output.prepare(first.frame)
        else:
            self._arriving.put(first)
        self._slots = SlotClock(output.fps)
        context = copy_context()
        self._source = forks.thread(lambda: context.run(self._read), name="dala live source")

    # the thread of the source -----------------------------------------------------------------
    def _read(self) -> None:
        live = self._reader.policy == "latest"
        failed: Exception | None = None
        try:
            for frame in self._reader:
                arrival = self._reader.arrived if live else monotonic()
                time = None if frame.time is None else float(frame.time)
                made = self._process(frame) if self._process is not None else frame
                if not self._arriving.put(Arrived(made, time, arrival)):
                    return
        except Exception as error:
            failed = error
        finally:
            self._arriving.finish(failed)

    # the thread that sends --------------------------------------------------------------------
    def send(self) -> None:
        """Send until the end."""
        self._source.start()
        try:
            if self._reader.policy == "latest":
                self._send_arriving()
            else:
                self._send_timed()
        finally:
            self._stop.set()
            self._arriving.close()
            self._reader.close()
            self._source.join()

    def _zero(self) -> float | None:
        """Return the time of slot 0 on our clock; None before it."""
        return self._slots.due(0) if self._slots.started else self._begin

    def _more(self) -> bool:
        if self._stop.is_set():
            return False
        return self._last is None or self.output.next_slot < self._last

    def _send_arriving(self) -> None:
        output, slots, filled = self.output, self._slots, False
        silence = _SILENCE / float(output.fps)
        while self._more():
            wait = 0.5
            if slots.started:
                wait = min(slots.due(output.next_slot) + silence - monotonic(), wait)
            item = self._arriving.get(timeout=wait)
            if item is not None:
                slot = slots.slot(item.time, item.arrival)
                if filled and slot < output.next_slot:
                    slot = output.next_slot  # late, but newer than the picture that was repeated
                    slots.skip(slot)
                filled = False
                if slot > output.next_slot:
                    output.repeat(slot - 1, self._sound)
                output.put(item.frame, slot, captured=item.arrival, sound=self._sound)
            elif self._arriving.done:
                return
            elif slots.started and monotonic() >= slots.due(output.next_slot) + silence:
                filled = True
                slots.skip(output.next_slot)
                output.repeat(output.next_slot, self._sound)

    def _send_timed(self) -> None:
        output, rate = self.output, self.output.fps
        zero = None
        while self._more():
            item = self._arriving.get(timeout=0.5)
            if item is None:
                if self._arriving.done:
                    return
                continue
            time = item.time or 0.0
            if self._begin is None or zero is None:
                # Before the clock starts: the first picture may take long.
                output.put(item.frame, 0, captured=monotonic(), sound=self._sound)
                self._begin, zero = monotonic(), time
                continue
            slot, begin = math.floor((time - zero) * rate + 0.5), self._begin
            wait = begin + float(slot / rate) - monotonic()
            if wait > 0:
                with tracer.wait("idle") if tracer.on else OFF:
                    self._stop.wait(wait)
            elif wait < -2 / float(rate) and slot < math.floor((monotonic() - begin) * rate):
                output.skip(slot + 1)  # late: the next one is nearer to its time
                continue
            output.repeat(slot - 1, self._sound)
            output.put(item.frame, slot, captured=monotonic(), sound=self._sound)
