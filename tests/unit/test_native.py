# ruff: noqa: N803, RET504, F841
"""Errors in native code: the message, and the line it points at."""

from __future__ import annotations

import inspect
import subprocess
import sys
from typing import Any

import pytest

from dala.errors import KernelSyntaxError
from dala.gpu.compute.engines.cpu.native import compile_native, native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    T,
    f32,
    f64,
    hsum,
    i32,
    i64,
    independent,
    load,
    local,
    shuffle,
    static,
    store,
    table,
    u8,
    vec,
    view,
)

LIMIT = 3


def error_of(function: Any, **statics: Any) -> KernelSyntaxError:
    with pytest.raises(KernelSyntaxError) as caught:
        compile_native(native(function), **statics)
    return caught.value


def mixed(a: f32, b: f64) -> f32:
    return a + b


def bare_float(a: f32) -> f32:
    x = 0.5
    return a * x


def changes_type(n: i64) -> i64:
    n = f32(n)
    return n


def too_big(a: u8) -> u8:
    return a + 300


def whole_quotient(a: i64) -> i64:
    return a / 2


def float_bits(a: f32) -> f32:
    return a & a


def number_as_condition(a: i64) -> i64:
    if a:
        return 1
    return 2


def missing_result(a: i64) -> i64:
    if a > 3:
        return 1


def wrong_result(a: i64) -> f32:
    return a


def no_result(a: i64) -> None:
    return a


def unknown_name(a: i64) -> i64:
    return a + nowhere  # noqa: F821


def unknown_call(a: i64) -> i64:
    return sorted(a)


def text(a: i64) -> i64:
    b = "text"
    return b


def listed(a: i64) -> i64:
    b = [a]
    return b[0]


def handled(a: i64) -> i64:
    try:
        return a
    finally:
        pass


def starred(*a: i64) -> i64:
    return 1


def defaulted(a: i64 = 3) -> i64:
    return a


def untyped(a) -> i64:
    return a


def strange_type(a: str) -> i64:
    return a


def anything(a: Any) -> i64:
    return a


def any_array(a: Array[Any]) -> i64:
    return 1


def pair_argument(a: tuple[i64, i64]) -> i64:
    return 1


def stored_wrongly(a: Array[u8], v: f32) -> None:
    a[0] = v


def float_index(a: Array[u8], v: f32) -> u8:
    return a[v]


def loop_over_array(a: Array[u8]) -> i64:
    n = 0
    for _ in a:
        n += 1
    return n


def loop_with_else(n: i64) -> i64:
    for _ in range(n):
        pass
    else:
        n = 2
    return n


def step_of_nothing(n: i64) -> i64:
    for _ in range(0, n, 0):
        pass
    return n


def run_time_static(n: i64) -> i64:
    for _ in static(range(n)):
        pass
    return n


def big_local(n: i64) -> i64:
    a = local(f64, 40000)
    return i64(a[n])


def run_time_local(n: i64) -> i64:
    a = local(f64, n)
    return i64(a[n])


def writes_static(n: i64, *, taps: int) -> i64:
    taps = n
    return taps


def asserted(n: i64, *, taps: int) -> i64:
    assert taps % 2 == 1
    return n


def many_iterations(n: i64) -> i64:
    for _ in static(range(5000)):
        n += 1
    return n


def lanes(a: Array[f32]) -> f32:
    return load(a, 0, 4)[4]


def lane_mix(a: Array[f32]) -> f32:
    return hsum(load(a, 0, 4) + load(a, 0, 8))


def vector_condition(a: Array[f32]) -> f32:
    v = load(a, 0, 4)
    if v > 0:
        return a[0]
    return a[1]


def bad_shuffle(a: Array[f32]) -> None:
    v = load(a, 0, 2)
    store(a, 0, shuffle(v, v, (0, 4)))


def two_names(a: i64) -> i64:
    x, y, z = a, a
    return x


def array_to_number(a: Array[f32]) -> f32:
    a = 3
    return a


def re_viewed(a: Array[f32]) -> f32:
    a = view(a, i32, 0)
    return a[0]


def table_of_values(n: i64) -> i64:
    return table(i64, (1, n))[0]


def bad_option(n: i64) -> i64:
    for _ in independent(range(n), widht=3):
        pass
    return n


def argument_count(a: Array[f32]) -> f32:
    return load(a, 0)


def single_vec(a: f32) -> f32:
    return vec(a)[0]


def divided(n: i64) -> i64:
    return n + 3 // 0


