"""Decoding: an open file, and the thread that decodes it ahead into a queue."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

from dala import forks, memory
from dala.errors import DeviceUnavailable, VideoError
from dala.media.video.reach import is_playlist
from dala.media.video.source import AvObject, DecodedFrame, FrameQueue, VideoSource, pyav
from dala.media.video.stages import Deinterlacer, SizeKeeper, alpha_decoder
from dala.media.video.timing import DEFAULT_RATE, FrameClock, is_broadcast, start_offset

#: Seconds before the target of a seek at which to look for a start frame, tried in order.
_STEPS_BACK = (0, 2, 8, 32)
#: Hardware that is tried first.
_FIRST = ("cuda", "d3d11va", "videotoolbox")
_INTERLACED = (
    "it is interlaced, and moving edges show combs. Give deinterlace=True (--deinterlace), or "
    "deinterlace=False to keep the lines as they are."
)


#: The number of frames in an IVF file that was written to a pipe.
_UNKNOWN_COUNT = 0xFFFFFFFF


def ffmpeg_message(error: BaseException) -> str:
    """Return FFmpeg's error text, with the last line of its log if there is one."""
    text = str(getattr(error, "strerror", None) or error)
    log = getattr(error, "log", None)
    return f"{text} ({log[2].strip()})" if log and log[2].strip() else text


def frame_count(stream: AvObject) -> int:
    """Return the number of frames that a stream's header gives; 0 if it does not say."""
    count = int(stream.frames)
    return 0 if count == _UNKNOWN_COUNT else count


