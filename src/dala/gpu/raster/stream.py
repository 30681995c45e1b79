"""The command protocol in native code: ``check`` validates a stream, ``execute`` draws it."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

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
from dala.gpu.raster.frame import (
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
from dala.gpu.raster.rounds import draw_round, fill_round
from dala.gpu.raster.shapes import line, triangle_outline

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
DRAW_ROUND_SIGNED: Final = OPCODES["draw_round_rect_signed"]
FILL_ROUND_SIGNED: Final = OPCODES["fill_round_rect_signed"]
SET_CLIP: Final = OPCODES["set_clip"]
RESET_CLIP: Final = OPCODES["reset_clip"]
BATCH: Final = OPCODES["batch"]
IMAGE_BLIT: Final = OPCODES["image_blit"]
LOAD_IMAGE: Final = OPCODES["load_image"]

#: Stop codes of ``execute`` besides opcodes: the end of the stream, a command that was not checked,
#: and no room for another fault.
END: Final = 0
BROKEN: Final = -1
FULL: Final = -2

#: The words of a fault, and how many faults fit before the caller has to take them.
FAULT_WORDS: Final = 3
MAX_FAULTS: Final = 64

#: The words of a slot in the sprite table: id, start in the atlas, width and height, state.
SLOT_WORDS: Final = 4
SLOT_USED: Final = 1


#: Families of commands. Code is first compiled for those in use only: the first frame is sooner.
LINES, TRIANGLES, OUTLINES, DISCS, SPRITES = (1 << n for n in range(5))
ALL: Final = 31
FAMILIES: Final = {
    DRAW_LINE: LINES,
    DRAW_TRIANGLE: LINES,
    FILL_TRIANGLE: TRIANGLES,
    DRAW_CIRCLE: OUTLINES,
    DRAW_ROUND: OUTLINES,
    DRAW_ROUND_SIGNED: OUTLINES,
    FILL_CIRCLE: DISCS,
    FILL_ROUND: DISCS,
    FILL_ROUND_SIGNED: DISCS,
    BLIT: SPRITES,
}
#: Commands of a band from which on all its memory is prefetched.
PREFETCH_COMMANDS: Final = 300
#: Commands that are inspected for the families in use.
SAMPLED_COMMANDS: Final = 64


def families_of(data: npt.NDArray[np.uint8], at: int) -> int:
    """Return the families of the first commands from a byte on."""
    found = 0
    for _ in range(SAMPLED_COMMANDS):
        if at >= data.size or _SIZES[data[at]] == 0:
            break
        found |= FAMILIES.get(int(data[at]), 0)
        at += int(_SIZES[data[at]])
    return found


def command_sizes() -> npt.NDArray[np.uint8]:
    """Return the sizes of fixed-size commands in bytes by opcode; 0 for all others."""
    sizes = np.zeros(256, np.uint8)
    for row in COMMANDS:
        if row.struct is not None:
            sizes[row.opcode] = row.struct.size
    sizes[BATCH] = 5  # without its commands
    return sizes


_SIZES: Final = command_sizes()


# checking -------------------------------------------------------------------------------------
@native
def check(data: Array[u8], sizes: Array[u8]) -> tuple[i64, i64]:
    """Return the offset of the first malformed command and its batch depth; -1 if all are valid.

    Commands are validated in the order of ``dala.gpu.protocol.decode``.
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
            end = command_end(data, opcode, at)
            if end < 0:
                return at, depth
            at = end


@native(inline=False)
def command_end(data: Array[u8], opcode: i64, at: i64) -> i64:
    """Return the end of a command of variable size; -1 if it is malformed."""
    size = len(data)
    if opcode == LOAD_SPRITE or opcode == LOAD_IMAGE:  # noqa: SIM109 (native code has no `in`)
        if at + 17 > size:
            return -1
        count = u64(view(data, u32, at + 9)[0]) * u64(view(data, u32, at + 13)[0])
        if count > u64((size - at - 17) >> 2):
            return -1
        return at + 17 + i64(count) * 4
    if opcode == DISPATCH:
        last: i64 = field_end(data, field_end(data, at + 1, True), False) + 12
        return -1 if last < 12 or last > size else last
    end: i64 = -1
    if opcode == LOAD_SHADER:
        end = field_end(data, field_end(data, at + 1, True), True)
    if opcode == SET_UNIFORM:
        end = field_end(data, field_end(data, at + 1, True), False)
    return end


