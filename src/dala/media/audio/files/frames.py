"""Samples of decoded frames, whatever their format, and however it changes."""

from __future__ import annotations

import numpy as np

from dala.errors import AudioError
from dala.media.audio.checks import LAYOUTS, USUAL, Samples, finite
from dala.media.audio.convert import Converter
from dala.media.audio.graph import frame_samples
from dala.media.notices import notify
from dala.media.video.source import AvObject, pyav


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
        #: Formats that were seen, by FFmpeg's rate and name of the channels.
        self._formats: dict[tuple[int | None, str], tuple[int, str]] = {}
        self.rate, self.layout = self._format(rate, layout)
        #: Samples that were NaN or infinite.
        self.invalid = 0
        self._said = False
        self._formatter: AvObject = None
        self._changed: Converter | None = None
        self._format_now = self.rate, self.layout

    def of(self, frame: AvObject) -> Samples:
        """Return the samples of the next frame, of shape (count, channels)."""
        seen = frame.sample_rate, frame.layout.name
        now = self._formats.get(seen)
        if now is None:
            now = self._formats[seen] = self._format(frame.sample_rate, frame.layout)
        if self._formatter is None or now != self._format_now:
            self._change(now)
        kind = frame.format.name
        if kind == "flt":
            block = frame_samples(frame)
        elif kind == "fltp":  # AAC, Opus, MP3: not worth a filter graph
            planes = frame.planes
            block = np.empty((frame.samples, len(planes)), np.float32)
            for channel, plane in enumerate(planes):
                block[:, channel] = np.frombuffer(plane, np.float32, frame.samples)
        else:
            none = np.empty((0, LAYOUTS[now[1]]), np.float32)
            parts = [frame_samples(made) for made in self._formatter.resample(frame)]
            block = parts[0] if len(parts) == 1 else np.concatenate(parts or [none])
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
        """Convert from here on what differs from the beginning."""
        self._formatter = pyav().AudioResampler(format="flt")
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
