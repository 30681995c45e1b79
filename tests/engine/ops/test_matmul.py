"""Matrix products against NumPy's in f64, or exactly for integers."""

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
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
FLOATS = ("f32", "f64")


def numbers(shape, dtype="f32", seed=0):
    rng = np.random.default_rng(seed)
    if dtype in FLOATS:
        return rng.standard_normal(shape).astype(NUMPY[dtype])
    ends = np.iinfo(NUMPY[dtype])
    return rng.integers(ends.min, ends.max, shape, NUMPY[dtype], endpoint=True)


def transposed(a, turn):
    return np.swapaxes(a, -1, -2) if turn else a


def assert_product(got, a, b, turn_a=False, turn_b=False):
    """Compare integers exactly, floats within the error of any summation order."""
    a, b = transposed(a, turn_a), transposed(b, turn_b)
    if a.dtype.kind != "f":
        wide = np.int32 if a.dtype == np.uint8 else a.dtype
        assert np.array_equal(got, np.matmul(a.astype(wide), b.astype(wide)))
        return
    wanted = np.matmul(a.astype("f8"), b.astype("f8"))
    sizes = np.matmul(np.abs(a).astype("f8"), np.abs(b).astype("f8"))
    assert got.shape == wanted.shape
    assert got.dtype == a.dtype
    allowed = (a.shape[-1] + 2) * np.finfo(a.dtype).eps * sizes
    assert (np.abs(got - wanted) <= allowed).all(), np.abs((got - wanted) / allowed).max()


def product(a, b, turn_a=False, turn_b=False):
    call = get("matmul")
    out = call(from_array(a), from_array(b), transpose_a=turn_a, transpose_b=turn_b)
    return np.array(out)


@pytest.mark.parametrize(
    ("turn_a", "turn_b"), [(False, False), (False, True), (True, False), (True, True)]
)
@pytest.mark.parametrize("sizes", [(1, 1, 1), (5, 7, 3), (33, 50, 65), (36, 40, 64)], ids=str)
def test_sizes_and_transposes(engine_id, sizes, turn_a, turn_b):
    rows, inner, columns = sizes
    a = numbers((inner, rows) if turn_a else (rows, inner))
    b = numbers((columns, inner) if turn_b else (inner, columns), seed=1)
    assert_product(product(a, b, turn_a, turn_b), a, b, turn_a, turn_b)


@pytest.mark.parametrize("dtype", NUMPY)
def test_every_dtype(engine_id, dtype):
    with needs(dtype):
        a, b = numbers((19, 23), dtype), numbers((23, 37), dtype, 1)
        assert_product(product(a, b), a, b)


@pytest.mark.parametrize("dtype", ["s32", "u32", "u8"])
def test_long_integer_sums_are_exact(engine_id, dtype):
    a, b = numbers((40, 700), dtype), numbers((30, 700), dtype, 1)
    assert_product(product(a, b, turn_b=True), a, b, turn_b=True)
    a[:], b[:] = np.iinfo(a.dtype).max, np.iinfo(a.dtype).max
    assert_product(product(a, b, turn_b=True), a, b, turn_b=True)


@pytest.mark.parametrize(
    "sizes",
    [(1500, 20, 1600), (1536, 32, 1408), (700, 9, 801), (8, 3000, 8), (1, 900, 1), (1, 64, 900)],
    ids=str,
)
def test_tiles_of_every_size_and_shared_sums(engine_id, sizes):
    rows, inner, columns = sizes
    a, b = numbers((rows, inner)), numbers((inner, columns), seed=1)
    assert_product(product(a, b), a, b)


def test_large_tiles_of_transposed_matrices(engine_id):
    a, b = numbers((32, 1536)), numbers((1408, 32), seed=1)
    assert_product(product(a, b, True, True), a, b, True, True)


@pytest.mark.parametrize("dtype", ["f64", "s64", "u8"])
def test_middle_tiles_of_other_dtypes(engine_id, dtype):
    with needs(dtype):
        a, b = numbers((700, 5), dtype), numbers((5, 770), dtype, 1)
        assert_product(product(a, b), a, b)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((7,), (7, 5)),
        ((5, 7), (7,)),
        ((7,), (7,)),
        ((3, 5, 7), (7,)),
        ((7,), (3, 7, 5)),
        ((3, 5, 7), (7, 4)),
        ((5, 7), (3, 7, 4)),
        ((3, 1, 5, 7), (2, 7, 4)),
        ((2, 1, 3, 5, 7), (1, 4, 1, 7, 6)),
    ],
    ids=str,
)
def test_vectors_and_batches(engine_id, left, right):
    a, b = numbers(left), numbers(right, seed=1)
    assert_product(product(a, b), a, b)


