"""Reductions of buffers, through the operations ``reduce_sum``, ``reduce_max``, ``reduce_min``."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from dala.errors import ParameterError
from dala.gpu.compute.arrays import promote
from dala.gpu.compute.buffer import Buffer, allocate
from dala.gpu.compute.dtypes import DtypeLike, dtype_name
from dala.gpu.compute.kernel import get
from dala.gpu.compute.kernels.reduce import SUMS, one_axis

#: One axis, several, or None for all.
Axis: TypeAlias = "int | np.integer | Sequence[int] | None"


def _axes(shape: tuple[int, ...], axis: Axis, call: str) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(len(shape)))
    try:
        several = axis if isinstance(axis, list | tuple) else (axis,)
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
    kernel: str,
    call: str,
    b: Buffer,
    axis: Axis,
    keepdims: bool,
    dtype: DtypeLike | None = None,
    out: Buffer | None = None,
) -> Buffer:
    """Return a buffer reduced along axes, which are dropped or kept with size 1.

    With a dtype, the elements are converted first.
    """
    axes = _axes(b.shape, axis, call)
    if dtype is not None:
        b = b.astype(dtype)
    stored = "u32" if kernel == "reduce_sum" and b.dtype == "u8" and dtype is None else b.dtype
    return _reduced(kernel, call, b, axes, keepdims, stored, out)


def _reduced(
    kernel: str,
    call: str,
    b: Buffer,
    axes: tuple[int, ...],
    keepdims: bool,
    stored: str,
    out: Buffer | None,
) -> Buffer:
    b.storage(call)
    if not isinstance(keepdims, bool | np.bool_ | int):
        raise ParameterError.invalid(call, "keepdims", "True or False", keepdims)
    kept = tuple(1 if i in axes else n for i, n in enumerate(b.shape))
    left = tuple(n for i, n in enumerate(b.shape) if i not in axes)
    if out is None:
        shape = kept if keepdims else left
        out = allocate(b.engine, shape, stored, zero=False, call=call)
    elif not isinstance(out, Buffer):
        raise ParameterError.invalid(call, "out", "a Buffer", out)
    if axes:
        get(kernel).run([b], out, {"axis": axes})
    else:
        out[...] = b.astype(stored)  # no axis to reduce
    return out


def mean(
    b: Buffer, axis: Axis, keepdims: bool, dtype: DtypeLike | None = None, out: Buffer | None = None
) -> Buffer:
    """Return the mean along axes, in f32, or f64 for s64 and f64."""
    axes = _axes(b.shape, axis, "mean")
    count = 1
    for a in axes:
        count *= b.shape[a]
    wanted = promote.real(b.dtype) if dtype is None else dtype_name(dtype, call="mean")
    promote.check_device(b.engine, wanted, "mean", "the result is")
    if wanted not in promote.FLOATS:
        raise ParameterError.invalid("mean", "dtype", "'f32' or 'f64'", wanted)
    if b.dtype in SUMS and wanted in SUMS[b.dtype]:  # integers are added exactly
        total = _reduced("reduce_sum", "mean", b, axes, keepdims, wanted, None)
    elif dtype is None:
        total = _reduced("reduce_sum", "mean", b, axes, keepdims, b.dtype, None)
    else:
        total = _reduced("reduce_sum", "mean", b.astype(wanted), axes, keepdims, wanted, None)
    result = total / count
    if out is None:
        return result
    if not isinstance(out, Buffer):
        raise ParameterError.invalid("mean", "out", "a Buffer", out)
    out[...] = result
    return out
