# ruff: noqa: N803

"""The native language: constants, and calls of functions."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
import pytest

from dala.errors import KernelSyntaxError
from dala.gpu.compute.engines.cpu.native import OutOfBounds, compile_native, native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    Record,
    T,
    f32,
    f64,
    i8,
    i32,
    i64,
    load,
    static,
    u8,
)

WEIGHTS = (1, 2, 4, 2, 1)


GAIN = 3


# constants ----------------------------------------------------------------------------------------


@native
def filtered(
    a: Array[f32], out: Array[f32], start: i64, end: i64, *, taps: int, edge: bool
) -> None:
    half = static(taps // 2)
    for i in range(start, end):
        acc = f32(0)
        for k in static(range(taps)):
            if edge:
                at = max(min(i + k - half, len(a) - 1), 0)
            else:
                at = i + k
            acc += a[at] * WEIGHTS[k]
        out[i] = acc * GAIN


@pytest.mark.parametrize("taps", [1, 3, 5])
def test_specialization(taps):
    a = np.arange(20, dtype=np.float32) ** 2
    out = np.zeros(20, np.float32)
    compile_native(filtered, taps=taps, edge=True)(a, out, 0, 20)
    at = np.clip(np.arange(20)[:, None] + np.arange(taps) - taps // 2, 0, 19)
    np.testing.assert_array_equal(out, (a[at] * WEIGHTS[:taps]).sum(1) * 3)
    text = compile_native(filtered, taps=taps, edge=False).text
    assert text.count("fmul float") == taps + 1
    assert "smax" not in text


@native
def unrolled(x: i64) -> i64:
    total = 0
    for k in static((5, 1, 7, 2, 9)):
        if k == 1:
            continue
        if x == k:
            break
        if k < x:
            continue
        total += k
    for name in static((i8, f64)):
        total += i64(name(1))
    return total


def test_unrolling_with_break_and_continue():
    code = compile_native(unrolled)

    def python(x):
        total = 0
        for k in (5, 1, 7, 2, 9):
            if k == 1:
                continue
            if x == k:
                break
            if k < x:
                continue
            total += k
        return total + 2

    assert [code(x) for x in range(12)] == [python(x) for x in range(12)]


@native
def apply(a: Array[f32], *, step: Any) -> f32:
    return step(a[0], 2.0)


@native
def plus(a: f32, b: f32) -> f32:
    return a + b


@native
def times(a: f32, b: f32) -> f32:
    return a * b


def test_functions_as_constants():
    a = np.array([5], np.float32)
    assert compile_native(apply, step=plus)(a) == 7
    assert compile_native(apply, step=times)(a) == 10


# calls --------------------------------------------------------------------------------------------


@native
def lerp(a: Any, b: Any, t: Any) -> Any:
    return a + (b - a) * t


@native
def summed(a: Array[T], *, T: type) -> T:
    total = T(0)
    for i in range(len(a)):
        total += a[i]
    return total


@native
def both_ends(a: Array[T], *, T: type) -> tuple[T, T]:
    return a[0], a[len(a) - 1]


@native
def calling(a: Array[f32], b: Array[i32], out: Array[f32]) -> None:
    out[0] = summed(a[1:])
    out[1] = f32(summed(b))
    first, last = both_ends(a)
    out[2] = lerp(first, last, f32(0.5))
    out[3] = summed(a[1:3], T=f32)
    v = lerp(load(a, 0, 4), load(a, 1, 4), f32(0.25))
    out[4] = v[3]


def test_calls():
    a, b = np.array([1, 2, 4, 8, 16], np.float32), np.array([7, -3], np.int32)
    out = np.zeros(5, np.float32)
    compile_native(calling)(a, b, out)
    assert out.tolist() == [30, 4, 8.5, 6, 10]


@native(inline=False)
def apart(a: Array[f32], i: i64) -> f32:
    return a[i] * 2


@native
def calls_apart(a: Array[f32], n: i64) -> f32:
    acc = f32(0)
    for i in range(n):
        acc += apart(a, i)
    return acc


def test_function_without_inlining():
    code = compile_native(calls_apart)
    assert code(np.arange(5, dtype=np.float32), 5) == 20
    assert re.search(r"define internal float @apart.1\([^)]*\) noinline", code.text)


@native
def halving(a: Array[i64], i: i64, *, n: int) -> i64:
    if n == 1:
        return a[i]
    return halving(a, i, n=n // 2) + halving(a, i + n // 2, n=n - n // 2)


def test_recursion_over_constants():
    a = np.arange(100, dtype=np.int64)
    assert compile_native(halving, n=13)(a, 5) == a[5:18].sum()


# constants that calls pass on -----------------------------------------------------------------
@native
def scaled_by(x: i64, *, factor: int, more: int = 10) -> i64:
    return x * factor + more


@native
def pass_on(a: Array[T], out: Array[i64], *, factor: int, more: int) -> None:
    out[0] = scaled_by(i64(a[0]))
    out[1] = scaled_by(i64(a[0]), factor=2)
    out[2] = scaled_by(i64(a[0]), more=more)


def test_calls_pass_constants_on_unless_given_or_declared_with_a_default():
    out = np.zeros(3, np.int64)
    compile_native(pass_on, T=u8, factor=3, more=1)(np.array([5], np.uint8), out)
    assert out.tolist() == [25, 20, 16]


def test_a_type_variable_is_a_constant_that_compiling_needs():
    with pytest.raises(KernelSyntaxError, match="pass_on needs the constant T"):
        compile_native(pass_on, factor=3, more=1)


# records and groups -------------------------------------------------------------------------------
class Box(Record, fields={"left": i32, "right": i32, "weight": f32}, size=4):
    """Two numbers and a float, and a word that nothing uses."""


class Sums(NamedTuple):
    out: Array[f32]
    at: i64


class Both(NamedTuple):
    sums: Sums
    box: Box


@native(inline=False)
def add_box(both: Both) -> None:
    both.sums.out[both.sums.at] += f32(both.box.right - both.box.left) * both.box.weight
    both.box.left, both.box.weight = 0, f32(1)
    both.box.right += 1


@native
def add_boxes(boxes: Array[i32], out: Array[f32], count: i64) -> None:
    for n in range(count):
        sums = Sums(out, n)
        add_box(Both(sums, Box(boxes, n)))


@native
def first_right(box: Box) -> i32:
    found: i32 = box.right
    return found


def test_records_and_groups():
    boxes = np.zeros((3, 4), np.int32)
    boxes[:, 0], boxes[:, 1], boxes[:, 3] = 2, (5, 6, 7), 99
    boxes[:, 2] = np.array([0.5, 2, 3], np.float32).view(np.int32)
    out = np.zeros(3, np.float32)
    compile_native(add_boxes, checked=True)(boxes.reshape(-1), out, 3)
    assert out.tolist() == [1.5, 8, 15]
    assert boxes[:, [0, 1, 3]].tolist() == [[0, 6, 99], [0, 7, 99], [0, 8, 99]]
    assert (boxes[:, 2].view(np.float32) == 1).all()
    assert compile_native(first_right)(boxes[1]) == 7
    with pytest.raises(OutOfBounds):
        compile_native(add_boxes, checked=True)(boxes.reshape(-1)[:-1].copy(), out, 3)


@native
def no_such_field(box: Box) -> i32:
    return box.top  # type: ignore[no-any-return]


@native
def too_few(out: Array[f32]) -> None:
    sums = Sums(out)  # type: ignore[call-arg]
    sums.out[0] = f32(1)


@native
def not_a_group(out: Array[f32]) -> None:
    add_box(out)


@native
def another_type(out: Array[f32], *, n: int) -> f32:
    return Box(out, n).weight  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("function", "constants", "problem"),
    [
        (no_such_field, {}, "Box has no 'top'"),
        (too_few, {}, r"Sums\(...\) takes out, at"),
        (not_a_group, {}, "add_box: argument both must be a Both, got an array of f32"),
        (another_type, {"n": 0}, r"Box\(...\) takes an array of i32 and a number"),
    ],
)
def test_mistakes_with_records_and_groups(function, constants, problem):
    with pytest.raises(KernelSyntaxError, match=problem):
        compile_native(function, **constants)
