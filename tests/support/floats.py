"""Results in f32 of filters and operations, as checksums: ``python -m tests.support.floats 1``.

The number is a step: 3 for a third of the settings and of the operations.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

import dala
from dala.answers import material
from dala.answers.cases import Row, rows
from dala.gpu.compute import from_array
from dala.gpu.compute.kernels import BUILTINS

#: Lengths: short ones, and around multiples of vectors and blocks.
LENGTHS = (1, 7, 31, 64, 97, 260, 1031)
TURN = (0.9925, -0.1219, 6.0, 0.1219, 0.9925, -4.0)
LEAN = (0.9, 0.1, 3.0, -0.05, 1.1, 2.0, 1e-3, -2e-3, 1.0)


class FloatRow(Row):
    """A row of the table of answers with a picture of f32."""

    def source(self) -> Any:
        return (super().source() / np.float32(255)).astype(np.float32)


def numbers(*shape: int) -> Any:
    """Return numbers of many magnitudes, whose sums depend on the order."""
    rng = np.random.default_rng(sum(shape))
    made = rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 4, shape)
    return made.astype(np.float32)


def operations() -> Iterator[tuple[str, list[Any], dict[str, Any]]]:
    """Yield operations with their inputs and options."""
    for n in LENGTHS:
        for shape in ((n,), (3, n), (n, 5), (2, n, 3)):
            for axis in range(len(shape)):
                for name in ("reduce_sum", "reduce_max", "softmax", "cumsum"):
                    yield name, [numbers(*shape)], {"axis": axis}
            yield "layer_norm", [numbers(*shape)], {}
        yield "matmul", [numbers(5, n), numbers(n, 37)], {}
        yield "matmul", [numbers(70, n), numbers(n, 130)], {}
        yield "matmul", [numbers(n, 9), numbers(9, n)], {}
        yield "convolve1d", [numbers(n + 40), numbers(min(n, 31))], {}
        yield "fft", [numbers(n)], {}
    for shape in ((300_000,), (700, 900), (3, 200_000)):
        for axis in range(len(shape)):
            for name in ("reduce_sum", "softmax", "cumsum"):
                yield name, [numbers(*shape)], {"axis": axis}
    yield "matmul", [numbers(200, 500), numbers(500, 300)], {}
    for channels in (1, 3, 8, 33):
        image, kernel = numbers(2, channels, 19, 23), numbers(6, channels, 3, 3)
        yield "conv2d", [image, kernel], {"padding": 1}
        yield "conv2d", [image, kernel], {"stride": 2}
    for channels in (1, 3, 4):
        image = numbers(61, 83, channels) if channels > 1 else numbers(61, 83)
        for method in ("bilinear", "bicubic", "lanczos", "area"):
            for size in ((120, 90), (40, 31), (41, 30), (166, 122), (7, 5)):
                yield "resize", [image], {"method": method, "size": size[::-1]}
        for method in ("bilinear", "bicubic"):
            yield "warp_affine", [image], {"matrix": TURN, "method": method}
            yield "warp_perspective", [image], {"matrix": LEAN, "method": method}
        for radius in (1, 3, 10, 30, 100):
            yield "blur", [image], {"radius": radius}
        yield "box_blur", [image], {"radius": 5}
        if channels > 1:
            given = np.random.default_rng(channels).integers(0, 256, image.shape, np.uint8)
            for size in ((224, 224), (40, 31), (9, 7)):
                for method in ("bilinear", "bicubic", "area"):
                    yield "preprocess", [given], {"size": size[::-1], "method": method}
            for method in ("tetrahedral", "trilinear"):
                yield "lut_apply", [image, numbers(9, 9, 9, 3)], {"method": method}


def main(step: int) -> None:
    """Print a checksum of each result on the CPU, as JSON."""
    found = {}
    dala.use("cpu")
    for row in rows(share="few"):
        if not row.kind or material.number(f"{row.name}/{row.setting}", step):
            continue
        own = FloatRow(row.name, row.setting, row.kind, row.picture)
        try:
            made = own.run("cpu")
        except dala.DalaError:
            continue  # the filter takes bytes only
        if made.dtype == np.float32:
            found[row.id] = checksum(made)
    for at, (name, inputs, options) in islice(enumerate(operations()), 0, None, step):
        shapes = [a.shape for a in inputs]
        made = BUILTINS[name](*map(from_array, inputs), **options)
        found[f"{at} {name} {shapes} {options}"] = checksum(made.numpy())
    sys.stdout.write(json.dumps(found))


def checksum(made: Any) -> str:
    """Return a checksum in which all NaN are equal."""
    made = np.where(np.isnan(made), np.float32(np.nan), made)
    return hashlib.sha256(np.ascontiguousarray(made).tobytes()).hexdigest()[:16]


if __name__ == "__main__":
    main(int(sys.argv[1]))
