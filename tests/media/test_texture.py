"""The texture pool: hits, eviction, counts, errors."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dala
from dala.media import Frame
from dala.media.texture import TexturePool

RNG = np.random.default_rng(7)


def picture(height=4, width=8, channels=4):
    return RNG.integers(0, 256, (height, width, channels), np.uint8)


def test_kinds_of_pictures(tmp_path):
    image_module = pytest.importorskip("PIL.Image")
    pool = TexturePool(10_000)
    rgba, rgb = picture(), picture(channels=3)
    opaque = np.dstack([rgb, np.full((4, 8), 255, np.uint8)])
    image_module.fromarray(rgba).save(tmp_path / "a.png")
    cases = {
        "rgba": (rgba, rgba),
        "rgb": (rgb, opaque),
        "gray": (rgb[..., 0], np.dstack([*[rgb[..., 0]] * 3, opaque[..., 3]])),
        "float": (rgb.astype(np.float32) / 255, opaque),
        "pillow": (image_module.fromarray(rgb), opaque),
        "frame": (Frame.from_array(rgb, device="cpu"), opaque),
        "buffer": (dala.gpu.compute.from_array(rgba, device="reference"), rgba),
        "path": (tmp_path / "a.png", rgba),
    }
    for key, (source, expected) in cases.items():
        made = pool.load(key, source)
        np.testing.assert_array_equal(made.array, expected, err_msg=key)
        assert (made.key, made.width, made.height, made.nbytes) == (key, 8, 4, 128)
    assert pool.bytes == 128 * len(cases)


def test_planar_frames():
    gray = Frame.from_array(np.full((6, 4), 126, np.uint8), format="i420", device="cpu")
    gray.numpy()[4:] = 128  # gray
    found = TexturePool(1000).load("gray", gray).array
    assert found.shape == (4, 4, 4)
    assert np.abs(found[..., :3].astype(int) - 128).max() <= 1
    assert (found[..., 3] == 255).all()


def test_exif_orientation(tmp_path):
    image_module = pytest.importorskip("PIL.Image")
    pixels = picture(4, 8, 3)
    exif = image_module.Exif()
    exif[0x0112] = 6  # rotate right
    image_module.fromarray(pixels).save(tmp_path / "rotated.png", exif=exif)
    made = TexturePool(1000).load(str(tmp_path / "rotated.png"))
    np.testing.assert_array_equal(made.array[..., :3], np.rot90(pixels, -1))


def test_pixels_are_copied_and_read_only():
    given = picture()
    before = given.copy()
    made = TexturePool(1000).load("a", given)
    given[:] = 0
    np.testing.assert_array_equal(made.array, before)
    with pytest.raises(ValueError, match="read-only"):
        made.array[0, 0] = 1


def test_hits(tmp_path):
    pool = TexturePool(1000)
    first = pool.load("a", picture())
    assert pool.load("a") is first
    assert pool.load("a", tmp_path / "not there.png") is first  # not looked at
    assert pool.get("a") is first
    assert pool.get("b") is None
    assert (pool.hits, pool.misses, len(pool), pool.bytes) == (3, 2, 1, 128)
    assert "a" in pool
    assert "b" not in pool


def test_least_recently_used_is_evicted_first():
    pool = TexturePool(4 * 128)
    for key in "abcd":
        pool.load(key, picture())
    pool.load("a")
    pool.get("b")
    pool.load("e", picture())
    assert pool.keys() == ["d", "a", "b", "e"]
    pool.load("f", picture(8, 8))  # 256 bytes: two are evicted
    assert pool.keys() == ["b", "e", "f"]
    assert (pool.evictions, pool.bytes) == (3, 512)


def test_textures_in_use_are_not_evicted():
    pool = TexturePool(3 * 128)
    a = pool.load("a", picture()).retain()
    b = pool.load("b", picture()).retain().retain()
    pool.load("c", picture())
    pool.load("d", picture())
    assert pool.keys() == ["a", "b", "d"]
    before = pool.keys()
    with pytest.raises(dala.errors.BufferTooLarge, match="256 are in use"):
        pool.load("e", picture(8, 8))
    assert pool.keys() == before  # nothing was evicted
    b.release()
    assert b.in_use
    b.release()
    assert not b.in_use
    pool.load("e", picture(8, 8))
    assert pool.keys() == ["a", "e"]
    a.release()
    with pytest.raises(dala.errors.ParameterError, match="more often"):
        a.release()


def test_texture_above_the_budget():
    pool = TexturePool(500)
    pool.load("a", picture())
    with pytest.raises(
        dala.errors.BufferTooLarge, match="1,024 bytes, more than the budget of 500"
    ):
        pool.load("big", picture(16, 16))
    assert pool.keys() == ["a"]
    assert pool.bytes == 128


@given(
    budget=st.integers(1, 40),
    steps=st.lists(
        st.tuples(st.sampled_from(["load", "retain", "release", "remove", "update"]),
                  st.integers(0, 6), st.integers(1, 12)),
        max_size=60,
    ),
)  # fmt: skip
def test_against_a_model(budget, steps):
    pool = TexturePool(budget * 4)
    model: dict[int, int] = {}  # key to pixels, the oldest first
    held: dict[int, list] = {}
    for act, key, size in steps:
        pixels = np.full((1, size, 4), key, np.uint8)
        if act == "load" or (act == "update" and key in model):
            if act == "load" and key in model:
                model[key] = model.pop(key)
                assert pool.load(key, pixels).width == model[key]
                continue
            used = {
                k for k in model if any(t.in_use for t in held.get(k, []) if t is pool._held[k])
            }
            others = [k for k in model if k != key]
            short = sum(model[k] for k in others) + size - budget
            gone = []
            for k in others:
                if short > 0 and k not in used:
                    gone.append(k)
                    short -= model[k]
            call = pool.load if act == "load" else pool.update
            if short > 0:
                with pytest.raises(dala.errors.BufferTooLarge):
                    call(key, pixels)
                continue
            for k in gone:
                del model[k]
            model.pop(key, None)
            model[key] = size
            assert call(key, pixels).array.tolist() == pixels.tolist()
        elif act == "retain" and key in model:
            model[key] = model.pop(key)
            held.setdefault(key, []).append(pool.get(key).retain())
        elif act == "release" and held.get(key):
            held[key].pop().release()
        elif act == "remove":
            assert pool.remove(key) is (model.pop(key, None) is not None)
        assert pool.keys() == list(model)
        assert pool.bytes == 4 * sum(model.values()) <= budget * 4


def test_update_in_place():
    pool = TexturePool(1000)
    made = pool.load("a", picture())
    version, other = made.version, picture(3, 5)
    assert pool.update("a", other) is made
    assert made.version != version
    np.testing.assert_array_equal(made.array, other)
    assert pool.bytes == 60
    with pytest.raises(dala.errors.ParameterError, match="no texture 'b'"):
        pool.update("b", other)


def test_on_a_device(engine_id, dala_device):
    pool = TexturePool(1000, device=dala_device)
    pixels = picture()
    made = pool.load("a", pixels)
    assert made.buffer is made.buffer
    assert made.buffer.device == dala_device
    np.testing.assert_array_equal(made.buffer.numpy(), pixels)
    other = picture()
    pool.update("a", other)
    np.testing.assert_array_equal(made.buffer.numpy(), other)


def test_removed_textures_stay_valid():
    pool = TexturePool(1000)
    pixels = picture()
    made = pool.load("a", pixels).retain()
    pool.clear()
    assert (len(pool), pool.bytes) == (0, 0)
    np.testing.assert_array_equal(made.array, pixels)
    made.release()


def test_closing():
    with TexturePool(1000) as pool:
        pool.load("a", picture())
    pool.close()
    assert len(pool) == 0
    with pytest.raises(dala.errors.FreedError, match="closed"):
        pool.load("a", picture())


def test_threads_load_a_picture_once():
    class Slow:
        reads = 0

        def __array__(self, dtype=None, copy=None):
            Slow.reads += 1
            time.sleep(0.05)
            return np.zeros((2, 2, 4), np.uint8)

    pool, found = TexturePool(1000), []
    source = Slow()
    threads = [
        threading.Thread(target=lambda: found.append(pool.load("a", source))) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Slow.reads == 1
    assert len({id(t) for t in found}) == 1
    assert (pool.hits, pool.misses) == (5, 1)


def test_counts_with_many_threads():
    pool = TexturePool(20 * 16)
    start = threading.Barrier(4)

    def work(seed):
        rng = np.random.default_rng(seed)
        start.wait()
        for _ in range(300):
            key = int(rng.integers(0, 40))
            texture = pool.load(key, np.full((1, 4, 4), key, np.uint8)).retain()
            assert texture.array[0, 0, 0] == key
            texture.release()
            if key % 7 == 0:
                pool.remove(key)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert pool.bytes == 16 * len(pool) <= pool.budget
    assert pool.hits + pool.misses == 1200


@pytest.mark.parametrize("budget", [0, -1, 1.5, True, "1 GB", None])
def test_invalid_budgets(budget):
    with pytest.raises(dala.errors.ParameterError, match="budget_bytes"):
        TexturePool(budget)


def test_invalid_sources(tmp_path):
    pool = TexturePool(1000)
    (tmp_path / "text.png").write_text("no picture")
    for key, source, message in (
        ("logo", None, "no texture 'logo'"),
        (("a", 1), None, "no texture"),
        ("a", 3.5, "a picture must be"),
        ("a", np.zeros((2, 2, 2), np.uint8), "shape"),
        ("a", np.zeros((0, 2, 3), np.uint8), "must have pixels"),
        ("a", np.zeros((2, 2, 3), np.int64), "int64"),
        ("a", tmp_path / "text.png", "cannot be read as a picture"),
        ([1], picture(), "key must be hashable, got list"),
    ):
        with pytest.raises(dala.DalaError, match=message):
            pool.load(key, source)
    with pytest.raises(FileNotFoundError):
        pool.load("a", tmp_path / "none.png")
    assert (len(pool), pool.bytes) == (0, 0)
    pool.load("a", picture())  # a failed load does not block the key
