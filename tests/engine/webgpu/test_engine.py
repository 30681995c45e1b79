"""The WebGPU engine: memory, order, errors, threads, closing. Values are tested for all engines."""

from __future__ import annotations

import gc
import itertools
import os
import subprocess
import sys
import textwrap
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dala.errors import (
    BufferTooLarge,
    DeviceError,
    DeviceLostError,
    FreedError,
    UnsupportedDtype,
)
from dala.gpu.compute.dtypes import NUMPY
from dala.gpu.compute.engines.base import Geometry, Storage
from dala.gpu.compute.engines.reference.engine import ReferenceEngine
from dala.gpu.compute.engines.webgpu import adapters, device
from dala.gpu.compute.engines.webgpu import engine as webgpu
from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine
from dala.gpu.compute.engines.webgpu.ops.dispatches import read_text
from dala.gpu.compute.engines.webgpu.pool import size_class
from dala.gpu.compute.engines.webgpu.wgsl.shader import Shader, emit, write_shader
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
    Value,
    format_program,
)
from tests.support.engines import NO_ADAPTER, complaints

ADAPTERS = adapters.list_adapters()
IDS = [a.backend.lower() for a in ADAPTERS]

if not ADAPTERS:
    pytest.skip(NO_ADAPTER, allow_module_level=True)

_open: dict[str, WebGPUEngine] = {}


@pytest.fixture(autouse=True, scope="module")
def closed_at_the_end() -> Iterator[None]:
    """Close the shared engines: each holds hundreds of megabytes of compiled shaders."""
    yield
    while _open:
        _open.popitem()[1].close()


def engine_for(adapter: adapters.Adapter) -> WebGPUEngine:
    """Return one engine for each adapter, shared by tests that restore its state."""
    if adapter.id not in _open:
        _open[adapter.id] = WebGPUEngine(adapter)
    return _open[adapter.id]


@pytest.fixture(params=ADAPTERS, ids=IDS)
def engine(request: pytest.FixtureRequest) -> WebGPUEngine:
    return engine_for(request.param)


