"""Calls of wgpu by public functions, for any version. For the device's owner thread only.

wgpu-py polls on a thread of its own here, and a promise does not tell whether it is fulfilled. So
another thread waits for promises, one after the other, and marks their tokens.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

import numpy as np

from dala import forks
from dala.gpu.compute.engines.webgpu.adapters import Adapter

if TYPE_CHECKING:
    import numpy.typing as npt
    import wgpu

#: Which of wgpu's run-time checks a shader keeps.
ShaderChecks: TypeAlias = Literal["all", "indices", "none"]


class MapToken:
    """The state of a map request; ``done`` is True after it succeeded or failed."""

    __slots__ = ("done",)

    def __init__(self) -> None:
        self.done = False

    def set_done(self) -> None:
        """Mark as done. wgpu-py may call this during a poll."""
        self.done = True


#: A token to watch, and the promise to resolve once it is done.
Mapping: TypeAlias = "tuple[MapToken, wgpu.GPUPromise[None]]"


class PublicCalls:
    """A device, and the calls for it that matter for speed. Counts submits and finished ones."""

    #: How a buffer is mapped for reading.
    READ: ClassVar = "READ"
    #: Features to request if the adapter has them. The unit of timestamps is not public.
    FEATURES: ClassVar[tuple[str, ...]] = (
        "shader-f64", "shader-int64", "shader-f16", "subgroup",
    )  # fmt: skip

    def __init__(self, device: wgpu.GPUDevice) -> None:
        self.device: wgpu.GPUDevice = device
        self.submitted = 0
        self.finished = 0
        #: Submits in flight: the number, and a buffer that can be mapped when it is done.
        self._fences: deque[tuple[int, wgpu.GPUBuffer, MapToken]] = deque()
        self._free: list[wgpu.GPUBuffer] = []
        self._sink: wgpu.GPUBuffer | None = None
        self._waiting: SimpleQueue[Mapping | None] | None = None

    @classmethod
    def request_device(cls, adapter: Adapter, limits: dict[str, int]) -> wgpu.GPUDevice:
        """Return a ``wgpu.GPUDevice`` with these limits."""
        return adapter.native.request_device_sync(
            label=adapter.id,
            required_features=[f for f in cls.FEATURES if f in adapter.features],
            required_limits=dict(limits),
        )

    def close(self) -> None:
        """Release the device and all its objects."""
        if self._waiting is not None:
            self._waiting.put(None)
        self._fences.clear()
        self._free.clear()
        self._sink = self.device = None

    # work -------------------------------------------------------------------------------------

    def translate(self, code: str, checks: ShaderChecks) -> object:
        """Do what any thread can do of :meth:`shader_module`; return a module, or None."""

    def shader_module(self, code: str, checks: ShaderChecks) -> wgpu.GPUShaderModule:
        """Return a shader module with at least these checks."""
        return self.device.create_shader_module(code=code)

    def record(
        self,
        encoder: wgpu.GPUComputePassEncoder,
        pipeline: wgpu.GPUComputePipeline,
        group: wgpu.GPUBindGroup,
        offset: int,
        across: int,
        down: int,
    ) -> None:
        """Record a dispatch with one bind group at a dynamic offset."""
        encoder.set_pipeline(pipeline)
        encoder.set_bind_group(0, group, [offset])
        encoder.dispatch_workgroups(across, down, 1)

    def mark_plan(self, encoder: wgpu.GPUCommandEncoder | None, begins: bool) -> None:
        """Note that a plan begins or ends, whose commands may be repeated."""

    def forget(self) -> None:
        """Release the objects of the last pass, which has ended."""

    @property
    def in_flight(self) -> int:
        """The number of unfinished submits at the last poll."""
        return self.submitted - self.finished

    def submit(self, commands: wgpu.GPUCommandBuffer) -> int:
        """Submit a finished command buffer and return the number of the submit.

        On a lost device, finishing the commands raises an error that can be caught; submitting
        would abort the process.
        """
        fence, sink = self._fence()
        encoder = self.device.create_command_encoder()
        encoder.copy_buffer_to_buffer(fence, 0, sink, 0, 4)
        self.device.queue.submit([commands, encoder.finish()])
        self.submitted += 1
        token, _ = self.map_to_write(fence)  # mapped when the copy is done, and all before it
        self._fences.append((self.submitted, fence, token))
        return self.submitted

    def poll(self) -> None:
        """Count the submits that are done."""
        while self._fences and self._fences[0][2].done:
            number, fence, _ = self._fences.popleft()
            self.finished = max(self.finished, number)
            with suppress(Exception):  # it could not be mapped: the device is lost
                fence.unmap()
                self._free.append(fence)

    def _fence(self) -> tuple[wgpu.GPUBuffer, wgpu.GPUBuffer]:
        """Return a buffer that is not mapped, and one to copy it to."""
        import wgpu

        if self._sink is None:
            self._sink = self.device.create_buffer(size=4, usage=wgpu.BufferUsage.COPY_DST)
        if self._free:
            return self._free.pop(), self._sink
        usage = wgpu.BufferUsage.MAP_WRITE | wgpu.BufferUsage.COPY_SRC
        return self.device.create_buffer(size=4, usage=usage), self._sink

    # mapped memory ----------------------------------------------------------------------------

    def map_to_read(self, buffer: wgpu.GPUBuffer, size: int) -> Mapping:
        """Start mapping a staging buffer; return a token to watch and the promise to resolve."""
        return self._watched(buffer.map_async(self.READ, 0, size))

    def map_to_write(self, buffer: wgpu.GPUBuffer) -> Mapping:
        """Start mapping a whole buffer for writing; return its token and promise."""
        return self._watched(buffer.map_async("WRITE", 0, buffer.size))

    def memory(self, buffer: wgpu.GPUBuffer, nbytes: int) -> npt.NDArray[np.uint8]:
        """Return memory for the content of a mapped buffer, to pass to :meth:`unmap`."""
        return np.empty(nbytes, np.uint8)

    def unmap(self, buffer: wgpu.GPUBuffer, memory: npt.NDArray[np.uint8]) -> None:
        """Unmap a buffer whose memory was filled."""
        buffer.write_mapped(memory)
        buffer.unmap()

    def timestamp_period(self) -> float:
        """Return the length of a timestamp tick in seconds."""
        raise NotImplementedError("its devices have no timestamps")

    def _watched(self, promise: wgpu.GPUPromise[None]) -> Mapping:
        if self._waiting is None:
            self._waiting = forks.simple_queue()
            forks.thread(_wait, name="dala wgpu promises", args=(self._waiting,)).start()
        found = MapToken(), promise
        self._waiting.put(found)
        return found


def _wait(waiting: SimpleQueue[Mapping | None]) -> None:
    """Wait for promises, in the order in which they were made, until None comes."""
    while (mapping := waiting.get()) is not None:
        token, promise = mapping
        with suppress(Exception):  # the owner's own wait raises it
            promise.sync_wait()
        token.set_done()
        del mapping, token, promise
