"""WebGPU within the limits of browsers and phones (``DALA_WEBGPU_LIMITS``).

The conformance suite runs again in processes with the variable set: a selection here, all of it
with the tests marked ``long``. wgpu refuses what exceeds the limits that it was asked for; the
engine itself refuses shaders with too much workgroup memory, which wgpu does not check.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dala
from dala.errors import BufferTooLarge, DeviceError, ParameterError
from dala.gpu import compute
from dala.gpu.compute.engines import instances
from dala.gpu.compute.engines.webgpu import limits as webgpu_limits
from dala.gpu.compute.engines.webgpu.adapters import list_adapters
from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine
from dala.gpu.compute.engines.webgpu.limits import workgroup_bytes
from dala.gpu.compute.engines.webgpu.wgsl.joining import JoinedInputs, join_inputs
from dala.gpu.shaders.device import compile_on
from dala.gpu.shaders.wgsl import reflect
from tests.engine.webgpu.by_hand import OF_WGPU, engine_for
from tests.support.engines import NO_ADAPTER, evaluate, run

ROOT = Path(__file__).parents[3]
ADAPTERS = list_adapters()
CLASSES = tuple(webgpu_limits.CLASSES)

if not ADAPTERS:
    pytest.skip(NO_ADAPTER, allow_module_level=True)


@pytest.fixture(params=ADAPTERS, ids=[a.backend.lower() for a in ADAPTERS], scope="module")
def engine(request: pytest.FixtureRequest) -> Iterator[WebGPUEngine]:
    """An engine of the lowest class, which is the device of its name meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(webgpu_limits.VARIABLE, "downlevel")
        made = WebGPUEngine(request.param)
        patch.setitem(instances._by_id, made.id, made)
        patch.setitem(instances.by_name, made.id, made)
        with dala.device(made.id):
            yield made
        made.close()


# the variable -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("adapter", OF_WGPU, ids=lambda a: a.backend.lower())
def test_the_device_has_the_limits_of_the_class(adapter, name, monkeypatch):
    monkeypatch.setenv(webgpu_limits.VARIABLE, name)
    engine = WebGPUEngine(adapter)
    try:
        given = dict(engine.owner.call(lambda: engine.device.native.limits))
        for key, most in webgpu_limits.CLASSES[name].items():
            if key not in given or key not in adapter.limits:
                continue
            if key.startswith("min-"):
                assert given[key] == max(most, adapter.limits[key]), key
            else:
                assert given[key] == min(most, adapter.limits[key]), key
        assert engine.info()["limits_class"] == name
    finally:
        engine.close()


def test_the_adapters_own_limits_without_the_variable(monkeypatch):
    monkeypatch.delenv(webgpu_limits.VARIABLE, raising=False)
    engine = WebGPUEngine(ADAPTERS[0])
    assert engine.limits == dict(ADAPTERS[0].limits)
    assert engine.info()["limits_class"] == "adapter"
    engine.close()


@pytest.mark.parametrize("value", ["defaults", "Default", "16", "webgl"])
def test_a_wrong_class_is_refused(value, monkeypatch):
    monkeypatch.setenv(webgpu_limits.VARIABLE, value)
    with pytest.raises(ParameterError) as caught:
        WebGPUEngine(ADAPTERS[0])
    assert str(caught.value) == (
        f"webgpu: DALA_WEBGPU_LIMITS must be default or downlevel, got {value!r}. Unset it for the "
        "adapter's own limits."
    )


# more inputs than bindings ------------------------------------------------------------------------


def test_only_as_many_inputs_are_joined_as_must_be():
    text = "def f(a, b, c, d, e): return a + b + c + d + e"
    decl = compute.kernel(text)
    with dala.device("reference"):
        given = [compute.buffer_zeros((4,)) for _ in range(5)]
        call, _ = decl.bind(given, compute.buffer_zeros((4,)), {})
    free = range(5)
    assert join_inputs(call.program, free, 5) == ((0, 1, 2, 3, 4), ())
    words = "vec4<u32>"
    assert join_inputs(call.program, free, 4) == ((0, 1, 2), (JoinedInputs(words, (3, 4)),))
    assert join_inputs(call.program, free, 3) == ((0, 1), (JoinedInputs(words, (2, 3, 4)),))
    assert join_inputs(call.program, (1, 2, 3, 4), 2) == ((1,), (JoinedInputs(words, (2, 3, 4)),))


