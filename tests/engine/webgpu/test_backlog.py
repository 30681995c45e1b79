"""The bound on device time that is enqueued: estimates, waiting calls, and how they end."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from dala.errors import DeviceLostError, FreedError, ParameterError
from dala.gpu import compute as gc
from dala.gpu.compute.engines import auto
from dala.gpu.compute.engines.webgpu import backlog as backlogs
from dala.gpu.compute.engines.webgpu.backlog import Backlog, Costs
from tests.engine.webgpu.by_hand import ADAPTERS, _open, affine, flat, put
from tests.support.engines import NO_ADAPTER

if not ADAPTERS:
    pytest.skip(NO_ADAPTER, allow_module_level=True)


@pytest.fixture(autouse=True, scope="module")
def closed_at_the_end() -> Iterator[None]:
    """Close the shared engines: each holds hundreds of megabytes of compiled shaders."""
    yield
    while _open:
        _open.popitem()[1].close()


class Clock:
    """A clock that the test sets."""

    now = 100.0

    def monotonic(self) -> float:
        """Return the time."""
        return self.now


@pytest.fixture
def clock(monkeypatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(backlogs, "time", made)
    return made


def calls(backlog: Backlog, costs: Costs, number: int, count: int, size: int = 1) -> None:
    """Enqueue, record and submit calls."""
    for _ in range(count):
        backlog.add(costs.of(size))
        backlog.record(costs.of(size))
    backlog.submit(number, backlogs.time.monotonic())


# estimates ----------------------------------------------------------------------------------------


def test_unknown_calls_count_as_a_quarter_of_the_limit_each(clock):
    backlog, costs = Backlog(0.1), Costs()
    calls(backlog, costs, 1, 4)
    assert not backlog.full
    calls(backlog, costs, 2, 1)
    assert backlog.full
    assert backlog.ahead == pytest.approx(0.125)


def test_a_poll_gives_bounds_on_what_a_submit_took(clock):
    backlog, costs = Backlog(0.1), Costs()
    calls(backlog, costs, 1, 2)
    clock.now += 0.030
    backlog.settle(0)  # not yet
    clock.now += 0.002
    backlog.settle(1)  # 30 to 32 ms for two
    assert 0.015 <= costs.of(1).seconds <= 0.016
    assert backlog.ahead == 0.0


def test_work_that_runs_longer_than_estimated_raises_the_estimate_at_once(clock):
    backlog, costs = Backlog(0.1), Costs()
    costs.of(1).seconds = 0.001
    for number in range(1, 6):
        calls(backlog, costs, number, 1)
    assert not backlog.full
    clock.now += 0.200
    backlog.settle(0)  # the first still runs, so four others wait for as long, each
    assert costs.of(1).seconds == pytest.approx(0.2)
    assert backlog.ahead == pytest.approx(0.8)
    assert backlog.full


def test_a_late_poll_raises_no_estimate(clock):
    backlog, costs = Backlog(0.1), Costs()
    costs.of(1).seconds = 0.001
    calls(backlog, costs, 1, 1)
    clock.now += 5.0
    backlog.settle(1)  # it may have ended at any time since
    assert costs.of(1).seconds == pytest.approx(0.001)


def test_a_submit_that_blocks_counts_as_run(clock):
    backlog, costs = Backlog(0.1), Costs()
    backlog.add(costs.of(1))
    backlog.record(costs.of(1))
    clock.now += 0.3
    backlog.submit(1, clock.now - 0.3)
    backlog.settle(1)
    assert costs.of(1).seconds == pytest.approx(0.3)


def test_work_of_another_size_has_a_cost_of_its_own():
    costs = Costs()
    assert costs.of(1000) is costs.of(1023)
    assert costs.of(1000) is not costs.of(1025)


@pytest.mark.parametrize(
    ("text", "seconds"), [("", 0.1), ("20", 0.02), ("0.5", 0.0005), ("inf", math.inf)]
)
def test_the_limit_of_the_environment(text, seconds, monkeypatch):
    monkeypatch.setenv("DALA_QUEUE_MS", text)
    assert Backlog().most == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["0", "-3", "soon", "nan"])
def test_a_limit_that_is_none_is_refused(text, monkeypatch):
    monkeypatch.setenv("DALA_QUEUE_MS", text)
    with pytest.raises(ParameterError, match="DALA_QUEUE_MS: value must be milliseconds above 0"):
        Backlog()


# engines ------------------------------------------------------------------------------------------


def under_way(engine) -> int:
    return sum(engine.owner.backlog._counts.values())


def test_calls_wait_for_those_before_them(engine, monkeypatch):
    monkeypatch.setattr(engine.owner.backlog, "most", 1e-9)  # any call is longer
    runner = engine.prepare(affine(), flat(1 << 16))
    state = put(engine, np.zeros(1 << 16, "<f4"))
    runner([state], state, (1.0,))
    engine.synchronize()
    most = 0
    for _ in range(40):
        runner([state], state, (1.0,))
        most = max(most, under_way(engine))
    assert most <= 2  # one that is about to end, and the next
    result = np.frombuffer(engine.download(state), "<f4")
    np.testing.assert_array_equal(result, np.full(1 << 16, 41, "<f4"))
    engine.release(state)


def test_calls_within_a_batch_are_submitted_when_they_wait(engine, monkeypatch):
    monkeypatch.setattr(engine.owner.backlog, "most", 1e-9)
    runner = engine.prepare(affine(), flat(64))
    state = put(engine, np.zeros(64, "<f4"))
    with engine.batched():
        for _ in range(20):
            runner([state], state, (1.0,))
    assert np.frombuffer(engine.download(state), "<f4")[0] == 20.0
    engine.release(state)


def test_a_wait_can_be_interrupted_and_nothing_is_lost(engine, monkeypatch):
    backlog = engine.owner.backlog
    runner = engine.prepare(affine(), flat(64))
    state = put(engine, np.zeros(64, "<f4"))

    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(backlog, "most", -1.0)  # full for ever
    with monkeypatch.context() as patch:
        patch.setattr(backlog._room, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            runner([state], state, (1.0,))
    monkeypatch.setattr(backlog, "most", 0.1)
    for _ in range(3):
        runner([state], state, (1.0,))
    assert np.frombuffer(engine.download(state), "<f4")[0] == 3.0
    assert under_way(engine) == 0
    engine.release(state)


@contextmanager
def busy(engine) -> Iterator[Backlog]:
    """Keep the owner's thread from any work in a block, and its queue of device time full."""
    gate, backlog = threading.Event(), engine.owner.backlog
    most, backlog.most = backlog.most, -1.0
    engine.owner.post(gate.wait)
    try:
        yield backlog
    finally:
        backlog.most = max(most, backlog.most)
        gate.set()


