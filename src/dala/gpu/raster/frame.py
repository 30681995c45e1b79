"""What all drawing shares: the words of a canvas that native code reads, and what was changed."""

from __future__ import annotations

from typing import Final

from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.names import Array, hinted, i32, i64

#: Words of a frame: the width in pixels, then the clip, from (X0, Y0) up to but not (X1, Y1).
WIDTH, X0, Y0, X1, Y1 = 0, 1, 2, 3, 4
#: How far to shift an id's hash for its slot in the table of sprites.
SHIFT: Final = 5
#: How many words the first pixel is behind an address that is a multiple of 64.
ALIGN: Final = 6
#: Where drawing came to, and what is there: the opcode of a command that is for others.
AT: Final = 7
CODE: Final = 8
WORDS: Final = 9

#: Rows of a band, as a power of two: changes are kept as the columns touched in each band.
BAND: Final = 4
#: The first column of a band that nothing touched.
NOWHERE: Final = 1 << 30


@native(inline=False)
def mark(dirty: Array[i32], x0: i64, y0: i64, x1: i64, y1: i64) -> None:
    """Remembers that pixels from (x0, y0) up to but not (x1, y1) changed."""
    for band in hinted(range(y0 >> BAND, ((y1 - 1) >> BAND) + 1), scalar=True):
        dirty[2 * band] = min(dirty[2 * band], i32(x0))
        dirty[2 * band + 1] = max(dirty[2 * band + 1], i32(x1))
