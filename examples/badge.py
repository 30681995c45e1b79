"""A lower third from SVG: a drawn panel and badge, over a photograph, with a line that is drawn.

python examples/badge.py                 # out/badge.png and out/badge.mp4
python examples/badge.py --show window   # plays it
"""

from __future__ import annotations

import sys

from running import run

from dala import samples
from dala.gpu import Path
from dala.media import Scene

SIZE = (960, 540)
SECONDS = 6.0
#: As a designer hands it over: gradients, round corners, a star in a ring.
PANEL = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 520 120">
  <defs>
    <linearGradient id="glass" x2="1">
      <stop stop-color="#0b1a33" stop-opacity=".95"/>
      <stop offset="1" stop-color="#123a66" stop-opacity=".75"/>
    </linearGradient>
    <radialGradient id="gold"><stop stop-color="#fff3b0"/><stop offset="1" stop-color="#f2a900"/>
    </radialGradient>
  </defs>
  <rect width="520" height="120" rx="18" fill="url(#glass)"/>
  <g transform="translate(60 60)">
    <circle r="42" fill="none" stroke="url(#gold)" stroke-width="5"/>
    <path d="M0-30 7.1-9.7 28.5-9.3 11.4 3.7 17.6 24.3 0 12-17.6 24.3-11.4 3.7-28.5-9.3-7.1-9.7Z"
          fill="url(#gold)"/>
  </g>
</svg>
"""
#: The line below the name, in the coordinates of the panel.
SWASH = "M128 88 C180 70 230 104 290 86 S420 72 490 88"


def build(device: str | None = None, size: tuple[int, int] = SIZE) -> Scene:
    """Return the scene; the caller closes it."""
    width, height = size
    unit = height / 540
    scene = Scene(width, height, background="black", fps=30, device=device)
    scene.duration = SECONDS
    photo = samples.photo("astronaut", device="cpu")
    view = scene.add_image(photo, size=size, crop=(0, 0, 512, 288))
    scene.add_animation(view, "crop", (0, 0, 512, 288), (26, 6, 455, 256), SECONDS, "sine")

    third = scene.add_group(canvas=(width, height))
    x, y = 48 * unit, height - 164 * unit
    third.add_svg(PANEL, position=(x, y), width=520 * unit)
    third.add_text(
        "Eileen Collins", size=38 * unit, weight="bold", position=(x + 126 * unit, y + 24 * unit)
    )
    line = third.add_shape(
        Path.svg(SWASH).transform(scale=unit), position=(x, y), stroke="#ffd23f", width=4 * unit,
        cap="round",
    )  # fmt: skip
    scene.add_animation(third, "x", -width, 0, 0.8, "cubic-out", delay=0.3)
    scene.add_animation(line, "trim", (0, 0), (0, 1), 1.2, "cubic-in-out", delay=1.0)
    scene.add_animation(third, "x", 0, -width, 0.5, "cubic-in", delay=5.2)
    return scene


if __name__ == "__main__":
    sys.exit(run(build, moment=3.0))
