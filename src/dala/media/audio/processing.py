"""The effects of sound as methods, and measurements."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Self, Unpack

import numpy as np

from dala.arguments import Integer
from dala.errors import ParameterError
from dala.media.audio import effects
from dala.media.audio.checks import Samples, check_number, check_room, from_decibels
from dala.media.audio.effects import effect_stream, tempo_stream
from dala.media.audio.graph import FilterStream, filtered
from dala.notices import notify
from dala.options import takes
from dala.typing import NDArray

if TYPE_CHECKING:
    from dala.media.audio import keywords
    from dala.media.audio.audio import Audio
    from dala.media.audio.loudness import Loudness
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


class SoundEffects(SoundPictures, ABC):
    """The methods of ``Audio`` that libavfilter computes.

    >>> from dala.media import audio
    >>> audio.tone(440, 0.1, rate=8000).limiter(limit=-6).peak < 0.51
    True
    """

    __slots__ = ()

    @takes(effects.CompressorOptions)
    def compressor(self, **given: Unpack[keywords.CompressorKeywords]) -> Self:
        """Return the sound with its loud parts reduced.

        >>> from dala.media import audio
        >>> audio.tone(440, 0.2, rate=8000).compressor(threshold=-20, ratio=10).peak < 1
        True
        """
        return self._effect("compressor", given)

    @takes(effects.LimiterOptions)
    def limiter(self, **given: Unpack[keywords.LimiterKeywords]) -> Self:
        """Return the sound with all samples below a limit.

        Sound that does not reach the limit is not changed.

        >>> from dala.media import audio
        >>> round(float(audio.tone(440, 0.1, amplitude=3, rate=8000).limiter(limit=-6).peak), 2)
        0.5
        """
        return self._effect("limiter", given)

    @takes(effects.EqOptions)
    def eq(
        self, bands: Sequence[Sequence[float]] = (), **given: Unpack[keywords.EqKeywords]
    ) -> Self:
        """Return the sound with other levels of frequencies.

        >>> from dala.media import audio
        >>> audio.tone(440, 0.1, amplitude=0.2, rate=8000).eq([(440, 6)]).peak > 0.3
        True
        """
        return self._effect("eq", {"bands": bands, **given})

    @takes(effects.EchoOptions)
    def echo(self, **given: Unpack[keywords.EchoKeywords]) -> Self:
        """Return the sound with echoes, and longer by them.

        >>> from dala.media import audio
        >>> float(audio.tone(440, 1, rate=8000).echo(delay=0.25, repeats=2).duration)
        1.5
        """
        return self._effect("echo", given)

    @takes(effects.DenoiseOptions)
    def denoise(self, **given: Unpack[keywords.DenoiseKeywords]) -> Self:
        """Return the sound with less steady noise, such as hiss or hum.

        >>> from dala.media import audio
        >>> hiss = audio.noise(0.5, amplitude=0.01, rate=8000)
        >>> hiss.denoise(reduction=20, floor=-45).rms < 0.15 * hiss.rms
        True
        """
        return self._effect("denoise", given)

    def reverb(self, impulse: Audio, *, wet: float = 0.3, dry: float = 1.0) -> Self:
        """Return the sound in a room, and longer by its reverberation.

        Args:
            impulse: the impulse response of the room, a recording of what it makes of a click.
                Its rate and layout are converted to those of the sound.
            wet: factor of the sound that went through the room.
            dry: factor of the sound as it is.

        >>> from dala.media import audio
        >>> click = audio.Audio([1.0, 0, 0, 0], 8000)
        >>> click.reverb(audio.Audio([0, 0.5], 8000), wet=1).samples[:, 0].round(3).tolist()
        [1.0, 0.5, 0.0, 0.0, 0.0]
        """
        call = "Audio.reverb"
        if not isinstance(impulse, SoundEffects):
            raise ParameterError.invalid(call, "impulse", "an Audio", impulse)
        if not len(impulse):
            raise ParameterError(f"{call}: impulse must not be empty.")
        wet = check_number(call, "wet", wet, 0.0, 100.0)
        dry = check_number(call, "dry", dry, 0.0, 100.0)
        room = impulse.resample(self.rate, layout=self.layout)
        tail = len(room) - 1
        check_room(call, (len(self) + tail) * 3, self.channels)
        wait = FilterStream(
            call, [("afir", "irnorm=-1:irlink=0:irfmt=input:maxir=60")], self.rate, self.layout,
            pad=tail, total=lambda count: count + tail, side=room.samples,
        )  # fmt: skip
        made = filtered(wait, self.samples) * np.float32(wet)
        made[: len(self)] += self.samples * np.float32(dry)
        return self._like(made)

    def tempo(self, speed: float) -> Self:
        """Return the sound faster or slower, at the same pitch.

        Args:
            speed: 2 plays twice as fast, 0.5 at half the speed.

        >>> from dala.media import audio
        >>> float(audio.tone(440, 1, rate=8000).tempo(2).duration)
        0.5
        """
        call = "Audio.tempo"
        speed = check_number(call, "speed", speed, 0.05, 100.0)
        if speed == 1 or not len(self):
            return self._like(self.samples)
        check_room(call, round(len(self) / speed) * 2, self.channels)
        return self._like(filtered(tempo_stream(call, speed, self.rate, self.layout), self.samples))

    def loudness(self) -> Loudness:
        """Measure the loudness by EBU R128 (ITU-R BS.1770), with the true peak and the range.

        >>> from dala.media import audio
        >>> sound = audio.tone(1000, 1, amplitude=10 ** (-23 / 20), layout="stereo")
        >>> round(sound.loudness().integrated, 1)
        -23.0
        """
        from dala.media.audio.loudness import measure

        return measure("Audio.loudness", [self.samples], self.rate, self.layout)

    def normalize(
        self, *, peak: float | None = None, loudness: float | None = None, limit: float = -1.0
    ) -> Self:
        """Return the sound at a given level.

        Args:
            peak: the largest sample in dB; 0 is full scale. By default -1, without ``loudness``.
            loudness: the integrated loudness in LUFS, by EBU R128: -23 for broadcasts, -16 or -14
                on the web. Peaks that would exceed ``limit`` are limited, with a notice.
            limit: in dB.

        >>> from dala.media import audio
        >>> quiet = audio.tone(440, 1, amplitude=0.01, layout="stereo")
        >>> round(float(quiet.normalize(peak=-6).peak), 3)
        0.501
        >>> round(quiet.normalize(loudness=-16).loudness().integrated, 1)
        -16.0
        """
        from dala.media.audio.loudness import measure

        call = "Audio.normalize"
        if peak is not None and loudness is not None:
            raise ParameterError(f"{call}: give peak or loudness, not both.")
        if loudness is None:
            wanted = check_number(call, "peak", -1.0 if peak is None else peak, -120.0, 60.0, "dB")
            factor = from_decibels(wanted) / self.peak if self.peak else 1.0
            return self._like(self.samples * np.float32(factor))
        target = check_number(call, "loudness", loudness, -70.0, 0.0, "LUFS")
        check_number(call, "limit", limit, -24.0, 0.0, "dB")
        facts = self.rate, self.layout
        found = measure(call, [self.samples], *facts, true_peak=False, maxima=False).integrated
        if not math.isfinite(found):
            notify(f"{call}: the sound is silent, so it is left as it is.")
            return self._like(self.samples)
        made = self.samples * np.float32(from_decibels(target - found))
        if np.abs(made).max(initial=0.0) > from_decibels(limit):
            notify(f"{call}: peaks above {limit:g} dB are limited to reach {target:g} LUFS.")
            made = filtered(effect_stream(call, [("limiter", {"limit": limit})], *facts), made)
        return self._like(made)

    def _effect(self, name: str, given: Mapping[str, Any]) -> Self:
        call = f"Audio.{name}"
        stream = effect_stream(call, [(name, given)], self.rate, self.layout)
        check_room(call, len(self) * 2, self.channels)
        return self._like(filtered(stream, self.samples))

    @abstractmethod
    def _like(self, samples: Samples) -> Self:
        """Return a sound with other samples, at the same rate and time."""
