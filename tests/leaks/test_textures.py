"""Textures leave nothing behind, whichever way they go."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import dala
from dala.media.texture import TexturePool


def counted():
    gc.collect()
    found = dala.diagnostics()["objects"].get("texture", {"count": 0, "bytes": 0})
    return found["count"], found["bytes"]


def test_what_is_alive_is_counted():
    count, nbytes = counted()
    pool = TexturePool(10_000)
    for i in range(10):
        pool.load(i, np.zeros((2, 3, 3), np.uint8))
    assert counted() == (count + 10, nbytes + 240)
    pool.update(0, np.zeros((4, 4), np.uint8))
    assert counted() == (count + 10, nbytes + 240 - 24 + 64)


def by_clear(pool):
    pool.clear()


def by_close(pool):
    pool.close()


def by_remove(pool):
    for key in pool.keys():  # noqa: SIM118 - a list; the pool is no dict
        pool.remove(key)


def by_eviction(pool):
    pool.load("all", np.zeros((1, pool.budget // 4), np.uint8))
    pool.remove("all")


def by_cycle(pool):
    pool.knot = pool


@pytest.mark.parametrize("let_go", [by_clear, by_close, by_remove, by_eviction, by_cycle])
def test_textures_are_given_back(let_go):
    before = counted()
    pool = TexturePool(4000)
    for i in range(50):
        texture = pool.load(i, np.zeros((5, 5), np.uint8))
        texture.retain().release()
    del texture
    let_go(pool)
    del pool
    assert counted() == before


def test_buffers_of_textures_are_given_back(engine_id, dala_device):
    def buffers():
        gc.collect()
        return dala.diagnostics()["objects"]["buffer"]["by_engine"].get(dala_device)

    before, textures = buffers(), counted()
    pool = TexturePool(2000, device=dala_device)
    for i in range(100):
        assert pool.load(i, np.full((5, 5), i, np.uint8)).buffer.shape == (5, 5, 4)
    pool.close()
    assert buffers() == before
    assert counted() == textures


def test_refused_pictures_leave_nothing():
    before = counted()
    pool = TexturePool(100)
    for _ in range(20):
        with pytest.raises(dala.errors.BufferTooLarge):
            pool.load("big", np.zeros((9, 9), np.uint8))
        with pytest.raises(dala.DalaError):
            pool.load("bad", 3)
    assert counted() == before
    assert len(pool) == 0
