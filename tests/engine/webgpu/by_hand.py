"""Engines, and programs written by hand, for the tests of WebGPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from dala.gpu.compute.dtypes import NUMPY
from dala.gpu.compute.engines.base import Geometry, Storage
from dala.gpu.compute.engines.reference.engine import ReferenceEngine
from dala.gpu.compute.engines.webgpu import adapters
from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine
from dala.gpu.compute.lang.ir import (
    LOADED,
    Arg,
    Block,
    Out,
    Param,
    Program,
    Value,
    format_program,
)

ADAPTERS = adapters.list_adapters()


IDS = [a.backend.lower() for a in ADAPTERS]

#: The adapters of wgpu, for tests of wgpu itself.
OF_WGPU = [a for a in ADAPTERS if a.backend != "CUDA"]


_open: dict[str, WebGPUEngine] = {}


def engine_for(adapter: adapters.Adapter) -> WebGPUEngine:
    """Return one engine for each adapter, shared by tests that restore its state."""
    if adapter.id not in _open:
        _open[adapter.id] = WebGPUEngine(adapter)
    return _open[adapter.id]


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
