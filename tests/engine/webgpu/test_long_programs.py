"""Long programs: ``main`` calls ``kernel`` in a loop, so that compilers have its text once."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.gpu.compute import from_array, kernel
from dala.gpu.compute.call.geometry import program_for
from dala.gpu.compute.engines.webgpu.wgsl import shader
from tests.support.engines import NO_ADAPTER, run

DEVICES = {d.api.lower(): d.id for d in dala.devices() if d.backend == "webgpu"}

if not DEVICES:
    pytest.skip(NO_ADAPTER, allow_module_level=True)

ELEMENTS = (
    "def k(x, y, *, n: int = 3):\n    for i in range(n):\n        x = x * 0.5 + y\n    return x"
)
PLACES = "def k(x, y):\n    r, c = position()\n    return x * 2 + y + r * 100 + c"
PIXELS = "def k(a: Pixel, b: Pixel):\n    return a * 0.5 + b * 0.25"
MIXED = "def k(a: Pixel, w):\n    return a * w"
NEIGHBORS = "def k(a: Image):\n    return a[0, 0] * 0.5 + a[1, 1] * 0.25 + a[-1, 0] * 0.25"


@pytest.fixture(params=list(DEVICES))
def device(request, monkeypatch):
    """Where every program is long."""
    monkeypatch.setattr(shader, "MAX_COPIED", 0)
    monkeypatch.setattr(shader, "MAX_SOFTWARE_COPIED", 0)
    with dala.device(DEVICES[request.param]):
        engine = from_array(np.zeros(1, np.float32)).engine
        engine._compiled.clear()
        yield
        engine._compiled.clear()


def numbers(shape, dtype, seed):
    found = np.random.default_rng(seed).integers(0, 100, shape)
    return found.astype({"u8": "u1", "f32": "<f4", "f64": "<f8", "s32": "<i4"}[dtype])


def check(text, inputs, shape, dtype):
    made = kernel(text)
    with dala.device("reference"):
        expected = run(made, inputs, shape, dtype)
    found = run(made, inputs, shape, dtype)
    if dtype == "u8":
        assert np.abs(found.astype(int) - expected).max(initial=0) <= 1
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", ["f32", "u8", "s32"])
@pytest.mark.parametrize("size", [1, 3, 4, 1030])
def test_elements(device, dtype, size):
    text = ELEMENTS if dtype != "s32" else ELEMENTS.replace("0.5", "3")
    check(text, [numbers(size, dtype, 1), numbers(size, dtype, 2)], (size,), dtype)


@pytest.mark.parametrize("dtype", ["f32", "u8"])
@pytest.mark.parametrize("shape", [(3, 8), (5, 7)])
def test_broadcast_elements_and_positions(device, dtype, shape):
    inputs = [numbers(shape, dtype, 1), numbers(shape[1:], dtype, 2)]
    check(ELEMENTS, inputs, shape, dtype)
    check(PLACES, inputs, shape, dtype)


@pytest.mark.parametrize("dtype", ["f32", "u8"])
@pytest.mark.parametrize("channels", [(), (3,), (4,)], ids=["gray", "rgb", "rgba"])
@pytest.mark.parametrize("size", [(1, 1), (5, 9)])
def test_pixels(device, dtype, channels, size):
    shape = (*size, *channels)
    inputs = [numbers(shape, dtype, 1), numbers(shape, dtype, 2)]
    check(PIXELS, inputs, shape, dtype)
    check(NEIGHBORS, inputs[:1], shape, dtype)
    if channels:
        weights = (numbers(size, "f32", 3) / 100).astype("<f4")
        check(MIXED, [inputs[0], weights], shape, dtype)
        check(MIXED, [inputs[0], weights[:1]], shape, dtype)


def test_in_place(device):
    made = kernel("def k(x):\n    return x * 2 + 1")
    source = from_array(numbers(11, "u8", 1) // 2)
    expected = np.array(source.read_list()) * 2 + 1
    made(source, out=source)
    assert source.read_list() == expected.tolist()


def test_limits_count_each_position(device):
    made = kernel(
        "def k(x, *, n: int = 5):\n    for i in range(n):\n        x = x + 1\n    return x"
    )
    source = from_array(numbers(7, "f32", 1))
    with dala.limits(iterations=5):
        assert made(source).read_list() == [v + 5 for v in source.read_list()]
        with pytest.raises(dala.LimitExceeded):
            made(source, n=6)


def source_of(text, software):
    with dala.device("reference"):
        inputs = [from_array(np.zeros(64, np.float32))]
        program, geometry = program_for(kernel(text).decl, inputs, (64,), "f32")
    return shader.write_shader(program, geometry, software=software).source


def test_only_long_programs_are_in_a_loop():
    short = "def k(x): return pow(sin(x), 2.2) + cos(x)"
    long = "def k(x):\n" + "    x = sin(x)\n" * 12 + "    return x"
    longest = "def k(x):\n" + "    x = sin(x)\n" * 120 + "    return x"
    assert source_of(short, software=True).count(" kernel(") == 5  # four calls
    assert source_of(long, software=True).count(" kernel(") == 2
    assert source_of(long, software=False).count(" kernel(") == 5
    assert source_of(longest, software=False).count(" kernel(") == 2


MANY_LOOPS = """
def k(x, y, *, n: int = 3):
    for i in range(n):
        x = x * 0.5 + y
    for i in range(n, 0, -1):
        x = x + i
        if x > 500.0:
            break
    if y > 50.0:
        for i in range(0, n * 3, 2):
            if i == 2:
                continue
            for j in range(i):
                x = x + 0.25 * j
    else:
        for i in range(n):
            x = x - i
    return x
"""


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("n", [0, 1, 7])
def test_loops_in_a_row_where_a_processor_compiles(name, n):
    """Each is inside a loop that runs once, so that compiling takes time in proportion."""
    made = kernel(MANY_LOOPS)
    inputs = [numbers(103, "f32", 1), numbers(103, "f32", 2)]
    with dala.device("reference"):
        expected = run(made, inputs, (103,), "f32", {"n": n})
    with dala.device(DEVICES[name]):
        found = run(made, inputs, (103,), "f32", {"n": n})
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize(("software", "apart"), [(True, 4), (False, 0)])
def test_only_outer_loops_of_software_adapters_are_wrapped(software, apart):
    with dala.device("reference"):
        given = [from_array(numbers(8, "f32", n)) for n in (1, 2)]
        program, geometry = program_for(kernel(MANY_LOOPS).decl, given, (8,), "f32")
    text = shader.write_shader(program, geometry, software=software).source
    assert text.count("< p.once;") == apart
    limited = shader.Metering(limit=None, cut=True)
    cut = shader.write_shader(program, geometry, software=software, metering=limited).source
    assert "p.once" not in cut
