"""Much to draw, band by band: a band of rows stays in a core's own cache, and several cores share.

One walk over the commands notes for each band which of them may reach it. Then every band is drawn
by whoever is free, its commands in their order, clipped to it: the very pixels that drawing all of
them in one go would make, since all shapes are clipped exactly.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dala.gpu.compute.engines.cpu.memory import Place, place_of
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
    AT,
    BAND,
    CODE,
    SHIFT,
    WIDTH,
    WORDS,
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
    DRAW_TRIANGLE,
    END,
    FAMILIES,
    FAULT,
    FAULTS,
    FILL_CIRCLE,
    FILL_RECT,
    FILL_ROUND,
    FILL_TRIANGLE,
    FULL,
    RESET_CLIP,
    SET_CLIP,
    plain,
    signed,
    slot_of,
)

#: Bytes of pixels in a band at most, which a core's own cache should hold, and how many bands
#: there are for each thread if rows allow it, and in all.
BAND_BYTES: Final = 1 << 20
EACH: Final = 4
MOST_BANDS: Final = 64
#: Commands that are noted before they are drawn.
PICKS: Final = 1 << 17
#: Bytes of commands, and of the canvas, from which bands are worth their while.
PLENTY: Final = 1 << 15
LARGE: Final = 1 << 21

#: Bytes of a clear.
CLEAR_SIZE: Final = 5

#: Families by opcode.
KINDS: Final = tuple(FAMILIES.get(opcode, 0) for opcode in range(256))
#: There was no room to note more commands.
MORE: Final = -3


class Bands:
    """The bands of a canvas of one size, and room for what is drawn on them."""

    def __init__(self, width: int, height: int) -> None:
        shift, wanted = BAND, min(EACH * pool().threads, MOST_BANDS)
        while -(-height >> shift) > MOST_BANDS or (
            (width * 8 << shift) <= BAND_BYTES and -(-height >> (shift + 1)) >= wanted
        ):
            shift += 1
        self.shift = shift
        self.count = -(-height >> shift)
        self._frames = np.zeros((self.count, WORDS), np.int64)
        self._picks = np.empty((self.count, PICKS // self.count), np.int32)
        self._places = place_of(self._frames), place_of(self._picks)

    def draw(
        self, execute: Native, where: Place, places: tuple[Place, ...], frame: Any, at: int,
        *, kinds: int,
    ) -> None:  # fmt: skip
        """What ``execute`` does from a byte on; the frame tells how far that was."""
        pixels, own, dirty, widths, sizes, slots, atlas, faults = places
        frames, picks = self._places
        note = compile_native(plan, checked=execute.checked)
        while True:
            self._frames[:] = frame
            self._picks[:, 0] = 0
            note(where, pixels, own, sizes, slots, faults, picks, self.shift, at, kinds)
            execute.parallel(self.count, 1)(
                where, pixels, frames, dirty, widths, sizes, slots, atlas, faults, picks, self.shift
            )
            if frame[CODE] != MORE:
                return
            at = int(frame[AT])


def worth(given: np.ndarray[Any, Any], at: int, size: int) -> bool:
    """Whether bands pay for commands from a byte on, on a canvas of so many bytes."""
    if size < LARGE or not at < given.size < 1 << 31:  # picks are of 32 bits
        return False
    # A clear alone is only memory, which one thread writes as fast as all of them.
    return given.size - at >= PLENTY or bool(given[at] == CLEAR and given.size - at > CLEAR_SIZE)


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
    kinds: i64,
) -> None:
    """Notes commands from a byte on in the bands that they may reach, and follows the clip.

    Ends where ``execute`` would, or when a band has no more room.
    """
    size = len(data)
    width = frame[WIDTH]
    height = len(pixels) // width
    bands = (height + (1 << shift) - 1) >> shift
    room = len(picks) // bands
    family = table(u8, KINDS)
    code = END
    while at < size:
        opcode = i64(data[at])
        length = i64(sizes[opcode])
        if at + length > size:
            code = BROKEN
            break
        if i64(family[opcode]) & ~kinds != 0:
            code = opcode
            break
        y, below = 0, height
        if opcode == FILL_RECT or DRAW_ROUND <= opcode <= FILL_ROUND:
            y = plain(data, at + 5)
            below = y + plain(data, at + 13)
        elif opcode == DRAW_LINE:
            a, b = signed(data, at + 5), signed(data, at + 13)
            y, below = min(a, b), max(a, b) + 1
        elif DRAW_CIRCLE <= opcode <= FILL_CIRCLE:
            y, r = signed(data, at + 5), plain(data, at + 9)
            y, below = y - r, y + r + 1
        elif DRAW_TRIANGLE <= opcode <= FILL_TRIANGLE:
            a, b, c = signed(data, at + 5), signed(data, at + 13), signed(data, at + 21)
            y, below = min(min(a, b), c), max(max(a, b), c) + 1
        elif opcode == BLIT:
            id = view(data, u64, at + 1)[0]
            found = slot_of(slots, frame[SHIFT], id)
            y = signed(data, at + 13)
            below = y
            if found >= 0:
                below += i64(slots[found + 2] >> 32)
            else:
                n = faults[0]
                if n >= FAULTS:
                    code = FULL
                    break
                faults[1 + FAULT * n] = opcode
                faults[2 + FAULT * n] = at
                faults[3 + FAULT * n] = i64(id)
                faults[0] = n + 1
        elif SET_CLIP <= opcode <= RESET_CLIP:
            cx, cy, w, h = 0, 0, width, height
            if opcode == SET_CLIP and data[at + 17] != 0:
                cx, cy = plain(data, at + 1), plain(data, at + 5)
                w, h = plain(data, at + 9), plain(data, at + 13)
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
            code = MORE
            break
    frame[CODE], frame[AT] = code, at
