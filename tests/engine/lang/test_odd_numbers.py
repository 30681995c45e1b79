"""Infinities, NaN, signed zeros and the ends of integer ranges: alike on every engine.

Also the front end's own arithmetic: a function of constants gives what it gives at run time.
"""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.gpu import compute
from tests.support.engines import NUMPY, evaluate
from tests.support.tolerances import assert_close

VALUES = {
    "f32": [
        0,
        -0.0,
        1,
        -1,
        0.5,
        -2.5,
        np.inf,
        -np.inf,
        np.nan,
        3e9,
        -3e9,
        1e20,
        3.4e38,
        7.3,
        255.5,
    ],
    "f64": [0, -0.0, 1, -2.5, np.inf, -np.inf, np.nan, 3e9, -1e20, 1e300, 7.3],
    "s32": [0, 1, -1, 2**31 - 1, -(2**31), 46341, 7, -7, 31, 32, 33],
    "u32": [0, 1, 2**31 - 1, 2**31, 2**32 - 1, 65536, 7, 31, 32, 33],
    "s64": [0, 1, -1, 2**63 - 1, -(2**63), 2**31, 2**32, 7, -7, 63, 64],
}

EXPRESSIONS = {
    "f32": [
        "x % step(1e10, 0.0)", "x // step(1e10, 0.0)", "x % 0.0", "x // 0.0", "x % inf", "x % x",
        "floor(inf) + x", "round(nan) + x", "ceil(-inf) - x", "fract(inf) + x", "tanh(inf) * x",
        "clamp(x, nan, 1.0)", "clamp(x, 0.0, 1.0)", "min(x, 0.0)", "max(x, 0.0)", "min(nan, x)",
        "max(min(x * 2.0, 1.0), 0.0)", "smoothstep(0.0, 0.0, x)", "smoothstep(0.0, 1.0, x)",
        "1.0 if x == x else 2.0", "1.0 if x != x else 2.0", "x ** 0.5", "pow(x, -0.5)",
        "pow(x, 0.0)", "sign(x)", "x * (0.0 if True else 1.0)", "float(int(x * 1e10))",
        "float(u32(x))", "x / round(-0.4)", "x / ceil(-0.4)",
    ],
    "f64": ["x % step(1e300, 0.0)", "floor(inf) + x", "clamp(x, 0.0, 1.0)", "pow(x, 0.5)"],
    "s32": ["-x", "x // 0", "x % 0", "x // -1", "x % -1", "x << 33", "x >> 33", "x << -x"],
    "u32": ["-x", "-x // 3", "x - 1", "x << 33", "x % (x - x)", "~x", "abs(x)", "u32(-1) + x"],
    "s64": ["-x", "x // -1", "x % 0", "x << 65", "x * x", "abs(x)"],
}  # fmt: skip


@pytest.mark.parametrize("dtype", EXPRESSIONS)
def test_odd_numbers(engine_id, dtype):
    if dtype not in compute.supported_dtypes():
        with pytest.raises(dala.UnsupportedDtype):
            compute.buffer_zeros((1,), dtype)
        return
    x = np.array(VALUES[dtype]).astype(NUMPY[dtype])
    for expression in EXPRESSIONS[dtype]:
        source = f"def f(x):\n    return {expression}\n"
        got = evaluate(source, [x], dtype)
        with dala.device("reference"):
            expected = evaluate(source, [x], dtype)
        try:
            assert_close(got, expected, engine_id, "pow")
        except AssertionError as error:
            raise AssertionError(f"{expression}: {error}") from None


def test_negated_u32_wraps(engine_id):
    got = evaluate("def f(x):\n    return -x\n", [np.array([0, 1, 2**31], "<u4")], "u32")
    assert got.tolist() == [0, 2**32 - 1, 2**31]


NUMBERS = ["inf", "-inf", "nan", "0.0", "-0.0", "0.25", "-0.25", "2.5", "-2.5", "1e30", "7.0"]
UNARY = ["floor", "ceil", "round", "fract", "sign", "abs", "tanh", "atan", "-", "isnan"]
BINARY = [
    "min({}, {})", "max({}, {})", "({}) % ({})", "({}) // ({})", "({}) + ({})", "({}) * ({})",
    "step({}, {})", "atan2({}, {})", "clamp({}, {}, 1.0)", "float(({}) < ({}))",
]  # fmt: skip


def outcome(source: str, *arrays: np.ndarray) -> np.ndarray | None:
    try:
        return evaluate(source, arrays, "f32")
    except dala.KernelSyntaxError:
        return None  # constants without a finite value are refused