@pytest.mark.parametrize("shape", [(7,), (5, 8), (3, 5, 4)], ids=str)
@pytest.mark.parametrize("dtype", ["f32", "s32", "u32", "u8", "f64", "s64"])
def test_a_kernel_of_nine_inputs(engine, dtype, shape):
    if dtype not in engine.dtypes:
        pytest.skip(f"{engine.id} has no {dtype}")
    names = [f"x{i}" for i in range(9)]
    weighted = " + ".join(f"{name} * {i + 1}" for i, name in enumerate(names))
    text = f"def nine({', '.join(names)}): return {weighted}"
    rng = np.random.default_rng(3)
    kind = {"f32": "f4", "s32": "i4", "u32": "u4", "u8": "u1", "f64": "f8", "s64": "i8"}[dtype]
    shapes = [shape, shape, shape[-1:], (1,), shape, shape, (1,) * len(shape), shape, shape]
    inputs = [rng.integers(0, 5, s).astype(kind) for s in shapes]
    expected = sum(a.astype("f8") * (i + 1) for i, a in enumerate(inputs))
    got = evaluate(text, inputs, dtype)
    np.testing.assert_array_equal(got, expected.astype(kind))


def test_inputs_of_all_types_and_kinds_at_once(engine):
    wide = [d for d in ("f64", "s64") if d in engine.dtypes]
    text = """
        def every(px: Pixel, img: Image, small: Image, table: Array, words: Array, more: Array):
            left = img[-1, 0]
            k = more[1] + words[2]
            return rgba(px.rgb * 0.5 + left.rgb * 0.25 + table[3] * 0.1 + small[0, 1] * 0.125
                        + f32(k) * 0.001, px.a)
    """
    kernel = compute.kernel(textwrap.dedent(text))
    rng = np.random.default_rng(5)
    inputs = [
        rng.integers(0, 256, (9, 37, 4), np.uint8),
        rng.random((9, 37, 4), np.float32) * 255,
        rng.random((9, 37), np.float32) * 255,
        rng.random(7, np.float32),
        np.arange(5, dtype=np.int32),
        np.arange(3, dtype=np.int64 if "s64" in wide else np.uint32),
    ]
    got = run(kernel, inputs, (9, 37, 4), "u8")
    with dala.device("reference"):
        expected = run(kernel, inputs, (9, 37, 4), "u8")
    assert np.abs(got.astype(int) - expected).max() <= 1
    assert expected.std() > 10


def test_an_output_that_is_also_an_input(engine):
    kernel = compute.kernel("def f(a, b, c, d, e): return a + b * 2 + c * 3 + d * 4 + e * 5")
    given = [compute.from_array(np.full(6, 10.0**i, "f4")) for i in range(5)]
    compute.run_kernel(kernel, given, given[3])
    assert compute.read_list(given[3]) == [54321.0] * 6


def test_joined_inputs_of_a_metered_loop(engine):
    text = """def f(a, b, c, d, *, n=3):
    total = a
    for i in range(n):
        total = total + b * c + d
    return total"""
    inputs = [np.full(5, v, "f4") for v in (1, 2, 3, 4)]
    with dala.limits(iterations=1000):
        got = evaluate(text, inputs, "f32", {"n": 7})
        with pytest.raises(dala.LimitExceeded):
            evaluate(text, inputs, "f32", {"n": 70000})
    assert got.tolist() == [71.0] * 5


def test_more_types_than_bindings_are_refused_with_the_limit(engine):
    if not {"f64", "s64"} <= engine.dtypes:
        pytest.skip(f"{engine.id} has no 64-bit types")
    kernel = compute.kernel("""def f(a: Array, b: Array, c: Array, *, n=3):
    total = 0.0
    for i in range(n):
        total = total + f32(a[i]) + f32(b[i]) + f32(c[i])
    return total""")
    inputs = [np.ones(4, k) for k in ("f4", "f8", "i8")]
    assert run(kernel, inputs, (2,), "f32", {"n": 4}).tolist() == [12.0, 12.0]
    with dala.limits(iterations=10), pytest.raises(DeviceError) as caught:
        run(kernel, inputs, (2,), "f32", {"n": 40})
    assert "kernel 'f' reads inputs of 3 types" in str(caught.value)
    assert "allows 2 with limits or long loops (max-storage-buffers-per-shader-stage is 4)" in str(
        caught.value
    )


