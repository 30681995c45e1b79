"""Convolution of signals against np.convolve in f64."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dala
from dala import errors
from dala.gpu.compute import Pipeline, buffer_zeros, from_array, run_kernel, submit
from dala.gpu.compute.engines.cpu.native import compile_native
from dala.gpu.compute.engines.cpu.ops import shared, signal
from dala.gpu.compute.kernel import get
from tests.support.engines import NUMPY, needs

ONCE = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
MODES = ("same", "full", "valid")


def numbers(shape, dtype="f32", seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(NUMPY[dtype])


def each_line(a, kernel, mode):
    lines = a.reshape(-1, a.shape[-1]).astype("f8")
    made = np.stack([np.convolve(line, kernel.astype("f8"), mode) for line in lines])
    return made.reshape(*a.shape[:-1], -1)


def assert_convolved(a, kernel, mode):
    got = np.array(get("convolve1d")(from_array(a), from_array(kernel), mode=mode))
    wanted = each_line(a, kernel, mode)
    assert got.dtype == a.dtype
    assert got.shape == wanted.shape
    allowed = (len(kernel) + 2) * np.finfo(a.dtype).eps * each_line(abs(a), abs(kernel), mode)
    assert (np.abs(got - wanted) <= allowed).all(), np.abs(got - wanted).max()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("shape", "taps"),
    [((1,), 1), ((10,), 3), ((3, 1000), 4), ((2, 3, 100), 300), ((5000,), 700), ((2, 40000), 9)],
    ids=str,
)
def test_lines_and_kernels(engine_id, shape, taps, mode):
    assert_convolved(numbers(shape), numbers(taps, seed=1), mode)


@pytest.mark.parametrize("mode", MODES)
def test_in_f64(engine_id, mode):
    with needs("f64"):
        assert_convolved(numbers((2, 600), "f64"), numbers(31, "f64", 1), mode)


@ONCE
@given(
    lines=st.integers(1, 5),
    length=st.integers(1, 1300),
    taps=st.integers(1, 300),
    mode=st.sampled_from(MODES),
)
def test_any_lengths(engine_id, lines, length, taps, mode):
    assert_convolved(numbers((lines, length)), numbers(taps, seed=1), mode)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("features", [{"avx": True}, {}], ids=["avx", "sse"])
def test_vector_widths_of_other_machines(features, dtype, monkeypatch):
    monkeypatch.setattr(shared, "jit", lambda: SimpleNamespace(features=features))
    monkeypatch.setattr(get("convolve1d"), "_plans", {})
    with dala.device("cpu"):
        for mode in MODES:
            assert_convolved(numbers((2, 301), dtype), numbers(17, dtype, 1), mode)


@pytest.mark.parametrize("mode", MODES)
def test_native_code_stays_in_bounds(mode, monkeypatch):
    monkeypatch.setattr(signal, "compile_native", partial(compile_native, checked=True))
    monkeypatch.setattr(get("convolve1d"), "_plans", {})
    with dala.device("cpu"):
        for length, taps in ((1, 1), (40, 3), (300, 7), (3, 40), (2000, 129), (1500, 1024)):
            assert_convolved(numbers((3, length)), numbers(taps, seed=1), mode)


def test_the_kernel_is_flipped_and_the_default_is_same(engine_id):
    a = np.array([0, 0, 1, 0, 0, 0], "f4")
    got = np.array(get("convolve1d")(from_array(a), from_array(np.array([1, 2, 3], "f4"))))
    assert got.tolist() == [0, 1, 2, 3, 0, 0]


def test_in_a_pipeline_and_a_stream(engine_id):
    a, kernel = numbers((3, 50)), numbers(5, seed=1)
    wanted = each_line(a, kernel, "valid")
    middle, out = buffer_zeros((3, 46), transient=True), buffer_zeros((3, 46))
    spec = {"op": "run_kernel", "kernel": "convolve1d", "params": {"mode": "valid"}}
    spec["inputs"] = [from_array(a), from_array(kernel)]
    p = Pipeline()
    p.add({**spec, "output": middle})
    p.add({"op": "run_kernel", "kernel": "relu", "inputs": [middle], "output": out})
    p.run()
    assert np.allclose(np.array(out), np.maximum(wanted, 0), atol=1e-5)
    done = buffer_zeros((3, 46))
    submit({**spec, "output": done}).wait()
    assert np.allclose(np.array(done), wanted, atol=1e-5)


@pytest.mark.parametrize(
    ("shape", "taps", "params", "kind", "words"),
    [
        (
            (2, 9),
            (3, 1),
            {},
            errors.ShapeMismatch,
            ["convolve1d: kernel must be of 1 axis, got (3, 1)."],
        ),
        ((), (3,), {}, errors.ShapeMismatch, ["a must be", "()"]),
        ((2, 0), (3,), {}, errors.ShapeMismatch, ["0", "3"]),
        ((2, 9), (0,), {}, errors.ShapeMismatch, ["got 9 and 0"]),
        ((2, 9), (3,), {"mode": "fill"}, errors.ParameterError, ["'full'", "'fill'"]),
        ((2, 9), (3,), {"mode": "full"}, errors.ShapeMismatch, ["(2, 11)", "(2, 9)"]),
    ],
)
def test_invalid_input(engine_id, shape, taps, params, kind, words):
    out = from_array(np.full((2, 9), 7, "f4"))
    with pytest.raises(kind) as info:
        inputs = [from_array(np.ones(s, "f4")) for s in (shape, taps)]
        run_kernel("convolve1d", inputs, out, params)
    for word in ("convolve1d", *words):
        assert word in str(info.value)
    assert (np.array(out) == 7).all()


def test_dtypes_are_checked(engine_id):
    a = from_array(np.ones(9, "<i4"))
    with pytest.raises(errors.DtypeMismatch, match="of dtype f32 or f64, got 's32'"):
        run_kernel("convolve1d", [a, a], buffer_zeros(9, "s32"))
