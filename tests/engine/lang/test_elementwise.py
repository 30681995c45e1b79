"""Every elementwise kernel: all dtypes, broadcasting, special values and odd sizes.

The expected numbers are computed with NumPy here; the reference engine is tested like any other.
"""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.gpu.compute import buffer, buffer_zeros, from_array, run_kernel, to_array
from tests.support.engines import NUMPY, needs, run
from tests.support.tolerances import assert_close, flush

DTYPES = list(NUMPY)
FLOATS = ["f32", "f64"]
INTS = ["s32", "s64", "u32", "u8"]
SIZES = [0, 1, 3, 255, 257, 65537]


def ints_floor_divide(a, b):
    """Return a // b, where x // 0 is 0 and the most negative number // -1 is itself."""
    safe = np.where((b == 0) | (b == -1), 1, b).astype(b.dtype)
    return np.where(b == 0, 0, np.where(b == -1, -a, a // safe)).astype(a.dtype)


def divide(a, b):
    return a / b if a.dtype.kind == "f" else ints_floor_divide(a, b)


BINARY = {
    "elementwise_add": (np.add, "exact"),
    "elementwise_sub": (np.subtract, "exact"),
    "elementwise_mul": (np.multiply, "exact"),
    "elementwise_div": (divide, "div"),
}


def expected_binary(name, a, b):
    """Return the expected result in the inputs' dtype; u8 is computed in s32 and clamped."""
    function, _ = BINARY[name]
    with np.errstate(all="ignore"):
        if a.dtype == np.uint8:
            return np.clip(function(a.astype("<i4"), b.astype("<i4")), 0, 255).astype("u1")
        return function(a, b)


def kind_of(name, dtype):
    return BINARY[name][1] if dtype in FLOATS else "exact"


def numbers(dtype, count, seed):
    """Return numbers of a dtype: floats of both signs, ints over their whole range."""
    random = np.random.default_rng(seed)
    if dtype in FLOATS:
        return (random.standard_normal(count) * 10).astype(NUMPY[dtype])
    ends = np.iinfo(NUMPY[dtype])
    return random.integers(ends.min, ends.max, count, NUMPY[dtype], endpoint=True)


# sizes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BINARY)
def test_every_size(engine_id, name, dtype):
    with needs(dtype):
        for size in SIZES:
            a, b = numbers(dtype, size, 1), numbers(dtype, size, 2)
            got = run(name, [a, b], (size,), dtype)
            assert_close(got, expected_binary(name, a, b), engine_id, kind_of(name, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_size_scalar_mul_and_relu(engine_id, dtype):
    with needs(dtype):
        for size in SIZES:
            a = numbers(dtype, size, 3)
            got = run("relu", [a], (size,), dtype)
            assert_close(got, np.maximum(a, np.zeros_like(a)), engine_id)
            got = run("scalar_mul", [a], (size,), dtype, {"scalar": 2})
            assert_close(got, expected_binary("elementwise_mul", a, np.full_like(a, 2)), engine_id)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["sigmoid", "tanh"])
def test_every_size_sigmoid_and_tanh(engine_id, name, dtype):
    with needs(dtype):
        for size in SIZES:
            a = numbers(dtype, size, 4)
            expected = SMOOTH[name](a.astype("f8")).astype(a.dtype)
            assert_close(run(name, [a], (size,), dtype), expected, engine_id, "exp")


def test_more_elements_than_one_dispatch_axis(engine_id):
    """A GPU dispatch has at most 65,535 groups of 256 along one axis."""
    size = 65_535 * 256 + 259
    a = np.arange(size, dtype="<u4")
    b = from_array(a)
    run_kernel("scalar_mul", [b], b, {"scalar": 3})
    assert np.array_equal(to_array(b), a * np.uint32(3))


# broadcasting ---------------------------------------------------------------------------------

BROADCASTS = [
    ((4, 3), (3,)),
    ((3,), (4, 3)),
    ((4, 1), (1, 3)),
    ((2, 1, 3), (4, 1)),
    ((), (5,)),
    ((5,), (1,)),
    ((), ()),
    ((2, 3, 4, 5), (4, 1)),
    ((1, 3, 1), (2, 1, 4)),
    ((0,), (1,)),
    ((3, 0), (1, 1)),
    ((257, 3), (257, 1)),
    ((1, 1, 1), (1,)),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("left", "right"), BROADCASTS, ids=str)
def test_broadcasting_matches_numpy(engine_id, left, right, dtype):
    with needs(dtype):
        a = numbers(dtype, int(np.prod(left)), 5).reshape(left)
        b = numbers(dtype, int(np.prod(right)), 6).reshape(right)
        expected = expected_binary("elementwise_sub", a, b)
        assert_close(run("elementwise_sub", [a, b], expected.shape, dtype), expected, engine_id)


@pytest.mark.parametrize(
    ("left", "right", "out"),
    [((3,), (4,), (4,)), ((2, 3), (3, 2), (2, 3)), ((3,), (3,), (4,)), ((2, 3), (3,), (3,))],
    ids=str,
)
def test_shapes_that_do_not_broadcast_raise(engine_id, left, right, out):
    target = buffer_zeros(out)
    with pytest.raises(dala.ShapeMismatch):
        run_kernel("elementwise_add", [buffer_zeros(left), buffer_zeros(right)], target)


# special values -------------------------------------------------------------------------------


def special_floats(dtype):
    limits = np.finfo(NUMPY[dtype])
    small = [limits.tiny, limits.tiny * 0.5, limits.smallest_subnormal]
    big = [limits.max, limits.max / 8]
    plain = [0.0, 0.5, 1.0, 3.5, 1e-3, 12345.678]
    positive = np.array([*plain, *small, *big, np.inf], NUMPY[dtype])
    return np.concatenate([positive, -positive, np.array([np.nan], NUMPY[dtype])])


def special_ints(dtype):
    ends = np.iinfo(NUMPY[dtype])
    chosen = [ends.min, ends.min + 1, ends.max, ends.max - 1, 0, 1, 2, 3, 7, 100, ends.max // 2]
    if ends.min < 0:
        chosen += [-1, -2, -3, -7, -100, ends.min // 2]
    return np.array(chosen, NUMPY[dtype])


def pairs(values):
    a, b = np.meshgrid(values, values, indexing="ij")
    return a.ravel(), b.ravel()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BINARY)
def test_special_values(engine_id, name, dtype):
    with needs(dtype):
        a, b = pairs(special_floats(dtype) if dtype in FLOATS else special_ints(dtype))
        if name == "elementwise_div" and dtype in FLOATS:
            # The reciprocal of anything larger is a denormal: no GPU promises that quotient.
            edge = np.isfinite(b) & (np.abs(b) > np.finfo(NUMPY[dtype]).max / 4)
            keep = ~edge if engine_id.startswith("webgpu") else np.ones(b.shape, bool)
            a, b = a[keep], b[keep]
        got = run(name, [a, b], a.shape, dtype)
        expected = expected_binary(name, a, b)
        flushed = expected_binary(name, flush(a), flush(b))
        assert_close(got, expected, engine_id, kind_of(name, dtype), flushed=flushed)


def test_u8_is_clamped(engine_id):
    def u8(*values):
        return np.array(values, "u1")

    assert run("elementwise_add", [u8(250, 255), u8(10, 255)], (2,), "u8").tolist() == [255, 255]
    assert run("elementwise_sub", [u8(3, 0), u8(5, 255)], (2,), "u8").tolist() == [0, 0]
    assert run("elementwise_mul", [u8(20, 255), u8(20, 255)], (2,), "u8").tolist() == [255, 255]
    assert run("elementwise_div", [u8(7, 9), u8(2, 0)], (2,), "u8").tolist() == [3, 0]
    assert run("scalar_mul", [u8(200, 3)], (2,), "u8", {"scalar": 2}).tolist() == [255, 6]
    assert run("scalar_mul", [u8(200, 3)], (2,), "u8", {"scalar": -1}).tolist() == [0, 0]


def test_u8_arithmetic_is_wide_until_stored(engine_id):
    a, b = np.array([250, 3], "u1"), np.array([10, 5], "u1")
    assert run("elementwise_add", [a, b], (2,), "s32").tolist() == [260, 8]
    assert run("elementwise_sub", [a, b], (2,), "s32").tolist() == [240, -2]


def test_integers_wrap_around(engine_id):
    top, low = 2**31 - 1, -(2**31)
    a, one = np.array([top, low], "<i4"), np.array([1, 1], "<i4")
    assert run("elementwise_add", [a, one], (2,), "s32").tolist() == [low, low + 1]
    assert run("elementwise_sub", [a, one], (2,), "s32").tolist() == [top - 1, top]
    unsigned = np.array([0, 2**32 - 1], "<u4")
    ones = np.array([1, 1], "<u4")
    assert run("elementwise_sub", [unsigned, ones], (2,), "u32").tolist() == [2**32 - 1, 2**32 - 2]


def test_integer_division_is_floor_division(engine_id):
    a = np.array([7, -7, 7, -7, 5, -5, 0, -(2**31)], "<i4")
    b = np.array([2, 2, -2, -2, 0, 0, 0, -1], "<i4")
    expected = [3, -4, -4, 3, 0, 0, 0, -(2**31)]
    assert run("elementwise_div", [a, b], (8,), "s32").tolist() == expected


# scalar_mul -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
def test_scalar_mul_of_floats(engine_id, dtype):
    with needs(dtype):
        a = special_floats(dtype)
        factor = NUMPY[dtype]
        for scalar in (0.1, -3.0, 0.0, 2, np.inf):
            with np.errstate(all="ignore"):
                expected = a * np.array(scalar, factor)
                flushed = flush(a) * np.array(scalar, factor)
            got = run("scalar_mul", [a], a.shape, dtype, {"scalar": scalar})
            assert_close(got, expected, engine_id, flushed=flushed)


@pytest.mark.parametrize("dtype", ["s32", "s64", "u32"])
def test_scalar_mul_of_ints_by_an_int_is_exact_and_wraps(engine_id, dtype):
    with needs(dtype):
        a = special_ints(dtype)
        for scalar in (0, 1, 3, 65537, *((-1, -7) if dtype != "u32" else ())):
            expected = a * np.array(scalar, NUMPY[dtype])
            got = run("scalar_mul", [a], a.shape, dtype, {"scalar": scalar})
            assert_close(got, expected, engine_id)


@pytest.mark.parametrize("dtype", INTS)
def test_scalar_mul_of_ints_by_a_float_rounds_half_to_even(engine_id, dtype):
    with needs(dtype):
        a = np.array([0, 1, 2, 3, 5, 7, 101, 200], NUMPY[dtype])
        ends = np.iinfo(NUMPY[dtype])
        for scalar in (0.5, 1.5, 0.25, 1000.0, -1.5):
            wide = np.rint(a.astype("f8") * scalar)
            if dtype == "u8":  # an s32 until it is stored
                wide = np.clip(wide, -(2**31), 2**31 - 1)
            expected = np.clip(wide, ends.min, ends.max).astype(NUMPY[dtype])
            got = run("scalar_mul", [a], a.shape, dtype, {"scalar": scalar})
            assert_close(got, expected, engine_id)


def test_scalar_mul_of_ints_by_a_float_clamps(engine_id):
    a = np.array([2**30, -(2**30), 1, 0], "<i4")
    got = run("scalar_mul", [a], (4,), "s32", {"scalar": 4.0})
    assert got.tolist() == [2**31 - 1, -(2**31), 4, 0]
    got = run("scalar_mul", [a], (4,), "s32", {"scalar": float("inf")})
    assert got.tolist() == [2**31 - 1, -(2**31), 2**31 - 1, 0]


# relu -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
def test_relu_of_floats(engine_id, dtype):
    with needs(dtype):
        a = special_floats(dtype)
        got = run("relu", [a], a.shape, dtype)
        assert_close(got, np.where(np.isnan(a), a, np.maximum(a, 0)).astype(a.dtype), engine_id)


@pytest.mark.parametrize("slope", [0.25, -0.5, 1.0, 2.0])
@pytest.mark.parametrize("dtype", FLOATS)
def test_relu_with_a_slope(engine_id, dtype, slope):
    with needs(dtype):
        a = special_floats(dtype)
        with np.errstate(all="ignore"):
            expected = np.where(a > 0, a, a * np.array(slope, a.dtype))
            flushed = np.where(flush(a) > 0, a, flush(a) * np.array(slope, a.dtype))
        got = run("relu", [a], a.shape, dtype, {"slope": slope})
        assert_close(got, expected, engine_id, flushed=flushed)


@pytest.mark.parametrize("dtype", INTS)
def test_relu_of_ints(engine_id, dtype):
    with needs(dtype):
        a = special_ints(dtype)
        expected = np.maximum(a, 0).astype(a.dtype)
        assert_close(run("relu", [a], a.shape, dtype), expected, engine_id)


@pytest.mark.parametrize("dtype", ["s32", "s64"])
def test_relu_with_a_slope_rounds_ints_half_to_even(engine_id, dtype):
    with needs(dtype):
        a = np.array([-1, -2, -3, -5, -6, -7, -1000, 0, 4], NUMPY[dtype])
        for slope in (0.5, 0.25, 1.0, -1.5):
            expected = np.where(a > 0, a, np.rint(a * slope)).astype(a.dtype)
            got = run("relu", [a], a.shape, dtype, {"slope": slope})
            assert_close(got, expected, engine_id)


# sigmoid and tanh -----------------------------------------------------------------------------


def sigmoid(x):
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x))


SMOOTH = {"sigmoid": sigmoid, "tanh": np.tanh}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", SMOOTH)
def test_sigmoid_and_tanh_of_special_values(engine_id, name, dtype):
    with needs(dtype):
        a = np.concatenate([special_floats(dtype), np.linspace(-100, 100, 401, dtype=NUMPY[dtype])])
        expected = SMOOTH[name](a.astype("f8")).astype(a.dtype)
        assert_close(run(name, [a], a.shape, dtype), expected, engine_id, "exp")


@pytest.mark.parametrize("name", SMOOTH)
def test_small_arguments_are_accurate(engine_id, name):
    a = np.array([1e-7, -1e-6, 1e-4, -1e-3, 0.01], "<f4")
    got = run(name, [a], a.shape, "f32")
    assert_close(got, SMOOTH[name](a.astype("f8")).astype("<f4"), engine_id, "exp")


@pytest.mark.parametrize(("dtype", "out"), [("s32", "f32"), ("u32", "f32"), ("u8", "f32")])
@pytest.mark.parametrize("name", SMOOTH)
def test_sigmoid_and_tanh_of_ints_are_floats(engine_id, name, dtype, out):
    a = np.array([0, 1, 2, 5, 100], NUMPY[dtype])
    expected = SMOOTH[name](a.astype("f8")).astype(NUMPY[out])
    assert_close(run(name, [a], a.shape, out), expected, engine_id, "exp")
    assert run(name, [a], a.shape, "u8").tolist() == np.floor(expected + 0.5).tolist()


@pytest.mark.parametrize("dtype", ["s32", "s64", "u32"])
@pytest.mark.parametrize("name", SMOOTH)
def test_sigmoid_and_tanh_into_ints_raise(engine_id, name, dtype):
    with needs(dtype):
        a, out = buffer_zeros((3,), dtype), buffer_zeros((3,), dtype)
        with pytest.raises(dala.DtypeMismatch):
            run_kernel(name, [a], out)


# what may be stored where ---------------------------------------------------------------------

#: The result of adding two arrays of a dtype, and the outputs that take it.
STORES = {
    "u8": {"u8", "s32", "s64", "f32", "f64"},
    "s32": {"u8", "s32", "s64", "f32", "f64"},
    "u32": {"u8", "u32", "s64", "f32", "f64"},
    "s64": {"u8", "s64", "f64"},
    "f32": {"u8", "f32", "f64"},
    "f64": {"u8", "f64"},
}


@pytest.mark.parametrize("out", DTYPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_output_dtypes_that_hold_the_result(engine_id, dtype, out):
    with needs(dtype, out):
        a = np.array([0, 1, 100, 200], NUMPY[dtype])
        if out in STORES[dtype]:
            total = np.array([0, 2, 200, 400])
            expected = np.clip(total, 0, 255) if out == "u8" else total
            got = run("elementwise_add", [a, a], (4,), out)
            assert got.tolist() == expected.tolist()
        else:
            target = from_array(np.full(4, 9, NUMPY[out]))
            with pytest.raises(dala.DtypeMismatch, match=out):
                run_kernel("elementwise_add", [from_array(a), from_array(a)], target)
            assert np.array(to_array(target)).tolist() == [9, 9, 9, 9]


def test_floats_are_rounded_and_clamped_into_u8(engine_id):
    a = np.array(
        [np.nan, -np.inf, np.inf, -1, -0.5, 0.49, 0.5, 1.5, 2.5, 254.49, 254.5, 255.4, 256, 1e9],
        "<f4",
    )
    got = run("scalar_mul", [a], a.shape, "u8", {"scalar": 1.0})
    assert got.tolist() == [0, 0, 255, 0, 0, 0, 1, 2, 3, 254, 255, 255, 255, 255]


@pytest.mark.parametrize(("left", "right"), [("f32", "s32"), ("u8", "s32"), ("f32", "u32")])
def test_inputs_of_different_dtypes_raise(engine_id, left, right):
    out = buffer_zeros((2,))
    with pytest.raises(dala.DtypeMismatch):
        run_kernel("elementwise_add", [buffer_zeros((2,), left), buffer_zeros((2,), right)], out)


# in place -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_output_may_be_an_input(engine_id, dtype):
    with needs(dtype):
        a, b = numbers(dtype, 1000, 7), numbers(dtype, 1000, 8)
        left = from_array(a.copy())
        run_kernel("elementwise_add", [left, from_array(b)], left)
        expected = expected_binary("elementwise_add", a, b)
        assert_close(np.array(to_array(left)), expected, engine_id)


def test_inputs_and_output_may_be_one_buffer(engine_id):
    a = buffer([1.0, 2.0, 3.0])
    run_kernel("elementwise_mul", [a, a], a)
    run_kernel("elementwise_mul", [a, a], a)
    assert np.array(to_array(a)).tolist() == [1.0, 16.0, 81.0]


def test_broadcast_input_with_an_in_place_input(engine_id):
    rows = buffer([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    run_kernel("elementwise_add", [rows, buffer([10.0, 20.0])], rows)
    assert np.array(to_array(rows)).tolist() == [[11, 22], [13, 24], [15, 26]]
