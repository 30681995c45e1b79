"""Fuse the stages of a pipeline into passes.

A stage is fused into the pass that reads its output if

- the output is a transient buffer, written once and read by that pass alone,
- the two can be one program (:mod:`dala.gpu.compute.lang.inline`),
- no pass in between overwrites the stage's inputs, and
- the engine cannot run the two faster as a chain (:mod:`dala.gpu.compute.pipeline.chain`).

Stages are never fused across a barrier.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import cast

from dala.budget import check_deadline
from dala.gpu.compute.buffer import Buffer, overlap, settle
from dala.gpu.compute.call.geometry import geometry
from dala.gpu.compute.call.plans import BoundCall, Values
from dala.gpu.compute.call.spec import Spec, read_spec
from dala.gpu.compute.engines.base import Engine, Runner, Storage
from dala.gpu.compute.lang.inline import can_inline, inline, pointwise, share_args
from dala.gpu.compute.lang.ir import Program
from dala.gpu.compute.params import check_mapping
from dala.trace.recorder import tracer
from dala.typing import ParamValue


class Stage:
    """A checked stage of a pipeline: a kernel, a copy or a barrier."""

    def __init__(self, spec: Spec) -> None:
        self.op, self.kernel, inputs, self.output, params = read_spec(spec, "Pipeline.add")
        self.params: dict[str, ParamValue] = {}
        self.call: BoundCall | None = None
        self.values: Values = ()
        if self.kernel is not None:
            check_mapping(self.kernel.name, params)
            self.params = dict(params)
            bound = self.kernel.bind(inputs, self.output, self.params)  # type: ignore[arg-type]
            self.call, self.values = bound
        self.inputs = list(inputs)

    @property
    def name(self) -> str:
        """The kernel's name, "copy_buffer" or "barrier"."""
        return self.kernel.name if self.kernel is not None else self.op

    def rebind(self, old: Buffer, new: Buffer) -> None:
        """Replace one of its buffers."""
        self.inputs = [new if b is old else b for b in self.inputs]
        if self.output is old:
            self.output = new

    def spec(self) -> Spec:
        """Return the stage as a dict that ``Pipeline.add`` accepts; all have the same keys."""
        return {
            "op": self.op, "kernel": None if self.kernel is None else self.kernel.name,
            "inputs": list(self.inputs), "output": self.output, "params": dict(self.params),
        }  # fmt: skip


class Pass:
    """One pass over memory: fused stages, their program and buffers."""

    def __init__(self, stage: Stage) -> None:
        self.op = stage.op
        self.stages: list[Stage] = [stage]
        self.inputs = list(stage.inputs)
        self.output: Buffer | None = stage.output
        #: Additional outputs of a chain.
        self.stores: list[Buffer] = []
        self.program: Program | None = None
        self._run: Runner | None = None
        self._takes_params = True
        call = stage.call
        fusible = call is not None and call.limits is None
        if call is not None and fusible and (call.engine.fuses_operations or call.code is None):
            self.program = call.program

    @property
    def moved(self) -> int:
        """Bytes read and written per run."""
        total = sum(b.nbytes for b in (*self.inputs, *self.stores))
        return total + (self.output.nbytes if self.output is not None else 0)

    @property
    def label(self) -> str:
        """The names of its stages, for ``explain``."""
        task = self.stages[0].call.task if self.stages[0].call is not None else None
        host = " on the host" if task is not None and task.host else ""
        return " + ".join(stage.name for stage in self.stages) + host

    @property
    def values(self) -> Values:
        """Parameters of its program; empty for engine code."""
        found: Values = ()
        if self._takes_params:
            for stage in self.stages:
                found += stage.values
        return found

    def share_inputs(self) -> None:
        """Merge arguments that refer to the same buffer. Call it after fusing."""
        if self.program is None or len(self.stages) == 1:
            return
        numbers: dict[tuple[int, str], int] = {}
        inputs: list[Buffer] = []
        same = []
        for b, arg in zip(self.inputs, self.program.args, strict=True):
            key = (id(b), arg.kind)
            if key not in numbers:
                numbers[key] = len(inputs)
                inputs.append(b)
            same.append(numbers[key])
        self.program, self.inputs = share_args(self.program, tuple(same)), inputs

    def rebind(self, old: Buffer, new: Buffer) -> None:
        """Replace one of its buffers."""
        self.inputs = [new if b is old else b for b in self.inputs]
        self.stores = [new if b is old else b for b in self.stores]
        if self.output is old:
            self.output = new

    def renew(self) -> bool:
        """Prepare again after an operation's parameter changed; return False if that fails."""
        if self.output is None or len(self.stages) > 1 or self.program is not None:
            return False
        self.prepare(self.output.engine)
        return True

    def prepare(self, engine: Engine) -> None:
        """Compile the pass, or look up its engine code."""
        if self.op != "run_kernel" or self.output is None:
            return
        call = self.stages[0].call
        if len(self.stages) == 1 and call is not None:
            self._run = call.prepare()
            self._takes_params = call.code is None
            return
        assert self.program is not None
        shapes = tuple(b.shape for b in self.inputs)
        over = geometry(self.program, shapes, self.output.shape)
        self._run = BoundCall(engine, self.program, over).prepare()

    def check(self) -> None:
        """Raise FreedError if a buffer was freed; compute expressions that read its outputs."""
        for b in self.inputs:
            if b._storage is None:
                b.storage("Pipeline.run", f"an input of stage {self.stages[0].name!r}")
        written = [*self.stores, *([self.output] if self.output is not None else [])]
        for b in written:
            if b._storage is None:
                b.storage("Pipeline.run", f"the output of stage {self.stages[-1].name!r}")
            if b._storage is not None and b._storage.reader is not None:
                settle(b._storage)

    def run(self, engine: Engine) -> None:
        """Run the pass."""
        check_deadline("Pipeline.run")
        if self.op == "barrier":
            return
        if tracer.on:
            if engine.queued:
                engine.name_work(self.label, tracer.frame)
            with tracer.span("pass", self.label, device=engine.id):
                self.freeze(engine)()
        else:
            self.freeze(engine)()

    def run_timed(self, engine: Engine) -> float:
        """Run the pass and return the time it took, in seconds."""
        start = time.perf_counter()
        self.run(engine)
        return time.perf_counter() - start

    def freeze(self, engine: Engine) -> Callable[[], None]:
        """Return a function that runs the pass with its current buffers and parameters."""
        assert self.output is not None
        target = cast(Storage, self.output._storage)  # check() raises for freed buffers
        storages = cast(list[Storage], [b._storage for b in (*self.inputs, *self.stores)])
        if self.op == "copy_buffer":
            return partial(engine.copy, storages[0], target)
        assert self._run is not None
        return partial(self._run, storages, target, self.values)


