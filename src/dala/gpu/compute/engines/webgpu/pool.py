"""A pool of device memory: released memory is reused for buffers of about the same size.

Allocating returns a :class:`DeviceBuffer` at once; the owner's thread assigns memory to it later,
in order with other work. Memory can be reused while the device still works on it, because a device
runs all work in order.
"""

from __future__ import annotations

import itertools
import os
from collections import OrderedDict, deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar

if TYPE_CHECKING:
    import wgpu

    from dala.gpu.compute.engines.webgpu.device import NativeDevice

#: The default limit of free memory in the pool; ``DALA_POOL_BYTES`` overrides it.
POOL_BYTES: Final = 512 << 20
#: The same where a processor computes: its memory is the host's. Also for transfers in flight.
SOFTWARE_BYTES: Final = 32 << 20

#: How buffers are used, as WebGPU numbers it.
USAGE: Final = MappingProxyType({
    "MAP_READ": 0x1, "MAP_WRITE": 0x2, "COPY_SRC": 0x4, "COPY_DST": 0x8, "UNIFORM": 0x40,
    "STORAGE": 0x80, "QUERY_RESOLVE": 0x200,
})  # fmt: skip

#: For sizes without a limit.
NO_LIMIT: Final = 1 << 62

_ids = itertools.count(1)


@dataclass(eq=False, slots=True)
class PoolSlot:
    """A native buffer of the pool. For the owner's thread only."""

    native: Any  # a GPUBuffer, or None
    size: int
    id: int = field(default_factory=_ids.__next__)
    #: How many other libraries use the memory.
    lent: int = 0


@dataclass(eq=False, slots=True)
class DeviceBuffer:
    """A buffer, for use on any thread: its requested and its allocated bytes.

    ``slot`` is its memory, or None.
    """

    nbytes: int
    size: int
    slot: PoolSlot | None = None


@dataclass(eq=False, slots=True)
class Mapped:
    """Mapped memory that another thread uses; it sets ``released`` when done."""

    memory: Any  # a memoryview to read, an array to write
    released: bool = False


@dataclass(eq=False, slots=True)
class Transfer:
    """Bytes that a thread waits to read, or for memory to write them to."""

    future: Future[Any]
    nbytes: int


