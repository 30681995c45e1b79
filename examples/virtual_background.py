"""A virtual background: a person before a flag, and the same person under the northern lights.

python examples/virtual_background.py                 # out/virtual_background.png and .mp4
python examples/virtual_background.py --show window   # plays it
"""

from __future__ import annotations

import math
import sys

import numpy as np
from running import run
from titles import Sky

from dala import samples
from dala.media import Scene, gpu
from dala.ml import Background

SIZE, SECONDS = (960, 540), 6.0


def camera(seconds: float) -> np.ndarray:
    """Return what a handheld camera sees at a time: an astronaut."""
    photo = np.asarray(samples.photo("astronaut", device="cpu"))[..., :3]
    x, y = 14 + round(12 * math.sin(seconds)), 6 + round(5 * math.sin(seconds * 1.7))
    return np.ascontiguousarray(photo[y : y + 460, x : x + 409])


def build(device: str | None = None, size: tuple[int, int] = SIZE) -> Scene:
    """Return the scene; the caller closes it."""
    width, height = size
    half, elsewhere = width // 2, Sky(409, 460, device)(2.0)
    people = Background(background=gpu.brightness(elsewhere, value=0.06), device=device)
    scene = Scene(width, height, fps=25, device=device)
    scene.duration = SECONDS
    scene.add_video(camera, fps=25, size=(half, height), fit="cover")
    scene.add_video(
        lambda seconds: people.process(camera(seconds)), fps=25, size=(half, height),
        position=(half, 0), fit="cover",
    )  # fmt: skip
    scene.add_overlay(color="white", size=(2, height), position=(half - 1, 0))
    return scene


if __name__ == "__main__":
    sys.exit(run(build, moment=1.0))
