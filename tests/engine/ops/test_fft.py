"""Fourier transforms against NumPy's in f64: lengths of every kind, one axis and two."""

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
from dala.gpu.compute.engines.cpu.ops import fft, shared
from dala.gpu.compute.kernel import get
from tests.support.engines import NUMPY, needs, run

ONCE = settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
#: Tolerance relative to the largest number of the result.
ALLOWED = {"f32": 2e-6, "f64": 1e-14}


def numbers(shape, dtype="f32", seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(NUMPY[dtype])


def joined(pairs):
    return pairs[..., 0].astype("f8") + 1j * pairs[..., 1].astype("f8")


def split(found):
    return np.stack([found.real, found.imag], -1)


def assert_near(got, wanted, dtype):
    assert got.shape == wanted.shape
    assert got.dtype == NUMPY[dtype]
    assert np.abs(got - wanted).max() <= ALLOWED[dtype] * np.abs(wanted).max()


def assert_all_four(shape, axes=1, dtype="f32"):
    """Check real and complex transforms, and inverses to complex and to real."""
    where, params = tuple(range(-axes, 0)), {"axes": axes}
    real, pairs = numbers(shape, dtype), numbers((*shape, 2), dtype, 1)
    wanted = split(np.fft.fftn(real.astype("f8"), axes=where))
    assert_near(run("fft", [real], (*shape, 2), dtype, params), wanted, dtype)
    wanted = split(np.fft.fftn(joined(pairs), axes=where))
    assert_near(run("fft", [pairs], (*shape, 2), dtype, params), wanted, dtype)
    wanted = np.fft.ifftn(joined(pairs), axes=where)
    assert_near(run("ifft", [pairs], (*shape, 2), dtype, params), split(wanted), dtype)
    got = run("ifft", [pairs], shape, dtype, params)
    assert np.abs(got - wanted.real).max() <= ALLOWED[dtype] * np.abs(wanted).max()


@pytest.mark.parametrize(
    "shape", [(1,), (2,), (8,), (3, 60), (2, 7), (3, 1024), (2, 2048), (2, 6000), (13,), (3, 1009)],
    ids=str,
)  # fmt: skip
def test_lengths(engine_id, shape):
    assert_all_four(shape)


@pytest.mark.slow
@pytest.mark.parametrize("length", [65536, 100000, pytest.param(1 << 20, marks=pytest.mark.long)])
def test_long_lines(engine_id, length):
    assert_all_four((length,))


@pytest.mark.parametrize(
    "shape", [(1, 1), (5, 1), (2, 16, 20), (13, 8), (300, 64)], ids=str
)  # fmt: skip
def test_two_axes(engine_id, shape):
    assert_all_four(shape, 2)


@pytest.mark.parametrize(("shape", "axes"), [((3, 12), 1), ((700,), 1), ((11, 6), 2)], ids=str)
def test_in_f64(engine_id, shape, axes):
    with needs("f64"):
        assert_all_four(shape, axes, "f64")


@ONCE
@given(lines=st.integers(1, 3), length=st.integers(1, 400), seed=st.integers(0, 9))
def test_any_length(engine_id, lines, length, seed):
    if engine_id.startswith("webgpu"):  # few lengths: each shader takes time to compile
        length = (3, 11, 100, 256)[length % 4]
    a = numbers((lines, length), seed=seed)
    wanted = split(np.fft.fft(a.astype("f8")))
    assert_near(np.array(get("fft")(from_array(a))), wanted, "f32")


@pytest.mark.third
@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("features", [{"avx": True}, {}], ids=["avx", "sse"])
def test_vector_widths_of_other_machines(features, dtype, monkeypatch):
    monkeypatch.setattr(shared, "jit", lambda: SimpleNamespace(features=features))
    with dala.device("cpu"):
        for kernel in ("fft", "ifft"):
            monkeypatch.setattr(get(kernel), "_plans", {})
        for shape in ((32,), (3, 128)):
            assert_all_four(shape, 1, dtype)
        assert_all_four((16, 64), 2, dtype)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_native_code_stays_in_bounds(dtype, monkeypatch):
    monkeypatch.setattr(fft, "compile_native", partial(compile_native, checked=True))
    with dala.device("cpu"):
        for kernel in ("fft", "ifft"):
            monkeypatch.setattr(get(kernel), "_plans", {})
        for shape in ((64,), (3, 128), (2, 1024)):
            assert_all_four(shape, 1, dtype)
        for shape in ((2, 64), (4, 128), (3, 32, 64)):
            assert_all_four(shape, 2, dtype)


def test_powers_of_two_on_every_engine(engine_id):
    for shape, axes in (((5, 64), 1), ((3, 128), 1), ((16, 64), 2)):
        assert_all_four(shape, axes)


def test_inverse_restores_the_input(engine_id):
    a = numbers((4, 20, 30))
    there = get("fft")(from_array(a), axes=2)
    back = buffer_zeros(a.shape)
    run_kernel("ifft", [there], back, {"axes": 2})
    assert np.abs(np.array(back) - a).max() <= 1e-5


def test_output_of_a_plain_call(engine_id):
    a = numbers((3, 2))
    real = np.array(get("fft")(from_array(a)))
    assert np.allclose(real, split(np.fft.fft(a)), atol=1e-5)
    pairs = np.array(get("fft")(from_array(a), complex=True))
    assert np.allclose(pairs, split(np.fft.fft(joined(a))), atol=1e-5)
    assert np.allclose(np.array(get("ifft")(from_array(pairs))), a, atol=1e-5)


def test_a_single_wave_has_a_single_peak(engine_id):
    n = np.arange(64)
    a = np.cos(2 * np.pi * 5 * n / 64).astype("f4")
    got = np.array(get("fft")(from_array(a)))
    wanted = np.zeros((64, 2))
    wanted[5, 0] = wanted[59, 0] = 32
    assert np.abs(got - wanted).max() < 1e-4


def test_in_a_pipeline_and_a_stream(engine_id):
    a = numbers((2, 16))
    there, back = buffer_zeros((2, 16, 2), transient=True), buffer_zeros((2, 16))
    p = Pipeline()
    spec = {"op": "run_kernel", "kernel": "fft", "inputs": [from_array(a)]}
    p.add({**spec, "output": there})
    p.add({"op": "run_kernel", "kernel": "ifft", "inputs": [there], "output": back})
    p.run()
    assert np.abs(np.array(back) - a).max() <= 1e-6 * 16
    done = buffer_zeros((2, 16, 2))
    submit({**spec, "output": done}).wait()
    assert_near(np.array(done), split(np.fft.fft(a.astype("f8"))), "f32")


@pytest.mark.parametrize(
    ("kernel", "shape", "params", "kind", "words"),
    [
        ("fft", (5,), {"complex": True}, errors.ShapeMismatch, ["(..., 2)", "(5,)"]),
        ("fft", (), {}, errors.ShapeMismatch, ["1 or more axes", "()"]),
        ("fft", (4,), {"axes": 2}, errors.ShapeMismatch, ["2 or more axes", "(4,)"]),
        ("fft", (3, 0), {}, errors.ShapeMismatch, ["not empty", "(3, 0)"]),
        (
            "fft",
            (4,),
            {"axes": 3},
            errors.ParameterError,
            ["axes", "fft: axes must be an int from 1 to 2, got 3.", "3"],
        ),
        ("fft", (4,), {}, errors.ShapeMismatch, ["(4, 2)", "(6, 2)"]),
        ("ifft", (4, 3), {}, errors.ShapeMismatch, ["(..., 2)", "(4, 3)"]),
        ("ifft", (4, 2), {}, errors.ShapeMismatch, ["(4, 2)", "(6, 2)"]),
    ],
)
def test_invalid_input(engine_id, kernel, shape, params, kind, words):
    out = from_array(np.full((6, 2), 7, "f4"))
    with pytest.raises(kind) as info:
        run_kernel(kernel, [from_array(np.ones(shape, "f4"))], out, params)
    for word in (kernel, *words):
        assert word in str(info.value)
    assert (np.array(out) == 7).all()


def test_dtypes_are_checked(engine_id):
    with pytest.raises(errors.DtypeMismatch, match="of dtype f32 or f64, got 'u8'"):
        run_kernel("fft", [from_array(np.ones(4, "u1"))], buffer_zeros((4, 2)))
