"""Indexing: integers, slices, ``...`` and ``None``, as in NumPy. Results are copies.

Lists, arrays and masks are handled by :mod:`dala.gpu.compute.arrays.picking`.
An index becomes a walk over the buffer's axes. Where the host can access the memory, NumPy walks
it; elsewhere a kernel does.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import cache
from types import EllipsisType
from typing import Final, NamedTuple, TypeAlias, TypeGuard, TypeVar

import numpy as np

from dala.errors import BufferTooLarge, DtypeError, DtypeMismatch, IndexOutOfRange, ShapeMismatch
from dala.gpu.compute.arrays import promote
from dala.gpu.compute.arrays.operators import Value, astype
from dala.gpu.compute.buffer import Buffer, allocate, relabel, reshaped_view
from dala.gpu.compute.convert import as_array, to_dtype
from dala.gpu.compute.create import from_array
from dala.gpu.compute.dtypes import NUMPY
from dala.gpu.compute.kernel import Kernel
from dala.gpu.compute.lang import source as sources
from dala.gpu.compute.lang.parser import declare
from dala.typing import NDArray

IndexItem: TypeAlias = "int | np.integer | slice | EllipsisType | None"
#: Integers or bools that select elements; u8 buffers are masks, as comparisons give them.
ArrayIndex: TypeAlias = (
    "list[int] | list[bool] | list[list[int]] | list[list[bool]] | NDArray | Buffer"
)
#: An index: integers, slices, ``...``, ``None``, and arrays of integers or bools.
Index: TypeAlias = "IndexItem | ArrayIndex | tuple[IndexItem | ArrayIndex, ...]"

_Item = TypeVar("_Item")

#: Kernels count positions in s32.
MAX_ELEMENTS: Final = (1 << 31) - 1


class AxisPart(NamedTuple):
    """The part of one axis that an index selects."""

    start: int
    step: int
    size: int
    #: The axis of the result, or None for an integer.
    place: int | None


class Walk(NamedTuple):
    """What an index selects: a part of each axis, and the shape of the result."""

    axes: tuple[AxisPart, ...]
    shape: tuple[int, ...]
    #: The index as NumPy takes it.
    plain: tuple[int | slice | EllipsisType | None, ...]


def is_array(item: object) -> TypeGuard[ArrayIndex]:
    """Return True for lists, arrays and buffers that are no single number."""
    if isinstance(item, Buffer | np.ndarray):
        return len(item.shape) > 0
    return isinstance(item, list) or (
        hasattr(item, "__array__") and not isinstance(item, np.generic)
    )


def _has_arrays(index: Index) -> bool:
    return any(map(is_array, index)) if isinstance(index, tuple) else is_array(index)


def expand(
    shape: tuple[int, ...], given: list[_Item], ranks: list[int], call: str
) -> list[_Item | slice]:
    """Return an index with ``...`` and missing axes as slices; each item selects from some axes."""
    dots = sum(item is Ellipsis for item in given)
    if dots > 1:
        raise IndexOutOfRange.invalid(call, "index", "with at most one '...'", f"{dots} of them")
    named = sum(ranks)
    if named > len(shape):
        raise IndexOutOfRange.invalid(
            call, "index", f"of at most {len(shape)} axes, as the buffer {shape} has", named
        )
    rest = [slice(None)] * (len(shape) - named)
    at = next((i for i, item in enumerate(given) if item is Ellipsis), len(given))
    return [*given[:at], *rest, *given[at + 1 :]]


def parse(shape: tuple[int, ...], index: Index, call: str) -> Walk:
    """Check an index, and return what it selects."""
    items = list(index) if isinstance(index, tuple) else [index]
    ranks = [int(item is not None and item is not Ellipsis) for item in items]
    given = expand(shape, items, ranks, call)
    axes: list[AxisPart] = []
    made: list[int] = []
    plain: list[int | slice | EllipsisType | None] = []
    for item in given:
        if item is None:
            made.append(1)
            plain.append(None)
            continue
        size = shape[len(axes)]
        if isinstance(item, slice):
            taken = part(item, size, call)
            axes.append(AxisPart(taken.start, taken.step, len(taken), len(made)))
            made.append(len(taken))
            plain.append(item)
            continue
        number = integer(item, size, len(axes), call)
        axes.append(AxisPart(number, 1, 1, None))
        plain.append(number)
    return Walk(tuple(axes), tuple(made), (*plain, Ellipsis))


def part(item: slice, size: int, call: str) -> range:
    """Return the positions that a slice selects from an axis."""
    try:
        return range(*item.indices(size))
    except (TypeError, ValueError) as error:
        raise IndexOutOfRange(f"{call}: {item} is not a valid slice: {error}.", call=call) from None


def integer(item: object, size: int, axis: int, call: str) -> int:
    """Return an integer as a position on an axis."""
    if isinstance(item, bool | np.bool_) or not hasattr(item, "__index__"):
        raise DtypeError.invalid(
            call,
            "index",
            "integers, slices, '...', None, or arrays of integers or bools",
            item,
        )
    try:
        number = operator.index(item)
    except TypeError:
        raise DtypeError.invalid(
            call, "index", "integers, slices, '...' or None", item, "Index with one integer."
        ) from None
    if not -size <= number < size:
        expected = f"from {-size} to {size - 1} for axis {axis}" if size else "no integer: "
        if not size:
            raise IndexOutOfRange(f"{call}: axis {axis} is empty, got {number}.", call=call)
        raise IndexOutOfRange.invalid(call, "index", expected, number)
    return number % size


# reading ------------------------------------------------------------------------------------------
def get(b: Buffer, index: Index) -> Buffer:
    """Return a copy of what an index selects."""
    if _has_arrays(index):
        from dala.gpu.compute.arrays import picking

        return picking.get(b, index)
    call = "b[...]"
    walk = parse(b.shape, index, call)

    def gather(made: Buffer) -> None:
        distances = strides(b.shape)
        offset = sum(axis.start * stride for axis, stride in zip(walk.axes, distances, strict=True))
        sizes = [1] * len(walk.shape)
        steps = [0] * len(walk.shape)
        for axis, stride in zip(walk.axes, distances, strict=True):
            if axis.place is not None:
                sizes[axis.place], steps[axis.place] = axis.size, axis.step * stride
        _gather(b, made, offset, sizes, steps, call)

    return copied(b, walk.shape, lambda source: source[walk.plain], gather, call)


def transposed(b: Buffer) -> Buffer:
    """Return a copy with the axes in reverse order."""
    call = "T"

    def gather(made: Buffer) -> None:
        _gather(b, made, 0, list(made.shape), list(strides(b.shape)[::-1]), call)

    return copied(b, b.shape[::-1], lambda source: source.T, gather, call)


def copied(
    b: Buffer,
    shape: tuple[int, ...],
    select: Callable[[NDArray], NDArray],
    gather: Callable[[Buffer], None],
    call: str,
) -> Buffer:
    """Return a copy of elements of a buffer.

    Args:
        b: The buffer.
        shape: The shape of the copy.
        select: Selects the elements where the host can access the memory.
        gather: Copies them to the new buffer elsewhere; not called if it is empty.
        call: The caller, for errors.
    """
    b.storage(call)
    made = allocate(b.engine, shape, b.dtype, zero=False, call=call)
    if made.nbytes:
        source = host_array(b, call)
        if source is not None:
            fill(made, select(source), call)
        else:
            gather(made)
    return made


def check_elements(b: Buffer, call: str) -> None:
    """Raise if a buffer has more elements than kernels count."""
    if b.size > MAX_ELEMENTS:
        raise BufferTooLarge(
            f"{call}: a buffer on {b.device} can be indexed up to {MAX_ELEMENTS:,} elements, got "
            f"{b.size:,}. Split it, or move it: b.to('cpu').",
            call=call,
        )


def _gather(
    b: Buffer, made: Buffer, offset: int, sizes: list[int], steps: list[int], call: str
) -> None:
    """Copy elements of a buffer at regular distances, with a kernel."""
    check_elements(b, call)
    dims, distances = _merged(sizes, steps)
    numbers = {"offset": offset, **{f"s{i}": s for i, s in enumerate(distances)}}
    shape = made.shape
    relabel(made, dims)
    _take(len(dims)).run([reshaped_view(b, (b.size,))], made, numbers)
    relabel(made, shape)


def _merged(sizes: list[int], steps: list[int]) -> tuple[tuple[int, ...], list[int]]:
    """Merge neighboring axes that one distance describes; drop axes of size 1.

    >>> _merged([2, 1, 3, 4], [24, 7, 4, 1])
    ((2, 12), [24, 1])
    """
    dims: list[int] = []
    distances: list[int] = []
    for size, step in zip(sizes, steps, strict=True):
        if size == 1:
            continue
        if dims and distances[-1] == step * size:
            dims[-1] *= size
            distances[-1] = step
        else:
            dims.append(size)
            distances.append(step)
    return (tuple(dims), distances) if dims else ((1,), [0])


@cache
def _take(rank: int) -> Kernel:
    params = ", ".join(["offset: s32", *(f"s{i}: s32" for i in range(rank))])
    at = " + ".join(["offset", *(f"position({i}) * s{i}" for i in range(rank))])
    return text_kernel("take", f"def take(a: Array, *, {params}):\n    return a[{at}]")


def text_kernel(name: str, text: str) -> Kernel:
    """Return a kernel that is not registered, from its text."""
    return Kernel(name, declare(sources.from_text(text, name), lookup=lambda free: None))


def strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the distance in elements along each axis."""
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


