"""Indexing as in NumPy: integers, slices, ``...``, ``None``, lists, arrays and masks.

Results are copies. Arrays among the indices are read by the host, which checks them. Where it can
access the buffer's memory, NumPy selects the elements; elsewhere a kernel does: by a walk over the
axes, or by the positions of the elements, which the host counts.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache, lru_cache
from types import EllipsisType
from typing import Final, NamedTuple, TypeAlias, TypeGuard, TypeVar, cast

import numpy as np

from dala.errors import BufferTooLarge, DtypeError, DtypeMismatch, IndexOutOfRange, ShapeMismatch
from dala.gpu.compute.arrays import promote
from dala.gpu.compute.arrays.operators import Value, astype
from dala.gpu.compute.buffer import Buffer, allocate, relabel, reshaped_view
from dala.gpu.compute.call.geometry import broadcast_strides, merge_axes, strides_of
from dala.gpu.compute.convert import as_array, to_dtype
from dala.gpu.compute.create import from_array
from dala.gpu.compute.dtypes import NUMPY
from dala.gpu.compute.kernel import Kernel, text_kernel
from dala.typing import NDArray

IndexItem: TypeAlias = "int | np.integer | slice | EllipsisType | None"
#: Integers or bools that select elements; u8 buffers are masks, as comparisons give them.
ArrayIndex: TypeAlias = (
    "list[int] | list[bool] | list[list[int]] | list[list[bool]] | NDArray | Buffer"
)
#: An index: integers, slices, ``...``, ``None``, and arrays of integers or bools.
Index: TypeAlias = "IndexItem | ArrayIndex | tuple[IndexItem | ArrayIndex, ...]"

PlainItem: TypeAlias = "int | slice | EllipsisType | NDArray | None"

_Item = TypeVar("_Item")

_TAKE: Final = "def take_at(a: Array, at: s32): return a[at]"
_PUT: Final = "def put_at(a, at: s32, x: Array): return x[max(at, 0)] if at >= 0 else a"
_PUT_WHERE: Final = "def put_where(a, m: u8, x: Array): return x[0] if m != 0 else a"

#: Kernels count positions in s32.
MAX_ELEMENTS: Final = (1 << 31) - 1


class AxisPart(NamedTuple):
    """The part of one axis that an index selects."""

    start: int
    step: int
    size: int
    #: The axis of the result, or None for an integer.
    place: int | None


class Pick(NamedTuple):
    """A checked index, as NumPy takes it, and the shape of the result."""

    plain: tuple[PlainItem, ...]
    shape: tuple[int, ...]

    @property
    def has_arrays(self) -> bool:
        """True if the index has arrays of integers or bools."""
        return any(isinstance(item, np.ndarray) for item in self.plain)

    def walk(self, shape: tuple[int, ...]) -> list[AxisPart]:
        """Return the parts of a buffer's axes that an index without arrays selects."""
        axes: list[AxisPart] = []
        place = 0
        for item in self.plain[:-1]:
            if isinstance(item, slice):
                taken = range(*item.indices(shape[len(axes)]))
                axes.append(AxisPart(taken.start, taken.step, len(taken), place))
            elif isinstance(item, int):
                axes.append(AxisPart(item, 1, 1, None))
                continue
            place += 1
        return axes


def is_array(item: object) -> TypeGuard[ArrayIndex]:
    """Return True for lists, arrays and buffers that are no single number."""
    if isinstance(item, Buffer | np.ndarray):
        return len(item.shape) > 0
    return isinstance(item, list) or (
        hasattr(item, "__array__") and not isinstance(item, np.generic)
    )


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


@lru_cache(64)
def _nothing(shape: tuple[int, ...]) -> NDArray:
    """Return an array of a shape without memory, to index it for the shape of the result."""
    return np.broadcast_to(np.empty((), np.uint8), shape)


def parse(shape: tuple[int, ...], index: Index, call: str) -> Pick:
    """Check an index, and return it as NumPy takes it."""
    given = [_read(item, call) for item in (index if isinstance(index, tuple) else (index,))]
    axis = 0
    plain: list[PlainItem] = []
    for item in expand(shape, given, [_rank(item) for item in given], call):
        if isinstance(item, np.ndarray):
            _check(item, shape, axis, call)
        elif isinstance(item, slice):
            part(item, shape[axis], call)
        elif item is not None:
            item = integer(item, shape[axis], axis, call)
        plain.append(item)
        axis += _rank(item)
    picked = (*plain, Ellipsis)
    try:
        return Pick(picked, _nothing(shape)[picked].shape)
    except IndexError:  # everything else is checked
        sizes = ", ".join(str(p.shape) for p in plain if isinstance(p, np.ndarray))
        raise ShapeMismatch.invalid(
            call, "index", "of arrays whose shapes broadcast with each other", sizes
        ) from None


