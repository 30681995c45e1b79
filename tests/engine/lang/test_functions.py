"""Functions, operators and casts of the language, on each engine, compared with NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.support.engines import NUMPY, evaluate, needs
from tests.support.tolerances import assert_close


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
    ("(abs(x) + 1) ** -2", lambda x, y: (np.abs(x) + 1) ** -2.0, "pow"),
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
    ("atan(x, y)", lambda x, y: np.arctan2(x, y), "trig"),
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
@pytest.mark.parametrize(
    ("text", "expected", "kind"), FLOAT_FUNCTIONS, ids=[c[0] for c in FLOAT_FUNCTIONS]
)
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


def test_round_of_f64_is_exact_at_every_size(engine_id):
    with needs("f64"):
        halves = np.array([0, 1, 2, 2.0**31, 2.0**51 - 2, 2.0**51 - 1, 2.0**52 - 1, 2.0**53]) + 0.5
        x = np.concatenate([halves, np.nextafter(halves, 0), [0.0, 0.25, 1e300, np.inf, np.nan]])
        x = np.concatenate([x, -x])
        got = evaluate("def k(x):\n    return round(x)\n", [x], "f64")
        assert got.tobytes() == np.rint(x).tobytes()


def test_min_and_max_propagate_nan(engine_id):
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


POWERS = {
    "a constant": ("3.0 / (1.0 + exp(x))", lambda e, x: 3 / (1 + e)),
    "the other order": ("-1.0 / (exp(x) + 1.0)", lambda e, x: -1 / (e + 1)),
    "a large constant": ("1e20 / (1.0 + exp(x))", lambda e, x: 1e20 / (1 + e)),
    "not a constant": ("x / (1.0 + exp(x))", lambda e, x: x / (1 + e)),
    "not one": ("1.0 / (2.0 + exp(x))", lambda e, x: 1 / (2 + e)),
}


@pytest.mark.parametrize("case", POWERS)
def test_divisions_by_a_sum_with_a_power(engine_id, case):
    text, expected = POWERS[case]
    x = np.concatenate(
        [[-np.inf, np.inf, np.nan, -200, 200, 88.9, 88.6], np.linspace(-95, 95, 191)]
    ).astype("f4")
    got = evaluate(f"def k(x):\n    return {text}\n", [x], "f32")
    with np.errstate(all="ignore"):
        wide = x.astype("f8")
        power = np.exp(wide).astype("f4").astype("f8")  # infinite from 88.8 on
        wanted = expected(power, wide).astype("f4")
    assert_close(got, wanted, engine_id, "exp")


def test_a_power_that_is_used_again_after_its_variable_changed(engine_id):
    text = """
def k(x):
    y = x
    e = exp(y)
    if x > 0:
        y = y + 1
    return 1.0 / (1.0 + e) + y + 0.5 * e
"""
    x = np.linspace(-4, 4, 33).astype("f4")
    wide = x.astype("f8")
    wanted = 1 / (1 + np.exp(wide)) + np.where(wide > 0, wide + 1, wide) + 0.5 * np.exp(wide)
    assert_close(evaluate(text, [x], "f32"), wanted.astype("f4"), engine_id, "exp")


def test_pow_of_negative_numbers(engine_id):
    x = np.array([-2, -2, -2, -8, -1, -0.5, 2, 0], "<f4")
    y = np.array([3, 2, 0.5, -1, 7, -3, -2, 3], "<f4")
    expected = np.array([-8, 4, np.nan, -0.125, -1, -8, 0.25, 0], "<f4")
    assert_close(evaluate(expression("pow(x, y)"), [x, y], "f32"), expected, engine_id, "pow")
    assert_close(evaluate(expression("x ** y"), [x, y], "f32"), expected, engine_id, "pow")


def test_round_halves_to_even(engine_id):
    x = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5, 1e7, 8388607.5], "<f4")
    assert_close(evaluate("def k(x):\n    return round(x)", [x], "f32"), np.rint(x), engine_id)


# functions of ints ----------------------------------------------------------------------------


def whole(x):
    """Return floor division and remainder as the language defines them."""
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
@pytest.mark.parametrize(("text", "expected"), INT_FUNCTIONS, ids=[c[0] for c in INT_FUNCTIONS])
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


def test_shift_amounts_are_modulo_the_width(engine_id):
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


def test_type_promotion(engine_id):
    """A literal takes the type of the other operand; int and float give float."""
    x = np.array([7, -7], "<i4")
    assert evaluate(expression("x / 2"), [x, x], "f32").tolist() == [3.5, -3.5]
    assert evaluate(expression("x * 0.5"), [x, x], "f32").tolist() == [3.5, -3.5]
    assert evaluate(expression("x // 2"), [x, x], "s32").tolist() == [3, -4]
    mixed = "def k(x: s32, y: u32):\n    return x + y"
    got = evaluate(mixed, [np.array([-1], "<i4"), np.array([1], "<u4")], "u32")
    assert got.tolist() == [0]


#: Functions of literals alone, and their values.
LITERALS = {
    "length((2.0, 1.0))": math.hypot(2, 1),
    "length(0.1, 0.2, 0.3)": math.sqrt(0.1 * 0.1 + 0.2 * 0.2 + 0.3 * 0.3),
    "sqrt(2.0)": math.sqrt(2),
    "sqrt(2)": math.sqrt(2),
    "pow(2.0, 0.3)": 2.0**0.3,
    "3 ** 0.5": 3**0.5,
    "exp(1.1) + log(3) * sin(0.3)": math.exp(1.1) + math.log(3) * math.sin(0.3),
    "atan2(0.1, 0.3) + atan(7) - tan(0.2)": math.atan2(0.1, 0.3) + math.atan(7) - math.tan(0.2),
    "tanh(0.3) * cos(0.7)": math.tanh(0.3) * math.cos(0.7),
    "smoothstep(0.1, 0.7, 0.3)": (t := (0.3 - 0.1) / (0.7 - 0.1)) * t * (3 - 2 * t),
    "mix(0.1, 0.7, 0.3)": 0.1 * (1 - 0.3) + 0.7 * 0.3,
    "dot((0.1, 0.2), (0.3, 0.4))": 0.1 * 0.3 + 0.2 * 0.4,
}


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_functions_of_literals_are_exact_in_every_type(engine_id, dtype):
    """They are folded once, with all digits, and no engine computes them in f32."""
    x = np.zeros(3, NUMPY[dtype])
    with needs(dtype):
        for text, value in LITERALS.items():
            got = evaluate(f"def f(x):\n    return x + ({text})\n", [x], dtype)
            np.testing.assert_array_equal(got, np.full(3, value, NUMPY[dtype]), text)
