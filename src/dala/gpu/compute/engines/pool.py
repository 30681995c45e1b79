"""Device memory: buffers are made once and used again by others of about their size.

A buffer that is given back may be used again at once, even while the device still works with it:
all work on a device is done in order. Sizes come in eight steps for each power of two.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections import OrderedDict, deque
from typing import Any, Final

#: Memory kept for later use, unless ``DALA_POOL_BYTES`` says otherwise.
POOL_BYTES: Final = 512 << 20

_ids = itertools.count(1)


class DeviceBuffer:
    """One buffer on a device, by number: what others may hold without holding native memory."""

    __slots__ = ("id", "nbytes", "size")

    def __init__(self, size: int) -> None:
        self.id = next(_ids)
        #: Bytes on the device.
        self.size = size
        #: Bytes that were asked for; 0 while it waits in the pool.
        self.nbytes = 0


def size_class(nbytes: int, limit: int) -> int:
    """The size to allocate: at least 16 bytes, whole vec4, at most an eighth larger than asked."""
    padded = max(16, -(-nbytes // 16) * 16)
    step = max(16, 1 << (padded - 1).bit_length() >> 4)
    rounded = -(-padded // step) * step
    return rounded if rounded <= limit else padded


def pool_bytes_from_environment() -> int:
    """The cap that ``DALA_POOL_BYTES`` sets, or the usual one."""
    text = os.environ.get("DALA_POOL_BYTES", "")
    try:
        return max(int(text), 0)
    except ValueError:
        return POOL_BYTES


class BufferPool:
    """Free buffers by size, oldest out first beyond the cap, and counts of all that exist.

    :meth:`take` is for any thread; the rest is for the owner's thread, where native buffers live.
    """

    def __init__(self, cap: int) -> None:
        self.cap = cap
        self.natives: dict[int, Any] = {}
        self._lock = threading.Lock()
        self._free: dict[int, deque[DeviceBuffer]] = {}
        self._age: OrderedDict[int, DeviceBuffer] = OrderedDict()
        self._pooled_bytes = 0
        self._live = 0
        self._live_bytes = 0

    def take(self, size: int, nbytes: int) -> DeviceBuffer | None:
        """A free buffer of just this size, or None."""
        with self._lock:
            free = self._free.get(size)
            if not free:
                return None
            buffer = free.pop()
            del self._age[buffer.id]
            self._pooled_bytes -= size
            self._count(buffer, nbytes)
            return buffer

    def add(self, native: Any, size: int, nbytes: int) -> DeviceBuffer:
        """Enters a new native buffer, as one in use."""
        buffer = DeviceBuffer(size)
        with self._lock:
            self.natives[buffer.id] = native
            self._count(buffer, nbytes)
        return buffer

    def put(self, buffer: DeviceBuffer) -> list[DeviceBuffer]:
        """Takes a buffer back; gives those that must go to stay under the cap."""
        with self._lock:
            if buffer.id not in self.natives or buffer.id in self._age:
                return []
            self._live -= 1
            self._live_bytes -= buffer.nbytes
            buffer.nbytes = 0
            self._free.setdefault(buffer.size, deque()).append(buffer)
            self._age[buffer.id] = buffer
            self._pooled_bytes += buffer.size
        return self.trim(self.cap)

    def trim(self, cap: int) -> list[DeviceBuffer]:
        """Takes out the oldest free buffers until what is kept is under ``cap`` bytes."""
        out = []
        with self._lock:
            while self._pooled_bytes > cap and self._age:
                _, buffer = self._age.popitem(last=False)
                self._free[buffer.size].remove(buffer)
                self._pooled_bytes -= buffer.size
                out.append(buffer)
        return out

    def forget(self, buffer: DeviceBuffer) -> None:
        """Lets go of the native buffer."""
        self.natives.pop(buffer.id, None)

    def clear(self) -> None:
        """Lets go of everything."""
        with self._lock:
            self._free.clear()
            self._age.clear()
            self.natives.clear()
            self._pooled_bytes = self._live = self._live_bytes = 0

    def stats(self) -> dict[str, int]:
        """Counts and bytes of buffers in use and of those kept."""
        with self._lock:
            return {
                "live_buffers": self._live,
                "live_bytes": self._live_bytes,
                "pooled_buffers": len(self._age),
                "pooled_bytes": self._pooled_bytes,
            }

    def _count(self, buffer: DeviceBuffer, nbytes: int) -> None:
        buffer.nbytes = nbytes
        self._live += 1
        self._live_bytes += nbytes
