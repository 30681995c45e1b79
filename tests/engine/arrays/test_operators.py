"""Operators, comparisons, indexing and reductions of buffers, against NumPy."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import dala
from dala.gpu.compute import (
    Buffer,
    add,
    buffer,
    buffer_zeros,
    divide,
    from_array,
    matmul,
    multiply,
    relu,
    scale,
    sigmoid,
    softmax,
    subtract,
    tanh,
)
from tests.support.engines import NUMPY, needs

FLOATS = np.array([[-2.5, 0.0, 1.5], [3.0, -1.0, 8.0]], np.float32)
OTHERS = np.array([[2.0, 4.0, -1.5], [0.5, -3.0, 2.0]], np.float32)
INTS = np.array([[-7, 0, 5], [9, -1, 8]], np.int32)
DIVISORS = np.array([[2, -3, 4], [-5, 1, 3]], np.int32)


def assert_same(b: Buffer, expected: object, dtype: str | None = None) -> None:
    """Assert a buffer's values, and its dtype."""
    assert isinstance(b, Buffer)
    wanted = np.asarray(expected)
    assert b.shape == wanted.shape
    if dtype is not None:
        assert b.dtype == dtype
    np.testing.assert_allclose(b.numpy(), wanted, rtol=2e-6, atol=1e-6)


ARITHMETIC = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
]  # fmt: skip
COMPARE = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


@pytest.mark.parametrize("op", ARITHMETIC, ids=lambda op: op.__name__)
def test_arithmetic_of_floats(engine_id, op):
    a, b = from_array(FLOATS), from_array(OTHERS)
    assert_same(op(a, b), op(FLOATS, OTHERS), "f32")
    assert_same(op(a, 2), op(FLOATS, np.float32(2)), "f32")
    assert_same(op(2.5, b), op(np.float32(2.5), OTHERS), "f32")
    assert_same(op(a, OTHERS), op(FLOATS, OTHERS), "f32")
    assert_same(op(FLOATS, b), op(FLOATS, OTHERS), "f32")
    assert_same(op(a, b[0]), op(FLOATS, OTHERS[0]), "f32")
    assert_same(op(np.float64(3), b), op(np.float32(3), OTHERS), "f32")


@pytest.mark.parametrize("op", ARITHMETIC, ids=lambda op: op.__name__)
def test_arithmetic_of_integers(engine_id, op):
    a, b = from_array(INTS), from_array(DIVISORS)
    dtype = "f32" if op is operator.truediv else "s32"
    assert_same(op(a, b), op(INTS, DIVISORS), dtype)
    assert_same(op(a, 3), op(INTS, 3), dtype)
    assert_same(op(7, b), op(7, DIVISORS), dtype)
    assert_same(op(a, 2.5), op(INTS.astype("f4"), np.float32(2.5)), "f32")


def test_powers(engine_id):
    a, n = from_array(FLOATS), from_array(INTS)
    assert_same(a**2, FLOATS**2, "f32")
    assert_same(a**-1, np.array([[-0.4, np.inf, 1 / 1.5], [1 / 3, -1, 0.125]]), "f32")
    assert_same(abs(a) ** 0.5, np.abs(FLOATS) ** 0.5, "f32")
    assert_same(2**n, [[0, 1, 32], [512, 0, 256]], "s32")
    assert_same(n**3, INTS**3, "s32")
    assert_same(n ** from_array(np.array([0, 3, 2], np.int32)), INTS ** np.array([0, 3, 2]), "s32")
    assert_same(n**20, INTS**20, "s32")  # wraps around
    assert_same(abs(n) ** 0.5, np.abs(INTS) ** 0.5, "f32")
    with pytest.raises(dala.ParameterError, match="0 or more for integers"):
        n**-2


