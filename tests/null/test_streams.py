"""Streams on a device with its own queue: enqueuing, waiting and errors."""

from __future__ import annotations

import threading
import time

import pytest

import dala
from dala.gpu.compute import Stream, run_kernel
from dala.gpu.compute.buffer import allocate
from dala.gpu.compute.engines.null import NullEngine
from dala.gpu.compute.stream.scheduler import DEPTH

LONG = 60.0


class Queued(NullEngine):
    """A null engine with a queue: ``synchronize`` waits for the test."""

    def __init__(self):
        super().__init__()
        self.syncs = threading.Semaphore(0)
        self.asked = threading.Semaphore(0)
        self.errors = []

    def synchronize(self):
        self.asked.release()
        assert self.syncs.acquire(timeout=LONG)
        if self.errors:
            raise self.errors.pop()


@pytest.fixture
def engine():
    made = Queued()
    yield made
    made.syncs.release(1000)  # release the threads of a failed test


def make(engine):
    return allocate(engine, (4,), "f32", zero=True, call="test")


def spec(a, out):
    return {"op": "run_kernel", "kernel": "relu", "inputs": [a], "output": out}


def enqueued(stream, engine, wanted):
    """Wait until a number of commands is enqueued behind those that are waited for."""
    for _ in range(int(LONG * 1000)):
        if len(stream._queue._enqueued_on.get(engine, ())) == wanted:
            return
        time.sleep(0.001)
    pytest.fail(f"{wanted} commands were never enqueued")


def test_followers_are_enqueued_before_the_device_is_done(engine):
    a, b = make(engine), make(engine)
    with Stream(workers=2) as stream:
        first = stream.submit(spec(a, b))
        assert engine.asked.acquire(timeout=LONG)
        second = stream.submit(spec(b, a))
        enqueued(stream, engine, 1)
        assert not first.done()
        assert not second.done()
        barrier = stream.submit({"op": "barrier"})
        engine.syncs.release()
        first.result(LONG)
        assert not second.done()
        assert not barrier.done()
        engine.syncs.release()
        barrier.result(LONG)
        assert second.done()
    runs = [call.storages for call in engine.calls("run")]
    assert runs[0] == runs[1][::-1]


def test_one_wait_serves_all_enqueued_commands(engine):
    with Stream(workers=2) as stream:
        made = [stream.submit(spec(make(engine), make(engine)))]
        assert engine.asked.acquire(timeout=LONG)
        made += [stream.submit(spec(make(engine), make(engine))) for _ in range(5)]
        enqueued(stream, engine, 5)
        engine.syncs.release(2)
    assert all(m.done() for m in made)
    assert not engine.syncs.acquire(blocking=False)
    assert len(made) == 6


def test_enqueued_commands_are_limited_and_realtime_goes_first(engine):
    order = [make(engine) for _ in range(DEPTH + 5)]
    with Stream(workers=2) as stream:
        stream.submit(spec(make(engine), make(engine)))
        assert engine.asked.acquire(timeout=LONG)
        for out in order:
            stream.submit(spec(make(engine), out), "background")
        enqueued(stream, engine, DEPTH)
        urgent = make(engine)
        stream.submit(spec(make(engine), urgent), "realtime")
        assert len(engine.calls("run")) == 1 + DEPTH
        engine.syncs.release(100)
    outputs = [call.storages[-1] for call in engine.calls("run")]
    assert outputs[1 + DEPTH] == urgent.storage("test").handle
    assert len(outputs) == len(order) + 2


def test_device_error_names_the_commands_that_ran_together(engine):
    with Stream(workers=2) as stream:
        first = stream.submit(spec(make(engine), make(engine)))
        assert engine.asked.acquire(timeout=LONG)
        others = [stream.submit(spec(make(engine), make(engine))) for _ in range(3)]
        enqueued(stream, engine, 3)
        engine.syncs.release()
        first.result(LONG)
        assert engine.asked.acquire(timeout=LONG)
        engine.errors.append(dala.DeviceError("out of ideas"))
        engine.syncs.release()
        for other in others:
            with pytest.raises(dala.DeviceError) as caught:
                other.result(LONG)
            assert str(caught.value) == (
                f"command {other:d}, run_kernel('relu') (or another of 3 that ran together): "
                "out of ideas"
            )
        engine.syncs.release()
        stream.submit(spec(make(engine), make(engine))).result(LONG)


def test_plain_call_does_not_wait_for_a_stream(engine):
    a, b = make(engine), make(engine)
    with Stream(workers=1) as stream:
        stream.submit(spec(a, b))
        assert engine.asked.acquire(timeout=LONG)
        run_kernel("relu", [a], b)
        assert len(engine.calls("run")) == 2
        engine.syncs.release()
