"""Warp rows: sample at coordinates, with borders.

Samples whose pixels are all inside the picture skip the border code. A pixel of four channels is
one vector.
"""

from __future__ import annotations

from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.ops.resize.byte_rows import store_pixel, store_pixels
from dala.gpu.compute.engines.cpu.ops.warp.bytes import *
from dala.gpu.compute.engines.cpu.ops.warp.coordinates import *
from dala.gpu.compute.engines.cpu.ops.warp.floats import *
from dala.gpu.compute.engines.cpu.ops.warp.groups import *
from dala.gpu.compute.engines.cpu.pixels.gather import bilinear

#: Kinds of warp.
AFFINE, PERSPECTIVE, MAP = 0, 1, 2
#: The most pixels of a row that a batch reads, if rows are mixed first.
SPAN: Final = 2 * BATCH
#: How many rows of the output ahead pixels are prefetched: a rotated row reads a few pixels of each
#: of many rows of the input, which CPUs do not foresee.
AHEAD: Final = 6
#: The most pixels of a picture whose places are 32-bit numbers.
MAX_PIXELS: Final = (1 << 31) - 1


@native
def copy_nearest(
    source: Array[T], of: Batch, fill: Array[T], out: Array[T], count: i64,
    *, S: type, channels: int, border: int,  # noqa: N803
) -> None:  # fmt: skip
    """Copy the nearest pixels of a batch."""
    width, height = of.width, of.height
    half = static(16384 if i32 == S else 0.5)
    if channels == 1:
        for i in independent(range(count)):
            x = i64(of.whole_x[i]) + select(of.part_x[i] >= half, 1, 0)
            y = i64(of.whole_y[i]) + select(of.part_y[i] >= half, 1, 0)
            value = source[fold(y, height) * width + fold(x, width)]
            if border == CONSTANT:
                inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
                value = select(inside, value, fill[0])
            out[i] = value
    else:
        for i in hinted(range(count), scalar=True):
            x = i64(of.whole_x[i]) + select(of.part_x[i] >= half, 1, 0)
            y = i64(of.whole_y[i]) + select(of.part_y[i] >= half, 1, 0)
            at = (fold(y, height) * width + fold(x, width)) * channels
            outside = x < 0 or x >= width or y < 0 or y >= height
            beyond = border == CONSTANT and outside
            if channels == 4:
                store(out, i * 4, load(fill, 0, 4) if beyond else load(source, at, 4))
            else:
                for c in static(range(3)):
                    out[i * 3 + c] = fill[c] if beyond else source[at + c]


@native
def mixable(of: Batch, count: i64) -> Vector:
    """Return whether a level batch is inside the picture, and reads a short part of two rows.

    Positions of an affine warp rise or fall along a row.
    """
    low = i64(min(of.whole_x[0], of.whole_x[count - 1]))
    high = i64(max(of.whole_x[0], of.whole_x[count - 1]))
    y = i64(of.whole_y[0])
    return low >= 0 and high < of.width - 1 and high - low < SPAN and y >= 0 and y < of.height - 1


