"""Resizing on WebGPU: one pass if there are few taps, else one pass per axis."""

from __future__ import annotations

from functools import cache
from string import Template
from typing import TYPE_CHECKING, Final

from dala.gpu.compute.engines.base import Runner, Task
from dala.gpu.compute.engines.sampling.byte_taps import WIDE, byte_words
from dala.gpu.compute.engines.sampling.taps import Axis, tap_words, task_axes
from dala.gpu.compute.engines.webgpu.ops import implements
from dala.gpu.compute.engines.webgpu.ops.dispatches import (
    OUTPUT,
    BufferRef,
    Dispatches,
    block,
    read_text,
)
from dala.gpu.compute.engines.webgpu.wgsl.pixels import ImageFormat, image_groups, image_pass

if TYPE_CHECKING:
    from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine

#: Up to this number of taps, both axes are summed in one pass.
MAX_SINGLE_PASS_TAPS: Final = 16

_ALONG: Final = {
    "x": "along_x(x - p.left, p.begin + (y - p.top) * p.pitch)",
    "y": "along_y(x - p.left, y - p.top)",
    "both": "along_both(x - p.left, y - p.top)",
}
_PLAIN: Final = (1.0,) * 4, (0.0,) * 4, (0.0,) * 4


@cache
def shader(source: ImageFormat, out: ImageFormat, along: str, finish: str) -> str:
    """Return the shader of a pass."""
    return Template(read_text("resize.wgsl")).substitute(
        element=source.element,
        stored=out.element,
        along=_ALONG[along],
        finish=finish,
        image_pass=image_pass(source, out),
    )


#: Sums across: of sums down that are computed here, or of an earlier pass.
_LINE: Final = {
    "both": "down(first + k, y)",
    "across": "numbers(y * p.pitch + p.begin + first + k)",
}
_SUMS: Final = """    for (var k = 0u; k < p.taps_x; k++) {
        sum += taps[entry + 1u + k] * $line;
    }
    return clamp(sum >> vec4<u32>(shift), vec4<i32>(0), vec4<i32>(255));"""
#: Upper and lower bytes apart, so that sums of many pixels fit 32 bits. Four taps an iteration:
#: software adapters end loops after 65,535, in all of an invocation.
_WIDE_STEP: Final = """        {
            let k = min(start + ${n}u, p.taps_x - 1u);
            let weight = select(0, taps[entry + 1u + k], start + ${n}u < p.taps_x);
            let v = $line;
            high += weight * (v >> vec4<u32>(8u));
            sum += weight * (v & vec4<i32>(255));
        }
"""
_WIDE_SUMS: Final = """    var high = vec4<i32>(0);
    for (var start = 0u; start < p.taps_x; start += 4u) {
$steps    }
    let total = high + (sum >> vec4<u32>(8u));
    return clamp(total >> vec4<u32>(shift - 8u), vec4<i32>(0), vec4<i32>(255));"""


@cache
def byte_shader(source: ImageFormat, out: ImageFormat, along: str, wide: bool) -> str:
    """Return the shader of a pass over bytes: "down", "across" or "both"."""
    line = _LINE.get(along, "vec4<i32>(0)")
    first = "down" if along == "down" else "across"
    steps = "".join(Template(_WIDE_STEP).substitute(n=n, line=line) for n in range(4))
    return Template(read_text("resize_bytes.wgsl")).substitute(
        element=source.element,
        stored=out.element,
        sums=Template(_WIDE_SUMS if wide else _SUMS).substitute(line=line, steps=steps),
        value=f"{first}(x - p.left, y - p.top)",
        image_pass=image_pass(source, out),
    )


@implements("resize")
def make_resize(engine: WebGPUEngine, task: Task) -> Runner:
    """Return a runner that resizes an image."""
    shape = task.output.shape
    out = ImageFormat(task.output.dtype, shape[2] if len(shape) == 3 else 1)
    fill = tuple(map(float, task["fill"]))
    if out.dtype == "u8":
        return _make_bytes(engine, task, out, fill)
    return _make(engine, task, out, "v", (_PLAIN[0], _PLAIN[1], fill))


