"""Pictures of the filters that are recipes, for docs/media/filters.md.

``python -m tests.support.tone_pictures`` rewrites them in docs/images/filters on the cpu engine.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import dala
from dala.media import gpu
from tests.support.pictures import FOLDER, green_screen, photo, title

#: Each filter's picture, its parameters, and the second picture if it has one.
PICTURES: dict[str, tuple[str, dict[str, Any]]] = {
    "levels": ("photo", {"in_black": 0.15, "in_white": 0.85, "gamma": 1.3}),
    "color_matrix": ("photo", {"matrix": [[0, 0, 1], [0, 1, 0], [1, 0, 0]]}),
    "grain": ("photo", {"amount": 0.08, "size": 1.5}),
    "chromatic_aberration": ("photo", {"amount": 6.0}),
    "threshold": ("uneven", {"method": "gaussian", "block_size": 31}),
    "equalize": ("dull", {}),
    "clahe": ("dull", {"clip_limit": 3.0}),
    "auto_contrast": ("dull", {"cutoff": 1}),
    "white_balance": ("warm", {}),
}

#: The modes in the picture of ``blend``, four in a row.
MODES = (
    "normal", "multiply", "screen", "overlay",
    "darken", "lighten", "color-dodge", "color-burn",
    "hard-light", "soft-light", "difference", "exclusion",
    "hue", "saturation", "color", "luminosity",
)  # fmt: skip

NAMES = (*PICTURES, "blend")


def sources() -> dict[str, np.ndarray]:
    """Return the input pictures by name, (200, 320, 3) u8."""
    image = np.ascontiguousarray(photo()[..., :3])
    dull = np.clip(image * 0.45 + 60, 0, 255).astype(np.uint8)
    warm = np.clip(image * np.array([1.0, 0.78, 0.5]), 0, 255).astype(np.uint8)
    uneven = np.linspace(0.25, 1.0, image.shape[1])[None, :, None] * image
    return {"photo": image, "dull": dull, "warm": warm, "uneven": uneven.astype(np.uint8)}


def show(name: str, given: dict[str, np.ndarray]) -> np.ndarray:
    """Return a filter's picture, (200, 320, 3) u8: left half original, right half filtered."""
    if name == "blend":
        return _modes(given["photo"])
    source, params = PICTURES[name]
    before = given[source]
    shown: np.ndarray = getattr(gpu, name)(before, **params).copy()
    half = shown.shape[1] // 2
    shown[:, :half] = before[:, :half]
    shown[:, half - 1 : half + 1] = 255
    return shown


def _modes(image: np.ndarray) -> np.ndarray:
    """Return the sixteen blend modes as small pictures, in reading order."""
    small = gpu.resize(image, size=(128, 80), method="area")
    over = gpu.resize(title(), size=(128, 80), method="area")
    over[..., 3] //= 2
    screen = gpu.resize(green_screen(), size=(128, 80), method="area")
    over = gpu.overlay_alpha(np.ascontiguousarray(screen), over)
    cells = [gpu.blend(small, over, mode=mode) for mode in MODES]
    rows = [np.hstack(cells[i : i + 4]) for i in range(0, 16, 4)]
    return np.vstack(rows)


def main() -> None:
    from PIL import Image

    with dala.device("cpu"):
        given = sources()
        for name in NAMES:
            Image.fromarray(show(name, given)).save(FOLDER / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
