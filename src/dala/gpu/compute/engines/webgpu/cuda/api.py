"""NVIDIA's driver by ``cuda-bindings``: the few functions that the device needs.

Addresses are numbers. All work goes to one stream, in order. An error of the driver is raised; one
that leaves the context unusable says that the device is lost.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from typing import Any, Final, NamedTuple

from dala.errors import DeviceError

#: Errors after which the context can only be closed, with the process.
_FATAL: Final = (
    "ILLEGAL_ADDRESS", "LAUNCH_TIMEOUT", "ASSERT", "HARDWARE_STACK_ERROR", "ILLEGAL_INSTRUCTION",
    "MISALIGNED_ADDRESS", "INVALID_ADDRESS_SPACE", "INVALID_PC", "LAUNCH_FAILED", "ECC",
    "SYSTEM_NOT_READY", "CONTEXT_IS_DESTROYED", "DEINITIALIZED",
)  # fmt: skip

#: What ``cuLaunchKernel`` reads: the address of packed parameters, their size, and an end.
_POINTER, _SIZE = 1, 2
#: The most bytes of a kernel's parameters, from PTX 8.1 and driver 530 on.
PARAMETER_BYTES: Final = 32764


class GpuInfo(NamedTuple):
    """What the driver says about a GPU."""

    name: str
    #: The compute capability, such as 90 for sm_90.
    capability: int
    memory_bytes: int
    driver: int


@dataclass(frozen=True, eq=False, slots=True)
class CudaFunction:
    """A kernel that was loaded."""

    handle: int
    module: Any


#: Functions that are called most, by the types of their arguments; the bindings take several times
#: as long. Those that only enqueue keep the GIL, for which they would wait after every call.
_FAST: Final = {
    "cuLaunchKernel": [ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3],
    "cuGraphLaunch": [ctypes.c_void_p, ctypes.c_void_p],
    "cuEventRecord": [ctypes.c_void_p, ctypes.c_void_p],
}
_POLLED: Final = {"cuEventQuery": [ctypes.c_void_p]}
_NOT_READY: Final = 600


class CudaApi:
    """A GPU's primary context on this thread, and its streams."""

    def __init__(self, ordinal: int) -> None:
        cu = self._cu = _bindings()
        self._device = self._ask("cuDeviceGet", ordinal)
        self._context = self._ask("cuDevicePrimaryCtxRetain", self._device)
        self.enter()
        self._stream, self._back = (
            self._ask("cuStreamCreate", cu.CUstream_flags.CU_STREAM_NON_BLOCKING) for _ in range(2)
        )
        #: The stream's handle, as other libraries take it, and that of the stream of downloads.
        self.stream, self.back = int(self._stream), int(self._back)
        self._fast = _driver()
        #: Events to use again.
        self._events: list[int] = []
        self._registered: set[int] = set()
        self._closed = False
        self._packed = ctypes.create_string_buffer(PARAMETER_BYTES)
        self._bytes = ctypes.c_size_t()
        self._extra = (ctypes.c_void_p * 5)(
            _POINTER, ctypes.addressof(self._packed), _SIZE, ctypes.addressof(self._bytes), 0
        )
        self._where = ctypes.addressof(self._extra)

    def enter(self) -> None:
        """Make the context that of this thread."""
        self._ask("cuCtxSetCurrent", self._context)

    def close(self) -> None:
        """Release the streams and the context."""
        self._closed = True
        for address in list(self._registered):
            self.unregister(address)
        for stream in (self._stream, self._back):
            self._ask("cuStreamDestroy", stream)
        self._ask("cuDevicePrimaryCtxRelease", self._device)

    def _ask(self, name: str, *arguments: Any) -> Any:
        return _checked(name, getattr(self._cu, name)(*arguments))

    def _quickly(self, name: str, *arguments: int) -> None:
        code = self._fast[name](*arguments)
        if code:
            _checked(name, (self._cu.CUresult(code),))

    # memory -----------------------------------------------------------------------------------

    def allocate(self, nbytes: int) -> int:
        """Return new memory of the GPU."""
        return int(self._ask("cuMemAlloc", nbytes))

    def allocate_host(self, nbytes: int) -> int:
        """Return new memory of the host, from and to which the GPU copies directly."""
        return int(self._ask("cuMemHostAlloc", nbytes, 1))  # also for other contexts

    def register(self, address: int, nbytes: int) -> None:
        """Let the GPU copy directly from and to memory of the host."""
        self._ask("cuMemHostRegister", address, nbytes, 1)  # also for other contexts
        self._registered.add(address)

    def unregister(self, address: int, held: object = None) -> None:
        """End that; ``held`` is kept until then."""
        self._registered.discard(address)
        self._ask("cuMemHostUnregister", address)

    def free(self, address: int) -> None:
        """Release memory of the GPU, once work with it has ended."""
        self._drop("cuMemFree", address)

    def free_host(self, address: int) -> None:
        """Release memory of the host."""
        self._drop("cuMemFreeHost", address)

    def _drop(self, name: str, handle: Any) -> None:
        """Release something, unless it went with the context: a later one may have its address."""
        if not self._closed:
            self._ask(name, handle)

    def clear(self, address: int, nbytes: int) -> None:
        """Write zeros."""
        self._ask("cuMemsetD8Async", address, 0, nbytes, self._stream)

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Copy between any memory. What is not pinned may change after the call."""
        self._ask("cuMemcpyAsync", target, source, nbytes, self._stream)

    def read_back(self, target: int, source: int, nbytes: int) -> Any:
        """Copy to pinned memory on the stream of downloads; return an event at its end."""
        self.lead(self.back)
        self._ask("cuMemcpyAsync", target, source, nbytes, self._back)
        return self._event(self.back)

    def copy_rows(self, target: int, source: int, pitch: int, nbytes: int, count: int) -> None:
        """Copy rows of the GPU's memory that are ``pitch`` bytes apart, to one after another."""
        cu = self._cu
        shape = cu.CUDA_MEMCPY2D()
        shape.srcMemoryType = shape.dstMemoryType = cu.CUmemorytype.CU_MEMORYTYPE_DEVICE
        shape.srcDevice, shape.srcPitch = cu.CUdeviceptr(source), pitch
        shape.dstDevice, shape.dstPitch = cu.CUdeviceptr(target), nbytes
        shape.WidthInBytes, shape.Height = nbytes, count
        self._ask("cuMemcpy2DAsync", shape, self._stream)

    # streams of others ------------------------------------------------------------------------

    def follow(self, stream: int) -> None:
        """Let our later work wait for what another stream has been given."""
        self._order(stream, self._stream)

    def lead(self, stream: int) -> None:
        """Let the later work of another stream wait for what ours has been given."""
        self._order(self._stream, stream)

    def _order(self, first: Any, second: Any) -> None:
        event = self._ask("cuEventCreate", 2)
        self._ask("cuEventRecord", event, first)
        self._ask("cuStreamWaitEvent", second, event, 0)
        self._ask("cuEventDestroy", event)

    # work -------------------------------------------------------------------------------------

    def load(self, ptx: bytes) -> CudaFunction:
        """Load a kernel named ``main``."""
        module = self._ask("cuModuleLoadData", ptx)
        return CudaFunction(int(self._ask("cuModuleGetFunction", module, b"main")), module)

    def unload(self, function: CudaFunction) -> None:
        """Release a kernel."""
        self._drop("cuModuleUnload", function.module)

    def launch(
        self, function: CudaFunction, grid: tuple[int, int], block: tuple[int, ...], packed: bytes
    ) -> None:
        """Run a kernel with packed parameters."""
        ctypes.memmove(self._packed, packed, len(packed))
        self._bytes.value = len(packed)
        width, height, depth = block
        self._quickly(
            "cuLaunchKernel", function.handle, *grid, 1, width, height, depth, 0, self.stream, 0,
            self._where,
        )  # fmt: skip

    def capture(self, work: Callable[[], None]) -> CudaGraph:
        """Return what work does on the stream, as a graph; it is not done."""
        cu = self._cu
        mode = cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        self._ask("cuStreamBeginCapture", self._stream, mode)
        try:
            work()
        finally:
            graph = self._ask("cuStreamEndCapture", self._stream)
        made = self._ask("cuGraphInstantiate", graph, 0)
        self._ask("cuGraphDestroy", graph)
        return CudaGraph(int(made), partial(self._drop, "cuGraphExecDestroy", made))

    def launch_graph(self, graph: CudaGraph) -> None:
        """Do the work of a graph."""
        self._quickly("cuGraphLaunch", graph.handle, self.stream)

    # time -------------------------------------------------------------------------------------

    def event(self, *, timed: bool = False) -> Any:
        """Return an event at this place of the stream."""
        if timed:
            event = self._ask("cuEventCreate", 0)
            self._ask("cuEventRecord", event, self._stream)
            return event
        return self._event(self.stream)

    def _event(self, stream: int) -> int:
        handle = self._events.pop() if self._events else int(self._ask("cuEventCreate", 2))
        self._quickly("cuEventRecord", handle, stream)
        return handle

    def reached(self, event: Any) -> bool:
        """Return whether all work before an event has ended; the event is used again then."""
        code = self._fast["cuEventQuery"](event)
        if code == _NOT_READY:
            return False
        if code:
            _checked("cuEventQuery", (self._cu.CUresult(code),))
        self._events.append(event)
        return True

    def elapsed(self, first: Any, second: Any) -> float:
        """Wait for two events; return the seconds between."""
        self._ask("cuEventSynchronize", second)
        return float(self._ask("cuEventElapsedTime", first, second)) / 1000

    def release(self, event: Any) -> None:
        """Release an event."""
        self._drop("cuEventDestroy", event)


