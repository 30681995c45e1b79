"""Histograms of the tiles of a picture on the CPU.

A job counts some rows of one row of tiles in counters of its own, which are summed at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from dala.gpu.compute.engines.base import Engine, Runner, Storage, Task, Values
from dala.gpu.compute.engines.cpu.native import compile_native, native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    T,
    Vector,
    f32,
    i32,
    i64,
    in_range,
    u32,
)
from dala.gpu.compute.engines.cpu.ops import implements
from dala.gpu.compute.engines.cpu.ops.shared import memories, native_type
from dala.gpu.compute.engines.cpu.threads import pool

#: The fewest pixels of a job.
PIECE: Final = 1 << 16
#: Counters per level; neighboring pixels use different ones, to avoid stalls.
WAYS: Final = 4


@native
def mirror(i: i64, size: i64) -> i64:
    """Reflect an index into 0 to size - 1, without repeating the border."""
    period = max(2 * size - 2, i64(1))
    at = i % period
    return min(min(at, period - at), size - 1)


@native
def level(x: Vector, *, bytes: int) -> i64:
    """Return the level of a color, 0 to 255."""
    if bytes == 1:
        n = i64(x)
    else:
        v = x * f32(255.0) + f32(0.5)
        v = v if v > f32(0.0) else f32(0.0)  # NaN becomes 0
        n = i64(in_range(i32, min(v, f32(255.0))))
    return n


@native
def count_pixel(
    a: Array[T],
    counts: Array[u32],
    at: i64,
    way: i64,
    *,
    T: type,  # noqa: N803
    bytes: int,
    luma: int,
    planes: int,
) -> None:
    """Count the pixel that begins at an index."""
    here = counts[way * planes * 256 :]
    if luma == 1:
        r = level(a[at], bytes=bytes)
        g = level(a[at + 1], bytes=bytes)
        b = level(a[at + 2], bytes=bytes)
        here[(r * 9798 + g * 19235 + b * 3735 + 16384) >> 15] += 1
    else:
        here[level(a[at], bytes=bytes)] += 1
        if planes == 3:
            here[level(a[at + 1], bytes=bytes) + 256] += 1
            here[level(a[at + 2], bytes=bytes) + 512] += 1


@native
def count_tiles(
    a: Array[T],
    counts: Array[u32],
    height: i64,
    width: i64,
    tall: i64,
    wide: i64,
    columns: i64,
    parts: i64,
    start: i64,
    end: i64,
    *,
    T: type,  # noqa: N803
    bytes: int,
    channels: int,
    luma: int,
    planes: int,
) -> None:
    """Count jobs; job n is part ``n % parts`` of the row of tiles ``n // parts``."""
    size = i64(planes * 256 * WAYS)
    for job in range(start, end):
        top = job // parts * tall
        first = top + tall * (job % parts) // parts
        last = top + tall * (job % parts + 1) // parts
        for y in range(first, last):
            row = a[mirror(y, height) * width * channels :]
            for column in range(columns):
                here = counts[(job * columns + column) * size :]
                left = column * wide
                inside = min(max(left, width), left + wide)
                for x in range(left, inside):
                    count_pixel(
                        row,
                        here,
                        x * channels,
                        x & (WAYS - 1),
                        bytes=bytes,
                        luma=luma,
                        planes=planes,
                    )
                for x in range(inside, left + wide):
                    count_pixel(
                        row,
                        here,
                        mirror(x, width) * channels,
                        x & (WAYS - 1),
                        bytes=bytes,
                        luma=luma,
                        planes=planes,
                    )


@implements("tile_histogram")
def make_tile_histogram(engine: Engine, task: Task) -> Runner:
    """Return the runner of a tile histogram, with a few jobs per thread."""
    image = task.inputs[0]
    height, width = image.shape[:2]
    channels = image.shape[2] if len(image.shape) == 3 else 1
    rows, columns, planes, _ = task.output.shape
    tall, wide = task["size"]
    most = max(1, rows * columns * tall * wide // PIECE)
    parts = max(1, min(tall, most // rows, -(-4 * pool().threads // rows)))
    code = compile_native(
        count_tiles,
        T=native_type(image.dtype),
        bytes=1 if image.dtype == "u8" else 4,
        channels=channels,
        luma=int(task["luma"]),
        planes=planes,
    ).parallel(rows * parts, 1)
    shape = (rows, parts, columns, WAYS, planes * 256)

    def run(inputs: Sequence[Storage], output: Storage, params: Values) -> None:
        (a,), target = memories(inputs, output)
        counts = np.zeros(shape, np.uint32)
        code(a, counts, height, width, tall, wide, columns, parts)
        out = target.array.view(np.uint32).reshape(rows, columns, planes * 256)
        np.sum(counts, axis=(1, 3), dtype=np.uint32, out=out)

    return run
