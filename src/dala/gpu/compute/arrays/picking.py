"""Indexing with lists, integer arrays and masks, as in NumPy. Results are copies.

Indices are read by the host, which checks them. Where it can access the buffer's memory, NumPy
picks the elements; elsewhere it counts their positions, and a kernel picks them.
"""

from __future__ import annotations

from functools import cache
from types import EllipsisType
from typing import NamedTuple, TypeAlias, cast

import numpy as np

from dala.errors import DtypeError, ShapeMismatch
from dala.gpu.compute.arrays.indexing import (
    ArrayIndex,
    Index,
    IndexItem,
    as_stored,
    check_broadcast,
    check_elements,
    copied,
    expand,
    host_array,
    integer,
    is_array,
    part,
    strides,
    text_kernel,
)
from dala.gpu.compute.arrays.operators import Value
from dala.gpu.compute.buffer import Buffer, relabel, reshaped_view
from dala.gpu.compute.create import from_array
from dala.gpu.compute.kernel import Kernel
from dala.typing import NDArray

PlainItem: TypeAlias = "int | slice | EllipsisType | NDArray | None"


class Pick(NamedTuple):
    """What an index with arrays selects."""

    #: The index as NumPy takes it, checked.
    plain: tuple[PlainItem, ...]
    shape: tuple[int, ...]


def parse(shape: tuple[int, ...], index: Index, call: str) -> Pick:
    """Check an index with lists, arrays or masks, and return what it selects."""
    given = [_read(item, call) for item in (index if isinstance(index, tuple) else (index,))]
    axis = 0
    plain: list[PlainItem] = []
    for item in expand(shape, given, [_rank(item) for item in given], call):
        if item is None:
            plain.append(None)
            continue
        if isinstance(item, np.ndarray):
            _check(item, shape, axis, call)
            plain.append(item)
        elif isinstance(item, slice):
            part(item, shape[axis], call)
            plain.append(item)
        else:
            plain.append(integer(item, shape[axis], axis, call))
        axis += _rank(item)
    picked = (*plain, Ellipsis)
    try:
        made = np.broadcast_to(np.empty((), np.uint8), shape)[picked].shape
    except IndexError:  # everything else is checked
        sizes = ", ".join(str(p.shape) for p in plain if isinstance(p, np.ndarray))
        raise ShapeMismatch.invalid(
            call, "index", "of arrays whose shapes broadcast with each other", sizes
        ) from None
    return Pick(picked, made)


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


# reading ------------------------------------------------------------------------------------------
def get(b: Buffer, index: Index) -> Buffer:
    """Return a copy of the elements that an index with arrays selects."""
    call = "b[...]"
    pick = parse(b.shape, index, call)

    def gather(made: Buffer) -> None:
        check_elements(b, call)
        places = from_array(_places(b.shape, pick).reshape(-1), device=b.device)
        relabel(made, (made.size,))
        _take().run([reshaped_view(b, (b.size,)), places], made, {})
        relabel(made, pick.shape)

    return copied(b, pick.shape, lambda source: source[pick.plain], gather, call)


def _places(shape: tuple[int, ...], pick: Pick) -> NDArray:
    """Return the positions of the selected elements in the flat buffer."""
    if not shape:
        return np.zeros(pick.shape, np.int32)
    places = np.zeros(pick.shape, np.int32)
    for axis, step in enumerate(strides(shape)):
        along = np.arange(shape[axis], dtype=np.int32) * step
        along = along.reshape([-1 if i == axis else 1 for i in range(len(shape))])
        places += np.broadcast_to(along, shape)[pick.plain]
    return places


@cache
def _take() -> Kernel:
    return text_kernel("take_at", "def take_at(a: Array, at: s32): return a[at]")


# writing ------------------------------------------------------------------------------------------
def put(b: Buffer, index: Index, value: Value) -> None:
    """Write a value to the elements that an index with arrays selects. The value is broadcast.

    Of an element that is selected several times, the last value stays.
    """
    call = "b[...] = x"
    b.check_writable(call)
    given = as_stored(b, value, call)
    if given.size == 1 and _put_masked(b, index, given, call):
        return
    pick = parse(b.shape, index, call)
    check_broadcast(given.shape, pick.shape, call)
    if 0 in pick.shape:
        return
    if isinstance(given, Buffer):
        given.storage(call, "x")
    storage = b.storage_to_write(call)
    target = host_array(b, call)
    if target is not None:
        target[pick.plain] = given.contents(call) if isinstance(given, Buffer) else given
        return
    check_elements(b, call)
    source = given if isinstance(given, Buffer) else from_array(given, device=b.device)
    if source.storage(call) is storage:
        source = source.copy()
    # For each element, the place of its new value; NumPy keeps the last of several.
    numbers = np.arange(source.size, dtype=np.int32).reshape(source.shape)
    chosen = np.full(b.size, -1, np.int32)
    chosen[_places(b.shape, pick)] = np.broadcast_to(numbers, pick.shape)
    places = from_array(chosen.reshape(b.shape), device=b.device)
    _put().run([b, places, reshaped_view(source, (source.size,))], b, {})


def _put_masked(b: Buffer, index: Index, given: Buffer | NDArray, call: str) -> bool:
    """Write one value where a mask on the buffer's device is not 0, without reading the mask.

    Return False if the index is anything else.
    """
    if not isinstance(index, Buffer) or index.dtype != "u8" or index.engine is not b.engine:
        return False
    if not index.shape or index.shape != b.shape[: len(index.shape)] or not b.size:
        return False
    check_broadcast(given.shape, (1,) * (1 + len(b.shape) - len(index.shape)), call)
    value = given if isinstance(given, Buffer) else from_array(given, device=b.device)
    operands = [index.storage(call), value.storage(call, "x")]
    storage = b.storage_to_write(call)
    mask = index.copy() if operands[0] is storage else index
    value = value.copy() if operands[1] is storage else value
    mask = reshaped_view(mask, mask.shape + (1,) * (len(b.shape) - len(mask.shape)))
    _put_where().run([b, mask, reshaped_view(value, (1,))], b, {})
    return True


@cache
def _put() -> Kernel:
    return text_kernel(
        "put_at", "def put_at(a, at: s32, x: Array): return x[max(at, 0)] if at >= 0 else a"
    )


@cache
def _put_where() -> Kernel:
    return text_kernel(
        "put_where", "def put_where(a, m: u8, x: Array): return x[0] if m != 0 else a"
    )