@native(inline=False)
def field_end(data: Array[u8], at: i64, text: bool) -> i64:
    """Return the end of a field with a length prefix; -1 if it is malformed, or begins at -1."""
    if at < 0 or at + 4 > len(data):
        return -1
    end = at + 4 + i64(view(data, u32, at)[0])
    if end > len(data) or (text and not utf8(data, at + 4, end)):
        return -1
    return end


@native
def utf8(data: Array[u8], at: i64, end: i64) -> bool:
    """Return True if bytes are UTF-8: shortest forms, no surrogates, nothing above U+10FFFF."""
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
def read_i32(data: Array[u8], at: i64) -> i64:
    """Return an i32 field."""
    return i64(view(data, i32, at)[0])


@native
def read_u32(data: Array[u8], at: i64) -> i64:
    """Return a u32 field."""
    return i64(view(data, u32, at)[0])


@native
def read_color(data: Array[u8], at: i64) -> u32:
    """Return a color field."""
    color: u32 = view(data, u32, at)[0]
    return color


@native
def unsigned(opcode: i64) -> i64:
    """Return the opcode of a round rectangle with unsigned fields; other opcodes as they are."""
    signed = DRAW_ROUND_SIGNED <= opcode <= FILL_ROUND_SIGNED
    return opcode - (DRAW_ROUND_SIGNED - DRAW_ROUND) if signed else opcode


@native
def find_sprite(slots: Array[u64], shift: i64, id: u64) -> i64:
    """Return the index of a sprite's slot in the table, or -1."""
    mask = (len(slots) >> 2) - 1
    at = i64((id * u64(0x9E3779B97F4A7C15)) >> u64(shift)) & mask
    while slots[SLOT_WORDS * at + 3] != 0:
        if slots[SLOT_WORDS * at] == id and slots[SLOT_WORDS * at + 3] == SLOT_USED:
            return SLOT_WORDS * at
        at = (at + 1) & mask
    return -1


@native(inline=False)
def add_fault(faults: Array[i64], opcode: i64, at: i64, id: u64) -> bool:
    """Record a command that names a sprite which does not exist; return False if there is no room.

    The first word is the number of faults.
    """
    n = faults[0]
    if n >= MAX_FAULTS:
        return False
    faults[1 + FAULT_WORDS * n] = opcode
    faults[2 + FAULT_WORDS * n] = at
    faults[3 + FAULT_WORDS * n] = i64(id)
    faults[0] = n + 1
    return True


