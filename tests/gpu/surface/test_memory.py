"""The memory of surfaces: streams of a few bytes cannot take gigabytes."""

import gc

import numpy as np
import pytest

import dala
from dala import resources
from dala.errors import MemoryLimitExceeded
from dala.gpu import command
from dala.gpu.render import thread

MIB = 1 << 20


def held():
    gc.collect()
    return resources.snapshot().get("surface", {"bytes": 0})["bytes"]


def test_framebuffers_count_and_are_given_back():
    before = held()
    with dala.gpu.create_surface(100, 50) as s:
        assert held() - before == 2 * 100 * 50 * 4
        s.resize(10, 10)
        s.synchronize()
        assert held() - before == 2 * 10 * 10 * 4
    assert held() == before
    s = dala.gpu.create_surface(64, 64)
    del s
    assert held() == before


def test_surface_larger_than_its_limit_is_refused():
    before = held()
    with pytest.raises(MemoryLimitExceeded) as caught:
        dala.gpu.create_surface(1024, 1024, memory="1 MiB")
    assert str(caught.value) == (
        "create_surface: needs 8 MiB of memory, and the surface uses 0 bytes of its 1 MiB. "
        "Free something, or give it more: create_surface(..., memory='8 GiB')."
    )
    assert (caught.value.asked, caught.value.used, caught.value.limit) == (8 * MIB, 0, MIB)
    assert held() == before
    with pytest.raises(dala.ParameterError, match="create_surface: memory must be a positive"):
        dala.gpu.create_surface(4, 4, memory="much")


def test_resize_and_reads_of_a_stream_are_bounded():
    """519 bytes once took 4 GB: a resize, and thirty reads."""
    stream = command.encode_resize(800, 800)
    stream += b"".join(command.encode_read_pixels(0, 0, 800, 800) for _ in range(30))
    assert len(stream) == 519
    frame = 800 * 800 * 4
    with dala.gpu.create_surface(8, 8, memory=6 * frame) as s:
        s.clear("red")
        s.present()
        s.submit(stream)
        with pytest.raises(MemoryLimitExceeded, match=r"^read_pixels: needs 2\.4 MiB of memory"):
            s.synchronize()
        reads = s.take_reads()
        assert len(reads) == 4  # beside two framebuffers
        assert s.size == (800, 800)  # still usable
        assert s.read_pixels(1, 1, 1, 1) == b"\xff\x00\x00\xff"
        s.submit(command.encode_read_pixels(0, 0, 800, 800))
        assert len(s.take_reads()) == 1


def test_kept_reads_are_bounded_by_bytes(monkeypatch):
    monkeypatch.setattr(thread, "KEPT_READ_BYTES", 1000)
    with dala.gpu.create_surface(10, 10) as s:  # a frame has 400 bytes
        for n in range(5):
            s.clear((n, 0, 0))
            s.submit(command.encode_read_pixels(0, 0, 10, 10))
        found = s.take_reads()
        assert [read[0] for read in found] == [3, 4]
        s.resize(20, 20)  # a frame of 1600 bytes is still kept
        s.submit(command.encode_read_pixels(0, 0, 20, 20) * 2)
        assert [len(read) for read in s.take_reads()] == [1600]


def test_refused_resize_changes_nothing():
    with dala.gpu.create_surface(16, 16, memory="1 MiB") as s:
        s.clear("lime")
        s.resize(4096, 4096)
        s.fill_rect(0, 0, 1, 1, "red")
        with pytest.raises(MemoryLimitExceeded, match=r"resize: needs 128 MiB of memory"):
            s.synchronize()
        assert s.size == (16, 16)
        assert s.read_pixels(0, 0, 2, 1) == b"\xff\x00\x00\xff\x00\xff\x00\xff"
        s.resize(20, 20)
        assert s.size == (20, 20)


@pytest.mark.parametrize("kind", ["image", "sprite"])
def test_images_and_sprites_count(kind):
    pixels = np.full((64, 64, 4), 255, np.uint8)  # 16 KiB
    base = held()
    with dala.gpu.create_surface(8, 8, memory=512 << 10) as s:
        load, remove = getattr(s, f"load_{kind}"), getattr(s, f"remove_{kind}")
        for n in range(60):
            load(n, pixels.tobytes(), 64, 64)
        with pytest.raises(MemoryLimitExceeded, match=f"^load_{kind}: needs"):
            s.synchronize()
        s._errors.clear()
        used = held() - base
        assert 128 << 10 < used <= 512 << 10
        load(0, pixels.tobytes(), 64, 64)  # replaces one that is there
        s.synchronize()
        assert held() - base == used
        for n in range(60):
            remove(n)
        s.synchronize()
        assert held() - base <= (64 << 10) + 512  # the atlas keeps its first 64 KiB
        load(100, pixels.tobytes(), 64, 64)
        s.synchronize()
        if kind == "sprite":
            s.blit(100, 0, 0)
        else:
            s.draw_image(100, 0, 0, 8, 8)
        assert s.read_pixels(0, 0, 1, 1) == b"\xff" * 4
    assert held() == base


def test_surface_counts_against_the_block_it_was_made_in():
    with dala.limits(memory=4000):
        s = dala.gpu.create_surface(10, 10)
        with pytest.raises(MemoryLimitExceeded, match=r"the block of dala.limits\(memory=4000\)"):
            dala.gpu.create_surface(40, 40)
    with s:
        s.resize(40, 40)
        with pytest.raises(MemoryLimitExceeded, match=r"the block of dala.limits"):
            s.synchronize()


def test_compute_on_a_surface_counts_against_it():
    source = "def half(img: Image): return rgba(img[1, 0].rgb * 0.5, img[0, 1].a)"
    with dala.gpu.create_surface(64, 64, memory=40_000) as s:  # its framebuffers take 32,768
        s.clear("white")
        s.load_shader("half", source)
        s.dispatch_compute("half", {})
        with pytest.raises(MemoryLimitExceeded, match="needs 16 KiB of memory, and the surface"):
            s.synchronize()
        assert s.read_pixels(0, 0, 1, 1) == b"\xff" * 4
    with dala.gpu.create_surface(64, 64) as s:
        s.clear("white")
        s.load_shader("half", source)
        s.dispatch_compute("half", {})
        assert s.read_pixels(0, 0, 1, 1) == b"\x80\x80\x80\xff"
