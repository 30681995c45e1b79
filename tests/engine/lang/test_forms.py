"""While loops, matrices, parts of vectors, tables, list parameters and tuples, on each engine."""

from __future__ import annotations

import re

import numpy as np
import pytest

import dala
from dala.errors import KernelSyntaxError, LimitExceeded, ParameterError
from dala.gpu.compute import buffer, buffer_zeros, kernel
from dala.gpu.compute.lang import ir
from dala.gpu.compute.lang.functions import FUNCTIONS

X = np.array([0.5, 2, 5, 100], "<f4")


def run(text: str, *inputs: np.ndarray, **params: object) -> list[float]:
    return np.asarray(kernel(text)(*(inputs or (X,)), **params)).tolist()


def test_while(engine_id):
    text = """
def halvings(x):
    n = 0
    while x > 1 and n < 100:
        n += 1
        if n == 2:
            continue
        x = x / 2
        if n > 6:
            break
    return n + x
"""

    def expected(x: float) -> float:
        n = 0
        while x > 1 and n < 100:
            n += 1
            if n == 2:
                continue
            x = x / 2
            if n > 6:
                break
        return n + x

    assert run(text) == [expected(float(x)) for x in X]


def test_while_true_is_left_by_return(engine_id):
    text = """
def collatz(x):
    n = int(x)
    turns = 0
    while True:
        if n <= 1:
            return float(turns)
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        turns += 1
"""
    assert run(text, np.array([1, 2, 7, 27], "<f4")) == [0, 1, 16, 111]


def test_nested_while(engine_id):
    text = """
def triangle(x):
    total, i = (0, 0)
    while i < x:
        j = 0
        while j <= i:
            total += 1
            j += 1
        i += 1
    return float(total)
"""
    assert run(text) == [1, 3, 15, 5050]


def test_an_endless_loop_is_ended_by_limits(engine_id):
    text = "def forever(x):\n    while x < 1e30:\n        x = x * 1.0\n    return x\n"
    with dala.limits(iterations=1000), pytest.raises(LimitExceeded):
        kernel(text)(buffer([1.0, 2.0])).read_list()


def test_matrices(engine_id):
    made = kernel("""
def products(x, *, n: int):
    m = mat3(2, x * 0, 1, 1, 3, 0, 0, 1, 4.0)
    k = mat3(1, 2, 3, 0, 1, 4, 5, 6, 0.5)
    a = mat2((1, 2), (3, x))
    p = m @ k
    v = m @ (1, 2, 3)
    w = (1, 2, 3) @ m
    i = inverse(m) @ m
    t = transpose(p)
    o = outerProduct((1, 2), (3, 4.0))
    c = matrixCompMult(a, a) + a * 2
    big = mat4(m)
    return [
        p[1].x, p[2][0], v.x, v.z, w.x, w.z, i[0].x, i[1].x, t[0].y, determinant(m),
        determinant(a), o[1].x, c[1].y, mat2(5.0)[0].y, big[3].w, big[2].z, (m * (1, 2, 3)).y,
        determinant(big * 1.0), (a - a)[0].x, mat2(big)[1].y,
    ][n]
""")
    m = np.array([[2, 0, 1], [1, 3, 0], [0, 1, 4]]).T
    k = np.array([[1, 2, 3], [0, 1, 4], [5, 6, 0.5]]).T
    p, v, w = m @ k, m @ [1, 2, 3], np.array([1, 2, 3]) @ m
    x = 4.0
    expected = [
        p[0, 1], p[0, 2], v[0], v[2], w[0], w[2], 1, 0, p[0, 1], np.linalg.det(m), x - 6, 4,
        x * x + 2 * x, 0, 1, m[2, 2], v[1], np.linalg.det(m), 0, m[1, 1],
    ]  # fmt: skip
    got = [made(np.array([x], "<f4"), n=n)[0] for n in range(len(expected))]
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6)


