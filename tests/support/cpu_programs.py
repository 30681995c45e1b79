"""Programs built by hand, to test an engine alone, and helpers for their tests."""

from __future__ import annotations

import platform

import numpy as np
import pytest

from dala.gpu.compute.engines.base import Geometry
from dala.gpu.compute.engines.cpu import cost as cpu_cost
from dala.gpu.compute.engines.cpu.engine import CPUEngine
from dala.gpu.compute.engines.cpu.threads import ThreadPool
from dala.gpu.compute.lang.ir import LOADED, Arg, Block, Out, Program, Value, format_program

NUMPY = {"f32": "<f4", "f64": "<f8", "s32": "<i4", "s64": "<i8", "u32": "<u4", "u8": "u1"}

X86 = platform.machine().lower() in ("x86_64", "amd64")

FLOATS = [0.0, -0.0, 1.0, -1.0, 1.5, 2.5, -2.5, 1e30, np.inf, -np.inf, np.nan, 1e-45, 255.5]


class Builder:
    """Builds a block of IR."""

    def __init__(self):
        self.body = []

    def __call__(self, op, type, *args, attr=None):
        value = Value(op, type, args, attr)
        self.body.append(value)
        return value

    def add(self, statement):
        self.body.append(statement)


def const(number, type="f32"):
    return Value("const", type, (), number)


def program(b, args, out, result, params=(), rank=1, uses_position=False):
    block, result = Block(b.body), tuple(result)
    key = repr((args, out, params, rank)) + format_program(block, result)
    return Program("test", tuple(args), out, tuple(params), block, result, rank, uses_position, key)


def elements(*dtypes):
    return [Arg("abcdef"[i], "element", d, 1) for i, d in enumerate(dtypes)]


def pointwise(make, *dtypes, out=None, params=()):
    """Return a program of element arguments; make(b, a, ...) returns the stored value."""
    b = Builder()
    values = [b("element", LOADED[d], attr=i) for i, d in enumerate(dtypes)]
    stored = make(b, *values)
    return program(b, elements(*dtypes), Out(out or dtypes[0], 1, 1, False), [stored], params)


def line(count, inputs):
    return Geometry((count,), ((1,),) * inputs, ((count,),) * inputs, (count,))


def store(engine, array):
    storage = engine.allocate(array.nbytes, zero=False)
    engine.upload(storage, np.ascontiguousarray(array))
    return storage


def execute(engine, p, geometry, inputs, params=()):
    """Run a program on arrays; the output starts as noise."""
    shape = geometry.dims + ((p.out.channels,) if p.out.channels > 1 else ())
    dtype = np.dtype(NUMPY[p.out.dtype])
    count = int(np.prod(shape))
    target = store(engine, np.full(count * dtype.itemsize, 0xA5, np.uint8))
    engine.prepare(p, geometry)([store(engine, a) for a in inputs], target, params)
    return np.frombuffer(engine.download(target), dtype).reshape(shape)


def run_line(engine, p, *arrays, params=()):
    return execute(engine, p, line(len(arrays[0]), len(arrays)), arrays, params)


def add(b, x, y):
    return b("add", "f32", x, y)


def fused(b, x, y, z):
    total = b("add", "f32", b("mul", "f32", x, y), z)
    positive = b("max", "f32", total, const(0.0))
    return b("sub", "f32", b("mul", "f32", positive, const(2.0)), const(1.0))


@pytest.fixture(scope="module")
def engine():
    """An engine whose jobs use the thread pool even on a machine with one core."""
    return CPUEngine(threads=ThreadPool(4))


@pytest.fixture
def tiny_tiles(monkeypatch):
    """Split even small work into many tiles."""
    monkeypatch.setattr(cpu_cost, "SINGLE_THREAD_NS", 0.001)
    monkeypatch.setattr(cpu_cost, "TILE_NS", 1.0)


def exact(function, *arrays):
    """Return the function in extended precision, rounded to f64."""
    with np.errstate(all="ignore"):
        return function(*(a.astype(np.longdouble) for a in arrays))


def ulps(got, function, *arrays):
    """Return errors in units in the last place; infinities, NaN and signs of zero must be equal."""
    true = exact(function, *arrays)
    with np.errstate(all="ignore"):
        near = true.astype(got.dtype)
    assert np.array_equal(np.isnan(got), np.isnan(near))
    whole = np.isfinite(near) & np.isfinite(got)
    assert np.array_equal(got[~whole], near[~whole], equal_nan=True)
    assert np.array_equal(np.signbit(got[~np.isnan(got)]), np.signbit(near[~np.isnan(got)]))
    unit = np.spacing(np.abs(near[whole])).astype(np.longdouble)
    return np.abs(got[whole].astype(np.longdouble) - true[whole]) / unit