@pytest.mark.parametrize("end", ["close", "lose"])
def test_waiting_calls_end_with_the_device(fresh, end):
    engine = fresh()
    runner = engine.prepare(affine(), flat(64))
    state = put(engine, np.zeros(64, "<f4"))
    runner([state], state, (1.0,))  # compiles
    engine.download(state)
    errors: list[BaseException] = []

    def call() -> None:
        try:
            runner([state], state, (1.0,))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=call)
    with busy(engine) as backlog:
        thread.start()
        while thread.is_alive() and not backlog.crowded:
            thread.join(0.001)
        if end == "close":
            engine.owner.close_soon()
        else:
            engine.owner.post(engine.owner.mark_lost, "pulled out")
    thread.join(60)
    assert not thread.is_alive()
    assert [type(error) for error in errors] == [FreedError if end == "close" else DeviceLostError]


def test_coroutines_wait_without_the_loop(adapter_id):
    state = gc.buffer([1.0, 2.0], device=adapter_id)
    out = gc.buffer_zeros((2,), device=adapter_id)
    gc.run_kernel("scalar_mul", [state], out, {"scalar": 2.0})
    out.read()

    async def main() -> None:
        with busy(auto.get(adapter_id)) as backlog:
            params = {"scalar": 3.0}
            work = gc.run_kernel_async("scalar_mul", [state], out, params)
            task = asyncio.ensure_future(work)
            while not backlog.crowded:  # until a worker waits
                await asyncio.sleep(0)
            assert not task.done()
        await asyncio.wait_for(task, 60)

    asyncio.run(main())
    assert out.read_list() == [3.0, 6.0]


def test_streams_go_on_while_others_wait(adapter_id, monkeypatch):
    monkeypatch.setattr(auto.get(adapter_id).owner.backlog, "most", 1e-9)
    buffers = [gc.buffer([float(n)], device=adapter_id) for n in range(40)]
    specs = [
        {"op": "run_kernel", "kernel": "relu", "inputs": [b], "output": b, "params": {}}
        for b in buffers
    ]
    with gc.Stream(workers=3) as stream:
        commands = [stream.submit(spec) for spec in specs]
        for command in commands:
            command.result(60)
    assert [b.read_list() for b in buffers] == [[float(n)] for n in range(40)]
