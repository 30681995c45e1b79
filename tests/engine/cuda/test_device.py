"""The engine with the CUDA driver: equal to the reference, on the processor."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

from dala.errors import DeviceLostError
from dala.gpu import compute
from dala.gpu.compute import Pipeline, Pixel, f32, kernel
from dala.gpu.compute.engines import devices
from dala.gpu.compute.engines.webgpu.cuda import adapters
from dala.gpu.compute.engines.webgpu.cuda.api import PARAMETER_BYTES, CudaApi
from dala.gpu.compute.engines.webgpu.cuda.copies import pinned
from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine
from tests.engine.cuda.conftest import GPU

RNG = np.random.default_rng(5)
PICTURE = RNG.integers(0, 256, (37, 53, 4), np.uint8)

#: Kernels and operations of every kind of shader, with the shape of their output.
CALLS = [
    ("invert", {}, None), ("blur", {"radius": 3}, None), ("blur", {"radius": 9}, None),
    ("box_blur", {"radius": 4}, None), ("median", {}, None), ("denoise", {}, None),
    ("gamma", {"value": 1.7}, None), ("hue", {"degrees": 40.0}, None),
    ("erode", {"radius": 2}, None), ("resize", {"size": (20, 31)}, (31, 20, 4)),
    ("resize", {"size": (90, 80), "method": "bicubic"}, (80, 90, 4)),
    ("warp_affine", {"matrix": (0.9, 0.2, 3.0, -0.1, 1.1, -2.0)}, None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "params", "shape"), CALLS, ids=[f"{c[0]}-{i}" for i, c in enumerate(CALLS)]
)
def test_bytes_equal_the_reference(engine, name, params, shape):
    found = []
    for where in (engine.id, "reference"):
        image = compute.buffer(PICTURE, dtype="u8", device=where)
        out = compute.buffer_zeros(shape or PICTURE.shape, "u8", device=where)
        compute.run_kernel(name, [image], out, params)
        found.append(out.numpy().copy())
    assert np.array_equal(*found)


@pytest.mark.parametrize("name", ["reduce_sum", "reduce_max", "argmax", "softmax"])
def test_workgroups_share_memory(engine, name):
    numbers = RNG.random((3, 1001), np.float32)
    found = []
    for where in (engine.id, "reference"):
        source = compute.buffer(numbers, device=where)
        shape = (3, 1001) if name == "softmax" else (1,)
        outcome = compute.buffer_zeros(shape, "s32" if name == "argmax" else "f32", device=where)
        compute.run_kernel(name, [source], outcome)
        found.append(outcome.numpy().copy())
    np.testing.assert_allclose(*found, rtol=2e-6, atol=1e-6)


def test_matrix_products_and_transforms(engine):
    a, b = RNG.random((70, 90), np.float32), RNG.random((90, 50), np.float32)
    found = []
    for where in (engine.id, "reference"):
        out = compute.buffer_zeros((70, 50), device=where)
        compute.run_kernel("matmul", [compute.buffer(m, device=where) for m in (a, b)], out)
        found.append(out.numpy().copy())
    np.testing.assert_allclose(*found, rtol=1e-5)


def test_a_kernel_of_ones_own_with_a_loop(engine):
    @kernel
    def rings(px: Pixel, *, count: int = 5) -> Pixel:
        total = 0.0
        for k in range(count):
            total += px.r * f32(k)
        return px * 0.5 + total % 7.0

    found = []
    for where in (engine.id, "reference"):
        out = compute.buffer_zeros(PICTURE.shape, "u8", device=where)
        rings(compute.buffer(PICTURE, dtype="u8", device=where), out=out, count=9)
        found.append(out.numpy().copy())
    assert np.array_equal(*found)


def test_large_transfers_and_a_pipeline(engine):
    large = RNG.integers(0, 256, (700, 801, 4), np.uint8)
    image = compute.buffer(large, dtype="u8", device=engine.id)
    out = compute.buffer_zeros(large.shape, "u8", device=engine.id)
    pipeline = Pipeline()
    spec = {"op": "run_kernel", "kernel": "invert", "inputs": [image], "output": out, "params": {}}
    pipeline.add(spec)
    pipeline.run()
    assert np.array_equal(out.numpy()[..., :3], 255 - large[..., :3])


def test_results_outlive_the_device_and_blocks_are_reused(engine, monkeypatch):
    monkeypatch.setattr(pinned, "PINNED_BYTES", 19 << 19)
    monkeypatch.setattr(pinned, "AHEAD", 1)
    monkeypatch.setattr(pinned, "PIECE_BYTES", 2 << 20)
    own = WebGPUEngine(engine.adapter)
    api = own.device.native.api
    data = RNG.integers(0, 256, (5 << 20) + 3, np.uint8)
    storage = own.allocate(data.size, zero=False)
    for _ in range(3):
        own.upload(storage, data)  # two pieces of 2 MiB, and one of 1
        own.synchronize()
    assert len(api.registered) == 2 + 1
    small = own.download(storage)  # 5 MiB: those of other sizes are forgotten first
    own.synchronize()
    assert len(api.registered) == 1
    assert own.pinned.take(5 << 20) is None  # too much is in use
    assert np.array_equal(own.download(storage), data)  # by pieces of 2 MiB
    assert own.stats()["staging_buffers"] == 0
    late = own.download_async(storage).result()
    assert np.array_equal(late, data)
    own.close()
    del own
    assert np.array_equal(small, data)


def test_plans_that_repeat_become_graphs(engine):
    """Their results follow inputs, parameters and buffers that change."""
    api = engine.device.native.api
    a, b = (compute.buffer(RNG.random((20, 20), np.float32), device=engine.id) for _ in range(2))
    between, out, other = (compute.buffer_zeros((20, 20), device=engine.id) for _ in range(3))
    pipeline = Pipeline()
    for inputs, output in (([a, b], between), ([between, b], out)):
        pipeline.add({"op": "run_kernel", "kernel": "matmul", "inputs": inputs, "output": output})
    launched = []
    for turn in range(8):
        if turn == 4:
            a.write(RNG.random((20, 20), np.float32))  # the same plan, other numbers
        if turn == 5:
            pipeline.rebind(out, other)
        engine.synchronize()
        before = api.graphs
        pipeline.run()
        engine.synchronize()
        launched.append(api.graphs - before)
        wanted = a.numpy() @ b.numpy() @ b.numpy()
        np.testing.assert_allclose((other if turn > 4 else out).numpy(), wanted, rtol=1e-5)
    assert launched == [0, 1, 1, 1, 1, 0, 1, 1]


def test_work_waits_for_downloads_of_its_buffers_only(engine, monkeypatch):
    own = WebGPUEngine(engine.adapter)
    api, ended = own.device.native.api, [False]
    monkeypatch.setattr(type(api), "reached", lambda self, event: ended[0])
    read, other = (own.allocate(1 << 20, zero=False) for _ in range(2))
    own.upload(read, np.full(1 << 20, 7, np.uint8))
    future = own.download_async(read)
    own.copy(other, own.allocate(1 << 20, zero=False))
    own.owner.call(own.device.flush)
    assert api.order == []
    for change in (
        lambda: own.copy(other, read),
        lambda: own.upload(read, bytes(8)),
        lambda: own.upload(read, np.zeros(1 << 20, np.uint8)),
    ):
        change()
        own.owner.call(own.device.flush)
        assert api.order.pop() == ("follow", api.back)
        assert api.order == []
    ended[0] = True
    assert future.result()[:9].tolist() == [7] * 9
    own.copy(other, read)
    own.synchronize()
    assert api.order == []
    own.close()


def test_times_of_dispatches(engine):
    image = compute.buffer(PICTURE, dtype="u8", device=engine.id)
    with engine.profile() as times:
        compute.run_kernel("invert", [image], image)
        compute.run_kernel("invert", [image], image)
    assert len(times.seconds) == 2
    assert all(second >= 0 for second in times.seconds)


def test_a_fault_asks_for_a_new_process(engine, monkeypatch):
    def fault(*arguments: object) -> None:
        raise RuntimeError("the device is lost: cuLaunchKernel reported ILLEGAL_ADDRESS")

    own = WebGPUEngine(engine.adapter)
    monkeypatch.setattr(own.device.native.api, "launch", fault)
    state = own.allocate(1 << 21, zero=True)
    other = own.allocate(1 << 21, zero=False)
    own.copy(state, other)
    with pytest.raises(DeviceLostError, match=r"ILLEGAL_ADDRESS.*Restart the process"):
        own.synchronize()
    own.close()


def test_a_thread_that_dies_rejects_all_work(engine):
    own = WebGPUEngine(engine.adapter)
    state = own.allocate(64, zero=True)
    own.owner.post(sys.exit, "gone")
    for call in (own.synchronize, own.stats, lambda: own.download(state)):
        with suppress(DeviceLostError):  # the first may be enqueued before
            call()
    with pytest.raises(DeviceLostError, match=r"was lost \(its thread ended: SystemExit: gone"):
        own.synchronize()
    own.close()


WITHOUT_WGPU = """
import sys
sys.modules["wgpu"] = None
from dala.gpu.compute.engines.webgpu.cuda import adapters, device
from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine
from tests.engine.cuda.conftest import GPU
from tests.engine.cuda.host import HostApi, compile_for_host
adapters.CudaApi, device.compile_shader = lambda ordinal: HostApi(), compile_for_host
engine = WebGPUEngine(adapters.describe(0, GPU))
state = engine.allocate(1 << 21, zero=True)
with engine.profile() as times:
    engine.copy(state, engine.allocate(1 << 21, zero=False))
