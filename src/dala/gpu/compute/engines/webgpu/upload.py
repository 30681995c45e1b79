"""Writing large data: a ring of mapped buffers, which the thread that has the data fills itself.

The owner hands out mapped memory, the other thread copies into it while the owner goes on, and
then leaves word; the copy on the device is recorded in its turn. So several threads copy at once,
and no memory is made and mapped anew for every write. All but
:class:`MappedWrite` is for the owner's thread only.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from dala.gpu.compute.engines.webgpu.ffi import MapToken, map_to_write, mapped_bytes
from dala.gpu.compute.engines.webgpu.pool import size_class

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from dala.gpu.compute.engines.webgpu.device import NativeDevice

#: Memory that the ring may take; who needs more waits, but one room there always is.
UPLOAD_BYTES: Final = 256 << 20

_NO_LIMIT: Final = 1 << 62
_keys = count(1)


@dataclass(eq=False, slots=True)
class MappedWrite:
    """Mapped memory for one write. Whoever holds it says when it is filled, or not needed."""

    key: int
    memory: npt.NDArray[np.uint8]
    #: True once nobody writes there any more.
    left: bool = False


@dataclass(eq=False, slots=True)
class _Asked:
    nbytes: int
    future: Future[MappedWrite]


@dataclass(eq=False, slots=True)
class _Mapping:
    buffer: Any
    token: MapToken
    promise: Any


@dataclass(eq=False, slots=True)
class Uploads:
    """The ring: free buffers are mapped, others are being filled, or are on their way back."""

    device: NativeDevice
    cap: int = UPLOAD_BYTES
    bytes: int = 0
    count: int = 0
    _free: list[Any] = field(default_factory=list)
    _out: dict[int, tuple[Any, MappedWrite]] = field(default_factory=dict)
    _mapping: deque[_Mapping] = field(default_factory=deque)
    _asked: deque[_Asked] = field(default_factory=deque)

    @property
    def waiting(self) -> bool:
        """Whether somebody waits for a buffer to come back."""
        return bool(self._asked)

    def ask(self, nbytes: int, future: Future[MappedWrite]) -> None:
        """Gives mapped memory of so many bytes, at once or when some comes back."""
        self._asked.append(_Asked(nbytes, future))
        if self._mapping:
            self.device.poll()
        self.collect()

    def send(self, room: MappedWrite, target: Any, nbytes: int) -> None:
        """Records the copy of what was filled in, and has the memory mapped again after it."""
        buffer, _ = self._out.pop(room.key)
        try:
            buffer.unmap()
            size = -(-nbytes // 4) * 4
            self.device.encoder().copy_buffer_to_buffer(buffer, 0, target, 0, size)
            self.device.flush()  # a buffer may not be mapped while commands with it wait
            token, promise = map_to_write(self.device.native, buffer)
        except BaseException:
            self._drop(buffer)
            raise
        self._mapping.append(_Mapping(buffer, token, promise))

    def give_back(self, room: MappedWrite) -> None:
        """Memory that was not filled after all."""
        buffer, _ = self._out.pop(room.key)
        self._free.append(buffer)
        self.collect()

    def collect(self) -> bool:
        """Serves those who asked, as far as memory has come back; says whether anybody was."""
        while self._mapping and self._mapping[0].token.done:
            one = self._mapping.popleft()
            try:
                one.promise.sync_wait()  # has come about: does not wait
            except Exception:
                self._drop(one.buffer)
            else:
                self._free.append(one.buffer)
        served = False
        while self._asked:
            buffer = self._find(self._asked[0].nbytes)
            if buffer is None:
                break
            asked = self._asked.popleft()
            room = MappedWrite(next(_keys), mapped_bytes(buffer, asked.nbytes))
            self._out[room.key] = buffer, room
            asked.future.set_result(room)
            served = True
        return served

    def fail(self, error: Exception) -> None:
        """Tells those who wait."""
        while self._asked:
            self._asked.popleft().future.set_exception(error)

    @property
    def busy(self) -> bool:
        """Whether some thread is copying into memory of the ring."""
        return any(not room.left for _, room in self._out.values())

    def clear(self) -> None:
        """Lets go of every buffer; nobody may be copying any more."""
        self._free.clear()
        self._out.clear()
        self._mapping.clear()
        self.bytes = self.count = 0

    def _find(self, nbytes: int) -> Any:
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

    def _drop(self, buffer: Any) -> None:
        self.bytes -= buffer.size
        self.count -= 1
