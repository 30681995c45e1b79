"""Vector commands made into edges and draws, one after another."""

from __future__ import annotations

from typing import NamedTuple

from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.protocol import OPCODES
from dala.gpu.raster.commands import read_color, read_i32
from dala.gpu.raster.frame import FrameRecord, mark
from dala.gpu.raster.stream import command_end, find_sprite
from dala.gpu.vector.edges import Pen, crosses, fill_path
from dala.gpu.vector.paints import Inking, kept, place_paint
from dala.gpu.vector.strokes import stroke_path
from dala.gpu.vector.sweep import MASKED, SHAPE

FILL_PATH, STROKE_PATH, STROKE_SHAPE, PUSH, CLIP, MASKS, POP, TRANSFORM = (
    OPCODES[name] for name in str.split(
        "fill_path stroke_path stroke_shape push clip_shape draw_masks pop transform"
    )
)  # fmt: skip

#: Why ``prepare`` stopped, besides the opcode of a command that it does not know: the end, no room
#: for more (draw first), no room for this path alone, an unknown id, a push or a pop too many, too
#: many dashes. CLIPPED: the edges of a clip are ready. LENGTH: an outline is too long.
END, FULL, TOO_LARGE, UNKNOWN, DEPTH, DASHES, CLIPPED, LENGTH = 0, -1, -2, -3, -4, -5, -6, -7
#: The pixels along the outline of one shape at most, and those inside the bounds of shapes from
#: which on they are drawn before more are prepared: some seconds, and a part of one.
MAX_LENGTH: Final = 1 << 29
AREA_AT_ONCE: Final = 1 << 26
#: What is stored by ids, which are below MAX_ID: the last two bits of its key.
PATH, PAINT, MASK = range(3)
MAX_ID: Final = 1 << 62
#: The words before the coverage of a mask: its width and height.
MASK_HEAD: Final = 2
#: How deep pushes nest.
MAX_PUSHES: Final = 64
#: The words of a saved state: the matrix, the clip rectangle, whether a clip was added.
SAVED: Final = 11


class Preparing(NamedTuple):
    """The arrays that commands are read from, and the arrays of prepared shapes."""

    data: Array[u8]
    frame: FrameRecord
    damage: Array[i32]
    pen: Pen
    edges: Array[i32]
    points: Array[f64]
    draws: Array[i64]
    slots: Array[u64]
    words: Array[u32]
    shift: i64


@native(inline=False)
def find(job: Preparing, id: u64, kind: i64) -> i64:
    """Return the first stored word of an id, or -1."""
    if id < MAX_ID:
        found = find_sprite(job.slots, job.shift, (id << 2) | u64(kind))
        if found >= 0:
            return i64(job.slots[found + 1])
    job.pen.id = i64(id)
    return -1


@native
def begin_shape(pen: Pen, frame: FrameRecord) -> None:
    """Begin a path."""
    pen.full, pen.near = 0, 0
    pen.left, pen.top = f64(frame.x0), f64(frame.y0)
    pen.right, pen.bottom = f64(frame.x1), f64(frame.y1)
    pen.x, pen.y = f64(0), f64(0)


@native(inline=False)
def too_long(job: Preparing, first: i64) -> bool:
    """Return whether the edges from ``first`` on cross too many pixels of the surface."""
    pen, frame, edges = job.pen, job.frame, job.edges
    width, top, bottom = frame.x1 - frame.x0, frame.y0 << 8, frame.y1 << 8
    length = i64(0)
    if (pen.count - first) * (width + frame.y1 - frame.y0) > MAX_LENGTH:
        for n in serial(first, pen.count):
            x, y = i64(edges[4 * n]) - i64(edges[4 * n + 2]), i64(edges[4 * n + 1])
            rows = min(max(y, top), bottom) - min(max(i64(edges[4 * n + 3]), top), bottom)
            length += (abs(rows) >> 8) + min(abs(x) >> 16, width) + 1
    return bool(length > MAX_LENGTH)


@native(inline=False)
def bounds(job: Preparing, first: i64) -> tuple[i64, i64, i64, i64]:
    """Return the bounds of the edges from ``first`` on within the frame."""
    low, high = splat(i32(2**31 - 1), 4), splat(i32(-(2**31)), 4)
    for n in serial(first, job.pen.count):
        edge = load(job.edges, 4 * n, 4)
        low, high = min(low, edge), max(high, edge)
    frame = job.frame
    x0, y0 = i64(min(low[0], low[2])) >> 16, i64(min(low[1], low[3])) >> 8
    x1, y1 = i64(max(high[0], high[2])) + 65535, i64(max(high[1], high[3])) + 255
    return (
        max(x0, frame.x0), max(y0, frame.y0), min(x1 >> 16, frame.x1), min(y1 >> 8, frame.y1),
    )  # fmt: skip


