"""Matrix products and new shapes of buffers, through the operations ``matmul`` and ``reshape``."""

from __future__ import annotations

import operator
from math import prod

import numpy as np

from dala.errors import DeviceMismatch, ShapeError
from dala.gpu.compute.arrays import promote
from dala.gpu.compute.arrays.operators import Value, accepts, to_buffer
from dala.gpu.compute.buffer import Buffer, allocate
from dala.gpu.compute.convert import ShapeLike
from dala.gpu.compute.kernel import get


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
