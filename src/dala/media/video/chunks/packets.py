"""Encoding a part of a video: decoded from a key frame, filtered, and kept as packets in a file."""

from __future__ import annotations

import base64
import json
import math
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from io import BytesIO
from itertools import chain, takewhile
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias

import numpy as np

from dala.errors import VideoError
from dala.media.filters.plans import Filter
from dala.media.frame import Frame
from dala.media.video.animated.reader import AnimationReader
from dala.media.video.chain import VideoChain
from dala.media.video.chunks.index import HIDING, VideoIndex, VideoPart
from dala.media.video.decoding.planes import open_planes, pixel_aspect
from dala.media.video.encode import common_options
from dala.media.video.options import DecodeOptions, EncodeOptions, FilterOptions
from dala.media.video.output.layouts import deep_layout
from dala.media.video.output.opening import PictureEncoding
from dala.media.video.output.target import MUXERS, Target
from dala.media.video.source import AvObject, VideoFile, av
from dala.media.video.writer import Writer
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


#: Filters as a list, or as a function that is called with each frame in order.
Filters: TypeAlias = "Sequence[Filter] | Callable[[Frame], Sequence[Filter]]"


def part_chain(filters: Filters, device: str | None) -> VideoChain:
    """Return the chain of filters for the frames of parts, one part after another.

    Example::

        with part_chain(["denoise"], "cpu") as chain:
            encode_part(source, label, index, part, chain, settings, target, report)
    """
    # In order, for filters with a memory.
    return VideoChain(
        filters, device=device, range="limited", workers=1 if callable(filters) else None
    )


@dataclass(frozen=True, kw_only=True)
class EncoderSettings(FilterOptions):
    """The encoding of parts; the same for all parts of a video."""

    #: The container as a suffix, such as ".mp4".
    suffix: str
    device: str | None = None
    #: Encoding threads; the result may depend on them.
    threads: int = 1
    #: Decoding threads; 0 for some of the cores.
    decoders: int = 0


@dataclass(frozen=True)
class EncodedPart:
    """The result of encoding a part."""

    frames: int
    #: Frames that the packets of the source promise and that are not shown.
    hidden: int
    width: int
    height: int


def encode_part(
    source: VideoFile,
    label: str,
    index: VideoIndex,
    part: VideoPart,
    stages: VideoChain,
    settings: EncoderSettings,
    target: Path,
    report: Callable[[int], None],
) -> EncodedPart:
    """Filter a part of a video and write its packets to a file.

    Decoding, filtering and encoding overlap, each in threads of its own.

    Args:
        source: what ``video.open`` reads.
        label: the name of the video, for messages.
        index: of the video.
        part: which frames.
        stages: the filters, of :func:`part_chain`.
        settings: how to encode.
        target: the file of packets.
        report: is called with the number of frames so far.

    Raises:
        VideoError: the part cannot be decoded, or has other frames than the index says.
    """
    with ExitStack() as held:
        fields: str | bool | None = None
        if settings.deinterlace:
            fields = (index.scan or "auto") if index.scan != "none" else False
        decoding = DecodeOptions.of(settings, deinterlace=fields, threads=settings.decoders)
        reader = held.enter_context(open_planes(source, decoding, keep_hdr=settings.hdr == "keep"))
        if isinstance(reader, AnimationReader):
            raise VideoError(f"{label!r} is an animated picture. `dala filter` takes it.")
        start = index.time(part.start)
        if part.start > 0 and start > 0:
            reader.keep_size(index.width, index.height, index.pixels)
            reader.seek(start)
        seen = _Seen(index, part, label)
        frames = seen.wanted(stages.stream(seen.ahead(reader)))
        first = next(frames, None)
        if first is None:
            raise VideoError(f"{label!r} has no frames from {seen.place}.")
        encoding = EncodeOptions.of(
            settings, hdr=None, fps=reader.fps, pixel_aspect=pixel_aspect(reader, first)
        )
        if reader.depth == "float" and first.hdr is None:
            codec, layout = deep_layout(encoding.codec, f"result{settings.suffix}", reader.bits)
            encoding = replace(encoding, codec=codec, pixel_format=layout)
        with Writer(PacketTarget(target, settings.suffix.lstrip(".")), encoding) as sink:
            width, height, frames = first.width, first.height, chain([first], frames)
            del first  # a frame that is referenced keeps its memory from being reused
            for frame in frames:
                sink.write(frame, copy=False)
                report(sink.frames)
            count = sink.frames
    return EncodedPart(count, seen.check(), width, height)


class _Seen:
    """Takes the frames of a part out of all decoded ones, and checks that none is missing."""

    def __init__(self, index: VideoIndex, part: VideoPart, label: str) -> None:
        self._index = index
        self._part = part
        self._label = label
        self._found: list[int] = []
        #: Frames from ``_first`` until ``_last`` are wanted; filters see those from ``_warm`` on.
        self._first, self._last, self._warm = -math.inf, math.inf, -math.inf
        if part.first > 0 and not index.problem:
            self._first, self._warm = (int(index.times[n]) for n in (part.first, part.warm))
        if part.last < index.frames and not index.problem:
            self._last = int(index.times[part.last])

    @property
    def place(self) -> str:
        """The times of the part, for messages."""
        end = min(self._part.last, self._index.frames - 1)
        start = float(self._index.time(self._part.first))
        return f"{start:.3f} to {float(self._index.time(end)):.3f} s"

    def ahead(self, frames: Iterable[Frame]) -> Iterator[Frame]:
        """Return the frames that filters see: those of the part, and some before it."""
        return filter(self._is_seen, takewhile(lambda frame: _pts(frame) < self._last, frames))

    def _is_seen(self, frame: Frame) -> bool:
        stamp = _pts(frame)
        if stamp >= self._first:
            self._found.append(stamp)
        return stamp >= self._warm

    def wanted(self, frames: Iterator[Frame]) -> Iterator[Frame]:
        """Return the filtered frames of the part."""
        return filter(lambda frame: _pts(frame) >= self._first, frames)

    def check(self) -> int:
        """Return how many frames were not shown, which only some codecs do.

        Raises:
            VideoError: frames are missing, or there are others than the index has.
        """
        index, part = self._index, self._part
        if index.problem:
            return 0
        wanted = index.times[part.first : part.last]
        found = np.array(self._found, np.int64)
        extra = np.setdiff1d(found, wanted)
        if len(extra):
            at = float(int(extra[0]) * index.time_base)
            raise VideoError(
                f"{self._label!r} has a frame at {at:.3f} s that none of its packets is for. "
                "Filter it alone: chunk=None."
            )
        missing = np.setdiff1d(wanted, found)
        if part.first < index.undecodable:
            missing = missing[missing >= index.times[index.undecodable]]
        if len(missing) and index.codec not in HIDING:
            at = float(int(missing[0]) * index.time_base)
            raise VideoError(
                f"{self._label!r} is damaged: {len(missing)} frames from {at:.3f} s on cannot be "
                "decoded. `dala filter` saves those that can."
            )
        return len(missing)


def _pts(frame: Frame) -> int:
    assert frame.pts is not None
    return frame.pts
