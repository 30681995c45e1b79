"""Drawing inside a tile: one function for each path that a plan can choose."""

from __future__ import annotations

from typing import Final

from dala.gpu.compute.engines.compositing import LINEAR, OPAQUE, PICTURE, RING, TINT
from dala.gpu.compute.engines.cpu.compose.blend_modes import blend_linear, blend_srgb
from dala.gpu.compute.engines.cpu.compose.coverage import (
    box_coverage,
    draw_coverage,
    field,
    field64,
    rotated_span,
    shadow_coverage,
    spans,
)
from dala.gpu.compute.engines.cpu.compose.expand import expand_row
from dala.gpu.compute.engines.cpu.compose.halve import halve_rgb, halve_row
from dala.gpu.compute.engines.cpu.compose.records import (
    BLEND,
    BOTTOM,
    COLOR,
    COLUMNS,
    COS,
    COUNT_X,
    COUNT_Y,
    CX,
    CY,
    DIRECT,
    FLAGS,
    FULL_X0,
    FULL_X1,
    FULL_Y0,
    FULL_Y1,
    HH,
    HW,
    KIND,
    LEFT,
    OPACITY,
    RADIUS,
    RIGHT,
    ROWS,
    SHIFT_X,
    SHIFT_Y,
    TILE_COLUMNS,
    TOP,
    WEIGHTS,
    WIDTH,
)
from dala.gpu.compute.engines.cpu.compose.rows import (
    all_opaque,
    cover_color,
    cover_row,
    pack_sums,
    tint_row,
)
from dala.gpu.compute.engines.cpu.compose.sampling import sample_row
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
    u8,
    u32,
    view,
)
from dala.gpu.compute.engines.cpu.pixels.fixed_rows import fixed_row
from dala.gpu.compute.engines.cpu.pixels.float_rows import premultiplied_row
from dala.gpu.compute.engines.cpu.pixels.gather import nearest_row
from dala.gpu.compute.engines.cpu.pixels.over import copy_row, fill_row, over_row
from dala.gpu.compute.engines.cpu.pixels.taps import line_block

#: Capacity of the rows of a tile: whole vectors, starting at a group of eight.
ROW: Final = TILE_COLUMNS + 48


@native
def fill_coverage(coverage: Array[u32], value: u32) -> None:
    """Set the coverage of all pixels of a row."""
    for k in range(ROW):
        coverage[k] = value


@native(inline=False)
def draw_row(
    pixels: Array[u32],
    start: i64,
    source: Array[u32],
    shift: i64,
    draw: Array[i32],
    y: i64,
    x0: i64,
    x1: i64,
    opaque: bool,
    flat: Array[u32],
    coverage: Array[u32],
) -> None:
    """Draw a row of a box: pixels at ``shift + x`` of the source onto those at ``start + x``."""
    a, b, c, d = spans(draw, y, x0, x1)
    if b < c:
        if field(draw, OPACITY) < f32(1):
            cover_row(pixels, start + b, source, shift + b, flat, c - b)
        elif opaque:
            copy_row(pixels, start + b, source, shift + b, c - b)
        else:
            over_row(pixels, start + b, source, shift + b, c - b)
    if a < b:
        box_coverage(draw, coverage, a, y, b - a)
        cover_row(pixels, start + a, source, shift + a, coverage, b - a)
    if c < d:
        box_coverage(draw, coverage, c, y, d - c)
        cover_row(pixels, start + c, source, shift + c, coverage, d - c)


@native(inline=False)
def draw_copy(
    pixels: Array[u32], width: i64, draw: Array[i32], plan: Array[i64], texels: Array[u32],
    tex_width: i64, x0: i64, y0: i64, x1: i64, y1: i64, flat: Array[u32], coverage: Array[u32],
    temp: Array[u32], is_rgb: bool,
) -> None:  # fmt: skip
    """Draw a picture at its own size, aligned to pixels."""
    opaque = draw[FLAGS] & OPAQUE != 0 and draw[KIND] == PICTURE
    source = view(texels, u8, 0)
    inside = x0 >= plan[FULL_X0] and x1 <= plan[FULL_X1] and field(draw, RADIUS) <= f32(0)
    tinted, color = draw[KIND] == TINT, view(draw, u32, 0)[COLOR]
    for y in hinted(range(y0, y1), scalar=True):
        shift = (y + plan[SHIFT_Y]) * tex_width + plan[SHIFT_X]
        if is_rgb and inside and plan[FULL_Y0] <= y < plan[FULL_Y1]:
            expand_row(source, shift + x0, pixels, y * width + x0, x1 - x0)
        elif is_rgb:
            expand_row(source, shift + x0, temp, 0, x1 - x0)
            draw_row(pixels, y * width, temp, -x0, draw, y, x0, x1, True, flat, coverage)
        elif tinted:
            tint_row(texels, shift + x0, temp, x1 - x0, color)
            draw_row(pixels, y * width, temp, -x0, draw, y, x0, x1, False, flat, coverage)
        else:
            draw_row(pixels, y * width, texels, shift, draw, y, x0, x1, opaque, flat, coverage)


