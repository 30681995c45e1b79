"""Cut H.264 at any frame: the packets in the middle are copied, the few at the ends encoded again.

Decoding can begin at some frames only, and frames at the end may need later ones. Those before the
first such frame, and those that miss a later one, are decoded and encoded with the settings of the
video and parameter sets of their own, which the headers of the file then have beside the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np

from dala.media.video.chunks.packets import StoredPacket
from dala.media.video.chunks.stitching import decoding_times
from dala.media.video.encode import repeatable_options
from dala.media.video.joining.packets import (
    EARLIER,
    PacketFile,
    PacketsRefused,
    Unseekable,
    packet_output,
)
from dala.media.video.source import AvObject, av, ffmpeg_message
from dala.media.video.timing import shift_packet
from dala.typing import PathLike

#: Types of units: the slice of a picture at which decoding can begin, and the parameter sets.
_IDR: Final = 5
_SEQUENCE: Final = 7
_PICTURE: Final = 8
_START: Final = b"\0\0\1"
#: Profiles whose headers say nothing of chroma and depth.
_SHORT_HEADERS: Final = (66, 77, 88)
#: Ids of sequence parameter sets end here.
_MOST_IDS: Final = 32


@dataclass
class AvcHeaders:
    """The parameter sets of an H.264 stream.

    >>> made = AvcHeaders.parse(bytes([1, 66, 0, 30, 255, 225, 0, 5, 103, 66, 0, 30, 128, 1, 0, 2,
    ...     104, 128]))
    >>> made.length_size, made.free_id(), len(made.sequences)
    (4, 1, 1)
    """

    #: Bytes before each unit of a packet that say its length; 0 for start codes.
    length_size: int = 0
    sequences: list[bytes] = field(default_factory=list)
    pictures: list[bytes] = field(default_factory=list)
    #: What follows them: chroma and depth.
    rest: bytes = b""

    @classmethod
    def parse(cls, extradata: bytes) -> AvcHeaders:
        """Return the headers of a stream from its extradata, in either form.

        Raises:
            ValueError: it is not such data.
        """
        if not extradata or extradata[0] != 1:
            made = cls()
            made.add(units(extradata, 0))
            return made
        if len(extradata) < 7:
            raise ValueError("the headers are too short")
        at, sets = 5, []
        for mask in (31, 255):
            count, at = extradata[at] & mask, at + 1
            found = []
            for _ in range(count):
                size = int.from_bytes(extradata[at : at + 2], "big")
                found.append(extradata[at + 2 : at + 2 + size])
                at += 2 + size
            sets.append(found)
            if at > len(extradata) or (mask == 31 and at == len(extradata)):
                raise ValueError("the headers end early")
        return cls((extradata[4] & 3) + 1, sets[0], sets[1], extradata[at:])

    def add(self, found: list[bytes]) -> None:
        """Add the parameter sets among units, unless they are known."""
        for unit in found:
            kind = unit[0] & 31 if unit else 0
            into = {_SEQUENCE: self.sequences, _PICTURE: self.pictures}.get(kind)
            if into is not None and unit not in into:
                into.append(unit)

    def free_id(self) -> int | None:
        """Return an id that none of the parameter sets has; None if there is none."""
        used = {_golomb(unit[4:]) for unit in self.sequences}
        used |= {_golomb(unit[1:]) for unit in self.pictures}
        return next((id for id in range(_MOST_IDS) if id not in used), None)

    @property
    def level(self) -> int:
        """The level, times ten."""
        return self.sequences[0][3]

    def extradata(self, chroma: int = 1, depth: int = 8) -> bytes:
        """Return the headers as MP4 and Matroska keep them, for lengths of four bytes."""
        first = self.sequences[0]
        level = max(unit[3] for unit in self.sequences)
        made = bytearray((1, first[1], first[2], level, 0xFF))
        for mark, sets in ((0xE0, self.sequences), (0, self.pictures)):
            made.append(mark | len(sets))
            for unit in sets:
                made += len(unit).to_bytes(2, "big") + unit
        if self.rest:
            made += self.rest
        elif first[1] not in _SHORT_HEADERS:
            made += bytes((0xFC | chroma, 0xF8 | (depth - 8), 0xF8 | (depth - 8), 0))
        return bytes(made)


def units(data: bytes, length_size: int) -> list[bytes]:
    """Return the units of a packet, with lengths before them or start codes (0).

    >>> units(bytes([0, 0, 1, 103, 66, 0, 0, 0, 1, 104, 128]), 0)
    [b'gB', b'h\\x80']
    """
    if length_size == 0:
        return [part.rstrip(b"\0") for part in data.split(_START)[1:]]
    found, at = [], 0
    while at + length_size <= len(data):
        size = int.from_bytes(data[at : at + length_size], "big")
        at += length_size
        found.append(data[at : at + size])
        at += size
    return found


def with_lengths(found: list[bytes]) -> bytes:
    """Return units as a packet with lengths of four bytes."""
    return b"".join(len(unit).to_bytes(4, "big") + unit for unit in found)


def is_header(unit: bytes) -> bool:
    """Return whether a unit is a parameter set.

    >>> is_header(bytes([103])), is_header(bytes([101]))
    (True, False)
    """
    return bool(unit) and unit[0] & 31 in (_SEQUENCE, _PICTURE)


def _golomb(data: bytes) -> int:
    """Return the first number of a parameter set, in Exp-Golomb code."""
    start = data[:8].ljust(8, b"\0").replace(b"\0\0\3", b"\0\0")
    text = f"{int.from_bytes(start, 'big'):0{8 * len(start)}b}"
    zeros = len(text) - len(text.lstrip("0"))
    return int(text[zeros : 2 * zeros + 1] or "0", 2) - 1


_CALL: Final = "video.cut"
#: x264's names of the profiles that FFmpeg finds.
_PROFILES: Final = {
    "Constrained Baseline": "baseline",
    "Baseline": "baseline",
    "Main": "main",
    "High": "high",
    "High 10": "high10",
    "High 4:2:2": "high422",
    "High 4:4:4 Predictive": "high444",
}
#: Chroma of the header by the pixel format, and bits.
_FORMATS: Final = {
    "yuv420p": (1, 8), "yuvj420p": (1, 8), "yuv422p": (2, 8), "yuvj422p": (2, 8),
    "yuv444p": (3, 8), "yuvj444p": (3, 8), "yuv420p10le": (1, 10), "yuv422p10le": (2, 10),
    "yuv444p10le": (3, 10),
}  # fmt: skip
#: Better than the default, since the frames beside are those of the source.
_QUALITY: Final = {"crf": "17", "preset": "medium"}
#: Data beside a packet that changes the headers.
_CHANGES: Final = frozenset(("new_extradata", "param_change"))


class Unfit(PacketsRefused):
    """A video whose parts cannot be joined with encoded ones; the message is the reason."""


class _Plan(NamedTuple):
    """Which pictures are encoded again and which are copied; times are stamps of the stream."""

    #: The stamps of the pictures before the copied ones, and of those after them.
    head: list[int]
    tail: list[int]
    #: The stamps of the copied packets in the order of decoding.
    body: list[int]
    headers: AvcHeaders


class SmartReport(NamedTuple):
    """The result of a cut."""

    frames: int
    encoded: int
    #: The beginning of what was copied, in seconds of the source.
    key: Fraction


def smart_cut(
    path: PathLike,
    out: PathLike,
    start: Fraction,
    end: Fraction | None,
    audio: bool,
    options: Mapping[str, str],
) -> SmartReport:
    """Write a part of an H.264 video; only frames at its ends are encoded again.

    Args:
        path: the video.
        out: the result.
        start: the beginning, in seconds from the first picture.
        end: the end; None for that of the video.
        audio: keep the sound.
        options: of the encoder.

    Raises:
        Unfit: the video or the part is not of a kind for which that works.
    """
    with PacketFile(path, _CALL, audio) as file, PacketFile(path, _CALL) as decoded:
        try:
            plan = _plan(file, start, end)
        except Unseekable as error:
            raise Unfit(str(error)) from error
        try:
            encoder = _Encoder(decoded, plan.headers, options)
            head = encoder.encode(plan.head)
            tail = encoder.encode(plan.tail)
        except Unfit:
            raise
        except (av.FFmpegError, OSError, ValueError) as error:
            raise Unfit(f"frames cannot be encoded ({ffmpeg_message(error)})") from error
        try:
            with packet_output(out, _CALL) as output:
                _join(output, file, plan, head, tail, end)
        except Unfit:
            raise
        except PacketsRefused as error:
            why = ffmpeg_message(error.__cause__ or error)
            raise Unfit(f"the container does not take it ({why})") from error
        encoded = len(head) + len(tail)
        key = plan.body[0] * Fraction(file.video.time_base) - file.zero
        return SmartReport(encoded + len(plan.body), encoded, key)


def _plan(file: PacketFile, start: Fraction, end: Fraction | None) -> _Plan:
    stream, context = file.video, file.video.codec_context
    if context is None or context.name != "h264":
        name = "the video" if context is None else context.name
        raise Unfit(f"{name} cannot be joined with frames that are encoded again, only H.264 can")
    if context.profile not in _PROFILES or context.pix_fmt not in _FORMATS:
        raise Unfit(f"H.264 of {context.profile}, {context.pix_fmt} cannot be encoded alike")
    try:
        headers = AvcHeaders.parse(context.extradata or b"")
    except (ValueError, IndexError) as error:
        raise Unfit(f"its headers are damaged ({error})") from None
    base = Fraction(stream.time_base)
    first_of = (start + file.zero) // base
    last_of = None if end is None else -(-(end + file.zero) // base)
    found = _scan(file, start, last_of, headers)
    stamps = [stamp for stamp, _ in found]
    first = max((stamp for stamp in stamps if stamp <= first_of), default=None)
    keys = [n for n, (stamp, idr) in enumerate(found) if idr and first is not None
            and stamp >= first]  # fmt: skip
    if first is None or not headers.sequences:
        raise Unfit("it has no key frame before the cut")
    begin = keys[0] if keys else len(found)
    over = len(found)
    if last_of is not None:
        over = next((n for n in range(begin, len(found)) if stamps[n] >= last_of), over)
    body = stamps[begin:over]
    if not body:
        raise Unfit("there is no key frame in the part")
    wanted = sorted(s for s in stamps if s >= first and (last_of is None or s < last_of))
    head = [stamp for stamp in wanted if stamp < body[0]]
    tail = [stamp for stamp in wanted if stamp > max(body)]
    if sorted((*head, *body, *tail)) != wanted or len(set(wanted)) < len(wanted):
        raise Unfit(f"pictures before {float(wanted[-1] * base - file.zero):.3f} s are coded by "
                    "ones after the end")  # fmt: skip
    return _Plan(head, tail, body, headers)


def _scan(
    file: PacketFile, start: Fraction, end: int | None, headers: AvcHeaders
) -> list[tuple[int, bool]]:
    """Return stamps in the order of decoding, and which can be begun at, from before a time on."""
    file.seek_key(start)
    found = []
    for packet in file.packets([file.video]):
        if packet.is_discard:
            continue
        if packet.pts is None:
            raise Unfit("its packets have no times")
        if packet.is_corrupt or {str(s.data_type) for s in packet.iter_sidedata()} & _CHANGES:
            raise Unfit(
                f"its settings change, or it is damaged, at {float(file.time_of(packet)):.3f} s"
            )
        idr = False
        if packet.is_keyframe:
            inside = units(bytes(packet), headers.length_size)
            idr = any(unit and unit[0] & 31 == _IDR for unit in inside)
            headers.add(inside)
        found.append((packet.pts, idr))
        if end is not None and packet.dts >= end:
            break
    return found


class _Encoder:
    """Encodes pictures of a video with its own settings, and parameter sets beside its own."""

    def __init__(self, file: PacketFile, headers: AvcHeaders, options: Mapping[str, str]) -> None:
        self._file = file
        self._given = options
        #: The parameter sets of the video and of what was encoded.
        self.headers = headers
        id = headers.free_id()
        if id is None or len(headers.sequences) > 16:
            raise Unfit("its headers have no room for others")
        self._id = id
        self._own: bytes | None = None

    def encode(self, stamps: list[int]) -> list[StoredPacket]:
        """Return the packets of consecutive pictures."""
        if not stamps:
            return []
        context = self._context()
        made: list[StoredPacket] = []
        count = 0
        for frame, wanted in zip(self._decoded(stamps), stamps, strict=False):
            if frame.pts != wanted:
                raise Unfit("frames that its packets promise are not shown")
            frame.pict_type = 0
            made += map(_stored, context.encode(frame))
            count += 1
        made += map(_stored, context.encode(None))
        if count != len(stamps) or len(made) != count:
            raise Unfit("frames that its packets promise cannot be decoded")
        own = bytes(context.extradata or b"")
        if self._own is not None and own != self._own:
            raise Unfit("the encoder does not repeat its headers")
        self._own = own
        self.headers.add(units(own, 0))
        if self.headers.length_size == 0:  # where headers are in packets, these must be, too
            inside = with_lengths([u for u in units(own, 0) if is_header(u)])
            made = [replace(p, data=inside + p.data) if p.key else p for p in made]
        return made

    def _context(self) -> AvObject:
        stream, like = self._file.video, self._file.video.codec_context
        level = self.headers.level
        params = f"sps-id={self._id}:level={level // 10}.{level % 10}:repeat-headers=0"
        options = {
            **_QUALITY, "profile": _PROFILES[like.profile], "bf": "0", **self._given,
            "x264-params": params,
        }  # fmt: skip
        context = av.CodecContext.create("libx264", "w")
        context.width, context.height, context.pix_fmt = like.width, like.height, like.pix_fmt
        context.time_base = Fraction(stream.time_base)
        context.framerate = 1 / self._file.step
        if stream.sample_aspect_ratio:
            context.sample_aspect_ratio = stream.sample_aspect_ratio
        context.color_range, context.colorspace = like.color_range, like.colorspace
        context.color_primaries, context.color_trc = like.color_primaries, like.color_trc
        context.flags |= av.codec.context.Flags.global_header
        context.options = repeatable_options("libx264", options, like.width)
        context.open(strict=False)
        return context

    def _decoded(self, stamps: list[int]) -> Iterator[AvObject]:
        """Yield the decoded pictures from the first stamp to the last, in order."""
        file = self._file
        stream = file.video
        size = stream.codec_context.width, stream.codec_context.height
        file.seek_key(stamps[0] * Fraction(stream.time_base) - file.zero)
        stream.codec_context.flush_buffers()
        for frame in file.container.decode(stream):
            if frame.pts is None or frame.pts < stamps[0]:
                continue
            if frame.interlaced_frame or (frame.width, frame.height) != size:
                raise Unfit("its pictures have fields, or change their size")
            yield frame
            if frame.pts >= stamps[-1]:
                return


def _stored(packet: AvObject, length_size: int = 0) -> StoredPacket:
    data = bytes(packet)
    if length_size != 4:
        data = with_lengths(units(data, length_size))
    return StoredPacket(packet.pts, packet.duration or 0, bool(packet.is_keyframe), data)


def _join(
    output: AvObject,
    file: PacketFile,
    plan: _Plan,
    head: list[StoredPacket],
    tail: list[StoredPacket],
    end: Fraction | None,
) -> None:
    """Write encoded packets, copied ones, and the sound beside them, in the order of time."""
    base, body, headers = Fraction(file.video.time_base), plan.body, plan.headers
    video = output.add_stream_from_template(file.video)
    chroma, depth = _FORMATS[file.video.codec_context.pix_fmt]
    video.codec_context.extradata = headers.extradata(chroma, depth)
    sounds = {s.index: output.add_stream_from_template(s) for s in file.sounds}
    order = np.array([*(p.pts for p in head), *body, *(p.pts for p in tail)], np.int64)
    first = int(order.min())
    decoding = iter((decoding_times(order) - first).tolist())

    def put(*packets: StoredPacket) -> None:
        for stored in packets:
            moved = replace(stored, pts=stored.pts - first)
            output.mux(moved.packet(next(decoding), video, base))

    begin = first * base - file.zero
    waiting, copied = list(head), 0
    file.seek(begin - EARLIER if begin else Fraction(0))
    over = set[int]()
    for packet in file.packets([file.video, *file.sounds]):
        index = packet.stream.index
        if index == file.video.index:
            if copied == len(body):
                over.add(index)
            elif packet.pts == body[copied] and not packet.is_discard:
                put(*waiting, _stored(packet, headers.length_size))
                waiting = []
                copied += 1
        else:
            time = file.time_of(packet)
            if end is not None and time >= end:
                over.add(index)
            elif time >= begin:
                while waiting and waiting[0].pts * base - file.zero <= time:
                    put(waiting.pop(0))
                shift_packet(packet, -begin - file.zero)
                packet.stream = sounds[index]
                output.mux(packet)
        if copied == len(body) and len(over) == 1 + len(sounds):
            break
    if copied != len(body):
        raise Unfit("its packets are not the same when they are read again")
    put(*tail)
