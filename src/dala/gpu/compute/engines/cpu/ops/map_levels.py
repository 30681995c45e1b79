"""Map the levels of u8 pictures through tables of tiles, on the CPU.

For each row the tables of two rows of tiles are interpolated once. Between the centers of two tiles
a pixel then reads two tables. f32 pictures are lowered to the kernel language.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from dala.gpu.compute.engines.base import Runner, Storage, Task, Values
from dala.gpu.compute.engines.cpu.native import compile_native, native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    f32,
    floor,
    hinted,
    i32,
    i64,
    in_range,
    independent,
    load,
    look_up,
    store,
    u8,
)
from dala.gpu.compute.engines.cpu.ops import implements
from dala.gpu.compute.engines.cpu.ops.shared import memories
from dala.gpu.compute.engines.cpu.threads import pool

if TYPE_CHECKING:
    from dala.gpu.compute.engines.cpu.engine import CPUEngine

#: The fewest pixels of a job.
PIECE: Final = 1 << 15


@native
def stored(v: f32) -> u8:
    """Round a level to a byte."""
    return u8(in_range(i32, min(max(v + f32(0.5), f32(0.0)), f32(255.0))))


@native
def map_pixel(
    a: Array[u8], out: Array[u8], at: i64, near: Array[f32], far: Array[f32], share: f32,
    *, channels: int, luma: int, planes: int,
) -> None:  # fmt: skip
    """Map the pixel at an index: ``share`` of the far table, the rest of the near one."""
    if luma == 1:
        r = i64(a[at])
        g = i64(a[at + 1])
        b = i64(a[at + 2])
        y = (r * 9798 + g * 19235 + b * 3735 + 16384) >> 15
        change = near[y] + (far[y] - near[y]) * share - f32(y)
        out[at] = stored(f32(r) + change)
        out[at + 1] = stored(f32(g) + change)
        out[at + 2] = stored(f32(b) + change)
    else:
        r = i64(a[at])
        out[at] = stored(near[r] + (far[r] - near[r]) * share)
        if channels > 1:
            g = i64(a[at + 1]) + (256 if planes == 3 else 0)
            b = i64(a[at + 2]) + (512 if planes == 3 else 0)
            out[at + 1] = stored(near[g] + (far[g] - near[g]) * share)
            out[at + 2] = stored(near[b] + (far[b] - near[b]) * share)
    if channels == 4:
        out[at + 3] = a[at + 3]


@native
def map_rows(
    a: Array[u8], tables: Array[f32], out: Array[u8], lines: Array[f32], height: i64, width: i64,
    tall: i64, wide: i64, rows: i64, columns: i64, jobs: i64, start: i64, end: i64,
    *, channels: int, luma: int, planes: int,
) -> None:  # fmt: skip
    """Map jobs of rows; each has memory of its own for the tables of one row."""
    size = i64(planes * 256)
    for job in range(start, end):
        line = lines[job * columns * size : (job + 1) * columns * size]
        for y in range(height * job // jobs, height * (job + 1) // jobs):
            v = f32(y) / f32(tall) - f32(0.5)
            lower = floor(v)
            t = v - lower
            i = i64(in_range(i32, lower))
            top = tables[max(min(i, rows - 1), i64(0)) * columns * size :]
            low = tables[max(min(i + 1, rows - 1), i64(0)) * columns * size :]
            for k in independent(range(columns * size)):
                line[k] = top[k] * (f32(1.0) - t) + low[k] * t
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
                    share = f32(x) / f32(wide) - f32(0.5) - f32(j)
                    map_pixel(
                        here, made, x * channels, near, far, share,
                        channels=channels, luma=luma, planes=planes,
                    )  # fmt: skip


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
                r = i64(a[i])
                g = i64(a[i + 1])
                b = i64(a[i + 2])
                y = (r * 9798 + g * 19235 + b * 3735 + 16384) >> 15
                change = i64(table[y]) - y
                out[i] = u8(min(max(r + change, i64(0)), i64(255)))
                out[i + 1] = u8(min(max(g + change, i64(0)), i64(255)))
                out[i + 2] = u8(min(max(b + change, i64(0)), i64(255)))
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
                made[k * channels] = table[i64(here[k * channels])]
                if channels > 1:
                    made[k * channels + 1] = table[i64(here[k * channels + 1]) + 256]
                    made[k * channels + 2] = table[i64(here[k * channels + 2]) + 512]
                if channels == 4:
                    made[k * channels + 3] = here[k * channels + 3]


@implements("map_levels")
def make_map_levels(engine: CPUEngine, task: Task) -> Runner | None:
    """Return the runner for a u8 picture, with a few jobs per thread; None for f32."""
    image, given = task.inputs
    if image.dtype != "u8":
        return None
    height, width = image.shape[:2]
    channels = image.shape[2] if len(image.shape) == 3 else 1
    rows, columns, planes, _ = given.shape
    tall, wide = task["size"]
    jobs = max(1, min(height, height * width // PIECE, 4 * pool().threads))
    luma = int(task["luma"])
    single = rows * columns == 1
    by_table = compile_native(
        map_bytes, channels=channels, luma=luma, lookup=int(bool(engine.machine.lookup))
    ).parallel(jobs, 1)
    code = compile_native(map_rows, channels=channels, luma=luma, planes=planes).parallel(jobs, 1)

    def run(inputs: Sequence[Storage], output: Storage, params: Values) -> None:
        (a, tables), target = memories(inputs, output)
        numbers = tables.array.view(np.float32)
        if single and np.array_equal(numbers, np.clip(np.floor(numbers), 0, 255)):
            bytes_ = numbers.astype(np.uint8).reshape(planes, 256)
            if planes == 1 and channels > 1 and not luma:
                bytes_ = np.repeat(bytes_, 3, axis=0)
            by_table(a, np.ascontiguousarray(bytes_), target, width, height, jobs)
            return
        lines = np.empty((jobs, columns * planes * 256), np.float32)
        code(a, tables, target, lines, height, width, tall, wide, rows, columns, jobs)

    return run
