"""Levels of bytes through the tables of tiles, in integers.

Levels in tables are rounded to 7 bits of fraction, shares of tiles to 15. Tables are mixed down,
then across, each rounded to 7 bits of fraction, then to a byte.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from dala.typing import NDArray

#: Bits of fraction of a level in a table of bytes, and of a tile's share.
LEVEL_BITS: Final = 7
SHARE_BITS: Final = 15


def whole_levels(tables: NDArray) -> npt.NDArray[np.int32]:
    """Return tables of f32 levels as integers with ``LEVEL_BITS`` of fraction."""
    units = np.floor(tables.astype(np.float32) * np.float32(1 << LEVEL_BITS) + np.float32(0.5))
    made: npt.NDArray[np.int32] = np.clip(np.nan_to_num(units), 0, 255 << LEVEL_BITS).astype(
        np.int32
    )
    return made


def tile_shares(
    shape: tuple[int, ...], size: tuple[int, int]
) -> list[tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]]:
    """Return for each row and each column the tile whose center is not after it, and a share.

    The share is that of the next tile. Bits are dropped so that products fit 32 bits.

    >>> [a.tolist() for a in tile_shares((1, 4), (1, 2))[1]]
    [[-1, 0, 0, 1], [16384, 0, 16384, 0]]
    """
    made, drop = [], dropped_bits(size)
    for count, own in zip(shape, size, strict=False):
        one = 2 * max(own, 1)
        place = 2 * np.arange(count, dtype=np.int64) + one // 2
        share = ((place % one >> drop << SHARE_BITS) + (one >> drop >> 1)) // (one >> drop)
        made.append(((place // one - 1).astype(np.int32), share.astype(np.int32)))
    return made


def dropped_bits(size: tuple[int, int]) -> int:
    """Return by how many bits positions in large tiles are shifted."""
    return max(0, max(size).bit_length() - 16)
