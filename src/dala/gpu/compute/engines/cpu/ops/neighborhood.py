"""Windows around pixels on the CPU: medians over squares of 5x5 and more, extremes over any places.

The picture is copied with its edge pixels repeated, and many numbers are computed at a time. Of 25
numbers the median is found by exchanges. Of more bytes it is found bit by bit: a count of up to 225
fits a byte, so that a vector of bytes counts for as many pixels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.ops.place import indexes, place_rows
from dala.gpu.compute.engines.cpu.ops.shared import *

#: The highest bit first.
BITS: Final = (128, 64, 32, 16, 8, 4, 2, 1)


def exchanges() -> tuple[int, ...]:
    """Return pairs (a, b) of 0 to 24; after ordering each, number 12 of the last is the median.

    Of n numbers, neither the minimum nor the maximum of any n // 2 + 2 is the median: drop both of
    14, add one, and repeat.
    """
    found: list[int] = []
    held, rest = list(range(14)), list(range(14, 25))
    while len(held) > 1:
        # Pairs first: minimums in one half, maximums in the other.
        pairs = len(held) // 2
        lows, highs = held[:pairs], held[-pairs:]
        odd = held[pairs : len(held) - pairs]
        steps = list(zip(lows, highs, strict=True))
        steps += [(lows[0], b) for b in [*lows[1:], *odd]]
        steps += [(a, highs[-1]) for a in [*highs[:-1], *odd]]
        found += [a * 32 + b for a, b in steps]
        held = [k for k in held if k not in (lows[0], highs[-1])]
        held += [rest.pop(0)] if rest else []
    return (*found, held[0])


#: The exchanges as 32 * a + b, then the place of the median.
EXCHANGES: Final = exchanges()
PAIRS: Final = EXCHANGES[:-1]
MIDDLE: Final = EXCHANGES[-1]


@native
def median_of_25(
    wide: Array[T], places: Array[i64], at: i64, pitch: i64,
    *, T: type, channels: int, lanes: int,  # noqa: N803
) -> Vector:  # fmt: skip
    """Return the medians of the numbers whose 5x5 squares begin at ``at``."""
    # Constant places of a local array become registers.
    held = local(T, 25 * lanes)
    for dy in static(range(5)):
        for dx in static(range(5)):
            store(held, (5 * dy + dx) * lanes, load(wide, at + dy * pitch + dx * channels, lanes))
    for pair in static(PAIRS):
        a = load(held, pair // 32 * lanes, lanes)
        b = load(held, pair % 32 * lanes, lanes)
        store(held, pair // 32 * lanes, min(a, b))
        store(held, pair % 32 * lanes, max(a, b))
    return load(held, MIDDLE * lanes, lanes)


@native
def median_of_bytes(
    wide: Array[u8], places: Array[i64], at: i64, pitch: i64,
    *, radius: int, channels: int, lanes: int,
) -> Vector:  # fmt: skip
    """Return the medians of the bytes whose squares begin at ``at``."""
    zero = splat(u8(0), lanes)
    one = splat(u8(1), lanes)
    half = splat(u8((2 * radius + 1) * (2 * radius + 1) // 2), lanes)
    found = zero
    for bit in static(BITS):
        limit = found + splat(u8(bit), lanes)
        below = zero
        for dy in range(2 * radius + 1):
            line = at + dy * pitch
            for dx in static(range(2 * radius + 1)):
                value = load(wide, line + dx * channels, lanes)
                below += select(value < limit, one, zero)
        found = select(below <= half, limit, found)
    return found


@native
def extremes_of(
    wide: Array[T], places: Array[i64], at: i64, pitch: i64, *, lanes: int, least: bool
) -> Vector:
    """Return the minimums or the maximums of the numbers at places from ``at`` on."""
    found = load(wide, at + places[0], lanes)
    for k in range(1, len(places)):
        value = load(wide, at + places[k], lanes)
        found = minimum(found, value) if least else maximum(found, value)
    return found


@native
def window_rows(
    src: Array[T], wide: Array[T], places: Array[i64], out: Array[T], size: i64, pitch: i64,
    start: i64, end: i64,
    *, window: NativeFunction, channels: int, lanes: int, radius: int, least: bool,
) -> None:  # fmt: skip
    """Write rows; ``wide`` has more pixels on each side, and a vector at the end."""
    for y in range(start, end):
        row = out[y * size : (y + 1) * size]
        for i in range(0, size, lanes):
            found = window(wide, places, y * pitch + i, pitch)
            if i + lanes <= size:
                store(row, i, found)
            else:
                store(row, i, found, size - i)
        if channels == 4:
            same = src[y * size : (y + 1) * size]
            for x in independent(range(size // 4)):
                row[4 * x + 3] = same[4 * x + 3]


def _windows(
    engine: Engine,
    task: Task,
    reach: int,
    window: NativeFunction,
    places: Callable[..., NDArray],
    **statics: Any,
) -> Runner:
    """Return the runner; ``places`` makes those of the window from the further inputs."""
    height, width, channels = picture_size(task.output.shape)
    kind = native_type(task.output.dtype)
    lanes, tile = 64 // kind.size, share(height)
    rows, columns = height + 2 * reach, width + 2 * reach
    lines = indexes(-reach, 1, rows, height, "clamp")
    across = indexes(-reach, 1, columns, width, "clamp")
    fill = np.zeros(4, numpy_type(kind))
    widen = compile_native(place_rows, T=kind, channels=channels, turned=False).parallel(
        rows, tile, fixed=(lines, across, fill, width, columns, reach, reach + width)
    )
    run_rows = compile_native(
        window_rows, T=kind, window=window, channels=channels, lanes=lanes, **statics
    ).parallel(height, tile)

    def run(src: Memory, *more: Memory) -> None:
        *given, out, wide = more
        wide.array[-lanes * kind.size :] = 0
        widen(src, wide)
        run_rows(src, wide, places(*given), out, width * channels, columns * channels)

    size = (rows * columns * channels + lanes) * kind.size
    return scratch_runner(engine, task, [size], run)


@implements("median")
def make_median(engine: Engine, task: Task) -> Runner | None:
    """Return the runner for radius 2, and for more of bytes; None for others, which are kernels."""
    radius = task["radius"]
    if radius < 2 or (radius > 2 and task.output.dtype != "u8"):
        return None
    window, nowhere = median_of_25 if radius == 2 else median_of_bytes, np.empty(0, np.int64)
    return _windows(engine, task, radius, window, lambda: nowhere, radius=radius, least=True)


@implements("extremes")
def make_extremes(engine: Engine, task: Task) -> Runner:
    """Return the runner for the task's dtype and channels."""
    reach, count = task["reach"], task.inputs[1].shape[0]
    _, width, channels = picture_size(task.output.shape)

    def places(given: Memory) -> NDArray:
        # Places beyond the reach would be beyond the memory.
        near = np.clip(given.array.view(np.int32)[: 2 * count], -reach, reach).astype(np.int64)
        x, y = near.reshape(-1, 2).T + reach
        made: NDArray = (y * (width + 2 * reach) + x) * channels
        return made

    least = task["kind"] == "min"
    return _windows(engine, task, reach, extremes_of, places, radius=reach, least=least)
