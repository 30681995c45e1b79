"""Drawing inside a tile: one function for each path that a plan can choose."""

from __future__ import annotations

from typing import NamedTuple

from dala.gpu.compute.engines.compositing import *
from dala.gpu.compute.engines.cpu.compose.blend_modes import blend_row
from dala.gpu.compute.engines.cpu.compose.coverage import *
from dala.gpu.compute.engines.cpu.compose.records import *
from dala.gpu.compute.engines.cpu.compose.rows import (
    all_opaque,
    cover_row,
    expand_row,
    halve_rgb,
    halve_row,
    tint_row,
)
from dala.gpu.compute.engines.cpu.compose.sampling import sample_row
from dala.gpu.compute.engines.cpu.compose.steps import is_sampled
from dala.gpu.compute.engines.cpu.compose.tables import ROW_HEAD, packed_size
from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.pixels.byte_sums import (
    alpha_across,
    alpha_down,
    opaque_across,
    opaque_down,
)
from dala.gpu.compute.engines.cpu.pixels.gather import nearest_row
from dala.gpu.compute.engines.cpu.pixels.over import copy_row, fill_row, over_row
from dala.gpu.compute.engines.cpu.pixels.taps import line_block

#: Capacity of the rows of a tile: whole vectors, starting at a group of eight.
ROW: Final = TILE_COLUMNS + 48


class TileTarget(NamedTuple):
    """The pixels that draws change, the parts of a job that all share, and memory for rows."""

    pixels: Array[u32]
    width: i64
    memory: Array[u8]
    draws: Array[i32]
    plans: Array[i64]
    pictures: Array[i64]
    tables: Array[i32]
    #: The opacity of the draw, its coverage of some pixels, and their colors.
    flat: Array[u32]
    coverage: Array[u32]
    temp: Array[u32]
    #: For scaling: places in a line, sums, and the line.
    places: Array[i32]
    sums: Array[i32]
    line: Array[i16]


class Texels(NamedTuple):
    """The picture that a draw samples."""

    words: Array[u32]
    width: i64
    height: i64
    is_rgb: bool


@native(inline=False)
def draw_row(
    on: TileTarget, source: Array[u32], shift: i64, draw: DrawRecord, y: i64, x0: i64, x1: i64,
    opaque: bool,
) -> None:  # fmt: skip
    """Draw a row of a box from the pixels at ``shift + x`` of the source, or their alpha."""
    pixels, coverage, start = on.pixels, on.coverage, y * on.width
    tinted = draw.kind == TINT
    if tinted:
        tint_row(source, shift + x0, on.temp, x1 - x0, draw.color)
        source, shift = on.temp, -x0
    a, b, c, d = spans(draw, y, x0, x1)
    if b < c:
        if draw.opacity < 1:
            cover_row(pixels, start + b, source, shift + b, on.flat, c - b)
        elif opaque and not tinted:
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
    on: TileTarget, draw: DrawRecord, plan: PlanRecord, texels: Texels, x0: i64, y0: i64, x1: i64,
    y1: i64,
) -> None:  # fmt: skip
    """Draw a picture at its own size, aligned to pixels."""
    temp, source, opaque = on.temp, view(texels.words, u8, 0), draw.flags & OPAQUE != 0
    inside = x0 >= plan.full_x0 and x1 <= plan.full_x1 and draw.radius <= 0
    for y in serial(y0, y1):
        shift = (y + plan.shift_y) * texels.width + plan.shift_x
        if texels.is_rgb and inside and plan.full_y0 <= y < plan.full_y1:
            expand_row(source, shift + x0, on.pixels, y * on.width + x0, x1 - x0)
        elif texels.is_rgb:
            expand_row(source, shift + x0, temp, 0, x1 - x0)
            draw_row(on, temp, -x0, draw, y, x0, x1, True)
        else:
            draw_row(on, texels.words, shift, draw, y, x0, x1, opaque)


