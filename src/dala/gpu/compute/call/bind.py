"""A kernel meets its buffers: every check, then a plan that can be run again without them.

All refusals happen here, before anything is written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dala.errors import (
    ArityError,
    DeviceMismatch,
    DtypeMismatch,
    ParameterError,
    ShapeError,
    ShapeMismatch,
    UnsupportedDtype,
)
from dala.gpu.compute.buffer import Buffer, overlap, span
from dala.gpu.compute.engines.base import Engine, Geometry, Runner, Storage, Task
from dala.gpu.compute.engines.registry import run_on_host, unsupported
from dala.gpu.compute.lang.decl import KernelDecl, ParamDecl, expected_numbers
from dala.gpu.compute.lang.frontend import Signature, specialise
from dala.gpu.compute.lang.ir import FLOATS, Arg, Param, Program
from dala.gpu.compute.lang.scalars import RANGES
from dala.gpu.compute.params import check_params, python_number
from dala.gpu.compute.params import missing as missing_parameter

if TYPE_CHECKING:
    from dala.gpu.compute.kernel import Kernel


IMAGE_SHAPES: Final = "an image of shape (height, width), (height, width, 3) or (height, width, 4)"


@dataclass(frozen=True, eq=False)
class Plan:
    """A kernel prepared for one engine and one set of dtypes and shapes."""

    program: Program | None
    geometry: Geometry | None
    run: Runner
    #: Inputs that may not be the output: they are read at more than one position.
    distinct: tuple[int, ...]
    #: True when a buffer lies over somebody else's memory, so that two may share it.
    shared: bool = False
    #: Operations: what the runner is called with.
    values: tuple[int | float, ...] = ()


@dataclass(frozen=True, eq=False)
class Call:
    """A checked call, not prepared yet."""

    engine: Engine
    #: None for an operation that no program says.
    program: Program | None
    geometry: Geometry | None
    #: Inputs that may not be the output: they are read at more than one position.
    distinct: tuple[int, ...]
    #: True when a buffer lies over somebody else's memory, so that two may share it.
    shared: bool = False
    #: The operation, if it is one; engine code for it goes before the program.
    task: Task | None = None

    @cached_property
    def code(self) -> Runner | None:
        """The engine's own code for the operation, if it has some."""
        task = self.task
        if task is None:
            return None
        if 0 in task.output.shape:
            return _nothing
        if any(0 in t.shape for t in task.inputs):
            return run_on_host(self.engine, task)
        found = self.engine.operate(task)
        return _without_params(found) if found is not None else None

    def prepare(self) -> Runner:
        """What runs it; compiles where needed."""
        task = self.task
        if self.code is not None:
            return self.code
        if self.program is None or self.geometry is None:
            assert task is not None
            raise unsupported(self.engine, task)
        if self.geometry.count == 0:
            return _nothing
        return self.engine.prepare(self.program, self.geometry)


def check_call(
    kernel: Kernel, inputs: Sequence[Any], output: Any, numbers: tuple[tuple[str, str], ...]
) -> Call:
    """Checks a call, or raises the error that names what is wrong."""
    engine = check_buffers(kernel, inputs, output)
    program, over = describe(kernel.decl, inputs, output.shape, output.dtype, numbers)
    check_types(engine, program)
    distinct = tuple(i for i, arg in enumerate(program.args) if arg.kind in ("image", "array"))
    check_alias(kernel.name, program, inputs, output)
    shared = any(b.storage(kernel.name).foreign for b in (*inputs, output))
    return Call(engine, program, over, distinct, shared)


def make_plan(
    kernel: Kernel, inputs: Sequence[Any], output: Any, numbers: tuple[tuple[str, str], ...]
) -> Plan:
    """Checks a call and prepares it."""
    call = check_call(kernel, inputs, output, numbers)
    return Plan(call.program, call.geometry, call.prepare(), call.distinct, call.shared)