def check_folding(template: str, texts: tuple[str, ...]) -> None:
    names = ("a", "b")[: len(texts)]
    arrays = [np.array([float(t)], "<f4") for t in texts]
    signature = ", ".join(names)
    with dala.device("reference"):
        folded = outcome(f"def f({signature}):\n    return {template.format(*texts)}\n", *arrays)
        run = outcome(f"def f({signature}):\n    return {template.format(*names)}\n", *arrays)
    if folded is None:
        return
    assert run is not None
    same_sign = np.isnan(run) | (np.signbit(folded) == np.signbit(run))
    close = np.isclose(folded, run, rtol=1e-6, equal_nan=True)
    assert (same_sign & close).all(), f"{template} of {texts}: {folded} folded, {run} at run time"


@pytest.mark.parametrize("name", UNARY)
def test_folding_one_constant(name):
    for number in NUMBERS:
        check_folding(f"{name}({{}})", (number,))


@pytest.mark.parametrize("template", BINARY)
def test_folding_two_constants(template):
    for a in NUMBERS:
        for b in NUMBERS:
            check_folding(template, (a, b))


def ifs(count: int, body: str) -> str:
    lines = [f"    if x > {n}.5:\n        {body}\n" for n in range(count)]
    return f"def f(x):\n{''.join(lines)}    return x\n"


def test_hundreds_of_ifs_in_a_row():
    with dala.device("reference"):
        got = evaluate(ifs(600, "x += 1.0"), [np.array([0.0, 0.75, 1000.0], "<f4")], "f32")
    assert got.tolist() == [0.0, 600.75, 1600.0]


def test_if_with_a_constant_condition_hundreds_of_times():
    text = "def f(x):\n" + "    if 1 > 0:\n        x += 1.0\n" * 600 + "    return x\n"
    with dala.device("reference"):
        assert evaluate(text, [np.array([0.5], "<f4")], "f32").tolist() == [600.5]


def test_deepest_blocks(engine_id):
    """Each if that returns nests what follows; some drivers compute nonsense beyond a depth."""
    text = "def f(x):\n"
    for n in range(63):
        text += f"    if x > {63 - n}.0:\n        return {n}.0\n"
    text += "    return x\n"
    got = evaluate(text, [np.array([0.25, 5.5, 62.5, 700.0], "<f4")], "f32")
    assert got.tolist() == [0.25, 58.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (ifs(65, "return 1.0"), "line 130: blocks are nested more than 64 deep"),
        (ifs(600, "return 1.0"), "line 130: blocks are nested more than 64 deep"),
        (
            "def f(x):\n"
            + "".join("    " * (n + 1) + f"for i{n} in range(2):\n" for n in range(11))
            + "    " * 12
            + "x += 1.0\n    return x\n",
            "line 12: loops are nested more than 10 deep",
        ),
    ],
)
def test_depth_is_limited(text, problem):
    with pytest.raises(dala.KernelSyntaxError, match=problem), dala.device("reference"):
        evaluate(text, [np.zeros(1, "<f4")], "f32")


def test_return_from_inner_loop_ends_the_outer_one(engine_id):
    text = """def f(x):
    for i in range(3):
        for j in range(3):
            if x < float(i * 3 + j):
                return float(i * 10 + j)
    return -1.0
"""
    got = evaluate(text, [np.array([0.5, 4.5, 9.0], "<f4")], "f32")
    assert got.tolist() == [1.0, 12.0, -1.0]


@pytest.mark.parametrize(
    "text",
    [
        "a\ud800b",
        "def f(x):\n    # \udc80\n    return x",
        "def f(x):\n    '''\ud800'''\n    return x",
        "def f(x):\n    é = '\ud800'\n    return x",
        "def f(\udfff):\n    return 1.0",
    ],
)
def test_lone_surrogates_in_kernel_text(text):
    with pytest.raises(dala.KernelSyntaxError, match="is half of a pair") as caught:
        compute.kernel(text)
    str(caught.value).encode()
    assert "^" in str(caught.value)


def test_annotations_as_text_are_read_with_care():
    for text in ("\\ud800", "Within[int, " + "-" * 5000 + "1, 2]", "(" * 100, "\\0"):
        with pytest.raises(dala.KernelSyntaxError):
            compute.kernel(f"def f(x, *, a: '{text}' = 1):\n    return x")


def test_errors_with_lone_surrogates_can_be_printed():
    with pytest.raises(dala.DalaError) as caught:
        compute.Kernel.register("a\ud800", "def f(x): return x")
    str(caught.value).encode()
    error = dala.ParameterError("call: got \udc80.")
    assert str(error) == "call: got \\udc80."
    assert str(error.within("\udc81")) == "\\udc81: got \\udc80."
