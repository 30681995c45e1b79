"""Sound in memory: samples with a rate, a layout and an exact start time."""

from __future__ import annotations

import io
from collections.abc import Sequence
from fractions import Fraction
from typing import Self

import numpy as np

from dala.budget import check_deadline
from dala.errors import ParameterError
from dala.errors.describing import KnownAttributes
from dala.media.audio.checks import (
    CURVE,
    LAYOUT,
    LAYOUTS,
    USUAL,
    Samples,
    Seconds,
    apply_fades,
    as_samples,
    check_number,
    check_rate,
    check_room,
    check_time,
    from_decibels,
    pan_mono,
    pan_stereo,
)
from dala.media.audio.processing import SoundEffects
from dala.typing import NDArray, PathLike


class Audio(KnownAttributes, SoundEffects):
    """Sound in memory. Methods return new sounds; samples are never changed in place.

    ``sound[1.5:3]`` is a part of it by seconds, which keeps its time. ``numpy.asarray(sound)`` is
    an array of shape (samples, channels), f32, read-only.

    Args:
        samples: an array of shape (samples,) or (samples, channels), or anything that NumPy makes
            one of. Floats have full scale at 1 and may exceed it; integers are scaled by their
            range.
        rate: samples per second, from 1000 to 768000.
        layout: the channels: "mono", "stereo", "5.1", "7.1", ...; by default by their number.
        start: the time of the first sample in seconds, exact if it is a Fraction.

    Raises:
        ParameterError: an argument is invalid, or samples are NaN or infinite.

    >>> sound = Audio([[0.5, -0.5]] * 4, 8000)
    >>> sound.layout, sound.duration
    ('stereo', Fraction(1, 2000))
    >>> sound.gain(factor=0.5).samples[0].tolist()
    [0.25, -0.25]
    """

    __slots__ = ("_samples", "layout", "rate", "start")

    def __init__(
        self,
        samples: NDArray | Sequence[float] | Sequence[Sequence[float]],
        rate: int = 48000,
        *,
        layout: str | None = None,
        start: Seconds = 0,
    ) -> None:
        if isinstance(samples, Audio):
            raise ParameterError.invalid("Audio", "samples", "an array", samples)
        found = as_samples("Audio", samples).view()  # type: ignore[arg-type]
        found.flags.writeable = False
        self._samples = found
        #: Samples per second.
        self.rate = check_rate("Audio", rate)
        #: The channels: "mono", "stereo", "5.1", ...
        self.layout = (
            USUAL[found.shape[1]] if layout is None else LAYOUT.check("Audio", "layout", layout)
        )
        if LAYOUTS[self.layout] != found.shape[1]:
            expected = f"one of {found.shape[1]} channels"
            raise ParameterError.invalid("Audio", "layout", expected, layout)
        #: The time of the first sample in seconds, exact.
        self.start: Fraction = check_time("Audio", "start", start)

    # facts ------------------------------------------------------------------------------------

    @property
    def duration(self) -> Fraction:
        """Duration in seconds, exact."""
        return Fraction(len(self._samples), self.rate)

    @property
    def end(self) -> Fraction:
        """The time after the last sample in seconds, exact."""
        return self.start + self.duration

    @property
    def rms(self) -> float:
        """The root of the mean square of all samples."""
        if not self._samples.size:
            return 0.0
        return float(np.sqrt(np.mean(np.square(self._samples, dtype=np.float64))))

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Audio):
            return NotImplemented
        mine, yours = (
            (sound.rate, sound.layout, sound.start, len(sound)) for sound in (self, other)
        )
        return mine == yours and np.array_equal(self._samples, other._samples)

    __hash__ = None  # type: ignore[assignment]

    def __array__(self, dtype: np.dtype | None = None, copy: bool | None = None) -> NDArray:
        if copy or (dtype is not None and np.dtype(dtype) != np.float32):
            return np.array(self._samples, dtype=dtype)
        return self._samples

    def numpy(self) -> Samples:
        """Return a copy of the samples that can be written to.

        >>> Audio([0.5], 8000).numpy()
        array([[0.5]], dtype=float32)
        """
        return self._samples.copy()

    def __repr__(self) -> str:
        at = f" at {float(self.start):g} s" if self.start else ""
        return f"<Audio {float(self.duration):g} s{at}, {self.rate} Hz, {self.layout}>"

    def _repr_html_(self) -> str:
        """A player and the waveform, in notebooks."""
        from dala.notebook import html_picture, html_text

        picture = np.asarray(self.waveform(480, 96))
        return html_text(repr(self)) + html_picture(picture)

    def __getitem__(self, part: slice) -> Self:
        """Return a part by seconds from the beginning; negative ones count from the end."""
        if not isinstance(part, slice) or part.step is not None:
            raise ParameterError.invalid(
                "Audio", "index", "a slice of seconds such as [1.5:3]", part,
                "sound.samples has the single samples.",
            )  # fmt: skip
        first, last = (
            default if at is None else self._index(at)
            for at, default in ((part.start, 0), (part.stop, len(self)))
        )
        made = self._samples[first : max(first, last)]
        return self._made(made, self.start + Fraction(first, self.rate))

    def _index(self, at: Seconds) -> int:
        place = round(check_time("Audio", "a time", at) * self.rate)
        if place < 0:
            place += len(self)
        return min(max(place, 0), len(self))

    # exact edits ------------------------------------------------------------------------------
    def at(self, start: Seconds) -> Self:
        """Return the sound with another start time.

        >>> Audio([0.5], 8000).at(2).start
        Fraction(2, 1)
        """
        return self._made(self._samples, check_time("Audio.at", "start", start))

    def gain(self, decibels: float | None = None, *, factor: float | NDArray | None = None) -> Self:
        """Return the sound louder or quieter.

        Args:
            decibels: by how much; -6 is about half the amplitude.
            factor: the factor of the samples instead, or an array with one for each.

        >>> round(Audio([0.5], 8000).gain(6).peak, 3)
        0.998
        """
        call = "Audio.gain"
        if (decibels is None) == (factor is None):
            raise ParameterError(f"{call}: give decibels or factor, one of them.")
        if isinstance(factor, np.ndarray) and factor.ndim:
            if factor.shape != (len(self),) or not np.isfinite(factor).all():
                expected = f"a number, or {len(self)} finite numbers"
                raise ParameterError.invalid(call, "factor", expected, factor)
            return self._like(self._samples * factor.astype(np.float32)[:, None])
        if decibels is not None:
            number = from_decibels(check_number(call, "decibels", decibels, -1000.0, 120.0, "dB"))
        else:
            number = check_number(call, "factor", factor, -1e6, 1e6)  # type: ignore[arg-type]
        return self._like(self._samples * np.float32(number))

    def fade_in(self, seconds: Seconds, curve: str = "linear") -> Self:
        """Return the sound with a beginning that rises from silence.

        Args:
            seconds: duration of the fade.
            curve: "linear", or "equal_power", which keeps the power of two sounds that fade into
                each other.

        >>> Audio([1.0] * 4, 8000).fade_in(2 / 8000).samples[:, 0].tolist()
        [0.0, 0.5, 1.0, 1.0]
        """
        return self._faded("Audio.fade_in", seconds, 0, curve)

    def fade_out(self, seconds: Seconds, curve: str = "linear") -> Self:
        """Return the sound with an end that falls to silence; see :meth:`fade_in`.

        >>> Audio([1.0] * 4, 8000).fade_out(2 / 8000).samples[:, 0].tolist()
        [1.0, 1.0, 1.0, 0.5]
        """
        return self._faded("Audio.fade_out", 0, seconds, curve)

    def _faded(self, call: str, rising: Seconds, falling: Seconds, curve: str) -> Self:
        counts = [
            round(check_time(call, "seconds", s, low=0) * self.rate) for s in (rising, falling)
        ]
        CURVE.check(call, "curve", curve)
        return self._like(apply_fades(self._samples, 0, len(self), counts[0], counts[1], curve))

    def pan(self, position: float | NDArray) -> Self:
        """Return the sound as stereo at a position, by the law of equal power.

        A mono sound in the middle has 0.7071 of its level in both channels. A stereo sound in the
        middle is left as it is; towards a side, the other channel moves over to it.

        Args:
            position: -1 is left, 0 the middle, 1 right; or an array with one for each sample.

        >>> Audio([1.0], 8000).pan(0).samples.astype(float).round(4).tolist()
        [[0.7071, 0.7071]]
        """
        call = "Audio.pan"
        if self.channels > 2:
            raise ParameterError(
                f"{call}: the sound must be mono or stereo, got {self.layout}. "
                "Use resample(layout='stereo') first."
            )
        if isinstance(position, np.ndarray) and position.ndim:
            inside = position.shape == (len(self),) and bool((np.abs(position) <= 1).all())
            if not inside:
                expected = f"a number from -1 to 1, or {len(self)} of them"
                raise ParameterError.invalid(call, "position", expected, position)
            where = position
        else:
            where = np.array(check_number(call, "position", position, -1.0, 1.0))  # type: ignore[arg-type]
        moved = (pan_mono if self.channels == 1 else pan_stereo)(self._samples, where)
        return type(self)(moved, self.rate, layout="stereo", start=self.start)

    def reverse(self) -> Self:
        """Return the sound backwards.

        >>> Audio([0.0, 0.5], 8000).reverse().samples[:, 0].tolist()
        [0.5, 0.0]
        """
        return self._like(self._samples[::-1])

    # conversion -------------------------------------------------------------------------------
    def resample(self, rate: int | None = None, *, layout: str | None = None) -> Self:
        """Return the sound with another rate, another layout, or both.

        Mono becomes stereo, and stereo mono, without a change of level. Other layouts are mixed
        down as ITU-R BS.775 says, without scaling, so samples may exceed 1.

        Args:
            rate: samples per second; by default as it is.
            layout: the channels; by default as they are.

        >>> Audio([0.5] * 8, 16000).resample(8000, layout="stereo")
        <Audio 0.0005 s, 8000 Hz, stereo>
        """
        from dala.media.audio.graph import converted

        call = "Audio.resample"
        new_rate = self.rate if rate is None else check_rate(call, rate)
        new_layout = self.layout if layout is None else LAYOUT.check(call, "layout", layout)
        check_room(call, 2 * (len(self) * new_rate // self.rate + 1), LAYOUTS[new_layout])
        made = converted(call, self._samples, self.rate, self.layout, new_rate, new_layout)
        return type(self)(made, new_rate, layout=new_layout, start=self.start)

    def save(
        self, path: PathLike | io.BytesIO, *, format: str | None = None, codec: str | None = None,
        bit_rate: int | None = None,
    ) -> None:  # fmt: skip
        """Write the sound to a file, which appears when it is complete.

        Args:
            path: the file; its suffix names the container (.wav, .flac, .mp3, .m4a, .ogg, .opus,
                .mka, ...). Or a file object open for writing bytes.
            format: the container, such as "wav", for file objects and other suffixes.
            codec: "aac", "opus", "vorbis", "flac", "mp3", "alac", "ac3", "pcm" (16 bits), "pcm24",
                "pcm32" or "pcm_float"; by default what is usual in the container. WAV has 16 bits.
            bit_rate: bits per second; by default 96000 for each channel.

        Raises:
            AudioError: the file cannot be written.

        Example::

            audio.tone(440, 2).save("beep.flac")
        """
        from dala.media.audio.files.writer import save

        save(self, path, format, codec, bit_rate)

    # inside -----------------------------------------------------------------------------------
    def _like(self, samples: Samples) -> Self:
        return self._made(samples, self.start)

    def _made(self, samples: Samples, start: Fraction) -> Self:
        check_deadline("Audio")
        return type(self)(samples, self.rate, layout=self.layout, start=start)
