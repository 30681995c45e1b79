"""Stitching: packets of parts in one file, with sound and all else once from the source."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Final

import numpy as np

from dala.errors import VideoError
from dala.media.video.chunks.checking import Stitched, check_stitched
from dala.media.video.chunks.packets import (
    PacketReader,
    PacketSettings,
    StoredPacket,
    reorder_depth,
)
from dala.media.video.encode import repeatable_options
from dala.media.video.output.opening import open_encoder
from dala.media.video.output.target import Target
from dala.media.video.source import AvObject, VideoSource, ffmpeg_errors
from dala.media.video.tracks import TrackGroup, Tracks
from dala.typing import NDArray

_CALL: Final = "video stitching"


#: Opens the packets of a part, by its number.
OpenPart = Callable[[int], PacketReader]


def stitch(
    parts: int,
    open_part: OpenPart,
    source: VideoSource | None,
    target: Path,
    *,
    sound: bool = True,
    tracks: Tracks | None = None,
    format: str | None = None,
    expected: tuple[NDArray, Fraction] | None = None,
) -> Stitched:
    """Write the packets of parts to a file, with the other tracks of the source, and check it.

    Args:
        parts: their number.
        open_part: opens the packets of a part.
        source: the video that sound, subtitles, chapters and tags are taken from; None for none.
        target: the file; it appears when it is complete.
        sound: take the sound.
        tracks: sound of another kind, instead of a source; it is closed.
        format: the container as a suffix; by default that of the target.
        expected: the times that the frames must have, in order, and their unit.

    Raises:
        VideoError: parts do not fit together, or the file is not what it should be.
    """
    with ExitStack() as held:
        group = TrackGroup(() if tracks is None else (tracks,))
        held.callback(group.close)
        settings, times, firsts = _facts(parts, open_part)
        if expected is not None:
            _check_expected(times, settings.base, *expected)
        if source is not None:
            group.members.append(Tracks(source, _CALL, sound=sound, everything=True))
        made = Target(target, format)
        try:
            with ffmpeg_errors(f"{_CALL}: cannot write {made.label!r}"):
                with closing(made.open(settings.base)) as output:
                    shift = source is None  # pictures that were made begin at 0
                    _write(output, settings, times, _packets(parts, open_part), group, shift)
                made.complete()
        except BaseException:
            made.discard()
            raise
    return check_stitched(target, times, settings.base, firsts, source if sound else None)


def _facts(parts: int, open_part: OpenPart) -> tuple[PacketSettings, NDArray, list[int]]:
    """Return the settings of all parts, their times in the order of decoding, and the seams."""
    settings: PacketSettings | None = None
    found: list[NDArray] = []
    last: int | None = None
    for number in range(parts):
        with open_part(number) as reader:
            if settings is None:
                settings = reader.settings
            elif reader.settings != settings:
                raise VideoError(
                    f"{_CALL}: part {number} was encoded with other settings than part 0: "
                    f"{_difference(settings, reader.settings)}."
                )
            if not len(reader.times):
                raise VideoError(f"{_CALL}: part {number} is empty.")
            if last is not None and int(reader.times.min()) <= last:
                raise VideoError(f"{_CALL}: part {number} begins before part {number - 1} ends.")
            last = int(reader.times.max())
            found.append(reader.times)
    assert settings is not None
    firsts = np.cumsum([0, *(len(times) for times in found[:-1])]).tolist()
    return settings, np.concatenate(found), firsts


def _check_expected(times: NDArray, base: Fraction, wanted: NDArray, unit: Fraction) -> None:
    """Check that the parts have exactly the frames that they should have."""
    found = np.sort(times)
    if base != unit:  # the codec or the container has a coarser clock
        exact = len(found) == len(wanted)
    else:
        exact = np.array_equal(found, wanted)
    if not exact:
        odd = np.setxor1d(found, wanted)
        at = f" First at {float(int(odd[0]) * base):.3f} s." if base == unit and len(odd) else ""
        raise VideoError(
            f"{_CALL}: the parts have {len(found)} frames, and the video has {len(wanted)}.{at}"
        )


def _difference(one: PacketSettings, other: PacketSettings) -> str:
    names = [n for n in one.__dataclass_fields__ if getattr(one, n) != getattr(other, n)]
    return ", ".join(f"{n} {getattr(other, n)!r}" for n in names)


def decoding_times(times: NDArray) -> NDArray:
    """Return decoding times for packets in the order of decoding, as one encoder would give them.

    >>> decoding_times(np.array([0, 3, 1, 2, 4])).tolist()
    [-1, 0, 1, 2, 3]
    """
    delay = reorder_depth(times)
    shown = np.sort(times)
    if not delay:
        return times
    ahead = shown[:delay] - (shown[min(delay, len(shown) - 1)] - shown[0])
    return np.concatenate([ahead, shown[:-delay]])


def _write(
    output: AvObject,
    settings: PacketSettings,
    times: NDArray,
    packets: Iterator[StoredPacket],
    tracks: Tracks,
    shift: bool,
) -> None:
    options = repeatable_options(settings.codec, settings.options)
    stream = replace(settings, options=options).add_to(output)
    tracks.add_to(output, shift)
    context = stream.codec_context
    open_encoder(context)
    if base64.b64encode(context.extradata or b"").decode() != settings.extradata:
        raise VideoError(f"{_CALL}: the encoder {settings.codec!r} here has other headers.")
    output.start_encoding()
    decoding = decoding_times(times).tolist()
    shown = iter(np.sort(times).tolist())
    for at, stored in zip(decoding, packets, strict=True):
        output.mux_one(stored.packet(at, stream, settings.base))
        tracks.feed(output, next(shown) * settings.base)
    tracks.feed(output, None)
    tracks.finish(output)


def _packets(parts: int, open_part: OpenPart) -> Iterator[StoredPacket]:
    for number in range(parts):
        with open_part(number) as reader:
            for place, packet in enumerate(reader):
                if place == 0 and not packet.key:
                    raise VideoError(f"{_CALL}: part {number} does not begin with a key frame.")
                yield packet