@native(inline=False)
def draw_nearest(
    on: TileTarget, draw: DrawRecord, plan: PlanRecord, texels: Texels, x0: i64, y0: i64, x1: i64,
    y1: i64,
) -> None:  # fmt: skip
    """Draw a scaled picture with nearest sampling."""
    columns, rows = on.tables[plan.columns + x0 - plan.left :], on.tables[plan.rows :]
    for y in serial(y0, y1):
        row = texels.words[i64(rows[y - plan.top]) * texels.width :]
        nearest_row(row, columns, on.temp, x1 - x0, channels=1)
        draw_row(on, on.temp, -x0, draw, y, x0, x1, draw.flags & OPAQUE != 0)


@native(inline=False)
def draw_scaled(
    on: TileTarget, draw: DrawRecord, plan: PlanRecord, texels: Texels, x0: i64, y0: i64, x1: i64,
    y1: i64,
) -> None:  # fmt: skip
    """Draw a picture that is scaled or not aligned to pixels, with bilinear sampling."""
    tables, temp, line, places = on.tables, on.temp, on.line, on.places
    tex_width, is_rgb = texels.width, texels.is_rgb
    known_opaque = is_rgb or draw.flags & OPAQUE != 0
    size = 3 if is_rgb else 4
    left, right = plan.left, plan.right
    many_x, many_y = plan.count_x, plan.count_y
    padded, each_x = (right - left + 15) & ~15, packed_size(many_x)
    each_y = ROW_HEAD + ((many_y + 1) & ~1)
    firsts, lines = tables[plan.columns :], tables[plan.rows :]
    weights_x = view(tables, i16, plan.weights * 4)
    weights_y = weights_x[padded * each_x :]
    source = view(texels.words, u8, 0)
    begin, stop = (x0 - left) & ~7, x1 - left
    while begin < stop:
        count, low, high = line_block(firsts, begin, stop, many_x, size, places)
        many = (min(high, tex_width) - low) * size
        from_x, to_x = max(left + begin, x0), min(left + begin + count, x1)
        own_x = weights_x[begin * each_x :]
        for y in serial(y0, y1):
            k = y - plan.top
            at = i64(lines[k]) * tex_width + low
            own_y = weights_y[k * each_y :]
            opaque = known_opaque
            if not known_opaque:
                opaque = True
                for j in serial(many_y):
                    if opaque and own_y[ROW_HEAD + j] != 0:
                        opaque = all_opaque(texels.words, at + j * tex_width, many >> 2)
            if is_rgb:
                opaque_down(source[at * 3 :], line, own_y, tex_width * 3, many_y, many)
                opaque_across(line, places, own_x, many_x, temp, count, channels=3)
            elif opaque:
                opaque_down(source[at * 4 :], line, own_y, tex_width * 4, many_y, many)
                opaque_across(line, places, own_x, many_x, temp, count, channels=4)
            else:
                alpha_down(source[at * 4 :], line, own_y[ROW_HEAD:], tex_width * 4, many_y, many)
                alpha_across(line, places, own_x, many_x, on.sums, temp, count)
            draw_row(on, temp, -(left + begin), draw, y, from_x, to_x, opaque)
        begin += count


@native(inline=False)
def draw_flat(
    on: TileTarget, draw: DrawRecord, plan: PlanRecord, texels: Texels, x0: i64, y0: i64, x1: i64,
    y1: i64,
) -> None:  # fmt: skip
    """Draw a box of one color."""
    fill_row(on.temp, 0, x1 - x0, draw.color)
    for y in serial(y0, y1):
        draw_row(on, on.temp, -x0, draw, y, x0, x1, draw.color >> 24 == 255)


@native(inline=False)
def draw_shadow(
    on: TileTarget, draw: DrawRecord, plan: PlanRecord, texels: Texels, x0: i64, y0: i64, x1: i64,
    y1: i64,
) -> None:  # fmt: skip
    """Draw the shadow of an unrotated box."""
    count, opacity = x1 - x0, full_share(draw)
    straight_spans(draw, x0, count, on.temp)
    fill_row(on.flat, 0, count, draw.color)
    for y in serial(y0, y1):
        shadow_coverage(draw, opacity, on.temp, on.coverage, x0, y, count)
        cover_row(on.pixels, y * on.width + x0, on.flat, 0, on.coverage, count)


