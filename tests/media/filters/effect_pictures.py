"""The pictures of docs/media/pictures.md, one per effect.

``python -m tests.media.filters.effect_pictures`` writes docs/images/media again, on the cpu engine.
"""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np

import dala
from dala.media import effects, gpu
from tests.support.pictures import green_screen, photo, title

FOLDER = pathlib.Path(__file__).parents[3] / "docs" / "images" / "media"

#: What each is given in docs/media/pictures.md.
GRADES: dict[str, dict[str, Any]] = {
    "grade": {"lift": (0.0, 0.02, 0.08), "gamma": 1.1, "gain": (1.1, 1.0, 0.85)},
    "temperature": {"value": 0.7},
    "curves": {
        "master": [(0, 0), (0.25, 0.15), (0.75, 0.85), (1, 1)],
        "blue": [(0, 0.1), (1, 0.9)],
    },
}
PICTURES = (*GRADES, "background_blur", "background_replace", "overlay")


def _halves(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    shown = after.copy()
    half = shown.shape[1] // 2
    shown[:, :half] = before[:, :half]
    shown[:, half - 1 : half + 1] = 255
    return shown


def show(name: str) -> np.ndarray:
    """Return the picture of an effect, (200, 320, 3) u8."""
    image = np.ascontiguousarray(photo()[..., :3])
    if name in GRADES:
        return _halves(image, getattr(effects, name)(image, **GRADES[name]))
    if name == "overlay":
        badge = title()[30:170, 160:300]
        return effects.overlay(
            image, badge, position=(110, 90), anchor=(0.5, 0.5), scale=(0.9, 0.6), angle=-20
        )
    if name == "background_blur":
        y, x = np.mgrid[:200, :320]
        mask = np.hypot((x - 152) / 58, (y - 110) / 85) < 1  # the person in the middle
        return effects.virtual_background(image, mask, radius=12, feather=4)
    screen = np.ascontiguousarray(green_screen()[..., :3])
    keyed = gpu.chroma_key(screen, key=(0.16, 0.75, 0.24), threshold=0.1, softness=0.12)
    return effects.virtual_background(
        np.ascontiguousarray(keyed[..., :3]), keyed[..., 3], background=image, feather=1
    )


def main() -> None:
    from PIL import Image

    FOLDER.mkdir(parents=True, exist_ok=True)
    with dala.device("cpu"):
        for name in PICTURES:
            Image.fromarray(show(name)).save(FOLDER / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
