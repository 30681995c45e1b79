"""Resizing on WebGPU: one pass if there are few taps, else one pass per axis."""

from __future__ import annotations

from functools import cache
from itertools import chain
from math import prod
from string import Template
from typing import Final

from dala.gpu.compute.engines.base import Task
from dala.gpu.compute.engines.sampling.byte_taps import WIDE, byte_words
from dala.gpu.compute.engines.sampling.taps import tap_words, task_axes
from dala.gpu.compute.engines.webgpu.ops.dispatches import (
    BufferRef,
    Dispatches,
    implements,
    shader_text,
)
from dala.gpu.compute.engines.webgpu.wgsl.pixels import ImageFormat, image_groups, image_pass

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
    return shader_text(
        "resize.wgsl",
        element=source.element,
        stored=out.element,
        along=_ALONG[along],
        finish=finish,
        image_pass=image_pass(source, out),
    )


#: Sums across: of sums down that are computed here, or of an earlier pass.
_LINE: Final = {"both": "down(first + k, y)", "x": "numbers(y * p.pitch + p.begin + first + k)"}
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
    """Return the shader of a pass over bytes: summed down ("y"), across ("x") or both."""
    line = _LINE.get(along, "vec4<i32>(0)")
    first = "down" if along == "y" else "across"
    steps = "".join(Template(_WIDE_STEP).substitute(n=n, line=line) for n in range(4))
    return shader_text(
        "resize_bytes.wgsl",
        element=source.element,
        stored=out.element,
        sums=Template(_WIDE_SUMS if wide else _SUMS).substitute(line=line, steps=steps),
        value=f"{first}(x - p.left, y - p.top)",
        image_pass=image_pass(source, out),
    )


@implements("resize")
def add_resize(work: Dispatches, task: Task) -> None:
    """Add one pass or two that resize an image."""
    out = ImageFormat.of(task.output)
    fill = tuple(map(float, task["fill"]))
    _add_passes(work, task, out, "v", (fill,) if out.dtype == "u8" else (*_PLAIN[:2], fill))


@implements("preprocess")
def add_preprocess(work: Dispatches, task: Task) -> None:
    """Add passes that resize an image, normalize it and store it as a tensor."""
    swizzle = "".join("xyz"[c] for c in task["channels"])
    finish = f"vec4<f32>(v.{swizzle}, 0.0f) * p.gain + p.bias"
    numbers = tuple((*map(float, task[n]), 0.0) for n in ("gain", "bias", "pad"))
    out = ImageFormat("f32", 3, planes=task["layout"] == "nchw")
    _add_passes(work, task, out, finish, numbers)


def _add_passes(
    work: Dispatches,
    task: Task,
    out: ImageFormat,
    finish: str,
    numbers: tuple[tuple[float, ...], ...],
) -> None:
    """Add a pass over both axes, or one for each; bytes are summed down first."""
    axis_y, axis_x = task_axes(task)
    y, x = (axis.taps(task["method"], task["antialias"]) for axis in (axis_y, axis_x))
    (left, right), (top, bottom) = axis_x.window, axis_y.window
    wide, high, pitch = right - left, bottom - top, task.inputs[0].shape[1]
    whole = out.dtype == "u8"
    tables = work.constant(byte_words(y, x) if whole else tap_words(x, y))
    source = ImageFormat.of(task.inputs[0])
    #: A pixel of the intermediate is a vec4, or an f32 if there is one channel.
    between = ImageFormat("f32", 4 if source.channels > 1 else 1)

    def add(
        reads: tuple[BufferRef, ImageFormat, int, int],
        along: str,
        to: ImageFormat,
        extent: tuple[int, int] | None = None,
    ) -> BufferRef:
        """Add a pass to the output, or to an intermediate picture of a size; return where to."""
        place, given, pitch, begin = reads
        if extent is None:
            target, size, window = (
                work.output,
                (axis_x.size, axis_y.size),
                (left, top, right, bottom),
            )
        else:
            target, size = work.temporary(prod(extent) * to.channels * 4), extent
            window = (0, 0, *extent)
        if whole:
            text, own = byte_shader(given, to, along, x.count > WIDE), numbers
        else:
            text = shader(given, to, along, finish if extent is None else "v")
            own = numbers if extent is None else _PLAIN
        # A negative start wraps around, and wraps back when the position is added.
        head = (*size, *window, pitch, begin % (1 << 32))
        taps = (x.count, y.count, x.size + (2 if whole else 0), 0)
        block = (*head, *taps, *chain(*own))
        work.add(text, (place, tables), target, block, image_groups(to, prod(size)))
        return target

    (first_x, end_x), (first_y, end_y) = x.span, y.span
    rows, columns = end_y - first_y, end_x - first_x
    # For each order of the passes, its cost, the axes, the size of the intermediate picture, and
    # where it begins in the source and in itself.
    across = rows * wide * x.count + high * wide * y.count
    down = high * columns * y.count + high * wide * x.count
    orders = [
        (across, ("x", "y"), (wide, rows), first_y * pitch, first_y * wide),
        (down, ("y", "x"), (columns, high), first_x, first_x),
    ][1 if whole else 0 :]
    room = work.engine.max_buffer_bytes // (4 * between.channels)
    if x.count * y.count > MAX_SINGLE_PASS_TAPS:
        orders = [order for order in orders if prod(order[2]) <= room]
        if orders:
            _, (along, then), extent, begin, back = min(
                orders, key=lambda order: (order[0], prod(order[2]))
            )
            middle = add((work.inputs[0], source, pitch, begin), along, between, extent)
            add((middle, between, extent[0], -back), then, out)
            return
    add((work.inputs[0], source, pitch, 0), "both", out)
