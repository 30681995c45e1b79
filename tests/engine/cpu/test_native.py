# ruff: noqa: N803

"""The native language: operators, conversions and statements."""

from __future__ import annotations

import math
import platform

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dala.gpu.compute.engines.cpu.native import compile_native, native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    S,
    T,
    bits,
    ceil,
    exp,
    f32,
    f64,
    floor,
    fma,
    i32,
    i64,
    in_range,
    isnan,
    maximum,
    minimum,
    saturate,
    select,
    sqrt,
    u8,
    u32,
)
from dala.gpu.compute.engines.cpu.vector.types import BY_NAME

NUMPY = {
    "bool": np.bool_, "u8": np.uint8, "i8": np.int8, "u16": np.uint16, "i16": np.int16,
    "u32": np.uint32, "i32": np.int32, "u64": np.uint64, "i64": np.int64, "f32": np.float32,
    "f64": np.float64,
}  # fmt: skip


INTEGERS = ["u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64"]


X86 = platform.machine().lower() in ("x86_64", "amd64")


def wrapped(value: int, kind: str) -> int:
    info = np.iinfo(NUMPY[kind])
    width = info.bits
    value &= (1 << width) - 1
    return value - (1 << width) if info.min < 0 and value >> (width - 1) else value


# operators ----------------------------------------------------------------------------------------


@native
def operators(a: Array[T], b: Array[T], out: Array[T], *, T: type) -> None:
    x, y = a[0], b[0]
    out[0] = x + y
    out[1] = x - y
    out[2] = x * y
    out[3] = x // y
    out[4] = x % y
    out[5] = x & y
    out[6] = x | y
    out[7] = x ^ y
    out[8] = x << y
    out[9] = x >> y
    out[10] = -x
    out[11] = ~x
    out[12] = min(x, y)
    out[13] = max(x, y)
    out[14] = abs(x)
    out[15] = x // 3
    out[16] = x % 8
    out[17] = x // 8
    out[18] = x >> 2


@native
def comparisons(a: Array[T], b: Array[T], out: Array[bool], *, T: type) -> None:
    x, y = a[0], b[0]
    out[0] = x == y
    out[1] = x != y
    out[2] = x < y
    out[3] = x <= y
    out[4] = x > y
    out[5] = x >= y
    out[6] = not x < y
    out[7] = T(0) <= x < y
    out[8] = x < y and y > 0
    out[9] = x < y or y > 0
    out[10] = (x < y) ^ (y > 0)
    out[11] = bool(x)


@pytest.mark.parametrize("kind", INTEGERS)
def test_integers(kind):
    code = compile_native(operators, T=BY_NAME[kind])
    comparing = compile_native(comparisons, T=BY_NAME[kind])
    info = np.iinfo(NUMPY[kind])
    edges = [0, 1, 2, 7, info.max, info.min, info.max - 1, info.min + 1]
    numbers = st.sampled_from(edges) | st.integers(int(info.min), int(info.max))

    @settings(max_examples=60, deadline=None, database=None)
    @given(numbers, numbers)
    def check(x, y):
        a, b = np.array([x], NUMPY[kind]), np.array([y], NUMPY[kind])
        out = np.zeros(19, NUMPY[kind])
        code(a, b, out)
        expected = [
            x + y, x - y, x * y, x // y if y else 0, x % y if y else 0, x & y, x | y, x ^ y,
            x << (y % info.bits), x >> (y % info.bits), -x, ~x, min(x, y), max(x, y), abs(x),
            x // 3, x % 8, x // 8, x >> 2,
        ]  # fmt: skip
        assert out.tolist() == [wrapped(e, kind) for e in expected]
        told = np.zeros(12, np.bool_)
        comparing(a, b, told)
        assert told.tolist() == [
            x == y, x != y, x < y, x <= y, x > y, x >= y, not x < y, 0 <= x < y,
            x < y and y > 0, x < y or y > 0, (x < y) != (y > 0), x != 0,
        ]  # fmt: skip

    check()


