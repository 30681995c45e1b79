"""Values that are equal but not the same: a call never gets what an earlier one computed.

1, 1.0 and True are equal, 0.0 and -0.0 are, and a NaN is not equal to itself.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from dala.errors import ParameterError
from dala.gpu.compute import Pipeline, buffer, buffer_zeros, from_array, kernel, run_kernel
from dala.gpu.compute.kernel import get
from dala.gpu.compute.params import exact_key

#: Each of them after each other one, and after itself.
ZEROS = (-0.0, 0.0, -0.0, -0.0, 0, -0.0, np.float32(-0.0), np.float64(0.0))
#: 2^24 + 1 is no f32.
ODD = (1 << 24) + 1


def negative(values):
    return [math.copysign(1, value) < 0 for value in values]


def wanted(zero):
    return [math.copysign(1, float(zero)) < 0] * 2


def test_zeros_of_calls(engine_id):
    scaled = kernel("def scaled(x, *, g: float): return x * g")
    a, out = buffer([1.0, 2.0]), buffer_zeros((2,))
    for zero in ZEROS:
        run_kernel(scaled, [a], out, {"g": zero})
        assert negative(out.read_list()) == wanted(zero)
        assert negative((a * float(zero)).read_list()) == wanted(zero)


def test_zeros_of_pipelines(engine_id):
    """Alone, and fused with a neighbor that has a zero of its own."""
    scaled = kernel("def scaled(x, *, g: float): return x * g")
    a, between, out = buffer([1.0, 2.0]), buffer_zeros((2,), transient=True), buffer_zeros((2,))
    with Pipeline() as p:
        for source, target in ((a, between), (between, out)):
            p.add({"op": "run_kernel", "kernel": scaled, "inputs": [source], "output": target,
                   "params": {"g": 1.0}})  # fmt: skip
        for zero in ZEROS:
            p.set_params(0, g=zero)
            p.run()
            assert negative(out.read_list()) == wanted(zero)
        assert p.passes == 1


def test_kinds_of_numbers(engine_id):
    """A parameter of either type has that of its value, also if an equal one came before."""
    scaled = kernel("def scaled(x, *, n: IntOrFloat): return s32(x * n)")
    a, out = buffer([ODD], dtype="s32"), buffer_zeros((1,), "s32")
    spec = {"op": "run_kernel", "kernel": scaled, "inputs": [a], "output": out}
    with Pipeline() as p:
        p.add({**spec, "params": {"n": 2}})
        for number in (1, 1.0, 1, np.int64(1), np.float32(1), True, 1):
            whole = isinstance(number, int | np.integer) and number is not True
            want = [ODD if whole else ODD - 1]
            run_kernel(scaled, [a], out, {"n": number})
            assert out.read_list() == want, number
            p.set_params(0, n=number)
            p.run()
            assert out.read_list() == want, number


@pytest.mark.parametrize("bad", [float("nan"), True, "1"])
def test_refused_values_stay_refused(engine_id, bad):
    """After an equal value that was taken, and after the very same object was refused."""
    picture = from_array(np.full((4, 4, 4), 7, np.uint8))
    out = buffer_zeros((4, 4, 4), "u8")
    with Pipeline() as p:
        p.add({"op": "run_kernel", "kernel": "box_blur", "inputs": [picture], "output": out,
               "params": {"radius": 1}})  # fmt: skip
        for _ in range(2):
            run_kernel("box_blur", [picture], out, {"radius": 1})
            for call in (
                lambda: run_kernel("box_blur", [picture], out, {"radius": bad}),
                lambda: p.set_params(0, radius=bad),
            ):
                with pytest.raises(ParameterError, match="radius must be an int"):
                    call()


def test_zeros_of_operations(engine_id):
    """They are one value: 0.0."""
    pad = get("pad")
    a, out = from_array(np.ones((1, 1), np.float32)), buffer_zeros((3, 3))
    for zero in ZEROS:
        run_kernel(pad, [a], out, {"padding": 1, "border": "constant", "fill": (zero,) * 4})
        assert negative(out.read_list()) == [False] * 9


def test_exact_keys():
    values = [1, 1.0, True, "1", 0, 0.0, -0.0, False, (1,), (1.0,), (True,), ((0.0,),), ((-0.0,),),
              np.float32(0.0), np.float32(-0.0), None, "", ()]  # fmt: skip
    assert len({exact_key(value) for value in values}) == len(values)
    assert exact_key((-0.0, 2)) == exact_key((-0.0, 2))