def _without_params(run: Runner) -> Runner:
    """An operation's runner, which takes none of the parameters of the program in its stead."""

    def runner(inputs: Sequence[Storage], output: Storage, params: tuple[Any, ...]) -> None:
        run(inputs, output, ())

    return runner


def _nothing(inputs: Sequence[Storage], output: Storage, params: tuple[Any, ...]) -> None:
    """An empty output needs no work."""


def check_alias(name: str, program: Program, inputs: Sequence[Buffer], output: Buffer) -> None:
    """Refuses an output whose memory is also read at other positions than the one written."""
    for b, arg in zip(inputs, program.args, strict=True):
        if not overlap(b, output):
            continue
        same = (b.shape, b.dtype) == (output.shape, output.dtype) and (
            b.storage(name) is output.storage(name)
            or span(b.engine, b.storage(name)) == span(output.engine, output.storage(name))
        )
        if not same:
            raise ShapeMismatch(
                f"{name}: output must not share part of the memory of the input {arg.name!r}. "
                "Give it memory of its own: buffer_zeros(...).",
                call=name,
                argument="output",
            )
        if arg.kind in ("image", "array"):
            raise in_place_error(name, arg.name)


def in_place_error(kernel: str, name: str) -> ShapeMismatch:
    """Return the error for an output that is also an input read at several positions."""
    return ShapeMismatch(
        f"{kernel}: output must not be the input {name!r}, which is read at other positions than "
        "the one written. Make a second buffer.",
        call=kernel,
        argument="output",
    )


def check_buffers(kernel: Kernel, inputs: Sequence[Any], output: Any) -> Engine:
    """Checks number, kind, life and device of the buffers of a call."""
    name, args = kernel.name, kernel.inputs
    least = len(args) - kernel.optional
    if isinstance(inputs, Buffer) or not isinstance(inputs, Sequence):
        raise ArityError.invalid(
            name, "inputs", "a list of buffers", type(inputs), "Write [a] for one input."
        )
    if not least <= len(inputs) <= len(args):
        many = f"{least} to {len(args)}" if kernel.optional else f"{len(args)}"
        noun = "buffer" if many == "1" else "buffers"
        names = f" ({', '.join(args)})" if args else ""
        raise ArityError.invalid(name, "inputs", f"{many} {noun}{names}", len(inputs))
    buffers = [*zip(args, inputs, strict=False), ("output", output)]
    for which, given in buffers:
        if not isinstance(given, Buffer):
            advice = "Make one with buffer(...) or from_array(...)."
            raise ArityError.invalid(name, which, "a Buffer", given, advice)
    for which, given in buffers:
        given.storage(name, which)
    engine: Engine = output.engine
    for which, given in buffers[:-1]:
        if given.engine is not engine:
            expected = f"on the output's device {engine.id!r}"
            advice = f"Move it: {which}.to({engine.id!r})."
            raise DeviceMismatch.invalid(name, which, expected, given.engine.id, advice)
    output.check_writable(name)
    return engine


def check_types(engine: Engine, program: Program) -> None:
    """Refuses a program that computes in a type the device lacks."""
    missing = sorted(program.types - engine.dtypes - {"bool"})
    if missing:
        raise UnsupportedDtype(
            f"{program.name}: computes with {', '.join(missing)}, which "
            f"{engine.info().get('name', engine.id)} ({engine.id}) does not support. Use 32-bit "
            "dtypes (f32, s32, u32, u8), or move the buffers: b.to('cpu').",
            call=program.name,
        )


def describe(
    decl: KernelDecl,
    inputs: Sequence[Any],
    out_shape: tuple[int, ...],
    out_dtype: str | None,
    numbers: tuple[tuple[str, str], ...] = (),
) -> tuple[Program, Geometry]:
    """The program and the geometry for inputs (anything with shape and dtype) and an output."""
    args = tuple(_arg(decl, i, inputs[i]) for i in range(len(inputs)))
    _check_shared_dtype(decl, args)
    last = out_shape[2] if len(out_shape) == 3 else 0
    program = specialise(decl, Signature(args, out_dtype, len(out_shape), last, numbers))
    shapes = tuple(tuple(b.shape) for b in inputs)
    return program, geometry(program, shapes, out_shape)