def _make_bytes(
    engine: WebGPUEngine, task: Task, out: ImageFormat, fill: tuple[float, ...]
) -> Runner:
    """Return a runner in integers: sums down, then across."""
    axis_y, axis_x = task_axes(task)
    y, x = (axis.taps(task["method"], task["antialias"]) for axis in (axis_y, axis_x))
    pitch, size, window = (
        task.inputs[0].shape[1],
        (axis_x.size, axis_y.size),
        _window(axis_x, axis_y),
    )
    dispatches = Dispatches(engine, task.op)
    passes = _Pass(dispatches, dispatches.constant(byte_words(y, x)), 2 + x.size, x.count, y.count)
    (first, end), high = x.span, window[3] - window[1]
    columns, wide = end - first, x.count > WIDE
    between = ImageFormat("f32", 4 if out.channels > 1 else 1)
    nbytes = high * columns * 4 * between.channels
    if x.count * y.count <= MAX_SINGLE_PASS_TAPS or nbytes > engine.max_buffer_bytes:
        text = byte_shader(out, out, "both", wide)
        passes.add(text, BufferRef("input"), OUTPUT, size, window, pitch, 0, (fill,), out)
        return dispatches.runner()
    middle, area = dispatches.temporary(nbytes), (columns, high)
    text = byte_shader(out, between, "down", wide)
    passes.add(
        text, BufferRef("input"), middle, area, (0, 0, *area), pitch, first, (fill,), between
    )
    text = byte_shader(between, out, "across", wide)
    passes.add(text, middle, OUTPUT, size, window, columns, -first, (fill,), out)
    return dispatches.runner()


@implements("preprocess")
def make_preprocess(engine: WebGPUEngine, task: Task) -> Runner:
    """Return a runner that resizes an image, normalizes it and stores it as a tensor."""
    swizzle = "".join("xyz"[c] for c in task["channels"])
    finish = f"vec4<f32>(v.{swizzle}, 0.0f) * p.gain + p.bias"
    numbers = tuple((*map(float, task[n]), 0.0) for n in ("gain", "bias", "pad"))
    out = ImageFormat("f32", 3, planes=task["layout"] == "nchw")
    return _make(engine, task, out, finish, numbers)


def _make(
    engine: WebGPUEngine,
    task: Task,
    out: ImageFormat,
    finish: str,
    numbers: tuple[tuple[float, ...], ...],
) -> Runner:
    image = task.inputs[0]
    source = ImageFormat(image.dtype, image.shape[2] if len(image.shape) == 3 else 1)
    pitch = image.shape[1]
    axis_y, axis_x = task_axes(task)
    y, x = (axis.taps(task["method"], task["antialias"]) for axis in (axis_y, axis_x))
    dispatches = Dispatches(engine, task.op)
    tables = dispatches.constant(tap_words(x, y))
    last = _Pass(dispatches, tables, x.size, x.count, y.count)
    size = axis_x.size, axis_y.size
    window = _window(axis_x, axis_y)
    wide, high = window[2] - window[0], window[3] - window[1]
    (first_x, end_x), (first_y, end_y) = x.span, y.span
    rows, columns = end_y - first_y, end_x - first_x
    # A pixel of the intermediate is a vec4, or an f32 if there is one channel.
    between = ImageFormat("f32", 4 if source.channels > 1 else 1)
    # For each order of the passes, its cost and the size of the intermediate.
    across = rows * wide * x.count + high * wide * y.count, rows * wide
    down = high * columns * y.count + high * wide * x.count, high * columns
    room = engine.max_buffer_bytes // (4 * between.channels)
    orders = [order for order in (across, down) if order[1] <= room]
    if x.count * y.count <= MAX_SINGLE_PASS_TAPS or not orders:
        text = shader(source, out, "both", finish)
        last.add(text, BufferRef("input"), OUTPUT, size, window, pitch, 0, numbers, out)
        return dispatches.runner()
    best = min(orders)
    middle = dispatches.temporary(best[1] * between.channels * 4)
    if best is across:
        extent, begin, back = (wide, rows), first_y * pitch, first_y * wide
        along, then, row = "x", "y", wide
    else:
        extent, begin, back = (columns, high), first_x, first_x
        along, then, row = "y", "x", columns
    text = shader(source, between, along, "v")
    area = (0, 0, *extent)
    last.add(text, BufferRef("input"), middle, extent, area, pitch, begin, _PLAIN, between)
    text = shader(between, out, then, finish)
    last.add(text, middle, OUTPUT, size, window, row, -back, numbers, out)
    return dispatches.runner()


def _window(x: Axis, y: Axis) -> tuple[int, int, int, int]:
    (left, right), (top, bottom) = x.window, y.window
    return left, top, right, bottom


class _Pass:
    """Adds passes that share their tables."""

    def __init__(
        self, dispatches: Dispatches, tables: BufferRef, table_y: int, taps_x: int, taps_y: int
    ) -> None:
        self.dispatches = dispatches
        self.tables = tables
        self.numbers = taps_x, taps_y, table_y, 0

    def add(
        self,
        text: str,
        source: BufferRef,
        target: BufferRef,
        size: tuple[int, int],
        window: tuple[int, int, int, int],
        pitch: int,
        begin: int,
        finish: tuple[tuple[float, ...], ...],
        out: ImageFormat,
    ) -> None:
        # A negative start wraps around, and wraps back when the position is added.
        head = block(*size, *window, pitch, begin % (1 << 32), *self.numbers)
        numbers = head + block(*(n for each in finish for n in each))
        count = image_groups(out, size[0] * size[1])
        self.dispatches.add(text, (source, self.tables), target, numbers, count)
