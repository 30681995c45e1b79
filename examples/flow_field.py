"""A generative drawing: forty thousand strokes follow a field of soft noise.

python examples/flow_field.py                 # out/flow_field.png and out/flow_field.mp4
python examples/flow_field.py --show window   # watch it being drawn
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
from running import run

from dala import gpu
from dala.gpu import command
from dala.media import Scene
from dala.media import gpu as filters

SIZE, SECONDS, FPS = (960, 540), 8.0, 30
PAPER = (246, 239, 226)
INKS = ((18, 52, 86), (22, 92, 125), (214, 89, 61), (238, 169, 68), (119, 47, 83))
STEPS = 240


def noise(shape: tuple[int, int], cells: int, seed: int) -> np.ndarray:
    """Return smooth noise from 0 to 1: a few random numbers, enlarged."""
    rows, columns = cells, round(cells * shape[1] / shape[0])
    grains = np.random.default_rng(seed).random((rows, columns), np.float32)
    return np.asarray(filters.resize(grains, *shape[::-1], method="bicubic", device="cpu"))


def strokes(width: int, height: int) -> Iterator[list[bytes]]:
    """Yield the strokes of one frame after another, as commands for a surface."""
    rng = np.random.default_rng(4)
    angle = 2.3 * np.pi * (noise((height, width), 4, 1) + 0.35 * noise((height, width), 10, 2))
    tint = noise((height, width), 3, 5)
    per_frame, pens = STEPS * 8 / (SECONDS * FPS), width * height // 1400
    x, y, color, left = (np.zeros(pens) for _ in range(4))
    done = 0.0
    for number in range(round(SECONDS * FPS)):
        lines = []
        while done < (number + 1) * per_frame:
            new = left <= 0
            count = int(new.sum())
            x[new], y[new] = rng.uniform(0, width, count), rng.uniform(0, height, count)
            left[new] = rng.integers(STEPS // 8, STEPS, count)
            row, column = y.astype(int).clip(0, height - 1), x.astype(int).clip(0, width - 1)
            shade = tint[row, column] * 1.6 - 0.3 + rng.normal(0, 0.07, pens)
            color = np.where(new, (shade * len(INKS)).clip(0, len(INKS) - 1), color)
            way = angle[row, column]
            to_x, to_y = x + 3 * np.cos(way), y + 3 * np.sin(way)
            for n in range(pens):
                ink = (*INKS[int(color[n])], 52)
                ends = (int(x[n]), int(y[n]), int(to_x[n]), int(to_y[n]))
                lines.append(command.encode_draw_line(*ends, ink))
            x, y, left = to_x, to_y, left - 1
            left[(x < -20) | (y < -20) | (x > width + 20) | (y > height + 20)] = 0
            done += 1
        yield lines


def pictures(width: int, height: int, device: str | None) -> Iterator[np.ndarray]:
    """Yield the drawing as it grows; it is drawn at twice its size, so that lines are smooth."""
    with gpu.create_surface(2 * width, 2 * height) as surface:
        surface.clear(PAPER)
        for lines in strokes(2 * width, 2 * height):
            surface.batch(lines)
            yield filters.resize(surface.to_array()[..., :3], width, height)


def build(device: str | None = None, size: tuple[int, int] = SIZE) -> Scene:
    """Return the scene; the caller closes it."""
    scene = Scene(*size, fps=FPS, device=device)
    scene.duration = SECONDS
    scene.add_video(pictures(*size, device), fps=FPS)
    return scene


if __name__ == "__main__":
    sys.exit(run(build, moment=SECONDS - 0.1, stepwise=True))
