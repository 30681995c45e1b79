"""Loops whose length differs between positions run on vectors, and compute what single ones do."""

from __future__ import annotations

import time

import numpy as np
import pytest

import dala
from dala.errors import CommandTimeout
from dala.gpu.compute import buffer_zeros, from_array, kernel
from dala.gpu.compute.engines.cpu import engine
from dala.gpu.compute.engines.cpu.llvm.masked import MaskedLoops

PIXELS = {
    "while": """
def f(px: Pixel):
    a, n = px.r, 0
    while n < 40 and a * a < 0.9:
        a = a * 1.1 + px.g * 0.02 + 0.001
        n += 1
    return rgba(a, n / 40.0, px.b, px.a)
""",
    "break and continue": """
def f(px: Pixel):
    total, last = 0.0, 0
    for i in range(30):
        last = i
        if px.r * 30 < i:
            break
        if int(px.g * 7) == i % 7:
            continue
        total = total + px.b * i
        if total > 9.0:
            total = total - 9.0
            if px.a > 0.5:
                total = total + sin(total)
                break
    return rgba(total / 12, last / 30.0, px.b, 1.0)
""",
    "lengths, steps and the index after": """
def f(px: Pixel):
    y, x = position()
    s, i = 0.0, 0
    for i in range(x % 5, x % 11 + y, 3):
        s = s + i
    for k in range(y % 7, x % 3 - 4, -2):
        s = s + k * 0.5
    return rgba(s / 50, i / 40.0, px.b, px.a)
""",
    "loops in loops": """
def f(px: Pixel):
    s, n = 0.0, int(px.r * 5)
    for i in range(n):
        for j in range(4):
            if j > i:
                break
            k = 0
            while k < j + int(px.g * 3):
                k += 1
                if k == 3:
                    continue
                s = s + px.b * k
                if s > 6.0:
                    break
        if s > 7.5:
            break
    return rgba(s / 8, n / 5.0, px.b, px.a)
""",
    "returns of functions": """
def g(a, b):
    for i in range(25):
        if a > b:
            return a - i * 0.01
        a = a * 1.2 + 0.01
    return 0.25

def f(px: Pixel):
    return rgba(g(px.r, 0.9), g(px.g, px.r), g(px.b, 2.0), px.a)
""",
    "images": """
def f(img: Image):
    y, x = position()
    u, v, s = x * 1.0, y * 1.0, vec3(0.0, 0.0, 0.0)
    for i in range(12):
        c = img.sample(u, v)
        s = s + c.rgb * 0.1
        if c.r > 0.8 or u > 30.0:
            break
        u = u + c.g * 3 - 1
        v = v + img[i, -i].b * 2 - 1
    return rgba(s, 1.0)
""",
    "uniform branches": """
def f(px: Pixel, *, n: int = 5, on: bool = True):
    s, i = 0.0, 0
    while s < px.r * 4:
        if on:
            s = s + 0.3
            if n > 4 and i > 6:
                break
            if px.b > 0.9:
                break
        else:
            s = s + px.a
        for k in range(n):
            if k > 3:
                break
            s = s + px.g * 0.1 + 0.05
        i += 1
    return rgba(s / 5, i / 9.0, px.b, px.a)
""",
}


def made(device: str, program, array: np.ndarray, dtype: str) -> np.ndarray:
    with dala.device(device):
        out = buffer_zeros(array.shape, dtype)
        program.run([from_array(array)], out, {})
        return out.numpy()


def vectors(program) -> bool:
    return "vector.reduce.or" in program.source("llvm")


@pytest.mark.parametrize("name", PIXELS)
@pytest.mark.parametrize("shape", [(9, 37, 4), (3, 16, 3), (5, 5, 1)])
def test_pictures(name, shape):
    program = kernel(PIXELS[name])
    assert vectors(program)
    array = np.random.default_rng(7).integers(0, 256, shape, np.uint8)
    assert np.array_equal(
        made("cpu", program, array, "u8"), made("reference", program, array, "u8")
    )


