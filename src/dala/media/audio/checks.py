"""Checks of sound: samples, layouts, rates and times; fades and panning."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Final, TypeAlias

import numpy as np

from dala import memory
from dala.arguments import Integer, Quantity, Selection
from dala.budget import check_deadline
from dala.errors import ParameterError
from dala.typing import NDArray

#: A time in seconds; fractions are exact.
Seconds: TypeAlias = "float | Fraction"
#: Samples of shape (count, channels), f32.
Samples: TypeAlias = NDArray

LOWEST_RATE: Final = 1_000
HIGHEST_RATE: Final = 768_000
#: The longest sound, in seconds.
LONGEST: Final = 10**9

#: FFmpeg's layouts with names, and their numbers of channels.
LAYOUTS: Final = {
    "mono": 1, "stereo": 2, "2.1": 3, "3.0": 3, "3.0(back)": 3, "4.0": 4, "quad": 4,
    "quad(side)": 4, "3.1": 4, "5.0": 5, "5.0(side)": 5, "4.1": 5, "5.1": 6, "5.1(side)": 6,
    "6.0": 6, "6.0(front)": 6, "hexagonal": 6, "6.1": 7, "6.1(back)": 7, "6.1(front)": 7,
    "7.0": 7, "7.0(front)": 7, "7.1": 8, "7.1(wide)": 8, "7.1(wide-side)": 8, "octagonal": 8,
}  # fmt: skip
#: The layout of a number of channels, if nothing else is known.
USUAL: Final = ("", "mono", "stereo", "2.1", "4.0", "5.0", "5.1", "6.1", "7.1")


#: A layout of channels by name.
LAYOUT: Final = Selection(*LAYOUTS, expected="a layout such as 'mono', 'stereo', '5.1' or '7.1'")
_RATE: Final = Integer(
    LOWEST_RATE, HIGHEST_RATE, f"a sampling rate from {LOWEST_RATE} to {HIGHEST_RATE} Hz"
)


def check_rate(call: str, value: int) -> int:
    """Return a sampling rate; a float may stand for one.

    >>> check_rate("tone", 48000)
    48000
    """
    whole = isinstance(value, float) and value.is_integer()
    return _RATE.check(call, "rate", int(value) if whole else value)


def check_number(
    call: str, name: str, value: float, low: float = -math.inf, high: float = math.inf,
    unit: str = "",
) -> float:  # fmt: skip
    """Return a finite number within bounds.

    >>> check_number("eq", "gain", 3, -48, 48, "dB")
    3.0
    """
    return Quantity(low, high, words=range_text(low, high, unit)).check(call, name, value)


def range_text(low: float, high: float, unit: str = "") -> str:
    """Return the range of a number, for messages.

    >>> range_text(0, 10, "s"), range_text(1, math.inf)
    ('a number from 0 to 10 s', 'a number of at least 1')
    """
    unit = f" {unit}" if unit else ""
    if math.isfinite(low) and math.isfinite(high):
        return f"a number from {low:g} to {high:g}{unit}"
    if math.isfinite(low):
        return f"a number of at least {low:g}{unit}"
    if math.isfinite(high):
        return f"a number of at most {high:g}{unit}"
    return "a finite number"


def check_time(call: str, name: str, value: Seconds, *, low: float = -LONGEST) -> Fraction:
    """Return a time in seconds as a fraction; floats become the nearest simple one.

    >>> check_time("Audio", "start", 0.1)
    Fraction(1, 10)
    """
    if isinstance(value, Fraction) and low <= value <= LONGEST:
        return value
    number = check_number(call, name, value, low, LONGEST, "seconds")  # type: ignore[arg-type]
    if isinstance(value, int):
        return Fraction(value)
    return Fraction(number).limit_denominator(1_000_000)


def check_room(call: str, count: int, channels: int) -> None:
    """Raise MemoryLimitExceeded where so many samples would not fit into the memory.

    And CommandTimeout where the time of ``dala.limits`` is over.

    >>> check_room("silence", 48000, 2)
    """
    check_deadline(call)
    memory.check(count * channels * 4, call)


def from_decibels(decibels: float) -> float:
    """Return the factor of a number of decibels.

    >>> from_decibels(-20)
    0.1
    """
    return float(10.0 ** (decibels / 20.0))


def as_samples(call: str, given: NDArray) -> Samples:
    """Return an array as f32 samples of shape (count, channels).

    Integers are scaled to -1..1 by their range. Raises ParameterError for other shapes and dtypes,
    and for NaN or infinity.

    >>> as_samples("Audio", np.array([0, 16384], np.int16)).tolist()
    [[0.0], [0.5]]
    """
    expected = "an array of shape (samples,) or (samples, channels)"
    try:
        array = np.asarray(given)
    except (TypeError, ValueError):
        raise ParameterError.invalid(call, "samples", expected, given) from None
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or not 1 <= array.shape[1] <= 8:
        advice = ""
        if array.ndim == 2 and 1 <= array.shape[0] <= 8:
            advice = "Channels are the last axis: pass array.T."
        elif array.ndim == 2:
            advice = "1 to 8 channels are supported."
        raise ParameterError.invalid(call, "samples", expected, given, advice)
    kind = array.dtype
    if kind != np.float32 or not array.flags.c_contiguous:
        memory.check_copy(4 * array.size, call)
    if kind.kind == "f":
        with np.errstate(over="ignore"):  # what overflows is refused below
            array = np.ascontiguousarray(array, np.float32)
        if not finite(array):
            count = int(np.count_nonzero(~np.isfinite(array)))
            raise ParameterError(
                f"{call}: samples must be finite, got {count} of NaN or infinity. "
                "numpy.nan_to_num(samples) replaces them."
            )
        return array
    if kind == np.uint8:
        return ((array.astype(np.float32) - 128) / 128).astype(np.float32)
    if kind in (np.int8, np.int16, np.int32, np.int64):
        return (array / -float(np.iinfo(kind).min)).astype(np.float32)
    raise ParameterError.invalid(
        call, "samples", "floats, or integers of 8 to 64 bits", f"an array of {kind}"
    )


def silent(count: int, layout: str) -> Samples:
    """Return so many samples of silence."""
    return np.zeros((count, LAYOUTS[layout]), np.float32)


def joined(parts: Sequence[Samples], layout: str) -> Samples:
    """Return blocks of samples as one, without a copy if there is one only."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts or [silent(0, layout)])


