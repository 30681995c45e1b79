"""Color lookup tables on the CPU.

The table is copied with four numbers per entry, so that an entry is one vector. Pixels are
processed in blocks: positions and weights are computed for many pixels at a time, then the entries
of each pixel are summed, then the block is stored. Curves of bytes become 256 entries per channel.
From bytes to bytes, 3D tables are in integers: ``lut_bytes.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from dala.gpu.compute.engines.base import Engine, Runner, Storage, Task, Values
from dala.gpu.compute.engines.cpu.native import compile_native, native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    S,
    T,
    Vector,
    f32,
    i32,
    i64,
    in_range,
    independent,
    load,
    local,
    select,
    static,
    store,
    u8,
    u32,
    view,
)
from dala.gpu.compute.engines.cpu.ops import implements
from dala.gpu.compute.engines.cpu.ops.shared import Statics, memories
from dala.gpu.compute.engines.lookup import (
    ByteLookup,
    byte_curves,
    byte_lookup,
    byte_places,
    curved,
    is_plain,
)
from dala.gpu.compute.engines.scratch import scratch_memory

#: Pixels of a block, whose intermediate values fit the L1 cache.
BLOCK: Final = 128
#: Pixels of a tile.
TILE: Final = 1 << 14

_NATIVE: Final = {"u8": u8, "f32": f32}


@native
def pad_entries(lut: Array[f32], wide: Array[f32], start: i64, end: i64) -> None:
    """Copy entries of three numbers to entries of four."""
    for k in independent(range(start, end)):
        wide[4 * k] = lut[3 * k]
        wide[4 * k + 1] = lut[3 * k + 1]
        wide[4 * k + 2] = lut[3 * k + 2]
        wide[4 * k + 3] = f32(0)


@native
def table_position(c: f32, low: f32, scale: f32, top: f32) -> f32:
    """Return the position of a value in the table; NaN is at 0."""
    return min(max(f32(0), (c - low) * scale), top)


@native(fast=True)
def find_entries(
    src: Array[T],
    near: Array[i32],
    weights: Array[f32],
    low_r: f32,
    low_g: f32,
    low_b: f32,
    scale_r: f32,
    scale_g: f32,
    scale_b: f32,
    size: i32,
    count: i64,
    *,
    T: type,  # noqa: N803
    channels: int,
    tetrahedral: bool,
) -> None:
    """Write the first entry and the weights of all entries, for each pixel of a block."""
    last = size - 1
    top = f32(last)
    step_g = size * 4
    step_r = step_g * size
    for k in independent(range(count)):
        if u8 == T and channels == 4:
            px = view(src, u32)[k]
            cr, cg, cb = f32(i32(px & 255)), f32(i32((px >> 8) & 255)), f32(i32((px >> 16) & 255))
        else:
            at = k * channels
            cr, cg, cb = f32(src[at]), f32(src[at + 1]), f32(src[at + 2])
        r = table_position(cr, low_r, scale_r, top)
        g = table_position(cg, low_g, scale_g, top)
        b = table_position(cb, low_b, scale_b, top)
        i = min(in_range(i32, r), last - 1)
        j = min(in_range(i32, g), last - 1)
        m = min(in_range(i32, b), last - 1)
        r -= f32(i)
        g -= f32(j)
        b -= f32(m)
        base = i * step_r + j * step_g + m * 4
        near[k] = base
        if tetrahedral:
            up = select(r >= g, select(r >= b, step_r, 4), select(g >= b, step_g, 4))
            off = select(r >= g, select(g >= b, 4, step_g), select(r >= b, 4, step_r))
            near[BLOCK + k] = base + up
            near[2 * BLOCK + k] = base + step_r + step_g + 4 - off
            high = max(r, g)
            less = min(r, g)
            most = max(high, b)
            least = min(less, b)
            middle = max(less, min(high, b))
            weights[k] = 1.0 - most
            weights[BLOCK + k] = most - middle
            weights[2 * BLOCK + k] = middle - least
            weights[3 * BLOCK + k] = least
        else:
            weights[k] = r
            weights[BLOCK + k] = g
            weights[2 * BLOCK + k] = b


@native(fast=True)
def sum_entries(
    wide: Array[f32],
    near: Array[i32],
    weights: Array[f32],
    sums: Array[f32],
    size: i64,
    count: i64,
    *,
    tetrahedral: bool,
) -> None:
    """Write the weighted sum of each pixel's entries, four numbers per pixel."""
    step_g = size * 4
    step_r = step_g * size
    for k in range(count):
        base = i64(near[k])
        if tetrahedral:
            v = load(wide, base, 4) * weights[k]
            v += load(wide, i64(near[BLOCK + k]), 4) * weights[BLOCK + k]
            v += load(wide, i64(near[2 * BLOCK + k]), 4) * weights[2 * BLOCK + k]
            v += load(wide, base + step_r + step_g + 4, 4) * weights[3 * BLOCK + k]
        else:
            # Not a + (b - a) * t, which is NaN for an infinite entry.
            r, g, b = weights[k], weights[BLOCK + k], weights[2 * BLOCK + k]
            w = f32(1) - b
            n00 = load(wide, base, 4) * w
            n01 = load(wide, base + step_g, 4) * w
            n10 = load(wide, base + step_r, 4) * w
            n11 = load(wide, base + step_r + step_g, 4) * w
            n00 += load(wide, base + 4, 4) * b
            n01 += load(wide, base + step_g + 4, 4) * b
            n10 += load(wide, base + step_r + 4, 4) * b
            n11 += load(wide, base + step_r + step_g + 4, 4) * b
            w = f32(1) - g
            n00 = n00 * w + n01 * g
            n10 = n10 * w + n11 * g
            v = n00 * (f32(1) - r) + n10 * r
        store(sums, 4 * k, v)


