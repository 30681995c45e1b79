"""``microphone.list`` and ``microphone.open``."""

from __future__ import annotations

import builtins
import weakref
from contextlib import suppress
from fractions import Fraction
from time import monotonic
from typing import Final

from dala import forks
from dala.arguments import WAIT
from dala.errors import AudioError, AudioNotFound
from dala.media.audio.arriving import LiveSound
from dala.media.audio.checks import check_rate
from dala.media.live.slots import Backoff
from dala.media.video.decoding import devices
from dala.media.video.decoding.devices import Microphone
from dala.media.video.source import (
    AvObject,
    VideoSource,
    av,
    ffmpeg_errors,
    ffmpeg_message,
    lasting,
)
from dala.notices import MediaNotice, notify
from dala.resources import track, untrack

#: The name of the generated microphone.
TEST: Final = "test"
#: Seconds for which an unplugged microphone is tried again.
RECONNECT: Final = 3600.0
#: How sources of scenes and scene files name a microphone: "microphone://default".
SCHEME: Final = "microphone://"
_CALL: Final = "microphone.open"


def list() -> builtins.list[Microphone]:
    """Return the microphones of this machine, the system's own choice first.

    >>> all(microphone.name for microphone in list())
    True
    """
    return devices.microphones()


def open(
    microphone: str | int = "default",
    *,
    rate: int | None = None,
    reconnect: float = RECONNECT,
    timeout: float = 10.0,
) -> LiveSound:
    """Open a microphone: a context manager, to be given to a scene or a live stream.

    It is recorded from now on, by a thread, until it is closed. An unplugged one is waited for,
    with a notice; there is silence meanwhile.

    Args:
        microphone: "default", a number, the name or a part of it that only one microphone has, or
            "test" for a generated tone that beeps every second.
        rate: samples per second; by default the microphone's own. Streams have 48,000.
        reconnect: seconds for which an unplugged microphone is tried again.
        timeout: seconds to wait for the microphone.

    Raises:
        AudioNotFound: there is no such microphone.
        AudioError: it cannot be opened, because another program uses it, for example.

    >>> with open("test") as voice:
    ...     voice.closed
    False
    """
    options = {} if rate is None else {"sample_rate": str(check_rate(_CALL, rate))}
    WAIT.check(_CALL, "timeout", timeout)
    source = lasting(_source(microphone, options), reconnect)
    try:
        return SoundCapture(source, timeout, _CALL).start()
    except AudioError as error:
        raise devices.explained(error, _CALL, source.label) from error.__cause__


def named(name: str) -> LiveSound:
    """Open the microphone that a scene names: "microphone://", and its number or name."""
    which = name.removeprefix(SCHEME) or "default"
    return open(int(which) if which.isdecimal() else which)


def _source(microphone: str | int, options: dict[str, str]) -> VideoSource:
    if microphone == TEST:
        rate = options.get("sample_rate", "48000")
        tone = f"sine=frequency=440:beep_factor=2:sample_rate={rate},arealtime"
        return VideoSource(tone, "test microphone", True, "lavfi")
    found = devices.chosen(microphone, list(), _CALL, "microphone", AudioNotFound)
    return devices.microphone_source(found, options)


# recording ----------------------------------------------------------------------------------------
class SoundCapture:
    """Records into a ``LiveSound`` until that is closed, or collected.

    Args:
        source: what FFmpeg opens.
        timeout: seconds to wait for it.
        call: the call for messages.

    Raises:
        AudioError: it cannot be opened.
    """

    def __init__(self, source: VideoSource, timeout: float, call: str) -> None:
        self._source = source
        self._timeout = timeout
        self._call = call
        self._stop = forks.event()
        self._container = self._open()
        self._thread = forks.thread(self._run, name="dala microphone")

    def start(self) -> LiveSound:
        """Start the thread; return its recording, which ends it when closed or collected."""
        made = LiveSound(self._source.label)
        self._sound = weakref.ref(made)
        try:
            self._thread.start()
        except BaseException:
            self._container.close()
            raise
        track("microphone", "host", 0)
        made.ends_with(self._end, self._wait)
        return made

    def _end(self) -> None:
        self._stop.set()
        untrack("microphone", "host", 0)

    def _wait(self) -> None:
        """Wait for the thread. A device that does not answer is closed once FFmpeg returns."""
        self._thread.join(self._timeout + 1)

    def _open(self) -> AvObject:
        source = self._source
        with ffmpeg_errors(f"{self._call}: cannot open {source.label!r}", AudioError):
            made = source.open(self._timeout)
        if not made.streams.audio:
            made.close()
            raise AudioError(f"{self._call}: {source.label!r} has no sound.")
        return made

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                why = self._record()
                if self._stop.is_set() or not self._regained(why):
                    return
        finally:
            self._container.close()

    def _record(self) -> str:
        """Record until the source is lost; return why."""
        begin: Fraction | None = None
        try:
            for packet in self._container.demux(audio=0):
                if self._stop.is_set():
                    break
                try:
                    frames = packet.decode()
                except av.FFmpegError:
                    continue  # there is silence in its place
                for frame in frames:
                    arrival, time = monotonic(), None
                    if frame.pts is not None:
                        stamp = Fraction(frame.pts * Fraction(frame.time_base))
                        begin = stamp if begin is None else begin
                        time = float(stamp - begin)
                    sound = self._sound()
                    if sound is not None:
                        sound.heard(frame, time, arrival)
                    del sound  # so that it can be collected
        except (av.FFmpegError, OSError) as error:
            return ffmpeg_message(error)
        return "it ended"

    def _regained(self, why: str) -> bool:
        """Open a lost source again, after growing waits. Return False when it is given up."""
        lost, label = monotonic(), self._source.label
        if not self._source.reconnect:
            _say(f"{label}: its sound has ended ({why}).")
            return False
        _say(f"{label}: it was lost ({why}) and is tried again.")
        self._container.close()
        backoff = Backoff(self._source.reconnect)
        while (wait := backoff.wait(monotonic() - lost)) is not None:
            if self._stop.wait(wait):
                return False
            try:
                self._container = self._open()
                return True
            except AudioError:
                continue
        _say(f"{label}: it was lost and is not back.")
        return False


def _say(text: str) -> None:
    with suppress(MediaNotice):  # raised where warnings are errors; this thread must go on
        notify(text)
