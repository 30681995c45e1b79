"""Rows on the CPU engine: vectors of pixels, chains in one pass, and blurs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dala
from dala.gpu.compute import from_array, from_dlpack, kernel
from dala.gpu.compute.engines.base import Link, Tensor
from dala.gpu.compute.engines.cpu import cost as cpu_cost
from dala.gpu.compute.engines.cpu import engine as cpu
from dala.gpu.compute.engines.cpu.cache import ObjectCache
from dala.gpu.compute.engines.cpu.engine import CPUEngine
from dala.gpu.compute.engines.cpu.jit import Jit
from dala.gpu.compute.engines.cpu.loops.neighbor_stages import add_neighbor_stages
from dala.gpu.compute.engines.cpu.rules.choose import analyze
from dala.gpu.compute.engines.cpu.threads import ThreadPool
from dala.gpu.compute.kernel import get
from tests.support.cpu_programs import NUMPY, engine, store, tiny_tiles
from tests.support.engines import run
from tests.support.row_programs import (
    SOURCES,
    assert_like_reference,
    blur,
    fixed,
    image_of,
    programs_of,
)
from tests.support.tolerances import assert_close

__all__ = ["engine", "tiny_tiles"]


shapes = st.tuples(
    st.one_of(st.integers(1, 5), st.integers(30, 40)),
    st.one_of(st.integers(1, 20), st.sampled_from([31, 32, 33, 63, 64, 65, 127, 130])),
    st.sampled_from([None, 3, 4]),
).map(lambda s: s[:2] if s[2] is None else s)


# programs ---------------------------------------------------------------------------------------
@pytest.mark.third
@pytest.mark.parametrize("name", SOURCES)
def test_programs(name, monkeypatch):
    monkeypatch.setattr(cpu, "SPECIALIZE_ROWS_NS", 0.0)
    source, count, params = SOURCES[name]
    k = kernel(source)

    @fixed(15)
    @given(shapes, st.sampled_from(["u8", "f32"]), st.integers(0, 99))
    def check(shape, dtype, seed):
        given = [image_of(shape, dtype, seed + i) for i in range(count)]
        assert_like_reference(k, given, shape, dtype, params)

    check()


@pytest.mark.parametrize("name", ["stencil", "mixed stencil", "bytes in a loop", "weights", "loop"])
@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_long_rows_are_read_in_place(name, dtype):
    """Their ends are copied, in tiles of one or, in the last picture, several to a row."""
    source, count, params = SOURCES[name]
    k = kernel(source)
    sizes = [(5, w, 4) for w in (255, 257, 384, 389, 447)]
    for shape in [*sizes, (5, 512, 3), (4, 541, 3), (3, 1537), (3, 1599), (2, 24_001, 4)]:
        given = [image_of(shape, dtype, i) for i in range(count)]
        assert_like_reference(k, given, shape, dtype, params)


@pytest.mark.parametrize("into", [("u8", 4), ("u8", None), ("f32", 3), ("f32", 4)], ids=str)
@pytest.mark.parametrize("source", [("u8", 3), ("u8", 4), ("f32", 4), ("u8", None)], ids=str)
def test_other_channels_and_dtypes(source, into):
    k = kernel("def k(img: Image): return rgba(img[1, 0].g, img[0, 1].r, img[0, 0].b, 0.5)")

    def shape(channels):
        return (21, 50) if channels is None else (21, 50, channels)

    given = [image_of(shape(source[1]), source[0])]
    assert_like_reference(k, given, shape(into[1]), into[0])


@pytest.mark.parametrize(
    "expression",
    [
        "x + y * 3.0 - y / x", "min(x, y)", "max(x, y * 0.5)", "min(max(x, 0.25), 0.75)",
        "abs(x) - (-y)", "floor(x) + ceil(y) + round(x * 2.5)", "sqrt(abs(x * y))",
        "x if x < y else y * 2.0", "1.0 if x == y or x != x else 0.5", "float(int(x) // int(y))",
        "float(int(x) % int(y))", "float((int(x) << 3) ^ (int(y) >> 1) & 255 | 4)",
        "float(~int(x)) + float(-int(y))", "float(int(x * 1e9))", "float(abs(int(x)) % 7)",
        "float(int(x) < int(y) and not int(x) == 3)",
    ],
)  # fmt: skip
def test_scalar_and_vector_code_agree(expression):
    """One lane and many lanes give bit-identical results."""
    numbers = np.concatenate(
        [
            np.array([0.0, -0.0, 1.0, -1.0, 2.5, np.inf, -np.inf, np.nan, 1e-40, 3e9], "f4"),
            np.random.default_rng(0).normal(0, 9, 27).astype("f4"),
        ]
    )
    x, y = (g.ravel()[None].copy() for g in np.meshgrid(numbers, numbers))
    scalar = kernel(f"def k(x, y):\n    return {expression}")
    vector = kernel(
        f"def k(a: Pixel, b: Pixel):\n    x = a.r\n    y = b.r\n    return {expression}"
    )
    program, _ = programs_of(vector, x.shape, "f32", 2)
    assert analyze(program) is not None
    with dala.device("cpu"):
        one, many = (run(k, [x, y], x.shape, "f32") for k in (scalar, vector))
    assert np.array_equal(one, many, equal_nan=True)
    assert np.array_equal(np.signbit(one), np.signbit(many))


@pytest.mark.parametrize(
    ("name", "dtype", "channels", "form"),
    [
        ("alike", "u8", 4, "color_matrix"),
        ("mixed", "u8", 4, "packed"),
        ("matrix", "u8", 4, "color_matrix"),
        ("matrix", "u8", 3, "color_matrix"),
        ("alike", "u8", 3, "per_channel"),
        ("alike", "f32", 4, "per_channel"),
        ("mixed", "f32", 4, "packed"),
        ("stencil", "u8", 4, "weighted_sum"),
        ("stencil", "u8", 3, "weighted_sum"),
        ("stencil", "f32", 4, "per_channel"),
        ("weights", "u8", 4, "weighted_sum"),
        ("weights", "u8", 3, "weighted_sum"),
        ("box", "u8", 4, "packed"),
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
    assert analysis.form.name == form
    assert (3 in analysis.kept or analysis.alpha is not None) == (channels == 4)


@pytest.mark.parametrize("channels", [None, 3, 4])
def test_weighted_sums_with_any_weights(channels):
    """Sums have weights of 16 bits where these fit, else of 32."""
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
            assert_like_reference(k, given, shape, "u8", params | chosen)


@pytest.mark.parametrize("channels", [3, 4])
def test_color_matrices_with_any_weights(channels):
    """Matrices have weights of 16 bits where these fit, else of 32."""
    k = kernel(
        "def k(px: Pixel, *, a=0.5, b=0.0):\n"
        "    sum = px.r * 0.5 - px.g * a + b\n"
        "    return rgba(sum, px.b / (a + 2.0) + px.r * 0.25, (sum - px.b) * a + px.b, px.a)"
    )
    data = image_of((9, 67, channels), "u8")
    for a in (0.0, -0.7, 1.0, 3.9, 31.5, -32.5, 1e3, 1e30, -np.inf):
        for b in (0.0, 0.3, -150.0, 1e9):
            params = {"a": a, "b": b}
            assert_like_reference(k, [data], data.shape, "u8", params)


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


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("edge_detect", True),  # by the stage that computes luma
        ("sharpen", True),  # where rows are read in place
        ("brightness", False),  # CPUs foresee what a single stage reads
    ],
)
def test_inputs_of_windows_are_prefetched(name, wanted):
    text = get(name).source("llvm")
    fetched = [s for s in text.splitlines() if "call void @llvm.prefetch" in s]
    assert any("i32 0, i32 2, i32 1" in s for s in fetched) == wanted


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
    assert_like_reference(k, [given], given.shape, "u8")
    program, _ = programs_of(source, given.shape, "u8")
    known = {i: 3 for i, p in enumerate(program.params) if p.type == "s32"}
    analysis = analyze(program, known, tables=True)
    assert analysis is not None
    assert analysis.form.name == "table"


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
        assert_like_reference(k, [given], given.shape, "u8")


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


STREAMED = [("sharpen", "f32", 4), ("sharpen", "u8", 4), ("edge_detect", "u8", 4),
            ("sharpen", "f32", 3), ("edge_detect", "f32", None)]  # fmt: skip


@pytest.mark.parametrize(("name", "dtype", "channels"), STREAMED)
def test_large_outputs_are_stored_around_the_caches(tiny_tiles, monkeypatch, name, dtype, channels):
    """The result is the same into memory on any boundary, and nothing beside it is written."""
    monkeypatch.setattr(cpu_cost, "STREAM_BYTES", 0)
    shape = (23, 128) if channels is None else (23, 128, channels)
    data = image_of(shape, dtype)
    with dala.device("reference"):
        expected = run(get(name), [data], shape, dtype, {})
    with dala.device("cpu"):
        for offset in (0, 4, 64):
            space = np.full(data.nbytes + 192, 7, np.uint8)
            begin = -space.ctypes.data % 64 + offset
            within = space[begin : begin + data.nbytes].view(data.dtype).reshape(shape)
            get(name)(from_array(data), out=from_dlpack(within))
            assert_close(within, expected, "cpu", "program")
            assert (space[:begin] == 7).all()
            assert (space[begin + data.nbytes :] == 7).all()


def test_rows_off_boundaries_are_stored_plainly(tiny_tiles, monkeypatch):
    monkeypatch.setattr(cpu_cost, "STREAM_BYTES", 0)
    for shape in ((9, 37, 4), (9, 5), (1, 1, 4)):
        for dtype in ("u8", "f32"):
            assert_like_reference(get("sharpen"), [image_of(shape, dtype)], shape, dtype)


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


@pytest.mark.parametrize("radius", [0, 1, 3, 12, 13, 60])
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
            assert np.abs(got - expected).max() <= 0.55
        else:
            assert_close(got, expected.astype("<f4"), "cpu", "program")

    check()


@pytest.mark.parametrize("radius", [1, 5, 30, 60, 65])
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