def fuse(stages: list[Stage]) -> list[Pass]:
    """Fuse stages into passes, which are not prepared yet."""
    nodes = [Pass(stage) for stage in stages]
    while _fuse_one(nodes):
        pass
    for node in nodes:
        node.share_inputs()
    return nodes


def _fuse_one(nodes: list[Pass]) -> bool:
    for i, producer in enumerate(nodes):
        j = _reader(nodes, i)
        if j is None:
            continue
        consumer = nodes[j]
        readers = tuple(n for n, b in enumerate(consumer.inputs) if b is producer.output)
        first, second = producer.program, consumer.program
        if first is None or second is None or not _fits(nodes, i, j, readers, first, second):
            continue
        consumer.program = inline(first, second, readers)
        kept = [b for n, b in enumerate(consumer.inputs) if n not in readers]
        consumer.inputs = producer.inputs + kept
        consumer.stages = producer.stages + consumer.stages
        del nodes[i]
        return True
    return False


def _reader(nodes: list[Pass], i: int) -> int | None:
    """Return the only pass that reads the output of pass i, or None if others use that buffer."""
    out = nodes[i].output
    if out is None or not out.transient or nodes[i].program is None:
        return None
    if any(b is out for b in nodes[i].inputs):
        return None
    others = [n for n in range(len(nodes)) if n != i]
    if any(nodes[n].output is out for n in others):
        return None
    readers = [n for n in others if any(b is out for b in nodes[n].inputs)]
    if len(readers) != 1 or readers[0] < i or nodes[readers[0]].program is None:
        return None
    return readers[0]


def _fits(
    nodes: list[Pass], i: int, j: int, readers: tuple[int, ...], first: Program, second: Program
) -> bool:
    """Return whether pass i can be fused into pass j, its only reader; the two have programs."""
    producer, consumer = nodes[i], nodes[j]
    between = nodes[i + 1 : j]
    if any(node.op == "barrier" for node in between):
        return False
    written = [node.output for node in between if node.output is not None]
    if any(overlap(w, b) for w in written for b in producer.inputs):
        return False  # the producer's inputs would be overwritten before it runs
    assert producer.output is not None
    assert consumer.output is not None
    both = pointwise(first) and pointwise(second)
    for b in producer.inputs:
        if overlap(b, consumer.output) and not (both and b is consumer.output):
            return False  # the consumer would overwrite values that it still has to read
    shape, wanted = producer.output.shape, consumer.output.shape
    if (shape[:2] != wanted[:2]) if second.out.pixels else (shape != wanted):
        return False
    if not can_inline(first, second, readers):
        return False
    every = (*producer.inputs, *consumer.inputs)
    most = consumer.output.engine.max_bound_inputs
    kinds = zip(every, (*first.args, *second.args), strict=True)
    read = {(id(b), a.kind) for b, a in kinds if b is not producer.output}
    if most is not None and len(read) > most:
        return False
    if any(overlap(b, consumer.output) or b.shape[:2] != wanted[:2] for b in every):
        return True  # in-place passes and other sizes cannot be chained
    return not consumer.output.engine.prefers_chain(first, second)
