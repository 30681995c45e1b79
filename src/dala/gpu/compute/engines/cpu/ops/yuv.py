"""4:2:0 pictures on the CPU, rows over the threads: bytes in fixed point, floats here.

Each row goes in blocks that stay in the nearest cache: what chroma adds to red, green and blue is
worked out a sample at a time, then spread over the pixels. All else is left to the kernels of the
language.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dala.errors import FreedError
from dala.gpu.compute.engines.base import Engine, Runner, Storage, Task
from dala.gpu.compute.engines.cpu.native import Native, compile_native, native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    f32,
    i32,
    i64,
    independent,
    local,
    u8,
    u16,
    view,
)
from dala.gpu.compute.engines.cpu.ops import implements, yuv_fixed

#: Chroma samples of a block.
BLOCK: Final = 512
#: Pixels of a tile, roughly.
TILE: Final = 1 << 15


# to RGB -------------------------------------------------------------------------------------------
@native
def sample(u: Array[u8], v: Array[u8], at: i64, *, step: int) -> tuple[i32, i32]:
    """Cb and Cr; where they lie side by side, both are read at once."""
    if step == 2:
        both = i32(view(u, u16)[at])
        return both & 255, both >> 8
    else:
        return i32(u[at]), i32(v[at])


@native(fast=True)
def share(
    u: Array[u8],
    v: Array[u8],
    near: i64,
    far: i64,
    middle: f32,
    rv: f32,
    gu: f32,
    gv: f32,
    bu: f32,
    *,
    step: int,
    bilinear: bool,
) -> tuple[f32, f32, f32]:
    """What a sample adds to r, g and b, three quarters of it from the nearer row."""
    cu, cv = sample(u, v, near, step=step)
    if bilinear:
        further_u, further_v = sample(u, v, far, step=step)
        x = f32(3 * cu + further_u) * 0.25 - middle
        y = f32(3 * cv + further_v) * 0.25 - middle
    else:
        x, y = f32(cu) - middle, f32(cv) - middle
    return y * rv, x * gu + y * gv, x * bu


@native(fast=True)
def pair(c: Array[f32], k: i64, *, bilinear: bool, centered: bool) -> tuple[f32, f32]:
    """What the two pixels of sample k get; the one before the block's is there first."""
    near = c[k + 1]
    if bilinear and centered:
        return near * 0.75 + c[k] * 0.25, near * 0.75 + c[k + 2] * 0.25
    elif bilinear:
        return near, (near + c[k + 2]) * 0.5
    else:
        return near, near


@native(fast=True)
def pixels(
    luma: Array[u8],
    r: Array[f32],
    g: Array[f32],
    b: Array[f32],
    out: Array[f32],
    gain: f32,
    bias: f32,
    count: i64,
    *,
    stored: int,
    bilinear: bool,
    centered: bool,
) -> None:
    """Two pixels a sample."""
    for k in independent(range(count)):
        y0, y1 = f32(luma[2 * k]) * gain + bias, f32(luma[2 * k + 1]) * gain + bias
        r0, r1 = pair(r, k, bilinear=bilinear, centered=centered)
        g0, g1 = pair(g, k, bilinear=bilinear, centered=centered)
        b0, b1 = pair(b, k, bilinear=bilinear, centered=centered)
        at = 2 * k * stored
        out[at], out[at + 1], out[at + 2] = y0 + r0, y0 + g0, y0 + b0
        out[at + stored], out[at + stored + 1] = y1 + r1, y1 + g1
        out[at + stored + 2] = y1 + b1
        if stored == 4:
            out[at + 3], out[at + 7] = f32(1), f32(1)


@native
def line(
    luma: Array[u8],
    u: Array[u8],
    v: Array[u8],
    out: Array[f32],
    y: i64,
    width: i64,
    height: i64,
    gain: f32,
    bias: f32,
    middle: f32,
    rv: f32,
    gu: f32,
    gv: f32,
    bu: f32,
    *,
    step: int,
    stored: int,
    bilinear: bool,
    centered: bool,
) -> None:
    """A row of 4:2:0 as RGB; samples of chroma are ``step`` bytes apart."""
    r, g, b = local(f32, BLOCK + 2), local(f32, BLOCK + 2), local(f32, BLOCK + 2)
    half, rows = width // 2, height // 2
    j = y // 2
    other = max(min(j + y % 2 * 2 - 1, rows - 1), 0)
    at = 0
    while at < half:
        count = min(half - at, BLOCK)
        near, far = j * half + at, other * half + at
        for k in independent(range(count)):
            r[k + 1], g[k + 1], b[k + 1] = share(
                u, v, near + k, far + k, middle, rv, gu, gv, bu,
                step=step, bilinear=bilinear,
            )  # fmt: skip
        if bilinear:
            before = 0 if at == 0 else -1
            after = count - 1 if at + count == half else count
            r[0], g[0], b[0] = share(
                u, v, near + before, far + before, middle, rv, gu, gv, bu,
                step=step, bilinear=bilinear,
            )  # fmt: skip
            r[count + 1], g[count + 1], b[count + 1] = share(
                u, v, near + after, far + after, middle, rv, gu, gv, bu,
                step=step, bilinear=bilinear,
            )  # fmt: skip
        pixels(
            luma[y * width + 2 * at :], r, g, b, out[2 * at * stored :], gain, bias, count,
            stored=stored, bilinear=bilinear, centered=centered,
        )  # fmt: skip
        at += count