def _read(item: IndexItem | ArrayIndex, call: str) -> IndexItem | NDArray:
    """Return a list, an array or a buffer as an array of integers or bools; others unchanged."""
    if not is_array(item):
        return cast("IndexItem", item)
    if isinstance(item, Buffer):
        array = item.contents(call)
        if item.dtype == "u8":
            array = array != 0  # buffers have no bool; comparisons give u8
        else:
            array = array.copy()  # the memory may change
    else:
        try:
            array = np.array(item)
        except ValueError:
            raise DtypeError.invalid(
                call, "index", "a list of integers or bools", item, "Its lists differ in length."
            ) from None
    if not array.size and isinstance(item, list):
        array = array.astype(np.intp)
    if array.dtype.kind not in "biu":
        raise DtypeError.invalid(
            call, "index", "integers or bools", f"an array of {array.dtype}",
            "Convert it first: index.astype('s32')." if array.dtype.kind == "f" else "",
        )  # fmt: skip
    return array


def _rank(item: IndexItem | NDArray) -> int:
    """Return the number of axes that an item selects from."""
    if item is None or item is Ellipsis:
        return 0
    return item.ndim if isinstance(item, np.ndarray) and item.dtype == bool else 1


def _check(item: NDArray, shape: tuple[int, ...], axis: int, call: str) -> None:
    if item.dtype == bool:
        wanted = shape[axis : axis + item.ndim]
        if item.shape != wanted:
            raise ShapeMismatch.invalid(
                call, "index", f"a mask of shape {wanted}, as the buffer has from axis {axis} on",
                item.shape,
            )  # fmt: skip
        return
    if not item.size:
        return
    size = shape[axis]
    for number in (int(item.min()), int(item.max())):
        if not -size <= number < size:
            integer(number, size, axis, call)  # raises


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
            call, "index", "integers, slices, '...', None, or arrays of integers or bools", item
        )
    try:
        number = operator.index(item)
    except TypeError:
        raise DtypeError.invalid(
            call, "index", "integers, slices, '...' or None", item, "Index with one integer."
        ) from None
    if not size:
        raise IndexOutOfRange(f"{call}: axis {axis} is empty, got {number}.", call=call)
    if not -size <= number < size:
        expected = f"from {-size} to {size - 1} for axis {axis}"
        raise IndexOutOfRange.invalid(call, "index", expected, number)
    return number % size


# reading ------------------------------------------------------------------------------------------
def get(b: Buffer, index: Index) -> Buffer:
    """Return a copy of the selected elements."""
    call = "b[...]"
    pick = parse(b.shape, index, call)

    def gather(made: Buffer) -> None:
        if pick.has_arrays:
            places = from_array(_places(b.shape, pick).reshape(-1), device=b.device)
            relabel(made, (made.size,))
            text_kernel("take_at", _TAKE).run([reshaped_view(b, (b.size,)), places], made, {})
            relabel(made, pick.shape)
            return
        offset = 0
        sizes, steps = [1] * len(pick.shape), [0] * len(pick.shape)
        for axis, stride in zip(pick.walk(b.shape), strides_of(b.shape), strict=True):
            offset += axis.start * stride
            if axis.place is not None:
                sizes[axis.place], steps[axis.place] = axis.size, axis.step * stride
        _gather(b, made, offset, sizes, steps)

    return _copied(b, pick.shape, lambda source: source[pick.plain], gather, call)


def transposed(b: Buffer) -> Buffer:
    """Return a copy with the axes in reverse order."""
    call = "T"

    def gather(made: Buffer) -> None:
        _gather(b, made, 0, list(made.shape), list(strides_of(b.shape)[::-1]))

    return _copied(b, b.shape[::-1], lambda source: source.T, gather, call)


