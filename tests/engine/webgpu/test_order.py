"""The order of uploads, dispatches and reads; queues that are full."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dala.errors import (
    DeviceError,
    FreedError,
)
from dala.gpu.compute.engines.webgpu import engine as webgpu
from dala.gpu.compute.engines.webgpu.ops.dispatches import shader_text
from tests.engine.webgpu.by_hand import (
    ADAPTERS,
    _open,
    affine,
    flat,
    put,
)
from tests.support.engines import NO_ADAPTER

if not ADAPTERS:
    pytest.skip(NO_ADAPTER, allow_module_level=True)


@pytest.fixture(autouse=True, scope="module")
def closed_at_the_end() -> Iterator[None]:
    """Close the shared engines: each holds hundreds of megabytes of compiled shaders."""
    yield
    while _open:
        _open.popitem()[1].close()


def test_reads_in_flight_see_the_state_of_their_request(engine):
    prog = affine()
    runner = engine.prepare(prog, flat(1000))
    state = put(engine, np.zeros(1000, "<f4"))
    reads = []
    for _ in range(40):
        runner([state], state, (1.0,))
        reads.append(engine.download_async(state))
    for n, read in enumerate(reads, 1):
        np.testing.assert_array_equal(np.frombuffer(read.result(), "<f4"), np.full(1000, n, "<f4"))
    engine.release(state)


def test_dispatches_of_one_batch_have_their_own_parameters(engine):
    runner = engine.prepare(affine(), flat(4))
    x = put(engine, np.ones(4, "<f4"))
    outputs = [engine.allocate(16, zero=False) for _ in range(300)]
    for n, output in enumerate(outputs):
        runner([x], output, (float(n),))
    for n, output in enumerate(outputs):
        assert list(np.frombuffer(engine.download(output), "<f4")) == [n + 1.0] * 4
    for storage in (x, *outputs):
        engine.release(storage)


def test_uploads_dispatches_and_copies_are_ordered(engine):
    runner = engine.prepare(affine(), flat(4))
    x, y, z = (engine.allocate(16, zero=True) for _ in range(3))
    for n in range(20):
        engine.upload(x, np.full(4, n, "<f4"))
        runner([x], y, (10.0,))
        engine.copy(y, z)
        engine.upload(x, np.full(4, -1, "<f4"))
        assert list(np.frombuffer(engine.download(z), "<f4")) == [n * 10 + 1.0] * 4
    for storage in (x, y, z):
        engine.release(storage)


def test_batched_gathers_dispatches_in_one_submit(engine):
    runner = engine.prepare(affine(), flat(4))
    state = put(engine, np.zeros(4, "<f4"))
    runner([state], state, (1.0,))
    engine.synchronize()  # now it is known how long a call takes
    before = engine.device.calls.submitted
    with engine.batched():
        for _ in range(10):
            runner([state], state, (1.0,))
            engine.stats()  # the owner is idle and still defers the submit
        assert engine.device.calls.submitted == before
    assert list(np.frombuffer(engine.download(state), "<f4")) == [11.0] * 4
    assert engine.device.calls.submitted <= before + 2
    engine.release(state)


def test_staging_is_reused_and_capped(fresh):
    engine = fresh(staging_bytes=4 * 8192)
    storages = [put(engine, np.full(8000, n, "u1")) for n in range(3)]
    for _ in range(3):
        reads = [(n % 3, engine.download_async(storages[n % 3])) for n in range(30)]
        for n, read in reads:
            assert set(bytes(read.result())) == {n}
    stats = engine.stats()
    assert 1 <= stats["staging_buffers"] <= 4
    assert stats["staging_bytes"] == stats["staging_buffers"] * 8192
    big = put(engine, np.arange(100_000, dtype=np.uint32))
    back = np.frombuffer(engine.download(big), np.uint32)  # larger than the cap
    np.testing.assert_array_equal(back, np.arange(100_000))
    assert engine.stats()["staging_bytes"] <= 4 * 8192


def test_a_callback_of_a_read_may_use_the_engine(engine):
    storage = put(engine, np.arange(4, dtype="<f4"))
    seen: list[Any] = []
    done = threading.Event()

    def callback(read: Any) -> None:
        seen.append(engine.download(storage).nbytes)
        engine.synchronize()
        done.set()

    engine.download_async(storage).add_done_callback(callback)
    assert done.wait(300)
    assert seen == [16]
    engine.release(storage)


def test_the_queue_is_bounded(engine):
    """More work than the queue and the device hold, enqueued as fast as possible."""
    runner = engine.prepare(affine(), flat(64))
    x, y = engine.allocate(256, zero=True), engine.allocate(256, zero=True)
    for _ in range(3000):
        runner([x], y, (1.0,))
    assert engine.owner._queue.qsize() <= 256 + 1
    engine.synchronize()
    assert engine.device.calls.in_flight == 0
    engine.release(x)
    engine.release(y)


def test_threads_wait_for_room_in_the_queue_and_all_get_in(engine):
    """The device's thread stands still while several threads enqueue more than fits."""
    gate, made = threading.Event(), []
    engine.owner.post(gate.wait)
    threads = [
        threading.Thread(target=lambda: [engine.owner.post(made.append, 1) for _ in range(150)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    while not engine.owner._full:  # 600 jobs do not fit, so this ends
        pass
    assert any(thread.is_alive() for thread in threads)
    gate.set()
    for thread in threads:
        thread.join(300)
    engine.synchronize()
    assert len(made) == 600


def test_closing_wakes_threads_that_wait_for_room(fresh):
    engine, gate, raised = fresh(), threading.Event(), []
    engine.owner.post(gate.wait)

    def enqueue() -> None:
        try:
            for _ in range(1000):
                engine.owner.post(int)
        except FreedError as error:
            raised.append(error)

    thread = threading.Thread(target=enqueue)
    thread.start()
    while not engine.owner._full:
        pass
    threading.Timer(0.01, gate.set).start()
    engine.close()
    thread.join(300)
    assert len(raised) == 1


def test_dispatches_of_a_batch_that_share_a_pipeline_buffers_or_numbers(engine):
    """What is set already is not set again; each dispatch has its own buffers and numbers."""
    runner = engine.prepare(affine(), flat(4))
    x, y = put(engine, np.arange(4, dtype="<f4")), engine.allocate(16, zero=True)
    expected = np.arange(4.0)
    with engine.batched():
        for gain in (2.0, 2.0, 0.5, 2.0, 0.5, 0.5):
            runner([x], y, (gain,))
            runner([x], y, (gain,))
            x, y = y, x
            expected = expected * gain + 1
    np.testing.assert_array_equal(np.frombuffer(engine.download(x), "<f4"), expected)
    same = (2.0,)  # one tuple: the runner takes the block of the last call, unless buffers alias
    runner([x], y, same)
    runner([y], y, same)
    runner([y], y, (0.5,))
    runner([y], x, same)
    expected = ((expected * 2 + 1) * 2 + 1) * 0.5 + 1
    np.testing.assert_array_equal(np.frombuffer(engine.download(y), "<f4"), expected)
    np.testing.assert_array_equal(np.frombuffer(engine.download(x), "<f4"), expected * 2 + 1)
    engine.release(x)
    engine.release(y)


@pytest.mark.parametrize("most", [0, 1 << 28], ids=["large", "small"])
def test_scratch_memory_that_cannot_be_allocated(engine, monkeypatch, most):
    """Large scratch memory is waited for, and its error is the call's; the engine goes on."""
    monkeypatch.setattr(webgpu, "UNCHECKED_SCRATCH", most)
    pipeline = engine.shader(shader_text("clear.wgsl"), 0, 16)
    out = put(engine, np.ones(4, "<u4"))
    block = np.array([4, 0, 0, 0], "<u4").tobytes()

    def run() -> None:
        scratch = engine.scratch([64])
        engine.dispatch_all([(pipeline, scratch, block, 1), (pipeline, [out], block, 1)], scratch)
        assert all(buffer.handle.slot is None or most for buffer in scratch)

    def refuse(buffer: Any, zero: bool) -> None:
        raise RuntimeError("Not enough memory left")

    run()
    assert not np.frombuffer(engine.download(out), "<u4").any()
    with monkeypatch.context() as patched:
        patched.setattr(engine.device, "allocate", refuse)
        if most == 0:
            with pytest.raises(DeviceError, match="Not enough memory"):
                run()
        else:
            run()
            with pytest.raises(DeviceError, match="Not enough memory"):
                engine.synchronize()
    run()
    engine.synchronize()
    engine.release(out)
