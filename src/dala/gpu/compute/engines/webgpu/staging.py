"""Reading back: a ring of mappable buffers, so that many reads are under way at once.

A read copies into a staging buffer in its turn among the other work, then asks for it to be
mapped. When that has come about, the bytes are copied out and the buffer is free for another read.
The owner copies what is small; large memory is lent to the thread that waits for it, which copies
while the owner goes on. Everything here but :class:`MappedRead` is for the owner's thread alone.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dala.gpu.compute.engines.webgpu.ffi import MapToken, map_to_read
from dala.gpu.compute.engines.webgpu.pool import size_class

if TYPE_CHECKING:
    from dala.gpu.compute.engines.webgpu.device import NativeDevice

#: Memory that staging buffers may take together; a read that needs more has its own for once.
STAGING_BYTES: Final = 256 << 20

#: The smallest staging buffer.
SMALLEST: Final = 4096

_NO_LIMIT: Final = 1 << 62
_keys = count(1)


@dataclass(eq=False, slots=True)
class MappedRead:
    """Mapped memory that another thread may read until it says that it has left it."""

    key: int
    view: memoryview
    left: bool = False


@dataclass(slots=True)
class _Read:
    future: Future[Any]
    buffer: Any
    nbytes: int
    token: MapToken
    promise: Any
    read_mapped: bool


class Staging:
    """The ring. ``cap`` is in bytes; reads beyond it wait for earlier ones to finish."""

    def __init__(self, device: NativeDevice, cap: int = STAGING_BYTES) -> None:
        self.cap = cap
        self.bytes = 0
        self.count = 0
        self._device = device
        self._free: dict[int, list[Any]] = {}
        self._reads: deque[_Read] = deque()
        self._lent: dict[int, tuple[Any, MappedRead]] = {}

    @property
    def busy(self) -> bool:
        """Whether some thread is reading mapped memory."""
        return any(not lent.left for _, lent in self._lent.values())

    @property
    def waiting(self) -> bool:
        """Whether any read is under way."""
        return bool(self._reads)

    def read(
        self, source: Any, nbytes: int, future: Future[Any], *, read_mapped: bool = False
    ) -> None:
        """Begins a read of a native buffer's first bytes; it is fulfilled by :meth:`collect`.

        The future gets the bytes, or a :class:`MappedRead` to be handed to :meth:`give_back`.
        """
        padded = _padded(nbytes)
        buffer = self._take(max(SMALLEST, size_class(padded, _NO_LIMIT)))
        try:
            self._device.encoder().copy_buffer_to_buffer(source, 0, buffer, 0, padded)
            self._device.flush()
            token, promise = map_to_read(self._device.native, buffer, padded)
        except BaseException:
            self._drop(buffer)  # in whatever state it is, nobody will use it again
            raise
        self._reads.append(_Read(future, buffer, nbytes, token, promise, read_mapped))

    def collect(self, translate: Callable[[BaseException], Exception]) -> bool:
        """Fulfils the reads that have come about; says whether there were any."""
        any_done = False
        while self._reads and self._reads[0].token.done:
            read = self._reads.popleft()
            any_done = True
            try:
                data = self._lend(read) if read.read_mapped else self._finish(read)
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
        self._lent.clear()
        self.bytes = self.count = 0

    def _finish(self, read: _Read) -> memoryview:
        read.promise.sync_wait()  # has come about: does not wait
        data = np.empty(read.nbytes, np.uint8)
        mapped = read.buffer.read_mapped(0, _padded(read.nbytes), copy=False)
        np.copyto(data, np.frombuffer(mapped, np.uint8)[: read.nbytes])  # leaves the GIL free
        self._put(read.buffer)
        return memoryview(data)

    def _lend(self, read: _Read) -> MappedRead:
        read.promise.sync_wait()
        mapped = read.buffer.read_mapped(0, _padded(read.nbytes), copy=False)
        lent = MappedRead(next(_keys), mapped[: read.nbytes])
        self._lent[lent.key] = read.buffer, lent
        return lent

    def give_back(self, lent: MappedRead) -> None:
        """Memory that was lent and has been read."""
        buffer, _ = self._lent.pop(lent.key)
        with suppress(BufferError):  # an error on its thread may still look there
            lent.view.release()
        self._put(buffer)

    def _put(self, buffer: Any) -> None:
        buffer.unmap()
        if self.bytes > self.cap:
            self._drop(buffer)
        else:
            self._free.setdefault(buffer.size, []).append(buffer)

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
