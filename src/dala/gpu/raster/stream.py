"""The command protocol in native code: ``check`` validates a stream, ``execute`` draws it."""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt

from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.protocol import BY_OPCODE, COMMANDS, MAX_DEPTH, OPCODES, CommandRow, flag
from dala.gpu.protocol import f64 as double
from dala.gpu.protocol import i32 as signed
from dala.gpu.raster import commands
from dala.gpu.raster.commands import read_i32, read_u32
from dala.gpu.raster.frame import DrawTarget, FrameRecord
from dala.gpu.raster.shapes import sprite
from dala.gpu.vector.fields import CLOSE, MAX_NUMBERS, MAX_VERBS, MOVE, VERB_POINTS

CLEAR: Final = OPCODES["clear"]
BLIT: Final = OPCODES["blit"]
SET_CLIP: Final = OPCODES["set_clip"]
RESET_CLIP: Final = OPCODES["reset_clip"]
BATCH: Final = OPCODES["batch"]
IMAGE_BLIT: Final = OPCODES["image_blit"]

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


#: The commands that native functions draw: opcode, family, function, filled, signed. Code is first
#: compiled for the families in use only: the first frame is sooner. Rectangles are always in it.
ROWS: Final = tuple(row for row in COMMANDS if row.draws)
DRAWN: Final = tuple(
    (
        row.opcode,
        0 if row.draws in ("clear", "rect") else 2 << n,
        getattr(commands, row.draws),
        row.name.startswith("fill"),
        row.kinds.get("x") is signed,
    )
    for n, row in enumerate(ROWS)
)
SPRITES: Final = 1
FAMILIES: Final = {opcode: bit for opcode, bit, *_ in DRAWN if bit} | {BLIT: SPRITES}
ALL: Final = sum(FAMILIES.values())
#: Commands that are inspected for the families in use.
SAMPLED_COMMANDS: Final = 64


def families_of(data: npt.NDArray[np.uint8], at: int) -> int:
    """Return the families of the first commands from a byte on."""
    found = 0
    for _ in range(SAMPLED_COMMANDS):
        if at >= data.size or SIZES[data[at]] == 0:
            break
        found |= FAMILIES.get(int(data[at]), 0)
        at += int(SIZES[data[at]])
    return found


#: The sizes of fixed-size commands in bytes by opcode; 0 for all others.
SIZES: Final = np.zeros(256, np.uint8)
for _row in COMMANDS:
    if _row.struct is not None and not _row.checked:
        SIZES[_row.opcode] = _row.struct.size
SIZES[BATCH] = 5  # without its commands

#: The steps over a command of variable size: the kinds of fields, so many bytes and FIXED, or the
#: last choice of a field and CHOICE.
TEXT, DATA, PIXELS, NUMBERS, PATH, PLACES, NUMBER, FIXED = range(1, 9)
CHOICE: Final = 128
STEPS: Final = 16


_FIELD_STEPS: Final = {
    "text": TEXT, "data": DATA, "pixels": PIXELS, "numbers": NUMBERS, "path": PATH,
    "places": PLACES, "f64": NUMBER,
}  # fmt: skip


def _steps(row: CommandRow | None) -> list[int]:
    found = [1 + FIXED]
    if row is not None and (row.struct is None or row.checked):
        for _, kind in row.fields:
            size = struct.calcsize("<" + kind.format)
            if kind.names or kind is flag:
                found.append(CHOICE + (1 if kind is flag else kind.high))
            elif not size or kind is double:
                found.append(_FIELD_STEPS.get(kind.name, 0))
            elif FIXED <= found[-1] < CHOICE:
                found[-1] += size
            else:
                found.append(size + FIXED)
    assert len(found) < STEPS, f"{row} has more fields of variable size than STEPS"
    return found + [0] * (STEPS - len(found))


#: The steps of every opcode, and where the flag of a fixed-size command is; 0 without one.
STEP_TABLE: Final = tuple(step for opcode in range(256) for step in _steps(BY_OPCODE.get(opcode)))
FLAGS: Final = {row.opcode: row.offsets[n] for row in COMMANDS for n, k in row.fields if k is flag}
FLAG_TABLE: Final = tuple(FLAGS.get(opcode, 0) for opcode in range(256))


# checking -------------------------------------------------------------------------------------
@native
def check(data: Array[u8], sizes: Array[u8]) -> tuple[i64, i64]:
    """Return the offset of the first malformed command and its batch depth; -1 if all are valid.

    Commands are validated in the order of ``dala.gpu.protocol.decode``.
    """
    flags = table(u8, FLAG_TABLE)
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
            mark = i64(flags[opcode])
            if mark != 0 and data[at + mark] > 1:
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
    steps = table(u8, STEP_TABLE)
    if steps[opcode * STEPS + 1] == 0:  # no such command
        return -1
    for k in range(STEPS):
        step = i64(steps[opcode * STEPS + k])
        if step >= CHOICE:
            at += 1
            if at > size or i64(data[at - 1]) > step - CHOICE:
                return -1
        elif step >= FIXED:
            at += step - FIXED
            if at > size:
                return -1
        elif step == NUMBER:
            at = numbers_end(data, at, 1)
        elif step == PLACES:
            if at + 4 > size or i64(view(data, u32, at)[0]) > (size - at - 4) >> 4:
                return -1
            at += 4 + 16 * i64(view(data, u32, at)[0])
        elif NUMBERS <= step <= PATH:
            at = floats_end(data, at, step == PATH)
        elif step == PIXELS:  # the fields before are their width and height
            count = u64(view(data, u32, at - 8)[0]) * u64(view(data, u32, at - 4)[0])
            if count > u64((size - at) >> 2):
                return -1
            at += i64(count) * 4
        elif step != 0:
            if at + 4 > size:
                return -1
            end = at + 4 + i64(view(data, u32, at)[0])
            if end > size or (step == TEXT and not utf8(data, at + 4, end)):
                return -1
            at = end
        if at < 0:
            return -1
    return at


