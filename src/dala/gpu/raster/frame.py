"""The drawing state that native code reads and writes, and the damage of a canvas."""

from __future__ import annotations

from typing import Final

from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.names import Array, hinted, i32, i64

#: Indices into the state: the width in pixels, and the clip; X1 and Y1 are exclusive.
WIDTH, X0, Y0, X1, Y1 = 0, 1, 2, 3, 4
#: The right shift from the hash of a sprite id to its slot in the sprite table.
SPRITE_SHIFT: Final = 5
#: The offset of the first pixel from an address that is a multiple of 64, in pixels.
ALIGNMENT: Final = 6
#: Where execution stopped, and why: an opcode that the caller executes, or a code of ``stream``.
OFFSET: Final = 7
STOP_CODE: Final = 8
STATE_WORDS: Final = 9

#: log2 of the rows of a band. Damage is kept as the range of changed columns of each band.
BAND_SHIFT: Final = 4
#: The first changed column of a band without changes.
UNTOUCHED: Final = 1 << 30


@native(inline=False)
def mark(damage: Array[i32], x0: i64, y0: i64, x1: i64, y1: i64) -> None:
    """Add the rectangle from (x0, y0) to (x1, y1), exclusive, to the damage."""
    for band in hinted(range(y0 >> BAND_SHIFT, ((y1 - 1) >> BAND_SHIFT) + 1), scalar=True):
        damage[2 * band] = min(damage[2 * band], i32(x0))
        damage[2 * band + 1] = max(damage[2 * band + 1], i32(x1))
