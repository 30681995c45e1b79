"""Which stages of a pipeline melt together, and the passes that remain.

A stage whose output is a transient buffer, written once and read by one other pass, moves into
that pass if the language can say the two as one program (``lang.fuse``), nothing in between
overwrites what it reads, and the engine has no quicker way to run the two in step. Barriers are
never crossed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from dala.gpu.compute.buffer import Buffer, overlap
from dala.gpu.compute.call.bind import Call, geometry
from dala.gpu.compute.engines.base import Engine, Runner
from dala.gpu.compute.lang.fuse import can_fuse, fuse, pointwise, share_args
from dala.gpu.compute.lang.ir import Program

if TYPE_CHECKING:
    from dala.gpu.compute.pipeline.pipeline import Stage


class Node:
    """One pass: the stages melted into it, its program and its buffers."""

    def __init__(self, stage: Stage) -> None:
        self.op = stage.op
        self.stages: list[Stage] = [stage]
        self.inputs = list(stage.inputs)
        self.output = stage.output
        #: Further outputs, of a chain.
        self.stores: list[Buffer] = []
        self.program: Program | None = None
        self._run: Runner | None = None
        call = stage.call
        if call is not None and (call.engine.fuses_operations or call.code is None):
            self.program = call.program

    @property
    def moved(self) -> int:
        """Bytes read and written by one run."""
        total = sum(b.nbytes for b in (*self.inputs, *self.stores))
        return total + (self.output.nbytes if self.output is not None else 0)

    @property
    def label(self) -> str:
        """The stages in it, in a few words."""
        task = self.stages[0].call.task if self.stages[0].call is not None else None
        host = " on the host" if task is not None and task.host else ""
        return " + ".join(stage.name for stage in self.stages) + host

    @property
    def values(self) -> tuple[int | float, ...]:
        """Parameters of its program."""
        found: tuple[int | float, ...] = ()
        for stage in self.stages:
            found += stage.values
        return found

    def settle(self) -> None:
        """Makes arguments that are one buffer one, once nothing more melts."""
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

    def renew(self) -> bool:
        """Prepares it anew after a parameter of an operation has changed; False if it cannot."""
        if self.output is None or len(self.stages) > 1 or self.program is not None:
            return False
        self.prepare(self.output.engine)
        return True

    def prepare(self, engine: Engine) -> None:
        """Prepares the code of the pass."""
        if self.op != "run_kernel" or self.output is None:
            return
        call = self.stages[0].call
        if len(self.stages) == 1 and call is not None:
            self._run = call.prepare()
            return
        assert self.program is not None
        shapes = tuple(b.shape for b in self.inputs)
        over = geometry(self.program, shapes, self.output.shape)
        self._run = Call(engine, self.program, over, ()).prepare()

    def check(self) -> None:
        """Raises FreedError if a buffer of the pass was freed; before anything runs."""
        for b in self.inputs:
            if b._storage is None:
                b.storage(f"Pipeline.run, stage {self.stages[0].name!r}")
        written = [*self.stores, *([self.output] if self.output is not None else [])]
        for b in written:
            if b._storage is None:
                b.storage(f"Pipeline.run, stage {self.stages[-1].name!r}")

    def run(self, engine: Engine) -> None:
        """Runs the pass."""
        if self.op != "barrier":
            self.freeze(engine)()

    def freeze(self, engine: Engine) -> Callable[[], None]:
        """One run of the pass, with the memory and the parameters of this moment."""
        assert self.output is not None
        target: Any = self.output._storage
        storages: list[Any] = [b._storage for b in self.inputs]
        storages += [b._storage for b in self.stores]
        if self.op == "copy_buffer":
            return partial(engine.copy, storages[0], target)
        assert self._run is not None
        return partial(self._run, storages, target, self.values)


def melt(stages: list[Stage]) -> list[Node]:
    """The passes for some stages, not prepared yet."""
    nodes = [Node(stage) for stage in stages]
    while _melt_one(nodes):
        pass
    for node in nodes:
        node.settle()
    return nodes


def _melt_one(nodes: list[Node]) -> bool:
    for i, producer in enumerate(nodes):
        j = _reader(nodes, i)
        if j is None:
            continue
        consumer = nodes[j]
        readers = tuple(n for n, b in enumerate(consumer.inputs) if b is producer.output)
        if not _fits(nodes, i, j, readers):
            continue
        assert producer.program is not None
        assert consumer.program is not None
        consumer.program = fuse(producer.program, consumer.program, readers)
        kept = [b for n, b in enumerate(consumer.inputs) if n not in readers]
        consumer.inputs = producer.inputs + kept
        consumer.stages = producer.stages + consumer.stages
        del nodes[i]
        return True
    return False


def _reader(nodes: list[Node], i: int) -> int | None:
    """The one pass that reads what pass i writes, if it is transient and nobody else touches it."""
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


def _fits(nodes: list[Node], i: int, j: int, readers: tuple[int, ...]) -> bool:
    producer, consumer = nodes[i], nodes[j]
    between = nodes[i + 1 : j]
    if any(node.op == "barrier" for node in between):
        return False
    written = [node.output for node in between if node.output is not None]
    if any(overlap(w, b) for w in written for b in producer.inputs):
        return False  # what the producer reads would have changed by then
    assert producer.output is not None
    assert consumer.output is not None
    assert producer.program is not None
    assert consumer.program is not None
    both = pointwise(producer.program) and pointwise(consumer.program)
    for b in producer.inputs:
        if overlap(b, consumer.output) and not (both and b is consumer.output):
            return False  # the consumer would read elsewhere what it is writing
    pixels = consumer.program.out.pixels
    shape, wanted = producer.output.shape, consumer.output.shape
    if (shape[:2] != wanted[:2]) if pixels else (shape != wanted):
        return False
    if not can_fuse(producer.program, consumer.program, readers):
        return False
    every = (*producer.inputs, *consumer.inputs)
    if any(overlap(b, consumer.output) or b.shape[:2] != wanted[:2] for b in every):
        return True  # no chain: those neither write where they read nor read other sizes
    return not consumer.output.engine.keeps_apart(producer.program, consumer.program)