def test_inverse_of_every_size(engine_id):
    given = np.random.default_rng(3).normal(size=(4, 4)).astype("<f4")
    for size in (2, 3, 4):
        numbers = given[:size, :size]
        text = ", ".join(str(v) for v in numbers.T.ravel())
        made = kernel(
            f"def inverted(x, *, c: int, r: int):\n    return inverse(mat{size}({text}) * x)[c][r]"
        )
        one = np.ones(1, "<f4")
        got = [[made(one, c=c, r=r)[0] for c in range(size)] for r in range(size)]
        np.testing.assert_allclose(got, np.linalg.inv(numbers), rtol=2e-4, atol=2e-4)


def test_parts_are_written(engine_id):
    text = """
def parts(x):
    v = vec4(1, 2, 3, 4.0)
    v.xz = (x, 10)
    v.y += 5
    v[3] = v.x
    i = int(x) % 4
    v[i] *= 2
    m = mat2(1, 2, 3, 4.0)
    m[1].x = x
    m[0] = (7, 8)
    t = [v.x, v.y, v.z]
    t[i] = 100
    return dot(v, (1, 10, 100, 1000)) + m[1].x + m[0].y + t[0] + t[1] + t[2]
"""

    def expected(x: float) -> float:
        v = [x, 7.0, 10.0, x]
        v[int(x) % 4] *= 2
        t = v[:3]
        if int(x) % 4 < 3:
            t[int(x) % 4] = 100
        return float(np.dot(v, [1, 10, 100, 1000])) + x + 8 + sum(t)

    assert run(text) == [expected(float(x)) for x in X]


def test_parts_of_pixels_are_written(engine_id):
    made = kernel("""
def swap(px: Pixel):
    px.rb = px.br
    px.g = 1
    return px
""")
    given = np.array([[[255, 0, 9, 255]]], np.uint8)
    assert np.asarray(made(given)).tolist() == [[[9, 255, 255, 255]]]


def test_tables(engine_id):
    text = """
def looked_up(x):
    table = [1, 4, 9, 16, 25]
    points = [(0.5, 1), (x, 2), (3, 4)]
    total = points[int(x)].x
    for i in range(len(table)):
        total += table[i] * (i + 1)
    return total + table[int(x) - 1] + table[-1]
"""
    table = [1, 4, 9, 16, 25]
    points = [lambda x: 0.5, lambda x: x, lambda x: 3]
    weighted = sum(v * (i + 1) for i, v in enumerate(table))
    expected = [
        points[min(int(x), 2)](float(x)) + weighted + table[min(max(int(x) - 1, 0), 4)] + 25
        for x in X
    ]
    assert run(text) == expected


def test_list_parameters(engine_id):
    text = """
def weighted(x, *, weights: list[float] = (1, 2, 3), shift: Within[list[int], 0, 9] = (0,)):
    total = 0.0
    for i in range(len(weights)):
        total += weights[i] * (i + 1)
    return x * total + shift[0] + len(shift)
"""
    assert run(text) == (X * 14 + 1).tolist()
    assert run(text, weights=[2]) == (X * 2 + 1).tolist()
    assert run(text, weights=np.ones(10), shift=(9, 9)) == (X * 55 + 11).tolist()
    for weights in ([], 3, "a", [1, None], [0.0] * 257):
        with pytest.raises(ParameterError, match="weights must be a list of numbers"):
            run(text, weights=weights)
    with pytest.raises(ParameterError, match="shift must be a list of ints from 0 to 9"):
        run(text, shift=[10])


