"""Scratch memory of operations counts against the memory limits while they run."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala import resources
from dala.gpu.compute import buffer_zeros, from_array, run_kernel
from dala.gpu.compute.engines.scratch import scratch_memory

#: Smaller transforms have no scratch memory on the CPU.
SHAPE = (128, 128)
EDGES = np.zeros(SHAPE, np.uint8)
EDGES[3, 2:20] = 128
EDGES[3, 5] = 255


def transform():
    source = from_array(np.random.default_rng(0).standard_normal(SHAPE).astype("<f4"))
    out = buffer_zeros((*SHAPE, 2), "f32")
    expected = np.fft.fft2(source.numpy().astype("f8"))
    yield lambda: run_kernel("fft", [source], out, {"axes": 2})
    found = out.numpy()
    assert np.abs(found[..., 0] + 1j * found[..., 1] - expected).max() < 1e-2


def edges():
    source, out = from_array(EDGES), buffer_zeros(SHAPE, "u8")
    yield lambda: run_kernel("hysteresis", [source], out, {})
    assert np.array_equal(out.numpy() > 0, EDGES > 0)


@pytest.mark.parametrize(("make", "name"), [(transform, "fft"), (edges, "hysteresis")])
def test_scratch_of_operations(engine_id, make, name):
    steps = make()
    call = next(steps)
    if engine_id == "reference":
        call()
    else:
        before = resources.snapshot().get("scratch", {"bytes": 0})["bytes"]
        with dala.limits(memory=1000):
            with pytest.raises(dala.MemoryLimitExceeded, match=f"{name}: needs .* of memory") as e:
                call()
            assert e.value.asked >= 4 * 128 * 128
            assert e.value.used == 0
        with dala.limits(memory=8 << 20):
            call()
            call()  # the first one's was given back
        assert resources.snapshot()["scratch"]["bytes"] == before
    with pytest.raises(StopIteration):
        next(steps)


def test_it_is_reserved_before_it_is_allocated(dala_device, monkeypatch):
    engine = from_array(np.zeros(1, np.float32), device=dala_device).engine
    sizes = []
    allocate = engine.allocate
    monkeypatch.setattr(
        engine, "allocate", lambda n, *, zero: sizes.append(n) or allocate(n, zero=zero)
    )
    with dala.limits(memory=100):
        with pytest.raises(dala.MemoryLimitExceeded), scratch_memory(engine, "test", 60, 60):
            pass
        assert sizes == []
        with scratch_memory(engine, "test", 40, 60) as (first, second):
            assert (first.nbytes, second.nbytes) == (40, 60)
            with pytest.raises(dala.MemoryLimitExceeded), scratch_memory(engine, "test", 1):
                pass
        with pytest.raises(ZeroDivisionError), scratch_memory(engine, "test", 100):
            1 / 0  # noqa: B018
        with scratch_memory(engine, "test", 100):
            pass
