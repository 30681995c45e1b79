"""Checked calls, and plans that repeat a call without checking it again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from dala.budget import Limits
from dala.forks import cached_property
from dala.gpu.compute.call.arguments import LastParams
from dala.gpu.compute.engines.base import Engine, Geometry, Runner, Storage, Task
from dala.gpu.compute.engines.registry import run_on_host, unsupported
from dala.gpu.compute.lang.declaration import KernelDecl
from dala.gpu.compute.lang.ir import Program

#: Parameter values in the order of a program's parameters.
Values: TypeAlias = tuple[int | float, ...]


@dataclass(frozen=True, eq=False)
class CallPlan:
    """A kernel prepared for one engine and for buffers of certain dtypes and shapes."""

    run: Runner
    #: The program; None for an operation.
    program: Program | None = None
    #: Inputs that must not be the output, because they are read at other positions.
    distinct: tuple[int, ...] = ()
    #: True if a buffer is a view of foreign memory, so that two buffers may overlap.
    shared: bool = False
    #: The runner's parameters if they are part of the plan.
    values: Values = ()
    #: The kernel, whose parameters are those of each call; None for an operation.
    decl: KernelDecl | None = None
    params: LastParams = field(default_factory=LastParams)


#: A call that is ready to run: ``plan.run(inputs, output, values)``.
ReadyCall: TypeAlias = tuple[CallPlan, list[Storage], Storage, Values]


@dataclass(frozen=True, eq=False)
class BoundCall:
    """A kernel bound to buffers and checked, but not compiled yet."""

    engine: Engine
    #: None for an operation that is not lowered to a program.
    program: Program | None
    geometry: Geometry | None
    #: Inputs that must not be the output, because they are read at other positions.
    distinct: tuple[int, ...] = ()
    #: True if a buffer is a view of foreign memory, so that two buffers may overlap.
    shared: bool = False
    #: The operation's task. Engine code is preferred to the program.
    task: Task | None = None
    #: Limits of each call of the kernel, which is then never fused.
    limits: Limits | None = None
    #: The kernel; None for an operation.
    decl: KernelDecl | None = None

    @cached_property
    def code(self) -> Runner | None:
        """The engine's code for the operation, which takes no parameters; None if it has none."""
        task = self.task
        if task is None:
            return None
        if 0 in task.output.shape:
            return _nothing
        if task.define is not None and any(0 in t.shape for t in task.inputs):
            return run_on_host(self.engine, task)
        return self.engine.operate(task)

    def prepare(self) -> Runner:
        """Return the call's runner, compiled if necessary."""
        if self.code is not None:
            return self.code
        if self.program is None or self.geometry is None:
            assert self.task is not None
            raise unsupported(self.engine, self.task)
        if self.geometry.count == 0:
            return _nothing
        run = self.engine.prepare(self.program, self.geometry)
        return run if self.limits is None else _within(self.limits, run)

    def plan(self, values: Values = ()) -> CallPlan:
        """Return the call's plan; ``values`` are parameters of a lowered operation's program."""
        run = self.prepare()
        values = () if self.code is not None else values
        return CallPlan(run, self.program, self.distinct, self.shared, values, self.decl)


def _within(limits: Limits, run: Runner) -> Runner:
    def limited(inputs: Sequence[Storage], output: Storage, params: Values) -> None:
        with limits:
            run(inputs, output, params)

    return limited


def _nothing(inputs: Sequence[Storage], output: Storage, params: Values) -> None:
    """Do nothing: an empty output needs no work."""
