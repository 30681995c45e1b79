"""Plan draws: which pixels each may change, which it hides, and how it is drawn."""

from __future__ import annotations

from typing import Final

from dala.gpu.compute.engines.compositing import (
    BLENDS,
    FILL,
    LINEAR,
    NEAREST,
    OPAQUE,
    PICTURE,
    RING,
    SHADOW,
    TINT,
)
from dala.gpu.compute.engines.cpu.compose.coverage import field, field64
from dala.gpu.compute.engines.cpu.compose.records import (
    ADDRESS,
    ANY_DRAW,
    BLEND,
    BLURRED,
    BOTTOM,
    CAPACITY_NEEDED,
    CHANNELS,
    COLOR,
    COLUMNS,
    COPY,
    COS,
    COUNT_X,
    COUNT_Y,
    CX,
    CY,
    DIRECT,
    DRAW_COUNT,
    DRAW_WORDS,
    DRAWS,
    ERROR,
    ERROR_DRAW,
    FLAGS,
    FLAT,
    FULL_X0,
    FULL_X1,
    FULL_Y0,
    FULL_Y1,
    GENERAL,
    HALVED,
    HH,
    HW,
    KIND,
    LEFT,
    LEVEL,
    NEAR,
    NOTHING,
    OPACITY,
    ORIGIN,
    OX,
    OY,
    PATH,
    PICTURE_CAPACITY,
    PICTURE_HEIGHT,
    PICTURE_NUMBER,
    PICTURE_WIDTH,
    PICTURE_WORDS,
    PICTURES,
    PIXEL_COUNT,
    PLAN_CAPACITY,
    PLAN_WORDS,
    PLANS,
    RADIUS,
    RECT_COUNT,
    RECTS,
    RIGHT,
    ROWS,
    SCALED,
    SHIFT_X,
    SHIFT_Y,
    SIMPLE,
    SIN,
    SIZED,
    SX,
    SY,
    TABLE_CAPACITY,
    TABLES,
    TAPS_X,
    TAPS_Y,
    TARGET_HEIGHT,
    TARGET_WIDTH,
    TILE_CAPACITY,
    TILE_COLUMNS,
    TILE_COUNT,
    TILE_ROWS,
    TILES,
    TOP,
    U0,
    U1,
    V0,
    V1,
    WEIGHTS,
    WIDTH,
    X0,
    X1,
    Y0,
    Y1,
)
from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    ceil,
    f32,
    f64,
    floor,
    hinted,
    i16,
    i32,
    i64,
    static,
    u8,
    u32,
    view,
)
from dala.gpu.compute.engines.cpu.pixels.taps import (
    LINE,
    fill_taps,
    nearest_taps,
    pack_columns,
    pack_rows,
)

#: Edges this close to a pixel boundary count as aligned: a quarter of a step of 1/255.
TOLERANCE: Final = 0.001
#: The most texels per pixel along an axis for which tap tables are used.
MAX_TEXELS: Final = 256
#: Words before a table that identify its geometry, so that a frame can reuse it.
KEY_WORDS: Final = 24
#: Error codes of a draw.
BAD_KIND, BAD_BLEND, BAD_PICTURE, BAD_NUMBER = -1, -2, -3, -4
#: Not an error: the draw needs its picture in RGBA.
NEEDS_RGBA: Final = -5


@native
def find_error(draw: Array[i32], pictures: Array[i64]) -> i64:
    """Return an error code for a draw, or 0."""
    kind = draw[KIND]
    if kind < 0 or kind > static(TINT):
        return BAD_KIND
    if draw[BLEND] < 0 or draw[BLEND] >= static(len(BLENDS)):
        return BAD_BLEND
    if draw[KIND] == PICTURE or draw[KIND] == TINT:
        number = i64(draw[PICTURE_NUMBER])
        if number < 0 or number * PICTURE_WORDS >= len(pictures):
            return BAD_PICTURE
        if pictures[number * PICTURE_WORDS + ADDRESS] == 0:
            return BAD_PICTURE
    for at in hinted(range(CX, TAPS_X), scalar=True):
        if not abs(field(draw, at)) < f32(1e9):
            return BAD_NUMBER
    if not f32(0) <= field(draw, OPACITY) <= f32(1):
        return BAD_NUMBER
    return 0