def test_u8_is_computed_wider_and_saturates(engine_id):
    a, b = buffer([0, 100, 250], dtype="u8"), buffer([3, 200, 7], dtype="u8")
    assert_same(a + b, [3, 255, 255], "u8")
    assert_same(a - b, [0, 0, 243], "u8")
    assert_same(a * 2, [0, 200, 255], "u8")
    assert_same(b**2, [9, 255, 49], "u8")
    assert_same(b**b, [27, 255, 255], "u8")
    assert_same((a + b) - b, [0, 55, 248], "u8")  # also inside one kernel
    assert_same(-a, [0, 0, 0], "u8")
    assert_same(a / 2, [0, 50, 125], "f32")
    assert_same(a * 0.5, [0, 50, 125], "f32")
    assert_same(a // 3, [0, 33, 83], "u8")
    assert_same(a % 7, [0, 2, 5], "u8")
    assert_same(a + buffer([1, -1, 2], dtype="s32"), [1, 99, 252], "s32")
    with pytest.raises(dala.OutOfRange, match=r"300 does not fit in 'u8' \(0 to 255\)"):
        a + 300


@pytest.mark.parametrize("op", COMPARE, ids=lambda op: op.__name__)
def test_comparisons(engine_id, op):
    a, b = from_array(FLOATS), from_array(np.array([0.0, 3.0, 1.5], np.float32))
    assert_same(op(a, b), op(FLOATS, np.array([0.0, 3.0, 1.5])), "u8")
    assert_same(op(a, 1.5), op(FLOATS, 1.5), "u8")
    assert_same(op(1.5, a), op(1.5, FLOATS), "u8")
    n = np.array([-(2**31), 16777216, 16777217, 2**31 - 1], np.int32)
    for number in (16777216.5, 16777217, -(2**40), 2.0**40, float("inf"), float("nan"), 5):
        assert_same(op(from_array(n), number), op(n.astype(float), number), "u8")
    assert_same(op(buffer([1, 255], dtype="u8"), 300), op(np.array([1, 255]), 300), "u8")
    assert_same(op(a, float("nan")), op(FLOATS, np.nan), "u8")


def test_masks(engine_id):
    a = from_array(FLOATS)
    assert_same((a > 0) & (a < 5), (FLOATS > 0) & (FLOATS < 5), "u8")
    assert_same((a > 5) | (a < 0), (FLOATS > 5) | (FLOATS < 0), "u8")
    assert_same((a > 0) ^ 1, FLOATS <= 0, "u8")
    with pytest.raises(dala.DtypeMismatch, match="Compare floats first"):
        a & 1


def test_unary(engine_id):
    a, n = from_array(FLOATS), from_array(INTS)
    assert_same(-a, -FLOATS, "f32")
    assert_same(+a, FLOATS, "f32")
    assert_same(abs(n), np.abs(INTS), "s32")
    for got, wanted in zip(divmod(n, 3), divmod(INTS, 3), strict=True):
        assert_same(got, wanted, "s32")


def test_numbers_that_are_not_finite(engine_id):
    a = buffer([-1.0, 2.0])
    assert_same(a * float("inf"), [-np.inf, np.inf], "f32")
    assert_same(a + 1e300, [np.inf, np.inf], "f32")
    assert_same(a - 10**400, [-np.inf, -np.inf], "f32")
    assert np.isnan((a + float("nan")).numpy()).all()
    assert_same(a < float("inf"), [1, 1], "u8")
    assert_same(abs(a) ** (10**400), [1, np.inf], "f32")
    with pytest.raises(dala.ParameterError, match="scalar_mul: scalar must be"):
        scale(a, 10**400)


def test_promotion(engine_id):
    with needs("s64"):
        mixed = buffer([-1, 2], dtype="s32") + buffer([2**32 - 1, 1], dtype="u32")
        assert_same(mixed, [2**32 - 2, 3], "s64")
        assert_same(buffer([-1], dtype="s32") < buffer([1], dtype="u32"), [1], "u8")
    with needs("f64"):
        assert_same(from_array(FLOATS) + FLOATS.astype("f8"), FLOATS * 2.0, "f64")
        assert_same(buffer([2**53 + 1], dtype="s64") * buffer([1.0], dtype="f32"), [2.0**53], "f64")
    assert_same(from_array(INTS) + from_array(FLOATS), INTS + FLOATS, "f32")
    numbers = [1, 2, 3]
    assert_same(from_array(INTS) + numbers, INTS + np.array(numbers), "s32")
    assert_same([1, 2.5, 3] * from_array(INTS), INTS * np.array([1, 2.5, 3]), "f32")
    assert_same(from_array(FLOATS) - [1, 2, 3], FLOATS - [1, 2, 3], "f32")
    assert_same(
        from_array(FLOATS) + np.array([True, False, True]), FLOATS + np.array([1, 0, 1]), "f32"
    )
    assert_same(from_array(INTS) + np.array([1, 2, 3], np.int16), INTS + np.array([1, 2, 3]), "s32")


def test_f64_without_it_says_astype():
    devices = [d.id for d in dala.devices() if d.backend == "webgpu"]
    for device in devices[:1]:
        b = buffer([1.0], device=device)
        if "f64" in b.engine.dtypes:
            continue
        with pytest.raises(dala.UnsupportedDtype, match=r"astype\('f32'\) rounds to 24 bits"):
            b + np.array([1.0])
        with pytest.raises(dala.UnsupportedDtype, match=r"astype\(np.float32\)"):
            from_array(np.array([1.0]), device=device)


def test_astype(engine_id):
    values = np.array([-1.9, 0.5, 1.99, 255.4, 300.0, np.nan], np.float32)
    assert_same(from_array(values).astype("s32"), [-1, 0, 1, 255, 300, 0], "s32")
    assert_same(from_array(values).astype(np.uint8), [0, 0, 1, 255, 255, 0], "u8")
    assert_same(buffer([-1, 300], dtype="s32").astype("u8"), [0, 255], "u8")
    assert_same(buffer([-1, 7], dtype="s32").astype("u32"), [2**32 - 1, 7], "u32")
    assert_same(buffer([3], dtype="u8").astype(float) / 2, [1.5], "f32")
    with pytest.raises(dala.DtypeError, match="one of f32"):
        from_array(values).astype("complex64")


def test_shapes(engine_id):
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    b = from_array(x)
    assert_same(b.T, x.T)
    assert_same(b.reshape(4, -1), x.reshape(4, 6))
    assert_same(b.reshape((24,)), x.ravel())
    assert_same(b.reshape(24)[::-1], x.ravel()[::-1])
    for bad in ((5, 5), (-1, -1), (7, -1), "ab"):
        with pytest.raises(dala.ShapeError, match="reshape: shape must be"):
            b.reshape(bad)
    column = from_array(x[:, :1, :1])
    assert_same(column * 2 + b, x[:, :1, :1] * 2 + x)
    with pytest.raises(dala.ShapeMismatch, match=r"a \+ b: b must be of a shape that broadcasts"):
        b + from_array(np.zeros(3, np.float32))
    deep = np.arange(32, dtype=np.int32).reshape(2, 2, 2, 2, 2)
    assert_same(from_array(deep).T, deep.T)
    assert_same(from_array(deep)[:, ::-1, 1, :, ::-1], deep[:, ::-1, 1, :, ::-1])


INDEXES = [
    0, -1, slice(None), slice(1, None), slice(None, None, -1), slice(None, None, 2), (1, 2),
    (slice(None), 0), (slice(None), slice(None, None, -2), slice(1, 3)), Ellipsis, (Ellipsis, -1),
    None, (0, None, slice(2)), (slice(5, 2), 1), np.int64(1), (1, slice(None), slice(3, 0, -2)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["f32", "u8"])
def test_indexing(engine_id, dtype):
    x = np.arange(24).reshape(2, 3, 4).astype(NUMPY[dtype])
    for index in INDEXES:
        b = from_array(x)
        assert_same(b[index], x[index], dtype)
        expected = x.copy()
        expected[index] = 7
        b[index] = 7
        assert_same(b, expected)
        value = np.arange(x[index].size).reshape(x[index].shape).astype(x.dtype)
        expected[index] = value
        b[index] = from_array(value)
        assert_same(b, expected)


def test_writing_broadcasts_and_converts(engine_id):
    x = np.zeros((3, 4), np.float32)
    b = from_array(x)
    b[:, 1:] = [1, 2, 3]
    b[::-2, 0] = np.array([5.0, 6.0])
    b[1] += 10
    b[0, 0] = buffer([9], dtype="s32")[0]
    expected = np.array([[9, 1, 2, 3], [10, 11, 12, 13], [5, 1, 2, 3]], np.float32)
    assert_same(b, expected)
    n = buffer([1, 2, 3], dtype="s32")
    with pytest.raises(dala.OutOfRange, match="not an integer"):
        n[0] = 2.5
    with pytest.raises(dala.DtypeMismatch, match="Convert it first"):
        n[0] = buffer([1.0])[0]
    with pytest.raises(dala.ShapeMismatch, match=r"broadcasts to \(2,\)"):
        n[:2] = [1, 2, 3]
    assert n.read_list() == [1, 2, 3]


def test_wrong_indexes(engine_id):
    b = buffer([[1, 2], [3, 4]])
    for index, error in (
        (2, IndexError), (-3, IndexError), ((0, 0, 0), IndexError), (True, TypeError),
        ([0.5, 1], TypeError), ("x", TypeError), (1.0, TypeError), ((..., ...), IndexError),
        (slice(None, None, 0), IndexError), (slice("a"), IndexError),
    ):  # fmt: skip
        with pytest.raises(error) as caught:
            b[index]
        assert isinstance(caught.value, dala.DalaError)
        with pytest.raises(error):
            b[index] = 0
    with pytest.raises(IndexError, match="axis 0 is empty"):
        buffer_zeros((0,))[0]


def test_iteration_length_and_truth(engine_id):
    b = buffer([[1, 2], [3, 4]])
    assert len(b) == 2
    assert [row.tolist() for row in b] == [[1.0, 2.0], [3.0, 4.0]]
    assert [float(x) for x in b[1]] == [3.0, 4.0]
    assert 3 in b
    assert 7 not in b
    assert "text" not in b
    assert (b > 0).all()
    assert not (b > 9).any()
    assert (b == [[1, 2], [3, 4]]).all(axis=1).tolist() == [1, 1]
    assert not buffer_zeros((0,)).any()
    assert buffer_zeros((0,)).all()
    assert b.sum() == pytest.approx(10)
    assert b == pytest.approx(np.array([[1, 2], [3, 4]]))
    assert np.array_equal(b, [[1, 2], [3, 4]])
    np.testing.assert_allclose(b, [[1, 2], [3, 4]])
    assert bool(b[0, 0])
    assert not buffer([0.0])
    with pytest.raises(ValueError, match="the truth of a buffer of shape"):
        bool(b)
    with pytest.raises(ValueError, match="the truth of a buffer of shape"):
        bool(buffer_zeros((0,)))
    with pytest.raises(TypeError):
        iter(b[0, 0])
    with pytest.raises(TypeError):
        len(b[0, 0])
    assert int(b[1, 1]) == 4
    assert f"{b.mean():.2f}" == "2.50"
    assert round(b.mean(), 1) == 2.5
    assert [10, 20, 30][buffer([2], dtype="s32")[0]] == 30
    with pytest.raises(dala.ShapeError, match="of one element"):
        float(b)


def test_identity_and_other_types(engine_id):
    b = buffer([1.0, 2.0])
    assert (b == None) is False  # noqa: E711
    assert (b != "text") is True
    assert len({b, b}) == 1
    with pytest.raises(TypeError):
        b + "text"
    with pytest.raises(TypeError):
        b + 1j
    with pytest.raises(dala.DtypeError, match="of real numbers"):
        b + np.array(["a", "b"])


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), ()], ids=str)
def test_reductions(engine_id, axis):
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 7
    b = from_array(x)
    for name in ("sum", "max", "min", "mean"):
        for keepdims in (False, True):
            expected = getattr(x, name)(axis=axis, keepdims=keepdims)
            assert_same(getattr(b, name)(axis=axis, keepdims=keepdims), expected, "f32")
    u = np.arange(24, dtype=np.uint8).reshape(2, 3, 4) * 10
    assert_same(from_array(u).sum(axis=axis), u.sum(axis=axis), "u32")
    assert_same(from_array(u).mean(axis=axis), u.mean(axis=axis), "f32")
    assert_same(from_array(u).max(axis=axis), u.max(axis=axis), "u8")


