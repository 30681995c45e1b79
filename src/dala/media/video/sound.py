"""Sound carried through: packets copied from one file to another, none of them decoded."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from dala.errors import VideoError
from dala.media.video.decode import words
from dala.media.video.live import Source, pyav


class Sound:
    """The audio streams of a source, fed into an output as its video advances."""

    def __init__(self, source: Source, call: str) -> None:
        av = pyav()
        self.source = source
        self._call = call
        try:
            self._container = av.open(source.name)
        except (av.FFmpegError, OSError, ValueError) as error:
            raise VideoError(
                f"{call}: 'audio_from' {source.shown!r} cannot be opened: {words(error)}."
            ) from error
        self._streams = list(self._container.streams.audio)
        self._pairs: dict[int, Any] = {}
        self._packets: Any = iter(())
        self._next: Any = None
        self._shift = Fraction(0)

    def add_to(self, output: Any, shift_to_zero: bool) -> None:
        """Makes a stream in the output for each. With ``shift_to_zero`` the source's picture, which
        may begin later than 0, is taken to begin at 0, and the sound is moved with it.
        """
        av = pyav()
        for stream in self._streams:
            try:
                made = output.add_stream_from_template(stream)
            except (av.FFmpegError, ValueError, OSError) as error:
                raise VideoError(
                    f"{self._call}: the sound of {self.source.shown!r} "
                    f"({stream.codec_context.name}) cannot be put into {output.name!r} untouched: "
                    f"{words(error)}. Write to .mkv, which takes any."
                ) from error
            self._pairs[stream.index] = made
        pictures = self._container.streams.video
        if shift_to_zero and pictures and pictures[0].start_time:
            self._shift = -pictures[0].start_time * Fraction(pictures[0].time_base)
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
                f"{self._call}: the sound of {self.source.shown!r} is damaged: {words(error)}."
            ) from error

    def feed(self, output: Any, until: Fraction | None) -> None:
        """Copies the packets up to a time, or all that are left."""
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
        """Closes the source."""
        self._container.close()
