"""The reference engine: interprets programs with NumPy, over many positions at once.

It defines the kernel language; other engines are tested against it. Each operation is one row of
``OPERATIONS``. The code is written for clarity, not for speed.

A value is a one-dimensional array with a number for each position of a block, or of length 1 if all
positions share it (constants, parameters, shapes). Values are never NumPy scalars, so that NumPy
does not promote f32. Control flow uses masks: ``live`` marks the positions that are still running.
A loop ends when no position is live, and a slot changes only at live positions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from dala import budget
from dala.forks import cached_property
from dala.gpu.compute.dtypes import DTYPES, NUMPY
from dala.gpu.compute.engines.base import (
    Bytes,
    Engine,
    Geometry,
    Info,
    Runner,
    Storage,
    Task,
    Values,
)
from dala.gpu.compute.engines.elementary.double import DOUBLE
from dala.gpu.compute.engines.elementary.single import SINGLE
from dala.gpu.compute.engines.registry import as_array, run_definition
from dala.gpu.compute.lang import ir
from dala.typing import NDArray

_TYPES: Final = {"f64": np.float64, "i32": np.int32}


class Numbers(np.ndarray[Any, np.dtype[Any]]):
    """An array with the operators of :class:`~dala.gpu.compute.engines.cpu.vector.numbers.Num`."""

    def of(self, value: float) -> Any:
        return np.full_like(self, value)

    def equals(self, other: Any) -> Any:
        return self == other

    def compare(self, rule: str, other: Any) -> Any:
        assert rule == "uno"
        return np.isnan(self) | np.isnan(other)

    def choose(self, yes: Any, no: Any) -> Any:  # type: ignore[override]
        return np.where(self, yes, no).view(Numbers)

    def to(self, kind: str) -> Any:
        return self.astype(_TYPES[kind])

    def bits(self) -> Any:
        return self.view(np.int64 if self.dtype.kind == "f" else np.float64)

    def call(self, intrinsic: str, *others: Any) -> Any:
        return getattr(np, intrinsic)(self, *others)

    def multiply_add(self, factor: Any, addend: Any) -> Any:
        return self * factor + addend

    def within(self, low: float, high: float) -> Any:
        return np.clip(self, low, high)  # NaN stays NaN


def exact_function(op: str, *args: NDArray) -> NDArray:
    """Compute a function as the CPU engine does."""
    functions = SINGLE if args[0].dtype == np.float32 else DOUBLE
    wide = (a.astype(np.float64).view(Numbers) for a in args)
    return np.asarray(functions[op](*wide)).astype(args[0].dtype)


#: Positions interpreted together. Limits the memory of intermediate values.
BLOCK: Final = 1 << 18

#: Any numeric dtype.
NumberType: TypeAlias = np.dtype[Any]

TYPES: Final[dict[str, NumberType]] = {
    "bool": np.dtype(np.bool_),
    **{name: NUMPY[name] for name in ("s32", "u32", "s64", "f32", "f64")},
}


# operations -----------------------------------------------------------------------------------


def floor_divide(a: NDArray, b: NDArray) -> NDArray:
    """Divide, rounding down. By zero gives 0; the most negative number by -1 gives itself."""
    special = (b == 0) | (b == -1)
    quotient = np.floor_divide(a, np.where(special, np.ones_like(b), b))
    return np.where(b == 0, np.zeros_like(a), np.where(b == -1, np.negative(a), quotient))


def floor_remainder(a: NDArray, b: NDArray) -> NDArray:
    """Return the remainder of floor division; 0 for a divisor of 0 or -1."""
    special = (b == 0) | (b == -1)
    remainder = np.remainder(a, np.where(special, np.ones_like(b), b))
    return np.where(special, np.zeros_like(a), remainder)


def shifted(shift: Callable[..., NDArray]) -> Callable[..., NDArray]:
    """Return a shift by the amount modulo the number of bits; signed numbers keep their sign."""
    return lambda a, amount: shift(a, amount & (a.itemsize * 8 - 1))


def extreme(better: Callable[..., NDArray]) -> Callable[..., NDArray]:
    """Return a function of a and b: b where it is better or NaN, else a. NaN propagates."""

    def chosen(a: NDArray, b: NDArray) -> NDArray:
        return np.where(better(b, a) | np.isnan(b), b, a)

    return chosen


def in_double(function: Callable[..., NDArray]) -> Callable[..., NDArray]:
    """Wrap a function to compute in f64 and round once, so that f32 results are exact."""

    def rounded(*args: NDArray) -> NDArray:
        wide = function(*(a.astype(np.float64) for a in args))
        return np.asarray(wide).astype(args[0].dtype)

    return rounded


def power(x: NDArray, y: NDArray) -> NDArray:
    """Return x ** y as C defines it; NumPy takes a single exponent of 0.5 for a square root."""
    result = np.power(*np.broadcast_arrays(x, y))
    root = np.isneginf(x) & (y == 0.5)
    return np.where(root, np.inf, result)


def saturate(x: NDArray, target: NumberType) -> NDArray:
    """Convert floats to ints: truncate, clamp to the range; NaN becomes 0."""
    ends = np.iinfo(target)
    too_low = x < float(ends.min)
    too_high = x >= 2.0 ** (ends.bits - (target.kind == "i"))  # the first number that overflows
    inside = np.where(too_low | too_high | np.isnan(x), np.zeros_like(x), x)
    whole = inside.astype(target)
    whole = np.where(too_low, np.array(ends.min, target), whole)
    return np.where(too_high, np.array(ends.max, target), whole)


def cast(x: NDArray, target: NumberType) -> NDArray:
    """Convert between any two types: ints wrap, floats saturate to ints, nonzero is True."""
    if target == np.bool_:
        return np.not_equal(x, 0)
    if x.dtype.kind == "f" and target.kind in "iu":
        return saturate(x, target)
    return x.astype(target)


#: The definition of each pure operation, except ``cast`` and ``bits``, which need a target type.
OPERATIONS: Final[dict[str, Callable[..., NDArray]]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "neg": np.negative, "div": np.divide,
    "idiv": floor_divide, "mod": floor_remainder, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "not": np.invert, "shl": shifted(np.left_shift),
    "shr": shifted(np.right_shift), "eq": np.equal, "ne": np.not_equal, "lt": np.less,
    "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "select": np.where,
    "min": extreme(np.less), "max": extreme(np.greater), "abs": np.absolute, "floor": np.floor,
    "ceil": np.ceil, "round": np.rint, "sqrt": np.sqrt, "exp": in_double(np.exp),
    "log": in_double(np.log), "sin": in_double(np.sin), "cos": in_double(np.cos),
    "tan": in_double(np.tan), "atan": in_double(np.arctan), "atan2": in_double(np.arctan2),
    "pow": in_double(power), "isnan": np.isnan,
}  # fmt: skip


# the interpreter ------------------------------------------------------------------------------


@dataclass(eq=False)
class Interpreter:
    """Runs a program over the positions ``first`` to ``last`` of a geometry."""

    program: ir.Program
    geometry: Geometry
    inputs: Sequence[NDArray]
    params: Values
    first: int
    last: int

    def __post_init__(self) -> None:
        self.flat = np.arange(self.first, self.last, dtype=np.int64)
        self.values: dict[ir.Value, NDArray] = {}
        self.slots: dict[ir.Slot, NDArray] = {}
        self.broken: list[NDArray] = []
        self.scope = budget.capture()
        self.limit = None if self.scope is None else self.scope.limits.iterations
        #: Iterations at each position so far.
        self.iterations: NDArray = np.zeros(1, np.int64)

    def run(self) -> list[NDArray]:
        """Return the numbers to store, one array per channel."""
        self.block(self.program.body, np.array([True]))
        return [self.value(v) for v in self.program.result]

    # statements: each takes the live positions and returns those still live afterwards

    def block(self, block: ir.Block, live: NDArray) -> NDArray:
        for statement in block.body:
            if not live.any():
                break
            match statement:
                case ir.Value():
                    self.values[statement] = self.operation(statement)
                case ir.SetSlot():
                    self.set(statement.slot, self.value(statement.value), live)
                case ir.If():
                    holds = self.value(statement.condition)
                    then = self.block(statement.then, live & holds)
                    otherwise = self.block(statement.otherwise, live & ~holds)
                    live = then | otherwise
                case ir.For():
                    self.loop(statement, live)
                case ir.Break():
                    self.broken[-1] = self.broken[-1] | live
                    live = np.array([False])
                case ir.Continue():
                    live = np.array([False])
        return live

    def loop(self, loop: ir.For, live: NDArray) -> None:
        counter = self.value(loop.start).astype(np.int64)
        stop = self.value(loop.stop)
        while True:
            live = live & ((counter < stop) if loop.step > 0 else (counter > stop))
            if not live.any():
                return
            self.count(live)
            self.set(loop.index, counter.astype(np.int32), live)
            self.broken.append(np.array([False]))
            self.block(loop.body, live)
            live = live & ~self.broken.pop()
            counter = counter + loop.step

    def count(self, live: NDArray) -> None:
        """Count an iteration, and end the work if it has to end."""
        if self.scope is not None:
            self.scope.check(self.program.name)
        if self.limit is not None:
            self.iterations = self.iterations + live
            if (self.iterations > self.limit).any():
                raise budget.limit_exceeded(self.program.name, self.limit)

    def set(self, slot: ir.Slot, value: NDArray, live: NDArray) -> None:
        self.slots[slot] = value if live.all() else np.where(live, value, self.get(slot))

    # values

    def get(self, slot: ir.Slot) -> NDArray:
        return self.slots.get(slot, np.zeros(1, TYPES[slot.type]))

    def value(self, value: ir.Value) -> NDArray:
        if value.op == "const":
            return np.array([value.attr], TYPES[value.type])
        return self.values[value]

    def operation(self, value: ir.Value) -> NDArray:
        args = [self.value(a) for a in value.args]
        match value.op:
            case "param":
                return np.array([self.params[value.attr]], TYPES[value.type])
            case "position":
                return np.asarray(self.positions[value.attr].astype(np.int32))
            case "dim":
                return np.array([self.geometry.extent(*value.attr)], np.int32)
            case "get":
                return self.get(value.attr)
            case "element":
                return self.load(value, value.attr, self.walk(self.geometry.strides[value.attr]))
            case "pixel":
                argument, channel = value.attr
                channels = self.program.args[argument].channels
                return self.load(value, argument, self.flat * channels + channel)
            case "image":
                return self.image(value, *args)
            case "array":
                shape = self.geometry.shapes[value.attr]
                return self.load(value, value.attr, clamped_index(shape, args))
            case "cast" if value.attr == "in_range":
                return args[0].astype(TYPES[value.type])
            case "cast":
                return cast(args[0], TYPES[value.type])
            case "bits":
                return np.asarray(args[0].view(TYPES[value.type]))
        if self.program.exact and value.op in SINGLE:
            return exact_function(value.op, *args)
        return np.asarray(OPERATIONS[value.op](*args))

    @cached_property
    def positions(self) -> tuple[NDArray, ...]:
        """The index of every position in this block, along each axis."""
        shape = self.geometry.out_shape[: self.program.rank]
        return np.unravel_index(self.flat, shape or (1,))

    def walk(self, strides: tuple[int, ...]) -> NDArray:
        """Return the index of each position's element; broadcast axes have stride 0."""
        along = np.unravel_index(self.flat, self.geometry.dims)
        return np.asarray(sum(i * s for i, s in zip(along, strides, strict=True)))

    def image(self, value: ir.Value, dx: NDArray, dy: NDArray) -> NDArray:
        """Return the pixel ``dx`` to the right and ``dy`` below, clamped to the edge."""
        argument, channel = value.attr
        channels = self.program.args[argument].channels
        y, x = self.positions
        pixel = clamped_index(self.geometry.shapes[argument][:2], [y + dy, x + dx])
        return self.load(value, argument, pixel * channels + channel)

    def load(self, value: ir.Value, argument: int, index: NDArray) -> NDArray:
        """Read numbers from memory, u8 widened to s32. An empty array gives zeros."""
        memory = self.inputs[argument]
        if memory.size == 0:
            return np.zeros(1, TYPES[value.type])
        return memory[index].astype(TYPES[value.type])