def _copied(
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
        source = _host_array(b, call)
        if source is not None:
            _fill(made, select(source), call)
        else:
            _check_elements(b, call)
            gather(made)
    return made


def _check_elements(b: Buffer, call: str) -> None:
    """Raise if a buffer has more elements than kernels count."""
    if b.size > MAX_ELEMENTS:
        raise BufferTooLarge(
            f"{call}: a buffer on {b.device} can be indexed up to {MAX_ELEMENTS:,} elements, got "
            f"{b.size:,}. Split it, or move it: b.to('cpu').",
            call=call,
        )


def _places(shape: tuple[int, ...], pick: Pick) -> NDArray:
    """Return the positions of the selected elements in the flat buffer."""
    places = np.zeros(pick.shape, np.int32)
    for axis, step in enumerate(strides_of(shape)):
        along = np.arange(shape[axis], dtype=np.int32) * step
        along = along.reshape([-1 if i == axis else 1 for i in range(len(shape))])
        places += np.broadcast_to(along, shape)[pick.plain]
    return places


def _gather(b: Buffer, made: Buffer, offset: int, sizes: list[int], steps: list[int]) -> None:
    """Copy elements of a buffer at regular distances, with a kernel."""
    dims, (distances,) = merge_axes(tuple(sizes) or (1,), [tuple(steps) or (0,)])
    numbers = {"offset": offset, **{f"s{i}": s for i, s in enumerate(distances)}}
    shape = made.shape
    relabel(made, dims)
    _take(len(dims)).run([reshaped_view(b, (b.size,))], made, numbers)
    relabel(made, shape)


@cache
def _take(rank: int) -> Kernel:
    params = ", ".join(["offset: s32", *(f"s{i}: s32" for i in range(rank))])
    at = " + ".join(["offset", *(f"position({i}) * s{i}" for i in range(rank))])
    return text_kernel("take", f"def take(a: Array, *, {params}):\n    return a[{at}]")


def _host_array(b: Buffer, call: str) -> NDArray | None:
    """Return a buffer's memory as an array, where the host can access it."""
    view = b.engine.host_view(b.storage(call))
    return None if view is None else np.frombuffer(view, NUMPY[b.dtype]).reshape(b.shape)


def _fill(made: Buffer, values: NDArray, call: str) -> None:
    """Copy an array to a new buffer that the host can access."""
    target = _host_array(made, call)
    assert target is not None
    target[...] = values


# writing ------------------------------------------------------------------------------------------
def put(b: Buffer, index: Index, value: Value) -> None:
    """Write a value, which is broadcast, to the selected elements.

    Of an element that is selected several times, the last value stays.
    """
    call = "b[...] = x"
    b.check_writable(call)
    given = _as_stored(b, value, call)
    if given.size == 1 and _put_masked(b, index, given, call):
        return
    pick = parse(b.shape, index, call)
    _check_broadcast(given.shape, pick.shape, call)
    if 0 in pick.shape:
        return
    if isinstance(given, Buffer):
        given.storage(call, "x")
    storage = b.storage_to_write(call)
    target = _host_array(b, call)
    if target is not None:
        target[pick.plain] = given.contents(call) if isinstance(given, Buffer) else given
        return
    source = given if isinstance(given, Buffer) else from_array(given, device=b.device)
    _check_elements(b, call)
    if source.storage(call) is storage:
        source = source.copy()
    if not pick.has_arrays:
        _scatter(b, pick, source, call)
        return
    # For each element, the place of its new value; NumPy keeps the last of several.
    numbers = np.arange(source.size, dtype=np.int32).reshape(source.shape)
    chosen = np.full(b.size, -1, np.int32)
    chosen[_places(b.shape, pick)] = np.broadcast_to(numbers, pick.shape)
    places = from_array(chosen.reshape(b.shape), device=b.device)
    text_kernel("put_at", _PUT).run([b, places, reshaped_view(source, (source.size,))], b, {})


def _check_broadcast(given: tuple[int, ...], wanted: tuple[int, ...], call: str) -> None:
    """Raise if a value's shape does not broadcast to the selected one."""
    try:
        fits = np.broadcast_shapes(given, wanted) == wanted
    except ValueError:
        fits = False
    if not fits:
        raise ShapeMismatch.invalid(call, "x", f"of a shape that broadcasts to {wanted}", given)


def _as_stored(b: Buffer, value: Value, call: str) -> Buffer | NDArray:
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


def _put_masked(b: Buffer, index: Index, given: Buffer | NDArray, call: str) -> bool:
    """Write one value where a mask on the buffer's device is not 0, without reading the mask.

    Return False if the index is anything else.
    """
    if not isinstance(index, Buffer) or index.dtype != "u8" or index.engine is not b.engine:
        return False
    if not index.shape or index.shape != b.shape[: len(index.shape)] or not b.size:
        return False
    _check_broadcast(given.shape, (1,) * (1 + len(b.shape) - len(index.shape)), call)
    value = given if isinstance(given, Buffer) else from_array(given, device=b.device)
    operands = [index.storage(call), value.storage(call, "x")]
    storage = b.storage_to_write(call)
    mask = index.copy() if operands[0] is storage else index
    value = value.copy() if operands[1] is storage else value
    mask = reshaped_view(mask, mask.shape + (1,) * (len(b.shape) - len(mask.shape)))
    text_kernel("put_where", _PUT_WHERE).run([b, mask, reshaped_view(value, (1,))], b, {})
    return True


def _scatter(b: Buffer, pick: Pick, source: Buffer, call: str) -> None:
    """Write a buffer to a part of another, with a kernel that runs over all of it."""
    padded = (1,) * (len(pick.shape) - len(source.shape)) + source.shape
    steps = broadcast_strides(padded)
    numbers: dict[str, int] = {"offset": 0}
    for i, axis in enumerate(pick.walk(b.shape)):
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
