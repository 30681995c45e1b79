"""Large uploads through a ring of mapped buffers that the calling thread fills.

The owner provides mapped memory. The caller copies its data there while the owner continues. Then
the owner records a copy on the device, in order with other work. Several threads can copy at once,
and buffers are reused. Everything except :class:`MappedWrite` is for the owner's thread only.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Final

from dala.gpu.compute.engines.webgpu.calls.public import MapToken
from dala.gpu.compute.engines.webgpu.pool import size_class

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import wgpu

    from dala.gpu.compute.engines.webgpu.device import NativeDevice

#: The total size of the ring's buffers. Requests beyond it wait, but one buffer is always allowed.
UPLOAD_BYTES: Final = 256 << 20

_NO_LIMIT: Final = 1 << 62
_keys = count(1)


@dataclass(eq=False, slots=True)
class MappedWrite:
    """Mapped memory for one upload."""

    key: int
    memory: npt.NDArray[np.uint8]
    #: True after the caller has finished writing.
    released: bool = False


@dataclass(eq=False, slots=True)
class _Request:
    nbytes: int
    future: Future[MappedWrite]


@dataclass(eq=False, slots=True)
class _Mapping:
    buffer: wgpu.GPUBuffer
    token: MapToken
    promise: wgpu.GPUPromise[None]


@dataclass(eq=False, slots=True)
class Uploads:
    """The ring: free buffers are mapped; others are being filled or mapped again."""

    device: NativeDevice
    cap: int = UPLOAD_BYTES
    bytes: int = 0
    count: int = 0
    _free: list[wgpu.GPUBuffer] = field(default_factory=list)
    _out: dict[int, tuple[wgpu.GPUBuffer, MappedWrite]] = field(default_factory=dict)
    _mapping: deque[_Mapping] = field(default_factory=deque)
    _requests: deque[_Request] = field(default_factory=deque)

    @property
    def waiting(self) -> bool:
        """True while a caller waits for a buffer."""
        return bool(self._requests)

    def request(self, nbytes: int, future: Future[MappedWrite]) -> None:
        """Request mapped memory; the future is set when a buffer is free, possibly at once."""
        self._requests.append(_Request(nbytes, future))
        if self._mapping:
            self.device.poll()
        self.collect()

    def send(self, mapped: MappedWrite, target: wgpu.GPUBuffer, nbytes: int) -> None:
        """Record the copy of filled memory to a native buffer, and map the memory again."""
        buffer, _ = self._out.pop(mapped.key)
        try:
            self.device.calls.unmap(buffer, mapped.memory)
            size = -(-nbytes // 4) * 4
            self.device.encoder().copy_buffer_to_buffer(buffer, 0, target, 0, size)
            self.device.flush()  # buffers in unsubmitted commands cannot be mapped
            token, promise = self.device.calls.map_to_write(buffer)
        except BaseException:
            self._drop(buffer)
            raise
        self._mapping.append(_Mapping(buffer, token, promise))

    def give_back(self, mapped: MappedWrite) -> None:
        """Return memory to the ring that was not filled."""
        buffer, _ = self._out.pop(mapped.key)
        self._free.append(buffer)
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
        while self._requests:
            buffer = self._find(self._requests[0].nbytes)
            if buffer is None:
                break
            request = self._requests.popleft()
            memory = self.device.calls.memory(buffer, request.nbytes)
            mapped = MappedWrite(next(_keys), memory)
            self._out[mapped.key] = buffer, mapped
            request.future.set_result(mapped)
            served = True
        return served

    def fail(self, error: Exception) -> None:
        """Set an error on all waiting requests."""
        while self._requests:
            self._requests.popleft().future.set_exception(error)

    @property
    def busy(self) -> bool:
        """True while a thread copies to memory of the ring."""
        return any(not mapped.released for _, mapped in self._out.values())

    def clear(self) -> None:
        """Release every buffer. No thread may be copying."""
        self._free.clear()
        self._out.clear()
        self._mapping.clear()
        self.bytes = self.count = 0

    def _find(self, nbytes: int) -> wgpu.GPUBuffer | None:
        size = size_class(nbytes, _NO_LIMIT)
        for buffer in self._free:
            if buffer.size == size:
                self._free.remove(buffer)
                return buffer
        while self._free and self.bytes + size > self.cap:
            self._drop(self._free.pop(0))
        if self.bytes + size > self.cap and (self._out or self._mapping):
            return None
        import wgpu

        usage = wgpu.BufferUsage.MAP_WRITE | wgpu.BufferUsage.COPY_SRC
        made = self.device.native.create_buffer(size=size, usage=usage, mapped_at_creation=True)
        self.bytes += size
        self.count += 1
        return made

    def _drop(self, buffer: wgpu.GPUBuffer) -> None:
        self.bytes -= buffer.size
        self.count -= 1
