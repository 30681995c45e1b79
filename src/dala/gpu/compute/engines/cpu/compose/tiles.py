"""Draw the tiles of a target: for each, the draws that touch it, in order."""

from __future__ import annotations

from typing import Final

from dala.gpu.compute.engines.compositing import PICTURE, TINT
from dala.gpu.compute.engines.cpu.compose.coverage import field, full_share
from dala.gpu.compute.engines.cpu.compose.draws import (
    ROW,
    draw_copy,
    draw_flat,
    draw_general,
    draw_halved,
    draw_nearest,
    draw_scaled,
    draw_shadow,
    fill_coverage,
)
from dala.gpu.compute.engines.cpu.compose.records import (
    ADDRESS,
    ANY_DRAW,
    BACKGROUND,
    BLURRED,
    BOTTOM,
    CHANNELS,
    COPY,
    DRAW_COUNT,
    DRAW_WORDS,
    DRAWS,
    FLAT,
    FULL_X0,
    FULL_X1,
    FULL_Y0,
    FULL_Y1,
    GENERAL,
    HALVED,
    KIND,
    LEFT,
    NEAR,
    NOTHING,
    OPACITY,
    ORIGIN,
    PATH,
    PICTURE_CAPACITY,
    PICTURE_HEIGHT,
    PICTURE_NUMBER,
    PICTURE_WIDTH,
    PICTURE_WORDS,
    PICTURES,
    PLAN_CAPACITY,
    PLAN_WORDS,
    PLANS,
    RIGHT,
    SCALED,
    SIZED,
    TABLE_CAPACITY,
    TABLES,
    TARGET,
    TARGET_HEIGHT,
    TARGET_WIDTH,
    TILE_CAPACITY,
    TILES,
    TOP,
)
from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    f32,
    hinted,
    i32,
    i64,
    local,
    u8,
    u32,
    view,
)
from dala.gpu.compute.engines.cpu.pixels.fixed_rows import LINE_CAPACITY
from dala.gpu.compute.engines.cpu.pixels.over import fill_row


@native(inline=False)
def draw_range(
    pixels: Array[u32],
    memory: Array[u8],
    draws: Array[i32],
    plans: Array[i64],
    pictures: Array[i64],
    tables: Array[i32],
    width: i64,
    first: i64,
    last: i64,
    left: i64,
    top: i64,
    right: i64,
    bottom: i64,
    scratch: Array[f32],
    *,
    level: int,
) -> None:
    """Execute draws [first, last) inside a rectangle no larger than a tile."""
    flat, coverage = view(scratch, u32, 0)[0:ROW], view(scratch, u32, 4 * ROW)[0:ROW]
    temp, places = view(scratch, u32, 28 * ROW), view(scratch, i32, 32 * ROW)
    sums, line = scratch[9 * ROW : 13 * ROW], scratch[13 * ROW :]
    for k in hinted(range(first, last), scalar=True):
        plan = plans[k * PLAN_WORDS : (k + 1) * PLAN_WORDS]
        x0, y0 = max(left, plan[LEFT]), max(top, plan[TOP])
        x1, y1 = min(right, plan[RIGHT]), min(bottom, plan[BOTTOM])
        path = plan[PATH]
        if path == NOTHING or x0 >= x1 or y0 >= y1:
            continue
        draw = draws[k * DRAW_WORDS : (k + 1) * DRAW_WORDS]
        if path == FLAT:
            fill_coverage(flat, full_share(draw))
            draw_flat(pixels, width, draw, x0, y0, x1, y1, flat, coverage)
            continue
        if level >= ANY_DRAW and path == BLURRED:
            draw_shadow(pixels, width, draw, x0, y0, x1, y1, coverage)
            continue
        texels, tex_width, tex_height, is_rgb = view(pixels, u32, 0)[0:0], 1, 1, False
        if draw[KIND] == PICTURE or draw[KIND] == TINT:
            at = i64(draw[PICTURE_NUMBER]) * PICTURE_WORDS
            tex_width, tex_height = pictures[at + PICTURE_WIDTH], pictures[at + PICTURE_HEIGHT]
            is_rgb = pictures[at + CHANNELS] == 3
            words = (tex_width * tex_height * pictures[at + CHANNELS] + 3) // 4
            texels = view(memory, u32, pictures[at + ADDRESS] - ORIGIN)[0:words]
        if level >= ANY_DRAW and path == GENERAL:
            draw_general(
                pixels, width, draw, plan, texels, tex_width, tex_height, x0, y0, x1, y1, coverage,
                temp,
            )  # fmt: skip
            continue
        if field(draw, OPACITY) < f32(1) or path == SCALED:
            fill_coverage(flat, full_share(draw))
        if path == COPY:
            draw_copy(
                pixels, width, draw, plan, texels, tex_width, x0, y0, x1, y1, flat, coverage, temp,
                is_rgb,
            )  # fmt: skip
        elif path == HALVED:
            draw_halved(
                pixels, width, draw, plan, texels, tex_width, x0, y0, x1, y1, flat, coverage, temp,
                view(line, u32, 0), is_rgb,
            )  # fmt: skip
        elif level >= SIZED and path == NEAR:
            draw_nearest(
                pixels, width, draw, plan, texels, tex_width, tables, x0, y0, x1, y1, flat,
                coverage, temp,
            )  # fmt: skip
        elif level >= SIZED and path == SCALED:
            draw_scaled(
                pixels, width, draw, plan, texels, tex_width, tables, x0, y0, x1, y1, flat,
                coverage, temp, line, places, sums, is_rgb,
            )  # fmt: skip


