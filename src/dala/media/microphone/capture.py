"""The thread that records a microphone, or the sound of a stream without pictures."""

from __future__ import annotations

import weakref
from contextlib import suppress
from fractions import Fraction
from time import monotonic

from dala import forks
from dala.errors import AudioError
from dala.media.audio.arriving import LiveSound
from dala.media.live.backoff import Backoff
from dala.media.notices import MediaNotice, notify
from dala.media.video.decoding.input import ffmpeg_message
from dala.media.video.source import AvObject, VideoSource, open_container, pyav
from dala.resources import track, untrack


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
        """Start the thread; return what it records, which ends it when closed or collected."""
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
        av, source = pyav(), self._source
        try:
            made = open_container(
                source.handle, format=source.format, options=dict(source.options),
                container_options=source.reach,
                timeout=(self._timeout, self._timeout),
            )  # fmt: skip
        except (av.FFmpegError, OSError, ValueError) as error:
            raise AudioError(
                f"{self._call}: cannot open {source.label!r}: {ffmpeg_message(error)}."
            ) from error
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
        av = pyav()
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
