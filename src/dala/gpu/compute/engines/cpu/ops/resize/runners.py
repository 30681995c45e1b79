"""Runners of resize and preprocess: they build tables once and run tiles of output rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dala.gpu.compute.dtypes import NUMPY
from dala.gpu.compute.engines.base import Tensor
from dala.gpu.compute.engines.cpu.jit import jit
from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.native.arguments import Argument
from dala.gpu.compute.engines.cpu.ops.place import place_runner
from dala.gpu.compute.engines.cpu.ops.resize.byte_rows import LINE as BYTE_LINE
from dala.gpu.compute.engines.cpu.ops.resize.byte_rows import resize_bytes
from dala.gpu.compute.engines.cpu.ops.resize.byte_tables import (
    BYTE_COLUMNS,
    byte_columns,
    byte_rows,
)
from dala.gpu.compute.engines.cpu.ops.resize.float import LINE, resize_float, resize_nearest
from dala.gpu.compute.engines.cpu.ops.resize.float_halving import LEAST_COLUMNS, halve_floats
from dala.gpu.compute.engines.cpu.ops.resize.halving import *
from dala.gpu.compute.engines.cpu.ops.shared import *
from dala.gpu.compute.engines.registry import run_on_host
from dala.gpu.compute.engines.sampling.byte_taps import WIDE, byte_taps
from dala.gpu.compute.engines.sampling.taps import Axis, Taps, task_axes

#: Loops over up to this many taps are unrolled.
UNROLLED_TAPS: Final = 8
#: The most output columns of a block.
COLUMNS: Final = 2048
#: The least output pixels of a tile.
TILE: Final = 1 << 14


class ResizePlan(NamedTuple):
    """A resize: the task, both axes with their taps, and the channels of the picture."""

    task: Task
    y: Axis
    x: Axis
    taps_y: Taps
    taps_x: Taps
    channels: int


def resize_runner(engine: Engine, task: Task) -> Runner:
    """Return the runner that resizes a picture, or converts it to a tensor."""
    y, x = task_axes(task)
    if task.op == "resize" and (y.window, x.window) != ((0, y.size), (0, x.size)):
        return _padded(engine, task, y, x)
    taps_y, taps_x = (axis.taps(task["method"], task["antialias"]) for axis in (y, x))
    _, _, channels = picture_size(task.inputs[0].shape)
    if taps_x.count * channels > LINE:
        return run_on_host(engine, task)
    plan = ResizePlan(task, y, x, taps_y, taps_x, channels)
    if task.op == "resize" and task["method"] == "nearest":
        return _nearest(plan)
    halving = is_halving(taps_y, y.source) and is_halving(taps_x, x.source)
    if task.op == "resize" and halving and x.size >= PIXELS.get(channels, x.size + 1):
        return _halving(plan)
    if task.output.dtype == "u8":
        return _bytes(plan)
    smooth = is_smooth(taps_y) and is_smooth(taps_x) and x.size >= LEAST_COLUMNS
    if task.op == "resize" and smooth and channels in (1, 4):
        return _halving_floats(plan)
    return _float(plan)


def _padded(engine: Engine, task: Task, y: Axis, x: Axis) -> Runner:
    """Return the runner of a resize with a color around it: resize, then pad."""
    size = (y.full, x.full)
    inner = Tensor((*size, *task.output.shape[2:]), task.output.dtype)
    values = dict(task.values) | {"full": size, "offset": (0, 0), "size": size}
    resized = resize_runner(engine, replace(task, output=inner, values=tuple(values.items())))
    top, left = y.offset, x.offset
    padding = {"first": (-top, -left), "step": (1, 1), "border": "constant", "fill": task["fill"]}
    placed = replace(task, op="place", inputs=(inner,), values=tuple(padding.items()))
    padded = place_runner(engine, placed)
    nbytes = int(np.prod(inner.shape)) * (1 if inner.dtype == "u8" else 4)

    def run(inputs: Sequence[Storage], output: Storage, params: Values = ()) -> None:
        with scratch_memory(engine, task.op, nbytes) as (between,):
            resized(inputs, between, params)
            padded([between], output, params)

    return run


def _nearest(plan: ResizePlan) -> Runner:
    task, y, x, taps_y, taps_x, channels = plan
    is_bytes = task.output.dtype == "u8"
    word = not is_bytes or channels == 4
    each = 1 if is_bytes and word else channels
    code = compile_native(resize_nearest, T=u32 if word else u8, channels=each)
    fixed = taps_y.first, taps_x.first, x.source, x.size
    return array_runner(code.parallel(y.size, rows_of_tile(y.size, x.size), fixed=fixed))


def _halving(plan: ResizePlan) -> Runner:
    task, y, x, *_, channels = plan
    code = compile_native(
        halve,
        T=native_type(task.output.dtype),
        channels=channels,
        pixels=PIXELS[channels],
        left=neighbors(channels, 0),
        right=neighbors(channels, 1),
    )
    return array_runner(code.parallel(y.size, rows_of_tile(y.size, x.size), fixed=(x.size,)))


def _halving_floats(plan: ResizePlan) -> Runner:
    task, y, x, taps_y, taps_x, channels = plan
    code = compile_native(halve_floats, T=native_type(task.inputs[0].dtype), channels=channels)
    weights_y, weights_x = (taps.weights.astype(np.float32) for taps in (taps_y, taps_x))
    if channels == 1:
        weights_x = np.ascontiguousarray(weights_x.T)
    tables = taps_y.first, weights_y, taps_x.first, weights_x
    tile = rows_of_tile(y.size, x.size)
    return array_runner(code.parallel(y.size, tile, fixed=(*tables, x.source)))


def _bytes(plan: ResizePlan) -> Runner:
    _, y, x, taps_y, taps_x, channels = plan
    found = byte_taps(taps_y, taps_x)
    smooth = is_smooth(taps_y) and is_smooth(taps_x) and x.size >= PIXELS[channels] + 2
    # Wider vectors multiply pairs of 16 bits faster than they interleave bytes.
    rows, weights_y = byte_rows(found, jit().machine.lanes == 16)
    columns = byte_columns(found, channels)
    statics: Statics = {"taps_x": columns.taps, "taps_y": rows, "fraction": found.fraction}
    statics |= {"channels": channels, "wide": taps_x.count > WIDE}
    if smooth:
        code = compile_native(halve_smooth, pixels=PIXELS[channels], **statics)
    else:
        code = compile_native(resize_bytes, **statics)
    blocks = _blocks(taps_x, columns=BYTE_COLUMNS, pixels=BYTE_LINE // channels)
    tables = taps_y.first, weights_y, columns.first(blocks), columns.weights, blocks
    numbers: tuple[Argument, ...]
    numbers = x.source, x.size, taps_y.count, columns.each, found.down, found.across
    if smooth:
        numbers += found.weights_x[[0, -1]].astype(np.int16).reshape(-1), y.size
    tile = rows_of_tile(y.size, x.size)
    return array_runner(code.parallel(y.size, tile, fixed=(*tables, *numbers)))


def _float(plan: ResizePlan) -> Runner:
    """Return the runner to f32."""
    task, y, x, taps_y, taps_x, channels = plan
    dtype, tensor = task.inputs[0].dtype, task.op == "preprocess"
    planes = tensor and task["layout"] == "nchw"
    step = 1 if planes else 3 if tensor else channels
    (top, bottom), (left, right) = y.window, x.window
    place = (top * x.size + left) * step, x.size * step, x.size * y.size if planes else 1
    finish = np.array((*task["gain"], *task["bias"]) if tensor else (0.0,), np.float32)
    weights_y, weights_x = (taps.weights.astype(np.float32) for taps in (taps_y, taps_x))
    statics: Statics = {"T": native_type(dtype), "channels": channels}
    statics["pick"] = task["channels"] if tensor else ()
    unrolled_y, unrolled_x = (t.count * (t.count <= UNROLLED_TAPS) for t in (taps_y, taps_x))
    if channels == 1 and not tensor and unrolled_x:
        weights_x = np.ascontiguousarray(weights_x.T)
    statics |= {"unrolled_x": unrolled_x, "unrolled_y": unrolled_y}
    code = compile_native(resize_float, **statics)
    blocks = _blocks(taps_x, columns=COLUMNS, pixels=LINE // channels)
    tables = taps_y.first, weights_y, taps_x.first, weights_x, blocks, finish
    fixed = *tables, taps_x.count, taps_y.count, x.source, *place
    rows = bottom - top
    run = code.parallel(rows, rows_of_tile(rows, right - left), fixed=fixed)
    return array_runner(_with_padding(plan, run) if tensor else run)


def rows_of_tile(rows: int, width: int) -> int:
    """Return the number of rows per tile: a few tiles per thread, none of them tiny."""
    return max(1, min(share(rows, least=-(-TILE // width)), rows))


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


def _with_padding(plan: ResizePlan, run: Callable[..., None]) -> Callable[..., None]:
    """Return a function that also fills the area around the picture, if there is any."""
    task, y, x, *_ = plan
    (top, bottom), (left, right) = y.window, x.window
    if (top, bottom, left, right) == (0, y.size, 0, x.size):
        return run
    planes = task["layout"] == "nchw"
    step = 1 if planes else 3
    # Copy whole rows: copies of three numbers at a time are slow.
    pad = np.float32(task["pad"])
    row = np.repeat(pad, x.size).reshape(3, 1, -1) if planes else np.tile(pad, x.size)[None, None]

    def run_both(source: Memory, target: Memory) -> None:
        out = target.array.view(NUMPY["f32"]).reshape(len(row), y.size, x.size * step)
        for part, columns in (
            (out[:, :top], slice(None)),
            (out[:, bottom:], slice(None)),
            (out[:, top:bottom], slice(left * step)),
            (out[:, top:bottom], slice(right * step, None)),
        ):
            part[..., columns] = row[..., columns]
        run(source, target)

    return run_both


implements("resize", "preprocess")(resize_runner)