@pytest.fixture(params=ADAPTERS, ids=IDS)
def fresh(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Return a factory of engines for one test."""
    made: list[WebGPUEngine] = []

    def make(**options: Any) -> WebGPUEngine:
        made.append(WebGPUEngine(request.param, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


# programs by hand -----------------------------------------------------------------------------


class Build:
    """A builder of a block's statements."""

    def __init__(self) -> None:
        self.block = Block()

    def __call__(self, op: str, type_: str, *args: Value, attr: Any = None) -> Value:
        value = Value(op, type_, args, attr)  # type: ignore[arg-type]
        if op != "const":
            self.block.body.append(value)
        return value

    def const(self, number: Any, type_: str = "f32") -> Value:
        return self("const", type_, attr=number)


def program(
    build: Build, args: list[Arg], out: Out, result: list[Value], params: tuple[Param, ...] = ()
) -> Program:
    rank = 2 if out.pixels else out.rank
    ops = [v for v in build.block.body if isinstance(v, Value)]
    uses_position = any(v.op == "position" for v in ops)
    text = format_program(build.block, tuple(result))
    key = f"{args}{out}{params}{text}"
    return Program(
        "by_hand", tuple(args), out, params, build.block, tuple(result), rank, uses_position, key
    )


def stored(b: Build, value: Value, dtype: str) -> Value:
    """Return the value to store for a dtype: saturated for u8."""
    target = LOADED[dtype]
    if value.type != target:
        value = b("cast", target, value)
    if dtype == "u8":
        value = b("min", "s32", b("max", "s32", value, b.const(0, "s32")), b.const(255, "s32"))
    return value


def affine(source: str = "f32", target: str = "f32", rank: int = 1) -> Program:
    """Return the program ``x * gain + 1``, between dtypes."""
    b = Build()
    x = b("element", LOADED[source], attr=0)
    number = "f64" if "f64" in (source, target) else "f32"
    wide = b("cast", number, x) if x.type != number else x
    gain = b("param", number, attr=0)
    result = b("add", number, b("mul", number, wide, gain), b.const(1.0, number))
    args = [Arg("x", "element", source, rank)]
    params = (Param("gain", None, number),)  # type: ignore[arg-type]
    return program(b, args, Out(target, rank, 1, False), [stored(b, result, target)], params)


def flat(count: int, arguments: int = 1) -> Geometry:
    return Geometry((count,), ((1,),) * arguments, ((count,),) * arguments, (count,))


def put(engine: Any, array: np.ndarray) -> Storage:
    storage = engine.allocate(array.nbytes, zero=False)
    engine.upload(storage, array)
    return storage


def run(
    engine: Any, prog: Program, geometry: Geometry, arrays: list[np.ndarray], *params: Any
) -> np.ndarray:
    """Run a program on any engine and return its output."""
    dtype = NUMPY[prog.out.dtype]
    inputs = [put(engine, array) for array in arrays]
    output = engine.allocate(geometry.count * prog.out.channels * dtype.itemsize, zero=False)
    engine.prepare(prog, geometry)(inputs, output, params)
    data = np.frombuffer(engine.download(output), dtype)
    for storage in (*inputs, output):
        engine.release(storage)
    return data


def same(engine: Any, prog: Program, geometry: Geometry, arrays: list[np.ndarray], *params: Any):
    got = run(engine, prog, geometry, arrays, *params)
    expected = run(ReferenceEngine(), prog, geometry, arrays, *params)
    np.testing.assert_array_equal(got, expected)


# adapters -------------------------------------------------------------------------------------


def test_adapters_are_numbered_best_first():
    assert [a.id for a in ADAPTERS] == [f"webgpu:{i}" for i in range(len(ADAPTERS))]
    kinds = ["discrete", "integrated", "virtual", "unknown", "software"]
    ranks = [(kinds.index(a.kind), a.backend == "OpenGL") for a in ADAPTERS]
    assert ranks == sorted(ranks)
    assert adapters.enumeration_error() == ""


def test_dtypes_follow_features():
    for a in ADAPTERS:
        assert {"f32", "s32", "u32", "u8"} <= a.dtypes
        assert ("f64" in a.dtypes) == ("shader-f64" in a.features)
        assert ("s64" in a.dtypes) == ("shader-int64" in a.features)


def test_a_broken_driver_gives_no_adapters_and_a_reason(monkeypatch):
    def broken() -> list[Any]:
        raise OSError("libvulkan.so.1: cannot open shared object file")

    monkeypatch.setattr(adapters, "_enumerate", broken)
    monkeypatch.setattr(adapters, "_found", None)
    monkeypatch.setattr(adapters, "_error", "")
    assert adapters.list_adapters() == []
    assert adapters.enumeration_error() == "OSError: libvulkan.so.1: cannot open shared object file"


def test_listing_adapters_prints_nothing():
    code = (
        "from dala.gpu.compute.engines.webgpu.adapters import list_adapters; "
        "print(len(list_adapters()))"
    )
    environment = {k: v for k, v in os.environ.items() if k != "XDG_RUNTIME_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=300
    )
    assert (done.stdout.strip(), complaints(done.stderr)) == (str(len(ADAPTERS)), "")


# memory ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("nbytes", [0, 1, 3, 4, 15, 16, 17, 4097, 65537, 1 << 20])
def test_uploads_and_downloads_round_trip(engine, nbytes):
    data = np.random.default_rng(nbytes).integers(0, 256, nbytes, np.uint8)
    storage = put(engine, data)
    back = engine.download(storage)
    assert (back.format, back.nbytes, back.readonly) == ("B", nbytes, False)
    np.testing.assert_array_equal(np.frombuffer(back, np.uint8), data)
    engine.release(storage)


def test_large_uploads_are_split(engine, monkeypatch):
    monkeypatch.setattr(device, "WRITE_BYTES", 1 << 16)
    monkeypatch.setattr(device, "MAX_WRITE_BYTES", 1 << 18)
    data = np.random.default_rng(1).integers(0, 256, (1 << 20) + 7, np.uint8)
    storage = put(engine, data)
    np.testing.assert_array_equal(np.frombuffer(engine.download(storage), np.uint8), data)
    engine.release(storage)


def test_small_uploads_are_copied_at_once(engine):
    data = np.arange(16, dtype=np.uint8)
    storage = put(engine, data)
    data[:] = 0  # the caller may change its memory at once
    assert list(engine.download(storage)) == list(range(16))
    engine.release(storage)


def test_a_reused_buffer_is_zeroed_on_request(fresh):
    engine = fresh()
    dirty = put(engine, np.full(1000, 255, np.uint8))
    engine.release(dirty)
    assert engine.stats()["pooled_buffers"] == 1
    clean = engine.allocate(1000, zero=True)
    assert engine.stats()["pooled_buffers"] == 0
    assert not np.frombuffer(engine.download(clean), np.uint8).any()


@pytest.mark.parametrize("nbytes", [37, (1 << 20) - 1, 1 << 20, (1 << 20) + 5, 3_000_001])
def test_copy(engine, nbytes):
    data = np.random.default_rng(0).integers(0, 256, nbytes, np.uint8)
    source = put(engine, data)
    target = engine.allocate(nbytes, zero=True)
    engine.copy(source, target)
    engine.copy(target, target)
    assert bytes(engine.download(target)) == data.tobytes()
    engine.release(source)
    engine.release(target)


def test_a_buffer_above_the_limit_is_refused(engine):
    limit = engine.max_buffer_bytes
    with pytest.raises(BufferTooLarge) as caught:
        engine.allocate(limit + 1, zero=False)
    text = str(caught.value)
    for part in ("allocate", str(limit + 1), str(limit), engine.adapter.name, "device 'cpu'"):
        assert part in text


def test_size_classes_waste_little_and_keep_the_limit():
    limit = 1 << 30
    for n in (0, 1, 16, 17, 100, 4096, 4097, 1 << 20, (1 << 20) + 1, 33_177_600, limit - 3, limit):
        size = size_class(n, limit)
        assert size % 16 == 0
        assert max(n, 16) <= size <= limit
        assert size <= max(n * 1.125 + 16, 16)


def test_the_pool_keeps_no_more_than_its_cap(fresh):
    engine = fresh(pool_bytes=4096)
    held = [engine.allocate(1024, zero=False) for _ in range(8)]
    assert engine.stats() | {"live_buffers": 8, "live_bytes": 8192} == engine.stats()
    for storage in held:
        engine.release(storage)
    stats = engine.stats()
    assert (stats["live_buffers"], stats["live_bytes"]) == (0, 0)
    assert (stats["pooled_buffers"], stats["pooled_bytes"]) == (4, 4096)


def test_the_environment_sets_the_cap(fresh, monkeypatch):
    monkeypatch.setenv("DALA_POOL_BYTES", "0")
    engine = fresh()
    engine.release(engine.allocate(1024, zero=False))
    assert engine.stats()["pooled_buffers"] == 0


def test_releasing_twice_and_using_after_release(engine):
    before = engine.stats()["live_buffers"]
    storage = engine.allocate(64, zero=True)
    again = Storage(64, storage.handle)
    engine.release(storage)
    engine.release(storage)
    engine.release(again)
    assert engine.stats()["live_buffers"] == before
    with pytest.raises(FreedError):
        engine.download(storage)


def test_evicting_a_buffer_removes_its_bind_groups(fresh):
    engine = fresh(pool_bytes=0)
    prog = affine()
    for _ in range(5):
        run(engine, prog, flat(100), [np.zeros(100, "<f4")], 1.0)
    stats = engine.stats()
    assert (stats["bind_groups"], stats["live_buffers"], stats["pooled_buffers"]) == (0, 0, 0)


# shaders --------------------------------------------------------------------------------------


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
    monkeypatch.setattr(engine, "_workgroup", 32)
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


# order ----------------------------------------------------------------------------------------


def test_reads_in_flight_see_the_state_of_their_request(engine):
    prog = affine()
    runner = engine.prepare(prog, flat(1000))
    state = put(engine, np.zeros(1000, "<f4"))
    reads = []
    for _ in range(40):
        runner([state], state, (1.0,))
        reads.append(engine.download_async(state))
    for n, read in enumerate(reads, 1):
        np.testing.assert_array_equal(np.frombuffer(read.result(), "<f4"), np.full(1000, n, "<f4"))
    engine.release(state)


def test_dispatches_of_one_batch_have_their_own_parameters(engine):
    runner = engine.prepare(affine(), flat(4))
    x = put(engine, np.ones(4, "<f4"))
    outputs = [engine.allocate(16, zero=False) for _ in range(300)]
    for n, output in enumerate(outputs):
        runner([x], output, (float(n),))
    for n, output in enumerate(outputs):
        assert list(np.frombuffer(engine.download(output), "<f4")) == [n + 1.0] * 4
    for storage in (x, *outputs):
        engine.release(storage)


def test_uploads_dispatches_and_copies_are_ordered(engine):
    runner = engine.prepare(affine(), flat(4))
    x, y, z = (engine.allocate(16, zero=True) for _ in range(3))
    for n in range(20):
        engine.upload(x, np.full(4, n, "<f4"))
        runner([x], y, (10.0,))
        engine.copy(y, z)
        engine.upload(x, np.full(4, -1, "<f4"))
        assert list(np.frombuffer(engine.download(z), "<f4")) == [n * 10 + 1.0] * 4
    for storage in (x, y, z):
        engine.release(storage)


def test_batched_gathers_dispatches_in_one_submit(engine):
    runner = engine.prepare(affine(), flat(4))
    state = put(engine, np.zeros(4, "<f4"))
    engine.synchronize()
    before = engine._device.calls.submitted
    with engine.batched():
        for _ in range(10):
            runner([state], state, (1.0,))
            engine.stats()  # the owner is idle and still defers the submit
        assert engine._device.calls.submitted == before
    assert list(np.frombuffer(engine.download(state), "<f4")) == [10.0] * 4
    assert engine._device.calls.submitted <= before + 2
    engine.release(state)


def test_staging_is_reused_and_capped(fresh):
    engine = fresh(staging_bytes=4 * 8192)
    storages = [put(engine, np.full(8000, n, "u1")) for n in range(3)]
    for _ in range(3):
        reads = [(n % 3, engine.download_async(storages[n % 3])) for n in range(30)]
        for n, read in reads:
            assert set(bytes(read.result())) == {n}
    stats = engine.stats()
    assert 1 <= stats["staging_buffers"] <= 4
    assert stats["staging_bytes"] == stats["staging_buffers"] * 8192
    big = put(engine, np.arange(100_000, dtype=np.uint32))
    back = np.frombuffer(engine.download(big), np.uint32)  # larger than the cap
    np.testing.assert_array_equal(back, np.arange(100_000))
    assert engine.stats()["staging_bytes"] <= 4 * 8192


def test_a_callback_of_a_read_may_use_the_engine(engine):
    storage = put(engine, np.arange(4, dtype="<f4"))
    seen: list[Any] = []
    done = threading.Event()

    def callback(read: Any) -> None:
        seen.append(engine.download(storage).nbytes)
        engine.synchronize()
        done.set()

    engine.download_async(storage).add_done_callback(callback)
    assert done.wait(300)
    assert seen == [16]
    engine.release(storage)


def test_the_queue_is_bounded(engine):
    """More work than the queue and the device hold, enqueued as fast as possible."""
    runner = engine.prepare(affine(), flat(64))
    x, y = engine.allocate(256, zero=True), engine.allocate(256, zero=True)
    for _ in range(3000):
        runner([x], y, (1.0,))
    assert engine._owner._queue.qsize() <= 256 + 1
    engine.synchronize()
    assert engine._device.calls.in_flight == 0
    engine.release(x)
    engine.release(y)


def test_threads_wait_for_room_in_the_queue_and_all_get_in(engine):
    """The device's thread stands still while several threads enqueue more than fits."""
    gate, made = threading.Event(), []
    engine._owner.post(gate.wait)
    threads = [
        threading.Thread(target=lambda: [engine._owner.post(made.append, 1) for _ in range(150)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    while not engine._owner._full:  # 600 jobs do not fit, so this ends
        pass
    assert any(thread.is_alive() for thread in threads)
    gate.set()
    for thread in threads:
        thread.join(300)
    engine.synchronize()
    assert len(made) == 600


def test_closing_wakes_threads_that_wait_for_room(fresh):
    engine, gate, raised = fresh(), threading.Event(), []
    engine._owner.post(gate.wait)

    def enqueue() -> None:
        try:
            for _ in range(1000):
                engine._owner.post(int)
        except FreedError as error:
            raised.append(error)

    thread = threading.Thread(target=enqueue)
    thread.start()
    while not engine._owner._full:
        pass
    threading.Timer(0.01, gate.set).start()
    engine.close()
    thread.join(300)
    assert len(raised) == 1


def test_dispatches_of_a_batch_that_share_a_pipeline_buffers_or_numbers(engine):
    """What is set already is not set again; each dispatch has its own buffers and numbers."""
    runner = engine.prepare(affine(), flat(4))
    x, y = put(engine, np.arange(4, dtype="<f4")), engine.allocate(16, zero=True)
    expected = np.arange(4.0)
    with engine.batched():
        for gain in (2.0, 2.0, 0.5, 2.0, 0.5, 0.5):
            runner([x], y, (gain,))
            runner([x], y, (gain,))
            x, y = y, x
            expected = expected * gain + 1
    np.testing.assert_array_equal(np.frombuffer(engine.download(x), "<f4"), expected)
    same = (2.0,)  # one tuple: the runner takes the block of the last call, unless buffers alias
    runner([x], y, same)
    runner([y], y, same)
    runner([y], y, (0.5,))
    runner([y], x, same)
    expected = ((expected * 2 + 1) * 2 + 1) * 0.5 + 1
    np.testing.assert_array_equal(np.frombuffer(engine.download(y), "<f4"), expected)
    np.testing.assert_array_equal(np.frombuffer(engine.download(x), "<f4"), expected * 2 + 1)
    engine.release(x)
    engine.release(y)


@pytest.mark.parametrize("most", [0, 1 << 28], ids=["large", "small"])
def test_scratch_memory_that_cannot_be_allocated(engine, monkeypatch, most):
    """Large scratch memory is waited for, and its error is the call's; the engine goes on."""
    monkeypatch.setattr(webgpu, "UNCHECKED_SCRATCH", most)
    pipeline = engine.shader(read_text("clear.wgsl"), 0, 16)
    out = put(engine, np.ones(4, "<u4"))
    block = np.array([4, 0, 0, 0], "<u4").tobytes()

    def run() -> None:
        scratch = engine.scratch([64])
        engine.dispatch_all([(pipeline, scratch, block, 1), (pipeline, [out], block, 1)], scratch)
        assert all(buffer.handle.slot is None or most for buffer in scratch)

    def refuse(buffer: Any, zero: bool) -> None:
        raise RuntimeError("Not enough memory left")

    run()
    assert not np.frombuffer(engine.download(out), "<u4").any()
    with monkeypatch.context() as patched:
        patched.setattr(engine._device, "allocate", refuse)
        if most == 0:
            with pytest.raises(DeviceError, match="Not enough memory"):
                run()
        else:
            run()
            with pytest.raises(DeviceError, match="Not enough memory"):
                engine.synchronize()
    run()
    engine.synchronize()
    engine.release(out)


# errors ---------------------------------------------------------------------------------------


def test_the_error_of_an_enqueued_call_is_raised_by_the_next_wait(engine):
    def fails() -> None:
        raise RuntimeError("out of luck")

    storage = put(engine, np.arange(4, dtype="<f4"))
    waits = [engine.synchronize, lambda: engine.download(storage)]
    waits.append(lambda: engine.download_async(storage).result())
    for wait in waits:
        engine._owner.post(fails)
        engine._owner.post(fails)
        with pytest.raises(DeviceError, match="out of luck") as caught:
            wait()
        assert caught.value.__notes__ == ["1 more failed after it."]
        wait()  # raised only once
    engine.release(storage)


def test_a_validation_error_is_raised_and_the_engine_keeps_working(fresh):
    engine = fresh()  # wgpu keeps its device for the life of the process, with all shaders
    runner = engine.prepare(affine(), flat(4))
    x, y = put(engine, np.ones(4, "<f4")), engine.allocate(16, zero=True)
    shader, pipeline, numbers, _ = next(iter(runner._variants.values()))
    block = shader.block.pack(numbers, (1.0,))
    bad = 65535 * 65536  # more rows than a dispatch may have
    engine._owner.post(engine._device.dispatch, pipeline, (x.handle, y.handle), block, bad)
    with pytest.raises(DeviceError, match="dispatch"):
        engine.synchronize()
    runner([x], y, (2.0,))
    assert list(np.frombuffer(engine.download(y), "<f4")) == [3.0] * 4
    engine.release(x)
    engine.release(y)


def test_a_shader_error_names_the_line(engine, monkeypatch):
    def broken(*args: Any, **kwargs: Any) -> Shader:
        good = write_shader(*args, **kwargs)
        text = good.source.replace("+ 1.0f", "+ 1u")
        return Shader(text, good.pattern, good.bound, good.block, good.workgroup)

    monkeypatch.setattr(webgpu, "write_shader", broken)
    monkeypatch.setattr(engine, "_compiled", {})
    with pytest.raises(DeviceError) as caught:
        engine.prepare(affine(), flat(4))
    assert "(x * p.param_gain) + 1u" in str(caught.value)
    assert "kernel 'by_hand'" in caught.value.__notes__[0]


def test_a_lost_device_raises_in_all_waiting_threads(fresh):
    engine = fresh()
    storage = put(engine, np.arange(4, dtype="<f4"))
    runner = engine.prepare(affine(), flat(4))
    engine.synchronize()
    assert not engine.lost
    engine._owner.call(engine._device.native.destroy)  # the closest to a device loss
    with pytest.raises(DeviceLostError, match="was lost"):
        engine.download(storage)
    assert engine.lost
    for use in (
        lambda: engine.download(storage),
        lambda: engine.synchronize(),
        lambda: runner([storage], storage, (1.0,)),
        lambda: engine.allocate(1 << 20, zero=False),
        lambda: engine.prepare(affine("s32", "s32"), flat(4)),
    ):
        with pytest.raises(DeviceLostError):
            use()
    engine.release(storage)
    engine.stats()
    engine.close()
    another = fresh()
    assert list(run(another, affine(), flat(2), [np.ones(2, "<f4")], 1.0)) == [2.0, 2.0]


def test_reads_in_flight_raise_after_a_loss(fresh):
    engine = fresh()
    storage = put(engine, np.arange(4, dtype="<f4"))
    reads = []

    def mark_lost() -> None:
        reads.append(engine.download_async(storage))  # still in the queue when the device is lost
        engine._device.native.destroy()

    engine._owner.call(mark_lost)
    with pytest.raises(DeviceLostError):
        reads[0].result(60)


def lose(adapter: adapters.Adapter) -> weakref.ref[WebGPUEngine]:
    """Read from an engine whose device is lost, and close it."""
    engine = WebGPUEngine(adapter)
    storage = put(engine, np.arange(4, dtype="<f4"))
    reads = []

    def mark_lost() -> None:
        reads.append(engine.download_async(storage))
        engine._device.native.destroy()

    engine._owner.call(mark_lost)
    with pytest.raises(DeviceLostError):
        reads[0].result(60)
    with pytest.raises(DeviceLostError):
        engine.synchronize()
    engine.close()
    return weakref.ref(engine)


@pytest.mark.parametrize("adapter", ADAPTERS, ids=IDS)
def test_a_lost_device_is_forgotten(adapter):
    """Its error keeps neither the engine nor the frames of callers alive."""
    alive = lose(adapter)
    gc.collect()
    assert alive() is None


def test_queued_reads_raise_after_a_loss_or_close(fresh):
    for end, error in (("mark_lost", DeviceLostError), ("close", FreedError)):
        engine = fresh()
        storage = put(engine, np.arange(4, dtype="<f4"))
        reads = []

        def work(engine=engine, storage=storage, reads=reads, end=end) -> None:
            reads.append(engine.download_async(storage))
            if end == "mark_lost":
                engine._owner.mark_lost("as a test wants it")
            else:
                engine._owner.close_soon()

        engine._owner.call(work)
        with pytest.raises(error):
            reads[0].result(60)


def test_a_closed_engine_refuses_work(fresh):
    engine = fresh()
    storage = put(engine, np.arange(4, dtype="<f4"))
    engine.close()
    engine.close()
    engine.release(storage)
    with pytest.raises(FreedError, match="was closed"):
        engine.synchronize()
    assert engine.stats()["live_buffers"] == 0


# threads and closing --------------------------------------------------------------------------


def test_many_threads(fresh):
    engine = fresh(pool_bytes=1 << 16)
    failures: list[BaseException] = []
    prog = affine()

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        try:
            for turn in range(25):
                count = int(rng.integers(1, 3000))
                x = rng.integers(0, 100, count).astype("<f4")
                got = run(engine, prog, flat(count), [x], float(turn))
                np.testing.assert_array_equal(got, x * np.float32(turn) + 1)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert not failures
    stats = engine.stats()
    assert (stats["live_buffers"], stats["live_bytes"]) == (0, 0)
    assert stats["pooled_bytes"] <= 1 << 16


def test_finalizers_may_run_on_any_thread(fresh):
    """Garbage with native memory may be collected on any thread, at any line."""
    engine = fresh()

    class Holder:
        def __init__(self) -> None:
            self.storage = engine.allocate(256, zero=False)
            self.me = self

        def __del__(self) -> None:
            engine.release(self.storage)

    def litter() -> None:
        for _ in range(200):
            Holder()

    before = gc.get_threshold()
    gc.set_threshold(7)
    try:
        threads = [threading.Thread(target=litter) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(300)
    finally:
        gc.set_threshold(*before)
    engine.synchronize()  # its thread may be collecting, and then gc.collect() does nothing
    gc.collect()
    assert engine.stats()["live_buffers"] == 0


@pytest.mark.parametrize("adapter", ADAPTERS, ids=IDS)
def test_a_closed_engine_releases_its_device(adapter):
    """Plans and handles of shaders live on; the device, with all compiled shaders, does not."""
    engine = WebGPUEngine(adapter)
    runner = engine.prepare(affine(), flat(4))
    shader = engine.shader(read_text("clear.wgsl"), 0, 16)
    native = engine._owner.call(lambda: weakref.ref(engine._device.native))
    assert native() is not None
    engine.close()
    gc.collect()
    assert native() is None
    assert (runner, shader) != (None, None)
    with pytest.raises(FreedError):
        runner([], engine.allocate(16, zero=True), (1.0,))


def test_a_collected_engine_stops_its_thread():
    engine = WebGPUEngine(ADAPTERS[0])
    thread = engine._owner._thread
    del engine
    gc.collect()
    thread.join(300)
    assert not thread.is_alive()


EXIT = """
import sys
import numpy as np
from dala.gpu.compute.engines.webgpu.adapters import list_adapters
from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine
sys.path.insert(0, {root!r})
from tests.engine.webgpu.test_engine import affine, flat, put
engine = WebGPUEngine(list_adapters()[{index}])
x = put(engine, np.zeros(1 << 20, "<f4"))
y = engine.allocate(1 << 22, zero=False)
runner = engine.prepare(affine(), flat(1 << 20))
for _ in range(200):
    runner([x], y, (1.0,))
reads = [engine.download_async(y) for _ in range(10)]
{end}
"""


@pytest.mark.parametrize("end", ["", "raise SystemExit(0)", "engine.close()", "del engine, runner"])
@pytest.mark.parametrize("index", range(len(ADAPTERS)), ids=IDS)
def test_exit_with_work_in_flight(index, end):
    root = os.path.dirname(
        os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    )
    code = EXIT.format(root=root, index=index, end=end)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, cwd=root
    )
    assert (done.returncode, complaints(done.stderr)) == (0, "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_raises():
    code = """
import os, sys
from dala.errors import FreedError
from dala.gpu.compute.engines.webgpu.adapters import list_adapters
from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine
engine = WebGPUEngine(list_adapters()[0])
child = os.fork()
if child == 0:
    try:
        engine.synchronize()
    except FreedError as error:
        os._exit(0 if "fork" in str(error) else 1)  # as multiprocessing ends its children
    os._exit(2)
_, status = os.waitpid(child, 0)
engine.synchronize()
sys.exit(os.waitstatus_to_exitcode(status))
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, complaints(done.stderr)) == (0, "")
