"""Copies by threads in native code."""

from __future__ import annotations

import multiprocessing
import sys
import threading

import numpy as np
import pytest

from dala.gpu.compute.engines.webgpu.cuda.copies import threads as copier

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it has no such semaphores")


@pytest.fixture
def threads(monkeypatch):
    """Four threads that copy, and parts of 1000 bytes."""
    monkeypatch.setattr(copier, "PART_BYTES", 1000)
    monkeypatch.setattr(copier, "usable_cores", lambda: 8)
    copier.copier.cache_clear()
    yield copier.copier()
    copier.copier.cache_clear()


def check(rng, size):
    source, target = rng.integers(0, 256, size, np.uint8), np.zeros(size + 1, np.uint8)
    copier.copy_bytes(target[:size], source)
    assert np.array_equal(target[:size], source)
    assert target[size] == 0


def test_all_bytes_are_copied(threads):
    rng = np.random.default_rng(1)
    for size in (0, 1, 1999, 2000, 2001, 3000, 100_000, 1_234_567):
        check(rng, size)


def test_several_threads_copy_in_turn(threads):
    failed = []

    def work(seed):
        try:
            rng = np.random.default_rng(seed)
            for _ in range(30):
                check(rng, int(rng.integers(1, 50_000)))
        except BaseException as error:
            failed.append(error)

    workers = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failed


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own(threads):
    check(np.random.default_rng(2), 5 << 20)
    child = multiprocessing.get_context("fork").Process(
        target=check, args=(np.random.default_rng(2), 5 << 20)
    )
    child.start()
    child.join(60)
    assert child.exitcode == 0
