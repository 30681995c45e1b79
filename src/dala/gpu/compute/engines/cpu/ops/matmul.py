"""Matrix products: NumPy's BLAS, on the memory of the buffers.

BLAS has no integer products. Products of u8 are summed in floats, which hold them exactly; those of
32 bits are assembled from halves of 16 bits, whose products floats hold as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Protocol

import numpy as np

from dala.gpu.compute.dtypes import NUMPY
from dala.gpu.compute.engines.cpu.job import freed_error
from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.ops.shared import *

#: Sums of this many products of two 16-bit numbers are exact in f64.
EXACT_PRODUCTS: Final = 1 << 21

#: Products with fewer multiplications are faster without BLAS, which needs conversions.
MIN_BLAS_STEPS: Final = 1 << 14


class Multiply(Protocol):
    """A product of two arrays into a third."""

    def __call__(self, left: NDArray, right: NDArray, /, *, out: NDArray) -> object: ...


def array_of(storage: Storage, shape: tuple[int, ...], dtype: str) -> NDArray:
    """Return a buffer's memory as an array, which keeps the memory alive."""
    try:
        array: NDArray = storage.handle.array.view(NUMPY[dtype]).reshape(shape)
    except AttributeError:
        raise freed_error() from None
    return array


@implements("matmul")
def make_matmul(engine: Engine, task: Task) -> Runner:
    """Return the runner of one product or a stack of them."""
    a, b = task.inputs
    turn_a, turn_b = task["transpose_a"], task["transpose_b"]
    shape_a, shape_b, shape_out = a.shape, b.shape, task.output.shape
    if len(shape_a) > 2 and len(shape_b) <= 2 and not turn_a:
        # A stack of matrices times one matrix is a single product.
        shape_a = (prod(shape_a[:-1]), shape_a[-1])
        shape_out = shape_a[:1] if len(shape_b) == 1 else (shape_a[0], shape_out[-1])
    multiply = _multiply(task)
    kind, kind_out = NUMPY[a.dtype], NUMPY[task.output.dtype]

    def run(inputs: Sequence[Storage], output: Storage, params: Values) -> None:
        try:  # twice as fast as array_of()
            left = np.ndarray(shape_a, kind, inputs[0].handle.array)
            right = np.ndarray(shape_b, kind, inputs[1].handle.array)
            out = np.ndarray(shape_out, kind_out, output.handle.array)
        except AttributeError:
            raise freed_error() from None
        if turn_a:
            left = left.swapaxes(-1, -2)
        if turn_b:
            right = right.swapaxes(-1, -2)
        multiply(left, right, out=out)

    return run


def _multiply(task: Task) -> Multiply:
    a = task.inputs[0]
    inner = a.shape[-2 if task["transpose_a"] else -1]
    steps = prod(task.output.shape) * inner
    if a.dtype == "u8" and inner <= EXACT_PRODUCTS:
        # 24 bits hold the sums of 258 products.
        return _through(np.float32 if inner <= 258 else np.float64)
    if a.dtype in ("s32", "u32") and steps >= MIN_BLAS_STEPS and inner <= EXACT_PRODUCTS:
        return _by_halves
    if a.dtype == "u8":
        return lambda left, right, out: np.matmul(
            left.astype(np.int32), right.astype(np.int32), out=out
        )
    return np.matmul


def _through(kind: type[np.float32 | np.float64]) -> Multiply:
    def multiply(left: NDArray, right: NDArray, out: NDArray) -> None:
        found = np.matmul(left.astype(kind), right.astype(kind))
        out[...] = found.astype(np.int64).astype(np.int32)

    return multiply


def _by_halves(left: NDArray, right: NDArray, out: NDArray) -> None:
    """Multiply 32-bit integers modulo 2**32: al * bl + 2**16 * (ah * bl + al * bh)."""
    low_a, high_a = _halves(left)
    low_b, high_b = _halves(right)
    low = np.matmul(low_a, low_b).astype(np.int64)
    high = np.matmul(high_a, low_b).astype(np.int64)
    high += np.matmul(low_a, high_b).astype(np.int64)
    high <<= 16
    low += high
    out[...] = low.astype(out.dtype)


def _halves(numbers: NDArray) -> tuple[NDArray, NDArray]:
    bits = numbers.view(np.uint32)
    return (bits & np.uint32(0xFFFF)).astype(np.float64), (bits >> np.uint32(16)).astype(np.float64)
