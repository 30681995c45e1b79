"""The byte protocol in native code: one walk that checks, one that draws."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    hinted,
    i32,
    i64,
    local,
    prefetch,
    static,
    u8,
    u32,
    u64,
    view,
)
from dala.gpu.protocol import COMMANDS, MAX_DEPTH, OPCODES
from dala.gpu.raster.fills import clear, rect, sprite, triangle
from dala.gpu.raster.frame import AT, CODE, SHIFT, WIDTH, WORDS, X0, X1, Y0, Y1
from dala.gpu.raster.rounds import outline, solid
from dala.gpu.raster.shapes import line, wire

CLEAR: Final = OPCODES["clear"]
FILL_RECT: Final = OPCODES["fill_rect"]
DRAW_LINE: Final = OPCODES["draw_line"]
BLIT: Final = OPCODES["blit"]
LOAD_SPRITE: Final = OPCODES["load_sprite"]
DISPATCH: Final = OPCODES["dispatch_compute"]
LOAD_SHADER: Final = OPCODES["load_shader"]
SET_UNIFORM: Final = OPCODES["set_uniform"]
DRAW_CIRCLE: Final = OPCODES["draw_circle"]
FILL_CIRCLE: Final = OPCODES["fill_circle"]
DRAW_TRIANGLE: Final = OPCODES["draw_triangle"]
FILL_TRIANGLE: Final = OPCODES["fill_triangle"]
DRAW_ROUND: Final = OPCODES["draw_round_rect"]
FILL_ROUND: Final = OPCODES["fill_round_rect"]
SET_CLIP: Final = OPCODES["set_clip"]
RESET_CLIP: Final = OPCODES["reset_clip"]
BATCH: Final = OPCODES["batch"]
IMAGE_BLIT: Final = OPCODES["image_blit"]
LOAD_IMAGE: Final = OPCODES["load_image"]

#: What execute gives besides opcodes: it is at the end, the bytes are not what was checked, or
#: there is no room for another fault.
END: Final = 0
BROKEN: Final = -1
FULL: Final = -2

#: Words of a fault, and how many are kept before the caller has to take them.
FAULT: Final = 3
FAULTS: Final = 64

#: Words of a sprite in the table: id, start in the atlas, width and height, state.
SLOT: Final = 4
USED: Final = 1


#: Families of commands that code can be compiled without: what is needed first comes sooner so.
LINES, TRIANGLES, OUTLINES, DISCS, SPRITES = (1 << n for n in range(5))
ALL: Final = 31
FAMILIES: Final = {
    DRAW_LINE: LINES,
    DRAW_TRIANGLE: LINES,
    FILL_TRIANGLE: TRIANGLES,
    DRAW_CIRCLE: OUTLINES,
    DRAW_ROUND: OUTLINES,
    FILL_CIRCLE: DISCS,
    FILL_ROUND: DISCS,
    BLIT: SPRITES,
}
#: Commands of a band from which all its memory is asked for beforehand.
CROWDED: Final = 300
#: How many commands are looked at for them.
LOOKED_AT: Final = 64


def families(data: np.ndarray[Any, Any], at: int) -> int:
    """The families that the first commands from a byte on are of."""
    found = 0
    for _ in range(LOOKED_AT):
        if at >= data.size or _SIZES[data[at]] == 0:
            break
        found |= FAMILIES.get(int(data[at]), 0)
        at += int(_SIZES[data[at]])
    return found


def command_sizes() -> np.ndarray[Any, Any]:
    """Bytes of each command of a fixed size by its opcode; 0 for all others."""
    sizes = np.zeros(256, np.uint8)
    for row in COMMANDS:
        if row.struct is not None:
            sizes[row.opcode] = row.struct.size
    sizes[BATCH] = 5  # what it holds are commands themselves
    return sizes


_SIZES: Final = command_sizes()


# checking -------------------------------------------------------------------------------------
@native
def check(data: Array[u8], sizes: Array[u8]) -> tuple[i64, i64]:
    """Where the first malformed command is, and how many batches it is in; -1 if there is none.

    Commands are looked at as ``dala.gpu.command.decode`` does, and refused in its order.
    """
    left = local(i64, MAX_DEPTH + 1)
    depth = 0
    at = 0
    size = len(data)
    while True:
        while depth > 0 and left[depth] == 0:
            depth -= 1
        if depth > 0:
            left[depth] -= 1
            if at >= size:
                return at, depth
        elif at >= size:
            return -1, 0
        opcode = i64(data[at])
        fixed = i64(sizes[opcode])
        if fixed != 0:
            if at + fixed > size:
                return at, depth
            if opcode == SET_CLIP and data[at + 17] > 1:
                return at, depth
            if opcode == BATCH:
                count = i64(view(data, u32, at + 1)[0])
                if depth >= MAX_DEPTH or count > size - at - 5:
                    return at, depth
                depth += 1
                left[depth] = count
            at += fixed
        else:
            end = ending(data, opcode, at)
            if end < 0:
                return at, depth
            at = end


@native(inline=False)
def ending(data: Array[u8], opcode: i64, at: i64) -> i64:
    """Where a command ends that has no fixed size; -1 if it is malformed."""
    size = len(data)
    if opcode == LOAD_SPRITE or opcode == LOAD_IMAGE:  # noqa: SIM109 (native code has no `in`)
        if at + 17 > size:
            return -1
        count = u64(view(data, u32, at + 9)[0]) * u64(view(data, u32, at + 13)[0])
        if count > u64((size - at - 17) >> 2):
            return -1
        return at + 17 + i64(count) * 4
    if opcode == DISPATCH:
        last: i64 = field(data, field(data, at + 1, True), False) + 12
        return -1 if last < 12 or last > size else last
    end: i64 = -1
    if opcode == LOAD_SHADER:
        end = field(data, field(data, at + 1, True), True)
    if opcode == SET_UNIFORM:
        end = field(data, field(data, at + 1, True), False)
    return end


@native(inline=False)
def field(data: Array[u8], at: i64, text: bool) -> i64:
    """Where a field ends that carries its length; -1 if it is malformed, or began so."""
    if at < 0 or at + 4 > len(data):
        return -1
    end = at + 4 + i64(view(data, u32, at)[0])
    if end > len(data) or (text and not utf8(data, at + 4, end)):
        return -1
    return end


@native
def utf8(data: Array[u8], at: i64, end: i64) -> bool:
    """Whether bytes are UTF-8: shortest forms only, no surrogates, nothing above U+10FFFF."""
    while at < end:
        lead = data[at]
        at += 1
        if lead >= 0x80:
            more = 1
            low: u8 = 0x80
            high: u8 = 0xBF
            if lead >= 0xF0:
                more = 3
                if lead == 0xF0:
                    low = 0x90
                if lead == 0xF4:
                    high = 0x8F
            elif lead >= 0xE0:
                more = 2
                if lead == 0xE0:
                    low = 0xA0
                if lead == 0xED:
                    high = 0x9F
            if lead < 0xC2 or lead > 0xF4 or at + more > end:
                return False
            if data[at] < low or data[at] > high:
                return False
            for i in range(at + 1, at + more):
                if data[i] & 0xC0 != 0x80:
                    return False
            at += more
    return True


# drawing --------------------------------------------------------------------------------------
@native
def signed(data: Array[u8], at: i64) -> i64:
    """An i32 field."""
    return i64(view(data, i32, at)[0])


@native
def plain(data: Array[u8], at: i64) -> i64:
    """A u32 field."""
    return i64(view(data, u32, at)[0])


@native
def shade(data: Array[u8], at: i64) -> u32:
    """A colour."""
    color: u32 = view(data, u32, at)[0]
    return color


@native
def slot_of(slots: Array[u64], shift: i64, id: u64) -> i64:
    """The place of a sprite in the table, -1 if there is none of this id."""
    mask = (len(slots) >> 2) - 1
    at = i64((id * u64(0x9E3779B97F4A7C15)) >> u64(shift)) & mask
    while slots[SLOT * at + 3] != 0:
        if slots[SLOT * at] == id and slots[SLOT * at + 3] == USED:
            return SLOT * at
        at = (at + 1) & mask
    return -1


@native
def execute(
    data: Array[u8],
    pixels: Array[u32],
    frame: Array[i64],
    dirty: Array[i32],
    widths: Array[u8],
    sizes: Array[u8],
    slots: Array[u64],
    atlas: Array[u32],
    faults: Array[i64],
    picks: Array[i32],
    shift: i64,
    start: i64,
    end: i64,
    *,
    kinds: int,
) -> None:
    """Draws the bytes from start to end, or until a command that is for others.

    The frame then tells where that is, and its opcode. With ``picks`` the range is one of bands:
    for each there is a frame, and a row of picks, which are the places of the commands to draw and
    before them how many there are. All but the families in ``kinds`` are for others, too.
    """
    lines = static(kinds & LINES != 0)
    filled = static(kinds & TRIANGLES != 0)
    outlines = static(kinds & OUTLINES != 0)
    discs = static(kinds & DISCS != 0)
    sprites = static(kinds & SPRITES != 0)
    size = len(data)
    width = frame[WIDTH]
    top, low = 0, len(pixels) // width
    at, last = start, end
    banded = len(picks) > 0
    k = 0
    if banded:
        room = len(picks) // ((low + (1 << shift) - 1) >> shift)
        picks = picks[start * room :]
        frame = frame[start * WORDS :]
        top, low = start << shift, min(end << shift, low)
        frame[Y0] = max(frame[Y0], top)
        frame[Y1] = max(min(frame[Y1], low), frame[Y0])  # a clip beside the band leaves nothing
        at, last = 0, i64(picks[0])
        if last >= CROWDED:  # most of its memory will be needed, and comes quickest in order
            for i in hinted(range(top * width, low * width, 16), scalar=True):
                prefetch(pixels, i)
    code = END
    while True:
        if banded:
            if k >= last:
                break
            k += 1
            at = i64(picks[k])
        elif at >= last:
            break
        opcode = i64(data[at])
        length = i64(sizes[opcode])
        if at + length > size:
            code = BROKEN
            break
        if opcode == FILL_RECT:
            x, y = plain(data, at + 1), plain(data, at + 5)
            w, h = plain(data, at + 9), plain(data, at + 13)
            rect(pixels, frame, dirty, x, y, x + w, y + h, shade(data, at + 17))
        elif lines and opcode == DRAW_LINE:
            x, y = signed(data, at + 1), signed(data, at + 5)
            w, h = signed(data, at + 9), signed(data, at + 13)
            line(pixels, frame, dirty, x, y, w, h, shade(data, at + 17), 1)
        elif outlines and opcode == DRAW_CIRCLE:
            x, y, r = signed(data, at + 1), signed(data, at + 5), plain(data, at + 9)
            outline(pixels, frame, dirty, widths, x, y, x, y, r, shade(data, at + 13))
        elif discs and opcode == FILL_CIRCLE:
            x, y, r = signed(data, at + 1), signed(data, at + 5), plain(data, at + 9)
            solid(pixels, frame, dirty, widths, x, y, x, y, r, shade(data, at + 13))
        elif (lines and opcode == DRAW_TRIANGLE) or (filled and opcode == FILL_TRIANGLE):
            ax, ay = signed(data, at + 1), signed(data, at + 5)
            bx, by = signed(data, at + 9), signed(data, at + 13)
            cx, cy = signed(data, at + 17), signed(data, at + 21)
            color = shade(data, at + 25)
            if filled and opcode == FILL_TRIANGLE:
                triangle(pixels, frame, dirty, ax, ay, bx, by, cx, cy, color)
            elif lines:
                wire(pixels, frame, dirty, ax, ay, bx, by, cx, cy, color)
        elif (outlines and opcode == DRAW_ROUND) or (discs and opcode == FILL_ROUND):
            x, y = plain(data, at + 1), plain(data, at + 5)
            w, h = plain(data, at + 9), plain(data, at + 13)
            color = shade(data, at + 21)
            if w > 0 and h > 0:
                r = min(plain(data, at + 17), (min(w, h) - 1) >> 1)
                w += x - 1 - r
                h += y - 1 - r
                if outlines and opcode == DRAW_ROUND:
                    outline(pixels, frame, dirty, widths, x + r, y + r, w, h, r, color)
                elif discs:
                    solid(pixels, frame, dirty, widths, x + r, y + r, w, h, r, color)
        elif sprites and opcode == BLIT:
            id = view(data, u64, at + 1)[0]
            found = slot_of(slots, frame[SHIFT], id)
            if found >= 0:
                start, wide = i64(slots[found + 1]), slots[found + 2]
                w, h = i64(wide & 0xFFFFFFFF), i64(wide >> 32)
                x, y = signed(data, at + 9), signed(data, at + 13)
                ahead = 0
                after = at + length
                if banded and k < last:
                    after = i64(picks[k + 1])
                if after + length <= size:
                    ahead = signed(data, after + 13) * width + signed(data, after + 9)
                sprite(pixels, frame, dirty, atlas, start, w, h, x, y, ahead)
            else:
                n = faults[0]
                if n >= FAULTS:
                    code = FULL
                    break
                faults[1 + FAULT * n] = opcode
                faults[2 + FAULT * n] = at
                faults[3 + FAULT * n] = i64(id)
                faults[0] = n + 1
        elif opcode == CLEAR:
            clear(pixels, frame, dirty, shade(data, at + 1))
        elif SET_CLIP <= opcode <= RESET_CLIP:
            x, y, w, h = 0, 0, width, low
            if opcode == SET_CLIP and data[at + 17] != 0:
                x, y = plain(data, at + 1), plain(data, at + 5)
                w, h = plain(data, at + 9), plain(data, at + 13)
            frame[X0], frame[Y0] = min(x, width), min(max(y, top), low)
            frame[X1], frame[Y1] = min(x + w, width), max(min(y + h, low), frame[Y0])
        elif opcode != BATCH:
            code = opcode
            break
        at += length
    frame[CODE], frame[AT] = code, at
