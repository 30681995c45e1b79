"""Convolutions of images against the sums written out, in f64."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import dala
from dala import errors
from dala.gpu.compute import Pipeline, buffer_zeros, from_array, run_kernel, submit
from dala.gpu.compute.engines.cpu.native import compile_native
from dala.gpu.compute.engines.cpu.ops import conv, shared
from dala.gpu.compute.kernel import get
from tests.support.engines import NUMPY, needs

ONCE = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def numbers(shape, dtype="f32", seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(NUMPY[dtype])


def two(value):
    return value if isinstance(value, tuple) else (value, value)


def convolved(x, weight, bias=None, *, stride=1, padding=0, dilation=1, groups=1):
    """Return one sum over all windows, each a view of the image."""
    (sy, sx), (py, px), (dy, dx) = two(stride), two(padding), two(dilation)
    images = x[None] if x.ndim == 3 else x
    outputs, inner, kh, kw = weight.shape
    padded = np.pad(images.astype("f8"), ((0, 0), (0, 0), (py, py), (px, px)))
    size = (kh - 1) * dy + 1, (kw - 1) * dx + 1
    windows = np.lib.stride_tricks.sliding_window_view(padded, size, (2, 3))
    windows = windows[:, :, ::sy, ::sx, ::dy, ::dx]
    each = outputs // groups
    out = np.concatenate(
        [
            np.einsum(
                "nchwij,ocij->nohw",
                windows[:, g * inner : (g + 1) * inner],
                weight[g * each : (g + 1) * each].astype("f8"),
                optimize=True,
            )
            for g in range(groups)
        ],
        1,
    )
    if bias is not None:
        out += bias[:, None, None]
    return out[0] if x.ndim == 3 else out


def assert_convolved(x, weight, bias=None, **params):
    inputs = [x, weight] if bias is None else [x, weight, bias]
    got = np.array(get("conv2d")(*map(from_array, inputs), **params))
    wanted = convolved(*inputs, **params)
    assert got.dtype == x.dtype
    assert got.shape == wanted.shape
    sizes = convolved(*(np.abs(a) for a in inputs), **params)
    allowed = (weight[0].size + 3) * np.finfo(x.dtype).eps * sizes
    assert (np.abs(got - wanted) <= allowed).all(), np.abs(got - wanted).max()


CASES = {
    "three channels": ((3, 12, 14), (5, 3, 3, 3), {}),
    "padded": ((2, 8, 12, 14), (16, 8, 3, 3), {"padding": 1}),
    "all different": (
        (2, 8, 13, 14),
        (9, 8, 3, 2),
        {"padding": (1, 2), "stride": (2, 1), "dilation": (1, 2)},
    ),
    "groups": ((2, 8, 12, 14), (32, 4, 3, 3), {"padding": 1, "groups": 2}),
    "depthwise": ((2, 8, 12, 14), (8, 1, 3, 3), {"padding": 1, "groups": 8}),
    "depthwise, two each": ((2, 6, 11, 13), (12, 1, 3, 3), {"groups": 6, "stride": 2}),
    "one pixel": ((2, 8, 12, 14), (24, 8, 1, 1), {}),
    "one pixel in groups": ((2, 8, 11, 13), (26, 4, 1, 1), {"groups": 2}),
    "one pixel, stepping": ((8, 11, 13), (24, 8, 1, 1), {"stride": 2}),
    "the whole image": ((3, 7, 7), (9, 3, 7, 7), {}),
    "mostly padding": ((3, 5, 4), (9, 3, 3, 3), {"padding": (4, 7)}),
    "steps beyond the window": ((4, 20, 23), (8, 4, 2, 2), {"stride": (5, 4)}),
    "many channels": ((64, 7, 7), (16, 64, 3, 3), {"padding": 1}),
    "many channels of one pixel": ((600, 4, 4), (16, 600, 1, 1), {}),
}


@pytest.mark.parametrize("case", CASES)
def test_values(engine_id, case):
    shape, weights, params = CASES[case]
    x, weight, bias = numbers(shape), numbers(weights, seed=1), numbers(weights[0], seed=2)
    # On WebGPU each kind of shader takes time to compile: half of these have a bias.
    webgpu = engine_id.startswith("webgpu")
    if not webgpu or len(case) % 2:
        assert_convolved(x, weight, **params)
    if not webgpu or not len(case) % 2:
        assert_convolved(x, weight, bias, **params)


@pytest.mark.parametrize("case", ["padded", "depthwise", "one pixel", "all different"])
def test_in_f64(engine_id, case):
    shape, weights, params = CASES[case]
    with needs("f64"):
        more = numbers(weights[0], "f64", 2)
        assert_convolved(numbers(shape, "f64"), numbers(weights, "f64", 1), more, **params)


@pytest.mark.parametrize("outputs", [66, 130])
def test_larger_tiles(engine_id, outputs):
    assert_convolved(numbers((2, 100, 120)), numbers((outputs, 2, 3, 3), seed=1), padding=1)


@ONCE
@given(data=st.data())
def test_any_convolution(engine_id, data):
    numbers_of = lambda low, high: data.draw(st.integers(low, high))  # noqa: E731
    groups = data.draw(st.sampled_from([1, 1, 2, 3]))
    inner = numbers_of(1, 4)
    outputs = groups * (8 if engine_id.startswith("webgpu") else numbers_of(1, 9))
    kernel = (3, 2) if engine_id.startswith("webgpu") else (numbers_of(1, 4), numbers_of(1, 4))
    height, width = numbers_of(1, 17), numbers_of(1, 17)
    pair = lambda low, high: (numbers_of(low, high), numbers_of(low, high))  # noqa: E731
    stride, padding, dilation = pair(1, 3), pair(0, 3), pair(1, 3)
    assume((kernel[0] - 1) * dilation[0] < height + 2 * padding[0])
    assume((kernel[1] - 1) * dilation[1] < width + 2 * padding[1])
    x = numbers((numbers_of(1, 3), groups * inner, height, width))
    assert_convolved(
        x,
        numbers((outputs, inner, *kernel), seed=1),
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
    )


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("features", [{"avx": True}, {}], ids=["avx", "sse"])
def test_vector_widths_of_other_machines(features, dtype, monkeypatch):
    monkeypatch.setattr(shared, "jit", lambda: SimpleNamespace(features=features))
    monkeypatch.setattr(get("conv2d"), "_plans", {})
    with dala.device("cpu"):
        for case in ("all different", "depthwise"):
            shape, weights, params = CASES[case]
            assert_convolved(numbers(shape, dtype), numbers(weights, dtype, 1), **params)


@pytest.mark.parametrize("case", CASES)
def test_native_code_stays_in_bounds(case, monkeypatch):
    shape, weights, params = CASES[case]
    monkeypatch.setattr(conv, "compile_native", partial(compile_native, checked=True))
    monkeypatch.setattr(get("conv2d"), "_plans", {})
    with dala.device("cpu"):
        bias = numbers(weights[0], seed=2)
        assert_convolved(numbers(shape), numbers(weights, seed=1), bias, **params)


def test_empty_images_and_channels(engine_id):
    call, bias = get("conv2d"), from_array(np.arange(4, dtype="f4"))
    nothing = call(buffer_zeros((0, 5, 5)), buffer_zeros((4, 0, 3, 3)), bias)
    assert np.array_equal(
        np.array(nothing), np.broadcast_to(np.arange(4)[:, None, None], (4, 3, 3))
    )
    around = np.array(call(buffer_zeros((2, 0, 5)), buffer_zeros((4, 2, 3, 3)), bias, padding=2))
    assert np.array_equal(around, np.broadcast_to(np.arange(4)[:, None, None], (4, 2, 7)))
    assert call(buffer_zeros((0, 3, 5, 5)), buffer_zeros((4, 3, 3, 3))).shape == (0, 4, 3, 3)


def test_the_weights_are_not_flipped(engine_id):
    x = np.zeros((1, 5, 5), "f4")
    x[0, 2, 2] = 1
    weight = np.arange(9, dtype="f4").reshape(1, 1, 3, 3)
    got = np.array(get("conv2d")(from_array(x), from_array(weight)))
    assert np.array_equal(got[0], weight[0, 0, ::-1, ::-1])


def test_in_a_pipeline_and_a_stream(engine_id):
    x, weight, bias = numbers((3, 9, 8)), numbers((8, 3, 3, 3), seed=1), numbers(8, seed=2)
    wanted = convolved(x, weight, bias, padding=1)
    middle, out = buffer_zeros((8, 9, 8), transient=True), buffer_zeros((8, 9, 8))
    spec = {"op": "run_kernel", "kernel": "conv2d", "params": {"padding": 1}}
    spec["inputs"] = [from_array(a) for a in (x, weight, bias)]
    p = Pipeline()
    p.add({**spec, "output": middle})
    p.add({"op": "run_kernel", "kernel": "relu", "inputs": [middle], "output": out})
    p.run()
    assert np.allclose(np.array(out), np.maximum(wanted, 0), atol=1e-4)
    done = buffer_zeros((8, 9, 8))
    submit({**spec, "output": done}).wait()
    assert np.allclose(np.array(done), wanted, atol=1e-4)


@pytest.mark.parametrize(
    ("shapes", "params", "kind", "words"),
    [
        ([(3, 9, 9), (4, 2, 3, 3)], {}, errors.ShapeMismatch, ["(outputs, 3,", "(4, 2, 3, 3)"]),
        (
            [(9, 9), (4, 3, 3, 3)],
            {},
            errors.ShapeMismatch,
            ["conv2d: x must be of 3 or 4 axes, got (9, 9)."],
        ),
        (
            [(3, 9, 9), (4, 3, 3)],
            {},
            errors.ShapeMismatch,
            ["conv2d: weight must be of 4 axes, got (4, 3, 3)."],
        ),
        (
            [(3, 9, 9), (4, 3, 3, 3), (3,)],
            {},
            errors.ShapeMismatch,
            ["bias must be", "(4,)", "(3,)"],
        ),
        (
            [(3, 2, 9), (4, 3, 3, 3)],
            {},
            errors.ShapeMismatch,
            ["height of the window", "1 to 2", "got 3"],
        ),
        ([(3, 9, 9), (4, 3, 3, 3)], {"dilation": 5}, errors.ShapeMismatch, ["1 to 9", "got 11"]),
        ([(3, 9, 9), (4, 3, 3, 3)], {"groups": 2}, errors.ParameterError, ["groups", "(3)", "(4)"]),
        (
            [(3, 9, 9), (4, 3, 3, 3)],
            {"stride": 0},
            errors.ParameterError,
            ["stride must be an int or 2 ints from 1 to", "got 0."],
        ),
        (
            [(3, 9, 9), (4, 3, 3, 3)],
            {"padding": (1, 1, 1)},
            errors.ParameterError,
            ["padding must be an int or 2 ints from 0 to"],
        ),
        ([(3, 9, 9), (4, 3, 3, 3)], {"padding": 1}, errors.ShapeMismatch, ["(4, 9, 9)"]),
    ],
)
def test_invalid_input(engine_id, shapes, params, kind, words):
    out = from_array(np.full((4, 7, 7), 7, "f4"))
    with pytest.raises(kind) as info:
        run_kernel("conv2d", [from_array(np.ones(s, "f4")) for s in shapes], out, params)
    for word in ("conv2d", *words):
        assert word in str(info.value)
    assert (np.array(out) == 7).all()
