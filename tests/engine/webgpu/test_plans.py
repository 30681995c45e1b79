"""Matrix products, Fourier passes and transposes on WebGPU: every tile and pass is right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dala
from dala.gpu.compute import from_array
from dala.gpu.compute.engines.webgpu.ops import conv, conv_tiles, gemm
from dala.gpu.compute.engines.webgpu.ops.reshape import matrices
from dala.gpu.compute.kernel import get
from tests.support.engines import NO_ADAPTER, run

DEVICES = {d.api.lower(): d.id for d in dala.devices() if d.backend == "webgpu"}

if not DEVICES:
    pytest.skip(NO_ADAPTER, allow_module_level=True)

#: Software adapters take seconds to compile the larger tiles, and only use the smallest.
TILES = [
    pytest.param(
        tile,
        id=f"{tile.height}x{tile.width}",
        marks=() if tile is gemm.TILES[-1] else pytest.mark.long,
    )
    for tile in gemm.TILES
]


@pytest.fixture(params=list(DEVICES))
def webgpu_engine(request):
    """One of this machine's adapters is the current device."""
    with dala.device(DEVICES[request.param]):
        yield request.param


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("shares", [1, 3])
def test_tiles(webgpu_engine, monkeypatch, tile, shares):
    """Ragged sizes, and a sum in shares."""
    rng = np.random.default_rng(4)
    a = rng.standard_normal((150, 3 * tile.depth - 5)).astype("f4")
    b = rng.standard_normal((a.shape[1], 139)).astype("f4")
    plan = gemm.GemmPlan(tile, shares, -(-a.shape[1] // shares // tile.depth) * tile.depth)
    monkeypatch.setattr(gemm, "choose", lambda *args, **options: plan)
    call = get("matmul")
    monkeypatch.setattr(call, "_plans", {})
    x, y = from_array(a), from_array(b)
    np.testing.assert_allclose(np.array(call(x, y)), a.astype("f8") @ b, rtol=0, atol=1e-4)
    turned = np.array(call(from_array(a.T.copy()), y, transpose_a=True))
    np.testing.assert_allclose(turned, a.astype("f8") @ b, rtol=0, atol=1e-4)


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("channels", [3, 4], ids=["by window", "by channel"])
def test_tiles_of_convolutions(webgpu_engine, monkeypatch, tile, channels):
    rng = np.random.default_rng(5)
    x = rng.standard_normal((2, channels, 11, 13)).astype("f4")
    w = rng.standard_normal((40, channels, 3, 3)).astype("f4")
    call = get("conv2d")
    options = {"stride": (1, 2), "padding": (1, 0), "dilation": (1, 2)}
    expected = np.array(
        call(from_array(x, device="reference"), from_array(w, device="reference"), **options)
    )
    plan = gemm.GemmPlan(tile, 1, -(-w[0].size // tile.depth) * tile.depth)
    monkeypatch.setattr(gemm, "choose", lambda *args, **options: plan)
    monkeypatch.setattr(call, "_plans", {})
    got = np.array(call(from_array(x), from_array(w), **options))
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-4)


#: Small tiles, which software adapters compile in a second.
SMALL_TILES = {
    "shares, a bias and parts": (
        conv_tiles.ConvTile(8, 4, 8, 4, 1, 4, (3, 3), (1, 1)),
        2,
        ((2, 24, 9, 13), (20, 12, 3, 3), {"padding": 1, "groups": 2}),
    ),
    "strides": (
        conv_tiles.ConvTile(16, 4, 16, 4, 2, 4, (2, 3), (1, 2)),
        1,
        ((6, 9, 16), (9, 6, 2, 3), {"padding": (1, 0), "stride": (1, 2)}),
    ),
    "steps beyond the window": (
        conv_tiles.ConvTile(8, 2, 4, 4, 1, 4, (1, 2), (2, 3)),
        1,
        ((2, 5, 7, 25), (8, 5, 1, 2), {"padding": (0, 2), "stride": (2, 3)}),
    ),
}


@pytest.mark.parametrize("case", SMALL_TILES)
def test_convolutions_over_tiles_of_the_image(webgpu_engine, monkeypatch, case):
    """Ragged sizes; each case has a shader of its own."""
    tile, shares, (shape, weights, options) = SMALL_TILES[case]
    rng = np.random.default_rng(8)
    inputs = [rng.standard_normal(size).astype("f4") for size in (shape, weights)]
    if shares > 1:
        inputs.append(rng.standard_normal(weights[0]).astype("f4"))
    call = get("conv2d")
    expected = np.array(call(*(from_array(a, device="reference") for a in inputs), **options))
    share = -(-weights[1] // shares // tile.slice) * tile.slice
    plan = gemm.GemmPlan(tile, shares, share)
    monkeypatch.setattr(conv, "tiled", lambda *args: plan)
    monkeypatch.setattr(call, "_plans", {})
    got = np.array(call(*map(from_array, inputs), **options))
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-4)


def test_tiles_follow_the_convolution():
    """Large images take the largest tile, small ones share the sum; all fit every device."""
    large = conv_tiles.ConvSizes(64, 64, 1, 512, 512, (3, 3), (1, 1))
    found = conv_tiles.choose(large, 4, 16384, 256)
    assert found is not None
    assert (found.tile.outputs, found.shares) == (64, 1)
    deep = conv_tiles.ConvSizes(256, 256, 1, 14, 14, (3, 3), (1, 1))
    assert conv_tiles.choose(deep, 4, 16384, 256).shares > 1
    for window in ((1, 1), (3, 3), (2, 5), (7, 7)):
        for stride in ((1, 1), (2, 2), (3, 1)):
            for channels in (1, 3, 4, 70):
                problem = conv_tiles.ConvSizes(33, channels, 2, 31, 30, window, stride)
                plan = conv_tiles.choose(problem, 4, 16384, 256)
                if plan is not None:
                    assert plan.tile.nbytes(4) <= 16384
                    assert plan.tile.threads <= 256
                    assert plan.shares * plan.share >= channels
                    assert plan.share % plan.tile.slice == 0
    assert conv_tiles.choose(large, 4, 1024, 256) is None


@pytest.mark.long
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("kind", conv_tiles.KINDS, ids=lambda k: f"{k.outputs}x{k.down}x{k.across}")
def test_large_tiles_of_the_image(webgpu_engine, monkeypatch, kind, stride):
    """The tiles that GPUs use."""
    tile = replace(kind, stride=(stride, stride))
    rng = np.random.default_rng(9)
    x = rng.standard_normal((1, 8, 30, 31)).astype("f4")
    w = rng.standard_normal((70, 8, 3, 3)).astype("f4")
    call = get("conv2d")
    options = {"padding": 1, "stride": stride}
    expected = np.array(
        call(from_array(x, device="reference"), from_array(w, device="reference"), **options)
    )
    plan = gemm.GemmPlan(tile, 1, 8)
    monkeypatch.setattr(conv, "tiled", lambda *args: plan)
    monkeypatch.setattr(call, "_plans", {})
    got = np.array(call(from_array(x), from_array(w), **options))
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-4)


def test_plans_follow_the_size():
    """Large outputs take the largest tile, long sums of small outputs are shared."""
    large = gemm.choose(4096, 4096, 4096, 1, 4)
    assert (large.tile, large.shares) == (gemm.TILES[0], 1)
    assert gemm.choose(512, 512, 512, 1, 4).tile == gemm.TILES[-1]
    thin = gemm.choose(8, 8, 8192, 1, 4)
    assert thin.shares > 16
    assert thin.shares * thin.share >= 8192
    for itemsize in (4, 8):
        for sizes in ((1, 1, 0), (1, 1, 1), (7, 100000, 3), (3000, 5, 70000)):
            plan = gemm.choose(*sizes, 1, itemsize)
            assert plan.tile.nbytes(itemsize) <= gemm.WORKGROUP_BYTES
            assert plan.shares * plan.share >= sizes[2]
            assert plan.share % plan.tile.depth == 0


@pytest.mark.parametrize("length", [2048, 4096, 8192, 1 << 15])
def test_long_transforms(webgpu_engine, length):
    """Passes across lines, with a number of transforms that does not fill the last group."""
    rng = np.random.default_rng(6)
    x = rng.standard_normal((3, length, 2)).astype("f4")
    got = run("fft", [x], x.shape, "f32")
    expected = np.fft.fft(x[..., 0].astype("f8") + 1j * x[..., 1])
    off = np.abs(got[..., 0] + 1j * got[..., 1] - expected)
    assert off.max() <= 1e-6 * np.abs(expected).max()
    back = run("ifft", [got], got.shape, "f32")
    np.testing.assert_allclose(back, x, rtol=0, atol=2e-5)


def test_transposes_as_matrices():
    """A transposition is a copy, a turn of matrices, or neither."""
    rng = np.random.default_rng(7)
    for shape in ((4, 5), (2, 3, 4), (3, 1, 4, 2), (2, 3, 2, 5)):
        for _ in range(10):
            axes = tuple(int(n) for n in rng.permutation(len(shape)))
            a = np.arange(np.prod(shape)).reshape(shape)
            wanted = a.transpose(axes).ravel()
            found = matrices(shape, axes)
            if found is None:
                assert np.array_equal(wanted, a.ravel())
            elif found[1]:
                count, rows, columns, inner = found
                turned = a.reshape(count, rows, columns, inner).transpose(0, 2, 1, 3)
                assert np.array_equal(wanted, turned.ravel())
