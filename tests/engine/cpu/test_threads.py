"""Many threads at once: each gets its own answers, on every engine."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import dala
from dala.gpu.compute import buffer, buffer_zeros, kernel, read_list, run_kernel

THREADS = 8


def everywhere(work, dala_device):
    """Runs ``work(n)`` on many threads that start together; what one raises is raised here."""
    start = threading.Barrier(THREADS)

    def one(n):
        start.wait()
        with dala.device(dala_device):
            return work(n)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(one, range(THREADS)))


def test_each_thread_has_its_own_numbers(engine_id, dala_device):
    def work(n):
        a, out = buffer(np.full(1000 + n, n, "<f4")), buffer_zeros((1000 + n,))
        for turn in range(20):
            run_kernel("scalar_mul", [a], out, {"scalar": float(turn)})
            assert read_list(out) == [float(n * turn)] * (1000 + n)
        return True

    assert all(everywhere(work, dala_device))


def test_one_kernel_prepared_by_all_threads_at_once(engine_id, dala_device):
    k = kernel("def k(x, *, s=1.0):\n    return x * s + 0.25")

    def work(n):
        return k(buffer([1.0, 2.0]), s=float(n)).read_list()

    assert everywhere(work, dala_device) == [[n + 0.25, 2 * n + 0.25] for n in range(THREADS)]


def test_buffers_made_in_one_thread_are_used_and_freed_in_others(engine_id, dala_device):
    shared = buffer([1.0, 2.0, 3.0])
    given = [buffer([float(n)]) for n in range(THREADS)]

    def work(n):
        out = buffer_zeros((3,))
        run_kernel("elementwise_add", [shared, given[n]], out)
        given[n].free()
        return read_list(out)

    assert everywhere(work, dala_device) == [[n + 1, n + 2, n + 3] for n in range(THREADS)]


def test_a_device_block_belongs_to_its_thread(engine_id, dala_device):
    """The block around this test does not reach into a new thread, nor the other way round."""

    def work(n):
        with dala.device("reference"):
            inner = buffer([1.0]).device
        return inner, buffer([1.0]).device

    assert everywhere(work, dala_device) == [("reference", dala_device)] * THREADS
    assert buffer([1.0]).device == dala_device
