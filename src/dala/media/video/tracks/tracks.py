"""The tracks of a source, passed into an output as its video advances."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Final

from dala.errors import VideoError, counted
from dala.media.video.source import (
    AvObject,
    VideoSource,
    av,
    ffmpeg_errors,
    ffmpeg_message,
    open_container,
    tags_of,
)
from dala.media.video.timing import PacketClock, is_broadcast, shift_packet, start_offset
from dala.media.video.tracks.containers import TEXT, Container, container_of
from dala.notices import notify

#: Sampling rates of Opus.
_OPUS_RATES: Final = (8000, 12000, 16000, 24000, 48000)
#: Encoders of one or two channels.
_STEREO: Final = ("libmp3lame", "mp2", "wmav2")
#: The least script that FFmpeg's encoders of subtitles need for their styles.
_SCRIPT: Final = (
    b"[Script Info]\nScriptType: v4.00+\nPlayResX: 384\nPlayResY: 288\n\n[V4+ Styles]\n"
    b"Format: Name, Fontname, Fontsize, PrimaryColour, SecondaryColour, OutlineColour, BackColour, "
    b"Bold, Italic, Underline, StrikeOut, ScaleX, ScaleY, Spacing, Angle, BorderStyle, Outline, "
    b"Shadow, Alignment, MarginL, MarginR, MarginV, Encoding\n"
    b"Style: Default,Arial,16,&Hffffff,&Hffffff,&H0,&H0,0,0,0,0,100,100,0,0,1,1,0,2,10,10,10,1\n\n"
    b"[Events]\n"
    b"Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n"
)
_MILLISECOND: Final = Fraction(1, 1000)


class Track(ABC):
    """A track on its way into an output."""

    #: The stream in the output.
    made: AvObject
    #: Packets that could not be decoded.
    damaged = 0

    @abstractmethod
    def feed(self, packet: AvObject, shift: Fraction) -> Iterator[AvObject]:
        """Yield packets for the output from one of the source, moved in time."""

    def flush(self) -> Iterator[AvObject]:
        """Yield the last packets of the track."""
        yield from ()


class CopiedTrack(Track):
    """Packets without change but for their time."""

    def __init__(self, output: AvObject, stream: AvObject) -> None:
        self.made = output.add_stream_from_template(stream)

    def feed(self, packet: AvObject, shift: Fraction) -> Iterator[AvObject]:
        """Yield the packet for the output, moved in time."""
        if shift:
            shift_packet(packet, shift)
        packet.stream = self.made
        yield packet


class ConvertedSound(Track):
    """Sound that is decoded and encoded again, because the container cannot hold its codec."""

    def __init__(self, output: AvObject, stream: AvObject, encoder: str) -> None:
        rate, layout = _sound_format(stream, encoder)
        self.made = output.add_stream(encoder, rate=rate)
        self.made.layout = layout
        if not encoder.startswith("pcm"):
            self.made.bit_rate = 96_000 * max(self.made.codec_context.channels, 1)
        self.made.codec_context.open(strict=False)
        self._decoder = stream.codec_context
        self._shift = Fraction(0)

    def feed(self, packet: AvObject, shift: Fraction) -> Iterator[AvObject]:
        """Yield the packets that a packet completes."""
        self._shift = shift
        yield from self._encoded(packet)

    def flush(self) -> Iterator[AvObject]:
        """Yield the last packets."""
        yield from self._encoded(None)
        yield from self.made.encode(None)

    def _encoded(self, packet: AvObject | None) -> Iterator[AvObject]:
        try:
            frames = self._decoder.decode(packet)
        except av.FFmpegError:
            self.damaged += packet is not None
            return
        for frame in frames:
            if frame.pts is not None and self._shift:
                frame.pts += round(self._shift / Fraction(frame.time_base))
            yield from self.made.encode(frame)


def _sound_format(stream: AvObject, encoder: str) -> tuple[int, str]:
    """Return the sampling rate and the channels to encode a stream with."""
    context = stream.codec_context
    rate = context.sample_rate or 48_000
    if encoder == "libopus" and rate not in _OPUS_RATES:
        rate = 48_000
    elif encoder != "libopus" and not encoder.startswith("pcm"):
        rate = min(rate, 48_000)
    channels = context.channels
    layout = {1: "mono", 2: "stereo"}.get(channels, context.layout.name)
    if channels > 2 and (encoder in _STEREO or channels not in (6, 8)):
        layout = "stereo"
    elif channels > 2:
        layout = "5.1" if channels == 6 else "7.1"
    return rate, layout


class ConvertedSubtitles(Track):
    """Text subtitles that are written in the codec that the container takes."""

    def __init__(self, output: AvObject, stream: AvObject, codec: str) -> None:
        self._decoder = stream.codec_context
        self._decoder.open(strict=False)
        self.made = output.add_stream(codec)
        self.made.codec_context.subtitle_header = self._decoder.subtitle_header or _SCRIPT
        self.made.codec_context.time_base = _MILLISECOND
        self._last = -1

    def feed(self, packet: AvObject, shift: Fraction) -> Iterator[AvObject]:
        """Yield the converted packet, if it has text."""
        try:
            found = self._decoder.decode2(packet)
            if found is None or not len(found):
                return
            made = self.made.codec_context.encode_subtitle(found)
        except (av.FFmpegError, ValueError):
            self.damaged += 1
            return
        base = Fraction(packet.time_base)
        start = round((packet.pts * base + shift) / _MILLISECOND)
        # Two cues may begin at once, two packets may not.
        self._last = start = max(start, self._last + 1)
        made.stream = self.made
        made.time_base, made.pts, made.dts = _MILLISECOND, start, start
        made.duration = round((packet.duration or 0) * base / _MILLISECOND)
        yield made


#: Tags about the file itself, which are not true of another.
_OWN_TAGS: Final = frozenset((
    "encoder", "duration", "major_brand", "minor_version", "compatible_brands", "creation_time",
    "handler_name", "vendor_id", "number_of_bytes", "number_of_frames", "bps", "rotate", "timecode",
    "filename", "mimetype",
))  # fmt: skip
#: Packets that begin when the last picture ends are not wanted.
_EARLIER: Final = Fraction(1, 1_000_000)
#: FFmpeg's AV_DISPOSITION_ATTACHED_PIC.
_COVER: Final = 1024
_COVERS: Final = {"mjpeg": ("cover.jpg", "image/jpeg"), "png": ("cover.png", "image/png")}


@dataclass(eq=False, repr=False)
class Tracks:
    """The sound of a source, and on demand everything else, on its way into an output.

    What the output's container cannot hold is converted where that loses little (sound, and
    subtitles of text) and reported; the rest is left out and listed once.

    Args:
        source: the file.
        call: the call for messages.
        sound: take the sound.
        everything: take subtitles, chapters, attachments, covers and tags too.
        to_zero: let the source's pictures begin at 0.
        offset: seconds by which the tracks are moved.
        length: seconds at which they end; None for no limit.

    Example::

        with video.write("out.mkv", tracks_from="in.mkv") as sink:  # makes one
            ...
    """

    source: VideoSource
    call: str
    _: KW_ONLY
    sound: bool = True
    everything: bool = False
    to_zero: bool = False
    offset: Fraction = Fraction(0)
    length: Fraction | None = None

    def __post_init__(self) -> None:
        source, given = self.source, "tracks_from" if self.everything else "audio_from"
        with ffmpeg_errors(f"{self.call}: cannot open {given} {source.label!r}"):
            self._container = open_container(source.handle, container_options=source.reach)
        self._clock = PacketClock() if is_broadcast(self._container) else None
        self._tracks: dict[int, Track] = {}
        self._packets: Iterator[AvObject] = iter(())
        self._next: AvObject = None
        self._shift = Fraction(0)
        #: The time of the last picture, and how long it is shown.
        self._picture: Fraction | None = None
        self._step = Fraction(0)
        self._left_out: list[str] = []
        self._converted: list[str] = []

    @property
    def has_sound(self) -> bool:
        """Whether the source has sound."""
        return bool(self._container.streams.audio)

    # the streams ------------------------------------------------------------------------------
    def add_to(self, output: AvObject, shift_to_zero: bool) -> None:
        """Add an output stream for each track of the source.

        With ``shift_to_zero`` they move with a video that is retimed to begin at 0.

        Raises:
            VideoError: only sound was asked for, and the output cannot hold it.
        """
        holds = container_of(output.format.name)
        to_zero = shift_to_zero or self.to_zero
        self._shift = self.offset - start_offset(self._container, to_zero)
        videos = self._container.streams.video
        main = next((v for v in videos if not v.disposition & _COVER), None)
        if main is not None and main.average_rate:
            self._step = 1 / Fraction(main.average_rate)
        for stream in self._container.streams:
            if stream.type == "audio":
                if self.sound:
                    self._add_sound(output, stream, holds)
            elif self.everything and stream is not main:
                self._add_other(output, stream, holds)
        if self.everything:
            self._add_tags(output, main, holds)
        self._report(output)
        if self._tracks:
            kept = [s for s in self._container.streams if s.index in self._tracks]
            self._packets = self._container.demux(kept)
            self._advance()

    def _add_sound(self, output: AvObject, stream: AvObject, holds: Container) -> None:
        codec = _codec(stream)
        name = _name(stream, codec)
        reason = "no sound fits into it"
        try:
            if codec:
                stream.codec_context.open(strict=False)
        except (av.FFmpegError, ValueError) as error:  # copied, it would spoil the whole file
            reason, codec = f"its header is damaged ({ffmpeg_message(error)})", ""
            name = f"{name}, whose header is damaged"
        encoders = ["copy"] if codec and holds.takes_sound(codec) else []
        encoders += [holds.sound_encoder] if codec and holds.sound_encoder else []
        for encoder in encoders:
            try:
                if encoder == "copy":
                    self._keep(stream, CopiedTrack(output, stream))
                else:
                    self._keep(stream, ConvertedSound(output, stream, encoder))
                    made = av.Codec(encoder, "w").canonical_name
                    self._converted.append(f"{name} to {made}")
                return
            except (av.FFmpegError, ValueError, OSError) as error:
                reason = ffmpeg_message(error)
        if not self.everything:
            raise VideoError(
                f"{self.call}: the {name} of {self.source.label!r} does not fit into "
                f"{output.name!r}: {reason}. Write to .mkv, which accepts any codec."
            )
        self._left_out.append(name)

    def _add_other(self, output: AvObject, stream: AvObject, holds: Container) -> None:
        codec = _codec(stream)
        name = _name(stream, codec)
        try:
            if stream.type == "subtitle" and codec in holds.subtitles.split():
                self._keep(stream, CopiedTrack(output, stream))
            elif stream.type == "subtitle" and codec in TEXT and holds.text:
                self._keep(stream, ConvertedSubtitles(output, stream, holds.text))
                self._converted.append(f"{name} to {holds.text}")
            elif stream.type == "attachment" and holds.attachments:
                output.add_attachment(stream.name, stream.mimetype or "", bytes(stream.data))
            elif stream.type == "video" and stream.disposition & _COVER and holds.cover:
                self._add_cover(output, stream, codec, holds)
            elif stream.type == "data" and holds.chapters and self._container.chapters():
                pass  # MP4 stores chapters as a track too; they are passed on as chapters
            else:
                self._left_out.append(name)
        except (av.FFmpegError, ValueError, OSError, AttributeError, TypeError) as error:
            self._left_out.append(f"{name} ({ffmpeg_message(error)})")

    def _add_cover(self, output: AvObject, stream: AvObject, codec: str, holds: Container) -> None:
        if holds.cover == "stream":
            self._keep(stream, CopiedTrack(output, stream))
            return
        name, kind = _COVERS.get(codec, (f"cover.{codec}", f"image/{codec}"))
        with open_container(self.source.handle) as again:
            for packet in again.demux(again.streams[stream.index]):
                if packet.size:
                    output.add_attachment(name, kind, bytes(packet))
                    return

    def _keep(self, stream: AvObject, track: Track) -> None:
        self._tracks[stream.index] = track
        tags = _tags(stream.metadata)
        if "title" in tags:
            tags["handler_name"] = tags["title"]  # where MP4 has a track's name
        track.made.metadata.update(tags)
        track.made.disposition = stream.disposition

    def _add_tags(self, output: AvObject, main: AvObject, holds: Container) -> None:
        output.metadata.update(_tags(self._container.metadata))
        if main is not None and output.streams.video:
            output.streams.video[0].metadata.update(_tags(main.metadata))
        chapters = [self._moved(chapter) for chapter in self._container.chapters()]
        chapters = [chapter for chapter in chapters if chapter["end"] > chapter["start"]]
        if chapters and holds.chapters:
            output.set_chapters(chapters)
        elif chapters:
            self._left_out.append(counted(len(chapters), "chapters"))

    def _moved(self, chapter: AvObject) -> dict[str, AvObject]:
        """Return a chapter, moved with the tracks."""
        base = Fraction(chapter["time_base"])
        shift = round(self._shift / base)
        start, end = (max(0, chapter[key] + shift) for key in ("start", "end"))
        tags = tags_of(chapter["metadata"])
        return {**chapter, "start": start, "end": end, "metadata": tags}

    def _report(self, output: AvObject) -> None:
        label = self.source.label
        kind = output.format.name
        if self._converted:
            notify(f"{label}: converted for {kind}: {', '.join(self._converted)}.")
        if self._left_out:
            notify(f"{label}: left out, as {kind} does not hold them: {', '.join(self._left_out)}.")

    # the packets ------------------------------------------------------------------------------
    def _advance(self) -> None:
        """Fetch the next packet of the part that is wanted."""
        self._next = None
        with ffmpeg_errors(f"{self.call}: the audio of {self.source.label!r} is damaged"):
            for packet in self._packets:
                if packet.size and packet.dts is None:
                    packet.dts = packet.pts = packet.pts or 0  # covers have no time
                if not packet.size:
                    continue
                if self._clock is not None and packet.stream.type == "audio":
                    self._clock.move(packet)
                time = packet.dts * Fraction(packet.time_base) + self._shift
                if self.length is not None and time >= self.length:
                    if time >= self.length + 1:  # no track lags so much behind another
                        return
                elif time >= 0 or not self.to_zero or not self._shift:
                    # Before 0 are the packets that start an encoder's sound.
                    self._next = packet
                    return

    def feed(self, output: AvObject, until: Fraction | None) -> None:
        """Pass on the packets up to the time of a picture; with None, to the end of the last one.

        With a ``length`` they end there instead.
        """
        if until is None and self.length is None and self._picture is not None:
            until = self._picture + self._step - _EARLIER
        elif until is not None:
            if self._picture is not None and until > self._picture:
                self._step = until - self._picture
            self._picture = until
        while self._next is not None:
            packet = self._next
            time = packet.dts * Fraction(packet.time_base) + self._shift
            if until is not None and time > until:
                return
            output.mux(self._tracks[packet.stream_index].feed(packet, self._shift))
            self._advance()

    def finish(self, output: AvObject) -> None:
        """Write the last packets of converted tracks."""
        for track in self._tracks.values():
            output.mux(track.flush())
        damaged = sum(track.damaged for track in self._tracks.values())
        if damaged:
            notify(f"{self.source.label}: {counted(damaged, 'damaged packets')} left out.")

    def close(self) -> None:
        """Close the source."""
        self._container.close()


def _codec(stream: AvObject) -> str:
    """Return FFmpeg's name of a stream's codec; "" if it is unknown."""
    context = stream.codec_context
    return "" if context is None else str(context.codec.canonical_name)


def _name(stream: AvObject, codec: str) -> str:
    """Return a track for messages: "subtitle track 3 (ass, fra)"."""
    if stream.type == "attachment":
        return f"attachment {stream.name!r}"
    kind = "cover picture" if stream.disposition & _COVER else f"{stream.type} track"
    facts = [codec or "unknown codec", tags_of(stream.metadata).get("language", "")]
    return f"{kind} {stream.index} ({', '.join(filter(None, facts))})"


def _tags(metadata: Mapping[str, str]) -> dict[str, str]:
    return {
        key: value
        for key, value in tags_of(metadata).items()
        if key.lower() not in _OWN_TAGS and not key.startswith("_STATISTICS")
    }


class TrackGroup(Tracks):
    """Tracks of several sources, passed into one output.

    Example::

        with video.write("out.mkv", tracks_from="film.mkv", audio_from="dub.wav") as sink: ...
    """

    def __init__(self, members: Iterable[Tracks] = ()) -> None:
        self.members = list(members)

    def add_to(self, output: AvObject, shift_to_zero: bool) -> None:
        """Add an output stream for each track of the sources."""
        for member in self.members:
            member.add_to(output, shift_to_zero)

    def feed(self, output: AvObject, until: Fraction | None) -> None:
        """Pass on the packets up to a time, or all remaining ones."""
        for member in self.members:
            member.feed(output, until)

    def finish(self, output: AvObject) -> None:
        """Write the last packets of converted tracks."""
        for member in self.members:
            member.finish(output)

    def close(self) -> None:
        """Close the sources."""
        for member in self.members:
            member.close()