@native(inline=False)
def draw_nearest(
    pixels: Array[u32], width: i64, draw: Array[i32], plan: Array[i64], texels: Array[u32],
    tex_width: i64, tables: Array[i32], x0: i64, y0: i64, x1: i64, y1: i64, flat: Array[u32],
    coverage: Array[u32], temp: Array[u32],
) -> None:  # fmt: skip
    """Draw a scaled picture with nearest sampling."""
    opaque = draw[FLAGS] & OPAQUE != 0 and draw[KIND] == PICTURE
    tinted, color = draw[KIND] == TINT, view(draw, u32, 0)[COLOR]
    columns, rows = tables[plan[COLUMNS] + x0 - plan[LEFT] :], tables[plan[ROWS] :]
    for y in hinted(range(y0, y1), scalar=True):
        row = texels[i64(rows[y - plan[TOP]]) * tex_width :]
        nearest_row(row, columns, temp, x1 - x0, channels=1)
        if tinted:
            tint_row(temp, 0, temp, x1 - x0, color)
        draw_row(pixels, y * width, temp, -x0, draw, y, x0, x1, opaque, flat, coverage)


@native(inline=False)
def draw_scaled(
    pixels: Array[u32], width: i64, draw: Array[i32], plan: Array[i64], texels: Array[u32],
    tex_width: i64, tables: Array[i32], x0: i64, y0: i64, x1: i64, y1: i64, flat: Array[u32],
    coverage: Array[u32], temp: Array[u32], line: Array[f32], places: Array[i32], sums: Array[f32],
    is_rgb: bool,
) -> None:  # fmt: skip
    """Draw a picture that is scaled or not aligned to pixels, with bilinear sampling."""
    known_opaque = is_rgb or draw[FLAGS] & OPAQUE != 0
    size = 3 if is_rgb else 4
    tinted, color = draw[KIND] == TINT, view(draw, u32, 0)[COLOR]
    left, right = plan[LEFT], plan[RIGHT]
    many_x, many_y, fixed = plan[COUNT_X], plan[COUNT_Y], plan[WEIGHTS]
    padded = (right - left + 15) & ~15
    firsts, lines = tables[plan[COLUMNS] :], tables[plan[ROWS] :]
    weights_x = view(firsts, f32, padded * 4)
    weights_y = view(lines, f32, (plan[BOTTOM] - plan[TOP]) * 4)
    fixed_x = view(tables, i16, max(fixed, 0) * 4)
    behind = padded * 4 * many_x if fixed >= 0 else 0
    fixed_y = fixed_x[behind:]
    source = view(texels, u8, 0)
    temp_bytes, short = view(temp, u8, 0), view(line, i16, 0)
    begin, stop = (x0 - left) & ~7, x1 - left
    while begin < stop:
        count, low, high = line_block(firsts, begin, stop, many_x, size, places)
        many = (min(high, tex_width) - low) * size
        from_x, to_x = max(left + begin, x0), min(left + begin + count, x1)
        for y in hinted(range(y0, y1), scalar=True):
            k = y - plan[TOP]
            at = i64(lines[k]) * tex_width + low
            opaque = known_opaque
            if fixed >= 0 and not known_opaque:
                opaque = True
                for j in hinted(range(many_y), scalar=True):
                    if opaque and weights_y[k * many_y + j] != f32(0):
                        opaque = all_opaque(texels, at + j * tex_width, many >> 2)
            if is_rgb:
                fixed_row(
                    source[at * 3 :], tex_width * 3, fixed_y[k * 8 :], many_y, short, many, places,
                    fixed_x[begin * 4 * many_x :], many_x, temp_bytes, count, channels=3,
                )  # fmt: skip
            elif opaque and fixed >= 0:
                fixed_row(
                    source[at * 4 :], tex_width * 4, fixed_y[k * 8 :], many_y, short, many, places,
                    fixed_x[begin * 4 * many_x :], many_x, temp_bytes, count, channels=4,
                )  # fmt: skip
            else:
                premultiplied_row(
                    source[at * 4 :], tex_width * 4, weights_y[k * many_y :], many_y, line, many,
                    places, weights_x[begin * many_x :], many_x, sums, count,
                )  # fmt: skip
                pack_sums(sums, temp, count)
            if tinted:
                tint_row(temp, 0, temp, count, color)
                opaque = False
            shift = -(left + begin)
            draw_row(pixels, y * width, temp, shift, draw, y, from_x, to_x, opaque, flat, coverage)
        begin += count


@native(inline=False)
def draw_flat(
    pixels: Array[u32], width: i64, draw: Array[i32], x0: i64, y0: i64, x1: i64, y1: i64,
    flat: Array[u32], coverage: Array[u32],
) -> None:  # fmt: skip
    """Draw a box of one color."""
    color = view(draw, u32, 0)[COLOR]
    opaque = color >> 24 == 255 and field(draw, OPACITY) >= f32(1)
    for y in hinted(range(y0, y1), scalar=True):
        a, b, c, d = spans(draw, y, x0, x1)
        if b < c:
            if opaque:
                fill_row(pixels, y * width + b, c - b, color)
            else:
                cover_color(pixels, y * width + b, color, flat, c - b)
        if a < b:
            box_coverage(draw, coverage, a, y, b - a)
            cover_color(pixels, y * width + a, color, coverage, b - a)
        if c < d:
            box_coverage(draw, coverage, c, y, d - c)
            cover_color(pixels, y * width + c, color, coverage, d - c)


