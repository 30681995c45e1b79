"""Definitions of the reference engine on edge cases."""

from __future__ import annotations

import numpy as np
import pytest

from dala.gpu.compute.engines.base import Geometry
from dala.gpu.compute.engines.reference.engine import BLOCK, OPERATIONS, ReferenceEngine, cast
from dala.gpu.compute.lang.ir import Arg, Block, Out, Program, Value

LOW, HIGH = -(2**31), 2**31 - 1
NAN, INF = np.nan, np.inf


def s32(*values):
    return np.array(values, np.int32)


def u32(*values):
    return np.array(values, np.uint32)


def f32(*values):
    return np.array(values, np.float32)


CASES = [
    ("add", [s32(HIGH), s32(1)], s32(LOW)),
    ("sub", [u32(0), u32(1)], u32(2**32 - 1)),
    ("mul", [s32(65536), s32(65537)], s32(65536)),
    ("neg", [s32(LOW)], s32(LOW)),
    ("neg", [u32(1)], u32(2**32 - 1)),
    ("idiv", [s32(7, -7, 7, -7, 5, LOW), s32(2, 2, -2, -2, 0, -1)], s32(3, -4, -4, 3, 0, LOW)),
    ("mod", [s32(7, -7, 7, -7, 5, LOW), s32(2, 2, -2, -2, 0, -1)], s32(1, 1, -1, -1, 0, 0)),
    ("idiv", [u32(2**32 - 1, 1), u32(2, 0)], u32(2**31 - 1, 0)),
    ("shl", [s32(1, 1, 1), s32(31, 32, -1)], s32(LOW, 1, LOW)),
    ("shr", [s32(-8, -8), s32(1, 33)], s32(-4, -4)),
    ("shr", [u32(2**32 - 8), u32(1)], u32(2**31 - 4)),
    ("not", [s32(0)], s32(-1)),
    ("not", [np.array([True])], np.array([False])),
    ("abs", [s32(LOW, -3)], s32(LOW, 3)),
    ("min", [f32(NAN, 1, 2, 3), f32(1, NAN, 1, 4)], f32(NAN, NAN, 1, 3)),
    ("max", [f32(NAN, 1, 2, 3), f32(1, NAN, 1, 4)], f32(NAN, NAN, 2, 4)),
    ("round", [f32(0.5, 1.5, 2.5, -0.5)], f32(0, 2, 2, -0.0)),
    ("div", [f32(1, -1, 0), f32(0, 0, 0)], f32(INF, -INF, NAN)),
    ("ne", [f32(NAN), f32(NAN)], np.array([True])),
    ("le", [f32(NAN), f32(NAN)], np.array([False])),
    ("pow", [f32(-2, -2, -2, 0, NAN), f32(3, 2, 0.5, 0, 0)], f32(-8, 4, NAN, 1, 1)),
    ("sqrt", [f32(-1, 4)], f32(NAN, 2)),
    ("log", [f32(0, -1, 1)], f32(-INF, NAN, 0)),
]


@pytest.mark.parametrize(("name", "args", "expected"), CASES, ids=[c[0] for c in CASES])
def test_operations(name, args, expected):
    with np.errstate(all="ignore"):
        got = OPERATIONS[name](*args)
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (np.int32, [0, HIGH, LOW, HIGH, LOW, 2147483520, -1, 1]),
        (np.uint32, [0, 2**32 - 1, 0, 3 * 10**9, 0, 2147483520, 0, 1]),
        (np.int64, [0, 2**63 - 1, -(2**63), 3 * 10**9, -3 * 10**9, 2147483520, -1, 1]),
    ],
)
def test_floats_saturate_to_ints(target, expected):
    x = f32(NAN, INF, -INF, 3e9, -3e9, 2147483520, -1.9, 1.9)
    with np.errstate(all="ignore"):
        assert cast(x, np.dtype(target)).tolist() == expected


@pytest.mark.parametrize("name", ["exp", "log", "sin", "cos", "tan", "atan", "pow", "atan2"])
def test_f32_functions_are_correctly_rounded(name):
    x = np.linspace(0.01, 40, 4001).astype(np.float32)
    args = [x, x[::-1]][: 2 if name in ("pow", "atan2") else 1]
    functions = {"atan": np.arctan, "atan2": np.arctan2, "pow": np.power}
    exact = functions.get(name, getattr(np, name, None))(*(a.astype(np.float64) for a in args))
    assert OPERATIONS[name](*args).tolist() == exact.astype(np.float32).tolist()


def test_inputs_that_overlap_the_output_are_read_before_they_are_written():
    """Adopted memory may overlap in part; blocks must not see the results of earlier blocks."""
    engine = ReferenceEngine()
    count = BLOCK + 10
    memory = np.arange(count + 1, dtype="<i4")
    view = memoryview(memory).cast("B")
    source, target = engine.adopt(view[:-4]), engine.adopt(view[4:])
    load = Value("element", "s32", attr=0)
    program = Program(
        name="move",
        args=(Arg("x", "element", "s32", 1),),
        out=Out("s32", 1, 1, False),
        params=(),
        body=Block([load]),
        result=(load,),
        rank=1,
        uses_position=False,
        key="move",
    )
    engine.prepare(program, Geometry((count,), ((1,),), ((count,),), (count,)))(
        [source], target, ()
    )
    assert memory.tolist() == [0, *range(count)]
