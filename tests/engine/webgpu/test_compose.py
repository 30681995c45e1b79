"""Composing on WebGPU: values and pictures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dala.errors import BufferTooLarge, FreedError
from dala.gpu.compute import buffer_zeros, from_array
from dala.gpu.compute.composite import DRAW, FILL, OPAQUE, SHADOW, Compositor
from dala.gpu.compute.engines import auto
from dala.gpu.compute.engines.compositing import ComposedFrame
from dala.gpu.compute.engines.webgpu.compose import composer as webgpu_compose
from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine
from tests.engine.webgpu.composing import composer_with, draw_at, noise, rgba, shown

# values -------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("seed", range(4))
def test_scenes_match_the_reference(adapter_id: str, seed: int) -> None:
    pictures = [noise(1, 20, 31), noise(2, 45, 27, 3), noise(3, 9, 9, 1)]
    backgrounds: list[Any] = [None, (0, 0, 0, 0), (9, 90, 200, 255), (255, 255, 255, 120)]
    options = {"background": backgrounds[seed], "rects": [(2, 3, 50, 60), (50, 11, 93, 61)]}
    got = composed(adapter_id, pictures, seed, 9, **options)
    assert np.array_equal(got, composed("reference", pictures, seed, 9, **options))


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
    submitted = compositor.engine.device.calls.submitted
    compositor.compose(target, np.stack([draw]), rects)
    compositor.engine.synchronize()
    assert compositor.engine.device.calls.submitted == submitted + 1
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
        assert np.array_equal(*made)


# pictures -----------------------------------------------------------------------------------------


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


def test_pictures_use_several_buffers_if_one_is_too_small(adapter_id: str) -> None:
    engine = auto.get(adapter_id)
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
    composer.compose(ComposedFrame(target, 128, 512, np.stack(draws), [(0, 0, 128, 512)], None))
    made = np.frombuffer(engine.download(target), np.uint8).reshape(8, 64, 128, 4)
    np.testing.assert_array_equal(made, np.stack(pictures))

    with pytest.raises(BufferTooLarge, match="4 buffers of at most 65536 bytes"):
        composer.picture(1, 1)
    composer.drop(numbers[5])
    again = composer.picture(128, 64)
    composer.put(again, pictures[0], 4)
    draws[5] = draw_at(0, 64 * 5, 128, 64, number=again)
    composer.compose(ComposedFrame(target, 128, 512, np.stack(draws), [(0, 0, 128, 512)], None))
    made = np.frombuffer(engine.download(target), np.uint8).reshape(8, 64, 128, 4)
    np.testing.assert_array_equal(made, np.stack([*pictures[:5], pictures[0], *pictures[6:]]))
    with pytest.raises(BufferTooLarge, match="Close pictures"):
        composer.picture(200, 200)
    engine.release(target)
    composer.close()


def test_a_picture_larger_than_every_buffer_is_refused(adapter_id: str) -> None:
    engine = auto.get(adapter_id)
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
