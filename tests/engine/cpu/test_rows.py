"""Rows on the CPU engine: vectors of pixels, chains in one pass, and blurs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dala
from dala.gpu.compute import buffer_zeros, from_array, kernel
from dala.gpu.compute.engines.base import Link, Task, Tensor
from dala.gpu.compute.engines.cpu import engine as cpu
from dala.gpu.compute.engines.cpu.cache import ObjectCache
from dala.gpu.compute.engines.cpu.engine import CPUEngine
from dala.gpu.compute.engines.cpu.jit import Jit
from dala.gpu.compute.engines.cpu.llvm.analysis import analyze
from dala.gpu.compute.engines.cpu.rows import plan as cpu_rows_plan
from dala.gpu.compute.engines.cpu.rows.chain import make_chain, one_by_one
from dala.gpu.compute.engines.cpu.rows.neighbor_stages import add_neighbor_stages
from dala.gpu.compute.engines.cpu.threads import ThreadPool
from tests.support.cpu_programs import NUMPY, X86, engine, store, tiny_tiles
from tests.support.engines import run
from tests.support.tolerances import assert_close

__all__ = ["engine", "tiny_tiles"]


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

shapes = st.tuples(
    st.one_of(st.integers(1, 5), st.integers(30, 40)),
    st.one_of(st.integers(1, 20), st.sampled_from([31, 32, 33, 63, 64, 65, 127, 130])),
    st.sampled_from([None, 3, 4]),
).map(lambda s: s[:2] if s[2] is None else s)


def image_of(shape, dtype, seed=0):
    random = np.random.default_rng(seed)
    if dtype == "u8":
        return random.integers(0, 256, shape, dtype=np.uint8)
    return random.random(shape, dtype=np.float32)


# programs ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", SOURCES)
def test_programs(name, monkeypatch):
    monkeypatch.setattr(cpu, "SPECIALIZE_ROWS_NS", 0.0)
    source, count, params = SOURCES[name]
    k = kernel(source)

    @fixed(15)
    @given(shapes, st.sampled_from(["u8", "f32"]), st.integers(0, 99))
    def check(shape, dtype, seed):
        given = [image_of(shape, dtype, seed + i) for i in range(count)]
        with dala.device("cpu"):
            got = run(k, given, shape, dtype, params)
        with dala.device("reference"):
            expected = run(k, given, shape, dtype, params)
        assert_close(got, expected, "cpu", "program")

    check()


@pytest.mark.parametrize("into", [("u8", 4), ("u8", None), ("f32", 3), ("f32", 4)], ids=str)
@pytest.mark.parametrize("source", [("u8", 3), ("u8", 4), ("f32", 4), ("u8", None)], ids=str)
def test_other_channels_and_dtypes(source, into):
    k = kernel("def k(img: Image): return rgba(img[1, 0].g, img[0, 1].r, img[0, 0].b, 0.5)")

    def shape(channels):
        return (21, 50) if channels is None else (21, 50, channels)

    given = [image_of(shape(source[1]), source[0])]
    with dala.device("cpu"):
        got = run(k, given, shape(into[1]), into[0])
    with dala.device("reference"):
        expected = run(k, given, shape(into[1]), into[0])
    assert_close(got, expected, "cpu", "program")


def programs_of(source, shape, dtype, count=1, params=None):
    """Return a program specialized for images, and the values of its parameters."""
    with dala.device("cpu"):
        given = [buffer_zeros(shape, dtype) for _ in range(count)]
        out = buffer_zeros(shape, dtype)
        plan, _, _, values = (source if not isinstance(source, str) else kernel(source)).plan(
            given, out, params or {}
        )
    return plan.program, values


@pytest.mark.parametrize(
    ("name", "dtype", "channels", "form"),
    [
        ("alike", "u8", 4, "color_matrix"),
        ("mixed", "u8", 4, "color_matrix"),
        ("mixed", "u8", 3, "color_matrix"),
        ("alike", "u8", 3, "per_channel"),
        ("alike", "f32", 4, "per_channel"),
        ("mixed", "f32", 4, "packed"),
        ("stencil", "u8", 4, "weighted_sum"),
        ("stencil", "u8", 3, "weighted_sum"),
        ("stencil", "f32", 4, "per_channel"),
        ("weights", "u8", 4, "weighted_sum"),
        ("weights", "u8", 3, "weighted_sum"),
        ("box", "u8", 4, "weighted_sum"),
        ("bytes", "u8", 4, "bytes"),
        ("bytes", "u8", 3, "bytes"),
        ("bytes in a loop", "u8", 4, "bytes"),
        ("table", "u8", 4, "table"),
        ("branches", "u8", 4, "packed"),
        ("loop", "u8", 4, "packed"),
        ("loop", "f32", 3, "per_channel"),
    ],
)
def test_form_of_a_program(name, dtype, channels, form):
    source, count, params = SOURCES[name]
    program, _ = programs_of(source, (4, 4, channels), dtype, count, params)
    known = {i: 2 for i, p in enumerate(program.params) if p.type == "s32"}
    analysis = analyze(program, known)
    assert analysis is not None
    assert analysis.form == form
    assert (3 in analysis.kept or analysis.alpha is not None) == (channels == 4)


@pytest.mark.parametrize("channels", [None, 3, 4])
def test_weighted_sums_with_any_weights(channels):
    """Sums are in 16 bits where the weights fit, else in floats; errors are at most one step."""
    shape = (9, 67) if channels is None else (9, 67, channels)
    data = [image_of(shape, "u8", i) for i in range(2)]
    for name, weights in (
        ("weights", [0.0, 1e-6, 0.25, -0.5, 1.0, 2.9, 7.0, -31.0, 1e4, -1e30, np.inf]),
        ("stencil", [0.0, -0.1, 0.5, 3.0, 60.0, np.inf]),
    ):
        source, count, params = SOURCES[name]
        given, k = data[:count], kernel(source)
        for weight in weights:
            chosen = {("t" if name == "weights" else "a"): weight}
            with dala.device("cpu"):
                got = run(k, given, shape, "u8", params | chosen)
            with dala.device("reference"):
                expected = run(k, given, shape, "u8", params | chosen)
            assert_close(got, expected, "cpu", "program")


@pytest.mark.parametrize("channels", [3, 4])
def test_color_matrices_with_any_weights(channels):
    """Matrices are in fixed point where the weights fit, else in floats."""
    k = kernel(
        "def k(px: Pixel, *, a=0.5, b=0.0):\n"
        "    sum = px.r * 0.5 - px.g * a + b\n"
        "    return rgba(sum, px.b / (a + 2.0) + px.r * 0.25, (sum - px.b) * a + px.b, px.a)"
    )
    data = image_of((9, 67, channels), "u8")
    for a in (0.0, -0.7, 1.0, 3.9, 31.5, -32.5, 1e3, 1e30, -np.inf):
        for b in (0.0, 0.3, -150.0, 1e9):
            params = {"a": a, "b": b}
            with dala.device("cpu"):
                got = run(k, [data], data.shape, "u8", params)
            with dala.device("reference"):
                expected = run(k, [data], data.shape, "u8", params)
            assert_close(got, expected, "cpu", "program")


@fixed(60)
@given(st.floats(-40, 40, width=32), st.integers(0, 255))
def test_weighted_sums_keep_constant_areas(amount, level):
    data = np.full((3, 70), level, np.uint8)
    with dala.device("cpu"):
        got = run("sharpen", [data], data.shape, "u8", {"amount": amount})
    assert np.array_equal(got, data)


def test_neighbor_stages():
    """The luma of a neighbor is computed once per pixel, in loops and without."""
    shape = (6, 7, 4)
    tensor = Tensor(shape, "u8")
    shared, _ = programs_of(SOURCES["shared work"][0], shape, "u8")
    few, _ = programs_of(SOURCES["mixed stencil"][0], shape, "u8")
    links = [Link(few, (0,), tensor), Link(shared, (-1,), tensor), Link(few, (-2,), tensor)]
    split = add_neighbor_stages(links, [True] * 3)
    assert [link.sources for link in split] == [(0,), (-1,), (-1, -2), (-3,)]
    assert split[1].out == Tensor((6, 7), "f32")
    assert len(add_neighbor_stages(links, [True, False, True])) == 3


def test_neighbor_stages_visit_shared_values_once():
    """Sixty lines that double a value must not become 2**60 expressions."""
    lines = [
        f"    a{i + 1} = max(min(a{i}, b{i}), min(max(a{i}, b{i}), img[1, 0].r))\n"
        f"    b{i + 1} = min(a{i}, b{i})\n    n{i + 1} = n{i} + n{i}"
        for i in range(60)
    ]
    source = (
        "def k(img: Image, *, n0: int = 0):\n    a0 = img[0, 1].r\n    b0 = img[-1, 1].r\n"
        + "\n".join(lines)
        + "\n    for j in range(2):\n        for i in range(n60 + 1):\n"
        + "            a60 = a60 * 0.5\n"
        + "    return rgba(a60, a60, b60, img[0, 0].a)"
    )
    program, _ = programs_of(source, (4, 4, 4), "u8")
    analysis = analyze(program, {0: 0})
    assert analysis is not None
    assert add_neighbor_stages([Link(program, (0,), Tensor((4, 4, 4), "u8"))], [True])


@pytest.mark.parametrize(
    "source",
    [
        "def k(px: Pixel):\n    v = 0.0\n    for i in range(int(px.r * 9.0)):\n"
        "        v += 0.1\n    return v",
        "def k(px: Pixel):\n    v = px.r\n    if px.r > 0.3:\n        v = sin(px.r * 3.0)\n"
        "    return v",
        "def k(img: Image, *, n: int = 3):\n    v = img[0, 0].r\n    for i in range(n):\n"
        "        v = v * v + 0.1\n    return v",
        "def k(px: Pixel): return px.r / px.width + exp(px.r) * 0.25",
    ],
)
def test_tables_of_functions_of_a_byte(source):
    k, given = kernel(source), np.arange(256, dtype=np.uint8).repeat(3)[None, :-5]
    with dala.device("cpu"):
        got = run(k, [given], given.shape, "u8")
    with dala.device("reference"):
        expected = run(k, [given], given.shape, "u8")
    assert_close(got, expected, "cpu", "program")
    program, _ = programs_of(source, given.shape, "u8")
    known = {i: 3 for i, p in enumerate(program.params) if p.type == "s32"}
    analysis = analyze(program, known, tables=True)
    assert analysis is not None
    assert analysis.table


def test_programs_that_are_not_vectorized():
    refused = {
        "a read at a varying offset": "def k(img: Image): return img[int(img[0, 0].r), 0]",
        "break": (
            "def k(px: Pixel):\n    v = 0.0\n    for i in range(9):\n        v += px.r\n"
            "        if v > 1.0:\n            break\n    return rgba(v, v, v, px.a)"
        ),
        "loops of varying length": (
            "def k(px: Pixel):\n    v = 0.0\n    for i in range(int(px.r * 9.0)):\n"
            "        v += 0.1\n    return rgba(v, v, v, px.a)"
        ),
        "too far away": "def k(img: Image): return img[200, 0]",
    }
    given = image_of((9, 40, 4), "u8")
    for why, source in refused.items():
        assert analyze(programs_of(source, (4, 4, 4), "u8")[0]) is None, why
        k = kernel(source)
        with dala.device("cpu"):
            got = run(k, [given], given.shape, "u8")
        with dala.device("reference"):
            expected = run(k, [given], given.shape, "u8")
        assert_close(got, expected, "cpu", "program")


def test_exp_of_floats():
    """In f32 throughout, within four ulps, and correct at the limits of the range."""
    x = np.concatenate(
        [
            np.linspace(-88, 88.7, 20_000), np.linspace(-1, 1, 5000), [0.0, -0.0, 1e-30],
            [np.inf, -np.inf, np.nan, 1e30, -1e30, 89.0, 88.73, -103.0, -120.0],
        ]
    ).astype(np.float32)  # fmt: skip
    k = kernel("def k(px: Pixel): return exp(px.r)")
    with dala.device("cpu"):
        got = run(k, [x[None]], (1, len(x)), "f32")[0]
    with np.errstate(all="ignore"):
        true = np.exp(x.astype(np.float64))
        near = true.astype(np.float32)
        normal = np.isfinite(near) & (near > 1.001 * np.finfo(np.float32).tiny)
        error = np.abs(got[normal] - true[normal]) / np.spacing(near[normal])
    assert error.max() <= 4.0
    assert got[x == 0.0].tolist() == [1.0] * int((x == 0.0).sum())
    small = np.isfinite(near) & ~normal
    assert np.abs(got[small] - true[small]).max() <= 1.001 * 2.0**-126
    assert got[x < -104].tolist() == [0.0] * int((x < -104).sum())
    assert np.array_equal(got[~np.isfinite(near)], near[~np.isfinite(near)], equal_nan=True)


def test_pointwise_programs_run_in_place():
    """A pointwise program may write to its input."""
    for name in ("alike", "mixed", "table", "place"):
        source, _, params = SOURCES[name]
        given = image_of((13, 37, 4), "u8")
        with dala.device("cpu"):
            k, buffer = kernel(source), from_array(given.copy())
            expected = run(k, [given], given.shape, "u8", params)
            dala.gpu.compute.run_kernel(k, [buffer], buffer, params)
            assert np.array_equal(np.array(dala.gpu.compute.to_array(buffer)), expected), name


# blur -------------------------------------------------------------------------------------------
def blur(shape, dtype, radius, sigma):
    tensor = Tensor(shape, dtype)
    values = (("radius", radius), ("sigma", sigma))
    return Task("blur", (tensor,), tensor, values, lambda *_: None)


def blurred(a, radius, sigma):
    """Return the blur by its definition, in f64."""
    d = np.arange(-radius, radius + 1) / sigma
    weights = np.exp(-0.5 * d * d)
    weights /= weights.sum()
    found = a.astype(np.float64)
    for axis in (0, 1):
        padding = [(radius, radius) if i == axis else (0, 0) for i in range(a.ndim)]
        wide = np.pad(found, padding, "edge")
        size = a.shape[axis]
        found = sum(w * wide.take(range(k, k + size), axis) for k, w in enumerate(weights))
    if a.ndim == 3 and a.shape[2] == 4:
        found[..., 3] = a[..., 3]
    return found


def operate(engine, task, a):
    out = engine.allocate(a.nbytes, zero=False)
    engine.operate(task)([store(engine, a)], out, ())
    return np.frombuffer(engine.download(out), a.dtype).reshape(a.shape)


@pytest.mark.parametrize("radius", [0, 1, 3, 12, 13, 64, 65, 200])
def test_blur(engine, tiny_tiles, radius):
    @fixed(8)
    @given(shapes, st.sampled_from(["u8", "f32"]), st.sampled_from([0.2, 0.5, 1.0]), st.booleans())
    def check(shape, dtype, share, harsh):
        a = image_of(shape, dtype, radius)
        if harsh:
            a = np.round(a / a.dtype.type(255 if dtype == "u8" else 1)).astype(a.dtype)
            a *= a.dtype.type(255 if dtype == "u8" else 1)
        sigma = max(radius * share, 0.3)
        got = operate(engine, blur(shape, dtype, radius, sigma), a)
        expected = blurred(a, radius, sigma)
        if dtype == "u8":
            assert np.abs(got - np.floor(expected + 0.5)).max() <= 1
        else:
            assert_close(got, expected.astype("<f4"), "cpu", "program")

    check()


@pytest.mark.parametrize("radius", [1, 5, 30, 64, 65])
@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_blur_keeps_constant_areas(engine, dtype, radius):
    for value in (0, 1, 127, 254, 255) if dtype == "u8" else (0.0, 0.1, 1.0, 1e30):
        for sigma in (0.05, radius / 3, radius * 4.0):
            a = np.full((9, 40, 3), value, NUMPY[dtype])
            assert np.array_equal(operate(engine, blur(a.shape, dtype, radius, sigma), a), a)


def test_blur_with_another_sigma_compiles_nothing():
    engine = CPUEngine(compiler=Jit(ObjectCache(None)), threads=ThreadPool(1))
    a = image_of((20, 30, 4), "u8")
    first = operate(engine, blur(a.shape, "u8", 4, 1.0), a)
    made = engine.stats()["compiled"]
    second = operate(engine, blur(a.shape, "u8", 4, 2.5), a)
    assert engine.stats()["compiled"] == made
    assert np.abs(second - np.floor(blurred(a, 4, 2.5) + 0.5)).max() <= 1
    assert not np.array_equal(first, second)


def test_blur_of_an_empty_image(engine):
    task = blur((0, 5, 4), "u8", 3, 1.0)
    empty = engine.allocate(0, zero=False)
    made = engine.stats()["compiled"]
    engine.operate(task)([empty], empty, ())
    assert engine.stats()["compiled"] == made
    assert bytes(engine.download(empty)) == b""


# chains -----------------------------------------------------------------------------------------
STAGES = (
    "stencil", "alike", "mixed", "bytes", "table", "mixed stencil", "place", "shared work", "two",
)  # fmt: skip


@st.composite
def chains(draw):
    """Links over one size, each reading any image available; some are stored."""
    height, width = draw(st.integers(1, 60)), draw(st.sampled_from([1, 7, 16, 33, 70, 150]))
    shape = (height, width, 4)
    dtype = draw(st.sampled_from(["u8", "u8", "f32"]))
    count = draw(st.integers(1, 5))
    outside = draw(st.integers(1, 2))
    links, values, stores = [], (), outside
    for i in range(count):

        def source(i=i):
            if i and draw(st.booleans()):
                return -1 - draw(st.integers(0, i - 1))
            return -i if i and draw(st.booleans()) else draw(st.integers(0, outside - 1))

        kept = None
        if draw(st.integers(0, 4)) == 0:
            kept, stores = stores, stores + 1
        name = draw(st.sampled_from((*STAGES, "blur", "blur")))
        if name == "blur":
            work, sources = blur(shape, dtype, draw(st.integers(0, 6)), 1.5), (source(),)
        else:
            text, inputs, params = SOURCES[name]
            work, own = programs_of(text, shape, dtype, inputs, params)
            values += own
            sources = tuple(source() for _ in range(inputs))
        links.append(Link(work, sources, Tensor(shape, dtype), kept))
    return links, values, outside, stores


def run_chain(engine, runner, links, values, outside, stores):
    """Return the output and all stored outputs, which start as noise."""
    shape, dtype = links[-1].out.shape, links[-1].out.dtype
    given = [store(engine, image_of(shape, dtype, i)) for i in range(outside)]
    blank = np.full(shape, 0xA5, NUMPY[dtype])
    given += [store(engine, blank) for _ in range(stores - outside)]
    out = store(engine, blank)
    runner(given, out, values)
    return [
        np.frombuffer(engine.download(s), NUMPY[dtype]).reshape(shape)
        for s in (out, *given[outside:])
    ]


@pytest.mark.parametrize("space", [cpu_rows_plan.MAX_STACK, 30_000])
def test_chains_equal_their_stages(engine, tiny_tiles, monkeypatch, space):
    """Chains equal their stages to the bit; with little stack, tiles are narrow as well."""
    monkeypatch.setattr(cpu_rows_plan, "MAX_STACK", space)
    ran = []

    @fixed(30)
    @given(chains())
    def check(drawn):
        links, values, outside, stores = drawn
        tensors = [Tensor(links[-1].out.shape, links[-1].out.dtype)] * stores
        runner = make_chain(engine, links, tensors)
        if runner is None:
            assert space < cpu_rows_plan.MAX_STACK or len(links) > 3
            return
        got = run_chain(engine, runner, links, values, outside, stores)
        expected = run_chain(engine, one_by_one(engine, links), links, values, outside, stores)
        for a, b in zip(got, expected, strict=True):
            assert np.array_equal(a, b)
        ran.append(len(links))

    check()
    assert len(ran) >= 15


def three(shape=(50, 90, 4)):
    """Return blur -> a stencil like sharpen -> a program like brightness."""
    tensor = Tensor(shape, "u8")
    stencil, first = programs_of(SOURCES["stencil"][0], shape, "u8")
    alike, second = programs_of(SOURCES["alike"][0], shape, "u8")
    links = [
        Link(blur(shape, "u8", 3, 1.5), (0,), tensor),
        Link(stencil, (-1,), tensor),
        Link(alike, (-2,), tensor),
    ]
    return links, first + second, tensor


def test_chain_is_one_pass(engine, tiny_tiles, monkeypatch):
    links, values, tensor = three()
    jobs = []
    run_job = engine.threads.run
    monkeypatch.setattr(engine.threads, "run", lambda *given: (jobs.append(1), run_job(*given))[1])
    allocated = []
    allocate = engine.allocate
    runner = engine.chain(links, [tensor])
    given, out = (
        store(engine, image_of(tensor.shape, "u8")),
        store(engine, image_of(tensor.shape, "u8")),
    )
    monkeypatch.setattr(
        engine, "allocate", lambda n, *, zero: (allocated.append(n), allocate(n, zero=zero))[1]
    )
    runner([given], out, values)
    assert jobs == [1]
    assert allocated == []
    one_by_one(engine, links)([given], out, values)
    assert jobs == [1] * 4
    assert len(allocated) == 2


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_do_not_depend_on_threads(threads, tiny_tiles):
    links, values, tensor = three((120, 70, 4))
    alone = CPUEngine(threads=ThreadPool(3))
    several = CPUEngine(threads=ThreadPool(threads))
    results = [
        run_chain(e, e.chain(links, [tensor]), links, values, 1, 1)[0] for e in (alone, several)
    ]
    assert np.array_equal(*results)


def test_output_that_overlaps_an_input(engine, tiny_tiles):
    """No tile may read what another has written."""
    links, values, tensor = three()
    runner = engine.chain(links, [tensor])
    a = image_of(tensor.shape, "u8")
    apart, same = store(engine, a), store(engine, a)
    runner([store(engine, a)], apart, values)
    runner([same], same, values)
    assert bytes(engine.download(same)) == bytes(engine.download(apart))


def test_same_links_with_more_inputs(engine):
    """The same links with more inputs have another job layout."""
    links, values, tensor = three()
    expected = run_chain(engine, engine.chain(links, [tensor]), links, values, 1, 1)[0]
    for count in (2, 3):
        runner = engine.chain(links, [tensor] * count)
        assert np.array_equal(run_chain(engine, runner, links, values, count, count)[0], expected)


def test_chains_with_loops(engine):
    """Each value has its own code, and values that reach too far run stage by stage."""
    shape = (40, 60, 4)
    tensor = Tensor(shape, "u8")
    looped, _ = programs_of(SOURCES["bytes in a loop"][0], shape, "u8")
    links = [Link(looped, (0,), tensor), Link(looped, (-1,), tensor)]
    runner = engine.chain(links, [tensor])
    for values in [(1, 2), (3, 1), (0, 0), (1, 2), (70, 1)]:
        got = run_chain(engine, runner, links, values, 1, 1)[0]
        expected = run_chain(engine, one_by_one(engine, links), links, values, 1, 1)[0]
        assert np.array_equal(got, expected)


def test_chains_that_are_refused(engine):
    shape = (8, 8, 4)
    tensor = Tensor(shape, "u8")
    alike, _ = programs_of(SOURCES["alike"][0], shape, "u8")
    leaves, _ = programs_of("def k(img: Image): return img[100, 0]", shape, "u8")
    assert engine.chain([], [tensor]) is None
    assert engine.chain([Link(leaves, (0,), tensor)], [tensor]) is None
    assert engine.chain([Link(alike, (0,), tensor)], [Tensor((8, 9, 4), "u8")]) is None
    other = Task("resize", (tensor,), tensor, (), lambda *_: None)
    assert engine.chain([Link(other, (0,), tensor)], [tensor]) is None


def test_freed_memory_is_refused(engine):
    links, values, tensor = three()
    runner = engine.chain(links, [tensor])
    given, out = (store(engine, image_of(tensor.shape, "u8")) for _ in range(2))
    engine.release(given)
    with pytest.raises(dala.FreedError):
        runner([given], out, values)


@pytest.mark.skipif(not X86, reason="names of x86 processors")
@pytest.mark.parametrize(
    ("cpu", "features"),
    [
        ("x86-64", ()),
        ("haswell", ()),
        ("haswell", ("avx2",)),
        ("skylake-avx512", ("avx512f",)),
        ("skylake-avx512", ("avx512f", "avx512bw")),
    ],
    ids=str,
)
def test_older_cpus(cpu, features):
    """Narrow vectors and no fused operations give results within the table's tolerance."""
    host = Jit(ObjectCache(None)).features
    needed = {"haswell": "avx2", "skylake-avx512": "avx512bw"}
    if cpu in needed and not host.get(needed[cpu]):
        pytest.skip(f"this machine is no {cpu}")
    compiler = Jit(ObjectCache(None), cpu)
    compiler.features = dict.fromkeys(features, True)
    lesser = CPUEngine(compiler=compiler, threads=ThreadPool(1))
    wide = CPUEngine(threads=ThreadPool(1))
    links, values, tensor = three((20, 70, 4))
    table, own = programs_of(SOURCES["table"][0], tensor.shape, "u8")
    low, _ = programs_of(SOURCES["bytes"][0], tensor.shape, "u8")
    sums, weights = programs_of(SOURCES["stencil"][0], tensor.shape, "u8")
    mix, _ = programs_of(SOURCES["mixed"][0], tensor.shape, "u8")
    given = [(links[0].work, ()), (links[1].work, values[:1]), (links[2].work, values[1:])]
    for work, params in [*given, (table, own), (low, ()), (sums, weights), (mix, ())]:
        alone = [Link(work, (0,), tensor)]
        got, expected = (
            run_chain(e, e.chain(alone, [tensor]), alone, params, 1, 1)[0] for e in (lesser, wide)
        )
        assert_close(got, expected, "cpu", "program")
