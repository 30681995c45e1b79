"""Times of decoded frames: rising, from the file's own stamps where these can be true."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction

from dala.media.video.source import AvObject, DecodedFrame

#: A stamp that is this many frames off is out of order; one that is further off begins a new clock.
_DISORDER = 8
#: Seconds from which on a leap of a broadcast's clock is a splice, not a pause.
SPLICE = Fraction(10)
#: Stamps beyond this are damage; arithmetic on them would overflow in FFmpeg.
_LARGEST = 1 << 56
#: Frame rate of files that do not have one.
DEFAULT_RATE = Fraction(25)
#: The start code of a picture in MPEG-4 part 2.
_VOP = b"\x00\x00\x01\xb6"


def is_broadcast(container: AvObject) -> bool:
    """Return whether a container's clock may begin anywhere and leap: MPEG-TS, MPEG-PS, HLS."""
    return bool(container.format.flags & _DISCONTINUOUS)


def start_offset(container: AvObject, pictures: bool = False) -> Fraction:
    """Return the time at which a recording begins, to be taken off all its stamps.

    Broadcasts (MPEG transport and program streams) begin anywhere on a running clock. The earliest
    of their video and audio streams is at 0, so that the others keep their distance to it. In other
    containers the start is meant as it is: they begin at 0, and a video may begin later. With
    ``pictures`` that is taken off, too.
    """
    videos = container.streams.video
    if pictures and videos and videos[0].start_time:
        return Fraction(videos[0].start_time * videos[0].time_base)
    if not is_broadcast(container):
        return Fraction(0)
    return first_start((*container.streams.video, *container.streams.audio))


def first_start(streams: Iterable[AvObject]) -> Fraction:
    """Return the time at which the first of some streams begins, in seconds; 0 if none says."""
    starts = [s.start_time * Fraction(s.time_base) for s in streams if s.start_time is not None]
    return min(starts, default=Fraction(0))


def header_duration(container: AvObject, stream: AvObject) -> Fraction | None:
    """Return the seconds of a stream by the header of its file; None if it does not say."""
    if stream.duration is not None:
        return int(stream.duration) * Fraction(stream.time_base)
    return None if container.duration is None else Fraction(container.duration, 1_000_000)


def shift_packet(packet: AvObject, seconds: Fraction) -> None:
    """Move a packet in time, to the nearest of its units."""
    steps = round(seconds / Fraction(packet.time_base))
    packet.dts += steps
    packet.pts = None if packet.pts is None else packet.pts + steps


#: FFmpeg's AVFMT_TS_DISCONT.
_DISCONTINUOUS = 0x0200


