"""Device memory: buffers are made once and used again by others of about their size.

Who allocates gets a :class:`DeviceBuffer` at once; the memory behind it is found on the owner's
thread, in turn with the other work. Memory that is given back may be used again by the next work,
even while the device is still busy with it: all work on a device is done in order.
"""

from __future__ import annotations

import itertools
import os
from collections import OrderedDict
from typing import Any, Final

#: Memory kept for later use, unless ``DALA_POOL_BYTES`` says otherwise.
POOL_BYTES: Final = 512 << 20

_ids = itertools.count(1)


class PoolSlot:
    """A native buffer. Only the owner's thread holds these."""

    __slots__ = ("id", "native", "size")

    def __init__(self, native: Any, size: int) -> None:
        self.id = next(_ids)
        self.native = native
        self.size = size


class DeviceBuffer:
    """A buffer as other threads hold it: the memory is in ``slot`` while it has any."""

    __slots__ = ("nbytes", "size", "slot")

    def __init__(self, nbytes: int, size: int) -> None:
        #: Bytes that were asked for.
        self.nbytes = nbytes
        #: Bytes on the device.
        self.size = size
        self.slot: PoolSlot | None = None


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
    """Free memory by size, the oldest let go beyond the cap, and counts of all there is."""

    def __init__(self, cap: int) -> None:
        self.cap = cap
        #: Slots in use, so that the last reference to native memory is always here.
        self._used: dict[int, PoolSlot] = {}
        self._free: dict[int, OrderedDict[int, PoolSlot]] = {}
        self._age: OrderedDict[int, PoolSlot] = OrderedDict()
        self._pooled_bytes = 0
        self._live_bytes = 0

    def take(self, buffer: DeviceBuffer) -> bool:
        """Gives a buffer free memory of just its size; says whether there was any."""
        free = self._free.get(buffer.size)
        if not free:
            return False
        id, slot = free.popitem()  # the last one given back: likeliest to be in a cache
        del self._age[id]
        self._pooled_bytes -= slot.size
        self.give(buffer, slot)
        return True

    def give(self, buffer: DeviceBuffer, slot: PoolSlot) -> None:
        """Puts memory behind a buffer."""
        buffer.slot = slot
        self._used[slot.id] = slot
        self._live_bytes += buffer.nbytes

    def put(self, buffer: DeviceBuffer) -> list[PoolSlot]:
        """Takes a buffer's memory back; gives what must go to stay under the cap."""
        slot, buffer.slot = buffer.slot, None
        if slot is None or self._used.pop(slot.id, None) is None:
            return []
        self._live_bytes -= buffer.nbytes
        self._free.setdefault(slot.size, OrderedDict())[slot.id] = slot
        self._age[slot.id] = slot
        self._pooled_bytes += slot.size
        return self.trim(self.cap)

    def trim(self, cap: int) -> list[PoolSlot]:
        """Takes out the oldest free memory until what is kept is under ``cap`` bytes."""
        out = []
        while self._pooled_bytes > cap and self._age:
            id, slot = self._age.popitem(last=False)
            del self._free[slot.size][id]
            self._pooled_bytes -= slot.size
            out.append(slot)
        return out

    def clear(self) -> None:
        """Lets go of everything."""
        for slot in (*self._used.values(), *self._age.values()):
            slot.native = None
        self._used.clear()
        self._free.clear()
        self._age.clear()
        self._pooled_bytes = self._live_bytes = 0

    def stats(self) -> dict[str, int]:
        """Counts and bytes of buffers in use and of memory kept."""
        return {
            "live_buffers": len(self._used),
            "live_bytes": self._live_bytes,
            "pooled_buffers": len(self._age),
            "pooled_bytes": self._pooled_bytes,
        }
