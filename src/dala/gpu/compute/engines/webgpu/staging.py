"""Downloads through a ring of staging buffers, so that many reads can be in flight.

A read records a copy to a staging buffer, in order with other work, and starts to map it. Once it
is mapped, its bytes are copied out and the buffer is free again. The owner's thread copies small
reads; for large ones the waiting thread does, while the owner continues. Everything except
:class:`MappedRead` is for the owner's thread only.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from dala.gpu.compute.engines.webgpu.calls.public import MapToken
from dala.gpu.compute.engines.webgpu.pool import size_class

if TYPE_CHECKING:
    import wgpu

    from dala.gpu.compute.engines.webgpu.device import NativeDevice

#: The total size of the staging buffers. A larger read uses a temporary buffer.
STAGING_BYTES: Final = 256 << 20

#: The smallest staging buffer in bytes.
MIN_BYTES: Final = 4096

_NO_LIMIT: Final = 1 << 62
_keys = count(1)


@dataclass(eq=False, slots=True)
class MappedRead:
    """Mapped memory that another thread reads; it sets ``released`` when done."""

    key: int
    view: memoryview
    released: bool = False


#: Receives a copy of the bytes as a memoryview, or a MappedRead if requested.
ReadFuture: TypeAlias = Future[Any]


@dataclass(slots=True)
class _Read:
    future: ReadFuture
    buffer: wgpu.GPUBuffer
    nbytes: int
    token: MapToken
    promise: wgpu.GPUPromise[None]
    read_mapped: bool


class Staging:
    """The ring of staging buffers. Reads beyond ``cap`` bytes in total wait for earlier ones."""

    def __init__(self, device: NativeDevice, cap: int = STAGING_BYTES) -> None:
        self.cap = cap
        self.bytes = 0
        self.count = 0
        self._device = device
        self._free: dict[int, list[wgpu.GPUBuffer]] = {}
        self._reads: deque[_Read] = deque()
        self._mapped: dict[int, tuple[wgpu.GPUBuffer, MappedRead]] = {}

    @property
    def busy(self) -> bool:
        """True while a thread reads mapped memory."""
        return any(not read.released for _, read in self._mapped.values())

    @property
    def waiting(self) -> bool:
        """True while any read is in flight."""
        return bool(self._reads)

    def read(
        self,
        source: wgpu.GPUBuffer,
        start: int,
        nbytes: int,
        future: ReadFuture,
        *,
        read_mapped: bool = False,
    ) -> None:
        """Start reading bytes of a native buffer; :meth:`collect` sets the future.

        The result is a copy of the bytes, or with ``read_mapped`` a :class:`MappedRead`, which the
        reader passes to :meth:`give_back`.
        """
        padded = _padded(nbytes)
        buffer = self._take(max(MIN_BYTES, size_class(padded, _NO_LIMIT)))
        try:
            self._device.encoder().copy_buffer_to_buffer(source, start, buffer, 0, padded)
            self._device.flush()
            token, promise = self._device.calls.map_to_read(buffer, padded)
        except BaseException:
            self._drop(buffer)  # its state is unknown, so do not reuse it
            raise
        self._reads.append(_Read(future, buffer, nbytes, token, promise, read_mapped))

    def collect(self, translate: Callable[[BaseException], Exception]) -> bool:
        """Set the futures of finished reads; return True if there were any."""
        any_done = False
        while self._reads and self._reads[0].token.done:
            read = self._reads.popleft()
            any_done = True
            try:
                data = self._map(read) if read.read_mapped else self._finish(read)
            except Exception as error:
                self._drop(read.buffer)
                read.future.set_exception(translate(error))
            else:
                read.future.set_result(data)
        return any_done

    def fail(self, error: Exception) -> None:
        """Set an error on all reads in flight."""
        while self._reads:
            self._reads.popleft().future.set_exception(error)

    def clear(self) -> None:
        """Release every buffer."""
        self._free.clear()
        self._reads.clear()
        self._mapped.clear()
        self.bytes = self.count = 0

    def _finish(self, read: _Read) -> memoryview:
        read.promise.sync_wait()  # returns at once: the buffer is mapped
        data = np.empty(read.nbytes, np.uint8)
        mapped = read.buffer.read_mapped(0, _padded(read.nbytes), copy=False)
        np.copyto(data, np.frombuffer(mapped, np.uint8)[: read.nbytes])  # releases the GIL
        self._put(read.buffer)
        return memoryview(data)

    def _map(self, read: _Read) -> MappedRead:
        read.promise.sync_wait()
        mapped = read.buffer.read_mapped(0, _padded(read.nbytes), copy=False)
        view = MappedRead(next(_keys), mapped[: read.nbytes])
        self._mapped[view.key] = read.buffer, view
        return view

    def give_back(self, mapped: MappedRead) -> None:
        """Unmap memory after it has been read, and reuse its buffer."""
        buffer, _ = self._mapped.pop(mapped.key)
        with suppress(BufferError):  # a traceback on the reader's thread may still hold a view
            mapped.view.release()
        self._put(buffer)

    def _put(self, buffer: wgpu.GPUBuffer) -> None:
        buffer.unmap()
        if self.bytes > self.cap:
            self._drop(buffer)
        else:
            self._free.setdefault(buffer.size, []).append(buffer)

    def _take(self, size: int) -> wgpu.GPUBuffer:
        started = time.monotonic()
        while not self._free.get(size) and self.bytes + size > self.cap and self._reads:
            self._device.poll()  # the ring is full: wait for the oldest read
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

    def _drop(self, buffer: wgpu.GPUBuffer) -> None:
        self.bytes -= buffer.size
        self.count -= 1


def _padded(nbytes: int) -> int:
    """Round up to whole words, at least one, because empty ranges cannot be copied or mapped."""
    return max(4, -(-nbytes // 4) * 4)
