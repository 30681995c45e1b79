"""The pictures of the transitions in the docs.

``python -m tests.media.transitions.transition_pictures`` writes docs/images/transitions again, on
the cpu engine. Look at them.
"""

from __future__ import annotations

import pathlib

import numpy as np

from dala.media import Transition, gpu
from tests.media.scene.scene_material import photo

FOLDER = pathlib.Path(__file__).parents[3] / "docs" / "images" / "transitions"
WIDTH, HEIGHT, GAP = 128, 72, 4
MOMENTS = (0.25, 0.5, 0.75)


def matte() -> np.ndarray:
    """A spiral of gray."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    dx, dy = x - WIDTH / 2, y - HEIGHT / 2
    turn = np.arctan2(dy, dx) / (2 * np.pi) + np.hypot(dx, dy) / 40
    return (turn % 1 * 255).astype(np.uint8)


#: The parameters that the pictures show.
SHOWN: dict[str, dict[str, object]] = {
    "dissolve": {},
    "fade": {"color": "white"},
    "wipe": {"angle": 30, "softness": 0.15},
    "slide": {},
    "push": {"direction": "up"},
    "zoom": {},
    "iris": {"softness": 0.05},
    "luma": {"picture": matte(), "softness": 0.1},
}


def _view(name: str) -> np.ndarray:
    made: np.ndarray = gpu.resize(
        photo(name), size=(WIDTH, HEIGHT), fit="cover", method="area", device="cpu"
    )
    return made


def strip(name: str) -> np.ndarray:
    """Three moments of a transition side by side, (height, width, 3) u8."""
    a, b = _view("coffee"), _view("chelsea")
    transition = Transition(name, **SHOWN[name])  # type: ignore[arg-type]
    gap = np.full((HEIGHT, GAP, 3), 255, np.uint8)
    parts: list[np.ndarray] = []
    for t in MOMENTS:
        parts += [gap, transition.mix(a, b, t)]
    return np.concatenate(parts[1:], axis=1)


def main() -> None:
    """Write the pictures."""
    from PIL import Image

    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in SHOWN:
        Image.fromarray(strip(name)).save(FOLDER / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