@native
def is_whole(x: f64) -> bool:
    """Return whether a number is an integer within the tolerance."""
    found: bool = abs(x - floor(x + f64(0.5))) <= f64(TOLERANCE)
    return found


@native
def texel_at(start: i64, middle: f64, half: f64, scale: f64, offset: f64) -> f64:
    """Return the position of a pixel's center, in texels."""
    return (f64(start) + f64(0.5) - middle + half) * scale + offset


@native
def texels_per_pixel(scale: f64, taps: i64) -> i64:
    """Return how many neighboring texels the samples of a pixel read."""
    if taps <= 1:
        return 2
    return i64(floor(abs(scale) * f64(taps - 1) / f64(taps))) + 3


@native
def fill_tables(
    draw: Array[i32], plan: Array[i64], tables: Array[i32], used: i64, width: i64, height: i64
) -> i64:
    """Fill the tap tables of a scaled picture if they fit; return the number of words used."""
    across, down = max(i64(draw[TAPS_X]), 1), max(i64(draw[TAPS_Y]), 1)
    sx, sy = field64(draw, SX), field64(draw, SY)
    many_x, many_y = texels_per_pixel(sx, across), texels_per_pixel(sy, down)
    nearest = plan[PATH] == NEAR
    fixed = many_x <= 8 and many_y <= 8 and height >= many_y and not nearest
    if fixed and many_x > 2:
        many_x = 4 if many_x <= 4 else 8
    if nearest:
        many_x, many_y = 0, 0
    columns, rows = plan[RIGHT] - plan[LEFT], plan[BOTTOM] - plan[TOP]
    padded = (columns + 15) & ~15
    used += KEY_WORDS
    plan[COLUMNS], plan[COUNT_X] = used, many_x
    used += padded * (1 + many_x)
    plan[ROWS], plan[COUNT_Y] = used, many_y
    used += rows * (1 + many_y)
    plan[WEIGHTS] = -1
    if fixed:
        plan[WEIGHTS] = used
        used += padded * 2 * many_x + rows * 4
    if used > len(tables):
        return used
    start_x = texel_at(plan[LEFT], field64(draw, CX), field64(draw, HW), sx, field64(draw, OX))
    start_y = texel_at(plan[TOP], field64(draw, CY), field64(draw, HH), sy, field64(draw, OY))
    u0, v0, u1, v1 = field64(draw, U0), field64(draw, V0), field64(draw, U1), field64(draw, V1)
    # Tables stay valid while a picture moves by whole pixels.
    key = view(tables[plan[COLUMNS] - KEY_WORDS :], f64, 0)
    known = key[0] == start_x and key[1] == start_y and key[2] == sx and key[3] == sy
    known = known and key[4] == u0 and key[5] == u1 and key[6] == v0 and key[7] == v1
    sizes = f64(columns * 65536 + rows) + f64(many_x * 1024 + many_y) / f64(1 << 20)
    shape = f64(width * 65536 + height) + f64(across * 1024 + down) / f64(1 << 20)
    if known and key[8] == sizes and key[9] == shape and key[10] == f64(plan[COLUMNS]):
        return used
    key[0], key[1], key[2], key[3] = start_x, start_y, sx, sy
    key[4], key[5], key[6], key[7] = u0, u1, v0, v1
    key[8], key[9], key[10] = sizes, shape, f64(plan[COLUMNS])
    xs, ys = tables[plan[COLUMNS] :], tables[plan[ROWS] :]
    if nearest:
        nearest_taps(xs, columns, padded, start_x, sx, u0, u1, width)
        nearest_taps(ys, rows, rows, start_y, sy, v0, v1, height)
        return used
    weights_x, weights_y = view(xs, f32, padded * 4), view(ys, f32, rows * 4)
    fill_taps(xs, weights_x, columns, padded, many_x, start_x, sx, u0, u1, width, across)
    fill_taps(ys, weights_y, rows, rows, many_y, start_y, sy, v0, v1, height, down)
    if fixed:
        out = view(tables, i16, plan[WEIGHTS] * 4)
        pack_columns(weights_x, many_x, padded, out)
        pack_rows(weights_y, many_y, rows, out[padded * 4 * many_x :])
    return used