@pytest.mark.parametrize("name", PIXELS)
def test_floats(name):
    """As code that counts iterations, position by position."""
    program = kernel(PIXELS[name])
    array = np.random.default_rng(3).random((6, 21, 4), np.float32)
    with dala.limits(iterations=1_000_000):
        single = made("cpu", program, array, "f32")
    assert np.array_equal(made("cpu", program, array, "f32"), single)


COLLATZ = kernel("""
def collatz(x: s32, a: Array):
    n = 0
    while x > 1 and n < 500:
        x = x // 2 if x % 2 == 0 else 3 * x + 1
        n += int(a[n % 3, x % 4])
    return n
""")


def test_arrays_and_integers():
    assert vectors(COLLATZ)
    x, a = np.arange(1, 1000, dtype=np.int32), np.arange(1, 13, dtype=np.float32).reshape(3, 4)
    found = [
        COLLATZ(from_array(x, device=d), from_array(a, device=d)) for d in ("cpu", "reference")
    ]
    assert np.array_equal(*(b.numpy() for b in found))


def test_in_place():
    """The last vector of a row repeats its last element, and must not compute it twice."""
    halves = kernel("def halves(x):\n    while x > 1.0:\n        x = x * 0.5\n    return x + 1.0")
    assert vectors(halves)
    values = np.linspace(0, 99, 41, dtype=np.float32)
    held = from_array(values, device="cpu")
    halves.run([held], held, {})
    expected = halves(from_array(values, device="reference")).numpy()
    assert np.array_equal(held.numpy(), expected)


def test_endless_loops_end():
    endless = kernel("""
def endless(px: Pixel):
    v = px.r
    while v < 2.0:
        v = v * 0.5
    return rgba(v, v, v, 1.0)
""")
    assert vectors(endless)
    array = np.zeros((64, 64, 4), np.uint8)
    begin = time.monotonic()
    with pytest.raises(CommandTimeout), dala.limits(time=0.2):
        made("cpu", endless, array, "u8")
    assert time.monotonic() - begin < 5


SAMPLED = kernel("""
def f(img: Image, *, a=0.9, b=0.4, c=-7.5):
    y, x = position()
    u, v = a * x - b * y + c, b * x + a * y + c * 0.5
    return img.sample(u, v) * 0.5 + img.sample(v, u, edge="mirror") * 0.5
""")


@pytest.mark.parametrize(
    "shape",
    [
        (2, 2, 4),
        (9, 37, 4),
        (40, 70, 4),
        (2, 2, 3),
        (9, 37, 3),
        (40, 70, 3),
        (1, 9, 4),
        (9, 1, 4),
        (1, 1, 4),
    ],
)
@pytest.mark.parametrize(
    "turn", [(0.9, 0.4, -7.5), (1.0, 0.0, 0.25), (-3e9, 1e9, 5.0), (0.0, 0.0, 1e30)]
)
def test_samples(shape, turn):
    """Four pixels at a time, also where they cross the edges, and of images of one row."""
    assert "load i64" in SAMPLED.source("llvm")
    array = np.random.default_rng(7).integers(0, 256, shape, np.uint8)
    params = dict(zip("abc", turn, strict=True))
    found = []
    for device in ("cpu", "reference"):
        out = buffer_zeros(shape, "u8", device=device)
        SAMPLED.run([from_array(array, device=device)], out, params)
        found.append(out.numpy())
    assert np.array_equal(*found)


@pytest.mark.parametrize("spare", [-1, 0])
def test_inputs_with_more_places_than_32_bits_count_are_read_one_by_one(monkeypatch, spare):
    array = np.random.default_rng(3).integers(0, 256, (6, 11, 4), np.uint8)
    moved = kernel(SAMPLED.source().replace("* 0.5 +", f"* {0.25 + spare / 8} +"))
    expected, tried = made("reference", moved, array, "u8"), []
    monkeypatch.setattr(MaskedLoops, "useful", lambda loops, vector: tried.append(vector))
    monkeypatch.setattr(engine, "MAX_PLACES", array.size + spare)
    assert np.array_equal(made("cpu", moved, array, "u8"), expected)
    assert bool(tried) == (spare == 0)
