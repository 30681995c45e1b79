"""Cumulative sums and histograms, against NumPy in f64 and in integers."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dala
from dala import errors
from dala.gpu.compute import Pipeline, buffer_zeros, from_array, run_kernel, submit
from dala.gpu.compute.kernel import get
from tests.engine.ops.test_reduce import SUMS, numbers
from tests.support.engines import NUMPY, needs, run

ONCE = settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
LAYOUTS = [((7,), 0), ((70_003,), 0), ((3, 9001), 1), ((2000, 5), 0), ((300, 20), 0), ((4, 30), 1)]
SLOW_LAYOUTS = [((1 << 20,), 0), ((3, 70_000, 2), 1), ((5000, 20), 1), ((64, 4096), 0)]


def check_cumsum(got, a, axis):
    wide = a.astype("f8" if a.dtype.kind == "f" else "i8")
    exact = np.cumsum(wide, axis=axis)
    if got.dtype.kind == "f":
        size = np.cumsum(np.abs(wide.astype("f8")), axis=axis)
        assert (np.abs(got - exact) <= 32 * np.finfo(got.dtype).eps * size).all()
    elif got.dtype == np.uint8:
        assert np.array_equal(got, np.minimum(exact, 255))
    else:
        assert np.array_equal(got, exact.astype(got.dtype))


def check_layouts(layouts, dtype):
    for shape, axis in layouts:
        a = numbers(shape, dtype)
        for out in SUMS[dtype]:
            with needs(dtype, out):
                check_cumsum(run("cumsum", [a], shape, out, {"axis": axis}), a, axis)


@pytest.mark.parametrize("dtype", NUMPY)
def test_cumsum_in_every_dtype_and_layout(engine_id, dtype):
    check_layouts(LAYOUTS, dtype)


#: On every dtype in make test-long; the layouts differ in their passes, not by dtype.
MOSTLY_LONG = [d if d == "f32" else pytest.param(d, marks=pytest.mark.long) for d in NUMPY]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", MOSTLY_LONG)
def test_cumsum_in_more_layouts(engine_id, dtype):
    check_layouts(SLOW_LAYOUTS, dtype)


@ONCE
@given(data=st.data())
def test_cumsum_of_any_shape(engine_id, data):
    shape = tuple(data.draw(st.lists(st.integers(1, 40), min_size=1, max_size=3)))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    dtype = data.draw(st.sampled_from(["f32", "s32", "u8"]))
    a = numbers(shape, dtype)
    got = get("cumsum")(from_array(a), axis=axis).numpy()
    assert got.dtype == ("<u4" if dtype == "u8" else NUMPY[dtype])
    check_cumsum(got, a, axis)


def test_cumsum_is_along_the_last_axis_by_default(engine_id):
    a = np.array([[1, 2, 3], [4, 5, 6]], "f4")
    assert get("cumsum")(from_array(a)).numpy().tolist() == [[1, 3, 6], [4, 9, 15]]


def test_cumsum_of_bytes_saturates(engine_id):
    a = np.full(100_000, 1, "u1")
    got = run("cumsum", [a], a.shape, "u8")
    assert np.array_equal(got, np.minimum(np.arange(1, 100_001), 255))


def test_cumsum_after_nan_is_nan(engine_id):
    a = np.ones(20_000, "f4")
    a[9_000] = np.nan
    got = get("cumsum")(from_array(a)).numpy()
    assert np.array_equal(got[:9_000], np.arange(1, 9_001, dtype="f4"))
    assert np.isnan(got[9_000:]).all()


def test_cumsum_of_empty_arrays(engine_id):
    assert get("cumsum")(from_array(np.zeros((0,), "f4"))).shape == (0,)
    assert get("cumsum")(from_array(np.zeros((3, 0), "f4"))).shape == (3, 0)


# histogram --------------------------------------------------------------------------------


def counts(a, bins, low, high):
    """Count by exact comparison with the edges, in any dtype."""
    edges = [Fraction(float(low + i * ((high - low) / bins))) for i in range(bins)]
    found = [0] * bins
    for x, many in zip(*np.unique(a[~np.isnan(a)], return_counts=True), strict=True):
        if not low <= x.item() <= high:
            continue
        value = Fraction(x.item())
        found[max(i for i in range(bins) if edges[i] <= value)] += int(many)
    return found


@pytest.mark.parametrize("dtype", NUMPY)
def test_histogram_in_every_dtype(engine_id, dtype):
    rng = np.random.default_rng(6)
    a = (rng.normal(size=3000) * 40 + 100).clip(0).round(0 if dtype not in ("f32", "f64") else 1)
    a = a.astype(NUMPY[dtype])
    with needs(dtype):
        for bins, low, high in [(1, 0, 300), (7, -2.5, 133.3), (64, 20, 84), (3, 99.2, 99.9)]:
            got = run("histogram", [a], (bins,), "u32", {"bins": bins, "low": low, "high": high})
            assert got.tolist() == counts(a, bins, low, high)


def test_histogram_matches_numpy(engine_id):
    a = np.random.default_rng(7).integers(0, 256, (90, 160, 3), "u1")
    got = get("histogram")(from_array(a)).numpy()
    assert got.dtype == np.uint32
    assert np.array_equal(got, np.bincount(a.reshape(-1), minlength=256))
    x = np.random.default_rng(8).random(100_001).astype("f4")
    got = get("histogram")(from_array(x), bins=100).numpy()
    wanted, _ = np.histogram(x.astype("f8"), 100, (0, 1))
    assert np.array_equal(got, wanted)


@pytest.mark.parametrize("bins", [2048, 2049, 70_000])
def test_histogram_of_many_bins(engine_id, bins):
    a = np.random.default_rng(9).integers(0, bins, 50_000).astype("<i4")
    got = run("histogram", [a], (bins,), "u32", {"bins": bins, "low": 0, "high": bins})
    assert np.array_equal(got, np.bincount(a, minlength=bins))


def test_histogram_range(engine_id):
    """The last bin includes the end; numbers outside and NaN are not counted."""
    a = np.array([-0.1, 0, 0.25, 0.5, 0.999, 1, 1.001, np.nan, np.inf, -np.inf], "f4")
    assert get("histogram")(from_array(a), bins=4).numpy().tolist() == [1, 1, 1, 2]
    whole = np.array([-1, 0, 255, 256, 257], "<i4")
    got = get("histogram")(from_array(whole), bins=2).numpy()
    assert got.tolist() == [1, 2]
    far = np.array([2**31 - 1, -(2**31), 0], "<i4")
    got = run("histogram", [far], (4,), "s32", {"bins": 4, "low": 0, "high": 4e9})
    assert got.tolist() == [1, 0, 1, 0]
    for params in ({"low": 300, "high": 400}, {"low": -9, "high": -1}, {"low": 0.2, "high": 0.8}):
        got = run("histogram", [np.array([0, 1, 255], "u1")], (8,), "u32", {"bins": 8, **params})
        assert got.tolist() == [0] * 8


def test_histogram_of_one_value_many_times(engine_id):
    a = np.full(100_003, 7, "u1")
    got = get("histogram")(from_array(a)).numpy()
    assert got[7] == 100_003
    assert got.sum() == 100_003


@ONCE
@given(data=st.data())
def test_histogram_on_the_edges(engine_id, data):
    """Numbers on the edge of a bin, and next to one, where rounding would move them."""
    bins = data.draw(st.integers(1, 50))
    low = data.draw(st.floats(-100, 100, width=32))
    high = low + data.draw(st.floats(0.125, 200, width=32))
    edges = (low + np.arange(bins + 1) * ((high - low) / bins)).astype("f4")
    near = [np.nextafter(edges, np.float32(np.inf)), np.nextafter(edges, np.float32(-np.inf))]
    a = np.concatenate([edges, *near])
    a = a[(a == 0) | (np.abs(a) >= np.finfo("f4").tiny)]  # GPUs flush smaller numbers to 0
    got = run("histogram", [a], (bins,), "u32", {"bins": bins, "low": low, "high": high})
    assert got.tolist() == counts(a, bins, low, high)


def test_histogram_overwrites_its_output(engine_id):
    out = from_array(np.full(256, 9, "<u4"))
    run_kernel("histogram", [from_array(np.zeros(5, "u1"))], out)
    assert out.read_list() == [5, *[0] * 255]
    run_kernel("histogram", [from_array(np.zeros(0, "u1"))], out)
    assert out.read_list() == [0] * 256


# invalid calls --------------------------------------------------------------------------------

MISTAKES = [
    ("cumsum", (2, 3), "f32", {"axis": 2}, errors.ParameterError, "Use -2 to 1"),
    ("cumsum", (3, 2), "f32", {}, errors.ShapeMismatch, r"output must be of shape \(2, 3\), got"),
    (
        "cumsum",
        (2, 3),
        "s32",
        {},
        errors.DtypeMismatch,
        "output must be of dtype f32 for an input of f32, got 's32'",
    ),
    (
        "histogram",
        (255,),
        "u32",
        {},
        errors.ShapeMismatch,
        r"output must be of shape \(256,\), got",
    ),
    (
        "histogram",
        (256,),
        "f32",
        {},
        errors.DtypeMismatch,
        "output must be of dtype u32 or s32, got 'f32'",
    ),
    (
        "histogram",
        (0,),
        "u32",
        {"bins": 0},
        errors.ParameterError,
        "bins must be an int from 1 to 1048576, got 0.",
    ),
    (
        "histogram",
        (256,),
        "u32",
        {"low": 2.0},
        errors.ParameterError,
        "low must be finite and below high, 1, got 2.0",
    ),
    ("histogram", (256,), "u32", {"high": float("inf")}, errors.ParameterError, "finite"),
    (
        "histogram",
        (256,),
        "u32",
        {"high": float("nan")},
        errors.ParameterError,
        "high must be a number, got nan.",
    ),
]


@pytest.mark.parametrize(("name", "shape", "dtype", "params", "error", "text"), MISTAKES)
def test_invalid_calls_write_nothing(engine_id, name, shape, dtype, params, error, text):
    a = from_array(np.ones((2, 3), "f4"))
    out = from_array(np.full(shape, 5, NUMPY[dtype]))
    with pytest.raises(error, match=text):
        run_kernel(name, [a], out, params)
    assert (out.numpy() == 5).all()


# together --------------------------------------------------------------------------------


def test_in_a_pipeline_and_submitted(engine_id):
    """Equalization: a histogram and its cumulative sum."""
    picture = np.random.default_rng(2).integers(0, 99, (30, 40), "u1")
    source = from_array(picture)
    bins, total, again = (buffer_zeros((256,), "u32") for _ in range(3))
    p = Pipeline()
    p.add({"op": "run_kernel", "kernel": "histogram", "inputs": [source], "output": bins})
    p.add({"op": "run_kernel", "kernel": "cumsum", "inputs": [bins], "output": total})
    p.run()
    wanted = np.cumsum(np.bincount(picture.reshape(-1), minlength=256))
    assert np.array_equal(total.numpy(), wanted)
    work = {"op": "run_kernel", "kernel": "cumsum", "inputs": [bins], "output": again}
    submit(work).result(30)
    assert np.array_equal(again.numpy(), wanted)


def test_native_code_stays_in_bounds(monkeypatch):
    from dala.gpu.compute.engines.cpu.native import compile_native
    from dala.gpu.compute.engines.cpu.ops import reduce, scan

    for module in (reduce, scan):
        monkeypatch.setattr(module, "compile_native", partial(compile_native, checked=True))
    for name in ("cumsum", "histogram"):
        monkeypatch.setattr(get(name), "_plans", {})
    with dala.device("cpu"):
        for shape, axis in LAYOUTS:
            a = numbers(shape, "u8")
            check_cumsum(get("cumsum")(from_array(a), axis=axis).numpy(), a, axis)
        a = np.random.default_rng(1).integers(0, 300, 300_001)
        for dtype in ("<i4", "f4", "u1"):
            x = a.astype(dtype)
            got = get("histogram")(from_array(x), bins=17, low=0, high=255).numpy()
            assert np.array_equal(got, np.histogram(x.astype("f8"), 17, (0, 255))[0])
