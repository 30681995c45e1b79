"""Reductions of buffers, through the operations ``reduce_sum``, ``reduce_max``, ``reduce_min``."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from dala.errors import ParameterError
from dala.gpu.compute.arrays import promote
from dala.gpu.compute.buffer import Buffer, allocate
from dala.gpu.compute.kernel import get
from dala.gpu.compute.kernels.reduce import one_axis

if TYPE_CHECKING:
    import numpy as np

#: One axis, several, or None for all.
Axis: TypeAlias = "int | np.integer | Sequence[int] | None"


def _axes(shape: tuple[int, ...], axis: Axis, call: str) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(len(shape)))
    try:
        several = axis if isinstance(axis, Sequence) else (axis,)
        given = [operator.index(a) for a in several]
    except TypeError:
        raise ParameterError.invalid(
            call, "axis", "an int, a tuple of ints, or None for all", axis
        ) from None
    found = sorted({one_axis(call, shape, a) for a in given})
    if len(found) < len(given):
        raise ParameterError.invalid(call, "axis", "each axis once", axis)
    return tuple(found)


def reduce(
    kernel: str, call: str, b: Buffer, axis: Axis, keepdims: bool, dtype: str | None = None
) -> Buffer:
    """Return a buffer reduced along axes, which are dropped or kept with size 1."""
    b.storage(call)
    axes = _axes(b.shape, axis, call)
    kept = tuple(1 if i in axes else n for i, n in enumerate(b.shape))
    left = tuple(n for i, n in enumerate(b.shape) if i not in axes)
    if dtype is None:
        dtype = "u32" if kernel == "reduce_sum" and b.dtype == "u8" else b.dtype
    made = allocate(b.engine, kept if keepdims else left, dtype, zero=False, call=call)
    if axes:
        get(kernel).run([b], made, {"axis": axes})
        return made
    copy = b.astype(dtype)  # no axis to reduce
    return copy if copy.shape == made.shape else copy.reshape(made.shape)


def mean(b: Buffer, axis: Axis, keepdims: bool) -> Buffer:
    """Return the mean along axes, in f32, or f64 for s64 and f64."""
    axes = _axes(b.shape, axis, "mean")
    count = 1
    for a in axes:
        count *= b.shape[a]
    dtype = promote.real(b.dtype)
    promote.check_device(b.engine, dtype, "mean", "the result is")
    summed = "s64" if b.dtype == "s64" else dtype
    total = reduce("reduce_sum", "mean", b, axes, keepdims, summed)
    return total / count