def test_reductions_with_a_dtype_and_an_output(engine_id):
    u = buffer([[200, 100], [255, 255]], dtype="u8")
    assert_same(u.sum(dtype="f32"), 810.0, "f32")
    assert_same(u.sum(axis=1, dtype="s32"), [300, 510], "s32")
    assert_same(u.mean(dtype="f32", axis=0), [227.5, 177.5], "f32")
    out = buffer_zeros((2,), "u8")
    assert u.max(axis=0, out=out) is out
    assert_same(out, [255, 255])
    total = buffer_zeros((), "f32")
    assert u.mean(out=total) is total
    assert_same(total, 202.5)
    assert_same(np.sum(u), 810, "u32")
    assert_same(np.mean(u, axis=1), [150, 255], "f32")
    assert_same(np.max(u, axis=1), [200, 255], "u8")
    with pytest.raises(dala.ParameterError, match="out must be a Buffer"):
        u.min(out=np.zeros(()))
    with pytest.raises(dala.ParameterError, match="'f32' or 'f64'"):
        u.mean(dtype="s32")


def test_reductions_refuse(engine_id):
    b = buffer([[1.0, 2.0]])
    with pytest.raises(dala.ParameterError, match="sum: axis must be an axis of 'a'"):
        b.sum(axis=2)
    with pytest.raises(dala.ParameterError, match="each axis once"):
        b.max(axis=(0, 0))
    with pytest.raises(dala.ParameterError, match="an int, a tuple of ints"):
        b.min(axis="x")


