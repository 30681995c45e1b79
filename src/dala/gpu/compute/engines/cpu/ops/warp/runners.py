"""Runners of warps: tiles of output rows on threads."""

from __future__ import annotations

import numpy as np

from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.ops.resize.runners import rows_of_tile
from dala.gpu.compute.engines.cpu.ops.shared import *
from dala.gpu.compute.engines.cpu.ops.warp.bytes import sample_bytes
from dala.gpu.compute.engines.cpu.ops.warp.floats import sample_floats
from dala.gpu.compute.engines.cpu.ops.warp.sample import AFFINE, MAP, PERSPECTIVE, warp
from dala.gpu.compute.engines.sampling.coordinates import (
    BORDERS,
    DROPPED,
    METHODS,
    affine_tables,
    perspective_numbers,
)

_KIND: Final = {"warp_affine": AFFINE, "warp_perspective": PERSPECTIVE, "remap": MAP}
_NO_TABLE: Final = np.zeros(4, np.uint32)


@implements("remap", "warp_affine", "warp_perspective")
def make_warp(engine: Engine, task: Task) -> Runner:
    """Return the runner for the task's dtype, channels, method and border."""
    high, wide, _ = picture_size(task.inputs[0].shape)
    height, width, channels = picture_size(task.output.shape)
    kind, is_bytes = _KIND[task.op], task.output.dtype == "u8"
    code = compile_native(
        warp,
        T=u8 if is_bytes else f32,
        S=i32 if is_bytes else f32,
        channels=channels,
        method=METHODS.index(task["method"]),
        border=BORDERS.index(task["border"]),
        kind=kind,
        rounding=256 if is_bytes and task["method"] != "nearest" else 0,
        anywhere=sample_bytes if is_bytes else sample_floats,
    )
    run_rows = code.parallel(height, rows_of_tile(height, width))
    matrix = np.array(task["matrix"] if kind != MAP else (0.0,), np.float64)
    if kind == PERSPECTIVE:
        numbers = np.array(perspective_numbers(task["matrix"], height, width), np.int64)
        parts = numbers >> DROPPED, numbers & ((1 << DROPPED) - 1)
        matrix = np.concatenate([matrix, *parts]).astype(np.float64)
    fill = np.array(task["fill"], np.int32 if is_bytes else np.float32)
    table: NDArray = _NO_TABLE
    if kind == AFFINE:
        # Four arrays, each with an entry for every column and every row.
        words = np.concatenate(affine_tables(task["matrix"], height, width))
        table = np.ascontiguousarray(words.T).reshape(-1)

    def run(source: Memory, *more: Memory) -> None:
        coordinates = more[0] if kind == MAP else table
        run_rows(source, coordinates, matrix, fill, more[-1], wide, high, width, height)

    return array_runner(run)
