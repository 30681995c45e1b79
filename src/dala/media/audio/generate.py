"""Generated sound: tones, silence and noise."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dala.arguments import Integer, Selection
from dala.media.audio.audio import Audio
from dala.media.audio.checks import (
    LAYOUT,
    LAYOUTS,
    Seconds,
    check_number,
    check_rate,
    check_room,
    check_time,
    silent,
)
from dala.typing import NDArray

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