print(len(times.seconds), bytes(engine.download(state)).count(0))
"""


def test_wgpu_is_not_needed():
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_WGPU], capture_output=True, text=True, timeout=60
    )
    assert (ran.stdout, ran.stderr) == (f"1 {1 << 21}\n", "")


def test_memory_is_kept_until_the_work_has_ended(engine, monkeypatch):
    """The GPU may still use what nothing else holds."""
    own = WebGPUEngine(engine.adapter)
    api, ended, freed = own.device.native.api, [False], []
    monkeypatch.setattr(type(api), "reached", lambda self, event: ended[0])
    free = type(api).free
    monkeypatch.setattr(type(api), "free", lambda self, at: (freed.append(at), free(self, at)))
    own.device.pool.cap = 0  # nothing is reused
    state, other = own.allocate(1 << 21, zero=True), own.allocate(1 << 21, zero=False)
    own.copy(state, other)
    own.release(state)
    own.release(other)
    own.owner.call(own.device.flush)
    assert freed == []
    ended[0] = True
    own.synchronize()
    own.owner.call(own.device.poll)
    assert len(freed) >= 2
    own.close()


def test_parameters_are_bounded(engine):
    most = engine.limits["max-uniform-buffer-binding-size"]
    assert most < PARAMETER_BYTES < 1 << 15
    assert most + 16 * engine.limits["max-storage-buffers-per-shader-stage"] == PARAMETER_BYTES


def test_released_memory_is_the_pool_s(engine):
    before = engine.stats()["live_buffers"]
    for _ in range(20):
        compute.buffer(PICTURE, dtype="u8", device=engine.id).free()
    assert engine.stats()["live_buffers"] == before


def test_auto_takes_cuda_before_vulkan_and_says_why(monkeypatch):
    cuda = adapters.describe(0, GPU)
    vulkan = replace(cuda, id="webgpu:0", backend="Vulkan")
    other = replace(vulkan, id="webgpu:1", name="Radeon", kind="integrated")
    monkeypatch.setattr(devices.hardware, "gpu_nodes", lambda: ["/dev/nvidia0"])
    for found in ([vulkan, other, cuda], [other, cuda, vulkan]):
        monkeypatch.setattr(devices, "adapters", lambda found=found: found)
        assert [a.id for a in devices.gpus()[0]] == ["cuda:0", "webgpu:0", "webgpu:1"]
    said = "Processor, discrete GPU through CUDA"
    assert devices.describe(cuda) == (
        f"{said}, which copies faster than Vulkan and shares memory (webgpu:0 has Vulkan)"
    )
    monkeypatch.setattr(devices, "adapters", lambda: [cuda])
    assert devices.describe(cuda) == said


def test_nothing_is_released_in_a_context_that_is_gone(monkeypatch):
    api = object.__new__(CudaApi)
    asked = []
    monkeypatch.setattr(CudaApi, "_ask", lambda self, *given: asked.append(given))
    for api._closed in (False, True):
        for release in (api.free, api.free_host, api.release):
            release(64)
    assert asked == [("cuMemFree", 64), ("cuMemFreeHost", 64), ("cuEventDestroy", 64)]
