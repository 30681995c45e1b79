"""Fourier transforms on the CPU: native code for powers of two, NumPy for other lengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import pi, prod
from typing import TypeAlias

import numpy as np

from dala import memory
from dala.gpu.compute.dtypes import ITEMSIZE, NUMPY
from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.ops import fft_stages
from dala.gpu.compute.engines.cpu.ops.fft_stages import EXCHANGED, PAIRS, REAL, shuffles_for
from dala.gpu.compute.engines.cpu.ops.matmul import array_of
from dala.gpu.compute.engines.cpu.ops.shared import *

#: The longest line: tables for longer ones would take too much memory.
LONGEST: Final = 1 << 22

#: Columns that are transformed together.
STRIP: Final = 2

#: Elements per tile: about 20 us.
TILE_ELEMENTS: Final = 8192

#: A pass: source, target, scratch.
Pass: TypeAlias = Callable[[Memory, Memory, Memory], None]


@implements("fft", "ifft")
def make_fft(engine: Engine, task: Task) -> Runner:
    """Return the runner: native code if all lengths are powers of two, else NumPy."""
    shape = task.output.shape
    if task.op == "fft" or task["complex"]:
        shape = shape[:-1]
    lengths = shape[len(shape) - task["axes"] :]
    least = 4 * vector_bytes() // ITEMSIZE[task.output.dtype]
    fits = all(n & (n - 1) == 0 and n <= LONGEST for n in lengths)
    if fits and lengths[-1] >= least and lengths[0] > 1:
        return _native(engine, task, shape)
    return _numpy(task)


def _native(engine: Engine, task: Task, shape: tuple[int, ...]) -> Runner:
    dtype, axes, inverse = task.output.dtype, task["axes"], task.op == "ifft"
    source, target = (PAIRS if task["complex"] else REAL), PAIRS
    if inverse:
        source, target = EXCHANGED, EXCHANGED if task["complex"] else REAL
    scale = 1.0 / prod(shape[len(shape) - axes :]) if inverse else 1.0
    total, size = prod(shape), ITEMSIZE[dtype]
    if axes == 1:
        passes = [_lines(dtype, total, shape[-1], source, target, scale)]
    else:
        passes = [
            _lines(dtype, total, shape[-1], source, PAIRS, 1.0),
            _columns(dtype, total, shape[-2], shape[-1], target, scale),
        ]
    room = max(numbers for _, numbers in passes)
    sizes = [room * size] if axes == 1 else [room * size, 2 * total * size]

    def run(a: Memory, out: Memory, work: Memory, *between: Memory) -> None:
        for (do, _), target in zip(passes, (*between, out), strict=True):
            do(a, target, work)
            a = target

    return scratch_runner(engine, task, sizes, run)


def _share(items: int, each: int) -> tuple[int, int]:
    """Return the number of tiles, each with its own scratch, and the items per tile."""
    tile = share(items, tiles=2, least=TILE_ELEMENTS // each)
    return -(-items // tile), tile


def _lines(
    dtype: str, total: int, length: int, source: int, target: int, scale: float
) -> tuple[Pass, int]:
    """Return the pass over the last axis, and the size of its scratch."""
    lines = total // length
    tiles, tile = _share(lines, length)
    lanes = vector_bytes() // ITEMSIZE[dtype]
    code = compile_native(
        fft_stages.transform_lines,
        T=native_type(dtype),
        lanes=lanes,
        source=source,
        target=target,
        one=shuffles_for(lanes, 1),
        four=shuffles_for(lanes, 4 if lanes > 4 else 1),
    )
    tables = _short_twiddles(length, dtype), _twiddles(length, dtype)
    run = code.parallel(lines, tile, fixed=(*tables, length, tile, scale))
    return run, tiles * 4 * length


def _columns(
    dtype: str, total: int, length: int, width: int, target: int, scale: float
) -> tuple[Pass, int]:
    """Return the pass over the axis before the last, and the size of its scratch."""
    lanes = vector_bytes() // ITEMSIZE[dtype]
    strip = STRIP * lanes
    strips = total // length // strip
    tiles, tile = _share(strips, length * strip)
    code = compile_native(
        fft_stages.transform_columns,
        T=native_type(dtype),
        lanes=lanes,
        target=target,
        shuffles=shuffles_for(lanes, 1),
    )
    fixed = _twiddles(length, dtype), length, width, strip, tile, scale
    return code.parallel(strips, tile, fixed=fixed), tiles * 4 * length * strip


@lru_cache(maxsize=16)
def _twiddles(length: int, dtype: str) -> NDArray:
    """Return exp(-2 pi i n / length) for every n, as pairs."""
    twiddles = np.exp(-2j * pi / length * np.arange(length))
    found: NDArray = twiddles.view(np.float64).astype(NUMPY[dtype])
    return found


@lru_cache(maxsize=16)
def _short_twiddles(length: int, dtype: str) -> NDArray:
    """Return the twiddle factors of the stages with steps 1 and 4."""
    found = []
    for step in (1, 4):
        place = np.arange(length // 4) // step * step
        for i in (1, 2, 3):
            twiddles = np.exp(-2j * pi / length * (place * i))
            found += [twiddles.real, twiddles.imag]
    return np.concatenate(found).astype(NUMPY[dtype])


def _numpy(task: Task) -> Runner:
    dtype, pairs = task.output.dtype, task["complex"]
    kind = np.dtype(np.complex64 if dtype == "f32" else np.complex128)
    axes = tuple(range(-task["axes"], 0))
    inverse = task.op == "ifft"
    needed = 2 * kind.itemsize * prod(task.inputs[0].shape)  # NumPy's own, about

    def run(inputs: Sequence[Storage], output: Storage, params: Values) -> None:
        memory.check(needed, task.op)
        a, out = (
            array_of(inputs[0], task.inputs[0].shape, dtype),
            array_of(output, task.output.shape, dtype),
        )
        if pairs:
            transform = np.fft.ifftn if inverse else np.fft.fftn
            transform(a.view(kind)[..., 0], axes=axes, out=out.view(kind)[..., 0])
        elif inverse:
            out[...] = np.fft.ifftn(a.view(kind)[..., 0], axes=axes).real
        else:
            _of_real(a, out.view(kind)[..., 0], axes)

    return run


def _of_real(a: NDArray, out: NDArray, axes: tuple[int, ...]) -> None:
    """Complete the transform of a real signal from its first half, by conjugate symmetry."""
    length = a.shape[-1]
    np.fft.rfftn(a, axes=axes, out=out[..., : length // 2 + 1])
    rest, mirrored = out[..., length // 2 + 1 :], out[..., (length - 1) // 2 : 0 : -1]
    if len(axes) == 1:
        np.conjugate(mirrored, out=rest)
    else:
        np.conjugate(mirrored[..., :1, :], out=rest[..., :1, :])
        np.conjugate(mirrored[..., :0:-1, :], out=rest[..., 1:, :])
