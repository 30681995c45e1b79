"""Quantized look-up tables of bytes, for every engine.

From bytes to bytes the look-up is in integers of 32 bits, without sign. Positions have 16
fractional bits. Entries have 16 bits: a step of a byte is ``unit`` of them, a power of two; 0 is
``below`` steps below black, so that entries may be half a range beyond the colors. The weights of
the entries around a color sum to 2**16. A result is ``((sum + keep * byte) >> shift) - below``.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from dala.gpu.compute.engines.base import Task
from dala.typing import NDArray

#: Entries beyond it count as it.
FARTHEST: Final = 255.0


#: The farthest position of an entry of a shaper, with 16 fractional bits.
FAR_PLACE: Final = 1 << 24


class ByteLookup(NamedTuple):
    """The numbers of a look-up; see the module."""

    factor: int  # an entry x is (x * factor / 256, rounded) + bias, within 0..top
    bias: int
    top: int
    keep: int
    shift: int
    below: int


def byte_lookup(task: Task) -> ByteLookup | None:
    """Return the numbers of a look-up from bytes to bytes; None for others."""
    if task.inputs[0].dtype != "u8" or task.output.dtype != "u8":
        return None
    low, high = min(0.0, *task["domain_min"]), max(1.0, *task["domain_max"])
    bits = min(int(np.ceil(np.log2(255.0 * (high - low + 1.0)))), 16)
    unit, steps = 1 << 16 - bits, 1 << bits
    below = int(np.clip((steps - 255.0 * (high + low)) // 2.0, 0, steps))
    amount = task["amount"]
    factor, keep = round(amount * (255 * 256 * unit)), round((1.0 - amount) * (unit << 16))
    top = 65535 - (keep * 255 + 65535) // 65536
    return ByteLookup(factor, below * unit + unit // 2, top, keep, 32 - bits, below)


def is_plain(task: Task) -> bool:
    """Return whether positions are ``byte * (size - 1) / 255``."""
    plain = all(v == 0.0 for v in task["domain_min"]) and all(v == 1.0 for v in task["domain_max"])
    return plain and not task["shaper"]


def byte_places(task: Task, size: int, curves: NDArray | None = None) -> NDArray:
    """Return the position of each byte in each channel, (3, 256) u32, with 16 fractional bits.

    ``curves`` are those of a shaper, of f32: positions are interpolated between their entries.
    """
    last, byte = size - 1, np.arange(256)
    if is_plain(task):
        return np.tile((byte * last * 65536 + 127) // 255, (3, 1)).astype("<u4")
    if curves is None:
        return _places(task, "domain", last)
    near, far, part = _around(curve_places(task), curves)
    near, far = (_curve_entries(task, size, entries) for entries in (near, far))
    found = near + ((far - near) * part + 32768 >> 16)
    return np.asarray(np.clip(found, 0, last << 16).astype("<u4"))


def _around(places: NDArray, curves: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Return the entries before and after positions, (3, 256), and how far the second counts."""
    place = places.astype(np.int64)
    cell, channel = np.minimum(place >> 16, len(curves) - 2), np.arange(3)[:, None]
    return curves[cell, channel], curves[cell + 1, channel], place - (cell << 16)


def _places(task: Task, name: str, last: int) -> NDArray:
    low, high = (np.array(task[f"{name}_{end}"])[:, None] for end in ("min", "max"))
    place = np.clip((np.arange(256) / 255.0 - low) / (high - low) * last, 0.0, last)
    return np.asarray(np.floor(place * 65536.0 + 0.5).astype("<u4"))


def curve_places(task: Task) -> NDArray:
    """Return the position of each byte in the curves of a shaper, as :func:`byte_places`."""
    return _places(task, "shaper", task["shaper"] - 1)


def curve_numbers(task: Task, size: int) -> tuple[tuple[int, int, int], ...]:
    """Return for each channel the factor, its exponent and the bias of the entries of a shaper.

    An entry x is the position ``x * factor * 2**exponent``, rounded, within 2**24, plus the bias.
    """
    made = []
    for low, high in zip(task["domain_min"], task["domain_max"], strict=True):
        scale = (size - 1) / (high - low) * 65536.0
        exponent = int(np.frexp(scale)[1]) - 24
        bias = int(np.clip(np.floor(0.5 - low * scale), -FAR_PLACE, FAR_PLACE))
        made.append((min(round(scale * 2.0**-exponent), (1 << 24) - 1), exponent, bias))
    return tuple(made)


def _curve_entries(task: Task, size: int, entries: NDArray) -> NDArray:
    """Return the positions of entries of a shaper, (3, 256). NaN counts as 0."""
    factor, exponent, bias = (np.array(n)[:, None] for n in zip(*curve_numbers(task, size)))  # noqa: B905
    x = np.nan_to_num(entries.astype(np.float64), nan=0.0, posinf=1e300, neginf=-1e300)
    with np.errstate(over="ignore"):
        found = np.floor(x * (factor * 2.0**exponent) + 0.5)
    return np.asarray(np.clip(found, -FAR_PLACE, FAR_PLACE).astype(np.int64) + bias)


def curved(
    curves: NDArray, color: NDArray, low: tuple[float, ...], high: tuple[float, ...]
) -> NDArray:
    """Return colors, (3, many), through one curve per channel."""
    last = curves.shape[0] - 1
    lows, highs = np.array(low)[:, None], np.array(high)[:, None]
    place = np.clip(np.nan_to_num((color - lows) / (highs - lows) * last, nan=0.0), 0.0, last)
    cell = np.minimum(place.astype(np.int64), last - 1)
    part, channel = place - cell, np.arange(3)[:, None]
    with np.errstate(all="ignore"):
        found: NDArray = curves[cell, channel] * (1.0 - part) + curves[cell + 1, channel] * part
    return found


def byte_entries(lut: NDArray, numbers: ByteLookup) -> NDArray:
    """Return quantized entries. NaN counts as 0."""
    x = np.clip(np.nan_to_num(lut.astype(np.float64), nan=0.0), -FARTHEST, FARTHEST)
    made = np.floor(x * (numbers.factor / 256.0) + 0.5).astype(np.int64) + numbers.bias
    return np.clip(made, 0, numbers.top)


def byte_curves(task: Task, lut: NDArray, numbers: ByteLookup) -> NDArray:
    """Return the bytes that one curve per channel gives for each byte, (3, 256) u8."""
    near, far, part = _around(byte_places(task, len(lut)), lut)
    near, far = (byte_entries(entries, numbers) for entries in (near, far))
    total = near * (65536 - part) + far * part + numbers.keep * np.arange(256)
    return np.asarray(np.clip((total >> numbers.shift) - numbers.below, 0, 255).astype(np.uint8))
