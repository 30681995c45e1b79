"""Crop, pad and flip on the CPU: rows are copied, columns beyond the picture come from a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from dala.gpu.compute.engines.base import Engine, Runner, Storage, Task, Values
from dala.gpu.compute.engines.cpu.memory import Memory
from dala.gpu.compute.engines.cpu.native import compile_native, native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    T,
    Vector,
    f32,
    i64,
    independent,
    load,
    shuffle,
    static,
    store,
    u8,
    u32,
    view,
)
from dala.gpu.compute.engines.cpu.ops import implements
from dala.gpu.compute.engines.cpu.ops.shared import memories, native_type, numpy_type
from dala.gpu.compute.engines.cpu.threads import pool
from dala.gpu.compute.engines.scratch import scratch_memory
from dala.typing import NDArray

#: Five pixels of three bytes in reverse order, and a byte that the next store overwrites.
REVERSED: Final = (12, 13, 14, 9, 10, 11, 6, 7, 8, 3, 4, 5, 0, 1, 2, 15)
#: The least output bytes of a tile.
TILE: Final = 1 << 16


@native
def copy_pixels(
    src: Array[T],
    out: Array[T],
    columns: Array[i64],
    fill: Array[T],
    start: i64,
    end: i64,
    *,
    T: type,  # noqa: N803
    channels: int,
) -> None:
    """Copy single pixels of a row by a table of columns; -1 is the fill color."""
    for x in range(start, end):
        at = columns[x]
        for c in static(range(channels)):
            out[x * channels + c] = fill[c] if at < 0 else src[at * channels + c]


@native
def copy_reversed(src: Array[T], out: Array[T], *, T: type, channels: int) -> None:  # noqa: N803
    """Copy pixels in reverse order."""
    count = len(out) // channels
    if u8 == T and channels == 4:
        words = view(src, u32)
        turned = view(out, u32)
        for k in independent(range(count)):
            turned[k] = words[count - 1 - k]
    elif u8 == T and channels == 3:
        k = i64(0)
        while k + 6 <= count:  # the store writes a byte of the sixth pixel
            at = (count - k - 5) * 3
            found = load(src, at, 16) if at + 16 <= len(src) else load(src, at, 16, 15)
            store(out, k * 3, shuffle(found, found, REVERSED))
            k += 5
        while k < count:
            for c in static(range(3)):
                out[k * 3 + c] = src[(count - 1 - k) * 3 + c]
            k += 1
    else:
        for k in independent(range(count)):
            for c in static(range(channels)):
                out[k * channels + c] = src[(count - 1 - k) * channels + c]


@native
def place_rows(
    src: Array[T],
    out: Array[T],
    rows: Array[i64],
    columns: Array[i64],
    fill: Array[T],
    wide: i64,
    width: i64,
    first: i64,
    last: i64,
    start: i64,
    end: i64,
    *,
    T: type,  # noqa: N803
    channels: int,
    turned: bool,
) -> None:
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
            copy_pixels(line, row, columns, fill, 0, first, channels=channels)
            if last > first:
                inner = row[first * channels : last * channels]
                if turned:
                    low = columns[last - 1]
                    copy_reversed(line[low * channels :], inner, channels=channels)
                else:
                    begin = columns[first] * channels
                    for k in independent(range((last - first) * channels)):
                        inner[k] = line[begin + k]
            copy_pixels(line, row, columns, fill, last, width, channels=channels)


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


# pictures with a border ---------------------------------------------------------------------------
#: Bytes per vector of code that reads around pixels; floats have a quarter.
LANES: Final = 64


@native
def store_vector(row: Array[T], at: i64, vector: Vector, *, T: type, lanes: int) -> None:  # noqa: N803
    """Store a vector to a row, and only its first lanes at the end."""
    if at + lanes <= len(row):
        store(row, at, vector)
    else:
        store(row, at, vector, len(row) - at)


@native
def keep_alpha(src: Array[T], row: Array[T], at: i64, *, T: type) -> None:  # noqa: N803
    """Copy the alpha of a row that begins at a position of the picture."""
    same = src[at : at + len(row)]
    for x in independent(range(len(row) // 4)):
        row[4 * x + 3] = same[4 * x + 3]


class Bordered:
    """Copies pictures with their edge pixels repeated, for code that reads around each pixel.

    ``run(src, work)`` calls ``work(wide)``: ``wide`` has ``reach`` more pixels on each side, and a
    vector at the end.
    """

    def __init__(self, engine: Engine, task: Task, reach: int) -> None:
        self._engine, self._name = engine, task.op
        shape = task.output.shape
        is_bytes = task.output.dtype == "u8"
        self.height, self.width = shape[:2]
        self.channels = shape[2] if len(shape) == 3 else 1
        self.kind = native_type(task.output.dtype)
        self.lanes = LANES if is_bytes else LANES // 4
        #: Rows per piece of work.
        self.tile = max(1, -(-self.height // (pool().threads * 4)))
        self._dtype = np.dtype(numpy_type(self.kind))
        self._reach = reach
        rows, self._wide = self.height + 2 * reach, self.width + 2 * reach
        self._size = rows * self._wide * self.channels + self.lanes
        self._rows = indexes(-reach, 1, rows, self.height, "clamp")
        self._columns = indexes(-reach, 1, self._wide, self.width, "clamp")
        self._fill = np.zeros(4, self._dtype)
        code = compile_native(place_rows, T=self.kind, channels=self.channels, turned=False)
        self._widen = code.parallel(rows, self.tile)

    def run(self, src: Memory, work: Callable[[Memory], None]) -> None:
        """Copy a picture, and call a function with the copy."""
        itemsize = self._dtype.itemsize
        with scratch_memory(self._engine, self._name, self._size * itemsize) as (storage,):
            wide: Memory = storage.handle
            wide.array[-self.lanes * itemsize :] = 0
            reach, width = self._reach, self.width
            self._widen(
                src, wide, self._rows, self._columns, self._fill, width, self._wide, reach,
                reach + width,
            )  # fmt: skip
            work(wide)


@implements("place")
def make_place(engine: Engine, task: Task) -> Runner:
    """Return the runner of a crop, pad or flip."""
    return place_runner(task)


def place_runner(task: Task) -> Runner:
    """Return the runner for the task's dtype, channels and direction."""
    (height, width), shape = task.inputs[0].shape[:2], task.output.shape
    (top, left), (down, across), border = task["first"], task["step"], task["border"]
    channels = shape[2] if len(shape) == 3 else 1
    kind, dtype = (u8, np.uint8) if task.output.dtype == "u8" else (f32, np.float32)
    rows = indexes(top, down, shape[0], height, border)
    columns = indexes(left, across, shape[1], width, border)
    first, last = run_of(left, across, shape[1], width)
    fill = np.array(task["fill"]).astype(dtype)
    row_bytes = max(1, shape[1] * channels * fill.itemsize)
    tile = max(1, -(-TILE // row_bytes), -(-shape[0] // (pool().threads * 4)))
    code = compile_native(place_rows, T=kind, channels=channels, turned=across < 0)
    run_rows = code.parallel(shape[0], tile)

    def run(inputs: Sequence[Storage], output: Storage, params: Values) -> None:
        (src,), out = memories(inputs, output)
        run_rows(src, out, rows, columns, fill, width, shape[1], first, last)

    return run
