"""Files of encoded packets with their exact times: parts of a video on their way into one file.

Containers round times or move them to zero. Here a packet keeps what the encoder gave it. The file
begins with a header (the settings of the encoder), and ends with the times of all packets.
"""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from fractions import Fraction
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np

from dala.errors import VideoError
from dala.media.video.encode import common_options
from dala.media.video.output.opening import PictureEncoding
from dala.media.video.output.target import MUXERS, Target
from dala.media.video.source import AvObject, av
from dala.resources import Closing
from dala.typing import NDArray

_MAGIC: Final = b"DALAPKT1"
_LENGTH: Final = struct.Struct("<Q")
#: Presentation time, duration, flags and bytes of a packet.
_PACKET: Final = struct.Struct("<qqBI")
_KEY: Final = 1
#: Data beside a packet that a decoder needs. PyAV cannot store it again.
_NEEDED: Final = frozenset(("matroska_block_additional", "new_extradata", "param_change"))


@dataclass(frozen=True)
class PacketSettings(PictureEncoding):
    """The settings of an encoder, so that another process can open the same one."""

    extradata: str = ""

    @property
    def base(self) -> Fraction:
        """The unit of the packets' times, in seconds."""
        return Fraction(self.time_base)


@dataclass(frozen=True)
class StoredPacket:
    """A packet of a file: times are in units of the settings' time base."""

    pts: int
    duration: int
    key: bool
    data: bytes

    def packet(self, decoding: int, stream: AvObject, base: Fraction) -> AvObject:
        """Return the packet of a stream, with its time of decoding."""
        made = av.Packet(self.data)
        made.stream, made.time_base = stream, base
        made.pts, made.dts = self.pts, decoding
        made.duration, made.is_keyframe = self.duration, self.key
        return made


class PacketTarget(Target):
    """A target of ``video.write`` that keeps packets instead of a container.

    Args:
        path: the file of packets.
        format: the container that the packets will be in, as a suffix: encoders go by it.
    """

    def __init__(self, path: Path, format: str) -> None:
        super().__init__(BytesIO(), format)
        self.label = str(path)
        self._file = path

    def open(self, unit: Fraction | None = None) -> AvObject:
        """Return a muxer of packets."""
        return _PacketOutput(self._file, MUXERS.get(self.format, self.format))

    def complete(self) -> None:
        """Leave the file as it is: it is whole."""

    def discard(self) -> None:
        """Remove the file."""
        with suppress(OSError):
            self._file.unlink(missing_ok=True)


