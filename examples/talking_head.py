"""A talk: a full-screen picture, the speaker in a corner, a title and captions.

python examples/talking_head.py                 # out/talking_head.png and out/talking_head.mp4
python examples/talking_head.py --show window   # plays it
"""

from __future__ import annotations

import sys

import numpy as np
from running import run

from dala import samples
from dala.media import Scene

WIDTH, HEIGHT = 960, 540
SECONDS, MOMENT = 8.0, 3.0
CREAM, ORANGE = "#fff4e2", "#ff8a3d"

WORDS = """WEBVTT

00:00.600 --> 00:02.600
On the ground, foam floats on top.

00:02.600 --> 00:05.200
In orbit there is no top, so an espresso
is foam all the way through.

00:05.400 --> 00:07.600
You drink it from a bag, and miss the smell.
"""


def shade() -> np.ndarray:
    """Return a dark gradient at the upper and lower edges, as a background for text."""
    down = np.linspace(0, 1, 64)
    strength = np.clip(0.72 - down * 2.0, 0, 1) + np.clip((down - 0.5) * 1.7, 0, 0.8)
    picture = np.zeros((64, 1, 4), np.uint8)
    picture[..., :3] = (18, 8, 4)
    picture[:, 0, 3] = strength * 255
    return picture


def speaker(photo: np.ndarray, seconds: float) -> np.ndarray:
    """Return the frame of a handheld camera at a time."""
    x = 90 + round(6 * np.sin(seconds * 1.1) + 3 * np.sin(seconds * 2.7))
    y = 12 + round(4 * np.sin(seconds * 1.7))
    return photo[y : y + 230, x : x + 300]


def build(device: str | None = None) -> Scene:
    """Return the scene; the caller closes it."""
    scene = Scene(WIDTH, HEIGHT, background="#1a0d08", fps=30, device=device)
    scene.duration = SECONDS
    cup = scene.add_image(
        samples.photo("coffee", device="cpu"),
        size=(WIDTH, HEIGHT),
        fit="cover",
        crop=(30, 30, 540, 304),
    )
    scene.add_animation(cup, "crop", (30, 30, 540, 304), (110, 24, 420, 236), SECONDS, "sine")
    scene.add_image(shade(), size=(WIDTH, HEIGHT))

    photo = np.asarray(samples.photo("astronaut", device="cpu"))[..., :3].copy()
    scene.add_video(
        lambda seconds: speaker(photo, seconds),
        pip=True, pip_position="bottom-right", pip_size=(252, 194), margin=28,
        radius=18, border=(4, CREAM), shadow=(0, 10, 34, (0, 0, 0, 190)),
    )  # fmt: skip

    mark = scene.add_overlay(color=ORANGE, shape="pill", position=(36, 41), size=(6, 56))
    scene.add_animation(mark, "height", 0, 56, 0.5, "cubic-out", delay=0.2)
    for text, y, delay, style in (
        ("Coffee in orbit", 28, 0.3, {"size": 46, "weight": "bold", "color": CREAM}),
        ("what gravity does for breakfast", 79, 0.5, {"size": 22, "color": "#ffdcb4"}),
    ):
        line = scene.add_text(text, position=(58, y), shadow=(0, 2, 8, (0, 0, 0, 160)), **style)
        scene.add_animation(line, "opacity", 0, 1, 0.5, delay=delay)
        scene.add_animation(line, "x", 34, 58, 0.6, "cubic-out", delay=delay)

    scene.add_subtitles(
        WORDS, size=27, weight="semibold", color="white", outline_width=0, align="left",
        background=(20, 10, 6, 190), padding=(18, 12), radius=14,
        anchor="bottom-left", position=(36, HEIGHT - 36),
    )  # fmt: skip
    return scene


def main(arguments: list[str] | None = None) -> int:
    """Write a picture and the video, or play it."""
    return run(build, arguments, moment=MOMENT)


if __name__ == "__main__":
    sys.exit(main())
