"""The effects of sound: their parameters with ranges, and the filters of libavfilter behind them.

Each effect is a group of options. The methods of ``Audio``, lists of effects in mixers and scenes,
and their errors follow from it.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self, TypeAlias

from dala.arguments import Fitting, Items, Quantity, Selection
from dala.errors import ParameterError
from dala.media.audio.checks import check_number, from_decibels, range_text
from dala.media.audio.graph import FilterStream, Step
from dala.options import Options, option

#: The value of a parameter: a number, or the bands of an equalizer.
EffectValue: TypeAlias = "float | Sequence[Sequence[float]] | None"
#: An effect with its parameters: ``("compressor", {"ratio": 4})``.
Effect: TypeAlias = "tuple[str, Mapping[str, EffectValue]]"
#: A band of an equalizer: frequency in Hz, gain in dB, and Q (1 if left out).
Band: TypeAlias = tuple[float, float, float]


@dataclass(frozen=True, kw_only=True)
class EffectOptions(Options):
    """The parameters of an effect, and the filters that it stands for."""

    def fitted(self, call: str, rate: int) -> Self:
        """Return the parameters for a rate; raise ParameterError where it is too low for them."""
        return self

    @abstractmethod
    def steps(self, rate: int) -> list[Step]:
        """Return the filters."""

    def latency(self, rate: int) -> int:
        """Return the samples by which the filters delay the sound."""
        return 0

    def tail(self, rate: int) -> int:
        """Return the samples by which the sound becomes longer."""
        return 0


def _number(low: float, high: float = math.inf, unit: str = "") -> Quantity:
    return Quantity(low, high, words=range_text(low, high, unit))


_HERTZ: Final = _number(1, unit="Hz")


@dataclass(frozen=True, kw_only=True)
class CompressorOptions(EffectOptions):
    """The reduction of loud parts."""

    threshold: float = option(
        _number(-60, 0, "dB"), -18.0, "level above which it is reduced, in dB"
    )
    ratio: float = option(
        _number(1, 20), 3.0, "decibels above the threshold per decibel that is left of them"
    )
    attack: float = option(_number(1e-5, 2, "s"), 0.02, "seconds until the reduction is reached")
    release: float = option(_number(1e-5, 9, "s"), 0.25, "seconds until it is over")
    knee: float = option(
        _number(0, 18, "dB"), 9.0, "width of the transition at the threshold, in dB"
    )
    makeup: float = option(_number(0, 36, "dB"), 0.0, "gain after it, in dB")

    def steps(self, rate: int) -> list[Step]:
        """Return the compressor."""
        threshold, knee, makeup = map(_factor, (self.threshold, self.knee, self.makeup))
        return [(
            "acompressor",
            f"threshold={threshold}:ratio={self.ratio}:attack={self.attack * 1000}"
            f":release={self.release * 1000}:knee={knee}:makeup={makeup}",
        )]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class LimiterOptions(EffectOptions):
    """A limit of all samples."""

    limit: float = option(_number(-24, 0, "dB"), -1.0, "the largest sample, in dB")
    attack: float = option(_number(1e-4, 0.08, "s"), 0.005, "how far it looks ahead, in seconds")
    release: float = option(_number(1e-3, 8, "s"), 0.05, "seconds until the full level is back")

    def steps(self, rate: int) -> list[Step]:
        """Return the limiter. Samples below the limit keep every bit."""
        times = f"attack={self.attack * 1000}:release={self.release * 1000}"
        return [("alimiter", f"limit={_factor(self.limit)}:{times}:level=0:latency=1")]


@dataclass(frozen=True, kw_only=True)
class EqOptions(EffectOptions):
    """The level of frequencies."""

    bands: Sequence[Sequence[float]] = option(
        Fitting(), (), "``(frequency, gain)`` or ``(frequency, gain, q)`` in Hz and dB", named=True
    )
    bass: float = option(_number(-60, 60, "dB"), 0.0, "gain of a shelf below 100 Hz, in dB")
    treble: float = option(_number(-60, 60, "dB"), 0.0, "gain of a shelf above 3000 Hz, in dB")
    highpass: float | None = option(_HERTZ, None, "frequency in Hz below which sound is removed")
    lowpass: float | None = option(_HERTZ, None, "frequency in Hz above which sound is removed")

    def fitted(self, call: str, rate: int) -> Self:
        """Return the parameters for a rate: no frequency may be above half of it."""
        for name in ("highpass", "lowpass"):
            if (frequency := getattr(self, name)) is not None:
                check_number(call, name, frequency, 1, rate / 2, "Hz")
        return replace(self, bands=_bands(call, self.bands, rate))

    def steps(self, rate: int) -> list[Step]:
        """Return a filter for each change, in f64: blocks of any size give the same samples."""
        passes = {"highpass": self.highpass, "lowpass": self.lowpass}
        shelves = (("bass", self.bass, 100.0), ("treble", self.treble, 3000.0))
        return [
            *((name, f"f={f}:r=f64") for name, f in passes.items() if f is not None),
            *((n, f"g={g}:f={f}:r=f64") for n, g, f in shelves if g and f < rate / 2),
            *(("equalizer", f"f={f}:t=q:w={q}:g={g}:r=f64") for f, g, q in self.bands if g),
        ]


@dataclass(frozen=True, kw_only=True)
class EchoOptions(EffectOptions):
    """Echoes."""

    delay: float = option(_number(1e-4, 10, "s"), 0.3, "seconds between echoes")
    decay: float = option(_number(0, 1), 0.4, "level of an echo beside the one before")
    repeats: float = option(_number(1, 9), 1.0, "number of echoes, up to 9")

    def steps(self, rate: int) -> list[Step]:
        """Return the echoes."""
        times = range(1, round(self.repeats) + 1)
        delays = "|".join(f"{self.delay * 1000 * n:.6f}" for n in times)
        decays = "|".join(f"{max(self.decay**n, 1e-6):.9f}" for n in times)
        return [("aecho", f"1:1:{delays}:{decays}")]

    def tail(self, rate: int) -> int:
        """Return the samples until the last echo."""
        return math.ceil(self.delay * round(self.repeats) * rate)


@dataclass(frozen=True, kw_only=True)
class DenoiseOptions(EffectOptions):
    """The reduction of steady noise.

    Args:
        floor: level of the noise in dB: ``20 * log10(rms)`` of a part that has nothing else.
    """

    reduction: float = option(_number(0.01, 97, "dB"), 12.0, "how much noise is reduced, in dB")
    floor: float = option(_number(-85, -25, "dB"), -50.0, "level of the noise in dB")

    def steps(self, rate: int) -> list[Step]:
        """Return the filter. It takes for noise what is below its floor, 5 dB above the level."""
        return [("afftdn", f"nr={self.reduction}:nf={self.floor + 5}")]

    def latency(self, rate: int) -> int:
        """Return the samples by which its windows delay the sound."""
        return 2 * (rate // 80)


def _bands(call: str, value: object, rate: int) -> tuple[Band, ...]:
    expected = "a list of (frequency, gain) or (frequency, gain, q)"
    made = []
    for band in Items(expected).check(call, "bands", value):
        Items(expected, (2, 3)).check(call, "bands", band)
        frequency = check_number(call, "the frequency of a band", band[0], 1, rate / 2, "Hz")
        gain = check_number(call, "the gain of a band", band[1], -60, 60, "dB")
        q = check_number(call, "the q of a band", band[2] if len(band) == 3 else 1.0, 0.01, 100)
        made.append((frequency, gain, q))
    return tuple(made)


def _factor(decibels: float) -> float:
    return round(from_decibels(decibels), 9)


#: The parameters of each effect by its name.
EFFECTS: Final[dict[str, type[EffectOptions]]] = {
    "compressor": CompressorOptions, "limiter": LimiterOptions, "eq": EqOptions,
    "echo": EchoOptions, "denoise": DenoiseOptions,
}  # fmt: skip


def checked_effect(call: str, name: str, given: Mapping[str, object], rate: int) -> EffectOptions:
    """Return the parameters of an effect; raise ParameterError.

    >>> checked_effect("Audio.limiter", "limiter", {"limit": -3}, 48000).to_json()
    {'limit': -3.0, 'attack': 0.005, 'release': 0.05}
    """
    kind = EFFECTS[Selection(*EFFECTS).check(call, "effect", name)]
    return kind.checked(call, given).fitted(call, rate)


def check_effects(call: str, effects: Sequence[Effect], rate: int) -> list[Effect]:
    """Return a list of effects with all their parameters, checked.

    >>> check_effects("add_audio", [("limiter", {"limit": -3})], 48000)[0][0]
    'limiter'
    """
    expected = "a list such as [('compressor', {'ratio': 4})]"
    made: list[Effect] = []
    for item in Items(expected).check(call, "effects", effects):
        if isinstance(item, str):
            item = (item, {})
        if not isinstance(item, Sequence) or len(item) != 2 or not isinstance(item[1], Mapping):
            raise ParameterError.invalid(call, "effects", expected, item)
        made.append((item[0], vars(checked_effect(call, item[0], item[1], rate))))
    return made


def effect_stream(call: str, effects: Sequence[Effect], rate: int, layout: str) -> FilterStream:
    """Return a stream of several effects, one after another, aligned with the input."""
    chain = [checked_effect(call, name, given, rate) for name, given in effects]
    latency = sum(effect.latency(rate) for effect in chain)
    tail = sum(effect.tail(rate) for effect in chain)
    return FilterStream(
        call, [step for effect in chain for step in effect.steps(rate)], rate, layout,
        drop=latency, pad=latency, total=lambda count: count + tail,
    )  # fmt: skip


# tempo ------------------------------------------------------------------------------------------
def tempo_stream(call: str, speed: float, rate: int, layout: str) -> FilterStream:
    """Return a stream that plays faster or slower at the same pitch.

    Output and input are aligned within 20 ms.
    """
    window = 1 << math.ceil(math.log2(rate / 24))
    steps: list[Step] = []
    left = speed
    while left < 0.5:
        steps.append(("atempo", "0.5"))
        left /= 0.5
    steps.append(("atempo", f"{left:.12g}"))
    # The filter is early by about this much of its window, and keeps its last windows.
    return FilterStream(
        call, steps, rate, layout, lead=round(0.4 * window), pad=4 * window * len(steps),
        total=lambda count: round(count / speed),
    )  # fmt: skip
