"""Downloads through a ring of staging buffers, so that many reads can be in flight.

A read records a copy to a staging buffer, in order with other work, and starts to map it. Once it
is mapped, its bytes are copied out and the buffer is free again. The owner's thread copies small
reads; for large ones the waiting thread does, while the owner continues. Everything except
:class:`Mapped` is for the owner's thread only.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dala.gpu.compute.engines.webgpu.calls.public import MapToken
from dala.gpu.compute.engines.webgpu.pool import NO_LIMIT, Mapped, Ring, Transfer, size_class

if TYPE_CHECKING:
    import wgpu

    from dala.gpu.compute.engines.webgpu.device import NativeDevice

#: The total size of the staging buffers. A larger read uses a temporary buffer.
STAGING_BYTES: Final = 256 << 20

#: The smallest staging buffer in bytes.
MIN_BYTES: Final = 4096


@dataclass(eq=False, slots=True)
class _Read(Transfer):
    buffer: wgpu.GPUBuffer
    token: MapToken
    promise: wgpu.GPUPromise[None]
    lend: bool


class Staging(Ring[_Read]):
    """The ring of staging buffers. Reads beyond ``cap`` bytes in total wait for earlier ones."""

    usage = ("MAP_READ", "COPY_DST")

    def __init__(self, device: NativeDevice, cap: int = STAGING_BYTES) -> None:
        super().__init__(device, cap)
        self._free: dict[int, list[wgpu.GPUBuffer]] = {}

    def read(
        self,
        source: wgpu.GPUBuffer,
        start: int,
        nbytes: int,
        future: Future[Any],
        lend: bool = False,
    ) -> None:
        """Start reading bytes of a native buffer; :meth:`collect` sets the future.

        The result is a copy of the bytes as a memoryview, or with ``lend`` a :class:`Mapped`, which
        the reader passes to :meth:`give_back`.
        """
        padded = _padded(nbytes)
        buffer = self._take(max(MIN_BYTES, size_class(padded, NO_LIMIT)))
        try:
            self._device.encoder().copy_buffer_to_buffer(source, start, buffer, 0, padded)
            self._device.downloaded += nbytes
            self._device.flush()
            token, promise = self._device.calls.map_to_read(buffer, padded)
        except BaseException:
            self._drop(buffer)  # its state is unknown, so do not reuse it
            raise
        self._waiting.append(_Read(future, nbytes, buffer, token, promise, lend))

    def collect(self, translate: Callable[[BaseException], Exception]) -> bool:
        """Set the futures of finished reads; return True if there were any."""
        any_done = False
        while self._waiting and self._waiting[0].token.done:
            read = self._waiting.popleft()
            any_done = True
            try:
                data = self._finish(read)
            except Exception as error:
                self._drop(read.buffer)
                read.future.set_exception(translate(error))
            else:
                read.future.set_result(data)
        return any_done

    def clear(self) -> None:
        super().clear()
        self._free.clear()

    def _finish(self, read: _Read) -> memoryview | Mapped:
        read.promise.sync_wait()  # returns at once: the buffer is mapped
        mapped = read.buffer.read_mapped(0, _padded(read.nbytes), copy=False)
        if read.lend:
            return self._lend(read.buffer, mapped[: read.nbytes])
        data = np.empty(read.nbytes, np.uint8)
        np.copyto(data, np.frombuffer(mapped, np.uint8)[: read.nbytes])  # releases the GIL
        self._put(read.buffer)
        return memoryview(data)

    def give_back(self, mapped: Mapped) -> None:
        """Unmap memory after it has been read, and reuse its buffer."""
        buffer = self._out.pop(mapped)
        with suppress(BufferError):  # a traceback on the reader's thread may still hold a view
            mapped.memory.release()
        self._put(buffer)

    def _put(self, buffer: wgpu.GPUBuffer) -> None:
        buffer.unmap()
        if self.bytes > self.cap:
            self._drop(buffer)
        else:
            self._free.setdefault(buffer.size, []).append(buffer)

    def _take(self, size: int) -> wgpu.GPUBuffer:
        started = time.monotonic()
        while not self._free.get(size) and self.bytes + size > self.cap and self._waiting:
            self._device.poll()  # the ring is full: wait for the oldest read
            if not self._device.settle():
                time.sleep(min((time.monotonic() - started) / 8, 0.002))
        if free := self._free.get(size):
            return free.pop()
        for other, buffers in self._free.items():
            while buffers and self.bytes + size > self.cap and other != size:
                self._drop(buffers.pop())
        return self._new(size)


def _padded(nbytes: int) -> int:
    """Round up to whole words, at least one, because empty ranges cannot be copied or mapped."""
    return max(4, -(-nbytes // 4) * 4)
