"""The effects of sound: their parameters with ranges, and the filters of libavfilter behind them.

Each effect is declared once, in ``EFFECTS``. The methods of ``Audio``, lists of effects in mixers
and scenes, and their errors follow from the declaration.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from dala.arguments import Selection
from dala.errors import ParameterError, UnknownParameter, did_you_mean
from dala.media.audio.checks import check_number, from_decibels
from dala.media.audio.graph import FilterStream, Step

#: The value of a parameter: a number, or the bands of an equalizer.
EffectValue: TypeAlias = "float | Sequence[Sequence[float]] | None"
#: An effect with its parameters: ``("compressor", {"ratio": 4})``.
Effect: TypeAlias = "tuple[str, Mapping[str, EffectValue]]"
#: A band of an equalizer: frequency in Hz, gain in dB, and Q (1 if left out).
Band: TypeAlias = tuple[float, float, float]


@dataclass(frozen=True)
class EffectParameter:
    """A number that an effect takes, or the bands of an equalizer.

    >>> _of("ratio", 2.0, 1.0, 20.0, "", "Compression.").checked("compressor", 4, 48000)
    4.0
    """

    name: str
    default: EffectValue
    low: float
    high: float
    unit: str
    description: str

    def checked(self, call: str, value: EffectValue, rate: int) -> EffectValue:
        """Return a value of the parameter; raise ParameterError if it is none."""
        high = min(self.high, rate / 2) if self.unit == "Hz" else self.high
        if self.name == "bands":
            return _bands(call, value, rate)
        if value is None and self.default is None:
            return None
        return check_number(call, self.name, value, self.low, high, self.unit)  # type: ignore[arg-type]


#: The checked parameters of an effect. The functions below know which are numbers.
Settings: TypeAlias = "dict[str, float]"


@dataclass(frozen=True)
class EffectSpec:
    """The declaration of an effect.

    >>> sorted(EFFECTS)
    ['compressor', 'denoise', 'echo', 'eq', 'limiter']
    """

    description: str
    parameters: tuple[EffectParameter, ...]
    #: The filters for checked parameters and a rate.
    steps: Callable[[Settings, int], list[Step]]
    #: Samples by which the filters delay the sound.
    latency: Callable[[int], int] = lambda rate: 0
    #: Samples by which the sound becomes longer.
    tail: Callable[[Settings, int], int] = lambda settings, rate: 0


def _bands(call: str, value: EffectValue, rate: int) -> tuple[Band, ...]:
    expected = "a list of (frequency, gain) or (frequency, gain, q)"
    if isinstance(value, str | bytes | memoryview) or not isinstance(value, Sequence):
        raise ParameterError.invalid(call, "bands", expected, value)
    made = []
    for band in value:
        if isinstance(band, str) or not isinstance(band, Sequence) or len(band) not in (2, 3):
            raise ParameterError.invalid(call, "bands", expected, band)
        frequency = check_number(call, "the frequency of a band", band[0], 1, rate / 2, "Hz")
        gain = check_number(call, "the gain of a band", band[1], -60, 60, "dB")
        q = check_number(call, "the q of a band", band[2] if len(band) == 3 else 1.0, 0.01, 100)
        made.append((frequency, gain, q))
    return tuple(made)


def _compressor(given: Settings, rate: int) -> list[Step]:
    return [(
        "acompressor",
        f"threshold={_factor(given['threshold'])}:ratio={given['ratio']}"
        f":attack={given['attack'] * 1000}:release={given['release'] * 1000}"
        f":knee={_factor(given['knee'])}:makeup={_factor(given['makeup'])}",
    )]  # fmt: skip


def limiter_step(limit: float, attack: float = 0.005, release: float = 0.05) -> Step:
    """Return the filter of the limiter. Samples below the limit keep every bit."""
    return (
        "alimiter",
        f"limit={_factor(limit)}:attack={attack * 1000}:release={release * 1000}:level=0:latency=1",
    )


def _eq(given: Settings, rate: int) -> list[Step]:
    steps: list[Step] = []  # in f64, so that blocks of any size give the same samples
    for name in ("highpass", "lowpass"):
        if given[name] is not None:
            steps.append((name, f"f={given[name]}:r=f64"))
    for name, frequency in (("bass", 100.0), ("treble", 3000.0)):
        if given[name] and frequency < rate / 2:
            steps.append((name, f"g={given[name]}:f={frequency}:r=f64"))
    bands: Sequence[Band] = given["bands"]  # type: ignore[assignment]
    steps += [("equalizer", f"f={f}:t=q:w={q}:g={gain}:r=f64") for f, gain, q in bands if gain]
    return steps


def _echo(given: Settings, rate: int) -> list[Step]:
    times = range(1, round(given["repeats"]) + 1)
    delays = "|".join(f"{given['delay'] * 1000 * n:.6f}" for n in times)
    decays = "|".join(f"{max(given['decay'] ** n, 1e-6):.9f}" for n in times)
    return [("aecho", f"1:1:{delays}:{decays}")]


def _denoise(given: Settings, rate: int) -> list[Step]:
    # The filter takes for noise what is below its floor; noise is up to 5 dB above its level.
    return [("afftdn", f"nr={given['reduction']}:nf={given['floor'] + 5}")]


def _factor(decibels: float) -> float:
    return round(from_decibels(decibels), 9)


_of: Final = EffectParameter

EFFECTS: Final[dict[str, EffectSpec]] = {
    "compressor": EffectSpec(
        "Reduce the level of loud parts.",
        (
            _of("threshold", -18.0, -60.0, 0.0, "dB", "Level above which it is reduced."),
            _of("ratio", 3.0, 1.0, 20.0, "", "Decibels above the threshold per decibel left."),
            _of("attack", 0.02, 0.00001, 2.0, "s", "Time to reach the reduction."),
            _of("release", 0.25, 0.00001, 9.0, "s", "Time to return from it."),
            _of("knee", 9.0, 0.0, 18.0, "dB", "Width of the transition at the threshold."),
            _of("makeup", 0.0, 0.0, 36.0, "dB", "Gain after it."),
        ),
        _compressor,
    ),
    "limiter": EffectSpec(
        "Keep all samples below a limit.",
        (
            _of("limit", -1.0, -24.0, 0.0, "dB", "The largest sample."),
            _of("attack", 0.005, 0.0001, 0.08, "s", "How far it looks ahead."),
            _of("release", 0.05, 0.001, 8.0, "s", "Time to return to the full level."),
        ),
        lambda given, rate: [limiter_step(given["limit"], given["attack"], given["release"])],
    ),
    "eq": EffectSpec(
        "Change the level of frequencies.",
        (
            _of("bands", (), 0.0, 0.0, "", "(frequency in Hz, gain in dB, q), q being optional."),
            _of("bass", 0.0, -60.0, 60.0, "dB", "Gain of a shelf below 100 Hz."),
            _of("treble", 0.0, -60.0, 60.0, "dB", "Gain of a shelf above 3000 Hz."),
            _of("highpass", None, 1.0, 400_000.0, "Hz", "Remove what is below."),
            _of("lowpass", None, 1.0, 400_000.0, "Hz", "Remove what is above."),
        ),
        _eq,
    ),
    "echo": EffectSpec(
        "Add echoes.",
        (
            _of("delay", 0.3, 0.0001, 10.0, "s", "Time between echoes."),
            _of("decay", 0.4, 0.0, 1.0, "", "Level of an echo beside the one before."),
            _of("repeats", 1.0, 1.0, 9.0, "", "Number of echoes."),
        ),
        _echo,
        tail=lambda given, rate: math.ceil(given["delay"] * round(given["repeats"]) * rate),
    ),
    "denoise": EffectSpec(
        "Reduce steady noise.",
        (
            _of("reduction", 12.0, 0.01, 97.0, "dB", "How much noise is reduced."),
            _of("floor", -50.0, -85.0, -25.0, "dB", "Level (RMS) of the noise."),
        ),
        _denoise,
        latency=lambda rate: 2 * (rate // 80),
    ),
}


def checked_effect(
    call: str, name: str, given: Mapping[str, EffectValue], rate: int
) -> dict[str, EffectValue]:
    """Return all parameters of an effect, checked; raise ParameterError.

    >>> checked_effect("Audio.limiter", "limiter", {"limit": -3}, 48000)
    {'limit': -3.0, 'attack': 0.005, 'release': 0.05}
    """
    spec = EFFECTS[Selection(*EFFECTS).check(call, "effect", name)]
    known = [parameter.name for parameter in spec.parameters]
    for key in given:
        if key not in known:
            hint = did_you_mean(str(key), known) or f"It has: {', '.join(known)}."
            raise UnknownParameter(
                f"{call}: {name!r} has no parameter {key!r}. {hint}", argument=str(key)
            )
    return {p.name: p.checked(call, given.get(p.name, p.default), rate) for p in spec.parameters}


def check_effects(call: str, effects: Sequence[Effect], rate: int) -> list[Effect]:
    """Return a list of effects with all their parameters, checked.

    >>> check_effects("add_audio", [("limiter", {"limit": -3})], 48000)[0][0]
    'limiter'
    """
    expected = "a list such as [('compressor', {'ratio': 4})]"
    if isinstance(effects, str | memoryview | Mapping) or not isinstance(effects, Sequence):
        raise ParameterError.invalid(call, "effects", expected, effects)
    made: list[Effect] = []
    for item in effects:
        if isinstance(item, str):
            item = (item, {})
        if not isinstance(item, Sequence) or len(item) != 2 or not isinstance(item[1], Mapping):
            raise ParameterError.invalid(call, "effects", expected, item)
        made.append((item[0], checked_effect(call, item[0], item[1], rate)))
    return made


def effect_stream(call: str, effects: Sequence[Effect], rate: int, layout: str) -> FilterStream:
    """Return a stream of several effects, one after another, aligned with the input."""
    steps: list[Step] = []
    latency = tail = 0
    for name, given in effects:
        settings: Settings = checked_effect(call, name, given, rate)  # type: ignore[assignment]
        spec = EFFECTS[name]
        steps += spec.steps(settings, rate)
        latency += spec.latency(rate)
        tail += spec.tail(settings, rate)
    return FilterStream(
        call, steps, rate, layout, drop=latency, pad=latency, total=lambda count: count + tail
    )


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
