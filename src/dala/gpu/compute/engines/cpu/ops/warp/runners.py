"""Runners of warps: tiles of output rows on threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from dala.gpu.compute.engines.base import Engine, Runner, Storage, Task, Values
from dala.gpu.compute.engines.cpu.native import compile_native
from dala.gpu.compute.engines.cpu.native.names import f32, i32, u8
from dala.gpu.compute.engines.cpu.ops import implements
from dala.gpu.compute.engines.cpu.ops.resize.runners import rows_of_tile
from dala.gpu.compute.engines.cpu.ops.shared import memories
from dala.gpu.compute.engines.cpu.ops.warp.sample import AFFINE, MAP, PERSPECTIVE, warp
from dala.gpu.compute.engines.sampling.coordinates import (
    BORDERS,
    DROPPED,
    METHODS,
    affine_tables,
    perspective_numbers,
)
from dala.typing import NDArray

_KIND: Final = {"warp_affine": AFFINE, "warp_perspective": PERSPECTIVE, "remap": MAP}
_NO_TABLE: Final = np.zeros(4, np.uint32)


@implements("remap", "warp_affine", "warp_perspective")
def make_warp(engine: Engine, task: Task) -> Runner:
    """Return the runner for the task's dtype, channels, method and border."""
    image, out = task.inputs[0].shape, task.output.shape
    kind = _KIND[task.op]
    code = compile_native(
        warp,
        T=u8 if task.output.dtype == "u8" else f32,
        S=i32 if task.output.dtype == "u8" else f32,
        channels=out[2] if len(out) == 3 else 1,
        method=METHODS.index(task["method"]),
        border=BORDERS.index(task["border"]),
        kind=kind,
    )
    run_rows = code.parallel(out[0], rows_of_tile(out[0], out[1]))
    matrix = np.array(task["matrix"] if kind != MAP else (0.0,), np.float64)
    if kind == PERSPECTIVE:
        numbers = np.array(perspective_numbers(task["matrix"], *out[:2]), np.int64)
        parts = numbers >> DROPPED, numbers & ((1 << DROPPED) - 1)
        matrix = np.concatenate([matrix, *parts]).astype(np.float64)
    fill = np.array(task["fill"], np.int32 if task.output.dtype == "u8" else np.float32)
    table: NDArray = _NO_TABLE
    if kind == AFFINE:
        # Four arrays, each with an entry for every column and every row.
        words = np.concatenate(affine_tables(task["matrix"], *out[:2]))
        table = np.ascontiguousarray(words.T).reshape(-1)
    sizes = image[1], image[0], out[1], out[0]

    def run(inputs: Sequence[Storage], output: Storage, params: Values = ()) -> None:
        sources, out_memory = memories(inputs, output)
        coordinates = sources[1] if kind == MAP else table
        run_rows(sources[0], coordinates, matrix, fill, out_memory, *sizes)

    return run
