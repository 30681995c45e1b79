"""Operations that only move numbers: exact on every engine and in every dtype."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dala import errors
from dala.gpu.compute import Pipeline, buffer_zeros, from_array, run_kernel, submit
from dala.gpu.compute.kernel import get
from tests.support.engines import NUMPY, needs, run

ONCE = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def numbers(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    if dtype in ("f32", "f64"):
        return rng.normal(size=shape).astype(NUMPY[dtype])
    return rng.integers(0, 200, shape).astype(NUMPY[dtype])


@pytest.mark.parametrize("dtype", NUMPY)
def test_transpose_in_every_dtype(engine_id, dtype):
    a = numbers((3, 5), dtype)
    with needs(dtype):
        assert np.array_equal(run("transpose", [a], (5, 3), dtype), a.T)


@ONCE
@given(data=st.data())
def test_transpose_by_any_axes(engine_id, data):
    shape = tuple(data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=4)))
    axes = tuple(data.draw(st.permutations(range(len(shape)))))
    a = numbers(shape, "f32")
    wanted = a.transpose(axes)
    assert np.array_equal(run("transpose", [a], wanted.shape, "f32", {"axes": axes}), wanted)


@ONCE
@given(data=st.data())
def test_transpose_and_reverse(engine_id, data):
    shape = tuple(data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=4)))
    axes = tuple(data.draw(st.permutations(range(len(shape)))))
    reverse = tuple(data.draw(st.sets(st.integers(0, len(shape) - 1))))
    a = numbers(shape, "f32")
    wanted = np.flip(a.transpose(axes), reverse)
    params = {"axes": axes, "reverse": reverse}
    assert np.array_equal(run("transpose", [a], wanted.shape, "f32", params), wanted)


@pytest.mark.parametrize("tail", [(), (1,), (2,), (3,), (4,)], ids=str)
@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_turned_pictures(engine_id, dtype, tail):
    axes = (1, 0, 2)[: 2 + len(tail)]
    for size in ((1, 1), (3, 70), (67, 41), (8, 8), (33, 17), (5, 4), (6, 4)):
        a = numbers((*size, *tail), dtype)
        for reverse in ((), (0,), (1,), (0, 1)):
            wanted = np.flip(a.transpose(axes), reverse)
            params = {"axes": axes, "reverse": reverse}
            assert np.array_equal(run("transpose", [a], wanted.shape, dtype, params), wanted)


def test_transpose_of_a_plain_call(engine_id):
    a = numbers((2, 3, 4), "f32")
    assert np.array_equal(get("transpose")(from_array(a)).numpy(), a.T)
    turned = get("transpose")(from_array(a), axes=(0, -1, 1))
    assert np.array_equal(turned.numpy(), a.transpose(0, 2, 1))


@pytest.mark.parametrize("dtype", NUMPY)
def test_reshape_keeps_the_numbers(engine_id, dtype):
    a = numbers((4, 6), dtype)
    with needs(dtype):
        assert np.array_equal(run("reshape", [a], (3, 2, 4), dtype), a.reshape(3, 2, 4))


def test_reshape_of_a_plain_call(engine_id):
    a = numbers((4, 6), "u8")
    assert np.array_equal(get("reshape")(from_array(a), shape=(2, -1)).numpy(), a.reshape(2, 12))


@ONCE
@given(data=st.data())
def test_gather_along_any_axis(engine_id, data):
    shape = tuple(data.draw(st.lists(st.integers(1, 7), min_size=1, max_size=3)))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    rank = data.draw(st.integers(1, 2))
    index_shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=rank, max_size=rank)))
    a = numbers(shape, "f32")
    index = np.random.default_rng(1).integers(-3, shape[axis] + 3, index_shape).astype("<i4")
    wanted = np.take(a, index, axis=axis, mode="clip")
    assert np.array_equal(run("gather", [a, index], wanted.shape, "f32", {"axis": axis}), wanted)


@pytest.mark.parametrize("dtype", NUMPY)
def test_gather_in_every_dtype(engine_id, dtype):
    a, index = numbers((5, 3), dtype), np.array([4, 0, 4, -1, 99], "<i4")
    with needs(dtype):
        wanted = a[[4, 0, 4, 0, 4]]
        assert np.array_equal(run("gather", [a, index], (5, 3), dtype), wanted)


@pytest.mark.parametrize(
    ("kernel", "shapes", "out", "params", "message"),
    [
        (
            "transpose",
            [(2, 3)],
            (2, 3),
            {},
            "transpose: output must be of shape (3, 2), got (2, 3).",
        ),
        (
            "transpose",
            [(2, 3)],
            (3, 2),
            {"axes": (0, 0)},
            "axes must be each of the 2 axes once, got (0, 0).",
        ),
        ("transpose", [(2, 3)], (3, 2), {"reverse": (0, -2)}, "reverse must be some of the 2 axes"),
        ("transpose", [(2, 3)], (3, 2), {"reverse": (2,)}, "each once, got (2,)."),
        ("reshape", [(2, 3)], (5,), {}, "elements must not change: (2, 3) has 6, (5,) has 5"),
        ("reshape", [(2, 3)], (6,), {"shape": (-1, -1)}, "at most one -1"),
        ("gather", [(2, 3), (4,)], (4, 3), {}, "index must be of dtype s32, s64 or u32, got 'f32'"),
    ],
)
def test_invalid_calls(engine_id, kernel, shapes, out, params, message):
    target = buffer_zeros(out)
    with pytest.raises(errors.DalaError) as caught:
        run_kernel(kernel, [buffer_zeros(s) for s in shapes], target, params)
    assert message in str(caught.value)


def test_the_output_must_not_be_the_input(engine_id):
    a = buffer_zeros((3, 3))
    with pytest.raises(errors.ShapeMismatch, match="output must not be the input 'a'"):
        run_kernel("transpose", [a], a)


def test_in_a_pipeline_and_submitted(engine_id):
    a = numbers((4, 6), "f32")
    out, later = buffer_zeros((6, 4)), buffer_zeros((6, 4))
    source = from_array(a)
    spec = {"op": "run_kernel", "kernel": "transpose", "inputs": [source], "output": out}
    with Pipeline().add(spec) as p:
        p.run()
    submit({**spec, "output": later}).result()
    assert np.array_equal(out.numpy(), a.T)
    assert np.array_equal(later.numpy(), a.T)