def host_array(b: Buffer, call: str) -> NDArray | None:
    """Return a buffer's memory as an array, where the host can access it."""
    view = b.engine.host_view(b.storage(call))
    return None if view is None else np.frombuffer(view, NUMPY[b.dtype]).reshape(b.shape)


def fill(made: Buffer, values: NDArray, call: str) -> None:
    """Copy an array to a new buffer that the host can access."""
    target = host_array(made, call)
    assert target is not None
    target[...] = values


# writing ------------------------------------------------------------------------------------------
def put(b: Buffer, index: Index, value: Value) -> None:
    """Write a value to what an index selects. The value is broadcast."""
    if _has_arrays(index):
        from dala.gpu.compute.arrays import picking

        picking.put(b, index, value)
        return
    call = "b[...] = x"
    walk = parse(b.shape, index, call)
    b.check_writable(call)
    given = as_stored(b, value, call)
    check_broadcast(given.shape, walk.shape, call)
    if 0 in walk.shape:
        return
    if isinstance(given, Buffer):
        given.storage(call, "x")
    b.storage_to_write(call)
    target = host_array(b, call)
    if target is not None:
        target[walk.plain] = given.contents(call) if isinstance(given, Buffer) else given
        return
    source = given if isinstance(given, Buffer) else from_array(given, device=b.device)
    _scatter(b, walk, source, call)


