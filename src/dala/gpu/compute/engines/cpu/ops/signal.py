"""1D convolution, with vectors of results where the whole kernel is inside the signal."""

from __future__ import annotations

from math import prod

from dala.gpu.compute.dtypes import ITEMSIZE
from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.ops.shared import *

#: Multiplications per tile: about 20 us.
STEPS: Final = 1 << 18

#: Vectors that are summed at a time.
ACROSS: Final = 8


@native(fast=True)
def dot(a: Array[T], taps: Array[T], at: i64, *, T: type) -> Vector:  # noqa: N803
    """Return one result of the full convolution, near the ends."""
    total = T(0)
    for k in range(max(at - len(a) + 1, 0), min(at + 1, len(taps))):
        total += a[at - k] * taps[k]
    return total


@native
def slide(
    a: Array[T], taps: Array[T], out: Array[T], at: i64,
    *, T: type, lanes: int, across: int,  # noqa: N803
) -> None:  # fmt: skip
    """Write vectors of results whose kernels are inside the signal."""
    sums = local(T, across * lanes)
    for v in static(range(across)):
        store(sums, static(v * lanes), splat(T(0), lanes))
    for k in range(len(taps)):
        w = splat(taps[k], lanes)
        here = a[at - k :]
        for v in static(range(across)):
            i = static(v * lanes)
            store(sums, i, fma(load(here, i, lanes), w, load(sums, i, lanes)))
    for v in static(range(across)):
        store(out, static(v * lanes), load(sums, static(v * lanes), lanes))


@native
def convolve(
    a: Array[T], taps: Array[T], out: Array[T], length: i64, size: i64, first: i64, piece: i64,
    start: i64, end: i64,
    *, lanes: int, across: int,
) -> None:  # fmt: skip
    """Convolve pieces of lines; ``first`` is the first result to keep of the full convolution."""
    span = static(across * lanes)
    pieces = (size + piece - 1) // piece
    for number in range(start, end):
        line = number // pieces
        source = a[line * length : (line + 1) * length]
        target = out[line * size : (line + 1) * size]
        begin = number % pieces * piece
        stop = min(begin + piece, size)
        # The kernels of results [low, high) are inside the line.
        low = min(max(len(taps) - 1 - first, begin), stop)
        high = max(min(length - first, stop), low)
        for n in range(begin, low):
            target[n] = dot(source, taps, n + first)
        n = low
        while n + span <= high:
            slide(source, taps, target[n:], n + first)
            n += span
        while n + lanes <= high:
            slide(source, taps, target[n:], n + first, across=1)
            n += lanes
        for m in range(n, stop):
            target[m] = dot(source, taps, m + first)


@implements("convolve1d")
def make_convolve1d(engine: Engine, task: Task) -> Runner:
    """Return the runner of a 1D convolution, which splits long lines into pieces."""
    dtype = task.output.dtype
    length, taps = task.inputs[0].shape[-1], task.inputs[1].shape[0]
    size, first = task.output.shape[-1], task["first"]
    lines = prod(task.output.shape[:-1])
    wide = vector_bytes()
    piece = min(size, max(1024, min(STEPS * 16 // taps, 16384)))
    code = compile_native(
        convolve,
        T=native_type(dtype),
        lanes=wide // ITEMSIZE[dtype],
        across=ACROSS if wide > 16 else 4,
    )
    chunk = max(1, STEPS * 16 // (piece * taps))
    run = code.parallel(lines * -(-size // piece), chunk)
    return array_runner(run, length, size, first, piece)
