"""Generate WGSL compute shaders for programs.

A shader has three parts: ``kernel``, the program for one position (``body.py``); the reads of its
arguments (``loads.py``); and ``main``, which computes the position, calls ``kernel`` and stores the
result (``writer.py``). Depending on the pattern, an invocation of ``main`` computes:

- ``quads``: four neighboring positions, loaded and stored as ``vec4`` (or one word of four bytes),
  which is the fastest;
- ``single``: one position, for 64-bit types, broadcast layouts and pixels of four numbers;
- ``bytes``: four u8 elements, where arguments have different strides;
- ``table``: many pixels of which each byte is looked up in a table in workgroup memory
  (``rewrite/tables.py``);
- ``tiles``: one pixel, with workgroups that are rectangles, for programs that read neighbors;
- ``strips``: four pixels of a column, which share their neighbors, for programs that read them at
  fixed offsets (``offsets.py``).

Compilers copy ``kernel`` to wherever it is called. Where that would take long, ``main`` calls it in
a loop over its positions.

Extents, strides and parameters are members of one uniform block, so new shapes need no new shader.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np

from dala.gpu.compute.dtypes import ITEMSIZE
from dala.gpu.compute.engines.base import Geometry, Values
from dala.gpu.compute.engines.unroll import wrap
from dala.gpu.compute.engines.webgpu.rewrite.tables import MIN_LENGTH, maps_bytes
from dala.gpu.compute.engines.webgpu.wgsl.joining import JoinedInputs
from dala.gpu.compute.engines.webgpu.wgsl.offsets import fixed_offsets
from dala.gpu.compute.lang.ir import For, If, Program, Value, statements

Pattern: TypeAlias = Literal["quads", "single", "bytes", "table", "tiles", "strips"]

#: Storage buffers of a device that binds as many as a program has.
MANY_BUFFERS: Final = 1 << 16

#: The width of a tile in pixels; its height follows from the size of a workgroup.
TILE: Final = 32

#: The number of pixels in a strip.
STRIP: Final = 4

#: Quads of pixels that an invocation looks up in a table.
TABLE_QUADS: Final = 4

#: The most statements of a program in strips, because longer ones compile slowly.
MAX_STATEMENTS: Final = 800
#: The same on a processor.
MAX_SOFTWARE_STATEMENTS: Final = 200

#: The longest program that is copied for each position of an invocation. See :func:`length`.
MAX_COPIED: Final = 6000
#: The same on a processor: its compiler takes 1.5 ms for each operation of a function.
MAX_SOFTWARE_COPIED: Final = 600
#: The most loops of a program that is copied there. llvmpipe counts the iterations of all loops in
#: one variable, and LLVM looks for its value after each: its time grows with the third power of the
#: loops in a row. With more loops, each is put into one that runs once, which it does not know.
MAX_SOFTWARE_LOOPS: Final = 2

#: What functions and statements add to the length of a program. Other operations compile fast.
_LENGTHS: Final = {
    "sin": 60, "cos": 60, "tan": 60, "pow": 50, "exp": 20, "log": 30, "atan": 25, "atan2": 40,
    "idiv": 10, "mod": 10,
}  # fmt: skip
_PLAIN, _BRANCH, _LOOP = 0.5, 6, 20

#: The ``struct`` format of each WGSL type in the uniform block.
_PACK: Final = {"u32": "I", "i32": "i", "f32": "f", "f64": "d", "i64": "q"}


#: Values of the flag: a position has used up its iterations; the adapter ended a loop.
OVER: Final = 1
CUT: Final = 2


@dataclass(frozen=True, slots=True)
class Metering:
    """The metering of loops in a shader, whose workgroups may be dispatched in pieces."""

    #: Iterations at a position, or None for any number.
    limit: int | None = None
    #: Whether to report loops that the adapter ends early.
    cut: bool = False


@dataclass(frozen=True, slots=True)
class BlockLayout:
    """The uniform block: 64-bit parameters, numbers of the geometry, then other parameters."""

    #: The function that computes each number of the geometry.
    statics: tuple[Callable[[Geometry], int], ...]
    #: Index and WGSL type of each parameter, in the order of the block.
    params: tuple[tuple[int, str], ...]
    #: The number of parameters before the numbers of the geometry.
    wide: int
    packer: struct.Struct
    #: The index, among the numbers of the geometry, of the first workgroup of a piece.
    first: int | None = None

    def numbers(self, geometry: Geometry) -> tuple[int, ...]:
        """Return the geometry's numbers for :meth:`pack`."""
        return tuple(value(geometry) for value in self.statics)

    def ordered(self, numbers: Values, params: Sequence[int | float]) -> Values:
        """Return all numbers of the block in order; ``params`` are in the order of the block."""
        return (*params[: self.wide], *numbers, *params[self.wide :])

    def pack(self, numbers: Values, params: Values) -> bytes:
        """Return the block of one dispatch."""
        try:
            return self.packer.pack(*self.ordered(numbers, [params[i] for i, _ in self.params]))
        except (struct.error, OverflowError, TypeError):  # a number does not fit its type
            fitted = [_fit(params[i], type_) for i, type_ in self.params]
            return self.packer.pack(*self.ordered(numbers, fitted))


