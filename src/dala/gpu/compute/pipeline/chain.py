"""Chains: adjacent passes that an engine runs as one, with intermediate rows kept in caches.

Fusing merges two programs into one. A chain keeps its programs separate but runs them interleaved:
the CPU engine slides a window over the rows; a GPU runs the stages after a blur inside the blur's
dispatch. Intermediate results are stored only if something else reads them.
"""

from __future__ import annotations

from collections.abc import Sequence

from dala.errors import counted
from dala.gpu.compute.buffer import Buffer, overlap
from dala.gpu.compute.engines.base import Engine, Link, Runner, Task, Tensor
from dala.gpu.compute.lang.ir import Program
from dala.gpu.compute.pipeline.fuse import Pass, Stage

#: The maximum number of passes in a chain. Engines may refuse shorter chains.
MAX_LENGTH = 16


class Chain(Pass):
    """Several passes that run as one."""

    def __init__(self, nodes: Sequence[Pass], outside: list[Buffer], stores: list[Buffer]) -> None:
        self.op = "run_kernel"
        self.nodes = list(nodes)
        self.stages = [stage for node in nodes for stage in node.stages]
        self.inputs = outside
        self.stores = stores
        self.output = nodes[-1].output
        self.program = None
        self._run: Runner | None = None

    @property
    def label(self) -> str:
        """The labels of its passes, in order."""
        return " > ".join(node.label for node in self.nodes)

    @property
    def values(self) -> tuple[int | float, ...]:
        """Parameters of all its programs, concatenated."""
        return tuple(v for node in self.nodes if node.program is not None for v in node.values)

    def rebind(self, old: Buffer, new: Buffer) -> None:
        """Replace one of its buffers."""
        super().rebind(old, new)
        for node in self.nodes:
            node.rebind(old, new)

    def renew(self) -> bool:
        """Ask the engine for a runner of the whole chain; return False if it has none."""
        assert self.output is not None
        made: dict[int, int] = {}
        links = []
        for number, node in enumerate(self.nodes):
            work, out = _work(node), node.output
            assert work is not None
            assert out is not None
            sources = tuple(
                -1 - made[id(b)] if id(b) in made else _place(b, self.inputs) for b in node.inputs
            )
            made[id(out)] = number
            store = _place(out, self.stores) if any(out is b for b in self.stores) else None
            kept = None if store is None else len(self.inputs) + store
            links.append(Link(work, sources, Tensor(out.shape, out.dtype), kept))
        tensors = [Tensor(b.shape, b.dtype) for b in (*self.inputs, *self.stores)]
        run = self.output.engine.chain(links, tensors)
        self._run = run
        return run is not None

    def prepare(self, engine: Engine) -> None:
        """Do nothing; ``renew`` has prepared the chain."""


def _place(b: Buffer, among: list[Buffer]) -> int:
    return next(i for i, other in enumerate(among) if other is b)


def chain(nodes: list[Pass]) -> list[Pass]:
    """Join adjacent passes into chains where the engine supports it."""
    found: list[Pass] = []
    at = 0
    while at < len(nodes):
        end = _longest(nodes, at)
        made = None
        while made is None and end - at > 1:
            made = _chained(nodes, at, end)
            end -= made is None
        found.append(made or nodes[at])
        at = end if made is not None else at + 1
    return found


def _longest(nodes: list[Pass], at: int) -> int:
    """Return the end of the longest possible chain that starts at ``nodes[at]``."""
    first = nodes[at]
    if _work(first) is None:
        return at + 1
    assert first.output is not None
    written: list[Buffer] = [first.output]
    read: list[Buffer] = list(first.inputs)
    if any(overlap(b, first.output) for b in first.inputs):
        return at + 1
    end = at + 1
    while end < len(nodes) and end - at < MAX_LENGTH:
        node = nodes[end]
        if _work(node) is None or node.output is None:
            break
        inside = [b for b in node.inputs if any(b is w for w in written)]
        outside = [b for b in node.inputs if not any(b is w for w in written)]
        if not inside:
            break
        if node.output.shape[:2] != first.output.shape[:2]:
            break
        if any(overlap(node.output, b) for b in (*written, *read, *outside)):
            break
        if any(overlap(b, w) for b in outside for w in written):
            break  # an input shares memory with an output of the chain
        written.append(node.output)
        read += outside
        end += 1
    return end


def _work(node: Pass) -> Program | Task | None:
    """Return the program or task of a pass that maps images to an image, else None."""
    if node.op != "run_kernel" or node.output is None or len(node.output.shape) not in (2, 3):
        return None
    if node.program is not None:
        return node.program if node.program.out.pixels else None
    call = node.stages[0].call
    return call.task if call is not None else None


def _chained(nodes: list[Pass], at: int, end: int) -> Chain | None:
    group, rest = nodes[at:end], nodes[:at] + nodes[end:]
    output = group[-1].output
    outside: list[Buffer] = []
    stores: list[Buffer] = []
    made: set[int] = set()
    for node in group:
        outside += [
            b for b in node.inputs if id(b) not in made and not any(b is o for o in outside)
        ]
        out = node.output
        assert out is not None
        made.add(id(out))
        wanted = not out.transient or any(b is out for n in rest for b in n.inputs)
        if out is not output and wanted:
            stores.append(out)
    found = Chain(group, outside, stores)
    return found if found.renew() else None


def explain(
    engine: Engine | None, stages: Sequence[Stage], passes: Sequence[Pass], times: Sequence[float]
) -> str:
    """Return the plan of a pipeline as text; ``times`` are seconds per pass, if known."""
    where = engine.id if engine is not None else "no device yet"
    count = counted(sum(item.op != "barrier" for item in passes), "passes", "pass")
    lines = [f"pipeline on {where}: {counted(len(stages), 'stages')} in {count}"]
    for number, stage in enumerate(stages):
        shape = stage.output.shape if stage.output is not None else ""
        lines.append(f"  stage {number}: {stage.name} {shape}{_fusion(stage, passes)}")
    for number, item in enumerate(passes):
        time = f", {times[number] * 1e3:.3f} ms" if times else ""
        lines.append(f"  pass {number}: {item.label}, {item.moved:,} bytes{time}")
    return "\n".join(lines)


def _fusion(stage: Stage, passes: Sequence[Pass]) -> str:
    """Return a note on how a stage was fused; an empty string if it was not."""
    for item in passes:
        members = item.nodes if isinstance(item, Chain) else [item]
        if any(stage in member.stages[:-1] for member in members):
            return ", fused"
        if len(members) > 1 and any(stage in member.stages for member in members):
            assert item.output is not None
            return f", in {item.output.engine.chain_method}"
    return ""
