"""A comparison wall: one picture through twelve filters, each with its name.

python examples/comparison.py     # out/comparison.png
"""

from __future__ import annotations

import sys

import numpy as np
from running import run

from dala import samples
from dala.media import FramePipeline, Scene

SIZE = (1200, 720)
FILTERS = {
    "as it is": [],
    "grayscale": ["grayscale"],
    "sepia": ["sepia"],
    "hue": [("hue", {"degrees": 150})],
    "posterize": [("posterize", {"levels": 4})],
    "pixelate": [("pixelate", {"block": 9})],
    "emboss": [("emboss", {"amount": 1.6})],
    "edges": ["edge_detect", "invert"],
    "motion blur": [("motion_blur", {"length": 25, "angle": 30})],
    "bilateral": ["bilateral", "bilateral"],
    "aberration": [("chromatic_aberration", {"amount": 6})],
    "clahe": [("clahe", {"clip_limit": 4})],
}


def build(device: str | None = None, size: tuple[int, int] = SIZE) -> Scene:
    """Return the scene; the caller closes it."""
    unit = size[0] / 1200
    scene = Scene(*size, background="#14161c", device=device)
    photo = np.asarray(samples.photo("chelsea", device="cpu"))[:288, 50:434]
    with FramePipeline(photo.shape[1], photo.shape[0], device=device) as chain:
        tiles = [
            scene.add_image(np.array(chain.process(photo, filters)), radius=10 * unit)
            for filters in FILTERS.values()
        ]
    cells = scene.grid(tiles, 14 * unit, columns=4, area=(
        20 * unit, 20 * unit, size[0] - 40 * unit, size[1] - 40 * unit), fit="cover")  # fmt: skip
    for name, (left, top, _, height) in zip(FILTERS, cells, strict=True):
        scene.add_text(
            name, size=18 * unit, weight="semibold", color="white", background=(14, 16, 22, 180),
            padding=(12 * unit, 5 * unit), radius=14 * unit, anchor="bottom-left",
            position=(left + 12 * unit, top + height - 12 * unit),
        )  # fmt: skip
    return scene


if __name__ == "__main__":
    sys.exit(run(build, video=False))