class CudaGraph:
    """Work that was captured, to be done any number of times."""

    def __init__(self, handle: int, destroy: Callable[[], object]) -> None:
        self.handle = handle
        self._destroy = destroy

    def __del__(self) -> None:
        with suppress(Exception):  # the device was lost or closed, and its graphs with it
            self._destroy()


def _checked(call: str, answer: tuple[Any, ...]) -> Any:
    """Return what a call has returned besides its error, or raise the error."""
    error, *results = answer
    if not error.value:
        return results[0] if results else None
    name = error.name.removeprefix("CUDA_ERROR_")
    if name.startswith(_FATAL):
        raise RuntimeError(f"the device is lost: {call} reported {name}")
    if name == "OUT_OF_MEMORY":
        raise DeviceError(f"{call}: the GPU is out of memory. Free buffers, or use smaller ones.")
    if name == "UNSUPPORTED_PTX_VERSION":
        raise DeviceError(f"{call}: NVIDIA's driver must be 530 or newer. Update it.")
    raise DeviceError(f"{call} reported {name}.")


@cache
def _bindings() -> Any:
    try:
        return import_module("cuda.bindings.driver")
    except ImportError:
        return import_module("cuda.cuda")  # cuda-python 12 and older


@cache
def _driver() -> dict[str, Callable[..., int]]:
    """Return the driver's functions that are called most."""
    file = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    found: dict[str, Callable[..., int]] = {}
    for library, functions in ((ctypes.PyDLL(file), _FAST), (ctypes.CDLL(file), _POLLED)):
        for name, kinds in functions.items():
            function = getattr(library, name)
            function.argtypes = kinds
            found[name] = function
    return found


def find_gpus() -> list[GpuInfo]:
    """Return the GPUs that NVIDIA's driver offers to this process.

    Raises:
        Exception: ``cuda-bindings`` is not installed, or there is no driver.
    """
    cu = _bindings()

    def ask(name: str, *arguments: Any) -> Any:
        return _checked(name, getattr(cu, name)(*arguments))

    ask("cuInit", 0)
    version = int(ask("cuDriverGetVersion"))
    found: list[GpuInfo] = []
    attributes = cu.CUdevice_attribute
    for ordinal in range(int(ask("cuDeviceGetCount"))):
        device = ask("cuDeviceGet", ordinal)
        name = bytes(ask("cuDeviceGetName", 128, device)).split(b"\0")[0].decode(errors="replace")
        major, minor = (
            int(ask("cuDeviceGetAttribute", attribute, device))
            for attribute in (
                attributes.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                attributes.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
            )
        )
        found.append(
            GpuInfo(name, major * 10 + minor, int(ask("cuDeviceTotalMem", device)), version)
        )
    return found
