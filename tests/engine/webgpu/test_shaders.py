"""Shaders of the WebGPU engine: layouts, pixels, loops, constants, names."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Iterator

import numpy as np
import pytest

from dala.errors import (
    UnsupportedDtype,
)
from dala.gpu.compute.dtypes import NUMPY
from dala.gpu.compute.engines.base import Geometry
from dala.gpu.compute.engines.reference.engine import ReferenceEngine
from dala.gpu.compute.engines.webgpu.wgsl.shader import emit, write_shader
from dala.gpu.compute.lang.ir import (
    LOADED,
    Arg,
    Block,
    For,
    If,
    Out,
    Param,
    Program,
    SetSlot,
    Slot,
)
from tests.engine.webgpu.by_hand import (
    ADAPTERS,
    Build,
    _open,
    affine,
    flat,
    program,
    put,
    run,
    same,
    stored,
)
from tests.support.engines import NO_ADAPTER

if not ADAPTERS:
    pytest.skip(NO_ADAPTER, allow_module_level=True)


@pytest.fixture(autouse=True, scope="module")
def closed_at_the_end() -> Iterator[None]:
    """Close the shared engines: each holds hundreds of megabytes of compiled shaders."""
    yield
    while _open:
        _open.popitem()[1].close()


@pytest.mark.parametrize("count", [*range(1, 10), 1023, 1024, 1025])
@pytest.mark.parametrize(
    ("source", "target"),
    [("f32", "f32"), ("u8", "u8"), ("u8", "f32"), ("f32", "u8"), ("s32", "u32")],
)
def test_sizes_that_are_not_multiples_of_four(engine, source, target, count):
    x = np.random.default_rng(count).integers(0, 100, count).astype(NUMPY[source])
    same(engine, affine(source, target), flat(count), [x], 2.0)


@pytest.mark.parametrize(("source", "target"), [("f64", "f64"), ("u8", "f64"), ("f64", "u8")])
def test_f64_in_and_out(engine, source, target):
    if "f64" not in engine.dtypes:
        with pytest.raises(UnsupportedDtype, match=r"f64.*device 'cpu'"):
            engine.prepare(affine(source, target), flat(7))
        return
    x = np.random.default_rng(3).integers(0, 100, 1001).astype(NUMPY[source])
    same(engine, affine(source, target), flat(1001), [x], 2.0)


def broadcasting(source: str, target: str) -> Program:
    b = Build()
    x, y = b("element", LOADED[source], attr=0), b("element", "f32", attr=1)
    total = b("add", "f32", b("cast", "f32", x) if x.type != "f32" else x, y)
    args = [Arg("x", "element", source, 3), Arg("y", "element", "f32", 3)]
    return program(b, args, Out(target, 3, 1, False), [stored(b, total, target)])


@pytest.mark.parametrize("shape", [(3, 5, 7), (3, 5, 8), (2, 3, 4), (1, 1, 5)])
@pytest.mark.parametrize("inner", [0, 1])
@pytest.mark.parametrize(("source", "target"), [("f32", "f32"), ("u8", "u8"), ("u8", "f32")])
def test_broadcast_layouts(engine, shape, inner, source, target):
    a, b, c = shape
    x = np.random.default_rng(0).integers(0, 200, a * b * c).astype(NUMPY[source])
    y = np.arange(a * c if inner else a, dtype="<f4")
    steps = (c, 0, 1) if inner else (1, 0, 0)
    y_shape = (a, 1, c) if inner else (a, 1, 1)
    geometry = Geometry(shape, ((b * c, c, 1), steps), (shape, y_shape), shape)
    same(engine, broadcasting(source, target), geometry, [x, y])


def test_positions_and_extents(engine):
    b = Build()
    flat_index = b.const(0, "s32")
    for axis in range(3):
        extent = b("dim", "s32", attr=(-1, axis))
        here = b("position", "s32", attr=axis)
        flat_index = b("add", "s32", b("mul", "s32", flat_index, extent), here)
    prog = program(b, [], Out("s32", 3, 1, False), [flat_index])
    for shape in ((3, 4, 5), (2, 3, 8)):
        got = run(engine, prog, Geometry(shape, (), (), shape), [])
        np.testing.assert_array_equal(got, np.arange(np.prod(shape)))


PIXEL_CASES = list(
    itertools.product(("u8", "f32", "s32"), (1, 3, 4), ("pixel", "image", "pixel+position"))
)


@pytest.mark.parametrize(("dtype", "channels", "kind"), PIXEL_CASES)
@pytest.mark.parametrize("target", ["u8", "f32"])
@pytest.mark.parametrize("size", [(5, 7), (1, 1), (9, 40)])
def test_pixels(engine, dtype, channels, kind, target, size):
    height, width = size
    b = Build()
    results = []
    reading = kind.split("+")[0]
    for c in range(channels):
        if reading == "image":
            offsets = [(-1, 0), (2, 1)]
            parts = [
                b("image", LOADED[dtype], b.const(x, "s32"), b.const(y, "s32"), attr=(0, c))
                for x, y in offsets
            ]
            value = b("add", parts[0].type, *parts)
        else:
            value = b("pixel", LOADED[dtype], attr=(0, c))
        if value.type != "f32":
            value = b("cast", "f32", value)
        if "position" in kind:
            value = b("add", "f32", value, b("cast", "f32", b("position", "s32", attr=1)))
        results.append(stored(b, value, target))
    args = [Arg("img", reading, dtype, 3, channels)]  # type: ignore[arg-type]
    prog = program(b, args, Out(target, 3, channels, True), results)
    data = np.random.default_rng(1).integers(0, 120, height * width * channels)
    shape = (height, width, channels)
    geometry = Geometry((height, width), ((),), (shape,), shape)
    same(engine, prog, geometry, [data.astype(NUMPY[dtype])])
    if kind == "pixel":  # axes may be merged
        merged = Geometry((height * width,), ((),), (shape,), shape)
        same(engine, prog, merged, [data.astype(NUMPY[dtype])])


@pytest.mark.parametrize("channels_out", [1, 3, 4])
def test_pixels_with_an_element_argument(engine, channels_out):
    b = Build()
    mask = b("element", "f32", attr=1)
    pixel = b("cast", "f32", b("pixel", "s32", attr=(0, 2)))
    value = stored(b, b("mul", "f32", pixel, mask), "u8")
    args = [Arg("px", "pixel", "u8", 3, 4), Arg("mask", "element", "f32", 2)]
    prog = program(b, args, Out("u8", 3, channels_out, True), [value] * channels_out)
    height, width = 5, 6
    px = np.random.default_rng(0).integers(0, 255, height * width * 4).astype("u1")
    shapes, out = ((height, width, 4), (height, width)), (height, width, channels_out)
    mask_data = np.linspace(0, 1, height * width).astype("<f4")
    whole = Geometry((height, width), ((), (width, 1)), shapes, out)
    merged = Geometry((height * width,), ((), (1,)), shapes, out)
    for geometry in (whole, merged):
        same(engine, prog, geometry, [px, mask_data])
    column = Geometry((height, width), ((), (1, 0)), (shapes[0], (height, 1)), out)
    same(engine, prog, column, [px, mask_data[:height]])


def test_offsets_too_large_to_add_are_clamped(engine):
    b = Build()
    far = b("param", "s32", attr=0)
    value = b("image", "f32", far, b("neg", "s32", far), attr=(0, 0))
    args = [Arg("img", "image", "f32", 2, 1)]
    prog = program(b, args, Out("f32", 2, 1, True), [value], (Param("far", None, "s32"),))
    data = np.arange(12, dtype="<f4")
    geometry = Geometry((3, 4), ((),), ((3, 4),), (3, 4))
    for offset in (2**31 - 1, -(2**31) + 1):
        same(engine, prog, geometry, [data], offset)


def test_empty_arrays_read_as_zeros(engine):
    b = Build()
    value = b("array", "f32", b("position", "s32", attr=0), attr=0)
    prog = program(b, [Arg("a", "array", "f32", 1)], Out("f32", 1, 1, False), [value])
    dirty = put(engine, np.full(4, 7, "<f4"))
    engine.release(dirty)
    got = run(engine, prog, Geometry((5,), ((),), ((0,),), (5,)), [np.zeros(0, "<f4")])
    assert list(got) == [0.0] * 5


def test_more_groups_than_a_dispatch_dimension(engine, monkeypatch):
    monkeypatch.setattr(engine, "workgroup", 32)
    monkeypatch.setattr(engine, "_compiled", {})
    count = 65535 * 32 * 4 + 4 * 32 + 3
    x = np.arange(count, dtype=np.uint64).astype("u1")
    prog = affine("u8", "u8")
    assert write_shader(prog, flat(count), workgroup=32).groups(flat(count)) == 65537
    np.testing.assert_array_equal(
        run(engine, prog, flat(count), [x], 1.0), np.minimum(x.astype(int) + 1, 255)
    )


def test_loops_do_not_run_for_padding(fresh):
    """Padding may hold any number, so a loop whose count is an element must not run for it."""
    engine = fresh()
    garbage = put(engine, np.full(4, 2**31 - 1, "<i4"))
    engine.release(garbage)
    b = Build()
    n, total, index = b("element", "s32", attr=0), Slot("total", "s32"), Slot("i", "s32")
    body = Build()
    more = body("add", "s32", body("get", "s32", attr=total), body("get", "s32", attr=index))
    body.block.body.append(SetSlot(total, more))
    b.block.body.append(For(index, b.const(0, "s32"), n, 1, body.block))
    args, out = [Arg("n", "element", "s32", 1)], Out("s32", 1, 1, False)
    prog = program(b, args, out, [b("get", "s32", attr=total)])
    storage = engine.allocate(4, zero=False)  # the buffer with the garbage
    engine.upload(storage, np.array([5], "<i4"))
    output = engine.allocate(4, zero=False)
    engine.prepare(prog, flat(1))([storage], output, ())
    assert np.frombuffer(engine.download(output), "<i4")[0] == 10


def test_loops_with_large_steps_end_as_in_python(engine):
    for step, stop in ((2**30, 2**31 - 1), (-(2**30), -(2**31) + 1), (7, 2**31 - 1 - 100)):
        b = Build()
        turns, index, body = Slot("turns", "s32"), Slot("i", "s32"), Build()
        one = body("add", "s32", body("get", "s32", attr=turns), body.const(1, "s32"))
        body.block.body.append(SetSlot(turns, one))
        start = b("param", "s32", attr=0)
        b.block.body.append(For(index, start, b("param", "s32", attr=1), step, body.block))
        params = (Param("start", None, "s32"), Param("stop", None, "s32"))
        prog = program(b, [], Out("s32", 1, 1, False), [b("get", "s32", attr=turns)], params)
        first = stop - 5 * step if step == 7 else 0
        geometry = Geometry((3,), (), (), (3,))
        assert (
            list(run(engine, prog, geometry, [], first, stop))
            == [len(range(first, stop, step))] * 3
        )


def test_slots_are_read_before_they_change(engine):
    """Expressions are inlined, unless a slot that they read changes first."""
    b = Build()
    x, y, i = Slot("x", "s32"), Slot("y", "s32"), Slot("i", "s32")
    for slot, argument in ((x, 0), (y, 1)):
        b.block.body.append(SetSlot(slot, b("element", "s32", attr=argument)))
    loop = Build()
    old = loop("add", "s32", loop("get", "s32", attr=x), loop.const(1, "s32"))
    loop.block.body.append(SetSlot(x, loop("get", "s32", attr=y)))
    loop.block.body.append(SetSlot(y, old))
    late, test = loop("get", "s32", attr=y), loop("get", "s32", attr=i)
    condition = loop("gt", "bool", test, loop.const(2, "s32"))
    then = Build()
    then.block.body.append(SetSlot(y, then("mul", "s32", late, then.const(3, "s32"))))
    then.block.body.append(SetSlot(i, then.const(9, "s32")))
    loop.block.body.append(If(condition, then.block, Block()))
    loop.block.body.append(SetSlot(x, loop("sub", "s32", loop("get", "s32", attr=x), late)))
    b.block.body.append(For(i, b.const(0, "s32"), b.const(5, "s32"), 1, loop.block))
    first = b("get", "s32", attr=x)
    b.block.body.append(SetSlot(x, b.const(1000, "s32")))
    total = b(
        "add", "s32", b("add", "s32", first, b("get", "s32", attr=y)), b("get", "s32", attr=i)
    )
    args = [Arg("a", "element", "s32", 1), Arg("b", "element", "s32", 1)]
    prog = program(b, args, Out("s32", 1, 1, False), [total])
    data = [np.arange(9, dtype="<i4"), np.arange(9, dtype="<i4")[::-1].copy()]
    same(engine, prog, flat(9, 2), data)


def in_place_cases() -> list[tuple[str, Program, Geometry, str]]:
    shape = (6, 5)
    b = Build()
    x, y = b("element", "f32", attr=0), b("element", "f32", attr=1)
    args = [Arg("x", "element", "f32", 2), Arg("y", "element", "f32", 2)]
    rows = program(b, args, Out("f32", 2, 1, False), [b("add", "f32", x, y)])
    b = Build()
    px = [b("pixel", "s32", attr=(0, c)) for c in (2, 1, 0)]
    swap = program(b, [Arg("px", "pixel", "u8", 3, 3)], Out("u8", 3, 3, True), px)
    return [
        ("f32", affine(), flat(30), "gain"),
        ("u8", affine("u8", "u8"), flat(30), "gain"),
        ("one", affine(), Geometry((1,), ((0,),), ((1,),), (1,)), "gain"),
        ("rows", rows, Geometry(shape, ((5, 1), (1, 0)), (shape, (6, 1)), shape), ""),
        ("pixels", swap, Geometry((3, 3), ((),), ((3, 3, 3),), (3, 3, 3)), ""),
    ]


@pytest.mark.parametrize("case", in_place_cases(), ids=lambda case: case[0])
def test_the_output_may_be_an_input(engine, case):
    _, prog, geometry, gain = case
    params = (2.0,) if gain else ()
    rng = np.random.default_rng(4)
    arrays = [
        rng.integers(0, 100, int(np.prod(shape))).astype(NUMPY[arg.dtype])
        for arg, shape in zip(prog.args, geometry.shapes, strict=True)
    ]
    expected = run(ReferenceEngine(), prog, geometry, arrays, *params)
    storages = [put(engine, array) for array in arrays]
    engine.prepare(prog, geometry)(storages, storages[0], params)
    got = np.frombuffer(engine.download(storages[0]), expected.dtype)
    np.testing.assert_array_equal(got, expected)
    for storage in storages:
        engine.release(storage)


def test_one_pipeline_for_all_shapes(fresh):
    engine = fresh()
    prog = affine()
    for count in (1, 10, 1000):
        run(engine, prog, flat(count), [np.zeros(count, "<f4")], 1.0)
    assert engine.stats()["pipelines"] == 1
    storage = put(engine, np.zeros(8, "<f4"))
    engine.prepare(prog, flat(8))([storage], storage, (1.0,))
    assert engine.stats()["pipelines"] == 2  # reading the output needs another shader
    engine.prepare(prog, Geometry((8,), ((0,),), ((1,),), (8,)))
    assert engine.stats()["pipelines"] == 3


def test_parameters_that_do_not_fit_are_rounded_as_numpy_does(engine):
    x = np.array([1, -1], "<f4")
    got = run(engine, affine(), flat(2), [x], 1e39)
    assert list(got) == [np.inf, -np.inf]
    got = run(engine, affine(), flat(2), [x], np.float64("nan"))
    assert np.isnan(got).all()


def test_constants_without_a_wgsl_literal(engine):
    numbers = [np.nan, np.inf, -np.inf, -0.0, 1e-45, 3.4028234e38, 0.1]
    for number in numbers:
        b = Build()
        prog = program(b, [], Out("f32", 1, 1, False), [b.const(number)])
        got = run(engine, prog, Geometry((2,), (), (), (2,)), [])
        np.testing.assert_array_equal(got, np.full(2, number, "<f4"))
        assert np.signbit(got[0]) == np.signbit(np.float32(number)) or np.isnan(number)
    for number, dtype in ((-(2**31), "s32"), (2**31 - 1, "s32"), (2**32 - 1, "u32")):
        b = Build()
        prog = program(b, [], Out(dtype, 1, 1, False), [b.const(number, dtype)])
        assert list(run(engine, prog, Geometry((2,), (), (), (2,)), [])) == [number] * 2


def test_constant_expressions_are_not_folded_by_the_compiler(engine):
    b = Build()
    nothing = b("div", "f32", b.const(1.0), b.const(0.0))
    large = b("cast", "f32", b("add", "s32", b.const(2**31 - 1, "s32"), b.const(1, "s32")))
    prog = program(b, [], Out("f32", 1, 1, False), [b("add", "f32", nothing, large)])
    assert run(engine, prog, Geometry((1,), (), (), (1,)), [])[0] == np.inf


def test_the_shader_text_is_readable():
    assert emit(affine(), (1, (1,))) == textwrap.dedent("""\
        // by_hand: each invocation computes four elements

        struct Block {
            quads: u32,
            param_gain: f32,
        }

        @group(0) @binding(0) var<storage, read> in_x: array<vec4<f32>>;
        @group(0) @binding(1) var<storage, read_write> output: array<vec4<f32>>;
        @group(0) @binding(2) var<uniform> p: Block;

        fn kernel(x: f32) -> f32 {
            return (x * p.param_gain) + 1.0f;
        }

        @compute @workgroup_size(256)
        fn main(@builtin(workgroup_id) group: vec3<u32>,
                @builtin(num_workgroups) groups: vec3<u32>,
                @builtin(local_invocation_index) lane: u32) {
            let i = (group.y * groups.x + group.x) * 256u + lane;
            if (i >= p.quads) { return; }
            let e = i * 4u;
            let x = in_x[i];
            let r0 = kernel(x.x);
            let r1 = kernel(x.y);
            let r2 = kernel(x.z);
            let r3 = kernel(x.w);
            output[i] = vec4<f32>(r0, r1, r2, r3);
        }
        """)


@pytest.mark.parametrize(
    "name", ["e", "i", "p", "output", "kernel", "loop", "fn", "r0", "_", "ünï"]
)
def test_parameters_and_inputs_may_have_any_name(engine, name):
    b = Build()
    x, k = b("element", "f32", attr=0), b("param", "f32", attr=0)
    slot = Slot(name, "f32")
    b.block.body.append(SetSlot(slot, b("mul", "f32", x, k)))
    then, test = Build(), b("lt", "bool", x, k)
    then.block.body.append(SetSlot(slot, x))
    b.block.body.append(If(test, then.block, Block()))
    args, params = [Arg(name, "element", "f32", 1)], (Param(name, None, "f32"),)
    out = Out("f32", 1, 1, False)
    prog = program(b, args, out, [b("get", "f32", attr=slot)], params)
    same(engine, prog, flat(5), [np.arange(5, dtype="<f4")], 2.0)
