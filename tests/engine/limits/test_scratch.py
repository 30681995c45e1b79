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


#: Operations of the CPU engine that once kept scratch memory of their own, which was not counted.
COUNTED = {
    "blur": {"radius": 100, "sigma": 50.0},
    "box_blur": {"radius": 5},
    "median": {"radius": 2},
    "lut_apply": {},
}


@pytest.mark.parametrize("name", COUNTED)
def test_scratch_of_filters_on_the_cpu(name):
    rng = np.random.default_rng(1)
    source = from_array(rng.integers(0, 256, (48, 64, 4), np.uint8), device="cpu")
    inputs = [source]
    if name == "lut_apply":
        inputs.append(from_array(rng.random((9, 9, 9, 3), np.float32), device="cpu"))
    out = buffer_zeros(source.shape, "u8", device="cpu")
    run_kernel(name, inputs, out, COUNTED[name])
    expected = out.numpy().copy()
    assert expected.std() > 0
    before = resources.snapshot().get("scratch", {"bytes": 0})["bytes"]
    with dala.limits(memory=1000), pytest.raises(dala.MemoryLimitExceeded, match=f"{name}: needs"):
        run_kernel(name, inputs, out, COUNTED[name])
    with dala.limits(memory=4 << 20):
        run_kernel(name, inputs, out, COUNTED[name])
        run_kernel(name, inputs, out, COUNTED[name])
    assert np.array_equal(out.numpy(), expected)
    assert resources.snapshot()["scratch"]["bytes"] == before


def test_scratch_of_a_reduction_in_several_passes():
    source = from_array(np.arange(4 * 300 * 5, dtype=np.uint32).reshape(4, 300, 5), device="cpu")
    out = buffer_zeros((300,), "u32", device="cpu")
    with dala.limits(memory=4000), pytest.raises(dala.MemoryLimitExceeded, match="reduce_sum"):
        run_kernel("reduce_sum", [source], out, {"axis": (0, 2)})
    run_kernel("reduce_sum", [source], out, {"axis": (0, 2)})
    assert np.array_equal(out.numpy(), source.numpy().sum(axis=(0, 2)))
