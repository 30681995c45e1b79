"""Large uploads through a ring of mapped buffers that the calling thread fills.

The owner provides mapped memory. The caller copies its data there while the owner continues. Then
the owner records a copy on the device, in order with other work. Several threads can copy at once,
and buffers are reused. Everything except :class:`Mapped` is for the owner's thread only.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final, NamedTuple

from dala.gpu.compute.engines.webgpu.calls.public import MapToken
from dala.gpu.compute.engines.webgpu.pool import NO_LIMIT, Mapped, Ring, Transfer, size_class

if TYPE_CHECKING:
    import wgpu

    from dala.gpu.compute.engines.webgpu.device import NativeDevice

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
