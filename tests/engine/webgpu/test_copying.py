"""Copies between host memory and mapped memory, on several threads. They need no adapter."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from dala.gpu.compute.engines.webgpu import copying
from dala.gpu.compute.engines.webgpu.copying import pieces


@pytest.mark.parametrize("nbytes", [1, 1 << 20, (8 << 20) + 3, (33 << 20) - 1, 300 << 20])
def test_pieces_cover_a_download(nbytes):
    found = pieces(nbytes)
    assert sum(length for _, length in found) == nbytes
    assert [start for start, _ in found] == [
        sum(length for _, length in found[:n]) for n in range(len(found))
    ]
    assert all(start % 256 == 0 and length > 0 for start, length in found)


@pytest.mark.parametrize("threads", [1, 2, 5, 8])
def test_copies_by_several_threads(monkeypatch, threads):
    """Parts of all sizes; an error of a part is raised, after all parts are done."""
    monkeypatch.setattr(copying, "_cores", lambda: 2 * threads)
    monkeypatch.setattr(copying, "PART_BYTES", 100)
    rng = np.random.default_rng(10)
    for size in (1, 99, 100, 501, 800, 1000, 4097):
        source, target = rng.integers(0, 256, size, np.uint8), np.zeros(size, np.uint8)
        copying.copy_bytes(target, source)
        assert np.array_equal(target, source)
    target.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        copying.copy_bytes(target, source)


def test_copies_where_no_thread_starts(monkeypatch):
    monkeypatch.setattr(copying, "_cores", lambda: 16)
    monkeypatch.setattr(copying, "PART_BYTES", 100)
    monkeypatch.setattr(copying, "_jobs", lambda: None)
    source, target = np.arange(250, dtype=np.uint8), np.zeros(250, np.uint8)
    copying.copy_bytes(target, source)
    assert np.array_equal(target, source)


@pytest.mark.parametrize("at", ["put", "own part", "wait"])
def test_ctrl_c_leaves_no_thread_copying(monkeypatch, at):
    """Threads no longer use the memory after an interrupted copy, wherever it was interrupted."""
    monkeypatch.setattr(copying, "_cores", lambda: 16)
    monkeypatch.setattr(copying, "PART_BYTES", 100)
    main, plain, real = threading.get_ident(), np.copyto, copying._jobs()
    waits, release, copying_now = threading.Lock(), threading.Event(), []

    def copyto(target, source):
        if threading.get_ident() == main:
            if at == "own part":
                raise KeyboardInterrupt
            return
        copying_now.append(1)
        if not waits.acquire(blocking=False):  # all but one wait until the copy is being stopped
            release.wait(5)
        plain(target, source)
        copying_now.pop()

    class Interrupted:
        """A queue of which a call is interrupted after it had its effect."""

        def __init__(self, queue, call, number):
            self.queue, self.call, self.left = queue, call, number

        def put(self, item):
            self.queue.put(item)
            self.count("put")

        def get(self):
            if at != self.call or not self.left:
                release.set()
            item = self.queue.get()
            self.count("wait")
            return item

        def count(self, call):
            if call == self.call == at:
                self.left -= 1
                if not self.left:
                    raise KeyboardInterrupt

    monkeypatch.setattr(np, "copyto", copyto)
    monkeypatch.setattr(copying, "_jobs", lambda: Interrupted(real, "put", 3))
    made = copying.forks.simple_queue
    monkeypatch.setattr(copying.forks, "simple_queue", lambda: Interrupted(made(), "wait", 1))
    source, target = np.arange(800, dtype=np.uint8), np.zeros(800, np.uint8)
    with pytest.raises(KeyboardInterrupt):
        copying.copy_bytes(target, source)
    assert not copying_now
    left = target.copy()
    monkeypatch.undo()
    monkeypatch.setattr(copying, "_cores", lambda: 16)
    monkeypatch.setattr(copying, "PART_BYTES", 100)
    copying.copy_bytes(np.zeros(800, np.uint8), source)  # after the parts that are still queued
    np.testing.assert_array_equal(target, left)