def block_packer(types: Iterable[str]) -> struct.Struct:
    """Return the format of a block of these WGSL types, padded to whole vec4."""
    form = "<" + "".join(_PACK[type_] for type_ in types)
    return struct.Struct(form + "x" * (-struct.calcsize(form) % 16))


@dataclass(frozen=True, slots=True)
class Shader:
    """A generated shader, its bindings and its uniform block."""

    source: str
    pattern: Pattern
    #: Arguments with a binding, in order. Joined ones, the output and the block follow.
    bound: tuple[int, ...]
    block: BlockLayout
    workgroup: int
    #: Arguments that share a binding, because the device has too few.
    joined: tuple[JoinedInputs, ...] = ()

    @property
    def inputs(self) -> int:
        """The number of bindings that are read."""
        return len(self.bound) + len(self.joined)

    def groups(self, geometry: Geometry) -> int:
        """Return the number of workgroups that cover the geometry."""
        if self.pattern in ("tiles", "strips"):
            height, width = geometry.out_shape[:2]
            rows = self.workgroup // TILE * (STRIP if self.pattern == "strips" else 1)
            return -(-width // TILE) * -(-height // rows)
        quads = TABLE_QUADS if self.pattern == "table" else 1
        per_group = self.workgroup * (1 if self.pattern == "single" else 4 * quads)
        return -(-geometry.count // per_group)


def length(program: Program) -> float:
    """Return how long a program is for a compiler, with the functions it calls, about."""
    found = 0.0
    for s in statements(program.body):
        if isinstance(s, Value):
            found += _LENGTHS.get(s.op, _PLAIN)
        elif isinstance(s, If | For):
            found += _BRANCH if isinstance(s, If) else _LOOP
    return found


def choose_pattern(program: Program, geometry: Geometry) -> Pattern:
    """Choose the pattern for a program and geometry."""
    kinds = {arg.kind for arg in program.args}
    wide = ITEMSIZE[program.out.dtype] == 8
    if program.out.pixels or kinds & {"pixel", "image"}:
        words = program.out.dtype != "u8" or program.out.channels == 4
        around = program.uses_position or kinds & {"image", "array"}
        if words and around and program.rank == 2:
            few = sum(1 for _ in statements(program.body)) <= MAX_STATEMENTS
            held = few and kinds <= {"pixel", "image"} and fixed_offsets(program) is not None
            return "strips" if held else "tiles"
        if wide or (program.out.channels == 4 and program.out.dtype != "u8"):
            return "single"
        return "table" if length(program) >= MIN_LENGTH and maps_bytes(program) else "quads"
    if wide:
        return "single"
    if len(geometry.dims) == 1 or _rows_of_quads(program, geometry):
        return "quads"
    return "bytes" if program.out.dtype == "u8" else "single"


def shader_key(
    program: Program, geometry: Geometry, aliased: tuple[int, ...]
) -> tuple[object, ...]:
    """Return a key that is equal for dispatches that can share a shader."""
    return program.key, geometry.layout, choose_pattern(program, geometry), aliased


def write_shader(
    program: Program,
    geometry: Geometry,
    *,
    workgroup: int = 256,
    aliased: tuple[int, ...] = (),
    metering: Metering | None = None,
    software: bool = False,
    buffers: int = MANY_BUFFERS,
    ordinary: bool = False,
) -> Shader:
    """Return the shader of a program for geometries of this layout.

    ``aliased`` are arguments that are also the output. WebGPU does not allow binding a buffer for
    reading and for writing, so they are read through the output's binding. ``software`` is for
    adapters that compile and compute on a processor. ``buffers`` is the number of storage buffers
    that the device binds; with more inputs, some are joined. ``ordinary`` is for parameters of
    ordinary size (``rewrite/ranges.py``).
    """
    from dala.gpu.compute.engines.webgpu.rewrite.simplify import simplify
    from dala.gpu.compute.engines.webgpu.rewrite.turns import without_single_turns
    from dala.gpu.compute.engines.webgpu.wgsl.writer import ShaderWriter

    pattern = choose_pattern(program, geometry)
    out = program.out
    if metering is not None and metering.cut and (out.dtype != "u8" or out.channels == 4):
        # An invocation with one position can make the most iterations for it.
        pattern = {"quads": "single", "strips": "tiles"}.get(pattern, pattern)  # type: ignore[assignment]
    long = length(program) > (MAX_SOFTWARE_COPIED if software else MAX_COPIED)
    loops = sum(isinstance(s, For) for s in statements(program.body))
    many = software and loops > MAX_SOFTWARE_LOOPS
    long = long or many
    slow = software and sum(1 for _ in statements(program.body)) > MAX_SOFTWARE_STATEMENTS
    if pattern == "strips" and (long or slow):
        pattern = "tiles"
    if metering is None or metering.limit is None:
        program = without_single_turns(program)
    writer = ShaderWriter(
        simplify(program), geometry, pattern, workgroup, aliased, metering, buffers
    )
    # Where early ends are reported, a loop around must not end early.
    return writer.write(looped=long, apart=many and metering is None, ordinary=ordinary)


def emit(program: Program, layout: tuple[int, tuple[int, ...]]) -> str:
    """Return the shader for a layout (see ``Geometry.layout``) whose rows are whole quads."""
    axes, inner = layout
    dims = (64,) * axes
    steps = tuple((64,) * (axes - 1) + (step,) if step >= 0 else () for step in inner)
    shapes = tuple((64,) * arg.rank for arg in program.args)
    geometry = Geometry(dims, steps, shapes, (64,) * max(program.out.rank, program.rank))
    return write_shader(program, geometry).source


def _rows_of_quads(program: Program, geometry: Geometry) -> bool:
    """Return True if rows are whole quads, and the rows of every argument start at one."""
    return geometry.dims[-1] % 4 == 0 and all(
        step % 4 == 0
        for arg, steps in zip(program.args, geometry.strides, strict=True)
        if arg.kind == "element" and steps[-1] == 1
        for step in steps[:-1]
    )


def _fit(value: int | float, type_: str) -> int | float:
    """Convert a parameter for ``struct``: f32 may round to infinity, ints wrap."""
    if type_ == "f64":
        return float(value)
    if type_ == "f32":
        with np.errstate(over="ignore"):
            return float(np.float32(value))
    return wrap(int(value), {"i64": "s64"}.get(type_, type_))
