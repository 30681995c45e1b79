"""Encoding a part of a video: decoded from a key frame, filtered, and kept as packets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from dala.errors import VideoError
from dala.media.filters.plans import Filter
from dala.media.frame import Frame
from dala.media.video.animated.reader import AnimationReader
from dala.media.video.borrowed import BorrowedFrame
from dala.media.video.chain import VideoChain
from dala.media.video.chunks.index import HIDING, VideoIndex, VideoPart
from dala.media.video.chunks.packets import PacketTarget
from dala.media.video.decoding.planes import open_planes, pixel_aspect
from dala.media.video.output.layouts import deep_layout
from dala.media.video.source import VideoFile
from dala.media.video.writer import Writer

#: Filters as a list, or as a function that is called with each frame in order.
Filters: TypeAlias = "Sequence[Filter] | Callable[[Frame | BorrowedFrame], Sequence[Filter]]"


def part_chain(filters: Filters, device: str | None) -> VideoChain:
    """Return what filters the frames of parts, one part after another.

    Example::

        with part_chain(["denoise"], "cpu") as chain:
            encode_part(source, label, index, part, chain, settings, target, report)
    """
    # In order, for filters with a memory.
    return VideoChain(
        filters, device=device, range="limited", workers=1 if callable(filters) else None
    )


@dataclass(frozen=True)
class EncoderSettings:
    """How parts are encoded; the same for all parts of a video."""

    #: The container as a suffix, such as ".mp4".
    suffix: str
    codec: str | None = None
    encoder: str | None = None
    options: Mapping[str, str] | None = None
    #: Encoding threads; the result may depend on them.
    threads: int = 1
    deinterlace: bool = False
    on_resize: str = "scale"
    keep_hdr: bool = False
    device: str | None = None
    #: Decoding threads; 0 for some of the cores.
    decoders: int = 0


@dataclass(frozen=True)
class EncodedPart:
    """What became of a part."""

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
        deinterlace: str | bool | None = None
        if settings.deinterlace:
            deinterlace = (index.scan or "auto") if index.scan != "none" else False
        reader = held.enter_context(
            open_planes(
                source,
                settings.device,
                deinterlace=deinterlace,
                on_resize=settings.on_resize,
                keep_hdr=settings.keep_hdr,
                threads=settings.decoders,
            )
        )
        if isinstance(reader, AnimationReader):
            raise VideoError(f"{label!r} is an animated picture. `dala filter` takes it.")
        start = index.time(part.start)
        if part.start > 0 and start > 0:
            reader.keep_size(index.width, index.height, index.pixels)
            reader.seek(start)
        given = reader.borrow() if stages.shares_memory else reader
        seen = _Seen(index, part, label)
        frames = seen.wanted(stages.stream(seen.ahead(given)))
        first = next(frames, None)
        if first is None:
            raise VideoError(f"{label!r} has no frames from {seen.place}.")
        codec, layout = settings.codec, None
        if reader.depth == "float" and first.hdr is None:
            codec, layout = deep_layout(codec, f"result{settings.suffix}", reader.bits)
        with Writer(
            PacketTarget(target, settings.suffix.lstrip(".")),
            fps=reader.fps,
            codec=codec,
            encoder=settings.encoder,
            options=dict(settings.options or {}),
            threads=settings.threads,
            device=settings.device,
            pixel_format=layout,
            pixel_aspect=pixel_aspect(reader, first),
        ) as sink:
            width, height = first.width, first.height
            frame: Frame | None = first
            del first  # a frame that is referenced keeps its memory from being reused
            while frame is not None:
                sink.write(frame, copy=False)
                report(sink.frames)
                frame = None
                frame = next(frames, None)
            count = sink.frames
    return EncodedPart(count, seen.check(), width, height)


class _Seen:
    """Takes the frames of a part out of those that are decoded, and checks that all are there."""

    def __init__(self, index: VideoIndex, part: VideoPart, label: str) -> None:
        self._index = index
        self._part = part
        self._label = label
        self._found: list[int] = []
        whole = bool(index.problem)
        #: Times from ``_first`` on and before ``_last`` are wanted; None for no limit.
        self._first = None if part.first == 0 or whole else int(index.times[part.first])
        last = part.last >= index.frames or whole
        self._last = None if last else int(index.times[part.last])

    @property
    def place(self) -> str:
        """The times of the part, for messages."""
        end = min(self._part.last, self._index.frames - 1)
        start = float(self._index.time(self._part.first))
        return f"{start:.3f} to {float(self._index.time(end)):.3f} s"

    def ahead(self, frames: Iterable[Frame | BorrowedFrame]) -> Iterator[Frame | BorrowedFrame]:
        """Yield the frames that filters see: those of the part, and some before it."""
        warm = None if self._first is None else int(self._index.times[self._part.warm])
        source = iter(frames)
        while (frame := next(source, None)) is not None:
            stamp = frame.pts
            assert stamp is not None
            if self._last is not None and stamp >= self._last:
                return
            if warm is not None and stamp < warm:
                del frame
                continue
            if self._first is None or stamp >= self._first:
                self._found.append(stamp)
            made = [frame]
            del frame  # keep no reference to memory that the decoder reuses
            yield made.pop()

    def wanted(self, frames: Iterator[Frame]) -> Iterator[Frame]:
        """Yield the filtered frames of the part."""
        while (frame := next(frames, None)) is not None:
            stamp = frame.pts
            assert stamp is not None
            made = [frame]
            del frame
            if self._first is None or stamp >= self._first:
                yield made.pop()

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
