"""Look-up tables as tetrahedra, which GPUs use for large frames; here for any size."""

from __future__ import annotations

import types

import numpy as np
import pytest

import dala
from dala.gpu.compute.engines.webgpu.ops import lut as webgpu_lut
from tests.support.engines import NO_ADAPTER, run

DEVICES = {d.api.lower(): d.id for d in dala.devices() if d.backend == "webgpu"}

if not DEVICES:
    pytest.skip(NO_ADAPTER, allow_module_level=True)


@pytest.fixture(params=list(DEVICES))
def tetrahedra(request, monkeypatch):
    """Prefer tetrahedra always; returns the sizes of the tables that they were chosen for."""
    sizes = []

    def prefers(engine, size, pixels, method):
        sizes.append(size)
        return True

    monkeypatch.setattr(webgpu_lut, "prefers_tetrahedra", prefers)
    with dala.device(DEVICES[request.param]):
        yield sizes


def table(n):
    return np.random.default_rng(1).uniform(-0.1, 1.1, (n, n, n, 3)).astype("<f4")


def ramp(n):
    """Return the identity table."""
    axes = np.meshgrid(*[np.linspace(0, 1, n)] * 3, indexing="ij")
    return np.stack(axes, axis=-1).astype("<f4")


def picture(*shape):
    return np.random.default_rng(2).integers(0, 256, shape, "u1")


def assert_as_defined(image, lut, **params):
    with dala.device("reference"):
        wanted = run("lut_apply", [image, lut], image.shape, "u8", params)
    assert np.array_equal(run("lut_apply", [image, lut], image.shape, "u8", params), wanted)


PARAMS = [
    {},
    {"amount": 0.35},
    {"amount": 0.0},
    {"domain_min": (-0.5, 0.0, 0.25), "domain_max": (1.0, 2.0, 0.75)},
]


@pytest.mark.parametrize("params", PARAMS)
@pytest.mark.parametrize(("n", "shape"), [(2, (3, 5, 4)), (17, (1, 1, 4)), (33, (31, 43, 4))])
def test_values(tetrahedra, n, shape, params):
    """Odd numbers of pixels, and tables that grow by nothing, by 2, and by 15."""
    flat, steep = np.full((n, n, n, 3), 0.3, "<f4"), np.sign(table(n) - np.float32(0.5))
    for lut in (table(n), ramp(n), flat, steep, table(n) * np.float32(13) - np.float32(6)):
        assert_as_defined(picture(*shape), lut, **params)
    assert set(tetrahedra) == {n}


@pytest.mark.parametrize("n", [2, 17, 18, 33])
def test_the_identity_is_exact(tetrahedra, n):
    grays = np.repeat(np.arange(256, dtype="u1"), 4).reshape(1, 256, 4)
    image = np.concatenate([grays, picture(6, 256, 4)])
    assert np.array_equal(run("lut_apply", [image, ramp(n)], image.shape, "u8"), image)
    assert tetrahedra == [n]


@pytest.mark.parametrize("amount", [1.0, 0.5])
@pytest.mark.parametrize("n", [2, 5, 18])
def test_entries_that_are_not_ordinary(tetrahedra, n, amount):
    """NaN is 0, and infinite and far entries are clamped."""
    lut, random = table(n), np.random.default_rng(8)
    for v in (np.nan, np.inf, -np.inf, 3.0, -2.0, 1e30, 3e38, -3e38):
        lut.reshape(-1)[random.integers(0, lut.size, max(1, lut.size // 60))] = v
    few = np.array([0, 1, 15, 40, 63, 64, 100, 191, 240, 254, 255], "u1")
    colors = np.stack(np.meshgrid(few, few, few, indexing="ij"), -1).reshape(11, 121, 3)
    with np.errstate(all="ignore"):
        assert_as_defined(np.dstack([colors, colors[..., :1]]), lut, amount=amount)
    assert tetrahedra == [n]


def test_other_pictures_have_none(tetrahedra):
    assert_as_defined(picture(3, 5, 3), table(5))
    assert_as_defined(picture(3, 5, 4) / np.float32(255), table(5))
    assert not tetrahedra


def test_they_are_for_large_frames_and_middling_tables():
    engine = types.SimpleNamespace(gpu=True)

    def chosen(size, pixels, method="tetrahedral"):
        return webgpu_lut.prefers_tetrahedra(engine, size, pixels, method)

    large = 3840 * 2160
    assert [chosen(n, large) for n in (17, 26, 33, 65)] == [False, True, True, False]
    assert not chosen(33, 1920 * 1080)
    assert not chosen(33, 1280 * 720)
    assert not chosen(33, large, "trilinear")
    engine.gpu = False
    assert not chosen(33, large)
