"""A title sequence: letters that rise out of the dark, with light that moves behind them.

python examples/titles.py                 # out/titles.png and out/titles.mp4
python examples/titles.py --show window   # plays it
"""

from __future__ import annotations

import sys

import numpy as np
from running import run

from dala.gpu.compute import buffer
from dala.gpu.compute.language import (
    Image,
    exp,
    kernel,
    mix,
    position,
    rgba,
    shape,
    sin,
    smoothstep,
)
from dala.media import Frame, Scene

SIZE, SECONDS = (960, 540), 10.0
GOLD, PALE = "#f2c879", "#efe6d8"
CREDITS = (("a film by", "RUNE DALGREN"), ("music by", "ASTA LIND"))
TITLE = "NORDLYS"


@kernel
def northern_lights(canvas: Image, *, time: float):
    """Curtains of light in the night, and stars behind them."""
    row, column = position()
    x = float(column) / float(shape(canvas)[1])
    y = float(row) / float(shape(canvas)[0])
    sky = mix((0.012, 0.02, 0.06), (0.03, 0.055, 0.11), y)
    glow = sky * 0.0
    for n in range(3):
        k = float(n)
        fold = 0.10 * sin(x * (4.2 + 1.7 * k) + time * (0.35 + 0.1 * k) + 2.1 * k)
        fold += 0.045 * sin(x * (11.0 - 2.0 * k) - time * 0.6 + k)
        foot = 0.60 - 0.11 * k + fold
        above = foot - y
        rays = 0.62 + 0.38 * sin(x * (70.0 + 23.0 * k) + 6.0 * sin(x * 9.0 + time * 0.4) + 3.0 * k)
        light = smoothstep(-0.015, 0.02, above) * exp(-above * (4.2 + k)) * rays
        color = mix((0.10, 0.95, 0.55), (0.55, 0.22, 0.95), smoothstep(0.02, 0.34, above))
        glow += color * (light * (0.62 - 0.12 * k) * (0.7 + 0.3 * sin(time * 0.5 + x * 5.0 + k)))
    ridge = 0.86 + 0.05 * sin(x * 7.0 + 1.0) + 0.022 * sin(x * 23.0) + 0.008 * sin(x * 61.0)
    ground = smoothstep(ridge, ridge + 0.012, y)
    return rgba(mix(sky + glow, (0.004, 0.007, 0.014), ground), 1.0)


class Sky:
    """The northern lights at any time."""

    def __init__(self, width: int, height: int, device: str | None) -> None:
        self.canvas = buffer(np.zeros((height, width, 3), np.float32), device=device)

    def __call__(self, seconds: float) -> Frame:
        return Frame(northern_lights(self.canvas, time=4 + seconds))


def credit(scene: Scene, small: str, large: str, start: float) -> None:
    """Show two lines for two seconds; they come nearer all the while."""
    width, height = scene.width, scene.height
    lines = scene.add_group(start=start, duration=2.2, anchor="center",
                            position=(width / 2, height / 2))  # fmt: skip
    for text, y, style in (
        (small, 0.455, {"size": height / 26, "color": GOLD}),
        (large, 0.53, {"size": height / 15, "color": PALE, "weight": "light", "letter_spacing": 6}),
    ):
        lines.add_text(text, anchor="center", position=(width / 2, height * y), **style)
    scene.add_animation(lines, "opacity", 0, 1, 0.5, "sine", start=0)
    scene.add_animation(lines, "opacity", 1, 0, 0.5, "sine", start=1.7)
    scene.add_animation(lines, "scale", 0.97, 1.05, 2.2, start=0)


def build(device: str | None = None, size: tuple[int, int] = SIZE) -> Scene:
    """Return the scene; the caller closes it."""
    width, height = size
    scene = Scene(width, height, fps=30, device=device)
    scene.duration = SECONDS
    scene.add_video(Sky(width, height, device), fps=30)
    for number, (small, large) in enumerate(CREDITS):
        credit(scene, small, large, 0.3 + 2.3 * number)
    step = width * 0.105
    for number, letter in enumerate(TITLE):
        x, start = width / 2 + (number - (len(TITLE) - 1) / 2) * step, 5.0 + 0.14 * number
        mark = scene.add_text(
            letter, size=height / 4.6, weight="bold", color=PALE, anchor="center",
            position=(x, height * 0.46), start=start,
            shadow=(0, 0, height / 30, (90, 255, 190, 150)),
        )  # fmt: skip
        scene.add_animation(mark, "y", height * 0.56, height * 0.46, 1.1, "cubic-out", start=start)
        scene.add_animation(mark, "opacity", 0, 1, 0.9, "sine", start=start)
    rule = scene.add_overlay(color=GOLD, size=(10, 2), anchor="center",
                             position=(width / 2, height * 0.62), start=6.3)  # fmt: skip
    scene.add_animation(rule, "width", 4, width * 0.46, 1.0, "cubic-in-out", start=6.3)
    words = scene.add_text(
        "a winter in seven kernels", size=height / 22, color=GOLD, anchor="center",
        position=(width / 2, height * 0.68), start=6.9,
    )  # fmt: skip
    scene.add_animation(words, "opacity", 0, 1, 0.8, "sine", start=6.9)
    dark = scene.add_overlay(color="black", size=size)
    scene.add_animation(dark, "opacity", 1, 0, 1.0, "sine", start=0)
    scene.add_animation(dark, "opacity", 0, 1, 0.9, "sine", start=SECONDS - 1)
    return scene


if __name__ == "__main__":
    sys.exit(run(build, moment=8.4))
