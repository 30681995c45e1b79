"""The pictures of docs/compute/operations/geometry.md, generated like those of the filters.

``python -m tests.support.geometry_pictures`` rewrites docs/images/geometry on the cpu engine.
"""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

import numpy as np

import dala
from dala.gpu.compute import from_array
from dala.gpu.compute.kernel import get
from tests.support import pictures

FOLDER = pathlib.Path(__file__).parents[2] / "docs" / "images" / "geometry"

#: A rotation by 12 degrees and a downscale around the center of 200 x 320.
TURNED = (1.27, 0.27, -69.9, -0.27, 1.27, 16.0)
#: A plane tilted back.
LEANING = (0.75, -0.3, 45.0, 0.0, 0.5, 10.0, 0.0, -0.0018, 1.0)


def apply(name: str, *arrays: np.ndarray, **params: object) -> np.ndarray:
    return np.array(get(name)(*(from_array(a) for a in arrays), **params).numpy())


def beside(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Join pictures in a row with white between them, (height, width, 3)."""
    gap = np.full((parts[0].shape[0], 4, 3), 255, np.uint8)
    row = [piece for part in parts for piece in (gap, part[..., :3])]
    return np.ascontiguousarray(np.concatenate(row[1:], axis=1))


def resize_up() -> np.ndarray:
    """Enlarge an eye six times with every method."""
    eye = np.ascontiguousarray(pictures.photo()[84:104, 40:60])
    methods = ("nearest", "bilinear", "bicubic", "lanczos", "area")
    return beside([apply("resize", eye, size=(120, 120), method=m) for m in methods])


def resize_down() -> np.ndarray:
    """Downscale a fine pattern with and without antialiasing."""
    y, x = np.mgrid[:600, :600] - 299.5
    rings = (127.5 + 127.5 * np.cos((x * x + y * y) / 190)).astype(np.uint8)
    board = np.repeat(rings[..., None], 3, axis=-1)
    return beside([apply("resize", board, size=(160, 160), antialias=a) for a in (True, False)])


def warp_affine() -> np.ndarray:
    """Rotate with each border."""
    photo = apply("resize", pictures.photo(), size=(160, 100))
    matrix = [n * (0.5 if k % 3 == 2 else 1.0) for k, n in enumerate(TURNED)]
    borders = ("constant", "clamp", "reflect", "wrap")
    turned = [apply("warp_affine", photo, matrix=matrix, border=b) for b in borders]
    return beside([pictures.on_checks(t) for t in turned])


def warp_perspective() -> np.ndarray:
    photo = pictures.photo()
    leaning = apply("warp_perspective", photo, matrix=LEANING, method="bicubic")
    return beside([photo, pictures.on_checks(leaning)])


def remap() -> np.ndarray:
    """Remap to a whirl around the center."""
    photo = pictures.photo()
    y, x = np.mgrid[:200, :320].astype(np.float64)
    u, v = x - 160, y - 100
    angle = 1.6 * np.exp(-np.hypot(u, v) / 60)
    places = np.stack(
        [160 + u * np.cos(angle) - v * np.sin(angle), 100 + u * np.sin(angle) + v * np.cos(angle)],
        axis=-1,
    ).astype(np.float32)
    return beside([photo, apply("remap", photo, places, border="clamp")])


def preprocess() -> np.ndarray:
    """Preprocess with stretch, pad and cover."""
    photo, parts = pictures.photo(), []
    for fit in ("stretch", "pad", "cover"):
        tensor = apply(
            "preprocess", photo, size=(160, 160), fit=fit, normalize="unit", layout="nhwc"
        )
        parts.append(np.floor(tensor[0] * 255 + 0.5).astype(np.uint8))
    return beside(parts)


PICTURES = {
    f.__name__: f
    for f in (resize_up, resize_down, warp_affine, warp_perspective, remap, preprocess)
}


def main() -> None:
    from PIL import Image

    FOLDER.mkdir(parents=True, exist_ok=True)
    with dala.device("cpu"):
        for name, make in PICTURES.items():
            Image.fromarray(make()).save(FOLDER / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
