"""Indexing with lists, integer arrays and masks, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from dala.errors import (
    DtypeError,
    DtypeMismatch,
    FreedError,
    IndexOutOfRange,
    ReadOnlyError,
    ShapeMismatch,
)
from dala.gpu.compute import Buffer, buffer, buffer_zeros, from_array, from_dlpack
from tests.support.engines import NUMPY, needs

CUBE = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
MASK = CUBE % 3 == 0
ROWS = np.array([True, False, True])
NAMES = {
    "list": [0, 2],
    "negative": [-1, 0, -3],
    "repeated": [1, 1, 1],
    "empty": [],
    "nested": [[0, 1], [2, 0]],
    "bools": [True, False, True],
    "array": np.array([2, 0]),
    "small dtype": np.array([2, 0], np.int8),
    "uint8 array": np.array([2, 0], np.uint8),
    "pairs": ([0, 2], [3, 1]),
    "broadcast": ([[0], [2]], [3, 1]),
    "with an integer": (1, [3, 0]),
    "with a slice": (slice(None, None, 2), [3, 0]),
    "apart": ([0, 2], slice(1, 3), [4, 0]),
    "integer apart": (0, slice(None), [4, 0]),
    "dots": (..., [4, 0, 2]),
    "new axis": ([2, 0], None),
    "mask": MASK,
    "mask of rows": ROWS,
    "mask of two axes": MASK[..., 0],
    "mask and list": (ROWS, slice(None), [1, 3]),
    "mask of the last axis": (..., np.array([True, False, False, True, True])),
    "nothing": np.zeros((3, 4, 5), bool),
    "everything": np.ones((3, 4, 5), bool),
}  # fmt: skip


@pytest.mark.parametrize("index", NAMES.values(), ids=NAMES)
def test_reading_and_writing(engine_id, index):
    b = from_array(CUBE)
    want = CUBE[index if not isinstance(index, list) or index else np.zeros(0, int)]
    made = b[index]
    assert isinstance(made, Buffer)
    assert (made.shape, made.dtype, made.device) == (want.shape, "f32", b.device)
    assert np.array_equal(made.numpy(), want)

    for value in (-1, np.arange(want.size, dtype=np.float32).reshape(want.shape)):
        plain = CUBE.copy()
        plain[index if not isinstance(index, list) or index else np.zeros(0, int)] = value
        b = from_array(CUBE.copy())
        b[index] = value
        assert np.array_equal(b.numpy(), plain)
        b = from_array(CUBE.copy())
        b[index] = from_array(np.asarray(value, np.float32))
        assert np.array_equal(b.numpy(), plain)


@pytest.mark.parametrize("dtype", ["u8", "s32", "u32", "f64", "s64"])
def test_dtypes(engine_id, dtype):
    plain = np.arange(12).reshape(3, 4).astype(NUMPY[dtype])
    with needs(dtype):
        b = from_array(plain.copy())
        assert b[[2, 0], 1].read_list() == [9, 1]
        assert b[plain > 8].read_list() == [9, 10, 11]
        b[plain > 8] = 7
        b[b == 4] = 3
        b[[0, 0], [0, 1]] = [5, 6]
        assert b.tolist() == [[5, 6, 2, 3], [3, 5, 6, 7], [8, 7, 7, 7]]
        assert b.dtype == dtype


def test_buffers_as_indices(engine_id):
    a = from_array(CUBE.copy())
    assert a[buffer([2, 0], dtype="s32"), 0, 0].read_list() == [40, 0]
    assert a[a > 55].read_list() == [56, 57, 58, 59]  # comparisons are masks
    assert a[buffer([0, 1, 1], dtype="u8")].shape == (2, 4, 5)  # so is any u8 buffer
    a[a > 55] = 0
    a[(a > 3) & (a < 7)] *= -1
    plain = CUBE.copy()
    plain[plain > 55] = 0
    plain[(plain > 3) & (plain < 7)] *= -1
    assert np.array_equal(a.numpy(), plain)
    a[a[:, 0, 0] == 0] = 9
    plain[0] = 9
    assert np.array_equal(a.numpy(), plain)
    a[buffer([0, 0, 1], dtype="u8", device="reference")] = 3  # of another device
    plain[2] = 3
    assert np.array_equal(a.numpy(), plain)
    bytes_ = from_array(np.array([0, 3, 0, 5], np.uint8))
    bytes_[bytes_] = 1
    assert bytes_.read_list() == [0, 1, 0, 1]


def test_values_are_those_of_before(engine_id):
    a = from_array(np.arange(4, dtype=np.float32))
    doubled = a * 2
    a[[0, 1]] = a[[1, 0]]
    assert a.read_list() == [1, 0, 2, 3]
    assert doubled.read_list() == [0, 2, 4, 6]
    a[[3, 2, 1, 0]] = a
    assert a.read_list() == [3, 2, 0, 1]
    a[[1, 1, 1]] = [4, 5, 6]  # the last one stays
    assert a.read_list() == [3, 6, 0, 1]
    picked = a[[0, 1]]
    a[0] = 100
    assert picked.read_list() == [3, 6]  # a copy


@pytest.mark.parametrize(
    ("index", "error", "text"),
    [
        ([0, 3], IndexOutOfRange, "b[...]: index must be from -3 to 2 for axis 0, got 3."),
        ((0, [-5]), IndexOutOfRange, "b[...]: index must be from -4 to 3 for axis 1, got -5."),
        ([0.5], DtypeError, "index must be integers or bools, got 'an array of float64'"),
        (["a"], DtypeError, "index must be integers or bools"),
        ([[0], [1, 2]], DtypeError, "Its lists differ in length."),
        ([True, False], ShapeMismatch, "index must be a mask of shape (3,)"),
        (MASK[:2], ShapeMismatch, "a mask of shape (3, 4, 5), as the buffer has from axis 0 on"),
        (([0, 1], [0, 1, 2]), ShapeMismatch, "shapes broadcast with each other"),
        ((MASK, 0), IndexOutOfRange, "of at most 3 axes"),
        (True, DtypeError, "or arrays of integers or bools, got True"),
        ({}, DtypeError, "or arrays of integers or bools"),
    ],
)  # fmt: skip
def test_refused(engine_id, index, error, text):
    b = from_array(CUBE.copy())
    with pytest.raises(error) as caught:
        b[index]
    assert text in str(caught.value)
    with pytest.raises(error):
        b[index] = 1
    assert np.array_equal(b.numpy(), CUBE)


def test_refused_values(engine_id):
    b = buffer_zeros((2, 3), "s32")
    with pytest.raises(ShapeMismatch, match=r"broadcasts to \(2, 3\), got \(2,\)"):
        b[[0, 1]] = [1, 2]
    with pytest.raises(ShapeMismatch):
        b[b == 0] = [1, 2, 3]
    with pytest.raises(DtypeMismatch):
        b[[0]] = buffer([1.5, 2.5, 3.5])
    assert not b.numpy().any()
    freed = buffer([1, 2])
    freed.free()
    with pytest.raises(FreedError):
        freed[[0]]
    with pytest.raises(FreedError):
        b[freed]


def test_read_only_memory():
    plain = np.arange(3, dtype=np.float32)
    plain.flags.writeable = False
    b = from_dlpack(plain, device="cpu")
    assert b[[2]].read_list() == [2]
    for index in ([0], b > 1):
        with pytest.raises(ReadOnlyError):
            b[index] = 1
    assert plain.tolist() == [0, 1, 2]
