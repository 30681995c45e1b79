"""Large uploads and downloads, copied by the calling threads through mapped memory."""

import gc
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dala.errors import FreedError
from dala.gpu.compute.engines.cpu.memory import HostMemory
from dala.gpu.compute.engines.webgpu.adapters import list_adapters
from dala.gpu.compute.engines.webgpu.engine import MAPPED_BYTES, WebGPUEngine

ADAPTERS = list_adapters()
pytestmark = pytest.mark.skipif(not ADAPTERS, reason="WebGPU has no adapter on this machine")


@pytest.fixture(params=ADAPTERS, ids=[f"{a.backend}-{a.id}" for a in ADAPTERS])
def engine(request):
    made = WebGPUEngine(request.param)
    yield made
    made.close()


def noise(seed, nbytes):
    return np.random.default_rng(seed).integers(0, 256, nbytes, np.uint8)


def put(engine, data):
    storage = engine.allocate(data.nbytes, zero=False)
    engine.upload(storage, data.data)
    return storage


def got(engine, storage):
    return np.frombuffer(engine.download(storage), np.uint8)


@pytest.mark.parametrize(
    "nbytes", [MAPPED_BYTES - 1, MAPPED_BYTES, MAPPED_BYTES + 1, 3 * MAPPED_BYTES + 2, 5_000_003]
)
def test_sizes(engine, nbytes):
    data = noise(nbytes, nbytes)
    np.testing.assert_array_equal(got(engine, put(engine, data)), data)


def test_the_caller_may_change_its_data_at_once(engine):
    data = noise(1, 2 * MAPPED_BYTES)
    meant = data.copy()
    storage = put(engine, data)
    data[:] = 0
    np.testing.assert_array_equal(got(engine, storage), meant)


def test_uploads_and_copies_are_ordered(engine):
    a, b = (engine.allocate(2 * MAPPED_BYTES, zero=True) for _ in range(2))
    for n in range(5):
        data = noise(n, 2 * MAPPED_BYTES)
        engine.upload(a, data.data)
        engine.copy(a, b)
        engine.upload(a, noise(99, 2 * MAPPED_BYTES).data)
        np.testing.assert_array_equal(got(engine, b), data)


def test_many_threads_and_a_small_ring(engine):
    engine.device.uploads.cap = 4 * MAPPED_BYTES
    engine.device.staging.cap = 4 * MAPPED_BYTES

    def there_and_back(seed):
        data = noise(seed, MAPPED_BYTES + 4096 * seed)
        storage = put(engine, data)
        same = bool((got(engine, storage) == data).all())
        engine.release(storage)
        return same

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(there_and_back, range(40)))
    stats = engine.stats()
    assert stats["upload_bytes"] <= 4 * MAPPED_BYTES
    assert stats["staging_bytes"] <= 4 * MAPPED_BYTES


def test_the_ring_is_reused(engine):
    data = noise(2, 2 * MAPPED_BYTES)
    storage = put(engine, data)
    for _ in range(20):
        engine.upload(storage, data.data)
        np.testing.assert_array_equal(got(engine, storage), data)
    stats = engine.stats()
    assert stats["upload_buffers"] <= 2
    assert stats["staging_buffers"] <= 2


def test_downloads_do_not_change_later(engine):
    storage, kept = engine.allocate(MAPPED_BYTES, zero=False), []
    for n in range(6):
        engine.upload(storage, np.full(MAPPED_BYTES, n, np.uint8).data)
        kept.append(got(engine, storage))
    assert [set(array[:: MAPPED_BYTES // 8].tolist()) for array in kept] == [{n} for n in range(6)]


def test_close_waits_for_a_copying_thread(engine):
    room = engine.owner.promise(engine.device.request_upload, MAPPED_BYTES).result(120)
    seen = []

    def copy():
        time.sleep(0.05)
        room.memory[:] = 7  # would be reused memory by now
        seen.append(engine.device.native is not None)
        room.released = True

    thread = threading.Thread(target=copy)
    thread.start()
    engine.close()
    thread.join()
    assert seen == [True]
    assert engine.device.native is None
    with pytest.raises(FreedError):
        engine.owner.check()


def test_interrupted_copies_release_their_memory(engine, monkeypatch):
    if engine.pinned is not None:
        pytest.skip("memory is not mapped")
    data = noise(3, 2 * MAPPED_BYTES)
    storage = put(engine, data)
    np.testing.assert_array_equal(got(engine, storage), data)

    def interrupted(*_):
        raise KeyboardInterrupt

    for _ in range(3):
        with monkeypatch.context() as patch:
            patch.setattr(np, "copyto", interrupted)
            with pytest.raises(KeyboardInterrupt):
                engine.upload(storage, data.data)
            with pytest.raises(KeyboardInterrupt):
                engine.download(storage)
    stats = engine.stats()
    assert (stats["upload_buffers"], stats["staging_buffers"]) == (1, 1)
    assert not engine.device.uploads._out
    assert not engine.device.staging._out
    np.testing.assert_array_equal(got(engine, storage), data)


def test_host_memory_is_reused_when_the_last_view_is_gone():
    host = HostMemory(8 << 20)
    first = host.block(2 << 20)
    address = first.ctypes.data
    view = np.frombuffer(memoryview(first), np.uint8)[5:9]
    del first
    gc.collect()
    other = host.block(2 << 20)
    assert other.ctypes.data != address
    assert host.kept_bytes == 0
    del view
    gc.collect()
    assert host.block(2 << 20).ctypes.data == address
