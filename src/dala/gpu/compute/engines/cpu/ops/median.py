"""Medians over squares of 5x5 and more on the CPU, many numbers at a time.

Of 25 numbers the median is found by exchanges. Of more bytes it is found bit by bit: a count of up
to 225 fits a byte, so that a vector of bytes counts for as many pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dala.gpu.compute.engines.base import Engine, Runner, Storage, Task, Values
from dala.gpu.compute.engines.cpu.native import compile_native, native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    T,
    Vector,
    i64,
    load,
    local,
    select,
    splat,
    static,
    store,
    u8,
)
from dala.gpu.compute.engines.cpu.ops import implements
from dala.gpu.compute.engines.cpu.ops.place import Bordered, keep_alpha, store_vector
from dala.gpu.compute.engines.cpu.ops.shared import memories

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
    wide: Array[T],
    at: i64,
    pitch: i64,
    *,
    T: type,  # noqa: N803
    channels: int,
    lanes: int,
) -> Vector:
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
def median_at(
    wide: Array[u8], at: i64, pitch: i64, *, radius: int, channels: int, lanes: int
) -> Vector:
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
def median_rows(
    src: Array[T],
    wide: Array[T],
    out: Array[T],
    size: i64,
    start: i64,
    end: i64,
    *,
    T: type,  # noqa: N803
    radius: int,
    channels: int,
    lanes: int,
) -> None:
    """Write rows; ``wide`` has ``radius`` more pixels on each side, and a vector at the end."""
    pitch = size + 2 * radius * channels
    for y in range(start, end):
        row = out[y * size : (y + 1) * size]
        i = i64(0)
        while i < size:
            at = y * pitch + i
            if radius == 2:
                found = median_of_25(wide, at, pitch, channels=channels, lanes=lanes)
            else:
                found = median_at(wide, at, pitch, radius=radius, channels=channels, lanes=lanes)
            store_vector(row, i, found, lanes=lanes)
            i += lanes
        if channels == 4:
            keep_alpha(src, row, y * size)


@implements("median")
def make_median(engine: Engine, task: Task) -> Runner | None:
    """Return the runner for radius 2, and for more of bytes; None for others, which are kernels."""
    radius = task["radius"]
    if radius < 2 or (radius > 2 and task.output.dtype != "u8"):
        return None
    picture = Bordered(engine, task, radius)
    code = compile_native(
        median_rows,
        T=picture.kind,
        radius=radius,
        channels=picture.channels,
        lanes=picture.lanes,
    )
    run_rows = code.parallel(picture.height, picture.tile)
    size = picture.width * picture.channels

    def run(inputs: Sequence[Storage], output: Storage, params: Values) -> None:
        (src,), out = memories(inputs, output)
        picture.run(src, lambda wide: run_rows(src, wide, out, size))

    return run
