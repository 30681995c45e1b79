"""Programs that store pictures of bytes: the same bytes on every engine, near the real formula."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dala
from dala.gpu.compute import kernel
from dala.gpu.compute.lang.exact.fixed_point import fixed_point, quantize
from dala.gpu.compute.lang.exact.products import exact_products
from dala.gpu.compute.lang.ir import values
from tests.support.engines import run
from tests.support.filter_formulas import FILTERS
from tests.support.row_programs import fixed, programs_of

RANDOM = np.random.default_rng(11).integers(0, 256, (23, 37, 4), dtype=np.uint8)

#: Weighted sums, and values of their parameter; and whether they read neighbors.
SUMS = {
    "brightness": ("value", [-0.7, 0.013, 0.4], False),
    "contrast": ("value", [-0.9, 0.2, 0.77, 3.1, 11.0], False),
    "saturation": ("value", [-1.0, -0.31, 0.7, 1.9], False),
    "hue": ("degrees", [-120.0, 17.3, 95.0], False),
    "sepia": ("amount", [0.3, 1.0], False),
    "sharpen": ("amount", [0.05, 0.5, 1.37, 4.1], True),
}

#: Kernels of users: sums, products, quotients, roots, exponentials, branches, loops.
PROGRAMS = [
    """def k(px: Pixel):
    return rgba(px.r * px.g + px.b * 0.3, px.g * px.g - 0.1, px.b / (px.r + 0.2), px.a)""",
    "def k(px: Pixel): return rgba(sqrt(px.rgb * px.gbr), px.a * px.r)",
    """def k(px: Pixel):
    largest = px.g if px.g > px.b else px.b
    return rgba(exp(-3.0 * px.r * px.r), mix(px.g, px.b, px.r), largest, px.a)""",
    "def k(px: Pixel): return rgba(smoothstep(0.2, 0.7, px.rgb) * px.bgr, px.a)",
    """def k(img: Image):
    total = vec3(0.0)
    for d in range(-2, 3):
        total += img[d, -d].rgb * (0.3 + 0.1 * img[d, 0].g)
    return rgba(total * 0.4, img[0, 0].a)""",
    """def k(img: Image):
    a, b = img[1, 0].rgb - img[-1, 0].rgb, img[0, 1].rgb - img[0, -1].rgb
    return rgba(sqrt(dot(a, a) + dot(b, b)), abs(a.g) * 2.0, floor(b.b * 4.0) * 0.25 + 0.5, 1.0)""",
]  # fmt: skip


def on_reference(source, params, image=RANDOM):
    with dala.device("reference"):
        return run(source, [image], image.shape, "u8", params)


@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize("name", SUMS)
def test_sums_are_near_the_formula(name, channels):
    """0.51 of a step for functions of one pixel, 0.55 for neighborhoods."""
    param, values, window = SUMS[name]
    image = np.ascontiguousarray(RANDOM[..., :channels])
    exact_image = RANDOM / 255.0
    if channels == 3:
        exact_image[..., 3] = 1.0
    for value in values:
        exact = FILTERS[name][0](exact_image, **{param: value})[..., :channels] * 255.0
        got = on_reference(name, {param: value}, image).astype(float)
        apart = np.abs(got - np.clip(exact, 0.0, 255.0))
        assert apart.max() <= (0.55 if window else 0.51), (value, apart.max())


@pytest.mark.parametrize("name", SUMS)
def test_sums_are_equal_on_every_engine(dala_device, name):
    param, values, _ = SUMS[name]
    for value in values:
        want = on_reference(name, {param: value})
        with dala.device(dala_device):
            got = run(name, [RANDOM], RANDOM.shape, "u8", {param: value})
        assert np.array_equal(got, want), (value, np.count_nonzero(got != want))


@pytest.mark.parametrize("source", PROGRAMS)
def test_kernels_of_users_are_equal_on_every_engine(dala_device, source):
    k = kernel(source)
    for image in (RANDOM, np.ascontiguousarray(RANDOM[..., :3])):
        want = on_reference(k, {}, image)
        with dala.device(dala_device):
            got = run(k, [image], image.shape, "u8", {})
        assert np.array_equal(got, want), np.count_nonzero(got != want)


weights = st.lists(st.floats(-40, 40, width=32), min_size=1, max_size=5)


@fixed(300)
@given(weights, st.floats(-300, 300, width=32), st.booleans())
def test_integer_weights(given_weights, bias, window):
    """Sums fit 32 bits, 16-bit weights are marked, and no sum moves by more than is allowed."""
    found = quantize([(given_weights, [1] * len(given_weights), bias)], window=window)
    ((made, added),) = found.rows
    bits = found.bits % 32
    assert 255 * sum(map(abs, made)) + abs(added) < 2**31
    assert found.bits >= 32 or max(map(abs, made)) < 2**15
    off = [m / 2.0**bits - w for m, w in zip(made, given_weights, strict=True)]
    error = 255 * max(sum(max(o, 0) for o in off), sum(max(-o, 0) for o in off))
    assert error <= (1 / 32 if window else 1 / 100) or found.bits >= 32
    assert error <= 0.05


@pytest.mark.parametrize("weight", [1e9, -1e30, float("inf"), float("nan")])
def test_weights_of_any_size(weight):
    *_, bias, bits = fixed_point(False, [1, 1], [weight, 0.0])
    assert 0 <= bits % 32 <= 20
    assert abs(bias) < 2**31


@pytest.mark.parametrize(("scale", "shift"), [(-3.0, 0.0), (2.0, -2.0), (-40.0, 3.0), (0.0, 0.0)])
def test_exponential(scale, shift):
    """2^-11.8 of 255 steps, and half a step of rounding."""
    k = kernel("def k(px: Pixel, *, s=1.0, t=0.0): return exp(px * s + t)")
    bytes_ = np.arange(256, dtype=np.uint8).reshape(1, 64, 4)
    with dala.device("reference"):
        got = np.asarray(k(bytes_, s=scale, t=shift))
    wanted = np.minimum(np.exp(bytes_ / 255 * scale + shift), 1.0) * 255
    assert np.abs(got - wanted).max() < 0.5 + 255 * 2.0**-11.8


@pytest.mark.parametrize(
    ("body", "exact"),
    [
        ("d = img[1, 0].r - img[0, 0].r\n    return vec4(sqrt(d * d + d))", 1),
        (
            "w = exp(-img[0, 0].r)\n    return vec4(img[1, 0].r * w)",
            2,
        ),  # and one of exp
        ("p = img[0, 0]\n    return vec4(sqrt(p.r * p.g * p.b) + sqrt(p.r * p.g * p.b * p.a))", 4),
        ("return vec4(img[0, 0].r * img[0, 0].g * t)", 1),
        ("return vec4(img[0, 0].r / (img[1, 0].r + 1.0) * img[0, 0].g)", 0),
    ],
)
def test_exact_products(body, exact):
    """Products of at most 24 digits are marked."""
    source = f"def k(img: Image, *, t=0.3):\n    {body}"
    program, _ = programs_of(source, (4, 4, 4), "u8")
    marked = {v for v in values(program.body) if v.op == "mul" and v.attr == "exact"}
    assert len(marked) == exact
    assert exact_products(program) <= marked


@pytest.mark.parametrize("first", ["s", "px.r"])
def test_deep_expressions(first):
    """Each line uses the one before twice: the work must grow with the lines, not with the uses."""
    lines = "\n".join("    t = t - t * 0.5" for _ in range(1500))
    k = kernel(
        f"def k(px: Pixel, *, s=0.5):\n    t = {first}\n{lines}\n"
        "    return rgba(exp(t * px.g), t + px.g, px.ba)"
    )
    with dala.device("reference"):
        got = np.asarray(k(RANDOM))
    assert np.array_equal(got[..., 0], np.full_like(RANDOM[..., 0], 255))
    assert np.array_equal(got[..., 1:], RANDOM[..., 1:])
