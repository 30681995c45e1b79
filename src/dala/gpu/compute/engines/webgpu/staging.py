"""Downloads through a ring of staging buffers, so that many reads can be in flight.

A read records a copy to a staging buffer, in order with other work, and starts to map it. Once it
is mapped, its bytes are copied out and the buffer is free again. The owner's thread copies small
reads; for large ones the waiting thread does, while the owner continues. Everything except
:class:`Mapped` is for the owner's thread only.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

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


#: The total size of the ring's buffers. Requests beyond it wait, but one buffer is always allowed.
UPLOAD_BYTES: Final = 256 << 20


class _Mapping(NamedTuple):
    buffer: wgpu.GPUBuffer
    token: MapToken
    promise: wgpu.GPUPromise[None]


class Uploads(Ring[Transfer]):
    """The ring: free buffers are mapped; others are being filled or mapped again."""

    usage = ("MAP_WRITE", "COPY_SRC")

    def __init__(self, device: NativeDevice, cap: int = UPLOAD_BYTES) -> None:
        super().__init__(device, cap)
        self._free: list[wgpu.GPUBuffer] = []
        self._mapping: deque[_Mapping] = deque()

    def request(self, nbytes: int, future: Future[Mapped]) -> None:
        """Request mapped memory; the future is set when a buffer is free, possibly at once."""
        self._waiting.append(Transfer(future, nbytes))
        if self._mapping:
            self._device.poll()
        self.collect()

    def send(self, mapped: Mapped, target: wgpu.GPUBuffer, nbytes: int) -> None:
        """Record the copy of filled memory to a native buffer, and map the memory again."""
        buffer = self._out.pop(mapped)
        try:
            self._device.calls.unmap(buffer, mapped.memory)
            size = -(-nbytes // 4) * 4
            self._device.encoder().copy_buffer_to_buffer(buffer, 0, target, 0, size)
            self._device.uploaded += nbytes
            self._device.flush()  # buffers in unsubmitted commands cannot be mapped
            token, promise = self._device.calls.map_to_write(buffer)
        except BaseException:
            self._drop(buffer)
            raise
        self._mapping.append(_Mapping(buffer, token, promise))

    def give_back(self, mapped: Mapped) -> None:
        """Return memory to the ring that was not filled."""
        self._free.append(self._out.pop(mapped))
        self.collect()

    def collect(self) -> bool:
        """Set the futures of requests that can be served; return True if there were any."""
        while self._mapping and self._mapping[0].token.done:
            one = self._mapping.popleft()
            try:
                one.promise.sync_wait()  # returns at once: the buffer is mapped
            except Exception:
                self._drop(one.buffer)
            else:
                self._free.append(one.buffer)
        served = False
        while self._waiting:
            buffer = self._find(self._waiting[0].nbytes)
            if buffer is None:
                break
            wanted = self._waiting.popleft()
            memory = self._device.calls.memory(buffer, wanted.nbytes)
            wanted.future.set_result(self._lend(buffer, memory))
            served = True
        return served

    def clear(self) -> None:
        super().clear()
        self._free.clear()
        self._mapping.clear()

    def _find(self, nbytes: int) -> wgpu.GPUBuffer | None:
        size = size_class(nbytes, NO_LIMIT)
        for buffer in self._free:
            if buffer.size == size:
                self._free.remove(buffer)
                return buffer
        while self._free and self.bytes + size > self.cap:
            self._drop(self._free.pop(0))
        if self.bytes + size > self.cap and (self._out or self._mapping):
            return None
        return self._new(size, mapped=True)
