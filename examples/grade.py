"""A video grade: pictures as flat as a camera records them, and the same with a look.

python examples/grade.py                 # out/grade.png and out/grade.mp4
python examples/grade.py --show window   # a line moves between the two
"""

from __future__ import annotations

import math
import sys
from itertools import pairwise

import numpy as np
from running import run

from dala import samples
from dala.media import FramePipeline, Scene, Transition, gpu

SIZE, SECONDS = (960, 540), 8.0

#: First what is wrong, then the look: teal shadows, golden lights, a lens and film.
GRADE = [
    ("levels", {"in_black": 0.16, "in_white": 0.80, "gamma": 1.08}),
    ("grade", {"lift": (-0.03, 0.0, 0.045), "gain": (1.06, 1.0, 0.92), "saturation": 0.12}),
    ("curves", {"master": [(0, 0), (0.22, 0.16), (0.75, 0.82), (1, 1)]}),
    ("vignette", {"amount": 0.55}),
    ("grain", {"amount": 0.012}),
]


class Camera:
    """A camera that moves slowly over a photograph, and records it flat."""

    def __init__(self, size: tuple[int, int], device: str | None) -> None:
        self.size, self.device = size, device
        photo = np.asarray(samples.photo("coffee", device="cpu"))
        self.photo = gpu.levels(photo, out_black=0.18, out_white=0.78, device="cpu")
        self.look = FramePipeline(*size, device=device)

    def flat(self, seconds: float) -> np.ndarray:
        """Return what the camera sees at a time."""
        width = 520 - 60 * math.sin(seconds / SECONDS * math.pi / 2)
        height = width * self.size[1] / self.size[0]
        x, y = 40 + 8 * math.sin(seconds), 50 + 5 * math.cos(seconds * 0.8)
        part = self.photo[int(y) : int(y + height), int(x) : int(x + width)]
        made = gpu.resize(part, *self.size, method="bicubic", device=self.device)
        return np.asarray(gpu.saturation(made, value=-0.35, device=self.device))

    def both(self, seconds: float) -> np.ndarray:
        """Return the flat picture to the right of the line, and the graded one to its left."""
        flat = self.flat(seconds)
        graded = self.look.process(flat, GRADE)
        return Transition("wipe", angle=0).mix(flat, graded, line(seconds))


def line(seconds: float) -> float:
    """Return where the line is at a time, from 0 to 1."""
    return 0.5 - 0.32 * math.cos(seconds / SECONDS * math.tau)


def build(device: str | None = None, size: tuple[int, int] = SIZE) -> Scene:
    """Return the scene; the caller closes it."""
    width, height = size
    scene = Scene(width, height, fps=30, device=device)
    scene.duration = SECONDS
    scene.add_video(Camera(size, device).both, fps=30)
    bar = scene.add_overlay(color="white", size=(2, height), anchor="top", opacity=0.9)
    times = np.linspace(0, SECONDS, 33)
    keys = [(float(t), line(float(t)) * width) for t in times]
    for (start, a), (end, b) in pairwise(keys):
        scene.add_animation(bar, "x", a, b, end - start, start=start)
    for text, place in (("graded", "bottom-left"), ("as recorded", "bottom-right")):
        scene.add_text(text, size=height / 24, weight="semibold", color="white", position=place,
                       margin=height / 22, shadow=(0, 1, 6, (0, 0, 0, 160)))  # fmt: skip
    return scene


if __name__ == "__main__":
    sys.exit(run(build, moment=2.0))