@native(inline=False)
def end_shape(
    job: Preparing, first: i64, evenodd: i64, color: i64, paint: i64, crossing: bool
) -> None:
    """Record the edges from ``first`` on as a draw, if they can be seen."""
    pen = job.pen
    x0, y0, x1, y1 = bounds(job, first)
    if x0 >= x1 or y0 >= y1:
        pen.count = first
        return
    draw = Inking(job.draws, pen.draws)
    draw.kind, draw.first, draw.count = SHAPE, first, pen.count - first
    draw.evenodd, draw.fine = evenodd, i64(crossing)
    place_draw(job, draw, x0, y0, x1, y1, color, paint)


@native(inline=False)
def place_draw(
    job: Preparing, draw: Inking, x0: i64, y0: i64, x1: i64, y1: i64, color: i64, paint: i64
) -> None:
    """Give a draw its bounds and its paint, and add it to the damage."""
    pen = job.pen
    mark(job.damage, x0, y0, x1, y1)
    draw.x0, draw.y0, draw.x1, draw.y1 = x0, y0, x1, y1
    draw.color, draw.paint = color, paint
    if paint >= 0:
        place_paint(job.words, paint, draw, pen)
    pen.draws += 1
    pen.drawn += (x1 - x0) * (y1 - y0)


@native(inline=False)
def add_shape(job: Preparing, opcode: i64, at: i64) -> i64:
    """Add the shape that a command fills or strokes. Return the code of a refusal, or END."""
    data, pen = job.data, job.pen
    stroked = bool((opcode - FILL_PATH) & 1)
    head = at + 9 if opcode <= STROKE_PATH else at + 1  # of the fields after an id
    bytes, place, dashes = data, head + 13, 0
    if stroked:
        head += 25
        dashes = i64(view(data, u32, head + 13)[0])
        place = head + 17 + 8 * dashes
    if opcode <= STROKE_PATH:
        found = find(job, view(data, u64, at + 1)[0], PATH)
        if found < 0:
            return UNKNOWN
        bytes, place = view(job.words, u8, 0), 4 * found
    paint_id = view(data, u64, head + 1)[0]
    paint = -1
    if paint_id != 0:
        paint = find(job, paint_id, PAINT)
        if paint < 0:
            return UNKNOWN
    first = pen.count
    begin_shape(pen, job.frame)
    evenodd = 0
    if stroked:
        style, more = view(data, f64, head - 25), view(data, f64, head - 15)
        stroke_path(
            pen, job.edges, job.points, bytes, place, style[0], i64(data[head - 17]),
            i64(data[head - 16]), more[0], more[1], view(data, f64, head + 17), dashes,
        )  # fmt: skip
    else:
        evenodd = i64(data[head])
        fill_path(pen, job.edges, bytes, place)
    if pen.full == 0 and too_long(job, first):
        pen.count = first
        return LENGTH
    if pen.full == 0:
        crossing = not stroked and crosses(job.edges, first, pen.count - first)
        end_shape(job, first, evenodd, i64(read_color(data, head + 9)), paint, crossing)
        return END
    pen.count = first
    if pen.full == 2:
        return DASHES
    return FULL if pen.draws > 0 else TOO_LARGE  # FULL: room once what was prepared is drawn


@native(inline=False)
def add_masks(job: Preparing, at: i64, room: i64) -> i64:
    """Add the masks of a command, from ``pen.part`` on. Return why not all of them, or END."""
    data, pen, frame = job.data, job.pen, job.frame
    paint_id = view(data, u64, at + 1)[0]
    paint = -1
    if paint_id != 0:
        paint = find(job, paint_id, PAINT)
        if paint < 0:
            return UNKNOWN
    color = i64(read_color(data, at + 9))
    count = i64(view(data, u32, at + 13)[0])
    while pen.part < count:
        place = at + 17 + 16 * pen.part
        if pen.draws >= room or pen.drawn >= AREA_AT_ONCE:
            return FULL
        found = find(job, view(data, u64, place)[0], MASK)
        if found < 0:
            return UNKNOWN
        x, y = read_i32(data, place + 8), read_i32(data, place + 12)
        w, h = i64(job.words[found]), i64(job.words[found + 1])
        x0, y0 = max(x, frame.x0), max(y, frame.y0)
        x1, y1 = min(x + w, frame.x1), min(y + h, frame.y1)
        if x0 < x1 and y0 < y1:
            draw = Inking(job.draws, pen.draws)
            draw.kind, draw.first, draw.count = MASKED, found + MASK_HEAD, w
            draw.from_x, draw.from_y, draw.fine = x, y, 0
            place_draw(job, draw, x0, y0, x1, y1, color, paint)
        pen.part += 1
    return END


