"""2D convolution: direct sums in registers, or BLAS where it is as fast.

An image is first copied to a padded layout in which all taps of a window are at constant offsets:
zeros surround it, and with a stride above 1, pixels of equal phase are contiguous. Rows are
``pitch`` apart, which includes the columns that a window needs beyond the output. Output positions
can then be numbered across rows, and computed a vector at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dala.gpu.compute.dtypes import ITEMSIZE, NUMPY
from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.ops import matmul
from dala.gpu.compute.engines.cpu.ops.shared import *

#: The most bytes of padded images at a time.
SCRATCH: Final = 32 << 20

#: Vector operations per tile: about 20 us.
STEPS: Final = 1 << 16


# native loops ---------------------------------------------------------------------------------
@native
def pad_planes(
    x: Array[T], to: Array[T], shifts: Array[i64], phases: i64, height: i64, width: i64,
    rows: i64, pitch: i64, step_y: i64, step_x: i64, start: i64, end: i64,
    *, T: type,  # noqa: N803
) -> None:  # fmt: skip
    """Copy planes of an image to the padded layout, grouped by phase.

    ``shifts`` are the first row and column of the image for each phase.
    """
    for plane in range(start, end):
        for phase in range(phases):
            first_y, first_x = shifts[2 * phase], shifts[2 * phase + 1]
            # Columns [low, high) are inside the image.
            low = min(max((step_x - 1 - first_x) // step_x, 0), pitch)
            high = max(min((width - 1 - first_x) // step_x + 1, pitch), low)
            for y in range(rows):
                line = to[((plane * phases + phase) * rows + y) * pitch :]
                row = y * step_y + first_y
                for i in independent(range(pitch)):
                    line[i] = T(0)
                if row >= 0 and row < height:
                    source = x[(plane * height + row) * width :]
                    if step_x == 1:
                        for i in independent(range(low, high)):
                            line[i] = source[i + first_x]
                    else:
                        for i in independent(range(low, high)):
                            line[i] = source[i * step_x + first_x]


@native
def convolve(
    x: Array[T], weight: Array[T], bias: Array[T], out: Array[T], offsets: Array[i64],
    channels: i64, plane: i64, groups: i64, outputs: i64, height: i64, width: i64, pitch: i64,
    start: i64, end: i64,
    *, T: type, lanes: int, across: int, rows: int,  # noqa: N803
) -> None:  # fmt: skip
    """Compute blocks of ``rows`` outputs at ``across * lanes`` positions, summed in registers.

    A position is an index in rows of ``pitch``; those beyond ``width`` are computed and dropped.
    There are at least ``rows`` outputs; the last block repeats some of the block before it.
    """
    span = static(across * lanes)
    taps = len(offsets)
    inner = channels * taps
    blocks = (outputs + rows - 1) // rows
    places = height * pitch
    strips = (places + span - 1) // span
    sums = local(T, rows * across * lanes)
    done = local(T, rows * across * lanes)
    for number in range(start, end):
        block = number % blocks
        strip = number // blocks % strips
        part = number // blocks // strips
        first = strip * span
        output = min(block * rows, outputs - rows)
        seen = x[part * channels * plane + first :]
        taken = weight[(part % groups * outputs + output) * inner :]
        for o in static(range(rows)):
            begin = bias[part % groups * outputs + output + o] if len(bias) > 0 else T(0)
            for v in static(range(across)):
                store(sums, static((o * across + v) * lanes), splat(begin, lanes))
        for c in range(channels):
            for t in range(taps):
                here = seen[c * plane + offsets[t] :]
                by = taken[c * taps + t :]
                for o in static(range(rows)):
                    w = splat(by[o * inner], lanes)
                    for v in static(range(across)):
                        i = static((o * across + v) * lanes)
                        step = load(here, static(v * lanes), lanes)
                        store(sums, i, fma(step, w, load(sums, i, lanes)))
        target = out[(part * outputs + output) * height * width :]
        y, column = first // pitch, first % pitch
        if column + span <= width:
            for o in static(range(rows)):
                line = target[(o * height + y) * width + column :]
                for v in static(range(across)):
                    i = static((o * across + v) * lanes)
                    store(line, static(v * lanes), load(sums, i, lanes))
        else:
            for i in static(range(rows * across)):
                store(done, static(i * lanes), load(sums, static(i * lanes), lanes))
            at = 0
            while at < span and y < height:
                many = min(width - column, span - at)
                for o in range(rows):
                    line = target[(o * height + y) * width + column :]
                    made = done[o * span + at :]
                    for i in independent(range(many)):
                        line[i] = made[i]
                at += pitch - column
                column = 0
                y += 1


# plans ----------------------------------------------------------------------------------------
class RegisterBlock(NamedTuple):
    """The sums held in registers: ``across`` vectors of ``lanes`` for each of ``rows`` outputs."""

    lanes: int
    across: int
    rows: int


def register_block(dtype: str, outputs: int, positions: int) -> RegisterBlock:
    """Return the block of sums that fills the registers, no larger than the work."""
    size, across = vector_bytes(), 3
    rows = 8 if size == 64 else 4
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
        out = matmul.array_of(output, (images, groups, weight[0] // groups, area), dtype)
        left = matmul.array_of(inputs[1], (groups, weight[0] // groups, weight[1]), dtype)
        np.matmul(
            left, matmul.array_of(inputs[0], (images, groups, weight[1], area), dtype), out=out
        )
        if len(inputs) > 2:
            out += matmul.array_of(inputs[2], (groups, weight[0] // groups, 1), dtype)

    return run


def _windows(engine: Engine, task: Task) -> Runner:
    dtype, groups = task.output.dtype, task["groups"]
    x, weight = task.inputs[0].shape, task.inputs[1].shape
    images, channels = x[0] if len(x) == 4 else 1, x[-3]
    outputs, inner = weight[0] // groups, weight[1] * weight[2] * weight[3]
    height, width = task.output.shape[-2:]
    layout = plan_layout(task)
    shape = register_block(dtype, outputs, height * layout.pitch)
    kind, size = native_type(dtype), ITEMSIZE[dtype]
    span = shape.lanes * shape.across
    strips, blocks = -(-height * layout.pitch // span), -(-outputs // shape.rows)
    slack = span + layout.pitch  # the last vectors of a plane exceed it
    at_once = max(1, min(images, SCRATCH // (channels * layout.plane * size)))
    pad = compile_native(pad_planes, T=kind)
    sums = compile_native(convolve, T=kind, **shape._asdict())
    shifts = layout.shifts.reshape(-1), len(layout.shifts)
    laid = (*shifts, x[-2], x[-1], layout.rows, layout.pitch, *task["stride"])
    blocked = layout.offsets, weight[1], layout.plane, groups, outputs, height, width, layout.pitch
    chunk = max(1, STEPS // (inner * shape.rows * shape.across))
    room = (at_once * channels * layout.plane + slack) * size
    runs = {
        count: (
            pad.parallel(count * channels, max(1, STEPS // layout.plane), fixed=laid),
            sums.parallel(count * groups * strips * blocks, chunk, fixed=blocked),
        )
        for count in {at_once, images % at_once} - {0}
    }

    def run(image: Memory, weights: Memory, *more: Memory) -> None:
        *bias, out, work = more
        work.array[-slack * size :] = 0
        source, target = (m.array.view(NUMPY[dtype]).reshape(images, -1) for m in (image, out))
        for first in range(0, images, at_once):
            part = source[first : first + at_once]
            pad_run, sum_run = runs[len(part)]
            pad_run(part.reshape(-1), work)
            made = target[first : first + at_once].reshape(-1)
            sum_run(work, weights, bias[0] if bias else (0, 0), made)

    return scratch_runner(engine, task, [room], run)
