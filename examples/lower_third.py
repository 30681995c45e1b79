"""A lower third: a bar slides in, a name rises behind it, and both leave again.

python examples/lower_third.py                 # out/lower_third.png and out/lower_third.mp4
python examples/lower_third.py --show window   # plays it
"""

from __future__ import annotations

import sys
from typing import Any

from running import run

from dala import samples
from dala.media import Scene

WIDTH, HEIGHT = 960, 540
SECONDS, MOMENT = 6.0, 2.4
NIGHT, RED, ICE = (9, 14, 30, 226), "#e8343f", "#a9c3ee"
LEAVES = 4.6


def in_and_out(scene: Scene, node: Any, name: str, away: float, here: float, begin: float) -> None:
    """Animate a property from ``away`` to its value, and back at the end."""
    scene.add_animation(node, name, away, here, 0.7, "cubic-out", delay=begin)
    scene.add_animation(node, name, here, away, 0.45, "cubic-in", delay=LEAVES + 0.3 - begin / 2)


def live(scene: Scene) -> None:
    """Add the sign in the corner, with a pulsing light."""
    group = scene.add_group(canvas=(92, 36), position=(WIDTH - 128, 32))
    group.add_overlay(color=RED, radius=8)
    light = group.add_overlay(color="white", shape="circle", position=(14, 13), size=(10, 10))
    group.add_text("LIVE", size=20, weight="bold", letter_spacing=1.5, position=(32, 6))
    scene.add_animation(light, "opacity", 1, 0.25, 0.8, "sine", repeat=-1, yoyo=True)


def build(device: str | None = None) -> Scene:
    """Return the scene; the caller closes it."""
    scene = Scene(WIDTH, HEIGHT, background="black", fps=30, device=device)
    scene.duration = SECONDS
    view = scene.add_image(
        samples.photo("astronaut", device="cpu"), size=(WIDTH, HEIGHT), crop=(0, 0, 512, 288)
    )
    scene.add_animation(view, "crop", (0, 0, 512, 288), (26, 6, 455, 256), SECONDS, "sine")
    live(scene)

    third = scene.add_group(id="third", canvas=(470, 112), position=(56, HEIGHT - 164))
    glass = third.add_group(canvas=(470, 112), radius=12)
    glass.add_overlay(color=NIGHT)
    glass.add_overlay(color=RED, size=(8, 112))
    in_and_out(scene, glass, "x", -540, 0, 0.4)
    name = third.add_group(canvas=(440, 62), position=(30, 10))  # what rises is cut at its edges
    words = name.add_text("Eileen Collins", size=44, weight="bold", position=(0, 0))
    in_and_out(scene, words, "y", 64, 0, 0.8)
    role = third.add_group(canvas=(440, 36), position=(30, 66))
    words = role.add_text("Commander, Space Shuttle Columbia", size=22, color=ICE, position=(0, 0))
    in_and_out(scene, words, "y", 38, 0, 1.0)
    return scene


def main(arguments: list[str] | None = None) -> int:
    """Write a picture and the video, or play it."""
    return run(build, arguments, moment=MOMENT)


if __name__ == "__main__":
    sys.exit(main())
