"""The only module that uses private attributes and native calls of wgpu-py, of version 0.32.

- wgpu-py polls on a thread that blocks, and on Vulkan a blocked poll delays every submit. This
  module stops that thread; the device's owner polls without blocking.
- ``on_submitted_work_done`` has a callback with the wrong signature in wgpu 0.32.
- An error in a submit aborts the process, so errors must be found before the submit.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from dala.errors import DeviceError
from dala.gpu.compute.engines.webgpu.calls.public import (
    Mapping,
    MapToken,
    PublicCalls,
    ShaderChecks,
)

if TYPE_CHECKING:
    import numpy.typing as npt
    import wgpu

#: A cffi value; cffi is not typed.
CData: TypeAlias = Any


class _TokenSource:
    """A replacement for wgpu-py's polling thread that creates tokens and does not poll."""

    def __init__(self) -> None:
        self.last = MapToken()

    def get_token(self) -> MapToken:
        self.last = MapToken()
        return self.last

    def stop(self) -> None:
        pass


class NativeCalls(PublicCalls):
    """Calls by wgpu's native library. Only :meth:`poll` runs callbacks."""

    READ: ClassVar = "READ_NOSYNC"  # "READ" would submit an empty command buffer first
    FEATURES: ClassVar[tuple[str, ...]] = (*PublicCalls.FEATURES, "timestamp-query")

    def __init__(self, device: wgpu.GPUDevice) -> None:
        from wgpu.backends.wgpu_native import ffi, lib

        super().__init__(device)
        device._poller.stop()
        self._tokens = device._poller = _TokenSource()
        self._lib = lib
        # Dispatches.
        self._offset = ffi.new("uint32_t[1]")
        self._set_pipeline = lib.wgpuComputePassEncoderSetPipeline
        self._set_group = lib.wgpuComputePassEncoderSetBindGroup
        self._dispatch = lib.wgpuComputePassEncoderDispatchWorkgroups
        self._encoder: wgpu.GPUComputePassEncoder | None = None
        self._native: CData = None
        self._pipeline: wgpu.GPUComputePipeline | None = None
        self._group: wgpu.GPUBindGroup | None = None
        self._at = -1
        # Finished submits.
        self._info = ffi.new("WGPUQueueWorkDoneCallbackInfo *")
        self._info.mode = lib.WGPUCallbackMode_AllowProcessEvents
        number = ffi.typeof("intptr_t")
        self._as_pointer: Callable[[int], CData] = lambda n: ffi.cast("void *", n)

        @ffi.callback("void(WGPUQueueWorkDoneStatus, WGPUStringView, void *, void *)")  # type: ignore[untyped-decorator]
        def done(status: int, message: CData, which: CData, unused: CData) -> None:
            self.finished = max(self.finished, int(ffi.cast(number, which)))

        self._info.callback = self._callback = done

    def shader_module(self, code: str, checks: ShaderChecks) -> wgpu.GPUShaderModule:
        """Return a shader module.

        wgpu counts the turns of every loop and clamps every index. The loops of kernels are finite
        by the rules of the language, so kernels do without the counters ("indices"). Operations of
        our own, whose indices are right for all sizes, do without both ("none"): matrix products
        are 10 to 20% faster, Fourier transforms 30%.
        """
        if checks == "all":
            return super().shader_module(code, checks)
        from wgpu.backends.wgpu_native import _api, ffi, lib

        text = code.encode()
        data = ffi.new("char[]", text)  # must live until the call below
        source = ffi.new("WGPUShaderSourceWGSL *")
        source.chain.sType = lib.WGPUSType_ShaderSourceWGSL
        source.code.data = data
        source.code.length = len(text)
        descriptor = ffi.new("WGPUShaderModuleDescriptor *")
        descriptor.nextInChain = ffi.cast("WGPUChainedStruct *", source)
        kept = lib.WGPUShaderRuntimeChecks_BoundsChecks if checks == "indices" else 0
        native = self.device._internal
        made = _api.libf.wgpuDeviceCreateShaderModuleTrusted(native, descriptor, kept)
        return _api.GPUShaderModule("", made, self.device)

    def record(
        self,
        encoder: wgpu.GPUComputePassEncoder,
        pipeline: wgpu.GPUComputePipeline,
        group: wgpu.GPUBindGroup,
        offset: int,
        across: int,
        down: int,
    ) -> None:
        """Record a dispatch with one bind group at a dynamic offset.

        wgpu-py's own methods look for an error after every call, which takes three times as long.
        Errors in commands are found when the encoder is finished. What a pass has set already is
        not set again.
        """
        if encoder is not self._encoder:
            self._encoder, self._native = encoder, encoder._internal
            self._pipeline = self._group = None
        if pipeline is not self._pipeline:
            self._pipeline = pipeline
            self._set_pipeline(self._native, pipeline._internal)
        if group is not self._group or offset != self._at:
            self._group, self._at = group, offset
            self._offset[0] = offset
            self._set_group(self._native, 0, group._internal, 1, self._offset)
        self._dispatch(self._native, across, down, 1)

    def forget(self) -> None:
        """Release the objects of the last pass, which has ended."""
        self._encoder = self._native = self._pipeline = self._group = None

    def submit(self, commands: wgpu.GPUCommandBuffer) -> int:
        """Submit a finished command buffer and return the number of the submit."""
        self.device.queue.submit([commands])
        self.submitted += 1
        self._info.userdata1 = self._as_pointer(self.submitted)
        self._lib.wgpuQueueOnSubmittedWorkDone(self.device.queue._internal, self._info[0])
        return self.submitted

    def poll(self) -> None:
        """Run the callbacks of finished work without waiting."""
        self.device._poll(False)

    def _watched(self, promise: wgpu.GPUPromise[None]) -> Mapping:
        return self._tokens.last, promise

    def memory(self, buffer: wgpu.GPUBuffer, nbytes: int) -> npt.NDArray[np.uint8]:
        """Return the memory of a mapped buffer as a writable array, valid until it is unmapped.

        wgpu-py's own ``write_mapped`` holds the GIL while it copies.
        """
        from wgpu.backends.wgpu_native import ffi

        pointer = self._lib.wgpuBufferGetMappedRange(buffer._internal, 0, buffer.size)
        address = int(ffi.cast("intptr_t", pointer))
        if not address:
            raise DeviceError(f"a buffer of {buffer.size} bytes could not be mapped.")
        return np.frombuffer((ctypes.c_uint8 * nbytes).from_address(address), np.uint8)

    def unmap(self, buffer: wgpu.GPUBuffer, memory: npt.NDArray[np.uint8]) -> None:
        """Unmap a buffer whose memory was filled."""
        buffer.unmap()

    def timestamp_period(self) -> float:
        """Return the length of a timestamp tick in seconds."""
        return float(self._lib.wgpuQueueGetTimestampPeriod(self.device.queue._internal)) * 1e-9
