"""The WebGPU engine: its adapters and its memory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dala.errors import (
    BufferTooLarge,
    FreedError,
)
from dala.gpu.compute.engines.base import Storage
from dala.gpu.compute.engines.webgpu import adapters, device
from dala.gpu.compute.engines.webgpu.pool import size_class
from tests.engine.webgpu.by_hand import (
    ADAPTERS,
    OF_WGPU,
    _open,
    affine,
    flat,
    put,
    run,
)
from tests.support.engines import NO_ADAPTER, complaints

if not ADAPTERS:
    pytest.skip(NO_ADAPTER, allow_module_level=True)


@pytest.fixture(autouse=True, scope="module")
def closed_at_the_end() -> Iterator[None]:
    """Close the shared engines: each holds hundreds of megabytes of compiled shaders."""
    yield
    while _open:
        _open.popitem()[1].close()


# adapters -----------------------------------------------------------------------------------------


def test_adapters_are_numbered_best_first():
    ids = [a.id for a in ADAPTERS if a not in OF_WGPU]
    assert ids == [f"cuda:{i}" for i in range(len(ids))]
    assert [a.id for a in OF_WGPU] == [f"webgpu:{i}" for i in range(len(OF_WGPU))]
    kinds = ["discrete", "integrated", "virtual", "unknown", "software"]
    ranks = [(kinds.index(a.kind), a.backend == "OpenGL") for a in OF_WGPU]
    assert ranks == sorted(ranks)
    assert adapters.enumeration_error() == ""


def test_dtypes_follow_features():
    for a in ADAPTERS:
        assert {"f32", "s32", "u32", "u8"} <= a.dtypes
        assert ("f64" in a.dtypes) == ("shader-f64" in a.features)
        assert ("s64" in a.dtypes) == ("shader-int64" in a.features)


def test_a_broken_driver_gives_no_adapters_and_a_reason(monkeypatch):
    def broken() -> list[Any]:
        raise OSError("libvulkan.so.1: cannot open shared object file")

    monkeypatch.setattr(adapters, "_enumerate", broken)
    monkeypatch.setitem(sys.modules, "dala.gpu.compute.engines.webgpu.cuda.adapters", None)
    monkeypatch.setattr(adapters, "_found", None)
    monkeypatch.setattr(adapters, "_error", "")
    assert adapters.list_adapters() == []
    assert adapters.enumeration_error() == "OSError: libvulkan.so.1: cannot open shared object file"


def test_listing_adapters_prints_nothing():
    code = (
        "from dala.gpu.compute.engines.webgpu.adapters import list_adapters; "
        "print(len(list_adapters()))"
    )
    environment = {k: v for k, v in os.environ.items() if k != "XDG_RUNTIME_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=300
    )
    assert (done.stdout.strip(), complaints(done.stderr)) == (str(len(ADAPTERS)), "")


# memory -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nbytes", [0, 1, 3, 4, 15, 16, 17, 4097, 65537, 1 << 20])
def test_uploads_and_downloads_round_trip(engine, nbytes):
    data = np.random.default_rng(nbytes).integers(0, 256, nbytes, np.uint8)
    storage = put(engine, data)
    back = engine.download(storage)
    assert (back.format, back.nbytes, back.readonly) == ("B", nbytes, False)
    np.testing.assert_array_equal(np.frombuffer(back, np.uint8), data)
    engine.release(storage)


def test_large_uploads_are_split(engine, monkeypatch):
    monkeypatch.setattr(device, "WRITE_BYTES", 1 << 16)
    monkeypatch.setattr(device, "MAX_WRITE_BYTES", 1 << 18)
    data = np.random.default_rng(1).integers(0, 256, (1 << 20) + 7, np.uint8)
    storage = put(engine, data)
    np.testing.assert_array_equal(np.frombuffer(engine.download(storage), np.uint8), data)
    engine.release(storage)


def test_small_uploads_are_copied_at_once(engine):
    data = np.arange(16, dtype=np.uint8)
    storage = put(engine, data)
    data[:] = 0  # the caller may change its memory at once
    assert list(engine.download(storage)) == list(range(16))
    engine.release(storage)


def test_a_reused_buffer_is_zeroed_on_request(fresh):
    engine = fresh()
    dirty = put(engine, np.full(1000, 255, np.uint8))
    engine.release(dirty)
    assert engine.stats()["pooled_buffers"] == 1
    clean = engine.allocate(1000, zero=True)
    assert engine.stats()["pooled_buffers"] == 0
    assert not np.frombuffer(engine.download(clean), np.uint8).any()


@pytest.mark.parametrize("nbytes", [37, (1 << 20) - 1, 1 << 20, (1 << 20) + 5, 3_000_001])
def test_copy(engine, nbytes):
    data = np.random.default_rng(0).integers(0, 256, nbytes, np.uint8)
    source = put(engine, data)
    target = engine.allocate(nbytes, zero=True)
    engine.copy(source, target)
    engine.copy(target, target)
    assert bytes(engine.download(target)) == data.tobytes()
    engine.release(source)
    engine.release(target)


def test_a_buffer_above_the_limit_is_refused(engine):
    limit = engine.max_buffer_bytes
    with pytest.raises(BufferTooLarge) as caught:
        engine.allocate(limit + 1, zero=False)
    text = str(caught.value)
    for part in ("allocate", str(limit + 1), str(limit), engine.adapter.name, "device 'cpu'"):
        assert part in text


def test_size_classes_waste_little_and_keep_the_limit():
    limit = 1 << 30
    for n in (0, 1, 16, 17, 100, 4096, 4097, 1 << 20, (1 << 20) + 1, 33_177_600, limit - 3, limit):
        size = size_class(n, limit)
        assert size % 16 == 0
        assert max(n, 16) <= size <= limit
        assert size <= max(n * 1.125 + 16, 16)


def test_the_pool_keeps_no_more_than_its_cap(fresh):
    engine = fresh(pool_bytes=4096)
    held = [engine.allocate(1024, zero=False) for _ in range(8)]
    assert engine.stats() | {"live_buffers": 8, "live_bytes": 8192} == engine.stats()
    for storage in held:
        engine.release(storage)
    stats = engine.stats()
    assert (stats["live_buffers"], stats["live_bytes"]) == (0, 0)
    assert (stats["pooled_buffers"], stats["pooled_bytes"]) == (4, 4096)


def test_the_environment_sets_the_cap(fresh, monkeypatch):
    monkeypatch.setenv("DALA_POOL_BYTES", "0")
    engine = fresh()
    engine.release(engine.allocate(1024, zero=False))
    assert engine.stats()["pooled_buffers"] == 0


def test_releasing_twice_and_using_after_release(engine):
    before = engine.stats()["live_buffers"]
    storage = engine.allocate(64, zero=True)
    again = Storage(64, storage.handle)
    engine.release(storage)
    engine.release(storage)
    engine.release(again)
    assert engine.stats()["live_buffers"] == before
    with pytest.raises(FreedError):
        engine.download(storage)


def test_evicting_a_buffer_removes_its_bind_groups(fresh):
    engine = fresh(pool_bytes=0)
    prog = affine()
    for _ in range(5):
        run(engine, prog, flat(100), [np.zeros(100, "<f4")], 1.0)
    stats = engine.stats()
    assert (stats["bind_groups"], stats["live_buffers"], stats["pooled_buffers"]) == (0, 0, 0)