def clamped_index(shape: tuple[int, ...], indexes: Sequence[NDArray]) -> NDArray:
    """Return the flat index of an element; each index is clamped to its axis."""
    flat = np.zeros(1, np.int64)
    for extent, index in zip(shape, indexes, strict=True):
        flat = flat * extent + np.clip(index.astype(np.int64), 0, max(extent - 1, 0))
    return flat


# the engine -----------------------------------------------------------------------------------


class ReferenceEngine(Engine):
    """The engine that defines every kernel and operation, in NumPy."""

    id = "reference"
    backend = "reference"
    dtypes = frozenset(DTYPES)

    def __init__(self) -> None:
        # One entry per live storage, by identity. Single dict operations are atomic, so that
        # finalizers can release storage without a lock.
        self._live: dict[int, int] = {}

    def info(self) -> Info:
        return {
            "name": "NumPy reference",
            "gpu": False,
            "backend": "reference",
            "numpy": np.__version__,
        }

    def allocate(self, nbytes: int, *, zero: bool) -> Storage:
        memory = np.zeros(nbytes, np.uint8) if zero else np.empty(nbytes, np.uint8)
        return self._keep(Storage(nbytes, memory))

    def release(self, storage: Storage) -> None:
        self._live.pop(id(storage), None)
        storage.handle = None  # views of the memory keep it alive

    def upload(self, storage: Storage, data: Bytes) -> None:
        storage.handle[:] = as_bytes(memoryview(data))

    def download(self, storage: Storage) -> memoryview:
        return memoryview(storage.handle.copy())

    def copy(self, source: Storage, target: Storage) -> None:
        target.handle[:] = source.handle

    def host_view(self, storage: Storage) -> memoryview:
        return memoryview(storage.handle)

    def adopt(self, memory: memoryview) -> Storage | None:
        return self._keep(Storage(memory.nbytes, as_bytes(memory), foreign=True))

    def prepare(self, program: ir.Program, geometry: Geometry) -> Runner:
        def run(inputs: Sequence[Storage], output: Storage, params: Values) -> None:
            out = output.handle.view(NUMPY[program.out.dtype])
            out = out.reshape(geometry.count, program.out.channels)
            arrays = [
                apart(s.handle, output.handle, arg.kind in ("element", "pixel")).view(
                    NUMPY[arg.dtype]
                )
                for s, arg in zip(inputs, program.args, strict=True)
            ]
            with np.errstate(all="ignore"):
                for first in range(0, geometry.count, BLOCK):
                    budget.check_deadline(program.name)
                    last = min(first + BLOCK, geometry.count)
                    result = Interpreter(program, geometry, arrays, params, first, last).run()
                    for channel, numbers in enumerate(result):
                        out[first:last, channel] = numbers.astype(out.dtype)

        return run

    def operate(self, task: Task) -> Runner:
        def run(inputs: Sequence[Storage], output: Storage, params: Values) -> None:
            arrays = [
                as_array(apart(s.handle, output.handle, False), t.shape, t.dtype)
                for s, t in zip(inputs, task.inputs, strict=True)
            ]
            run_definition(
                task, arrays, as_array(output.handle, task.output.shape, task.output.dtype)
            )

        return run

    def source(self, program: ir.Program, geometry: Geometry) -> str:
        return ir.format_program(program.body, program.result)

    def stats(self) -> dict[str, int]:
        live = list(self._live.values())
        return {"live_buffers": len(live), "live_bytes": sum(live)}

    def _keep(self, storage: Storage) -> Storage:
        self._live[id(storage)] = storage.nbytes
        return storage


def as_bytes(memory: memoryview) -> NDArray:
    """Return contiguous memory as an array of bytes, without a copy."""
    return np.empty(0, np.uint8) if memory.nbytes == 0 else np.frombuffer(memory, np.uint8)


def apart(source: NDArray, output: NDArray, in_step: bool) -> NDArray:
    """Return the input, or a copy if writing the output in blocks could overwrite unread data.

    An input that is read in step with the output may be the output itself. Memory adopted from the
    caller may also overlap in part, which needs the copy.
    """
    same = source.__array_interface__["data"] == output.__array_interface__["data"]
    if np.may_share_memory(source, output) and not (in_step and same):
        return source.copy()
    return source
