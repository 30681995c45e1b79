"""Map the levels of u8 pictures through tables of tiles, on the CPU.

For each row the tables of two rows of tiles are interpolated once. Between the centers of two tiles
a pixel then reads two tables. f32 pictures are lowered to the kernel language.
"""

from __future__ import annotations

import numpy as np

from dala.gpu.compute.engines.cpu.jit import jit
from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.ops.scan import luma_of
from dala.gpu.compute.engines.cpu.ops.shared import *
from dala.gpu.compute.engines.sampling.levels import tile_shares, whole_levels

#: The fewest pixels of a job.
PIECE: Final = 1 << 15


@native
def mixed(a: i32, b: i32, share: i32) -> i32:
    """Return the mean of two levels, with a share of the second."""
    return a + (((b - a) * share + 16384) >> 15)


@native
def stored(v: i32) -> u8:
    """Round a level with 7 bits of fraction to a byte."""
    return u8(min(max((v + 64) >> 7, i32(0)), i32(255)))


@native
def map_pixel(
    a: Array[u8], out: Array[u8], at: i64, near: Array[i32], far: Array[i32], share: i32,
    *, channels: int, luma: int, planes: int,
) -> None:  # fmt: skip
    """Map the pixel at an index: ``share`` of the far table, the rest of the near one."""
    if luma == 1:
        y = luma_of(i32(a[at]), i32(a[at + 1]), i32(a[at + 2]))
        change = mixed(near[y], far[y], share) - (y << 7)
        for c in static(range(3)):
            out[at + c] = stored((i32(a[at + c]) << 7) + change)
    else:
        for c in static(range(min(channels, 3))):
            v = i64(a[at + c]) + static(256 * c if planes == 3 else 0)
            out[at + c] = stored(mixed(near[v], far[v], share))
    if channels == 4:
        out[at + 3] = a[at + 3]


@native
def map_rows(
    a: Array[u8], tables: Array[i32], out: Array[u8], lines: Array[i32], tiles_y: Array[i32],
    shares_y: Array[i32], shares_x: Array[i32], height: i64, width: i64, wide: i64, rows: i64,
    columns: i64, jobs: i64, start: i64, end: i64, *, channels: int, luma: int, planes: int,
) -> None:  # fmt: skip
    """Map jobs of rows; each has memory of its own for the tables of one row."""
    size = i64(planes * 256)
    for job in range(start, end):
        line = lines[job * columns * size : (job + 1) * columns * size]
        for y in range(height * job // jobs, height * (job + 1) // jobs):
            i, t = i64(tiles_y[y]), shares_y[y]
            top = tables[max(min(i, rows - 1), i64(0)) * columns * size :]
            low = tables[max(min(i + 1, rows - 1), i64(0)) * columns * size :]
            for k in independent(range(columns * size)):
                line[k] = mixed(top[k], low[k], t)
            begin = y * width * channels
            here = a[begin : begin + width * channels]
            made = out[begin : begin + width * channels]
            for j in range(-1, columns):
                # The pixels right of the center of tile j, up to the center of the next.
                first = max((2 * j * wide + wide + 1) // 2, i64(0))
                last = min((2 * j * wide + 3 * wide + 1) // 2, width)
                if j == columns - 1:
                    last = width
                near = line[max(j, i64(0)) * size :]
                far = line[min(j + 1, columns - 1) * size :]
                for x in range(first, last):
                    map_pixel(here, made, x * channels, near, far, shares_x[x])


@native
def map_bytes(
    a: Array[u8], table: Array[u8], out: Array[u8], width: i64, height: i64, jobs: i64,
    start: i64, end: i64, *, channels: int, luma: int, lookup: int,
) -> None:  # fmt: skip
    """Map jobs of rows through one table of bytes per channel."""
    for job in range(start, end):
        i = height * job // jobs * width * channels
        last = height * (job + 1) // jobs * width * channels
        if luma == 1:
            while i < last:
                y = luma_of(i64(a[i]), i64(a[i + 1]), i64(a[i + 2]))
                change = i64(table[y]) - y
                for c in static(range(3)):
                    out[i + c] = u8(min(max(i64(a[i + c]) + change, i64(0)), i64(255)))
                if channels == 4:
                    out[i + 3] = a[i + 3]
                i += channels
        else:
            here = a[i:last]
            made = out[i:last]
            if channels == 1 and lookup == 1:
                p, q = load(table, 0, 64), load(table, 64, 64)
                r, s = load(table, 128, 64), load(table, 192, 64)
                whole = (last - i) // 64 * 64
                for k in hinted(range(0, whole, 64), scalar=True):
                    store(made, k, look_up(p, q, r, s, load(here, k, 64)))
                here, made = here[whole:], made[whole:]
                i += whole
            for k in independent(range((last - i) // channels)):
                for c in static(range(min(channels, 3))):
                    made[k * channels + c] = table[i64(here[k * channels + c]) + 256 * c]
                if channels == 4:
                    made[k * channels + 3] = here[k * channels + 3]


@implements("map_levels")
def make_map_levels(engine: Engine, task: Task) -> Runner | None:
    """Return the runner for a u8 picture, with a few jobs per thread; None for f32."""
    image, given = task.inputs
    if image.dtype != "u8":
        return None
    height, width, channels = picture_size(image.shape)
    rows, columns, planes, _ = given.shape
    (tiles_y, shares_y), (_, shares_x) = tile_shares(image.shape, task["size"])
    wide = task["size"][1]
    jobs = max(1, min(height, height * width // PIECE, 4 * pool().threads))
    luma = int(task["luma"])
    single = rows * columns == 1
    by_table = compile_native(
        map_bytes, channels=channels, luma=luma, lookup=int(bool(jit().machine.lookup))
    ).parallel(jobs, 1)
    code = compile_native(map_rows, channels=channels, luma=luma, planes=planes).parallel(jobs, 1)

    def run(a: Memory, tables: Memory, target: Memory) -> None:
        numbers = tables.array.view(np.float32)
        if single and np.array_equal(numbers, np.clip(np.floor(numbers), 0, 255)):
            bytes_ = numbers.astype(np.uint8).reshape(planes, 256)
            if planes == 1 and channels > 1 and not luma:
                bytes_ = np.repeat(bytes_, 3, axis=0)
            by_table(a, np.ascontiguousarray(bytes_), target, width, height, jobs)
            return
        lines = np.empty((jobs, columns * planes * 256), np.int32)
        code(
            a, whole_levels(numbers), target, lines, tiles_y, shares_y, shares_x, height, width,
            wide, rows, columns, jobs,
        )  # fmt: skip

    return array_runner(run)