@dataclass(eq=False)
class FrameClock:
    """Gives frames in display order rising times; one instance per run of the decoder.

    Args:
        step: the duration of a frame in seconds, where nothing better is known.
        by_decoding: take decoding times, for containers that store nothing else (AVI).
        waits: hold a frame back for one that tells whether its time is true; not for live sources.
        spliced: close leaps of more than ten seconds, for recordings that are put together.
        begin: the time at which the video begins, for messages.
    """

    step: Fraction
    _: KW_ONLY
    by_decoding: bool
    waits: bool
    spliced: bool = False
    begin: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        #: What was repaired first, for the report; None so far.
        self.repaired: str | None = None
        self._step = 0  # in ticks; 0 before the first frame
        #: The unit of the stamps, in seconds.
        self.base = Fraction(1)
        self._count = 0
        self._last: int | None = None
        self._held: DecodedFrame | None = None
        self._shift = 0  # in ticks, after a clock that was set back

    def look_at(self, packet: AvObject) -> None:
        """Notice packed B-frames of MPEG-4 (DivX, Xvid), whose presentation times are wrong."""
        if not self.by_decoding and bytes(packet).count(_VOP) > 1:
            self.by_decoding = True

    def put(self, frame: DecodedFrame) -> list[DecodedFrame]:
        """Return the frames whose times are certain now: this one, one before it, both or none."""
        if not self._step:
            self.base = Fraction(frame.time_base)
            self._step = max(1, round(self.step / self.base))
        stamp = self._stamp(frame)
        ready = []
        held, self._held = self._held, None
        if held is not None:
            mine = self._settle(held, frame, stamp)
            closed = self._close_leap(mine)
            frame.pts -= closed
            ready.append(self._emit(held, mine - closed))
            stamp = frame.pts
        if not self.waits:
            stamp -= self._close_leap(stamp)
        if self._last is not None and stamp <= self._last:
            stamp = self._after_last(stamp)
        elif self.waits and self._last is not None and stamp - self._last > self._step * 3 // 2:
            self._held = frame
            return ready
        ready.append(self._emit(frame, stamp))
        return ready

    def finish(self) -> list[DecodedFrame]:
        """Return the frame that is still held, if there is one."""
        held, self._held = self._held, None
        return [] if held is None else [self._emit(held, held.pts - self._close_leap(held.pts))]

    def _close_leap(self, stamp: int) -> int:
        """Return by how much a frame is too late, and move those after it too; 0 if it is not."""
        if not self.spliced or self._last is None or (stamp - self._last) * self.base <= SPLICE:
            return 0
        self._note("is far after that of the frame before", stamp)
        leap = stamp - self._last - self._step
        self._shift -= leap
        return leap

    def _stamp(self, frame: DecodedFrame) -> int:
        """Return the time of a frame in ticks, which may not be after the last."""
        before = self._last if self._held is None else self._held.pts
        found = frame.dts if self.by_decoding else frame.pts
        if found is not None and abs(found) > _LARGEST:
            found = None
        if found is None and before is not None:
            found = before + self._step - self._shift
        elif found is None:
            found = frame.pts if self.by_decoding else frame.dts
        if found is None or abs(found) > _LARGEST:
            found = 0
        if self._shift and before is not None and 0 < found - before <= self._step * _DISORDER:
            self._shift = 0  # the clock was wrong only for a while
        frame.pts = found + self._shift
        return int(frame.pts)

    def _settle(self, held: DecodedFrame, frame: DecodedFrame, stamp: int) -> int:
        """Return the time of a held frame, knowing that of the next, which may change too."""
        mine, last = int(held.pts), self._last
        assert last is not None
        if stamp > mine or stamp <= last:
            return mine
        self._note("is not before that of the next frame", mine)
        if mine - stamp > self._step * _DISORDER or stamp - last < 2:
            return last + max(1, (stamp - last) // 2)  # this one alone is far off
        if stamp == mine:
            return last + (stamp - last) // 2
        frame.pts = mine
        return stamp

    def _after_last(self, stamp: int) -> int:
        """Return a time for a frame whose own is not after the last."""
        assert self._last is not None
        if self._last - stamp > self._step * _DISORDER:
            self._note("is far before that of the frame before", stamp)
            self._shift += self._last + self._step - stamp
            return self._last + self._step
        self._note("is not after that of the frame before", stamp)
        return self._last + max(1, self._step // 2)

    def _emit(self, frame: DecodedFrame, stamp: int) -> DecodedFrame:
        self._last = stamp if self._last is None else max(stamp, self._last + 1)
        frame.pts = self._last
        self._count += 1
        return frame

    def _note(self, what: str, stamp: int) -> None:
        if self.repaired is None:
            time = float(stamp * self.base - self.begin)
            self.repaired = f"the time of frame {self._count} ({time:.3f} s) {what}"


class PacketClock:
    """Moves packets of sound behind a splice, as :class:`FrameClock` does with frames."""

    def __init__(self) -> None:
        self._last: dict[int, int] = {}
        self._ends: dict[int, int] = {}
        self._shifts: dict[int, int] = {}

    def move(self, packet: AvObject) -> None:
        """Give a packet a time right after the one before it, if their clocks differ."""
        index = packet.stream_index
        shift, end = self._shifts.get(index, 0), self._ends.get(index)
        if end is not None:
            leap = packet.dts + shift - end
            back = packet.dts + shift <= self._last[index]
            if back or leap * Fraction(packet.time_base) > SPLICE:
                shift = self._shifts[index] = shift - leap
        if shift:
            packet.dts += shift
            packet.pts = None if packet.pts is None else packet.pts + shift
        self._last[index] = packet.dts
        self._ends[index] = packet.dts + (packet.duration or 1)
