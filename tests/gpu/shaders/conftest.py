"""Fixtures of these tests."""

from __future__ import annotations

import os

import pytest

from dala.gpu import create_surface
from dala.gpu.shaders.dispatch import SurfaceShaders
from tests.gpu.shaders.shaded import PHOTO
from tests.support.engines import NO_ADAPTER, targets


@pytest.fixture(params=[name for name in targets() if name.startswith("webgpu")])
def wgsl_device(request) -> str:
    device = targets()[request.param]
    if device is None:
        if os.environ.get("CI") == "true" or os.environ.get("DALA_REQUIRE_WEBGPU") == "1":
            pytest.fail(NO_ADAPTER)
        pytest.skip(NO_ADAPTER)
    return device


@pytest.fixture
def surface(wgsl_device):
    """A surface with the photo, whose WGSL runs on each adapter."""
    with create_surface(29, 13) as s:
        s._renderer.shaders = SurfaceShaders(wgsl_device)
        s.set_pixels(PHOTO)
        yield s