@native
def draw_tiles(memory: Array[u8], job: Array[i64], start: i64, end: i64, *, level: int) -> None:
    """Draw tiles [start, end) of a planned job.

    Where a draw hides a large part of a tile, draws below it are limited to the rest of the tile.
    ``level`` is the level of the plans; code that none of them needs is left out.
    """
    scratch = local(f32, 13 * ROW + LINE_CAPACITY)
    count, width, background = job[DRAW_COUNT], job[TARGET_WIDTH], job[BACKGROUND]
    pixels = view(memory, u32, job[TARGET] - ORIGIN)[0 : width * job[TARGET_HEIGHT]]
    draws = view(memory, i32, job[DRAWS] - ORIGIN)[0 : count * DRAW_WORDS]
    plans = view(memory, i64, job[PLANS] - ORIGIN)[0 : job[PLAN_CAPACITY]]
    pictures = view(memory, i64, job[PICTURES] - ORIGIN)[0 : job[PICTURE_CAPACITY]]
    tables = view(memory, i32, job[TABLES] - ORIGIN)[0 : job[TABLE_CAPACITY]]
    tiles = view(memory, i32, job[TILES] - ORIGIN)[0 : job[TILE_CAPACITY]]
    strips = local(i64, 16)
    for t in hinted(range(start, end), scalar=True):
        left, top = i64(tiles[4 * t]), i64(tiles[4 * t + 1])
        right, bottom = i64(tiles[4 * t + 2]), i64(tiles[4 * t + 3])
        # Find the draw that saves most: the area it hides times the cost of the draws below it.
        best, most, hidden, below = -1, 0, 0, 1
        x0, y0, x1, y1 = left, top, left, top
        for k in hinted(range(count), scalar=True):
            plan = plans[k * PLAN_WORDS : (k + 1) * PLAN_WORDS]
            a, b = max(left, plan[FULL_X0]), max(top, plan[FULL_Y0])
            c, d = min(right, plan[FULL_X1]), min(bottom, plan[FULL_Y1])
            area = (c - a) * (d - b) if c > a and d > b else 0
            if area >= MIN_HIDDEN and area * below >= most:
                best, most, hidden = k, area * below, area
                x0, y0, x1, y1 = a, b, c, d
            across = plan[LEFT] < right and plan[RIGHT] > left
            if plan[PATH] != NOTHING and across and plan[TOP] < bottom and plan[BOTTOM] > top:
                below += DRAW_COST
        if hidden == (right - left) * (bottom - top):
            y0 = bottom  # strips are empty
            y1, top_end = bottom, top
        else:
            top_end = y0
        if best < 0:
            best, top_end, y0, y1 = count, bottom, bottom, bottom
        strips[0], strips[1], strips[2], strips[3] = left, top, right, top_end
        strips[4], strips[5], strips[6], strips[7] = left, y0, x0, y1
        strips[8], strips[9], strips[10], strips[11] = x1, y0, right, y1
        strips[12], strips[13], strips[14], strips[15] = left, y1, right, bottom
        for s in hinted(range(4), scalar=True):
            a, b, c, d = strips[4 * s], strips[4 * s + 1], strips[4 * s + 2], strips[4 * s + 3]
            if a < c and b < d:
                draw_below(
                    pixels, memory, draws, plans, pictures, tables, width, background, best,
                    a, b, c, d, scratch, level=level,
                )  # fmt: skip
        if best < count:
            draw_range(
                pixels, memory, draws, plans, pictures, tables, width, best, count,
                left, top, right, bottom, scratch, level=level,
            )  # fmt: skip


@native(inline=False)
def draw_below(
    pixels: Array[u32], memory: Array[u8], draws: Array[i32], plans: Array[i64],
    pictures: Array[i64], tables: Array[i32], width: i64, background: i64, last: i64,
    left: i64, top: i64, right: i64, bottom: i64, scratch: Array[f32], *, level: int,
) -> None:  # fmt: skip
    """Draw the background and draws [0, last) in a rectangle, from the last that fills it on."""
    first = last - 1
    while first >= 0:
        plan = plans[first * PLAN_WORDS : (first + 1) * PLAN_WORDS]
        across = plan[FULL_X0] <= left and plan[FULL_X1] >= right
        if across and plan[FULL_Y0] <= top and plan[FULL_Y1] >= bottom:
            break
        first -= 1
    if first < 0:
        first = 0
        if background >= 0:
            for y in hinted(range(top, bottom), scalar=True):
                fill_row(pixels, y * width + left, right - left, u32(background))
    draw_range(
        pixels, memory, draws, plans, pictures, tables, width, first, last, left, top, right,
        bottom, scratch, level=level,
    )  # fmt: skip


#: The cost of a draw; filling with the background costs 1.
DRAW_COST: Final = 4
#: The least pixels of a tile that a draw must hide to be worth drawing around.
MIN_HIDDEN: Final = 2048
