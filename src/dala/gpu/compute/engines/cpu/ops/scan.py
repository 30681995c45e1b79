"""Cumulative sums and histograms on the CPU.

A row is processed a vector at a time: the running sums inside the vector take a few shuffles, and
only the carry depends on the previous vector. Columns are processed side by side. A long axis is
split into pieces: one pass sums each piece, and a second scans each, starting at the sum of those
before it.

In histograms each piece, or job, has its own counters, which are summed at the end. Bytes are
counted by value, and the counts are assigned to bins afterwards. For other dtypes the bin is
estimated, a vector at a time, and then corrected by the bin edges. Of the tiles of a picture, a job
counts some rows of one row of tiles.
"""

from __future__ import annotations

from math import prod

import numpy as np

from dala.gpu.compute.dtypes import NUMPY
from dala.gpu.compute.engines.cpu.loops.axis import SUM, Schedule, part_of, sum_types
from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.ops.reduce import reduce_pieces
from dala.gpu.compute.engines.cpu.ops.shared import *
from dala.gpu.compute.engines.cpu.vector.types import I64, U8, U32, Type

#: Columns of a tile.
TILE: Final = 1024


@native
def as_stored(sums: Vector, carry: Vector, *, narrow: Type, out: Type) -> Vector:
    """Return running sums plus the carry, converted to the output's dtype."""
    if out == U8:
        found = U8(min(sums + narrow(min(carry, 255)), 255))
    else:
        found = out(sums + narrow(carry))
    return found


@native
def scan_parts(
    a: Array[T], before: Array[F], out: Array[S], n: i64, inner: i64, step: i64, length: i64,
    splits: i64, tiles: i64, start: i64, end: i64,
    *, S: type, F: type, narrow: type, lanes: int,  # noqa: N803
    shifts: tuple[tuple[int, ...], ...], rows: bool, tile: int,
) -> None:  # fmt: skip
    """Scan pieces of rows or of tiles of columns, each starting at the sum of those before it."""
    sums = local(F, tile)
    nothing = splat(narrow(0), lanes)
    for job in range(start, end):
        at, column, width, first, last, to = part_of(job, n, inner, step, length, splits, tiles)
        if rows:
            carry = before[job] if splits > 1 else F(0)
            i = at + first
            while i + lanes <= at + last:
                v = narrow(load(a, i, lanes))
                for shift in static(shifts):
                    v = v + shuffle(nothing, v, shift)
                store(out, i, as_stored(v, carry, out=S))
                carry += F(v[lanes - 1])
                i += lanes
            for k in range(i, at + last):
                out[k] = as_stored(narrow(a[k]), carry, out=S)
                carry += F(narrow(a[k]))
        else:
            for c in independent(range(width)):
                sums[c] = before[to + c] if splits > 1 else F(0)
            for k in range(first, last):
                x, y = a[at + k * inner + column :], out[at + k * inner + column :]
                for c in independent(range(width)):
                    total = sums[c] + F(x[c])
                    sums[c] = total
                    y[c] = as_stored(F(0), total, narrow=F, out=S)


@native
def sums_before(sums: Array[F], splits: i64, inner: i64, outer: i64, *, F: type) -> None:  # noqa: N803
    """Replace the sum of each piece by the sum of all pieces before it."""
    for o in range(outer):
        for c in range(inner):
            total = F(0)
            for s in range(splits):
                at = (o * splits + s) * inner + c
                own = sums[at]
                sums[at] = total
                total += own


