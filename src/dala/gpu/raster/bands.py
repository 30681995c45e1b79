"""Drawing of large streams in bands of rows that fit a core's cache, on several threads.

One pass over the commands records which of them may touch each band. Then the threads draw the
bands, each with its commands in order, clipped to the band. Shapes are clipped exactly, so the
pixels are the same as without bands.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dala.gpu.compute.engines.cpu.memory import ArraySpan, span_of
from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.threads import pool
from dala.gpu.protocol import CommandRow
from dala.gpu.protocol import i32 as signed
from dala.gpu.raster.commands import read_i32, read_u32
from dala.gpu.raster.frame import BAND_SHIFT, FrameRecord
from dala.gpu.raster.stream import *

#: The largest size of a band's pixels in bytes, the number of bands per thread where there are
#: enough rows, and the largest number of bands.
BAND_BYTES: Final = 1 << 20
BANDS_PER_THREAD: Final = 4
MAX_BANDS: Final = 64
#: Commands that are recorded, over all bands, before they are drawn.
MAX_PICKS: Final = 1 << 17
#: Bytes of commands, and of the canvas, from which on bands are faster.
MIN_COMMAND_BYTES: Final = 1 << 15
MIN_CANVAS_BYTES: Final = 1 << 21

OFFSET, STOP_CODE = FrameRecord.places["offset"], FrameRecord.places["stop_code"]

#: The size of a clear command in bytes.
CLEAR_SIZE: Final = 5

#: The family of each opcode.
FAMILY_OF_OPCODE: Final = tuple(FAMILIES.get(opcode, 0) for opcode in range(256))


#: The fields of commands whose rows are known: rectangles, circles, and points.
_KNOWN_FIELDS: Final = tuple(
    {*fields.split(), "color"} for fields in ("x y w h radius", "cx cy radius", "x1 y1 x2 y2 x3 y3")
)


def extent(row: CommandRow) -> tuple[int, bool, tuple[int, ...], int, int]:
    """Return how to find the rows that a command may touch, from the names of its fields.

    That is the offset of its first y and whether it is signed, the offsets of other points' y, of a
    height and of a radius; 0 for none. A command with other fields may touch all rows.
    """
    kinds, at = row.kinds, row.offsets
    if not any(fields.issuperset(kinds) for fields in _KNOWN_FIELDS):
        return 0, False, (), 0, 0
    first = next((n for n in ("y", "cy", "y1") if n in kinds), "")
    height = "h" if first == "y" else ""
    others = tuple(at[n] for n in ("y2", "y3") if n in kinds)
    radius = "radius" if first == "cy" else ""
    return (
        at.get(first, 0), kinds.get(first) is signed, others, at.get(height, 0), at.get(radius, 0)
    )  # fmt: skip


#: The extents of the commands that draw, by opcode.
EXTENTS: Final = tuple((row.opcode, *extent(row)) for row in ROWS)
#: The stop code of ``plan`` when a band has no room for another command.
PICKS_FULL: Final = -3


class Bands:
    """The bands of a canvas of one size, with room for the commands of each."""

    def __init__(self, width: int, height: int) -> None:
        shift, wanted = BAND_SHIFT, min(BANDS_PER_THREAD * pool().threads, MAX_BANDS)
        while -(-height >> shift) > MAX_BANDS or (
            (width * 8 << shift) <= BAND_BYTES and -(-height >> (shift + 1)) >= wanted
        ):
            shift += 1
        self.shift = shift
        self.count = -(-height >> shift)
        self._frames = np.zeros((self.count, FrameRecord.size), np.int64)
        self._picks = np.empty((self.count, MAX_PICKS // self.count), np.int32)
        self._spans = span_of(self._frames), span_of(self._picks)

    def draw(
        self,
        execute: Native,
        where: ArraySpan,
        spans: tuple[ArraySpan, ...],
        frame: npt.NDArray[np.int64],
        at: int,
        *,
        families: int,
    ) -> None:
        """Run ``execute`` from a byte on; the frame records the end."""
        pixels, own, _, _, sizes, slots, _, faults = spans
        frames, picks = self._spans
        plan_bands = compile_native(plan, checked=execute.checked)
        while True:
            self._frames[:] = frame
            self._picks[:, 0] = 0
            plan_bands(where, pixels, own, sizes, slots, faults, picks, self.shift, at, families)
            execute.parallel(self.count, 1)(where, pixels, frames, *spans[2:], picks, self.shift)
            if frame[STOP_CODE] != PICKS_FULL:
                return
            at = int(frame[OFFSET])


def worth_banding(data: npt.NDArray[np.uint8], at: int, size: int) -> bool:
    """Return True if bands are faster for the commands from a byte on."""
    if size < MIN_CANVAS_BYTES or not at < data.size < 1 << 31:  # picks are 32-bit offsets
        return False
    # One thread clears memory as fast as several.
    return data.size - at >= MIN_COMMAND_BYTES or bool(
        data[at] == CLEAR and data.size - at > CLEAR_SIZE
    )


@native
def plan(
    data: Array[u8], pixels: Array[u32], frame: FrameRecord, sizes: Array[u8], slots: Array[u64],
    faults: Array[i64], picks: Array[i32], shift: i64, at: i64, families: i64,
) -> None:  # fmt: skip
    """Record the commands from a byte on in the bands that they may touch, and track the clip.

    Stops where ``execute`` would, or when a band has no room for another command.
    """
    size = len(data)
    height = len(pixels) // frame.width
    bands = (height + (1 << shift) - 1) >> shift
    room = len(picks) // bands
    family = table(i32, FAMILY_OF_OPCODE)
    code = END
    while at < size:
        opcode = i64(data[at])
        length = i64(sizes[opcode])
        if at + length > size:
            code = BROKEN
            break
        if i64(family[opcode]) & ~families != 0:
            code = opcode
            break
        y, below = 0, height
        known = False
        for row in static(EXTENTS):
            if opcode == row[0]:
                if row[1] != 0:
                    y = read_i32(data, at + row[1]) if row[2] else read_u32(data, at + row[1])
                    below = y + 1
                    for other in static(row[3]):
                        b = read_i32(data, at + other)
                        y, below = min(y, b), max(below, b + 1)
                    if row[4] != 0:
                        below = y + read_u32(data, at + row[4])
                    if row[5] != 0:
                        r = read_u32(data, at + row[5])
                        y, below = y - r, below + r
                known = True
                break
        if known:
            code = END
        elif opcode == BLIT:
            id = view(data, u64, at + 1)[0]
            found = find_sprite(slots, frame.sprite_shift, id)
            y = read_i32(data, at + 13)
            below = y
            if found >= 0:
                below += i64(slots[found + 2] >> 32)
            elif not add_fault(faults, opcode, at, id):
                code = FULL
                break
        elif SET_CLIP <= opcode <= RESET_CLIP:
            set_clip(data, opcode, at, frame, 0, height)
        elif opcode == BATCH:
            below = 0
        else:
            code = opcode
            break
        y, below = max(y, 0), min(below, height)
        full = False
        if y < below:
            for band in serial(y >> shift, ((below - 1) >> shift) + 1):
                n = i64(picks[band * room]) + 1
                picks[band * room] = i32(n)
                picks[band * room + n] = i32(at)
                full = full or n >= room - 1
        at += length
        if full:
            code = PICKS_FULL
            break
    frame.stop_code, frame.offset = code, at
