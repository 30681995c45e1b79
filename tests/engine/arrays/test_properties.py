"""Random expressions, indexes and reductions of buffers, against NumPy."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dala
from dala.gpu.compute import from_array
from tests.support.engines import NUMPY

#: Few examples: each new form of an expression is compiled.
FEW = settings(max_examples=25, suppress_health_check=list(HealthCheck))
MANY = settings(max_examples=60, suppress_health_check=list(HealthCheck))

SHAPES = st.lists(st.integers(0, 4), min_size=0, max_size=4).map(tuple)


@st.composite
def broadcast_shapes(draw: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two shapes that broadcast."""
    whole = draw(st.lists(st.integers(1, 4), min_size=0, max_size=4))

    def part() -> tuple[int, ...]:
        cut = whole[draw(st.integers(0, len(whole))) :]
        return tuple(draw(st.sampled_from([1, n])) for n in cut)

    return part(), part()


def values(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    """Return small whole numbers, so that every engine computes exact results."""
    low = 0 if dtype in ("u8", "u32") else -9
    made = np.random.default_rng(seed).integers(low, 12, shape)
    return np.asarray(made).astype(NUMPY[dtype])


#: How expressions are built: from two arrays, with what they must equal.
STEPS = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "number": lambda a, b: 3 * a + 1,
    "negative": lambda a, b: -a,
    "square": lambda a, b: a**2,
    "less": lambda a, b: (a < b) * 2 + a,
    "equal": lambda a, b: a + (b == 3),
}


@FEW
@given(
    broadcast_shapes(),
    st.sampled_from(["f32", "s32"]),
    st.lists(st.sampled_from(list(STEPS)), min_size=1, max_size=5),
    st.integers(0, 99),
)
def test_expressions(engine_id, shapes, dtype, names, seed):
    x, y = values(shapes[0], dtype, seed), values(shapes[1], dtype, seed + 1)
    a, b = from_array(x), from_array(y)
    made, wanted = a, x
    for name in names:
        made, wanted = STEPS[name](made, b), np.asarray(STEPS[name](wanted, y))
        wanted = wanted.astype(NUMPY[dtype])
    assert made.shape == wanted.shape
    assert made.dtype == dtype
    if np.abs(wanted.astype(float)).max(initial=0) < 2**24:  # exact in f32
        np.testing.assert_array_equal(made.numpy(), wanted)


OPERATORS = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul,
    "floor_divide": operator.floordiv, "remainder": operator.mod,
    "lt": operator.lt, "ge": operator.ge, "ne": operator.ne,
}  # fmt: skip
DTYPES = ["f32", "s32", "u8", "u32"]


@FEW
@given(
    broadcast_shapes(),
    st.sampled_from(DTYPES),
    st.sampled_from(DTYPES),
    st.sampled_from(list(OPERATORS)),
    st.integers(0, 99),
)
def test_dtypes(engine_id, shapes, one, other, name, seed):
    x, y = values(shapes[0], one, seed), values(shapes[1], other, seed + 1)
    a, b = from_array(x), from_array(y)
    if {one, other} == {"s32", "u32"} and "s64" not in a.engine.dtypes:
        try:
            OPERATORS[name](a, b)
        except dala.UnsupportedDtype:
            return
        raise AssertionError("s64 is not supported, and nothing was raised")
    made = OPERATORS[name](a, b)
    wide = np.float64 if "f32" in (one, other) else np.int64
    with np.errstate(all="ignore"):
        wanted = np.asarray(OPERATORS[name](x.astype(wide), y.astype(wide)))
    if made.dtype == "u8":
        wanted = np.clip(wanted, 0, 255)
    np.testing.assert_array_equal(made.numpy(), wanted.astype(NUMPY[made.dtype]))


@st.composite
def indexes(draw: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """An index of a shape: integers, slices with any step, ``None`` and ``...``."""
    found: list[Any] = []
    for size in shape[: draw(st.integers(0, len(shape)))]:
        kinds = ["slice", "slice", "none"] + (["int"] if size else [])
        kind = draw(st.sampled_from(kinds))
        if kind == "none":
            found.append(None)
        if kind == "int":
            found.append(draw(st.integers(-size, size - 1)))
        else:
            end = st.none() | st.integers(-6, 6)
            step = draw(st.sampled_from([None, 1, 2, 3, -1, -2, -3]))
            found.append(slice(draw(end), draw(end), step))
    if draw(st.booleans()):
        found.append(Ellipsis)
    return tuple(found)


@MANY
@given(st.data(), SHAPES, st.sampled_from(["f32", "u8", "s32"]))
def test_indexing(engine_id, data, shape, dtype):
    x = values(shape, dtype, 5)
    b = from_array(x)
    index = data.draw(indexes(shape))
    wanted = x[index]
    got = b[index]
    assert got.shape == wanted.shape
    np.testing.assert_array_equal(got.numpy(), wanted)
    x[index] = 7
    b[index] = 7
    np.testing.assert_array_equal(b.numpy(), x)
    value = np.asarray(values(wanted.shape, dtype, 6))
    x[index] = value
    b[index] = from_array(value)
    np.testing.assert_array_equal(b.numpy(), x)


@FEW
@given(st.data(), st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple), st.booleans())
def test_reductions(engine_id, data, shape, keepdims):
    x = values(shape, "f32", 7)
    axes = st.sampled_from(range(len(shape)))
    axis = data.draw(st.none() | axes | st.lists(axes, unique=True, min_size=1).map(tuple))
    b = from_array(x)
    for name in ("sum", "max", "min", "mean"):
        got = getattr(b, name)(axis, keepdims=keepdims).numpy()
        wanted = getattr(x, name)(axis, keepdims=keepdims)
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(b.T.numpy(), x.T)


#: What may happen to a buffer that expressions read.
EVENTS = ("write", "add", "element", "kernel", "free", "expression", "chain", "read", "drop")


@MANY
@given(st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, 5)), max_size=14))
def test_expressions_see_values_of_their_time(engine_id, events):
    held = [from_array(np.full(3, float(i), np.float32)) for i in range(3)]
    known = [np.full(3, float(i), np.float32) for i in range(3)]
    for number, (event, choice) in enumerate(events):
        i = choice % len(held)
        j = (choice + 1) % len(held)
        if event == "write":
            held[i].write(np.full(3, 50.0 + number, np.float32))
            known[i] = np.full(3, 50.0 + number, np.float32)
        elif event == "add":
            held[i] += held[j]
            known[i] = known[i] + known[j]
        elif event == "element":
            held[i][choice % 3] = number
            known[i] = known[i].copy()
            known[i][choice % 3] = number
        elif event == "kernel":
            dala.gpu.compute.run_kernel("scalar_mul", [held[j]], held[i], {"scalar": 2})
            known[i] = known[j] * 2
        elif event == "free":
            held[i].free()
            held[i] = from_array(known[j])
            known[i] = known[j].copy()
        elif event == "expression":
            held.append(held[i] + held[j])
            known.append(known[i] + known[j])
        elif event == "chain":
            held.append((held[i] * 2 - held[j]) + 1)
            known.append((known[i] * 2 - known[j]) + 1)
        elif event == "read":
            np.testing.assert_array_equal(held[i].read_list(), known[i])
        elif len(held) > 3:
            del held[i], known[i]
    for b, wanted in zip(held, known, strict=True):
        np.testing.assert_array_equal(b.read_list(), wanted)
