"""The kernel language: conditions and loops."""

from __future__ import annotations

import numpy as np
import pytest

from tests.engine.lang.texts import COUNTS, X, each
from tests.support.engines import evaluate
from tests.support.tolerances import assert_close


def expression(text):
    return f"def k(x, y):\n    return {text}\n"


Y = X[(np.arange(81) * 37) % 81]


# conditions ---------------------------------------------------------------------------------------


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


# loops --------------------------------------------------------------------------------------------


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
