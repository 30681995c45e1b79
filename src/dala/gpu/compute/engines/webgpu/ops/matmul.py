"""Tiled matrix products; if the output is small, several groups share the sum over k."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from dala.gpu.compute.dtypes import ITEMSIZE
from dala.gpu.compute.engines.base import Task, Values
from dala.gpu.compute.engines.webgpu.ops import gemm
from dala.gpu.compute.engines.webgpu.ops.dispatches import (
    BufferRef,
    Dispatches,
    implements,
    shader_text,
)
from dala.typing import NDArray

NUMBERS = "    left_step: u32,\n    right_step: u32,\n    matrices: u32,\n    biases: u32,"
PREPARE = """    let places = offsets[matrix];
    let out_place = (layer % p.shares * p.matrices + matrix) * p.rows * p.columns;"""


@dataclass(frozen=True)
class Product:
    """A batch of matrix products.

    ``offsets`` are the first elements of both sides of each product. ``left_lines`` and
    ``right_lines`` are True if k is contiguous in memory. A bias has one number per row; products
    use ``biases`` different ones in turn, or none if it is 0.
    """

    dtype: str
    rows: int
    inner: int
    columns: int
    offsets: NDArray
    left_lines: bool = True
    right_lines: bool = False
    biases: int = 0

    @property
    def result(self) -> str:
        return "s32" if self.dtype == "u8" else self.dtype


@implements("matmul")
def add_matmul(work: Dispatches, task: Task) -> None:
    """Add the product, and a dispatch that adds shares if there are several."""
    add_product(work, describe(task), work.inputs)


def add_product(work: Dispatches, product: Product, reads: list[BufferRef]) -> None:
    """Add the dispatches of a product: left side, right side, and bias if it has one."""
    dtype, rows, inner, columns = product.dtype, product.rows, product.inner, product.columns
    matrices, size = len(product.offsets), ITEMSIZE[product.result]
    tiles = gemm.tiles_for(work.engine, size)
    plan = gemm.choose(rows, columns, inner, matrices, size, tiles=tiles)
    tile, shares, share = plan.tile, plan.shares, plan.share
    across, down = tile.count(rows, columns)
    groups = across * down * matrices * shares
    left_length = inner if product.left_lines else rows
    right_length = inner if product.right_lines else columns
    whole = not (rows % tile.height or columns % tile.width or inner % tile.depth or inner % share)
    can = dtype in ("f32", "s32", "u32")  # types with an aligned vec4
    left = gemm.GemmOperand("a", dtype, product.left_lines, can and not left_length % 4)
    right = gemm.GemmOperand("b", dtype, product.right_lines, can and not right_length % 4)
    source = gemm.write(
        tile,
        gemm.WGSL_TYPES[dtype],
        numbers=NUMBERS,
        reads=[
            f"a: array<{left.element}>",
            f"b: array<{right.element}>",
            "offsets: array<vec2<u32>>",
        ],
        quads=can and not columns % 4,
        whole=whole,
        bias="matrix % p.biases * p.rows + {row}" if product.biases else "",
        functions=f"{gemm.fetch(left, 'p.rows', whole)}\n{gemm.fetch(right, 'p.columns', whole)}",
        prepare=PREPARE,
        left=(left.lines, "places.x"),
        right=(right.lines, "places.y"),
        place="(out_place + {row} * p.columns + {column})",
        unrolled=work.engine.gpu,
    )
    numbers = (
        *(rows, columns, inner, share, shares, across, down, groups),
        *(left_length, right_length, matrices, product.biases),
    )
    reads = [*reads[:2], work.constant(product.offsets), *reads[2:]]
    add_shared(work, source, reads, numbers, groups, shares)


def add_shared(
    work: Dispatches, source: str, reads: list[BufferRef], numbers: Values, groups: int, shares: int
) -> None:
    """Add a product that gives the output, or so many shares of it and their sum."""
    dtype, count = work.task.output.dtype, prod(work.task.output.shape)
    target = work.output if shares == 1 else work.temporary(count * shares * ITEMSIZE[dtype])
    work.add(source, reads, target, numbers, groups)
    if shares > 1:
        text = shader_text("add_shares.wgsl").replace("NUMBER", gemm.WGSL_TYPES[dtype])
        work.add(text, [target], work.output, (count, shares), -(-count // 64))


def describe(task: Task) -> Product:
    """Describe a task as a product. Matrices with a common right side become rows of one matrix."""
    shape_a, shape_b = task.inputs[0].shape, task.inputs[1].shape
    if len(shape_a) == 1:
        shape_a = (1, *shape_a)
    if len(shape_b) == 1:
        shape_b = (*shape_b, 1)
    rows, inner = shape_a[-2:]
    if task["transpose_a"]:
        rows, inner = inner, rows
    columns = shape_b[-2 if task["transpose_b"] else -1]
    if len(shape_b) == 2 and not task["transpose_a"]:
        rows, shape_a = prod(shape_a[:-1]), shape_a[-2:]
    batch = np.broadcast_shapes(shape_a[:-2], shape_b[:-2])
    starts = [
        np.broadcast_to(
            np.arange(prod(shape[:-2])).reshape(shape[:-2]) * (shape[-2] * shape[-1]), batch
        ).reshape(-1)
        for shape in (shape_a, shape_b)
    ]
    return Product(
        dtype=task.inputs[0].dtype, rows=rows, inner=inner, columns=columns,
        offsets=np.stack(starts, 1).astype(np.uint32), left_lines=not task["transpose_a"],
        right_lines=task["transpose_b"],
    )  # fmt: skip
