"""Results whose bits are the same on every processor with fused multiply-add.

``python -m tests.arm.rows --write FILE`` runs them all and writes the arrays, ``python -m
tests.arm.rows FILE`` compares with them. Products of matrices are not here: they are BLAS's.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

import dala
from dala.gpu.compute import kernel
from tests.arm.root import say
from tests.support.engines import run
from tests.support.filter_formulas import FILTERS

HEIGHT, WIDTH = 23, 37
FUNCTIONS = {
    "exp": "exp(x)", "log": "log(abs(x))", "sine": "sin(x)", "tangent": "tan(x)",
    "angle": "atan2(x, 2.0)", "power": "pow(abs(x), 2.4)", "root": "sqrt(abs(x))",
    "polynomial": "((0.1 * x + 0.3) * x - 0.7) * x + 1.0 / x",
}  # fmt: skip
MATRIX = [0.9, 0.21, -1.5, -0.17, 1.1, 0.75]
#: Operations: shapes of inputs, shape of the output, parameters.
OPERATIONS: dict[str, tuple[list[tuple[int, ...]], tuple[int, ...], Mapping[str, Any]]] = {
    "blur": ([(HEIGHT, WIDTH, 4)], (HEIGHT, WIDTH, 4), {"radius": 5}),
    "gaussian_blur": ([(HEIGHT, WIDTH, 4)], (HEIGHT, WIDTH, 4), {"sigma": 1.7}),
    "box_blur": ([(HEIGHT, WIDTH, 4)], (HEIGHT, WIDTH, 4), {"radius": 3}),
    "resize": ([(HEIGHT, WIDTH, 4)], (31, 19, 4), {"method": "bicubic"}),
    "warp_affine": ([(HEIGHT, WIDTH, 4)], (HEIGHT, WIDTH, 4), {"matrix": MATRIX}),
    "reduce_sum": ([(70, 1003)], (70,), {"axis": 1}),
    "softmax": ([(9, 333)], (9, 333), {"axis": 1}),
    "layer_norm": ([(9, 333), (333,), (333,)], (9, 333), {}),
    "cumsum": ([(9, 333)], (9, 333), {"axis": 1}),
    "reduce_sum down": ([(1003, 70)], (70,), {"axis": 0}),
    "fft": ([(120,)], (120, 2), {}),
    "sigmoid": ([(1003,)], (1003,), {}),
    "tanh": ([(1003,)], (1003,), {}),
}


def rows() -> Iterator[tuple[str, np.ndarray]]:
    """Yield names and results, of inputs that are the same everywhere."""
    random = np.random.default_rng(29)
    pair = random.integers(0, 256, (2, HEIGHT, WIDTH, 4), np.uint8)
    for name, (_, cases, _) in FILTERS.items():
        count = 2 if name in ("overlay_alpha", "video_mix") else 1
        for number, params in enumerate(cases):
            for form in ("rgba", "f32"):
                dtype = "f32" if form == "f32" else "u8"
                images = list(pair[:count])
                if form == "f32":
                    images = [(p / 255).astype("<f4") for p in images]
                yield f"{name} {form} {number}", run(name, images, images[0].shape, dtype, params)
    x = random.normal(0, 4, 1003).astype("<f4")
    for name, text in FUNCTIONS.items():
        yield name, run(kernel(f"def {name}_row(x):\n    return {text}\n"), [x], x.shape, "f32")
    for name, (shapes, out, given) in OPERATIONS.items():
        inputs = [random.uniform(-1, 1, shape).astype("<f4") for shape in shapes]
        yield name, run(name.partition(" ")[0], inputs, out, "f32", given)


def differences(expected: Mapping[str, np.ndarray]) -> Iterator[str]:
    """Run all rows; yield a line for each whose bits are not the expected ones."""
    for name, got in rows():
        wrong = np.argwhere(got.view(f"u{got.itemsize}") != expected[name].view(f"u{got.itemsize}"))
        if len(wrong):
            at = tuple(map(int, wrong[0]))
            values = f"got {got[at]}, expected {expected[name][at]}"
            yield f"{name}: {len(wrong)} of {got.size} values differ; at {at}: {values}"


def main() -> int:
    with dala.device("cpu"):
        if sys.argv[1] == "--write":
            np.savez(sys.argv[2], **dict(rows()))
            return 0
        with np.load(sys.argv[1]) as expected:
            found = list(differences(expected))
            say("\n".join([*found, f"{len(expected.files)} rows, {len(found)} differ"]))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
