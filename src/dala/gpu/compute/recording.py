"""Record the plan of a pipeline for any WebGPU device, without running it.

A plan may be a function of symbols, such as the width of a picture or the strength of a filter: see
:mod:`~dala.gpu.compute.engines.symbols`. Web pages run such plans.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dala.gpu.compute.buffer import Buffer, check_dtype
from dala.gpu.compute.dtypes import ITEMSIZE
from dala.gpu.compute.engines.symbols import (
    Expr,
    Guard,
    Number,
    SymbolicBytes,
    Trace,
    apply,
    evaluate,
    expr_of,
    holds,
    word,
)
from dala.gpu.compute.engines.webgpu.recorded.engine import (
    RecordedBuffer,
    RecordedCopy,
    RecordingEngine,
    ShaderCache,
)
from dala.typing import NDArray

__all__ = [
    "Expr", "Guard", "Number", "Plan", "PlanBuffer", "PlanStep", "Recorder", "ShaderCache",
    "Trace", "cos", "evaluate", "holds", "sin",
]  # fmt: skip


@dataclass(frozen=True)
class PlanBuffer:
    """Memory of a plan.

    Attributes:
        nbytes: its size.
        data: its content, for constants.
        words: the numbers of the content that depend on symbols.
        table: the expression of the whole content, where it is a table that depends on symbols.
        role: "input", "output", what a page writes into it in each frame, or "".
    """

    nbytes: Expr
    data: bytes | None = None
    words: tuple[tuple[int, str, Expr], ...] = ()
    table: Expr | None = None
    role: str = ""


@dataclass(frozen=True)
class PlanStep:
    """A dispatch of a plan, or a copy, whose ``source`` is empty.

    Attributes:
        source: the WGSL.
        buffers: the numbers of the buffers that are bound, the output last.
        block: the uniform block.
        words: the numbers of the block that depend on symbols: offset, "u" or "f", expression.
        groups: the number of workgroups.
    """

    source: str
    buffers: tuple[int, ...]
    block: bytes = b""
    words: tuple[tuple[int, str, Expr], ...] = ()
    groups: Expr = 0


@dataclass(frozen=True)
class Plan:
    """A recorded plan: dispatches in order, their buffers, and the guards under which it holds."""

    steps: tuple[PlanStep, ...]
    buffers: tuple[PlanBuffer, ...]
    shape: tuple[Expr, ...]
    dtype: str
    guards: tuple[Guard, ...]
    #: Pairs of buffers that change places after each frame: what a frame makes, and reads again.
    swaps: tuple[tuple[int, int], ...] = ()

    def holds(self, values: Mapping[str, Number]) -> bool:
        """Return whether the plan holds for values of its symbols."""
        return all(holds(guard, values) for guard in self.guards)

    def at(self, values: Mapping[str, Number]) -> Plan:
        """Return the plan for values of its symbols, all numbers plain."""

        def number(expr: Expr) -> int:
            return int(evaluate(expr, values))

        def filled(b: PlanBuffer) -> bytes | None:
            if b.table is None:
                return _filled(b.data, b.words, values)
            return bytes(evaluate(b.table, values))

        buffers = tuple(PlanBuffer(number(b.nbytes), filled(b), role=b.role) for b in self.buffers)
        steps = tuple(
            replace(s, block=_filled(s.block, s.words, values) or b"", words=(),
                groups=number(s.groups))
            for s in self.steps
        )  # fmt: skip
        shape = tuple(map(number, self.shape))
        return Plan(steps, buffers, shape, self.dtype, (), self.swaps)


def _filled(
    data: bytes | None, words: Sequence[tuple[int, str, Expr]], values: Mapping[str, Number]
) -> bytes | None:
    if data is None or not words:
        return data
    made = bytearray(data)
    for at, kind, expr in words:
        made[at : at + 4] = word(kind, evaluate(expr, values))
    return bytes(made)


def cos(angle: float) -> float:
    """Return the cosine of an angle in radians, which may be symbolic.

    >>> cos(0.0)
    1.0
    """
    return apply("cos", math.cos(angle), angle)


def sin(angle: float) -> float:
    """Return the sine of an angle in radians, which may be symbolic.

    >>> sin(0.0)
    0.0
    """
    return apply("sin", math.sin(angle), angle)


class Recorder:
    """Records the work of buffers that exist only as descriptions.

    >>> from dala.gpu.compute import Pipeline
    >>> recorder = Recorder()
    >>> a, out = recorder.buffer((4,), "f32"), recorder.buffer((4,), "f32")
    >>> Pipeline().add({"op": "run_kernel", "kernel": "relu", "inputs": [a], "output": out}).run()
    >>> plan = recorder.plan([a], out)
    >>> len(plan.steps), [b.role for b in plan.buffers]
    (1, ['input', 'output'])
    """

    def __init__(self, shaders: ShaderCache | None = None) -> None:
        self.trace = Trace()
        self._engine = RecordingEngine(shaders)

    def buffer(
        self,
        shape: Sequence[int],
        dtype: str,
        *,
        transient: bool = False,
        data: NDArray | None = None,
    ) -> Buffer:
        """Return a buffer of the recorded device; ``data`` makes it a constant."""
        check_dtype(self._engine, dtype, "export_web")
        storage = self._engine.allocate(ITEMSIZE[dtype] * math.prod(shape), zero=False)
        if data is not None:
            self._engine.upload(storage, data.tobytes())
        made = Buffer(self._engine, storage, tuple(shape), dtype)
        made.transient = transient
        return made

    def plan(
        self,
        inputs: Sequence[Buffer],
        output: Buffer,
        swaps: Sequence[tuple[Buffer, Buffer]] = (),
        roles: Sequence[tuple[Buffer, str]] = (),
    ) -> Plan:
        """Return the recorded plan, with these inputs and this output.

        Of ``swaps``, each pair changes places after each run; ``roles`` are those of constants that
        a page changes.
        """
        numbers: dict[int, int] = {}
        found: list[PlanBuffer] = []

        def number(buffer: RecordedBuffer, role: str = "") -> int:
            if id(buffer) not in numbers:
                numbers[id(buffer)] = len(found)
                data = buffer.data
                words = data.words if isinstance(data, SymbolicBytes) else ()
                table = getattr(data, "table", None)
                plain = None if data is None else bytes(data)
                found.append(PlanBuffer(expr_of(buffer.nbytes), plain, words, table, role))
            return numbers[id(buffer)]

        for b in inputs:
            number(_recorded(b), "input")
        number(_recorded(output), "output")
        for b, role in roles:
            number(_recorded(b), role)
        steps = []
        for step in self._engine.steps:
            if isinstance(step, RecordedCopy):
                steps.append(PlanStep("", (number(step.source), number(step.target))))
                continue
            words = step.block.words if isinstance(step.block, SymbolicBytes) else ()
            buffers = tuple(number(b) for b in step.buffers)
            block, groups = bytes(step.block), expr_of(step.groups)
            steps.append(PlanStep(step.source, buffers, block, words, groups))
        shape = tuple(expr_of(n) for n in output.shape)
        guards = tuple(self.trace.guards)
        pairs = tuple((number(_recorded(a)), number(_recorded(b))) for a, b in swaps)
        return Plan(tuple(steps), tuple(found), shape, output.dtype, guards, pairs)


def _recorded(b: Buffer) -> RecordedBuffer:
    handle = b.storage("export_web").handle
    assert isinstance(handle, RecordedBuffer)
    return handle
