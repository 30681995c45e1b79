"""Encoding a part of a video: decoded from a key frame, filtered, and kept as packets."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain, takewhile
from pathlib import Path
from typing import TypeAlias

import numpy as np

from dala.errors import VideoError
from dala.media.filters.plans import Filter
from dala.media.frame import Frame
from dala.media.video.animated.reader import AnimationReader
from dala.media.video.chain import VideoChain
from dala.media.video.chunks.index import HIDING, VideoIndex, VideoPart
from dala.media.video.chunks.packets import PacketTarget
from dala.media.video.decoding.planes import open_planes, pixel_aspect
from dala.media.video.options import DecodeOptions, EncodeOptions, FilterOptions
from dala.media.video.output.layouts import deep_layout
from dala.media.video.source import VideoFile
from dala.media.video.writer import Writer

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
    """Takes the frames of a part out of those that are decoded, and checks that all are there."""

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
