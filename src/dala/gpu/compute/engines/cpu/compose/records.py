"""Word offsets in the records that native compositing reads: draws, pictures, plans, jobs."""

from __future__ import annotations

from typing import Final

# 32-bit words of a draw; see ``compositing.DRAW``.
KIND, BLEND, FLAGS, PICTURE_NUMBER = 0, 1, 2, 3
X0, Y0, X1, Y1 = 4, 5, 6, 7
CX, CY, COS, SIN = 8, 9, 10, 11
HW, HH, RADIUS, WIDTH = 12, 13, 14, 15
SX, SY, OX, OY = 16, 17, 18, 19
U0, V0, U1, V1 = 20, 21, 22, 23
TAPS_X, TAPS_Y = 24, 25
COLOR, OPACITY = 26, 27
DRAW_WORDS: Final = 32

# 64-bit words of a picture: the address of its pixels, its size, bytes per pixel.
ADDRESS, PICTURE_WIDTH, PICTURE_HEIGHT, CHANNELS = 0, 1, 2, 3
PICTURE_WORDS: Final = 4

# 64-bit words of a plan.
LEFT, TOP, RIGHT, BOTTOM = 0, 1, 2, 3  # pixels that may change
FULL_X0, FULL_Y0, FULL_X1, FULL_Y1 = 4, 5, 6, 7  # pixels that hide everything below; may be empty
PATH: Final = 8
SHIFT_X, SHIFT_Y = 9, 10  # COPY, HALVED: offset from pixel (HALVED: twice the pixel) to texel
COLUMNS, COUNT_X = 11, 12  # SCALED: first word and taps of its column and row tables
ROWS, COUNT_Y = 13, 14
WEIGHTS: Final = 15  # SCALED: first word of fixed-point weights; negative for none
DIRECT: Final = 16  # GENERAL: 1 if texels are aligned to pixels, as for COPY
PLAN_WORDS: Final = 20

# 64-bit words of a job: addresses and sizes of buffers that are kept between frames; addresses and
# counts of draws and rectangles; the target, and its background color (negative for none).
PLANS, PLAN_CAPACITY, PICTURES, PICTURE_CAPACITY, TABLES, TABLE_CAPACITY, TILES, TILE_CAPACITY = (
    range(8)
)
DRAWS, DRAW_COUNT, RECTS, RECT_COUNT = 8, 9, 10, 11
TARGET, TARGET_WIDTH, TARGET_HEIGHT, BACKGROUND = 12, 13, 14, 15
# Results of planning: an error code (0 for none) and its draw, the capacity needed for tables, the
# numbers of tiles and pixels, and the level of the plans.
ERROR, ERROR_DRAW, CAPACITY_NEEDED, TILE_COUNT, PIXEL_COUNT, LEVEL = 16, 17, 18, 19, 20, 21
JOB_WORDS: Final = 22

# Paths. All but GENERAL are for unrotated boxes, mode "over", in sRGB.
NOTHING, COPY, NEAR, SCALED, FLAT, BLURRED, GENERAL, HALVED = 0, 1, 2, 3, 4, 5, 6, 7

# Levels of code. SIMPLE has COPY, FLAT and HALVED; SIZED also NEAR and SCALED.
SIMPLE, SIZED, ANY_DRAW = 0, 1, 2

#: The most rows and columns of a tile.
TILE_ROWS: Final = 16
TILE_COLUMNS: Final = 1024
#: Addresses are relative to this one: an array at address 0 would be a null pointer.
ORIGIN: Final = 4096
