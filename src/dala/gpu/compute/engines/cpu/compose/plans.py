"""Plan draws: the pixels each may change, the pixels it hides, and its form."""

from __future__ import annotations

from dala.gpu.compute.engines.compositing import *
from dala.gpu.compute.engines.cpu.compose.records import *
from dala.gpu.compute.engines.cpu.compose.steps import *
from dala.gpu.compute.engines.cpu.compose.tables import *
from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.pixels.taps import LINE
from dala.gpu.compute.engines.sampling.draws import DROPPED, TEXEL, TEXEL_BITS

#: Edges this close to a pixel boundary count as aligned: a quarter of a step of 1/255.
TOLERANCE: Final = 0.001
#: The most texels per pixel along an axis for which tap tables are used.
MAX_TEXELS: Final = 256
#: Words before a table that identify its geometry, so that a frame can reuse it.
KEY_WORDS: Final = 24
#: The coefficient of a texel per pixel.
ONE: Final = TEXEL << DROPPED
#: The words of a draw that are floats.
FLOATS: Final = DrawRecord.places["cx"], DrawRecord.places["taps_x"]
#: Error codes of a draw.
BAD_KIND, BAD_BLEND, BAD_PICTURE, BAD_NUMBER = -1, -2, -3, -4
#: Not an error: the draw needs its picture in RGBA.
NEEDS_RGBA: Final = -5


@native
def find_error(draw: DrawRecord, pictures: Array[i64]) -> i64:
    """Return an error code for a draw, or 0."""
    kind = draw.kind
    if kind < 0 or kind > static(TINT):
        return BAD_KIND
    if draw.blend < 0 or draw.blend >= static(len(BLENDS)):
        return BAD_BLEND
    if is_sampled(draw):
        if draw.picture < 0 or i64(draw.picture) * PictureRecord.size >= len(pictures):
            return BAD_PICTURE
        if PictureRecord(pictures, draw.picture).address == 0:
            return BAD_PICTURE
    for at in serial(FLOATS[0], FLOATS[1]):
        if not abs(view(draw, f32, 0)[at]) < 1e9:
            return BAD_NUMBER
    if not f32(0) <= draw.opacity <= f32(1):
        return BAD_NUMBER
    return 0


@native
def is_whole(x: f64) -> bool:
    """Return whether a number is an integer within the tolerance."""
    return bool(abs(x - floor(x + 0.5)) <= TOLERANCE)


@native
def texels_per_pixel(step: i64, bits: i64, size: i64) -> i64:
    """Return how many neighboring texels the samples of a pixel read."""
    if bits == 0:
        return min(2, size)
    reach: i64 = abs(tap_offset(step, bits, (1 << bits) - 1) - tap_offset(step, bits, 0))
    return min((reach >> TEXEL_BITS) + 3, size)


@native
def fill_tables(
    draw: DrawRecord, plan: PlanRecord, tables: Array[i32], used: i64, picture: PictureRecord
) -> i64:
    """Fill the tap tables of a scaled picture if they fit; return the number of words used."""
    width, height = picture.width, picture.height
    bits_x, bits_y = tap_bits(draw.taps_x), tap_bits(draw.taps_y)
    step_x, step_y = texel_step(f64(draw.sx)), texel_step(f64(draw.sy))
    many_x = max(texels_per_pixel(step_x, bits_x, width), 2)
    many_y = texels_per_pixel(step_y, bits_y, height)
    nearest = plan.path == NEAR
    if nearest:
        many_x, many_y = 0, 0
    columns, rows = plan.right - plan.left, plan.bottom - plan.top
    padded = (columns + 15) & ~15
    each_y = ROW_HEAD + ((many_y + 1) & ~1)
    used += KEY_WORDS
    plan.columns, plan.count_x = used, many_x
    used += padded
    plan.rows, plan.count_y = used, many_y
    used += rows
    plan.weights = used
    if not nearest:
        # The packed weights, then room for those that are packed.
        packed = padded * packed_size(many_x) // 2 + (rows * each_y + 1) // 2
        used += packed + max(padded * many_x, rows * many_y)
    if used > len(tables):
        return used
    sa, _, sc, _, tb, tc = picture_steps(draw)
    start_x, start_y = sa * plan.left + sc, tb * plan.top + tc
    u0, u1 = crop_limits(f64(draw.u0), f64(draw.u1), nearest)
    v0, v1 = crop_limits(f64(draw.v0), f64(draw.v1), nearest)
    # Tables stay valid while a picture moves by whole pixels.
    key = view(tables[plan.columns - KEY_WORDS :], i64, 0)
    sizes = (columns * 65536 + rows) * 65536 + many_x * 64 + bits_x
    shape = (width * 65536 + height) * 65536 + many_y * 64 + bits_y
    current = (start_x, start_y, sa, tb, u0, u1, v0, v1, sizes, shape, plan.columns)
    known = True
    for n in static(range(len(current))):
        known = known and key[n] == current[n]
        key[n] = current[n]
    if known:
        return used
    xs, ys = tables[plan.columns :], tables[plan.rows :]
    if nearest:
        nearest_taps(xs, columns, padded, sa, start_x, u0, u1, width)
        nearest_taps(ys, rows, rows, tb, start_y, v0, v1, height)
        return used
    out = view(tables, i16, plan.weights * 4)
    room = tables[used - max(padded * many_x, rows * many_y) :]
    fill_taps(xs, room, columns, padded, many_x, sa, start_x, step_x, bits_x, u0, u1, width)
    pack_columns(room, many_x, padded, out)
    fill_taps(ys, room, rows, rows, many_y, tb, start_y, step_y, bits_y, v0, v1, height)
    pack_rows(room, many_y, rows, each_y, out[padded * packed_size(many_x) :])
    return used