@native(inline=False)
def draw_shadow(
    pixels: Array[u32], width: i64, draw: Array[i32], x0: i64, y0: i64, x1: i64, y1: i64,
    coverage: Array[u32],
) -> None:  # fmt: skip
    """Draw the shadow of an unrotated box."""
    color = view(draw, u32, 0)[COLOR]
    for y in hinted(range(y0, y1), scalar=True):
        shadow_coverage(draw, coverage, x0, y, x1 - x0)
        cover_color(pixels, y * width + x0, color, coverage, x1 - x0)


@native
def ring_hole(draw: Array[i32], y: i64, a: i64, d: i64) -> tuple[i64, i64]:
    """Return the columns of a row inside an unrotated ring, where nothing is drawn."""
    width = field64(draw, WIDTH)
    round_ = max(field64(draw, RADIUS) - width, f64(0))
    reach, cx = field64(draw, HW) - width - f64(1), field64(draw, CX)
    v = abs(f64(y) + f64(0.5) - field64(draw, CY))
    if field(draw, COS) != f32(1) or v > field64(draw, HH) - width - round_ - f64(1):
        return d, d
    b = min(max(i64(ceil(cx - reach)), a), d)
    return b, min(max(i64(floor(cx + reach)), b), d)


@native(inline=False)
def draw_general(
    pixels: Array[u32], width: i64, draw: Array[i32], plan: Array[i64], texels: Array[u32],
    tex_width: i64, tex_height: i64, x0: i64, y0: i64, x1: i64, y1: i64, coverage: Array[u32],
    temp: Array[u32],
) -> None:  # fmt: skip
    """Draw any kind of draw: rotated, with a blend mode, or in linear light."""
    kind, mode, linear = draw[KIND], draw[BLEND], draw[FLAGS] & LINEAR != 0
    color = view(draw, u32, 0)[COLOR]
    sampled = draw[KIND] == PICTURE or draw[KIND] == TINT
    if not sampled:
        fill_row(temp, 0, x1 - x0, color)
    for y in hinted(range(y0, y1), scalar=True):
        a, d = x0, x1
        if sampled or kind == RING:
            a, d = rotated_span(draw, y, x0, x1)
        b, c = d, d
        if kind == RING:
            b, c = ring_hole(draw, y, a, d)
        for side in hinted(range(2), scalar=True):
            x, count = a, b - a
            if side == 1:
                x, count = c, d - c
            if count <= 0:
                continue
            draw_coverage(draw, coverage, x, y, count)
            source, first = temp, 0
            if sampled and plan[DIRECT] == 1:
                source, first = texels, (y + plan[SHIFT_Y]) * tex_width + x + plan[SHIFT_X]
            elif sampled:
                sample_row(draw, texels, tex_width, tex_height, x, y, count, temp)
            if kind == TINT:
                tint_row(source, first, temp, count, color)
                source, first = temp, 0
            at = y * width + x
            if linear:
                blend_linear(pixels, at, source, first, coverage, count, mode)
            elif mode != 0:
                blend_srgb(pixels, at, source, first, coverage, count, mode)
            else:
                cover_row(pixels, at, source, first, coverage, count)


@native(inline=False)
def draw_halved(
    pixels: Array[u32], width: i64, draw: Array[i32], plan: Array[i64], texels: Array[u32],
    tex_width: i64, x0: i64, y0: i64, x1: i64, y1: i64, flat: Array[u32], coverage: Array[u32],
    temp: Array[u32], expanded: Array[u32], is_rgb: bool,
) -> None:  # fmt: skip
    """Draw an opaque picture at half its size: each pixel is the mean of four texels."""
    source = view(texels, u8, 0)
    plain = field(draw, RADIUS) <= f32(0) and field(draw, OPACITY) >= f32(1)
    inside = x0 >= plan[FULL_X0] and x1 <= plan[FULL_X1]
    for y in hinted(range(y0, y1), scalar=True):
        upper = (2 * y + plan[SHIFT_Y]) * tex_width + 2 * x0 + plan[SHIFT_X]
        whole = plain and inside and plan[FULL_Y0] <= y < plan[FULL_Y1]
        out, at = temp, 0
        if whole:
            out, at = pixels, y * width + x0
        from_, first, next_, done = texels, upper, upper + tex_width, 0
        if is_rgb:
            done = halve_rgb(source, upper, upper + tex_width, out, at, x1 - x0)
            rest = 2 * (x1 - x0 - done)
            expand_row(source, upper + 2 * done, expanded, 0, rest)
            expand_row(source, upper + tex_width + 2 * done, expanded, rest, rest)
            from_, first, next_ = expanded, 0, rest
        halve_row(from_, first, next_, out, at + done, x1 - x0 - done)
        if not whole:
            draw_row(pixels, y * width, temp, -x0, draw, y, x0, x1, True, flat, coverage)
