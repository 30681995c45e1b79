"""Color lookup tables on the CPU.

The table is copied with four numbers per entry, so that an entry is one vector. Pixels are
processed in blocks: positions and weights are computed for many pixels at a time, then the entries
of each pixel are summed, then the block is stored. Curves of bytes become 256 entries per channel.
From bytes to bytes, 3D tables are in integers: ``lut_bytes.py``.
"""

from __future__ import annotations

import numpy as np

from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.ops.shared import *
from dala.gpu.compute.engines.lookup import (
    ByteLookup,
    byte_curves,
    byte_lookup,
    byte_places,
    curved,
    is_plain,
)

#: Pixels of a block, whose intermediate values fit the L1 cache.
BLOCK: Final = 128
#: Pixels of a tile.
TILE: Final = 1 << 14


@native
def pad_entries(lut: Array[f32], wide: Array[f32], start: i64, end: i64) -> None:
    """Copy entries of three numbers to entries of four."""
    for k in independent(range(start, end)):
        for c in static(range(3)):
            wide[4 * k + c] = lut[3 * k + c]
        wide[4 * k + 3] = f32(0)


@native
def table_position(c: f32, low: f32, scale: f32, top: f32) -> f32:
    """Return the position of a value in the table; NaN is at 0."""
    return min(max(f32(0), (c - low) * scale), top)


@native
def tetrahedron(
    r: Vector, g: Vector, b: Vector, base: i32, step_r: i32, step_g: i32, one: Vector
) -> Vector:
    """Return the three entries after the first, and the weights of all four.

    The path from the first entry to the last follows the axis with the largest part first.
    """
    up = select(r >= g, select(r >= b, step_r, 4), select(g >= b, step_g, 4))
    off = select(r >= g, select(g >= b, 4, step_g), select(r >= b, 4, step_r))
    last = base + step_r + step_g + 4
    high, less = max(r, g), min(r, g)
    most, middle, least = max(high, b), max(less, min(high, b)), min(less, b)
    return base + up, last - off, last, one - most, most - middle, middle - least, least


@native(fast=True)
def find_entries(
    src: Array[T], near: Array[i32], weights: Array[f32], lows: Array[f32], scales: Array[f32],
    size: i32, count: i64, *, T: type, channels: int, tetrahedral: bool,  # noqa: N803
) -> None:  # fmt: skip
    """Write the first entry and the weights of all entries, for each pixel of a block."""
    last = size - 1
    top = f32(last)
    step_g = size * 4
    step_r = step_g * size
    for k in independent(range(count)):
        at = k * channels
        r = table_position(f32(src[at]), lows[0], scales[0], top)
        g = table_position(f32(src[at + 1]), lows[1], scales[1], top)
        b = table_position(f32(src[at + 2]), lows[2], scales[2], top)
        i = min(in_range(i32, r), last - 1)
        j = min(in_range(i32, g), last - 1)
        m = min(in_range(i32, b), last - 1)
        r -= f32(i)
        g -= f32(j)
        b -= f32(m)
        base = i * step_r + j * step_g + m * 4
        near[k] = base
        if tetrahedral:
            second, third, _, w0, w1, w2, w3 = tetrahedron(r, g, b, base, step_r, step_g, f32(1))
            near[BLOCK + k], near[2 * BLOCK + k] = second, third
            weights[k], weights[BLOCK + k] = w0, w1
            weights[2 * BLOCK + k], weights[3 * BLOCK + k] = w2, w3
        else:
            weights[k] = r
            weights[BLOCK + k] = g
            weights[2 * BLOCK + k] = b


@native(fast=True)
def two_entries(wide: Array[f32], at: i64, part: f32) -> Vector:
    """Interpolate between an entry and the next one."""
    v = load(wide, at, 4) * (f32(1) - part)
    v += load(wide, at + 4, 4) * part
    return v


@native(fast=True)
def sum_entries(
    wide: Array[f32], near: Array[i32], weights: Array[f32], sums: Array[f32], size: i64,
    count: i64, *, tetrahedral: bool,
) -> None:  # fmt: skip
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
            n00, n01 = two_entries(wide, base, b), two_entries(wide, base + step_g, b)
            base += step_r
            n10, n11 = two_entries(wide, base, b), two_entries(wide, base + step_g, b)
            w = f32(1) - g
            n00 = n00 * w + n01 * g
            n10 = n10 * w + n11 * g
            v = n00 * (f32(1) - r) + n10 * r
        store(sums, 4 * k, v)


@native
def as_byte(v: f32) -> Vector:
    """Return a number as a byte, rounded down; NaN is 0."""
    return u8(in_range(i32, min(max(f32(0), v), 255.0)))


@native(fast=True)
def store_block(
    src: Array[T], sums: Array[f32], out: Array[S], amount: f32, keep: f32, count: i64,
    *, S: type, channels: int, stored: int, mixing: bool,  # noqa: N803
) -> None:  # fmt: skip
    """Store a block's sums as pixels, mixed with the originals; alpha is kept."""
    for k in independent(range(count)):
        for c in static(range(3)):
            v = sums[4 * k + c] * amount
            if mixing:
                v += f32(src[channels * k + c]) * keep
            out[stored * k + c] = as_byte(v + 0.5) if u8 == S else v
        if stored == 4:
            out[stored * k + 3] = alpha(src, k)