@native
def picture_path(draw: DrawRecord, plan: PlanRecord, picture: PictureRecord, opaque: bool) -> i64:
    """Choose the path of an unrotated picture."""
    width, height = picture.width, picture.height
    bits_x, bits_y = tap_bits(draw.taps_x), tap_bits(draw.taps_y)
    sa, _, sc, _, tb, tc = picture_steps(draw)
    scale = 2 if sa == 2 * ONE and not is_nearest(draw) else 1
    # Positions of the first pixel, relative to the left upper one of its texels.
    x = ((sa * plan.left + sc) >> DROPPED) - scale * TEXEL // 2
    y = ((tb * plan.top + tc) >> DROPPED) - scale * TEXEL // 2
    single = bits_x == 0 and bits_y == 0
    same = single and sa == scale * ONE and tb == sa
    if same and (x | y) & (TEXEL - 1) == 0:
        # Texels of the first and of the last pixel.
        left, top = x >> TEXEL_BITS, y >> TEXEL_BITS
        right = left + scale * (plan.right - plan.left)
        bottom = top + scale * (plan.bottom - plan.top)
        slack = f64(TOLERANCE)
        low_x = max(i64(ceil(f64(draw.u0) - slack)), 0)
        low_y = max(i64(ceil(f64(draw.v0) - slack)), 0)
        high_x = min(i64(floor(f64(draw.u1) + slack)), width)
        high_y = min(i64(floor(f64(draw.v1) + slack)), height)
        inside = left >= low_x and right <= high_x and top >= low_y and bottom <= high_y
        if inside:
            plan.shift_x = left - scale * plan.left
            plan.shift_y = top - scale * plan.top
        if scale == 1:
            return COPY if inside else NEAR
        if inside and opaque and draw.kind == PICTURE:
            return HALVED
    if is_nearest(draw):
        return NEAR if single else GENERAL
    many = texels_per_pixel(texel_step(f64(draw.sx)), bits_x, width)
    many = max(many, texels_per_pixel(texel_step(f64(draw.sy)), bits_y, height))
    if many > MAX_TEXELS or abs(f64(draw.sx)) * 16 + (2 * MAX_TEXELS) > LINE:
        return GENERAL
    return SCALED


@native
def mark_opaque(draw: DrawRecord, plan: PlanRecord) -> None:
    """Set the rectangle of a plan in which its box hides everything below."""
    slack = f64(TOLERANCE)
    cx, cy, hw, hh = f64(draw.cx), f64(draw.cy), f64(draw.hw), f64(draw.hh)
    radius = min(min(f64(draw.radius), hw), hh)
    inset = 0
    if radius > 0:
        inset = i64(ceil(radius * 0.29290 + 0.36))
    plan.full_x0 = max(plan.left, i64(ceil(cx - hw - slack)) + inset)
    plan.full_y0 = max(plan.top, i64(ceil(cy - hh - slack)) + inset)
    plan.full_x1 = min(plan.right, i64(floor(cx + hw + slack)) - inset)
    plan.full_y1 = min(plan.bottom, i64(floor(cy + hh + slack)) - inset)


@native
def has_whole_edges(draw: DrawRecord) -> bool:
    """Return whether the edges of a box are on pixel boundaries."""
    cx, cy, hw, hh = f64(draw.cx), f64(draw.cy), f64(draw.hw), f64(draw.hh)
    down = is_whole(cy - hh) and is_whole(cy + hh)
    return bool(draw.radius <= 0 and is_whole(cx - hw) and is_whole(cx + hw) and down)