def test_tuples_hold_different_things(engine_id):
    text = """
def hit(x):
    if x > 3:
        return ((x, 1, 2), 5, mat2(1.0))
    return ((1, x, 2), 6, mat2(2.0))

def shaded(x):
    normal, distance, turn = hit(x)
    pair = (normal, normal.xy)
    n, xy = pair
    a, b = (n.xy, xy * 2) if x > 1 else (xy, n.xy)
    return n.x + 10 * n.y + 100 * distance + 1000 * turn[1].y + b.x
"""

    def expected(x: float) -> float:
        nx, ny, d, t = (x, 1, 5, 1) if x > 3 else (1, x, 6, 2)
        return nx + 10 * ny + 100 * d + 1000 * t + nx * (2 if x > 1 else 1)

    assert run(text) == [expected(float(x)) for x in X]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("v = (1, 2)\n    v.z = 3\n    return v.x", "a vector of 2 has no component 'z'"),
        ("v = (1, 2)\n    v.xy = 3\n    return v.x", "cannot assign 3 to 2 components"),
        ("v = (1, 2)\n    v[2] = 3\n    return v.x", "the index of a component must be below 2"),
        ("v = (1, 2)\n    return v[0.5]", "an index requires integers, got 0.5"),
        ("x[0] = 1\n    return x", "only arrays, images and vectors can be indexed"),
        ("m = mat2(1, 2, 3)\n    return m[0].x", "mat2 takes 4 numbers, got 3"),
        ("return (mat2(1) @ (1, 2, 3)).x", "a 2x2 matrix @ a vector of 3 has no product"),
        ("return ((1, 2) @ (1, 2)).x", "a vector of 2 @ a vector of 2 has no product"),
        ("return sin([x, x])", "this takes numbers, vectors or matrices of one size"),
        ("t = [x, 1]\n    return t + 1", "this takes numbers, vectors or matrices of one size"),
        ("t = (mat2(1), x)\n    return t[int(x)]", "the index of a tuple must be a number"),
        ("if mat2(1):\n        x = 1\n    return x", "a 2x2 matrix cannot be a condition"),
        ("return cross((x, 1), (1, 2)).x", "cross: a vector of 2 has no component 'z'"),
        ("return noise(x, 1, 2, 3)", "noise takes no 4 numbers"),
        ("return fbm(x, octave=2)", "fbm has no parameter 'octave'"),
        ("return asin(x, x)", "asin takes 1 arguments, got 2"),
        ("return normalize()", "normalize takes 1 arguments, got 0"),
    ],
)
def test_refusals(body, problem):
    with pytest.raises(KernelSyntaxError, match=re.escape(problem)) as caught:
        kernel(f"def wrong(x):\n    {body}\n")(buffer([1.0], device="reference"))
    assert "wrong" in str(caught.value)


def test_storing_into_an_array_is_refused():
    made = kernel("def stores(a: Array):\n    a[0] = 1.0\n    return a[0]")
    with pytest.raises(KernelSyntaxError, match="a kernel cannot store into an array"):
        made(buffer([1.0], device="reference"), out=buffer_zeros((1,), device="reference"))


def test_many_items_of_big_lists_are_bounded():
    nested = "[" + ", ".join(["mat4(x)"] * 256) + "]"
    reads = " + ".join(f"t[int(x) + {i}][0].x" for i in range(8))
    with pytest.raises(KernelSyntaxError, match="more than 20,000 operations"):
        kernel(f"def big(x):\n    t = {nested}\n    return {reads}")(
            buffer([1.0], device="reference")
        )


#: The operations of the IR. None of them stores: kernels of strangers reach no memory but reads of
#: their inputs, which are clamped.
OPERATIONS = {
    "const", "param", "position", "dim", "element", "pixel", "image", "array", "get", "add", "sub",
    "mul", "neg", "div", "idiv", "mod", "and", "or", "xor", "not", "shl", "shr", "eq", "ne", "lt",
    "le", "gt", "ge", "select", "min", "max", "abs", "floor", "ceil", "round", "sqrt", "exp",
    "log", "sin", "cos", "tan", "atan", "atan2", "pow", "isnan", "cast", "bits",
}  # fmt: skip


def test_the_ir_has_no_operation_that_stores():
    assert set(re.findall(r"[a-z0-9]+", ir.__doc__ or "")) >= OPERATIONS
    seen = set()
    for name, row in FUNCTIONS.items():
        if name in ("position", "shape", "len") or row.joined:
            continue
        arguments = ", ".join(["x"] * row.least)
        for text in (f"{name}({arguments})", f"{name}((x, x, x), (x, 1, 1))"):
            try:
                made = kernel(f"def one(x):\n    v = {text}\n    return x")
                program = made.source("ir")
            except (KernelSyntaxError, dala.DalaError):
                continue
            seen |= set(re.findall(r"= (\w+)\.", program))
    assert seen <= OPERATIONS
