"""2D convolutions as matrix products with the image as the right side."""

from __future__ import annotations

from math import prod
from string import Template
from typing import TYPE_CHECKING, Final

import numpy as np

from dala.gpu.compute.dtypes import ITEMSIZE
from dala.gpu.compute.engines.base import Runner, Task
from dala.gpu.compute.engines.webgpu.limits import WORKGROUP_MEMORY
from dala.gpu.compute.engines.webgpu.ops import conv_tiles, gemm, implements
from dala.gpu.compute.engines.webgpu.ops.dispatches import (
    OUTPUT,
    BufferRef,
    Dispatches,
    block,
    read_text,
)
from dala.gpu.compute.engines.webgpu.ops.matmul import Product, add_product, add_shared

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
def make_conv2d(engine: WebGPUEngine, task: Task) -> Runner:
    """Return a runner: a matrix product over windows or 1x1 pixels, or a direct sum."""
    dispatches = Dispatches(engine, task.op)
    outputs, _, height, width = task.inputs[1].shape
    plain = height == width == 1 and task["stride"] == (1, 1) and task["padding"] == (0, 0)
    if outputs // task["groups"] < MIN_PRODUCT_OUTPUTS:
        _add_direct(dispatches, task)
    elif plain and len(task.inputs) < engine.max_bound_inputs:  # it also reads offsets
        _add_pointwise(dispatches, task)
    else:
        _add_windows(dispatches, task)
    return dispatches.runner()


def _reads(task: Task) -> list[BufferRef]:
    """Return the weights (left side), the image (right side), and the bias if there is one."""
    places = [BufferRef("input", 1), BufferRef("input", 0)]
    return [*places, BufferRef("input", 2)] if len(task.inputs) > 2 else places


def _add_pointwise(dispatches: Dispatches, task: Task) -> None:
    """Add a 1x1 convolution: each image's channels are the rows of a matrix."""
    x, weight = task.inputs[0].shape, task.inputs[1].shape
    groups, inner = task["groups"], weight[1]
    rows, columns = weight[0] // groups, x[-2] * x[-1]
    images = x[0] if len(x) == 4 else 1
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
    add_product(dispatches, product, _reads(task))


def _add_windows(dispatches: Dispatches, task: Task) -> None:
    dtype = task.output.dtype
    x, weight = task.inputs[0].shape, task.inputs[1].shape
    groups = task["groups"]
    rows, inner = weight[0] // groups, weight[1] * weight[2] * weight[3]
    images = x[0] if len(x) == 4 else 1
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
            for tile in gemm.tiles_for(dispatches.engine, ITEMSIZE[dtype])
            if tile is not gemm.TILES[0]
        ),
    )
    cost = gemm.cost(plan, rows, columns, groups, ITEMSIZE[dtype], fetch)
    over_tiles = tiled(dispatches.engine, task)
    if over_tiles is not None and over_tiles.cost < (SHARED if plan.shares > 1 else 1) * cost:
        _add_tiles(dispatches, task, over_tiles)
        return
    tile, shares, share = plan.tile, plan.shares, plan.share
    across, down = tile.count(rows, columns)
    bias = len(task.inputs) > 2
    text = windows_text(
        tile,
        dtype,
        (weight[2], weight[3]),
        (dtype == "f32" and not inner % 4, dtype == "f32" and not area % 4),
        bias,
        by_channel,
        unrolled=dispatches.engine.gpu,
    )
    numbers = block(
        *(rows, columns, inner, share, shares, across, down, across * down * groups * shares),
        *(inner, groups, x[-2], x[-1], area, out_width),
        *(x[-3] * x[-2] * x[-1], channels * x[-2] * x[-1], channels),
        *(*task["stride"], *task["padding"], *task["dilation"]),
    )
    result = dtype, prod(task.output.shape), shares
    add_shared(dispatches, text, _reads(task), numbers, across * down * groups * shares, result)


