"""Statements, helpers and parameters of the language, on each engine, compared with NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.gpu.compute import Kernel, buffer, buffer_zeros, kernel, read_list, run_kernel
from tests.support.engines import evaluate, run
from tests.support.tolerances import assert_close


def expression(text):
    return f"def k(x, y):\n    return {text}\n"


# Small multiples of 1/8: sums and products of a few of them are exact.
X = np.arange(-40, 41) / 8
Y = X[(np.arange(81) * 37) % 81]


# conditions -----------------------------------------------------------------------------------


def test_if_elif_else(engine_id):
    source = """
    def k(x):
        if x < -1:
            y = 10.0
        elif x < 1:
            y = x * 2
        elif x == 1:
            y = 99.0
        else:
            y = -x
        return y + 1
    """
    x = X.astype("<f4")
    expected = np.select([x < -1, x < 1, x == 1], [10, x * 2, 99], -x) + 1
    assert_close(evaluate(source, [x], "f32"), expected.astype("<f4"), engine_id)


def test_nested_ifs_and_changes_in_one_branch(engine_id):
    source = """
    def k(x, y):
        best = x
        if y > 0:
            if x < y:
                best = y
                if best > 3:
                    best = 3.0
        else:
            best -= 1
        return best
    """
    x, y = X.astype("<f4"), Y.astype("<f4")
    expected = np.where(y > 0, np.where(x < y, np.minimum(y, 3), x), x - 1).astype("<f4")
    assert_close(evaluate(source, [x, y], "f32"), expected, engine_id)


def test_conditional_expressions(engine_id):
    x, y = X.astype("<f4"), Y.astype("<f4")
    got = evaluate(expression("x if x > y else (0.0 if y > 2 else y * 2)"), [x, y], "f32")
    expected = np.where(x > y, x, np.where(y > 2, 0, y * 2)).astype("<f4")
    assert_close(got, expected, engine_id)


def test_chained_comparisons_and_logic(engine_id):
    x, y = X.astype("<f4"), Y.astype("<f4")
    cases = {
        "-1 < x < 1": (x > -1) & (x < 1),
        "-2 <= x < y <= 3": (x >= -2) & (x < y) & (y <= 3),
        "x > 0 and y > 0": (x > 0) & (y > 0),
        "x > 0 or y > 0": (x > 0) | (y > 0),
        "not (x > 0)": ~(x > 0),
        "x > 0 and not y > 0 or x == y": ((x > 0) & ~(y > 0)) | (x == y),
        "x != y": x != y,
    }
    for text, expected in cases.items():
        got = evaluate(expression(f"1 if {text} else 0"), [x, y], "s32")
        assert_close(got, expected.astype("<i4"), engine_id)


def test_early_returns(engine_id):
    source = """
    def k(x):
        if x < 0:
            return -1.0
        if x > 2:
            if x > 4:
                return 4.0
            return 2.0
        y = x * 2
        return y
    """
    x = X.astype("<f4")
    expected = np.select([x < 0, x > 4, x > 2], [-1, 4, 2], x * 2).astype("<f4")
    assert_close(evaluate(source, [x], "f32"), expected, engine_id)


# loops ----------------------------------------------------------------------------------------


def each(function, *arrays):
    """Return a Python function applied to every element."""
    return np.array([function(*(v.item() for v in row)) for row in zip(*arrays, strict=True)])


COUNTS = np.array([0, 1, 2, 3, 7, 10, -1, -5], "<i4")


def test_a_loop_with_a_bound_from_the_data(engine_id):
    source = """
    def k(n):
        total = 0
        for i in range(n):
            total += i * i
        return total
    """
    expected = each(lambda n: sum(i * i for i in range(n)), COUNTS)
    assert evaluate(source, [COUNTS], "s32").tolist() == expected.tolist()


@pytest.mark.parametrize(
    "bounds",
    [
        "2, n",
        "n, 3",
        "n, n + 4",
        "0, n, 2",
        "n, 0, -1",
        "5, n, -3",
        "n, -n, -2",
        "3, 3",
        "-n, n, 4",
    ],
)
def test_ranges(engine_id, bounds):
    source = f"""
    def k(n):
        total = 0
        for i in range({bounds}):
            total = total * 3 + i
        return total
    """

    def plain(n):
        total = 0
        for i in eval(f"range({bounds})", {"range": range, "n": n}):
            total = total * 3 + i
        return total

    expected = each(plain, COUNTS).astype("<i8").astype("<i4")
    assert evaluate(source, [COUNTS], "s32").tolist() == expected.tolist()


def test_nested_loops(engine_id):
    source = """
    def k(n, m):
        total = 0
        for i in range(n):
            for j in range(i, m):
                total += i * 10 + j
        return total
    """

    def plain(n, m):
        return sum(i * 10 + j for i in range(n) for j in range(i, m))

    n, m = np.meshgrid(COUNTS, COUNTS)
    n, m = n.ravel(), m.ravel()
    assert evaluate(source, [n, m], "s32").tolist() == each(plain, n, m).tolist()


BREAKS = """
    def k(n, m):
        total = 0
        for i in range(10):
            if i == n:
                break
            if i % 2 == 0:
                continue
            for j in range(10):
                if j > m:
                    break
                if j == i:
                    continue
                total += 10 * i + j
            total += 1000
        return total
