"""Resizing of bytes in integers: the weights, and how sums are rounded.

Every engine sums down first, then across. With weights ``w`` of a column that add up to 2**k, a sum
down is ``(sum(w * byte) + half) >> down``; it keeps ``k - down`` bits of fraction (7, or 6 where
weights are negative) and fits 16 bits. A sum across is rounded the same way to a byte, and clamped.
Weights fit 16 bits. Sums fit 32 bits, those across more than ``WIDE`` pixels if the upper and the
lower bytes of the sums down are summed apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from dala.gpu.compute.engines.sampling.taps import SymbolicTaps, Taps, taps_of
from dala.gpu.compute.engines.symbols import FUNCTIONS, SymbolicTable
from dala.typing import NDArray

#: The most bits of a weight.
_MOST: Final = 20
#: Sums across more pixels than this have weights of more bits.
WIDE: Final = 64
#: Weights halfway between two integers are rounded up, whatever the last bits of an f64 are.
_HALF: Final = 0.5 + 2.0**-20


@dataclass(frozen=True, eq=False)
class ByteTaps:
    """The tables of both axes with integer weights, and by how many bits sums are shifted."""

    y: Taps
    x: Taps
    weights_y: npt.NDArray[np.int32]
    weights_x: npt.NDArray[np.int32]
    down: int
    across: int
    #: Bits of fraction of a sum down.
    fraction: int

    def apply(self, image: NDArray) -> NDArray:
        """Return the resized picture (height, width, channels) of a u8 picture."""
        line = _summed(image.astype(np.int64), self.y.first, self.weights_y, self.down)
        made = _summed(line.swapaxes(0, 1), self.x.first, self.weights_x, self.across)
        found: NDArray = np.clip(made, 0, 255).astype(np.uint8).swapaxes(0, 1)
        return found

    def words(self) -> npt.NDArray[np.uint32]:
        """Return 32-bit words for shaders: both shifts, then first and weights of x and of y."""
        parts = [np.array([self.down, self.across], np.int32)]
        for taps, weights in ((self.x, self.weights_x), (self.y, self.weights_y)):
            parts.append(np.concatenate([taps.first[:, None], weights], axis=1).reshape(-1))
        return np.concatenate(parts).view(np.uint32)


def _summed(a: NDArray, first: NDArray, weights: NDArray, shift: int) -> NDArray:
    total = np.full((len(first), *a.shape[1:]), 1 << shift >> 1, np.int64)
    for k in range(weights.shape[1]):
        total += weights[:, k].reshape(-1, *(1,) * (a.ndim - 1)) * a[first + k]
    return total >> shift


@lru_cache(maxsize=128)
def byte_taps(y: Taps, x: Taps) -> ByteTaps:
    """Return the integer tables for the tables of both axes."""
    down = min(_bits(y), _MOST)
    signed = bool((y.weights < 0.0).any() or (x.weights < 0.0).any())
    across = min(_bits(x), _MOST if x.count > WIDE else 15 if signed else 16)
    fraction = 6 if signed else 7
    return ByteTaps(
        y, x, _whole(y, down), _whole(x, across), down - fraction, across + fraction, fraction
    )


def _bits(taps: Taps) -> int:
    """Return the most bits with which the weights fit 16 bits."""
    return int(np.floor(np.log2(32766.0 / np.abs(taps.weights).max())))


def _whole(taps: Taps, bits: int) -> npt.NDArray[np.int32]:
    """Return integer weights that add up to 2**bits: the differences of rounded running sums."""
    sums = np.floor(np.cumsum(taps.weights, axis=1) * 2.0**bits + _HALF)
    made: npt.NDArray[np.int32] = np.diff(sums, axis=1, prepend=0.0).astype(np.int32)
    return made


def byte_words(y: Taps, x: Taps) -> npt.NDArray[np.uint32] | SymbolicTable:
    """Return the words of the tables of both axes."""
    words = byte_taps(y, x).words()
    if not isinstance(y, SymbolicTaps) or not isinstance(x, SymbolicTaps):
        return words
    size = 4 * (2 + x.size + y.size)
    return SymbolicTable.of("byte_taps", words.tobytes(), size, *x.args, *y.args)


FUNCTIONS["byte_taps"] = lambda *args: byte_taps(taps_of(*args[6:]), taps_of(*args[:6])).words()
