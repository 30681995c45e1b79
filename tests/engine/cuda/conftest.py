"""The CUDA driver without a GPU: the processor runs the same translation."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dala.gpu.compute.engines import instances
from dala.gpu.compute.engines.webgpu.cuda import adapters, device
from dala.gpu.compute.engines.webgpu.cuda.api import GpuInfo
from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine
from tests.engine.cuda.host import HostApi, compile_for_host

#: What the driver says about the GPU that the processor stands for.
GPU = GpuInfo("Processor", 90, 8 << 30, 13000)


@pytest.fixture(scope="module")
def engine() -> Iterator[WebGPUEngine]:
    """Return the open engine of the device "cuda:7"."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adapters, "CudaApi", lambda ordinal: HostApi())
        patch.setattr(device, "compile_shader", compile_for_host)
        made = instances.open_adapter(adapters.describe(7, GPU))
        assert isinstance(made, WebGPUEngine)
        yield made
        del instances._by_id["cuda:7"]
        instances.by_name.pop("cuda:7", None)
        made.close()
