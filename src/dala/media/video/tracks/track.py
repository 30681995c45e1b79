"""One track on its way into an output: copied, or converted to another codec."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from dala.media.video.source import AvObject, av
from dala.media.video.timing import shift_packet

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
        """Yield what the track still holds."""
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