@ONCE
@given(
    batches=st.sampled_from([((), ()), ((2,), ()), ((2, 1), (3,)), ((3,), (3,))]),
    sizes=st.tuples(st.integers(1, 40), st.integers(1, 60), st.integers(1, 40)),
    turns=st.tuples(st.booleans(), st.booleans()),
)
def test_any_product(engine_id, batches, sizes, turns):
    if engine_id.startswith("webgpu"):  # odd sizes only: each kind of shader takes time to compile
        sizes = tuple(n | 1 for n in sizes)
    rows, inner, columns = sizes
    a = numbers((*batches[0], *((inner, rows) if turns[0] else (rows, inner))))
    b = numbers((*batches[1], *((columns, inner) if turns[1] else (inner, columns))), seed=1)
    assert_product(product(a, b, *turns), a, b, *turns)


def test_infinities_and_nan(engine_id):
    a, b = numbers((37, 21)), numbers((21, 41), seed=1)
    a[5, 3], a[9, 2], b[7, 40] = np.inf, np.nan, -np.inf
    with np.errstate(invalid="ignore"):
        wanted = np.matmul(a, b)
        got = product(a, b)
    assert np.array_equal(np.isnan(got), np.isnan(wanted))
    assert np.array_equal(np.isinf(got), np.isinf(wanted))
    assert np.array_equal(np.sign(got[np.isinf(got)]), np.sign(wanted[np.isinf(wanted)]))


@pytest.mark.parametrize("sizes", [(0, 3, 2), (2, 0, 3), (2, 3, 0)], ids=str)
def test_empty_matrices(engine_id, sizes):
    rows, inner, columns = sizes
    got = run("matmul", [np.ones((rows, inner), "f4"), np.ones((inner, columns), "f4")],
              (rows, columns), "f32")  # fmt: skip
    assert np.array_equal(got, np.zeros((rows, columns), "f4"))


def test_in_a_pipeline_and_a_stream(engine_id):
    a, b = numbers((6, 8)), numbers((8, 5), seed=1)
    middle, out = buffer_zeros((6, 5), transient=True), buffer_zeros((6, 5))
    spec = {"op": "run_kernel", "kernel": "matmul", "inputs": [from_array(a), from_array(b)]}
    p = Pipeline()
    p.add({**spec, "output": middle})
    p.add({"op": "run_kernel", "kernel": "relu", "inputs": [middle], "output": out})
    for _ in range(2):
        p.run()
    wanted = np.maximum(a.astype("f8") @ b, 0)
    assert np.allclose(np.array(out), wanted, atol=1e-5)
    done = buffer_zeros((6, 5))
    submit({**spec, "output": done}).wait()
    assert_product(np.array(done), a, b)


@pytest.mark.parametrize(
    ("left", "right", "params", "kind", "words"),
    [
        ((2, 3), (4, 5), {}, errors.ShapeMismatch, ["(2, 3)", "(4, 5)", "3 and 4", "transpose_a"]),
        ((3, 2), (2, 4), {"transpose_a": True}, errors.ShapeMismatch, ["transposed", "3 and 2"]),
        ((2, 3, 4), (3, 4, 5), {}, errors.ShapeMismatch, ["(2,)", "(3,)", "broadcast"]),
        ((), (2, 3), {}, errors.ShapeMismatch, ["a must be", "()", "scalar_mul"]),
        ((3,), (3, 4), {"transpose_a": True}, errors.ParameterError, ["transpose_a", "(3,)"]),
        ((2, 3), (3, 4), {"transpose_c": True}, errors.UnknownParameter, ["transpose_c"]),
        ((2, 3), (3, 4), {"transpose_a": "x"}, errors.ParameterError, ["True or False", "'x'"]),
    ],
)
def test_invalid_input(engine_id, left, right, params, kind, words):
    out = from_array(np.full((2, 4), 7, "f4"))
    with pytest.raises(kind) as info:
        inputs = [from_array(np.ones(s, "f4")) for s in (left, right)]
        run_kernel("matmul", inputs, out, params)
    for word in ("matmul", *words):
        assert word in str(info.value)
    assert (np.array(out) == 7).all()


def test_invalid_outputs_and_dtypes(engine_id):
    a, b = from_array(numbers((2, 3))), from_array(numbers((3, 4)))
    with pytest.raises(
        errors.ShapeMismatch, match=r"output must be of shape \(2, 4\), got \(4, 2\)"
    ):
        run_kernel("matmul", [a, b], buffer_zeros((4, 2)))
    with pytest.raises(errors.DtypeMismatch, match="output must be of dtype 'f32'"):
        run_kernel("matmul", [a, b], buffer_zeros((2, 4), "s32"))
    with pytest.raises(errors.DtypeMismatch, match="b must be of dtype 'f32', as 'a' is"):
        run_kernel("matmul", [a, from_array(numbers((3, 4), "s32"))], buffer_zeros((2, 4)))
    square = from_array(numbers((3, 3)))
    with pytest.raises(errors.ShapeMismatch, match="output must not be the input 'a'"):
        run_kernel("matmul", [square, square], square)
