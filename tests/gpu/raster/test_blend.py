"""Source-over of spans, single pixels and sprites, against exact fractions."""

from __future__ import annotations

import random

import numpy as np
import pytest

from dala.gpu import command
from dala.gpu.raster import Canvas
from tests.support.raster_model import blend


def exact_over_opaque(d: np.ndarray, s: int, a: int) -> np.ndarray:
    """Return (s * a + d * (255 - a)) / 255, rounded (never a half: 255 is odd)."""
    return (2 * (s * a + d.astype(np.int64) * (255 - a)) + 255) // 510


def exact_over_any(d: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Return the result over translucent pixels, in 64-bit integers."""
    d, s = d.astype(np.int64), s.astype(np.int64)
    a, da = s[..., 3:], d[..., 3:]
    total = a * 255 + da * (255 - a)
    part = s[..., :3] * a * 255 + d[..., :3] * da * (255 - a)
    colors = (2 * part + total) // np.maximum(2 * total, 1)
    mixed = np.concatenate([colors, (2 * total + 255) // 510], axis=-1)
    return np.where(a == 0, d, np.where(a == 255, s, mixed))


def test_numpy_model_matches_fractions() -> None:
    rng = random.Random(1)
    for _ in range(3000):
        d, s = tuple(rng.randbytes(4)), tuple(rng.randbytes(4))
        if rng.random() < 0.3:
            d = (*d[:3], 255)
        assert tuple(exact_over_any(np.array(d), np.array(s)).tolist()) == blend(d, s)
        if d[3] == 255 and 0 < s[3] < 255:
            assert exact_over_opaque(np.array(d[0]), s[0], s[3]) == blend(d, s)[0]


@pytest.mark.parametrize("vertical", [False, True])
def test_color_over_every_opaque_value(vertical: bool) -> None:
    """All 255 alphas, all 256 backdrop values, and every fifth value of the color."""
    width, height = (52, 256) if vertical else (256, 52)
    canvas = Canvas(width, height)
    values = np.arange(256, dtype=np.uint8)
    below = values[:, None] if vertical else values[None, :]
    for a in range(1, 255, 3 if vertical else 1):
        canvas.pixels[..., :3] = below[..., None]
        canvas.pixels[..., 3] = 255
        wanted = canvas.pixels.copy()
        lines = []
        for n, s in enumerate(range(0, 256, 5)):
            color = (s, 255 - s, a, a)
            at = (n, 0, n, 255) if vertical else (0, n, 255, n)
            lines.append(command.encode_draw_line(*at, color))
            row = wanted[:, n] if vertical else wanted[n]
            for c in range(3):
                row[:, c] = exact_over_opaque(values, color[c], a)
        canvas.run(b"".join(lines))
        assert np.array_equal(canvas.pixels, wanted)


@pytest.mark.parametrize("seed", range(3))
def test_sprites_over_any_pixels(seed: int) -> None:
    rng = np.random.default_rng(seed)
    width, height = 640, 300
    canvas = Canvas(width, height)
    below = rng.integers(0, 256, (height, width, 4), dtype=np.uint8)
    above = rng.integers(0, 256, (height, width, 4), dtype=np.uint8)
    for pixels in (below, above):  # spans and single pixels with an alpha of 0 or 255
        kind = np.repeat(rng.integers(0, 4, (height, width // 20)), 20, axis=1)
        pixels[..., 3][kind == 0] = 255
        pixels[..., 3][kind == 1] = 0
        pixels[::7, ::5, 3] = 255
    canvas.pixels[...] = below
    canvas.load_sprite(3, above.tobytes(), width, height)
    canvas.run(command.encode_blit(3, 0, 0))
    assert np.array_equal(canvas.pixels, exact_over_any(below, above))


@pytest.mark.parametrize("a", [1, 77, 128, 254])
def test_color_over_any_pixels(a: int) -> None:
    rng = np.random.default_rng(a)
    canvas = Canvas(333, 100)
    below = rng.integers(0, 256, (100, 333, 4), dtype=np.uint8)
    below[:40, :, 3] = rng.choice(np.array([0, 255], np.uint8), (40, 333))
    canvas.pixels[...] = below
    color = (200, 3, 90, a)
    canvas.run(command.encode_fill_rect(0, 0, 333, 100, color))
    wanted = exact_over_any(below, np.broadcast_to(np.array(color), below.shape))
    assert np.array_equal(canvas.pixels, wanted)


def test_alpha_zero_changes_nothing() -> None:
    canvas = Canvas(20, 20)
    canvas.pixels[...] = 9
    none = (1, 2, 3, 0)
    canvas.run(
        command.encode_fill_rect(0, 0, 9, 9, none)
        + command.encode_draw_line(0, 0, 9, 5, none)
        + command.encode_fill_circle(9, 9, 5, none)
        + command.encode_draw_circle(9, 9, 5, none)
        + command.encode_fill_triangle(0, 0, 9, 9, 0, 9, none)
        + command.encode_fill_round_rect(0, 0, 9, 9, 3, none)
    )
    assert (canvas.pixels == 9).all()
    assert canvas.take_damage() == []
