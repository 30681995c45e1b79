"""Errors of WebGPU, lost devices, threads, closing, exits and forks."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dala.errors import (
    DeviceError,
    DeviceLostError,
    FreedError,
)
from dala.gpu.compute.engines.webgpu import adapters
from dala.gpu.compute.engines.webgpu import engine as webgpu
from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine
from dala.gpu.compute.engines.webgpu.ops.dispatches import shader_text
from dala.gpu.compute.engines.webgpu.wgsl.shader import Shader, write_shader
from tests.engine.webgpu.by_hand import (
    ADAPTERS,
    IDS,
    _open,
    affine,
    flat,
    put,
    run,
)
from tests.support.engines import NO_ADAPTER, complaints

if not ADAPTERS:
    pytest.skip(NO_ADAPTER, allow_module_level=True)


@pytest.fixture(autouse=True, scope="module")
def closed_at_the_end() -> Iterator[None]:
    """Close the shared engines: each holds hundreds of megabytes of compiled shaders."""
    yield
    while _open:
        _open.popitem()[1].close()


# errors -------------------------------------------------------------------------------------------


def test_the_error_of_an_enqueued_call_is_raised_by_the_next_wait(engine):
    def fails() -> None:
        raise RuntimeError("out of luck")

    storage = put(engine, np.arange(4, dtype="<f4"))
    waits = [engine.synchronize, lambda: engine.download(storage)]
    waits.append(lambda: engine.download_async(storage).result())
    for wait in waits:
        engine.owner.post(fails)
        engine.owner.post(fails)
        with pytest.raises(DeviceError, match="out of luck") as caught:
            wait()
        assert caught.value.__notes__ == ["1 more failed after it."]
        wait()  # raised only once
    engine.release(storage)


def test_a_validation_error_is_raised_and_the_engine_keeps_working(fresh):
    engine = fresh()  # wgpu keeps its device for the life of the process, with all shaders
    runner = engine.prepare(affine(), flat(4))
    x, y = put(engine, np.ones(4, "<f4")), engine.allocate(16, zero=True)
    shader, pipeline, numbers, _ = next(iter(runner._variants.values()))
    block = shader.block.pack(numbers, (1.0,))
    bad = 65535 * 65536  # more rows than a dispatch may have
    engine.owner.post(engine.device.dispatch, pipeline, (x.handle, y.handle), block, bad)
    with pytest.raises(DeviceError, match="dispatch"):
        engine.synchronize()
    runner([x], y, (2.0,))
    assert list(np.frombuffer(engine.download(y), "<f4")) == [3.0] * 4
    engine.release(x)
    engine.release(y)


def test_a_shader_error_names_the_line(engine, monkeypatch):
    def broken(*args: Any, **kwargs: Any) -> Shader:
        good = write_shader(*args, **kwargs)
        text = good.source.replace("+ 1.0f", "+ 1u")
        return Shader(text, good.pattern, good.bound, good.block, good.workgroup)

    monkeypatch.setattr(webgpu, "write_shader", broken)
    monkeypatch.setattr(engine, "_compiled", {})
    with pytest.raises(DeviceError) as caught:
        engine.prepare(affine(), flat(4))
    assert "(x * p.param_gain) + 1u" in str(caught.value)
    assert "kernel 'by_hand'" in caught.value.__notes__[0]


def test_a_lost_device_raises_in_all_waiting_threads(fresh):
    engine = fresh()
    storage = put(engine, np.arange(4, dtype="<f4"))
    runner = engine.prepare(affine(), flat(4))
    engine.synchronize()
    assert not engine.lost
    engine.owner.call(engine.device.native.destroy)  # the closest to a device loss
    with pytest.raises(DeviceLostError, match="was lost"):
        engine.download(storage)
    assert engine.lost
    for use in (
        lambda: engine.download(storage),
        lambda: engine.synchronize(),
        lambda: runner([storage], storage, (1.0,)),
        lambda: engine.allocate(1 << 20, zero=False),
        lambda: engine.prepare(affine("s32", "s32"), flat(4)),
    ):
        with pytest.raises(DeviceLostError):
            use()
    engine.release(storage)
    engine.stats()
    engine.close()
    another = fresh()
    assert list(run(another, affine(), flat(2), [np.ones(2, "<f4")], 1.0)) == [2.0, 2.0]


def test_reads_in_flight_raise_after_a_loss(fresh):
    engine = fresh()
    storage = put(engine, np.arange(4, dtype="<f4"))
    reads = []

    def mark_lost() -> None:
        reads.append(engine.download_async(storage))  # still in the queue when the device is lost
        engine.device.native.destroy()

    engine.owner.call(mark_lost)
    with pytest.raises(DeviceLostError):
        reads[0].result(60)


def lose(adapter: adapters.Adapter) -> weakref.ref[WebGPUEngine]:
    """Read from an engine whose device is lost, and close it."""
    engine = WebGPUEngine(adapter)
    storage = put(engine, np.arange(4, dtype="<f4"))
    reads = []

    def mark_lost() -> None:
        reads.append(engine.download_async(storage))
        engine.device.native.destroy()

    engine.owner.call(mark_lost)
    with pytest.raises(DeviceLostError):
        reads[0].result(60)
    with pytest.raises(DeviceLostError):
        engine.synchronize()
    engine.close()
    return weakref.ref(engine)


@pytest.mark.parametrize("adapter", ADAPTERS, ids=IDS)
def test_a_lost_device_is_forgotten(adapter):
    """Its error keeps neither the engine nor the frames of callers alive."""
    alive = lose(adapter)
    gc.collect()
    assert alive() is None


def test_queued_reads_raise_after_a_loss_or_close(fresh):
    for end, error in (("mark_lost", DeviceLostError), ("close", FreedError)):
        engine = fresh()
        storage = put(engine, np.arange(4, dtype="<f4"))
        reads = []

        def work(engine=engine, storage=storage, reads=reads, end=end) -> None:
            reads.append(engine.download_async(storage))
            if end == "mark_lost":
                engine.owner.mark_lost("as a test wants it")
            else:
                engine.owner.close_soon()

        engine.owner.call(work)
        with pytest.raises(error):
            reads[0].result(60)


def test_a_closed_engine_refuses_work(fresh):
    engine = fresh()
    storage = put(engine, np.arange(4, dtype="<f4"))
    engine.close()
    engine.close()
    engine.release(storage)
    with pytest.raises(FreedError, match="was closed"):
        engine.synchronize()
    assert engine.stats()["live_buffers"] == 0


# threads and closing ------------------------------------------------------------------------------


def test_many_threads(fresh):
    engine = fresh(pool_bytes=1 << 16)
    failures: list[BaseException] = []
    prog = affine()

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        try:
            for turn in range(25):
                count = int(rng.integers(1, 3000))
                x = rng.integers(0, 100, count).astype("<f4")
                got = run(engine, prog, flat(count), [x], float(turn))
                np.testing.assert_array_equal(got, x * np.float32(turn) + 1)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert not failures
    stats = engine.stats()
    assert (stats["live_buffers"], stats["live_bytes"]) == (0, 0)
    assert stats["pooled_bytes"] <= 1 << 16


def test_finalizers_may_run_on_any_thread(fresh):
    """Garbage with native memory may be collected on any thread, at any line."""
    engine = fresh()

    class Holder:
        def __init__(self) -> None:
            self.storage = engine.allocate(256, zero=False)
            self.me = self

        def __del__(self) -> None:
            engine.release(self.storage)

    def litter() -> None:
        for _ in range(200):
            Holder()

    before = gc.get_threshold()
    gc.set_threshold(7)
    try:
        threads = [threading.Thread(target=litter) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(300)
    finally:
        gc.set_threshold(*before)
    engine.synchronize()  # its thread may be collecting, and then gc.collect() does nothing
    gc.collect()
    assert engine.stats()["live_buffers"] == 0


@pytest.mark.parametrize("adapter", ADAPTERS, ids=IDS)
def test_a_closed_engine_releases_its_device(adapter):
    """Plans and handles of shaders live on; the device, with all compiled shaders, does not."""
    engine = WebGPUEngine(adapter)
    runner = engine.prepare(affine(), flat(4))
    shader = engine.shader(shader_text("clear.wgsl"), 0, 16)
    native = engine.owner.call(lambda: weakref.ref(engine.device.native))
    assert native() is not None
    engine.close()
    gc.collect()
    assert native() is None
    assert (runner, shader) != (None, None)
    with pytest.raises(FreedError):
        runner([], engine.allocate(16, zero=True), (1.0,))


def test_a_collected_engine_stops_its_thread():
    engine = WebGPUEngine(ADAPTERS[0])
    thread = engine.owner._thread
    del engine
    gc.collect()
    thread.join(300)
    assert not thread.is_alive()


EXIT = """
import sys
import numpy as np
from dala.gpu.compute.engines.webgpu.adapters import list_adapters
from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine
sys.path.insert(0, {root!r})
from tests.engine.webgpu.test_engine import affine, flat, put
engine = WebGPUEngine(list_adapters()[{index}])
x = put(engine, np.zeros(1 << 20, "<f4"))
y = engine.allocate(1 << 22, zero=False)
runner = engine.prepare(affine(), flat(1 << 20))
for _ in range(200):
    runner([x], y, (1.0,))
reads = [engine.download_async(y) for _ in range(10)]
{end}
"""


@pytest.mark.third
@pytest.mark.parametrize("end", ["", "raise SystemExit(0)", "engine.close()", "del engine, runner"])
@pytest.mark.parametrize("index", range(len(ADAPTERS)), ids=IDS)
def test_exit_with_work_in_flight(index, end):
    root = os.path.dirname(
        os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    )
    code = EXIT.format(root=root, index=index, end=end)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, cwd=root
    )
    assert (done.returncode, complaints(done.stderr)) == (0, "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_raises():
    code = """
import os, sys
from dala.errors import FreedError
from dala.gpu.compute.engines.webgpu.adapters import list_adapters
from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine
engine = WebGPUEngine(list_adapters()[0])
child = os.fork()
if child == 0:
    try:
        engine.synchronize()
    except FreedError as error:
        os._exit(0 if "fork" in str(error) else 1)  # as multiprocessing ends its children
    os._exit(2)
_, status = os.waitpid(child, 0)
engine.synchronize()
sys.exit(os.waitstatus_to_exitcode(status))
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, complaints(done.stderr)) == (0, "")