@native
def ring_hole(draw: DrawRecord, y: i64, a: i64, d: i64) -> tuple[i64, i64]:
    """Return the columns of a row inside an unrotated ring, where nothing is drawn."""
    width = f64(draw.width)
    round_ = max(f64(draw.radius) - width, 0)
    reach, cx = f64(draw.hw) - width - 1, f64(draw.cx)
    v = abs(f64(y) + 0.5 - f64(draw.cy))
    if draw.cos != 1 or v > f64(draw.hh) - width - round_ - 1:
        return d, d
    b = min(max(i64(ceil(cx - reach)), a), d)
    return b, min(max(i64(floor(cx + reach)), b), d)


@native(inline=False)
def draw_general(
    on: TileTarget, draw: DrawRecord, plan: PlanRecord, texels: Texels, x0: i64, y0: i64, x1: i64,
    y1: i64,
) -> None:  # fmt: skip
    """Draw any kind of draw: rotated, with a blend mode, or in linear light."""
    pixels, coverage, temp = on.pixels, on.coverage, on.temp
    kind, mode, linear = draw.kind, draw.blend, draw.flags & LINEAR != 0
    color = draw.color
    sampled = is_sampled(draw)
    if not sampled:
        fill_row(temp, 0, x1 - x0, color)
    for y in serial(y0, y1):
        a, d = rotated_span(draw, y, x0, x1)
        b, c = d, d
        if kind == RING:
            b, c = ring_hole(draw, y, a, d)
        for side in serial(2):
            x, count = a, b - a
            if side == 1:
                x, count = c, d - c
            if count <= 0:
                continue
            draw_coverage(draw, coverage, x, y, count)
            source, first = temp, 0
            if sampled and plan.direct == 1:
                source = texels.words
                first = (y + plan.shift_y) * texels.width + x + plan.shift_x
            elif sampled:
                sample_row(draw, texels.words, texels.width, texels.height, x, y, count, temp)
            if kind == TINT:
                tint_row(source, first, temp, count, color)
                source, first = temp, 0
            at = y * on.width + x
            if linear:
                blend_row(pixels, at, source, first, coverage, count, mode, linear=True)
            elif mode != 0:
                blend_row(pixels, at, source, first, coverage, count, mode, linear=False)
            else:
                cover_row(pixels, at, source, first, coverage, count)


@native(inline=False)
def draw_halved(
    on: TileTarget, draw: DrawRecord, plan: PlanRecord, texels: Texels, x0: i64, y0: i64, x1: i64,
    y1: i64,
) -> None:  # fmt: skip
    """Draw an opaque picture at half its size: each pixel is the mean of four texels."""
    source, expanded, tex_width = view(texels.words, u8, 0), view(on.line, u32, 0), texels.width
    plain = draw.radius <= 0 and draw.opacity >= 1
    inside = x0 >= plan.full_x0 and x1 <= plan.full_x1
    for y in serial(y0, y1):
        upper = (2 * y + plan.shift_y) * tex_width + 2 * x0 + plan.shift_x
        whole = plain and inside and plan.full_y0 <= y < plan.full_y1
        out, at = on.temp, 0
        if whole:
            out, at = on.pixels, y * on.width + x0
        from_, first, next_, done = texels.words, upper, upper + tex_width, 0
        if texels.is_rgb:
            done = halve_rgb(source, upper, upper + tex_width, out, at, x1 - x0)
            rest = 2 * (x1 - x0 - done)
            expand_row(source, upper + 2 * done, expanded, 0, rest)
            expand_row(source, upper + tex_width + 2 * done, expanded, rest, rest)
            from_, first, next_ = expanded, 0, rest
        halve_row(from_, first, next_, out, at + done, x1 - x0 - done)
        if not whole:
            draw_row(on, on.temp, -x0, draw, y, x0, x1, True)
