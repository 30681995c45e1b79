"""The few things that wgpu's own Python calls do not do, or not the way we need; nowhere else.

- ``wgpu`` polls on a thread of its own that blocks, and on Vulkan a blocked poll holds up every
  submit. So that thread is stopped, and the device's owner polls without blocking.
- ``on_submitted_work_done`` has a callback of the wrong signature in wgpu 0.32.
- An error in a submit ends the process. What can be known before is found out before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dala.errors import DeviceError
from dala.gpu.compute.engines.webgpu.adapters import Adapter

#: Features that are of use to kernels, where an adapter has them.
FEATURES = ("shader-f64", "shader-int64", "shader-f16", "subgroup", "timestamp-query")


class MapToken:
    """Becomes ``done`` when the mapping it was made for has come about, or failed."""

    __slots__ = ("done",)

    def __init__(self) -> None:
        self.done = False

    def set_done(self) -> None:
        """Called by wgpu from within a poll."""
        self.done = True


class _TokenSource:
    """Stands in for wgpu's polling thread: hands out tokens and polls nothing."""

    def __init__(self) -> None:
        self.last = MapToken()

    def get_token(self) -> MapToken:
        self.last = MapToken()
        return self.last

    def stop(self) -> None:
        pass


def request_device(adapter: Adapter) -> Any:
    """A ``wgpu.GPUDevice`` with all the adapter allows, that nobody polls but :func:`poll`."""
    device = adapter.native.request_device_sync(
        label=adapter.id, required_features=[f for f in FEATURES if f in adapter.features]
    )  # no required_limits: then they are the adapter's own
    take_polling_over(device)
    return device


def take_polling_over(device: Any) -> None:
    """Ends wgpu's polling thread; from now on nothing is reported but by :func:`poll`."""
    if not hasattr(device, "_poller") or not hasattr(device, "_poll"):
        import wgpu

        raise DeviceError(
            f"wgpu {wgpu.__version__} polls devices in a way this version of dala does not know. "
            "Install wgpu 0.32, or use device 'cpu'."
        )
    device._poller.stop()
    device._poller = _TokenSource()


def poll(device: Any) -> None:
    """Lets callbacks of finished work run; never waits."""
    device._poll(False)


def map_to_read(device: Any, buffer: Any, size: int) -> tuple[MapToken, Any]:
    """Begins to map a staging buffer; gives a token to watch and the promise to resolve."""
    # READ_NOSYNC: without it wgpu submits an empty command buffer first. Ours is submitted.
    promise = buffer.map_async("READ_NOSYNC", 0, size)
    return device._poller.last, promise


def map_to_write(device: Any, buffer: Any) -> tuple[MapToken, Any]:
    """Begins to map a whole buffer to be written; likewise."""
    promise = buffer.map_async("WRITE", 0, buffer.size)
    return device._poller.last, promise


def mapped_bytes(buffer: Any, nbytes: int) -> Any:
    """The memory of a mapped buffer, as an array that may be written; until it is unmapped.

    wgpu's own ``write_mapped`` copies with the interpreter's lock held.
    """
    import ctypes

    import numpy as np
    from wgpu.backends.wgpu_native import ffi, lib

    pointer = lib.wgpuBufferGetMappedRange(buffer._internal, 0, buffer.size)
    address = int(ffi.cast("intptr_t", pointer))
    if not address:
        raise DeviceError(f"a buffer of {buffer.size} bytes could not be mapped.")
    return np.frombuffer((ctypes.c_uint8 * nbytes).from_address(address), np.uint8)


def timestamp_period(device: Any) -> float:
    """Return the seconds of one tick of the device's timestamps."""
    from wgpu.backends.wgpu_native import lib

    return float(lib.wgpuQueueGetTimestampPeriod(device.queue._internal)) * 1e-9


class WorkDone:
    """Counts submits, and tells how many of them the device has finished."""

    def __init__(self) -> None:
        from wgpu.backends.wgpu_native import ffi, lib

        self.submitted = 0
        self.finished = 0
        self._lib = lib
        self._info = ffi.new("WGPUQueueWorkDoneCallbackInfo *")
        self._info.mode = lib.WGPUCallbackMode_AllowProcessEvents
        number = ffi.typeof("intptr_t")
        self._as_pointer: Callable[[int], Any] = lambda n: ffi.cast("void *", n)

        @ffi.callback("void(WGPUQueueWorkDoneStatus, WGPUStringView, void *, void *)")  # type: ignore[untyped-decorator]
        def done(status: Any, message: Any, which: Any, unused: Any) -> None:
            self.finished = max(self.finished, int(ffi.cast(number, which)))

        self._info.callback = self._callback = done

    @property
    def in_flight(self) -> int:
        """Submits that the device has not finished, as of the last poll."""
        return self.submitted - self.finished

    def submit(self, device: Any, commands: Any) -> int:
        """Submits finished commands and gives the submit's number.

        Finishing them has just shown that the device is there: a lost one refuses that, and only
        that can be caught.
        """
        device.queue.submit([commands])
        self.submitted += 1
        self._info.userdata1 = self._as_pointer(self.submitted)
        self._lib.wgpuQueueOnSubmittedWorkDone(device.queue._internal, self._info[0])
        return self.submitted
