"""Host memory for the CPU engine: aligned blocks, and big ones used again.

A fresh big block costs a page fault for every page it has, which is more than many kernels cost on
it; so big blocks that nobody looks at any more are kept, up to a limit, for the next to ask.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import weakref
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from dala.errors import BufferTooLarge

ALIGNMENT: Final = 64
#: Blocks from this size on are kept for reuse; smaller ones the C library handles well.
REUSE_FROM: Final = 1 << 20
#: Bytes kept for reuse at most.
REUSE_LIMIT: Final = 256 << 20

Array = npt.NDArray[np.uint8]

_Byte: Final = ctypes.c_char


def address_of(array: np.ndarray[Any, Any]) -> int:
    """Return the address of an array's data.

    Ask once per buffer: NumPy's attributes take about two microseconds.
    """
    try:
        return ctypes.addressof(_Byte.from_buffer(array))  # a third of the time of the attribute
    except (TypeError, ValueError):  # read-only, not contiguous or empty
        return int(array.ctypes.data)


#: An array as native code takes it without asking: its address and length.
Place: TypeAlias = tuple[int, int]


def place_of(array: np.ndarray[Any, Any]) -> Place:
    """Where an array is; whoever uses this keeps the array."""
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
        #: Also where an empty array has its memory, which NumPy does not tell.
        self.address = address
        self._whole = whole
        self._pool = pool

    def __del__(self) -> None:
        # Whoever still holds a view holds the array, and then the block cannot be used again.
        pool = self._pool
        if pool is not None and sys is not None and self._references() == _UNSHARED:
            pool._give_back(self._whole)

    def _references(self) -> int:
        return sys.getrefcount(self.array)


#: References that an array nobody else holds has, as this interpreter counts them.
_UNSHARED: Final = Memory(np.empty(1, np.uint8), 0)._references()


class HostMemory:
    """Allocates blocks, and keeps big ones that were given back."""

    def __init__(self, limit: int = REUSE_LIMIT) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._kept: dict[int, list[Array]] = {}
        self.kept_bytes = 0

    def allocate(self, nbytes: int, *, zero: bool) -> Memory:
        """A block on a 64-byte boundary; even an empty one has some memory behind it."""
        size = max(nbytes, 1)
        if size < REUSE_FROM:
            return Memory(*_aligned(_fresh(size + ALIGNMENT, zero), nbytes))
        size = -(-size // 4096) * 4096 + ALIGNMENT
        whole = self._take(size)
        if whole is None:
            whole = _fresh(size, zero)
        elif zero:
            ctypes.memset(whole.ctypes.data, 0, size)
        return Memory(*_aligned(whole, nbytes), whole, self)

    def block(self, nbytes: int) -> Array:
        """The bytes of a block that comes back by itself when the last view of them is gone."""
        memory = self.allocate(nbytes, zero=False)
        view = memory.array[:]
        weakref.finalize(view, _let_go, memory).atexit = False
        return view

    def _take(self, size: int) -> Array | None:
        with self._lock:
            blocks = self._kept.get(size)
            if not blocks:
                return None
            self.kept_bytes -= size
            return blocks.pop()

    def _give_back(self, whole: Any) -> None:
        # Called by finalizers, which may run while this very thread holds the lock.
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
        """Lets go of everything kept."""
        with self._lock:
            self._kept.clear()
            self.kept_bytes = 0


def _let_go(memory: Memory) -> None:
    """What held on to the block until now."""


def _fresh(size: int, zero: bool) -> Array:
    try:
        return np.zeros(size, np.uint8) if zero else np.empty(size, np.uint8)
    except MemoryError:
        raise BufferTooLarge(
            f"allocate: {size} bytes are more than this machine can give; free some buffers first."
        ) from None


def _aligned(whole: Array, nbytes: int) -> tuple[Array, int]:
    address = whole.ctypes.data
    start = -address % ALIGNMENT
    return whole[start : start + nbytes], address + start
