"""Audio passthrough: packets copied from one file to another without decoding."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from dala.errors import VideoError
from dala.media.video.decode import ffmpeg_message
from dala.media.video.source import AvObject, VideoSource, pyav
from dala.media.video.timing import start_offset


class AudioPassthrough:
    """The audio streams of a source, copied into an output as its video advances."""

    def __init__(self, source: VideoSource, call: str) -> None:
        av = pyav()
        self.source = source
        self._call = call
        try:
            self._container = av.open(source.name, metadata_errors="replace")
        except (av.FFmpegError, OSError, ValueError) as error:
            raise VideoError(
                f"{call}: cannot open audio_from {source.label!r}: {ffmpeg_message(error)}."
            ) from error
        self._streams = list(self._container.streams.audio)
        self._pairs: dict[int, AvObject] = {}
        self._packets: Iterator[AvObject] = iter(())
        self._next: AvObject = None
        self._shift = Fraction(0)

    def add_to(self, output: AvObject, shift_to_zero: bool) -> None:
        """Add an output stream for each audio stream of the source.

        With ``shift_to_zero`` the audio moves with a video that is retimed to begin at 0.
        """
        av = pyav()
        for stream in self._streams:
            try:
                made = output.add_stream_from_template(stream)
            except (av.FFmpegError, ValueError, OSError) as error:
                raise VideoError(
                    f"{self._call}: the audio of {self.source.label!r} "
                    f"({stream.codec_context.name}) does not fit into {output.name!r} without "
                    f"re-encoding: {ffmpeg_message(error)}. Write to .mkv, which accepts any codec."
                ) from error
            self._pairs[stream.index] = made
        videos = self._container.streams.video
        if shift_to_zero and videos and videos[0].start_time:
            self._shift = -videos[0].start_time * Fraction(videos[0].time_base)
        else:
            self._shift = -start_offset(self._container)
        if self._streams:
            self._packets = self._container.demux(self._streams)
            self._advance()

    def _advance(self) -> None:
        av = pyav()
        self._next = None
        try:
            for packet in self._packets:
                if packet.size and packet.dts is not None:
                    self._next = packet
                    return
        except av.FFmpegError as error:
            raise VideoError(
                f"{self._call}: the audio of {self.source.label!r} is damaged: "
                f"{ffmpeg_message(error)}."
            ) from error

    def feed(self, output: AvObject, until: Fraction | None) -> None:
        """Copy the packets up to a time, or all remaining ones."""
        while self._next is not None:
            packet = self._next
            base = Fraction(packet.time_base)
            if until is not None and packet.dts * base + self._shift > until:
                return
            if self._shift:
                shift = round(self._shift / base)
                packet.dts += shift
                packet.pts = None if packet.pts is None else packet.pts + shift
            packet.stream = self._pairs[packet.stream_index]
            output.mux_one(packet)
            self._advance()

    def close(self) -> None:
        """Close the source."""
        self._container.close()