@native
def alpha(src: Array[T], k: i64, *, T: type, S: type, channels: int) -> Vector:  # noqa: N803
    """Return the alpha to store: the pixel's, or full."""
    if channels == 3:
        return S(255 if u8 == S else 1)
    v = src[4 * k + 3]
    if S == T:
        return v
    return as_byte(v * 255.0 + 0.5) if u8 == S else f32(v) / 255.0


@native
def map_pixels(
    src: Array[T], wide: Array[f32], out: Array[S], lows: Array[f32], scales: Array[f32], size: i64,
    amount: f32, keep: f32, start: i64, end: i64,
    *, channels: int, stored: int, tetrahedral: bool, mixing: bool,
) -> None:  # fmt: skip
    """Map pixels through a 3D table."""
    near = local(i32, 3 * BLOCK)
    weights = local(f32, 4 * BLOCK)
    sums = local(f32, 4 * BLOCK)
    for at in range(start, end, BLOCK):
        count = min(end - at, BLOCK)
        pixels = src[at * channels :]
        find_entries(pixels, near, weights, lows, scales, i32(size), count)
        sum_entries(wide, near, weights, sums, size, count)
        store_block(pixels, sums, out[at * stored :], amount, keep, count)


@native
def curves_of_bytes(
    src: Array[u8], table: Array[S], out: Array[S], start: i64, end: i64,
    *, channels: int, stored: int,
) -> None:  # fmt: skip
    """Map pixels through 256 entries per channel."""
    for k in range(start, end):
        for c in static(range(3)):
            out[stored * k + c] = table[256 * c + i64(src[channels * k + c])]
        if stored == 4:
            out[stored * k + 3] = alpha(src, k, T=u8)


@native
def curves_of_floats(
    src: Array[f32], lut: Array[f32], out: Array[S], lows: Array[f32], scales: Array[f32],
    size: i64, amount: f32, keep: f32, start: i64, end: i64,
    *, S: type, channels: int, stored: int, mixing: bool,  # noqa: N803
) -> None:  # fmt: skip
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
            out[stored * k + c] = as_byte(found + 0.5) if u8 == S else found
        if stored == 4:
            out[stored * k + 3] = alpha(src, k, T=f32)


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
    kinds: Statics = {"S": native_type(task.output.dtype), "channels": image.shape[2]}
    kinds["stored"] = task.output.shape[2]
    if len(lut.shape) == 2 and image.dtype == "u8":
        return _curves_of_bytes(task, kinds, numbers)
    return _floats(engine, task, kinds)


def _mix_weights(task: Task) -> tuple[float, float]:
    """Return the weights of the table's color and of the original, in the output's units."""
    white = 255.0 if task.output.dtype == "u8" else 1.0
    unit = 255.0 if task.inputs[0].dtype == "u8" else 1.0
    return task["amount"] * white, (1.0 - task["amount"]) * white / unit


def _floats(engine: Engine, task: Task, kinds: Statics) -> Runner:
    image, lut = task.inputs
    size, unit = lut.shape[0], 255.0 if image.dtype == "u8" else 1.0
    amount, keep = _mix_weights(task)
    ends = zip(task["domain_min"], task["domain_max"], strict=True)
    scales = np.array([(size - 1) / (h - v) / unit for v, h in ends], np.float32)
    lows = np.array([v * unit for v in task["domain_min"]], np.float32)
    fixed = lows, scales, size, amount, keep
    total = image.shape[0] * image.shape[1]
    if len(lut.shape) == 2:
        code = compile_native(curves_of_floats, mixing=keep != 0.0, **kinds)
        return array_runner(code.parallel(total, TILE, fixed=fixed))
    entries, kinds["T"] = size**3, native_type(image.dtype)
    widen = compile_native(pad_entries).parallel(entries, TILE)
    tetrahedral = task["method"] == "tetrahedral"
    code = compile_native(map_pixels, tetrahedral=tetrahedral, mixing=keep != 0.0, **kinds)
    run_all = code.parallel(total, TILE, fixed=fixed)

    def run(src: Memory, table: Memory, out: Memory, wide: Memory) -> None:
        widen(table, wide)
        run_all(src, wide, out)

    return scratch_runner(engine, task, [16 * entries], run)


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

    def run(src: Memory, table: Memory, out: Memory, wide: Memory) -> None:
        floats, places = table.array.view(np.float32)[: 3 * (count + entries)], known
        if places is None:
            places = byte_places(task, size, floats[: 3 * count].reshape(-1, 3)).reshape(-1)
        widen(floats[3 * count :], wide, factor, numbers.bias, numbers.top)
        run_all(src, wide, places, out, size, *last)

    return scratch_runner(engine, task, [8 * entries + 8], run)


def _curves_of_bytes(task: Task, kinds: Statics, numbers: ByteLookup | None) -> Runner:
    amount, keep = _mix_weights(task)
    image, lut = task.inputs
    size, byte = lut.shape[0], np.arange(256.0)
    run_all = compile_native(curves_of_bytes, **kinds).parallel(
        image.shape[0] * image.shape[1], TILE
    )
    low, high = task["domain_min"], task["domain_max"]

    def run(src: Memory, table: Memory, out: Memory) -> None:
        curves = table.array.view(np.float32)[: 3 * size].reshape(size, 3)
        if numbers is not None:
            made = byte_curves(task, curves, numbers)
        else:
            found = curved(curves, np.tile(byte / 255.0, (3, 1)), low, high)
            made = (found * amount + byte * keep).astype(np.float32)
        run_all(src, np.ascontiguousarray(made.reshape(-1)), out)

    return array_runner(run)
