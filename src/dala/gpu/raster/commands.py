"""The native functions of commands that draw; the rows in ``dala.gpu.command`` name them.

A function reads the fields of its command from the bytes, in the order of the row. It is compiled
for each row with ``filled``, whether the command's name begins with "fill", and ``signed``, whether
its position is. Sprites, clips and batches are part of ``stream.execute`` itself.
"""

from __future__ import annotations

from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.raster.frame import DrawTarget
from dala.gpu.raster.rounds import draw_round, fill_round
from dala.gpu.raster.shapes import draw_line, draw_triangle, fill_clip, fill_rect, fill_triangle


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
    return u32(view(data, u32, at)[0])


@native
def clear(data: Array[u8], at: i64, on: DrawTarget, *, filled: bool, signed: bool) -> None:
    """Replace all pixels of the clip."""
    fill_clip(on, read_color(data, at + 1))


@native
def rect(data: Array[u8], at: i64, on: DrawTarget, *, filled: bool, signed: bool) -> None:
    """Fill a rectangle."""
    x, y = read_u32(data, at + 1), read_u32(data, at + 5)
    right, bottom = x + read_u32(data, at + 9), y + read_u32(data, at + 13)
    fill_rect(on, x, y, right, bottom, read_color(data, at + 17))


@native
def line(data: Array[u8], at: i64, on: DrawTarget, *, filled: bool, signed: bool) -> None:
    """Draw a line."""
    x, y = read_i32(data, at + 1), read_i32(data, at + 5)
    to_x, to_y = read_i32(data, at + 9), read_i32(data, at + 13)
    draw_line(on, x, y, to_x, to_y, read_color(data, at + 17), 1)


@native
def circle(data: Array[u8], at: i64, on: DrawTarget, *, filled: bool, signed: bool) -> None:
    """Draw the outline of a circle, or fill it."""
    x, y, r = read_i32(data, at + 1), read_i32(data, at + 5), read_u32(data, at + 9)
    color = read_color(data, at + 13)
    (fill_round if filled else draw_round)(on, x, y, x, y, r, color)


@native
def triangle(data: Array[u8], at: i64, on: DrawTarget, *, filled: bool, signed: bool) -> None:
    """Draw the outline of a triangle, or fill it."""
    ax, ay = read_i32(data, at + 1), read_i32(data, at + 5)
    bx, by = read_i32(data, at + 9), read_i32(data, at + 13)
    cx, cy = read_i32(data, at + 17), read_i32(data, at + 21)
    color = read_color(data, at + 25)
    (fill_triangle if filled else draw_triangle)(on, ax, ay, bx, by, cx, cy, color)


@native
def round_rect(data: Array[u8], at: i64, on: DrawTarget, *, filled: bool, signed: bool) -> None:
    """Draw the outline of a rectangle with round corners, or fill it."""
    x = read_i32(data, at + 1) if signed else read_u32(data, at + 1)
    y = read_i32(data, at + 5) if signed else read_u32(data, at + 5)
    w, h = read_u32(data, at + 9), read_u32(data, at + 13)
    color = read_color(data, at + 21)
    if w > 0 and h > 0:
        r = min(read_u32(data, at + 17), (min(w, h) - 1) >> 1)
        x, y, w, h = x + r, y + r, x + w - 1 - r, y + h - 1 - r
        (fill_round if filled else draw_round)(on, x, y, w, h, r, color)