def test_products(engine_id):
    a, b = from_array(FLOATS), from_array(OTHERS)
    assert_same(a @ b.T, FLOATS @ OTHERS.T)
    assert_same(a @ OTHERS.T, FLOATS @ OTHERS.T)
    assert_same(FLOATS.T @ b, FLOATS.T @ OTHERS)
    assert_same(from_array(INTS) @ b.T, INTS @ OTHERS.T, "f32")
    assert_same(a[0] @ b[0], FLOATS[0] @ OTHERS[0])


def test_named_calls_without_an_output(engine_id):
    a, b = from_array(FLOATS), from_array(OTHERS)
    assert_same(add(a, b), FLOATS + OTHERS)
    assert_same(subtract(a, 1), FLOATS - 1)
    assert_same(multiply(a, OTHERS), FLOATS * OTHERS)
    assert_same(divide(a, b), FLOATS / OTHERS)
    assert_same(divide(from_array(INTS), from_array(DIVISORS)), INTS // DIVISORS, "s32")
    assert_same(divide(from_array(INTS), [0.5, 2.0, 4.0]), INTS / np.array([0.5, 2.0, 4.0]), "f32")
    assert_same(relu(a, slope=0.5), np.where(FLOATS > 0, FLOATS, FLOATS * 0.5))
    assert_same(relu(from_array(INTS)), np.maximum(INTS, 0), "s32")
    assert_same(sigmoid(a), 1 / (1 + np.exp(-FLOATS)))
    assert_same(tanh(a), np.tanh(FLOATS))
    assert_same(scale(a, 3), FLOATS * 3)
    assert_same(scale(buffer([100, 3], dtype="u8"), 2.5), [250, 8], "u8")
    assert_same(matmul(a, b.T), FLOATS @ OTHERS.T)
    assert_same(softmax(a * 0), np.full((2, 3), 1 / 3))


def test_numpy_functions(engine_id):
    a = from_array(FLOATS)
    assert_same(np.add(a, 1), FLOATS + 1)
    assert_same(np.negative(a), -FLOATS)
    root = np.sqrt(abs(a))
    assert isinstance(root, np.ndarray)
    np.testing.assert_allclose(root, np.sqrt(np.abs(FLOATS)), rtol=1e-6)
    array = FLOATS.copy()
    array += a
    np.testing.assert_allclose(array, FLOATS * 2)


class Tensor:
    """An array of another library."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


def test_arrays_of_other_libraries(engine_id):
    a = from_array(FLOATS)
    assert_same(a + Tensor(OTHERS), FLOATS + OTHERS, "f32")
    assert_same(Tensor(OTHERS) * a, FLOATS * OTHERS, "f32")
    assert_same(a @ Tensor(OTHERS.T), FLOATS @ OTHERS.T)
    a[0] = Tensor(OTHERS[1])
    assert_same(a, [OTHERS[1], FLOATS[1]])


def test_empty_and_scalar_shapes(engine_id):
    empty = buffer_zeros((0, 3))
    assert_same(empty * 2 + 1, np.zeros((0, 3)))
    assert float(empty.sum()) == 0.0
    assert_same(empty[:, 1], np.zeros(0))
    assert_same(empty.T, np.zeros((3, 0)))
    one = buffer([[5.0]])[0, 0]
    assert one.shape == ()
    assert_same(one * 2, 10.0)
    assert_same(one + from_array(FLOATS), FLOATS + 5)
    one[...] = 3
    assert_same(one, 3.0)
