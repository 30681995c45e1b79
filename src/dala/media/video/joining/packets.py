"""Packets of a video file: where it can be cut, and copying a part of it to another file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from dala.budget import checked
from dala.errors import ParameterError, VideoError
from dala.media.parts import PartFile
from dala.media.video.source import (
    AvObject,
    av,
    ffmpeg_errors,
    ffmpeg_message,
    open_container,
    source_of,
)
from dala.media.video.timing import header_duration, shift_packet
from dala.resources import Closing

#: Seconds before a time at which a key frame is looked for, one after another.
_ATTEMPTS = (Fraction(0), Fraction(2), Fraction(10), Fraction(60))
#: Packets that wait at most for one with a decoding time.
_MOST_HELD = 256
#: Seconds before the first picture at which copying begins to read, for the sound.
EARLIER = Fraction(2)


class PacketsRefused(VideoError):
    """The container does not take the packets. Encoded again, the pictures may fit."""


class Unseekable(VideoError):
    """A file in which no place can be gone to, such as a raw stream."""


class PacketSpan(NamedTuple):
    """The packets of a part of a video."""

    #: The time of the first picture of the part, from the first of the file.
    first: Fraction
    #: The number of its pictures.
    pictures: int
    #: Why its packets cannot be copied as they are; "" if they can.
    problem: str
    #: The last key frame up to the beginning of the part.
    key: Fraction


class PacketFile(Closing):
    """An open file whose packets are read, not decoded. Times count from its first picture."""

    def __init__(self, path: str | os.PathLike[str], call: str, sound: bool = True) -> None:
        source = source_of(path, call)
        with ffmpeg_errors(f"{call}: cannot open {source.label!r}"):
            self.container = open_container(source.handle)
        covers = av.stream.Disposition.attached_pic
        videos = [v for v in self.container.streams.video if not v.disposition & covers]
        if not videos:
            self.close()
            raise VideoError(f"{call}: {source.label!r} has no video.")
        self.video: AvObject = videos[0]
        self.sounds: list[AvObject] = list(self.container.streams.audio) if sound else []
        base = Fraction(self.video.time_base)
        #: The time of the first picture on the file's clock.
        self.zero = int(self.video.start_time or 0) * base
        rate = self.video.average_rate or self.video.guessed_rate or 25
        #: The seconds that a picture is shown, by the frame rate.
        self.step = 1 / Fraction(rate)

    @property
    def duration(self) -> Fraction | None:
        """Seconds of the pictures, by the header."""
        return header_duration(self.container, self.video)

    def time_of(self, packet: AvObject) -> Fraction:
        """Return the time at which a packet is shown."""
        stamp = packet.pts if packet.pts is not None else packet.dts
        return int(stamp) * Fraction(packet.time_base) - self.zero

    def seek(self, time: Fraction) -> None:
        """Go to a key frame at or before a time.

        Raises:
            Unseekable: the container cannot be sought.
        """
        base = Fraction(self.video.time_base)
        # The first packet is decoded before it is shown, and transport streams seek by that time.
        targets = [(time, True)] if time > 0 else [(Fraction(-1), True)]
        failed: Exception | None = None
        for at, backward in (*targets, (Fraction(0), True), (Fraction(0), False)):
            try:
                stamp = int((at + self.zero) / base)
                self.container.seek(stamp, stream=self.video, backward=backward)
                return
            except (av.FFmpegError, OSError) as error:  # FLV refuses times before its first
                failed = error
        raise Unseekable("it cannot be sought") from failed

    def packets(self, streams: list[AvObject]) -> Iterator[AvObject]:
        """Yield the packets of streams from where the file is, all with decoding times.

        Matroska has none; FFmpeg finds them, but not those of the first packets after a seek.
        """
        held: list[AvObject] = []
        for packet in checked(self.container.demux(streams), "video.concat"):
            if not packet.size:
                continue
            if held or packet.dts is None:
                held.append(packet)
                unknown = packet.dts is None or packet.stream.index != held[0].stream.index
                if unknown and len(held) < _MOST_HELD:
                    continue
                yield from self._timed(held)
                held = []
            else:
                yield packet
        yield from self._timed(held)

    def _timed(self, held: list[AvObject]) -> list[AvObject]:
        """Give packets the decoding times they miss: back from the first that is known."""
        known: dict[int, int] = {}
        for packet in reversed(held):
            index = packet.stream.index
            if packet.dts is None:
                base = Fraction(packet.time_base)
                step = round(self.step / base) if index == self.video.index else packet.duration
                after = known.get(index)
                packet.dts = packet.pts if after is None else after - max(step or 1, 1)
            if packet.dts is not None:
                known[index] = packet.dts
        return [packet for packet in held if packet.dts is not None]

    def seek_key(self, time: Fraction) -> None:
        """Go to a key frame at or before a time, also where the container's index is not exact."""
        for earlier in _ATTEMPTS:
            self.seek(time - earlier)
            for packet in self.packets([self.video]):
                if self.time_of(packet) > time:
                    break
                if packet.is_keyframe:
                    self.seek(time - earlier)
                    return
        self.seek(Fraction(0))

    def span(self, start: Fraction, end: Fraction) -> PacketSpan:
        """Look at the packets between two times, and whether they can be copied alone."""
        try:
            self.seek_key(start)
        except Unseekable as error:
            return PacketSpan(start, 0, str(error), Fraction(0))
        shown: list[tuple[Fraction, bool]] = []
        for packet in self.packets([self.video]):
            shown.append((self.time_of(packet), bool(packet.is_keyframe)))
            if packet.dts * Fraction(packet.time_base) - self.zero >= end:
                break
        keys = [time for time, key in shown if key and time <= start]
        if not shown or not keys:
            return PacketSpan(start, 0, "it has no key frame before the cut", Fraction(0))
        key = max(keys)
        times = [time for time, _ in shown]
        first = max((time for time in times if time <= start), default=start)
        inside = [n for n, time in enumerate(times) if first <= time < end]
        problem = ""
        if key != first:
            problem = (
                f"the picture at {_text(start)} s is not a key frame; the last is {_text(key)} s"
            )
        elif inside and any(times[n] >= end for n in range(inside[-1])):
            problem = f"pictures before {_text(end)} s are coded by one after it"
        return PacketSpan(first, len(inside), problem, key)

    def close(self) -> None:
        """Close the file."""
        self.container.close()


