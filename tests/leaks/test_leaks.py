"""Leak tests: make objects, release them, and compare the counts.

The counts come from ``dala.diagnostics()`` and are exact; the memory of the process is not.
"""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

import dala
from dala.gpu.compute import (
    Kernel,
    buffer,
    buffer_zeros,
    free_many,
    from_dlpack,
    kernel,
    kernels,
    read_binary,
    run_kernel,
    to_array,
)

MANY = 50


@pytest.fixture
def counts(engine_id, dala_device):
    """Return the live buffers and bytes of the engine, as counted by the library and the engine."""

    def now():
        gc.collect()
        found = dala.diagnostics()
        mine = found["objects"]["buffer"]["by_engine"].get(dala_device, {"count": 0, "bytes": 0})
        engine = found["engines"].get(dala_device, {})
        return {
            "count": mine["count"],
            "bytes": mine["bytes"],
            "live_buffers": engine.get("live_buffers", 0),
            "live_bytes": engine.get("live_bytes", 0),
        }

    return now


def make(count=MANY):
    return [buffer_zeros((i + 1, 4)) for i in range(count)]


def test_live_buffers_are_counted(counts):
    before = counts()
    made = make()
    after = counts()
    total = sum(b.nbytes for b in made)
    assert after["count"] - before["count"] == MANY
    assert after["bytes"] - before["bytes"] == total
    assert after["live_buffers"] - before["live_buffers"] == MANY
    assert after["live_bytes"] - before["live_bytes"] >= total  # engines may round sizes up


def by_del(buffers):
    buffers.clear()


def by_free(buffers):
    for b in buffers:
        b.free()


def by_close(buffers):
    for b in buffers:
        b.close()


def by_with(buffers):
    for b in buffers:
        with b:
            pass


def by_cycle(buffers):
    for b in buffers:
        knot = [b]
        knot.append(knot)
    buffers.clear()


def by_another_thread(buffers):
    thread = threading.Thread(target=by_free, args=(buffers,))
    thread.start()
    thread.join()


def twice(buffers):
    by_free(buffers)
    by_close(buffers)
    by_del(buffers)


@pytest.mark.parametrize(
    "release", [by_del, by_free, by_close, by_with, by_cycle, by_another_thread, free_many, twice]
)
def test_buffers_are_freed(counts, release):
    before = counts()
    made = make()
    release(made)
    assert counts() == before


def test_kernels_leak_nothing(counts):
    a, b, out = buffer([1.0, 2.0]), buffer([3.0, 4.0]), buffer_zeros((2,))
    run_kernel("elementwise_add", [a, b], out)
    before = counts()
    for _ in range(MANY):
        run_kernel("elementwise_add", [a, b], out)
        run_kernel("scalar_mul", [out], out, {"scalar": 0.5})
    out.read()
    assert counts() == before


def test_new_outputs_are_freed(counts):
    before = counts()
    half = kernel("def half(x):\n    return x * 0.5")
    a = buffer([1.0, 2.0])
    for _ in range(MANY):
        half(a)
    del a
    assert counts() == before


def test_refused_call_leaks_nothing(counts):
    before = counts()
    for _ in range(MANY):
        with pytest.raises(dala.ShapeError):
            buffer([1.0, 2.0, 3.0], shape=(2,))
        with pytest.raises(dala.ShapeMismatch):
            run_kernel(
                "elementwise_add", [buffer_zeros((2,)), buffer_zeros((3,))], buffer_zeros((2,))
            )
    assert counts() == before


def test_moving_between_devices_leaks_nothing(counts, dala_device):
    before = counts()
    for _ in range(MANY):
        buffer_zeros((8,), device="reference").to(dala_device).to("reference")
    assert counts() == before


def test_async_reads_leak_nothing(counts):
    before = counts()
    futures = [buffer([1.0, 2.0]).read_async() for _ in range(MANY)]
    for future in futures:
        future.result()
    del futures, future
    assert counts() == before


def test_views_keep_memory_but_not_the_buffer(counts):
    before = counts()
    views = [to_array(b) for b in make()] + [read_binary(b) for b in make()]
    assert counts() == before
    assert all(not np.asarray(view).any() for view in views)


def test_dlpack_memory_is_released(counts):
    before = counts()
    arrays = [np.zeros(100, "<f4") for _ in range(MANY)]
    watched = [weakref.ref(a) for a in arrays]
    buffers = [from_dlpack(a) for a in arrays]
    del arrays
    by_free(buffers)
    gc.collect()
    assert [w() for w in watched] == [None] * MANY
    assert counts() == before


def test_unregistered_kernels_are_freed(engine_id):
    before = kernels()
    a, out = buffer([1.0]), buffer_zeros((1,))
    watched = []
    for i in range(MANY // 5):
        made = Kernel.register(f"leak_{i}", f"def f(x):\n    return x + {i}.5")
        run_kernel(made, [a], out)
        watched.append(weakref.ref(made))
    assert len(kernels()) == len(before) + len(watched)
    for i in range(MANY // 5):
        Kernel.unregister(f"leak_{i}")
    del made
    gc.collect()
    assert kernels() == before
    assert [w() for w in watched] == [None] * len(watched)


def test_replaced_kernels_are_freed(engine_id):
    before = kernels()
    watched = []
    for i in range(5):
        made = Kernel.register("leak_replaced", f"def f(x):\n    return x * {i}.0")
        run_kernel(made, [buffer([1.0])], buffer_zeros((1,)))
        watched.append(weakref.ref(made))
    del made
    gc.collect()
    assert [w() is None for w in watched] == [True] * 4 + [False]
    Kernel.unregister("leak_replaced")
    assert kernels() == before