@implements("cumsum")
def make_cumsum(engine: Engine, task: Task) -> Runner:
    """Return the runner of a cumulative sum; few rows or columns are split into pieces."""
    outer, _, inner = task["layout"]
    t, out = native_type(task.inputs[0].dtype), native_type(task.output.dtype)
    narrow, wide = sum_types(t)
    if not t.floating:
        narrow = U32 if out in (U32, U8) or out.name == "i32" else I64
    lanes = 64 // narrow.size
    shifts = tuple(
        tuple(0 if i < k else lanes + i - k for i in range(lanes))
        for k in (1, 2, 4, 8)
        if k < lanes
    )
    schedule = Schedule.of(task["layout"], TILE)
    go = schedule.compile(scan_parts, T=t, S=out, F=wide, narrow=narrow, lanes=lanes, shifts=shifts)
    splits = schedule.splits
    if splits == 1:
        return array_runner(lambda a, target: go(a, (0, 0), target))
    sums, add = reduce_pieces(SUM, t, wide, schedule), compile_native(sums_before, F=wide)
    dtype = numpy_type(wide)

    def run(a: Memory, target: Memory) -> None:
        before = np.empty(outer * splits * inner, dtype)
        sums(a, before)
        add(before, splits, inner, outer)
        go(a, before, target)

    return array_runner(run)


# histograms -------------------------------------------------------------------------------------
#: Elements whose bins are estimated before they are counted.
BATCH: Final = 512
#: The least elements of a piece.
COUNTED: Final = 1 << 17


@native
def count_bytes(a: Array[u8], counts: Array[u32], length: i64, start: i64, end: i64) -> None:
    """Count pieces of ``length`` bytes; adjacent bytes use different counters, to avoid stalls."""
    own = local(u32, 1024)
    for job in range(start, end):
        for k in independent(range(1024)):
            own[k] = u32(0)
        i = job * length
        last = min(i + length, len(a))
        while i + 4 <= last:
            own[i64(a[i])] += 1
            own[i64(a[i + 1]) + 256] += 1
            own[i64(a[i + 2]) + 512] += 1
            own[i64(a[i + 3]) + 768] += 1
            i += 4
        while i < last:
            own[i64(a[i])] += 1
            i += 1
        here = counts[job * 256 :]
        for k in independent(range(256)):
            here[k] = own[k] + own[k + 256] + own[k + 512] + own[k + 768]


@native
def guess_bin(x: Vector, low: Vector, scale: f64, most: i32, *, kind: int) -> Vector:
    """Estimate the bin of a number; numbers below ``low`` are not counted."""
    if kind == 0:
        g = in_range(i32, min(max((x - low) * f32(scale), 0.0), f32(most)))
    elif kind == 1:
        g = in_range(i32, min(max((x - low) * scale, 0.0), f64(most)))
    else:
        g = in_range(i32, min(f64(u64(i64(x) - i64(low))) * scale, f64(most)))
    return min(g, most)


@native
def count(
    a: Array[T], edges: Array[T], counts: Array[u32], bins: i64, length: i64, scale: f64,
    start: i64, end: i64,
    *, kind: int,
) -> None:  # fmt: skip
    """Count pieces of ``length`` elements into the bins between the edges."""
    at = local(i32, BATCH)
    used = len(edges) - 1
    low = edges[0]
    top = edges[used]
    most = i32(used - 1)
    for job in range(start, end):
        here = counts[job * bins :]
        i = job * length
        last = min(i + length, len(a))
        for batch in range(i, last, BATCH):
            many = min(i64(BATCH), last - batch)
            x = a[batch:]
            for k in independent(range(many)):
                at[k] = guess_bin(x[k], low, scale, most)
            for k in range(many):
                v = x[k]
                if low <= v and v <= top:
                    g = at[k]
                    while v < edges[g]:
                        g -= 1
                    while g < most and v >= edges[g + 1]:
                        g += 1
                    here[g] += 1