"""


def test_break_and_continue(engine_id):
    def plain(n, m):
        total = 0
        for i in range(10):
            if i == n:
                break
            if i % 2 == 0:
                continue
            for j in range(10):
                if j > m:
                    break
                if j == i:
                    continue
                total += 10 * i + j
            total += 1000
        return total

    n, m = np.meshgrid(COUNTS, COUNTS)
    n, m = n.ravel(), m.ravel()
    assert evaluate(BREAKS, [n, m], "s32").tolist() == each(plain, n, m).tolist()


def test_returns_inside_loops(engine_id):
    source = """
    def k(n, m):
        seen = 0
        for i in range(8):
            for j in range(8):
                seen += 1
                if i * j == n:
                    return seen
                if j > m:
                    break
            if i == m:
                return -seen
        return seen * 100
    """

    def plain(n, m):
        seen = 0
        for i in range(8):
            for j in range(8):
                seen += 1
                if i * j == n:
                    return seen
                if j > m:
                    break
            if i == m:
                return -seen
        return seen * 100

    n, m = np.meshgrid(np.array([0, 3, 6, 12, 50], "<i4"), COUNTS)
    n, m = n.ravel(), m.ravel()
    assert evaluate(source, [n, m], "s32").tolist() == each(plain, n, m).tolist()


def test_the_loop_variable_can_be_changed_without_changing_the_loop(engine_id):
    source = """
    def k(n):
        total = 0
        for i in range(n):
            i = i * 2
            total += i
        return total
    """
    expected = each(lambda n: sum(2 * i for i in range(n)), COUNTS)
    assert evaluate(source, [COUNTS], "s32").tolist() == expected.tolist()


def test_loop_bounds_are_evaluated_once(engine_id):
    source = """
    def k(n):
        total = 0
        for i in range(n):
            n = 0
            total += 1
        return total
    """
    expected = np.maximum(COUNTS, 0)
    assert evaluate(source, [COUNTS], "s32").tolist() == expected.tolist()


@pytest.mark.parametrize(
    "bounds",
    [
        "2147483640, n, 5",
        "-2147483640, -n - 1, -5",
        "n - 2, n",
        "-2000000000, n, 1500000000",
        "n, -2000000000, -1500000000",
    ],
)
def test_loops_to_the_limits_of_ints(engine_id, bounds):
    """A counter that wraps around would never reach its bound."""
    source = f"""
    def k(n):
        turns = 0
        for i in range({bounds}):
            turns += 1
            if turns > 50:
                break
        return turns
    """
    n = np.array([2**31 - 1, 2**31 - 2], "<i4")
    expected = each(lambda n: len(eval(f"range({bounds})", {"range": range, "n": n})), n)
    assert evaluate(source, [n], "s32").tolist() == expected.tolist()


def test_loop_bounds_from_parameters(engine_id):
    source = """
    def k(x, *, n, m=2):
        for i in range(n):
            for j in range(m):
                x += i - j
        return x
    """
    x = np.array([0, 100], "<i4")

    def total(n, m):
        return sum(i - j for i in range(n) for j in range(m))

    assert evaluate(source, [x], "s32", {"n": 4}).tolist() == (x + total(4, 2)).tolist()
    assert evaluate(source, [x], "s32", {"n": 3, "m": 5}).tolist() == (x + total(3, 5)).tolist()
    assert evaluate(source, [x], "s32", {"n": 0}).tolist() == x.tolist()


def test_variable_widens_to_float(engine_id):
    source = """
    def k(x):
        total = 0
        for i in range(4):
            total = total + x * 0.5
        return total
    """
    x = X.astype("<f4")
    assert_close(evaluate(source, [x], "f32"), x * 2, engine_id)


def test_variable_of_changing_types(engine_id):
    source = """
    def k(x):
        v = 1
        v = v + x
        v = v * v
        w = v > 4
        if w:
            v = 0
        return v
    """
    x = X.astype("<f4")
    expected = np.where((x + 1) ** 2 > 4, 0, (x + 1) ** 2).astype("<f4")
    assert_close(evaluate(source, [x], "f32"), expected, engine_id)


def test_swap_of_two_variables(engine_id):
    source = """
    def k(n):
        a, b = 0, 1
        for i in range(n):
            a, b = b, a + b
        return a
    """
    fibonacci = [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55]
    expected = [fibonacci[max(n, 0)] for n in COUNTS]
    assert evaluate(source, [COUNTS], "s32").tolist() == expected


def test_vector_variables(engine_id):
    source = """
    def k(x, y):
        v = (x, y, 1.0)
        w = v.zyx * 2 + v
        if x > y:
            w = -w
        for i in range(2):
            w = w + (1.0, 0.0, x)
        p, q, r = w
        return p + q * 10 + r * 100
    """
    x, y = X.astype("<f4"), Y.astype("<f4")
    w = np.stack([2 + x, y * 3, x * 2 + 1]) * np.where(x > y, -1, 1)
    expected = w[0] + 2 + w[1] * 10 + (w[2] + 2 * x) * 100
    assert_close(evaluate(source, [x, y], "f32"), expected.astype("<f4"), engine_id)


def test_augmented_assignment(engine_id):
    source = """
    def k(x):
        v = x
        v += 3
        v *= 2
        v -= 1
        v //= 3
        v %= 50
        v <<= 2
        v >>= 1
        v |= 1
        v &= 127
        v ^= 5
        v **= 2
        return v
    """
    x = np.arange(-50, 50, dtype="<i4")
    v = ((((x + 3) * 2 - 1) // 3 % 50 << 2 >> 1 | 1) & 127) ^ 5
    assert evaluate(source, [x], "s32").tolist() == (v * v).tolist()


# helpers --------------------------------------------------------------------------------------


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


# parameters -----------------------------------------------------------------------------------


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


# registering ----------------------------------------------------------------------------------


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
