"""Tables of ``byte_rows.py``: integer weights in the order in which its loops read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from dala.gpu.compute.engines.cpu.ops.resize.byte_rows import DIGITS, GRAYS, LINE, MIXED
from dala.gpu.compute.engines.sampling.byte_taps import ByteTaps

#: Sums of more taps are loops.
UNROLLED: Final = 8
#: The most output columns of a block.
BYTE_COLUMNS: Final = 512

Numbers = npt.NDArray[np.int16]


def byte_rows(taps: ByteTaps, bytewise: bool) -> tuple[int, Numbers]:
    """Return the constant ``taps_y``, and the weights of each output row, an even number.

    ``bytewise``: if the CPU multiplies pairs of bytes.
    """
    given, count = taps.weights_y, taps.y.count
    if count == 2 and (given >= 0).all():
        weight = -given[:, 1] << (15 - taps.down - taps.fraction)
        return MIXED, _padded(weight[:, None], 2).reshape(-1)
    if count > UNROLLED:
        return 0, _padded(given, 2).reshape(-1)
    if bytewise and count == 3 and (taps.down, taps.fraction) == (8, 7):
        made = digits_of(given)
        if made is not None:
            return DIGITS, made
    if count % 2 and count > 1:
        # The weight in the middle is what the others leave.
        others = np.delete(given, count // 2, axis=1)
        return count, _flat(np.pad(others, ((0, 0), (0, 2))).astype(np.int16))
    return count, _padded(given, 2).reshape(-1)


def digits_of(weights: npt.NDArray[np.int32]) -> Numbers | None:
    """Return weights of three rows in digits of 8 and 7 bits, or None if they do not fit.

    An output row has two pairs of upper digits, two of lower ones, and which source rows are first
    in the pairs. The row with the largest weight is second in both, with a part of each digit: a
    pair adds up to at most 128, so that its sum with bytes fits 16 bits.
    """
    order = np.argsort(weights, axis=1)
    upper, lower = np.divmod(np.take_along_axis(weights, order, axis=1), 128)
    # Lower digits that are all 0 would leave upper ones of 128 in both pairs.
    borrowed = lower.sum(axis=1) == 0
    upper[:, 2] -= borrowed
    lower[:, 2] += borrowed * 128
    parts: list[npt.NDArray[np.int32]] = []
    for least, second, most in (upper.T, lower.T):
        part = np.minimum(most, np.minimum(128 - second, 127))
        parts += [second, part, least, most - part]
    made = np.stack(parts, axis=1)
    if made.min() < 0 or made.max() > 127 or (made[:, ::2] + made[:, 1::2]).max() > 128:
        return None
    pairs = made.astype(np.int8).view(np.int16)
    return _flat(np.concatenate([pairs, order[:, 1::-1]], axis=1).astype(np.int16))


@dataclass(frozen=True)
class ByteColumns:
    """The weights of output columns, ``each`` for one of them, and the constant ``taps_x``."""

    source: ByteTaps
    channels: int
    group: int
    taps: int
    each: int
    weights: Numbers

    def first(self, blocks: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Return where each pixel's taps begin in the line of its block, for whole groups."""
        first = self.source.x.first
        made = np.zeros(-(-len(first) // self.group) * self.group, np.int32)
        for begin, stop, base, _ in blocks.reshape(-1, 4):
            made[begin:stop] = (first[begin:stop] - base) * self.channels
        return made


def byte_columns(taps: ByteTaps, channels: int) -> ByteColumns:
    """Return the table for sums across."""
    count, first = taps.x.count, taps.x.first
    group = GRAYS if channels == 1 else 8
    # A line must hold the taps of a whole group.
    starts = np.arange(0, len(first), group)
    ends = np.minimum(starts + group - 1, len(first) - 1)
    reach = int((first[ends] - first[starts]).max()) + count
    if count > UNROLLED or reach * channels > LINE:
        padded = _padded(taps.weights_x, 8 if channels == 1 else 4)
        return ByteColumns(taps, channels, 1, 0, padded.shape[1], padded.reshape(-1))
    width = 2 if channels == 1 or count <= 2 else 4
    padded = _padded(taps.weights_x, width)
    rows = -(-len(first) // group) * group
    padded = np.concatenate([padded, np.zeros((rows - len(first), padded.shape[1]), np.int16)])
    if channels == 1:
        # group, pair, pixel, tap
        made = padded.reshape(-1, group, padded.shape[1] // 2, 2).transpose(0, 2, 1, 3)
        return ByteColumns(taps, 1, group, count, padded.shape[1], _flat(made))
    # Each pair of weights four times, for four channels. Pixels 0, 2, 4, 6 of a group come before
    # 1, 3, 5, 7; two share a vector of four taps each; their chunks of four follow one another.
    each = padded.reshape(-1, group, padded.shape[1])[:, [0, 2, 4, 6, 1, 3, 5, 7]]
    pairs = np.repeat(each.reshape(rows, -1, 1, 2), 4, axis=2)
    if width == 4:
        pairs = pairs.reshape(rows // 2, 2, -1, 16).transpose(0, 2, 1, 3)
    return ByteColumns(taps, channels, group, count, padded.shape[1] * 4, _flat(pairs))


def _padded(weights: npt.NDArray[np.int32], multiple: int) -> Numbers:
    """Return weights with zeros up to a multiple of taps."""
    more = -weights.shape[1] % multiple
    return np.pad(weights, ((0, 0), (0, more))).astype(np.int16)


def _flat(a: Numbers) -> Numbers:
    return np.ascontiguousarray(a).reshape(-1)
