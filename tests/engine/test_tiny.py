"""The contract of every engine, in one minute."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.gpu import compute
from dala.gpu.compute import Image, buffer, buffer_zeros, kernel, read, read_list, run_kernel


def test_buffer_round_trip(engine_id):
    b = buffer([1.0, 2.0, 3.0, 4.0], shape=(2, 2))
    assert b.shape == (2, 2)
    assert b.dtype == "f32"
    assert b.nbytes == 16
    assert read_list(b) == [1.0, 2.0, 3.0, 4.0]
    assert read(b) == np.array([1, 2, 3, 4], "<f4").tobytes()


def test_built_in_kernel(engine_id):
    out = buffer_zeros((3,))
    run_kernel("elementwise_add", [buffer([1.0, 2.0, 3.0]), buffer([10.0, 20.0, 30.0])], out)
    assert read_list(out) == [11.0, 22.0, 33.0]


def test_kernels_are_listed(engine_id):
    run_kernel("relu", [buffer([1.0])], buffer_zeros((1,)))
    assert {"relu", "elementwise_add", "sigmoid"} <= set(compute.kernels())


def test_kernel_from_a_python_function(engine_id):
    @kernel
    def double_positive(x, *, amount=2.0):
        if x > 0:
            return x * amount
        return 0.0

    out = buffer_zeros((3,))
    run_kernel(double_positive, [buffer([-1.0, 0.5, 4.0])], out)
    assert read_list(out) == [0.0, 1.0, 8.0]
    run_kernel(double_positive, [buffer([-1.0, 0.5, 4.0])], out, {"amount": 10.0})
    assert read_list(out) == [0.0, 5.0, 40.0]


def test_kernel_reads_neighbors(engine_id):
    @kernel
    def right_hand(img: Image):
        return img[1, 0]

    out = buffer_zeros((1, 3), "u8")
    run_kernel(right_hand, [buffer([10, 20, 30], shape=(1, 3), dtype="u8")], out)
    assert read_list(out) == [20, 30, 30]


def test_refused_call_writes_nothing(engine_id):
    out = buffer([7.0, 7.0])
    with pytest.raises(dala.ShapeMismatch):
        run_kernel("elementwise_add", [buffer([1.0, 2.0]), buffer([1.0, 2.0, 3.0])], out)
    assert read_list(out) == [7.0, 7.0]


def test_work_runs_on_the_chosen_device(engine_id, dala_device):
    info = compute.device_info()
    assert info["backend"] == dala_device.partition(":")[0].replace("cuda", "webgpu")
    assert isinstance(info["name"], str)
