"""Minimums and maximums over any places on the CPU: shifted rows, many numbers at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dala.gpu.compute.engines.base import Engine, Runner, Storage, Task, Values
from dala.gpu.compute.engines.cpu.native import compile_native, native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    T,
    i32,
    i64,
    load,
    maximum,
    minimum,
)
from dala.gpu.compute.engines.cpu.ops import implements
from dala.gpu.compute.engines.cpu.ops.place import Bordered, keep_alpha, store_vector
from dala.gpu.compute.engines.cpu.ops.shared import memories


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
            store_vector(row, i, found, lanes=lanes)
            i += lanes
        if channels == 4:
            keep_alpha(src, row, y * size)


@implements("extremes")
def make_extremes(engine: Engine, task: Task) -> Runner:
    """Return the runner for the task's dtype and channels."""
    reach = task["reach"]
    picture = Bordered(engine, task, reach)
    code = compile_native(
        extreme_rows,
        T=picture.kind,
        channels=picture.channels,
        lanes=picture.lanes,
        least=task["kind"] == "min",
    )
    run_rows = code.parallel(picture.height, picture.tile)
    count, size = task.inputs[1].shape[0], picture.width * picture.channels

    def run(inputs: Sequence[Storage], output: Storage, params: Values) -> None:
        (src, places), out = memories(inputs, output)
        # Places beyond the reach would be beyond the memory.
        near = np.clip(places.array.view(np.int32)[: 2 * count], -reach, reach)
        near = np.ascontiguousarray(near)
        picture.run(src, lambda wide: run_rows(src, wide, near, out, size, count, reach))

    return run
