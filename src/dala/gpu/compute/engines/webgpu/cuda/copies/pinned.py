"""Large transfers by memory of the host that the GPU reads and writes directly.

Blocks are ordinary memory that is registered with the driver. So a result stays valid when the
device is closed or lost.
"""

from __future__ import annotations

import mmap
from collections import deque
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import numpy as np

from dala.errors import DeviceError
from dala.gpu.compute.engines.cpu.memory import REUSE_FROM, Array, HostMemory, Memory, address_of
from dala.gpu.compute.engines.webgpu.cuda.copies.threads import copy_bytes
from dala.gpu.compute.engines.webgpu.cuda.device import CudaCalls

if TYPE_CHECKING:
    from dala.gpu.compute.engines.webgpu.cuda.api import CudaApi
    from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine
    from dala.gpu.compute.engines.webgpu.pool import DeviceBuffer

#: The most bytes that are registered at a time.
PINNED_BYTES: Final = 512 << 20
#: Larger transfers are cut: the GPU copies a piece while the host copies another.
PIECE_BYTES: Final = 32 << 20
#: From this size on a thread waits until its piece is on the way.
WAITED_BYTES: Final = 4 << 20
#: The pieces that the GPU may copy at a time.
AHEAD: Final = 2


class _Full(Exception):
    """So many bytes are in use that no more are registered."""


class _Region(mmap.mmap):
    """Registered memory. It is kept until the driver has forgotten it."""

    owned: PinnedMemory | None = None

    def __del__(self) -> None:
        with suppress(Exception):  # the interpreter is ending
            if self.owned is not None:
                self.owned.forget(self)


class PinnedMemory(HostMemory):
    """Blocks of registered memory, which are reused once no view of them is left."""

    def __init__(self, engine: WebGPUEngine) -> None:
        super().__init__(PINNED_BYTES)
        self._owner = engine.owner
        self._device = engine.device
        self._api: CudaApi = engine.device.native.api
        #: Bytes of the regions by address.
        self._regions: dict[int, int] = {}
        #: The submits of uploads that may be under way; for the owner's thread only.
        self._sent: deque[int] = deque()

    def write(self, buffer: DeviceBuffer, data: memoryview) -> None:
        """Upload bytes. The GPU copies the last ones while the thread goes on."""
        for start in range(0, data.nbytes, PIECE_BYTES):
            piece = data[start : start + PIECE_BYTES]
            memory = self.take(piece.nbytes)
            if memory is None:
                self._owner.call(self._device.write, buffer, piece, start)
                continue
            copy_bytes(memory.array, np.frombuffer(piece, np.uint8))
            send = self._owner.call if piece.nbytes >= WAITED_BYTES else self._owner.post
            send(self._write, memory, buffer, start)

    def _write(self, memory: Memory, buffer: DeviceBuffer, start: int) -> None:
        device, size = self._device, memory.array.size
        native = device.native_buffer(buffer)
        device.encoder().copy_buffer_to_buffer(memory, 0, native, start, -(-size // 4) * 4)
        device.uploaded += size
        device.flush()
        self._sent.append(device.calls.submitted)
        if len(self._sent) > AHEAD:  # few blocks are used again and again, and stay in the cache
            device.wait_for(self._sent.popleft())

    def read(self, buffer: DeviceBuffer, nbytes: int, start: int = 0) -> Future[memoryview] | None:
        """Download bytes; return None if they are few, or too many are on the way."""
        memory = self.take(nbytes)
        if memory is None:
            return None
        return self._owner.promise(self._read, memory, buffer, start)

    def _read(
        self, memory: Memory, buffer: DeviceBuffer, start: int, future: Future[memoryview]
    ) -> None:
        device, size = self._device, memory.array.size
        native = device.native_buffer(buffer)
        device.flush()
        assert isinstance(device.calls, CudaCalls)
        device.calls.read_back(native, start, memory, size)
        device.downloaded += size
        device.sync(future, memoryview(memory.view()))

    def read_large(self, buffer: DeviceBuffer, data: Array) -> bool:
        """Download to memory of the host by pieces; return False if too many are on the way."""
        ahead: deque[tuple[int, Future[memoryview]]] = deque()
        for start in range(0, data.size, PIECE_BYTES):
            future = self.read(buffer, min(PIECE_BYTES, data.size - start), start)
            if future is None:
                break
            ahead.append((start, future))
            if len(ahead) > AHEAD:
                self._copy(data, *ahead.popleft())
        else:
            start = data.size
        while ahead:
            self._copy(data, *ahead.popleft())
        return start == data.size

    def _copy(self, data: Array, start: int, future: Future[memoryview]) -> None:
        piece = np.frombuffer(self._owner.wait(future), np.uint8)
        copy_bytes(data[start : start + piece.size], piece)

    def take(self, nbytes: int) -> Memory | None:
        """Return a block, or None if it is small or too much is in use."""
        if nbytes < REUSE_FROM:
            return None
        try:
            return self.allocate(nbytes, zero=False)
        except (_Full, DeviceError):  # the driver registers no more
            return None

    def _new(self, size: int, zero: bool) -> Array:
        if sum(self._regions.values()) + size > PINNED_BYTES:
            self.clear()  # blocks of other sizes
            if sum(self._regions.values()) + size > PINNED_BYTES:
                raise _Full
        region = _Region(-1, size)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            with suppress(OSError):  # a system without them
                region.madvise(mmap.MADV_HUGEPAGE)
        array = np.frombuffer(region, np.uint8)
        address = address_of(array)
        self._owner.call(self._api.register, address, size)
        self._regions[address], region.owned = size, self
        return array

    def forget(self, region: _Region) -> None:
        """Let the driver forget a region, which is held so long."""
        address = address_of(np.frombuffer(region, np.uint8))
        del self._regions[address]
        self._owner.post_from_finalizer(self._api.unregister, address, region)
