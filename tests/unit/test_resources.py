"""Counts of live objects, and ``dala.diagnostics()``."""

import gc
import subprocess
import sys
import threading

import pytest

import dala
from dala import resources

NONE = {"count": 0, "bytes": 0, "by_engine": {}}


@pytest.fixture
def counts(monkeypatch):
    gc.collect()  # free the cycles of earlier tests now
    monkeypatch.setattr(resources, "_changes", type(resources._changes)())
    monkeypatch.setattr(resources, "_totals", {})
    return resources


def test_no_objects(counts):
    assert counts.snapshot() == {"buffer": NONE}


def test_counts_by_kind_and_engine(counts):
    counts.track("buffer", "cpu", 100)
    counts.track("buffer", "cpu", 20)
    counts.track("buffer", "webgpu:0", 3)
    counts.track("pipeline", "cpu", 0)
    counts.untrack("buffer", "cpu", 20)
    assert counts.snapshot() == {
        "buffer": {
            "count": 2,
            "bytes": 103,
            "by_engine": {
                "cpu": {"count": 1, "bytes": 100},
                "webgpu:0": {"count": 1, "bytes": 3},
            },
        },
        "pipeline": {"count": 1, "bytes": 0, "by_engine": {"cpu": {"count": 1, "bytes": 0}}},
    }


def test_kind_without_objects_stays_listed(counts):
    counts.track("pipeline", "cpu", 8)
    counts.untrack("pipeline", "cpu", 8)
    assert counts.snapshot() == {"buffer": NONE, "pipeline": NONE}


def test_backlog_is_bounded(counts):
    for _ in range(10 * counts._BACKLOG):
        counts.track("buffer", "cpu", 1)
    assert len(counts._changes) <= counts._BACKLOG + 1
    assert counts.snapshot()["buffer"]["count"] == 10 * counts._BACKLOG


def test_finalizers_never_wait(counts):
    """A finalizer that runs while this thread holds the lock must neither hang nor lose a count."""
    with counts._lock:
        for _ in range(2 * counts._BACKLOG):
            counts.untrack("buffer", "cpu", 1)  # as from a finalizer; more than the backlog
    assert counts.snapshot()["buffer"]["count"] == -2 * counts._BACKLOG


def test_garbage_collection_while_summing(counts):
    """Finalizers run whenever the collector does; here after every allocation."""

    class Thing:
        def __init__(self):
            self.self = self  # a cycle: freed by the collector, not by reference counting
            counts.track("buffer", "cpu", 1)

        def __del__(self):
            counts.untrack("buffer", "cpu", 1)

    before = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(3 * counts._BACKLOG):
            Thing()
        counts.snapshot()
    finally:
        gc.set_threshold(*before)
    gc.collect()
    assert counts.snapshot()["buffer"] == NONE


def test_counts_from_many_threads(counts):
    def work():
        for _ in range(5000):
            counts.track("buffer", "cpu", 2)
            counts.untrack("buffer", "cpu", 2)
        counts.track("buffer", "cpu", 7)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts.snapshot()["buffer"]["by_engine"] == {"cpu": {"count": 4, "bytes": 28}}


def test_diagnostics_lists_engines_in_use(counts, monkeypatch):
    from dala.gpu.compute.engines import instances

    class Engine:
        id = "cpu"
        lost = False

        def stats(self):
            return {"live_buffers": 2, "live_bytes": 12}

    monkeypatch.setattr(instances, "_by_id", {"cpu": Engine()})
    counts.track("buffer", "cpu", 12)
    assert dala.diagnostics() == {
        "engines": {"cpu": {"live_buffers": 2, "live_bytes": 12}},
        "objects": {
            "buffer": {"count": 1, "bytes": 12, "by_engine": {"cpu": {"count": 1, "bytes": 12}}}
        },
    }


def test_diagnostics_without_engines(counts, monkeypatch):
    monkeypatch.delitem(sys.modules, "dala.gpu.compute.engines.instances", raising=False)
    monkeypatch.setattr(resources, "_totals", {})
    assert dala.diagnostics() == {"engines": {}, "objects": {"buffer": NONE}}


def test_ctrl_c_in_a_finalizer_is_raised_again():
    program = (
        "import signal, time\n"
        "from dala.gpu.compute import buffer\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "made = buffer([1.0], device='cpu')\n"
        "made.engine.release = lambda storage: signal.raise_signal(signal.SIGINT)\n"
        "try:\n"
        "    made = None\n"
        "    print('on', flush=True)\n"
        "    time.sleep(60)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ran.stdout, ran.stderr) == ("on\ninterrupted\n", "")
