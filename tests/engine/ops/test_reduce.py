"""Sums, extremes and argmax: every dtype, any axes, odd lengths.

Expected values are computed here, in Python integers or NumPy's widest types.
"""

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
#: dtypes of a sum, the default first.
SUMS = {
    "f32": ["f32"],
    "f64": ["f64"],
    "s32": ["s32", "u32", "s64", "f32", "f64"],
    "s64": ["s64"],
    "u32": ["u32", "s32", "s64", "f32", "f64"],
    "u8": ["u32", "u8", "s32", "s64", "f32", "f64"],
}
EXTREMES = {"reduce_max": np.max, "reduce_min": np.min}
#: Shapes for every path of the engines: split rows, narrow and wide columns, tails.
SHAPES = [((70_003,), None), ((5, 2001), 1), ((3000, 7), 0), ((40, 1100), 0), ((3, 5, 4), (0, 2))]
SLOW_SHAPES = [
    ((1 << 20,), None), ((600_001, 3), 0), ((4, 70_000, 2), 1), ((33, 4096), 1), ((4096, 33), 0),
    ((2, 3, 4, 5), (1, 3)), ((9000, 1, 5), (0, 1)), ((100, 200, 8), (0, 1)),
]  # fmt: skip


def numbers(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    if dtype in FLOATS:
        return rng.normal(size=shape).astype(NUMPY[dtype])
    ends = np.iinfo(NUMPY[dtype])
    return rng.integers(ends.min, ends.max, shape, NUMPY[dtype], endpoint=True)


def check_sum(got, a, axis):
    """Compare integers exactly, as their dtype wraps (u8 saturates); floats within some ulps."""
    wide = a.astype("f8" if a.dtype.kind == "f" else "i8")
    exact = wide.sum(axis=axis)
    if got.dtype.kind == "f":
        size = np.abs(wide.astype("f8")).sum(axis=axis)
        assert (np.abs(got - exact) <= 4 * np.finfo(got.dtype).eps * size).all()
    elif got.dtype == np.uint8:
        assert np.array_equal(got, np.minimum(exact, 255))
    else:
        assert np.array_equal(got, exact.astype(got.dtype))


def check(a, axis, dtype):
    for out_dtype in SUMS[dtype]:
        shape = np.sum(a, axis=axis).shape
        with needs(dtype, out_dtype):
            check_sum(run("reduce_sum", [a], shape, out_dtype, {"axis": axis}), a, axis)
    for name, function in EXTREMES.items():
        with needs(dtype):
            wanted = np.asarray(function(a, axis=axis))
            assert np.array_equal(run(name, [a], wanted.shape, dtype, {"axis": axis}), wanted)


@pytest.mark.third
@pytest.mark.parametrize("dtype", NUMPY)
def test_every_dtype_and_layout(engine_id, dtype):
    for shape, axis in SHAPES:
        check(numbers(shape, dtype), axis, dtype)


#: On every dtype in make test-long; the layouts differ in their passes, not by dtype.
MOSTLY_LONG = [d if d == "f32" else pytest.param(d, marks=pytest.mark.long) for d in NUMPY]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", MOSTLY_LONG)
def test_more_layouts(engine_id, dtype):
    for shape, axis in SLOW_SHAPES:
        check(numbers(shape, dtype), axis, dtype)


@ONCE
@given(data=st.data())
def test_any_shape_and_axes(engine_id, data):
    shape = tuple(data.draw(st.lists(st.integers(1, 12), min_size=1, max_size=4), label="shape"))
    axes = st.lists(st.integers(0, len(shape) - 1), min_size=1, unique=True)
    axis = data.draw(st.none() | axes.map(tuple), label="axis")
    dtype = data.draw(st.sampled_from(["f32", "s32", "u8"]), label="dtype")
    a = numbers(shape, dtype)
    got = get("reduce_sum")(from_array(a), axis=axis).numpy()
    assert got.dtype == ("<u4" if dtype == "u8" else NUMPY[dtype])
    assert got.shape == np.sum(a, axis=axis).shape
    check_sum(got, a, axis)
    assert np.array_equal(get("reduce_max")(from_array(a), axis=axis).numpy(), a.max(axis=axis))
    assert np.array_equal(get("reduce_min")(from_array(a), axis=axis).numpy(), a.min(axis=axis))


@pytest.mark.parametrize("shape", [(300, 5), (5, 70_000), (1 << 18,)])
def test_negative_axes_count_from_the_end(engine_id, shape):
    a = numbers(shape, "f32")
    last = get("reduce_max")(from_array(a), axis=-1).numpy()
    assert np.array_equal(last, a.max(axis=-1))


def test_one_number_and_no_axes(engine_id):
    a = from_array(np.array(7.5, "f4"))
    for name in ("reduce_sum", "reduce_max", "reduce_min"):
        got = get(name)(a).numpy()
        assert got.shape == ()
        assert got == 7.5
    assert get("argmax")(a).numpy() == 0


def test_outputs_without_the_axis_or_with_size_one(engine_id):
    a = np.arange(24, dtype="f4").reshape(2, 3, 4)
    for shape in [(2, 4), (2, 1, 4)]:
        got = run("reduce_sum", [a], shape, "f32", {"axis": 1})
        assert np.array_equal(got, a.sum(axis=1).reshape(shape))
    for shape in [(), (1,), (1, 1, 1)]:
        assert run("reduce_sum", [a], shape, "f32").reshape(-1).tolist() == [276.0]


def in_order(row):
    """Return the sum of a row in the order that the CPU engine promises on every processor."""
    total = 0.0
    for block in (row[i : i + 4096] for i in range(0, len(row), 4096)):
        whole, sums = len(block) // 64 * 64, np.zeros((4, 16), "<f4")
        for four in block[:whole].reshape(-1, 4, 16):
            sums += four
        for i in range(whole, len(block), 16):
            left = block[i : i + 16]
            sums[0 if len(left) == 16 else 1, : len(left)] += left
        vector = (sums[0] + sums[1]) + (sums[2] + sums[3])
        while len(vector) > 1:
            vector = vector[: len(vector) // 2] + vector[len(vector) // 2 :]
        total += float(vector[0])
    return total


def test_order_of_a_sum():
    """A different processor, or another number of threads, must not change a bit."""
    with dala.device("cpu"):
        for length in (17, 1003, 5000):
            a = numbers((20, length), "f32")
            got = run("reduce_sum", [a], (20,), "f32", {"axis": 1})
            assert got.tolist() == [np.float32(in_order(row)) for row in a]
        a = numbers((1 << 17) + 4099, "f32")
        half = -(-len(a) // 2)
        total = in_order(a[:half]) + in_order(a[half:])
        assert run("reduce_sum", [a], (), "f32") == np.float32(total)


# special numbers ----------------------------------------------------------------


def test_f32_sums_are_accurate(engine_id):
    """A plain loop is off by 1% here."""
    a = np.full(3_000_000, 0.1, "f4")
    got = float(get("reduce_sum")(from_array(a)).numpy())
    exact = 3_000_000 * float(np.float32(0.1))
    assert abs(got - exact) / exact < 1e-6
    tall = a.reshape(-1, 3)
    got = get("reduce_sum")(from_array(tall), axis=0).numpy()
    assert np.abs(got / (exact / 3) - 1).max() < 1e-6


def test_integers_wrap_and_bytes_saturate(engine_id):
    big = np.full(3, 2**31 - 1, "<i4")
    assert int(get("reduce_sum")(from_array(big)).numpy()) == 3 * (2**31 - 1) - 2**32
    assert run("reduce_sum", [big], (), "u32") == (3 * (2**31 - 1)) % 2**32
    least = np.full(2, -(2**31), "<i4")
    assert int(get("reduce_sum")(from_array(least)).numpy()) == 0
    a = np.array([[100, 100, 55], [100, 100, 56], [0, 0, 0]], "u1")
    assert run("reduce_sum", [a], (3,), "u8", {"axis": 1}).tolist() == [255, 255, 0]
    many = np.full((100_001, 5), 255, "u1")
    assert run("reduce_sum", [many], (5,), "u8", {"axis": 0}).tolist() == [255] * 5
    assert run("reduce_sum", [many], (), "u32") == 255 * many.size


@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_and_infinities(engine_id, dtype):
    a = np.array([[1, np.nan, 3], [-np.inf, 2, np.inf], [-np.inf] * 3], NUMPY[dtype])
    tall = np.zeros((70_000, 2), NUMPY[dtype])
    tall[69_999, 1] = np.nan
    with needs(dtype):
        for name, function in EXTREMES.items():
            for axis in (None, 0, 1):
                wanted = np.asarray(function(a, axis=axis))
                got = run(name, [a], wanted.shape, dtype, {"axis": axis})
                assert np.array_equal(got, wanted, equal_nan=True)
            got = run(name, [tall], (2,), dtype, {"axis": 0})
            assert np.array_equal(got, [0, np.nan], equal_nan=True)
        got = run("reduce_sum", [a], (3,), dtype, {"axis": 1})
        assert np.array_equal(got, [np.nan, np.nan, -np.inf], equal_nan=True)


def test_extremes_of_negative_numbers_only(engine_id):
    a = -np.arange(1, 1001, dtype="f4")
    assert get("reduce_max")(from_array(a)).numpy() == -1
    assert get("reduce_min")(from_array(-a)).numpy() == 1
    assert get("reduce_max")(from_array(a.astype("<i4"))).numpy() == -1
    assert get("reduce_min")(from_array((-a).astype("<u4"))).numpy() == 1


# argmax --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", NUMPY)
def test_argmax_returns_the_first_maximum(engine_id, dtype):
    rng = np.random.default_rng(4)
    for shape in [(70_003,), (5, 2001), (3000, 7), (40, 700)]:
        a = rng.integers(0, 40, shape).astype(NUMPY[dtype])
        for axis in (None, *range(len(shape))):
            wanted = np.asarray(np.argmax(a, axis=axis))
            with needs(dtype):
                got = run("argmax", [a], wanted.shape, "s32", {"axis": axis})
                assert np.array_equal(got, wanted)


@ONCE
@given(data=st.data())
def test_argmax_of_any_shape(engine_id, data):
    shape = tuple(data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=4)))
    axis = data.draw(st.none() | st.integers(-len(shape), len(shape) - 1))
    values = data.draw(
        st.lists(
            st.sampled_from([-1.0, 0.0, 1.0, np.nan, np.inf, -np.inf]),
            min_size=int(np.prod(shape)),
            max_size=int(np.prod(shape)),
        )
    )
    a = np.array(values, "f4").reshape(shape)
    got = get("argmax")(from_array(a), axis=axis).numpy()
    assert got.dtype == np.int32
    assert np.array_equal(got, np.argmax(a, axis=axis))


@pytest.mark.parametrize("out", ["s32", "u32", "s64"])
def test_argmax_counts_in_several_dtypes(engine_id, out):
    a = np.zeros(100_000, "f4")
    a[77_777] = 1
    with needs(out):
        assert run("argmax", [a], (1,), out).tolist() == [77_777]


def test_argmax_of_minus_infinity(engine_id):
    a = np.full((3, 700), -np.inf, "f4")
    assert get("argmax")(from_array(a), axis=1).numpy().tolist() == [0, 0, 0]
    assert get("argmax")(from_array(a), axis=0).numpy().tolist() == [0] * 700


# empty arrays --------------------------------------------------------------------------------


def test_sums_of_empty_arrays_are_zero(engine_id):
    assert get("reduce_sum")(from_array(np.zeros((0,), "f4"))).numpy() == 0
    out = from_array(np.full(3, 9, "f4"))
    run_kernel("reduce_sum", [from_array(np.zeros((0, 3), "f4"))], out, {"axis": 0})
    assert out.read_list() == [0, 0, 0]
    assert get("reduce_sum")(from_array(np.zeros((0, 3), "f4")), axis=1).shape == (0,)


@pytest.mark.parametrize("name", ["reduce_max", "reduce_min", "argmax"])
def test_empty_arrays_have_no_extremes(engine_id, name):
    for shape, axis in [((0,), None), ((0, 3), 0)]:
        with pytest.raises(errors.ShapeMismatch, match="an empty input has no result"):
            get(name)(from_array(np.zeros(shape, "f4")), axis=axis)
    assert get(name)(from_array(np.zeros((0, 3), "f4")), axis=1).shape == (0,)


# invalid calls --------------------------------------------------------------------------------

MISTAKES = [
    (
        "reduce_sum",
        (2,),
        "f32",
        {"axis": 2},
        errors.ParameterError,
        "axis must be .* got 2. Use -2 to 1",
    ),
    ("reduce_max", (2,), "f32", {"axis": (0, -2)}, errors.ParameterError, "each once"),
    ("reduce_min", (2,), "f32", {"axis": ()}, errors.ParameterError, "one or more axes"),
    (
        "reduce_sum",
        (2,),
        "f32",
        {"axis": 0.5},
        errors.ParameterError,
        "axis must be a list of ints, got 0.5.",
    ),
    ("reduce_sum", (2,), "f32", {"axes": 0}, errors.UnknownParameter, "axis"),
    (
        "reduce_sum",
        (3,),
        "f32",
        {"axis": 1},
        errors.ShapeMismatch,
        r"\(2,\) or \(2, 1\), got \(3,\)",
    ),
    ("reduce_sum", (2,), "f32", {}, errors.ShapeMismatch, r"\(\) or \(1,\) or \(1, 1\)"),
    (
        "reduce_sum",
        (2,),
        "s32",
        {"axis": 1},
        errors.DtypeMismatch,
        "output must be of dtype f32 for an input of f32, got 's32'",
    ),
    (
        "reduce_max",
        (2,),
        "s64",
        {"axis": 1},
        errors.DtypeMismatch,
        "output must be of dtype f32 for an input of f32, got 's64'",
    ),
    (
        "argmax",
        (2,),
        "f32",
        {"axis": 1},
        errors.DtypeMismatch,
        "of dtype s32 or u32 or s64 for an input of f32, got 'f32'",
    ),
    ("argmax", (2,), "s32", {"axis": (0, 1)}, errors.ParameterError, "axis must be an int, got"),
]


@pytest.mark.parametrize(("name", "shape", "dtype", "params", "error", "text"), MISTAKES)
def test_invalid_calls_write_nothing(engine_id, name, shape, dtype, params, error, text):
    a = from_array(np.ones((2, 3), "f4"))
    with needs(dtype):
        out = from_array(np.full(shape, 5, NUMPY[dtype]))
        with pytest.raises(error, match=text):
            run_kernel(name, [a], out, params)
        assert (out.numpy() == 5).all()


def test_the_output_must_not_be_the_input(engine_id):
    a = from_array(np.ones((3,), "f4"))
    with pytest.raises(errors.ShapeMismatch, match=r"output must not be the input|shape"):
        run_kernel("reduce_sum", [a], a)
    one = from_array(np.ones((1,), "f4"))
    with pytest.raises(errors.ShapeMismatch, match="output must not be the input"):
        run_kernel("reduce_sum", [one], one)


def test_freed_buffers(engine_id):
    a, out = from_array(np.ones((3,), "f4")), buffer_zeros((), "f32")
    run_kernel("reduce_sum", [a], out)
    a.free()
    with pytest.raises(errors.FreedError):
        run_kernel("reduce_sum", [a], out)


# together --------------------------------------------------------------------------------


def test_in_a_pipeline(engine_id):
    a = from_array(np.arange(12, dtype="f4").reshape(3, 4))
    double, sums, top = (buffer_zeros(s, "f32") for s in ((3, 4), (3,), ()))
    p = Pipeline()
    scale = {"op": "run_kernel", "kernel": "scalar_mul", "params": {"scalar": 2.0}}
    p.add({**scale, "inputs": [a], "output": double})
    reduce = {"op": "run_kernel", "kernel": "reduce_sum", "params": {"axis": 1}}
    p.add({**reduce, "inputs": [double], "output": sums})
    p.add({"op": "run_kernel", "kernel": "reduce_max", "inputs": [sums], "output": top})
    p.run()
    assert sums.read_list() == [12, 44, 76]
    assert top.numpy() == 76


def test_submitted(engine_id):
    a, out = from_array(np.array([3, 9, 4], "f4")), buffer_zeros((), "s32")
    command = submit({"op": "run_kernel", "kernel": "argmax", "inputs": [a], "output": out})
    command.result(30)
    assert out.numpy() == 1


# native code --------------------------------------------------------------------------------


def test_native_code_stays_in_bounds(monkeypatch):
    """The checked build raises at the first index outside of an array."""
    from dala.gpu.compute.engines.cpu.native import compile_native
    from dala.gpu.compute.engines.cpu.ops import argmax, reduce

    for module in (argmax, reduce):
        monkeypatch.setattr(module, "compile_native", partial(compile_native, checked=True))
    for name in ("reduce_sum", "reduce_max", "argmax"):
        monkeypatch.setattr(get(name), "_plans", {})
    rng = np.random.default_rng(1)
    with dala.device("cpu"):
        for shape, axis in [*SHAPES[:-1], ((5, 7), 0), ((5, 7), 1), ((1,), 0), ((2, 300, 3), 1)]:
            a = rng.integers(0, 99, shape).astype("f4")
            got = get("reduce_sum")(from_array(a), axis=axis).numpy()
            assert np.array_equal(got, a.sum(axis=axis))
            got = get("reduce_max")(from_array(a), axis=axis).numpy()
            assert np.array_equal(got, a.max(axis=axis))
            got = get("argmax")(from_array(a), axis=axis).numpy()
            assert np.array_equal(got, a.argmax(axis=axis))
