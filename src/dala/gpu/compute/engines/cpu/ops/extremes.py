"""Minimums and maximums over any places on the CPU: shifted rows, many numbers at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from dala.gpu.compute.engines.base import Engine, Runner, Storage, Task, Values
from dala.gpu.compute.engines.cpu.native import compile_native, native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    T,
    f32,
    i32,
    i64,
    independent,
    load,
    maximum,
    minimum,
    store,
    u8,
)
from dala.gpu.compute.engines.cpu.ops import implements
from dala.gpu.compute.engines.cpu.ops.place import indexes, place_rows
from dala.gpu.compute.engines.cpu.ops.shared import memories
from dala.gpu.compute.engines.cpu.threads import pool

#: Bytes per vector; floats have a quarter.
LANES: Final = 64


@native
def extreme_rows(
    src: Array[T],
    wide: Array[T],
    places: Array[i32],
    out: Array[T],
    size: i64,
    count: i64,
    reach: i64,
    start: i64,
    end: i64,
    *,
    T: type,  # noqa: N803
    channels: int,
    lanes: int,
    least: bool,
) -> None:
    """Write rows; ``wide`` has ``reach`` more pixels on each side, and a vector at the end."""
    pitch = size + 2 * reach * channels
    for y in range(start, end):
        row = out[y * size : (y + 1) * size]
        i = i64(0)
        while i < size:
            at = (y + reach) * pitch + reach * channels + i
            found = load(wide, at + i64(places[1]) * pitch + i64(places[0]) * channels, lanes)
            for k in range(1, count):
                place = i64(places[2 * k + 1]) * pitch + i64(places[2 * k]) * channels
                value = load(wide, at + place, lanes)
                found = minimum(found, value) if least else maximum(found, value)
            if i + lanes <= size:
                store(row, i, found)
            else:
                store(row, i, found, size - i)
            i += lanes
        if channels == 4:
            same = src[y * size : (y + 1) * size]
            for x in independent(range(size // 4)):
                row[4 * x + 3] = same[4 * x + 3]


@implements("extremes")
def make_extremes(engine: Engine, task: Task) -> Runner:
    """Return the runner for the task's dtype and channels."""
    shape, reach = task.output.shape, task["reach"]
    is_bytes = task.output.dtype == "u8"
    kind, dtype, lanes = (u8, np.uint8, LANES) if is_bytes else (f32, np.float32, LANES // 4)
    height, width = shape[:2]
    channels = shape[2] if len(shape) == 3 else 1
    wide_rows, wide_width = height + 2 * reach, width + 2 * reach
    rows = indexes(-reach, 1, wide_rows, height, "clamp")
    columns = indexes(-reach, 1, wide_width, width, "clamp")
    fill = np.zeros(4, dtype)
    tile = max(1, -(-height // (pool().threads * 4)))
    pad = compile_native(place_rows, T=kind, channels=channels, turned=False)
    widen = pad.parallel(wide_rows, tile)
    code = compile_native(
        extreme_rows, T=kind, channels=channels, lanes=lanes, least=task["kind"] == "min"
    )
    run_rows = code.parallel(height, tile)
    count = task.inputs[1].shape[0]
    spare: list[npt.NDArray[np.generic]] = []

    def run(inputs: Sequence[Storage], output: Storage, params: Values) -> None:
        (src, places), out = memories(inputs, output)
        # Places beyond the reach would be beyond the memory.
        near = np.clip(places.array.view(np.int32)[: 2 * count], -reach, reach)
        try:
            wide = spare.pop()
        except IndexError:
            wide = np.zeros(wide_rows * wide_width * channels + lanes, dtype)
        widen(src, wide, rows, columns, fill, width, wide_width, reach, reach + width)
        run_rows(src, wide, np.ascontiguousarray(near), out, width * channels, count, reach)
        spare.append(wide)

    return run
