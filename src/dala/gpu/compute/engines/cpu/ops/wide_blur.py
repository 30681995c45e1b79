"""Gaussian blurs of large radii on the CPU: on a coarse grid, as ``sampling.gauss`` explains.

Three passes over rows: pixels to the grid, the blur of the grid, and the grid to pixels. The grid
is small enough for the cache, so that the first and the last pass take most of the time. For u8,
samples are integers and floats of the last pass are exact. For f32, pixels contribute their
difference from the center, so that constant areas stay exactly constant.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.ops.box_blur import repeat_edges
from dala.gpu.compute.engines.cpu.ops.shared import *
from dala.gpu.compute.engines.sampling.gauss import BEFORE, GRID_SHIFT, coarse_blur

#: The type of the grid's samples.
G = TypeVar("G")


@native
def to_grid(
    src: Array[T], grid: Array[G], work: Array[S], height: i64, width: i64, samples: i64,
    tile: i64, start: i64, end: i64,
    *, T: type, S: type, G: type, channels: int, factor: int,  # noqa: N803
) -> None:  # fmt: skip
    """Compute rows of the grid; ``work`` has a row of sums for each tile."""
    size = width * channels
    sums = work[start // tile * size : (start // tile + 1) * size]
    exact = static(f32 == T)
    scale = static(1.0 / (2 * factor * factor))
    for row in range(start, end):
        top = factor * (row - BEFORE) - static(factor // 2)
        center = src[min(max(top + factor, 0), height - 1) * size :]
        for i in independent(range(size)):
            sums[i] = S(center[i]) if exact else S(0)
        for k in static(range(factor)):
            upper = src[min(max(top + k, 0), height - 1) * size :]
            lower = src[min(max(top + static(2 * factor - 1 - k), 0), height - 1) * size :]
            for i in independent(range(size)):
                if exact:
                    apart = (S(upper[i]) - S(center[i])) + (S(lower[i]) - S(center[i]))
                    sums[i] += apart * S(scale * static(2.0 * k + 1.0))
                else:
                    sums[i] += (S(upper[i]) + S(lower[i])) * S(static(2 * k + 1))
        line = grid[row * samples * channels : (row + 1) * samples * channels]
        for j in range(samples):
            left = factor * (j - BEFORE) - static(factor // 2)
            inside = left >= 0 and left + static(2 * factor) <= width
            near = sums[(left if inside else 0) * channels :]
            for c in static(range(channels)):
                total = G(0)
                at = min(max(left + factor, 0), width - 1) * channels + c
                middle = G(sums[at]) if exact else G(0)
                if inside:
                    for k in static(range(factor)):
                        other = static(2 * factor - 1 - k)
                        one, two = G(near[k * channels + c]), G(near[other * channels + c])
                        total += ((one - middle) + (two - middle)) * G(static(2 * k + 1))
                else:
                    for k in static(range(2 * factor)):
                        x = min(max(left + k, 0), width - 1)
                        share = G(static(2 * min(k, 2 * factor - 1 - k) + 1))
                        total += (G(sums[x * channels + c]) - middle) * share
                if exact:
                    line[j * channels + c] = total * G(scale) + middle
                else:  # the sum of all shares is the square of 2 * factor**2
                    all_shares = static(4 * factor * factor * factor * factor)
                    total = total * G(static(1 << GRID_SHIFT)) + static(all_shares // 2)
                    line[j * channels + c] = total // all_shares
            if channels == 4:
                line[j * channels + 3] = G(0)


@native
def pair_at(line: Array[G], at: i64, apart: i64, last: i64, twice: G, weight: G, i: i64) -> Vector:
    """Return the weighted sum of two numbers around an index, less twice the one in the middle."""
    return ((line[max(at - apart, 0) + i] + line[min(at + apart, last) + i]) - twice) * weight


@native
def blur_along(
    line: Array[G], at: i64, step: i64, last: i64, center: Array[G], out: Array[G],
    weights: Array[G], radius: i64, *, G: type,  # noqa: N803
) -> None:  # fmt: skip
    """Blur numbers from an index on with their neighbors ``step`` apart, up to the last."""
    exact = static(f32 == G)
    for i in independent(range(len(out))):
        out[i] = center[i] if exact else center[i] * weights[0]
    k = i64(1)
    while k + 3 <= radius:
        w0, w1, w2, w3 = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
        for i in independent(range(len(out))):
            twice = center[i] + center[i] if exact else G(0)
            low = pair_at(line, at, k * step, last, twice, w0, i)
            low += pair_at(line, at, (k + 1) * step, last, twice, w1, i)
            high = pair_at(line, at, (k + 2) * step, last, twice, w2, i)
            high += pair_at(line, at, (k + 3) * step, last, twice, w3, i)
            out[i] += low + high
        k += 4
    while k <= radius:
        for i in independent(range(len(out))):
            twice = center[i] + center[i] if exact else G(0)
            out[i] += pair_at(line, at, k * step, last, twice, weights[k], i)
        k += 1
    if not exact:
        for i in independent(range(len(out))):
            out[i] = (out[i] + 32768) >> 16


@native
def blur_grid(
    grid: Array[G], blurred: Array[G], work: Array[G], weights: Array[G], rows: i64, samples: i64,
    radius: i64, tile: i64, start: i64, end: i64, *, G: type, channels: int,  # noqa: N803
) -> None:  # fmt: skip
    """Blur rows of the grid along both axes; ``work`` has a wide row for each tile."""
    size = samples * channels
    beside = radius * channels
    first = start // tile * (size + 2 * beside)
    wide = work[first : first + size + 2 * beside]
    middle = wide[beside : beside + size]
    for row in range(start, end):
        at = row * size
        blur_along(grid, at, size, (rows - 1) * size, grid[at:], middle, weights, radius)
        repeat_edges(wide, radius)
        out = blurred[at : at + size]
        blur_along(wide, beside, channels, 2 * beside, middle, out, weights, radius)


@native
def widen(
    line: Array[G], wide: Array[f32],
    *, G: type, channels: int, factor: int,  # noqa: N803
) -> None:  # fmt: skip
    """Interpolate a row of the grid along x; ``wide`` starts half a factor before the row."""
    unit = f32(static(1.0 if f32 == G else 0.5**GRID_SHIFT))
    for q in range(len(wide) // static(factor * channels)):
        for c in static(range(channels)):
            near = f32(line[(q + 1) * channels + c]) * unit
            step = f32(line[(q + 2) * channels + c]) * unit - near
            for k in static(range(factor)):
                part = f32(static((k + 0.5) / factor))
                wide[(q * factor + k) * channels + c] = near + step * part


@native
def to_pixels(
    blurred: Array[G], src: Array[T], out: Array[T], work: Array[f32], alpha: Array[f32],
    height: i64, width: i64, samples: i64, tile: i64, start: i64, end: i64,
    *, T: type, G: type, channels: int, factor: int,  # noqa: N803
) -> None:  # fmt: skip
    """Interpolate the rows between samples ``start`` to ``end``.

    ``work`` has two wide rows for each tile. The grid has an alpha of 0; ``alpha`` is 1 where
    alpha is added from the picture.
    """
    size = width * channels
    skip = static(factor // 2 * channels)
    span = (-(-(width + factor // 2) // factor)) * static(factor * channels)
    row = samples * channels
    own = work[start // tile * 2 * span : (start // tile + 1) * 2 * span]
    first = (start & 1) * span
    widen(blurred[(start + 1) * row : (start + 2) * row], own[first : first + span])
    for q in range(start, end):
        here, there = (q & 1) * span, (1 - (q & 1)) * span
        widen(blurred[(q + 2) * row : (q + 3) * row], own[there : there + span])
        near, far = own[here + skip : here + span], own[there + skip : there + span]
        for k in static(range(factor)):
            y = q * factor - static(factor // 2) + k
            if y >= 0 and y < height:
                part = f32(static((k + 0.5) / factor))
                line = out[y * size : (y + 1) * size]
                same = src[y * size : (y + 1) * size]
                for i in independent(range(size)):
                    value = near[i] + (far[i] - near[i]) * part
                    if channels == 4:
                        value += alpha[i] * f32(same[i])
                    if u8 == T:
                        value = min(max(value + f32(0.5), f32(0.0)), f32(255.5))
                        line[i] = u8(in_range(i32, value))
                    else:
                        line[i] = value


def make_wide_blur(engine: Engine, task: Task) -> Runner:
    """Return the runner of a blur of more than ``EXACT_RADIUS``."""
    height, width, channels = picture_size(task.output.shape)
    coarse = coarse_blur(task["radius"], task["sigma"])
    factor, is_bytes = coarse.factor, task.output.dtype == "u8"
    stored, sums, samples_type = (u8, i16, i32) if is_bytes else (f32, f32, f32)
    rows, samples = coarse.samples(height), coarse.samples(width)
    bands = -(-(height + factor // 2) // factor)
    weights = np.array(coarse.steps(), np.int32)
    if not is_bytes:
        weights = np.array(coarse.weights, np.float32)
    alpha = np.tile(np.array([0, 0, 0, 1], np.float32), width if channels == 4 else 1)
    grid_tile, band_tile = share(rows), share(bands)
    line: Statics = {"G": samples_type, "channels": channels, "factor": factor}
    reduce = compile_native(to_grid, T=stored, S=sums, **line).parallel(rows, grid_tile)
    blur = compile_native(blur_grid, G=samples_type, channels=channels).parallel(rows, grid_tile)
    enlarge = compile_native(to_pixels, T=stored, **line).parallel(bands, band_tile)
    tiles, grid_size = -(-rows // grid_tile), rows * samples * channels
    span = -(-(width + factor // 2) // factor) * factor * channels
    wide = (samples + 2 * coarse.radius) * channels
    #: Bytes of the grid, of the blurred grid, and of the rows of all tiles in each pass.
    sizes = (
        4 * grid_size,
        4 * grid_size,
        (2 if is_bytes else 4) * tiles * width * channels,
        4 * tiles * wide,
        4 * -(-bands // band_tile) * 2 * span,
    )

    def run(src: Memory, out: Memory, grid: Memory, blurred: Memory, *lines: Memory) -> None:
        reduce(src, grid, lines[0], height, width, samples, grid_tile)
        blur(grid, blurred, lines[1], weights, rows, samples, coarse.radius, grid_tile)
        enlarge(blurred, src, out, lines[2], alpha, height, width, samples, band_tile)

    return scratch_runner(engine, task, sizes, run)
