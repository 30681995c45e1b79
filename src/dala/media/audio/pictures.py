"""Pictures of sound: the waveform, and the spectrogram on the compute engine's FFT."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from dala.arguments import Integer
from dala.media.audio.checks import Samples, check_number
from dala.typing import NDArray

if TYPE_CHECKING:
    from dala.media.frame import Frame

#: The colors of the spectrogram, from the floor to full scale.
_COLORS: Final = np.array(
    [(0, 0, 4), (40, 11, 84), (101, 21, 110), (159, 42, 99), (212, 72, 66), (245, 125, 21),
     (250, 193, 39), (252, 255, 164)], np.float64,
)  # fmt: skip
#: Transforms that are computed at once.
_BATCH: Final = 512
_SIDE: Final = Integer(1, 16384)


class SoundPictures:
    """Sound as an array of samples, and its pictures."""

    __slots__: tuple[str, ...] = ()

    _samples: Samples
    layout: str
    rate: int

    @property
    def samples(self) -> Samples:
        """The samples, an array of shape (samples, channels), f32, read-only."""
        return self._samples

    @property
    def channels(self) -> int:
        """Number of channels."""
        return int(self._samples.shape[1])

    @property
    def peak(self) -> float:
        """The largest absolute sample; 1 is full scale."""
        return float(np.abs(self._samples).max(initial=0.0))

    def __len__(self) -> int:
        return len(self._samples)

    def waveform(
        self,
        width: int = 800,
        height: int = 200,
        *,
        color: str | Sequence[int] = "#3b82f6",
        background: str | Sequence[int] = "white",
    ) -> Frame:
        """Return a picture of the samples over time, one row for each channel.

        >>> from dala.media.audio import Audio
        >>> Audio([0.5, -0.5] * 100, 8000).waveform(64, 32).shape
        (32, 64, 4)
        """
        from dala.gpu.command import color_to_rgba
        from dala.media.frame import Frame

        call = "Audio.waveform"
        width = _SIDE.check(call, "width", width)
        height = _SIDE.check(call, "height", height)
        made = np.empty((height, width, 4), np.uint8)
        made[:] = tuple(color_to_rgba(background))
        front = np.array(tuple(color_to_rgba(color)), np.uint8)
        if not len(self):
            return Frame.from_array(made)
        edges = np.linspace(0, len(self), width + 1).astype(np.int64)
        starts = np.minimum(edges[:-1], len(self) - 1)
        low = np.minimum.reduceat(self.samples, starts, axis=0)
        high = np.maximum.reduceat(self.samples, starts, axis=0)
        rows = np.arange(height)[:, None]
        for channel in range(self.channels):
            top, bottom = (height * n // self.channels for n in (channel, channel + 1))
            if bottom <= top:
                continue
            middle, half = (top + bottom - 1) / 2, (bottom - top - 1) / 2
            first = np.round(middle - np.clip(high[:, channel], -1, 1) * half)
            last = np.round(middle - np.clip(low[:, channel], -1, 1) * half)
            made[(rows >= first) & (rows <= last)] = front
        return Frame.from_array(made)

    def spectrogram(
        self,
        width: int = 800,
        height: int = 300,
        *,
        window: int = 2048,
        floor: float = -90.0,
        highest: float | None = None,
        device: str | None = None,
    ) -> Frame:
        """Return a picture of the frequencies over time, computed by the engine's FFT.

        Args:
            width: in pixels.
            height: in pixels.
            window: samples of each transform.
            floor: level in dB that is drawn black; full scale is drawn brightest.
            highest: frequency at the top in Hz; by default half the rate. 0 Hz is at the bottom.
            device: where it is computed.

        >>> from dala.media.audio import Audio
        >>> Audio([0.5, -0.5] * 400, 8000).spectrogram(64, 32, window=256, device="cpu").shape
        (32, 64, 4)
        """
        from dala.media.frame import Frame

        call = "Audio.spectrogram"
        width = _SIDE.check(call, "width", width)
        height = _SIDE.check(call, "height", height)
        Integer(16, 65536).check(call, "window", window)
        check_number(call, "floor", floor, -200.0, -1.0, "dB")
        nyquist = self.rate / 2
        top = nyquist if highest is None else check_number(
            call, "highest", highest, 1.0, nyquist, "Hz"
        )  # fmt: skip
        levels = band_levels(self.samples.mean(axis=1), width, window, device)
        bins = np.linspace(top, 0, height) / nyquist * (levels.shape[1] - 1)
        low = np.floor(bins).astype(np.int64)
        share = (bins - low)[:, None]
        high = np.minimum(low + 1, levels.shape[1] - 1)
        power = levels.T[low] * (1 - share) + levels.T[high] * share
        decibels = 20 * np.log10(np.maximum(power, 1e-12))
        value = np.clip(1 - decibels / floor, 0, 1) * (len(_COLORS) - 1)
        first = np.minimum(value.astype(np.int64), len(_COLORS) - 2)
        rest = (value - first)[..., None]
        made = np.full((height, width, 4), 255, np.uint8)
        made[..., :3] = np.round(_COLORS[first] * (1 - rest) + _COLORS[first + 1] * rest)
        return Frame.from_array(made)


def band_levels(samples: Samples, columns: int, window: int, device: str | None) -> NDArray:
    """Return the amplitude of each frequency in windows around evenly spaced times.

    A sine of amplitude 1 has the level 1 at its frequency. The result has the shape
    (columns, window // 2 + 1).
    """
    from dala.gpu import compute

    shape = np.hanning(window + 1)[:-1].astype(np.float32)
    scale = 2 / float(shape.sum())
    padded = np.concatenate([np.zeros(window // 2, np.float32), samples,
                             np.zeros(window, np.float32)])  # fmt: skip
    centers = np.round((np.arange(columns) + 0.5) * (len(samples) / columns)).astype(np.int64)
    made = np.empty((columns, window // 2 + 1), np.float32)
    views = np.lib.stride_tricks.sliding_window_view(padded, window)
    for at in range(0, columns, _BATCH):
        part = views[centers[at : at + _BATCH]] * shape
        given = compute.from_array(part, device=device)
        found = compute.buffer_zeros((*part.shape, 2), "f32", device=given.device)
        compute.run_kernel("fft", [given], found)
        half = found.numpy()[:, : window // 2 + 1]
        made[at : at + _BATCH] = np.hypot(half[..., 0], half[..., 1]) * scale
    return made
