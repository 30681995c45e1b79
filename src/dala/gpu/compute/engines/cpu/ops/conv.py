"""2D convolution: direct sums in registers, or BLAS where it is as fast.

An image is first copied to a padded layout in which all taps of a window are at constant offsets:
zeros surround it, and with a stride above 1, pixels of equal phase are contiguous. Rows are
``pitch`` apart, which includes the columns that a window needs beyond the output. Output positions
can then be numbered across rows, and computed a vector at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from dala.gpu.compute.dtypes import ITEMSIZE, NUMPY
from dala.gpu.compute.engines.base import Engine, Runner, Storage, Task, Values
from dala.gpu.compute.engines.cpu.jit import jit
from dala.gpu.compute.engines.cpu.native import compile_native
from dala.gpu.compute.engines.cpu.native.names import f32, f64
from dala.gpu.compute.engines.cpu.ops import conv_loops, implements
from dala.gpu.compute.engines.cpu.ops.matmul import view
from dala.gpu.compute.engines.cpu.threads import pool
from dala.gpu.compute.engines.scratch import scratch_memory

#: The most bytes of padded images at a time.
SCRATCH: Final = 32 << 20

#: Bytes that fit a core's caches; groups up to this size are padded one by one.
SLOT: Final = 512 << 10

#: Vector operations per tile: about 20 us.
STEPS: Final = 1 << 16

TYPES: Final = {"f32": f32, "f64": f64}


@dataclass(frozen=True)
class RegisterBlock:
    """The sums held in registers: ``across`` vectors of ``lanes`` for each of ``rows`` outputs."""

    lanes: int
    across: int
    rows: int


def register_block(
    dtype: str, outputs: int, positions: int, features: dict[str, bool]
) -> RegisterBlock:
    """Return the block of sums that fills the registers, no larger than the work."""
    if features.get("avx512f"):
        size, across, rows = 64, 3, 8
    elif features.get("avx"):
        size, across, rows = 32, 3, 4
    else:
        size, across, rows = 16, 3, 4
    while rows > outputs:
        rows, across = rows // 2, 4
    lanes = size // ITEMSIZE[dtype]
    # The largest block among those that waste the fewest vectors.
    across = min(range(across, 0, -1), key=lambda n: -(-positions // (n * lanes)) * n)
    return RegisterBlock(lanes, across, rows)


@dataclass(frozen=True)
class Layout:
    """The padded layout of an image: phases, their rows and columns, and the offsets of taps."""

    rows: int
    pitch: int
    shifts: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]

    @property
    def plane(self) -> int:
        return len(self.shifts) * self.rows * self.pitch


def plan_layout(task: Task) -> Layout:
    """Return the layout of a task's images."""
    window, size = task.inputs[1].shape[2:], task.output.shape[-2:]
    steps, dilations, padding = task["stride"], task["dilation"], task["padding"]
    rows, pitch = (size[i] + (window[i] - 1) * dilations[i] // steps[i] for i in range(2))
    phases: dict[tuple[int, int], int] = {}
    offsets = []
    for i in range(window[0]):
        for j in range(window[1]):
            y, x = i * dilations[0], j * dilations[1]
            phase = y % steps[0] - padding[0], x % steps[1] - padding[1]
            row = phases.setdefault(phase, len(phases)) * rows + y // steps[0]
            offsets.append(row * pitch + x // steps[1])
    return Layout(rows, pitch, np.array(list(phases), np.int64), np.array(offsets, np.int64))


@implements("conv2d")
def make_conv2d(engine: Engine, task: Task) -> Runner:
    """Return the runner of a convolution: a matrix product if the window is one pixel."""
    height, width = task.inputs[1].shape[2:]
    plain = height == width == 1 and task["stride"] == (1, 1) and task["padding"] == (0, 0)
    if plain and task.inputs[1].shape[0] // task["groups"] > 1:
        return _pointwise(task)
    return _windows(engine, task)


def _pointwise(task: Task) -> Runner:
    dtype, groups = task.output.dtype, task["groups"]
    x, weight = task.inputs[0].shape, task.inputs[1].shape
    images, area = x[0] if len(x) == 4 else 1, x[-2] * x[-1]

    def run(inputs: Sequence[Storage], output: Storage, params: Values) -> None:
        out = view(output, (images, groups, weight[0] // groups, area), dtype)
        left = view(inputs[1], (groups, weight[0] // groups, weight[1]), dtype)
        np.matmul(left, view(inputs[0], (images, groups, weight[1], area), dtype), out=out)
        if len(inputs) > 2:
            out += view(inputs[2], (groups, weight[0] // groups, 1), dtype)

    return run


def _windows(engine: Engine, task: Task) -> Runner:
    dtype, groups = task.output.dtype, task["groups"]
    x, weight = task.inputs[0].shape, task.inputs[1].shape
    images, channels = x[0] if len(x) == 4 else 1, x[-3]
    outputs, inner = weight[0] // groups, weight[1] * weight[2] * weight[3]
    height, width = task.output.shape[-2:]
    layout = plan_layout(task)
    shape = register_block(dtype, outputs, height * layout.pitch, jit().features)
    kind, size = TYPES[dtype], ITEMSIZE[dtype]
    span = shape.lanes * shape.across
    strips, blocks = -(-height * layout.pitch // span), -(-outputs // shape.rows)
    slack = span + layout.pitch  # the last vectors of a plane exceed it
    parts, slot = images * groups, weight[1] * layout.plane + slack
    if slot * size <= SLOT and parts >= 2 * pool().threads:
        return _parts(engine, task, layout, shape, slot)
    at_once = max(1, min(images, SCRATCH // (channels * layout.plane * size)))
    pad_planes = compile_native(conv_loops.pad_planes, T=kind)
    convolve = compile_native(
        conv_loops.convolve, T=kind, lanes=shape.lanes, across=shape.across, rows=shape.rows
    )
    empty = np.empty(0, NUMPY[dtype])
    chunk = max(1, STEPS // (inner * shape.rows * shape.across))
    room = (at_once * channels * layout.plane + slack) * size
    runs = {
        count: (
            pad_planes.parallel(count * channels, max(1, STEPS // layout.plane)),
            convolve.parallel(count * groups * strips * blocks, chunk),
        )
        for count in {at_once, images % at_once} - {0}
    }

    def run(inputs: Sequence[Storage], output: Storage, params: Values) -> None:
        source, target = view(inputs[0], (images, -1), dtype), view(output, (images, -1), dtype)
        weights = view(inputs[1], (-1,), dtype)
        bias = view(inputs[2], (-1,), dtype) if len(inputs) > 2 else empty
        with scratch_memory(engine, task.op, room) as (work,):
            laid = view(work, (-1,), dtype)
            laid[-slack:] = 0
            for first in range(0, images, at_once):
                part = source[first : first + at_once]
                spread_run, convolve_run = runs[len(part)]
                spread_run(
                    *(part.reshape(-1), laid, layout.shifts.reshape(-1), len(layout.shifts)),
                    *(x[-2], x[-1], layout.rows, layout.pitch, *task["stride"]),
                )
                convolve_run(
                    *(laid, weights, bias, target[first : first + at_once].reshape(-1)),
                    *(layout.offsets, weight[1], layout.plane, groups, outputs),
                    *(height, width, layout.pitch),
                )

    return run


def _parts(engine: Engine, task: Task, layout: Layout, shape: RegisterBlock, slot: int) -> Runner:
    """Return the runner for many small groups: each thread pads them in a slot of its own."""
    dtype, groups = task.output.dtype, task["groups"]
    x, weight = task.inputs[0].shape, task.inputs[1].shape
    parts = (x[0] if len(x) == 4 else 1) * groups
    tile = -(-parts // (4 * pool().threads))
    room = -(-parts // tile) * slot * ITEMSIZE[dtype]
    code = compile_native(
        conv_loops.convolve_parts,
        T=TYPES[dtype],
        lanes=shape.lanes,
        across=shape.across,
        rows=shape.rows,
    )
    share = code.parallel(parts, tile)
    empty = np.empty(0, NUMPY[dtype])
    numbers = (
        *(layout.shifts.reshape(-1), layout.offsets, x[-2], x[-1], layout.rows, layout.pitch),
        *(*task["stride"], weight[1], groups, weight[0] // groups, *task.output.shape[-2:]),
        *(slot, tile),
    )

    def run(inputs: Sequence[Storage], output: Storage, params: Values) -> None:
        flat = [view(s, (-1,), dtype) for s in (*inputs, output)]
        bias = flat[2] if len(inputs) > 2 else empty
        with scratch_memory(engine, task.op, room) as (work,):
            share(flat[0], work.handle, flat[1], bias, flat[-1], *numbers)

    return run
