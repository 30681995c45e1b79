"""Crop, pad and flip on the CPU: rows are copied, columns beyond the picture come from a table."""

from __future__ import annotations

import numpy as np

from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.ops.shared import *
from dala.gpu.compute.engines.cpu.vector.types import U8, U32

#: Five pixels of three bytes in reverse order, and a byte that the next store overwrites.
REVERSED: Final = (12, 13, 14, 9, 10, 11, 6, 7, 8, 3, 4, 5, 0, 1, 2, 15)
#: The least output bytes of a tile.
TILE: Final = 1 << 16


@native
def copy_pixels(
    src: Array[T], out: Array[T], columns: Array[i64], fill: Array[T], start: i64, end: i64,
    *, channels: int,
) -> None:  # fmt: skip
    """Copy single pixels of a row by a table of columns; -1 is the fill color."""
    for x in range(start, end):
        at = columns[x]
        for c in static(range(channels)):
            out[x * channels + c] = fill[c] if at < 0 else src[at * channels + c]


@native
def copy_reversed(src: Array[T], out: Array[T], *, T: type, channels: int) -> None:  # noqa: N803
    """Copy pixels in reverse order."""
    count, k = len(out) // channels, i64(0)
    if u8 == T and channels == 3:
        while k + 6 <= count:  # the store writes a byte of the sixth pixel
            at = (count - k - 5) * 3
            found = load(src, at, 16) if at + 16 <= len(src) else load(src, at, 16, 15)
            store(out, k * 3, shuffle(found, found, REVERSED))
            k += 5
    for i in independent(range(k, count)):
        for c in static(range(channels)):
            out[i * channels + c] = src[(count - 1 - i) * channels + c]


@native
def place_rows(
    src: Array[T], out: Array[T], rows: Array[i64], columns: Array[i64], fill: Array[T],
    wide: i64, width: i64, first: i64, last: i64, start: i64, end: i64,
    *, channels: int, turned: bool,
) -> None:  # fmt: skip
    """Write output rows; columns ``first`` to ``last`` are a run of the source's."""
    for y in range(start, end):
        row = out[y * width * channels : (y + 1) * width * channels]
        at = rows[y]
        if at < 0:
            for x in range(width):
                for c in static(range(channels)):
                    row[x * channels + c] = fill[c]
        else:
            line = src[at * wide * channels : (at + 1) * wide * channels]
            copy_pixels(line, row, columns, fill, 0, first)
            if last > first:
                inner = row[first * channels : last * channels]
                if turned:
                    low = columns[last - 1]
                    copy_reversed(line[low * channels :], inner)
                else:
                    begin = columns[first] * channels
                    for k in independent(range((last - first) * channels)):
                        inner[k] = line[begin + k]
            copy_pixels(line, row, columns, fill, last, width)


def indexes(first: int, step: int, count: int, size: int, border: str) -> NDArray:
    """Return the source position of each output position; -1 for the fill color."""
    at = first + step * np.arange(count, dtype=np.int64)
    if border == "wrap":
        return at % size
    if border == "reflect":
        period = max(2 * size - 2, 1)
        at = at % period
        return np.minimum(at, period - at) if size > 1 else at * 0
    if border == "constant":
        return np.where((at < 0) | (at >= size), -1, at)
    return np.clip(at, 0, size - 1)


def run_of(first: int, step: int, count: int, size: int) -> tuple[int, int]:
    """Return the output positions that are inside the source before the border applies."""
    if step > 0:
        low, high = -first, size - first
    else:
        low, high = first - size + 1, first + 1
    low = min(max(low, 0), count)
    return low, min(max(high, low), count)


def place_runner(engine: Engine, task: Task) -> Runner:
    """Return the runner of a crop, pad or flip."""
    wide, high = task.inputs[0].shape[1::-1]
    height, width, channels = picture_size(task.output.shape)
    (top, left), (down, across), border = task["first"], task["step"], task["border"]
    kind = native_type(task.output.dtype)
    rows, columns = (
        indexes(top, down, height, high, border),
        indexes(left, across, width, wide, border),
    )
    fill = np.array(task["fill"]).astype(numpy_type(kind))
    if kind == U8 and channels == 4:  # words are faster to reverse
        kind, channels, fill = U32, 1, fill.view(np.uint32)
    row_bytes = max(1, width * channels * kind.size)
    code = compile_native(place_rows, T=kind, channels=channels, turned=across < 0)
    run_rows = code.parallel(height, share(height, least=-(-TILE // row_bytes)))
    inside = run_of(left, across, width, wide)
    return array_runner(run_rows, rows, columns, fill, wide, width, *inside)


implements("place")(place_runner)
