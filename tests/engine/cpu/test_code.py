"""The code of the CPU engine: positions, values, control flow, and its LLVM IR."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest

from dala.gpu.compute.engines import unroll
from dala.gpu.compute.engines.base import Geometry
from dala.gpu.compute.engines.cpu import engine as cpu_engine
from dala.gpu.compute.engines.cpu.cache import ObjectCache
from dala.gpu.compute.engines.cpu.engine import CPUEngine
from dala.gpu.compute.engines.cpu.jit import Jit, jit
from dala.gpu.compute.engines.cpu.threads import ThreadPool
from dala.gpu.compute.lang.ir import (
    LOADED,
    Arg,
    Block,
    Break,
    Continue,
    For,
    If,
    Out,
    Param,
    SetSlot,
    Slot,
    Value,
)
from tests.support.cpu_programs import (
    FLOATS,
    NUMPY,
    X86,
    Builder,
    add,
    const,
    elements,
    engine,
    execute,
    fused,
    line,
    pointwise,
    program,
    run_line,
    tiny_tiles,
    ulps,
)

__all__ = ["engine", "tiny_tiles"]


# loops over positions -------------------------------------------------------------------------
def test_no_positions(engine):
    p = pointwise(add, "f32", "f32")
    empty = engine.allocate(0, zero=False)
    engine.prepare(p, line(0, 2))([empty, empty], empty, ())
    geometry = Geometry((3, 0), ((0, 1), (0, 1)), ((0,), (0,)), (3, 0))
    engine.prepare(p, geometry)([empty, empty], empty, ())
    assert bytes(engine.download(empty)) == b""


def broadcast_strides(shape, dims):
    steps, step = [], 1
    for size in reversed((1,) * (len(dims) - len(shape)) + shape):
        steps.append(step if size > 1 else 0)
        step *= size
    return tuple(reversed(steps))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((4, 5), (5,)),
        ((4, 1), (1, 5)),
        ((7, 1), (1,)),
        ((2, 3, 4), (3, 1)),
        ((2, 1, 70), (1, 3, 1)),
        ((2, 3, 1, 5), (3, 4, 1)),
        ((2, 1, 3, 1, 33), (1, 2, 1, 3, 1)),
        ((1, 1), (6, 1)),
    ],
)
@pytest.mark.parametrize("tiles", [False, True])
def test_broadcasting(engine, request, first, second, tiles):
    if tiles:
        request.getfixturevalue("tiny_tiles")
    dims = np.broadcast_shapes(first, second)
    a = np.arange(np.prod(first), dtype="<f4").reshape(first)
    c = np.arange(np.prod(second), dtype="<f4").reshape(second) * 100
    b = Builder()
    index = b("position", "s32", attr=len(dims) - 1)
    total = b("add", "f32", b("element", "f32", attr=0), b("element", "f32", attr=1))
    total = b("add", "f32", total, b("mul", "f32", b("cast", "f32", index), const(0.5)))
    p = program(
        b, elements("f32", "f32"), Out("f32", len(dims), 1, False), [total],
        rank=len(dims), uses_position=True,
    )  # fmt: skip
    strides = (broadcast_strides(first, dims), broadcast_strides(second, dims))
    got = execute(engine, p, Geometry(dims, strides, (first, second), dims), [a, c])
    assert np.array_equal(got, a + c + np.arange(dims[-1], dtype="<f4") * 0.5)


def test_positions_and_dims(engine, tiny_tiles):
    b = Builder()
    total = b("position", "s32", attr=0)
    for axis, scale in ((1, 10), (2, 100)):
        place = b("mul", "s32", b("position", "s32", attr=axis), const(scale, "s32"))
        total = b("add", "s32", total, place)
    extent = b("mul", "s32", b("dim", "s32", attr=(-1, 1)), const(100_000, "s32"))
    other = b("mul", "s32", b("dim", "s32", attr=(0, 0)), const(1_000_000, "s32"))
    total = b("add", "s32", b("add", "s32", total, extent), other)
    p = program(
        b, [Arg("a", "array", "f32", 1)], Out("s32", 3, 1, False), [total],
        rank=3, uses_position=True,
    )  # fmt: skip
    got = execute(engine, p, Geometry((4, 5, 6), ((),), ((7,),), (4, 5, 6)), [np.zeros(7, "<f4")])
    i, j, k = np.indices((4, 5, 6))
    assert np.array_equal(got, i + 10 * j + 100 * k + 5 * 100_000 + 7 * 1_000_000)


def image_program(offsets, dtype="u8", channels=1, dynamic=False):
    """Return a program that sums the pixels at some offsets, times 1, 2, 3, ..."""
    b, params, stored = Builder(), [], []
    where = []
    for n, (dx, dy) in enumerate(offsets):
        if dynamic:
            params += [Param(f"x{n}", None, "s32"), Param(f"y{n}", None, "s32")]
            where.append((b("param", "s32", attr=2 * n), b("param", "s32", attr=2 * n + 1)))
        else:
            where.append((const(dx, "s32"), const(dy, "s32")))
    for c in range(channels):
        total = const(0, "s32")
        for n, (x, y) in enumerate(where):
            pixel = b("image", LOADED[dtype], x, y, attr=(0, c))
            total = b("add", "s32", total, b("mul", "s32", pixel, const(n + 1, "s32")))
        stored.append(total)
    rank = 3 if channels > 1 else 2
    return program(
        b, [Arg("img", "image", dtype, rank, channels)], Out("s32", rank, channels, True), stored,
        params, rank=2, uses_position=True,
    )  # fmt: skip


def image_reference(image, offsets):
    height, width = image.shape[:2]
    y, x = np.indices((height, width))
    total = np.zeros(image.shape, "<i4")
    for n, (dx, dy) in enumerate(offsets):
        total += (n + 1) * image[
            np.clip(y + dy, 0, height - 1), np.clip(x + dx, 0, width - 1)
        ].astype("<i4")
    return total


OFFSETS = [
    [(0, 0)],
    [(-1, 0), (1, 0), (0, -1), (0, 1)],
    [(2, 0)],
    [(-2, 1)],
    [(3, 3), (4, -2)],
    [(-9, 9), (7, -8), (100, 100), (-100, -100)],
    [(2**31 - 1, 0), (-(2**31), 0), (0, 2**31 - 1), (0, -(2**31))],
]


@pytest.mark.parametrize("offsets", OFFSETS, ids=str)
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_image_edges(engine, tiny_tiles, offsets, dynamic, channels):
    p = image_program(offsets, channels=channels, dynamic=dynamic)
    params = tuple(n for pair in offsets for n in pair) if dynamic else ()
    for height, width in [*product((1, 2, 3), (1, 2, 3)), (5, 40), (3, 131)]:
        shape = (height, width) if channels == 1 else (height, width, channels)
        image = np.random.default_rng(7).integers(0, 256, shape, dtype=np.uint8)
        geometry = Geometry((height, width), ((),), (shape,), shape)
        got = execute(engine, p, geometry, [image], params)
        assert np.array_equal(got, image_reference(image, offsets)), shape


def test_array_indexes_are_clamped(engine):
    b = Builder()
    i, j = (b("element", "s32", attr=n) for n in (0, 1))
    args = [*elements("s32", "s32"), Arg("t", "array", "u8", 2)]
    p = program(b, args, Out("s32", 1, 1, False), [b("array", "s32", i, j, attr=2)])
    table = np.arange(12, dtype=np.uint8).reshape(3, 4)
    extremes = [-(2**31), -5, -1, 0, 1, 2, 3, 4, 9, 2**31 - 1]
    x, y = (g.ravel().astype("<i4") for g in np.meshgrid(extremes, extremes))
    geometry = Geometry((x.size,), ((1,), (1,), ()), (x.shape, y.shape, (3, 4)), x.shape)
    got = execute(engine, p, geometry, [x, y, table])
    assert np.array_equal(got, table[np.clip(x, 0, 2), np.clip(y, 0, 3)])


# values ---------------------------------------------------------------------------------------
def every_pair(numbers, dtype):
    """Return all pairs of numbers, repeated so that both vectors and remainders are covered."""
    x, y = np.meshgrid(np.array(numbers, dtype), np.array(numbers, dtype))
    return np.tile(x.ravel(), 3), np.tile(y.ravel(), 3)


EDGES = {
    "s32": [-(2**31), -(2**31) + 1, -7, -2, -1, 0, 1, 2, 3, 7, 33, 2**31 - 2, 2**31 - 1],
    "u32": [0, 1, 2, 3, 7, 33, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1],
    "s64": [-(2**63), -(2**63) + 1, -7, -1, 0, 1, 2, 7, 65, 2**53 + 1, 2**63 - 1],
}


@pytest.mark.parametrize("dtype", ["s32", "u32", "s64"])
@pytest.mark.parametrize("op", ["idiv", "mod", "shl", "shr", "add", "mul", "min", "max"])
def test_int_operations(engine, dtype, op):
    width = 64 if dtype == "s64" else 32

    def expected(a, b):
        if op in ("idiv", "mod"):
            return 0 if b == 0 else a // b if op == "idiv" else a % b
        if op in ("shl", "shr"):
            return a << (b % width) if op == "shl" else a >> (b % width)
        return {"add": a + b, "mul": a * b, "min": min(a, b), "max": max(a, b)}[op]

    x, y = every_pair(EDGES[dtype], NUMPY[dtype])
    got = run_line(engine, pointwise(lambda b, p, q: b(op, dtype, p, q), dtype, dtype), x, y)
    want = [unroll.wrap(expected(int(a), int(b)), dtype) for a, b in zip(x, y, strict=True)]
    assert [int(n) for n in got] == want


@pytest.mark.parametrize("dtype", ["s32", "s64"])
@pytest.mark.parametrize("divisor", [-(2**31), -10, -1, 0, 1, 3, 8])
def test_division_by_a_constant(engine, dtype, divisor):
    x = np.array(EDGES[dtype], NUMPY[dtype])
    for op in ("idiv", "mod"):
        made = pointwise(lambda b, p, op=op: b(op, dtype, p, const(divisor, dtype)), dtype)
        quotients = [0 if divisor == 0 else int(a) // divisor for a in x]
        rests = [0 if divisor == 0 else int(a) % divisor for a in x]
        want = [unroll.wrap(n, dtype) for n in (quotients if op == "idiv" else rests)]
        assert [int(n) for n in run_line(engine, made, x)] == want


def same(a, b):
    """Return whether arrays are equal, including NaN and the signs of zeros."""
    return np.array_equal(a, b, equal_nan=True) and np.array_equal(
        np.signbit(a) & ~np.isnan(a), np.signbit(b) & ~np.isnan(b)
    )


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_min_and_max_of_floats(engine, dtype):
    x, y = every_pair(FLOATS, NUMPY[dtype])
    beyond = {"max": x < y, "min": x > y}
    for op, rule in beyond.items():
        made = pointwise(lambda b, p, q, op=op: b(op, dtype, p, q), dtype, dtype)
        got = run_line(engine, made, x, y)
        assert same(got, np.where(rule | np.isnan(y), y, x))
        # A constant on either side takes another path through the emitter.
        for number in (0.0, -0.0, 1.5, np.nan):
            c = np.full_like(x, number)
            made = pointwise(lambda b, p, op=op, n=number: b(op, dtype, p, const(n, dtype)), dtype)
            rule = x < c if op == "max" else x > c
            assert same(run_line(engine, made, x), np.where(rule | np.isnan(c), c, x))
            made = pointwise(lambda b, p, op=op, n=number: b(op, dtype, const(n, dtype), p), dtype)
            rule = c < x if op == "max" else c > x
            assert same(run_line(engine, made, x), np.where(rule | np.isnan(x), x, c))


@pytest.mark.parametrize("source", ["f32", "f64"])
@pytest.mark.parametrize("target", ["s32", "u32", "s64"])
def test_casts_saturate(engine, source, target):
    low, high = {"s32": (-(2**31), 2**31 - 1), "u32": (0, 2**32 - 1), "s64": (-(2**63), 2**63 - 1)}[
        target
    ]
    numbers = [*FLOATS, -0.9, 0.9, 2.0**31, -(2.0**31), 2.0**32, 2.0**63, -(2.0**63), 1e25, -1e25]
    x = np.tile(np.array(numbers, NUMPY[source]), 3)
    got = run_line(engine, pointwise(lambda b, p: b("cast", target, p), source, out=target), x)
    want = [0 if np.isnan(n) else int(min(max(float(n), low), high)) for n in x]
    want = [min(max(n, low), high) for n in want]
    assert [int(n) for n in got] == want


def test_bytes_wrap_on_store_and_widen_on_load(engine):
    x = np.arange(256, dtype=np.uint8)
    doubled = pointwise(lambda b, p: b("add", "s32", p, p), "u8", out="s32")
    assert np.array_equal(run_line(engine, doubled, x), x.astype("<i4") * 2)
    back = pointwise(lambda b, p: b("and", "s32", p, const(255, "s32")), "s32", out="u8")
    assert np.array_equal(run_line(engine, back, x.astype("<i4")), x)


def test_parameters_of_every_type(engine):
    types = ["f32", "f64", "s32", "u32", "s64", "bool"]
    given = (0.1, 0.1, -5, 2**32 - 1, -(2**62), True)
    params = [Param(t, None, t) for t in types]

    def total(b, x):
        for i, t in enumerate(types):
            x = b("add", "f64", x, b("cast", "f64", b("param", t, attr=i)))
        return x

    x = np.zeros(9, "<f8")
    got = run_line(engine, pointwise(total, "f64", params=params), x, params=given)
    want = 0.0
    for n in (float(np.float32(0.1)), *given[1:]):
        want += float(n)
    assert (got == want).all()


def test_parameters_out_of_range(engine):
    params = [Param("f", None, "f32"), Param("i", None, "s32")]
    x = np.zeros(3, "<f8")

    def total(b, p):
        p = b("add", "f64", p, b("cast", "f64", b("param", "f32", attr=0)))
        return b("add", "f64", p, b("cast", "f64", b("param", "s32", attr=1)))

    made = pointwise(total, "f64", params=params)
    assert (run_line(engine, made, x, params=(1e300, 0)) == np.inf).all()
    assert (run_line(engine, made, x, params=(0.0, 2**31)) == -(2.0**31)).all()


# control flow ---------------------------------------------------------------------------------
def loop_program(start, stop, step, body=None, params=()):
    """``total = a; for i in range(...): total = total * 3 + i`` (and ``body``)."""
    b, total, index = Builder(), Slot("total", "s32"), Slot("i", "s32")
    b.add(SetSlot(total, b("element", "s32", attr=0)))
    bounds = [b("param", "s32", attr=n) if params else n for n in (start, stop)]
    inner = Builder()
    if body is not None:
        body(inner, index)
    i = inner("get", "s32", attr=index)
    tripled = inner("mul", "s32", inner("get", "s32", attr=total), const(3, "s32"))
    inner.add(SetSlot(total, inner("add", "s32", tripled, i)))
    ends = [n if isinstance(n, Value) else const(n, "s32") for n in bounds]
    b.add(For(index, ends[0], ends[1], step, Block(inner.body)))
    result = b("add", "s32", b("get", "s32", attr=total), b("get", "s32", attr=index))
    return program(b, elements("s32"), Out("s32", 1, 1, False), [result], params)


def loop_reference(a, start, stop, step, skip=None, leave=None):
    index = 0
    for index in range(start, stop, step):
        if index == leave:
            break
        if index == skip:
            continue
        a = unroll.wrap(a * 3 + index, "s32")
    return unroll.wrap(a + index, "s32")


RANGES = [
    (0, 5, 1), (5, 0, 1), (5, 0, -1), (0, 10, 3), (-4, 4, 2), (3, 3, 1), (7, -8, -4),
    (2**31 - 6, 2**31 - 1, 4), (-(2**31) + 5, -(2**31), -3), (0, 1, 2**31 - 1), (0, 700, 1),
]  # fmt: skip


@pytest.mark.parametrize("bounds", RANGES, ids=str)
@pytest.mark.parametrize("known", [True, False])
def test_loops(engine, bounds, known):
    start, stop, step = bounds
    params = () if known else [Param("start", None, "s32"), Param("stop", None, "s32")]
    made = loop_program(start, stop, step, params=params) if known else loop_program(
        0, 1, step, params=params
    )  # fmt: skip
    a = np.arange(-20, 20, dtype="<i4")
    got = run_line(engine, made, a, params=() if known else (start, stop))
    assert [int(n) for n in got] == [loop_reference(int(n), *bounds) for n in a]


def test_break_and_continue(engine):
    def body(b, index):
        i = b("get", "s32", attr=index)
        b.add(If(b("eq", "bool", i, const(7, "s32")), Block([Break()]), Block()))
        b.add(If(b("eq", "bool", i, const(3, "s32")), Block([Continue()]), Block()))

    a = np.arange(50, dtype="<i4")
    got = run_line(engine, loop_program(0, 20, 1, body), a)
    assert [int(n) for n in got] == [loop_reference(int(n), 0, 20, 1, skip=3, leave=7) for n in a]


def test_loops_over_parameters_are_specialized(engine, monkeypatch):
    made = loop_program(0, 1, 2, params=[Param("a", None, "s32"), Param("b", None, "s32")])
    a = np.arange(40, dtype="<i4")
    for limit in (1e18, 0.0):  # never, and immediately
        monkeypatch.setattr(cpu_engine, "SPECIALIZE_NS", limit)
        for bounds in [(0, 9), (0, 9), (3, 30), (5, 1), (0, 100_000)]:
            got = run_line(engine, made, a, params=bounds)
            assert [int(n) for n in got] == [loop_reference(int(n), *bounds, 2) for n in a]


def test_branches(engine):
    """Nested ifs with loads inside them, over a length that leaves a remainder."""
    b, out = Builder(), Slot("out", "f32")
    x = b("element", "f32", attr=0)
    yes, no, deep = Builder(), Builder(), Builder()
    y = yes("element", "f32", attr=1)
    deep.add(SetSlot(out, deep("mul", "f32", deep("element", "f32", attr=2), y)))
    yes.add(SetSlot(out, yes("add", "f32", x, y)))
    yes.add(If(yes("gt", "bool", y, const(0.5)), Block(deep.body), Block()))
    no.add(SetSlot(out, no("sub", "f32", x, no("element", "f32", attr=2))))
    b.add(If(b("gt", "bool", x, const(0.0)), Block(yes.body), Block(no.body)))
    p = program(
        b, elements("f32", "f32", "f32"), Out("f32", 1, 1, False), [b("get", "f32", attr=out)]
    )
    x, y, z = np.random.default_rng(3).standard_normal((3, 1003)).astype("<f4")
    want = np.where(x > 0, np.where(y > 0.5, z * y, x + y), x - z)
    assert np.array_equal(run_line(engine, p, x, y, z), want)


def test_slots_start_at_zero_at_every_position(engine):
    b, slot = Builder(), Slot("s", "s32")
    x = b("element", "s32", attr=0)
    set_it = Block([SetSlot(slot, const(5, "s32"))])
    b.add(If(b("eq", "bool", x, const(1, "s32")), set_it, Block()))
    p = program(b, elements("s32"), Out("s32", 1, 1, False), [b("get", "s32", attr=slot)])
    x = np.array([0, 1, 0, 1, 1, 0, 0], "<i4")
    assert run_line(engine, p, x).tolist() == [0, 5, 0, 5, 5, 0, 0]


def test_unrolling_leaves_no_loop_and_folds_offsets():
    b, index, total = Builder(), Slot("dx", "s32"), Slot("t", "s32")
    inner = Builder()
    dx = inner("neg", "s32", inner("get", "s32", attr=index))
    pixel = inner("image", "s32", dx, const(0, "s32"), attr=(0, 0))
    inner.add(SetSlot(total, inner("add", "s32", inner("get", "s32", attr=total), pixel)))
    b.add(For(index, const(-2, "s32"), const(3, "s32"), 1, Block(inner.body)))
    result = (b("get", "s32", attr=total),)
    block, _ = unroll.unroll(Block(b.body), result)
    assert not unroll.has_loops(block)
    reads = [s for s in block.body if isinstance(s, Value) and s.op == "image"]
    assert [r.args[0].attr for r in reads] == [2, 1, 0, -1, -2]
    huge = Block([For(index, const(0, "s32"), const(10**6, "s32"), 1, Block(inner.body))])
    assert unroll.has_loops(unroll.unroll(huge, ())[0])


# generated code -------------------------------------------------------------------------------
def bytes_through_floats(b, x):
    scaled = b("mul", "f32", b("cast", "f32", x), const(1 / 255))
    moved = b("add", "f32", scaled, const(0.1))
    kept = b("min", "f32", b("max", "f32", moved, const(0.0)), const(1.0))
    rounded = b("round", "f32", b("mul", "f32", kept, const(255.0)))
    return b("cast", "s32", rounded, attr="in_range")


@pytest.mark.skipif(not X86, reason="looks for x86 instructions")
@pytest.mark.parametrize(
    ("made", "instruction"),
    [
        (pointwise(fused, "f32", "f32", "f32"), "v?mulps"),
        (pointwise(bytes_through_floats, "u8"), "v?cvttps2dq"),
        (pointwise(lambda b, x: b("exp", "f32", x), "f32"), "v?(mulpd|fmadd...pd)"),
        (pointwise(lambda b, x, y: b("pow", "f64", x, y), "f64", "f64"), "v?divpd"),
        (pointwise(lambda b, x, y: b("idiv", "s32", x, y), "s32", "s32"), "v?divpd"),
    ],
    ids=["fused", "bytes", "exp", "pow", "idiv"],
)
def test_loops_are_vectorized(engine, made, instruction):
    listing = engine.assembly(made, line(100, len(made.args)))
    assert re.search(rf"\t{instruction}\t", listing)
    if jit().features.get("sse4.1"):  # older processors round by calls
        assert "call" not in listing.replace("@all", "")


def test_only_the_middle_of_a_row_is_vectorized(engine):
    p = image_program([(-1, 0), (1, 0), (0, 1)], dtype="f32")
    geometry = Geometry((4, 100), ((),), ((4, 100),), (4, 100))
    source = engine.source(p, geometry)
    assert source.count(", !llvm.loop !1") == 1  # the middle of a row
    assert source.count(", !llvm.loop !2") == 1  # its edges, which are not worth vectorizing
    assert "; kernel test" in source


@pytest.mark.skipif(not X86, reason="x86 CPUs")
@pytest.mark.parametrize("cpu", ["x86-64", "x86-64-v2", "x86-64-v3"])
def test_code_for_older_cpus(cpu):
    host = Jit(ObjectCache(None)).features
    if cpu == "x86-64-v3" and not (host.get("avx2") and host.get("fma")):
        pytest.skip("this machine cannot run it")
    engine = CPUEngine(compiler=Jit(ObjectCache(None), cpu), threads=ThreadPool(1))
    x = np.concatenate([np.linspace(-30, 30, 501), FLOATS]).astype("<f4")
    for op, numpy in (("floor", np.floor), ("round", np.rint), ("ceil", np.ceil), ("exp", np.exp)):
        got = run_line(engine, pointwise(lambda b, p, op=op: b(op, "f32", p), "f32"), x)
        with np.errstate(over="ignore"):
            want = numpy(x.astype("<f8")).astype("<f4")
        assert np.array_equal(got, want, equal_nan=True) or ulps(got, numpy, x).max() <= 0.51


def test_max_of_a_product_that_is_nan(engine):
    def largest(b, x):
        infinite = b("max", "f32", const(np.inf), b("cast", "f32", b("cast", "s32", x)))
        return b("max", "f32", b("mul", "f32", infinite, const(0.0)), const(1.0))

    x = np.arange(20, dtype="<f4")
    assert np.isnan(run_line(engine, pointwise(largest, "f32"), x)).all()
