"""Several sounds as one: mixed, or one after another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dala.errors import ParameterError
from dala.media.audio.audio import Audio
from dala.media.audio.checks import (
    LAYOUT,
    Seconds,
    check_number,
    check_rate,
    check_room,
    check_time,
    silent,
)
from dala.media.audio.samples import CURVE, fade_gains


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