@native
def execute(
    data: Array[u8],
    pixels: Array[u32],
    frame: Array[i64],
    damage: Array[i32],
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
    families: int,
) -> None:
    """Execute the bytes from start to end, or until a command that the caller has to execute.

    The frame then holds its offset and opcode. With ``picks``, start and end are bands instead:
    each band has a frame and a row of picks, a count and the offsets of the commands to draw.
    Commands of families that are not in ``families`` are left to the caller, too.
    """
    lines = static(families & LINES != 0)
    filled = static(families & TRIANGLES != 0)
    outlines = static(families & OUTLINES != 0)
    discs = static(families & DISCS != 0)
    sprites = static(families & SPRITES != 0)
    size = len(data)
    width = frame[WIDTH]
    top, low = 0, len(pixels) // width
    at, last = start, end
    banded = len(picks) > 0
    k = 0
    if banded:
        room = len(picks) // ((low + (1 << shift) - 1) >> shift)
        picks = picks[start * room :]
        frame = frame[start * STATE_WORDS :]
        top, low = start << shift, min(end << shift, low)
        frame[Y0] = max(frame[Y0], top)
        frame[Y1] = max(min(frame[Y1], low), frame[Y0])  # empty where the clip misses the band
        at, last = 0, i64(picks[0])
        if last >= PREFETCH_COMMANDS:  # most of its memory is needed
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
            x, y = read_u32(data, at + 1), read_u32(data, at + 5)
            w, h = read_u32(data, at + 9), read_u32(data, at + 13)
            rect(pixels, frame, damage, x, y, x + w, y + h, read_color(data, at + 17))
        elif lines and opcode == DRAW_LINE:
            x, y = read_i32(data, at + 1), read_i32(data, at + 5)
            w, h = read_i32(data, at + 9), read_i32(data, at + 13)
            line(pixels, frame, damage, x, y, w, h, read_color(data, at + 17), 1)
        elif outlines and opcode == DRAW_CIRCLE:
            x, y, r = read_i32(data, at + 1), read_i32(data, at + 5), read_u32(data, at + 9)
            draw_round(pixels, frame, damage, widths, x, y, x, y, r, read_color(data, at + 13))
        elif discs and opcode == FILL_CIRCLE:
            x, y, r = read_i32(data, at + 1), read_i32(data, at + 5), read_u32(data, at + 9)
            fill_round(pixels, frame, damage, widths, x, y, x, y, r, read_color(data, at + 13))
        elif (lines and opcode == DRAW_TRIANGLE) or (filled and opcode == FILL_TRIANGLE):
            ax, ay = read_i32(data, at + 1), read_i32(data, at + 5)
            bx, by = read_i32(data, at + 9), read_i32(data, at + 13)
            cx, cy = read_i32(data, at + 17), read_i32(data, at + 21)
            color = read_color(data, at + 25)
            if filled and opcode == FILL_TRIANGLE:
                triangle(pixels, frame, damage, ax, ay, bx, by, cx, cy, color)
            elif lines:
                triangle_outline(pixels, frame, damage, ax, ay, bx, by, cx, cy, color)
        elif (outlines and unsigned(opcode) == DRAW_ROUND) or (
            discs and unsigned(opcode) == FILL_ROUND
        ):
            x, y = read_u32(data, at + 1), read_u32(data, at + 5)
            if opcode >= DRAW_ROUND_SIGNED:
                x, y = read_i32(data, at + 1), read_i32(data, at + 5)
            w, h = read_u32(data, at + 9), read_u32(data, at + 13)
            color = read_color(data, at + 21)
            if w > 0 and h > 0:
                r = min(read_u32(data, at + 17), (min(w, h) - 1) >> 1)
                w += x - 1 - r
                h += y - 1 - r
                if outlines and unsigned(opcode) == DRAW_ROUND:
                    draw_round(pixels, frame, damage, widths, x + r, y + r, w, h, r, color)
                elif discs:
                    fill_round(pixels, frame, damage, widths, x + r, y + r, w, h, r, color)
        elif sprites and opcode == BLIT:
            id = view(data, u64, at + 1)[0]
            found = find_sprite(slots, frame[SPRITE_SHIFT], id)
            if found >= 0:
                start, wide = i64(slots[found + 1]), slots[found + 2]
                w, h = i64(wide & 0xFFFFFFFF), i64(wide >> 32)
                x, y = read_i32(data, at + 9), read_i32(data, at + 13)
                ahead = 0
                after = at + length
                if banded and k < last:
                    after = i64(picks[k + 1])
                if after + length <= size:
                    ahead = read_i32(data, after + 13) * width + read_i32(data, after + 9)
                sprite(pixels, frame, damage, atlas, start, w, h, x, y, ahead)
            elif not add_fault(faults, opcode, at, id):
                code = FULL
                break
        elif opcode == CLEAR:
            clear(pixels, frame, damage, read_color(data, at + 1))
        elif SET_CLIP <= opcode <= RESET_CLIP:
            x, y, w, h = 0, 0, width, low
            if opcode == SET_CLIP and data[at + 17] != 0:
                x, y = read_u32(data, at + 1), read_u32(data, at + 5)
                w, h = read_u32(data, at + 9), read_u32(data, at + 13)
            frame[X0], frame[Y0] = min(x, width), min(max(y, top), low)
            frame[X1], frame[Y1] = min(x + w, width), max(min(y + h, low), frame[Y0])
        elif opcode != BATCH:
            code = opcode
            break
        at += length
    frame[STOP_CODE], frame[OFFSET] = code, at
