"""The look-up table of docs/compute/operations/color.md and its picture.

``python -m tests.support.lut_picture`` rewrites
docs/images/color/lut_apply.png on the cpu engine.
"""

from __future__ import annotations

import pathlib

import numpy as np

import dala
from dala.gpu.compute import from_array
from dala.gpu.compute.cube import Cube
from dala.gpu.compute.kernel import get
from tests.support.pictures import photo

PATH = pathlib.Path(__file__).parents[2] / "docs" / "images" / "color" / "lut_apply.png"


def look(n: int = 17) -> Cube:
    """Return a film look: warm highlights, blue-green shadows, more contrast."""
    axis = np.linspace(0, 1, n)
    color = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1)
    curved = color * color * (3 - 2 * color)
    graded = 0.4 * color + 0.6 * curved
    luma = (graded @ [0.299, 0.587, 0.114])[..., None]
    shadow, light = np.array([-0.05, 0.03, 0.08]), np.array([0.08, 0.02, -0.08])
    return Cube(np.clip(graded + shadow * (1 - luma) + light * luma, 0, 1), "warm lights")


def show() -> np.ndarray:
    """Return the photograph, (200, 320, 3) u8: left half original, right half graded."""
    image, cube = photo(), look()
    shown = np.array(get("lut_apply")(from_array(image), cube.buffer(), **cube.params).numpy())
    half = shown.shape[1] // 2
    shown[:, :half] = image[:, :half]
    shown[:, half - 1 : half + 1] = 255
    return np.ascontiguousarray(shown[..., :3])


def main() -> None:
    from PIL import Image

    PATH.parent.mkdir(parents=True, exist_ok=True)
    with dala.device("cpu"):
        Image.fromarray(show()).save(PATH, optimize=True)


if __name__ == "__main__":
    main()