def test_joined_inputs_that_do_not_fit_in_a_buffer(engine, monkeypatch):
    monkeypatch.setattr(engine, "max_buffer_bytes", 4096)
    inputs = [np.ones(500, "f4") for _ in range(5)]
    with pytest.raises(BufferTooLarge) as caught:
        evaluate("def f(a, b, c, d, e): return a + b + c + d + e", inputs, "f32")
    text = str(caught.value)
    assert "max-storage-buffers-per-shader-stage" in text
    assert "3 of its inputs must fit in one of 4096 bytes, and take 6000" in text


def test_stages_are_fused_only_as_far_as_bindings_go(engine):
    """Eight sums in a row have nine inputs; each pass reads three."""
    operands = [compute.from_array(np.full(4, 2.0**i, "f4")) for i in range(9)]
    pipeline, total = compute.Pipeline(), operands[0]
    for i, other in enumerate(operands[1:]):
        out = compute.buffer_zeros((4,), transient=i < 7)
        pipeline.add({"op": "run_kernel", "kernel": "elementwise_add", "inputs": [total, other],
                      "output": out})  # fmt: skip
        total = out
    pipeline.run()
    assert compute.read_list(total) == [511.0] * 4
    assert str(pipeline.explain()).count("elementwise_add + elementwise_add") == 4


# workgroup memory ---------------------------------------------------------------------------------


def test_workgroup_memory_is_counted():
    text = """
const n = 3;
var<workgroup> a: array<vec2<f64>, 0x5u>;
var<workgroup> b : array< atomic<u32>, n >;
var <workgroup> c: vec3<f32>;
var<workgroup> d: vec4f;
var<private> e: array<f32, 100>;
"""
    assert workgroup_bytes(text) == 5 * 16 + 3 * 4 + 16 + 16
    assert workgroup_bytes("fn main() {}") == 0


def test_a_shader_with_too_much_workgroup_memory_is_refused(engine):
    text = "// sums of rows\nvar<workgroup> x: array<u32, 4089>;"
    with pytest.raises(DeviceError) as caught:
        engine.shader(text, 1, 16)
    assert "a shader (sums of rows) needs 16356 bytes of workgroup memory" in str(caught.value)
    assert "allows 16352 (max-compute-workgroup-storage-size)" in str(caught.value)


def test_a_buffer_too_large_names_the_limit(engine):
    with pytest.raises(BufferTooLarge) as caught:
        compute.buffer_zeros(((128 << 20) + 16,), "u8")
    assert "at most 134,217,728 (max-storage-buffer-binding-size)" in str(caught.value)


@pytest.mark.parametrize("adapter", OF_WGPU, ids=lambda a: a.backend.lower())
def test_surface_shaders_are_checked_too(adapter):
    engine = engine_for(adapter)
    source = """
@group(0) @binding(0) var<storage, read_write> pixels: array<u32>;
var<workgroup> tile: array<vec4<f32>, 1100>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
    tile[i] = vec4<f32>(1.0);
    pixels[i] = u32(tile[i].x);
}"""
    with pytest.raises(dala.errors.ShaderError) as caught:
        compile_on(engine, reflect(source, "tiles"))
    assert "it needs 17600 bytes of workgroup memory" in str(caught.value)
    assert "max-compute-workgroup-storage-size" in str(caught.value)
    compile_on(engine, reflect(source.replace("1100", "0x100u"), "tiles"))


# the conformance suite ----------------------------------------------------------------------------

#: Operations with fallbacks, programs with many inputs, chains and pipelines.
SELECTED = {
    "default": ["test_tiny.py", "webgpu/test_chain.py"],
    "downlevel": ["test_tiny.py", "ops/test_blur.py", "ops/test_conv.py", "webgpu/test_chain.py"],
}


def conform(name: str, files: list[str], *more: str) -> None:
    """Run tests of all adapters of wgpu in a process with the limits of a class."""
    if not OF_WGPU:
        pytest.skip(NO_ADAPTER)
    environment: dict[str, Any] = {**os.environ, webgpu_limits.VARIABLE: name}
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-pno:cacheprovider", "-pno:benchmark",
         "--tb=short",
         "-k", "webgpu or vulkan or opengl", *more,
         *(f"tests/engine/{file}" for file in files)],
        env=environment, capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-2000:]
    assert " passed" in ran.stdout


@pytest.mark.parametrize("name", CLASSES)
def test_a_selection_of_the_conformance_suite(name):
    conform(name, SELECTED[name])


@pytest.mark.long
@pytest.mark.parametrize("name", CLASSES)
def test_the_conformance_suite(name):
    conform(name, [""], "--deselect", "tests/engine/webgpu/test_limits.py")