@implements("histogram")
def make_histogram(engine: Engine, task: Task) -> Runner:
    """Return the runner of a histogram, with a few pieces per thread."""
    dtype, bins = task.inputs[0].dtype, task["bins"]
    total = prod(task.inputs[0].shape)
    edges = np.frombuffer(task["edges"], NUMPY[dtype]).copy()
    tables = 256 if dtype == "u8" else bins
    pieces = max(1, min(total // max(COUNTED, 8 * tables), 4 * pool().threads))
    length = -(-total // pieces)
    pieces = -(-total // length)
    if dtype == "u8":
        of_bytes = compile_native(count_bytes).parallel(pieces, 1)
        values = np.arange(256)
        inside = values[(values >= edges[0]) & (values <= edges[-1])] if len(edges) > 1 else []
        bin_of = np.searchsorted(edges[:-1], inside, side="right") - 1
    else:
        t = native_type(dtype)
        kind = 2 if not t.floating else 0 if t.size == 4 else 1
        of_others = compile_native(count, T=t, kind=kind).parallel(pieces, 1)
        scale = min(bins / (task["high"] - task["low"]), 3e38)

    def run(a: Memory, target: Memory) -> None:
        out = target.array.view(np.uint32)
        out[...] = 0
        if dtype == "u8":
            counts = np.empty((pieces, 256), np.uint32)
            of_bytes(a, counts, length)
            np.add.at(out, bin_of, counts.sum(axis=0, dtype=np.uint32)[inside])
        elif len(edges) > 1:
            counts = np.zeros((pieces, bins), np.uint32)
            of_others(a, edges, counts, bins, length, scale)
            np.sum(counts, axis=0, dtype=np.uint32, out=out)

    return array_runner(run)


# histograms of tiles ----------------------------------------------------------------------------
#: The fewest pixels of a job.
TILE_PIECE: Final = 1 << 16
#: Counters per level; neighboring pixels use different ones, to avoid stalls.
WAYS: Final = 4


@native
def mirror(i: i64, size: i64) -> i64:
    """Reflect an index into 0 to size - 1, without repeating the border."""
    period = max(2 * size - 2, i64(1))
    at = i % period
    return min(min(at, period - at), size - 1)


@native
def level(x: Vector, *, T: type) -> i64:  # noqa: N803
    """Return the level of a color, 0 to 255."""
    if u8 == T:
        n = i64(x)
    else:
        v = x * f32(255.0) + f32(0.5)
        v = v if v > f32(0.0) else f32(0.0)  # NaN becomes 0
        n = i64(in_range(i32, min(v, f32(255.0))))
    return n


@native
def luma_of(r: Vector, g: Vector, b: Vector) -> Vector:
    """Return the luma of a color, 0 to 255."""
    return (r * 9798 + g * 19235 + b * 3735 + 16384) >> 15


@native
def count_pixel(
    a: Array[T], counts: Array[u32], at: i64, way: i64,
    *, T: type, luma: int, planes: int,  # noqa: N803
) -> None:  # fmt: skip
    """Count the pixel that begins at an index."""
    here = counts[way * planes * 256 :]
    if luma == 1:
        here[luma_of(level(a[at]), level(a[at + 1]), level(a[at + 2]))] += 1
    else:
        for c in static(range(planes)):
            here[level(a[at + c]) + 256 * c] += 1


@native
def count_tiles(
    a: Array[T], counts: Array[u32], height: i64, width: i64, tall: i64, wide: i64, columns: i64,
    parts: i64, start: i64, end: i64, *, T: type, channels: int, luma: int, planes: int,  # noqa: N803
) -> None:  # fmt: skip
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
                    count_pixel(row, here, x * channels, x & (WAYS - 1))
                for x in range(inside, left + wide):
                    count_pixel(row, here, mirror(x, width) * channels, x & (WAYS - 1))


@implements("tile_histogram")
def make_tile_histogram(engine: Engine, task: Task) -> Runner:
    """Return the runner of a tile histogram, with a few jobs per thread."""
    image = task.inputs[0]
    height, width, channels = picture_size(image.shape)
    rows, columns, planes, _ = task.output.shape
    tall, wide = task["size"]
    most = max(1, rows * columns * tall * wide // TILE_PIECE)
    parts = max(1, min(tall, most // rows, -(-4 * pool().threads // rows)))
    code = compile_native(
        count_tiles,
        T=native_type(image.dtype),
        channels=channels,
        luma=int(task["luma"]),
        planes=planes,
    ).parallel(rows * parts, 1)
    shape = (rows, parts, columns, WAYS, planes * 256)

    def run(a: Memory, target: Memory) -> None:
        counts = np.zeros(shape, np.uint32)
        code(a, counts, height, width, tall, wide, columns, parts)
        out = target.array.view(np.uint32).reshape(rows, columns, planes * 256)
        np.sum(counts, axis=(1, 3), dtype=np.uint32, out=out)

    return array_runner(run)
