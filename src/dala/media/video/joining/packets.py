"""Packets of a video file: where it can be cut, and copying a part of it to another file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from dala.errors import ParameterError, VideoError
from dala.media.parts import PartFile
from dala.media.video.decoding.input import ffmpeg_message
from dala.media.video.source import AvObject, open_container, pyav, source_of

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


class PacketFile:
    """An open file whose packets are read, not decoded. Times count from its first picture."""

    def __init__(self, path: str | os.PathLike[str], call: str) -> None:
        av = pyav()
        source = source_of(path, call)
        try:
            self.container = open_container(source.handle)
        except (av.FFmpegError, OSError, ValueError) as error:
            raise VideoError(
                f"{call}: cannot open {source.label!r}: {ffmpeg_message(error)}."
            ) from error
        covers = av.stream.Disposition.attached_pic
        videos = [v for v in self.container.streams.video if not v.disposition & covers]
        if not videos:
            self.close()
            raise VideoError(f"{call}: {source.label!r} has no video.")
        self.video: AvObject = videos[0]
        self.sounds: list[AvObject] = list(self.container.streams.audio)
        base = Fraction(self.video.time_base)
        #: The time of the first picture on the file's clock.
        self.zero = int(self.video.start_time or 0) * base
        rate = self.video.average_rate or self.video.guessed_rate or 25
        #: The seconds that a picture is shown, by the frame rate.
        self.step = 1 / Fraction(rate)

    @property
    def duration(self) -> Fraction | None:
        """Seconds of the pictures, by the header."""
        if self.video.duration is not None:
            return int(self.video.duration) * Fraction(self.video.time_base)
        whole = self.container.duration
        return None if whole is None else Fraction(whole, 1_000_000)

    def time_of(self, packet: AvObject) -> Fraction:
        """Return the time at which a packet is shown."""
        stamp = packet.pts if packet.pts is not None else packet.dts
        return int(stamp) * Fraction(packet.time_base) - self.zero

    def seek(self, time: Fraction) -> None:
        """Go to a key frame at or before a time.

        Raises:
            Unseekable: the container cannot be sought.
        """
        av = pyav()
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
        for packet in self.container.demux(streams):
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
    av = pyav()
    target = Path(out)
    if not target.parent.is_dir():
        raise ParameterError(f"{call}: the folder '{target.parent}' does not exist.")
    with PartFile(target, target.suffix) as part:
        try:
            with av.open(str(part.path), "w") as output:
                count = _Copying(output).run(parts)
            part.complete()
            return count
        except (av.FFmpegError, ValueError) as error:
            kind = VideoError if isinstance(error, OSError) else PacketsRefused
            raise kind(f"{call}: cannot write {str(out)!r}: {ffmpeg_message(error)}.") from error


class _Copying:
    """An output to which parts are copied."""

    def __init__(self, output: AvObject) -> None:
        self._output = output
        self._streams: list[AvObject] = []
        #: The time at which the next part begins.
        self._at = Fraction(0)
        #: The last decoding time of each stream, which must grow.
        self._last: dict[int, int] = {}

    def run(self, parts: Iterable[CopiedPart]) -> int:
        """Copy all parts; return the number of pictures."""
        return sum(self._copy(part) for part in parts)

    def _copy(self, part: CopiedPart) -> int:
        file = part.file
        inputs = [file.video, *file.sounds]
        if not self._streams:
            self._streams = [self._output.add_stream_from_template(s) for s in inputs]
        places = {stream.index: number for number, stream in enumerate(inputs)}
        file.seek(part.start - EARLIER if part.start else Fraction(0))
        count, latest, over = 0, part.start, set[int]()
        for packet in file.packets(inputs):
            number = places[packet.stream.index]
            time = file.time_of(packet)
            decoded = packet.dts * Fraction(packet.time_base) - file.zero
            if part.end is not None and (time if number else decoded) >= part.end:
                over.add(number)
                if len(over) == len(inputs):
                    break
            inside = time >= part.start and (part.end is None or time < part.end)
            if not inside:
                continue
            if number == 0:
                count += 1
                length = (packet.duration or 0) * Fraction(packet.time_base) or file.step
                latest = max(latest, time + length)
            self._write(packet, number, self._at - part.start - file.zero)
        self._at += (part.end or latest) - part.start
        return count

    def _write(self, packet: AvObject, number: int, shift: Fraction) -> None:
        moved = round(shift / Fraction(packet.time_base))
        packet.pts = None if packet.pts is None else packet.pts + moved
        packet.dts += moved
        last = self._last.get(number)
        if last is not None and packet.dts <= last:
            packet.dts = last + 1
            if packet.pts is not None and packet.pts < packet.dts:
                packet.pts = packet.dts
        self._last[number] = packet.dts
        packet.stream = self._streams[number]
        self._output.mux(packet)
