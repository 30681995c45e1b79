"""Resizes and warps of bytes whose results must be equal on every engine and processor level.

``python -m tests.support.sampling_cases STEP`` prints checksums on the CPU engine.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

import dala
from dala.gpu.compute import from_array
from dala.gpu.compute.kernel import get
from tests.support import pictures

METHODS = ("nearest", "bilinear", "bicubic", "lanczos", "area")
BORDERS = ("constant", "clamp", "reflect", "wrap")
#: Sizes of a picture and of the result: odd ones, strong reductions, single pixels, sums of more
#: than 64 pixels, pictures smaller than a filter.
SIZES = (
    ((33, 47), (22, 31)), ((33, 47), (66, 94)), ((33, 47), (20, 97)), ((40, 60), (20, 30)),
    ((300, 40), (2, 30)), ((21, 700), (13, 3)), ((170, 210), (1, 1)), ((3, 2), (19, 23)),
    ((1, 1), (5, 4)), ((9, 1600), (9, 700)), ((64, 8), (64, 8)), ((96, 64), (12, 8)),
    ((2, 20000), (2, 5)),
)  # fmt: skip
#: Sizes of results that are half as large as their picture: around the least for each form.
HALVES = ((3, 9), (1, 10), (2, 11), (3, 34), (5, 33), (4, 35), (18, 67), (7, 600))
AFFINE = {
    "turned": (0.9925, -0.1219, 6.3, 0.1219, 0.9925, -4.1),
    "steep": (0.5, -0.9, 20.0, 0.8, 0.4, -9.0),
    "level": (1.7, 0.0, -10.3, 0.0, 1.4, 5.2),
    "enlarged": (0.37, 0.0, 0.2, 0.0, 0.41, -0.3),
    "mirrored": (-1.0, 0.0, 40.25, 0.0, -1.0, 50.75),
    "far": (1e5, 3.0, -1e8, 2.0, 1e6, 7.0),
}
PERSPECTIVE = {
    "leaning": (0.9, -0.12, 6.3, 0.12, 0.99, -4.1, 1e-3, 2e-3, 1.0),
    "horizon": (0.9, -0.12, 6.3, 0.12, 0.99, -4.1, -2e-2, 1e-2, 1.0),
    "behind": (-0.9, 0.12, -6.3, -0.12, -0.99, 4.1, -1e-3, -2e-3, -1.0),
    "divided by 0": (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, -5.0),
    "huge": (1e9, 1e9, -1e9, 1e8, 1.0, 0.0, 1e-3, 0.0, 1e-9),
    "zero": (0.0,) * 9,
}


class Case(NamedTuple):
    """A call of an operation."""

    name: str
    op: str
    arrays: tuple[np.ndarray, ...]
    params: dict[str, Any]

    def run(self) -> np.ndarray:
        """Return the result on the current device."""
        made = get(self.op)(*map(from_array, self.arrays), **self.params)
        return np.array(made.numpy())


def picture(height: int, width: int, channels: int, seed: int) -> np.ndarray:
    """Return noise, a photographic picture or one of black and white; without channels for 1."""
    if seed % 3 == 0:
        image = pictures.photo(max(height, 16), max(width, 16), seed=seed)[:height, :width]
        image = np.concatenate([image[..., :3], image[..., :1]], axis=2)[..., :channels]
    else:
        image = np.random.default_rng(seed).integers(0, 256, (height, width, channels))
        image = image if seed % 3 == 1 else (image > 127) * 255
    image = np.ascontiguousarray(image, np.uint8)
    return image[..., 0] if channels == 1 else image


def places(height: int, width: int) -> np.ndarray:
    """Return a map with positions inside, outside, near centers, and that are no numbers."""
    rng = np.random.default_rng(7)
    made = rng.random((23, 37, 2)) * (1.6 * width, 1.6 * height) - (0.3 * width, 0.3 * height)
    made[0, :7, 0] = np.nan, np.inf, -np.inf, 1e30, -1e-9, -0.3, -1e-42
    made[1, :5, 1] = np.nan, np.inf, -1e30, 0.49999997, 0.9999999
    made[2] = rng.normal(size=(37, 2)) * 1e-4
    made[3, :, 0] = 65536.5
    return made.astype(np.float32)


def cases(op: str, step: int = 1) -> Iterator[Case]:
    """Return every ``step``-th case of an operation, and all of exact halves."""
    yield from islice(_cases(op), 0, None, step)
    if op == "resize":
        yield from _halves()


def _halves() -> Iterator[Case]:
    for channels in (1, 3, 4):
        for n, (rows, columns) in enumerate(HALVES):
            image = picture(2 * rows, 2 * columns, channels, n)
            for method in ("bilinear", "area"):
                params = {"size": (columns, rows), "method": method}
                yield Case(
                    f"half: {rows} {columns} {channels} {method}", "resize", (image,), params
                )


def _cases(op: str) -> Iterator[Case]:
    for channels in (1, 3, 4):
        if op == "resize":
            for n, (source, size) in enumerate(SIZES):
                image = picture(*source, channels, n)
                for method in METHODS:
                    for antialias in (True, False):
                        name = f"{source} to {size}, {channels} channels, {method}, {antialias}"
                        params = {"size": size[::-1], "method": method, "antialias": antialias}
                        yield Case(name, op, (image,), params)
            image = picture(20, 30, channels, 1)
            for fit in ("cover", "pad"):
                params = {"size": (17, 31), "fit": fit, "fill": (0.3, 0.5, 0.1, 0.9)}
                yield Case(f"{fit}, {channels} channels", op, (image,), params)
            continue
        for source in ((61, 83), (1, 1), (7, 2)):
            image = picture(*source, channels, source[0])
            for method in METHODS[:3]:
                for border in BORDERS:
                    params = {"method": method, "border": border, "fill": (0.3, 0.7, 0.1, 0.9)}
                    name = f"{source}, {channels} channels, {method}, {border}"
                    if op == "remap":
                        yield Case(name, op, (image, places(*source)), params)
                        continue
                    named = list((AFFINE if op == "warp_affine" else PERSPECTIVE).items())
                    for title, matrix in named if source[0] > 9 else named[:1]:
                        full = {**params, "matrix": matrix, "size": (290, 27)}
                        yield Case(f"{title}, {name}", op, (image,), full)


OPERATIONS = ("resize", "warp_affine", "warp_perspective", "remap")


def checksum(result: np.ndarray) -> str:
    """Return a checksum of a result."""
    return hashlib.sha256(result.tobytes()).hexdigest()


if __name__ == "__main__":
    with dala.device("cpu"):
        for operation in OPERATIONS:
            for one in cases(operation, int(sys.argv[1])):
                sys.stdout.write(f"{operation}: {one.name}\t{checksum(one.run())}\n")
