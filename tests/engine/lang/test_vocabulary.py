"""GLSL's functions, their other names, and chance and noise: each engine, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from dala.gpu.compute import Kernel, buffer_zeros, kernel
from dala.gpu.compute.lang.functions import FUNCTIONS
from dala.gpu.compute.lang.library import prelude
from tests.support.engines import needs
from tests.support.tolerances import NUMPY, assert_close

X = np.concatenate([np.arange(-40, 41) / 8, [1e-4, -1e-4, 30.0, -30.0, 1e12]])
U = np.clip(X / 5, -1, 1)

#: The text, what NumPy computes, and the class of tolerance.
ROWS = [
    ("asin(u)", lambda x, u: np.arcsin(u), "pow"),
    ("acos(u)", lambda x, u: np.arccos(u), "pow"),
    ("sinh(u * 20)", lambda x, u: np.sinh(u * 20), "exp"),
    ("cosh(u * 20)", lambda x, u: np.cosh(u * 20), "exp"),
    ("asinh(x)", lambda x, u: np.arcsinh(x), "exp"),
    ("acosh(abs(x) + 1)", lambda x, u: np.arccosh(np.abs(x) + 1), "exp"),
    ("atanh(u * 0.875)", lambda x, u: np.arctanh(u * 0.875), "exp"),
    ("exp2(u * 8)", lambda x, u: np.exp2(u * 8), "pow"),
    ("log2(abs(x) + 0.5)", lambda x, u: np.log2(np.abs(x) + 0.5), "exp"),
    ("trunc(x)", lambda x, u: np.trunc(x), "exact"),
    ("mod(x, 3)", lambda x, u: x - 3 * np.floor(x / 3), "div"),
    ("radians(x)", lambda x, u: np.radians(x), "exp"),
    ("deg2rad(x)", lambda x, u: np.radians(x), "exp"),
    ("degrees(x)", lambda x, u: np.degrees(x), "exp"),
    ("inversesqrt(abs(x) + 1)", lambda x, u: 1 / np.sqrt(np.abs(x) + 1), "exp"),
    ("hypot(u, 2)", lambda x, u: np.hypot(u, 2), "exp"),
    ("lerp(x, u, 0.5)", lambda x, u: x * 0.5 + u * 0.5, "exact"),
    ("where(x < u, 1, 2)", lambda x, u: np.where(x < u, 1.0, 2.0), "exact"),
    ("clip(x, -1, 1)", lambda x, u: np.clip(x, -1, 1), "exact"),
    ("roundEven(x)", lambda x, u: np.rint(x), "exact"),
    ("distance((u, 2), (1, u))", lambda x, u: np.hypot(u - 1, 2 - u), "exp"),
    ("cross((u, 1, 2), (0.5, u, 1)).z", lambda x, u: u * u - 0.5, "exp"),
    ("length(normalize((u, 1, 2)))", lambda x, u: np.ones_like(u), "exp"),
    ("normalize((0.0 * u, 0.0 * u)).x", lambda x, u: np.zeros_like(u), "exact"),
    ("reflect((u, 1, 0), (0, 1, 0)).y", lambda x, u: -np.ones_like(u), "exact"),
    ("refract((u, -1), (0, 1), 0.5).x", lambda x, u: u * 0.5, "exact"),
    ("refract((0.8, -0.6), (0, 1), u * 0 + 9).x", lambda x, u: np.zeros_like(u), "exact"),
    ("faceforward((u, 1), (0, 1), (0, 1)).x", lambda x, u: -u, "exact"),
    ("int(all(lessThan((u, 0), (0.5, 1))))", lambda x, u: u < 0.5, "exact"),
    ("int(any(greaterThanEqual((u, 0), (0.5, 1))))", lambda x, u: u >= 0.5, "exact"),
    ("int(isinf(x * inf))", lambda x, u: x != 0, "exact"),
    ("intBitsToFloat(floatBitsToInt(x))", lambda x, u: x, "exact"),
    ("modf(x)[0] * 2 + modf(x)[1]", lambda x, u: np.modf(x)[0] * 2 + np.modf(x)[1], "exact"),
    ("float(ivec2(x, u).x)", lambda x, u: np.clip(np.trunc(x), -(2**31), 2**31 - 1), "exact"),
]


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_the_vocabulary_is_that_of_numpy(engine_id, dtype):
    with needs(dtype):
        x, u = X.astype(NUMPY[dtype]), U.astype(NUMPY[dtype])
        table = ", ".join(f"{dtype}({text})" for text, _, _ in ROWS)
        made = kernel(f"def vocabulary(x, u, *, n: int):\n    return [{table}][n]\n")
        for n, (text, expected, kind) in enumerate(ROWS):
            if dtype == "f64" and "ivec2" in text:
                continue
            wide = np.asarray(expected(x.astype("<f8"), u.astype("<f8"))).astype(x.dtype)
            got = np.asarray(made(x, u, n=n))
            if kind == "exact":
                assert_close(got, wide, engine_id)
            else:
                near = 2e-6 if dtype == "f32" else 2e-14
                np.testing.assert_allclose(got, wide, near, near, err_msg=text)


def test_powers_of_two_have_whole_logarithms(engine_id):
    n = np.arange(-126, 128)
    got = np.asarray(kernel("def whole(x): return log2(x)")(np.exp2(n).astype("<f4")))
    assert got.tolist() == n.tolist()


def test_every_function_of_the_prelude_is_declared_and_written():
    names = {name for name, row in FUNCTIONS.items() if row.prelude}
    for name in names:
        row = FUNCTIONS[name]
        counts = range(1, 4) if row.joined else [row.least]
        assert any(prelude.find(row.name, count) for count in counts), name


NOISE = """
def noises(*, n: int, scale=1.0):
    y, x = position()
    p = (x * 0.137 * scale - 3.0, y * 0.171, x * 0.05 * scale + y * 0.03 - 4.5)
    return [
        random(x, y), noise(p.x), noise(p.xy), noise(p), value_noise(p.x), value_noise(p.xy),
        value_noise(p), simplex(p.xy), simplex(p), worley(p.xy), worley(p),
        fbm(p.xy, octaves=3), noise(p.xy, seed=7),
    ][n]