@native
def picture_path(draw: Array[i32], plan: Array[i64], width: i64, height: i64, opaque: bool) -> i64:
    """Choose the path of an unrotated picture."""
    across, down = max(i64(draw[TAPS_X]), 1), max(i64(draw[TAPS_Y]), 1)
    sx, sy = field64(draw, SX), field64(draw, SY)
    x = texel_at(plan[LEFT], field64(draw, CX), field64(draw, HW), sx, field64(draw, OX))
    y = texel_at(plan[TOP], field64(draw, CY), field64(draw, HH), sy, field64(draw, OY))
    scale = 2 if sx == f64(2) and sy == f64(2) and draw[FLAGS] & NEAREST == 0 else 1
    same = scale == 2 or (sx == f64(1) and sy == f64(1))
    x, y = x - f64(scale) * f64(0.5), y - f64(scale) * f64(0.5)
    if across == 1 and down == 1 and same and is_whole(x) and is_whole(y):
        # Texels of the first and of the last pixel.
        left, top = i64(floor(x + f64(0.5))), i64(floor(y + f64(0.5)))
        right = left + scale * (plan[RIGHT] - plan[LEFT])
        bottom = top + scale * (plan[BOTTOM] - plan[TOP])
        slack = f64(TOLERANCE)
        low_x = max(i64(ceil(field64(draw, U0) - slack)), 0)
        low_y = max(i64(ceil(field64(draw, V0) - slack)), 0)
        high_x = min(i64(floor(field64(draw, U1) + slack)), width)
        high_y = min(i64(floor(field64(draw, V1) + slack)), height)
        if left >= low_x and right <= high_x and top >= low_y and bottom <= high_y:
            plan[SHIFT_X] = left - scale * plan[LEFT]
            plan[SHIFT_Y] = top - scale * plan[TOP]
            if scale == 1:
                return COPY
            if opaque and draw[KIND] == PICTURE:
                return HALVED
    if draw[FLAGS] & NEAREST != 0:
        return NEAR if across == 1 and down == 1 else GENERAL
    many = max(texels_per_pixel(sx, across), texels_per_pixel(sy, down))
    if many > MAX_TEXELS or abs(sx) * f64(16) + f64(2 * MAX_TEXELS) > f64(LINE):
        return GENERAL
    return SCALED


@native
def mark_opaque(draw: Array[i32], plan: Array[i64]) -> None:
    """Set the rectangle of a plan in which its box hides everything below."""
    slack = f64(TOLERANCE)
    cx, cy, hw, hh = field64(draw, CX), field64(draw, CY), field64(draw, HW), field64(draw, HH)
    radius = min(min(field64(draw, RADIUS), hw), hh)
    inset = 0
    if radius > f64(0):
        inset = i64(ceil(radius * f64(0.29290) + f64(0.36)))
    plan[FULL_X0] = max(plan[LEFT], i64(ceil(cx - hw - slack)) + inset)
    plan[FULL_Y0] = max(plan[TOP], i64(ceil(cy - hh - slack)) + inset)
    plan[FULL_X1] = min(plan[RIGHT], i64(floor(cx + hw + slack)) - inset)
    plan[FULL_Y1] = min(plan[BOTTOM], i64(floor(cy + hh + slack)) - inset)


