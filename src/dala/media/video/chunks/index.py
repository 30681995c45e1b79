"""The index of a video: the times of its frames and its key frames, by demuxing only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from itertools import groupby
from typing import Any, Final, Self

import numpy as np

from dala.budget import checked
from dala.errors import VideoError
from dala.media.video.decoding.input import VideoInput
from dala.media.video.options import DecodeOptions
from dala.media.video.source import VideoSource
from dala.media.video.timing import DEFAULT_RATE, SPLICE, is_broadcast
from dala.typing import NDArray

#: The form of the index in files.
_VERSION: Final = 1
#: Codecs that store frames which are not shown.
HIDING: Final = ("vp8", "vp9", "av1")
#: Stamps beyond this are damage.
_LARGEST: Final = 1 << 56


@dataclass(frozen=True)
class VideoIndex:
    """Frames and key frames of a video, in the order in which they are shown.

    Times are on the frames' clock (as of ``video.open``), in units of ``time_base``.
    """

    time_base: Fraction
    #: The time of each frame.
    times: NDArray
    #: Positions of key frames among the frames.
    keys: NDArray
    #: For each key frame, whether frames before it need it: an open group of pictures.
    opened: NDArray
    width: int
    height: int
    pixels: str
    codec: str
    rate: Fraction | None
    #: Bytes of the pictures.
    size: int
    #: Why the video cannot be split; "" if it can.
    problem: str = ""
    #: Frames at the beginning that need others before the first key frame, which are not there.
    undecodable: int = 0
    #: How it is scanned, if it is to be deinterlaced: "flags", "tff", "bff", "none"; "" else.
    scan: str = ""
    facts: dict[str, str] = field(default_factory=dict)

    @property
    def frames(self) -> int:
        """The number of frames."""
        return len(self.times)

    @property
    def seconds(self) -> float:
        """The duration, with that of the last frame."""
        if not len(self.times):
            return 0.0
        return float((int(self.times[-1]) - int(self.times[0])) * self.time_base + self.step)

    @property
    def step(self) -> Fraction:
        """The usual duration of a frame in seconds."""
        return 1 / (self.rate or DEFAULT_RATE)

    def time(self, number: int) -> Fraction:
        """Return the time of a frame in seconds."""
        return int(self.times[number]) * self.time_base

    def to_json(self) -> dict[str, Any]:
        """Return the index as values of JSON; equal steps between frames are counted."""
        values = {
            **asdict(self),
            "version": _VERSION,
            "time_base": str(self.time_base),
            "rate": None if self.rate is None else str(self.rate),
            "times": _runs(self.times),
            "keys": _runs(self.keys),
        }
        values["opened"] = np.flatnonzero(self.opened).tolist()
        return values

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """Return the index of values of JSON.

        Raises:
            VideoError: they are none.
        """
        try:
            given = dict(values)
            if given.pop("version") != _VERSION:
                raise ValueError("another version")
            keys = _from_runs(given.pop("keys"))
            opened = np.zeros(len(keys), bool)
            opened[given.pop("opened")] = True
            rate = given.pop("rate")
            return cls(
                time_base=Fraction(given.pop("time_base")),
                times=_from_runs(given.pop("times")),
                keys=keys,
                opened=opened,
                rate=None if rate is None else Fraction(rate),
                **given,
            )
        except (LookupError, TypeError, ValueError, ArithmeticError) as error:
            raise VideoError(f"video: it is no index of a video ({error}).") from error


def _runs(values: NDArray) -> list[list[int]]:
    """Return numbers as the first, and their differences with how often each follows.

    >>> _runs(np.array([5, 6, 7, 9])), _from_runs([[5], [1, 2], [2, 1]]).tolist()
    ([[5], [1, 2], [2, 1]], [5, 6, 7, 9])
    """
    if not len(values):
        return []
    steps = np.diff(values).tolist()
    return [[int(values[0])], *([step, len(list(same))] for step, same in groupby(steps))]


def _from_runs(runs: Sequence[Sequence[int]]) -> NDArray:
    if not runs:
        return np.zeros(0, np.int64)
    steps = [np.full(count, step, np.int64) for step, count in runs[1:]]
    return np.cumsum(np.concatenate([np.array([runs[0][0]], np.int64), *steps]))


def index_video(source: VideoSource, call: str) -> VideoIndex:
    """Index a video by its packets; nothing is decoded.

    Raises:
        VideoError: it cannot be opened, or has no frames.
    """
    opened = VideoInput(source, DecodeOptions(threads=1), call)
    try:
        return _indexed(opened, call)
    finally:
        opened.close()


def _indexed(opened: VideoInput, call: str) -> VideoIndex:
    stream = opened.stream
    context = stream.codec_context
    shown: list[int] = []
    keys: list[int] = []
    missing = size = 0
    whole = False  # whether a key frame comes first, though it may not be shown
    problem = ""
    corrupt: Fraction | None = None
    packet_base = Fraction(stream.time_base)
    for packet in checked(opened.container.demux(stream), call):
        if not packet.size:
            continue
        size += packet.size
        if packet.is_corrupt and corrupt is None:
            corrupt = Fraction(packet.dts or 0) * packet_base
        if packet.is_discard:
            whole = whole or packet.is_keyframe
            continue  # before the beginning that an edit list sets
        if packet.pts is None or abs(packet.pts) > _LARGEST:
            missing += 1
            continue
        if packet.is_keyframe:
            keys.append(packet.pts)
            whole = whole or not shown
        shown.append(packet.pts)
    if not shown and not missing:
        raise VideoError(f"{call}: {opened.source.label!r} has no video frames.")
    if corrupt is not None:
        raise VideoError(
            f"{call}: {opened.source.label!r} is damaged near {float(corrupt):.3f} s: a packet is "
            "truncated. `dala filter` saves the frames that can be decoded."
        )
    order = np.array(shown, np.int64)
    times = np.sort(order)
    if missing:
        problem = "frames have no times of their own"
    elif opened.container.format.name == "avi":
        problem = "AVI has no times of frames"
    elif len(times) > 1 and not (np.diff(times) > 0).all():
        problem = "two frames have the same time"
    elif not keys:
        problem = "it has no key frames"
    elif (
        is_broadcast(opened.container)
        and float(np.diff(times).max(initial=0) * packet_base) > SPLICE
    ):
        problem = "its clock leaps"
    elif context.name == "mpeg4":
        problem = "MPEG-4 part 2 may pack two frames into one packet"
    begin = round(opened.begin / packet_base)
    positions = np.searchsorted(times, np.sort(np.array(keys, np.int64)))
    return VideoIndex(
        packet_base,
        times - begin,
        np.unique(positions),
        _opened_groups(order, times, np.unique(positions)),
        context.width,
        context.height,
        context.pix_fmt or "",
        context.name,
        opened.rate,
        size,
        problem,
        0 if whole and not _leads(order, keys) else int(positions[0]) if len(positions) else 0,
        facts={"container": opened.container.format.name},
    )


def _leads(order: NDArray, keys: list[int]) -> bool:
    """Return whether frames are shown before the first key frame, but decoded after it."""
    return bool(keys) and len(order) > 0 and int(order[0]) == keys[0] > int(order.min())


def _opened_groups(order: NDArray, times: NDArray, keys: NDArray) -> NDArray:
    """Return for each key frame whether a frame that is shown before it is decoded after it."""
    if not len(keys):
        return np.zeros(0, bool)
    # The earliest time among the frames that are decoded from each place on.
    earliest = np.minimum.accumulate(order[::-1])[::-1]
    places = {int(time): place for place, time in enumerate(order)}
    return np.array([earliest[places[int(times[k])]] < times[k] for k in keys], bool)


@dataclass(frozen=True)
class VideoPart:
    """A part of a video: frames ``first`` to ``last`` (excluded), and where to start decoding."""

    number: int
    first: int
    last: int
    #: The first frame that is decoded, a key frame.
    start: int
    #: The first frame that filters see, so that those with a memory have one.
    warm: int


def split_video(
    index: VideoIndex, seconds: float | Fraction | None, halo: int = 0
) -> list[VideoPart]:
    """Return the parts of a video: each begins at a key frame and is at least so long.

    A rest of less than half of that belongs to the part before. A video that cannot be split is
    one part.

    Args:
        index: of the video.
        seconds: the least duration of a part; None for one part.
        halo: frames before a part that its filters see.
    """
    cuts = [0]
    if seconds is not None and not index.problem:
        least = Fraction(seconds).limit_denominator(1_000_000)  # as it was written
        end = index.time(index.frames - 1) + index.step
        for key in index.keys.tolist():
            enough = index.time(key) - index.time(cuts[-1]) >= least
            if key > index.undecodable and enough and end - index.time(key) >= least / 2:
                cuts.append(key)
    parts = []
    for number, (first, last) in enumerate(zip(cuts, [*cuts[1:], index.frames], strict=True)):
        warm = max(0, first - halo)
        parts.append(VideoPart(number, first, last, _start(index, warm), warm))
    return parts


def _start(index: VideoIndex, frame: int) -> int:
    """Return the key frame from which a frame can be decoded, one earlier for open groups."""
    if index.problem or frame == 0:
        return 0
    at = int(np.searchsorted(index.keys, frame, side="right")) - 1
    if at > 0 and index.opened[at]:
        at -= 1
    return int(index.keys[at]) if at > 0 else 0
