"""Runners of resize and preprocess: they build tables once and run tiles of output rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from dala.gpu.compute.dtypes import NUMPY
from dala.gpu.compute.engines.base import Engine, Runner, Storage, Task, Tensor, Values
from dala.gpu.compute.engines.cpu.native import compile_native
from dala.gpu.compute.engines.cpu.native.names import f32, u8, u32
from dala.gpu.compute.engines.cpu.ops import implements
from dala.gpu.compute.engines.cpu.ops.place import place_runner
from dala.gpu.compute.engines.cpu.ops.resize.byte_rows import LINE as BYTE_LINE
from dala.gpu.compute.engines.cpu.ops.resize.byte_rows import resize_bytes
from dala.gpu.compute.engines.cpu.ops.resize.byte_tables import (
    BYTE_COLUMNS,
    byte_columns,
    byte_rows,
)
from dala.gpu.compute.engines.cpu.ops.resize.float import LINE, resize_float, resize_nearest
from dala.gpu.compute.engines.cpu.ops.resize.halving import PIXELS, halve, is_halving, neighbors
from dala.gpu.compute.engines.cpu.ops.resize.sparse import LANES, tensor_sparse
from dala.gpu.compute.engines.cpu.ops.shared import memories
from dala.gpu.compute.engines.cpu.threads import pool
from dala.gpu.compute.engines.registry import run_on_host
from dala.gpu.compute.engines.sampling.byte_taps import WIDE, byte_taps
from dala.gpu.compute.engines.sampling.taps import Axis, Taps, task_axes
from dala.gpu.compute.engines.scratch import scratch_memory
from dala.typing import NDArray

#: A function that fills the padding of a tensor.
Fill: TypeAlias = Callable[[NDArray], None]
_NATIVE: Final = {"f32": f32, "u8": u8}
#: Loops over up to this many taps are unrolled.
UNROLLED_TAPS: Final = 8
#: The most source pixels per tensor pixel for the sparse code.
SPARSE_TAPS: Final = 16
#: The most output columns of a block.
COLUMNS: Final = 2048
#: The least output pixels of a tile.
TILE: Final = 1 << 14
#: The same for the sparse code.
SPARSE_TILE: Final = 1 << 12


@implements("resize", "preprocess")
def make_resize(engine: Engine, task: Task) -> Runner:
    """Return the runner that resizes a picture, or converts it to a tensor."""
    return _resize_runner(engine, task)


def _resize_runner(engine: Engine, task: Task) -> Runner:
    y, x = task_axes(task)
    if task.op == "resize" and (y.window, x.window) != ((0, y.size), (0, x.size)):
        return _padded(engine, task, y, x)
    taps_y, taps_x = (axis.taps(task["method"], task["antialias"]) for axis in (y, x))
    image = task.inputs[0]
    channels = image.shape[2] if len(image.shape) == 3 else 1
    if taps_x.count * channels > LINE:
        return run_on_host(engine, task)
    if task.op == "resize" and task["method"] == "nearest":
        return _nearest(image.dtype, y, x, taps_y, taps_x, channels)
    halving = is_halving(taps_y, y.source) and is_halving(taps_x, x.source)
    if task.op == "resize" and halving and x.size >= PIXELS.get(channels, x.size + 1):
        return _halving(image.dtype, y, x, channels)
    if task.output.dtype == "u8":
        return _bytes(y, x, taps_y, taps_x, channels)
    return _float(task, y, x, taps_y, taps_x, channels)


def _padded(engine: Engine, task: Task, y: Axis, x: Axis) -> Runner:
    """Return the runner of a resize with a color around it: resize, then pad."""
    size = (y.full, x.full)
    inner = Tensor((*size, *task.output.shape[2:]), task.output.dtype)
    values = dict(task.values) | {"full": size, "offset": (0, 0), "size": size}
    resized = _resize_runner(engine, replace(task, output=inner, values=tuple(values.items())))
    top, left = y.offset, x.offset
    padding = {"first": (-top, -left), "step": (1, 1), "border": "constant", "fill": task["fill"]}
    padded = place_runner(replace(task, op="place", inputs=(inner,), values=tuple(padding.items())))
    nbytes = int(np.prod(inner.shape)) * (1 if inner.dtype == "u8" else 4)

    def run(inputs: Sequence[Storage], output: Storage, params: Values = ()) -> None:
        with scratch_memory(engine, task.op, nbytes) as (between,):
            resized(inputs, between, params)
            padded([between], output, params)

    return run


def _nearest(dtype: str, y: Axis, x: Axis, taps_y: Taps, taps_x: Taps, channels: int) -> Runner:
    word = dtype == "f32" or channels == 4
    each = 1 if dtype == "u8" and channels == 4 else channels
    code = compile_native(resize_nearest, T=u32 if word else u8, channels=each)
    fixed = taps_y.first, taps_x.first, x.source, x.size
    return _runner(code.parallel(y.size, rows_of_tile(y.size, x.size), fixed=fixed))


def _halving(dtype: str, y: Axis, x: Axis, channels: int) -> Runner:
    code = compile_native(
        halve,
        T=_NATIVE[dtype],
        whole=dtype == "u8",
        channels=channels,
        pixels=PIXELS[channels],
        left=neighbors(channels, 0),
        right=neighbors(channels, 1),
    )
    return _runner(code.parallel(y.size, rows_of_tile(y.size, x.size), fixed=(x.size,)))


def _runner(run_rows: Callable[..., None], fill_padding: Fill | None = None) -> Runner:
    """Return a runner that calls ``fill_padding``, then ``run_rows(source, target)``."""

    def run(inputs: Sequence[Storage], output: Storage, params: Values = ()) -> None:
        (source,), target = memories(inputs, output)
        if fill_padding is not None:
            fill_padding(target.array)
        run_rows(source, target)

    return run


def _bytes(y: Axis, x: Axis, taps_y: Taps, taps_x: Taps, channels: int) -> Runner:
    found = byte_taps(taps_y, taps_x)
    rows = byte_rows(found)
    columns = byte_columns(found, channels)
    code = compile_native(
        resize_bytes,
        taps_x=columns.taps,
        taps_y=rows.taps,
        fraction=found.fraction,
        channels=channels,
        wide=taps_x.count > WIDE,
    )
    blocks = _blocks(taps_x, columns=BYTE_COLUMNS, pixels=BYTE_LINE // channels)
    first = columns.first(blocks)
    tables = taps_y.first, rows.weights, first, columns.weights, blocks
    numbers = x.source, x.size, taps_y.count, columns.each, found.down, found.across
    tile = rows_of_tile(y.size, x.size)
    return _runner(code.parallel(y.size, tile, fixed=(*tables, *numbers)))


def _float(task: Task, y: Axis, x: Axis, taps_y: Taps, taps_x: Taps, channels: int) -> Runner:
    tensor = task.op == "preprocess"
    sparse = (
        tensor
        and channels >= 3
        and taps_x.count * taps_y.count <= SPARSE_TAPS
        and x.source >= 2 * taps_x.count * x.size
    )
    (top, bottom), (left, right) = y.window, x.window
    if sparse:
        return _sparse(task, y, x, taps_y, taps_x, channels)
    code = compile_native(
        resize_float,
        T=_NATIVE[task.inputs[0].dtype],
        channels=channels,
        unrolled_x=taps_x.count if taps_x.count <= UNROLLED_TAPS else 0,
        unrolled_y=taps_y.count if taps_y.count <= UNROLLED_TAPS else 0,
        pick=task["channels"] if tensor else (),
    )
    planes = tensor and task["layout"] == "nchw"
    step = 1 if planes else 3 if tensor else channels
    numbers = (*task["gain"], *task["bias"]) if tensor else (0.0,)
    weights_x = taps_x.weights.astype(np.float32)
    if channels == 1 and not tensor and taps_x.count <= UNROLLED_TAPS:
        weights_x = np.ascontiguousarray(weights_x.T)
    tables = (
        taps_y.first,
        taps_y.weights.astype(np.float32),
        taps_x.first,
        weights_x,
        _blocks(taps_x, columns=COLUMNS, pixels=LINE // channels),
        np.array(numbers, np.float32),
    )
    place = (
        taps_x.count,
        taps_y.count,
        x.source,
        (top * x.size + left) * step,
        x.size * step,
        x.size * y.size if planes else 1,
    )
    rows = rows_of_tile(bottom - top, right - left)
    run_rows = code.parallel(bottom - top, rows, fixed=(*tables, *place))
    return _runner(run_rows, _padding(task, y, x) if tensor else None)


def _sparse(task: Task, y: Axis, x: Axis, taps_y: Taps, taps_x: Taps, channels: int) -> Runner:
    """Return the runner for a tensor much smaller than the picture, which reads few pixels."""
    (top, bottom), (left, _) = y.window, x.window
    planes = task["layout"] == "nchw"
    code = compile_native(
        tensor_sparse,
        T=_NATIVE[task.inputs[0].dtype],
        channels=channels,
        taps_x=taps_x.count,
        taps_y=taps_y.count,
        pick=task["channels"],
        planes=planes,
        pairs=bilinear_bytes(task.inputs[0].dtype, taps_y, taps_x) and len(taps_x.first) >= LANES,
    )
    step = 1 if planes else 3
    tables = (
        taps_y.first,
        taps_y.weights.astype(np.float32),
        taps_x.first * np.int32(channels),
        np.ascontiguousarray(taps_x.weights.T.astype(np.float32)),
        np.array((*task["gain"], *task["bias"]), np.float32),
    )
    begin = (top * x.size + left) * step
    place = x.source * channels, begin, x.size * step, x.size * y.size if planes else 1
    rows = max(-(-SPARSE_TILE // x.size), -(-(bottom - top) // (pool().threads * 4)))
    run_rows = code.parallel(bottom - top, min(rows, bottom - top), fixed=(*tables, *place))
    return _runner(run_rows, _padding(task, y, x))


def bilinear_bytes(dtype: str, taps_y: Taps, taps_x: Taps) -> bool:
    """Return whether a resize is bilinear on bytes, with two taps along each axis."""
    return dtype == "u8" and taps_x.count == taps_y.count == 2


def rows_of_tile(rows: int, width: int) -> int:
    """Return the number of rows per tile: a few tiles per thread, none of them tiny."""
    shared = -(-rows // (pool().threads * 4))
    return max(1, min(max(shared, -(-TILE // width)), rows))


def _blocks(taps: Taps, *, columns: int, pixels: int) -> npt.NDArray[np.int32]:
    """Return blocks of columns: begin, stop, first source pixel, number of source pixels."""
    found: list[tuple[int, int, int, int]] = []
    ends = taps.first + taps.count
    begin = 0
    while begin < len(ends):
        stop = min(begin + columns, len(ends))
        base = int(taps.first[begin])
        most = int(np.searchsorted(ends[begin:stop], base + pixels, "right"))
        stop = begin + (most if most < 8 or begin + most == len(ends) else most // 8 * 8)
        found.append((begin, stop, base, int(ends[stop - 1]) - base))
        begin = stop
    return np.array(found, np.int32).reshape(-1)


def _padding(task: Task, y: Axis, x: Axis) -> Fill | None:
    """Return a function that fills the area around the picture, or None if there is none."""
    (top, bottom), (left, right) = y.window, x.window
    if (top, bottom, left, right) == (0, y.size, 0, x.size):
        return None
    planes = task["layout"] == "nchw"
    step = 1 if planes else 3
    # Copy whole rows: copies of three numbers at a time are slow.
    pad = np.float32(task["pad"])
    row = np.repeat(pad, x.size).reshape(3, 1, -1) if planes else np.tile(pad, x.size)[None, None]

    def fill(memory: NDArray) -> None:
        out = memory.view(NUMPY["f32"]).reshape(len(row), y.size, x.size * step)
        for part, columns in (
            (out[:, :top], slice(None)),
            (out[:, bottom:], slice(None)),
            (out[:, top:bottom], slice(left * step)),
            (out[:, top:bottom], slice(right * step, None)),
        ):
            part[..., columns] = row[..., columns]

    return fill
