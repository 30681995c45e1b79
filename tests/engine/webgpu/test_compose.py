"""Compositing on WebGPU: arenas, the ring, submits, closing; and on the null engine.

The pixels of draws are tested for all engines in ``tests/engine/ops/test_compositing.py``.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dala
from dala import memory, resources
from dala.errors import BufferTooLarge, DeviceLostError, FreedError, MemoryLimitExceeded
from dala.gpu.compute import buffer_zeros, from_array
from dala.gpu.compute.composite import DRAW, FILL, OPAQUE, PICTURE, SHADOW, Compositor
from dala.gpu.compute.engines import auto
from dala.gpu.compute.engines.null import NullEngine
from dala.gpu.compute.engines.webgpu import adapters
from dala.gpu.compute.engines.webgpu.compose import composer as webgpu_compose
from dala.gpu.compute.engines.webgpu.compose.arena import Arena, aligned
from dala.gpu.compute.engines.webgpu.compose.composer import WebGPUComposer
from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine
from tests.support.engines import NO_ADAPTER

ADAPTERS = adapters.list_adapters()
IDS = [a.backend.lower() for a in ADAPTERS]

needs_webgpu = pytest.mark.skipif(not ADAPTERS, reason=NO_ADAPTER)


@pytest.fixture(params=ADAPTERS, ids=IDS)
def device(request: pytest.FixtureRequest) -> str:
    return request.param.id


@pytest.fixture
def compositor(device: str) -> Iterator[Compositor]:
    with Compositor(device) as made:
        yield made


def make_engine(adapter: adapters.Adapter) -> WebGPUEngine:
    return WebGPUEngine(adapter)


def composer_with(engine: WebGPUEngine, limit: int | None = None) -> WebGPUComposer:
    return WebGPUComposer(engine, engine._owner, engine._device, limit)


def noise(seed: int, height: int, width: int, channels: int = 4) -> Any:
    shape = (height, width) if channels == 1 else (height, width, channels)
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


def rgba(pixels: Any) -> Any:
    """Return a picture of one or three channels as RGBA, opaque, so that drawing it copies it."""
    full = np.full((*pixels.shape[:2], 4), 255, np.uint8)
    full[..., :3] = pixels[..., None] if pixels.ndim == 2 else pixels[..., :3]
    return full


def draw_at(
    x: float, y: float, width: float, height: float, *, number: int = 0, kind: int = PICTURE,
    **fields: Any,
) -> Any:  # fmt: skip
    """Return a draw that fills a rectangle from its top left corner."""
    draw = np.zeros((), DRAW)
    values = {
        "kind": kind, "picture": number, "cos": 1, "opacity": 1, "color": 255,
        "x0": np.floor(x), "y0": np.floor(y), "x1": np.ceil(x + width), "y1": np.ceil(y + height),
        "cx": x + width / 2, "cy": y + height / 2, "hw": width / 2, "hh": height / 2,
        "sx": 1, "sy": 1, "u1": width, "v1": height, "taps_x": 1, "taps_y": 1,
    }  # fmt: skip
    for name, value in (values | fields).items():
        draw[name] = value
    return draw


def shown(compositor: Compositor, picture: Any) -> Any:
    """Return the pixels of a picture."""
    target = buffer_zeros((picture.height, picture.width, 4), "u8", device=compositor.device)
    draw = draw_at(0, 0, picture.width, picture.height, number=picture.number)
    compositor.compose(target, np.stack([draw]))
    return target.numpy()


# values ------------------------------------------------------------------------------------------


def random_draws(rng: Any, numbers: list[int], sizes: list[tuple[int, int]], count: int) -> Any:
    """Return draws of all kinds, rotated, scaled, blended, some in linear light."""
    draws = np.zeros(count, DRAW)
    for draw in draws:
        which = int(rng.integers(len(numbers)))
        width, height = sizes[which]
        w, h = rng.uniform(3, 70, 2)
        angle = float(rng.choice([0.0, rng.uniform(0, 6)]))
        cx, cy = rng.uniform(0, 90), rng.uniform(0, 60)
        reach = np.hypot(w, h) / 2 + 30
        sx, sy = width / w, height / h
        kind = int(rng.integers(5))
        for name, value in {
            "kind": kind, "blend": int(rng.choice([0, 0, 0, *range(13)])),
            "flags": int(rng.choice([0, 0, 0, 4])), "picture": numbers[which],
            "x0": cx - reach, "y0": cy - reach, "x1": cx + reach, "y1": cy + reach,
            "cx": cx, "cy": cy, "cos": np.cos(angle), "sin": np.sin(angle),
            "hw": w / 2, "hh": h / 2, "radius": float(rng.choice([0.0, rng.uniform(0, 20)])),
            "width": rng.uniform(0.5, 9), "sx": sx, "sy": sy, "u1": width, "v1": height,
            "taps_x": max(1, int(np.ceil(sx / 2))), "taps_y": max(1, int(np.ceil(sy / 2))),
            "color": rng.integers(0, 256, 4), "opacity": float(rng.choice([1.0, rng.random()])),
        }.items():  # fmt: skip
            draw[name] = value
    return draws


def composed(device: str, pictures: list[Any], seed: int, count: int, **options: Any) -> Any:
    with Compositor(device) as compositor:
        kept = [compositor.picture(p) for p in pictures]
        rng = np.random.default_rng(seed)
        draws = random_draws(
            rng, [p.number for p in kept], [(p.width, p.height) for p in kept], count
        )
        target = from_array(noise(seed, 61, 93), device=device)
        compositor.compose(target, draws, **options)
        return target.numpy().astype(int)


def assert_near(got: Any, expected: Any) -> None:
    """Assert equality within two steps, ignoring the color of transparent pixels."""
    unseen = (got[..., 3] == 0) & (expected[..., 3] == 0)
    off = np.where(unseen, 0, np.abs(got - expected).max(axis=2))
    assert off.max() <= 2, f"{off.max()} at {np.argwhere(off > 2)[0]} of {(off > 2).sum()}"


@pytest.mark.parametrize("seed", range(4))
def test_scenes_match_the_reference(device: str, seed: int) -> None:
    pictures = [noise(1, 20, 31), noise(2, 45, 27, 3), noise(3, 9, 9, 1)]
    backgrounds: list[Any] = [None, (0, 0, 0, 0), (9, 90, 200, 255), (255, 255, 255, 120)]
    options = {"background": backgrounds[seed], "rects": [(2, 3, 50, 60), (50, 11, 93, 61)]}
    got = composed(device, pictures, seed, 9, **options)
    assert_near(got, composed("reference", pictures, seed, 9, **options))


def test_draws_of_several_dispatches_are_in_order(compositor: Compositor) -> None:
    count = webgpu_compose.MAX_DRAWS * 2 + 3
    draws = np.stack([draw_at(0, 0, 8, 8, kind=FILL)] * count)
    draws["color"] = np.random.default_rng(1).integers(0, 256, (count, 4))
    draws["color"][:, 3] = 64
    targets = []
    for where in (compositor, Compositor("reference")):
        target = buffer_zeros((8, 8, 4), "u8", device=where.device)
        where.compose(target, draws, background=(10, 20, 30, 255))
        targets.append(target.numpy().astype(int))
    assert np.abs(targets[0] - targets[1]).max() <= 2
    assert len(np.unique(targets[0].reshape(-1, 4), axis=0)) == 1


def test_many_rectangles_are_one_dispatch_and_change_nothing_else(
    compositor: Compositor,
) -> None:
    before = noise(4, 200, 300)
    target = from_array(before, device=compositor.device)
    rects = [(x, y, x + 17, y + 9) for x in range(3, 270, 37) for y in range(1, 180, 23)]
    picture = compositor.picture(noise(5, 200, 300, 3))
    draw = draw_at(0, 0, 300, 200, number=picture.number, flags=OPAQUE)
    compositor.engine.synchronize()
    submitted = compositor.engine._device.calls.submitted
    compositor.compose(target, np.stack([draw]), rects)
    compositor.engine.synchronize()
    assert compositor.engine._device.calls.submitted == submitted + 1
    expected = before.copy()
    for x0, y0, x1, y1 in rects:
        expected[y0:y1, x0:x1] = rgba(noise(5, 200, 300, 3))[y0:y1, x0:x1]
    np.testing.assert_array_equal(target.numpy(), expected)


@pytest.mark.slow
def test_more_tiles_than_a_dispatch_dimension(compositor: Compositor) -> None:
    height, width = 4112, 4100
    assert -(-height // 16) * -(-width // 16) > 65535
    target = buffer_zeros((height, width, 4), "u8", device=compositor.device)
    corner = draw_at(width - 5, height - 3, 5, 3, kind=FILL, color=(9, 8, 7, 255))
    compositor.compose(target, np.stack([corner]), background=(1, 2, 3, 255))
    expected = np.empty((height, width, 4), np.uint8)
    expected[:] = 1, 2, 3, 255
    expected[-3:, -5:] = 9, 8, 7, 255
    assert np.array_equal(target.numpy(), expected)


def test_shadows_and_blend_modes_can_be_added_later(compositor: Compositor) -> None:
    """Adding them changes the shader, but not the result of other draws."""
    plain = draw_at(4, 4, 20, 20, kind=FILL, color=(200, 100, 50, 255))
    shadow = draw_at(0, 0, 32, 32, kind=SHADOW, hw=8, hh=8)
    shadow["width"] = 3
    multiply = draw_at(8, 8, 8, 8, kind=FILL, color=(128, 128, 128, 255), blend=2)
    lists = [[plain], [plain, shadow], [plain, shadow, multiply], [plain]]
    definition = Compositor("reference")
    for draws in lists:
        made = []
        for where in (compositor, definition):
            target = buffer_zeros((32, 32, 4), "u8", device=where.device)
            where.compose(target, np.stack(draws), background=(0, 0, 0, 255))
            made.append(target.numpy().astype(int))
        assert_near(*made)


# pictures ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("size", [(1, 1), (1, 5), (7, 3), (33, 64), (301, 403)])
def test_put_sets_the_pixels(compositor: Compositor, channels: int, size: tuple[int, int]) -> None:
    """From the host, small and large, and from a buffer, for any number of bytes."""
    pixels = noise(6, *size, channels)
    if channels == 4:
        pixels[..., 3] = 255
    expected = pixels if channels == 4 else rgba(pixels)
    neighbors = [compositor.picture(rgba(noise(n, 2, 3))) for n in range(2)]
    host = compositor.picture(pixels)
    resident = compositor.picture(from_array(pixels, device=compositor.device))
    np.testing.assert_array_equal(shown(compositor, host), expected)
    np.testing.assert_array_equal(shown(compositor, resident), expected)
    host.update(from_array(pixels[::-1].copy(), device=compositor.device))
    np.testing.assert_array_equal(shown(compositor, host), expected[::-1])
    for n, neighbor in enumerate(neighbors):
        np.testing.assert_array_equal(shown(compositor, neighbor), rgba(noise(n, 2, 3)))


def test_arenas_grow_and_keep_their_pictures(compositor: Compositor) -> None:
    pictures = [rgba(noise(n, 64 + n, 200)) for n in range(40)]
    kept, sizes = [], set()
    for pixels in pictures:
        kept.append(compositor.picture(pixels))
        sizes.add(compositor.nbytes)
    assert len(sizes) > 2  # it has grown
    for picture, pixels in zip(kept, pictures, strict=True):
        np.testing.assert_array_equal(shown(compositor, picture), pixels)
    held = sum(p.nbytes for p in pictures)
    assert held <= compositor.nbytes <= 2.5 * held + webgpu_compose.RING_BYTES


def test_freed_ranges_are_reused(compositor: Compositor) -> None:
    """A picture that changes its size a thousand times needs no more memory than at first."""
    rng = np.random.default_rng(3)
    still = compositor.picture(rgba(noise(1, 50, 50)))
    text = compositor.picture(rgba(noise(2, 20, 300)))
    compositor.picture(rgba(noise(2, 20, 300))).close()
    before, numbers = compositor.nbytes, set()
    for n in range(300):
        text.close()
        pixels = rgba(noise(n, 20, int(rng.integers(1, 400))))
        text = compositor.picture(pixels)
        numbers.add(text.number)
    np.testing.assert_array_equal(shown(compositor, text), pixels)
    np.testing.assert_array_equal(shown(compositor, still), rgba(noise(1, 50, 50)))
    assert compositor.nbytes <= before + webgpu_compose.RING_BYTES
    assert max(numbers) < 32


def test_scattered_pictures_are_packed_before_memory_grows(
    compositor: Compositor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webgpu_compose, "MIN_ARENA", 1 << 14)
    size = 64 * 64 * 4
    kept = [compositor.picture(rgba(noise(n, 64, 64))) for n in range(32)]
    before = compositor.nbytes
    for picture in kept[::2]:
        picture.close()
    rest = kept[1::2]
    large = compositor.picture(rgba(noise(99, 64 * 7, 64)))  # fits in none of the gaps
    assert compositor.nbytes <= before
    assert compositor.nbytes >= size * 23
    for n, picture in zip(range(1, 32, 2), rest, strict=True):
        np.testing.assert_array_equal(shown(compositor, picture), rgba(noise(n, 64, 64)))
    np.testing.assert_array_equal(shown(compositor, large), rgba(noise(99, 64 * 7, 64)))


def test_an_arena_that_is_nearly_empty_shrinks(
    compositor: Compositor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webgpu_compose, "SHRINK_BYTES", 1 << 20)
    kept = [compositor.picture(rgba(noise(n, 256, 256))) for n in range(16)]
    before = compositor.nbytes
    for picture in kept[:-1]:
        picture.close()
    np.testing.assert_array_equal(shown(compositor, kept[-1]), rgba(noise(15, 256, 256)))
    assert compositor.nbytes < before / 2
    again = compositor.picture(rgba(noise(77, 300, 300)))
    np.testing.assert_array_equal(shown(compositor, again), rgba(noise(77, 300, 300)))
    np.testing.assert_array_equal(shown(compositor, kept[-1]), rgba(noise(15, 256, 256)))


def test_pictures_use_several_buffers_if_one_is_too_small(device: str) -> None:
    engine = auto.get(device)
    assert isinstance(engine, WebGPUEngine)
    composer = composer_with(engine, limit=1 << 16)
    pictures = [rgba(noise(n, 64, 128)) for n in range(8)]  # two fill an arena
    numbers = []
    for pixels in pictures:
        numbers.append(composer.picture(128, 64))
        composer.put(numbers[-1], pixels, 4)
    assert composer.nbytes >= 4 << 16
    target = engine.allocate(8 * pictures[0].nbytes, zero=True)
    draws = [draw_at(0, 64 * n, 128, 64, number=number) for n, number in enumerate(numbers)]
    composer.compose(target, 128, 512, np.stack(draws), [(0, 0, 128, 512)], None)
    made = np.frombuffer(engine.download(target), np.uint8).reshape(8, 64, 128, 4)
    np.testing.assert_array_equal(made, np.stack(pictures))

    with pytest.raises(BufferTooLarge, match="4 buffers of at most 65536 bytes"):
        composer.picture(1, 1)
    composer.drop(numbers[5])
    again = composer.picture(128, 64)
    composer.put(again, pictures[0], 4)
    draws[5] = draw_at(0, 64 * 5, 128, 64, number=again)
    composer.compose(target, 128, 512, np.stack(draws), [(0, 0, 128, 512)], None)
    made = np.frombuffer(engine.download(target), np.uint8).reshape(8, 64, 128, 4)
    np.testing.assert_array_equal(made, np.stack([*pictures[:5], pictures[0], *pictures[6:]]))
    with pytest.raises(BufferTooLarge, match="Close pictures"):
        composer.picture(200, 200)
    engine.release(target)
    composer.close()


def test_a_picture_larger_than_every_buffer_is_refused(device: str) -> None:
    engine = auto.get(device)
    assert isinstance(engine, WebGPUEngine)
    composer = composer_with(engine, limit=1 << 16)
    with pytest.raises(BufferTooLarge, match="a picture of 160000 bytes"):
        composer.picture(200, 200)
    assert composer.nbytes == 0
    composer.close()


def test_a_closed_picture_cannot_be_drawn(compositor: Compositor) -> None:
    target = from_array(noise(1, 8, 8), device=compositor.device)
    picture = compositor.picture(rgba(noise(2, 8, 8)))
    draws = np.stack([draw_at(0, 0, 8, 8, number=picture.number)])
    picture.close()
    for number in (picture.number, -1, 10_000):
        draws["picture"] = number
        with pytest.raises(FreedError, match=f"draws refer to picture {number}, which was closed"):
            compositor.compose(target, draws, background=(0, 0, 0, 0))
    np.testing.assert_array_equal(target.numpy(), noise(1, 8, 8))


# memory limits -----------------------------------------------------------------------------------


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


# submits -----------------------------------------------------------------------------------------


def test_a_frame_with_small_pictures_and_groups_is_one_submit(compositor: Compositor) -> None:
    """Texts from the host; a group drawn into a buffer and from there into the frame."""
    engine = compositor.engine
    assert isinstance(engine, WebGPUEngine)
    group = buffer_zeros((40, 60, 4), "u8", device=compositor.device)
    target = buffer_zeros((40, 60, 4), "u8", device=compositor.device)
    text = compositor.picture(rgba(noise(0, 10, 20)))
    whole = compositor.picture(group)
    fresh = [rgba(noise(n, 10, 20)) for n in range(5)]
    for _ in range(2):  # the first iteration compiles
        engine.synchronize()
        before = engine._device.calls.submitted
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
            assert engine._device.calls.submitted == before
        engine.synchronize()
        assert engine._device.calls.submitted == before + 1
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


# closing -----------------------------------------------------------------------------------------


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
    engine._owner.call(engine._device.native.destroy)
    with pytest.raises(DeviceLostError):
        engine.synchronize()
        engine.download(target)
    for use in (
        lambda: composer.picture(2, 2),
        lambda: composer.put(number, noise(1, 8, 8), 4),
        lambda: composer.compose(target, 8, 8, np.zeros(0, DRAW), [(0, 0, 8, 8)], (0, 0, 0, 0)),
    ):
        with pytest.raises(DeviceLostError):
            use()
    composer.drop(number)
    composer.close()
    engine.close()


# the arena allocator -----------------------------------------------------------------------------


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


# null --------------------------------------------------------------------------------------------


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