def finite(array: NDArray) -> bool:
    """Return whether all samples are finite, without a copy.

    >>> finite(np.zeros(4)), finite(np.array([np.nan]))
    (True, False)
    """
    if array.size == 0:
        return True
    with np.errstate(over="ignore", invalid="ignore"):
        # A sum of finite numbers may overflow, so only a finite sum is proof.
        return bool(np.isfinite(array.sum(dtype=np.float64)) or np.isfinite(array).all())


CURVES: Final = ("linear", "equal_power")
CURVE: Final = Selection(*CURVES)


def fade_gains(positions: NDArray, length: int, curve: str) -> NDArray:
    """Return the factors of a fade from silence, at positions counted from its beginning.

    Position 0 is silent, ``length`` and later ones are unchanged. Linear fades in and out add up to
    1, those of equal power to a power of 1.

    >>> fade_gains(np.arange(-1, 5), 4, "linear").tolist()
    [0.0, 0.0, 0.25, 0.5, 0.75, 1.0]
    """
    if length <= 0:
        return np.ones(len(positions), np.float32)
    steps = np.clip(positions / length, 0.0, 1.0)
    if curve == "equal_power":
        steps = np.sin(steps * (math.pi / 2))
    return steps.astype(np.float32)


def apply_fades(
    block: Samples, first: int, total: int | None, fade_in: int, fade_out: int, curve: str
) -> Samples:
    """Return a block with the fades of the sound that it is part of.

    Args:
        block: samples.
        first: position of its first sample in the sound.
        total: samples of the sound; None if it has no end.
        fade_in, fade_out: samples of the fades.
        curve: "linear" or "equal_power".
    """
    count = len(block)
    if fade_in > 0 and first < fade_in:
        gains = fade_gains(np.arange(first, first + count), fade_in, curve)
        block = block * gains[:, None]
    if fade_out > 0 and total is not None and first + count > total - fade_out:
        gains = fade_gains(total - np.arange(first, first + count), fade_out, curve)
        block = block * gains[:, None]
    return block


def pan_gains(position: NDArray) -> tuple[NDArray, NDArray]:
    """Return the factors of left and right for a mono sound: equal power, -1 left, 1 right.

    >>> left, right = pan_gains(np.array([-1.0, 0.0, 1.0]))
    >>> left.astype(float).round(4).tolist(), right.astype(float).round(4).tolist()
    ([1.0, 0.7071, 0.0], [0.0, 0.7071, 1.0])
    """
    angle = (np.asarray(position, np.float64) + 1) * (math.pi / 4)
    return np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)


def pan_mono(block: Samples, position: NDArray) -> Samples:
    """Return a mono block as stereo at positions, one or one for each sample."""
    left, right = pan_gains(position)
    return np.stack((block[:, 0] * left, block[:, 0] * right), axis=1)


def pan_stereo(block: Samples, position: NDArray) -> Samples:
    """Return a stereo block moved to positions: the center leaves it as it is.

    Towards one side, the channel of the other side moves over to it by the law of equal power, as
    the StereoPannerNode of browsers does.
    """
    where = np.asarray(position, np.float64)
    angle = np.where(where <= 0, where + 1, where) * (math.pi / 2)
    near = np.cos(angle).astype(np.float32)
    far = np.sin(angle).astype(np.float32)
    left, right = block[:, 0], block[:, 1]
    to_left = (left + right * near, right * far)
    to_right = (left * near, right + left * far)
    aside = where <= 0
    panned = (np.where(aside, a, b) for a, b in zip(to_left, to_right, strict=True))
    return np.stack(tuple(panned), axis=1).astype(np.float32, copy=False)
