"""The records that native compositing reads: draws, pictures, plans, jobs."""

from __future__ import annotations

from typing import Final

from dala.gpu.compute.engines.compositing import DRAW
from dala.gpu.compute.engines.cpu.native.names import Record, f32, i32, u32

_WORDS: Final = {"<i4": i32, "<f4": f32}


class DrawRecord(
    Record,
    fields={name: _WORDS.get(DRAW[name].str, u32) for name in (DRAW.names or ())[:-1]},
    size=DRAW.itemsize // 4,
):
    """A draw; see ``compositing.DRAW``. Its color is one word."""


class PictureRecord(Record, fields="address width height channels"):
    """A picture: the address of its pixels, its size, bytes per pixel."""


class PlanRecord(
    Record,
    fields="left top right bottom full_x0 full_y0 full_x1 full_y1 path shift_x shift_y "
    "columns count_x rows count_y weights direct",
):
    """How a draw is drawn.

    left to bottom: The pixels that may change. Those of ``full_`` hide everything below; there may
        be none.
    shift: COPY, HALVED: the offset from a pixel (HALVED: twice the pixel) to its texel.
    columns, rows: SCALED: the first words and the taps of its tables; then those of its weights.
    direct: GENERAL: 1 if texels are aligned to pixels, as for COPY.
    """


class JobRecord(
    Record,
    fields="plans plan_capacity pictures picture_capacity tables table_capacity tiles "
    "tile_capacity draws draw_count rects rect_count target target_width target_height background "
    "error error_draw capacity_needed tile_count pixel_count level",
):
    """Addresses and sizes of buffers that are kept between frames, then the inputs of a frame.

    The background is negative for none. The last line has the results of planning: an error code (0
    for none) and its draw, the capacity needed for tables, the numbers of tiles and pixels, and the
    level of the plans.
    """


# Paths. All but GENERAL are for unrotated boxes, mode "over", in sRGB.
NOTHING, COPY, NEAR, SCALED, FLAT, BLURRED, GENERAL, HALVED = 0, 1, 2, 3, 4, 5, 6, 7

# Levels of code. SIMPLE has COPY, FLAT and HALVED; SIZED also NEAR and SCALED.
SIMPLE, SIZED, ANY_DRAW = 0, 1, 2

#: The most rows and columns of a tile.
TILE_ROWS: Final = 16
TILE_COLUMNS: Final = 1024
#: Addresses are relative to this one: an array at address 0 would be a null pointer.
ORIGIN: Final = 4096
