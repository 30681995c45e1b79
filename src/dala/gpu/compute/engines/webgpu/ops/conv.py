"""2D convolutions as matrix products with the image as the right side."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

import numpy as np

from dala.gpu.compute.dtypes import ITEMSIZE
from dala.gpu.compute.engines.base import Task
from dala.gpu.compute.engines.webgpu.limits import WORKGROUP_MEMORY
from dala.gpu.compute.engines.webgpu.ops import conv_tiles, gemm
from dala.gpu.compute.engines.webgpu.ops.dispatches import (
    BufferRef,
    Dispatches,
    implements,
    shader_text,
)
from dala.gpu.compute.engines.webgpu.ops.matmul import Product, add_product, add_shared
from dala.gpu.compute.engines.webgpu.wgsl.names import bindings

if TYPE_CHECKING:
    from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine

#: Groups with fewer outputs are computed directly, one result per invocation.
MIN_PRODUCT_OUTPUTS: Final = 8

#: The cost of reading a number of a window, in flops of a product.
FETCH: Final = 70.0
FETCH_BY_CHANNEL: Final = 60.0

#: How much longer products over windows take than the model says if groups share a sum.
SHARED: Final = 1.4

NUMBERS: Final = """    left_step: u32,
    parts: u32,
    height: u32,
    width: u32,
    area: u32,
    out_width: u32,
    image: u32,
    part: u32,
    channels: u32,
    stride_y: u32,
    stride_x: u32,
    pad_y: u32,
    pad_x: u32,
    dilation_y: u32,
    dilation_x: u32,"""

PREPARE: Final = "    let share_place = layer % p.shares * p.parts * p.rows * p.columns;"

#: The windows of the four columns of a load.
ORIGINS: Final = "\n".join(f"let o{i}_{{i}} = origin({{first}} + {i}u, matrix);" for i in range(4))


@implements("conv2d")
def add_conv2d(work: Dispatches, task: Task) -> None:
    """Add a matrix product over windows or 1x1 pixels, or a direct sum."""
    outputs, _, height, width = task.inputs[1].shape
    plain = height == width == 1 and task["stride"] == (1, 1) and task["padding"] == (0, 0)
    if outputs // task["groups"] < MIN_PRODUCT_OUTPUTS:
        _add_direct(work, task)
    elif plain and len(task.inputs) < work.engine.max_bound_inputs:  # it also reads offsets
        _add_pointwise(work, task)
    else:
        _add_windows(work, task)


def _reads(work: Dispatches) -> list[BufferRef]:
    """Return the weights (left side), the image (right side), and the bias if there is one."""
    image, weights, *bias = work.inputs
    return [weights, image, *bias]


def _sizes(task: Task) -> tuple[tuple[int, ...], tuple[int, ...], int, int, int]:
    """Return the shapes of image and weights, the groups, the outputs of one, and the images."""
    x, weight, groups = task.inputs[0].shape, task.inputs[1].shape, task["groups"]
    return x, weight, groups, weight[0] // groups, x[0] if len(x) == 4 else 1


def _add_pointwise(work: Dispatches, task: Task) -> None:
    """Add a 1x1 convolution: each image's channels are the rows of a matrix."""
    x, weight, groups, rows, images = _sizes(task)
    inner, columns = weight[1], x[-2] * x[-1]
    number = np.arange(images * groups)
    offsets = np.stack([number % groups * rows * inner, number * inner * columns], 1)
    product = Product(
        dtype=task.output.dtype,
        rows=rows,
        inner=inner,
        columns=columns,
        offsets=offsets.astype(np.uint32),
        biases=groups if len(task.inputs) > 2 else 0,
    )
    add_product(work, product, _reads(work))


def _add_windows(work: Dispatches, task: Task) -> None:
    dtype = task.output.dtype
    x, weight, groups, rows, images = _sizes(task)
    inner = prod(weight[1:])
    out_height, out_width = task.output.shape[-2:]
    area = out_height * out_width
    columns = images * area
    channels = weight[1]
    by_channel = not channels % 4
    fetch = FETCH_BY_CHANNEL if by_channel else FETCH
    plan = gemm.choose(
        *(rows, columns, inner, groups, ITEMSIZE[dtype]),
        fetch=fetch,
        # The largest tile has no registers left for windows: it takes twice the time of the model.
        tiles=tuple(
            tile
            for tile in gemm.tiles_for(work.engine, ITEMSIZE[dtype])
            if tile is not gemm.TILES[0]
        ),
    )
    cost = (SHARED if plan.shares > 1 else 1) * plan.cost
    over_tiles = tiled(work.engine, task)
    if over_tiles is not None and over_tiles.cost < cost:
        _add_tiles(work, task, over_tiles)
        return
    tile, shares, share = plan.tile, plan.shares, plan.share
    across, down = tile.count(rows, columns)
    text = windows_text(task, tile, by_channel, unrolled=work.engine.gpu)
    numbers = (
        *(rows, columns, inner, share, shares, across, down, across * down * groups * shares),
        *(inner, groups, x[-2], x[-1], area, out_width),
        *(x[-3] * x[-2] * x[-1], channels * x[-2] * x[-1], channels),
        *(*task["stride"], *task["padding"], *task["dilation"]),
    )
    add_shared(work, text, _reads(work), numbers, across * down * groups * shares, shares)