@native
def decode(
    luma: Array[u8],
    u: Array[u8],
    v: Array[u8],
    out: Array[f32],
    width: i64,
    height: i64,
    gain: f32,
    bias: f32,
    middle: f32,
    rv: f32,
    gu: f32,
    gv: f32,
    bu: f32,
    start: i64,
    end: i64,
    *,
    step: int,
    stored: int,
    bilinear: bool,
    centered: bool,
    rows: bool,
) -> None:
    """Rows of 4:2:0 as RGB; with ``rows`` the output begins at the first that is asked for."""
    first = start if rows else 0
    for y in range(start, end):
        line(
            luma, u, v, out[(y - first) * width * stored :], y, width, height,
            gain, bias, middle, rv, gu, gv, bu,
            step=step, stored=stored, bilinear=bilinear, centered=centered,
        )  # fmt: skip


# runners ------------------------------------------------------------------------------------------
@implements("yuv_to_rgb")
def make_yuv_to_rgb(engine: Engine, task: Task) -> Runner | None:
    """4:2:0 bytes to bytes or floats."""
    if task["format"] == "yuv444":
        return None
    height, width, _ = task.output.shape
    native, numbers = _decoder(task, rows=False)
    run_all = native.parallel(height, max(1, TILE // width))
    pairs = task["format"] == "nv12"

    def run(inputs: Sequence[Storage], output: Storage, params: tuple[Any, ...]) -> None:
        *held, out = _held(*inputs, output)
        run_all(*_planes([m.address for m in held], height, width, pairs), out, *numbers)

    return run


def decode_rows(task: Task) -> tuple[Native, tuple[Any, ...]]:
    """What makes a row of bytes out of planes, and its arguments: planes by where they begin.

    They begin so far behind the buffers that hold them; the row is told for each call.
    """
    height, width, stored = task.output.shape
    native, numbers = _decoder(task, rows=True)
    planes = _planes([0] * len(task.inputs), height, width, task["format"] == "nv12")
    return native, (*planes, (0, width * stored), *numbers)


def _decoder(task: Task, *, rows: bool) -> tuple[Native, tuple[Any, ...]]:
    height, width, stored = task.output.shape
    how = {
        "step": 2 if task["format"] == "nv12" else 1,
        "stored": stored,
        "bilinear": task["chroma"] == "bilinear",
        "centered": task["siting"] == "center",
        "rows": rows,
    }
    if task.output.dtype == "u8":
        native = compile_native(yuv_fixed.decode, **how)
        return native, (width, height, *yuv_fixed.decoding(task["numbers"]))
    black, gain, middle, *shares = task["numbers"]
    numbers = (gain / 255.0, -black * gain, middle * 255.0, *(s / 255.0 for s in shares))
    return compile_native(decode, **how), (width, height, *numbers)


@implements("rgb_to_yuv")
def make_rgb_to_yuv(engine: Engine, task: Task) -> Runner | None:
    """Bytes to 4:2:0."""
    if task["format"] == "yuv444" or task.inputs[0].dtype != "u8":
        return None
    height, width, channels = task.inputs[0].shape
    native, numbers = _encoder(task, rows=False)
    run_all = native.parallel(height // 2, max(1, TILE // width // 2))
    pairs, row = task["format"] == "nv12", width * channels

    def run(inputs: Sequence[Storage], output: Storage, params: tuple[Any, ...]) -> None:
        rgb, out = _held(*inputs, output)
        size = height * row
        both = (rgb.address, size), (rgb.address + row, size - row)
        run_all(*both, *_planes([out.address], height, width, pairs), *numbers)

    return run


def encode_rows(task: Task) -> tuple[Native, tuple[Any, ...]]:
    """What makes planes of two rows, and its arguments; see :func:`decode_rows`."""
    height, width, channels = task.inputs[0].shape
    native, numbers = _encoder(task, rows=True)
    row = (0, width * channels)
    return native, (row, row, *_planes([0], height, width, task["format"] == "nv12"), *numbers)


def _encoder(task: Task, *, rows: bool) -> tuple[Native, tuple[Any, ...]]:
    _, width, channels = task.inputs[0].shape
    native = compile_native(
        yuv_fixed.encode,
        step=2 if task["format"] == "nv12" else 1,
        channels=channels,
        centered=task["siting"] == "center",
        rows=rows,
    )
    return native, (width, *yuv_fixed.encoding(task["numbers"]))


def _planes(held: list[int], height: int, width: int, pairs: bool) -> list[tuple[int, int]]:
    """Address and length of Y, Cb and Cr; those of pairs begin a byte apart."""
    area, quarter = height * width, height * width // 4
    first = held[0]
    if len(held) == 3:
        return [(first, area), (held[1], quarter), (held[2], quarter)]
    chroma = held[1] if len(held) == 2 else first + area
    if pairs:
        return [(first, area), (chroma, 2 * quarter), (chroma + 1, 2 * quarter - 1)]
    return [(first, area), (chroma, quarter), (chroma + quarter, quarter)]


def _held(*storages: Storage) -> list[Any]:
    """The storages' memory, which lives as long as it is held."""
    held = [storage.handle for storage in storages]
    if None in held:
        raise FreedError("a buffer was freed by one thread while another was about to use it")
    return held
