"""The GPUs of NVIDIA's driver, as adapters."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from dala.gpu.compute.engines.webgpu.cuda.api import PARAMETER_BYTES, CudaApi, GpuInfo, find_gpus
from dala.gpu.compute.engines.webgpu.limits import DEFAULT, STORAGE_BUFFERS, WORKGROUP_MEMORY

if TYPE_CHECKING:
    from dala.gpu.compute.engines.webgpu.adapters import Adapter
    from dala.gpu.compute.engines.webgpu.calls.public import PublicCalls

#: Limits that every GPU since sm_75 has.
LIMITS: Final = MappingProxyType({
    **DEFAULT,
    STORAGE_BUFFERS: 64,
    WORKGROUP_MEMORY: 48 << 10,
    "max-uniform-buffer-binding-size": PARAMETER_BYTES - 64 * 16,  # beside 64 buffers
    "max-compute-invocations-per-workgroup": 1024,
    "max-compute-workgroup-size-x": 1024,
    "max-compute-workgroup-size-y": 1024,
    "min-uniform-buffer-offset-alignment": 32,
    "max-storage-buffer-binding-size": (1 << 32) - 16,
    "max-buffer-size": (1 << 32) - 16,
})  # fmt: skip

_FEATURES: Final = frozenset({"shader-f64", "shader-int64", "shader-f16", "timestamp-query"})
_DTYPES: Final = frozenset({"f32", "f64", "s32", "s64", "u32", "u8"})


def list_gpus() -> list[Adapter]:
    """Return the GPUs, in the order of the driver.

    Raises:
        Exception: there is no driver, or ``cuda-bindings`` is not installed.
    """
    return [describe(ordinal, found) for ordinal, found in enumerate(find_gpus())]


def describe(ordinal: int, found: GpuInfo) -> Adapter:
    """Return the adapter of a GPU."""
    from dala.gpu.compute.engines.webgpu.adapters import Adapter

    return Adapter(
        id=f"cuda:{ordinal}", name=found.name, vendor="NVIDIA",
        driver=f"CUDA {found.driver // 1000}.{found.driver % 1000 // 10}", backend="CUDA",
        kind="discrete", software=False, features=_FEATURES, limits=LIMITS, dtypes=_DTYPES,
        native=found,
    )  # fmt: skip


def open_gpu(adapter: Adapter) -> PublicCalls:
    """Return the calls for a GPU."""
    from dala.gpu.compute.engines.webgpu.cuda.device import CudaCalls, CudaDevice

    capability = adapter.native.capability
    api = CudaApi(int(adapter.id.partition(":")[2]))
    return CudaCalls(CudaDevice(api, capability, adapter.features))