@native
def prefetch_rows(source: Array[T], of: Batch, count: i64, *, T: type, channels: int) -> None:  # noqa: N803
    """Prefetch the rows below those of a batch that is rotated a little.

    It reads a few pixels of each of many rows, which CPUs do not foresee. The upper rows were read
    for the row of the output above. Steeper batches read lines of memory that earlier rows of the
    output have read, except for few.
    """
    rows = i64(abs(of.whole_y[count - 1] - of.whole_y[0]))
    if rows >= 4 and rows * 4 <= count:
        # Twice for each row and four times for each line of memory, wherever they begin.
        line = static((64 if u8 == T else 16) // channels)
        step = max(min(count // (rows + 1) // 2, line // 4), 1)
        for i in range(0, count, step):
            x = min(max(i64(of.whole_x[i]), 0), of.width - 1)
            y = min(max(i64(of.whole_y[i]) + 1, 0), of.height - 1)
            prefetch(source, (y * of.width + x) * channels)


@native
def sample_groups(
    source: Array[T], of: Batch, fill: Vector, filled: Array[T], out: Array[T], count: i64,
    later: i64,
    *, T: type, channels: int, method: int, border: int, foreseen: bool, anywhere: NativeFunction,  # noqa: N803
) -> None:  # fmt: skip
    """Sample a batch bilinearly; groups that cross the border, pixel by pixel.

    ``later``: if it can be ``foreseen``, how many pixels further the row of the output reads whose
    pixels are to be prefetched.
    """
    at, pitch = local(i32, BATCH), of.width * channels
    places(of, at, count)
    # Eight bytes are loaded for two pixels of three.
    pixels = static(3 if u8 == T and channels == 3 else 2)
    k = 0
    while k < count:
        end = min(k + GROUP, count)
        whole = end - k == GROUP
        if whole and group_inside(of, k, pixels=pixels):
            for j in static(range(GROUP if foreseen else 0)):
                prefetch(source, (i64(at[k + j]) + later) * channels)
            if channels == 1:
                store(out, k, sample_gray_group(source, at, of.part_x, of.part_y, k, pitch))
            elif u8 == T:
                found = sample_byte_group(source, at, of.part_x, of.part_y, k, pitch)
                store_pixels(out, k * channels, found, GROUP)
            else:
                for i in range(k, end):
                    first = i64(at[i]) * channels
                    v = bilinear(source, first, pitch, of.part_x[i], of.part_y[i])
                    store_pixel(out, i * channels, v)
        elif border == CONSTANT and whole and group_outside(of, k):
            store(out, k * channels, load(filled, 0, static(GROUP * channels)))
        else:
            anywhere(source, of, fill, out, k, end)
        k = end


@native
def sample_level(
    source: Array[u8], of: Batch, out: Array[u8], count: i64, *, channels: int
) -> None:
    """Sample a batch whose pixels are all between the same two rows: these are mixed first."""
    left = i64(min(of.whole_x[0], of.whole_x[count - 1]))
    wide = i64(max(of.whole_x[0], of.whole_x[count - 1])) - left + 2
    at, pitch = (i64(of.whole_y[0]) * of.width + left) * channels, of.width * channels
    mixed = local(i16, (SPAN + 2) * 4 + 64)
    mix_byte_rows(source, at, pitch, of.part_y[0], mixed, wide * channels)
    sample_bytes_across(mixed, left, of.whole_x, of.part_x, out, count)


@native
def warp(
    source: Array[T], table: Array[u32], matrix: Array[f64], fill: Array[S], out: Array[T],
    width: i64, height: i64, out_width: i64, out_height: i64, start: i64, end: i64,
    *, T: type, S: type, channels: int, method: int, border: int, kind: int,  # noqa: N803
    rounding: int, anywhere: NativeFunction,
) -> None:  # fmt: skip
    """Warp rows [start, end) of the output, a batch of pixels at a time.

    ``S`` is f32, or i32 for bytes. ``matrix`` has the matrix; behind it, for a perspective, the
    upper and the lower parts of its integers. ``anywhere`` samples at any position.
    """
    beyond = fill[0] if channels == 1 else load(fill, 0, 4)
    given, entries = view(table, f32), out_width + out_height
    whole_x, part_x = local(i32, BATCH), local(S, BATCH)
    whole_y, part_y = local(i32, BATCH), local(S, BATCH)
    of = Batch(whole_x, part_x, whole_y, part_y, width, height)
    filled = local(T, GROUP * channels)
    level = static(kind == AFFINE and method == BILINEAR and channels > 1 and u8 == T)
    for k in static(range(GROUP)):
        for c in static(range(channels)):
            filled[k * channels + c] = T(fill[c])
    for y in range(start, end):
        for begin in range(0, out_width, BATCH):
            count = min(BATCH, out_width - begin)
            first = y * out_width + begin
            to = out[first * channels :]
            if kind == AFFINE:
                row = out_width + y
                affine(table, table[entries:], begin, row, whole_x, part_x, count)
                upper, lower = table[2 * entries :], table[3 * entries :]
                affine(upper, lower, begin, row, whole_y, part_y, count)
            elif kind == MAP:
                mapped(given[first * 2 :], whole_x, part_x, count)
                mapped(given[first * 2 + 1 :], whole_y, part_y, count)
            else:
                perspective(
                    matrix[9:], matrix[18:], begin, f64(y), whole_x, part_x, whole_y, part_y, count
                )
            if method == BILINEAR and kind == MAP:
                prefetch_rows(source, of, count)
            if method == NEAREST and u8 == T and channels == 4:
                words, to_words = view(source, u32), view(to, u32)
                copy_nearest(words, of, view(filled, u32), to_words, count, channels=1)
            elif method == NEAREST:
                copy_nearest(source, of, filled, to, count)
            elif level and matrix[3] == 0.0 and mixable(of, count):
                sample_level(source, of, to, count)
            elif method == BILINEAR and width * height <= MAX_PIXELS:
                later = 0
                if kind == AFFINE:
                    later = distance(f64(AHEAD) * matrix[1], f64(AHEAD) * matrix[4], width, height)
                elif kind == PERSPECTIVE:
                    x, down = f64(begin + count // 2), f64(y + AHEAD)
                    across = perspective_near(matrix, 0, x, down) - f64(whole_x[count // 2])
                    down = perspective_near(matrix, 1, x, down) - f64(whole_y[count // 2])
                    later = distance(across, down, width, height)
                sample_groups(source, of, beyond, filled, to, count, later, foreseen=kind != MAP)
            else:
                anywhere(source, of, beyond, to, 0, count)
