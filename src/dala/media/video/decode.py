"""Decoding ahead: an open file, and the thread that fills a queue from it."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from dala.errors import DeviceUnavailable, VideoError
from dala.media.video.live import Queue, Source, pyav

#: How far before the wanted time to look for a frame to start from, in seconds, one by one.
_STEPS_BACK = (0, 2, 8, 32)


def words(error: BaseException) -> str:
    """What FFmpeg says: its error and, where there is one, the last line of its log."""
    said = str(getattr(error, "strerror", None) or error)
    log = getattr(error, "log", None)
    return f"{said} ({log[2].strip()})" if log and log[2].strip() else said


class Opened:
    """A file, URL or camera that FFmpeg has opened, and its video stream."""

    def __init__(
        self, source: Source, *, hwaccel: str | None, threads: int, timeout: float, call: str
    ) -> None:
        self.source = source
        self.call = call
        self._hwaccel = hwaccel
        self._threads = threads
        self.timeout = timeout
        self.container: Any = None
        self.stream: Any = None
        self.open()

    def open(self) -> None:
        """Opens, or opens anew at the beginning."""
        av, source = pyav(), self.source
        self.close()
        settings: dict[str, Any] = {"format": source.format, "options": dict(source.options)}
        if source.url or source.live:
            settings["timeout"] = (self.timeout, self.timeout)
        if self._hwaccel is not None:
            settings["hwaccel"] = self._hardware()
        try:
            self.container = av.open(source.name, **settings)
        except (av.FFmpegError, OSError, ValueError, RuntimeError) as error:
            if self._hwaccel is not None and self._opens_without():
                raise self._hardware_refused(error) from error
            raise VideoError(
                f"{self.call}: {source.shown!r} cannot be opened: {words(error)}. "
                "It is no video, it is damaged or cut off at its head, or it cannot be reached."
            ) from error
        try:
            self.stream = self._pick()
        except BaseException:
            self.close()
            raise
        self.stream.thread_type = "AUTO"
        self.stream.codec_context.thread_count = self._threads

    def _hardware(self) -> Any:
        from av.codec.hwaccel import HWAccel, hwdevices_available

        there = hwdevices_available()
        if self._hwaccel not in there:
            raise DeviceUnavailable(
                f"{self.call}: hwaccel {self._hwaccel!r} is not in this build of FFmpeg, which has "
                f"{', '.join(there) or 'none'}. Leave hwaccel out to decode on the CPU."
            )
        try:
            return HWAccel(device_type=self._hwaccel, allow_software_fallback=False)
        except (RuntimeError, OSError, ValueError) as error:
            raise DeviceUnavailable(
                f"{self.call}: hwaccel {self._hwaccel!r} cannot start on this machine: "
                f"{words(error)}. Leave hwaccel out to decode on the CPU."
            ) from error

    def _opens_without(self) -> bool:
        """Whether the hardware, not the file, is to blame."""
        av = pyav()
        try:
            av.open(self.source.name, format=self.source.format).close()
        except (av.FFmpegError, OSError, ValueError):
            return False
        return True

    def _pick(self) -> Any:
        av, name = pyav(), self.source.shown
        streams = self.container.streams
        if not streams.video:
            kinds = sorted({s.type for s in streams}) or ["nothing"]
            raise VideoError(
                f"{self.call}: {name!r} has no video stream; it holds {', '.join(kinds)}."
            )
        try:
            stream = streams.best("video") or streams.video[0]
            context = stream.codec_context
        except (av.FFmpegError, RuntimeError, ValueError, NotImplementedError) as error:
            raise self._hardware_refused(error) from error
        if context is None:
            raise VideoError(f"{self.call}: FFmpeg has no decoder for the video of {name!r}.")
        if self._hwaccel is not None and not context.is_hwaccel:
            raise self._hardware_refused("the codec has no such decoder")
        return stream

    def _hardware_refused(self, why: object) -> Exception:
        said = words(why) if isinstance(why, BaseException) else str(why)
        return DeviceUnavailable(
            f"{self.call}: {self.source.shown!r} cannot be decoded with hwaccel "
            f"{self._hwaccel!r}: {said}. Leave hwaccel out to decode on the CPU."
        )

    @property
    def rate(self) -> Fraction | None:
        """Frames a second: the mean where it is known."""
        found = self.stream.average_rate or self.stream.guessed_rate
        return Fraction(found) if found else None

    @property
    def promised_end(self) -> Fraction | None:
        """When the video ends, in seconds, by what the head of the file says."""
        stream, container = self.stream, self.container
        if stream.frames and stream.duration is not None:
            return Fraction(((stream.start_time or 0) + stream.duration) * stream.time_base)
        if "matroska" not in container.format.name or container.duration is None:
            return None  # what FFmpeg has worked out from the file itself promises nothing
        told = stream.metadata.get("DURATION", "").split(":")
        if len(told) == 3:
            return Fraction(int(told[0]) * 3600 + int(told[1]) * 60) + Fraction(told[2])
        alone = len(container.streams) == 1
        return Fraction(container.duration, 1_000_000) if alone else None

    def close(self) -> None:
        """Gives the file back to FFmpeg."""
        if self.container is not None:
            self.container.close()
            self.container = None


class Decoder:
    """A thread that decodes into a queue, from the beginning or from the frame shown at a time."""

    def __init__(
        self, opened: Opened, *, size: int, policy: str, at: Fraction | None, fresh: bool
    ) -> None:
        self.queue = Queue(size, policy)
        self._opened = opened
        self._at = at
        self._fresh = fresh
        self._problem: str | None = None
        self._problems = 0
        self._packets = 0
        self._time: Fraction | None = None  # of the last packet
        self._end: Fraction | None = None  # of the last packet, with its duration
        self._clock: Fraction | None = None  # of frames that have no time of their own
        self._whole = at is None
        self._ending = threading.Lock()
        self._over = False  # the thread has done all it does with the source
        self._left = False  # and is to close it
        self._thread = threading.Thread(target=self._run, daemon=True, name="dala video decoder")
        self._thread.start()

    def stop(self) -> bool:
        """Ends the thread and waits until it has.

        A live source that has gone silent may hold FFmpeg, which nobody can interrupt, longer than
        its timeout. Then it is False: the thread closes the source itself when it wakes.
        """
        self.queue.close()
        live = self._opened.source.live
        self._thread.join(self._opened.timeout + 1 if live else None)
        with self._ending:
            if self._thread.is_alive() and not self._over:
                self._left = True
                return False
        self._thread.join()
        return True

    def _run(self) -> None:
        error: Exception | None = None
        try:
            self._decode()
        except Exception as problem:
            self._note(problem)
        try:
            if self._problem is not None:
                error = self._error()
        finally:
            self.queue.finish(error)
            with self._ending:
                self._over = True
                if self._left:
                    self._opened.close()

    def _decode(self) -> None:
        held, at = None, self._at
        frames = self._first() if self._fresh or at is None else self._near(at)
        for frame in frames:
            if at is not None and self._when(frame) <= at:
                held = frame
                continue
            at = None
            if held is not None and not self.queue.put(held):
                return
            held = None
            if not self.queue.put(frame):
                return
            del frame
        if held is not None:
            self.queue.put(held)
        self._look_at_end()

    # from where -------------------------------------------------------------------------------
    def _first(self) -> Iterator[Any]:
        """Frames from the beginning."""
        opened = self._opened
        if not self._fresh:
            start = Fraction(opened.stream.start_time or 0) * opened.stream.time_base
            if self._to(start):
                frames = self._frames()
                first = next(frames, None)
                if first is not None and self._when(first) <= start:
                    return itertools.chain([first], frames)
                self._forget()
            opened.open()  # FFmpeg cannot seek there in every kind of file
        return self._frames()

    def _near(self, at: Fraction) -> Iterator[Any]:
        """Frames from one that is not after the time, as near as FFmpeg finds one."""
        stream = self._opened.stream
        start = Fraction(stream.start_time or 0) * stream.time_base
        for back in _STEPS_BACK:
            if at - back <= start or not self._to(at - back):
                break
            frames = self._frames()
            first = next(frames, None)
            if first is not None and self._when(first) <= at:
                return itertools.chain([first], frames)
            self._forget()
        return self._first()

    def _to(self, time: Fraction) -> bool:
        """Seeks to a key frame at or before a time; False if FFmpeg cannot."""
        av, opened = pyav(), self._opened
        target = math.floor(time / opened.stream.time_base)
        try:
            opened.container.seek(target, stream=opened.stream, backward=True)
        except (av.FFmpegError, OSError):
            return False
        return True

    def _forget(self) -> None:
        self._problem, self._problems, self._packets = None, 0, 0
        self._clock = self._time = self._end = None

    # decoding ---------------------------------------------------------------------------------
    def _frames(self) -> Iterator[Any]:
        av, opened = pyav(), self._opened
        for packet in opened.container.demux(opened.stream):
            if packet.size:
                self._packets += 1
                self._mark(packet)
            if packet.is_corrupt and packet.size:
                self._note("a packet is cut off or damaged")
                continue
            try:
                frames = packet.decode()
            except av.error.EOFError:
                return
            except av.FFmpegError as error:
                self._note(error)
                continue
            frames.reverse()
            while frames:
                frame = frames.pop()
                if frame.is_corrupt:
                    self._note("a frame could be decoded only in part")
                self._stamp(frame)
                frames.append(frame)
                del frame  # its memory is the decoder's again as soon as it was used
                yield frames.pop()

    def _mark(self, packet: Any) -> None:
        stamp = packet.pts if packet.pts is not None else packet.dts
        if stamp is not None:
            self._time = stamp * packet.time_base
            end = self._time + (packet.duration or 0) * packet.time_base
            self._end = end if self._end is None else max(self._end, end)

    def _stamp(self, frame: Any) -> None:
        """Frames that have no time get one by the frame rate."""
        if not frame.time_base:
            frame.time_base = self._opened.stream.time_base
        if frame.pts is None:
            step = 1 / (self._opened.rate or Fraction(25))
            self._clock = Fraction(0) if self._clock is None else self._clock + step
            frame.pts = round(self._clock / frame.time_base)
        else:
            self._clock = frame.pts * frame.time_base

    def _when(self, frame: Any) -> Fraction:
        return Fraction(frame.pts * frame.time_base)

    # what went wrong --------------------------------------------------------------------------
    def _note(self, problem: BaseException | str) -> None:
        self._problems += 1
        if self._problem is None:
            said = words(problem) if isinstance(problem, BaseException) else problem
            # A decoder's threads report late: what it gave last tells the place, not what it took.
            late = isinstance(problem, BaseException) and self._clock is not None
            place, time = ("after", self._clock) if late else ("near", self._time)
            when = "at its beginning" if time is None else f"{place} {float(time):.3f} s"
            self._problem = f"{when}: {said}"

    def _look_at_end(self) -> None:
        """A file may end early without FFmpeg calling that an error."""
        opened, stream = self._opened, self._opened.stream
        if not self._whole or opened.source.live or self._problem is not None:
            return
        slack = 2 / (opened.rate or Fraction(25)) + Fraction(1, 20)
        promised = opened.promised_end
        short = promised is not None and (self._end is None or self._end + slack < promised)
        if stream.frames and self._packets < stream.frames:
            # Edit lists may hide packets; then what is left fills the promised time.
            if promised is None or short:
                self._note(f"the file ends there, after {self._packets} of {stream.frames} frames")
        elif short and promised is not None:
            self._note(f"the file ends there, but is {float(promised):.3f} s long by its own word")

    def _error(self) -> VideoError:
        more = f" ({self._problems} such places)" if self._problems > 1 else ""
        return VideoError(
            f"video: {self._opened.source.shown!r} is damaged {self._problem}{more}. The frames "
            "that could be decoded were given. Get a whole copy of the file."
        )