@native(inline=False)
def add_clip(job: Preparing, at: i64) -> i64:
    """Make the edges of a clip, and narrow the frame; return why not, or CLIPPED."""
    pen, frame = job.pen, job.frame
    if pen.draws > 0:
        return FULL
    begin_shape(pen, frame)
    fill_path(pen, job.edges, job.data, at + 2)
    if pen.full == 0 and too_long(job, 0):
        return LENGTH
    if pen.full != 0:
        return TOO_LARGE
    x0, y0, x1, y1 = bounds(job, 0)
    frame.x0, frame.y0, frame.x1, frame.y1 = x0, y0, max(x0, x1), max(y0, y1)
    return CLIPPED


@native(inline=False)
def save(pen: Pen, stack: Array[f64], frame: FrameRecord) -> None:
    """Push the transform and the clip."""
    saved = stack[SAVED * pen.depth :]
    saved[0], saved[1], saved[2] = pen.a, pen.b, pen.c
    saved[3], saved[4], saved[5] = pen.d, pen.e, pen.f
    saved[6], saved[7] = f64(frame.x0), f64(frame.y0)
    saved[8], saved[9] = f64(frame.x1), f64(frame.y1)
    saved[10] = f64(0)
    pen.depth += 1


@native(inline=False)
def restore(pen: Pen, stack: Array[f64], frame: FrameRecord) -> None:
    """Pop the transform and the clip."""
    pen.depth -= 1
    saved = stack[SAVED * pen.depth :]
    pen.a, pen.b, pen.c = saved[0], saved[1], saved[2]
    pen.d, pen.e, pen.f = saved[3], saved[4], saved[5]
    frame.x0, frame.y0 = i64(saved[6]), i64(saved[7])
    frame.x1, frame.y1 = i64(saved[8]), i64(saved[9])


@native(inline=False)
def change(pen: Pen, m: Array[f64]) -> None:
    """Put a matrix before the current one."""
    a, b, c, d, e, f = pen.a, pen.b, pen.c, pen.d, pen.e, pen.f
    pen.a, pen.b = kept(a * m[0] + c * m[1]), kept(b * m[0] + d * m[1])
    pen.c, pen.d = kept(a * m[2] + c * m[3]), kept(b * m[2] + d * m[3])
    pen.e, pen.f = kept(a * m[4] + c * m[5] + e), kept(b * m[4] + d * m[5] + f)


@native
def prepare(
    data: Array[u8], frame: FrameRecord, damage: Array[i32], pen_words: Array[f64],
    stack: Array[f64], edges: Array[i32], points: Array[f64], draws: Array[i64],
    slots: Array[u64], words: Array[u32], shift: i64, at: i64,
) -> None:  # fmt: skip
    """Prepare commands from a byte on; the pen has where and why it stopped."""
    pen = Pen(pen_words, 0)
    job = Preparing(data, frame, damage, pen, edges, points, draws, slots, words, shift)
    size, room = len(data), len(draws) // static(Inking.size)
    pen.count, pen.draws, pen.drawn = 0, 0, 0
    code = END
    while at < size and code == END:
        opcode = i64(data[at])
        end = command_end(data, opcode, at) if opcode < PUSH or opcode > POP else at + 1
        if end < 0:
            code = opcode
        elif opcode == PUSH:
            if pen.depth < MAX_PUSHES:
                save(pen, stack, frame)
            else:
                code = DEPTH
        elif opcode == POP:
            if pen.depth > 0 and stack[SAVED * pen.depth - 1] == 0:
                restore(pen, stack, frame)
            else:
                code = DEPTH if pen.depth == 0 else POP
        elif opcode == TRANSFORM:
            change(pen, view(data, f64, at + 1))
        elif FILL_PATH <= opcode <= STROKE_SHAPE:
            fits = pen.draws < room and pen.drawn < AREA_AT_ONCE
            code = add_shape(job, opcode, at) if fits else FULL
        elif opcode == MASKS:
            code = add_masks(job, at, room)
            if code != FULL:
                pen.part = 0
        elif opcode == CLIP:
            code = add_clip(job, at)
        else:
            code = opcode
        if code == END:
            at = end
    pen.code, pen.at = code, at