"""
SIZE = (48, 64)


def noises(n: int, scale: float = 1.0) -> np.ndarray:
    out = buffer_zeros(SIZE, "f32")
    kernel(NOISE).run([], out, {"n": n, "scale": scale})
    return out.numpy()


def test_noise_is_the_same_everywhere(engine_id):
    import dala

    for n in range(13):
        got = noises(n)
        with dala.device("reference"):
            expected = noises(n)
        assert_close(got, expected, engine_id, "exact" if n == 0 else "program")


def test_noise_stays_in_its_range_and_varies():
    ranges = [(0, 1)] + [(-1, 1)] * 3 + [(0, 1)] * 3 + [(-1, 1)] * 2 + [(0, 3)] * 2 + [(-1, 1)] * 2
    seen = [noises(n) for n in range(13)]
    for n, (got, (low, high)) in enumerate(zip(seen, ranges, strict=True)):
        assert low <= got.min()
        assert got.max() <= high
        assert got.std() > 0.04
        steps = np.abs(np.diff(noises(n, 0.01), axis=1)).max()
        assert n == 0 or steps < 0.02  # noise is continuous, chance is not
    assert np.abs(seen[2] - seen[12]).mean() > 0.05  # another seed
    assert abs(seen[0].mean() - 0.5) < 0.02


def test_hash_has_known_bits(engine_id):
    """Bits of hashes never change: pictures of chance are kept in files."""

    def scrambled(x: int) -> int:
        for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
            x = (x ^ x >> shift) * factor & 0xFFFFFFFF
        return x ^ x >> 16

    x = np.array([0, 1, -1, 12345], "<i4")
    got = np.asarray(kernel("def bits(x: s32): return hash(x, 7)")(x))
    assert got.dtype == np.uint32
    once = [scrambled(0x9E3779B9 ^ (int(v) & 0xFFFFFFFF)) for v in x]
    assert got.tolist() == [scrambled(v ^ 7) for v in once]


def test_hash_of_floats_ignores_the_sign_of_zero(engine_id):
    got = np.asarray(kernel("def zeros(x): return hash(x)")(np.array([0.0, -0.0, 1.0], "<f4")))
    assert got[0] == got[1] != got[2]


def test_kernels_may_have_names_of_the_prelude():
    Kernel.register("worley", "def worley(x): return x + 1")
    try:
        mine = kernel("def calls_mine(x): return worley(x)")
        assert np.asarray(mine(np.array([1.0], "<f4"))).tolist() == [2.0]
    finally:
        Kernel.unregister("worley")
