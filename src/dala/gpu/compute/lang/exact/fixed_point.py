"""Quantize weights: the one function that turns the weights of a sum into integers.

A stored byte is ``clamp((bias + sum(weight * byte)) >> bits, 0, 255)`` in 32-bit integers, on every
engine. All sums of a program share ``bits``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

#: The most fraction bits of weights that fit 16 bits, which processors multiply fastest.
NARROW_BITS: Final = 15
#: The most fraction bits.
WIDE_BITS: Final = 20
_LARGEST_INT16: Final = 32767
#: Sums stay below this.
_LARGEST_SUM: Final = float(2**30)
#: How far, in steps of a byte, rounded weights may move a sum: functions of one pixel, and windows.
PIXEL_ERROR: Final = 1 / 100
WINDOW_ERROR: Final = 1 / 32

#: Weights in steps of a byte, how many bytes each multiplies, and the bias.
Sum: TypeAlias = "tuple[Sequence[float], Sequence[int], float]"


@dataclass(frozen=True)
class FixedPoint:
    """Sums with integer weights; see the module."""

    #: For each sum, its weights and its bias, which includes the half that rounds.
    rows: tuple[tuple[tuple[int, ...], int], ...]
    #: The fraction bits; plus 32, which does not change a shift, where weights need 32 bits.
    bits: int


def quantize(sums: Sequence[Sum], *, window: bool) -> FixedPoint:
    """Return sums with integer weights.

    They have as many fraction bits as 16-bit weights leave room for, at most 15, if that moves no
    sum by more than 1/100 of a step (1/32 for windows); else as many as 32-bit sums leave room for.

    >>> quantize([((0.299, 0.587, 0.114), (1, 1, 1), 0.0)], window=False)
    FixedPoint(rows=(((9798, 19235, 3735), 16384),), bits=15)
    """
    sums = [(tuple(_finite(w) for w in weights), counts, _finite(b)) for weights, counts, b in sums]
    largest = max((abs(w) for weights, _, _ in sums for w in weights), default=0.0)
    size = max(sum(abs(w) * n for w, n in zip(*s[:2], strict=True)) for s in sums) * 255.0 + 256.0
    room = math.floor(math.log2(_LARGEST_SUM / (2.0 * size)))
    most = 255 * max((sum(counts) for _, counts, _ in sums), default=0)
    if most <= _LARGEST_INT16:
        narrow = NARROW_BITS
        while narrow and round(largest * 2.0**narrow) > _LARGEST_INT16:
            narrow -= 1
        if narrow <= room:
            found = _rounded(sums, narrow, size)
            if _error(sums, found) <= (WINDOW_ERROR if window else PIXEL_ERROR):
                return found
    wide = _rounded(sums, min(room, WIDE_BITS), size)
    return FixedPoint(wide.rows, wide.bits + 32)


def _finite(number: float) -> float:
    """Return a number of moderate size: beyond it, every sum is far below 0 or above 255."""
    return 0.0 if math.isnan(number) else min(max(number, -1e30), 1e30)


def integer_weights(weights: Sequence[float], bits: int) -> list[int]:
    """Round weights so that their sum is right: down, and those with the largest rests up.

    >>> integer_weights((0.25, 0.25, 0.5), 1)
    [1, 0, 1]
    """
    exact = [w * 2.0**bits for w in weights]
    made = [math.floor(w) for w in exact]
    rests = [w - m for w, m in zip(exact, made, strict=True)]
    for i in sorted(range(len(rests)), key=lambda i: -rests[i])[: round(sum(rests))]:
        made[i] += 1
    return made


def _rounded(sums: Sequence[Sum], bits: int, size: float) -> FixedPoint:
    """Round weights and biases.

    Where weights are so large that they have no room (``bits`` below 0), sums keep their sign.
    """
    rows = []
    unit = 2.0**bits
    for weights, counts, bias in sums:
        if len(set(counts)) <= 1:
            made = integer_weights(weights, bits)
        else:
            made = [round(w * unit) for w in weights]
        # A larger bias changes nothing: the sum is beyond 0 or 255 for all bytes.
        bias = min(max(bias, -2.0 * size), 2.0 * size)
        rows.append((tuple(made), math.floor(bias * unit + 0.5 * max(unit, 1.0) + 0.5)))
    return FixedPoint(tuple(rows), max(bits, 0))


def _error(sums: Sequence[Sum], found: FixedPoint) -> float:
    """Return how far rounded weights move a sum at most, in steps."""
    worst = 0.0
    unit = 2.0**found.bits
    for (weights, counts, _), (made, _) in zip(sums, found.rows, strict=True):
        off = [(m / unit - w) * n for w, m, n in zip(weights, made, counts, strict=True)]
        worst = max(worst, sum(max(o, 0.0) for o in off), sum(max(-o, 0.0) for o in off))
    return 255.0 * worst


def fixed_point(window: bool, layout: Sequence[int], numbers: Sequence[float]) -> list[int]:
    """Return the weights, biases and fraction bits of sums that are given as a list of numbers.

    ``layout`` has, for each sum, the number of its weights and how many bytes each multiplies;
    ``numbers`` its weights and its bias.

    >>> fixed_point(False, [2, 1, 1], [0.25, 0.5, 10.0])
    [8192, 16384, 344064, 15]
    """
    sums: list[Sum] = []
    at = place = 0
    while at < len(layout):
        n = layout[at]
        sums.append((numbers[place : place + n], layout[at + 1 : at + 1 + n], numbers[place + n]))
        at, place = at + 1 + n, place + n + 1
    found = quantize(sums, window=window)
    weights = [w for row, _ in found.rows for w in row]
    return [*weights, *(bias for _, bias in found.rows), found.bits]