def _arg(decl: KernelDecl, index: int, given: Any) -> Arg:
    declared = decl.args[index]
    shape, dtype = given.shape, given.dtype
    if declared.dtype is not None and dtype != declared.dtype:
        raise DtypeMismatch.invalid(
            decl.name, declared.name, f"of dtype {declared.dtype!r}, as declared", dtype
        )
    channels = 1
    if declared.kind in ("pixel", "image"):
        if len(shape) == 3:
            channels = shape[2]
        if len(shape) not in (2, 3) or channels not in (1, 3, 4):
            raise ShapeError.invalid(decl.name, declared.name, IMAGE_SHAPES, shape)
    elif declared.kind == "array" and not shape:
        raise ShapeError.invalid(
            decl.name, declared.name, "of at least one axis", shape, "Give it shape (1,)."
        )
    return Arg(declared.name, declared.kind, dtype, len(shape), channels)  # type: ignore[arg-type]


def _check_shared_dtype(decl: KernelDecl, args: tuple[Arg, ...]) -> None:
    free = [
        a for a, d in zip(args, decl.args, strict=True) if a.kind == "element" and d.dtype is None
    ]
    for a in free[1:]:
        if a.dtype != free[0].dtype:
            raise DtypeMismatch.invalid(
                decl.name,
                a.name,
                f"of dtype {free[0].dtype!r}, as {free[0].name!r} is",
                a.dtype,
                f"Convert one, or annotate the argument in the kernel ({a.name}: {a.dtype}).",
            )


# shapes ---------------------------------------------------------------------------------------
def geometry(
    program: Program, shapes: tuple[tuple[int, ...], ...], out_shape: tuple[int, ...]
) -> Geometry:
    """The positions a program runs over, its inputs' shapes checked against them."""
    domain = out_shape[:2] if program.out.pixels else (out_shape or (1,))
    empty = 0 in domain
    strides: list[tuple[int, ...]] = []
    for arg, shape in zip(program.args, shapes, strict=True):
        if arg.kind == "element":
            strides.append(_broadcast(program.name, arg.name, shape, domain, out_shape))
            continue
        strides.append(())
        if arg.kind in ("pixel", "image") and shape[:2] != domain:
            raise ShapeMismatch.invalid(
                program.name,
                arg.name,
                f"an image of the output's height and width {domain}",
                shape,
                "Use the 'resize' kernel, or make the output of that size.",
            )
        if arg.kind == "array" and 0 in shape and not empty:
            raise ShapeMismatch.invalid(
                program.name, arg.name, f"an array with elements to fill {out_shape}", shape
            )
    dims = tuple(domain)
    if not program.uses_position:
        dims, strides = _merge(dims, strides)
    return Geometry(dims, tuple(strides), shapes, out_shape)


def _broadcast(
    kernel: str,
    arg: str,
    shape: tuple[int, ...],
    domain: tuple[int, ...],
    out_shape: tuple[int, ...],
) -> tuple[int, ...]:
    """Steps of an element argument along each axis of the positions, 0 where it repeats."""
    padded = (1,) * (len(domain) - len(shape)) + shape
    fits = len(padded) == len(domain) and all(
        a in (1, d) for a, d in zip(padded, domain, strict=True)
    )
    if not fits:
        raise ShapeMismatch.invalid(
            kernel,
            arg,
            f"of a shape that broadcasts to the output's {out_shape}",
            shape,
            "Axes must be equal or 1, counted from the last.",
        )
    steps: list[int] = []
    step = 1
    for size in reversed(padded):
        steps.append(step if size > 1 else 0)
        step *= size
    return tuple(reversed(steps))