def size_class(nbytes: int, limit: int) -> int:
    """Return the size to allocate: a multiple of 16, at most an eighth larger than requested."""
    padded = max(16, -(-nbytes // 16) * 16)
    step = max(16, 1 << (padded - 1).bit_length() >> 4)
    rounded = -(-padded // step) * step
    return rounded if rounded <= limit else padded


def pool_bytes_from_environment(*, software: bool = False) -> int:
    """Return the limit of free memory: ``DALA_POOL_BYTES``, or the default."""
    text = os.environ.get("DALA_POOL_BYTES", "")
    try:
        return max(int(text), 0)
    except ValueError:
        return SOFTWARE_BYTES if software else POOL_BYTES


T = TypeVar("T", bound=Transfer)


class Ring(Generic[T]):
    """Native buffers for transfers, which other threads may use while they are mapped.

    For the owner's thread only.
    """

    #: How the buffers are used, by the names of wgpu; the host maps them.
    usage: ClassVar[tuple[str, str]]

    def __init__(self, device: NativeDevice, cap: int) -> None:
        self.cap = cap
        self.bytes = 0
        self.count = 0
        self._device = device
        #: What threads wait for.
        self._waiting: deque[T] = deque()
        #: Buffers that other threads use, by their mapped memory.
        self._out: dict[Mapped, wgpu.GPUBuffer] = {}

    @property
    def waiting(self) -> bool:
        """True while any thread waits for a transfer."""
        return bool(self._waiting)

    @property
    def busy(self) -> bool:
        """True while a thread uses mapped memory."""
        return any(not mapped.released for mapped in self._out)

    def fail(self, error: Exception) -> None:
        """Set an error on all that threads wait for."""
        while self._waiting:
            self._waiting.popleft().future.set_exception(error)

    def clear(self) -> None:
        """Release every buffer. No thread may be copying."""
        self._waiting.clear()
        self._out.clear()
        self.bytes = self.count = 0

    def _lend(self, buffer: wgpu.GPUBuffer, memory: Any) -> Mapped:
        mapped = Mapped(memory)
        self._out[mapped] = buffer
        return mapped

    def _new(self, size: int, *, mapped: bool = False) -> wgpu.GPUBuffer:
        flags = USAGE[self.usage[0]] | USAGE[self.usage[1]]
        made = self._device.native.create_buffer(size=size, usage=flags, mapped_at_creation=mapped)
        self.bytes += size
        self.count += 1
        return made

    def _drop(self, buffer: wgpu.GPUBuffer) -> None:
        self.bytes -= buffer.size
        self.count -= 1


class BufferPool:
    """Free memory by size, up to a total of ``cap`` bytes, and statistics of all memory."""

    def __init__(self, cap: int) -> None:
        self.cap = cap
        #: Slots in use. The pool holds the last reference to native memory.
        self._used: dict[int, PoolSlot] = {}
        self._free: dict[int, OrderedDict[int, PoolSlot]] = {}
        self._age: OrderedDict[int, PoolSlot] = OrderedDict()
        self._pooled_bytes = 0
        self._live_bytes = 0

    def take(self, buffer: DeviceBuffer) -> bool:
        """Assign free memory to a buffer; return False if there is none of its size."""
        free = self._free.get(buffer.size)
        if not free:
            return False
        id, slot = free.popitem()  # the last one released is the most likely to be cached
        del self._age[id]
        self._pooled_bytes -= slot.size
        self.give(buffer, slot)
        return True

    def give(self, buffer: DeviceBuffer, slot: PoolSlot) -> None:
        """Assign new memory to a buffer."""
        buffer.slot = slot
        self._used[slot.id] = slot
        self._live_bytes += buffer.nbytes

    def put(self, buffer: DeviceBuffer) -> list[PoolSlot]:
        """Return a buffer's memory to the pool, and the slots to discard to stay below the cap."""
        slot, buffer.slot = buffer.slot, None
        if slot is None:
            return []
        if self._used.pop(slot.id, None) is None:
            return [slot]  # another library's memory
        self._live_bytes -= buffer.nbytes
        return [] if slot.lent else self._keep(slot)

    def take_back(self, slot: PoolSlot) -> list[PoolSlot]:
        """Return memory to the pool that another library has used; as :meth:`put` does."""
        slot.lent -= 1
        return [] if slot.lent or slot.id in self._used else self._keep(slot)

    def _keep(self, slot: PoolSlot) -> list[PoolSlot]:
        self._free.setdefault(slot.size, OrderedDict())[slot.id] = slot
        self._age[slot.id] = slot
        self._pooled_bytes += slot.size
        return self.trim(self.cap)

    def trim(self, cap: int) -> list[PoolSlot]:
        """Remove and return the oldest free slots until the rest is below ``cap`` bytes."""
        out = []
        while self._pooled_bytes > cap and self._age:
            id, slot = self._age.popitem(last=False)
            del self._free[slot.size][id]
            self._pooled_bytes -= slot.size
            out.append(slot)
        return out

    def clear(self) -> None:
        """Release everything."""
        for slot in (*self._used.values(), *self._age.values()):
            slot.native = None
        self._used.clear()
        self._free.clear()
        self._age.clear()
        self._pooled_bytes = self._live_bytes = 0

    def stats(self) -> dict[str, int]:
        """Return the number and size of buffers in use and of free memory."""
        return {
            "live_buffers": len(self._used),
            "live_bytes": self._live_bytes,
            "pooled_buffers": len(self._age),
            "pooled_bytes": self._pooled_bytes,
        }
