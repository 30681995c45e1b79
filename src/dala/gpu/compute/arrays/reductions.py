"""Reductions of buffers, through the operations ``reduce_sum``, ``reduce_max``, ``reduce_min``."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from math import prod
from typing import TypeAlias

import numpy as np

from dala.errors import DeviceMismatch, ParameterError, ShapeError
from dala.gpu.compute.arrays import promote
from dala.gpu.compute.arrays.operators import Value, accepts, to_buffer
from dala.gpu.compute.buffer import Buffer, allocate
from dala.gpu.compute.convert import ShapeLike
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


def matmul(x: Value, y: Value) -> Buffer | None:
    """Return the matrix product of a buffer and a buffer or an array; None for anything else."""
    if not accepts(x) or not accepts(y):
        return None
    one = x if isinstance(x, Buffer) else y
    assert isinstance(one, Buffer)
    a, b = (v if isinstance(v, Buffer) else to_buffer(v, one, "a @ b") for v in (x, y))
    if a.engine is not b.engine:
        expected = f"on the device {a.device!r} of a"
        advice = f"Move it: b.to({a.device!r})."
        raise DeviceMismatch.invalid("a @ b", "b", expected, b.device, advice)
    dtype = promote.common(a.dtype, b.dtype)
    promote.check_device(a.engine, dtype, "a @ b", f"{a.dtype} with {b.dtype} gives")
    inputs = [v if v.dtype == dtype else v.astype(dtype) for v in (a, b)]
    return get("matmul")(*inputs)


def reshape(b: Buffer, shape: ShapeLike) -> Buffer:
    """Return a copy with another shape; one size may be -1."""
    sizes = _sizes(b, shape)
    storage = b.storage("reshape")
    made = allocate(b.engine, sizes, b.dtype, zero=False, call="reshape")
    if made.nbytes:
        b.engine.copy(storage, made.storage("reshape"))
    return made


def _sizes(b: Buffer, shape: ShapeLike) -> tuple[int, ...]:
    try:
        given = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
        sizes = [operator.index(n) for n in given]
    except TypeError:
        raise ShapeError.invalid("reshape", "shape", "a tuple of ints", shape) from None
    expected = f"of {b.size} elements, as the buffer {b.shape} has, with at most one -1"
    if any(n < -1 for n in sizes) or sizes.count(-1) > 1:
        raise ShapeError.invalid("reshape", "shape", expected, tuple(sizes))
    if -1 in sizes:
        known = prod(n for n in sizes if n != -1)
        if not known or b.size % known:
            raise ShapeError.invalid("reshape", "shape", expected, tuple(sizes))
        sizes[sizes.index(-1)] = b.size // known
    if prod(sizes) != b.size:
        raise ShapeError.invalid("reshape", "shape", expected, tuple(sizes))
    return tuple(sizes)
