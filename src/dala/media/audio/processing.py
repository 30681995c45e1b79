"""The effects of sound as methods, and measurements."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import numpy as np

from dala.errors import ParameterError
from dala.media.audio.checks import Samples, check_number, check_room, from_decibels
from dala.media.audio.effects import EffectValue, effect_stream, tempo_stream
from dala.media.audio.graph import FilterStream, filtered
from dala.media.audio.pictures import SoundPictures
from dala.notices import notify

if TYPE_CHECKING:
    from dala.media.audio.audio import Audio
    from dala.media.audio.loudness import Loudness


class SoundEffects(SoundPictures, ABC):
    """The methods of ``Audio`` that libavfilter computes.

    >>> from dala.media import audio
    >>> audio.tone(440, 0.1, rate=8000).limiter(limit=-6).peak < 0.51
    True
    """

    __slots__ = ()

    def compressor(
        self,
        *,
        threshold: float = -18.0,
        ratio: float = 3.0,
        attack: float = 0.02,
        release: float = 0.25,
        knee: float = 9.0,
        makeup: float = 0.0,
    ) -> Self:
        """Return the sound with its loud parts reduced.

        Args:
            threshold: level above which it is reduced, in dB.
            ratio: decibels above the threshold per decibel that is left of them.
            attack: seconds until the reduction is reached.
            release: seconds until it is over.
            knee: width of the transition at the threshold, in dB.
            makeup: gain after it, in dB.

        >>> from dala.media import audio
        >>> audio.tone(440, 0.2, rate=8000).compressor(threshold=-20, ratio=10).peak < 1
        True
        """
        return self._effect(
            "compressor", threshold=threshold, ratio=ratio, attack=attack, release=release,
            knee=knee, makeup=makeup,
        )  # fmt: skip

    def limiter(self, *, limit: float = -1.0, attack: float = 0.005, release: float = 0.05) -> Self:
        """Return the sound with all samples below a limit.

        Sound that does not reach the limit is not changed.

        Args:
            limit: the largest sample, in dB.
            attack: how far it looks ahead, in seconds.
            release: seconds until the full level is back.

        >>> from dala.media import audio
        >>> round(float(audio.tone(440, 0.1, amplitude=3, rate=8000).limiter(limit=-6).peak), 2)
        0.5
        """
        return self._effect("limiter", limit=limit, attack=attack, release=release)

    def eq(
        self,
        bands: Sequence[Sequence[float]] = (),
        *,
        bass: float = 0.0,
        treble: float = 0.0,
        highpass: float | None = None,
        lowpass: float | None = None,
    ) -> Self:
        """Return the sound with other levels of frequencies.

        Args:
            bands: ``(frequency, gain)`` or ``(frequency, gain, q)`` in Hz and dB.
            bass: gain of a shelf below 100 Hz, in dB.
            treble: gain of a shelf above 3000 Hz, in dB.
            highpass: frequency in Hz below which sound is removed.
            lowpass: frequency in Hz above which sound is removed.

        >>> from dala.media import audio
        >>> audio.tone(440, 0.1, amplitude=0.2, rate=8000).eq([(440, 6)]).peak > 0.3
        True
        """
        return self._effect(
            "eq", bands=bands, bass=bass, treble=treble, highpass=highpass, lowpass=lowpass
        )

    def echo(self, *, delay: float = 0.3, decay: float = 0.4, repeats: int = 1) -> Self:
        """Return the sound with echoes, and longer by them.

        Args:
            delay: seconds between echoes.
            decay: level of an echo beside the one before.
            repeats: number of echoes, up to 9.

        >>> from dala.media import audio
        >>> float(audio.tone(440, 1, rate=8000).echo(delay=0.25, repeats=2).duration)
        1.5
        """
        return self._effect("echo", delay=delay, decay=decay, repeats=repeats)

    def denoise(self, *, reduction: float = 12.0, floor: float = -50.0) -> Self:
        """Return the sound with less steady noise, such as hiss or hum.

        Args:
            reduction: how much the noise is reduced, in dB.
            floor: level of the noise in dB: ``20 * log10(rms)`` of a part that has nothing else.

        >>> from dala.media import audio
        >>> hiss = audio.noise(0.5, amplitude=0.01, rate=8000)
        >>> hiss.denoise(reduction=20, floor=-45).rms < 0.15 * hiss.rms
        True
        """
        return self._effect("denoise", reduction=reduction, floor=floor)

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

    def _effect(self, name: str, **given: EffectValue) -> Self:
        call = f"Audio.{name}"
        stream = effect_stream(call, [(name, given)], self.rate, self.layout)
        check_room(call, len(self) * 2, self.channels)
        return self._like(filtered(stream, self.samples))

    @abstractmethod
    def _like(self, samples: Samples) -> Self:
        """Return a sound with other samples, at the same rate and time."""
