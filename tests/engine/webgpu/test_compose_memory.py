"""Composing on WebGPU: memory, submits, closing."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dala
from dala import memory, resources
from dala.errors import DeviceLostError, FreedError, MemoryLimitExceeded
from dala.gpu.compute import buffer_zeros, from_array
from dala.gpu.compute.composite import DRAW, Compositor
from dala.gpu.compute.engines import auto
from dala.gpu.compute.engines.compositing import ComposedFrame
from dala.gpu.compute.engines.null import NullEngine
from dala.gpu.compute.engines.scratch import Arena, aligned
from dala.gpu.compute.engines.webgpu import adapters
from dala.gpu.compute.engines.webgpu.compose import composer as webgpu_compose
from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine
from tests.engine.webgpu.by_hand import ADAPTERS
from tests.engine.webgpu.composing import composer_with, draw_at, noise, rgba, shown
from tests.support.engines import NO_ADAPTER

needs_webgpu = pytest.mark.skipif(not ADAPTERS, reason=NO_ADAPTER)


def make_engine(adapter: adapters.Adapter) -> WebGPUEngine:
    return WebGPUEngine(adapter)


# memory limits ------------------------------------------------------------------------------------


def arena_bytes() -> int:
    return resources.snapshot().get("arena", {"bytes": 0})["bytes"]


def test_the_room_of_arenas_counts_against_budgets(compositor: Compositor) -> None:
    before = arena_bytes()
    account = memory.Account("the scene", 24 << 20, "")
    compositor.accounts = (account,)
    pictures = [compositor.picture(rgba(noise(1, 1024, 1024)))]  # 4 MiB, in an arena of 8 MiB
    spare = compositor.nbytes - pictures[0].nbytes - webgpu_compose.UNCOUNTED
    assert arena_bytes() - before == spare >= 2 << 20
    assert account.used == pictures[0].nbytes + spare
    # Near the limit there is no room to grow, and nothing is copied to a larger arena.
    pictures += [compositor.picture(rgba(noise(n, 1024, 1024))) for n in range(2, 5)]
    assert account.used <= account.limit
    assert compositor.nbytes <= account.limit + webgpu_compose.UNCOUNTED
    held = account.used
    with pytest.raises(MemoryLimitExceeded, match="Scene: needs"):
        compositor.picture(rgba(noise(9, 2048, 2048)))
    assert account.used == held
    for n, picture in enumerate(pictures, 1):
        np.testing.assert_array_equal(shown(compositor, picture), rgba(noise(n, 1024, 1024)))
    for picture in pictures:
        picture.close()
    compositor.close()
    assert arena_bytes() == before
    assert account.used == 0


# submits ------------------------------------------------------------------------------------------


def test_a_frame_with_small_pictures_and_groups_is_one_submit(compositor: Compositor) -> None:
    """Texts from the host; a group drawn into a buffer and from there into the frame."""
    engine = compositor.engine
    assert isinstance(engine, WebGPUEngine)
    group = buffer_zeros((40, 60, 4), "u8", device=compositor.device)
    target = buffer_zeros((40, 60, 4), "u8", device=compositor.device)
    text = compositor.picture(rgba(noise(0, 10, 20)))
    whole = compositor.picture(group)
    fresh = [rgba(noise(n, 10, 20)) for n in range(5)]
    for first in (True, False):  # compiles, and learns how long calls take
        engine.synchronize()
        before = engine.device.calls.submitted
        with compositor.batched():
            for n, pixels in enumerate(fresh):
                text.update(pixels)
                draw = draw_at(3, 4 + n * 5, 20, 10, number=text.number)
                compositor.compose(
                    group, np.stack([draw]), background=None if n else (0, 0, 0, 255)
                )
            whole.update(group)
            compositor.compose(target, np.stack([draw_at(0, 0, 60, 40, number=whole.number)]))
            engine.stats()  # waits for the owner
            assert first or engine.device.calls.submitted == before
        engine.synchronize()
        assert first or engine.device.calls.submitted == before + 1
    expected = rgba(np.zeros((40, 60, 3), np.uint8))
    for n, pixels in enumerate(fresh):
        expected[4 + n * 5 : 14 + n * 5, 3:23] = pixels
    np.testing.assert_array_equal(target.numpy(), expected)


def test_the_ring_may_wrap_before_a_submit(compositor: Compositor) -> None:
    pixels = [rgba(noise(n, 64, 1000)) for n in range(12)]  # nearly the largest for the ring
    picture = compositor.picture(pixels[0])
    target = buffer_zeros((64 * 12, 1000, 4), "u8", device=compositor.device)
    with compositor.batched():
        for n, one in enumerate(pixels):
            copy = one.copy()
            picture.update(copy)
            compositor.compose(
                target, np.stack([draw_at(0, 64 * n, 1000, 64, number=picture.number)])
            )
            picture.update(pixels[n - 1])
            copy[:] = 0  # the update has released it
    np.testing.assert_array_equal(target.numpy(), np.concatenate(pixels))


def test_device_buffers_are_not_downloaded(
    compositor: Compositor, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = compositor.engine
    source = from_array(noise(1, 400, 500, 3), device=compositor.device)
    target = buffer_zeros((400, 500, 4), "u8", device=compositor.device)
    picture = compositor.picture(source)
    moved: list[str] = []
    with monkeypatch.context() as patch:
        for name in ("upload", "download", "download_async"):
            patch.setattr(engine, name, lambda *_, name=name: moved.append(name))
        picture.update(source)
        compositor.compose(target, np.stack([draw_at(0, 0, 500, 400, number=picture.number)]))
        engine.synchronize()
    assert moved == []
    np.testing.assert_array_equal(target.numpy(), rgba(noise(1, 400, 500, 3)))


def test_a_picture_keeps_the_pixels_of_its_put(compositor: Compositor) -> None:
    """Later changes to the buffer do not affect the picture."""
    source = from_array(rgba(noise(1, 30, 30)), device=compositor.device)
    picture = compositor.picture(source)
    with compositor.batched():
        picture.update(source)
        compositor.compose(source, np.zeros(0, DRAW), background=(1, 2, 3, 4))
    np.testing.assert_array_equal(shown(compositor, picture), rgba(noise(1, 30, 30)))
    assert source.numpy()[5, 5].tolist() == [1, 2, 3, 4]


# closing ------------------------------------------------------------------------------------------


@needs_webgpu
def test_memory_is_released_when_closed_or_collected() -> None:
    engine = make_engine(ADAPTERS[0])
    try:
        engine.synchronize()
        before = engine.stats()["live_bytes"]
        for end in ("close", "collect"):
            composer = composer_with(engine)
            number = composer.picture(500, 500)
            composer.put(number, noise(1, 500, 500), 4)
            assert engine.stats()["live_bytes"] - before >= composer.nbytes >= 1_000_000
            if end == "close":
                composer.close()
                composer.close()
                assert composer.nbytes == 0
                composer.drop(number)
                with pytest.raises(FreedError, match="was closed"):
                    composer.picture(1, 1)
            del composer
            gc.collect()
            assert engine.stats()["live_bytes"] == before
    finally:
        engine.close()


@needs_webgpu
def test_a_lost_device_raises_and_closing_does_not() -> None:
    engine = make_engine(ADAPTERS[0])
    composer = composer_with(engine)
    number = composer.picture(8, 8)
    target = engine.allocate(256, zero=True)
    engine.synchronize()
    engine.owner.call(engine.device.native.destroy)
    with pytest.raises(DeviceLostError):
        engine.synchronize()
        engine.download(target)
    for use in (
        lambda: composer.picture(2, 2),
        lambda: composer.put(number, noise(1, 8, 8), 4),
        lambda: composer.compose(
            ComposedFrame(target, 8, 8, np.zeros(0, DRAW), [(0, 0, 8, 8)], (0, 0, 0, 0))
        ),
    ):
        with pytest.raises(DeviceLostError):
            use()
    composer.drop(number)
    composer.close()
    engine.close()


# the arena allocator ------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(1, 90)), max_size=80))
def test_ranges_of_an_arena_never_overlap(steps: list[tuple[bool, int]]) -> None:
    arena, mine = Arena(1000), dict[int, int]()
    for taking, size in steps:
        if taking:
            start, need = arena.take(size), aligned(size)
            ends = [0, *(s + aligned(mine[s]) for s in sorted(mine))]
            holes = [end - begin for begin, end in zip(ends, [*sorted(mine), 1000], strict=True)]
            if start is None:
                assert max(holes) < need
                continue
            assert start % 4 == 0
            assert start + need <= 1000
            assert all(start + need <= s or s + aligned(n) <= start for s, n in mine.items())
            mine[start] = size
        elif mine:
            start = sorted(mine)[size % len(mine)]
            arena.give(start, mine.pop(start))
        assert arena.used == sum(map(aligned, mine.values()))
    for start, size in mine.items():
        arena.give(start, size)
    assert arena.take(1000) == 0  # all of it is one range again


# null ---------------------------------------------------------------------------------------------


def test_the_null_engine_records_draws() -> None:
    engine = auto.get("null")
    assert isinstance(engine, NullEngine)
    engine.log.clear()
    with dala.device("null"), Compositor() as compositor:
        target = buffer_zeros((20, 30, 4), "u8")
        picture = compositor.picture(noise(1, 4, 5, 3))
        from_buffer = compositor.picture(buffer_zeros((4, 5, 4), "u8"))
        draws = np.stack([draw_at(0, 0, 5, 4, number=picture.number)])
        compositor.compose(target, draws, [(0, 0, 8, 8), (9, 9, 90, 90)], background=(1, 2, 3, 4))
        draws["picture"] = 77  # the log has a copy
    puts, composes = engine.calls("put"), engine.calls("compose")
    assert [(c.dims, c.params, len(c.storages)) for c in puts] == [
        ((4, 5, 3), (picture.number,), 0),
        ((4, 5, 4), (from_buffer.number,), 1),
    ]
    assert len(composes) == 1
    drawn, rects, background = composes[0].params
    assert drawn["picture"].tolist() == [picture.number]
    assert rects == ((0, 0, 8, 8), (9, 9, 30, 20))
    assert background == (1, 2, 3, 4)
    assert composes[0].dims == (20, 30, 4)
