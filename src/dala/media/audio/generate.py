"""Generated sound: tones, silence and noise."""

from __future__ import annotations

import math

import numpy as np

from dala.errors import ParameterError
from dala.media.audio.audio import Audio
from dala.media.audio.checks import (
    LAYOUTS,
    Seconds,
    check_choice,
    check_layout,
    check_number,
    check_rate,
    check_room,
    check_time,
)

SHAPES = ("sine", "square", "sawtooth", "triangle")
COLORS = ("white", "pink")


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
    check_choice(call, "shape", shape, SHAPES)
    count = _count(call, seconds, rate, layout)
    # Whole periods are taken off before the sine, which keeps long tones exact.
    at = np.arange(count, dtype=np.float64) * (number / rate) + turn
    at -= np.floor(at)
    if shape == "sine":
        wave = np.sin(at * (2 * math.pi))
    elif shape == "square":
        wave = np.where(at < 0.5, 1.0, -1.0)
    elif shape == "sawtooth":
        wave = 2 * at - 1
    else:
        wave = 1 - 4 * np.abs(at - 0.5)
    return _spread(wave * level, rate, layout)


def silence(seconds: Seconds, *, rate: int = 48000, layout: str = "mono") -> Audio:
    """Return silence.

    >>> silence(2).duration
    Fraction(2, 1)
    """
    call = "audio.silence"
    rate = check_rate(call, rate)
    count = _count(call, seconds, rate, layout)
    return Audio(np.zeros((count, LAYOUTS[layout]), np.float32), rate, layout=layout)


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
    check_choice(call, "color", color, COLORS)
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ParameterError.invalid(call, "seed", "an int of at least 0", seed)
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
    check_layout(call, layout)
    length = check_time(call, "seconds", seconds, low=0)
    count = round(length * rate)
    check_room(call, count * 2, LAYOUTS[layout])  # the work is done with f64
    return count


def _spread(wave: np.ndarray[tuple[int], np.dtype[np.float64]], rate: int, layout: str) -> Audio:
    one = wave.astype(np.float32)[:, None]
    return Audio(np.repeat(one, LAYOUTS[layout], axis=1), rate, layout=layout)
