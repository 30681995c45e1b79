"""Runners of the YUV operations for bytes, and from 4:2:0 to floats.

Other conversions of floats are lowered to the kernel language instead.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.ops.shared import *
from dala.gpu.compute.engines.cpu.ops.yuv.decode import decode, float_coefficients
from dala.gpu.compute.engines.cpu.ops.yuv.encode import encode
from dala.gpu.compute.engines.cpu.ops.yuv.packed import decode_pixels, encode_pixels

#: Pixels per tile, approximately.
TILE: Final = 1 << 15

#: Arguments of native code: numbers, and arrays as address and length.
Arguments: TypeAlias = tuple[int | float | tuple[int, int], ...]


@implements("yuv_to_rgb")
def make_yuv_to_rgb(engine: Engine, task: Task) -> Runner | None:
    """Return the runner that decodes 4:2:0 bytes to bytes or floats, or 4:4:4 bytes to bytes."""
    if task["format"] == "yuv444":
        return _packed(task, decode_pixels, stored=task.output.shape[2])
    height, width, _ = task.output.shape
    native, numbers = _decoder(task)
    run_all = native.parallel(height, max(1, TILE // width))
    pairs = task["format"] == "nv12"

    def run(*held: Memory) -> None:
        given = [m.address for m in held[:-1]]
        run_all(*_planes(given, height, width, pairs), held[-1], *numbers)

    return array_runner(run)


def _packed(task: Task, code: NativeFunction, **statics: Any) -> Runner | None:
    if task.inputs[0].dtype != "u8" or task.output.dtype != "u8":
        return None
    height, width = task.output.shape[:2]
    return array_runner(
        compile_native(code, **statics).parallel(height * width, TILE), *task["fixed"]
    )


def _decoder(task: Task) -> tuple[Native, Arguments]:
    height, width, stored = task.output.shape
    fixed = task.output.dtype == "u8"
    native = compile_native(
        decode,
        T=i16 if fixed else f32,
        S=u8 if fixed else f32,
        step=2 if task["format"] == "nv12" else 1,
        stored=stored,
        bilinear=task["chroma"] == "bilinear",
        centered=task["siting"] == "center",
    )
    if not fixed:
        return native, (width, height, *float_coefficients(task["numbers"]))
    gain, bias, *weights = task["fixed"]
    return native, (width, height, gain, bias, 128, *weights)


@implements("rgb_to_yuv")
def make_rgb_to_yuv(engine: Engine, task: Task) -> Runner | None:
    """Return the runner that encodes bytes to bytes."""
    if task["format"] == "yuv444":
        return _packed(task, encode_pixels, channels=task.inputs[0].shape[2])
    if task.inputs[0].dtype != "u8":
        return None
    height, width, channels = task.inputs[0].shape
    native, numbers = _encoder(task)
    run_all = native.parallel(height // 2, max(1, TILE // width // 2))
    pairs, row = task["format"] == "nv12", width * channels

    def run(rgb: Memory, out: Memory) -> None:
        size = height * row
        both = (rgb.address, size), (rgb.address + row, size - row)
        run_all(*both, *_planes([out.address], height, width, pairs), *numbers)

    return array_runner(run)


def _encoder(task: Task) -> tuple[Native, Arguments]:
    _, width, channels = task.inputs[0].shape
    native = compile_native(
        encode,
        step=2 if task["format"] == "nv12" else 1,
        channels=channels,
        centered=task["siting"] == "center",
    )
    return native, (width, *task["fixed"])


def _planes(addresses: list[int], height: int, width: int, pairs: bool) -> list[tuple[int, int]]:
    """Return the addresses and lengths of Y, Cb and Cr; interleaved Cb and Cr are a byte apart."""
    area, quarter = height * width, height * width // 4
    first = addresses[0]
    if len(addresses) == 3:
        return [(first, area), (addresses[1], quarter), (addresses[2], quarter)]
    chroma = addresses[1] if len(addresses) == 2 else first + area
    if pairs:
        return [(first, area), (chroma, 2 * quarter), (chroma + 1, 2 * quarter - 1)]
    return [(first, area), (chroma, quarter), (chroma + quarter, quarter)]