class VideoInput:
    """A file, URL or camera opened by FFmpeg, and its video stream."""

    def __init__(
        self,
        source: VideoSource,
        *,
        hwaccel: str | None,
        threads: int,
        timeout: float,
        call: str,
        deinterlace: bool | str | None = None,
        on_resize: str = "scale",
    ) -> None:
        self.source = source
        self.call = call
        #: True, False, "auto", or None to say when it would be needed.
        self.deinterlace = deinterlace
        self.size = SizeKeeper(on_resize, source.label, self.say)
        #: How the video was found to be scanned, for further runs of the decoder.
        self.scan: str | None = None
        self._hwaccel = hwaccel
        self._threads = threads
        self.timeout = timeout
        self.container: AvObject = None
        self.stream: AvObject = None
        self.decoder: AvObject = None
        #: Seconds on the file's own clock at which the frames' clock is 0.
        self.begin = Fraction(0)
        #: What the user should know, by subject, in the order it happened.
        self.notices: dict[str, str] = {}
        if hwaccel == "auto":
            self._open_fastest()
        else:
            self.open()

    def say(self, subject: str, what: str) -> None:
        """Tell the user something about a subject, once."""
        self.notices.setdefault(subject, f"{self.source.label}: {what}")

    def open(self) -> None:
        """Open the source, or reopen it at the beginning."""
        av, source = pyav(), self.source
        self.close()
        settings: dict[str, object] = {
            "format": source.format,
            "options": dict(source.options),
            "container_options": source.reach,
            "metadata_errors": "replace",  # titles in other encodings must not stop a video
        }
        if (source.url or source.live) and source.stream is None:
            settings["timeout"] = (self.timeout, self.timeout)
        if self._hwaccel is not None:
            settings["hwaccel"] = self._hardware()
        try:
            self.container = av.open(source.handle, **settings)
        except (av.FFmpegError, OSError, ValueError, RuntimeError, TypeError) as error:
            if self._hwaccel is not None and self._opens_without():
                raise self._hardware_refused(error) from error
            why = "It is not a video, its header is damaged, or it cannot be reached."
            if not source.playlists and is_playlist(source.head(16)):
                why = (
                    "It is a playlist, which names other files or hosts. If you trust it, open it "
                    "with playlists=True."
                )
            raise VideoError(
                f"{self.call}: cannot open {source.label!r}: {ffmpeg_message(error)}. {why}"
            ) from error
        try:
            self.stream = self._pick()
        except BaseException:
            self.close()
            raise
        self.begin = start_offset(self.container)
        self.decoder = self._alpha_decoder() or self.stream.codec_context
        self.decoder.thread_type = "AUTO"
        self.decoder.thread_count = self._threads

    def _alpha_decoder(self) -> AvObject | None:
        if self._hwaccel is not None:
            return None
        try:
            return alpha_decoder(self.stream)
        except KeyError as missing:
            self.say("alpha", f"its alpha is ignored: this build of FFmpeg has no {missing}.")
            return None

    def _open_fastest(self) -> None:
        """Open the source with the first hardware that decodes it, else on the CPU, and say so."""
        from av.codec.hwaccel import hwdevices_available

        tried = []
        found = hwdevices_available()
        for self._hwaccel in sorted(found, key=lambda name: (name not in _FIRST, name)):
            try:
                self.open()
                return
            except DeviceUnavailable as error:
                reason = str(error).partition(". Leave hwaccel")[0].split(": ", 2)[-1]
                tried.append(f"{self._hwaccel} ({reason})")
        self._hwaccel = None
        self.open()
        why = ", ".join(tried) or "nothing, as this build of FFmpeg has no hardware decoders"
        self.say("hwaccel", f"it is decoded on the CPU. Tried {why}.")

    def _hardware(self) -> AvObject:
        from av.codec.hwaccel import HWAccel, hwdevices_available

        available = hwdevices_available()
        if self._hwaccel not in available:
            raise DeviceUnavailable(
                f"{self.call}: hwaccel {self._hwaccel!r} is not in this build of FFmpeg. It has "
                f"{', '.join(available) or 'none'}. Leave hwaccel out to decode on the CPU."
            )
        try:
            return HWAccel(device_type=self._hwaccel, allow_software_fallback=False)
        except (RuntimeError, OSError, ValueError) as error:
            raise DeviceUnavailable(
                f"{self.call}: hwaccel {self._hwaccel!r} cannot start on this machine: "
                f"{ffmpeg_message(error)}. Leave hwaccel out to decode on the CPU."
            ) from error

    def _opens_without(self) -> bool:
        """Return whether the source opens without hardware decoding."""
        av = pyav()
        try:
            av.open(
                self.source.handle,
                format=self.source.format,
                container_options=self.source.reach,
                metadata_errors="replace",
            ).close()
        except (av.FFmpegError, OSError, ValueError):
            return False
        return True

    def _pick(self) -> AvObject:
        av, name = pyav(), self.source.label
        streams = self.container.streams
        if not streams.video:
            kinds = sorted({s.type for s in streams}) or ["nothing"]
            raise VideoError(
                f"{self.call}: {name!r} has no video stream. It holds {', '.join(kinds)}."
            )
        try:
            stream = streams.best("video") or streams.video[0]
            context = stream.codec_context
        except (av.FFmpegError, RuntimeError, ValueError, NotImplementedError) as error:
            raise self._hardware_refused(error) from error
        if context is None:
            raise VideoError(f"{self.call}: FFmpeg has no decoder for the codec of {name!r}.")
        if self._hwaccel is not None and not context.is_hwaccel:
            raise self._hardware_refused("it has no decoder for this codec")
        # A header of a few bytes may claim any size. Decoders hold several pictures.
        memory.check(16 * context.width * context.height, self.call)
        return stream

    def _hardware_refused(self, why: BaseException | str) -> Exception:
        reason = ffmpeg_message(why) if isinstance(why, BaseException) else why
        return DeviceUnavailable(
            f"{self.call}: cannot decode {self.source.label!r} with hwaccel "
            f"{self._hwaccel!r}: {reason}. Leave hwaccel out to decode on the CPU."
        )

    @property
    def rate(self) -> Fraction | None:
        """Frames per second: the average if known."""
        found = self.stream.average_rate or self.stream.guessed_rate
        return Fraction(found) if found else None

    @property
    def promised_end(self) -> Fraction | None:
        """End of the video in seconds according to the file's header, or None."""
        stream, container = self.stream, self.container
        if frame_count(stream) and stream.duration is not None:
            return Fraction(((stream.start_time or 0) + stream.duration) * stream.time_base)
        if "matroska" not in container.format.name or container.duration is None:
            return None  # FFmpeg estimated it from the file itself
        tag = stream.metadata.get("DURATION", "").split(":")
        if len(tag) == 3:
            with contextlib.suppress(ValueError, ZeroDivisionError):  # not a time
                return Fraction(int(tag[0]) * 3600 + int(tag[1]) * 60) + Fraction(tag[2])
        alone = len(container.streams) == 1
        return Fraction(container.duration, 1_000_000) if alone else None

    def close(self) -> None:
        """Close the file."""
        if self.container is not None:
            self.container.close()
            self.container = self.stream = self.decoder = None  # ends the threads of the codec


