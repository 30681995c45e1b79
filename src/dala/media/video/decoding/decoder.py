"""The thread that decodes an open video ahead into a queue."""

from __future__ import annotations

import itertools
import math
import weakref
from collections.abc import Iterator
from fractions import Fraction
from time import monotonic

from dala import budget, forks
from dala.errors import VideoError
from dala.media.live.slots import Backoff
from dala.media.video.decoding.input import VideoInput, frame_count
from dala.media.video.source import AvObject, DecodedFrame, FrameQueue, av, ffmpeg_message
from dala.media.video.stages import Deinterlacer
from dala.media.video.timing import DEFAULT_RATE, FrameClock, is_broadcast
from dala.memory import Held
from dala.trace.recorder import OFF, each, tracer

#: Pictures that a decoder holds beside those in the queue, to decode others from: an estimate.
REFERENCES = 4

#: Seconds before the target of a seek at which to look for a start frame, tried in order.
_STEPS_BACK = (0, 2, 8, 32)
_INTERLACED = (
    "it is interlaced, and moving edges show combs. Give deinterlace=True (--deinterlace), or "
    "deinterlace=False to keep the lines as they are."
)


class Decoder:
    """A thread that decodes into a queue, from the start or from the frame shown at a time.

    The pictures of the queue count against the memory limits until it is stopped.
    """

    def __init__(
        self, opened: VideoInput, *, size: int, policy: str, at: Fraction | None, fresh: bool
    ) -> None:
        self._held = Held("decoder", budget.accounts())
        self._held.resize((size + REFERENCES) * opened.frame_bytes, opened.call)
        weakref.finalize(self, self._held.release).atexit = False
        self.queue = FrameQueue(size, policy, "decoded frames")
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
        self._shift = Fraction(0)  # of the times, after a source was lost and found again
        self._newest, self._put_at = Fraction(0), monotonic()
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
        self._held.release()
        source = self._opened.source
        silent = source.live or (source.stream is not None and not source.stream.seekable)
        self._thread.join(self._opened.options.timeout + 1 if silent else None)
        with self._ending:
            if self._thread.is_alive() and not self._done:
                self._orphaned = True
                return False
        self._thread.join()
        return True

    def _run(self) -> None:
        error: Exception | None = None
        while True:
            try:
                self._decode()
            except Exception as problem:
                self._note(problem)
            if not self._is_lost() or not self._regained():
                break
        try:
            if self._problem is not None:
                error = self._error()
        finally:
            self.queue.finish(error)
            with self._ending:
                self._done = True
                if self._orphaned:
                    self._opened.close()

    def _is_lost(self) -> bool:
        """Return whether more frames may come once the source is opened again."""
        opened = self._opened
        if not opened.source.reconnect or self.queue.closed:
            return False
        # A download that ends without a problem is complete.
        whole = not opened.source.live and opened.container.duration is not None
        return self._problem is not None or not whole

    def _regained(self) -> bool:
        """Open a lost source again, after growing waits. Return False when it is given up."""
        opened = self._opened
        lost, why = monotonic(), self._problem or "it ended"
        backoff = Backoff(opened.source.reconnect)
        opened.say("lost", f"it was lost ({why}) and is tried again.")
        while (wait := backoff.wait(monotonic() - lost)) is not None:
            if self.queue.wait_closed(wait):
                return False
            try:
                opened.open()
            except VideoError as error:
                why = str(error)
                continue
            self._shift = self._newest + Fraction(monotonic() - self._put_at).limit_denominator(
                1000
            )
            self._at, self._fresh = None, True
            self._reset()
            self.queue.reconnects += 1
            return True
        self._problem = f"after {float(self._newest):.3f} s: it was lost and is not back"
        return False

    def _decode(self) -> None:
        held, at = None, None if self._at is None else self._at + self._opened.begin
        frames = self._from_start() if self._fresh or at is None else self._from_near(at)
        for frame in frames:
            if at is not None and self._time_of(frame) <= at:
                held = frame
                continue
            if at is not None:
                # What was wrong before is not shown: frames whose references come earlier yet.
                self._problem, self._problems = None, 0
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
        begin = self._opened.begin - self._shift
        if begin:
            frame.pts -= round(begin / frame.time_base)
        listener = self._opened.listener
        if listener is not None:
            listener.seen(float(self._time_of(frame)), monotonic())
        if self._opened.source.reconnect:
            self._newest, self._put_at = self._time_of(frame), monotonic()
        if tracer.on:
            tracer.frame = frame.opaque or tracer.new_frame()
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
            if self._seek(start) and (frames := self._from_before(start)) is not None:
                return frames
            opened.open()  # FFmpeg cannot seek there in every kind of file
        return self._frames()

    def _from_near(self, at: Fraction) -> Iterator[DecodedFrame]:
        """Yield the frames from one at or before a time, as close as FFmpeg can seek."""
        stream = self._opened.stream
        start = Fraction(stream.start_time or 0) * stream.time_base
        for back in _STEPS_BACK:
            if at - back <= start or not self._seek(at - back):
                break
            if (frames := self._from_before(at)) is not None:
                return frames
        return self._from_start()

    def _from_before(self, time: Fraction) -> Iterator[DecodedFrame] | None:
        """Return the frames after a seek; None, as if nothing was read, if they begin later."""
        frames = self._frames()
        first = next(frames, None)
        if first is not None and self._time_of(first) <= time:
            return itertools.chain([first], frames)
        self._reset()
        return None

    def _seek(self, time: Fraction) -> bool:
        """Seek to a key frame at or before a time. Return False if FFmpeg cannot."""
        opened = self._opened
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
        wanted = opened.options.deinterlace
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
        known = wanted if isinstance(wanted, str) and wanted != "auto" else opened.scan
        stage = Deinterlacer(wanted is True, known)
        for frame in frames:
            with tracer.span("deinterlace") if tracer.on else OFF:
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
            if frame is not None:
                self._opened.look_at(frame)
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
        opened = self._opened
        packed = opened.stream.codec_context.name == "mpeg4"
        sound = opened.sound
        streams = [opened.stream] if sound is None else [opened.stream, sound]
        for packet in each("demux", opened.container.demux(*streams), new=True):
            if sound is not None and packet.stream_index == sound.index:
                self._listen(packet)
                continue
            if packet.size:
                self._packets += 1
                self._track_time(packet)
            if packet.is_corrupt and packet.size:
                self._note("a packet is truncated or damaged")
                continue
            if packed and packet.size:
                self._clock.look_at(packet)
            try:
                with tracer.span("decode", opened.label) if tracer.on else OFF:
                    packet.opaque = tracer.frame if tracer.on else None
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

    def _listen(self, packet: AvObject) -> None:
        """Pass a packet of sound on, if anyone listens."""
        opened, listener = self._opened, self._opened.listener
        if listener is None:
            return
        try:
            frames = packet.decode()
        except av.FFmpegError as error:
            opened.say("sound", f"some of its sound is damaged ({ffmpeg_message(error)}).")
            return
        for frame in frames:
            time = None
            if frame.pts is not None:
                time = float(frame.pts * frame.time_base - opened.begin + self._shift)
            listener.heard(frame, time, monotonic())

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
