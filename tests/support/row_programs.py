"""Kernels for every form of a row on the CPU engine, and helpers for their tests."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, settings

import dala
from dala.gpu.compute import buffer_zeros, kernel
from dala.gpu.compute.engines.base import Task, Tensor
from tests.support.engines import run
from tests.support.tolerances import assert_close


# The same examples in every run, so that a failure is always a change in the code.
def fixed(examples):
    return settings(
        derandomize=True, database=None, deadline=None, max_examples=examples,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip


#: Programs for every form of a row, by name: (source, inputs, parameters).
SOURCES = {
    "alike": ("def k(px: Pixel, *, v=0.1): return rgba(px.rgb * 1.5 - v, px.a)", 1, {"v": 0.25}),
    "mixed": ("def k(px: Pixel): return rgba(px.g, px.b, px.r * 0.5 + px.g * 0.25, px.a)", 1, {}),
    "matrix": ("def k(px: Pixel): return rgba(mix(px.rgb, px.gbr, 0.3), px.a)", 1, {}),
    "all four": ("def k(px: Pixel): return rgba(1.0 - px.rgb, 1.0 - px.a)", 1, {}),
    "stencil": (
        "def k(img: Image, *, a=0.5):\n"
        "    c = img[0, 0]\n"
        "    return rgba(c.rgb + (c.rgb - img[-2, 1].rgb) * a - img[3, -1].rgb * 0.1, c.a)",
        1, {},
    ),
    "mixed stencil": (
        "def k(img: Image):\n"
        "    return rgba(img[1, 0].g, img[0, 1].r, img[-1, -1].b - img[0, 0].r, img[0, 2].a)",
        1, {},
    ),
    "bytes": (
        "def k(img: Image):\n"
        "    low = min(img[-1, 0].rgb, img[1, 0].rgb)\n"
        "    return rgba(max(low, img[0, -2].rgb), img[0, 0].a)", 1, {},
    ),
    "bytes in a loop": (
        "def k(img: Image, *, r: int = 1):\n"
        "    low = img[0, 0].rgb\n"
        "    for dy in range(-r, r + 1):\n"
        "        for dx in range(-r, r + 1):\n"
        "            low = min(low, img[dx, dy].rgb)\n"
        "    return rgba(low, img[0, 0].a)", 1, {"r": 3},
    ),
    "table": ("def k(px: Pixel, *, g=0.45): return rgba(pow(px.rgb, g), px.a)", 1, {}),
    "branches": (
        "def k(px: Pixel, *, edge=0.5):\n"
        "    v = px.r\n"
        "    if px.g > edge:\n"
        "        v = px.b * 0.5\n"
        "        if px.b > 0.25:\n"
        "            v = v + 0.125\n"
        "    else:\n"
        "        v = v * 0.75\n"
        "    return rgba(v, px.g, px.b, px.a)", 1, {},
    ),
    "place": (
        "def k(px: Pixel):\n"
        "    y, x = position()\n"
        "    h, w = shape()\n"
        "    return rgba(px.r * 0.5 + x / (w * 2.0), px.g * 0.5 + y / (h * 2.0), px.b, px.a)",
        1, {},
    ),
    "loop": (
        "def k(img: Image, *, r: int = 1, s=2.0):\n"
        "    total = img[0, 0].rgb * 0.0\n"
        "    weights = 0.0\n"
        "    for dy in range(-r, r + 1):\n"
        "        for dx in range(-r, r + 1):\n"
        "            w = exp(float(dx * dx + dy * dy) / -s)\n"
        "            total += img[dx, dy].rgb * w\n"
        "            weights += w\n"
        "    return rgba(total / weights, img[0, 0].a)", 1, {"r": 4},
    ),
    "whole numbers": (
        "def k(px: Pixel):\n"
        "    v = int(px.r * 255.0)\n"
        "    d = int(px.g * 7.0) - 3\n"
        "    return rgba((v // d) / 255.0, (v % d + 8) / 64.0, ((v << 1) ^ 5) / 600.0, px.a)",
        1, {},
    ),
    "steps": (
        "def k(px: Pixel, *, n=8.0):\n"
        "    return rgba(floor(px.rgb * 8.0) * 0.1, px.a)", 1, {},
    ),
    "shared work": (
        "def k(img: Image, *, a=0.7):\n"
        "    def luma(px): return dot(px.rgb, (0.299, 0.587, 0.114))\n"
        "    x = luma(img[-1, 0]) - luma(img[1, 0]) + luma(img[-1, 1]) - luma(img[1, 1])\n"
        "    y = luma(img[0, -1]) - luma(img[0, 2]) + luma(img[1, -2])\n"
        "    v = sqrt(x * x + y * y) * a\n"
        "    return rgba(v, v * 0.5, img[0, 1].b, img[0, 0].a)", 1, {},
    ),
    "weights": (
        "def k(a: Pixel, b: Image, *, t=0.4):\n"
        "    near = b[1, 0].rgb + b[-2, 0].rgb + b[0, -1].rgb\n"
        "    return rgba(0.1 - (near * t - a.rgb / (t + 1.0)) + b[1, 2].rgb * 0.3, a.a)", 2, {},
    ),
    "box": (
        "def k(img: Image):\n"
        "    total = img[0, 0].rgb * 0.0\n"
        "    for dy in range(-1, 2):\n"
        "        for dx in range(-1, 2):\n"
        "            total += img[dx, dy].rgb\n"
        "    return rgba(total / 9.0, img[0, 0].a)", 1, {},
    ),
    "two": (
        "def k(a: Pixel, b: Image, *, t=0.5):\n"
        "    return rgba(a.rgb * t + b[1, 1].rgb * (1.0 - t), a.a * b[0, 0].a)", 2, {},
    ),
}  # fmt: skip


def image_of(shape, dtype, seed=0):
    random = np.random.default_rng(seed)
    if dtype == "u8":
        return random.integers(0, 256, shape, dtype=np.uint8)
    return random.random(shape, dtype=np.float32)


def programs_of(source, shape, dtype, count=1, params=None):
    """Return a program specialized for images, and the values of its parameters."""
    with dala.device("cpu"):
        given = [buffer_zeros(shape, dtype) for _ in range(count)]
        out = buffer_zeros(shape, dtype)
        plan, _, _, values = (source if not isinstance(source, str) else kernel(source)).plan(
            given, out, params or {}
        )
    return plan.program, values


def blur(shape, dtype, radius, sigma):
    tensor = Tensor(shape, dtype)
    values = (("radius", radius), ("sigma", sigma))
    return Task("blur", (tensor,), tensor, values, lambda *_: None)


def assert_like_reference(k, given, shape, dtype, params=None):
    """Run a kernel on the CPU and on the reference engine and compare the results."""
    with dala.device("cpu"):
        got = run(k, given, shape, dtype, params or {})
    with dala.device("reference"):
        expected = run(k, given, shape, dtype, params or {})
    assert_close(got, expected, "cpu", "program")
