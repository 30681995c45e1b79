"""Where things lie in what native compositing reads: draws, plans, pictures."""

from __future__ import annotations

from typing import Final

# Words of 32 bits of a draw, as ``composing.DRAW`` lays them out.
KIND, BLEND, FLAGS, PICTURE_NUMBER = 0, 1, 2, 3
X0, Y0, X1, Y1 = 4, 5, 6, 7
CX, CY, COS, SIN = 8, 9, 10, 11
HW, HH, RADIUS, WIDTH = 12, 13, 14, 15
SX, SY, OX, OY = 16, 17, 18, 19
U0, V0, U1, V1 = 20, 21, 22, 23
TAPS_X, TAPS_Y = 24, 25
COLOR, OPACITY = 26, 27
DRAW_WORDS: Final = 32

# Words of 64 bits of a picture in the table of pictures: where its pixels are, size, bytes a pixel.
ADDRESS, PICTURE_WIDTH, PICTURE_HEIGHT, CHANNELS = 0, 1, 2, 3
PICTURE_WORDS: Final = 4

# Words of 64 bits of a draw's plan.
LEFT, TOP, RIGHT, BOTTOM = 0, 1, 2, 3  # what may change, clipped to the target; end excluded
FULL_X0, FULL_Y0, FULL_X1, FULL_Y1 = 4, 5, 6, 7  # nothing below shows inside; empty if nowhere
PATH: Final = 8
SHIFT_X, SHIFT_Y = 9, 10  # COPY, HALVED: what is added to a pixel's place (twice) for its texel's
COLUMNS, COUNT_X = 11, 12  # SCALED: where its tables of columns and rows begin, their taps
ROWS, COUNT_Y = 13, 14
WEIGHTS: Final = 15  # SCALED: weights of columns for the fixed path, or below 0
DIRECT: Final = 16  # GENERAL: 1 where texels lie on pixels, as for COPY
PLAN_WORDS: Final = 20

# Words of 64 bits of a job: rooms that stay from frame to frame, where they are and their words;
# draws and rectangles, where they are and how many; the target and what it is filled with, or below
# 0.
PLANS, PLAN_ROOM, PICTURES, PICTURE_ROOM, TABLES, TABLE_ROOM, TILES, TILE_ROOM = range(8)
DRAWS, DRAW_COUNT, RECTS, RECT_COUNT = 8, 9, 10, 11
TARGET, TARGET_WIDTH, TARGET_HEIGHT, BACKGROUND = 12, 13, 14, 15
# And what planning it told: what is wrong (or 0) with which draw, the room that tables need, how
# many tiles and pixels there are, and of which level the plans are.
WRONG, WRONG_DRAW, ROOM_NEEDED, TILE_COUNT, PIXEL_COUNT, LEVEL = 16, 17, 18, 19, 20, 21
JOB_WORDS: Final = 22

# Paths. All but GENERAL are for boxes that are not turned, mode "over", in sRGB.
NOTHING, COPY, NEAR, SCALED, FLAT, HALO, GENERAL, HALVED = 0, 1, 2, 3, 4, 5, 6, 7

# Levels of code for tiles. SIMPLE draws by COPY, FLAT and HALVED, SIZED also by NEAR and SCALED.
SIMPLE, SIZED, ANYTHING = 0, 1, 2

#: Pixels of a tile at most, down and across.
TILE_ROWS: Final = 16
TILE_COLUMNS: Final = 1024
#: Added to addresses: the memory that pictures are found in begins here.
ORIGIN: Final = 4096
