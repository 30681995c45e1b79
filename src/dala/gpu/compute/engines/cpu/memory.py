"""Host memory for the CPU engine: aligned blocks, and reuse of large ones.

A new large block costs a page fault for each of its pages, which takes longer than many kernels
run. Large blocks are therefore kept for reuse, up to a limit, once no view of them is left.
"""

from __future__ import annotations

import ctypes
import sys
import weakref
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from dala import forks
from dala.errors import BufferTooLarge
from dala.gpu.compute.engines.cpu.sanitize import CAN_FENCE, SANITIZE, fenced
from dala.typing import NDArray

ALIGNMENT: Final = 64
#: Blocks of at least this size are kept for reuse; the C library handles smaller ones well.
REUSE_FROM: Final = 1 << 20
#: The most bytes kept for reuse.
REUSE_LIMIT: Final = 256 << 20

Array = npt.NDArray[np.uint8]

_Byte: Final = ctypes.c_char


def address_of(array: NDArray) -> int:
    """Return the address of an array's data.

    Call it once per buffer rather than once per frame: NumPy's own attributes take two
    microseconds.
    """
    try:
        return ctypes.addressof(_Byte.from_buffer(array))  # three times as fast as the attribute
    except (TypeError, ValueError):  # read-only, not contiguous or empty
        return int(array.ctypes.data)


#: An array as native code receives it: address and length.
ArraySpan: TypeAlias = tuple[int, int]


def span_of(array: NDArray) -> ArraySpan:
    """Return an array's address and length; the caller keeps the array alive."""
    return address_of(array), array.size


class Memory:
    """A block of host memory: its bytes as an array, and their address."""

    __slots__ = ("_pool", "_whole", "address", "array")

    def __init__(
        self,
        array: Array,
        address: int,
        whole: Array | None = None,
        pool: HostMemory | None = None,
    ) -> None:
        self.array = array
        #: Valid even for an empty array, for which NumPy reports no address.
        self.address = address
        self._whole = whole
        self._pool = pool

    def view(self) -> Array:
        """Return its bytes; the block is released once the last view of them is gone."""
        view = self.array[:]
        weakref.finalize(view, _release, self).atexit = False
        return view

    def __del__(self) -> None:
        # Views of the memory hold a reference to the array: then the block cannot be reused.
        pool, whole = self._pool, self._whole
        if pool is None or whole is None or sys is None:  # sys is None at interpreter exit
            return
        if self._references() == _UNSHARED:
            pool.recycle(whole)

    def _references(self) -> int:
        return sys.getrefcount(self.array)


#: The reference count of an array that has no views.
_UNSHARED: Final = Memory(np.empty(1, np.uint8), 0)._references()


class HostMemory:
    """Allocates blocks and keeps released large ones for reuse."""

    def __init__(self, limit: int = REUSE_LIMIT) -> None:
        self._limit = limit
        self._lock = forks.lock()
        self._kept: dict[int, list[Array]] = {}
        self.kept_bytes = 0

    def allocate(self, nbytes: int, *, zero: bool) -> Memory:
        """Allocate a block on a 64-byte boundary; an empty one has a valid address too."""
        size = max(nbytes, 1)
        if SANITIZE and CAN_FENCE:
            return Memory(*fenced(nbytes, ALIGNMENT))
        if size < REUSE_FROM:
            return Memory(*_aligned(_fresh(size + ALIGNMENT, zero), nbytes))
        size = -(-size // 4096) * 4096 + ALIGNMENT
        whole = self._take(size)
        if whole is None:
            whole = self._new(size, zero)
        elif zero:
            ctypes.memset(whole.ctypes.data, 0, size)
        return Memory(*_aligned(whole, nbytes), whole, self)

    def block(self, nbytes: int) -> Array:
        """Return the bytes of a block, which is released once the last view of them is gone."""
        return self.allocate(nbytes, zero=False).view()

    def _new(self, size: int, zero: bool) -> Array:
        return _fresh(size, zero)

    def _take(self, size: int) -> Array | None:
        with self._lock:
            blocks = self._kept.get(size)
            if not blocks:
                return None
            self.kept_bytes -= size
            return blocks.pop()

    def recycle(self, whole: Array) -> None:
        """Keep a block for reuse, up to the limit."""
        # Finalizers call this, possibly while the current thread holds the lock.
        if not self._lock.acquire(blocking=False):
            return
        try:
            size = whole.nbytes
            if self.kept_bytes + size <= self._limit:
                self._kept.setdefault(size, []).append(whole)
                self.kept_bytes += size
        finally:
            self._lock.release()

    def clear(self) -> None:
        """Drop all blocks kept for reuse."""
        with self._lock:
            self._kept.clear()
            self.kept_bytes = 0


def _release(memory: Memory) -> None:
    """Drop the last reference to a block."""


def _fresh(size: int, zero: bool) -> Array:
    try:
        return np.zeros(size, np.uint8) if zero else np.empty(size, np.uint8)
    except MemoryError:
        raise BufferTooLarge(
            f"allocate: not enough memory for {size} bytes. Free some buffers first.",
            call="allocate",
        ) from None


def _aligned(whole: Array, nbytes: int) -> tuple[Array, int]:
    address = whole.ctypes.data
    start = -address % ALIGNMENT
    return whole[start : start + nbytes], address + start
