"""Accuracy of the CPU engine's math functions, in units in the last place."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.cpu_programs import NUMPY, engine, pointwise, run_line, ulps

__all__ = ["engine"]

SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, np.inf, -np.inf, np.nan, np.pi, np.pi / 2, -np.pi / 4, 1e-45,
     -1e-45, 1e-39, 3.4e38, -3.4e38, 88.722, 88.723, -87.34, -103.9, -104.1, 1e9, -1e9]
)  # fmt: skip


def sweep(dtype, seed=0):
    """Return numbers of every magnitude and sign, with more in the common ranges."""
    rng = np.random.default_rng(seed)
    bits, edges = ("<u4", []) if dtype == "f32" else ("<u8", [5e-324, 1e308, 709.78, -745.13])
    anything = rng.integers(0, 2 ** (32 if dtype == "f32" else 64) - 1, 200_000, bits, True)
    parts = [
        anything.view(NUMPY[dtype]), SPECIAL, edges, rng.uniform(-20, 20, 100_000),
        rng.uniform(-700, 700, 50_000), rng.uniform(0.5, 1.5, 50_000),
        rng.uniform(-1.5e9, 1.5e9, 50_000), np.arange(-2000, 2000) * (np.pi / 2),
    ]  # fmt: skip
    with np.errstate(all="ignore"):
        return np.concatenate(parts).astype(NUMPY[dtype])


extended = pytest.mark.skipif(
    np.finfo(np.longdouble).nmant < 60, reason="needs a wider float to compare with"
)

#: The largest error of each function in units in the last place; f32 is almost correctly rounded.
LIMITS = {"f32": 0.51, "f64": 2.5}


@extended
@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("op", ["exp", "log", "sin", "cos", "tan", "atan", "sqrt"])
def test_functions(engine, dtype, op):
    x = sweep(dtype)
    if op in ("sin", "cos", "tan"):
        x = x[~(np.abs(x) > 1.6e9) | np.isinf(x)]
    numpy = {"atan": np.arctan}.get(op) or getattr(np, op)
    got = run_line(engine, pointwise(lambda b, p: b(op, dtype, p), dtype), x)
    assert ulps(got, numpy, x).max() <= LIMITS[dtype]


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_sine_stays_in_range(engine, dtype):
    x = sweep(dtype, 5)
    for op in ("sin", "cos"):
        got = run_line(engine, pointwise(lambda b, p, op=op: b(op, dtype, p), dtype), x)
        assert np.array_equal(np.isnan(got), ~np.isfinite(x))
        assert (np.abs(got[np.isfinite(x)]) <= 1).all()


@extended
@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("op", ["atan2", "pow"])
def test_functions_of_two_arguments(engine, dtype, op):
    rng = np.random.default_rng(2)
    special = np.concatenate([SPECIAL, [3.0, -3.0, 2.5, -2.0, 33.0, 1e30, 0.9999, 2.0**25 + 1]])
    x, y = (g.ravel() for g in np.meshgrid(special, special))
    size = 80 if dtype == "f32" else 700
    more = [
        (rng.uniform(-10, 10, 50_000), rng.uniform(-10, 10, 50_000)),
        (np.exp(rng.uniform(-size, size, 50_000)), rng.uniform(-5, 5, 50_000)),
        (rng.uniform(0.9, 1.1, 50_000), rng.uniform(-900, 900, 50_000)),
    ]
    x = np.concatenate([x, *(p[0] for p in more)]).astype(NUMPY[dtype])
    y = np.concatenate([y, *(p[1] for p in more)]).astype(NUMPY[dtype])
    numpy = np.arctan2 if op == "atan2" else np.power
    got = run_line(engine, pointwise(lambda b, p, q: b(op, dtype, p, q), dtype, dtype), x, y)
    assert ulps(got, numpy, x, y).max() <= LIMITS[dtype]
