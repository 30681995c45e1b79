"""Reductions of buffers, through the operations ``reduce_sum``, ``reduce_max``, ``reduce_min``."""

from __future__ import annotations

import math
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
    stored: str | None = None,
) -> Buffer:
    """Return a buffer reduced along axes, which are dropped or kept with size 1.

    With a dtype, the elements are converted first; ``stored`` is that of the result.
    """
    axes = _axes(b.shape, axis, call)
    if dtype is not None:
        b = b.astype(dtype)
    if stored is None:
        wide = kernel == "reduce_sum" and b.dtype == "u8" and dtype is None
        stored = "u32" if wide else b.dtype
    b.storage(call)
    if not isinstance(keepdims, bool | np.bool_ | int):
        raise ParameterError.invalid(call, "keepdims", "True or False", keepdims)
    _check_out(call, out)
    if out is None:
        kept = [(n, i in axes) for i, n in enumerate(b.shape)]
        shape = tuple(1 if gone else n for n, gone in kept if keepdims or not gone)
        out = allocate(b.engine, shape, stored, zero=False, call=call)
    if axes:
        get(kernel).run([b], out, {"axis": axes})
    else:
        out[...] = b.astype(stored)  # no axis to reduce
    return out


def _check_out(call: str, out: Buffer | None) -> None:
    if out is not None and not isinstance(out, Buffer):
        raise ParameterError.invalid(call, "out", "a Buffer", out)


def mean(
    b: Buffer, axis: Axis, keepdims: bool, dtype: DtypeLike | None = None, out: Buffer | None = None
) -> Buffer:
    """Return the mean along axes, in f32, or f64 for s64 and f64."""
    count = math.prod(b.shape[a] for a in _axes(b.shape, axis, "mean"))
    wanted = promote.real(b.dtype) if dtype is None else dtype_name(dtype, call="mean")
    promote.check_device(b.engine, wanted, "mean", "the result is")
    if wanted not in promote.FLOATS:
        raise ParameterError.invalid("mean", "dtype", "'f32' or 'f64'", wanted)
    exact = wanted in SUMS.get(b.dtype, ())  # integers are added exactly
    stored = wanted if exact or dtype is not None else b.dtype
    given = None if exact or dtype is None else wanted
    result = reduce("reduce_sum", "mean", b, axis, keepdims, given, stored=stored) / count
    _check_out("mean", out)
    if out is None:
        return result
    out[...] = result
    return out