@native
def float_operators(a: Array[T], b: Array[T], out: Array[T], *, T: type) -> None:
    x, y = a[0], b[0]
    out[0] = x + y
    out[1] = x - y
    out[2] = x * y
    out[3] = x / y
    out[4] = -x
    out[5] = min(x, y)
    out[6] = max(x, y)
    out[7] = minimum(x, y)
    out[8] = maximum(x, y)
    out[9] = floor(x)
    out[10] = ceil(x)
    out[11] = round(x)
    out[12] = sqrt(x)
    out[13] = abs(x)
    out[14] = select(x < y, x, y)
    out[15] = T(1) if isnan(x) else T(0)


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_floats(kind):
    code = compile_native(float_operators, T=BY_NAME[kind])
    comparing = compile_native(comparisons, T=BY_NAME[kind])
    width = 32 if kind == "f32" else 64
    numbers = st.floats(width=width) | st.sampled_from([0.0, -0.0, 0.5, 1.5, 2.5, -0.5])

    @settings(max_examples=60, deadline=None, database=None)
    @given(numbers, numbers)
    def check(p, q):
        a, b = np.array([p], NUMPY[kind]), np.array([q], NUMPY[kind])
        out = np.zeros(16, NUMPY[kind])
        code(a, b, out)
        x, y = a[0], b[0]
        with np.errstate(all="ignore"):
            expected = [
                x + y, x - y, x * y, x / y, -x, y if y < x else x, y if y > x else x,
                np.minimum(x, y), np.maximum(x, y), np.floor(x), np.ceil(x), np.round(x),
                np.sqrt(x), abs(x), x if x < y else y, np.isnan(x),
            ]  # fmt: skip
        np.testing.assert_array_equal(out, np.array(expected, NUMPY[kind]))
        told = np.zeros(12, np.bool_)
        comparing(a, b, told)
        assert told.tolist() == [
            x == y, x != y, x < y, x <= y, x > y, x >= y, not x < y, 0 <= x < y,
            x < y and y > 0, x < y or y > 0, (x < y) != (y > 0), x != 0,
        ]  # fmt: skip

    check()


@native
def functions(a: Array[T], b: Array[T], out: Array[T], n: i64, *, T: type) -> None:
    for i in range(n):
        out[2 * i] = exp(a[i])
        out[2 * i + 1] = fma(a[i], b[i], T(1))


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_math_functions(kind):
    rng = np.random.default_rng(3)
    a = rng.uniform(-3, 3, 50).astype(NUMPY[kind])
    b = rng.uniform(0.1, 5, 50).astype(NUMPY[kind])
    out = np.zeros((50, 2), NUMPY[kind])
    compile_native(functions, T=BY_NAME[kind])(a, b, out, 50)
    wide, other = a.astype(np.float64), b.astype(np.float64)
    expected = np.stack([np.exp(wide), wide * other + 1], axis=1)
    tolerance = 3e-7 if kind == "f32" else 2e-15
    np.testing.assert_allclose(out, expected, rtol=tolerance, atol=tolerance)


# conversions --------------------------------------------------------------------------------------


@native
def convert(a: Array[S], out: Array[T], clamped: Array[T], *, S: type, T: type) -> None:
    out[0] = T(a[0])
    clamped[0] = saturate(T, a[0])


@pytest.mark.parametrize("target", [*INTEGERS, "f32", "f64", "bool"])
@pytest.mark.parametrize("source", ["u8", "i16", "u32", "i64", "u64", "f32", "f64"])
def test_conversions(source, target):
    code = compile_native(convert, S=BY_NAME[source], T=BY_NAME[target])
    floating = source in ("f32", "f64")
    values = [0, 1, 127, 200, 70000, -1, -129, 1 << 31, (1 << 63) - 1, -(1 << 63)]
    values += [2.9, -2.9, 255.5, 1e30, -1e30, math.inf, math.nan] if floating else []
    for value in values:
        if not floating and not np.can_cast(np.min_scalar_type(value), NUMPY[source]):
            continue
        a = np.array([value], NUMPY[source])
        out, clamped = np.zeros(1, NUMPY[target]), np.zeros(1, NUMPY[target])
        code(a, out, clamped)
        x = a[0].item()
        if target == "bool":
            assert out[0] == (x != 0)
        elif target in ("f32", "f64"):
            with np.errstate(over="ignore"):
                np.testing.assert_array_equal(out, a.astype(NUMPY[target]))
        else:
            info = np.iinfo(NUMPY[target])
            least, most = int(info.min), int(info.max)
            whole = 0 if x != x else x if abs(x) == math.inf else int(x)
            saturated = int(max(least, min(most, whole)))
            assert clamped[0] == saturated
            assert out[0] == (saturated if floating else wrapped(int(x), target))


