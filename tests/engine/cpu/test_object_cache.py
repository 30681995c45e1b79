"""Object code on disk: hostile entries and folders, and the CPU as part of the key."""

import logging
import os

import llvmlite.binding
import numpy as np
import pytest

from dala.gpu.compute.engines.cpu import cache as caching
from dala.gpu.compute.engines.cpu.cache import ENTRY_BYTES, ObjectCache
from dala.gpu.compute.engines.cpu.engine import CPUEngine
from dala.gpu.compute.engines.cpu.jit import Jit
from dala.gpu.compute.engines.cpu.native import disk
from dala.gpu.compute.engines.cpu.ops import neighborhood
from dala.gpu.compute.engines.cpu.threads import ThreadPool
from tests.support.cpu_programs import add, pointwise, run_line

posix = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="owners and modes of POSIX")


@pytest.fixture(autouse=True)
def own_key(monkeypatch, tmp_path):
    monkeypatch.delenv("DALA_CACHE_TRUST", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(caching, "_logged", set())


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "objects"
    made.mkdir(mode=0o700)
    return made


@pytest.fixture
def cache(folder):
    made = ObjectCache(folder)
    made.put("a", b"code of a")
    made.put("b", b"code of b")
    assert (made.get("a"), made.get("b")) == (b"code of a", b"code of b")
    return made


def compiled_with(cache):
    engine = CPUEngine(compiler=Jit(cache), threads=ThreadPool(1))
    a = np.arange(100, dtype="<f4")
    assert (run_line(engine, pointwise(add, "f32", "f32"), a, a) == a + a).all()
    return engine.stats()["compiled"], engine.stats()["cache_hits"]


# entries ------------------------------------------------------------------------------------------
def test_an_entry_at_another_name_is_refused(cache, folder):
    (folder / "b.o").write_bytes((folder / "a.o").read_bytes())
    assert cache.get("b") is None
    os.replace(folder / "a.o", folder / "c.o")
    assert cache.get("c") is None
    cache.put("b", b"new")
    assert cache.get("b") == b"new"


def test_an_entry_sealed_with_another_key_is_refused(cache, folder, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    other = ObjectCache(folder)
    assert other.get("a") is None
    other.put("a", b"theirs")
    assert other.get("a") == b"theirs"
    assert cache.get("a") is None


@pytest.mark.parametrize("where", [0, 7, 8, 20, 39, 40, -1])
def test_a_flipped_bit_anywhere_is_found(cache, folder, where):
    data = bytearray((folder / "a.o").read_bytes())
    data[where] ^= 1
    (folder / "a.o").write_bytes(data)
    assert cache.get("a") is None


@pytest.mark.parametrize("length", [0, 1, 7, 8, 39, 40, 48])
def test_a_truncated_entry_is_refused(cache, folder, length):
    data = (folder / "a.o").read_bytes()
    assert length < len(data)
    (folder / "a.o").write_bytes(data[:length])
    assert cache.get("a") is None


@posix
@pytest.mark.parametrize("kind", ["fifo", "folder", "link", "device", "dangling"])
def test_what_is_not_a_regular_file_counts_as_missing(cache, folder, kind):
    entry = folder / "a.o"
    os.replace(entry, folder / "kept")
    if kind == "fifo":
        os.mkfifo(entry)
    elif kind == "folder":
        entry.mkdir()
    else:
        entry.symlink_to(
            {"link": folder / "kept", "device": "/dev/zero", "dangling": folder / "none"}[kind]
        )
    assert cache.get("a") is None
    cache.put("a", b"again")
    # A folder cannot be replaced by a file; everything else is.
    assert cache.get("a") == (None if kind == "folder" else b"again")
    assert (folder / "kept").is_file()
    assert not list(folder.glob("*.tmp"))


def test_a_huge_entry_is_neither_read_nor_stored(cache, folder):
    with (folder / "a.o").open("r+b") as file:
        file.truncate(ENTRY_BYTES * 64)  # sparse
    assert cache.get("a") is None
    cache.put("big", bytes(ENTRY_BYTES + 1))
    assert not (folder / "big.o").exists()


@posix
def test_an_entry_that_others_can_write_is_refused(cache, folder):
    (folder / "a.o").chmod(0o620)
    assert cache.get("a") is None
    cache.put("a", b"again")
    assert cache.get("a") == b"again"


def test_names_with_separators_are_refused(cache, folder, tmp_path):
    (tmp_path / "x.o").write_bytes((folder / "a.o").read_bytes())
    for name in ("../x", "a/b", "", ".", "a.o", "a\0"):
        cache.put(name, b"code")
        assert cache.get(name) is None
    assert sorted(p.name for p in folder.iterdir()) == ["a.o", "b.o"]


def test_only_our_own_files_are_removed_when_the_cache_is_full(folder):
    (folder / "photo.jpg").write_bytes(bytes(9000))
    (folder / "link.o").symlink_to(folder / "photo.jpg")
    small = ObjectCache(folder, capacity=2000)
    for n in range(4):
        small.put(f"k{n}", bytes(900))
    assert (folder / "photo.jpg").stat().st_size == 9000
    assert (folder / "link.o").is_symlink()
    assert len(list(folder.glob("k?.o"))) < 3


# folders ------------------------------------------------------------------------------------------
@posix
@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_a_shared_folder_is_not_used_and_that_is_said_once(
    cache, folder, tmp_path, monkeypatch, caplog, mode
):
    before = (folder / "a.o").read_bytes()
    folder.chmod(mode)
    with caplog.at_level(logging.WARNING, "dala"):
        shared = ObjectCache(folder)
        assert compiled_with(shared) == (1, 0)
        assert compiled_with(ObjectCache(folder)) == (1, 0)
        shared.put("a", b"other")
    assert shared.refused == f"other users can write to {folder}"
    assert (folder / "a.o").read_bytes() == before
    (record,) = caplog.records
    assert f"{folder} is not used: other users can write to {folder}" in record.getMessage()
    monkeypatch.setenv("DALA_CACHE_TRUST", "1")
    trusted = ObjectCache(folder)
    assert trusted.get("a") == b"code of a"
    (folder / "a.o").write_bytes(b"damage")
    assert trusted.get("a") is None  # seals count still
    folder.chmod(0o700)
    (folder / "a.o").write_bytes(before)
    monkeypatch.delenv("DALA_CACHE_TRUST")
    folder.chmod(mode | 0o1000)
    assert ObjectCache(folder).get("a") == b"code of a"  # sticky


@posix
def test_a_folder_that_appears_after_the_first_look_is_checked(tmp_path):
    cache = ObjectCache(tmp_path / "later")
    assert cache.get("a") is None
    (tmp_path / "later").mkdir()
    (tmp_path / "later").chmod(0o777)
    cache.put("a", b"code")
    assert list((tmp_path / "later").iterdir()) == []
    assert "other users can write" in cache.refused


@posix
def test_a_key_that_others_can_read_turns_the_cache_off(cache, folder, tmp_path, caplog):
    (tmp_path / "state" / "dala" / "key").chmod(0o644)
    with caplog.at_level(logging.WARNING, "dala"):
        assert compiled_with(ObjectCache(folder)) == (1, 0)
    assert "key: other users can read or write it" in caplog.text


def test_without_the_calls_of_posix(folder, monkeypatch):
    """As on Windows."""
    for name in ("geteuid", "getuid", "O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC"):
        monkeypatch.delattr(os, name, raising=False)
    monkeypatch.setattr(os, "supports_fd", set())
    cache = ObjectCache(folder)
    assert compiled_with(cache) == (1, 0)
    assert compiled_with(cache) == (0, 1)
    (folder / "a.o").symlink_to(next(folder.glob("*.o")))
    assert cache.get("a") is None


# the CPU ------------------------------------------------------------------------------------------
def test_features_of_the_cpu_are_part_of_every_key(folder, monkeypatch):
    def native_key(compiler):
        return disk.cache_key(neighborhood.median_of_bytes, {}, compiler)

    host = Jit(ObjectCache(folder))
    assert compiled_with(ObjectCache(folder)) == (1, 0)
    assert compiled_with(ObjectCache(folder)) == (0, 1)
    features = dict(llvmlite.binding.get_host_cpu_features())
    missing = next(name for name in ("aes", "crc", "popcnt", "sse4.2") if features.get(name))
    with monkeypatch.context() as faked:
        fewer = {**features, missing: False}
        faked.setattr(llvmlite.binding, "get_host_cpu_features", lambda: fewer)
        other = Jit(ObjectCache(folder))
        assert other._key("text") != host._key("text")
        assert native_key(other) != native_key(host)
        assert compiled_with(ObjectCache(folder)) == (1, 0)  # the host's code is not used
        assert compiled_with(ObjectCache(folder)) == (0, 1)
    with monkeypatch.context() as faked:
        faked.setattr(llvmlite.binding, "get_host_cpu_name", lambda: "x86-64-v2")
        assert Jit(ObjectCache(folder))._key("text") != host._key("text")
    again = Jit(ObjectCache(folder))
    assert again._key("text") == host._key("text")
    assert native_key(again) == native_key(host)
    assert compiled_with(ObjectCache(folder)) == (0, 1)
