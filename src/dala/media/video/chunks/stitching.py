"""Stitching: packets of parts in one file, with sound and all else once from the source."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from dala.errors import VideoError
from dala.media.video.chunks.packets import (
    PacketReader,
    PacketSettings,
    StoredPacket,
    reorder_depth,
)
from dala.media.video.encode import repeatable_options
from dala.media.video.output.opening import open_encoder
from dala.media.video.output.target import Target
from dala.media.video.source import (
    AvObject,
    VideoSource,
    av,
    ffmpeg_errors,
    ffmpeg_message,
    open_container,
)
from dala.media.video.timing import is_broadcast, start_offset
from dala.media.video.tracks import TrackGroup, Tracks
from dala.typing import NDArray

#: Packets after a seam in which its first frame must come out of the decoder.
_SEAM: Final = 40
#: Seconds by which sound may begin earlier or later: copied, and encoded again.
_COPIED: Final = 0.003
_CONVERTED: Final = 0.1
#: Seconds by which a container may move all tracks.
_MOVED: Final = Fraction(1, 2)


class Stitched(NamedTuple):
    """The contents of a stitched file."""

    frames: int
    seams: int
    #: Seconds from the first picture to the first sound of each track.
    sound: list[float]


def check_stitched(
    path: Path,
    times: NDArray,
    base: Fraction,
    firsts: Sequence[int],
    source: VideoSource | None,
) -> Stitched:
    """Check a stitched file: its frames, each of their times, its seams, and where sound begins.

    Args:
        path: the file.
        times: presentation times of all packets, in the order of decoding.
        base: their unit.
        firsts: the number of the first packet of each part.
        source: the video that the sound is from; None if it is from elsewhere.

    Raises:
        VideoError: something is not as it should be; the file is removed.
    """
    try:
        with open_container(str(path)) as made:
            stamps, sounds = _demuxed(made)
            unit = Fraction(made.streams.video[0].time_base)
            _check_times(stamps, times, base, unit, is_broadcast(made))
            for number, first in enumerate(firsts):
                _check_seam(made, number, int(stamps[first]))
        begin = int(stamps.min()) * unit
        offsets = [(codec, float(time - begin)) for codec, time in sounds]
        if source is not None:
            _check_sound(offsets, source, int(times.min()) * base)
    except BaseException as error:
        path.unlink(missing_ok=True)
        if isinstance(error, av.FFmpegError):
            raise VideoError(
                f"{_CALL}: the result cannot be read: {ffmpeg_message(error)}."
            ) from error
        raise
    return Stitched(len(stamps), len(firsts) - 1, [offset for _, offset in offsets])


def _demuxed(made: AvObject) -> tuple[NDArray, list[tuple[str, Fraction]]]:
    """Return the times of the pictures in order of decoding, and codec and start of sounds."""
    video = made.streams.video[0]
    stamps: list[int] = []
    sounds: dict[int, tuple[str, Fraction]] = {}
    for packet in made.demux():
        if packet.stream.index == video.index and packet.size and packet.pts is not None:
            stamps.append(packet.pts)
        _note_sound(packet, sounds)
    return np.array(stamps, np.int64), [sounds[index] for index in sorted(sounds)]


def _note_sound(packet: AvObject, sounds: dict[int, tuple[str, Fraction]]) -> None:
    """Keep codec and time of the first packet of each sound."""
    stream = packet.stream
    if packet.size and packet.pts is not None and stream.type == "audio":
        first = str(stream.codec_context.name), packet.pts * Fraction(packet.time_base)
        sounds.setdefault(stream.index, first)


def _check_times(
    stamps: NDArray, times: NDArray, base: Fraction, unit: Fraction, shifted: bool
) -> None:
    """Compare the times of frames with the expected ones, in units of the container."""
    if len(stamps) != len(times):
        raise VideoError(f"{_CALL}: {len(stamps)} frames were written instead of {len(times)}.")
    ratio = base / unit
    if ratio.denominator == 1:
        exact = times * int(ratio)
    else:
        exact = np.array([round(time * ratio) for time in times.tolist()], np.int64)
    # Broadcasts begin anywhere on their clock. Containers without negative times move all tracks
    # so that sound which begins before 0 fits.
    shift = int(stamps[0] - exact[0])
    tolerance = 0 if ratio.denominator == 1 else 1
    late = not shifted and not -tolerance * unit <= shift * unit <= _MOVED
    wrong = np.flatnonzero(np.abs(stamps - exact - shift) > tolerance)
    if late and not len(wrong):
        wrong = np.zeros(1, np.int64)
    if len(wrong):
        at = int(wrong[0])
        raise VideoError(
            f"{_CALL}: frame {at} was written at {float(int(stamps[at]) * unit):.6f} s instead of "
            f"{float(int(times[at]) * base):.6f} s."
        )


def _check_seam(made: AvObject, number: int, stamp: int) -> None:
    """Decode the first frame of a part, from its own packets alone."""
    video = made.streams.video[0]
    where = f"the seam at {float(stamp * Fraction(video.time_base)):.3f} s (part {number})"
    with ffmpeg_errors(f"{_CALL}: {where} cannot be decoded"):
        made.seek(stamp, stream=video, backward=True)
        video.codec_context.flush_buffers()
        read = 0
        for packet in made.demux(video):
            for frame in video.codec_context.decode(packet) if packet.size else ():
                if frame.pts == stamp and not frame.is_corrupt:
                    return
                if frame.pts is not None and frame.pts > stamp:
                    raise VideoError(f"{_CALL}: {where} does not begin with its own frame.")
            read += packet.pts is not None and packet.pts >= stamp
            if read > _SEAM or not packet.size:
                break
        rest = video.codec_context.decode(None)
        if any(frame.pts == stamp and not frame.is_corrupt for frame in rest):
            return
    raise VideoError(f"{_CALL}: {where} cannot be decoded.")


def _check_sound(offsets: list[tuple[str, float]], source: VideoSource, begin: Fraction) -> None:
    """Compare where sound begins, counted from the first picture, with the source."""
    with open_container(source.handle, container_options=source.reach) as given:
        streams = list(given.streams.audio)
        shift = start_offset(given) + begin
        wanted: dict[int, tuple[str, Fraction]] = {}
        if len(streams) != len(offsets):
            return  # one does not fit into the container, which was said
        for packet in given.demux(streams) if streams else ():
            _note_sound(packet, wanted)
            if len(wanted) == len(streams):
                break
    starts = [wanted[index] for index in sorted(wanted)]
    for (codec, found), (own, time) in zip(offsets, starts, strict=False):
        exact = float(time - shift)
        if abs(found - exact) > (_COPIED if codec == own else _CONVERTED):
            raise VideoError(
                f"{_CALL}: sound begins {found:.3f} s after the first picture instead of "
                f"{exact:.3f} s."
            )


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
    options = repeatable_options(settings.codec, settings.options, settings.width)
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
