"""Refused buffers."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala import errors
from dala.gpu.compute import (
    add,
    buffer,
    buffer_from_binary,
    buffer_zeros,
    from_array,
    from_dlpack,
    read,
    relu,
)


@pytest.fixture(autouse=True)
def _on_reference():
    with dala.device("reference"):
        yield


# buffers ------------------------------------------------------------------------------------------


def test_wrong_number_of_elements(refuses):
    refuses(
        errors.ShapeError,
        ValueError,
        "buffer: data must be 4 elements, to fill (2, 2), got 3.",
        lambda: buffer([1, 2, 3], (2, 2)),
    )


def test_wrong_number_of_bytes(refuses):
    refuses(
        errors.ShapeError,
        ValueError,
        "buffer_from_binary: data must be 12 bytes, to fill (3,) of 'f32', got 11.",
        lambda: buffer_from_binary(bytes(11), (3,), "f32"),
    )


def test_data_must_be_bytes(refuses):
    refuses(
        errors.DtypeError,
        TypeError,
        "buffer_from_binary: data must be bytes, got [1, 2]. Use buffer() for numbers.",
        lambda: buffer_from_binary([1, 2], (2,)),
    )


@pytest.mark.parametrize("shape", [(-1,), (2, -3), (1.5,), (True,), ("a",), (None,)])
def test_shape_of_invalid_sizes(refuses, shape):
    refuses(
        errors.ShapeError,
        ValueError,
        f"buffer_zeros: shape must be a tuple of ints of at least 0, got {shape!r}.",
        lambda: buffer_zeros(shape),
    )


@pytest.mark.parametrize("shape", ["33", None, 1.5])
def test_shape_of_invalid_type(refuses, shape):
    refuses(
        errors.ShapeError,
        ValueError,
        f"buffer_zeros: shape must be a tuple of ints, got {shape!r}.",
        lambda: buffer_zeros(shape),
    )


def test_shape_beyond_all_memory(canvas):
    with pytest.raises(errors.BufferTooLarge) as caught:
        buffer_zeros((1 << 30, 1 << 30), "f64")
    assert isinstance(caught.value, MemoryError)
    assert str(caught.value).startswith(
        "buffer_zeros: shape (1073741824, 1073741824) of 'f64' needs 9,223,372,036,854,775,808 "
        "bytes; NumPy reference (reference) has memory for at most "
    )
    assert canvas.read_list() == [7.0] * 3


def test_too_many_axes(refuses):
    refuses(
        errors.ShapeError,
        ValueError,
        "buffer_zeros: shape must be of at most 16 axes, got 17.",
        lambda: buffer_zeros((1,) * 17),
    )


@pytest.mark.parametrize(
    ("dtype", "got"),
    [
        ("f16", "'f16'"),
        ("complex64", "'complex64'"),
        (np.int8, "'int8'"),
        (object, "'object'"),
        (3, "3"),
    ],
)
def test_unknown_dtype(dtype, got):
    with pytest.raises(errors.DtypeError) as caught:
        buffer([1], dtype=dtype)
    assert isinstance(caught.value, TypeError)
    assert str(caught.value) == (
        "buffer: dtype must be one of f32, f64, s32, s64, u32, u8, or a NumPy name such as "
        f"'float32' or 'uint8', got {got}. Convert the data to one of them first."
    )


@pytest.mark.parametrize(
    ("dtype", "value", "low", "high"),
    [
        ("u8", 256, 0, 255),
        ("u8", -1, 0, 255),
        ("s32", 2**31, -(2**31), 2**31 - 1),
        ("u32", -5, 0, 2**32 - 1),
        ("u32", 2**32, 0, 2**32 - 1),
        ("s64", 2**63, -(2**63), 2**63 - 1),
    ],
)
def test_integers_never_wrap(refuses, dtype, value, low, high):
    refuses(
        errors.OutOfRange,
        ValueError,
        f"buffer: {value} does not fit in {dtype!r} ({low} to {high}). "
        "Use a wider dtype, or scale the data.",
        lambda: buffer([1, value], dtype=dtype),
    )


def test_integer_beyond_64_bits(refuses):
    refuses(
        errors.OutOfRange,
        ValueError,
        f"buffer: {10**30} does not fit in 's32' (-2147483648 to 2147483647). "
        "Use a wider dtype, or scale the data.",
        lambda: buffer([1, 10**30], dtype="s32"),
    )


@pytest.mark.parametrize("value", [1.5, float("nan"), float("inf")])
def test_fractions_are_never_truncated(refuses, value):
    refuses(
        errors.OutOfRange,
        ValueError,
        f"buffer: {value!r} is not an integer, as 's32' requires. "
        "Round the data first, or use dtype='f32'.",
        lambda: buffer([1.0, value], dtype="s32"),
    )


def test_float_beyond_f32(refuses):
    refuses(
        errors.OutOfRange,
        ValueError,
        "buffer: 1e+300 does not fit in 'f32' (largest 3.40282e+38). Use dtype='f64'.",
        lambda: buffer([1.0, 1e300]),
    )


@pytest.mark.parametrize("data", [[[1, 2], [3]], [1, [2]]])
def test_ragged_rows(data):
    with pytest.raises(errors.ShapeError, match="rows of equal length"):
        buffer(data)


@pytest.mark.parametrize("data", [["a"], [None], [1j], "text", {"a": 1}])
def test_data_must_be_numbers(data):
    with pytest.raises(errors.DtypeError, match="numbers"):
        buffer(data)


def test_array_of_an_unsupported_dtype():
    with pytest.raises(errors.DtypeError) as caught:
        from_array(np.zeros(3, np.float16))
    assert str(caught.value) == (
        "from_array: dtype must be one of f32, f64, s32, s64, u32, u8, or a NumPy name such as "
        "'float32' or 'uint8', got 'float16'. Convert the data to one of them first."
    )


def test_object_without_dlpack():
    with pytest.raises(errors.DtypeError, match="from_dlpack: list cannot be read through DLPack"):
        from_dlpack([1, 2])


def test_write_of_the_wrong_size(refuses, canvas):
    refuses(
        errors.ShapeError,
        ValueError,
        "write: data must be 3 elements, as the buffer (3,) has, got 2.",
        lambda: canvas.write([1, 2]),
    )


# after free ---------------------------------------------------------------------------------------

USES = {
    "read": lambda b: b.read(),
    "read_binary": lambda b: b.read_binary(),
    "read_list": lambda b: b.read_list(),
    "read_async": lambda b: b.read_async(),
    "numpy": lambda b: np.asarray(b),
    "dlpack": lambda b: b.__dlpack__(),
    "write": lambda b: b.write([1, 2]),
    "to": lambda b: b.to("cpu"),
    "read call": read,
    "as input": lambda b: relu(b, buffer_zeros(2)),
    "as output": lambda b: relu(buffer_zeros(2), b),
}


@pytest.mark.parametrize("use", USES)
def test_use_after_free(use):
    b = buffer([1.0, 2.0])
    relu(b, b)  # a plan for it is cached
    b.free()
    with pytest.raises(errors.FreedError, match=r"buffer f32 \(2,\)\)? was freed") as caught:
        USES[use](b)
    assert isinstance(caught.value, RuntimeError)
    b.free()  # twice is fine


def test_freed_input_names_the_call_and_the_argument(refuses, canvas):
    a, b = buffer([1.0] * 3), buffer([1.0] * 3)
    b.free()
    refuses(
        errors.FreedError,
        RuntimeError,
        "elementwise_add: b (buffer f32 (3,)) was freed. Make a new one, or free it later.",
        lambda: add(a, b, canvas),
    )
