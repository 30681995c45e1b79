"""The null engine records calls and runs nothing."""

from __future__ import annotations

import numpy as np

import dala
from dala.gpu.compute import buffer, buffer_zeros, from_array, read, read_list, run_kernel
from dala.gpu.compute.engines.null import NullEngine, RecordedCall


def test_a_run_is_recorded():
    with dala.device("null"):
        a, b, out = buffer([1.0, 2.0]), buffer([3.0, 4.0]), buffer_zeros((2,))
        engine = a.engine
        assert isinstance(engine, NullEngine)
        engine.log.clear()
        run_kernel("elementwise_add", [a, b], out)
        assert read_list(out) == [0.0, 0.0]
    assert [call.name for call in engine.log] == ["prepare", "run", "download"]
    run = engine.calls("run")[0]
    assert (run.program, run.dims, run.nbytes) == ("elementwise_add", (2,), 8)
    assert len(set(run.storages)) == 3


def test_a_prepared_program_runs_again():
    with dala.device("null"):
        a, out = buffer_zeros((4, 4)), buffer_zeros((4, 4))
        engine = a.engine
        engine.log.clear()
        for scalar in (1.0, 2.0, 3.0):
            run_kernel("scalar_mul", [a], out, {"scalar": scalar})
    assert [call.params for call in engine.calls("run")] == [(1.0,), (2.0,), (3.0,)]
    assert len(engine.calls("prepare")) <= 1


def test_memory_is_counted_and_reads_as_zeros():
    engine = NullEngine()
    storage = engine.allocate(12, zero=False)
    engine.upload(storage, b"x" * 12)
    assert engine.stats() == {"live_buffers": 1, "live_bytes": 12}
    assert bytes(engine.download(storage)) == bytes(12)
    other = engine.allocate(12, zero=True)
    engine.copy(storage, other)
    assert engine.log[-1] == RecordedCall("copy", (storage.handle, other.handle), 12)
    engine.release(storage)
    engine.release(storage)
    engine.release(other)
    assert engine.stats() == {"live_buffers": 0, "live_bytes": 0}


def test_the_log_is_bounded():
    engine = NullEngine()
    storage = engine.allocate(0, zero=True)
    for _ in range(20_000):
        engine.download(storage)
    assert len(engine.log) == 10_000


def test_every_dtype_is_supported():
    with dala.device("null"):
        for dtype in ("f4", "f8", "i4", "i8", "u4", "u1"):
            b = from_array(np.ones((2, 2), dtype))
            assert read(b) == bytes(b.nbytes)
