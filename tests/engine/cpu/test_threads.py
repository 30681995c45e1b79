"""Many threads at once: each gets its own results, on every engine."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import dala
from dala.gpu.compute import buffer, buffer_zeros, kernel, read_list, run_kernel

THREADS = 8


def on_many_threads(work, dala_device):
    """Run ``work(n)`` on many threads that start together; raise the first error."""
    start = threading.Barrier(THREADS)

    def one(n):
        start.wait()
        with dala.device(dala_device):
            return work(n)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(one, range(THREADS)))


def test_each_thread_gets_its_own_results(engine_id, dala_device):
    def work(n):
        a, out = buffer(np.full(1000 + n, n, "<f4")), buffer_zeros((1000 + n,))
        for turn in range(20):
            run_kernel("scalar_mul", [a], out, {"scalar": float(turn)})
            assert read_list(out) == [float(n * turn)] * (1000 + n)
        return True

    assert all(on_many_threads(work, dala_device))


def test_one_kernel_compiled_by_many_threads(engine_id, dala_device):
    k = kernel("def k(x, *, s=1.0):\n    return x * s + 0.25")

    def work(n):
        return k(buffer([1.0, 2.0]), s=float(n)).read_list()

    assert on_many_threads(work, dala_device) == [[n + 0.25, 2 * n + 0.25] for n in range(THREADS)]


def test_buffers_cross_threads(engine_id, dala_device):
    shared = buffer([1.0, 2.0, 3.0])
    given = [buffer([float(n)]) for n in range(THREADS)]

    def work(n):
        out = buffer_zeros((3,))
        run_kernel("elementwise_add", [shared, given[n]], out)
        given[n].free()
        return read_list(out)

    assert on_many_threads(work, dala_device) == [[n + 1, n + 2, n + 3] for n in range(THREADS)]


def test_device_block_is_per_thread(engine_id, dala_device):
    """A ``device`` block has no effect on other threads."""

    def work(n):
        with dala.device("reference"):
            inner = buffer([1.0]).device
        return inner, buffer([1.0]).device

    assert on_many_threads(work, dala_device) == [("reference", dala_device)] * THREADS
    assert buffer([1.0]).device == dala_device
