"""The drawing state that native code reads and writes, and the damage of a canvas."""

from __future__ import annotations

from typing import NamedTuple

from dala.gpu.compute.engines.cpu.native import *

#: log2 of the rows of a band. Damage is kept as the range of changed columns of each band.
BAND_SHIFT: Final = 4
#: The first changed column of a band without changes.
UNTOUCHED: Final = 1 << 30


class FrameRecord(Record, fields="width x0 y0 x1 y1 sprite_shift offset stop_code"):
    """The width in pixels and the clip, whose x1 and y1 are exclusive.

    Then the right shift from the hash of a sprite id to its slot in the sprite table. Last, where
    execution stopped, and why: an opcode that the caller executes, or a code of ``stream``.
    """


class DrawTarget(NamedTuple):
    """The arrays of a canvas that shapes are drawn with."""

    pixels: Array[u32]
    frame: FrameRecord
    damage: Array[i32]
    #: The table of half-widths of circles.
    widths: Array[u8]


@native(inline=False)
def mark(damage: Array[i32], x0: i64, y0: i64, x1: i64, y1: i64) -> None:
    """Add the rectangle from (x0, y0) to (x1, y1), exclusive, to the damage."""
    for band in serial(y0 >> BAND_SHIFT, ((y1 - 1) >> BAND_SHIFT) + 1):
        damage[2 * band] = min(damage[2 * band], i32(x0))
        damage[2 * band + 1] = max(damage[2 * band + 1], i32(x1))


@native
def damaged(
    frame: FrameRecord, damage: Array[i32], left: i64, top: i64, right: i64, bottom: i64, seen: bool
) -> tuple[i64, i64, i64, i64]:
    """Return the part of a rectangle inside the clip, and add it to the damage if it is seen.

    All numbers are 0 if nothing is.
    """
    x0, y0 = max(left, frame.x0), max(top, frame.y0)
    x1, y1 = min(right, frame.x1), min(bottom, frame.y1)
    if x0 >= x1 or y0 >= y1 or not seen:
        return 0, 0, 0, 0
    mark(damage, x0, y0, x1, y1)
    return x0, y0, x1, y1