@native
def plan_one(
    draw: DrawRecord, plan: PlanRecord, pictures: Array[i64], tables: Array[i32], used: i64,
    width: i64, height: i64, *, level: int,
) -> i64:  # fmt: skip
    """Plan one draw; return the number of table words used. SIMPLE code fills no tables."""
    plan.left, plan.top = max(i64(draw.x0), 0), max(i64(draw.y0), 0)
    plan.right, plan.bottom = min(i64(draw.x1), width), min(i64(draw.y1), height)
    plan.full_x0, plan.full_y0, plan.full_x1, plan.full_y1 = 0, 0, 0, 0
    plan.path = NOTHING
    kind, flags = draw.kind, draw.flags
    straight = draw.cos == 1 and draw.sin == 0
    blurred = kind == SHADOW and draw.width > 0
    if straight:
        slack = f64(TOLERANCE)
        cx, cy, hw, hh = f64(draw.cx), f64(draw.cy), f64(draw.hw), f64(draw.hh)
        if blurred:
            hw, hh = hw + 3 * f64(draw.width), hh + 3 * f64(draw.width)
        plan.left = max(plan.left, i64(floor(cx - hw + slack - 1)) + 1)
        plan.top = max(plan.top, i64(floor(cy - hh + slack - 1)) + 1)
        plan.right = min(plan.right, i64(ceil(cx + hw - slack)))
        plan.bottom = min(plan.bottom, i64(ceil(cy + hh - slack)))
    if plan.left >= plan.right or plan.top >= plan.bottom:
        return used
    if draw.opacity <= 0:
        return used
    opaque = draw.opacity >= 1
    if kind == PICTURE:
        opaque = opaque and flags & OPAQUE != 0
    else:
        opaque = opaque and kind == FILL and draw.color >> 24 == 255
    plan.path = GENERAL
    plan.direct = 0
    if not straight or kind == RING:
        return used
    if draw.blend != 0 or (flags & LINEAR != 0 and not (opaque and has_whole_edges(draw))):
        if is_sampled(draw):
            picture = PictureRecord(pictures, draw.picture)
            plan.direct = i64(picture_path(draw, plan, picture, False) == COPY)
        return used
    if blurred:
        plan.path = BLURRED
        return used
    if not is_sampled(draw):
        plan.path = FLAT
    else:
        picture = PictureRecord(pictures, draw.picture)
        known = picture.channels != 4 or flags & OPAQUE != 0
        plan.path = picture_path(draw, plan, picture, known)
        if level >= SIZED and (plan.path == SCALED or plan.path == NEAR):
            used = fill_tables(draw, plan, tables, used, picture)
    if opaque and plan.path != GENERAL:
        mark_opaque(draw, plan)
    return used


@native
def is_readable(draw: DrawRecord, plan: PlanRecord, pictures: Array[i64]) -> bool:
    """Return whether a draw can read its picture without converting it to RGBA."""
    if not is_sampled(draw) or plan.path == NOTHING:
        return True
    if PictureRecord(pictures, draw.picture).channels == 4:
        return True
    direct = plan.path == COPY or plan.path == HALVED or plan.path == SCALED
    return bool(draw.kind == PICTURE and direct)


@native
def cut_tiles(rects: Array[i32], tiles: Array[i32], job: JobRecord) -> None:
    """Cut rectangles into tiles of about equal width; tiles without room are counted too."""
    count, pixels = 0, 0
    for r in serial(len(rects) // 4):
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
    job.tile_count, job.pixel_count = count, pixels


@native
def make_plans(memory: Array[u8], job: JobRecord, *, level: int) -> None:
    """Fill the plans of all draws of a job, and cut tiles.

    If more capacity or a higher level is needed, tables and tiles are incomplete.
    """
    draws = view(memory, i32, job.draws - ORIGIN)[0 : job.draw_count * DrawRecord.size]
    plans = view(memory, i64, job.plans - ORIGIN)[0 : job.plan_capacity]
    pictures = view(memory, i64, job.pictures - ORIGIN)[0 : job.picture_capacity]
    tables = view(memory, i32, job.tables - ORIGIN)[0 : job.table_capacity]
    width, height = job.target_width, job.target_height
    used, found = 0, SIMPLE
    job.error, job.capacity_needed, job.tile_count, job.level = 0, 0, 0, SIMPLE
    for k in serial(job.draw_count):
        draw = DrawRecord(draws, k)
        job.error, job.error_draw = find_error(draw, pictures), k
        if job.error != 0:
            return
        plan = PlanRecord(plans, k)
        used = plan_one(draw, plan, pictures, tables, used, width, height)
        if plan.path == BLURRED or plan.path == GENERAL:
            found = ANY_DRAW
        elif plan.path == NEAR or plan.path == SCALED:
            found = max(found, SIZED)
        job.level = found
        if level < SIZED and found >= SIZED:
            return
        if not is_readable(draw, plan, pictures):
            job.error = NEEDS_RGBA
            return
    job.capacity_needed = used
    rects = view(memory, i32, job.rects - ORIGIN)[0 : 4 * job.rect_count]
    cut_tiles(rects, view(memory, i32, job.tiles - ORIGIN)[0 : job.tile_capacity], job)