def check_broadcast(given: tuple[int, ...], wanted: tuple[int, ...], call: str) -> None:
    """Raise if a value's shape does not broadcast to the shape of what is written."""
    try:
        fits = np.broadcast_shapes(given, wanted) == wanted
    except ValueError:
        fits = False
    if not fits:
        raise ShapeMismatch.invalid(call, "x", f"of a shape that broadcasts to {wanted}", given)


def as_stored(b: Buffer, value: Value, call: str) -> Buffer | NDArray:
    """Return a value in the buffer's dtype; floats are not stored in integers silently."""
    if not isinstance(value, Buffer):
        return to_dtype(as_array(value, call), b.dtype, call)
    if value.engine is not b.engine:
        value = value.to(b.device)
    if value.dtype == b.dtype:
        return value
    if value.dtype in promote.FLOATS and b.dtype not in promote.FLOATS:
        raise DtypeMismatch.invalid(
            call, "x", f"of integers, to be stored as {b.dtype}", value.dtype,
            f"Convert it first: x.astype({b.dtype!r}).",
        )  # fmt: skip
    return astype(value, b.dtype)


def _scatter(b: Buffer, walk: Walk, source: Buffer, call: str) -> None:
    """Write a buffer to a part of another, with a kernel that runs over all of it."""
    check_elements(b, call)
    padded = (1,) * (len(walk.shape) - len(source.shape)) + source.shape
    steps = [s if n > 1 else 0 for s, n in zip(strides(padded), padded, strict=True)]
    numbers: dict[str, int] = {"offset": 0}
    for i, axis in enumerate(walk.axes):
        step = 0 if axis.place is None else steps[axis.place]
        start, distance = axis.start, axis.step
        if distance < 0:  # count upwards, and read the value backwards
            start += (axis.size - 1) * distance
            numbers["offset"] += (axis.size - 1) * step
            distance, step = -distance, -step
        numbers |= {f"b{i}": start, f"d{i}": distance, f"n{i}": axis.size, f"s{i}": step}
    flat = reshaped_view(source, (source.size,))
    rank = len(b.shape)
    if rank:
        _put(rank).run([b, flat], b, numbers)
    else:
        b.engine.copy(source.storage(call), b.storage(call))


@cache
def _put(rank: int) -> Kernel:
    names = [f"{letter}{i}: s32" for i in range(rank) for letter in "bdns"]
    lines = [f"def put(a, x: Array, *, {', '.join(['offset: s32', *names])}):", "    at = offset"]
    tests = []
    for i in range(rank):
        lines.append(f"    q{i} = position({i}) - b{i}")
        lines.append(f"    k{i} = q{i} // d{i}")
        lines.append(f"    at = at + k{i} * s{i}")
        tests.append(f"q{i} >= 0 and q{i} % d{i} == 0 and k{i} < n{i}")
    lines.append(f"    return x[at] if {' and '.join(tests)} else a")
    return text_kernel("put", "\n".join(lines))
