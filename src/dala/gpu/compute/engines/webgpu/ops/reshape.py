"""Reshape and transposes on WebGPU: copies of the bytes, or squares of numbers turned."""

from __future__ import annotations

from math import prod
from typing import Final

from dala.gpu.compute.dtypes import ITEMSIZE
from dala.gpu.compute.engines.base import Task
from dala.gpu.compute.engines.webgpu.ops.dispatches import (
    Declined,
    Dispatches,
    implements,
    shader_text,
)

#: WGSL types of entries by their size in bytes.
_UNITS: Final = {4: "u32", 8: "vec2<u32>", 16: "vec4<u32>"}

#: Narrower matrices are lowered to a kernel, which reads them as well.
MIN_SIDE: Final = 8


@implements("reshape")
def add_reshape(work: Dispatches, task: Task) -> None:
    """Add no dispatch: the input's bytes are copied to the output."""


@implements("transpose")
def add_transpose(work: Dispatches, task: Task) -> None:
    """Copy, or add a dispatch that turns matrices; other orders are lowered to a kernel."""
    if task["reverse"]:
        raise Declined
    given = task.inputs[0]
    layers = matrices(given.shape, task["axes"])
    if layers is None:
        return
    count, rows, columns, inner = layers
    kind = _UNITS.get(ITEMSIZE[given.dtype] * inner)
    if kind is None or not rows or min(rows, columns) < MIN_SIDE:
        raise Declined
    side = {"u32": 32, "vec2<u32>": 32, "vec4<u32>": 16}[kind]  # within 16 KiB
    across, down = -(-columns // side), -(-rows // side)
    groups = across * down * count
    text = shader_text("transpose.wgsl", T=kind, SIDE=side, ENTRIES=side * (side + 1))
    numbers = (rows, columns, across, down, groups)
    work.add(text, work.inputs, work.output, numbers, groups)


def matrices(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, int, int, int] | None:
    """Return a transposition as (matrices, rows, columns, numbers in each entry).

    None if the order of the numbers does not change, and rows of 0 if it is another permutation.

    >>> matrices((2, 3, 4), (0, 2, 1)), matrices((5, 6, 4), (1, 0, 2)), matrices((7, 1), (1, 0))
    ((2, 3, 4, 1), (1, 5, 6, 4), None)
    >>> matrices((2, 3, 4, 5), (2, 3, 0, 1)), matrices((2, 3, 4), (2, 1, 0))
    ((1, 6, 20, 1), (1, 0, 0, 1))
    """
    runs: list[list[int]] = []  # axes that stay neighbors, without those of length 1
    for axis in (axis for axis in axes if shape[axis] != 1):
        last = runs[-1][-1] if runs else axis
        if last < axis and all(shape[n] == 1 for n in range(last + 1, axis)):
            runs[-1].append(axis)
        else:
            runs.append([axis])
    order = sorted(range(len(runs)), key=lambda n: runs[n][0])
    sizes = [prod(shape[axis] for axis in run) for run in runs]
    if order == list(range(len(runs))):
        return None
    if order not in ([1, 0], [0, 2, 1], [1, 0, 2], [0, 2, 1, 3]):
        return 1, 0, 0, 1
    outer = sizes.pop(0) if order[0] == 0 else 1
    columns, rows, *inner = sizes
    return outer, rows, columns, prod(inner)
