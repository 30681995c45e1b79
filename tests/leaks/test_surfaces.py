"""Surfaces leak neither threads nor memory nor resource counts."""

from __future__ import annotations

import contextlib
import gc
import threading
import time
import tracemalloc

import pytest

import dala
from dala.gpu import create_surface

MANY = 600
SPRITE = bytes(range(64))


def threads():
    return sum(t.name == "dala-render" for t in threading.enumerate())


def settled(before):
    """Wait for the threads of collected surfaces to end."""
    gc.collect()
    end = time.monotonic() + 300
    while threads() > before:
        assert time.monotonic() < end, "threads are left"
        time.sleep(0.001)


def counted():
    found = dala.diagnostics()["objects"].get("surface", {"count": 0, "bytes": 0})
    return found["count"], found["bytes"]


def use(n):
    """Use a surface, and end it in one of six ways."""
    s = create_surface(40, 30)
    s.clear("red")
    s.load_sprite(n, SPRITE, 4, 4)
    s.blit(n, 1, 1)
    s.present()
    way = n % 6
    if way == 0:
        s.close()
    elif way == 1:
        assert s.read_pixels(0, 0, 1, 1) == b"\xff\0\0\xff"
        s.destroy()
    elif way == 2:
        s.resize(50, 20)  # garbage collected with queued work
    elif way == 3:
        s.knot = s
    elif way == 4:
        s.blit(n + 1, 0, 0)
        with pytest.raises(dala.DalaError):
            s.synchronize()
    else:
        with s:
            s.with_pixels(lambda pixels: pixels.fill(n % 256))


@pytest.mark.long
def test_many_surfaces_leak_nothing():
    threads_before, counts = threads(), counted()
    tracemalloc.start()
    try:
        for n in range(100):
            use(n)
        settled(threads_before)
        memory = tracemalloc.get_traced_memory()[0]
        for n in range(MANY):
            use(n)
            if n % 200 == 0:
                settled(threads_before)
        settled(threads_before)
        grown = tracemalloc.get_traced_memory()[0] - memory
    finally:
        tracemalloc.stop()
    assert threads() == threads_before
    assert counted() == counts
    # 600 framebuffers would be 2.9 MB; some surfaces wait for the garbage collector.
    assert grown < 300_000, f"{grown} bytes"


def test_memory_of_a_long_lived_surface_does_not_grow():
    with create_surface(64, 64) as s:

        def frame(n):
            s.clear((n % 50, 0, 0))
            s.load_image(n % 3, SPRITE, 4, 4)
            s.draw_image(n % 3, 0, 0, 60, 60)
            s.load_sprite(n, SPRITE, 4, 4)
            s.blit(n, 3, 3)
            s.blit(n + 1, 3, 3)  # fails
            s.remove_sprite(n)
            s.set_pixels(bytes(64 * 64 * 4))
            s.with_pixels(lambda pixels: None) if n % 2 else s.get_pixels()
            s.present()

        def frames(count):
            for n in range(count):
                with contextlib.suppress(dala.DalaError):
                    frame(n)
            with contextlib.suppress(dala.DalaError):
                s.synchronize()
            gc.collect()

        frames(100)
        tracemalloc.start()
        try:
            frames(200)
            memory = tracemalloc.get_traced_memory()[0]
            frames(200)
            grown = tracemalloc.get_traced_memory()[0] - memory
        finally:
            tracemalloc.stop()
        assert grown < 10_000, f"{grown} bytes"  # 200 errors or sprites kept would be 50 KB