def tiled(engine: WebGPUEngine, task: Task) -> conv_tiles.ConvPlan | None:
    """Return the best plan over tiles of the image, or None where they are of no use.

    Software adapters take seconds to compile the tiles.
    """
    if task.output.dtype != "f32" or task["dilation"] != (1, 1) or engine.adapter.software:
        return None
    x, weight = task.inputs[0].shape, task.inputs[1].shape
    images = x[0] if len(x) == 4 else 1
    problem = conv_tiles.ConvSizes(
        outputs=weight[0] // task["groups"],
        channels=weight[1],
        planes=images * task["groups"],
        height=task.output.shape[-2],
        width=task.output.shape[-1],
        window=(weight[2], weight[3]),
        stride=task["stride"],
    )
    room = min(engine.limits[WORKGROUP_MEMORY], gemm.WORKGROUP_BYTES)
    return conv_tiles.choose(problem, ITEMSIZE["f32"], room, engine.workgroup)


def _add_tiles(dispatches: Dispatches, task: Task, plan: conv_tiles.ConvPlan) -> None:
    x, weight = task.inputs[0].shape, task.inputs[1].shape
    groups, images = task["groups"], x[0] if len(x) == 4 else 1
    outputs, channels = weight[0] // groups, weight[1]
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
        unrolled=dispatches.engine.gpu
        and tile.steps <= conv_tiles.MAX_UNROLLED
        and plan.share > tile.slice,
    )
    numbers = block(
        *(outputs, channels, plan.share, across, down, over, groups, images, count),
        *(x[-2], x[-1], height, width, *task["padding"]),
    )
    result = task.output.dtype, prod(task.output.shape), plan.shares
    add_shared(dispatches, text, _reads(task), numbers, count, result)


def windows_text(
    tile: gemm.GemmTile,
    dtype: str,
    window: tuple[int, int],
    fours: tuple[bool, bool],
    bias: bool,
    by_channel: bool,
    *,
    unrolled: bool,
) -> str:
    """Return the shader; ``fours`` says if lines of weights and output are multiples of four.

    ``by_channel`` sums over channels first, in fours, and then over the window: the place of a
    window is then computed once for four numbers.
    """
    left = gemm.GemmOperand("a", dtype, True, fours[0] and not by_channel)
    sizes = {"T": dtype, "WINDOWu": f"{window[0] * window[1]}u", "WIDTHu": f"{window[1]}u"}
    text = read_text("conv.wgsl")
    text += read_text("conv_channels.wgsl" if by_channel else "conv_windows.wgsl")
    reading = Template(text).substitute(sizes)
    if not by_channel:
        reading = f"{gemm.fetch(left, 'p.rows', False)}\n{reading}"
    added = gemm.bias_text(dtype, "matrix * p.rows + {row}") if bias else ""
    return gemm.write(
        tile,
        dtype,
        numbers=NUMBERS,
        bindings=[
            f"a: array<{left.element}>",
            f"b: array<{dtype}>",
            *([f"bias: array<{dtype}>"] if bias else []),
            f"out: array<{f'vec4<{dtype}>' if fours[1] else dtype}>",
        ],
        functions=reading,
        prepare=PREPARE,
        left=(True, "matrix * p.rows * p.inner"),
        right=(False, ", ".join(f"o{i}_{{i}}" for i in range(4))),
        prepare_load=ORIGINS,
        stores=gemm.results(
            tile,
            quads=fours[1],
            whole=False,
            value="{sum}" + added,
            place="(share_place + out_at({row}, {column}, matrix))",
        ),
        unrolled=unrolled,
    )


def _add_direct(dispatches: Dispatches, task: Task) -> None:
    dtype = task.output.dtype
    x, weight = task.inputs[0].shape, task.inputs[1].shape
    reads = _reads(task)
    names = [f"var<storage, read> bias: array<{dtype}>;"] if len(reads) > 2 else []
    names += [f"var<storage, read_write> out: array<{dtype}>;", "var<uniform> p: Numbers;"]
    text = Template(read_text("conv_direct.wgsl")).substitute(
        T=dtype,
        BINDINGS="\n".join(f"@group(0) @binding({i}) {n}" for i, n in enumerate(names, 2)),
        START="bias[output]" if len(reads) > 2 else f"{dtype}(0)",
        WINDOWu=f"{weight[2] * weight[3]}u",
        HEIGHTu=f"{weight[2]}u",
        WIDTHu=f"{weight[3]}u",
    )
    count = prod(task.output.shape)
    numbers = block(
        *(count, weight[0], weight[0] // task["groups"], weight[1], x[-3], x[-2], x[-1]),
        *(*task.output.shape[-2:], *task["stride"], *task["padding"], *task["dilation"]),
    )
    dispatches.add(text, reads, OUTPUT, numbers, -(-count // 256))
