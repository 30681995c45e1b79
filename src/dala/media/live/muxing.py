"""Encoding and sending one stream with FFmpeg. Nothing here knows of threads or processes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from dala.extensions import write_whole
from dala.media.audio.graph import sound_frame
from dala.media.video.output.opening import PictureEncoding, open_encoder
from dala.media.video.source import AvObject, DecodedFrame, av
from dala.trace.recorder import OFF, tracer

#: Samples a second of the sound.
SOUND_RATE: Final = 48000
#: Sound of a slot: (samples, 2), f32.
Samples = npt.NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class StreamSettings(PictureEncoding):
    """The settings of a stream's encoders, in values that JSON holds."""

    #: FFmpeg's name of the destination, with its secrets, of its muxer, and the muxer's options.
    name: str = field(repr=False)
    muxer: str
    muxer_options: dict[str, str]
    #: The kind of hardware device that frames are uploaded to; "" for none.
    device: str
    #: FFmpeg's encoder of the sound, and its bits a second; "" for no sound.
    sound: str
    sound_bit_rate: int


class Sent(NamedTuple):
    """A packet that was sent: its bytes, and the slot of its picture, or None for sound."""

    size: int
    slot: int | None


class Muxer:
    """An open stream: pictures and sound in, packets out. Opening it connects."""

    def __init__(self, settings: StreamSettings) -> None:
        self._rate = Fraction(settings.rate)
        self._first: int | None = None
        self._last: int | None = None
        self._label, self._muxer = settings.label, settings.muxer
        self._playlist = Path(settings.name) if settings.muxer == "hls" else None
        self._output = av.open(
            settings.name, "w", format=settings.muxer, container_options=settings.muxer_options
        )
        try:
            self._video = settings.add_to(self._output, settings.device)
            open_encoder(self._video.codec_context)
            self._audio = _add_audio(self._output, settings)
            self._output.start_encoding()
        except BaseException:
            self._output.close()
            raise

    def send(
        self, slot: int, picture: DecodedFrame | None, sound: Samples | None, at: int
    ) -> list[Sent]:
        """Encode and send a picture, and sound from a sample of the stream on.

        Returns:
            What was sent.
        """
        if self._first is None:
            if picture is None:
                return []  # a stream begins with a picture
            self._first = slot
        sent: list[Sent] = []
        if picture is not None:
            picture.pts, picture.time_base = slot - self._first, 1 / self._rate
            with tracer.span("encode", self._label) if tracer.on else OFF:
                packets = self._video.encode(picture)
            sent += self._mux(packets)
        if sound is not None and len(sound) and self._audio is not None:
            start = at - round(self._first * SOUND_RATE / self._rate)
            sound, start = sound[max(-start, 0) :], max(start, 0)
            if len(sound):
                frame = sound_frame(sound, SOUND_RATE, "stereo", start)
                sent += self._mux(self._audio.encode(frame))
        return sent

    def finish(self) -> list[Sent]:
        """Send the last packets of the encoders; return them. ``close`` ends the stream."""
        sent = self._mux(self._video.encode(None))
        if self._audio is not None:
            sent += self._mux(self._audio.encode(None))
        return sent

    def close(self) -> None:
        """End the stream and disconnect."""
        self._output.close()
        if self._playlist is not None:
            complete_playlist(self._playlist)

    def _mux(self, packets: list[AvObject]) -> list[Sent]:
        sent = []
        for packet in packets:
            size, slot = packet.size, None
            if size and packet.stream.type == "video":
                slot = round(packet.pts * packet.time_base * self._rate) + (self._first or 0)
                # HLS adds up durations, so that slots which were left out must count.
                slots = slot - (slot - 1 if self._last is None else self._last)
                packet.duration = max(1, round(slots / self._rate / packet.time_base))
                self._last = slot
            if size:
                with tracer.span("network", self._muxer) if tracer.on else OFF:
                    self._output.mux_one(packet)
                sent.append(Sent(size, slot))
        return sent


def _add_audio(output: AvObject, settings: StreamSettings) -> AvObject | None:
    if not settings.sound:
        return None
    stream = output.add_stream(settings.sound, rate=SOUND_RATE, layout="stereo")
    stream.codec_context.bit_rate = settings.sound_bit_rate
    return stream


# the end of HLS -----------------------------------------------------------------------------------
#: A packet of MPEG-TS that receivers ignore, and the packets by which they recognize a stream.
_NULL: Final = b"\x47\x1f\xff\x10" + b"\xff" * 184
_LEAST: Final = 32


def complete_playlist(path: Path) -> None:
    """Make a playlist readable whose stream was very short.

    FFmpeg rounds a target duration below half a second to 0, which players refuse or read without
    a pause, and its own reader needs some packets to recognize a segment.
    """
    try:
        text = path.read_text()
    except OSError:
        return  # nothing was sent
    segments = [line for line in text.splitlines() if line and not line.startswith("#")]
    if segments:
        segment = path.parent / segments[-1]
        missing = _LEAST - segment.stat().st_size // len(_NULL) if segment.is_file() else 0
        if missing > 0:
            write_whole(segment, segment.read_bytes() + _NULL * missing)
    made = re.sub(r"(?m)^#EXT-X-TARGETDURATION:0$", "#EXT-X-TARGETDURATION:1", text)
    if made != text:
        write_whole(path, made.encode())
