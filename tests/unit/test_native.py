# ruff: noqa: N803, RET504, F841
"""What native code refuses: the place and the reason are shown before anything is compiled."""

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


def refused(function: Any, **statics: Any) -> KernelSyntaxError:
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


def many_turns(n: i64) -> i64:
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
    bare_float: ("type of 0.5 is not known", "x = 0.5"),
    changes_type: ("'n' is i64 and cannot hold f32", "n = f32(n)"),
    too_big: ("300 does not fit u8", "a + 300"),
    whole_quotient: ("'/' divides floats", "a / 2"),
    float_bits: ("'&' is not for f32", "a & a"),
    number_as_condition: ("must be a bool, not i64", "if a:"),
    missing_result: ("ends without its result", "def missing_result"),
    wrong_result: ("the result is f32, not i64", "return a"),
    no_result: ("has no result", "return a"),
    unknown_name: ("'nowhere' is not known", "nowhere"),
    unknown_call: ("sorted cannot be called", "sorted"),
    text: ("'text' is no number", "text"),
    listed: ("List is not part", "[a]"),
    handled: ("Try is not part", "try:"),
    starred: (r"no \*args", "def starred"),
    defaulted: ("no default values", "def defaulted"),
    untyped: ("argument a needs a type", "def untyped"),
    strange_type: ("'str' is no type", "def strange_type"),
    anything: ("argument a needs a type", "def anything"),
    any_array: ("argument a needs a type", "def any_array"),
    pair_argument: ("argument a needs a type", "def pair_argument"),
    stored_wrongly: ("f32 is stored into an array of u8", "a[0] = v"),
    float_index: ("whole number is needed", "a[v]"),
    loop_over_array: (r"range\(...\)", "for _ in a"),
    loop_with_else: ("no else", "for _"),
    step_of_nothing: ("cannot be 0", "range(0, n, 0)"),
    run_time_static: ("values of the run", "range(n)"),
    big_local: ("262144 is the most", "local"),
    run_time_local: ("is a constant", "local"),
    many_turns: ("5000 turns", "static"),
    lanes: ("lane 4", "[4]"),
    lane_mix: ("4 and 8 lanes", "load"),
    vector_condition: ("one bool", "if v > 0"),
    bad_shuffle: ("within both vectors", "shuffle"),
    two_names: ("3 names", "x, y, z"),
    array_to_number: ("cannot become", "a = 3"),
    re_viewed: ("array of f32", "a = view"),
    table_of_values: ("constant numbers", "table"),
    bad_option: ("widht", "independent"),
    argument_count: ("lanes", "load"),
    single_vec: ("two scalars", "vec(a)"),
    divided: ("cannot be computed", "3 // 0"),
}


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_refusals(function):
    reason, line = CASES[function]
    error = refused(function)
    assert error.filename == __file__
    lines, first = inspect.getsourcelines(function)
    assert first <= (error.lineno or 0) < first + len(lines)
    assert line in lines[(error.lineno or 0) - first]
    with pytest.raises(KernelSyntaxError, match=reason):
        raise error


def test_refusals_with_constants():
    assert "compile-time constant" in str(refused(writes_static, taps=3))
    assert "does not hold" in str(refused(asserted, taps=4))
    compile_native(native(asserted), taps=5)
    assert "needs the constant taps" in str(refused(asserted))
    assert "no constant named tap" in str(refused(asserted, taps=3, tap=3))
    assert "taps is 'three'" in str(refused(asserted, taps="three"))


@native
def round_and_round(n: i64) -> i64:
    return round_and_back(n)


@native
def round_and_back(n: i64) -> i64:
    return round_and_round(n - 1) if n > 0 else 0


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
    with pytest.raises(KernelSyntaxError, match="would call itself"):
        compile_native(round_and_round)
    reasons = ["is i64, not f32", "needs the constant k", "1 arguments", "compile-time", "of u8"]
    for how, reason in enumerate(reasons):
        with pytest.raises(KernelSyntaxError, match=reason):
            compile_native(calls_wrongly, how=how)


def test_functions_without_a_file():
    scope: dict[str, Any] = {"i64": i64}
    exec("def f(n: i64) -> i64:\n    return n", scope)
    assert "cannot show the source" in str(refused(scope["f"]))


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
