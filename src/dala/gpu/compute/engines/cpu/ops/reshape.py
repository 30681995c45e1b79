"""Reshape and transpose on the CPU, where they are a copy of the bytes."""

from __future__ import annotations

from collections.abc import Sequence

from dala.gpu.compute.dtypes import NUMPY
from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.ops.shared import *


def make_reshape(engine: Engine, task: Task) -> Runner:
    """Return the runner that copies the input's bytes to the output."""

    def run(inputs: Sequence[Storage], output: Storage, params: Values) -> None:
        engine.copy(inputs[0], output)

    return run


implements("reshape")(make_reshape)

#: Columns and rows of a block: whole cache lines of the source.
BLOCK: Final = 64

#: The shuffle that interleaves eight bytes of two vectors, and those of the halves of a result.
ZIP: Final = (0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15)
FIRST: Final = (0, 1, 2, 3, 4, 5, 6, 7)
LAST: Final = (8, 9, 10, 11, 12, 13, 14, 15)
#: Shuffles that interleave the first halves of two vectors, and the last ones: of words, of sixteen
#: bytes, and of four pixels of three bytes, each followed by a byte.
WORDS: Final = (0, 4, 1, 5), (2, 6, 3, 7)
BYTES: Final = tuple(tuple(k // 2 + 16 * (k % 2) + 8 * h for k in range(16)) for h in range(2))
TRIPLES: Final = tuple(tuple(4 * w + k for w in half for k in range(4)) for half in WORDS)
#: Shuffles of pixels of three bytes to four, and back.
SPREAD: Final = (0, 1, 2, 15, 3, 4, 5, 15, 6, 7, 8, 15, 9, 10, 11, 15)
CLOSED: Final = (0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 3, 7, 11, 15)


@native
def turned(
    a: Vector, b: Vector, c: Vector, d: Vector, *, halves: tuple[tuple[int, ...], ...]
) -> Vector:
    """Transpose four vectors of four parts."""
    low = static(halves[0])
    high = static(halves[1])
    e, f, g, h = shuffle(a, c, low), shuffle(a, c, high), shuffle(b, d, low), shuffle(b, d, high)
    return shuffle(e, g, low), shuffle(e, g, high), shuffle(f, h, low), shuffle(f, h, high)


@native
def turn_bytes(src: Array[u8], out: Array[u8], at: i64, line: i64, to: i64, row: i64) -> None:
    """Transpose eight rows of eight bytes; ``line`` and ``row`` are distances between rows."""
    a = shuffle(load(src, at, 8), load(src, at + 4 * line, 8), ZIP)
    b = shuffle(load(src, at + line, 8), load(src, at + 5 * line, 8), ZIP)
    c = shuffle(load(src, at + 2 * line, 8), load(src, at + 6 * line, 8), ZIP)
    d = shuffle(load(src, at + 3 * line, 8), load(src, at + 7 * line, 8), ZIP)
    to_row = to
    for v in static(turned(a, b, c, d, halves=BYTES)):
        store(out, to_row, shuffle(v, v, FIRST))
        store(out, to_row + row, shuffle(v, v, LAST))
        to_row += 2 * row


@native
def load_four(src: Array[T], at: i64, *, channels: int) -> Vector:
    """Load four pixels: words, or three bytes, each followed by a byte."""
    if channels == 1:
        return load(src, at, 4)
    found = load(src, at, 16) if at + 16 <= len(src) else load(src, at, 16, 12)
    return shuffle(found, found, SPREAD)


@native
def store_four(out: Array[T], to: i64, v: Vector, *, channels: int) -> None:
    """Store four pixels; those of three bytes write four bytes beyond them."""
    if channels == 1:
        store(out, to, v)
    else:
        store(out, to, shuffle(v, v, CLOSED))


@native
def turn_four(
    src: Array[T], out: Array[T], at: i64, line: i64, to: i64, row: i64,
    *, channels: int, halves: tuple[tuple[int, ...], ...],
) -> None:  # fmt: skip
    """Transpose four rows of four pixels."""
    a, b = load_four(src, at), load_four(src, at + line)
    c, d = load_four(src, at + 2 * line), load_four(src, at + 3 * line)
    to_row = to
    for v in static(turned(a, b, c, d)):
        store_four(out, to_row, v)
        to_row += row


@native
def turn_pixels(
    src: Array[T], out: Array[T], height: i64, width: i64, column: i64, across: i64, line: i64,
    down: i64, top: i64, bottom: i64, left: i64, right: i64, *, channels: int,
) -> None:  # fmt: skip
    """Write pixels of output rows one by one; see ``turn_rows``."""
    for y in range(top, bottom):
        for x in range(left, right):
            at = ((line + down * x) * width + column + across * y) * channels
            for c in static(range(channels)):
                out[(y * height + x) * channels + c] = src[at + c]


@native
def turn_rows(
    src: Array[T], out: Array[T], height: i64, width: i64, column: i64, across: i64, line: i64,
    down: i64, start: i64, end: i64, *, channels: int, side: int,
) -> None:  # fmt: skip
    """Write output rows, which are columns of the picture, in blocks.

    Output row y is column ``column + across * y`` of the picture, and its pixel x is from row
    ``line + down * x``. ``side`` is that of the squares that vectors turn, 0 for none.
    """
    for left in range(0, height, BLOCK):
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
                    if side == 8:
                        turn_bytes(src, out, at, far, to, row)
                    else:
                        halves = static(WORDS if channels == 1 else TRIPLES)
                        turn_four(src, out, at, far, to, row, halves=halves)
                    x += side
                turn_pixels(
                    src, out, height, width, column, across, line, down, y, y + side, x, right
                )
                y += side
        turn_pixels(src, out, height, width, column, across, line, down, y, end, left, right)


@implements("transpose")
def make_transpose(engine: Engine, task: Task) -> Runner | None:
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
    run_rows = code.parallel(shape[1], BLOCK)
    column, across = (shape[1] - 1, -1) if 0 in reverse else (0, 1)
    line, down = (shape[0] - 1, -1) if 1 in reverse else (0, 1)
    return array_runner(run_rows, shape[0], shape[1], column, across, line, down)
