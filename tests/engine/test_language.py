"""Each feature of the kernel language, on each engine, against plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.gpu.compute import Array, Kernel, buffer_zeros, kernel, run_kernel
from tests.engines import needs, run
from tests.tolerances import assert_close

NUMPY = {"f32": "<f4", "f64": "<f8", "s32": "<i4", "s64": "<i8", "u32": "<u4", "u8": "u1"}


def evaluate(source, inputs, dtype, **params):
    """Runs kernel text over arrays of one shape."""
    return run(
        kernel(source), inputs, np.broadcast_shapes(*(a.shape for a in inputs)), dtype, params
    )


def expression(text):
    return f"def k(x, y):\n    return {text}\n"


# functions of floats --------------------------------------------------------------------------
# The inputs are small multiples of 1/8: sums and products of a few are exact, so is rounding.

X = np.arange(-40, 41) / 8
Y = X[(np.arange(81) * 37) % 81]


def smoothstep(low, high, x):
    t = np.clip((x - low) / (high - low), 0, 1)
    return t * t * (3 - 2 * t)


FLOAT_FUNCTIONS = [
    ("x + y", lambda x, y: x + y, "exact"),
    ("x - y", lambda x, y: x - y, "exact"),
    ("x * y", lambda x, y: x * y, "exact"),
    ("-x", lambda x, y: -x, "exact"),
    ("+x", lambda x, y: x, "exact"),
    ("x / (abs(y) + 1)", lambda x, y: x / (np.abs(y) + 1), "div"),
    ("x // 2", lambda x, y: x // 2, "exact"),
    ("x % 2", lambda x, y: x % 2, "exact"),
    ("x % -2.0", lambda x, y: x % -2, "exact"),
    ("x ** 2", lambda x, y: x**2, "exact"),
    ("x ** 3", lambda x, y: x**3, "exact"),
    ("x ** 0", lambda x, y: np.ones_like(x), "exact"),
    ("(abs(x) + 1) ** -2", lambda x, y: (np.abs(x) + 1) ** -2.0, "div"),
    ("(abs(x) + 1) ** 0.5", lambda x, y: (np.abs(x) + 1) ** 0.5, "pow"),
    ("min(x, y)", lambda x, y: np.minimum(x, y), "exact"),
    ("max(x, y)", lambda x, y: np.maximum(x, y), "exact"),
    ("min(x, y, 0.5)", lambda x, y: np.minimum(np.minimum(x, y), 0.5), "exact"),
    ("max(x, 0)", lambda x, y: np.maximum(x, 0), "exact"),
    ("abs(x)", lambda x, y: np.abs(x), "exact"),
    ("clamp(x, -1, 2.5)", lambda x, y: np.clip(x, -1, 2.5), "exact"),
    ("mix(x, y, 0.25)", lambda x, y: x * 0.75 + y * 0.25, "exact"),
    ("step(0.5, x)", lambda x, y: np.where(x < 0.5, 0.0, 1.0), "exact"),
    ("smoothstep(-1.0, 3.0, x)", lambda x, y: smoothstep(-1, 3, x), "program"),
    ("sqrt(abs(x))", lambda x, y: np.sqrt(np.abs(x)), "div"),
    ("exp(x)", lambda x, y: np.exp(x), "exp"),
    ("log(abs(x) + 0.125)", lambda x, y: np.log(np.abs(x) + 0.125), "exp"),
    ("sin(x)", lambda x, y: np.sin(x), "trig"),
    ("cos(x)", lambda x, y: np.cos(x), "trig"),
    ("tan(x * 0.25)", lambda x, y: np.tan(x * 0.25), "trig"),
    ("atan(x)", lambda x, y: np.arctan(x), "trig"),
    ("atan2(x, y)", lambda x, y: np.arctan2(x, y), "trig"),
    ("pow(abs(x), y)", lambda x, y: np.power(np.abs(x) + (x == 0), y), "pow"),
    ("pow(x, 3.0)", lambda x, y: x**3, "pow"),
    ("pow(x, floor(y))", lambda x, y: np.power(x + (x == 0), np.floor(y)), "pow"),
    ("floor(x)", lambda x, y: np.floor(x), "exact"),
    ("ceil(x)", lambda x, y: np.ceil(x), "exact"),
    ("round(x)", lambda x, y: np.rint(x), "exact"),
    ("fract(x)", lambda x, y: x - np.floor(x), "exact"),
    ("sign(x)", lambda x, y: np.sign(x), "exact"),
    ("tanh(x)", lambda x, y: np.tanh(x), "exp"),
    ("dot((x, y), (y, 2.0))", lambda x, y: x * y + y * 2, "exact"),
    ("dot((x, y, 1.0, x), (1.0, 2.0, 3.0, 4.0))", lambda x, y: 5 * x + 2 * y + 3, "exact"),
    ("length((x, y))", lambda x, y: np.sqrt(x * x + y * y), "div"),
    ("length((x, y, 2.0))", lambda x, y: np.sqrt(x * x + y * y + 4), "div"),
    ("x * pi", lambda x, y: x * x.dtype.type(np.pi), "exact"),
    ("math.sqrt(abs(x)) + math.e * 0", lambda x, y: np.sqrt(np.abs(x)), "div"),
]


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize(("text", "expected", "kind"), FLOAT_FUNCTIONS, ids=lambda v: str(v)[:48])
def test_functions_of_floats(engine_id, text, expected, kind, dtype):
    with needs(dtype):
        x, y = X.astype(NUMPY[dtype]), Y.astype(NUMPY[dtype])
        if text.startswith(("pow(abs(x), y", "pow(x, floor")):
            x[x == 0] = 1  # 0 to a negative power is tested below
        with np.errstate(all="ignore"):
            answer = expected(x, y)
            if kind in ("exp", "trig", "pow"):  # NumPy's own f32 functions are not the nearest
                answer = expected(x.astype("<f8"), y.astype("<f8"))
        got = evaluate(expression(text), [x, y], dtype)
        assert_close(got, answer.astype(x.dtype), engine_id, kind)


def test_nan_spreads_through_min_and_max(engine_id):
    x = np.array([np.nan, 1, np.nan, -np.inf, np.inf, 2], "<f4")
    y = np.array([1, np.nan, np.nan, 5, 5, np.inf], "<f4")
    assert_close(evaluate(expression("min(x, y)"), [x, y], "f32"), np.minimum(x, y), engine_id)
    assert_close(evaluate(expression("max(x, y)"), [x, y], "f32"), np.maximum(x, y), engine_id)


def test_comparing_with_nan_is_false_except_not_equal(engine_id):
    x = np.array([np.nan, np.nan, 1, 1], "<f4")
    y = np.array([np.nan, 1, np.nan, 1], "<f4")
    for operator, expected in {
        "==": [0, 0, 0, 1], "!=": [1, 1, 1, 0], "<": [0, 0, 0, 0],
        "<=": [0, 0, 0, 1], ">": [0, 0, 0, 0], ">=": [0, 0, 0, 1],
    }.items():  # fmt: skip
        text = expression(f"int(x {operator} y)")
        assert evaluate(text, [x, y], "s32").tolist() == expected, operator


def test_isnan(engine_id):
    x = np.array([np.nan, 0, np.inf, -np.inf, 1e30], "<f4")
    assert evaluate(expression("int(isnan(x))"), [x, x], "s32").tolist() == [1, 0, 0, 0, 0]


def test_the_edges_of_float_functions(engine_id):
    x = np.array([0.0, -1.0, np.inf, np.nan], "<f4")
    cases = {
        "sqrt(x)": [0, np.nan, np.inf, np.nan],
        "log(x)": [-np.inf, np.nan, np.inf, np.nan],
        "exp(x)": [1, np.exp(-1), np.inf, np.nan],
        "floor(x)": [0, -1, np.inf, np.nan],
        "x / 0.0": [np.nan, -np.inf, np.inf, np.nan],
        "pow(x, 2.5)": [0, np.nan, np.inf, np.nan],
        "pow(x, 0.0)": [1, 1, 1, 1],
        "x * 1e38 * 1e38": [0, -np.inf, np.inf, np.nan],
    }
    for text, expected in cases.items():
        got = evaluate(f"def k(x):\n    return {text}", [x], "f32")
        assert_close(got, np.array(expected, "<f4"), engine_id, "exp")


def test_pow_of_negative_numbers(engine_id):
    x = np.array([-2, -2, -2, -8, -1, -0.5, 2, 0], "<f4")
    y = np.array([3, 2, 0.5, -1, 7, -3, -2, 3], "<f4")
    expected = np.array([-8, 4, np.nan, -0.125, -1, -8, 0.25, 0], "<f4")
    assert_close(evaluate(expression("pow(x, y)"), [x, y], "f32"), expected, engine_id, "pow")
    assert_close(evaluate(expression("x ** y"), [x, y], "f32"), expected, engine_id, "pow")


def test_round_takes_halves_to_the_even_neighbour(engine_id):
    x = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5, 1e7, 8388607.5], "<f4")
    assert_close(evaluate("def k(x):\n    return round(x)", [x], "f32"), np.rint(x), engine_id)


# functions of ints ----------------------------------------------------------------------------


def whole(x):
    """Floor division by, and remainder of, the second argument, as the language defines them."""
    return np.where(x == 0, 1, x).astype(x.dtype)


INT_FUNCTIONS = [
    ("x + y", lambda x, y: x + y),
    ("x - y", lambda x, y: x - y),
    ("x * y", lambda x, y: x * y),
    ("x * 3 + 7", lambda x, y: x * 3 + 7),
    ("x // y", lambda x, y: np.where(y == 0, 0, x // whole(y)).astype(x.dtype)),
    ("x % y", lambda x, y: np.where(y == 0, 0, x % whole(y)).astype(x.dtype)),
    ("x // 7", lambda x, y: x // 7),
    ("x % 7", lambda x, y: x % 7),
    ("x ** 2", lambda x, y: x * x),
    ("x & y", lambda x, y: x & y),
    ("x | y", lambda x, y: x | y),
    ("x ^ y", lambda x, y: x ^ y),
    ("~x", lambda x, y: ~x),
    ("x << 3", lambda x, y: x << 3),
    ("x >> 2", lambda x, y: x >> 2),
    ("x << (y & 15)", lambda x, y: x << (y & 15)),
    ("x >> (y & 15)", lambda x, y: x >> (y & 15)),
    ("min(x, y)", lambda x, y: np.minimum(x, y)),
    ("max(x, y)", lambda x, y: np.maximum(x, y)),
    ("clamp(x, 3, 100)", lambda x, y: np.clip(x, 3, 100)),
    ("sign(x)", lambda x, y: np.sign(x)),
    ("abs(x)", lambda x, y: np.abs(x)),
    ("x if x > y else y + 1", lambda x, y: np.where(x > y, x, y + 1)),
]


@pytest.mark.parametrize("dtype", ["s32", "u32", "s64"])
@pytest.mark.parametrize(("text", "expected"), INT_FUNCTIONS, ids=lambda v: str(v)[:40])
def test_functions_of_ints(engine_id, text, expected, dtype):
    with needs(dtype):
        ends = np.iinfo(NUMPY[dtype])
        some = [0, 1, 2, 3, 5, 7, 31, 100, 12345, ends.max, ends.max - 1]
        some += [-1, -2, -3, -7, -100, ends.min + 1] if ends.min else [ends.max // 2]
        x, y = np.meshgrid(np.array(some, NUMPY[dtype]), np.array(some, NUMPY[dtype]))
        x, y = x.ravel(), y.ravel()
        with np.errstate(all="ignore"):
            answer = expected(x, y).astype(x.dtype)
        assert_close(evaluate(expression(text), [x, y], dtype), answer, engine_id)


def test_the_most_negative_int(engine_id):
    low = -(2**31)
    x = np.array([low], "<i4")
    cases = {
        "-x": low, "abs(x)": low, "x // -1": low, "x % -1": 0, "x - 1": 2**31 - 1, "x * -1": low,
        "x // 0": 0, "x % 0": 0, "x // 2": -(2**30), "x >> 31": -1, "~x": 2**31 - 1,
    }  # fmt: skip
    for text, expected in cases.items():
        for form in (text, text.replace("-1", "y").replace("0", "y")):
            y = np.array([-1 if "-1" in text else 0], "<i4")
            if form == text and text in ("x // 0", "x % 0"):
                continue  # a constant zero divisor may be refused as a mistake
            assert evaluate(expression(form), [x, y], "s32").tolist() == [expected], form


def test_shift_amounts_are_taken_modulo_the_width(engine_id):
    x = np.array([1, 1, -8, -8], "<i4")
    y = np.array([33, -1, 33, 32], "<i4")
    assert evaluate(expression("x << y"), [x, y], "s32").tolist() == [2, -(2**31), -16, -8]
    assert evaluate(expression("x >> y"), [x, y], "s32").tolist() == [0, 0, -4, -8]
    unsigned, amount = np.array([2**32 - 8], "<u4"), np.array([1], "<u4")
    assert evaluate(expression("x >> y"), [unsigned, amount], "u32").tolist() == [2**31 - 4]


# casts ----------------------------------------------------------------------------------------

CASTS = [
    ("int(x)", "f32", [1.9, -1.9, 3e9, -3e9, np.nan, np.inf], "s32",
     [1, -1, 2**31 - 1, -(2**31), 0, 2**31 - 1]),
    ("s32(x)", "f32", [0.99, -0.99, 2147483520.0], "s32", [0, 0, 2147483520]),
    ("u32(x)", "f32", [1.9, -5.0, 3e9, 1e10, np.nan], "u32", [1, 0, 3000000000, 2**32 - 1, 0]),
    ("s64(x)", "f32", [1.5, -2.5, 1e19, -1e19, np.nan], "s64",
     [1, -2, 2**63 - 1, -(2**63), 0]),
    ("s64(x)", "f64", [2.0**53 + 2, 9.3e18], "s64", [2**53 + 2, 2**63 - 1]),
    ("int(x)", "f64", [1e300, -1e300, 7.999999999], "s32", [2**31 - 1, -(2**31), 7]),
    ("u32(x)", "s32", [-1, 7, -(2**31)], "u32", [2**32 - 1, 7, 2**31]),
    ("s32(x)", "u32", [2**32 - 1, 7, 2**31], "s32", [-1, 7, -(2**31)]),
    ("s64(x)", "u32", [2**32 - 1, 7], "s64", [2**32 - 1, 7]),
    ("s64(x)", "s32", [-1, 7], "s64", [-1, 7]),
    ("s32(x)", "s64", [2**32 + 5, -1, 2**31], "s32", [5, -1, -(2**31)]),
    ("u32(x)", "s64", [-1, 2**33 + 1], "u32", [2**32 - 1, 1]),
    ("float(x)", "s32", [16777217, -3, 2**31 - 1], "f32", [16777216.0, -3.0, 2147483648.0]),
    ("f32(x)", "u32", [2**32 - 1, 5], "f32", [4294967296.0, 5.0]),
    ("f64(x)", "s32", [16777217, -3], "f64", [16777217.0, -3.0]),
    ("f64(x)", "f32", [0.5, np.inf], "f64", [0.5, np.inf]),
    ("f32(x)", "f64", [1e300, 0.1, -1e-300], "f32", [np.inf, 0.1, 0.0]),
    ("int(bool(x))", "f32", [0.0, -0.0, 0.5, np.nan, -7.0], "s32", [0, 0, 1, 1, 1]),
    ("int(bool(x))", "s32", [0, 5, -1], "s32", [0, 1, 1]),
    ("float(x > 1)", "f32", [0.0, 2.0], "f32", [0.0, 1.0]),
    ("u8(x)", "f32", [1.4, 1.5, 2.5, -3.0, 300.0, np.nan, 254.5], "s32", [1, 2, 3, 0, 255, 0, 255]),
    ("u8(x)", "s32", [-5, 5, 500], "s32", [0, 5, 255]),
    ("like(x, 2.5)", "s32", [1, 2], "s32", [2, 2]),
    ("like(x, 1e12)", "u32", [1], "u32", [2**32 - 1]),
    ("like(x, x * 0.3)", "f32", [1.0], "f32", [np.float32(1) * np.float32(0.3)]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "dtype", "values", "out", "expected"),
    CASTS,
    ids=[f"{c[0]} of {c[1]} to {c[3]}" for c in CASTS],
)
def test_casts(engine_id, text, dtype, values, out, expected):
    with needs(dtype, out):
        x = np.array(values, NUMPY[dtype])
        got = evaluate(f"def k(x):\n    return {text}", [x], out)
        assert_close(got, np.array(expected, NUMPY[out]), engine_id)


def test_types_that_meet(engine_id):
    """A literal takes the type of what it meets; int and float give float."""
    x = np.array([7, -7], "<i4")
    assert evaluate(expression("x / 2"), [x, x], "f32").tolist() == [3.5, -3.5]
    assert evaluate(expression("x * 0.5"), [x, x], "f32").tolist() == [3.5, -3.5]
    assert evaluate(expression("x // 2"), [x, x], "s32").tolist() == [3, -4]
    mixed = "def k(x: s32, y: u32):\n    return x + y"
    got = evaluate(mixed, [np.array([-1], "<i4"), np.array([1], "<u4")], "u32")
    assert got.tolist() == [0]


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
    """A plain Python function over every element: how loops are checked."""
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


def test_the_bounds_of_a_loop_are_taken_once(engine_id):
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

    assert evaluate(source, [x], "s32", n=4).tolist() == (x + total(4, 2)).tolist()
    assert evaluate(source, [x], "s32", n=3, m=5).tolist() == (x + total(3, 5)).tolist()
    assert evaluate(source, [x], "s32", n=0).tolist() == x.tolist()


def test_a_variable_grows_from_int_to_float(engine_id):
    source = """
    def k(x):
        total = 0
        for i in range(4):
            total = total + x * 0.5
        return total
    """
    x = X.astype("<f4")
    assert_close(evaluate(source, [x], "f32"), x * 2, engine_id)


def test_a_variable_may_get_a_new_type_line_by_line(engine_id):
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
    assert evaluate(source, [x], "u32", mask=0xF000000F).tolist() == [0xF000000F, 6]


def test_changing_a_parameter_changes_only_that_run(engine_id):
    k = kernel("def k(x, *, s=1.0):\n    return x * s")
    x = X.astype("<f4")
    for s in (1.0, 0.5, -2.0, 1.0):
        assert_close(run(k, [x], x.shape, "f32", {"s": s}), (x * s).astype("<f4"), engine_id)


# position and shapes --------------------------------------------------------------------------


def test_position_along_one_axis_is_a_number(engine_id):
    k = kernel("def k(x):\n    return x + position()")
    assert run(k, [np.zeros(300, "<i4")], (300,), "s32").tolist() == list(range(300))


@pytest.mark.parametrize("shape", [(4, 5), (1, 7), (3, 1), (33, 65)])
def test_position_in_two_axes(engine_id, shape):
    source = "def k(x):\n    i, j = position()\n    return x + i * 1000 + j"
    i, j = np.indices(shape)
    got = run(kernel(source), [np.zeros(shape, "<i4")], shape, "s32")
    assert got.tolist() == (i * 1000 + j).tolist()


def test_position_in_three_axes_and_by_number(engine_id):
    source = "def k(x):\n    a, b, c = position()\n    return x + a * 100 + b * 10 + position(2)"
    a, b, c = np.indices((2, 3, 4))
    got = run(kernel(source), [np.zeros((2, 3, 4), "<i4")], (2, 3, 4), "s32")
    assert got.tolist() == (a * 100 + b * 10 + c).tolist()


def test_position_with_a_broadcast_input(engine_id):
    source = "def k(x, y):\n    i, j = position()\n    return x * 100 + y * 10 + i - j"
    x, y = np.arange(3, dtype="<i4")[:, None], np.arange(4, dtype="<i4")
    i, j = np.indices((3, 4))
    got = run(kernel(source), [x, y], (3, 4), "s32")
    assert got.tolist() == (x * 100 + y * 10 + i - j).tolist()


def test_a_kernel_without_inputs(engine_id):
    k = kernel("def k(*, first=5):\n    return first + position()")
    assert run(k, [], (4,), "s32").tolist() == [5, 6, 7, 8]
    assert run(k, [], (4,), "s32", {"first": -1}).tolist() == [-1, 0, 1, 2]


def test_shapes(engine_id):
    source = """
    def k(a: Array):
        h, w = shape(a)
        i, j = position()
        return a.shape[0] * 1000 + a.shape[1] * 100 + h * 10 + w + shape()[0] * 10000 + len(a)
    """
    got = run(kernel(source), [np.zeros((2, 3), "<i4")], (4, 1), "s32")
    assert got.tolist() == [[2 * 1000 + 3 * 100 + 20 + 3 + 40000 + 2]] * 4


# arrays ---------------------------------------------------------------------------------------


def test_arrays_are_read_at_any_index(engine_id):
    source = "def k(a: Array):\n    i, j = position()\n    return a[j, i]"
    a = np.arange(15, dtype="<f4").reshape(3, 5)
    assert run(kernel(source), [a], (5, 3), "f32").tolist() == a.T.tolist()


def test_an_index_past_the_end_is_clamped(engine_id):
    source = "def k(a: Array):\n    return a[position() - 3]"
    a = np.array([10, 20, 30], "<i4")
    got = run(kernel(source), [a], (10,), "s32")
    assert got.tolist() == [10, 10, 10, 10, 20, 30, 30, 30, 30, 30]
    source = "def k(a: Array, *, i=0, j=0):\n    return a[i, j]"
    a = np.arange(6, dtype="<i4").reshape(2, 3)
    for i, j in [(-9, 1), (9, 1), (1, -9), (1, 9), (2**31 - 1, -(2**31))]:
        expected = a[min(max(i, 0), 1), min(max(j, 0), 2)]
        assert run(kernel(source), [a], (1,), "s32", {"i": i, "j": j}).tolist() == [expected]


def test_arrays_of_every_dtype(engine_id):
    source = "def k(a: Array):\n    return a[2 - position()]"
    for dtype, name in NUMPY.items():
        with needs(dtype):
            a = np.array([1, 2, 250], name)
            assert run(kernel(source), [a], (3,), dtype).tolist() == [250, 2, 1]


def test_a_small_matrix_product(engine_id):
    @kernel
    def product(a: Array, b: Array):
        i, j = position()  # noqa: F821
        total = 0
        for n in range(a.shape[1]):
            total += a[i, n] * b[n, j]
        return total

    a = np.arange(12, dtype="<i4").reshape(3, 4)
    b = np.arange(20, dtype="<i4").reshape(4, 5) - 7
    assert run(product, [a, b], (3, 5), "s32").tolist() == (a @ b).tolist()


def test_arrays_beside_elements(engine_id):
    source = "def k(index, table: Array):\n    return table[index] + index"
    index = np.array([[0, 2], [1, 5]], "<i4")
    table = np.array([100, 200, 300], "<i4")
    got = run(kernel(source), [index, table], (2, 2), "s32")
    assert got.tolist() == [[100, 302], [201, 305]]


# pixels and images ----------------------------------------------------------------------------


def picture(shape, dtype, seed=9):
    random = np.random.default_rng(seed)
    if dtype == "u8":
        return random.integers(0, 256, shape, "u1")
    return (random.integers(-64, 320, shape) / 256).astype("<f4")


def load(image):
    """What a kernel sees of a stored image."""
    return image.astype("<f4") * np.float32(1 / 255) if image.dtype == np.uint8 else image


def store(values, dtype):
    """What is stored of what a kernel returns."""
    if dtype == "f32":
        return values.astype("<f4")
    return np.floor(np.clip(values, 0, 1) * np.float32(255) + np.float32(0.5)).astype("u1")


def moved(image, dx, dy):
    """The image read dx to the right and dy below, edges clamped."""
    h, w = image.shape[:2]
    rows, columns = np.clip(np.arange(h) + dy, 0, h - 1), np.clip(np.arange(w) + dx, 0, w - 1)
    return image[rows][:, columns]


IMAGE_SHAPES = [(5, 7), (5, 7, 1), (5, 7, 3), (5, 7, 4), (1, 1, 4), (2, 3, 3), (1, 9), (9, 1, 4)]


@pytest.mark.parametrize("dtype", ["u8", "f32"])
@pytest.mark.parametrize("shape", IMAGE_SHAPES, ids=str)
def test_an_image_read_at_an_offset(engine_id, shape, dtype):
    image = picture(shape, dtype)
    k = kernel("def k(img: Image, *, dx=0, dy=0):\n    return img[dx, dy]")
    for dx, dy in [(0, 0), (1, 0), (0, -1), (-2, 2), (100, -100), (2**31 - 1, -(2**31))]:
        got = run(k, [image], shape, dtype, {"dx": dx, "dy": dy})
        low, high = -(10**6), 10**6  # far beyond is the edge, whatever the distance
        expected = moved(image, min(max(dx, low), high), min(max(dy, low), high))
        assert_close(got, expected, engine_id)


@pytest.mark.parametrize("dtype", ["u8", "f32"])
@pytest.mark.parametrize("shape", IMAGE_SHAPES, ids=str)
def test_a_three_by_three_box(engine_id, shape, dtype):
    source = """
    def k(img: Image):
        total = img[0, 0] * 0
        for dy in range(-1, 2):
            for dx in range(-1, 2):
                total += img[dx, dy]
        return total * 0.125
    """
    image = picture(shape, dtype)
    total = sum(moved(load(image), dx, dy) for dy in (-1, 0, 1) for dx in (-1, 0, 1))
    got = run(kernel(source), [image], shape, dtype)
    assert_close(got, store(total * np.float32(0.125), dtype), engine_id, "program")


@pytest.mark.parametrize("dtype", ["u8", "f32"])
@pytest.mark.parametrize("channels", [3, 4])
def test_pixels_have_components_and_swizzles(engine_id, channels, dtype):
    image = picture((6, 5, channels), dtype)
    v = load(image)
    rgb, alpha = v[..., :3], v[..., 3] if channels == 4 else np.ones((6, 5), "<f4")
    cases = {
        "rgba(px.b, px.g, px.r, px.a)": np.dstack([v[..., 2], v[..., 1], v[..., 0], alpha]),
        "rgba(px.bgr, px.a)": np.dstack([v[..., 2], v[..., 1], v[..., 0], alpha]),
        "rgba(1.0 - px.rgb, px.a)": np.dstack([1 - rgb, alpha]),
        "rgba(px.rrr * 0.5 + px.ggg * 0.5, 1.0)": np.dstack(
            [(v[..., 0] + v[..., 1]) * 0.5] * 3 + [np.ones((6, 5))]
        ),
        "rgba(px.r, 0.25, 1.0, 0.5)": np.dstack(
            [v[..., 0]] + [np.full((6, 5), c) for c in (0.25, 1.0, 0.5)]
        ),
    }
    for text, expected in cases.items():
        k = kernel(f"def k(px: Pixel):\n    return {text}")
        got = run(k, [image], (6, 5, 4), dtype)
        assert_close(got, store(expected.astype("<f4"), dtype), engine_id, "program")


def test_every_byte_survives_a_pixel_kernel(engine_id):
    image = np.arange(256, dtype="u1").reshape(8, 8, 4)
    got = run(kernel("def k(px: Pixel):\n    return px"), [image], (8, 8, 4), "u8")
    assert got.tolist() == image.tolist()


def test_pixels_are_clamped_and_rounded_when_stored_as_bytes(engine_id):
    values = np.array([-1, 0, 0.001, 0.5, 0.999, 1, 7, np.nan, np.inf, -np.inf, 0.1], "<f4")
    image = values.reshape(1, 11)
    got = run(kernel("def k(px: Pixel):\n    return px"), [image], (1, 11), "u8")
    expected = store(np.nan_to_num(image, nan=0.0), "u8")
    assert got.tolist() == expected.tolist()


def test_a_gray_pixel_answers_to_every_colour(engine_id):
    image = picture((4, 6), "f32")
    source = "def k(px: Pixel):\n    return px * 8 + px.r + px.g * 2 + px.b * 4 + px.a * 16"
    got = run(kernel(source), [image], (4, 6), "f32")
    assert_close(got, image * 15 + 16, engine_id)


@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_a_number_returned_for_a_pixel_is_gray_and_opaque(engine_id, dtype):
    image = picture((4, 3, 4), dtype)
    got = run(kernel("def k(px: Pixel):\n    return px.g"), [image], (4, 3, 4), dtype)
    green = image[..., 1]
    opaque = np.full_like(green, 255 if dtype == "u8" else 1)
    assert_close(got, np.dstack([green, green, green, opaque]), engine_id)


def test_position_of_a_pixel_is_row_and_column(engine_id):
    source = "def k(px: Pixel):\n    y, x = position()\n    return rgba(y, x, px.r, 1.0)"
    image = picture((5, 7, 4), "f32")
    got = run(kernel(source), [image], (5, 7, 4), "f32")
    y, x = np.indices((5, 7)).astype("<f4")
    assert_close(got, np.dstack([y, x, image[..., 0], np.ones((5, 7), "<f4")]), engine_id)


def test_an_image_knows_its_size(engine_id):
    source = (
        "def k(img: Image):\n    return rgba(img.width, img.height, img.shape[0], img.shape[1])"
    )
    got = run(kernel(source), [picture((3, 5, 4), "f32")], (3, 5, 4), "f32")
    assert got.tolist() == [[[5, 3, 3, 5]] * 5] * 3


def test_two_pixel_inputs(engine_id):
    source = "def k(a: Pixel, b: Pixel, *, t=0.5):\n    return mix(a, b, t)"
    a, b = picture((4, 4, 4), "u8", 1), picture((4, 4, 4), "u8", 2)
    got = run(kernel(source), [a, b], (4, 4, 4), "u8", {"t": 0.25})
    expected = load(a) * np.float32(0.75) + load(b) * np.float32(0.25)
    assert_close(got, store(expected, "u8"), engine_id, "program")


def test_an_image_beside_an_array(engine_id):
    source = """
    def k(img: Image, weights: Array):
        total = 0.0
        for i in range(len(weights)):
            total += weights[i] * img[i - 1, 0].r
        return rgba(total, total, total, 1.0)
    """
    image = picture((4, 9, 4), "f32")
    weights = np.array([0.25, 0.5, 0.25], "<f4")
    red = image[..., 0]
    total = sum(w * moved(red, i - 1, 0) for i, w in enumerate(weights))
    got = run(kernel(source), [image, weights], (4, 9, 4), "f32")
    expected = np.dstack([total, total, total, np.ones_like(total)]).astype("<f4")
    assert_close(got, expected, engine_id, "program")


def test_an_image_is_not_its_own_output(engine_id):
    """Reading neighbours while writing them has no meaning; it is refused, or works on a copy."""
    image = picture((8, 8, 4), "u8")
    from dala.gpu.compute import from_array, to_array

    b = from_array(image.copy())
    k = kernel("def k(img: Image):\n    return img[1, 0]")
    try:
        run_kernel(k, [b], b)
    except dala.DalaError:
        assert np.array(to_array(b)).tolist() == image.tolist()
    else:
        assert np.array(to_array(b)).tolist() == moved(image, 1, 0).tolist()


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
