"""Buffers on every engine: creation, reading, sharing, freeing and moving."""

from __future__ import annotations

import array
import asyncio
import gc
import math
from contextlib import suppress

import numpy as np
import pytest

import dala
from dala.gpu import compute
from dala.gpu.compute import (
    buffer,
    buffer_from_binary,
    buffer_zeros,
    free,
    free_many,
    from_array,
    from_dlpack,
    read,
    read_binary,
    read_list,
    run_kernel,
    to_array,
)
from tests.support.engines import NUMPY, needs

SHARED = ("reference", "cpu")  # engines that use host memory


def sample(dtype, shape):
    """Return numbers that use every byte of the dtype."""
    count = math.prod(shape)
    if dtype in ("f32", "f64"):
        return (np.arange(count) / 3 - 2).astype(NUMPY[dtype]).reshape(shape)
    ends = np.iinfo(NUMPY[dtype])
    values = np.linspace(ends.min * 0.99, ends.max * 0.99, count).astype(NUMPY[dtype])
    return values.reshape(shape)


def address(view):
    return np.asarray(view).__array_interface__["data"][0]


# shapes and dtypes ----------------------------------------------------------------------------


SHAPES = [(), (1,), (7,), (3, 5), (2, 3, 4), (1, 1, 1, 2), (0,), (3, 0, 2)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", NUMPY)
def test_every_dtype_and_shape(engine_id, dtype, shape):
    with needs(dtype):
        a = sample(dtype, shape)
        b = from_array(a)
        assert (b.shape, b.dtype, b.nbytes) == (shape, dtype, a.nbytes)
        assert (compute.shape(b), compute.dtype(b), compute.size(b)) == (shape, dtype, a.nbytes)
        assert read(b) == a.tobytes()
        assert bytes(read_binary(b)) == a.tobytes()
        assert read_list(b) == a.ravel().tolist()
        got = to_array(b)
        assert got.dtype == a.dtype
        assert got.shape == shape
        assert np.array_equal(got, a)


@pytest.mark.parametrize("dtype", NUMPY)
def test_zeros_in_reused_memory(engine_id, dtype):
    with needs(dtype):
        for _ in range(3):
            used = from_array(np.full(1000, 7, NUMPY[dtype]))
            used.free()
            b = buffer_zeros((10, 100), dtype)
            assert b.shape == (10, 100)
            assert not any(read(b))


def test_zeros_default_to_f32(engine_id):
    assert buffer_zeros((2, 2)).dtype == "f32"
    assert buffer_zeros((0, 5)).nbytes == 0


def test_numpy_names_of_dtypes(engine_id):
    assert buffer([1, 2], dtype="uint8").dtype == "u8"
    assert buffer([1, 2], dtype=np.int32).dtype == "s32"
    assert buffer_zeros((1,), "float32").dtype == "f32"


# ways in --------------------------------------------------------------------------------------


def test_nested_and_flat_lists(engine_id):
    flat = buffer([1, 2, 3, 4, 5, 6], shape=(2, 3), dtype="s32")
    nested = buffer([[1, 2, 3], [4, 5, 6]], dtype="s32")
    assert flat.shape == nested.shape == (2, 3)
    assert read(flat) == read(nested) == np.arange(1, 7, dtype="<i4").tobytes()
    assert buffer([[1, 2], [3, 4]], shape=(4,)).shape == (4,)
    assert buffer([1.5, 2.5]).dtype == "f32"
    assert buffer([]).shape == (0,)
    assert buffer((1, 2, 3)).shape == (3,)
    assert buffer(2.5, shape=()).shape == ()


def test_64_bit_ints_are_exact(engine_id):
    with needs("s64"):
        values = [2**63 - 1, -(2**63), 2**53 + 1]
        assert read_list(buffer(values, dtype="s64")) == values
    assert read_list(buffer([2**32 - 1, 0], dtype="u32")) == [2**32 - 1, 0]


@pytest.mark.parametrize(
    ("values", "dtype"),
    [([256], "u8"), ([-1], "u8"), ([2**31], "s32"), ([-1], "u32"), ([2**32], "u32")],
)
def test_integers_out_of_range_raise(engine_id, values, dtype):
    with pytest.raises(dala.OutOfRange):
        buffer(values, dtype=dtype)
    with pytest.raises(dala.OutOfRange):
        buffer(np.array(values, "<i8"), dtype=dtype)


def test_noncontiguous_arrays(engine_id):
    a = np.arange(24, dtype="<f4").reshape(4, 6)
    for view in (a.T, a[::2], a[:, ::-1], a[1:3, 2:5], np.broadcast_to(a[0], (3, 6))):
        b = from_array(view)
        assert b.shape == view.shape
        assert read(b) == view.tobytes()
        assert read(buffer(view)) == view.tobytes()


def test_big_endian_arrays(engine_id):
    a = np.array([1.5, -2.0, 3e10], ">f4")
    assert read(from_array(a)) == a.astype("<f4").tobytes()
    assert read(buffer(np.array([1, 70000], ">i4"), dtype="s32")) == b"\1\0\0\0\x70\x11\1\0"


def test_dtype_converts_arrays(engine_id):
    assert read_list(buffer(np.array([1, 2], "<i8"), dtype="f32")) == [1.0, 2.0]
    assert read_list(buffer(np.array([0.5, 2.0], "<f8"), dtype="f32")) == [0.5, 2.0]
    assert read_list(buffer(np.array([1, 255], "<i2"), dtype="u8")) == [1, 255]
    assert read_list(buffer(np.array([True, False]), dtype="u8")) == [1, 0]
    assert read_list(buffer(np.array([1.5], "<f2"), dtype="f32")) == [1.5]


def test_bytes_bytearray_memoryview_and_array(engine_id):
    data = bytes(range(12))
    for given in (data, bytearray(data), memoryview(data)):
        b = buffer(given, shape=(3, 4), dtype="u8")
        assert b.shape == (3, 4)
        assert read(b) == data
        assert buffer(given, dtype="u8").shape == (12,)
    assert read_list(buffer(array.array("f", [1.5, 2.5]))) == [1.5, 2.5]
    assert read_list(buffer(array.array("i", [1, -2]), dtype="s32")) == [1, -2]
    grid = memoryview(data).cast("B", (3, 4))
    assert buffer(grid, dtype="u8").shape == (3, 4)


@pytest.mark.parametrize("dtype", NUMPY)
def test_raw_bytes_of_every_dtype(engine_id, dtype):
    with needs(dtype):
        a = sample(dtype, (2, 3))
        for data in (a.tobytes(), bytearray(a.tobytes()), memoryview(a.tobytes())):
            b = buffer_from_binary(data, (2, 3), dtype)
            assert b.dtype == dtype
            assert read(b) == a.tobytes()


def test_raw_bytes_default_to_u8(engine_id):
    b = buffer_from_binary(b"\1\2\3\4", (2, 2))
    assert b.dtype == "u8"
    assert read_list(b) == [1, 2, 3, 4]
    assert buffer_from_binary(b"", (0,)).nbytes == 0


def test_raw_bytes_of_the_wrong_length_raise(engine_id):
    with pytest.raises(dala.ShapeError):
        buffer_from_binary(b"\1\2\3", (2, 2))
    with pytest.raises(dala.ShapeError):
        buffer_from_binary(b"\1\2\3", (3,), "f32")


@pytest.mark.parametrize("dtype", NUMPY)
def test_dlpack_in_and_out(engine_id, dtype):
    with needs(dtype):
        a = sample(dtype, (3, 4))
        b = from_dlpack(a)
        assert (b.shape, b.dtype) == ((3, 4), dtype)
        assert read(b) == a.tobytes()
        back = np.from_dlpack(b)
        assert back.dtype == a.dtype
        assert np.array_equal(back, a)
        again = from_dlpack(b)
        assert read(again) == a.tobytes()


def test_dlpack_of_views_and_empty_arrays(engine_id):
    a = np.arange(24, dtype="<f4").reshape(4, 6)
    assert read(from_dlpack(a[:, ::2])) == a[:, ::2].tobytes()
    assert from_dlpack(np.zeros((0, 3), "<f4")).shape == (0, 3)


# ways out -------------------------------------------------------------------------------------


def test_asarray_of_a_buffer(engine_id):
    a = np.arange(6, dtype="<f4").reshape(2, 3)
    b = from_array(a)
    assert np.array_equal(np.asarray(b), a)
    assert np.asarray(b, dtype="<f8").dtype == np.float64
    assert (np.asarray(b) + 1).tolist() == (a + 1).tolist()
    copy = np.array(b)
    copy[:] = 0
    assert read(b) == a.tobytes()


def test_read_binary_returns_flat_bytes(engine_id):
    view = read_binary(buffer([[1.0, 2.0], [3.0, 4.0]]))
    assert isinstance(view, memoryview)
    assert (view.format, view.nbytes, view.ndim) == ("B", 16, 1)


def test_to_array_reshapes_and_converts(engine_id):
    b = buffer([1, 2, 3, 4, 5, 6], dtype="s32")
    assert to_array(b, shape=(2, 3)).tolist() == [[1, 2, 3], [4, 5, 6]]
    assert to_array(b, dtype="f64").dtype == np.float64
    with pytest.raises(dala.ShapeError):
        to_array(b, shape=(4, 2))


def test_copy_does_not_change_with_later_runs(engine_id):
    b = buffer([1.0, 2.0])
    before = read(b)
    run_kernel("scalar_mul", [b], b, {"scalar": 10.0})
    assert before == np.array([1, 2], "<f4").tobytes()
    assert read_list(b) == [10.0, 20.0]


# sharing memory -------------------------------------------------------------------------------


def test_host_memory_is_shared(engine_id):
    b = buffer([1.0, 2.0, 3.0])
    views = (read_binary(b), np.asarray(b), np.from_dlpack(b), to_array(b))
    shared = {address(view) for view in views}
    if engine_id in SHARED:
        assert len(shared) == 1
        run_kernel("scalar_mul", [b], b, {"scalar": 2.0})
        assert np.asarray(b).tolist() == views[1].tolist() == [2.0, 4.0, 6.0]
    else:
        run_kernel("scalar_mul", [b], b, {"scalar": 2.0})
        assert views[1].tolist() == [1.0, 2.0, 3.0]
        assert read_list(b) == [2.0, 4.0, 6.0]


def test_dlpack_shares_memory(engine_id):
    a = np.arange(64, dtype="<f4")
    b = from_dlpack(a)
    if engine_id in SHARED:
        assert address(read_binary(b)) == a.ctypes.data
        a[0] = 99
        assert read_list(b)[0] == 99
        run_kernel("scalar_mul", [b], b, {"scalar": 2.0})
        assert a[:3].tolist() == [198, 2, 4]
    else:
        a[0] = 99
        assert read_list(b)[0] == 0


def test_read_only_memory_is_never_written(engine_id):
    a = np.arange(64, dtype="<f4")
    a.flags.writeable = False
    b = from_dlpack(a)
    assert read(b) == a.tobytes()
    with suppress(dala.DalaError):  # engines that share the memory raise; others copy it
        run_kernel("scalar_mul", [b], b, {"scalar": 2.0})
    assert a.tolist() == list(range(64))


def test_a_plan_of_writable_memory_does_not_write_to_read_only_memory(engine_id):
    image = buffer_zeros((4, 4), "u8")
    shared, fixed = (np.full((4, 4), 7, np.uint8) for _ in range(2))
    fixed.flags.writeable = False
    run_kernel("blur", [image], from_dlpack(shared), {"radius": 1})
    with suppress(dala.DalaError):
        run_kernel("blur", [image], from_dlpack(fixed), {"radius": 1})
    assert (fixed == 7).all()


def test_buffer_keeps_shared_memory_alive(engine_id):
    a = np.arange(10_000, dtype="<i4")
    expected = a.tobytes()
    b = from_dlpack(a)
    del a
    gc.collect()
    np.full(10_000, -1, "<i4")
    assert read(b) == expected


def test_buffer_copies_its_data(engine_id):
    a = np.arange(4, dtype="<f4")
    data = bytearray(4)
    b, c = buffer(a), buffer_from_binary(data, (4,))
    a[:] = 9
    data[:] = b"\7" * 4
    assert read_list(b) == [0, 1, 2, 3]
    assert read_list(c) == [0, 0, 0, 0]


# the end --------------------------------------------------------------------------------------

USES = {
    "read": read,
    "read_list": read_list,
    "read_binary": read_binary,
    "to_array": to_array,
    "asarray": np.asarray,
    "dlpack": np.from_dlpack,
    "from_dlpack": from_dlpack,
    "read_async": lambda b: b.read_async().result(),
    "to": lambda b: b.to("reference"),
    "input": lambda b: run_kernel("relu", [b], buffer_zeros(b.shape)),
    "output": lambda b: run_kernel("relu", [buffer_zeros((2,))], b),
}


@pytest.mark.parametrize("use", USES)
def test_use_after_free_raises(engine_id, use):
    b = buffer([1.0, 2.0])
    b.free()
    with pytest.raises(dala.FreedError):
        USES[use](b)


ENDS = {
    "free": free,
    "free_many": lambda b: free_many([b, b]),
    "method": lambda b: b.free(),
    "close": lambda b: b.close(),
    "with": lambda b: b.__exit__(None, None, None),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_freeing_twice_is_allowed(engine_id, end):
    b = buffer([1.0])
    end(b)
    end(b)
    free(b)
    with pytest.raises(dala.FreedError):
        read(b)


def test_with_block_frees_at_its_end(engine_id):
    with buffer([1.0, 2.0]) as b:
        assert read_list(b) == [1.0, 2.0]
    with pytest.raises(dala.FreedError):
        read(b)


def test_views_taken_before_free_stay_valid(engine_id):
    b = buffer(list(range(1000)), dtype="s32")
    views = [read_binary(b), np.asarray(b), np.from_dlpack(b), to_array(b)]
    b.free()
    for _ in range(4):
        buffer([-1] * 1000, dtype="s32").free()
    for view in views:
        assert np.frombuffer(view, "<i4").tolist() == list(range(1000))


def test_freeing_an_input_after_a_run(engine_id):
    a, out = buffer([1.0, 2.0]), buffer_zeros((2,))
    run_kernel("scalar_mul", [a], out, {"scalar": 3.0})
    a.free()
    assert read_list(out) == [3.0, 6.0]


def test_freeing_while_a_read_is_in_flight(engine_id):
    b = buffer([1.0, 2.0])
    future = b.read_async()
    b.free()
    assert bytes(future.result()) == np.array([1, 2], "<f4").tobytes()


# reading without waiting ----------------------------------------------------------------------


def test_several_reads_in_flight(engine_id):
    buffers = [buffer([float(i)] * 100) for i in range(20)]
    futures = [b.read_async() for b in buffers]
    for i, future in reversed(list(enumerate(futures))):
        assert np.frombuffer(future.result(), "<f4").tolist() == [i] * 100


def test_async_read_returns_the_contents_at_the_call(engine_id):
    b = buffer([1.0, 2.0])
    first = b.read_async()
    run_kernel("scalar_mul", [b], b, {"scalar": 10.0})
    second = b.read_async()
    assert np.frombuffer(second.result(), "<f4").tolist() == [10.0, 20.0]
    assert np.frombuffer(first.result(), "<f4").tolist() == [1.0, 2.0]


def test_await_a_read(engine_id):
    async def several():
        buffers = [buffer([i, i + 1], dtype="s32") for i in range(10)]
        one = await buffers[0].read_async()
        rest = await asyncio.gather(*(b.read_async() for b in buffers[1:]))
        return [one, *rest]

    got = [np.frombuffer(data, "<i4").tolist() for data in asyncio.run(several())]
    assert got == [[i, i + 1] for i in range(10)]


def test_done_of_a_read(engine_id):
    future = buffer([1.0]).read_async()
    future.result()
    assert future.done()


# other devices --------------------------------------------------------------------------------


def test_moving_to_another_device_and_back(engine_id, dala_device):
    b = buffer([[1, 2], [3, 4]], dtype="s32")
    there = b.to("reference")
    assert (there.shape, there.dtype) == (b.shape, b.dtype)
    back = there.to(dala_device)
    assert read_list(there) == read_list(back) == [1, 2, 3, 4]
    run_kernel("elementwise_add", [b, back], back)
    assert read_list(back) == [2, 4, 6, 8]


def test_device_argument(dala_device):
    with dala.device("reference"):
        made = [
            buffer([1.0], device=dala_device),
            buffer_zeros((1,), device=dala_device),
            buffer_from_binary(b"\0\0\0\0", (1,), "f32", device=dala_device),
            from_array(np.zeros(1, "<f4"), device=dala_device),
        ]
    for b in made:
        run_kernel("elementwise_add", [made[0], b], b)
        assert b.device == dala_device


def test_buffers_of_two_devices_raise(engine_id, dala_device):
    other = "reference" if dala_device != "reference" else "cpu"
    a, b, out = buffer([1.0]), buffer([1.0], device=other), buffer([7.0])
    with pytest.raises(dala.DeviceMismatch, match="to\\("):
        run_kernel("elementwise_add", [a, b], out)
    assert read_list(out) == [7.0]