def _text(time: Fraction) -> str:
    return f"{float(time):.3f}".rstrip("0").rstrip(".")


class CopiedPart(NamedTuple):
    """A part of a file to copy, in seconds of it; None for its end."""

    file: PacketFile
    start: Fraction
    end: Fraction | None


def copy_packets(parts: Iterable[CopiedPart], out: str | os.PathLike[str], call: str) -> int:
    """Copy the packets of parts one after another to a file; return the number of pictures.

    Raises:
        PacketsRefused: the container does not take the streams.
        VideoError: the file cannot be written, as on a full disk.
    """
    folder = Path(out).parent
    if not folder.is_dir():
        raise ParameterError(f"{call}: the folder '{folder}' does not exist.")
    with packet_output(out, call) as output:
        return _copy(parts, output)


@contextmanager
def packet_output(out: str | os.PathLike[str], call: str) -> Iterator[AvObject]:
    """Open a container for packets; the file appears when it is complete.

    Raises:
        PacketsRefused: the container does not take them.
        VideoError: the file cannot be written, as on a full disk.
    """
    target = Path(out)
    with PartFile(target, target.suffix) as part:
        try:
            with av.open(str(part.path), "w") as output:
                yield output
            part.complete()
        except PacketsRefused:
            raise
        except (av.FFmpegError, ValueError) as error:
            kind = VideoError if isinstance(error, OSError) else PacketsRefused
            raise kind(f"{call}: cannot write {str(out)!r}: {ffmpeg_message(error)}.") from error


def _copy(parts: Iterable[CopiedPart], output: AvObject) -> int:
    """Copy parts one after another; return the number of pictures."""
    streams: list[AvObject] = []
    begin, count = Fraction(0), 0  # of the next part, and of the pictures so far
    last: dict[int, int] = {}  # the last decoding time of each stream, which must grow
    for file, start, end in parts:
        inputs = [file.video, *file.sounds]
        streams = streams or [output.add_stream_from_template(s) for s in inputs]
        places = {stream.index: number for number, stream in enumerate(inputs)}
        file.seek(start - EARLIER if start else Fraction(0))
        latest, over = start, set[int]()
        for packet in file.packets(inputs):
            number = places[packet.stream.index]
            time = file.time_of(packet)
            decoded = packet.dts * Fraction(packet.time_base) - file.zero
            if end is not None and (time if number else decoded) >= end:
                over.add(number)
                if len(over) == len(inputs):
                    break
            if time < start or (end is not None and time >= end):
                continue
            if number == 0:
                count += 1
                length = (packet.duration or 0) * Fraction(packet.time_base) or file.step
                latest = max(latest, time + length)
            shift_packet(packet, begin - start - file.zero)
            if number in last and packet.dts <= last[number]:
                packet.dts = last[number] + 1
                if packet.pts is not None and packet.pts < packet.dts:
                    packet.pts = packet.dts
            last[number] = packet.dts
            packet.stream = streams[number]
            output.mux(packet)
        begin += (end or latest) - start
    return count
