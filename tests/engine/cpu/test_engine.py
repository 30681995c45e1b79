"""The CPU engine's code cache, threads and memory."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dala.errors import FreedError, ParameterError
from dala.gpu.compute.engines.base import Geometry
from dala.gpu.compute.engines.cpu import cost as cpu_cost
from dala.gpu.compute.engines.cpu import memory as host_memory
from dala.gpu.compute.engines.cpu import threads
from dala.gpu.compute.engines.cpu.cache import ObjectCache, cache_folder
from dala.gpu.compute.engines.cpu.engine import CPUEngine
from dala.gpu.compute.engines.cpu.jit import Jit
from dala.gpu.compute.engines.cpu.threads import ThreadPool
from dala.gpu.compute.lang.ir import LOADED, Arg, Out
from tests.support.cpu_programs import (
    NUMPY,
    Builder,
    add,
    engine,
    execute,
    fused,
    line,
    pointwise,
    program,
    run_line,
    store,
    tiny_tiles,
)

__all__ = ["engine", "tiny_tiles"]

USER = os.geteuid() if hasattr(os, "geteuid") else None


# object code on disk --------------------------------------------------------------------------
def compiled_with(cache):
    engine = CPUEngine(compiler=Jit(cache), threads=ThreadPool(1))
    a = np.arange(100, dtype="<f4")
    assert (run_line(engine, pointwise(add, "f32", "f32"), a, a) == a + a).all()
    stats = engine.stats()
    return stats["compiled"], stats["cache_hits"]


def entries(folder):
    return sorted(p for p in folder.iterdir() if p.suffix == ".o")


def test_second_process_loads_code_from_disk(tmp_path):
    cache = ObjectCache(tmp_path / "new" / "folder")
    assert compiled_with(cache) == (1, 0)
    assert compiled_with(cache) == (0, 1)
    assert [p.suffix for p in (tmp_path / "new" / "folder").iterdir()] == [
        ".o"
    ]  # no temporary file is left


@pytest.mark.parametrize("damage", ["flip", "truncate", "empty", "foreign"])
def test_damaged_code_is_ignored_and_replaced(tmp_path, damage):
    cache = ObjectCache(tmp_path)
    assert compiled_with(cache) == (1, 0)
    (entry,) = entries(tmp_path)
    data = bytearray(entry.read_bytes())
    if damage == "flip":
        data[len(data) // 2] ^= 0x10
    elif damage == "truncate":
        del data[-10:]
    elif damage == "empty":
        data.clear()
    else:
        data[:] = b"\x7fELF nothing of ours"
    entry.write_bytes(data)
    assert compiled_with(cache) == (1, 0)
    assert compiled_with(cache) == (0, 1)


def test_no_cache_without_a_writable_folder(tmp_path):
    in_the_way = tmp_path / "file"
    in_the_way.write_text("not a folder")
    cache = ObjectCache(in_the_way / "objects")
    assert compiled_with(cache) == (1, 0)
    assert compiled_with(cache) == (1, 0)
    assert compiled_with(ObjectCache(None)) == (1, 0)


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere"
)
def test_read_only_cache_folder(tmp_path):
    cache = ObjectCache(tmp_path)
    assert compiled_with(cache) == (1, 0)
    tmp_path.chmod(0o500)
    try:
        assert compiled_with(cache) == (0, 1)
        cache.put("key", b"code")
        assert cache.get("key") is None
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can change the owner"
)
def test_code_of_another_user_is_not_run(tmp_path):
    cache = ObjectCache(tmp_path)
    cache.put("key", b"code")
    assert cache.get("key") == b"code"
    os.chown(tmp_path / "key.o", 12345, 12345)
    assert cache.get("key") is None


def test_least_recently_used_entries_are_removed(tmp_path):
    cache = ObjectCache(tmp_path, capacity=4200)
    for n in range(4):
        cache.put(f"k{n}", bytes(1000))
        os.utime(tmp_path / f"k{n}.o", (1000 + n, 1000 + n))
    assert cache.get("k0") is not None  # used just now, so k1 is the oldest
    cache.put("k4", bytes(1000))  # over capacity: removes entries down to three quarters
    there = [cache.get(f"k{n}") is not None for n in range(5)]
    assert there == [True, False, False, True, True]


def test_cache_folder_from_the_environment(monkeypatch, tmp_path):
    for name in ("DALA_CACHE", "DALA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    default = cache_folder()
    assert default is None or default.endswith(os.path.join("dala", "objects"))
    monkeypatch.setenv("DALA_CACHE_DIR", str(tmp_path))
    assert cache_folder() == str(tmp_path / "objects")
    monkeypatch.setenv("DALA_CACHE", "0")
    assert cache_folder() is None


# threads --------------------------------------------------------------------------------------
def test_thread_count_from_the_environment(monkeypatch):
    monkeypatch.setenv("DALA_THREADS", "3")
    assert threads.thread_count() == 3
    monkeypatch.delenv("DALA_THREADS")
    assert threads.thread_count() == threads.usable_cores() >= 1
    for wrong in ("0", "-1", "many", "1.5"):
        monkeypatch.setenv("DALA_THREADS", wrong)
        with pytest.raises(ParameterError) as raised:
            threads.thread_count()
        assert str(raised.value) == (
            f"cpu: DALA_THREADS must be an int of at least 1, got {wrong!r}. "
            "Unset it to use every core."
        )


@pytest.mark.parametrize("count", [1, 63, 64, 65, 1000, 12345])
@pytest.mark.parametrize("workers", [1, 2, 7])
def test_tiles_cover_every_position_once(tiny_tiles, count, workers):
    pool = ThreadPool(workers)
    engine = CPUEngine(threads=pool)
    a = np.random.default_rng(count).standard_normal(count).astype("<f4")
    twice = pointwise(lambda b, x: b("add", "f32", x, x), "f32")
    storage = store(engine, a)
    runner = engine.prepare(twice, line(count, 1))
    for turn in range(1, 6):  # in place: a position computed twice would be doubled twice
        runner([storage], storage, ())
        assert np.array_equal(np.frombuffer(engine.download(storage), "<f4"), a * 2.0**turn)
    pool.close()


def test_many_callers_at_once(engine, tiny_tiles):
    runner = engine.prepare(pointwise(fused, "f32", "f32", "f32"), line(20_000, 3))
    start = threading.Barrier(8)

    def work(seed):
        arrays = np.random.default_rng(seed).standard_normal((3, 20_000)).astype("<f4")
        inputs, out = [store(engine, a) for a in arrays], engine.allocate(80_000, zero=False)
        x, y, z = arrays
        start.wait()
        for _ in range(20):
            runner(inputs, out, ())
            got = np.frombuffer(engine.download(out), "<f4")
            assert np.array_equal(got, np.maximum(x * y + z, 0) * 2 - 1)
        return True

    with ThreadPoolExecutor(8) as callers:
        assert all(callers.map(work, range(8)))


def test_pool_restarts_after_close(tiny_tiles):
    pool = ThreadPool(3)
    engine = CPUEngine(threads=pool)
    a = np.ones(5000, "<f4")
    for _ in range(3):
        assert (run_line(engine, pointwise(add, "f32", "f32"), a, a) == 2).all()
        pool.close()


def in_new_process(code, **environment):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


PRELUDE = """
    import os, sys, threading
    import numpy as np
    from tests.support.cpu_programs import *
    e = CPUEngine()
    a = np.arange(3_000_000, dtype="<f4")
    p = pointwise(add, "f32", "f32")
    def work(engine=None):
        return bool((run_line(engine or e, p, a, a) == a + a).all())