@native
def has_whole_edges(draw: Array[i32]) -> bool:
    """Return whether the edges of a box are on pixel boundaries."""
    cx, cy, hw, hh = field64(draw, CX), field64(draw, CY), field64(draw, HW), field64(draw, HH)
    down = is_whole(cy - hh) and is_whole(cy + hh)
    found: bool = field(draw, RADIUS) <= f32(0) and is_whole(cx - hw) and is_whole(cx + hw) and down
    return found


@native
def plan_one(
    draw: Array[i32], plan: Array[i64], pictures: Array[i64], tables: Array[i32], used: i64,
    width: i64, height: i64, *, level: int,
) -> i64:  # fmt: skip
    """Plan one draw; return the number of table words used. SIMPLE code fills no tables."""
    plan[LEFT], plan[TOP] = max(i64(draw[X0]), 0), max(i64(draw[Y0]), 0)
    plan[RIGHT], plan[BOTTOM] = min(i64(draw[X1]), width), min(i64(draw[Y1]), height)
    plan[FULL_X0], plan[FULL_Y0], plan[FULL_X1], plan[FULL_Y1] = 0, 0, 0, 0
    plan[PATH] = NOTHING
    kind, flags = draw[KIND], draw[FLAGS]
    straight = field(draw, COS) == f32(1) and field(draw, SIN) == f32(0)
    blurred = kind == SHADOW and field(draw, WIDTH) > f32(0)
    if straight and not blurred:
        slack = f64(TOLERANCE)
        cx, cy, hw, hh = field64(draw, CX), field64(draw, CY), field64(draw, HW), field64(draw, HH)
        plan[LEFT] = max(plan[LEFT], i64(floor(cx - hw + slack - f64(1))) + 1)
        plan[TOP] = max(plan[TOP], i64(floor(cy - hh + slack - f64(1))) + 1)
        plan[RIGHT] = min(plan[RIGHT], i64(ceil(cx + hw - slack)))
        plan[BOTTOM] = min(plan[BOTTOM], i64(ceil(cy + hh - slack)))
    if plan[LEFT] >= plan[RIGHT] or plan[TOP] >= plan[BOTTOM]:
        return used
    if field(draw, OPACITY) <= f32(0):
        return used
    opaque = field(draw, OPACITY) >= f32(1)
    if kind == PICTURE:
        opaque = opaque and flags & OPAQUE != 0
    else:
        opaque = opaque and kind == FILL and view(draw, u32, 0)[COLOR] >> 24 == 255
    plan[PATH] = GENERAL
    plan[DIRECT] = 0
    if not straight or kind == RING:
        return used
    if draw[BLEND] != 0 or (flags & LINEAR != 0 and not (opaque and has_whole_edges(draw))):
        if draw[KIND] == PICTURE or draw[KIND] == TINT:
            at = i64(draw[PICTURE_NUMBER]) * PICTURE_WORDS
            tex_width, tex_height = pictures[at + PICTURE_WIDTH], pictures[at + PICTURE_HEIGHT]
            if picture_path(draw, plan, tex_width, tex_height, False) == COPY:
                plan[DIRECT] = 1
        return used
    if blurred:
        plan[PATH] = BLURRED
        return used
    if kind != PICTURE and kind != TINT:
        plan[PATH] = FLAT
    else:
        at = i64(draw[PICTURE_NUMBER]) * PICTURE_WORDS
        tex_width, tex_height = pictures[at + PICTURE_WIDTH], pictures[at + PICTURE_HEIGHT]
        is_rgb = pictures[at + CHANNELS] != 4
        known = is_rgb or flags & OPAQUE != 0
        plan[PATH] = picture_path(draw, plan, tex_width, tex_height, known)
        if level >= SIZED and (plan[PATH] == SCALED or plan[PATH] == NEAR):
            used = fill_tables(draw, plan, tables, used, tex_width, tex_height)
    if opaque and plan[PATH] != GENERAL:
        mark_opaque(draw, plan)
    return used


