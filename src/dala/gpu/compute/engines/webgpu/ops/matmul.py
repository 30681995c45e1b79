"""Tiled matrix products; if the output is small, several groups share the sum over k."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from dala.gpu.compute.dtypes import ITEMSIZE
from dala.gpu.compute.engines.base import Runner, Task
from dala.gpu.compute.engines.webgpu.ops import gemm, implements
from dala.gpu.compute.engines.webgpu.ops.dispatches import (
    OUTPUT,
    BufferRef,
    Dispatches,
    block,
    read_text,
)
from dala.typing import NDArray

if TYPE_CHECKING:
    from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine

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
def make_matmul(engine: WebGPUEngine, task: Task) -> Runner:
    """Return a runner of the product, and of a dispatch that adds shares if there are several."""
    dispatches = Dispatches(engine, task.op)
    add_product(dispatches, describe(task), [BufferRef("input", 0), BufferRef("input", 1)])
    return dispatches.runner()


def add_product(dispatches: Dispatches, product: Product, reads: list[BufferRef]) -> None:
    """Add the dispatches of a product: left side, right side, and bias if it has one."""
    rows, inner, columns = product.rows, product.inner, product.columns
    matrices = len(product.offsets)
    size = ITEMSIZE[product.result]
    tiles = gemm.tiles_for(dispatches.engine, size)
    plan = gemm.choose(rows, columns, inner, matrices, size, tiles=tiles)
    tile, shares, share = plan.tile, plan.shares, plan.share
    across, down = tile.count(rows, columns)
    groups = across * down * matrices * shares
    left_length = inner if product.left_lines else rows
    right_length = inner if product.right_lines else columns
    whole = not (rows % tile.height or columns % tile.width or inner % tile.depth or inner % share)
    source = product_text(
        tile,
        product.dtype,
        product.left_lines,
        product.right_lines,
        (not left_length % 4, not right_length % 4, not columns % 4),
        whole,
        product.biases > 0,
        unrolled=dispatches.engine.gpu,
    )
    numbers = block(
        *(rows, columns, inner, share, shares, across, down, groups),
        *(left_length, right_length, matrices, product.biases),
    )
    count = rows * columns * matrices
    reads = [*reads[:2], dispatches.constant(product.offsets), *reads[2:]]
    add_shared(dispatches, source, reads, numbers, groups, (product.result, count, shares))


def add_shared(
    dispatches: Dispatches,
    source: str,
    reads: list[BufferRef],
    numbers: bytes,
    groups: int,
    result: tuple[str, int, int],
) -> None:
    """Add a product and the sum of its shares; ``result`` is the dtype, count and shares."""
    dtype, count, shares = result
    target = OUTPUT if shares == 1 else dispatches.temporary(count * shares * ITEMSIZE[dtype])
    dispatches.add(source, reads, target, numbers, groups)
    if shares > 1:
        text = read_text("add_shares.wgsl").replace("NUMBER", gemm.WGSL_TYPES[dtype])
        dispatches.add(text, [target], OUTPUT, block(count, shares), -(-count // 64))


def product_text(
    tile: gemm.GemmTile,
    dtype: str,
    left_lines: bool,
    right_lines: bool,
    fours: tuple[bool, bool, bool],
    whole: bool,
    bias: bool,
    *,
    unrolled: bool,
) -> str:
    """Return the shader; ``fours`` says if lines (left, right, output) are multiples of four."""
    can = dtype in ("f32", "s32", "u32")  # types with an aligned vec4
    left = gemm.GemmOperand("a", dtype, left_lines, can and fours[0])
    right = gemm.GemmOperand("b", dtype, right_lines, can and fours[1])
    quads = can and fours[2]
    kind = gemm.WGSL_TYPES[dtype]
    added = gemm.bias_text(kind, "matrix % p.biases * p.rows + {row}") if bias else ""
    return gemm.write(
        tile,
        kind,
        numbers=NUMBERS,
        bindings=[
            f"a: array<{left.element}>",
            f"b: array<{right.element}>",
            "offsets: array<vec2<u32>>",
            *([f"bias: array<{kind}>"] if bias else []),
            f"out: array<{f'vec4<{kind}>' if quads else kind}>",
        ],
        functions="\n".join(
            [gemm.fetch(left, "p.rows", whole), gemm.fetch(right, "p.columns", whole)]
        ),
        prepare=PREPARE,
        left=(left_lines, "places.x"),
        right=(right_lines, "places.y"),
        stores=gemm.results(
            tile,
            quads=quads,
            whole=whole,
            value="{sum}" + added,
            place="(out_place + {row} * p.columns + {column})",
        ),
        unrolled=unrolled,
    )


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
        dtype=task.inputs[0].dtype,
        rows=rows,
        inner=inner,
        columns=columns,
        offsets=np.stack(starts, 1).astype(np.uint32),
        left_lines=not task["transpose_a"],
        right_lines=task["transpose_b"],
    )
