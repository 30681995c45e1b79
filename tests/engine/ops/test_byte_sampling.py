"""Resizes and warps of bytes: equal bytes everywhere, near the formulas in real numbers."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache

import numpy as np
import pytest

import dala
from dala.gpu.compute import from_array
from dala.gpu.compute.engines.cpu.level import LEVELS, host_features, is_x86
from dala.gpu.compute.engines.cpu.ops.resize.byte_tables import digits_of
from dala.gpu.compute.engines.sampling.byte_samples import cubic_weights
from dala.gpu.compute.engines.sampling.byte_taps import WIDE, byte_taps
from dala.gpu.compute.engines.sampling.taps import Axis
from dala.gpu.compute.kernel import get
from tests.support import sampling_cases
from tests.support.sampling_cases import BORDERS, METHODS, OPERATIONS, SIZES

#: The most by which a byte may be off the real value, in steps.
OFF = 0.55


#: `make test` runs every seventh case: it meets every method, border and matrix.
STEPS = [pytest.param(7, id="some"), pytest.param(1, id="all", marks=pytest.mark.long)]


@cache
def expected(op, step):
    with dala.device("reference"):
        return [case.run() for case in sampling_cases.cases(op, step)]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("op", OPERATIONS)
def test_equal_bytes(engine_id, op, step):
    for case, wanted in zip(sampling_cases.cases(op, step), expected(op, step), strict=True):
        got = case.run()
        off = np.argwhere(got != wanted)
        assert not len(off), f"{case.name}: {len(off)} of {got.size} differ, first at {off[0]}"


@pytest.mark.parametrize("step", [61, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("level", LEVELS)
def test_equal_bytes_at_every_level(level, step):
    features = host_features()
    if not is_x86() or not all(map(features.get, LEVELS[level][1])):
        pytest.skip(f"the processor has no {level}")
    made = subprocess.run(
        [sys.executable, "-m", "tests.support.sampling_cases", str(step)],
        env={**os.environ, "DALA_CPU": level},
        capture_output=True,
        text=True,
        check=True,
    )
    wanted = {
        f"{op}: {case.name}": sampling_cases.checksum(result)
        for op in OPERATIONS
        for case, result in zip(sampling_cases.cases(op, step), expected(op, step), strict=True)
    }
    got = dict(line.split("\t") for line in made.stdout.splitlines())
    assert got.keys() == wanted.keys()
    assert [name for name in wanted if got[name] != wanted[name]] == []


def test_channels_tiles_and_threads_do_not_matter(engine_id):
    """RGB equals RGBA, one channel equals its part, a crop equals its part of the whole."""
    image = sampling_cases.picture(90, 130, 4, 1)
    for op, params in (
        ("resize", {"size": (77, 61), "method": "lanczos"}),
        ("warp_affine", {"matrix": sampling_cases.AFFINE["turned"], "method": "bicubic"}),
        ("warp_affine", {"matrix": sampling_cases.AFFINE["level"]}),
        ("warp_perspective", {"matrix": sampling_cases.PERSPECTIVE["leaning"]}),
    ):
        whole = np.array(get(op)(from_array(image), **params).numpy())
        three = np.ascontiguousarray(image[..., :3])
        np.testing.assert_array_equal(get(op)(from_array(three), **params).numpy(), whole[..., :3])
        one = np.ascontiguousarray(image[..., 1])
        np.testing.assert_array_equal(get(op)(from_array(one), **params).numpy(), whole[..., 1])
    # A tile of a warp is a warp with a moved matrix.
    a, b, c, d, e, f = 0.5, -0.25, 6.25, 0.125, 0.75, 2.5
    whole = get("warp_affine")(from_array(image), matrix=(a, b, c, d, e, f)).numpy()
    moved = (a, b, c + 16 * a + 8 * b, d, e, f + 16 * d + 8 * e)
    tile = get("warp_affine")(from_array(image), matrix=moved, size=(40, 30)).numpy()
    np.testing.assert_array_equal(tile, whole[8:38, 16:56])


# the tables -------------------------------------------------------------------------------------
@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("method", METHODS[1:])
def test_integer_weights(method, antialias):
    """They add up, fit 16 bits, and no sum overflows 32."""
    for (height, width), (rows, columns) in SIZES:
        y = Axis(height, rows, 0, rows).taps(method, antialias)
        x = Axis(width, columns, 0, columns).taps(method, antialias)
        found = byte_taps(y, x)
        down, across = found.weights_y.astype(np.int64), found.weights_x.astype(np.int64)
        assert (down.sum(axis=1) == 1 << (found.down + found.fraction)).all()
        assert (across.sum(axis=1) == 1 << (found.across - found.fraction)).all()
        for taps, given in ((y, down), (x, across)):
            assert given.max() < 32768
            assert given.min() >= -32768
            off = given / given.sum(axis=1, keepdims=True) - taps.weights
            assert np.abs(off).max() <= 1.01 * 2.0**-14
        line = 255 * np.maximum(down, 0).sum(axis=1).max() >> found.down
        assert line < 32768
        assert 255 * np.abs(down).sum(axis=1).max() + (1 << found.down) < 1 << 31
        most = line if x.count <= WIDE else 255
        assert most * np.abs(across).sum(axis=1).max() + (1 << found.across >> 1) < 1 << 31


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("method", METHODS[1:])
def test_resizes_are_near_the_real_values(method, antialias):
    for n, ((height, width), (rows, columns)) in enumerate(SIZES):
        image = sampling_cases.picture(height, width, 3, n)
        y = Axis(height, rows, 0, rows).taps(method, antialias)
        x = Axis(width, columns, 0, columns).taps(method, antialias)
        real = np.clip(y.apply(x.apply(image.astype(np.float64), 1), 0), 0, 255)
        assert np.abs(byte_taps(y, x).apply(image) - real).max() <= OFF


def test_a_row_of_one_color_is_rounded_once():
    """An error of sums down would be the same in every column."""
    image = np.repeat(np.arange(0, 250, 2, dtype=np.uint8)[:, None, None], 900, axis=1)
    y, x = Axis(125, 90, 0, 90).taps("bilinear", True), Axis(900, 3, 0, 3).taps("area", True)
    real = y.apply(x.apply(image.astype(np.float64), 1), 0)
    assert np.abs(byte_taps(y, x).apply(image) - real).max() <= 0.51


def test_cubic_weights_are_near_the_real_values():
    t = np.arange(32768, dtype=np.int64)
    given, real, a = cubic_weights(t), t / 32768, -0.75
    wanted = (
        a * (real**3 - 2 * real**2 + real),
        (a + 2) * real**3 - (a + 3) * real**2 + 1,
        -(a + 2) * real**3 + (2 * a + 3) * real**2 - a * real,
        -a * (real**3 - real**2),
    )
    assert (sum(given) == 16384).all()
    for got, weight in zip(given, wanted, strict=True):
        assert (
            np.abs(got / 16384 - weight).max() <= 2.0 / 16384
        )  # the second has the others' errors


# warps ------------------------------------------------------------------------------------------
def real_samples(image, x, y, method, border, fill):
    """Return samples in f64."""
    height, width = image.shape[:2]
    left, top = np.floor(x).astype(int), np.floor(y).astype(int)

    def index(i, count):
        if border == "wrap":
            return i % count
        if border == "reflect":
            period = max(2 * (count - 1), 1)
            i = np.abs(i) % period
            return np.minimum(np.minimum(i, period - i), count - 1)
        return np.clip(i, 0, count - 1)

    def weights(t):
        if method == "bilinear":
            return [1 - t, t]
        a = -0.75
        far = [(((d - 5) * d + 8) * d - 4) * a for d in (1 + t, 2 - t)]
        near = [((a + 2) * d - (a + 3)) * d * d + 1 for d in (t, 1 - t)]
        return [far[0], *near, far[1]]

    start, total = 0 if method == "bilinear" else -1, 0.0
    for j, down in enumerate(weights(y - top), start):
        for k, across in enumerate(weights(x - left), start):
            rows, columns = top + j, left + k
            value = image[index(rows, height), index(columns, width)].astype(np.float64)
            if border == "constant":
                beyond = (rows < 0) | (rows >= height) | (columns < 0) | (columns >= width)
                value[beyond] = fill
            total = total + (down * across)[..., None] * value
    return np.clip(total, 0, 255)


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("method", ["bilinear", "bicubic"])
def test_warps_are_near_the_real_values(method, border):
    y, x = np.mgrid[:90, :170].astype(np.float64)
    params = {"method": method, "border": border, "fill": 0.2}
    for seed in (1, 2):
        image = sampling_cases.picture(80, 110, 3, seed)
        matrix = sampling_cases.PERSPECTIVE["leaning"]
        u, v, w = (matrix[n] * x + matrix[n + 1] * y + matrix[n + 2] for n in (0, 3, 6))
        a, b, c, d, e, f = 0.61, -0.17, 3.37, 0.2, 0.53, -5.1
        at = np.stack([a * x + b * y + c, d * x + e * y + f], axis=-1).astype(np.float32)
        with dala.device("reference"):
            size = (170, 90)
            made = {
                "affine": (
                    get("warp_affine")(
                        from_array(image), matrix=(a, b, c, d, e, f), size=size, **params
                    ),
                    (a * x + b * y + c, d * x + e * y + f),
                ),
                "perspective": (
                    get("warp_perspective")(from_array(image), matrix=matrix, size=size, **params),
                    (u / w, v / w),
                ),
                "map": (
                    get("remap")(from_array(image), from_array(at), **params),
                    (at[..., 0].astype(np.float64), at[..., 1].astype(np.float64)),
                ),
            }
        for name, (got, places) in made.items():
            real = real_samples(image, *places, method, border, 51.0)
            assert np.abs(got.numpy() - real).max() <= OFF, name


def test_digits_of_three_rows():
    """Digits add up to the weights, and no pair of them overflows 16 bits with bytes."""
    cuts = np.random.default_rng(5).integers(128, 32640, (4000, 2))
    cuts[:4] = (20480, 32640), (128, 256), (16384, 16512), (10923, 29127)
    weights = np.diff(np.sort(cuts, axis=1), axis=1, prepend=0, append=32768).astype(np.int32)
    made = digits_of(weights)
    assert made is not None
    pairs = np.ascontiguousarray(made.reshape(-1, 6)[:, :4]).view(np.int8).astype(np.int32)
    assert pairs.min() >= 0
    assert (pairs[:, ::2] + pairs[:, 1::2]).max() <= 128
    p, q = made.reshape(-1, 6)[:, 4:].T
    each, found = np.arange(len(weights)), np.zeros_like(weights)
    for at, unit in ((0, 128), (4, 1)):
        found[each, p] += pairs[:, at] * unit
        found[each, q] += pairs[:, at + 2] * unit
        found[each, 3 - p - q] += (pairs[:, at + 1] + pairs[:, at + 3]) * unit
    np.testing.assert_array_equal(found, weights)


def test_one_row_of_three_has_no_digits():
    assert digits_of(np.array([[0, 32766, 2]], np.int32)) is None