class Decoder:
    """A thread that decodes into a queue, from the start or from the frame shown at a time."""

    def __init__(
        self, opened: VideoInput, *, size: int, policy: str, at: Fraction | None, fresh: bool
    ) -> None:
        self.queue = FrameQueue(size, policy)
        self._opened = opened
        self._at = at
        self._fresh = fresh
        self._problem: str | None = None
        self._problems = 0
        self._packets = 0
        self._time: Fraction | None = None  # of the last packet
        self._end: Fraction | None = None  # of the last packet, with its duration
        self._shown: int | None = None  # the stamp of the last frame
        self._clock = self._new_clock()
        self._whole = at is None
        self._ending = forks.lock()
        self._done = False  # the thread no longer uses the source
        self._orphaned = False  # the thread closes the source itself
        self._thread = forks.thread(self._run, name="dala video decoder")
        self._thread.start()

    def stop(self) -> bool:
        """Stop the thread and wait for it. Return False if it does not answer in time.

        A silent live source can block FFmpeg, which cannot be interrupted, beyond its timeout. The
        thread then closes the source itself once FFmpeg returns.
        """
        self.queue.close()
        source = self._opened.source
        silent = source.live or (source.stream is not None and not source.stream.seekable)
        self._thread.join(self._opened.timeout + 1 if silent else None)
        with self._ending:
            if self._thread.is_alive() and not self._done:
                self._orphaned = True
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
                self._done = True
                if self._orphaned:
                    self._opened.close()

    def _decode(self) -> None:
        held, at = None, None if self._at is None else self._at + self._opened.begin
        frames = self._from_start() if self._fresh or at is None else self._from_near(at)
        for frame in frames:
            if at is not None and self._time_of(frame) <= at:
                held = frame
                continue
            at = None
            if held is not None and not self._put(held):
                return
            held = None
            if not self._put(frame):
                return
            del frame
        if held is not None:
            self._put(held)
        self._check_end()

    def _put(self, frame: DecodedFrame) -> bool:
        """Queue a frame with its time on the frames' clock. Return False if the queue is closed."""
        begin = self._opened.begin
        if begin:
            frame.pts -= round(begin / frame.time_base)
        return self.queue.put(frame)

    def _new_clock(self) -> FrameClock:
        opened = self._opened
        return FrameClock(
            1 / (opened.rate or DEFAULT_RATE),
            by_decoding=opened.container.format.name == "avi",
            waits=not opened.source.live,
            spliced=is_broadcast(opened.container),
            begin=opened.begin,
        )

    # seeking ----------------------------------------------------------------------------------
    def _from_start(self) -> Iterator[DecodedFrame]:
        """Yield the frames from the beginning."""
        opened = self._opened
        if not self._fresh:
            start = Fraction(opened.stream.start_time or 0) * opened.stream.time_base
            if self._seek(start):
                frames = self._frames()
                first = next(frames, None)
                if first is not None and self._time_of(first) <= start:
                    return itertools.chain([first], frames)
                self._reset()
            opened.open()  # FFmpeg cannot seek there in every kind of file
        return self._frames()

    def _from_near(self, at: Fraction) -> Iterator[DecodedFrame]:
        """Yield the frames from one at or before a time, as close as FFmpeg can seek."""
        stream = self._opened.stream
        start = Fraction(stream.start_time or 0) * stream.time_base
        for back in _STEPS_BACK:
            if at - back <= start or not self._seek(at - back):
                break
            frames = self._frames()
            first = next(frames, None)
            if first is not None and self._time_of(first) <= at:
                return itertools.chain([first], frames)
            self._reset()
        return self._from_start()

    def _seek(self, time: Fraction) -> bool:
        """Seek to a key frame at or before a time. Return False if FFmpeg cannot."""
        av, opened = pyav(), self._opened
        target = math.floor(time / opened.stream.time_base)
        try:
            opened.container.seek(target, stream=opened.stream, backward=True)
            opened.decoder.flush_buffers()
        except (av.FFmpegError, OSError):
            return False
        return True

    def _reset(self) -> None:
        self._problem, self._problems, self._packets = None, 0, 0
        self._shown = self._time = self._end = None
        self._clock = self._new_clock()

    # decoding ---------------------------------------------------------------------------------
    def _frames(self) -> Iterator[DecodedFrame]:
        """Yield the frames as they are shown."""
        opened, frames = self._opened, self._timed()
        wanted = opened.deinterlace
        if wanted:
            frames = self._deinterlaced(frames, wanted)
        count = 0 if self._whole else None
        while (frame := next(frames, None)) is not None:
            if wanted is None and frame.interlaced_frame:
                opened.say("interlaced", _INTERLACED)
                wanted = False
            made = [opened.size.put(frame, count, opened.begin)]
            del frame  # so that the decoder can reuse its memory
            yield made.pop()
            count = None if count is None else count + 1

    def _deinterlaced(
        self, frames: Iterator[DecodedFrame], wanted: bool | str
    ) -> Iterator[DecodedFrame]:
        opened = self._opened
        stage = Deinterlacer(wanted != "auto", opened.scan)
        for frame in frames:
            ready = stage.put(frame)
            opened.scan = None if stage.found == "all" else stage.found
            yield from ready
        yield from stage.finish()
        if wanted == "auto" and stage.found == "none":
            opened.say("interlaced", "no frame is interlaced, so none was deinterlaced.")

    def _timed(self) -> Iterator[DecodedFrame]:
        clock = self._clock
        frames = self._decoded()
        while True:
            frame = next(frames, None)
            ready = clock.finish() if frame is None else clock.put(frame)
            done = frame is None
            del frame  # so that the decoder can reuse its memory
            ready.reverse()
            while ready:
                self._shown = ready[-1].pts
                yield ready.pop()
            if clock.repaired is not None:
                self._opened.say("times", f"{clock.repaired}. It is repaired, as others like it.")
                clock.repaired = None
            if done:
                return

    def _decoded(self) -> Iterator[DecodedFrame]:
        """Yield the frames that FFmpeg decodes, as they are."""
        av, opened = pyav(), self._opened
        packed = opened.stream.codec_context.name == "mpeg4"
        for packet in opened.container.demux(opened.stream):
            if packet.size:
                self._packets += 1
                self._track_time(packet)
            if packet.is_corrupt and packet.size:
                self._note("a packet is truncated or damaged")
                continue
            if packed and packet.size:
                self._clock.look_at(packet)
            try:
                frames = opened.decoder.decode(packet)
            except av.error.EOFError:
                return
            except av.FFmpegError as error:
                self._note(error)
                continue
            frames.reverse()
            while frames:
                if frames[-1].is_corrupt:
                    self._note("a frame was only partly decoded")
                if not frames[-1].time_base:
                    frames[-1].time_base = opened.stream.time_base
                yield frames.pop()

    def _track_time(self, packet: AvObject) -> None:
        stamp = packet.pts if packet.pts is not None else packet.dts
        if stamp is not None:
            self._time = stamp * packet.time_base
            end = self._time + (packet.duration or 0) * packet.time_base
            self._end = end if self._end is None else max(self._end, end)

    def _time_of(self, frame: DecodedFrame) -> Fraction:
        return Fraction(frame.pts * frame.time_base)

    # errors -----------------------------------------------------------------------------------
    def _note(self, problem: BaseException | str) -> None:
        self._problems += 1
        if self._problem is None:
            text = ffmpeg_message(problem) if isinstance(problem, BaseException) else problem
            # Decoder threads report late: the last frame out tells the place, not the last packet.
            place, time = "near", self._time
            if isinstance(problem, BaseException) and self._shown is not None:
                place, time = "after", self._shown * self._clock.base
            seconds = 0.0 if time is None else float(time - self._opened.begin)
            when = "at its start" if time is None else f"{place} {seconds:.3f} s"
            self._problem = f"{when}: {text}"

    def _check_end(self) -> None:
        """Report a file that ends early, which FFmpeg does not count as an error."""
        opened, stream = self._opened, self._opened.stream
        if not self._whole or opened.source.live or self._problem is not None:
            return
        slack = 2 / (opened.rate or DEFAULT_RATE) + Fraction(1, 20)
        promised = opened.promised_end
        short = promised is not None and (self._end is None or self._end + slack < promised)
        count = frame_count(stream)
        if self._packets < count:
            # Edit lists may hide packets; the others then still fill the promised duration.
            half = 1 / (2 * (opened.rate or DEFAULT_RATE))
            if promised is None or self._end is None or self._end + half < promised:
                self._note(f"the file ends after {self._packets} of {count} frames")
        elif short and promised is not None:
            self._note(f"the file ends before the {float(promised):.3f} s that its header promises")
        elif cut := opened.source.cut_off(opened.container.format.name):
            whole = promised is not None and self._end is not None and self._end >= promised
            if not whole:  # else only an index was lost
                self._note(f"the file ends early: {cut}")

    def _error(self) -> VideoError:
        more = f" ({self._problems} errors in all)" if self._problems > 1 else ""
        return VideoError(
            f"video: {self._opened.source.label!r} is damaged {self._problem}{more}. All frames "
            "that could be decoded were returned. Get an intact copy of the file."
        )
