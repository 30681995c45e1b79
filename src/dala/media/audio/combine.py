"""Sounds made of nothing or of other sounds: tones, noise, silence, mixes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from dala.arguments import Integer, Selection
from dala.errors import ParameterError
from dala.media.audio.audio import Audio
from dala.media.audio.checks import (
    CURVE,
    LAYOUT,
    LAYOUTS,
    Seconds,
    check_number,
    check_rate,
    check_room,
    check_time,
    fade_gains,
    silent,
)
from dala.typing import NDArray


def mix(
    *sounds: Audio,
    gains: Sequence[float] | None = None,
    rate: int | None = None,
    layout: str | None = None,
) -> Audio:
    """Return the sum of sounds, each at its start time. Samples may exceed 1.

    Args:
        *sounds: the sounds; they have one rate and layout, or are converted to those given.
        gains: a factor for each sound.
        rate: samples per second of the result.
        layout: channels of the result.

    Raises:
        ParameterError: rates or layouts differ, and none is given.

    >>> from dala.media.audio import Audio
    >>> a, b = Audio([0.5, 0.5], 8000), Audio([0.25, 0.25], 8000, start=1 / 8000)
    >>> mix(a, b).samples[:, 0].tolist()
    [0.5, 0.75, 0.25]
    """
    call = "audio.mix"
    found = _alike(call, sounds, rate, layout)
    if gains is None:
        factors = [1.0] * len(found)
    else:
        if isinstance(gains, str | bytes) or not hasattr(gains, "__len__"):
            raise ParameterError.invalid(call, "gains", "a list of numbers", gains)
        if len(gains) != len(found):
            expected = f"{len(found)} numbers, one for each sound"
            raise ParameterError.invalid(call, "gains", expected, f"{len(gains)}")
        factors = [check_number(call, "gains", g) for g in gains]
    first = found[0]
    begin = min(sound.start for sound in found)
    places = [round((sound.start - begin) * first.rate) for sound in found]
    total = max(at + len(sound) for at, sound in zip(places, found, strict=True))
    check_room(call, total, first.channels)
    made = silent(total, first.layout)
    for at, sound, factor in zip(places, found, factors, strict=True):
        samples = sound.samples if factor == 1 else sound.samples * np.float32(factor)
        made[at : at + len(sound)] += samples
    return Audio(made, first.rate, layout=first.layout, start=begin)


def concat(
    *sounds: Audio,
    fade: Seconds = 0.0,
    curve: str = "equal_power",
    rate: int | None = None,
    layout: str | None = None,
) -> Audio:
    """Return sounds one after another; their start times do not matter.

    Args:
        *sounds: the sounds; they have one rate and layout, or are converted to those given.
        fade: seconds for which each sound fades into the next, which begins that much earlier.
        curve: of the fades: "equal_power", or "linear" for sounds that are alike.
        rate: samples per second of the result.
        layout: channels of the result.

    Raises:
        ParameterError: rates or layouts differ, or a sound is shorter than its fades.

    >>> from dala.media.audio import Audio
    >>> concat(Audio([0.5], 8000), Audio([0.25, 0.125], 8000)).samples[:, 0].tolist()
    [0.5, 0.25, 0.125]
    """
    call = "audio.concat"
    found = _alike(call, sounds, rate, layout)
    CURVE.check(call, "curve", curve)
    first = found[0]
    overlap = round(check_time(call, "fade", fade, low=0) * first.rate)
    for number, sound in enumerate(found):
        fades = (number > 0) + (number < len(found) - 1)
        if len(sound) < overlap * fades:
            raise ParameterError(
                f"{call}: fade must fit into every sound, got {overlap / first.rate:g} s and sound "
                f"{number} of {float(sound.duration):g} s."
            )
    total = sum(map(len, found)) - overlap * (len(found) - 1)
    check_room(call, total, first.channels)
    made = silent(total, first.layout)
    rising = fade_gains(np.arange(overlap), overlap, curve)[:, None]
    falling = fade_gains(overlap - np.arange(overlap), overlap, curve)[:, None]
    at = 0
    for number, sound in enumerate(found):
        samples = sound.samples
        if overlap:
            samples = samples.copy()
            if number > 0:
                samples[:overlap] *= rising
            if number < len(found) - 1:
                samples[len(samples) - overlap :] *= falling
        made[at : at + len(samples)] += samples
        at += len(samples) - overlap
    return Audio(made, first.rate, layout=first.layout, start=first.start)


def _alike(
    call: str, sounds: Sequence[Audio], rate: int | None, layout: str | None
) -> Sequence[Audio]:
    """Return sounds of one rate and layout, converted if these are given."""
    if not sounds:
        raise ParameterError(f"{call}: give at least one Audio.")
    for sound in sounds:
        if not isinstance(sound, Audio):
            advice = "Pass them one by one: audio.mix(a, b)." if isinstance(sound, list) else ""
            raise ParameterError.invalid(call, "sounds", "Audio objects", sound, advice)
    if rate is not None:
        check_rate(call, rate)
    if layout is not None:
        LAYOUT.check(call, "layout", layout)
    wanted = rate or sounds[0].rate, layout or sounds[0].layout
    made = []
    for sound in sounds:
        if rate is not None and sound.rate != wanted[0]:
            sound = sound.resample(rate)
        if layout is not None and sound.layout != wanted[1]:
            sound = sound.resample(layout=layout)
        if (sound.rate, sound.layout) != wanted:
            raise ParameterError(
                f"{call}: all sounds must be {wanted[0]} Hz {wanted[1]} like the first, got "
                f"{sound.rate} Hz {sound.layout}. Pass rate={wanted[0]} and layout={wanted[1]!r}, "
                "or use resample()."
            )
        made.append(sound)
    return made


#: Shapes of waves, by the share of a period that is over.
_WAVES: dict[str, Callable[[NDArray], NDArray]] = {
    "sine": lambda at: np.sin(at * (2 * math.pi)),
    "square": lambda at: np.where(at < 0.5, 1.0, -1.0),
    "sawtooth": lambda at: 2 * at - 1,
    "triangle": lambda at: 1 - 4 * np.abs(at - 0.5),
}
_SHAPE = Selection(*_WAVES)
_COLOR = Selection("white", "pink")


def tone(
    frequency: float,
    seconds: Seconds,
    *,
    amplitude: float = 1.0,
    phase: float = 0.0,
    shape: str = "sine",
    rate: int = 48000,
    layout: str = "mono",
) -> Audio:
    """Return a tone.

    Args:
        frequency: in hertz, up to half the rate.
        seconds: duration.
        amplitude: the largest sample.
        phase: where in its period it begins, in degrees.
        shape: "sine", "square", "sawtooth" or "triangle"; the last three have overtones above half
            the rate, which fold back.
        rate: samples per second.
        layout: all channels have the same samples.

    >>> tone(2000, 0.001, rate=8000).samples[:, 0].round().tolist()
    [0.0, 1.0, 0.0, -1.0, 0.0, 1.0, 0.0, -1.0]
    """
    call = "audio.tone"
    rate = check_rate(call, rate)
    number = check_number(call, "frequency", frequency, 0.001, rate / 2, "Hz")
    level = check_number(call, "amplitude", amplitude, 0.0, 1000.0)
    turn = check_number(call, "phase", phase) / 360
    _SHAPE.check(call, "shape", shape)
    count = _count(call, seconds, rate, layout)
    # Whole periods are taken off before the sine, which keeps long tones exact.
    at = np.arange(count, dtype=np.float64) * (number / rate) + turn
    at -= np.floor(at)
    one = (_WAVES[shape](at) * level).astype(np.float32)[:, None]
    return Audio(np.repeat(one, LAYOUTS[layout], axis=1), rate, layout=layout)


def silence(seconds: Seconds, *, rate: int = 48000, layout: str = "mono") -> Audio:
    """Return silence.

    >>> silence(2).duration
    Fraction(2, 1)
    """
    call = "audio.silence"
    rate = check_rate(call, rate)
    count = _count(call, seconds, rate, layout)
    return Audio(silent(count, layout), rate, layout=layout)


def noise(
    seconds: Seconds,
    *,
    amplitude: float = 0.25,
    color: str = "white",
    seed: int = 0,
    rate: int = 48000,
    layout: str = "mono",
) -> Audio:
    """Return noise. The same seed gives the same noise.

    Args:
        seconds: duration.
        amplitude: the largest sample.
        color: "white" for the same power at all frequencies, "pink" for the same in each octave.
        seed: a number for other noise.
        rate: samples per second.
        layout: each channel has noise of its own.

    >>> hiss = noise(1, rate=8000)
    >>> float(hiss.peak) <= 0.25, hiss == noise(1, rate=8000)
    (True, True)
    """
    call = "audio.noise"
    rate = check_rate(call, rate)
    level = check_number(call, "amplitude", amplitude, 0.0, 1000.0)
    _COLOR.check(call, "color", color)
    Integer(0).check(call, "seed", seed)
    count = _count(call, seconds, rate, layout)
    made = np.random.default_rng(seed).uniform(-1.0, 1.0, (count, LAYOUTS[layout]))
    if color == "pink" and count > 1:
        spectrum = np.fft.rfft(made, axis=0)
        bins = np.arange(len(spectrum), dtype=np.float64)
        bins[0] = 1.0
        spectrum /= np.sqrt(bins)[:, None]
        spectrum[0] = 0
        made = np.fft.irfft(spectrum, count, axis=0)
    peak = float(np.abs(made).max(initial=0.0)) if color == "pink" else 1.0
    return Audio((made * (level / (peak or 1.0))).astype(np.float32), rate, layout=layout)


def _count(call: str, seconds: Seconds, rate: int, layout: str) -> int:
    LAYOUT.check(call, "layout", layout)
    length = check_time(call, "seconds", seconds, low=0)
    count = round(length * rate)
    check_room(call, count * 2, LAYOUTS[layout])  # the work is done with f64
    return count