@native
def narrowing(a: Array[f32], out: Array[i32], raw: Array[u32]) -> None:
    out[0] = in_range(i32, a[0])
    raw[0] = bits(u32, a[0])
    a[1] = bits(f32, raw[0])


def test_bits_and_in_range():
    a, out, raw = np.array([-7.75, 0], np.float32), np.zeros(1, np.int32), np.zeros(1, np.uint32)
    compile_native(narrowing)(a, out, raw)
    assert out[0] == -7
    assert raw[0] == a[:1].view(np.uint32)[0]
    assert a[1] == a[0]


# statements ---------------------------------------------------------------------------------------


@native
def collatz(n: i64) -> i64:
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n //= 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


@native
def ranges(first: i64, last: i64, out: Array[i64], *, step: int) -> i64:
    count = 0
    i = -1
    for i in range(first, last, step):
        out[count] = i
        count += 1
    return count * 1000 + i


@native
def searching(a: Array[i32], wanted: i32) -> tuple[i64, bool]:
    seen = 0
    for i in range(len(a)):
        if a[i] < 0:
            continue
        if a[i] == 99:
            break
        seen += 1
        if a[i] == wanted:
            return seen, True
    return seen, False


@native
def classified(x: f32) -> i32:
    if x != x:
        return 0
    elif x < 0:
        if x < -10:
            return -2
        return -1
    elif x == 0:
        return 5
    else:
        pass
    while True:
        x = x / 2
        if x < 1:
            break
    return i32(x * 8)


def test_while():
    code = compile_native(collatz)

    def python(n):
        steps = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        return steps

    assert [code(n) for n in range(1, 60)] == [python(n) for n in range(1, 60)]


@pytest.mark.parametrize("step", [1, 2, 7, -1, -3])
def test_ranges(step):
    code = compile_native(ranges, step=step)
    for first, last in [(0, 10), (3, 3), (-5, 6), (10, 0), (9, -4)]:
        out = np.zeros(32, np.int64)
        told = code(first, last, out)
        expected = list(range(first, last, step))
        assert out[: len(expected)].tolist() == expected
        assert told == len(expected) * 1000 + (expected[-1] if expected else -1)


@native
def stepped(n: i64, step: i64) -> i64:
    total = 0
    for i in range(0, n, step):
        total += i
    return total


def test_run_time_step():
    code = compile_native(stepped)
    assert code(20, 3) == sum(range(0, 20, 3))
    assert code(20, 0) == sum(range(20))  # a run-time step is at least 1


def test_break_continue_return():
    code = compile_native(searching)
    a = np.array([3, -1, 5, 7, 99, 8], np.int32)
    assert code(a, 5) == (2, True)
    assert code(a, 8) == (3, False)
    assert code(a[:2], 9) == (1, False)


def test_early_returns():
    code = compile_native(classified)
    values = [math.nan, -20.0, -2.0, 0.0, 1.0, 6.0]
    assert [code(v) for v in values] == [0, -2, -1, 5, 4, 6]


@native
def conditional(a: Array[f32], i: i64, n: i64) -> f32:
    first = a[i] if i < n else f32(-1)
    if i < n and a[i] > 0 and a[i] < 10:
        first += 100
    if i >= n or a[i] < 0:
        first += 1000
    unset = f32(0)
    if first > 0:
        later = f32(2)
        unset = later
    return first + unset + later


def test_short_circuit():
    """The checked build would refuse a read past the end."""
    code = compile_native(conditional, checked=True)
    a = np.array([5.0, -3.0, 20.0], np.float32)
    assert code(a, 0, 3) == 5 + 100 + 4
    assert code(a, 1, 3) == -3 + 1000 + 4
    assert code(a, 2, 3) == 20 + 4
    assert code(a, 3, 3) == -1 + 1000 + 4


@native
def swapped(a: i64, b: i64) -> tuple[i64, i64]:
    a, b = b, a
    return a, b


@native
def declared(x: u8) -> f64:
    half: f64 = 0.5
    flag: bool = x > 3
    if flag:
        return half * f64(x) * math.pi
    return -half


def test_assignments():
    assert compile_native(swapped)(3, 4) == (4, 3)
    assert compile_native(declared)(8) == 4 * math.pi
    assert compile_native(declared)(1) == -0.5