@native(fast=True)
def store_block(
    src: Array[T],
    sums: Array[f32],
    out: Array[S],
    amount: f32,
    keep: f32,
    count: i64,
    *,
    T: type,  # noqa: N803
    S: type,  # noqa: N803
    channels: int,
    stored: int,
    mixing: bool,
) -> None:
    """Store a block's sums as pixels, mixed with the originals; alpha is kept."""
    for k in independent(range(count)):
        for c in static(range(3)):
            v = sums[4 * k + c] * amount
            if mixing:
                v += f32(src[channels * k + c]) * keep
            if u8 == S:
                out[stored * k + c] = u8(in_range(i32, min(max(f32(0), v + 0.5), 255.0)))
            else:
                out[stored * k + c] = v
        if stored == 4:
            out[stored * k + 3] = alpha(src, k, T=T, S=S, channels=channels)


@native
def alpha(src: Array[T], k: i64, *, T: type, S: type, channels: int) -> Vector:  # noqa: N803
    """Return the alpha to store: the pixel's, or full."""
    if u8 == S:
        if channels == 3:
            return u8(255)
        elif u8 == T:
            return src[4 * k + 3]
        else:
            v = src[4 * k + 3] * 255.0 + 0.5
            return u8(in_range(i32, min(max(f32(0), v), 255.0)))
    elif channels == 3:
        return f32(1)
    elif u8 == T:
        return f32(src[4 * k + 3]) / 255.0
    else:
        return src[4 * k + 3]


@native
def look_up(
    src: Array[T],
    wide: Array[f32],
    out: Array[S],
    low_r: f32,
    low_g: f32,
    low_b: f32,
    scale_r: f32,
    scale_g: f32,
    scale_b: f32,
    size: i64,
    amount: f32,
    keep: f32,
    start: i64,
    end: i64,
    *,
    T: type,  # noqa: N803
    S: type,  # noqa: N803
    channels: int,
    stored: int,
    tetrahedral: bool,
    mixing: bool,
) -> None:
    """Map pixels through a 3D table."""
    near = local(i32, 3 * BLOCK)
    weights = local(f32, 4 * BLOCK)
    sums = local(f32, 4 * BLOCK)
    at = start
    while at < end:
        count = min(end - at, BLOCK)
        pixels = src[at * channels :]
        find_entries(
            pixels, near, weights, low_r, low_g, low_b, scale_r, scale_g, scale_b, i32(size), count,
            T=T, channels=channels, tetrahedral=tetrahedral,
        )  # fmt: skip
        sum_entries(wide, near, weights, sums, size, count, tetrahedral=tetrahedral)
        store_block(
            pixels, sums, out[at * stored :], amount, keep, count,
            T=T, S=S, channels=channels, stored=stored, mixing=mixing,
        )  # fmt: skip
        at += count


