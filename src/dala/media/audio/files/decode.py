"""Decoding the sound of a file: blocks of samples with exact places, gaps filled with silence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from dala.errors import AudioError, AudioNotFound, ParameterError, VideoError, VideoNotFound
from dala.media.audio.checks import LAYOUTS, Samples
from dala.media.audio.files.frames import FrameSamples
from dala.media.notices import notify
from dala.media.video.decoding.input import ffmpeg_message
from dala.media.video.source import (
    AvObject,
    VideoFile,
    VideoSource,
    open_container,
    pyav,
    source_of,
    tags_of,
)
from dala.media.video.timing import SPLICE, is_broadcast, start_offset

#: Stamps that are less than this beside the count of samples are rounded ones, in seconds.
_JITTER: Final = Fraction(1, 100)
#: A gap beyond this is a damaged stamp, in seconds.
_LONGEST_GAP: Final = 24 * 3600
#: Seconds that are decoded before a place, since decoders need what comes before.
_RUN_UP: Final = Fraction(3, 10)
#: Pages of Ogg have one stamp each, and that of the last is not exact.
_RUN_UP_OGG: Final = Fraction(2)
#: Samples that encoders add at the end, at most.
_PADDING: Final = 4096
#: Seconds to wait for a host, to open and to read.
_TIMEOUT: Final = (10.0, 10.0)
#: Silence is made in parts of so many samples.
_PART: Final = 1 << 16


@dataclass(frozen=True)
class AudioTrack:
    """A sound track of a file.

    Attributes:
        number: counted from 0, as ``audio.open(path, track=...)`` takes it.
        codec: FFmpeg's name of the codec.
        rate: samples per second.
        layout: the channels.
        language: as the file has it, "eng" for example; "" if it says nothing.
        title: its name; "" if it has none.

    Example::

        with audio.open("film.mkv") as reader:
            print([track.language for track in reader.tracks])
    """

    number: int
    codec: str
    rate: int
    layout: str
    language: str = ""
    title: str = ""


def sound_source(what: VideoFile, call: str, *, playlists: bool = False) -> VideoSource:
    """Return the source of a path, URL, file object or bytes; raise the errors of sound."""
    try:
        return source_of(what, call, playlists=playlists)
    except VideoNotFound as error:
        raise AudioNotFound(str(error)) from None
    except VideoError as error:
        raise AudioError(str(error)) from None


class SoundDecoder:
    """A track of a file as blocks of samples in its own rate and layout.

    Places are samples since the time 0 of the file. Gaps between stamps, and packets that cannot
    be decoded, are silence, so that sound stays in time; what overlaps is dropped.

    Args:
        source: the file.
        track: number or language of the track.
        call: the call for messages.
        pictures: let the time 0 be that of the first picture, if the file has pictures.
    """

    def __init__(
        self, source: VideoSource, track: int | str, call: str, *, pictures: bool = False
    ) -> None:
        av = pyav()
        self.source = source
        self._call = call
        try:
            self._container = self._open()
        except (av.FFmpegError, OSError, ValueError) as error:
            raise AudioError(
                f"{call}: cannot open {source.label!r}: {ffmpeg_message(error)}."
            ) from error
        try:
            self._stream = self._chosen(track)
            context = self._stream.codec_context
            self._samples_of = FrameSamples(call, source.label, context.sample_rate, context.layout)
            self.rate, self.layout = self._samples_of.rate, self._samples_of.layout
            self._origin = self._begin(pictures)
            context.thread_type = "NONE"
        except BaseException:
            self._container.close()
            raise
        self._spliced = is_broadcast(self._container)
        #: Packets that could not be decoded.
        self.damaged = 0
        #: The error that ended the file early.
        self.error: AudioError | None = None
        #: Where a block of decoding ends, for files with rounded stamps.
        self._grid: int | None = None
        self._frames = self._decoded()

    def _open(self) -> AvObject:
        source = self.source
        waits = {"timeout": _TIMEOUT} if source.url and source.stream is None else {}
        return open_container(
            source.handle, format=source.format, options=dict(source.options),
            container_options=source.reach, **waits,
        )  # fmt: skip

    # the streams ------------------------------------------------------------------------------
    @property
    def tracks(self) -> list[AudioTrack]:
        """The sound tracks of the file."""
        return [
            AudioTrack(
                number,
                "" if s.codec_context is None else str(s.codec_context.codec.canonical_name),
                s.codec_context.sample_rate or 0 if s.codec_context else 0,
                str(s.codec_context.layout.name) if s.codec_context else "",
                tags_of(s.metadata).get("language", ""),
                tags_of(s.metadata).get("title", ""),
            )
            for number, s in enumerate(self._container.streams.audio)
        ]

    @property
    def codec(self) -> str:
        """FFmpeg's name of the codec."""
        return str(self._stream.codec_context.codec.canonical_name)

    @property
    def container(self) -> str:
        """FFmpeg's name of the container."""
        return str(self._container.format.name)

    @property
    def duration(self) -> Fraction | None:
        """Seconds from the time 0 to the end, by the file's header; None if it does not say."""
        stream, start = self._stream, Fraction(0)
        if stream.duration and stream.duration > 0:
            if stream.start_time is not None:
                start = stream.start_time * Fraction(stream.time_base) - self._origin
            return Fraction(stream.duration * Fraction(stream.time_base)) + start
        if self._container.duration and self._container.duration > 0:
            return Fraction(self._container.duration, 1_000_000)
        return None

    def _chosen(self, track: int | str) -> AvObject:
        found = self._container.streams.audio
        if not found:
            kinds = ", ".join(sorted({s.type for s in self._container.streams})) or "nothing"
            raise AudioError(f"{self._call}: {self.source.label!r} has no sound. It has: {kinds}.")
        if isinstance(track, str):
            for stream in found:
                if stream.metadata.get("language", "").lower() == track.lower():
                    return self._decodable(stream)
            known = sorted({tags_of(s.metadata).get("language", "") for s in found} - {""})
            advice = f"The file has: {', '.join(known)}." if known else "The file names none."
            raise ParameterError.invalid(
                self._call, "track", "a number or a language", track, advice
            )
        if isinstance(track, bool) or not isinstance(track, int) or not 0 <= track < len(found):
            expected = "0, as there is one track" if len(found) == 1 else (
                f"an int from 0 to {len(found) - 1}"
            )  # fmt: skip
            raise ParameterError.invalid(self._call, "track", expected, track)
        return self._decodable(found[track])

    def _decodable(self, stream: AvObject) -> AvObject:
        if stream.codec_context is None:
            raise AudioError(
                f"{self._call}: the codec of sound track {stream.index} of "
                f"{self.source.label!r} is unknown."
            )
        return stream

    def _begin(self, pictures: bool) -> Fraction:
        """Return the stamp of the time 0."""
        videos = self._container.streams.video
        if pictures and videos and videos[0].start_time:
            return Fraction(videos[0].start_time * videos[0].time_base)
        if not videos:  # where the first sample is at 0; MP3 has its encoder's delay before it
            starts = [
                s.start_time * Fraction(s.time_base)
                for s in self._container.streams.audio
                if s.start_time is not None
            ]
            return min(starts, default=Fraction(0))
        return start_offset(self._container)

    # the samples ------------------------------------------------------------------------------
    def blocks(self) -> Iterator[tuple[int, Samples]]:
        """Yield blocks with the place of their first sample, from where the decoder is.

        MP4 says where its sound ends, and encoders add up to a few thousand samples to it. Those
        are dropped; more than that is sound, and the header is wrong.
        """
        limit = None
        if "mp4" in self.container and self._stream.duration:
            limit = round((self.duration or 0) * self.rate)
        held: list[tuple[int, Samples]] = []
        for at, block in self._placed():
            if limit is None or at + len(block) <= limit:
                yield at, block
                continue
            if at < limit:
                yield at, block[: limit - at]
                at, block = limit, block[limit - at :]
            held.append((at, block))
            if at + len(block) - limit > _PADDING:
                limit = None
                yield from held
                held = []

    def _placed(self) -> Iterator[tuple[int, Samples]]:
        at: int | None = None
        jitter = _JITTER * self.rate
        for place, block in self._frames:
            if place is not None:
                if at is None:
                    place = self._snapped(place, len(block))
                if at is None:
                    at = place
                if place != at:
                    yield from self._silence(at, place)
                    if place > at and self._is_gap(place - at):
                        at = place
                    late = at - place
                    if late > jitter and late < len(block) + self.rate:
                        block = block[late:]  # what overlaps is dropped
            at = at or 0
            if len(block):
                yield at, block
                at += len(block)

    def _snapped(self, place: int, length: int) -> int:
        """Return the place of the first block after a seek, exact where stamps are rounded.

        Matroska has milliseconds. Blocks of one length have their places on a grid.
        """
        coarse = Fraction(self._stream.time_base) * self.rate
        if coarse <= 1 or not length:
            return place
        if self._grid is None:
            self._grid = place + length
            return place
        near = self._grid + round(Fraction(place - self._grid, length)) * length
        return near if abs(near - place) <= coarse else place

    def _is_gap(self, count: int) -> bool:
        seconds = Fraction(count, self.rate)
        limit = SPLICE if self._spliced else _LONGEST_GAP
        return _JITTER < seconds <= limit

    def _silence(self, at: int, place: int) -> Iterator[tuple[int, Samples]]:
        if place <= at or not self._is_gap(place - at):
            return
        channels = LAYOUTS[self.layout]
        while at < place:
            count = min(_PART, place - at)
            yield at, np.zeros((count, channels), np.float32)
            at += count

    def _decoded(self) -> Iterator[tuple[int | None, Samples]]:
        """Yield the place by its stamp and the samples of each frame."""
        av = pyav()
        places = _Places(self._origin, self.rate)
        try:
            for packet in self._container.demux(self._stream):
                try:
                    frames = packet.decode()
                except (av.FFmpegError, ValueError):
                    self.damaged += 1
                    continue
                for frame in frames:
                    yield places.of(frame), self._samples_of.of(frame)
        except (av.FFmpegError, OSError) as error:
            self.error = AudioError(
                f"{self._call}: the sound of {self.source.label!r} is damaged: "
                f"{ffmpeg_message(error)}."
            )

    def seek(self, place: int) -> None:
        """Continue at a place or before it."""
        av = pyav()
        run_up = _RUN_UP_OGG if self.container == "ogg" else _RUN_UP
        time = Fraction(place, self.rate) + self._origin - run_up
        begin = self._stream.start_time
        first = Fraction(0) if begin is None else begin * Fraction(self._stream.time_base)
        if time <= first:  # a decoder drops its delay at the beginning of a file only
            self.rewind()
            return
        if self._grid is None:
            next(self._placed(), None)
        try:
            base = Fraction(self._stream.time_base)
            self._container.seek(round(time / base), stream=self._stream)
        except (av.FFmpegError, OSError) as error:
            raise AudioError(
                f"{self._call}: cannot seek in {self.source.label!r}: {ffmpeg_message(error)}."
            ) from error
        self._restart()

    def rewind(self) -> None:
        """Open the file again, at its beginning."""
        number = self._stream.index
        self._container.close()
        self._container = self._open()
        self._stream = self._container.streams[number]
        self._stream.codec_context.thread_type = "NONE"
        self._restart()

    def _restart(self) -> None:
        self._samples_of.restart()
        self.error = None
        self._frames = self._decoded()

    def report(self) -> None:
        """Say what was damaged, once."""
        found = []
        if self.damaged:
            found.append(f"{self.damaged} damaged packets")
        if invalid := self._samples_of.invalid:
            found.append(f"{invalid} samples of NaN or infinity")
        if found:
            notify(f"{self.source.label}: {' and '.join(found)} of its sound are silence.")
            self.damaged = self._samples_of.invalid = 0

    def close(self) -> None:
        """Close the file."""
        self._container.close()


class _Places:
    """The places of frames by their stamps, in integers: fractions cost more than decoding."""

    def __init__(self, origin: Fraction, rate: int) -> None:
        self._origin = origin
        self._rate = rate
        self._base: Fraction | None = None
        self._scale, self._offset, self._divisor = 0, 0, 1

    def of(self, frame: AvObject) -> int | None:
        """Return the place of a frame; None if it has no stamp, or a damaged one."""
        pts: int | None = frame.pts
        if pts is None or abs(pts) >= 1 << 56:
            return None
        base = frame.time_base
        if base != self._base:
            self._base = base
            scale, offset = Fraction(base) * self._rate, self._origin * self._rate
            self._divisor = scale.denominator * offset.denominator
            self._scale = scale.numerator * offset.denominator
            self._offset = offset.numerator * scale.denominator
        whole, rest = divmod(pts * self._scale - self._offset, self._divisor)
        return whole if not rest else round(whole + Fraction(rest, self._divisor))
