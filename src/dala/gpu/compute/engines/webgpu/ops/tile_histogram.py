"""Histograms of the tiles of a picture on WebGPU, counted by workgroups."""

from __future__ import annotations

from functools import cache
from typing import Final

from dala.gpu.compute.engines.base import Task
from dala.gpu.compute.engines.webgpu.ops.dispatches import Dispatches, implements, shader_text

#: The fewest pixels that a workgroup counts, to make up for adding its counters.
MIN_LENGTH: Final = 4096

_LEVELS: Final = {
    "u8": "return (a[i >> 2u] >> ((i & 3u) * 8u)) & 255u;",
    # A comparison with NaN is false, so that it becomes 0.
    "f32": "let v = a[i] * 255.0f + 0.5f;\n    return u32(select(0.0f, min(v, 255.0f), v > 0.0f));",
}
_LUMA: Final = """\
let sum = level(at) * 9798u + level(at + 1u) * 19235u + level(at + 2u) * 3735u;
            atomicAdd(&counters[(sum + 16384u) >> 15u], 1u);"""
_ONE: Final = "atomicAdd(&counters[level(at + {0}u) + {0}u * 256u], 1u);"


@cache
def _text(dtype: str, channels: int, planes: int, luma: bool) -> str:
    count = "\n            ".join(_ONE.format(c) for c in range(planes))
    return shader_text(
        "tile_histogram.wgsl",
        kind="u32" if dtype == "u8" else "f32",
        level=_LEVELS[dtype],
        size=planes * 256,
        channels=channels,
        count=_LUMA if luma else count,
    )


@implements("tile_histogram")
def add_tile_histogram(work: Dispatches, task: Task) -> None:
    """Add a dispatch that clears the output and one that counts."""
    image = task.inputs[0]
    height, width = image.shape[:2]
    channels = image.shape[2] if len(image.shape) == 3 else 1
    rows, columns, planes, levels = task.output.shape
    tall, wide = task["size"]
    tiles, pixels = rows * columns, tall * wide
    length = max(MIN_LENGTH, -(-pixels * tiles // 4096))
    parts = -(-pixels // length)
    size = tiles * planes * levels
    work.clear(work.output, size)
    work.add(
        _text(image.dtype, channels, planes, task["luma"]),
        work.inputs,
        work.output,
        (height, width, tall, wide, tiles, columns, parts, length),
        tiles * parts,
    )
