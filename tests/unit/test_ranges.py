"""Ranges of parameters: declaration, representation and checks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dala
from dala.gpu import compute
from dala.gpu.compute.lang.markers import Within, vec3


@pytest.fixture(autouse=True)
def unregister():
    before = set(compute.kernels())
    with dala.device("reference"):
        yield
    for name in set(compute.kernels()) - before:
        compute.Kernel.unregister(name)


def params_of(text):
    return compute.kernel(f"def ranged(x, *, {text}):\n    return x").params


def test_function_and_text_declare_the_same():
    @compute.kernel
    def ranged(x, *, n: Within[int, -3, 16] = 2, v: Within[float, 0.5, math.inf] = 1.0):
        return x * v + n

    text = "n: Within[int, -3, 16] = 2, v: Within[float, 0.5, inf] = 1.0"
    assert ranged.params == params_of(text)
    assert [(p.low, p.high) for p in ranged.params] == [(-3, 16), (0.5, math.inf)]
    assert [p.expected for p in ranged.params] == [
        "an int from -3 to 16",
        "a finite number of at least 0.5",
    ]


def test_annotations_are_real_types_at_run_time():
    def ranged(x, *, n: Within[int, 0, 4] = 0):
        return x

    assert Within[int, 0, 4].__metadata__ == (0, 4)
    assert Within[int, 0, 4].__origin__ is int
    compute.kernel(ranged)


def test_quoted_annotation():
    (p,) = params_of("n: 'Within[int, 0, 4]' = 0")
    assert (p.low, p.high, p.type) == (0, 4, "int")


@given(st.integers(-(2**31), 2**31 - 1))
def test_int_range(value):
    k = compute.kernel("def ranged(x, *, n: Within[s32, -5, 1000]):\n    return x + n")
    a = compute.buffer([7], dtype="s32")
    if -5 <= value <= 1000:
        assert k(a, n=value).read_list() == [7 + value]
        return
    with pytest.raises(dala.ParameterError, match="ranged: n must be an int from -5 to 1000, got"):
        k(a, n=value)


@given(st.floats(allow_nan=False))
def test_infinite_bound_accepts_finite_numbers(value):
    k = compute.kernel("def ranged(x, *, v: Within[float, 0.25, inf]):\n    return x * v")
    a = compute.buffer([1.0])
    if value >= 0.25 and abs(value) <= float(np.finfo("f4").max):
        assert k(a, v=value).read_list() == [float(np.float32(value))]
        return
    with pytest.raises(
        dala.ParameterError, match=r"ranged: v must be a finite number of at least 0\.25"
    ):
        k(a, v=value)


@pytest.mark.parametrize("number", [np.int64(17), np.float32(17.0), 17, 17.0, 10**400])
def test_every_type_of_number_is_checked(number):
    k = compute.kernel("def ranged(x, *, n: Within[int, 0, 16]):\n    return x + n")
    with pytest.raises(dala.ParameterError, match="an int from 0 to 16, got 1"):
        k(compute.buffer([1.0]), n=number)


def test_number_beyond_f32_is_refused():
    k = compute.kernel("def ranged(x, *, v: Within[float, 0, inf]):\n    return x + v")
    with pytest.raises(dala.ParameterError, match="that fits f32, got 1"):
        k(compute.buffer([1.0]), v=10**400)


def test_range_of_vector_components():
    @compute.kernel
    def ranged(x, *, c: Within[vec3, 0.0, 1.0] = (0.0, 1.0, 0.5)):
        return x + c.r + c.g + c.b

    a = compute.buffer([1.0])
    assert ranged(a, c=(0.25, 1, 0)).read_list() == [2.25]
    with pytest.raises(
        dala.ParameterError, match=r"c must be 3 numbers from 0 to 1, got \(0.0, 0.0, 1.5\)"
    ):
        ranged(a, c=(0.0, 0.0, 1.5))


def test_refused_set_params_keeps_the_old_values():
    k = compute.kernel("def ranged(x, *, n: Within[int, 0, 16] = 1):\n    return x + n")
    a, out = compute.buffer([1.0]), compute.buffer_zeros(1)
    spec = {"op": "run_kernel", "kernel": "ranged", "inputs": [a], "output": out}
    p = compute.Pipeline().add({**spec, "params": {"n": 4}})
    with pytest.raises(dala.ParameterError, match="n must be an int from 0 to 16, got -1"):
        p.set_params(0, n=-1)
    p.run()
    assert out.read_list() == [5.0]
    assert k.params[0].high == 16


REFUSED = {
    "n: Within[int, 0]": "Within takes a type, a minimum and a maximum",
    "n: Within[int, 0, 1, 2]": "Within takes a type",
    "n: Within": "'Within' is not a type of parameter",
    "n: Within[int, 'a', 2]": "\"'a'\" is not a bound of a range",
    "n: Within[float, nan, 2]": "'nan' is not a bound of a range",
    "n: Within[float, True, 2]": "'True' is not a bound of a range",
    "n: Within[int, 5, 2]": "the range ends at 2, below its start 5",
    "n: Within[int, 0.5, 2] = 1": "the range of the int 'n' has the bound 0.5",
    "n: Within[bool, 0, 1] = True": "'n' is a bool, which has no range",
    "n: Within[str, 0, 1]": "'str' is not a type of parameter",
    "n: Within[int, 0, 2] = 3": "the default of 'n' must be an int from 0 to 2, got 3",
    "n: Within[float, 0, inf] = inf": "of 'n' must be a finite number of at least 0, got inf",
    "n: Within[vec2, 0, 1] = (0.5, 2.0)": "default of 'n' must be 2 numbers from 0 to 1, got 2.0",
}


@pytest.mark.parametrize("text", REFUSED)
def test_invalid_range_is_refused(text):
    with pytest.raises(dala.KernelSyntaxError) as caught:
        params_of(text)
    assert REFUSED[text] in str(caught.value)
    assert "^" in str(caught.value)


def test_literal_out_of_a_helpers_range_is_refused():
    text = "def calls(img: Image):\n    return denoise(img, radius={})"
    compute.kernel(text.format(16))
    with pytest.raises(
        dala.KernelSyntaxError, match="'radius' of denoise must be an int from 0 to 16, got 17"
    ):
        compute.kernel(text.format(17))
    with pytest.raises(
        dala.KernelSyntaxError, match="'radius' of denoise must be an int from 0 to 16, got -1"
    ):
        compute.kernel(text.format(-1))