@native
def curves_of_bytes(
    src: Array[u8],
    table: Array[S],
    out: Array[S],
    start: i64,
    end: i64,
    *,
    S: type,  # noqa: N803
    channels: int,
    stored: int,
) -> None:
    """Map pixels through 256 entries per channel."""
    for k in range(start, end):
        for c in static(range(3)):
            out[stored * k + c] = table[256 * c + i64(src[channels * k + c])]
        if stored == 4:
            out[stored * k + 3] = alpha(src, k, T=u8, S=S, channels=channels)


@native
def curves_of_floats(
    src: Array[f32],
    lut: Array[f32],
    out: Array[S],
    lows: Array[f32],
    scales: Array[f32],
    size: i64,
    amount: f32,
    keep: f32,
    start: i64,
    end: i64,
    *,
    S: type,  # noqa: N803
    channels: int,
    stored: int,
    mixing: bool,
) -> None:
    """Map pixels through one curve per channel, with linear interpolation."""
    top = f32(size - 1)
    for k in range(start, end):
        for c in static(range(3)):
            v = src[channels * k + c]
            t = table_position(v, lows[c], scales[c], top)
            i = min(i64(in_range(i32, t)), size - 2)
            t -= f32(i)
            a = lut[3 * i + c]
            found = (a * (f32(1) - t) + lut[3 * i + 3 + c] * t) * amount
            if mixing:
                found += v * keep
            if u8 == S:
                out[stored * k + c] = u8(in_range(i32, min(max(f32(0), found + 0.5), 255.0)))
            else:
                out[stored * k + c] = found
        if stored == 4:
            out[stored * k + 3] = alpha(src, k, T=f32, S=S, channels=channels)


# runners ------------------------------------------------------------------------------------------
@implements("lut_apply")
def make_lut_apply(engine: Engine, task: Task) -> Runner | None:
    """Return the runner for the dtypes, and for a 3D table or curves; None for both of floats."""
    image, lut = task.inputs
    numbers = byte_lookup(task)
    if numbers is not None and (len(lut.shape) == 4 or task["shaper"]):
        return _bytes(engine, task, numbers)
    if task["shaper"]:
        return None  # the kernel of the language
    kinds: Statics = {"S": _NATIVE[task.output.dtype], "channels": image.shape[2]}
    kinds["stored"] = task.output.shape[2]
    total = image.shape[0] * image.shape[1]
    if len(lut.shape) == 4:
        return _cubes(engine, task, total, kinds)
    if image.dtype == "u8":
        return _curves_of_bytes(task, total, kinds, numbers)
    return _curves_of_floats(task, total, kinds)


def _domain(task: Task) -> tuple[list[float], list[float]]:
    """Return the domain's low ends and the table's steps per unit, in the picture's units."""
    unit = 255.0 if task.inputs[0].dtype == "u8" else 1.0
    last = task.inputs[1].shape[0] - 1
    lows, highs = task["domain_min"], task["domain_max"]
    scales = [last / (h - v) / unit for v, h in zip(lows, highs, strict=True)]
    return [v * unit for v in lows], scales


def _mix_weights(task: Task) -> tuple[float, float]:
    """Return the weights of the table's color and of the original, in the output's units."""
    white = 255.0 if task.output.dtype == "u8" else 1.0
    unit = 255.0 if task.inputs[0].dtype == "u8" else 1.0
    return task["amount"] * white, (1.0 - task["amount"]) * white / unit