@native
def is_readable(draw: Array[i32], plan: Array[i64], pictures: Array[i64]) -> bool:
    """Return whether a draw can read its picture without converting it to RGBA."""
    if (draw[KIND] != PICTURE and draw[KIND] != TINT) or plan[PATH] == NOTHING:
        return True
    at = i64(draw[PICTURE_NUMBER]) * PICTURE_WORDS
    if pictures[at + CHANNELS] == 4:
        return True
    fixed = plan[PATH] == SCALED and plan[WEIGHTS] >= 0
    found: bool = draw[KIND] == PICTURE and (plan[PATH] == COPY or plan[PATH] == HALVED or fixed)
    return found


@native
def cut_tiles(rects: Array[i32], tiles: Array[i32], job: Array[i64]) -> None:
    """Cut rectangles into tiles of about equal width; count also those that do not fit."""
    count, pixels = 0, 0
    for r in hinted(range(len(rects) // 4), scalar=True):
        left, top = rects[4 * r], rects[4 * r + 1]
        right, bottom = rects[4 * r + 2], rects[4 * r + 3]
        pixels += i64(right - left) * i64(bottom - top)
        across = (right - left + TILE_COLUMNS - 1) // TILE_COLUMNS
        step = ((right - left + across - 1) // across + 15) & ~15
        y = top
        while y < bottom:
            x = left
            while x < right:
                if 4 * count + 4 <= len(tiles):
                    tiles[4 * count], tiles[4 * count + 1] = x, y
                    tiles[4 * count + 2] = min(x + step, right)
                    tiles[4 * count + 3] = min(y + TILE_ROWS, bottom)
                count += 1
                x += step
            y += TILE_ROWS
    job[TILE_COUNT], job[PIXEL_COUNT] = count, pixels


@native
def make_plans(memory: Array[u8], job: Array[i64], *, level: int) -> None:
    """Fill the plans of all draws of a job, and cut tiles.

    If more capacity or a higher level is needed, tables and tiles are incomplete.
    """
    draws = view(memory, i32, job[DRAWS] - ORIGIN)[0 : job[DRAW_COUNT] * DRAW_WORDS]
    plans = view(memory, i64, job[PLANS] - ORIGIN)[0 : job[PLAN_CAPACITY]]
    pictures = view(memory, i64, job[PICTURES] - ORIGIN)[0 : job[PICTURE_CAPACITY]]
    tables = view(memory, i32, job[TABLES] - ORIGIN)[0 : job[TABLE_CAPACITY]]
    width, height = job[TARGET_WIDTH], job[TARGET_HEIGHT]
    used, found = 0, SIMPLE
    job[ERROR], job[CAPACITY_NEEDED], job[TILE_COUNT], job[LEVEL] = 0, 0, 0, SIMPLE
    for k in hinted(range(job[DRAW_COUNT]), scalar=True):
        draw = draws[k * DRAW_WORDS : (k + 1) * DRAW_WORDS]
        job[ERROR], job[ERROR_DRAW] = find_error(draw, pictures), k
        if job[ERROR] != 0:
            return
        plan = plans[k * PLAN_WORDS : (k + 1) * PLAN_WORDS]
        used = plan_one(draw, plan, pictures, tables, used, width, height, level=level)
        if plan[PATH] == BLURRED or plan[PATH] == GENERAL:
            found = ANY_DRAW
        elif plan[PATH] == NEAR or plan[PATH] == SCALED:
            found = max(found, SIZED)
        job[LEVEL] = found
        if level < SIZED and found >= SIZED:
            return
        if not is_readable(draw, plan, pictures):
            job[ERROR] = NEEDS_RGBA
            return
    job[CAPACITY_NEEDED] = used
    rects = view(memory, i32, job[RECTS] - ORIGIN)[0 : 4 * job[RECT_COUNT]]
    cut_tiles(rects, view(memory, i32, job[TILES] - ORIGIN)[0 : job[TILE_CAPACITY]], job)
