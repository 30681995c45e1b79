"""Draw the tiles of a target: for each, the draws that touch it, in order."""

from __future__ import annotations

from dala.gpu.compute.engines.cpu.compose.coverage import full_share
from dala.gpu.compute.engines.cpu.compose.draws import *
from dala.gpu.compute.engines.cpu.compose.records import *
from dala.gpu.compute.engines.cpu.compose.steps import is_sampled
from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.pixels.fixed_rows import LINE_CAPACITY
from dala.gpu.compute.engines.cpu.pixels.over import fill_row

#: The paths of plans, the level of code that has them, and the functions that draw them.
PATHS: Final = (
    (FLAT, SIMPLE, draw_flat), (COPY, SIMPLE, draw_copy), (HALVED, SIMPLE, draw_halved),
    (NEAR, SIZED, draw_nearest), (SCALED, SIZED, draw_scaled),
    (BLURRED, ANY_DRAW, draw_shadow), (GENERAL, ANY_DRAW, draw_general),
)  # fmt: skip


@native(inline=False)
def draw_range(
    on: TileTarget, first: i64, last: i64, left: i64, top: i64, right: i64, bottom: i64,
    *, level: int,
) -> None:  # fmt: skip
    """Execute draws [first, last) inside a rectangle no larger than a tile."""
    for k in serial(first, last):
        plan = PlanRecord(on.plans, k)
        x0, y0 = max(left, plan.left), max(top, plan.top)
        x1, y1 = min(right, plan.right), min(bottom, plan.bottom)
        path = plan.path
        if path == NOTHING or x0 >= x1 or y0 >= y1:
            continue
        draw = DrawRecord(on.draws, k)
        if draw.opacity < 1:
            fill_row(on.flat, 0, ROW, full_share(draw))
        words, tex_width, tex_height, is_rgb = on.pixels[0:0], 1, 1, False
        if is_sampled(draw):
            picture = PictureRecord(on.pictures, draw.picture)
            tex_width, tex_height, is_rgb = picture.width, picture.height, picture.channels == 3
            size = (tex_width * tex_height * picture.channels + 3) // 4
            words = view(on.memory, u32, picture.address - ORIGIN)[0:size]
        texels = Texels(words, tex_width, tex_height, is_rgb)
        for row in static(PATHS):
            if row[1] <= level and path == row[0]:
                row[2](on, draw, plan, texels, x0, y0, x1, y1)


@native
def draw_tiles(memory: Array[u8], job: JobRecord, start: i64, end: i64, *, level: int) -> None:
    """Draw tiles [start, end) of a planned job.

    Where a draw hides a large part of a tile, draws below it are limited to the rest of the tile.
    ``level`` is the level of the plans; code that none of them needs is left out.
    """
    scratch = local(f32, 13 * ROW + LINE_CAPACITY)
    count, width = job.draw_count, job.target_width
    pixels = view(memory, u32, job.target - ORIGIN)[0 : width * job.target_height]
    draws = view(memory, i32, job.draws - ORIGIN)[0 : count * DrawRecord.size]
    plans = view(memory, i64, job.plans - ORIGIN)[0 : job.plan_capacity]
    pictures = view(memory, i64, job.pictures - ORIGIN)[0 : job.picture_capacity]
    tables = view(memory, i32, job.tables - ORIGIN)[0 : job.table_capacity]
    tiles = view(memory, i32, job.tiles - ORIGIN)[0 : job.tile_capacity]
    flat, coverage = view(scratch, u32, 0)[0:ROW], view(scratch, u32, 4 * ROW)[0:ROW]
    temp, places = view(scratch, u32, 28 * ROW), view(scratch, i32, 32 * ROW)
    sums, line = view(scratch[9 * ROW : 13 * ROW], i32, 0), view(scratch[13 * ROW :], i16, 0)
    on = TileTarget(
        pixels, width, memory, draws, plans, pictures, tables, flat, coverage, temp, places, sums,
        line,
    )  # fmt: skip
    for t in serial(start, end):
        left, top = i64(tiles[4 * t]), i64(tiles[4 * t + 1])
        right, bottom = i64(tiles[4 * t + 2]), i64(tiles[4 * t + 3])
        # Find the draw that saves most: the area it hides times the cost of the draws below it.
        best, most, hidden, below = -1, 0, 0, 1
        x0, y0, x1, y1 = left, top, left, top
        for k in serial(count):
            plan = PlanRecord(plans, k)
            a, b = max(left, plan.full_x0), max(top, plan.full_y0)
            c, d = min(right, plan.full_x1), min(bottom, plan.full_y1)
            area = (c - a) * (d - b) if c > a and d > b else 0
            if area >= MIN_HIDDEN and area * below >= most:
                best, most, hidden = k, area * below, area
                x0, y0, x1, y1 = a, b, c, d
            across = plan.left < right and plan.right > left
            if plan.path != NOTHING and across and plan.top < bottom and plan.bottom > top:
                below += DRAW_COST
        if hidden == (right - left) * (bottom - top):
            y0 = bottom  # strips are empty
            y1, top_end = bottom, top
        else:
            top_end = y0
        if best < 0:
            best, top_end, y0, y1 = count, bottom, bottom, bottom
        above, west = (left, top, right, top_end), (left, y0, x0, y1)
        east, under = (x1, y0, right, y1), (left, y1, right, bottom)
        for strip in static((above, west, east, under)):
            a, b, c, d = strip
            if a < c and b < d:
                draw_below(on, job.background, best, a, b, c, d)
        if best < count:
            draw_range(on, best, count, left, top, right, bottom)


@native(inline=False)
def draw_below(
    on: TileTarget, background: i64, last: i64, left: i64, top: i64, right: i64, bottom: i64,
    *, level: int,
) -> None:  # fmt: skip
    """Draw the background and draws [0, last) in a rectangle, from the last that fills it on."""
    first = last - 1
    while first >= 0:
        plan = PlanRecord(on.plans, first)
        across = plan.full_x0 <= left and plan.full_x1 >= right
        if across and plan.full_y0 <= top and plan.full_y1 >= bottom:
            break
        first -= 1
    if first < 0:
        first = 0
        if background >= 0:
            for y in serial(top, bottom):
                fill_row(on.pixels, y * on.width + left, right - left, u32(background))
    draw_range(on, first, last, left, top, right, bottom)


#: The cost of a draw; filling with the background costs 1.
DRAW_COST: Final = 4
#: The least pixels of a tile that a draw must hide to be worth drawing around.
MIN_HIDDEN: Final = 2048
