"""Shaders for four pixels of a column (the pattern "strips"), and bytes that stay bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dala
from dala.gpu.compute import buffer_zeros, from_array, kernel, run_kernel
from dala.gpu.compute.call.geometry import program_for
from dala.gpu.compute.engines.webgpu.wgsl.shader import choose_pattern, write_shader
from dala.gpu.compute.kernel import get
from tests.support.engines import NO_ADAPTER, run

DEVICES = {d.api.lower(): d.id for d in dala.devices() if d.backend == "webgpu"}

if not DEVICES:
    pytest.skip(NO_ADAPTER, allow_module_level=True)

SHAPES = [(1, 1), (1, 70), (70, 1), (33, 31), (4, 64), (35, 97)]

#: Kernels that read distant neighbors, two images, positions, in a loop.
KERNELS = {
    "far": """def k(a: Image):
        return a[-4, 3] * 0.25 + a[4, -2] * 0.5 + a[0, 4] * 0.25""",
    "two": """def k(a: Image, b: Image):
        return rgba((a[-1, 0].rgb + b[2, 1].rgb) * 0.5, b[0, 0].a)""",
    "both": """def k(a: Image, b: Pixel):
        return rgba(a[1, 1].rgb * b.rgb, b.a)""",
    "places": """def k(a: Image):
        y, x = position()
        return a[1, 0] * ((y + x) / (a.width + a.height))""",
    "loop": """def k(a: Image, *, n: int = 3):
        total = a[0, 0].rgb * 0.0
        for i in range(n):
            total += a[0, 1].rgb / 4.0
        return rgba(total, a[0, -1].a)""",
}


@pytest.fixture(params=list(DEVICES))
def device(request):
    with dala.device(DEVICES[request.param]):
        yield


def picture(shape, dtype, seed=4):
    data = np.random.default_rng(seed).integers(0, 256, shape, np.uint8)
    return data if dtype == "u8" else (data / 255).astype("<f4")


def on_reference(*args):
    with dala.device("reference"):
        return run(*args)


def pattern(made, images, shape, dtype):
    with dala.device("reference"):
        buffers = [from_array(image) for image in images]
        program, geometry = program_for(made.decl, buffers, shape, dtype)
    return choose_pattern(program, geometry)


@pytest.mark.parametrize("text", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize(
    ("channels", "dtype"), [((4,), "u8"), ((4,), "f32"), ((3,), "f32"), ((), "f32")], ids=str
)
def test_values(device, text, channels, dtype):
    made = kernel(text)
    for size in SHAPES:
        shape = size + channels
        images = [picture(shape, dtype, seed) for seed in range(len(made.inputs))]
        assert pattern(made, images, shape, dtype) == "strips"
        got, wanted = (f(made, images, shape, dtype) for f in (run, on_reference))
        if dtype == "u8":
            assert np.abs(got.astype(int) - wanted).max() <= 1
        else:
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(height=st.integers(1, 40), width=st.integers(1, 70), seed=st.integers(0, 9))
def test_any_size(device, height, width, seed):
    image = picture((height, width, 4), "u8", seed)
    got, wanted = (
        f("sharpen", [image], image.shape, "u8", {"amount": 0.6}) for f in (run, on_reference)
    )
    assert np.abs(got.astype(int) - wanted).max() <= 1


def test_in_place(device):
    """An image that is its own output; the last strip extends beyond it."""
    for height in (1, 5, 34, 39):
        image = picture((height, 45, 4), "u8")
        buffer = from_array(image)
        run_kernel("vignette", [buffer], buffer, {"amount": 0.9})
        with dala.device("reference"):
            wanted = run("vignette", [image], image.shape, "u8", {"amount": 0.9})
        assert np.abs(np.array(buffer).astype(int) - wanted).max() <= 1


def test_long_programs_and_computed_offsets_use_tiles():
    image = picture((8, 8, 4), "u8")
    moved = kernel("def k(a: Image, *, n: int = 1):\n    return a[n, 0]")
    assert pattern(moved, [image], image.shape, "u8") == "tiles"
    long = kernel(
        "def k(a: Image):\n    t = a[1, 0]\n"
        + "".join(f"    t = sin(t * {n}.5)\n" for n in range(60))
        + "    return t"
    )
    assert pattern(long, [image], image.shape, "u8") == "tiles"


def test_bytes_that_are_passed_on_are_not_converted(device):
    ramp = np.arange(256, dtype=np.uint8).repeat(4).reshape(16, 16, 4).copy()
    same = kernel("def k(px: Pixel):\n    return px")
    np.testing.assert_array_equal(run(same, [ramp], ramp.shape, "u8"), ramp)
    turned = kernel("def k(px: Pixel):\n    return rgba(px.b, px.a, px.r, px.g)")
    mixed = picture((9, 13, 4), "u8")
    wanted = mixed[..., [2, 3, 0, 1]]
    np.testing.assert_array_equal(run(turned, [mixed], mixed.shape, "u8"), wanted)


def test_rounding_to_bytes(device):
    """Saturated, halves up, NaN to 0."""
    numbers = np.array([[np.nan, -np.inf, -1, -0.0, 0.5 / 255, 1.5 / 255, 254.4 / 255]], "<f4")
    numbers = np.concatenate([numbers, [[1.0, 2.0, np.inf, 1e-30, -1e-30, 0.25, 0.75]]], axis=1)
    numbers = np.repeat(numbers.astype("<f4")[..., None], 4, axis=2)
    same = kernel("def k(px: Pixel):\n    return px")
    got, wanted = (f(same, [numbers], numbers.shape, "u8") for f in (run, on_reference))
    np.testing.assert_array_equal(got, wanted)


def test_alpha_is_not_computed():
    with dala.device("reference"):
        buffer = buffer_zeros((8, 8, 4), "u8")
        program, geometry = program_for(get("grayscale").decl, [buffer], (8, 8, 4), "u8")
    assert "px.w);" in write_shader(program, geometry).source
