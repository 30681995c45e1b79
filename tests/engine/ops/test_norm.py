"""Softmax and layer normalization against the formulas in f64."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dala
from dala import errors
from dala.gpu.compute import Pipeline, buffer_zeros, from_array, run_kernel, submit
from dala.gpu.compute.kernel import get
from tests.support.engines import NUMPY, needs, run

ONCE = settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
FLOATS = ("f32", "f64")
#: Rows in registers, in one pass and in several, odd and whole vectors; long ones; columns.
SOFTMAXES = [
    ((5,), 0), ((7, 10), 1), ((3, 1000), 1), ((4, 1023), 1), ((2, 5001), 1), ((2, 70_000), 1),
    ((9, 40), 0), ((100, 301), 0), ((2, 3000, 3), 1), ((3, 5, 7, 4), 2),
]  # fmt: skip
NORMS = [(5,), (7, 10), (3, 1000), (4, 1023), (2, 5001), (2, 3, 20_000), (300, 64)]


def numbers(shape, dtype, scale=1.0, seed=0):
    return (np.random.default_rng(seed).normal(size=shape) * scale).astype(NUMPY[dtype])


def softmax(a, axis):
    x = a.astype("f8")
    with np.errstate(all="ignore"):
        e = np.exp(x - x.max(axis=axis, keepdims=True))
        return e / e.sum(axis=axis, keepdims=True)


def check_softmax(got, a, axis):
    """Compare; exp magnifies rounding errors in proportion to the distance from the maximum."""
    wanted = softmax(a, axis)
    limits = np.finfo(a.dtype)
    apart = a.max(axis=axis, keepdims=True).astype("f8") - a
    allowed = (20 + apart) * limits.eps * wanted + limits.tiny
    assert got.dtype == a.dtype
    assert (np.abs(got - wanted) <= allowed).all()
    assert np.abs(got.astype("f8").sum(axis=axis) - 1).max() < 100 * limits.eps


@pytest.mark.parametrize("dtype", FLOATS)
def test_softmax_in_every_layout(engine_id, dtype):
    for shape, axis in SOFTMAXES:
        a = numbers(shape, dtype, 5)
        with needs(dtype):
            check_softmax(run("softmax", [a], shape, dtype, {"axis": axis}), a, axis)


@ONCE
@given(data=st.data())
def test_softmax_of_any_shape(engine_id, data):
    shape = tuple(data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=4)))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    a = numbers(shape, "f32", data.draw(st.sampled_from([0.01, 1.0, 30.0])))
    check_softmax(get("softmax")(from_array(a), axis=axis).numpy(), a, axis)


def test_softmax_is_along_the_last_axis_by_default(engine_id):
    a = numbers((4, 6), "f32")
    check_softmax(get("softmax")(from_array(a)).numpy(), a, 1)


def test_softmax_at_the_ends_of_the_range_of_exp(engine_id):
    a = np.concatenate([[0], -np.linspace(80, 110, 4001)]).astype("f4")
    check_softmax(get("softmax")(from_array(a)).numpy(), a, 0)
    check_softmax(
        get("softmax")(from_array(a[:, None].repeat(3, 1)), axis=0).numpy()[:, :1], a[:, None], 0
    )


@pytest.mark.parametrize("dtype", FLOATS)
def test_softmax_of_large_and_infinite_numbers(engine_id, dtype):
    a = np.array(
        [[1000, 1000, 999], [-1e30, 1e30, 0], [-np.inf, 0, 0], [-500, 0, -np.inf]], NUMPY[dtype]
    )
    broken = np.array([[1, np.nan, 2], [np.inf, 1, 2], [-np.inf] * 3], NUMPY[dtype])
    with needs(dtype):
        for axis, turn in ((1, lambda x: x), (0, lambda x: np.ascontiguousarray(x.T))):
            x = turn(a)
            got = run("softmax", [x], x.shape, dtype, {"axis": axis})
            assert np.allclose(got, softmax(x, axis), rtol=1e-6, atol=1e-37)
            x = turn(broken)
            assert np.isnan(run("softmax", [x], x.shape, dtype, {"axis": axis})).all()


def layer_norm(a, gamma=1.0, beta=0.0, epsilon=1e-5):
    x = a.astype(np.longdouble)
    x = x - x.mean(axis=-1, keepdims=True)
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + epsilon) * gamma + beta


@pytest.mark.parametrize("given_inputs", [1, 2, 3])
@pytest.mark.parametrize("dtype", FLOATS)
def test_layer_norm(engine_id, dtype, given_inputs):
    for shape in NORMS:
        inputs = [
            numbers(shape, dtype, 3),
            numbers(shape[-1], dtype, 1, 1),
            numbers(shape[-1], dtype, 1, 2),
        ]
        inputs = inputs[:given_inputs]
        with needs(dtype):
            got = run("layer_norm", inputs, shape, dtype)
            wanted = layer_norm(*inputs)
            assert (
                np.abs(got - wanted) <= 30 * np.finfo(got.dtype).eps * (1 + np.abs(wanted))
            ).all()


@ONCE
@given(data=st.data())
def test_layer_norm_of_any_shape(engine_id, data):
    shape = tuple(data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=4)))
    epsilon = data.draw(st.sampled_from([1e-5, 1e-3, 0.5]))
    a = numbers(shape, "f32", 2)
    got = get("layer_norm")(from_array(a), epsilon=epsilon).numpy()
    wanted = layer_norm(a, epsilon=epsilon)
    # A row of nearly equal numbers magnifies their rounding by up to 1 / sqrt(epsilon).
    assert (np.abs(got - wanted) <= 30 * np.finfo("f4").eps * (1 / np.sqrt(epsilon))).all()


def test_layer_norm_of_numbers_far_from_zero(engine_id):
    """Computing the variance as E(x**2) - E(x)**2 would give only noise here."""
    a = (np.random.default_rng(5).integers(0, 9, (4, 999)) + 1_000_000).astype("f4")
    got = get("layer_norm")(from_array(a)).numpy()
    assert np.abs(got - layer_norm(a)).max() < 1e-5


def test_layer_norm_of_equal_numbers_is_zero(engine_id):
    a = np.full((3, 100), 12.25, "f4")
    assert np.array_equal(get("layer_norm")(from_array(a)).numpy(), np.zeros((3, 100), "f4"))


def test_empty_arrays(engine_id):
    assert get("softmax")(from_array(np.zeros((0, 3), "f4"))).shape == (0, 3)
    assert get("softmax")(from_array(np.zeros((3, 0), "f4"))).shape == (3, 0)
    assert get("layer_norm")(from_array(np.zeros((0, 3), "f4"))).shape == (0, 3)


# invalid calls --------------------------------------------------------------------------------


def test_invalid_calls_write_nothing(engine_id):
    a, out = from_array(np.ones((2, 3), "f4")), from_array(np.full((2, 3), 5, "f4"))
    two, three = from_array(np.ones(2, "f4")), from_array(np.ones(3, "f4"))
    cases = [
        ("softmax", [a], {"axis": 2}, errors.ParameterError, "Use -2 to 1"),
        (
            "softmax",
            [from_array(np.ones((2, 3), "<i4"))],
            {},
            errors.DtypeMismatch,
            "a must be of dtype f32 or f64, got 's32'.",
        ),
        (
            "softmax",
            [from_array(np.ones((3, 2), "f4"))],
            {},
            errors.ShapeMismatch,
            r"output must be of shape \(3, 2\), got",
        ),
        ("layer_norm", [a, two], {}, errors.ShapeMismatch, r"gamma must be of shape \(3,\)"),
        ("layer_norm", [a, three, two], {}, errors.ShapeMismatch, r"beta must be of shape \(3,\)"),
        (
            "layer_norm",
            [a],
            {"epsilon": -1},
            errors.ParameterError,
            "epsilon must be a number from 0 to",
        ),
        ("layer_norm", [a, three, three, three], {}, errors.ArityError, "must be 1 to 3 buffers"),
    ]
    for name, inputs, params, error, text in cases:
        with pytest.raises(error, match=text):
            run_kernel(name, inputs, out, params)
        assert (out.numpy() == 5).all()
    with pytest.raises(errors.ShapeMismatch, match="a must be of 1 or more axes"):
        get("layer_norm")(from_array(np.array(1.0, "f4")))
    with pytest.raises(errors.ParameterError, match=r"Reshape it to \(1,\)"):
        get("softmax")(from_array(np.array(1.0, "f4")))


def test_layer_norm_takes_one_dtype(engine_id):
    with needs("f64"):
        wide = from_array(np.ones(3, "f8"))
        with pytest.raises(
            errors.DtypeMismatch, match="gamma must be of dtype 'f32', as 'a' is, got 'f64'"
        ):
            get("layer_norm")(from_array(np.ones((2, 3), "f4")), wide)


# together --------------------------------------------------------------------------------


def test_in_a_pipeline_and_submitted(engine_id):
    a = numbers((3, 50), "f32")
    source, normal, out, again = from_array(a), *(buffer_zeros((3, 50), "f32") for _ in range(3))
    p = Pipeline()
    p.add({"op": "run_kernel", "kernel": "layer_norm", "inputs": [source], "output": normal})
    p.add({"op": "run_kernel", "kernel": "softmax", "inputs": [normal], "output": out})
    p.run()
    assert np.allclose(out.numpy(), softmax(layer_norm(a).astype("f8"), 1), rtol=1e-5)
    work = {"op": "run_kernel", "kernel": "softmax", "inputs": [normal], "output": again}
    submit(work).result(30)
    assert np.array_equal(again.numpy(), out.numpy())


def test_native_code_stays_in_bounds(monkeypatch):
    from dala.gpu.compute.engines.cpu.native import compile_native
    from dala.gpu.compute.engines.cpu.ops import norm

    monkeypatch.setattr(norm, "compile_native", partial(compile_native, checked=True))
    for name in ("softmax", "layer_norm"):
        monkeypatch.setattr(get(name), "_plans", {})
    with dala.device("cpu"):
        for shape, axis in SOFTMAXES:
            a = numbers(shape, "f32", 5)
            check_softmax(get("softmax")(from_array(a), axis=axis).numpy(), a, axis)
        a, gamma = numbers((4, 1023), "f32"), numbers(1023, "f32", 1, 1)
        got = get("layer_norm")(from_array(a), from_array(gamma)).numpy()
        assert np.allclose(got, layer_norm(a, gamma), atol=1e-5)