class _PacketOutput:
    """As much of a container of PyAV as an encoder uses.

    A real container of the same kind makes the stream, so that the encoder is set up for it, for
    example with its headers outside of the packets, which go to a file of our own.
    """

    def __init__(self, path: Path, muxer: str) -> None:
        self._container = av.open(BytesIO(), "w", format=muxer)  # which gets nothing
        self.format = self._container.format
        self.name = str(path)
        self._path = path
        self._stream: AvObject = None
        self._asked: tuple[str, Fraction, dict[str, str]] = ("", Fraction(1), {})
        self._file: BinaryIO | None = None
        self._times: list[int] = []

    def add_stream(
        self, codec: str, *, rate: Fraction, options: dict[str, str], hwaccel: AvObject = None
    ) -> AvObject:
        self._asked = codec, Fraction(rate), common_options(dict(options))
        self._stream = self._container.add_stream(
            codec, rate=rate, options=options, hwaccel=hwaccel
        )
        return self._stream

    def start_encoding(self) -> None:
        context = self._stream.codec_context
        codec, rate, options = self._asked
        aspect, tag = context.sample_aspect_ratio, context.codec_tag
        named = tag.isprintable() and tag.strip("\0 ") and len(tag) == 4
        settings = PacketSettings(
            codec,
            options,
            str(rate),
            str(Fraction(context.time_base)),
            context.width,
            context.height,
            context.pix_fmt,
            str(Fraction(aspect)) if aspect else "",
            context.thread_count,
            (
                int(context.color_range),
                int(context.colorspace),
                int(context.color_primaries),
                int(context.color_trc),
            ),
            tag if named else "",
            base64.b64encode(context.extradata or b"").decode(),
        )
        self._base = self._unit = settings.base
        #: The unit of the last packet's times has so many of ours.
        self._scale = Fraction(1)
        self._file = self._path.open("wb")
        head = json.dumps(asdict(settings), sort_keys=True).encode()
        self._file.write(_MAGIC + _LENGTH.pack(len(head)) + head)

    def mux_one(self, packet: AvObject) -> None:
        assert self._file is not None
        if packet.pts is None:
            raise VideoError("video.write: the encoder made a packet without a time.")
        if packet.time_base != self._unit:
            self._unit = Fraction(packet.time_base)
            self._scale = self._unit / self._base
        scale = 1 if self._scale == 1 else self._scale
        pts = round(packet.pts * scale)
        beside = {str(one.data_type) for one in packet.iter_sidedata()} & _NEEDED
        if beside:
            raise VideoError(
                f"video.write: the encoder stores {', '.join(sorted(beside))} beside its packets, "
                "which cannot be joined from parts. Use another codec."
            )
        data = bytes(packet)
        duration = round((packet.duration or 0) * scale)
        flags = _KEY if packet.is_keyframe else 0
        self._file.write(_PACKET.pack(pts, duration, flags, len(data)) + data)
        self._times.append(pts)

    def close(self) -> None:
        file, self._file = self._file, None
        with closing(self._container):
            if file is not None:
                with file:
                    at = file.tell()
                    file.write(zlib.compress(np.asarray(self._times, "<i8").tobytes()))
                    file.write(_LENGTH.pack(at))


class PacketReader(Closing):
    """Reads a file of packets.

    Args:
        file: open for reading, able to seek; it is closed with the reader.
        label: its name, for messages.

    Raises:
        VideoError: it is not such a file, or it is not whole.
    """

    def __init__(self, file: BinaryIO, label: str) -> None:
        self._file = file
        self._label = label
        try:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise ValueError("it has another beginning")
            (count,) = _LENGTH.unpack(file.read(_LENGTH.size))
            found = json.loads(file.read(count))
            #: What the encoder was opened with.
            self.settings = PacketSettings(**{**found, "tags": tuple(found["tags"])})
            self._start = file.tell()
            end = file.seek(0, 2) - _LENGTH.size
            file.seek(end)
            (self._end,) = _LENGTH.unpack(file.read(_LENGTH.size))
            file.seek(self._end)
            #: The presentation times in the order of decoding.
            self.times: NDArray = np.frombuffer(zlib.decompress(file.read(end - self._end)), "<i8")
        except (ValueError, TypeError, KeyError, struct.error, zlib.error) as error:
            file.close()
            raise VideoError(f"video: {label!r} is no file of packets ({error}).") from error

    def __iter__(self) -> Iterator[StoredPacket]:
        file = self._file
        file.seek(self._start)
        for _ in range(len(self.times)):
            head = file.read(_PACKET.size)
            if len(head) < _PACKET.size:
                raise VideoError(f"video: {self._label!r} ends early.")
            pts, duration, flags, count = _PACKET.unpack(head)
            data = file.read(count)
            if len(data) < count:
                raise VideoError(f"video: {self._label!r} ends early.")
            yield StoredPacket(pts, duration, bool(flags & _KEY), data)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def reorder_depth(times: NDArray) -> int:
    """Return by how many packets decoding must be ahead, from times in the order of decoding.

    >>> reorder_depth(np.array([0, 1, 2])), reorder_depth(np.array([0, 3, 1, 2]))
    (0, 1)
    """
    order = np.argsort(np.argsort(times, kind="stable"), kind="stable")
    return int(max(0, np.max(np.arange(len(times)) - order, initial=0)))
