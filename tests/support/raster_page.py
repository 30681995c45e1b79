"""A page with every primitive; ``python -m tests.support.raster_page`` draws it again."""

from __future__ import annotations

import pathlib

import numpy as np

from dala.gpu import command
from dala.gpu.raster import Canvas
from dala.png import write_png

STORED = pathlib.Path(__file__).parents[1] / "gpu" / "raster_page.png"
WIDTH, HEIGHT = 480, 360
COLORS = ((220, 40, 50), (250, 180, 30), (60, 180, 75), (30, 130, 230), (150, 60, 200))


def shapes(x: int, y: int, alpha: int) -> bytes:
    """Return the commands of one row with all shapes."""
    c = [(*color, alpha) for color in COLORS]
    parts = [
        command.encode_fill_rect(x, y, 50, 40, c[0]),
        command.encode_fill_rect(x + 20, y + 20, 50, 40, c[1]),
        command.encode_fill_circle(x + 110, y + 30, 28, c[2]),
        command.encode_draw_circle(x + 130, y + 30, 28, c[3]),
        command.encode_fill_triangle(x + 170, y + 58, x + 200, y, x + 230, y + 40, c[4]),
        command.encode_draw_triangle(x + 180, y + 4, x + 236, y + 20, x + 190, y + 58, c[0]),
        command.encode_fill_round_rect(x + 250, y, 60, 40, 12, c[1]),
        command.encode_draw_round_rect(x + 270, y + 14, 60, 44, 16, c[3]),
    ]
    for k in range(12):
        parts.append(
            command.encode_draw_line(x + 390, y + 29, x + 350 + 7 * k, y + 58 * (k % 2), c[k % 5])
        )
    return b"".join(parts)


def draw() -> np.ndarray:
    """Return the pixels of the page."""
    canvas = Canvas(WIDTH, HEIGHT)
    u, v = np.meshgrid(np.arange(24), np.arange(16))
    photo = np.stack([u * 10, v * 15, 255 - u * 5 - v * 5, np.full_like(u, 255)], axis=2)
    soft = photo.copy()
    soft[..., 3] = np.clip(380 - 34 * np.hypot(u - 11.5, (v - 7.5) * 1.5), 0, 255)
    canvas.load_image(1, photo.astype(np.uint8), 24, 16)
    canvas.load_image(2, soft.astype(np.uint8), 24, 16)
    canvas.load_sprite(1, soft.astype(np.uint8), 24, 16)
    parts = [
        command.encode_set_clip(0, 0, WIDTH, 270),
        command.encode_clear((245, 245, 240, 255)),
        command.encode_reset_clip(),  # the lowest part stays transparent
        command.encode_draw_circle(240, 500, 330, (0, 0, 0, 60)),
        command.encode_fill_circle(240, 700, 480, (120, 160, 200, 50)),
        shapes(20, 14, 255),
        shapes(20, 84, 110),
        command.encode_set_clip(20, 170, 370, 30),
        shapes(20, 154, 255),
        command.encode_draw_line(-(2**31), 100, 2**31 - 1, 270, (0, 0, 0, 255)),
        command.encode_reset_clip(),
        command.encode_image_blit(1, 20, 215, 120, 60),
        command.encode_image_blit(2, 150, 215, 120, 60),
        shapes(20, 285, 255),
        command.encode_image_blit(2, 420, 290, 90, 60),
    ]
    parts += [command.encode_blit(1, 280 + 9 * k, 215 + 4 * k) for k in range(12)]
    data = b"".join(parts)
    canvas.check(data)
    assert canvas.run(data) is None
    assert canvas.take_faults() == []
    return canvas.pixels


if __name__ == "__main__":
    write_png(STORED, draw())
