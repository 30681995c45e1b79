"""Calls that repeat their parameters: checked once, and again as soon as one may have changed."""

from __future__ import annotations

import pytest

import dala
from dala.errors import ParameterError, UnknownParameter
from dala.gpu.compute import buffer, kernel

TEXT = "def k(x, *, a=1.0, n: int = 1, v: vec3 = (0.0, 0.0, 0.0)): return x * a + float(n) + v.y"


@pytest.fixture
def run():
    k = kernel(TEXT)
    with dala.device("cpu"):
        given, out = buffer([1.0]), buffer([0.0])

    def call(**params):
        k.run([given], out, params)
        return out.read_list()[0]

    return call


def test_values_of_repeated_and_changed_params(run):
    assert [run(a=a) for a in (2.0, 2.0, 3.0, 2.0)] == [3.0, 3.0, 4.0, 3.0]
    assert [run(n=2), run(n=2), run(), run(a=2.0, n=2), run(n=2)] == [3.0, 3.0, 2.0, 4.0, 3.0]
    assert [run(a=True), run(a=1.0), run(n=1.0)] == [2.0, 2.0, 2.0]


def test_a_list_that_changed_is_read_again(run):
    v = [0.0, 1.0, 0.0]
    assert run(v=v) == 3.0
    v[1] = 5.0
    assert run(v=v) == 7.0
    nested = (0.0, 2.0, 0.0)
    assert run(v=nested) == run(v=nested) == 4.0


def test_invalid_params_are_refused_after_valid_ones(run):
    good = {"a": 2.0}
    assert run(**good) == 3.0
    for bad, error in (
        ({"a": "2"}, ParameterError),
        ({"a": 2.0, "b": 1.0}, UnknownParameter),
        ({"b": 2.0}, UnknownParameter),
        ({"n": 1.5}, ParameterError),
        ({"v": (1.0, 2.0)}, ParameterError),
        ({"a": float("nan")}, ParameterError),
    ):
        for _ in range(2):
            with pytest.raises(error):
                run(**bad)
    assert run(**good) == 3.0
