"""Drawing of large streams in bands of rows that fit a core's cache, on several threads.

One pass over the commands records which of them may touch each band. Then the threads draw the
bands, each with its commands in order, clipped to the band. Shapes are clipped exactly, so the
pixels are the same as without bands.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from dala.gpu.compute.engines.cpu.memory import ArraySpan, span_of
from dala.gpu.compute.engines.cpu.native import Native, compile_native, native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    hinted,
    i32,
    i64,
    table,
    u8,
    u32,
    u64,
    view,
)
from dala.gpu.compute.engines.cpu.threads import pool
from dala.gpu.raster.frame import (
    BAND_SHIFT,
    OFFSET,
    SPRITE_SHIFT,
    STATE_WORDS,
    STOP_CODE,
    WIDTH,
    X0,
    X1,
    Y0,
    Y1,
)
from dala.gpu.raster.stream import (
    BATCH,
    BLIT,
    BROKEN,
    CLEAR,
    DRAW_CIRCLE,
    DRAW_LINE,
    DRAW_ROUND,
    DRAW_ROUND_SIGNED,
    DRAW_TRIANGLE,
    END,
    FAMILIES,
    FILL_CIRCLE,
    FILL_RECT,
    FILL_ROUND,
    FILL_ROUND_SIGNED,
    FILL_TRIANGLE,
    FULL,
    RESET_CLIP,
    SET_CLIP,
    add_fault,
    find_sprite,
    read_i32,
    read_u32,
)

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

#: The size of a clear command in bytes.
CLEAR_SIZE: Final = 5

#: The family of each opcode.
FAMILY_OF_OPCODE: Final = tuple(FAMILIES.get(opcode, 0) for opcode in range(256))
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
        self._frames = np.zeros((self.count, STATE_WORDS), np.int64)
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
        """Do the work of ``execute`` from a byte on; the frame says where it stopped."""
        pixels, own, damage, widths, sizes, slots, atlas, faults = spans
        frames, picks = self._spans
        plan_bands = compile_native(plan, checked=execute.checked)
        while True:
            self._frames[:] = frame
            self._picks[:, 0] = 0
            plan_bands(where, pixels, own, sizes, slots, faults, picks, self.shift, at, families)
            execute.parallel(self.count, 1)(
                where,
                pixels,
                frames,
                damage,
                widths,
                sizes,
                slots,
                atlas,
                faults,
                picks,
                self.shift,
            )
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
    data: Array[u8],
    pixels: Array[u32],
    frame: Array[i64],
    sizes: Array[u8],
    slots: Array[u64],
    faults: Array[i64],
    picks: Array[i32],
    shift: i64,
    at: i64,
    families: i64,
) -> None:
    """Record the commands from a byte on in the bands that they may touch, and track the clip.

    Stops where ``execute`` would, or when a band has no room for another command.
    """
    size = len(data)
    width = frame[WIDTH]
    height = len(pixels) // width
    bands = (height + (1 << shift) - 1) >> shift
    room = len(picks) // bands
    family = table(u8, FAMILY_OF_OPCODE)
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
        if opcode == FILL_RECT or DRAW_ROUND <= opcode <= FILL_ROUND:
            y = read_u32(data, at + 5)
            below = y + read_u32(data, at + 13)
        elif DRAW_ROUND_SIGNED <= opcode <= FILL_ROUND_SIGNED:
            y = read_i32(data, at + 5)
            below = y + read_u32(data, at + 13)
        elif opcode == DRAW_LINE:
            a, b = read_i32(data, at + 5), read_i32(data, at + 13)
            y, below = min(a, b), max(a, b) + 1
        elif DRAW_CIRCLE <= opcode <= FILL_CIRCLE:
            y, r = read_i32(data, at + 5), read_u32(data, at + 9)
            y, below = y - r, y + r + 1
        elif DRAW_TRIANGLE <= opcode <= FILL_TRIANGLE:
            a, b, c = read_i32(data, at + 5), read_i32(data, at + 13), read_i32(data, at + 21)
            y, below = min(min(a, b), c), max(max(a, b), c) + 1
        elif opcode == BLIT:
            id = view(data, u64, at + 1)[0]
            found = find_sprite(slots, frame[SPRITE_SHIFT], id)
            y = read_i32(data, at + 13)
            below = y
            if found >= 0:
                below += i64(slots[found + 2] >> 32)
            elif not add_fault(faults, opcode, at, id):
                code = FULL
                break
        elif SET_CLIP <= opcode <= RESET_CLIP:
            cx, cy, w, h = 0, 0, width, height
            if opcode == SET_CLIP and data[at + 17] != 0:
                cx, cy = read_u32(data, at + 1), read_u32(data, at + 5)
                w, h = read_u32(data, at + 9), read_u32(data, at + 13)
            frame[X0], frame[Y0] = min(cx, width), min(cy, height)
            frame[X1], frame[Y1] = min(cx + w, width), min(cy + h, height)
        elif opcode == BATCH:
            below = 0
        elif opcode != CLEAR:
            code = opcode
            break
        y, below = max(y, 0), min(below, height)
        full = False
        if y < below:
            for band in hinted(range(y >> shift, ((below - 1) >> shift) + 1), scalar=True):
                n = i64(picks[band * room]) + 1
                picks[band * room] = i32(n)
                picks[band * room + n] = i32(at)
                full = full or n >= room - 1
        at += length
        if full:
            code = PICKS_FULL
            break
    frame[STOP_CODE], frame[OFFSET] = code, at
