"""Four videos on a wall, two by two, with names; the speaker has a bright border.

python examples/wall.py                 # out/wall.png and out/wall.mp4
python examples/wall.py --show window   # plays it
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from running import run

from dala import samples
from dala.media import Scene

WIDTH, HEIGHT = 960, 540
SECONDS, MOMENT = 8.0, 1.6
MARGIN, GAP, ROUND = 18, 14, 18
MINT, SLATE = "#3fe0b0", "#3a4566"

Video = Callable[[float], np.ndarray]


def handheld(name: str, size: tuple[int, int], at: tuple[int, int], phase: float) -> Video:
    """Return the frame of a handheld camera in front of a photograph."""
    photo = np.asarray(samples.photo(name, device="cpu"))[..., :3].copy()
    width, height = size

    def frame(seconds: float) -> np.ndarray:
        x = at[0] + round(5 * np.sin(seconds * 0.9 + phase) + 2 * np.sin(seconds * 2.3))
        y = at[1] + round(4 * np.sin(seconds * 1.3 + phase))
        return photo[y : y + height, x : x + width]

    return frame


def harbour(seconds: float) -> np.ndarray:
    """Return the frame of a sun above waves."""
    y, x = np.mgrid[0:216, 0:384].astype(np.float32)
    v = (y / 216)[..., None]
    picture = (1 - v) * np.float32([44, 52, 120]) + v * np.float32([255, 176, 120])
    far = np.hypot(x - 262, y - 104)
    glow = np.exp(-far / 46)[..., None] * 0.7
    sun = np.clip(30 - far, 0, 1)[..., None]
    picture += (np.float32([255, 226, 160]) - picture) * np.maximum(glow, sun)
    for n in range(6):
        crest = (
            120 + 17 * n + (2 + n) * np.sin(x / (58 - 5 * n) + seconds * (0.8 + 0.25 * n) + 2 * n)
        )
        inside = np.clip(y - crest, 0, 1)[..., None]
        water = np.float32([72, 88, 150]) * (1 - 0.13 * n) + np.float32([60, 30, 0]) * (1 - n / 6)
        shine = np.exp(-np.abs(x - 262) / (26 + 5 * n))[..., None] * (0.35 - 0.04 * n)
        picture += (water + (np.float32([255, 214, 150]) - water) * shine - picture) * inside
    return np.clip(picture, 0, 255).astype(np.uint8)


def build(device: str | None = None) -> Scene:
    """Return the scene; the caller closes it."""
    scene = Scene(WIDTH, HEIGHT, background="#0d1220", fps=30, device=device)
    scene.duration = SECONDS
    people = (
        ("Eileen", handheld("astronaut", (400, 220), (50, 5), 0.0)),
        ("Chelsea", handheld("chelsea", (400, 230), (22, 20), 1.5)),
        ("the kitchen", handheld("coffee", (540, 300), (30, 34), 3.0)),
        ("the harbour", harbour),
    )
    area = (MARGIN, MARGIN, WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN)
    videos = [
        scene.add_video(video, id=name, radius=ROUND, border=(2, SLATE)) for name, video in people
    ]
    cells = scene.grid(videos, GAP, area=area, fit="cover")
    for video, (left, top, _width, height) in zip(videos, cells, strict=True):
        scene.add_text(
            video.id, size=19, weight="semibold", background=(10, 14, 26, 170), padding=(14, 6),
            radius=16, anchor="bottom-left", position=(left + 14, top + height - 14),
        )  # fmt: skip

    for number, begin in ((0, 0.8), (1, 3.2), (3, 5.6)):  # who speaks, and since when
        speaks = videos[number]
        for name, quiet, loud in (("border_width", 2, 6), ("border_color", SLATE, MINT)):
            scene.add_animation(speaks, name, quiet, loud, 0.25, "cubic-out", delay=begin)
            scene.add_animation(speaks, name, loud, quiet, 0.25, "cubic-out", delay=begin + 2.4)
    return scene


def main(arguments: list[str] | None = None) -> int:
    """Write a picture and the video, or play it."""
    return run(build, arguments, moment=MOMENT)


if __name__ == "__main__":
    sys.exit(main())