def _cubes(engine: Engine, task: Task, total: int, kinds: Statics) -> Runner:
    image, lut = task.inputs
    size = lut.shape[0]
    entries = size**3
    amount, keep = _mix_weights(task)
    widen = compile_native(pad_entries).parallel(entries, TILE)
    run_all = compile_native(
        look_up,
        T=_NATIVE[image.dtype],
        tetrahedral=task["method"] == "tetrahedral",
        mixing=keep != 0.0,
        **kinds,
    ).parallel(total, TILE)
    lows, scales = _domain(task)

    def run(inputs: Sequence[Storage], output: Storage, params: Values) -> None:
        (src, table), out = memories(inputs, output)
        with scratch_memory(engine, task.op, 16 * entries) as (storage,):
            wide = storage.handle
            widen(table, wide)
            run_all(src, wide, out, *lows, *scales, size, amount, keep)

    return run


def _bytes(engine: Engine, task: Task, numbers: ByteLookup) -> Runner:
    from dala.gpu.compute.engines.cpu.ops import lut_bytes

    image, lut = task.inputs
    count = task["shaper"]
    entries = (lut.shape[0] - count) if count else lut.shape[0] ** 3
    size = round(entries ** (1 / 3))
    widen = compile_native(lut_bytes.quantize_entries).parallel(entries, TILE)
    run_all = compile_native(
        lut_bytes.look_up_bytes,
        channels=image.shape[2],
        stored=task.output.shape[2],
        tetrahedral=task["method"] == "tetrahedral",
        mixing=numbers.keep != 0,
        plain=is_plain(task),
    ).parallel(image.shape[0] * image.shape[1], TILE)
    known = None if count else byte_places(task, size).reshape(-1)
    factor, last = numbers.factor / 256.0, (numbers.keep, numbers.shift, numbers.below)

    def run(inputs: Sequence[Storage], output: Storage, params: Values) -> None:
        (src, table), out = memories(inputs, output)
        floats, places = table.array.view(np.float32)[: 3 * (count + entries)], known
        if places is None:
            places = byte_places(task, size, floats[: 3 * count].reshape(-1, 3)).reshape(-1)
        with scratch_memory(engine, task.op, 8 * entries) as (storage,):
            wide = storage.handle
            widen(floats[3 * count :], wide, factor, numbers.bias, numbers.top)
            run_all(src, wide, places, out, size, *last)

    return run


def _curves_of_bytes(task: Task, total: int, kinds: Statics, numbers: ByteLookup | None) -> Runner:
    amount, keep = _mix_weights(task)
    size, byte = task.inputs[1].shape[0], np.arange(256.0)
    run_all: Callable[..., None] = compile_native(curves_of_bytes, **kinds).parallel(total, TILE)
    low, high = task["domain_min"], task["domain_max"]

    def run(inputs: Sequence[Storage], output: Storage, params: Values) -> None:
        (src, table), out = memories(inputs, output)
        curves = table.array.view(np.float32)[: 3 * size].reshape(size, 3)
        if numbers is not None:
            made = byte_curves(task, curves, numbers)
        else:
            found = curved(curves, np.tile(byte / 255.0, (3, 1)), low, high)
            made = (found * amount + byte * keep).astype(np.float32)
        run_all(src, np.ascontiguousarray(made.reshape(-1)), out)

    return run


def _curves_of_floats(task: Task, total: int, kinds: Statics) -> Runner:
    amount, keep = _mix_weights(task)
    lows, scales = (np.array(v, np.float32) for v in _domain(task))
    size = task.inputs[1].shape[0]
    run_all = compile_native(curves_of_floats, mixing=keep != 0.0, **kinds).parallel(total, TILE)

    def run(inputs: Sequence[Storage], output: Storage, params: Values) -> None:
        (src, table), out = memories(inputs, output)
        run_all(src, table, out, lows, scales, size, amount, keep)

    return run
