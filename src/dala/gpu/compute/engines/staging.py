"""Reading back: a ring of mappable buffers, so that many reads are under way at once.

A read copies into a staging buffer in its turn among the other work, then asks for it to be
mapped. When that has come about, the bytes are copied out and the buffer is free for another read.
Everything here runs on the owner's thread.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dala.gpu.compute.engines.native import Token, map_to_read

if TYPE_CHECKING:
    from dala.gpu.compute.engines.device import Device

#: Memory that staging buffers may take together; a read that needs more has its own for once.
STAGING_BYTES: Final = 128 << 20

#: The smallest staging buffer.
SMALLEST: Final = 4096


@dataclass(slots=True)
class _Read:
    future: Future[memoryview]
    buffer: Any
    nbytes: int
    token: Token
    promise: Any


class Staging:
    """The ring. ``cap`` is in bytes; reads beyond it wait for earlier ones to finish."""

    def __init__(self, device: Device, cap: int = STAGING_BYTES) -> None:
        self.cap = cap
        self.bytes = 0
        self.count = 0
        self._device = device
        self._free: dict[int, list[Any]] = {}
        self._reads: deque[_Read] = deque()

    @property
    def waiting(self) -> bool:
        """Whether any read is under way."""
        return bool(self._reads)

    def read(self, source: Any, nbytes: int, future: Future[memoryview]) -> None:
        """Begins a read of a native buffer's first bytes; it is fulfilled by :meth:`collect`."""
        padded = _padded(nbytes)
        buffer = self._take(max(SMALLEST, 1 << (padded - 1).bit_length()))
        try:
            self._device.encoder().copy_buffer_to_buffer(source, 0, buffer, 0, padded)
            self._device.flush()
            token, promise = map_to_read(self._device.native, buffer, padded)
        except BaseException:
            self._drop(buffer)  # in whatever state it is, nobody will use it again
            raise
        self._reads.append(_Read(future, buffer, nbytes, token, promise))

    def collect(self, translate: Callable[[BaseException], Exception]) -> bool:
        """Fulfils the reads that have come about; says whether there were any."""
        any_done = False
        while self._reads and self._reads[0].token.done:
            read = self._reads.popleft()
            any_done = True
            try:
                data = self._finish(read)
            except Exception as error:
                self._drop(read.buffer)
                read.future.set_exception(translate(error))
            else:
                read.future.set_result(data)
        return any_done

    def fail(self, error: Exception) -> None:
        """Ends all reads under way with an error."""
        while self._reads:
            self._reads.popleft().future.set_exception(error)

    def clear(self) -> None:
        """Lets go of every buffer."""
        self._free.clear()
        self._reads.clear()
        self.bytes = self.count = 0

    def _finish(self, read: _Read) -> memoryview:
        read.promise.sync_wait()  # has come about: does not wait
        data = np.empty(read.nbytes, np.uint8)
        mapped = read.buffer.read_mapped(0, _padded(read.nbytes), copy=False)
        np.copyto(data, np.frombuffer(mapped, np.uint8)[: read.nbytes])  # leaves the GIL free
        read.buffer.unmap()
        if self.bytes > self.cap:
            self._drop(read.buffer)
        else:
            self._free.setdefault(read.buffer.size, []).append(read.buffer)
        return memoryview(data)

    def _take(self, size: int) -> Any:
        started = time.monotonic()
        while not self._free.get(size) and self.bytes + size > self.cap and self._reads:
            self._device.poll()  # too much is under way: the oldest read must finish first
            if not self._device.settle():
                time.sleep(min((time.monotonic() - started) / 8, 0.002))
        if free := self._free.get(size):
            return free.pop()
        for other, buffers in self._free.items():
            while buffers and self.bytes + size > self.cap and other != size:
                self._drop(buffers.pop())
        import wgpu

        usage = wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.COPY_DST
        buffer = self._device.native.create_buffer(size=size, usage=usage)
        self.bytes += size
        self.count += 1
        return buffer

    def _drop(self, buffer: Any) -> None:
        self.bytes -= buffer.size
        self.count -= 1


def _padded(nbytes: int) -> int:
    """Whole words, and at least one: nothing can be copied or mapped that is empty."""
    return max(4, -(-nbytes // 4) * 4)