@native(inline=False)
def numbers_end(data: Array[u8], at: i64, count: i64) -> i64:
    """Return the end of finite numbers; -1 if they are malformed."""
    end = at + 8 * count
    if end > len(data):
        return -1
    for k in serial(count):
        if (view(data, u64, at + 8 * k)[0] >> 52) & 0x7FF == 0x7FF:
            return -1
    return end


@native(inline=False)
def floats_end(data: Array[u8], at: i64, path: bool) -> i64:
    """Return the end of a list of numbers or of a path; -1 if it is malformed."""
    head = 8 if path else 4
    if at + head > len(data):
        return -1
    count = i64(view(data, u32, at)[0])
    if not path:
        return numbers_end(data, at + 4, count) if count <= MAX_NUMBERS else -1
    points = i64(view(data, u32, at + 4)[0])
    at += head
    if count > MAX_VERBS or at + count + 16 * points > len(data):
        return -1
    counts = table(u8, VERB_POINTS)
    before, found = CLOSE, 0
    for k in serial(at, at + count):
        verb = i64(data[k])
        if verb > CLOSE or (before == CLOSE and verb != MOVE):
            return -1
        found += i64(counts[verb])
        before = verb
    return numbers_end(data, at + count, 2 * points) if found == points else -1


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
def find_sprite(slots: Array[u64], shift: i64, id: u64) -> i64:
    """Return the index of a sprite's slot in the table, or -1."""
    mask = (len(slots) >> 2) - 1
    at = i64((id * 0x9E3779B97F4A7C15) >> u64(shift)) & mask
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
def set_clip(
    data: Array[u8], opcode: i64, at: i64, frame: FrameRecord, top: i64, bottom: i64
) -> None:
    """Set or remove the clip, between the rows of a band."""
    x, y, w, h = 0, 0, frame.width, bottom
    if opcode == SET_CLIP and data[at + 17] != 0:
        x, y = read_u32(data, at + 1), read_u32(data, at + 5)
        w, h = read_u32(data, at + 9), read_u32(data, at + 13)
    frame.x0, frame.y0 = min(x, frame.width), min(max(y, top), bottom)
    frame.x1, frame.y1 = min(x + w, frame.width), max(min(y + h, bottom), frame.y0)


@native
def execute(
    data: Array[u8], pixels: Array[u32], frame: FrameRecord, damage: Array[i32],
    widths: Array[u8], sizes: Array[u8], slots: Array[u64], atlas: Array[u32], faults: Array[i64],
    picks: Array[i32], shift: i64, start: i64, end: i64,
    *, families: int,
) -> None:  # fmt: skip
    """Execute the bytes from start to end, or until a command that the caller has to execute.

    The frame then holds its offset and opcode. With ``picks``, start and end are bands instead:
    each band has a frame and a row of picks, a count and the offsets of the commands to draw.
    Commands of families that are not in ``families`` are left to the caller, too.
    """
    sprites = static(families & SPRITES != 0)
    size = len(data)
    width = frame.width
    top, low = 0, len(pixels) // width
    at, last = start, end
    banded = len(picks) > 0
    k = 0
    if banded:
        room = len(picks) // ((low + (1 << shift) - 1) >> shift)
        picks = picks[start * room :]
        frame = FrameRecord(frame, start)
        top, low = start << shift, min(end << shift, low)
        frame.y0 = max(frame.y0, top)
        frame.y1 = max(min(frame.y1, low), frame.y0)  # empty where the clip misses the band
        at, last = 0, i64(picks[0])
    on = DrawTarget(pixels, frame, damage, widths)
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
        drawn = False
        for row in static(DRAWN):
            if (row[1] & families) == row[1] and opcode == row[0]:
                row[2](data, at, on, filled=row[3], signed=row[4])
                drawn = True
                break
        if drawn:
            at += length
            continue
        if sprites and opcode == BLIT:
            id = view(data, u64, at + 1)[0]
            found = find_sprite(slots, frame.sprite_shift, id)
            if found >= 0:
                start, wide = i64(slots[found + 1]), slots[found + 2]
                w, h = i64(wide & 0xFFFFFFFF), i64(wide >> 32)
                x, y = read_i32(data, at + 9), read_i32(data, at + 13)
                sprite(on, atlas, start, w, h, x, y)
            elif not add_fault(faults, opcode, at, id):
                code = FULL
                break
        elif SET_CLIP <= opcode <= RESET_CLIP:
            set_clip(data, opcode, at, frame, top, low)
        elif opcode != BATCH:
            code = opcode
            break
        at += length
    frame.stop_code, frame.offset = code, at