"""


def test_process_exits_cleanly():
    code = PRELUDE + "    assert work()\n    print('done')"
    assert in_new_process(code, DALA_THREADS="4") == (0, "done\n", "")


def test_process_exits_cleanly_while_daemon_threads_compute():
    code = (
        PRELUDE
        + """
    started = threading.Event()
    def forever():
        while True:
            work()
            started.set()
    for _ in range(3):
        threading.Thread(target=forever, daemon=True).start()
    started.wait()
    print('done')
    """
    )
    assert in_new_process(code, DALA_THREADS="4") == (0, "done\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_forked_process_starts_its_own_threads():
    code = (
        PRELUDE
        + """
    assert work()
    child = os.fork()
    if child == 0:
        good = work() and work(CPUEngine())
        os._exit(0 if good else 1)
    _, status = os.waitpid(child, 0)
    assert status == 0, status
    assert work()
    print('done')
    """
    )
    assert in_new_process(code, DALA_THREADS="4") == (0, "done\n", "")


# memory ---------------------------------------------------------------------------------------
def test_memory_is_aligned_and_counted():
    engine = CPUEngine()
    sizes = [0, 1, 63, 4096, host_memory.REUSE_FROM + 5]
    made = [engine.allocate(n, zero=True) for n in sizes]
    assert all(s.handle.address % 64 == 0 for s in made)
    assert all(bytes(engine.download(s)) == bytes(n) for s, n in zip(made, sizes, strict=True))
    stats = engine.stats()
    assert (stats["live_buffers"], stats["live_bytes"]) == (len(sizes), sum(sizes))
    for s in made:
        engine.release(s)
        engine.release(s)
    stats = engine.stats()
    assert (stats["live_buffers"], stats["live_bytes"]) == (0, 0)
    with pytest.raises(FreedError):
        engine.download(made[1])
    with pytest.raises(FreedError):
        engine.prepare(pointwise(add, "f32", "f32"), line(1, 2))(made[:2], made[2], ())


def test_large_blocks_are_reused_unless_a_view_is_left(unsanitized):
    engine = CPUEngine()
    size = host_memory.REUSE_FROM

    first = engine.allocate(size, zero=False)
    address = first.handle.address
    engine.host_view(first)[:4] = b"used"
    engine.release(first)
    assert engine.stats()["kept_bytes"] >= size
    again = engine.allocate(size, zero=True)
    assert again.handle.address == address
    assert not any(engine.host_view(again)[:4])  # zeroed, although it was used

    view = engine.host_view(again)
    engine.release(again)
    assert engine.stats()["kept_bytes"] == 0
    other = engine.allocate(size, zero=False)
    assert other.handle.address != address
    view[:4] = b"mine"
    assert bytes(view[:4]) == b"mine"

    array = np.frombuffer(engine.host_view(other), np.uint8)[5:6]  # a view of a view of a view
    engine.release(other)
    assert engine.stats()["kept_bytes"] == 0
    del array
    engine.close()


def test_memory_kept_for_reuse_is_limited(unsanitized):
    memory = host_memory.HostMemory(limit=3 * host_memory.REUSE_FROM)
    blocks = [memory.allocate(host_memory.REUSE_FROM, zero=False) for _ in range(5)]
    del blocks
    assert host_memory.REUSE_FROM < memory.kept_bytes <= 3 * host_memory.REUSE_FROM
    memory.clear()
    assert memory.kept_bytes == 0


def test_running_call_keeps_its_memory(engine, tiny_tiles, monkeypatch):
    """A buffer freed by another thread during a call stays alive until the call returns."""
    a = np.ones(2_000_000, "<f4")
    inputs, out = [store(engine, a), store(engine, a)], engine.allocate(a.nbytes, zero=False)
    kept = engine.host_view(out)
    run = engine.threads.run

    def run_and_free(*args, **options):
        for s in (*inputs, out):
            engine.release(s)
        engine._memory.clear()
        run(*args, **options)

    monkeypatch.setattr(engine.threads, "run", run_and_free)
    engine.prepare(pointwise(add, "f32", "f32"), line(a.size, 2))(inputs, out, ())
    assert (np.frombuffer(kept, "<f4") == 2).all()


def test_adopted_memory_is_modified_in_place(engine):
    a = np.arange(1000, dtype="<f4")
    storage = engine.adopt(memoryview(a).cast("B"))
    assert storage.foreign
    assert storage.nbytes == a.nbytes
    out = np.zeros(1000, "<f4")
    target = engine.adopt(memoryview(out).cast("B"))
    engine.prepare(pointwise(add, "f32", "f32"), line(1000, 2))([storage, storage], target, ())
    assert np.array_equal(out, a * 2)
    engine.release(target)
    lent = engine.adopt(memoryview(b"read only"))
    assert bytes(engine.host_view(lent)) == b"read only"
    assert engine.host_view(lent).readonly
    engine.release(lent)
    assert engine.adopt(np.zeros((4, 4), np.uint8)[:, :2].data) is None
    assert engine.adopt(memoryview(bytearray())) is None


@pytest.mark.parametrize("offset", [1, 2, 4, 60])
@pytest.mark.parametrize("dtype", ["f32", "f64", "s64"])
def test_unaligned_memory(engine, tiny_tiles, monkeypatch, offset, dtype):
    monkeypatch.setattr(cpu_cost, "STREAM_BYTES", 0)  # must be declined: it needs alignment
    count, numpy = 10_007, np.dtype(NUMPY[dtype])
    nbytes = count * numpy.itemsize
    spaces = [memoryview(bytearray(nbytes + 64))[offset : offset + nbytes] for _ in range(3)]
    x, y, out = (np.frombuffer(s, numpy) for s in spaces)
    x[:], y[:] = np.arange(count), np.arange(count)[::-1]
    storages = [engine.adopt(s) for s in spaces]
    total = pointwise(lambda b, p, q: b("add", dtype, p, q), dtype, dtype)
    engine.prepare(total, line(count, 2))(storages[:2], storages[2], ())
    assert (out == count - 1).all()


# non-temporal stores -----------------------------------------------------------------------
@pytest.mark.parametrize("count", [1, 64, 1000, 4096, 50_001])
def test_streaming_equals_plain_stores(engine, tiny_tiles, monkeypatch, count):
    monkeypatch.setattr(cpu_cost, "STREAM_BYTES", 0)
    x, y, z = np.random.default_rng(0).standard_normal((3, count)).astype("<f4")
    p = pointwise(fused, "f32", "f32", "f32")
    assert cpu_cost.plan(p, line(count, 3), 4).stream
    assert np.array_equal(run_line(engine, p, x, y, z), np.maximum(x * y + z, 0) * 2 - 1)
    # Partly over an input, and directly before and after the output.
    storages = [store(engine, a) for a in (x, y, z)]
    engine.prepare(p, line(count, 3))(storages, storages[1], ())
    got = np.frombuffer(engine.download(storages[1]), "<f4")
    assert np.array_equal(got, np.maximum(x * y + z, 0) * 2 - 1)
    guarded = engine.allocate(count * 4 + 64, zero=True)
    inputs = [store(engine, a) for a in (x, y, z)]
    engine.prepare(p, line(count, 3))(inputs, guarded, ())
    assert not any(engine.download(guarded)[count * 4 :])


@pytest.mark.parametrize("offset", range(0, 64, 4))
@pytest.mark.parametrize("count", [1, 15, 17, 4096, 50_001])
def test_streaming_into_memory_of_any_alignment(engine, tiny_tiles, monkeypatch, offset, count):
    monkeypatch.setattr(cpu_cost, "STREAM_BYTES", 0)
    x, y, z = np.random.default_rng(0).standard_normal((3, count)).astype("<f4")
    p = pointwise(fused, "f32", "f32", "f32")
    whole = np.full(count * 4 + 256, 7, np.uint8)
    begin = -whole.ctypes.data % 64 + 64 + offset
    target = engine.adopt(memoryview(whole)[begin : begin + count * 4])
    inputs = [store(engine, a) for a in (x, y, z)]
    engine.prepare(p, line(count, 3))(inputs, target, ())
    got = whole[begin : begin + count * 4].view("<f4")
    assert np.array_equal(got, np.maximum(x * y + z, 0) * 2 - 1)
    assert (whole[:begin] == 7).all()
    assert (whole[begin + count * 4 :] == 7).all()


@pytest.mark.parametrize(("dtype", "channels"), [("u8", 4), ("u8", 3), ("f64", 4), ("f32", 3)])
def test_streaming_pixels(engine, tiny_tiles, monkeypatch, dtype, channels):
    monkeypatch.setattr(cpu_cost, "STREAM_BYTES", 0)
    b, kind = Builder(), LOADED[dtype]
    stored = [b("pixel", kind, attr=(0, channels - 1 - c)) for c in range(channels)]
    args = [Arg("px", "pixel", dtype, 3, channels)]
    p = program(b, args, Out(dtype, 3, channels, True), stored, rank=2)
    image = np.random.default_rng(1).integers(0, 256, (37, 51, channels)).astype(NUMPY[dtype])
    got = execute(engine, p, Geometry((37 * 51,), ((),), (image.shape,), image.shape), [image])
    assert np.array_equal(got.reshape(image.shape), image[:, :, ::-1])


def test_info(engine):
    info = engine.info()
    assert info["backend"] == "cpu"
    assert info["gpu"] is False
    assert info["threads"] == 4
    assert info["cores"] >= 1
    assert info["name"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", info["llvm"])


class ArraySubclass(np.ndarray):
    """An array subclass."""


def test_address_of_agrees_with_numpy():
    whole = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    frozen = np.frombuffer(b"some bytes", np.uint8)
    arrays = [
        whole, whole[1], whole[:, 1:, 2:], whole[::-1], whole.T, frozen, whole.view(ArraySubclass),
        np.zeros(()), np.zeros(0), np.zeros(1 << 22, np.uint8)[12345:],
        np.lib.stride_tricks.as_strided(whole),
    ]  # fmt: skip
    for array in arrays:
        assert host_memory.address_of(array) == array.__array_interface__["data"][0]