def _merge(
    dims: tuple[int, ...], strides: list[tuple[int, ...]]
) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """Joins neighbouring axes along which every argument walks evenly, and drops axes of one.

    >>> _merge((2, 3, 4), [(12, 4, 1), (0, 4, 1)])
    ((2, 12), [(12, 1), (0, 1)])
    """
    axes = [axis for axis, size in enumerate(dims) if size != 1] or [len(dims) - 1]
    sizes: list[int] = []
    steps: list[list[int]] = []
    for axis in axes:
        here = [s[axis] for s in strides if s]
        if sizes and all(
            outer == inner * dims[axis] for outer, inner in zip(steps[-1], here, strict=True)
        ):
            sizes[-1] *= dims[axis]
            steps[-1] = here
        else:
            sizes.append(dims[axis])
            steps.append(here)
    merged: list[tuple[int, ...]] = []
    number = 0
    for s in strides:
        if not s:
            merged.append(())
            continue
        merged.append(tuple(row[number] for row in steps))
        number += 1
    return tuple(sizes), merged


# parameters -----------------------------------------------------------------------------------
#: The largest number an f32 holds.
_F32_MAX = 3.4028234663852886e38


def number_kinds(decl: KernelDecl, params: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """For parameters that take any number: the kind that came."""
    found = []
    for p in decl.params:
        if p.type == "number":
            value = params.get(p.name, p.default)
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            found.append((p.name, "int" if whole else "float"))
    return tuple(found)


def pack(
    decl: KernelDecl, slots: tuple[Param, ...], params: Mapping[str, Any]
) -> tuple[int | float, ...]:
    """Parameter values in the order of the program's parameters, checked."""
    if not decl.params and not params:
        return ()
    if not params.keys() <= {p.name for p in decl.params}:
        check_params(decl.name, params, [p.name for p in decl.params])
    values: list[int | float] = []
    place = 0
    for p in decl.params:
        value = params.get(p.name, p.default)
        if value is None:
            raise missing_parameter(decl.name, p.name)
        for item in _components(decl, p, value):
            number = _number(p, item, slots[place])
            if number is None:
                raise _refused(decl, p, slots[place], value)
            values.append(number)
            place += 1
    return tuple(values)


def _components(decl: KernelDecl, p: ParamDecl, value: Any) -> Sequence[Any]:
    if not p.size:
        return (value,)
    try:
        items = tuple(value)
    except TypeError:
        items = ()
    if len(items) != p.size:
        raise ParameterError.invalid(decl.name, p.name, p.expected, value)
    return items


def _refused(decl: KernelDecl, p: ParamDecl, slot: Param, value: Any) -> ParameterError:
    """Return the error for a value that a parameter does not accept."""
    expected = p.expected
    if p.low is None and slot.type not in FLOATS and p.type != "bool":
        expected = expected_numbers(True, *RANGES[slot.type], p.size)
    elif slot.type == "f32" and isinstance(value, int | float) and abs(value) > _F32_MAX:
        expected = f"{expected} that fits f32" if p.allows(value) else expected
    return ParameterError.invalid(decl.name, p.name, expected, python_number(value))


def _number(p: ParamDecl, value: Any, slot: Param) -> int | float | None:
    """Return a number in the slot's type, or None if it is refused."""
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, bool | int | float):
        return None
    if slot.type in FLOATS:
        try:
            number = float(value)
        except OverflowError:
            return None
        if math.isnan(number) or not p.allows(number):
            return None
        if p.low is not None and slot.type == "f32" and abs(number) > _F32_MAX:
            return None
        return number
    if isinstance(value, float):
        if not value.is_integer():
            return None
        value = int(value)
    low, high = RANGES[slot.type]
    return int(value) if p.allows(value) and low <= value <= high else None