CASES = {
    mixed: ("mixes f32 and f64", "a + b"),
    bare_float: ("type of 0.5 is unknown", "x = 0.5"),
    changes_type: ("'n' is i64 and cannot hold f32", "n = f32(n)"),
    too_big: ("300 does not fit u8", "a + 300"),
    whole_quotient: ("'/' takes floats, got i64", "a / 2"),
    float_bits: ("'&' does not take f32", "a & a"),
    number_as_condition: ("must be a bool, got i64", "if a:"),
    missing_result: ("can end without a result", "def missing_result"),
    wrong_result: ("the result must be f32, got i64", "return a"),
    no_result: ("has no result", "return a"),
    unknown_name: ("'nowhere' is not defined", "nowhere"),
    unknown_call: ("sorted cannot be called", "sorted"),
    text: ("'text' is not a number", "text"),
    listed: ("List is not supported", "[a]"),
    handled: ("Try is not supported", "try:"),
    starred: (r"cannot have \*args", "def starred"),
    defaulted: ("or default values", "def defaulted"),
    untyped: ("argument a needs a type", "def untyped"),
    strange_type: ("'str' is not a native type", "def strange_type"),
    anything: ("argument a needs a type", "def anything"),
    any_array: ("argument a needs a type", "def any_array"),
    pair_argument: ("argument a needs a type", "def pair_argument"),
    stored_wrongly: ("cannot store f32 in an array of u8", "a[0] = v"),
    float_index: ("expected an integer, got f32", "a[v]"),
    loop_over_array: (r"range\(...\)", "for _ in a"),
    loop_with_else: ("for ... else is not supported", "for _"),
    step_of_nothing: ("must not be 0", "range(0, n, 0)"),
    run_time_static: ("run-time values", "range(n)"),
    big_local: ("at most 262144 bytes, got 320000", "local"),
    run_time_local: ("must be a constant of at least 1", "local"),
    many_iterations: ("at most 4096 iterations, got 5000", "static"),
    lanes: ("lane 4 is out of range for 4 lanes", "[4]"),
    lane_mix: ("4 and 8 lanes", "load"),
    vector_condition: ("a single bool", "if v > 0"),
    bad_shuffle: ("lanes of both vectors", "shuffle"),
    two_names: ("expected 3 values", "x, y, z"),
    array_to_number: ("cannot become", "a = 3"),
    re_viewed: ("array of f32", "a = view"),
    table_of_values: ("constant numbers", "table"),
    bad_option: ("widht", "independent"),
    argument_count: ("lanes", "load"),
    single_vec: ("at least two scalars", "vec(a)"),
    divided: ("cannot compute this constant", "3 // 0"),
}


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_errors(function):
    reason, line = CASES[function]
    error = error_of(function)
    assert error.filename == __file__
    lines, first = inspect.getsourcelines(function)
    assert first <= (error.lineno or 0) < first + len(lines)
    assert line in lines[(error.lineno or 0) - first]
    with pytest.raises(KernelSyntaxError, match=reason):
        raise error


def test_errors_about_constants():
    assert "compile-time constant" in str(error_of(writes_static, taps=3))
    assert "assertion failed" in str(error_of(asserted, taps=4))
    compile_native(native(asserted), taps=5)
    assert "needs the constant taps" in str(error_of(asserted))
    assert "no constant named tap" in str(error_of(asserted, taps=3, tap=3))
    assert "taps must be a number, type, tuple or native function, got 'three'" in str(
        error_of(asserted, taps="three")
    )


@native
def round_and_round(n: i64) -> i64:
    return round_and_back(n)


@native
def round_and_back(n: i64) -> i64:
    return round_and_round(n - 1) if n > 0 else 0


@native
def countdown(n: i64, *, k: int) -> i64:
    return countdown(n - 1, k=k) if n > 0 else 0


@native
def wants(a: Array[T], n: i64, *, T: type, k: int) -> i64:
    return n + k


@native
def calls_wrongly(a: Array[f32], x: f32, *, how: int) -> i64:
    if how == 0:
        return wants(a, x, k=1)
    if how == 1:
        return wants(a, 3)
    if how == 2:
        return wants(a, k=3)
    if how == 3:
        return wants(a, 3, k=i64(x))
    return wants(a, LIMIT, T=u8, k=3)


def test_calls():
    with pytest.raises(KernelSyntaxError, match="calls itself with the same constants"):
        compile_native(round_and_round)
    with pytest.raises(KernelSyntaxError, match="calls itself with the same constants"):
        compile_native(countdown, k=3)
    reasons = [
        "must be i64, got f32",
        "needs the constant k",
        "expected 2 arguments .*, got 1",
        "compile-time",
        "of u8",
    ]
    for how, reason in enumerate(reasons):
        with pytest.raises(KernelSyntaxError, match=reason):
            compile_native(calls_wrongly, how=how)


def test_functions_without_a_source_file():
    scope: dict[str, Any] = {"i64": i64}
    exec("def f(n: i64) -> i64:\n    return n", scope)
    assert "source of this function is not available" in str(error_of(scope["f"]))


def test_importing_compiles_nothing():
    program = (
        "import sys, dala.gpu.compute.engines.cpu.native as n;"
        "from dala.gpu.compute.engines.cpu.native import names;"
        "print('llvmlite' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_options():
    assert native(fast=True)(mixed).fast
    assert "tests" in repr(native(mixed)) or "test_native" in repr(native(mixed))