def tiled(engine: WebGPUEngine, task: Task) -> gemm.GemmPlan[conv_tiles.ConvTile] | None:
    """Return the best plan over tiles of the image, or None where they are of no use.

    Software adapters take seconds to compile the tiles.
    """
    if task.output.dtype != "f32" or task["dilation"] != (1, 1) or engine.adapter.software:
        return None
    _, weight, groups, outputs, images = _sizes(task)
    problem = conv_tiles.ConvSizes(
        outputs=outputs, channels=weight[1], planes=images * groups, height=task.output.shape[-2],
        width=task.output.shape[-1], window=(weight[2], weight[3]), stride=task["stride"],
    )  # fmt: skip
    room = min(engine.limits[WORKGROUP_MEMORY], gemm.WORKGROUP_BYTES)
    return conv_tiles.choose(problem, ITEMSIZE["f32"], room, engine.workgroup)


def _add_tiles(work: Dispatches, task: Task, plan: gemm.GemmPlan[conv_tiles.ConvTile]) -> None:
    x, weight, groups, outputs, images = _sizes(task)
    channels = weight[1]
    height, width = task.output.shape[-2:]
    tile = plan.tile
    across, down, over = tile.count(outputs, height, width)
    count = across * down * over * images * groups * plan.shares
    text = conv_tiles.write_tiles(
        tile,
        task.output.dtype,
        lines=not channels * tile.places % 4,
        quads=not width % 4,
        bias=len(task.inputs) > 2,
        unrolled=work.engine.gpu
        and tile.steps <= conv_tiles.MAX_UNROLLED
        and plan.share > tile.slice,
    )
    numbers = (
        *(outputs, channels, plan.share, across, down, over, groups, images, count),
        *(x[-2], x[-1], height, width, *task["padding"]),
    )
    add_shared(work, text, _reads(work), numbers, count, plan.shares)


def windows_text(task: Task, tile: gemm.GemmTile, by_channel: bool, *, unrolled: bool) -> str:
    """Return the shader.

    ``by_channel`` sums over channels first, in fours, and then over the window: the place of a
    window is then computed once for four numbers.
    """
    dtype, (_, channels, *window) = task.output.dtype, task.inputs[1].shape
    fours = dtype == "f32"  # lines that are multiples of four are read and stored in fours
    quads = fours and not channels * prod(window) % 4 and not by_channel
    left = gemm.GemmOperand("a", dtype, True, quads)
    name = "conv_channels.wgsl" if by_channel else "conv_windows.wgsl"
    reading = shader_text("conv.wgsl", name, T=dtype, WINDOW=prod(window), WIDTH=window[1])
    if not by_channel:
        reading = f"{gemm.fetch(left, 'p.rows', False)}\n{reading}"
    return gemm.write(
        tile, dtype, numbers=NUMBERS, reads=[f"a: array<{left.element}>", f"b: array<{dtype}>"],
        quads=fours and not prod(task.output.shape[-2:]) % 4,
        bias="matrix * p.rows + {row}" if len(task.inputs) > 2 else "", functions=reading,
        prepare=PREPARE, left=(True, "matrix * p.rows * p.inner"),
        right=(False, ", ".join(f"o{i}_{{i}}" for i in range(4))), prepare_load=ORIGINS,
        place="(share_place + out_at({row}, {column}, matrix))", unrolled=unrolled,
    )  # fmt: skip


def _add_direct(work: Dispatches, task: Task) -> None:
    dtype = task.output.dtype
    x, weight = task.inputs[0].shape, task.inputs[1].shape
    reads = _reads(work)
    names = [f"{name}: array<{dtype}>" for name in ("a", "b", "bias")[: len(reads)]]
    text = shader_text(
        "conv_direct.wgsl",
        T=dtype,
        BINDINGS="\n".join(bindings(names, [f"out: array<{dtype}>"], "Numbers")),
        START="bias[output]" if len(reads) > 2 else f"{dtype}(0)",
        WINDOW=weight[2] * weight[3],
        HEIGHT=weight[2],
        WIDTH=weight[3],
    )
    count = prod(task.output.shape)
    numbers = (
        *(count, weight[0], weight[0] // task["groups"], weight[1], x[-3], x[-2], x[-1]),
        *(*task.output.shape[-2:], *task["stride"], *task["padding"], *task["dilation"]),
    )
    work.add(text, reads, work.output, numbers, -(-count // 256))
