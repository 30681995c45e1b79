"""Reshape and transpose on the CPU, where they are a copy of the bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from dala.gpu.compute.dtypes import NUMPY
from dala.gpu.compute.engines.base import Engine, Runner, Storage, Task, Values
from dala.gpu.compute.engines.cpu.native import compile_native, native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    T,
    Vector,
    i64,
    load,
    shuffle,
    static,
    store,
    u8,
    u32,
)
from dala.gpu.compute.engines.cpu.ops import implements
from dala.gpu.compute.engines.cpu.ops.shared import memories

if TYPE_CHECKING:
    from dala.gpu.compute.engines.cpu.engine import CPUEngine


@implements("reshape")
def make_reshape(engine: Engine, task: Task) -> Runner:
    """Return the runner that copies the input's bytes to the output."""

    def run(inputs: Sequence[Storage], output: Storage, params: Values) -> None:
        engine.copy(inputs[0], output)

    return run


#: Columns of a block, and its rows for each size of pixels: whole cache lines of the source.
BLOCK: Final = 64
BLOCK_ROWS: Final = {1: 64, 3: 64, 4: 64}

#: Shuffles that interleave two vectors: of eight bytes, and the halves of sixteen.
ZIP: Final = (0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15)
LOW: Final = (0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
HIGH: Final = (8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
FIRST: Final = (0, 1, 2, 3, 4, 5, 6, 7)
LAST: Final = (8, 9, 10, 11, 12, 13, 14, 15)
#: The same for pixels of three bytes, four in a vector of sixteen bytes, and back to full pixels.
SPREAD: Final = (0, 1, 2, 15, 3, 4, 5, 15, 6, 7, 8, 15, 9, 10, 11, 15)
LOW_PIXELS: Final = (0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23)
HIGH_PIXELS: Final = (8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31)
CLOSED: Final = (0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 3, 7, 11, 15)


@native
def turn_words(src: Array[u32], out: Array[u32], at: i64, line: i64, to: i64, row: i64) -> None:
    """Transpose four rows of four words; ``line`` and ``row`` are distances between rows."""
    a, b = load(src, at, 4), load(src, at + line, 4)
    c, d = load(src, at + 2 * line, 4), load(src, at + 3 * line, 4)
    e, f = shuffle(a, c, (0, 4, 1, 5)), shuffle(a, c, (2, 6, 3, 7))
    g, h = shuffle(b, d, (0, 4, 1, 5)), shuffle(b, d, (2, 6, 3, 7))
    store(out, to, shuffle(e, g, (0, 4, 1, 5)))
    store(out, to + row, shuffle(e, g, (2, 6, 3, 7)))
    store(out, to + 2 * row, shuffle(f, h, (0, 4, 1, 5)))
    store(out, to + 3 * row, shuffle(f, h, (2, 6, 3, 7)))


@native
def turn_bytes(src: Array[u8], out: Array[u8], at: i64, line: i64, to: i64, row: i64) -> None:
    """Transpose eight rows of eight bytes."""
    a = shuffle(load(src, at, 8), load(src, at + 4 * line, 8), ZIP)
    b = shuffle(load(src, at + line, 8), load(src, at + 5 * line, 8), ZIP)
    c = shuffle(load(src, at + 2 * line, 8), load(src, at + 6 * line, 8), ZIP)
    d = shuffle(load(src, at + 3 * line, 8), load(src, at + 7 * line, 8), ZIP)
    e, f = shuffle(a, c, LOW), shuffle(a, c, HIGH)
    g, h = shuffle(b, d, LOW), shuffle(b, d, HIGH)
    a, b, c, d = shuffle(e, g, LOW), shuffle(e, g, HIGH), shuffle(f, h, LOW), shuffle(f, h, HIGH)
    store(out, to, shuffle(a, a, FIRST))
    store(out, to + row, shuffle(a, a, LAST))
    store(out, to + 2 * row, shuffle(b, b, FIRST))
    store(out, to + 3 * row, shuffle(b, b, LAST))
    store(out, to + 4 * row, shuffle(c, c, FIRST))
    store(out, to + 5 * row, shuffle(c, c, LAST))
    store(out, to + 6 * row, shuffle(d, d, FIRST))
    store(out, to + 7 * row, shuffle(d, d, LAST))


@native
def four_pixels(src: Array[u8], at: i64) -> Vector:
    """Load four pixels of three bytes, each followed by a byte."""
    found = load(src, at, 16) if at + 16 <= len(src) else load(src, at, 16, 12)
    return shuffle(found, found, SPREAD)


@native
def turn_triples(src: Array[u8], out: Array[u8], at: i64, line: i64, to: i64, row: i64) -> None:
    """Transpose four rows of four pixels of three bytes; stores write four bytes beyond them."""
    a, b = four_pixels(src, at), four_pixels(src, at + line)
    c, d = four_pixels(src, at + 2 * line), four_pixels(src, at + 3 * line)
    e, f = shuffle(a, c, LOW_PIXELS), shuffle(a, c, HIGH_PIXELS)
    g, h = shuffle(b, d, LOW_PIXELS), shuffle(b, d, HIGH_PIXELS)
    first, second = shuffle(e, g, LOW_PIXELS), shuffle(e, g, HIGH_PIXELS)
    third, fourth = shuffle(f, h, LOW_PIXELS), shuffle(f, h, HIGH_PIXELS)
    store(out, to, shuffle(first, first, CLOSED))
    store(out, to + row, shuffle(second, second, CLOSED))
    store(out, to + 2 * row, shuffle(third, third, CLOSED))
    store(out, to + 3 * row, shuffle(fourth, fourth, CLOSED))


@native
def turn_rows(
    src: Array[T],
    out: Array[T],
    height: i64,
    width: i64,
    column: i64,
    across: i64,
    line: i64,
    down: i64,
    start: i64,
    end: i64,
    *,
    T: type,  # noqa: N803
    channels: int,
    side: int,
) -> None:
    """Write output rows, which are columns of the picture, in blocks.

    Output row y is column ``column + across * y`` of the picture, and its pixel x is from row
    ``line + down * x``. ``side`` is that of the squares that vectors turn, 0 for none.
    """
    left = i64(0)
    while left < height:
        right = min(left + BLOCK, height)
        y = start
        if side > 0:
            while y + side <= end:
                first = y if across > 0 else y + side - 1
                x = left
                # A store of three-byte pixels writes beyond its square, but not beyond its row.
                most = right if channels != 3 else min(right, height - 2)
                while x + side <= most:
                    at = ((line + down * x) * width + column + across * first) * channels
                    to = (first * height + x) * channels
                    far, row = down * width * channels, across * height * channels
                    if channels == 3:
                        turn_triples(src, out, at, far, to, row)
                    elif side == 8:
                        turn_bytes(src, out, at, far, to, row)
                    else:
                        turn_words(src, out, at, far, to, row)
                    x += side
                for k in range(y, y + side):
                    for i in range(x, right):
                        at = ((line + down * i) * width + column + across * k) * channels
                        for c in static(range(channels)):
                            out[(k * height + i) * channels + c] = src[at + c]
                y += side
        while y < end:
            for x in range(left, right):
                at = ((line + down * x) * width + column + across * y) * channels
                for c in static(range(channels)):
                    out[(y * height + x) * channels + c] = src[at + c]
            y += 1
        left = right


@implements("transpose")
def make_transpose(engine: CPUEngine, task: Task) -> Runner | None:
    """Copy arrays with fewer than two axes, and turn pictures and matrices in blocks.

    The others are lowered to the kernel language.
    """
    axes, reverse = task["axes"], task["reverse"]
    if len(axes) < 2 and not reverse:
        return make_reshape(engine, task)
    shape = task.inputs[0].shape
    if axes not in ((1, 0), (1, 0, 2)) or 2 in reverse:
        return None
    size = NUMPY[task.output.dtype].itemsize * (shape[2] if len(shape) == 3 else 1)
    kind, channels = (u32, size // 4) if size % 4 == 0 else (u8, size)
    if not 1 <= channels <= 4:
        return None
    side = 8 if size == 1 else 4 if size in (3, 4) else 0
    code = compile_native(turn_rows, T=kind, channels=channels, side=side)
    run_rows = code.parallel(shape[1], BLOCK_ROWS.get(size, BLOCK))
    column, across = (shape[1] - 1, -1) if 0 in reverse else (0, 1)
    line, down = (shape[0] - 1, -1) if 1 in reverse else (0, 1)

    def run(inputs: Sequence[Storage], output: Storage, params: Values) -> None:
        (src,), out = memories(inputs, output)
        run_rows(src, out, shape[0], shape[1], column, across, line, down)

    return run
