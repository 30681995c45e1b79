"""Decoding the sound of a file: blocks of samples with exact places, gaps filled with silence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from dala.budget import check_deadline, checked
from dala.errors import AudioError, AudioNotFound, ParameterError, VideoError, VideoNotFound
from dala.media.audio.checks import LAYOUTS, USUAL, Samples, finite, joined, silent
from dala.media.audio.graph import Converter, frame_samples
from dala.media.video.source import (
    AvObject,
    VideoFile,
    VideoSource,
    av,
    ffmpeg_errors,
    ffmpeg_message,
    source_of,
    tags_of,
)
from dala.media.video.timing import SPLICE, first_start, is_broadcast, start_offset
from dala.notices import notify

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
        self.source = source
        self._call = call
        with ffmpeg_errors(f"{call}: cannot open {source.label!r}", AudioError):
            self._container = self.source.open()
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

    @property
    def tracks(self) -> list[AudioTrack]:
        """The sound tracks of the file."""
        found = []
        for number, stream in enumerate(self._container.streams.audio):
            context, tags = stream.codec_context, tags_of(stream.metadata)
            facts = ("", 0, "")
            if context is not None:
                codec, layout = str(context.codec.canonical_name), str(context.layout.name)
                facts = codec, context.sample_rate or 0, layout
            found.append(
                AudioTrack(number, *facts, tags.get("language", ""), tags.get("title", ""))
            )
        return found

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
        streams = self._container.streams
        if not streams.video:  # the first sample is at 0; MP3 has its encoder's delay before it
            return first_start(streams.audio)
        return start_offset(self._container, pictures)

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
                    if place > at and self._is_gap(place - at):
                        for begin in range(at, place, _PART):
                            yield begin, silent(min(_PART, place - begin), self.layout)
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

    def _decoded(self) -> Iterator[tuple[int | None, Samples]]:
        """Yield the place by its stamp and the samples of each frame."""
        try:
            for packet in checked(self._container.demux(self._stream), self._call):
                try:
                    frames = packet.decode()
                except (av.FFmpegError, ValueError):
                    self.damaged += 1
                    continue
                for frame in frames:
                    yield self._place(frame), self._samples_of.of(frame)
        except (av.FFmpegError, OSError) as error:
            check_deadline(self._call)
            self.error = AudioError(
                f"{self._call}: the sound of {self.source.label!r} is damaged: "
                f"{ffmpeg_message(error)}."
            )

    def _place(self, frame: AvObject) -> int | None:
        """Return the sample at which a frame begins; None if it has no stamp, or a damaged one."""
        stamp: int | None = frame.pts
        if stamp is None or abs(stamp) >= 1 << 56:
            return None
        return round((stamp * Fraction(frame.time_base) - self._origin) * self.rate)

    def seek(self, place: int) -> None:
        """Continue at a place or before it."""
        run_up = _RUN_UP_OGG if self.container == "ogg" else _RUN_UP
        time = Fraction(place, self.rate) + self._origin - run_up
        begin = self._stream.start_time
        first = Fraction(0) if begin is None else begin * Fraction(self._stream.time_base)
        if time <= first:  # a decoder drops its delay at the beginning of a file only
            self.rewind()
            return
        if self._grid is None:
            next(self._placed(), None)
        with ffmpeg_errors(f"{self._call}: cannot seek in {self.source.label!r}", AudioError):
            base = Fraction(self._stream.time_base)
            self._container.seek(round(time / base), stream=self._stream)
        self._restart()

    def rewind(self) -> None:
        """Open the file again, at its beginning."""
        number = self._stream.index
        self._container.close()
        self._container = self.source.open()
        self._stream = self._container.streams[number]
        self._stream.codec_context.thread_type = "NONE"
        self._restart()

    def _restart(self) -> None:
        self._samples_of.restart()
        self.error = None
        self._frames = self._decoded()

    def report(self) -> None:
        """Report damaged parts, once."""
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


class FrameSamples:
    """Frames of one track as f32 samples in one rate and layout.

    Samples that are NaN or infinite are silence, and counted. Where the format changes on the way,
    frames are converted back, which is said once.

    Args:
        call: the call for messages.
        label: the source for messages.
        rate: samples per second of the first frame, as FFmpeg gives them.
        layout: the channels of the first frame, as PyAV gives them.

    Raises:
        AudioError: there is no rate, or there are too many channels.
    """

    def __init__(self, call: str, label: str, rate: int | None, layout: AvObject) -> None:
        self._call = call
        self._label = label
        self.rate, self.layout = self._format(rate, layout)
        #: Samples that were NaN or infinite.
        self.invalid = 0
        self._said = False
        self._formatter: AvObject = None
        self._changed: Converter | None = None
        self._format_now = self.rate, self.layout

    def of(self, frame: AvObject) -> Samples:
        """Return the samples of the next frame, of shape (count, channels)."""
        now = self._format(frame.sample_rate, frame.layout)
        if self._formatter is None or now != self._format_now:
            self._change(now)
        parts = [frame_samples(made) for made in self._formatter.resample(frame)]
        block = joined(parts, now[1])
        if not finite(block):
            self.invalid += int(np.count_nonzero(~np.isfinite(block)))
            block = np.nan_to_num(block, nan=0.0, posinf=0.0, neginf=0.0)
        return block if self._changed is None else self._changed.process(block)

    def restart(self) -> None:
        """Forget the last frame, after a seek."""
        self._formatter = self._changed = None
        self._format_now = self.rate, self.layout

    def _format(self, rate: int | None, layout: AvObject) -> tuple[int, str]:
        channels = len(layout.channels) if layout is not None else 0
        if not rate or not channels:
            raise AudioError(
                f"{self._call}: the sound of {self._label!r} is damaged: its rate or its channels "
                "are unknown."
            )
        if channels >= len(USUAL):
            raise AudioError(
                f"{self._call}: the sound of {self._label!r} has {channels} channels, and "
                f"{len(USUAL) - 1} are supported."
            )
        name = str(layout.name)
        return int(rate), name if LAYOUTS.get(name) == channels else USUAL[channels]

    def _change(self, now: tuple[int, str]) -> None:
        """Convert frames that differ from the first ones, from here on."""
        self._formatter = av.AudioResampler(format="flt")
        if now != (self.rate, self.layout):
            if not self._said:
                notify(
                    f"{self._label}: the sound changes from {self.rate} Hz {self.layout} to "
                    f"{now[0]} Hz {now[1]}; it is converted back."
                )
            self._said = True
            self._changed = Converter(self._call, *now, self.rate, self.layout)
        else:
            self._changed = None
        self._format_now = now
