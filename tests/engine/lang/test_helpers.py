"""The kernel language: helpers, parameters and registering."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.gpu.compute import Kernel, buffer, buffer_zeros, kernel, read_list, run_kernel
from tests.engine.lang.texts import COUNTS, X, each
from tests.support.engines import evaluate, run
from tests.support.tolerances import assert_close

# helpers ------------------------------------------------------------------------------------------


@kernel
def cube(x):
    return x * x * x


@kernel
def above(x, limit, *, amount=10.0):
    if x > limit:
        return x + amount
    return x


def test_helper_kernels(engine_id):
    @kernel
    def k(x):
        return cube(x) + above(x, 1.0) + above(x, 2.0, amount=0.5)

    x = X.astype("<f4")
    expected = x**3 + np.where(x > 1, x + 10, x) + np.where(x > 2, x + 0.5, x)
    assert_close(run(k, [x], x.shape, "f32"), expected.astype("<f4"), engine_id)


def test_helpers_in_text(engine_id):
    source = """
    def weight(i, n):
        for j in range(n):
            if j * j >= i:
                return j
        return n

    def k(x):
        total = 0
        for i in range(5):
            total += weight(i, x)
        return total
    """

    def weight(i, n):
        return next((j for j in range(max(n, 0)) if j * j >= i), n)

    expected = each(lambda n: sum(weight(i, n) for i in range(5)), COUNTS)
    assert evaluate(source, [COUNTS], "s32").tolist() == expected.tolist()


def test_helper_with_several_returns(engine_id):
    source = """
    def pick(i, n):
        if i < n:
            return 1
        if i == n:
            return 10
        return 100

    def k(n):
        total = 0
        for i in range(6):
            total += pick(i, n)
        return total + pick(n, 2)
    """

    def pick(i, n):
        return 1 if i < n else 10 if i == n else 100

    expected = each(lambda n: sum(pick(i, n) for i in range(6)) + pick(n, 2), COUNTS)
    assert evaluate(source, [COUNTS], "s32").tolist() == expected.tolist()


def test_a_helper_defined_inside(engine_id):
    @kernel
    def k(x):
        def half(v):
            return v * 0.5

        return half(half(x))

    x = X.astype("<f4")
    assert_close(run(k, [x], x.shape, "f32"), x * 0.25, engine_id)


SCALE = 3.0


WEIGHTS = (0.25, 0.5)


def test_constants_from_the_module(engine_id):
    @kernel
    def k(x):
        return x * SCALE + WEIGHTS[0] - WEIGHTS[1]

    x = X.astype("<f4")
    assert_close(run(k, [x], x.shape, "f32"), (x * 3 - 0.25).astype("<f4"), engine_id)


# parameters ---------------------------------------------------------------------------------------


def test_parameters_have_types_and_defaults(engine_id):
    @kernel
    def k(x, *, gain=2.0, offset: float = 0.5, steps: int = 3, negate: bool = False):
        y = x * gain + offset + steps // 2
        if negate:
            y = -y
        return y

    x = X.astype("<f4")
    shape = x.shape
    assert_close(run(k, [x], shape, "f32"), (x * 2 + 1.5).astype("<f4"), engine_id)
    got = run(k, [x], shape, "f32", {"gain": 1, "offset": -1.0, "steps": 5, "negate": True})
    assert_close(got, (-(x + 1)).astype("<f4"), engine_id)


def test_vector_parameters_are_tuples(engine_id):
    @kernel
    def k(x, *, a=(1.0, 2.0, 3.0), b: vec2 = (0.0, 0.0)):  # noqa: F821 - a name of the language
        return x * a.y + dot(b, (1.0, 10.0)) + a[2]  # noqa: F821

    x = X.astype("<f4")
    assert_close(run(k, [x], x.shape, "f32"), (x * 2 + 3).astype("<f4"), engine_id)
    got = run(k, [x], x.shape, "f32", {"a": (0, -1, 5), "b": (1, 2)})
    assert_close(got, (-x + 26).astype("<f4"), engine_id)


def test_parameters_of_exact_types(engine_id):
    source = "def k(x: u32, *, mask: u32 = 1):\n    return x & mask"
    x = np.array([0xFFFFFFFF, 6], "<u4")
    assert evaluate(source, [x], "u32").tolist() == [1, 0]
    assert evaluate(source, [x], "u32", {"mask": 0xF000000F}).tolist() == [0xF000000F, 6]


def test_changing_a_parameter_changes_only_that_run(engine_id):
    k = kernel("def k(x, *, s=1.0):\n    return x * s")
    x = X.astype("<f4")
    for s in (1.0, 0.5, -2.0, 1.0):
        assert_close(run(k, [x], x.shape, "f32", {"s": s}), (x * s).astype("<f4"), engine_id)


# registering --------------------------------------------------------------------------------------


def test_kernels_registered_by_name(engine_id):
    x = X.astype("<f4")
    Kernel.register(
        "conformance_scaled", "def f(x, *, s=3.0):\n    return x * s", inputs=1, params=["s"]
    )
    try:
        assert_close(run("conformance_scaled", [x], x.shape, "f32"), x * 3, engine_id)
        Kernel.register("conformance_scaled", "def f(x):\n    return x + 1", inputs=1)
        assert_close(run("conformance_scaled", [x], x.shape, "f32"), x + 1, engine_id)
    finally:
        Kernel.unregister("conformance_scaled")
    with pytest.raises(dala.UnknownKernel):
        run_kernel("conformance_scaled", [buffer_zeros((1,))], buffer_zeros((1,)))


def test_annotated_elements_keep_their_own_dtypes(engine_id):
    source = "def k(a: f32, b: s32, c: u8):\n    return a + b * c"
    a, b = np.array([0.5, 1.5], "<f4"), np.array([2, -3], "<i4")
    got = evaluate(source, [a, b, np.array([200, 100], "u1")], "f32")
    assert got.tolist() == [400.5, -298.5]
    with pytest.raises(dala.DtypeMismatch):
        evaluate(source, [b, b, b], "f32")


@pytest.mark.parametrize(
    "text",
    [
        "i = position()\n    n = shape(a)",
        "i = position()[0]\n    n = a.shape[0]",
        "(i,) = position()\n    (n,) = a.shape",
        "i = position(0)\n    n = len(a)",
        "i = position()[-1]\n    n = shape()[0]",
    ],
)
def test_position_of_one_axis(engine_id, text):
    made = Kernel.register(
        "one_axis", f"def one_axis(a: Array):\n    {text}\n    return a[n - 1 - i]"
    )
    out = buffer_zeros(5)
    made.run([buffer([1, 2, 3, 4, 5])], out)
    assert read_list(out) == [5, 4, 3, 2, 1]


def test_tuple_assignment_of_vectors(engine_id):
    made = Kernel.register(
        "side_by_side",
        "def side_by_side(px: Pixel):\n"
        "    a, b = px.rgb, px.bgr\n"
        "    b, a = a, b\n"
        "    return rgba(a - b * 0.5, px.a)",
    )
    out = buffer_zeros((1, 2, 4))
    made.run([buffer([[[0.5, 0.25, 1.0, 1.0], [1.0, 0.0, 0.5, 0.75]]])], out)
    assert read_list(out) == [0.75, 0.125, 0.0, 1.0, 0.0, 0.0, 0.75, 0.75]
