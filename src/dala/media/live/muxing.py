"""Encoding and sending one stream with FFmpeg. Nothing here knows of threads or processes."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Final, NamedTuple, TypedDict

import numpy as np
import numpy.typing as npt

from dala.media.live.playlist import complete_playlist
from dala.media.video.output.opening import open_encoder
from dala.media.video.source import AvObject, DecodedFrame, pyav

#: Samples a second of the sound.
SOUND_RATE: Final = 48000
#: Sound of a slot: (samples, 2), f32.
Samples = npt.NDArray[np.float32]


class StreamSettings(TypedDict):
    """How a stream is encoded, in values that JSON holds."""

    #: FFmpeg's name of the destination, of its muxer, and the muxer's options.
    name: str
    muxer: str
    options: dict[str, str]
    width: int
    height: int
    #: Frames per second as numerator and denominator.
    rate: tuple[int, int]
    encoder: str
    encoder_options: dict[str, str]
    pixel_format: str
    #: The kind of hardware device that frames are uploaded to; "" for none.
    device: str
    tags: tuple[int, int, int, int]
    threads: int
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
        self._rate = Fraction(*settings["rate"])
        self._first: int | None = None
        self._last: int | None = None
        self._playlist = Path(settings["name"]) if settings["muxer"] == "hls" else None
        self._output = pyav().open(
            settings["name"], "w", format=settings["muxer"], container_options=settings["options"]
        )
        try:
            self._video = _add_video(self._output, settings, self._rate)
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
            sent += [self._mux(packet, True) for packet in self._video.encode(picture)]
        if sound is not None and len(sound) and self._audio is not None:
            start = at - round(self._first * SOUND_RATE / self._rate)
            sound, start = sound[max(-start, 0) :], max(start, 0)
            frame = _sound_frame(sound, start) if len(sound) else None
            if frame is not None:
                sent += [self._mux(packet, False) for packet in self._audio.encode(frame)]
        return [packet for packet in sent if packet.size]

    def finish(self) -> list[Sent]:
        """Send what the encoders hold; return it. ``close`` ends the stream."""
        sent = [self._mux(packet, True) for packet in self._video.encode(None)]
        if self._audio is not None:
            sent += [self._mux(packet, False) for packet in self._audio.encode(None)]
        return [packet for packet in sent if packet.size]

    def close(self) -> None:
        """End the stream and disconnect."""
        self._output.close()
        if self._playlist is not None:
            complete_playlist(self._playlist)

    def _mux(self, packet: AvObject, of_video: bool) -> Sent:
        size, slot = packet.size, None
        if size and of_video:
            slot = round(packet.pts * packet.time_base * self._rate) + (self._first or 0)
            # HLS adds up durations, so that slots which were left out must count.
            slots = slot - (slot - 1 if self._last is None else self._last)
            packet.duration = max(1, round(slots / self._rate / packet.time_base))
            self._last = slot
        if size:
            self._output.mux_one(packet)
        return Sent(size, slot)


def _sound_frame(sound: Samples, start: int) -> AvObject:
    made = pyav().AudioFrame.from_ndarray(
        np.ascontiguousarray(sound.T), format="fltp", layout="stereo"
    )
    made.rate, made.pts, made.time_base = SOUND_RATE, start, Fraction(1, SOUND_RATE)
    return made


def _add_video(output: AvObject, settings: StreamSettings, rate: Fraction) -> AvObject:
    device = None
    if settings["device"]:
        from av.codec.hwaccel import HWAccel

        device = HWAccel(device_type=settings["device"], allow_software_fallback=False)
    stream = output.add_stream(
        settings["encoder"], rate=rate, options=dict(settings["encoder_options"]), hwaccel=device
    )
    context = stream.codec_context
    context.width, context.height = settings["width"], settings["height"]
    context.pix_fmt = settings["pixel_format"]
    context.time_base = 1 / rate
    context.thread_count = settings["threads"]
    context.color_range, context.colorspace = settings["tags"][:2]
    context.color_primaries, context.color_trc = settings["tags"][2:]
    open_encoder(context)
    return stream


def _add_audio(output: AvObject, settings: StreamSettings) -> AvObject | None:
    if not settings["sound"]:
        return None
    stream = output.add_stream(settings["sound"], rate=SOUND_RATE, layout="stereo")
    stream.codec_context.bit_rate = settings["sound_bit_rate"]
    return stream
